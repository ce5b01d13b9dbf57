/**
 * Tests run as Node's own modules, compiled into dist/test-modules. Through Vite's runner every use of an import is a look-up in a
 * dictionary and a call, which V8 inlines nowhere, and every process and thread fetches or compiles its modules one by one.
 *
 * Threads start with compiled files, by `import.meta.url`. In tests, and where the package's root is told, that is the place of the
 * source instead: things are found from there. Stacks are mapped back where they are printed.
 */
import { existsSync, readdirSync, readFileSync, rmSync, statSync, utimesSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build, type Plugin as BuildPlugin } from 'esbuild';
import type { Plugin } from 'vitest/config';

const root = join(import.meta.dirname, '../..');
const target = join(root, 'dist/test-modules');
const folders = ['src', 'test', 'bench'];

/** For `server.deps.external`: they are imported as packages are. */
export const compiledFiles = /\/dist\/test-modules\//;

/** Test files are imported compiled, and so is what the setup before each of them imports. */
export function compiledTests(): Plugin {
  return {
    name: 'compiled-tests',
    enforce: 'pre',
    resolveId(source, importer) {
      if (importer !== join(root, 'test/runner/setup.ts') || !/^\..*\.ts$/.test(source)) return null;
      return compiledPath(join(dirname(importer), source));
    },
    load(id) {
      return id.startsWith(join(root, 'test')) && id.endsWith('.test.ts') ? `import ${JSON.stringify(compiledPath(id))};` : null;
    },
  };
}

/** Compiles what has changed: a compiled file has the date of its source. */
export async function compileTests(): Promise<void> {
  const sources = folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => join(root, folder, name)),
  );
  if (existsSync(target)) {
    const compiled = new Set(sources.map(compiledPath));
    for (const name of readdirSync(target, { recursive: true, encoding: 'utf8' })) {
      const path = join(target, name);
      if (path.endsWith('.js') && !compiled.has(path)) rmSync(path);
    }
  }
  const changed = sources.filter((path) => dateOf(compiledPath(path)) !== dateOf(path));
  if (changed.length === 0) return;
  const dates = changed.map((path) => dateOf(path)! / 1000);
  await build({
    entryPoints: changed,
    outbase: root,
    outdir: target,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    sourcemap: 'inline',
    sourcesContent: false,
    logLevel: 'warning',
    define: { 'import.meta.url': '__url', 'import.meta.dirname': '__folder' },
    plugins: [eachByItself],
  });
  for (const [index, path] of changed.entries()) utimesSync(compiledPath(path), dates[index]!, dates[index]!);
}

const eachByItself: BuildPlugin = {
  name: 'each-by-itself',
  setup(plugin) {
    plugin.onResolve({ filter: /.*/ }, ({ path, importer, kind }) => {
      if (kind === 'entry-point') return undefined;
      return { path: path.startsWith('.') ? importedPath(path, importer) : path, external: true };
    });
    plugin.onLoad({ filter: /\.ts$/ }, ({ path }) => {
      const text = readFileSync(path, 'utf8');
      if (!text.includes('import.meta.')) return { contents: text, loader: 'ts' };
      const compiled = urlText(compiledPath(path));
      const place = path.startsWith(join(root, 'src/')) && path !== join(root, 'src/package-root.ts') ? compiled : urlText(path);
      const contents = `const __url = ${place}, __folder = ${JSON.stringify(dirname(path))};${text}`;
      return { contents: contents.replaceAll('module: import.meta.url', `module: ${compiled}`), loader: 'ts' };
    });
  },
};

const urlText = (path: string): string => JSON.stringify(pathToFileURL(path).href);

/** What is no TypeScript is imported where it lies. */
function importedPath(path: string, importer: string): string {
  const imported = join(dirname(importer), path);
  const place = imported.endsWith('.ts') ? compiledPath(imported) : imported;
  const way = relative(dirname(compiledPath(importer)), place);
  return way.startsWith('.') ? way : `./${way}`;
}

function compiledPath(source: string): string {
  return join(target, `${relative(root, source).slice(0, -3)}.js`);
}

/** In milliseconds, which survive being written. */
function dateOf(path: string): number | null {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat === undefined ? null : Math.round(stat.mtimeMs);
}

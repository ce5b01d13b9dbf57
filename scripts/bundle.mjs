// Bundles src into dist: loading one file takes half of what loading nine hundred does. Packages that every start loads go into the
// bundle; natives, and packages that are loaded when they are asked for, stay outside.
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const source = join(root, 'src');
const dist = join(root, 'dist');

const insidePackages =
  /^(commander|csv-parse|bson|fast-xml-parser|fastify|fastify-type-provider-zod|@fastify\/swagger|lru-cache|prom-client|re2js|xxhash-wasm|zod)(\/|$)/;

/** A file that a thread starts with: it names itself by `import.meta.url`, so it must keep a file and its exports. */
const startsThreads = /\bmodule: import\.meta\.url|newThread\(import\.meta\.url/;

export async function bundle() {
  const files = readdirSync(source, { recursive: true }).filter((name) => name.endsWith('.ts'));
  const threads = files.filter((name) => startsThreads.test(readFileSync(join(source, name), 'utf8')));
  mkdirSync(dist, { recursive: true });
  for (const name of readdirSync(dist)) if (/\.js(\.map)?$/.test(name)) rmSync(join(dist, name));
  await build({
    entryPoints: Object.fromEntries([
      ['main', join(source, 'main.ts')],
      ...threads.map((name) => [entryName(name), join(source, name)]),
    ]),
    outdir: dist,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    minifyWhitespace: true,
    sourcemap: 'linked',
    logLevel: 'warning',
    // What CommonJS packages in the bundle ask Node for.
    banner: { js: "import { createRequire as requireOf } from 'node:module'; const require = requireOf(import.meta.url);" },
    plugins: [{ name: 'annals', setup: (plugin) => setUp(plugin, new Set(threads.map((name) => join(source, name)))) }],
  });
}

function setUp(plugin, threads) {
  // Only of names of packages: not of paths.
  plugin.onResolve({ filter: /^[^./]/ }, ({ path, importer }) => {
    if (importer === '' || path.startsWith('node:')) return undefined;
    const inside = importer.startsWith(source) ? insidePackages.test(path) : true;
    return inside ? undefined : { path, external: true };
  });
  // Nobody asks for messages of zod in other languages than English, nor for the API's description as YAML.
  plugin.onLoad({ filter: /zod\/v4\/locales\/index\.js$/ }, () => ({ contents: "export { default as en } from './en.js';" }));
  plugin.onLoad({ filter: /node_modules\/yaml\/dist\/index\.js$/ }, () => ({ contents: 'module.exports = {};' }));
  // All files of the bundle lie in one folder, so a thread's file is found beside the chunk that its code went to.
  plugin.onLoad({ filter: /\.ts$/ }, ({ path }) => {
    if (!threads.has(path)) return undefined;
    const url = `new URL("./${entryName(path.slice(source.length + 1))}.js", import.meta.url).href`;
    return { contents: readFileSync(path, 'utf8').replaceAll('import.meta.url', url), loader: 'ts' };
  });
}

function entryName(file) {
  return file.replaceAll(/[\\/]/g, '.').slice(0, -3);
}

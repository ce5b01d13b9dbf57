// Bundles src into dist: loading one file takes half of what loading nine hundred does. Packages that every start loads go into the
// bundle; natives, and packages that are loaded when they are asked for, stay outside. A chunk of the bundle is a function's text, not
// a module: of a script V8 can keep what it compiled (`chunks.mjs`), of a module it can not.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { chunkFolder, compiledFolder } from './chunks.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const source = join(root, 'src');
const dist = join(root, 'dist');

const insidePackages =
  /^(commander|croner|csv-parse|bson|fast-xml-parser|fastify|fastify-type-provider-zod|@fastify\/swagger|hyparquet-writer|lru-cache|prom-client|re2js|xxhash-wasm|zod)(\/|$)/;

/** A file that a thread starts with: it names itself by `import.meta.url`, so it must keep a file and its exports. */
const startsThreads = /\bmodule: import\.meta\.url|startThread\(import\.meta\.url/;

export async function bundle() {
  const files = readdirSync(source, { recursive: true }).filter((name) => name.endsWith('.ts'));
  const threads = files.filter((name) => startsThreads.test(readFileSync(join(source, name), 'utf8')));
  if (!threads.includes(join('log', 'threads', 'workers.ts')))
    throw new Error('no file starts threads: its line is not as expected');
  for (const folder of [chunkFolder, compiledFolder]) rmSync(folder, { recursive: true, force: true });
  mkdirSync(chunkFolder, { recursive: true });
  for (const name of readdirSync(dist)) if (/\.js(\.map)?$/.test(name)) rmSync(join(dist, name));
  const { outputFiles, metafile } = await build({
    entryPoints: Object.fromEntries([
      ['main', join(source, 'main.ts')],
      ...threads.map((name) => [entryName(name), join(source, name)]),
    ]),
    outdir: chunkFolder,
    entryNames: '[name]-[hash]',
    absWorkingDir: root,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    minifyWhitespace: true,
    sourcemap: 'linked',
    logLevel: 'warning',
    metafile: true,
    write: false,
    define: { 'import.meta.url': '$bundle' },
    plugins: [{ name: 'annals', setup: (plugin) => setUp(plugin, new Set(threads.map((name) => join(source, name)))) }],
  });
  const outputs = new Map(Object.entries(metafile.outputs).map(([path, output]) => [basename(path), output]));
  for (const { path, text } of outputFiles) {
    const output = outputs.get(basename(path));
    writeFileSync(path, path.endsWith('.js') ? chunkOf(basename(path), text, output) : text);
    if (!path.endsWith('.js') || output.entryPoint === undefined || !isEntry(output.entryPoint, threads)) continue;
    const name = output.entryPoint.slice('src/'.length);
    const exported = output.exports.length === 0 ? '' : `export const {${output.exports.join(',')}} = `;
    const stub = `import { load } from '../scripts/chunks.mjs';\n${exported}await load('./${basename(path)}');\n`;
    writeFileSync(join(dist, `${entryName(name)}.js`), stub);
  }
}

const isEntry = (file, threads) => file === 'src/main.ts' || threads.some((name) => `src/${name}` === file.replaceAll('\\', '/'));

/** Imports, as esbuild writes them: of other chunks and of packages outside. */
const imports = /import(?:(?: ([\w$]+))?,?(\{[^{}]*\}|\*as [\w$]+)? ?from)?"([^"\\]+)";/g;

/**
 * A chunk as the text of a function: what it imports are constants at its beginning, what it exports is what the function returns.
 * Everything else stays in its line and column, for the source map.
 */
function chunkOf(name, text, { imports: found, exports: outputs }) {
  const outside = new Set(found.filter(({ kind }) => kind === 'import-statement').map(({ path }) => nameOf(path)));
  const constants = [];
  const take = (statement, byDefault, named, path) => {
    if (!outside.has(path)) return statement;
    const from = path.startsWith('./') ? `await $bring("${path}")` : `require("${path}")`;
    if (byDefault) constants.push(`${byDefault}=${from}`);
    if (named?.startsWith('{')) constants.push(`${named.replaceAll(' as ', ':')}=${from}`);
    else if (named) constants.push(`${named.slice('*as '.length)}=${from}`);
    else if (!byDefault) constants.push(`{}=${from}`);
    return ' '.repeat(statement.length);
  };
  const code = text.replaceAll(imports, take).replaceAll(/\bimport(?=\(("[^"\\]+"|[\w.]+)\))/g, '$$bring');
  // A chunk that nobody imports from has no exports. Comments follow: licences, and where the source map is.
  const start = code.lastIndexOf('export{');
  const [statement, list] = /^export\{([^{}]*)\};/.exec(code.slice(start)) ?? ['', ''];
  if (outputs.length > 0 === (list === '')) throw new Error(`${name}: exports are not where they are expected`);
  for (const each of list.split(',')) checkConstant(name, code, each.replace(/ as .*/s, ''));
  const given = list.replaceAll(/([\w$]+) as ([\w$]+)/g, '$2:$1');
  const [body, rest] = list === '' ? [code, ''] : [code.slice(0, start), code.slice(start + statement.length)];
  const head = constants.length === 0 ? '' : `const ${constants.join(',')};`;
  // The first line is one that is made for it.
  return `(async function(require,$bring,$bundle){"use strict";${head}\n${body}\nreturn{${given}}})${rest}`;
}

const nameOf = (path) => (path.startsWith('dist/chunks/') ? `./${basename(path)}` : path);

/** What a chunk hands out are values, not variables: one that is assigned later would be another one elsewhere. */
function checkConstant(chunk, code, name) {
  if (name === '') return;
  const escaped = name.replaceAll('$', '\\$');
  const assigned = new RegExp(
    `(?<![\\w$.#-])${escaped}(=(?![=>])|\\+\\+|--|[-+*/%&|^?]{1,3}=)|(?<=[;{}(,=&|?:!])(\\+\\+|--)${escaped}(?![\\w$])`,
    'g',
  );
  const isDeclared = new RegExp(`(?<![\\w$#.])function(?:\\* ?| )${escaped}(?![\\w$])`).test(code);
  if ((code.match(assigned) ?? []).length > (isDeclared ? 0 : 1))
    throw new Error(`${chunk} exports ${name}, which is assigned more than once`);
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
  // A thread starts with the module that stands for its file.
  plugin.onLoad({ filter: /\.ts$/ }, ({ path }) => {
    if (!threads.has(path)) return undefined;
    const url = `new URL("./${entryName(path.slice(source.length + 1))}.js", import.meta.url).href`;
    return { contents: readFileSync(path, 'utf8').replaceAll('import.meta.url', url), loader: 'ts' };
  });
}

function entryName(file) {
  return file.replaceAll(/[\\/]/g, '.').slice(0, -3);
}

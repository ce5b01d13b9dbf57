// Loads chunks of the bundle (`bundle.mjs`), each with what V8 has compiled of it before (`compile.mjs`): compiling takes half of a start.
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Script } from 'node:vm';

const dist = new URL('../dist/', import.meta.url);
export const chunkFolder = fileURLToPath(new URL('chunks/', dist));
export const compiledFolder = fileURLToPath(new URL('compiled/', dist));
/** What is kept for this Node. Whether it fits the flags of the process and the processor, V8 finds out itself. */
export const compiledHere = join(compiledFolder, `${process.version}-${process.arch}`);

/** Stands for `import.meta.url` of all chunks. */
const bundle = new URL('main.js', dist).href;
const require = createRequire(bundle);
const loaded = new Map();
const scripts = new Map();

/** What a module exports: `./` and the name of a chunk, or what Node loads. */
export function load(name) {
  if (!name.startsWith('./')) return import(name);
  let exports = loaded.get(name);
  if (exports === undefined) loaded.set(name, (exports = evaluate(name.slice(2))));
  return exports;
}

function evaluate(name) {
  const bytes = readFileSync(join(chunkFolder, name));
  const script = new Script(bytes.toString('utf8'), {
    filename: new URL(`chunks/${name}`, dist).href,
    cachedData: compiledOf(name, bytes),
  });
  scripts.set(name, { script, bytes });
  return script.runInThisContext()(require, load, bundle);
}

/** Undefined: there is none for this very chunk, which is compiled anew. */
function compiledOf(name, bytes) {
  let kept;
  try {
    kept = readFileSync(join(compiledHere, name));
  } catch {
    return undefined;
  }
  const digest = digestOf(bytes);
  return kept.subarray(0, digest.length).equals(digest) ? kept.subarray(digest.length) : undefined;
}

const digestOf = (bytes) => createHash('sha256').update(bytes).digest();

/** Keeps what V8 has compiled of all chunks that were loaded. Whoever reads it meanwhile finds all of it or nothing. */
export function keepCompiled() {
  const own = `${compiledHere}.${process.pid}`;
  mkdirSync(own, { recursive: true });
  for (const [name, { script, bytes }] of scripts)
    writeFileSync(join(own, name), Buffer.concat([digestOf(bytes), script.createCachedData()]));
  try {
    renameSync(own, compiledHere);
  } catch {
    // Another process was there before.
    rmSync(own, { recursive: true });
  }
}

// `node --import tsx --import ./scripts/built.mjs <program>`: what a program imports from src is what `tsc -p tsconfig.build.json`
// has compiled of it. tsx wraps every function that has a name in a call, which a program that measures must not count.
import { register } from 'node:module';
import { isMainThread } from 'node:worker_threads';

const source = new URL('../src/', import.meta.url).href;
const built = new URL('../dist/modules/', import.meta.url).href;

if (isMainThread) register(import.meta.url);

export async function resolve(specifier, context, next) {
  const found = await next(specifier, context);
  // Where the package lies is told by where its source does.
  if (found.url === `${built}package-root.js`) return next(`${source}package-root.ts`, context);
  if (!found.url.startsWith(source)) return found;
  const url = built + found.url.slice(source.length).replace(/\.ts(\?.*)?$/, '.js');
  return { url, format: 'module', shortCircuit: true };
}

/** The Cedar engine, loaded when the first policy text is read: 4 MB of WebAssembly that most starts never need. */
import { createRequire } from 'node:module';

export type Engine = typeof import('@cedar-policy/cedar-wasm/nodejs');

let engine: Engine | undefined;

export function cedar(): Engine {
  // A CommonJS build that reads its WebAssembly from beside itself; `import` could not wait for the first policy in a turn.
  engine ??= createRequire(import.meta.url)('@cedar-policy/cedar-wasm/nodejs') as Engine;
  return engine;
}

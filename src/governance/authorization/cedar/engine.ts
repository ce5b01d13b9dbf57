/** The Cedar engine, loaded when the first policy text is read: 4 MB of WebAssembly that most starts never need. */
import { createRequire } from 'node:module';
import { setFlagsFromString } from 'node:v8';

export type Engine = typeof import('@cedar-policy/cedar-wasm/nodejs');

let engine: Engine | undefined;

export function cedar(): Engine {
  if (engine === undefined) {
    // What the engine returns are references, and V8 of Node 20 dies of a failed check ("unreachable code", in
    // DoComputeBuiltinContinuation) when it leaves optimised code in the middle of such a call that it has inlined.
    setFlagsFromString('--no-turbo-inline-js-wasm-calls');
    // A CommonJS build that reads its WebAssembly from beside itself; `import` could not wait for the first policy in a turn.
    engine = createRequire(import.meta.url)('@cedar-policy/cedar-wasm/nodejs') as Engine;
  }
  return engine;
}

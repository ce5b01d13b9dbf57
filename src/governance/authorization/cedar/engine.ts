/** The Cedar engine, loaded when the first policy text is read: 4 MB of WebAssembly that most starts never need. */
import { createRequire } from 'node:module';
import { setFlagsFromString } from 'node:v8';

export type Engine = typeof import('@cedar-policy/cedar-wasm/nodejs');

const require = createRequire(import.meta.url);
const cedarModuleName = '@cedar-policy/cedar-wasm/nodejs';
let cedarEngine: Engine | undefined;

export function cedar(): Engine {
  if (cedarEngine === undefined) {
    // The engine returns references, and V8 of Node 20 dies of a failed check ("unreachable code", in
    // DoComputeBuiltinContinuation) when it leaves optimised code in the middle of such a call that it has inlined.
    setFlagsFromString('--no-turbo-inline-js-wasm-calls');
    // A CommonJS build that reads its WebAssembly from beside itself; `import` could not wait for the first policy in a turn.
    cedarEngine = require(cedarModuleName) as Engine;
  }
  return cedarEngine;
}

/** null for a text that is too deep or too long for the engine's stack. */
export function policyToJson(cedarText: string): ReturnType<Engine['policyToJson']> | null {
  try {
    return cedar().policyToJson(cedarText);
  } catch (error) {
    if (!(error instanceof RangeError || error instanceof WebAssembly.RuntimeError)) throw error;
    // Its stack has run over its memory: from here on it would fail for every text.
    cedarEngine = undefined;
    delete require.cache[require.resolve(cedarModuleName)];
    return null;
  }
}

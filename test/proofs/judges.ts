/** The verifier and its two second opinions, as functions of a case. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash, createHmac } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import nacl from 'tweetnacl';
import type { Case } from './cases.ts';
import { naiveVerdict } from './naive-verifier.ts';

interface Verifier {
  readonly NotProven: new () => Error;
  verifyProof(proof: string, key: string, held: string | null): string[];
  givePrimitives(primitives: {
    sha256Of(bytes: Uint8Array): Uint8Array;
    hmacOf(key: Uint8Array, bytes: Uint8Array): Uint8Array;
    isSigned(bytes: Uint8Array, signature: Uint8Array, key: Uint8Array): boolean;
  }): void;
}

export const verifierPath = fileURLToPath(new URL('../../verify/annals-verify.mjs', import.meta.url));
const verifier = (await import(verifierPath)) as Verifier;
/** The same text once more, with signatures checked as a page in a browser does. */
const inPage = (await import(`${verifierPath}?page`)) as Verifier;
inPage.givePrimitives({
  sha256Of: (bytes) => new Uint8Array(createHash('sha256').update(bytes).digest()),
  hmacOf: (key, bytes) => new Uint8Array(createHmac('sha256', key).update(bytes).digest()),
  isSigned: (bytes, signature, key) =>
    nacl.sign.detached.verify(new Uint8Array(bytes), new Uint8Array(signature), new Uint8Array(key)),
});
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

interface Verdict {
  readonly proven: string[] | null;
  readonly why: string;
}

/** Signatures take a page's own check some milliseconds, so one case in eight is put to it. */
let judgedCount = 0;

/** The verdict of the verifier, which is that of the same text in a page. */
export function verifierSays(judged: Pick<Case, 'proof' | 'key' | 'head'>): Verdict {
  const verdict = verdictOf(verifier, judged);
  if (judgedCount++ % 8 === 0) assert.deepEqual(verdictOf(inPage, judged), verdict);
  return verdict;
}

/** What one copy proves, or why it does not: like its command, which takes any exception for a malformed file. */
function verdictOf({ verifyProof }: Verifier, { proof, key, head }: Pick<Case, 'proof' | 'key' | 'head'>): Verdict {
  try {
    return { proven: verifyProof(decoder.decode(proof), key, head && decoder.decode(head)), why: '' };
  } catch (error) {
    return { proven: null, why: (error as Error).message };
  }
}

export function naiveSays({ proof, key, head }: Case): boolean {
  return naiveVerdict(proof, key, head);
}

/** Null where there is no Python 3 to ask: it is not part of what a clone needs. */
export function pythonSays(cases: readonly Case[]): boolean[] | null {
  if (spawnSync('python3', ['--version']).status !== 0) return null;
  const input = cases.map(({ proof, key, head }) =>
    JSON.stringify({ proof: proof.toString('base64'), key, head: head && head.toString('base64') }),
  );
  const script = fileURLToPath(new URL('verify.py', import.meta.url));
  const { status, stdout, stderr } = spawnSync('python3', ['-B', script], {
    input: `${input.join('\n')}\n`,
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  });
  if (status !== 0) throw new Error(stderr);
  return stdout
    .split('\n')
    .slice(0, -1)
    .map((line) => line === '1');
}

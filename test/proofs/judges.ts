/** The verifier and its two second opinions, as functions of a case. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Case } from './cases.ts';
import { naiveVerdict } from './naive-verifier.ts';

interface Verifier {
  readonly NotProven: new () => Error;
  verifyProof(proof: string, key: string, held: string | null): string[];
}

export const verifierPath = fileURLToPath(new URL('../../verify/annals-verify.mjs', import.meta.url));
const verifier = (await import(verifierPath)) as Verifier;
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** What the verifier proves, or why it does not: like its command, which takes any exception for a malformed file. */
export function verifierSays({ proof, key, head }: Pick<Case, 'proof' | 'key' | 'head'>): {
  proven: string[] | null;
  why: string;
} {
  try {
    return { proven: verifier.verifyProof(decoder.decode(proof), key, head && decoder.decode(head)), why: '' };
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

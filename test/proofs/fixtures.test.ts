/** Proofs that somebody may have kept since the first release: what was proven once stays proven. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { verifierPath, naiveSays, verifierSays } from './judges.ts';

const read = (name: string): Buffer => readFileSync(new URL(`../../fixtures/proofs/v1/${name}`, import.meta.url));
const key = read('log.key').toString();
const held = read('held.checkpoint');

test.each([
  ['entry.json', null, 'entry 9 is in it: kind access, no position'],
  ['row.json', null, 'position'],
  ['branch.json', null, 'descends from "bränch\\n" below position 159'],
  ['growth.json', held, 'it contains all 37 entries of the checkpoint that you hold, unchanged'],
])('%s', (name, head, says) => {
  const given = { name, proof: read(name), key, head, good: true };
  expect(verifierSays(given).proven?.join('\n')).toContain(says);
  expect(naiveSays(given)).toBe(true);
  // Not one byte more or less, and under no other key.
  expect(verifierSays({ ...given, proof: given.proof.subarray(0, -3) }).proven).toBeNull();
  expect(verifierSays({ ...given, key: 'ab'.repeat(32) }).proven).toBeNull();
});

test('entry.tlog-proof, read as c2sp.org/tlog-proof says', async () => {
  const { rootFromPath } = (await import(verifierPath)) as {
    rootFromPath(leaf: Buffer, index: number, size: number, path: Buffer[]): Uint8Array | null;
  };
  const [proof, ...checkpoint] = read('entry.tlog-proof').toString().split('\n\n') as [string, string, string];
  const [first, extra, index, ...path] = proof.split('\n');
  const [, size, root] = checkpoint[0]!.split('\n');
  expect([first, index]).toEqual(['c2sp.org/tlog-proof@v1', 'index 71']);
  const leaf = Buffer.from(extra!.slice('extra '.length), 'base64');
  const leafHash = createHash('sha256').update(Buffer.of(0)).update(leaf).digest();
  const hashes = path.map((hash) => Buffer.from(hash, 'base64'));
  expect(Buffer.from(rootFromPath(leafHash, 71, Number(size), hashes)!).toString('base64')).toBe(root);
  expect(checkpoint.length).toBe(2);
});

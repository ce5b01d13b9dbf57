/**
 * Proof files of any bytes: what the one-file verifier proves is what the naive one proves, and neither takes long over
 * what is none. A seed that was changed anywhere is proven by neither, save in what it does not say anything with.
 */
import { readFileSync } from 'node:fs';
import { assert } from '../../../src/errors.ts';
import { naiveSays, verifierSays } from '../../proofs/judges.ts';

export const name = 'proof-file';

const read = (file: string): Buffer => readFileSync(new URL(`../../../fixtures/proofs/v1/${file}`, import.meta.url));
const key = read('log.key').toString();
const files = ['entry.json', 'row.json', 'branch.json', 'growth.json'];

export function seeds(): Uint8Array[] {
  // The naive one's signatures are a hundred times slower until they are compiled: not what is timed here.
  for (const file of files) run(read(file));
  return [
    ...files.map(read),
    ...files.map((file) => Buffer.from(JSON.stringify(JSON.parse(read(file).toString())))),
    Buffer.from('{"a":{"b":[1,"\\u0041",{}],"a":null}}'),
    Buffer.from(`[${'"\\"'.repeat(200)}`),
  ];
}

export function run(bytes: Uint8Array): void {
  const given = { name, proof: Buffer.from(bytes), key, head: null, good: true };
  const { proven, why } = verifierSays(given);
  assert((proven !== null) === naiveSays(given), `the verifier says ${proven === null ? why : 'yes'}`);
}

/**
 * The one-file verifier against a naive one, and against Python where there is one: good proofs are proven by all, bad ones
 * by none. Which of the bad ones are made changes with the commit; `npm run proofs -- --cases n` makes more, and flips every bit.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { all } from '../log/world.ts';
import { seedBase } from '../runner/seed.ts';
import { tell } from '../runner/tell.ts';
import { whole } from '../runner/turn.ts';
import { noTally, tally } from './agreement.ts';
import { Cases } from './cases.ts';
import { pythonSays, verifierPath, verifierSays } from './judges.ts';

/** Of 5500: enough for some dozens of each kind. */
const bad = whole ? 5500 : 250;
/** Of large trees, and of bad ones for Python, which takes long for a signature. */
const [large, forPython] = whole ? [500, 200] : [150, 70];

let cases: Cases;
beforeAll(async () => {
  cases = await Cases.open();
});

test('good proofs of every place in every small tree, and of many in larger ones', async () => {
  const { cases: count, wrong } = await tally(cases.good(16, large, seedBase + 2), noTally(), false);
  expect(wrong).toEqual([]);
  expect(count).toBe(16 * 17 + large);
});

test('what looks odd and is fine', async () => {
  expect((await tally(cases.tolerated(), noTally(), true)).wrong).toEqual([]);
});

test('bad proofs, one mistake each', async () => {
  const { cases: count, wrong } = await tally(cases.bad(bad, seedBase), noTally(), false);
  tell(`${bad} of 5500 bad proofs, every 42nd bit flipped, seed ${seedBase} (npm run proofs)`);
  expect([wrong, count]).toEqual([[], bad]);
});

test.each(['row', 'branch'] as const)('bits of a %s proof, one flipped at a time', async (of) => {
  const { cases: count, wrong } = await tally(cases.flips(of, 42, seedBase), noTally(), false);
  expect(wrong).toEqual([]);
  expect(count).toBeGreaterThan(250);
});

test.skipIf(pythonSays([]) === null)('Python agrees', async () => {
  const sum = await tally(cases.bad(forPython, seedBase + 1), noTally(), true);
  await tally(cases.good(4, 20, seedBase + 3), sum, true);
  expect([sum.wrong, sum.python]).toEqual([[], sum.cases]);
});

describe('the command', () => {
  const folder = mkdtempSync(join(tmpdir(), 'annals-verify-'));
  const run = (...args: string[]): { status: number | null; said: string } => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [verifierPath, ...args], { encoding: 'utf8' });
    return { status, said: stdout + stderr };
  };
  const file = (name: string, content: Uint8Array | string): string => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };

  test('says what was proven, in words, and how it ended by its exit code', async () => {
    const [good] = await all(cases.tolerated());
    const proof = file('good.json', good!.proof);
    const proven = run(proof, '--key', good!.key, '--head', file('held', good!.head!));
    expect(proven.status).toBe(0);
    expect(proven.said).toMatch(/^PROVEN\n/);
    expect(proven.said).toContain('row 1 of 10 in it, position');
    expect(proven.said).toContain('"name": "name of row6 é 7.0"');
    expect(proven.said).toContain('contains all 5 entries of the checkpoint that you hold');
    expect(run(proof, '--key', file('key', `${good!.key}\n`)).status).toBe(0);

    const bad = run(file('bad.json', good!.proof.subarray(1)), '--key', good!.key);
    expect([bad.status, bad.said]).toEqual([1, expect.stringMatching(/^NOT PROVEN: /)]);
    expect(run(file('no-text', Buffer.of(0xff)), '--key', good!.key).status).toBe(1);
    for (const args of [
      [],
      [proof],
      [proof, '--key'],
      [proof, '--key', 'x'],
      [proof, proof, '--key', good!.key],
      ['/nowhere/x', '--key', good!.key],
    ]) {
      expect([args, run(...args).status]).toEqual([args, 2]);
    }
    rmSync(folder, { recursive: true });
  });

  test('is one file that imports nothing, short enough to be read', () => {
    const text = readFileSync(verifierPath, 'utf8');
    expect(text).not.toMatch(/^import |\bfrom '|\bimport\(|\brequire\(/m);
    expect(text.split('\n').length).toBeLessThanOrEqual(570);
  });

  test('text of others can not write over what it says', async () => {
    const [good] = await all(cases.tolerated());
    const { proven } = verifierSays(good!);
    // oxlint-disable-next-line no-control-regex
    expect(proven!.join('').replaceAll('\n', '')).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/);
  });
});

/** `npm run equal` in small: one history, every way to keep and to evaluate it, the same bits. */
import { expect, test } from 'vitest';
import { MemoryDisk } from '../../src/log/disk/memory-disk.ts';
import { textDifferences } from './equality/texts.ts';
import { tell } from '../runner/tell.ts';
import { inTurn, whole } from '../runner/turn.ts';
import { differences, modes, type Outcome, type Place, runMode } from './equality/modes.ts';

/** Of the modes after the first, whose history all others find on the disk. */
const tried = [modes[0], ...inTurn(modes.slice(1), 2)];
tell(`${tried.length} of ${modes.length} modes (npm run equal)`);

test('answers and digests are the same in every mode', { timeout: 300_000 }, async () => {
  const history = { rows: 24_000, batchRows: 400 };
  const place: Place = {
    disk: new MemoryDisk(),
    directory: '/data',
    history,
    derived: { segmentRows: 2_048, checkpointBytes: 2 ** 40 },
    budgetMb: 1,
  };
  let first: Outcome | null = null;
  for (const mode of tried) {
    const outcome = await runMode(mode, place);
    first ??= outcome;
    expect(differences(first, outcome, history)).toEqual([]);
  }
  expect(first!.answers.length).toBeGreaterThanOrEqual(30);
});

test('MATCH finds what the texts say in every column, declared, made or inherited, around a chunk and a segment', async () => {
  const { found, asked } = await textDifferences({
    sizes: whole ? [513, 1_025] : inTurn([513, 1_025], 2),
    segmentRows: 1_024,
    singlyMax: 128,
  });
  expect(found.slice(0, 3)).toEqual([]);
  expect(asked).toBeGreaterThan(whole ? 700 : 350);
});

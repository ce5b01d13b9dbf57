/** What changed, where what a row holds decides whether it is seen: found by ends, in pieces. */
import { expect, test } from 'vitest';
import { type ChangeSet, changesAfter } from '../../../../src/planner/continuous/watch/change-set.ts';
import { FakeStore, type Row } from '../../fake-snapshot.ts';

const rows = Array.from(
  { length: 100 },
  (_, i): Row => ({
    n: BigInt(i),
    // Closed by versions that are not among these rows; two of them by one.
    ...([7, 8, 41].includes(i) && { system_to: i === 41 ? 3_000n : 2_500n }),
  }),
);
const store = new FakeStore([{ name: 'T', properties: { n: 'integer' }, rows, blockRows: 10 }], 5_000n);

function run(seenBy: 'path' | 'row', from: bigint): { readonly turns: number; readonly changes: ChangeSet } {
  const work = changesAfter({ ...store.snapshot(), seenBy: () => seenBy }, { type: 'T', from, columns: ['n'] });
  for (let turns = 0; ; turns++) {
    const step = work.next();
    if (step.done === true) return { turns, changes: step.value };
  }
}

test('ends whose closing version is not seen are changes of their own', () => {
  const { turns, changes } = run('row', 2_000n);
  expect(changes.versions).toEqual([
    { systemFrom: 2_500n, isDelete: false, closed: [1_007n, 1_008n] },
    { systemFrom: 3_000n, isDelete: false, closed: [1_041n] },
  ]);
  expect([changes.from, changes.end, changes.complete]).toEqual([2_000n, 5_000n, true]);
  // Others get a turn between any two blocks.
  expect(turns).toBe(10);
  expect(run('row', 2_500n).changes.versions.map(({ systemFrom }) => systemFrom)).toEqual([3_000n]);
  expect(run('row', 3_000n).changes.versions).toEqual([]);
});

test('where the path of a row says all, only versions that came are', () => {
  expect(run('path', 2_000n)).toMatchObject({ turns: 0, changes: { versions: [] } });
});

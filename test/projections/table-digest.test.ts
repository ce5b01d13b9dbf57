/** What the digest of rows tells apart: each history differs from the first in one thing, and all digests differ. */
import { expect, test } from 'vitest';
import type { Caller } from '../../src/governance/caller.ts';
import { analyst, type InputRow, TestStore } from '../harness.ts';

const first: readonly InputRow[] = [
  { id: 'a', word: 'ab', note: 'c', count: 1, part: 0.5, yes: true, at: '2024-01-01T00:00:00Z' },
  { id: 'b', word: 'de', note: null, count: 2, part: 1.5, yes: false, at: '2024-01-02T00:00:00Z' },
  { id: 'c', word: null, note: 'f', count: null, part: 2.5, yes: null, at: null },
];

async function digestOf(rows: readonly InputRow[], caller: Caller = analyst, then?: (store: TestStore) => Promise<unknown>) {
  const store = await TestStore.open();
  const columns = { word: 'string', note: 'string', count: 'integer', part: 'number', yes: 'boolean', at: 'timestamp' } as const;
  await store.register('Thing', { id: 'string', ...columns }, 'id');
  await store.put('Thing', rows, caller);
  await then?.(store);
  const { rows: digest } = store.service.projections.digests();
  await store.close();
  return digest!;
}

const changed = (row: number, cells: InputRow): readonly InputRow[] =>
  first.map((given, i) => (i === row ? { ...given, ...cells } : given));

test('one thing that differs gives another digest, and nothing that differs the same one', async () => {
  const histories: readonly Promise<string>[] = [
    digestOf(first),
    digestOf(changed(0, { id: 'aa' })),
    // Where one text ends and the next begins; which column and which row a value stands in.
    digestOf([{ ...first[0], word: 'a' }, { ...first[1], word: 'bde' }, first[2]!]),
    digestOf(changed(0, { word: 'c', note: 'ab' })),
    digestOf([{ ...first[0], note: null }, { ...first[1], note: 'c' }, first[2]!]),
    digestOf([first[0]!, { ...first[1], note: 'f' }, { ...first[2], note: null }]),
    digestOf(changed(2, { count: 0 })),
    digestOf(changed(0, { count: 2 })),
    digestOf(changed(0, { part: 0.25 })),
    digestOf(changed(0, { yes: false })),
    digestOf(changed(2, { yes: false })),
    digestOf(changed(1, { at: '2024-01-02T00:00:01Z' })),
    digestOf([first[1]!, first[0]!, first[2]!]),
    digestOf(first.slice(0, 2)),
    digestOf(first, { ...analyst, path: 'acme/eu', tenant: 'acme' }),
    digestOf(first, analyst, (store) => store.delete('Thing', ['b'])),
    digestOf(first, analyst, (store) => store.delete('Thing', ['c'])),
    digestOf(first, analyst, (store) => store.put('Thing', [first[0]!])),
  ];
  const digests = await Promise.all(histories);
  expect(new Set(digests).size).toBe(digests.length);
  expect(await digestOf(first)).toBe(digests[0]);
});

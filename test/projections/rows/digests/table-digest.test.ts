/** What the digest of rows tells apart: each history differs from the first in one thing, and all digests differ. */
import { expect, test } from 'vitest';
import { inlineWorker, type StartWorker, threadWorker } from '../../../../src/log/threads/workers.ts';
import { ByteDictionary } from '../../../../src/projections/rows/cells/byte-dictionary.ts';
import { CellStream, cellsOf } from '../../../../src/projections/rows/digests/table-digest.ts';
import type { Caller } from '../../../../src/governance/caller.ts';
import { analyst, type InputRow, TestStore } from '../../../harness.ts';

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
  const { rows: digest } = store.service.store.projections.digests();
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

/** Several types, with columns of every layout and rows that are gone. */
async function largeStore(): Promise<TestStore> {
  const store = await TestStore.open();
  const columns = { word: 'string', note: 'string', count: 'integer', part: 'number', yes: 'boolean', at: 'timestamp' } as const;
  for (const type of ['Thing', 'Other']) await store.register(type, { id: 'string', ...columns }, 'id');
  const rows = Array.from({ length: 300 }, (_, i) => ({
    id: `k${i}`,
    word: ['red', 'green', 'blue'][i % 3]!,
    note: i % 7 === 0 ? null : `note ${i}`,
    count: i % 5 === 0 ? null : i * 1000 + (i > 200 ? 2 ** 40 : 0),
    part: i / 4,
    yes: i % 2 === 0,
    at: new Date(Date.UTC(2024, 0, 1) + i * 1000).toISOString(),
  }));
  await store.put('Thing', rows);
  await store.put('Other', rows.slice(0, 10));
  await store.put('Thing', rows.slice(20, 40));
  await store.delete('Thing', ['k3']);
  await store.invoke(analyst, 'remove', (invocation) =>
    invocation.submit({ kind: 'remove-rows', type: 'Thing', keys: ['k7', 'k25'] }),
  );
  return store;
}

test('a worker that hashes columns meanwhile gives the same digests', async () => {
  const store = await largeStore();
  const { projector } = store.service.store.projections;
  const digests = projector.digests();
  const asked: string[] = [];
  const noted =
    (start: StartWorker): StartWorker =>
    (job, data) => {
      asked.push(job.name);
      return start(job, data);
    };
  for (const start of [inlineWorker, threadWorker]) expect(await projector.digestsBeside(noted(start))).toEqual(digests);
  expect(asked).toEqual(['columnDigestJob', 'columnDigestJob']);
  await store.close();
});

test('a digest whose worker ends is refused', async () => {
  const store = await largeStore();
  const ends: StartWorker = () => ({ ask: () => Promise.reject(new Error('it has ended')), end: () => Promise.resolve() });
  await expect(store.service.store.projections.projector.digestsBeside(ends)).rejects.toThrow('it has ended');
  await store.close();
});

test('texts hash to the same whether they lie one after the other or are looked up by their codes', () => {
  // Of no byte, of fewer than a word, of more than a copy takes at once, and longer than what is hashed at a time.
  const lengths = [0, 1, 2, 3, 4, 5, 7, 8, 63, 64, 65, 300, 20_000];
  const words = lengths.map((length, i) => Uint8Array.from({ length }, (_, at) => 33 + ((at * 7 + i) % 90)));
  const rows = 5000;
  const wordOf = (row: number): number => (row % 997 === 0 ? 12 : (row * 5) % 12);
  const dictionary = new ByteDictionary();
  const values = new Int32Array(rows);
  const offsets = new Uint32Array(rows + 1);
  for (let row = 0; row < rows; row++) {
    const word = words[wordOf(row)]!;
    values[row] = dictionary.encode(word, 0, word.length);
    offsets[row + 1] = offsets[row]! + word.length;
  }
  const heap = new Uint8Array(offsets[rows]!);
  for (let row = 0; row < rows; row++) heap.set(words[wordOf(row)]!, offsets[row]);
  const nulls = Uint8Array.from({ length: rows }, (_, row) => +(row % 11 === 3));
  const kept = Int32Array.from({ length: rows / 2 }, (_, i) => i * 2);
  for (const of of [null, nulls]) {
    for (const rowsKept of [null, kept]) {
      const hashesOf = (cells: Parameters<CellStream['add']>[0]): unknown => {
        const stream = new CellStream();
        stream.add(cells, 'string', rowsKept, rowsKept?.length ?? rows, 3);
        return stream.hashes();
      };
      const spelled = hashesOf({ kind: 'text', offsets, heap, nulls: of });
      const vector = { kind: 'dict', values, dictionary, nulls: of } as const;
      expect(hashesOf(cellsOf(vector))).toEqual(spelled);
      expect(hashesOf(cellsOf(vector, (own) => own.copy()))).toEqual(spelled);
    }
  }
});

import { expect, test } from 'vitest';
import { readOutcome } from '../../../src/projections/receipts/receipt-outcome.ts';
import { keptNanoseconds } from '../../../src/projections/receipts/projection.ts';
import type { BatchReceipt, PutRows } from '../../../src/projections/command.ts';
import { batchOf, Store } from '../store.ts';

const key = '1'.repeat(64);
const receipt: BatchReceipt = {
  key,
  batch: 0,
  request: 'a'.repeat(64),
  last: false,
  firstIndex: 100,
  indexes: null,
  refused: [],
};

const put = (given: Partial<BatchReceipt> = {}, rows: readonly string[] = ['a', 'b']): PutRows => ({
  kind: 'put-rows',
  type: 'T',
  rows: batchOf(
    { id: 'string' },
    rows.map((id) => ({ id })),
  ),
  atomic: false,
  createType: true,
  provenance: { source: 's', method: 'm', confidence: 1, derivedFrom: null },
  receipt: { ...receipt, ...given },
});

test('a batch is written once, its receipt in the same append; again it writes nothing and points to the receipt', () => {
  const store = new Store();
  const first = store.decide(put());
  expect(first.drafts.map(({ body }) => body.kind)).toEqual(['type', 'rows', 'receipt']);
  expect(first.receiptLeaf).toBeUndefined();
  store.commit(first.drafts);
  const again = store.decide(put());
  expect(again.drafts).toEqual([]);
  expect(again.outcome.accepted).toBe(0);
  const entry = store.entries[again.receiptLeaf!]!;
  expect(entry.body.kind === 'receipt' && readOutcome(entry.body.outcome)).toMatchObject({
    accepted: 2,
    ids: ['a', 'b'],
    systemFrom: first.outcome.systemFrom,
    systemFromLast: first.outcome.systemFromLast,
  });
  expect(store.read('T', ['_pk'])).toHaveLength(2);
  // Without a receipt the same rows are an update as ever.
  const { receipt: _receipt, ...plain } = put();
  expect(store.decide(plain).drafts.map(({ body }) => body.kind)).toEqual(['rows']);
});

test('a request goes on where it was cut off, to its end and no further', () => {
  const store = new Store();
  store.run(put());
  store.run(put({ batch: 1, request: 'b'.repeat(64) }, ['c']));
  expect(store.decide(put()).drafts).toEqual([]);
  store.run(put({ batch: 2, request: 'c'.repeat(64), last: true }, []));
  expect(store.decide(put({ batch: 2, request: 'c'.repeat(64), last: true }, [])).drafts).toEqual([]);
  expect(() => store.decide(put({ batch: 3, request: 'd'.repeat(64) }, ['d']))).toThrow('another request');
  // Shorter, longer, or of other rows: another request under the same key.
  expect(() => store.decide(put({ batch: 1, request: 'b'.repeat(64), last: true }, ['c']))).toThrow('another request');
  expect(() => store.decide(put({ batch: 2, request: 'c'.repeat(64), last: false }, []))).toThrow('another request');
  expect(() => store.decide(put({ request: 'f'.repeat(64) }))).toThrow('another request');
  expect(store.read('T', ['_pk'])).toHaveLength(3);
  expect(() => store.decide(put({ key: '9'.repeat(64), batch: 1 }))).toThrow('another request');
});

test('what is refused is told by index in the request, those before the command included', () => {
  const store = new Store();
  const refused = [{ index: 101, code: 'REL_PARSE', detail: 'broken' }];
  const { outcome } = store.decide(put({ refused, indexes: Float64Array.of(100, 102) }, ['ok', '']));
  expect(outcome).toMatchObject({ accepted: 1, rejected: 2 });
  expect(outcome.errors.map(({ index, code }) => [index, code])).toEqual([
    [101, 'REL_PARSE'],
    [102, 'REL_INVALID'],
  ]);
});

test('an atomic batch that is refused leaves no receipt', () => {
  const store = new Store();
  expect(() => store.run({ ...put({ last: true }, ['a', '']), atomic: true })).toThrow();
  expect(store.entries).toEqual([]);
  expect(store.run({ ...put({ last: true }, ['a']), atomic: true }).accepted).toBe(1);
});

test('a key is free again a day after its last batch, by the time of the log', () => {
  const store = new Store();
  store.run(put());
  const [{ time }] = store.entries.filter(({ body }) => body.kind === 'receipt') as [(typeof store.entries)[0]];
  store.time = time + keptNanoseconds;
  expect(store.decide(put()).drafts).toEqual([]);
  // At its last instant a batch that follows still finds the first.
  store.run(put({ batch: 1, request: 'b'.repeat(64), last: true }, ['c']));
  store.time += keptNanoseconds + 1n;
  const other = store.run(put({ request: 'e'.repeat(64), last: true }, ['z']));
  expect(other.accepted).toBe(1);
  expect(() => store.run(put())).toThrow('another request');
});

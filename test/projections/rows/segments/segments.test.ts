/** Layouts that only size brings about: several segments, dictionaries given up, zones, positions far apart, reads during writes. */
import { Catalog } from '../../../../src/projections/catalog/projection.ts';
import { describe, expect, test } from 'vitest';
import type { RowsBody } from '../../../../src/log/entries/entry.ts';
import { FOREVER } from '../../../../src/log/values/timestamp.ts';
import { VectorBuilder } from '../../../../src/log/values/vector-builder.ts';
import type { ScanRequest } from '../../../../src/projections/access-paths.ts';
import { contextOf, everything, freshProjections, recut, START, Store } from '../../store.ts';

const ROWS = 70_000;
const noProvenance = { source: 's', method: 'm', confidence: 1, derivedFrom: null };

/** ROWS rows in batches: keys k0 …, n = 0 …, a word of few values, a text of many. */
function big(): Store {
  const store = new Store();
  for (let from = 0; from < ROWS; from += 10_000) {
    const keys = new VectorBuilder('string');
    const numbers = new VectorBuilder('integer');
    const words = new VectorBuilder('string');
    const texts = new VectorBuilder('string');
    for (let i = from; i < from + 10_000; i++) {
      keys.appendString(`k${i}`);
      numbers.appendInteger(i);
      words.appendString(`word ${i % 10}`);
      texts.appendString(`text ${i}`);
    }
    const columns = [
      { name: 'id', type: 'string' as const, vector: keys.build() },
      { name: 'n', type: 'integer' as const, vector: numbers.build() },
      { name: 'word', type: 'string' as const, vector: words.build() },
      { name: 'text', type: 'string' as const, vector: texts.build() },
    ];
    store.run({
      kind: 'put-rows',
      type: 'T',
      rows: { length: 10_000, columns },
      atomic: false,
      createType: true,
      provenance: noProvenance,
    });
  }
  return store;
}

function sumOf(
  store: Store,
  request: Partial<ScanRequest>,
  basis?: number,
): { count: number; sum: number; scanned: number; blocks: number } {
  let [count, sum, scanned, blocks] = [0, 0, 0, 0];
  for (const block of store.blocks({ type: 'T', columns: ['n'], time: everything, ...request }, basis)) {
    const [vector] = block.columns;
    // A turn for others, without a row.
    if (block.count === 0) continue;
    if (vector!.kind !== 'i32') throw new Error('small integers rest as i32');
    for (let k = 0; k < block.count; k++) sum += vector!.values[block.selection ? block.selection[k]! : block.first + k]!;
    count += block.count;
    scanned += block.scanned;
    blocks++;
  }
  return { count, sum, scanned, blocks };
}

const sumBelow = (n: number): number => (n * (n - 1)) / 2;

test('a column that gives its dictionary up holds what it held, nothing and the empty text among it', () => {
  const store = new Store();
  const textOf = (i: number): string | null => (i % 7 === 0 ? null : i % 11 === 0 ? '' : `é ${i % 5000}`);
  for (const [from, to] of [
    [0, 4000],
    [4000, 9000],
  ] as const) {
    const keys = new VectorBuilder('string');
    const texts = new VectorBuilder('string');
    for (let i = from; i < to; i++) {
      keys.appendString(`k${i}`);
      const text = textOf(i);
      if (text === null) texts.appendNull();
      else texts.appendString(text);
    }
    const columns = [
      { name: 'id', type: 'string' as const, vector: keys.build() },
      { name: 'text', type: 'string' as const, vector: texts.build() },
    ];
    const rows = { length: to - from, columns };
    store.run({ kind: 'put-rows', type: 'T', rows, atomic: false, createType: true, provenance: noProvenance });
    const [head] = store.projections.rows.table(null, 'T')!.segments;
    expect(head!.column('text')!.vector(head!.length).kind).toBe(from === 0 ? 'dict' : 'text');
  }
  const bytes = Array.from({ length: 9000 }, (_, i) => Buffer.byteLength(textOf(i) ?? '')).reduce((a, b) => a + b, 0);
  expect(store.projections.rows.table(null, 'T')!.segments[0]!.column('text')!.heapBytes).toBe(bytes);
  const read = store.read('T', ['_pk', 'text']);
  expect(read).toEqual(Array.from({ length: 9000 }, (_, i) => ({ _pk: `k${i}`, text: textOf(i) })));
});

describe('a table of several segments', () => {
  const store = big();

  test('scans whole, in blocks of what was asked for, without a selection where nothing is left out', () => {
    expect(sumOf(store, { blockRows: 5000 })).toEqual({ count: ROWS, sum: sumBelow(ROWS), scanned: ROWS, blocks: 15 });
    const blocks = store.blocks({ type: 'T', columns: ['n'], time: everything });
    expect(blocks.every(({ selection }) => selection === null)).toBe(true);
  });

  test('reads as of an instant in its middle by the prefix that was known then', () => {
    const { timeline } = store.projections;
    // The type took position 0, so row 66,000 stands at 66,001.
    const system = timeline.timeOf(66_001);
    expect(sumOf(store, { time: { system, valid: 'all' } })).toMatchObject({ count: 66_001, sum: sumBelow(66_001) });
    expect(sumOf(store, { time: { system: 'all', valid: system } })).toMatchObject({ count: 66_001, sum: sumBelow(66_001) });
    expect(sumOf(store, { after: system })).toMatchObject({ count: ROWS - 66_001, sum: sumBelow(ROWS) - sumBelow(66_001) });
  });

  test('few values rest as codes of one dictionary, many are spelt out, and both read back', () => {
    const [first, last] = store.projections.rows.table(null, 'T')!.segments;
    expect(first!.column('word')!.vector(first!.length).kind).toBe('dict');
    expect(last!.column('word')!.vector(last!.length).kind).toBe('dict');
    expect(first!.column('text')!.vector(first!.length).kind).toBe('text');
    expect(store.read('T', ['word', 'text'], { keys: ['k3', 'k69999'] })).toEqual([
      { word: 'word 3', text: 'text 3' },
      { word: 'word 9', text: 'text 69999' },
    ]);
  });

  test('stretches whose values rule a predicate out are not read; what has not grown to a stretch is', () => {
    const zone = (column: string, op: '=' | '<' | '<=' | '>' | '>=', value: string | bigint | number) =>
      sumOf(store, { zones: [{ column, op, value }] }).count;
    const tail = ROWS - 65_536;
    const growing = tail % 2048;
    expect(zone('n', '>=', 65_536n)).toBe(tail);
    expect(zone('n', '>=', 65_535n)).toBe(2048 + tail);
    expect(zone('n', '<=', 2048n)).toBe(4096 + growing);
    expect(zone('n', '<', 2048n)).toBe(2048 + growing);
    expect(zone('n', '>', 63_487n)).toBe(2048 + tail);
    expect(zone('n', '<', 0n)).toBe(growing);
    expect(zone('n', '=', -0.5)).toBe(growing);
    expect(zone('n', '=', 5000n)).toBe(2048 + growing);
    expect(zone('word', '=', 'word 3')).toBe(ROWS);
    expect(zone('word', '<', 'word 3')).toBe(ROWS);
    expect(zone('word', '=', 'no such word')).toBe(growing);
    expect(zone('system_from', '<', START)).toBe(0);
    expect(zone('system_from', '<', START + 2n)).toBe(65_536);
    expect(zone('valid_to', '<', FOREVER)).toBe(0);
    expect(zone('nothing', '=', 1n)).toBe(ROWS);
    const both = sumOf(store, {
      zones: [
        { column: 'n', op: '>=', value: 10_000n },
        { column: 'n', op: '<', value: 10_100n },
      ],
    });
    expect(both).toMatchObject({ count: 2048 + growing, scanned: 2048 + growing });
  });

  test('keys are found in any segment, in the order of their versions', () => {
    const keys = ['k69000', 'k1', 'k65536', 'k65535', 'absent'];
    const rows = store.read('T', ['_pk', 'n', 'system_from', 'valid_to'], { keys });
    expect(rows.map((row) => row['n'])).toEqual([1n, 65_535n, 65_536n, 69_000n]);
    const { timeline } = store.projections;
    expect(rows.map((row) => row['system_from'])).toEqual(
      [2, 65_536, 65_537, 69_001].map((position) => timeline.timeOf(position)),
    );
  });

  test('the same rows in small entries are the same state, in fewer and wider columns or more and narrower ones', () => {
    const projections = freshProjections();
    for (const entry of recut(store.entries, 3333)) projections.apply(entry);
    expect(projections.digests()['rows']).toBe(store.projections.digests()['rows']);
  });
});

describe('a table whose rows were mostly superseded', () => {
  const store = big();
  const basis = store.position;
  const before = store.time - 1n;
  for (let round = 0; round < 2; round++) {
    for (let from = 0; from < ROWS; from += 10_000) {
      const rows = Array.from({ length: 10_000 }, (_, i) => ({ id: `k${from + i}`, n: 1n })).filter((_, i) => from + i !== 70);
      store.put('T', { id: 'string', n: 'integer' }, rows);
    }
  }
  const current = { system: store.time, valid: store.time };

  test('current reads look at live versions alone', () => {
    const seen = sumOf(store, { time: current });
    expect(seen).toMatchObject({ count: ROWS, sum: ROWS - 1 + 70 });
    expect(seen.scanned).toBeLessThan(ROWS + 10_000);
  });

  test('earlier instants and bases read what they read then', () => {
    const time = { system: before, valid: 'all' as const };
    expect(sumOf(store, { time })).toMatchObject({ count: ROWS, sum: sumBelow(ROWS) });
    expect(sumOf(store, { time: current }, basis)).toMatchObject({ count: ROWS, sum: sumBelow(ROWS) });
    expect(sumOf(store, {}, basis)).toMatchObject({ count: ROWS, sum: sumBelow(ROWS) });
  });

  test('a lone survivor of its segment comes with its own times', () => {
    const rows = store.read('T', ['_pk', 'n', 'system_from', 'system_to', 'valid_from', 'valid_to', 'namespace_path'], {
      time: current,
      zones: [{ column: 'system_from', op: '<', value: before }],
    });
    const own = store.projections.timeline.timeOf(71);
    const survivor = {
      _pk: 'k70',
      n: 70n,
      system_from: own,
      system_to: FOREVER,
      valid_from: own,
      valid_to: FOREVER,
      namespace_path: null,
    };
    expect(rows[0]).toEqual(survivor);
  });
});

test('a key that was updated early leaves the chains of later keys alone', () => {
  const store = new Store();
  store.put('T', { id: 'string', n: 'integer' }, [
    { id: 'a', n: 1n },
    { id: 'a', n: 2n },
  ]);
  const rows = Array.from({ length: 300 }, (_, i) => ({ id: `later ${i}`, n: BigInt(i) }));
  for (const row of rows) store.put('T', { id: 'string', n: 'integer' }, [row]);
  expect(store.read('T', ['_pk', 'n'], { keys: rows.map(({ id }) => id) }).map((row) => row['n'])).toEqual(
    rows.map(({ n }) => n),
  );
  expect(store.read('T', ['n'], { keys: ['later 299'], time: { system: store.time, valid: 'all' } })).toEqual([{ n: 299n }]);
  expect(store.run({ kind: 'remove-rows', type: 'T', keys: ['later 299'] })).toMatchObject({ accepted: 1 });
});

describe('reads while entries are applied', () => {
  test('a scan keeps its basis: what comes, is closed or ends meanwhile changes nothing', () => {
    const store = big();
    store.put('T', { id: 'string', n: 'integer' }, [{ id: 'k5', n: 5n }]);
    const time = { system: store.time, valid: 'all' as const };
    const expected = sumOf(store, { time });
    const snapshot = store.projections.snapshot({ position: store.position, instant: store.time }, 'main', null);
    for (const request of [{ time }, { time: everything }]) {
      const whole = sumOf(store, request, snapshot.position);
      const scan = snapshot.rows.scan({ type: 'T', columns: ['n'], blockRows: 1000, ...request });
      let [count, sum, round] = [0, 0, 0];
      for (let next = scan.next(); !next.done; next = scan.next()) {
        const [vector] = next.value.columns;
        if (vector!.kind !== 'i32') throw new Error('small integers rest as i32');
        const { selection, first } = next.value;
        for (let k = 0; k < next.value.count; k++) sum += vector!.values[selection ? selection[k]! : first + k]!;
        count += next.value.count;
        const key = `k${(round++ * 997) % ROWS}`;
        store.put('T', { id: 'string', n: 'integer' }, [
          { id: key, n: 1n },
          { id: `new ${round}`, n: 1n },
        ]);
        store.run({ kind: 'delete-rows', type: 'T', keys: [`k${(round * 991) % ROWS}`] });
      }
      expect({ count, sum }).toEqual({ count: whole.count, sum: whole.sum });
    }
    expect(sumOf(store, { time }, snapshot.position)).toMatchObject({ count: expected.count, sum: expected.sum });
  });

  test('what is removed for good meanwhile does not come out any more', () => {
    const store = big();
    for (const request of [{ time: everything }, { time: { system: store.time, valid: 'all' as const } }]) {
      const snapshot = store.projections.snapshot({ position: store.position, instant: store.time }, 'main', null);
      const scan = snapshot.rows.scan({ type: 'T', columns: ['n'], blockRows: 10_000, ...request });
      const first = scan.next().value!;
      const key = store.read('T', ['_pk'], {
        time: { system: store.time, valid: 'all' },
        after: store.projections.timeline.timeOf(30_000),
      })[0]!['_pk'];
      store.run({ kind: 'remove-rows', type: 'T', keys: [String(key)] });
      let count = first.count;
      for (let next = scan.next(); !next.done; next = scan.next()) count += next.value.count;
      expect(count).toBe(sumOf(store, request).count);
    }
  });
});

describe('positions far apart', () => {
  function entryOf(key: string, closes: readonly number[]): RowsBody {
    const keys = new VectorBuilder('string');
    keys.appendString(key);
    const none = { kind: 'null' as const };
    return {
      kind: 'rows',
      type: 'T',
      ops: new Uint8Array(1),
      keys: {
        length: 1,
        columns: [
          { name: '_pk', type: 'string', vector: keys.build() },
          { name: 'valid_from', type: 'timestamp', vector: none },
          { name: 'valid_to', type: 'timestamp', vector: none },
        ],
      },
      closeOffsets: Uint32Array.of(0, closes.length),
      closes: Float64Array.from(closes),
      cells: { length: 1, columns: [] },
      provenance: noProvenance,
    };
  }

  test('segments and closings reach across more positions than 32 bits count', () => {
    const FAR = 2 ** 32 + 100;
    const projections = freshProjections();
    const { timeline, rows } = projections;
    // Other types fill the positions between: only the timeline and the rows see these entries.
    let time = START;
    const apply = (position: number, body: RowsBody): void => {
      const gap = position - timeline.end;
      if (gap > 0) timeline.append(timeline.end, time, gap);
      time += BigInt(gap);
      timeline.append(position, time, 1);
      rows.apply({ context: contextOf(null), body, leaf: 0, position, positions: 1, time });
      time += 1n;
    };
    apply(10, entryOf('a', []));
    apply(20, entryOf('b', []));
    apply(30, entryOf('b', [20]));
    apply(FAR, entryOf('a', [10]));
    apply(FAR + 5, entryOf('c', []));
    expect(rows.table(null, 'T')!.segments).toHaveLength(2);
    const read = (system: bigint | 'all', basis: number): string[] => {
      const scan = rows
        .reader({ branch: 0, tenant: null, catalog: new Catalog().catalogOn(0, null) }, basis)
        .scan({ type: 'T', columns: ['_pk'], time: { system, valid: 'all' } });
      const keys: string[] = [];
      for (let next = scan.next(); !next.done; next = scan.next()) {
        for (let k = 0; k < next.value.count; k++) {
          const { selection, first, columns } = next.value;
          const [vector] = columns;
          const row = selection ? selection[k]! : first + k;
          if (vector!.kind !== 'text') throw new Error('keys are text');
          keys.push(Buffer.from(vector!.heap.subarray(vector!.offsets[row]!, vector!.offsets[row + 1]!)).toString());
        }
      }
      return keys;
    };
    expect(read('all', FAR + 6)).toEqual(['a', 'b', 'b', 'a', 'c']);
    expect(read(time, FAR + 6)).toEqual(['b', 'a', 'c']);
    expect(read(timeline.timeOf(25), FAR + 6)).toEqual(['a', 'b']);
    expect(read(timeline.timeOf(FAR - 1), FAR + 6)).toEqual(['a', 'b']);
    expect(read(timeline.timeOf(FAR), FAR + 6)).toEqual(['b', 'a']);
    expect(read(time, FAR)).toEqual(['a', 'b']);
  });
});

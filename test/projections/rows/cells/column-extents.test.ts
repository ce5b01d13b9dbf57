/** Columns in column memory: how much they take, and that what is given back is used again only in a later turn. */
import { describe, expect, test } from 'vitest';
import { ColumnMemory, memoryOf } from '../../../../src/log/values/column-memory.ts';
import type { Vector } from '../../../../src/log/values/columns.ts';
import type { ColumnType } from '../../../../src/log/values/value.ts';
import { VectorBuilder } from '../../../../src/log/values/vector-builder.ts';
import { ColumnSpace } from '../../../../src/projections/rows/cells/column-extents.ts';
import { Projections } from '../../../../src/projections/projections.ts';
import type { Segment } from '../../../../src/projections/rows/segments/segment.ts';
import { everything, freshProjections, Store } from '../../store.ts';

const ROWS = 200_000;
const BATCH = 10_000;

interface World {
  readonly store: Store;
  readonly memory: ColumnMemory;
  /** Runs what was put off to a later turn. */
  laterTurn(): void;
}

function world(): World {
  const memory = new ColumnMemory({ memoryBytes: 256 * 1024 * 1024, poison: true });
  const later: (() => void)[] = [];
  const projections = new Projections({
    newKey: () => 'made',
    tokensMax: 1,
    rows: { memory, defer: (task) => void later.push(task) },
  });
  return { store: new Store(projections), memory, laterTurn: () => later.splice(0).forEach((task) => task()) };
}

/** Integers first, then one that only a double holds: the head's column changes its layout on the way. */
function fill({ store }: World, from = 0, to = ROWS): void {
  for (let start = from; start < to; start += BATCH) {
    const builders: [string, ColumnType, VectorBuilder][] = (
      [
        ['id', 'string'],
        ['n', 'integer'],
        ['wide', 'integer'],
        ['at', 'timestamp'],
        ['flag', 'boolean'],
        ['word', 'string'],
        ['gap', 'integer'],
      ] as const
    ).map(([name, type]) => [name, type, new VectorBuilder(type)]);
    const by = Object.fromEntries(builders.map(([name, , builder]) => [name, builder])) as Record<string, VectorBuilder>;
    for (let i = start; i < start + BATCH; i++) {
      by['id']!.appendString(`k${i}`);
      by['n']!.append(BigInt(i));
      by['wide']!.append(i > 100_000 ? BigInt(i) + 2n ** 40n : BigInt(i));
      by['at']!.append(BigInt(i) * 1000n);
      by['flag']!.append(i % 3 === 0);
      by['word']!.appendString(`word ${i % 7}`);
      by['gap']!.append(i % 5 === 0 && i > 150_000 ? BigInt(i) : null);
    }
    const columns = builders.map(([name, type, builder]) => ({ name, type, vector: builder.build() }));
    store.run({
      kind: 'put-rows',
      type: 'T',
      rows: { length: BATCH, columns },
      atomic: false,
      createType: true,
      provenance: { source: 's', method: 'm', confidence: 1, derivedFrom: null },
    });
  }
}

const columns = ['_pk', 'n', 'wide', 'at', 'flag', 'word', 'gap'];

function arraysOf(vector: Vector): ArrayBufferView[] {
  if (vector.kind === 'null') return [];
  const nulls = vector.nulls ? [vector.nulls] : [];
  return vector.kind === 'text' ? [vector.offsets, vector.heap, ...nulls] : [vector.values, ...nulls];
}

function sealedArrays(segment: Segment): ArrayBufferView[] {
  const cells = [segment.keys, ...segment.columnNames().map((name) => segment.column(name)!)].flatMap((column) =>
    arraysOf(column.vector(segment.length)),
  );
  const own = [segment.deltas, segment.closings, segment.validFrom, segment.validTo, segment.live, segment.previous.values];
  return [...cells, ...own.filter((array) => array !== null)];
}

describe('columns of sealed segments', () => {
  test('rest in column memory, each as long as its rows, and nothing is kept of what all rows share', () => {
    const made = world();
    fill(made);
    const { segments } = made.store.projections.rows.table(null, 'T')!;
    expect(segments.length).toBe(4);
    for (const segment of segments.slice(0, -1)) {
      expect(sealedArrays(segment).every((array) => memoryOf(array) !== undefined)).toBe(true);
      // A column that turned up in the third segment took a position.
      expect(segment.deltas === null).toBe(segment !== segments[2]);
      expect(segment.closings).toBe(null);
      expect(segment.column('n')!.vector(65_536)).toMatchObject({ kind: 'i32' });
      const [offsets, heap] = [segment.keys.offsets, segment.keys.heap];
      expect(offsets.length).toBe(65_537);
      expect(heap.length).toBe(offsets[65_536]);
    }
    made.laterTurn();
    const held = segments.slice(0, -1).flatMap(sealedArrays);
    const exact = held.reduce((sum, array) => sum + array.byteLength, 0);
    // What else is given out is the head's, and the key index.
    const { index } = made.store.projections.rows.table(null, 'T')!;
    const head = sealedArrays(segments[3]!).filter((array) => memoryOf(array) !== undefined);
    const growing = head.reduce((sum, array) => sum + array.byteLength, 0);
    expect(made.memory.used).toBeLessThanOrEqual(exact + growing + index.bytes + 64 * (held.length + head.length + 256));
  });

  test('rows superseded and removed cost what they must, and read as they did in plain arrays', () => {
    const made = world();
    fill(made);
    fill(made, 0, 20_000);
    made.laterTurn();
    const { store } = made;
    const [first] = store.projections.rows.table(null, 'T')!.segments;
    expect(sealedArrays(first!).every((array) => memoryOf(array) !== undefined)).toBe(true);
    expect(first!.liveCount).toBe(45_536);
    store.run({ kind: 'remove-rows', type: 'T', keys: ['k3', 'k70000'] });
    made.laterTurn();
    const plain = new Store(freshProjections());
    for (const entry of store.entries) plain.projections.apply(entry);
    expect(store.projections.digests()).toEqual(plain.projections.digests());
  });
});

describe('what is given back', () => {
  test('stays as it was for a reader until it comes back for the next block, and is gone for good after that', () => {
    const made = world();
    fill(made);
    made.laterTurn();
    const { store, memory } = made;
    const scan = store.snapshot().rows.scan({ type: 'T', columns, time: everything });
    const block = scan.next().value!;
    const used = memory.used;
    // Integers become numbers: the sealed segments' arrays of `n` are replaced.
    const integers = block.columns[1]!;
    const n = { type: 'number', required: false, masked: false, indexed: false, subject: false, dims: 0 } as const;
    store.run({ kind: 'evolve-type', name: 'T', properties: { n } });
    fill(made, ROWS, ROWS + BATCH);
    expect(integers.kind === 'i32' && integers.values[1]).toBe(1);
    made.laterTurn();
    expect(memory.used).toBeGreaterThan(used);
    // An operator may work on its block for many turns.
    expect(integers.kind === 'i32' && integers.values[1]).toBe(1);
    let rows = block.count + scan.next().value!.count;
    expect(integers.kind === 'i32' && integers.values[1]).not.toBe(1);
    for (let next = scan.next(); !next.done; next = scan.next()) rows += next.value.count;
    expect(rows).toBe(ROWS);
  });

  test('waits for the oldest of several readers, and not for one that has ended', () => {
    const memory = new ColumnMemory({ memoryBytes: 65_536, poison: true });
    const later: (() => void)[] = [];
    const space = new ColumnSpace(memory, (task) => void later.push(task));
    const turn = (): void => later.splice(0).forEach((task) => task());
    const extents = space.extents();
    const old = extents.allocate(Int32Array, 16).fill(7);
    const [slow, quick, ended] = [space.read([1, 2, 3]), space.read([1, 2, 3]), space.read([1, 2, 3])];
    for (const reader of [slow, quick, ended]) reader.next();
    extents.giveBack(old);
    turn();
    quick.next();
    ended.return();
    expect([...old.subarray(0, 2)]).toEqual([7, 7]);
    slow.next();
    expect([...old.subarray(0, 2)]).not.toEqual([7, 7]);
    expect(memory.used).toBe(0);
    // Given back in the turn in which the block was taken: the block may be of it.
    const last = extents.allocate(Int32Array, 16).fill(5);
    slow.next();
    extents.giveBack(last);
    turn();
    expect([...last.subarray(0, 2)]).toEqual([5, 5]);
    slow.next();
    quick.next();
    expect(memory.used).toBe(0);
  });
});

/** Pruning against the plain truth: every row that meets the predicates comes out, whatever was summarised when. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Cell, ColumnType } from '../../../../src/log/values/value.ts';
import { compareText } from '../../../../src/log/values/value.ts';
import { FOREVER } from '../../../../src/log/values/timestamp.ts';
import { cellAt, VectorBuilder } from '../../../../src/log/values/vector-builder.ts';
import type { ZonePredicate } from '../../../../src/projections/access-paths.ts';
import { Projections } from '../../../../src/projections/projections.ts';
import { defaultRowSettings } from '../../../../src/projections/rows/tables/row-storage.ts';
import { everything, Store } from '../../store.ts';

const BATCH = 5000;
const ops = ['=', '<', '<=', '>', '>='] as const;
type Value = ZonePredicate['value'];

/** Keys rise with arrival; other columns rise, fall, wander, are long, are missing. */
const columns: Readonly<Record<string, { type: ColumnType; cell(i: number): Cell }>> = {
  id: { type: 'string', cell: (i) => `key-${String(i).padStart(8, '0')}` },
  n: { type: 'integer', cell: (i) => BigInt(i) },
  falling: { type: 'number', cell: (i) => 1e6 - i / 2 },
  wide: { type: 'integer', cell: (i) => 2n ** 60n + BigInt(i % 9000) },
  at: { type: 'timestamp', cell: (i) => 1_700_000_000_000_000_000n + BigInt(i) },
  long: { type: 'string', cell: (i) => `a text that is longer than what is kept of it: ${String(i).padStart(8, '0')}` },
  mixed: { type: 'string', cell: (i) => (i % 3000 === 0 ? '' : i % 7 === 0 ? null : `é${'\u{1f600}'.repeat(i % 3)}${i % 5000}`) },
  sparse: { type: 'integer', cell: (i) => (i > 20_000 && i < 30_000 ? BigInt(i % 50) : null) },
  shuffled: { type: 'string', cell: (i) => `s${(i * 7919) % 10_007}` },
  wandering: { type: 'string', cell: (i) => `w${(Math.floor(i / 2048) * 7) % 10}-${i}` },
  word: { type: 'string', cell: (i) => `word ${Math.floor(i / 1000)}` },
};

function fill(store: Store, from: number, to: number): void {
  for (let start = from; start < to; start += BATCH) {
    const batch = Object.entries(columns).map(([name, { type, cell }]) => {
      const builder = new VectorBuilder(type);
      for (let i = start; i < start + BATCH; i++) builder.append(cell(i));
      return { name, type, vector: builder.build() };
    });
    store.run({
      kind: 'put-rows',
      type: 'T',
      rows: { length: BATCH, columns: batch },
      atomic: false,
      createType: true,
      provenance: { source: 's', method: 'm', confidence: 1, derivedFrom: null },
    });
  }
}

function holds(cell: Cell, op: ZonePredicate['op'], value: Value): boolean {
  if (cell === null) return false;
  const order = typeof cell === 'string' ? compareText(cell, value as string) : cell < value ? -1 : cell > value ? 1 : 0;
  return op === '=' ? order === 0 : op === '<' ? order < 0 : op === '<=' ? order <= 0 : op === '>' ? order > 0 : order >= 0;
}

/** Row numbers that a scan looks at. */
function rowsOf(store: Store, zones: readonly ZonePredicate[]): Set<number> {
  const rows = new Set<number>();
  for (const block of store.blocks({ type: 'T', columns: ['n'], time: everything, zones })) {
    const [vector] = block.columns;
    for (let k = 0; k < block.count; k++) {
      if (vector!.kind !== 'i32') throw new Error('small integers rest as i32');
      rows.add(vector!.values[block.selection ? block.selection[k]! : block.first + k]!);
    }
  }
  return rows;
}

/** Keeps filters of the columns that tell nothing by their extremes. */
function filtered(): Store {
  const settings = { ...defaultRowSettings, bloomColumns: ['mixed', 'word', 'wide', 'sparse', 'shuffled'] };
  return new Store(new Projections({ newKey: () => 'made', tokensMax: 1, rows: { settings } }));
}

describe.each([
  ['by extremes', () => new Store()],
  ['by extremes and filters', filtered],
])('pruning %s', (_, made) => {
  const ROWS = 80_000;
  const store = made();
  fill(store, 0, ROWS);
  const names = Object.keys(columns);
  const cells = Object.fromEntries(names.map((name) => [name, Array.from({ length: ROWS }, (_, i) => columns[name]!.cell(i))]));
  const predicate = fc.record({
    column: fc.constantFrom(...names),
    op: fc.constantFrom(...ops),
    /** A value that some row has, or nearly. */
    row: fc.integer({ min: -2, max: ROWS + 2 }),
    twist: fc.constantFrom('none', 'shorter', 'longer', 'between'),
  });

  test('loses no row that meets all predicates', () => {
    fc.assert(
      fc.property(fc.array(predicate, { minLength: 1, maxLength: 2 }), (chosen) => {
        const zones = chosen.flatMap(({ column, op, row, twist }): ZonePredicate[] => {
          const cell = columns[column]!.cell(Math.max(0, row));
          if (cell === null || typeof cell === 'object') return [];
          const value =
            typeof cell !== 'string' || twist === 'none'
              ? cell
              : twist === 'shorter'
                ? cell.slice(0, -1)
                : `${cell}${twist === 'longer' ? '0' : '\u0001'}`;
          return [{ column, op, value }];
        });
        const seen = rowsOf(store, zones);
        for (let i = 0; i < ROWS; i++) {
          if (zones.every(({ column, op, value }) => holds(cells[column]![i]!, op, value)) && !seen.has(i)) {
            throw new Error(`row ${i} is lost`);
          }
        }
      }),
      { numRuns: 60 },
    );
  });

  test.each(['_pk', 'id', 'long', 'n', 'at'])('a range of %s that rises with arrival reads a stretch or two', (column) => {
    const cell = columns[column === '_pk' ? 'id' : column]!.cell;
    const zones: ZonePredicate[] = [
      { column, op: '>=', value: cell(40_000) as Value },
      { column, op: '<', value: cell(40_100) as Value },
    ];
    const seen = rowsOf(store, zones);
    // What is kept of a long text does not tell these apart.
    const most = column === 'long' ? ROWS : 2 * 2048 + ((ROWS % 65_536) % 2048);
    expect(seen.size).toBeLessThanOrEqual(most);
    for (let i = 40_000; i < 40_100; i++) expect(seen.has(i)).toBe(true);
  });

  test.each(['_pk', 'id', 'long'])('a range of %s is found in rising texts without a look at their neighbours', (column) => {
    const cell = columns[column === '_pk' ? 'id' : column]!.cell;
    const range = (...bounds: [ZonePredicate['op'], number][]): ZonePredicate[] =>
      bounds.map(([op, i]) => ({ column, op, value: cell(i) as string }));
    const counted = (...bounds: [ZonePredicate['op'], number][]): number => rowsOf(store, range(...bounds)).size;
    expect(counted(['>=', 40_000], ['<', 40_100])).toBe(100);
    expect(counted(['>', 40_000], ['<=', 40_100])).toBe(100);
    expect(counted(['>=', 4090], ['<=', 4100])).toBe(11);
    expect(counted(['=', 40_000])).toBe(1);
    expect(counted(['>=', ROWS - 50])).toBe(50);
    expect(counted(['>=', 40_100], ['<', 40_000])).toBe(0);
  });

  test('few rows that follow each other leave with their own cells, beside columns that are made for them', () => {
    const zones: ZonePredicate[] = [
      { column: '_pk', op: '>=', value: columns['id']!.cell(40_000) as string },
      { column: '_pk', op: '<', value: columns['id']!.cell(40_100) as string },
    ];
    const asked = ['system_from', ...names];
    let rows = 0;
    for (const { columns: vectors, selection, first, count } of store.blocks({
      type: 'T',
      columns: asked,
      time: everything,
      zones,
    })) {
      for (let k = 0; k < count; k++, rows++) {
        const at = selection === null ? first + k : selection[k]!;
        for (const [place, name] of names.entries()) {
          expect(cellAt(vectors[place + 1]!, columns[name]!.type, at), name).toEqual(columns[name]!.cell(40_000 + rows));
        }
      }
    }
    expect(rows).toBe(100);
  });

  test('texts that do not rise are not searched as if they did, in few rows either', () => {
    const few = new Store();
    const { cell } = columns['shuffled']!;
    const keys = Array.from({ length: 1000 }, (_, i) => cell(i) as string);
    const [id, n] = [new VectorBuilder('string'), new VectorBuilder('integer')];
    for (const [i, key] of keys.entries()) {
      id.append(key);
      n.append(BigInt(i));
    }
    few.run({
      kind: 'put-rows',
      type: 'T',
      rows: {
        length: keys.length,
        columns: [
          { name: 'id', type: 'string', vector: id.build() },
          { name: 'n', type: 'integer', vector: n.build() },
        ],
      },
      atomic: false,
      createType: true,
      provenance: { source: 's', method: 'm', confidence: 1, derivedFrom: null },
    });
    const seen = rowsOf(few, [{ column: '_pk', op: '>=', value: 's5' }]);
    for (const [i, key] of keys.entries()) if (key >= 's5') expect(seen.has(i)).toBe(true);
  });

  test('stretches whose texts wander are looked at one by one', () => {
    const { cell } = columns['wandering']!;
    for (let i = 100; i < 65_536; i += 2048) {
      const value = cell(i) as string;
      for (const op of ['=', '<=', '>='] as const) expect(rowsOf(store, [{ column: 'wandering', op, value }]).has(i)).toBe(true);
    }
  });

  test('a segment that grows is summarised further, and rows that are removed leave nothing behind', () => {
    const growing = new Store();
    fill(growing, 0, 10_000);
    const from = (i: number): ZonePredicate[] => [{ column: '_pk', op: '>=', value: columns['id']!.cell(i) as string }];
    expect(rowsOf(growing, from(9000)).size).toBe(1000);
    fill(growing, 10_000, 20_000);
    expect(rowsOf(growing, from(19_000)).size).toBe(1000);
    expect(rowsOf(growing, from(0)).size).toBe(20_000);
    expect(rowsOf(growing, [{ column: 'n', op: '<', value: 1024n }]).size).toBe(2048 + (20_000 % 2048));
    const keys = Array.from({ length: 1024 }, (_, i) => columns['id']!.cell(i) as string);
    growing.run({ kind: 'remove-rows', type: 'T', keys });
    expect(rowsOf(growing, [{ column: 'n', op: '<', value: 1024n }]).size).toBe(20_000 % 2048);
  });

  test('integers that no double holds are compared as far as doubles tell', () => {
    const wide = new Store();
    const rows = Array.from({ length: 4096 }, (_, i) => ({ id: `k${i}`, n: BigInt(i), wide: 2n ** 60n + 255n }));
    wide.put('T', { id: 'string', n: 'integer', wide: 'integer' }, rows);
    expect(rowsOf(wide, [{ column: 'wide', op: '<', value: 2n ** 60n + 256n }]).size).toBe(4096);
    expect(rowsOf(wide, [{ column: 'wide', op: '<', value: 2n ** 60n - 256n }]).size).toBe(0);
  });

  test('a column that becomes text is summarised anew', () => {
    const widened = new Store();
    fill(widened, 0, 10_000);
    expect(rowsOf(widened, [{ column: 'word', op: '=', value: 'word 3' }]).size).toBe(2048 + (10_000 % 2048));
    const json = { type: 'json', required: false, masked: false, indexed: false, subject: false, dims: 0 } as const;
    widened.run({ kind: 'evolve-type', name: 'T', properties: { word: json } });
    expect(rowsOf(widened, [{ column: 'word', op: '>=', value: '"word 9"' }]).size).toBe(1000);
  });
});

test('a value that no row of a sealed segment has is not looked for there, whatever the extremes', () => {
  const store = filtered();
  const rows = (from: number): void => {
    const values = Array.from({ length: 10_000 }, (_, i) => from + i);
    const cells = values.map((i) => ({ id: `k${i}`, n: BigInt(i), shuffled: `value ${(i * 7919) % 70_001}` }));
    store.put('T', { id: 'string', n: 'integer', shuffled: 'string' }, cells);
  };
  for (let from = 0; from < 70_000; from += 10_000) rows(from);
  const tail = 70_000 % 65_536;
  let read = 0;
  for (let i = 0; i < 200; i++) read += rowsOf(store, [{ column: 'shuffled', op: '=', value: `value ${i}x` }]).size;
  // The head is read; of the sealed segment, what a filter lets pass by mistake.
  expect(read / 200).toBeLessThan(tail + 65_536 / 10);
  for (let i = 0; i < 70_000; i += 997) {
    expect(rowsOf(store, [{ column: 'shuffled', op: '=', value: `value ${(i * 7919) % 70_001}` }]).has(i)).toBe(true);
  }
});

test('columns that are filtered by default: object_type where a type has it; of a tenant no filter is needed', () => {
  const store = Store.of('acme');
  const object = (i: number): string => `object ${(i * 7919) % 70_001}`;
  for (let from = 0; from < 140_000; from += 10_000) {
    const cells = Array.from({ length: 10_000 }, (_, i) => ({
      id: `k${from + i}`,
      n: BigInt(from + i),
      object_type: object(from + i),
    }));
    store.put('T', { id: 'string', n: 'integer', object_type: 'string' }, cells, { path: from < 70_000 ? 'acme/eu' : 'acme/us' });
  }
  const { pruned } = store.projections.rows;
  const scanned = (column: string, value: string): Set<number> => rowsOf(store, [{ column, op: '=', value }]);
  const before = { ...pruned };
  for (let i = 0; i < 20; i++) scanned('object_type', `object ${i}x`);
  // Two of three segments are sealed; the one in the middle has rows of two organisations.
  expect(pruned.byBloom - before.byBloom).toBeGreaterThan(15);
  expect(pruned.segments - before.segments).toBeGreaterThanOrEqual(pruned.byBloom - before.byBloom);
  for (let i = 0; i < 140_000; i += 9_973) expect(scanned('object_type', object(i)).has(i)).toBe(true);
  const inEurope = scanned('namespace_path', 'acme/eu');
  expect([inEurope.size, inEurope.has(69_999)]).toEqual([70_000, true]);
  expect(scanned('tenant_id', 'acme').size).toBe(140_000);
  expect(scanned('tenant_id', 'acme/eu').size).toBe(0);
  expect(scanned('namespace_path', 'acme').size).toBe(0);
});

test('rows that ended between two instants are looked for where some of the segment did, also in one that grows', () => {
  const store = new Store();
  fill(store, 0, BATCH);
  const before = store.time - 1n;
  const ended = (after: bigint, until: bigint): number => {
    const zones = [
      { column: 'system_to', op: '>', value: after },
      { column: 'system_to', op: '<=', value: until },
    ] as const;
    return rowsOf(store, zones).size;
  };
  expect(ended(before, store.time)).toBe(0);
  store.run({ kind: 'delete-rows', type: 'T', keys: ['key-00000007'] });
  const then = store.time - 1n;
  expect([ended(before, then) > 0, ended(0n, before), ended(then, then + 9n), ended(before, FOREVER) > 0]).toEqual([
    true,
    0,
    0,
    true,
  ]);
});

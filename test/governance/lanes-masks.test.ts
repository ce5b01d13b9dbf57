/**
 * Masked cells, in every layout in which a column rests and every shape in which a block leaves: NULL to whoever reads the
 * column, and the mask's rendering to whoever reads how it is shown, even after storage has taken its columns back.
 */
import { describe, expect, test } from 'vitest';
import type { Caller } from '../../src/governance/caller.ts';
import type { CellMask } from '../../src/governance/authorization/grant.ts';
import { MaskHash, renderColumn, withoutCells } from '../../src/governance/authorization/mask-renderings.ts';
import type { Vector } from '../../src/log/values/columns.ts';
import { maskKinds } from '../../src/log/entries/entry.ts';
import type { Cell, ColumnType } from '../../src/log/values/value.ts';
import { cellAt, VectorBuilder } from '../../src/log/values/vector-builder.ts';
import { shownColumn } from '../../src/projections/access-paths.ts';
import { FakeDictionary } from '../planner/fake-snapshot.ts';
import { Seeded } from '../simulation/seeded.ts';
import { bothWays, callerOf, hashKey, LaneWorld, rendering } from './lanes-world.ts';

const hash = new MaskHash(hashKey);
const acme: Caller = callerOf('acme');

const cells: Readonly<Record<ColumnType, readonly Cell[]>> = {
  string: [
    '',
    'a',
    'abcd',
    'abcde',
    'é\u{1F600}x\u{1F600}z',
    '2024-02-30',
    '2024-02',
    '2024-13-01',
    '1999-12-31T23:59:59Z',
    null,
    '4111111111111111',
  ],
  integer: [0n, 1n, -1n, 9n, 10n, -10n, -11n, 2_147_483_647n, -2_147_483_648n, 2n ** 53n, -(2n ** 63n), 2n ** 63n - 1n, null],
  number: [0.5, -1, null, 1e300],
  boolean: [true, false, null],
  timestamp: [0n, -1n, 1_704_067_199_999_999_999n, 1_704_067_200_000_000_000n, -(2n ** 63n), 2n ** 63n - 1n, null],
  json: ['{"a":1}', null, '[]'],
  vector: [Float32Array.of(1, 2), null, Float32Array.of(3, 4)],
};

function vectorsOf(type: ColumnType): readonly Vector[] {
  const builder = new VectorBuilder(type);
  for (const cell of cells[type]) builder.append(cell);
  const plain = builder.build();
  if (type === 'integer') {
    const narrow = new VectorBuilder(type);
    for (const cell of cells[type]) narrow.append(cell !== null && BigInt.asIntN(32, cell as bigint) === cell ? cell : null);
    return [plain, narrow.build()];
  }
  if (type !== 'string') return [plain];
  const dictionary = new FakeDictionary();
  const values = Int32Array.from(cells.string, (cell) => (cell === null ? 0 : dictionary.add(String(cell))));
  const nulls = Uint8Array.from(cells.string, (cell) => (cell === null ? 1 : 0));
  return [
    plain,
    { kind: 'dict', values, dictionary, nulls },
    { kind: 'dict', values, dictionary, nulls: null },
    { kind: 'null' },
  ];
}

const shapes: readonly (readonly [string, (length: number) => { selection: Int32Array | null; first: number; count: number }])[] =
  [
    ['all rows', (length) => ({ selection: null, first: 0, count: length })],
    ['rows in a row', (length) => ({ selection: null, first: 1, count: length - 1 })],
    ['chosen rows', (length) => ({ selection: Int32Array.from([0, length - 1, 99]), first: 0, count: 2 })],
    ['one row', (length) => ({ selection: null, first: length - 1, count: 1 })],
    ['no row', () => ({ selection: null, first: 0, count: 0 })],
  ];

describe.each(Object.keys(cells) as ColumnType[])('cells of type %s', (type) => {
  test.each(shapes)('%s', (_, shapeOf) => {
    const length = cells[type].length;
    for (const vector of vectorsOf(type)) {
      for (const kind of maskKinds) {
        for (const masked of [() => true, (k: number) => k % 2 === 0, () => false]) {
          const rows = shapeOf(length);
          const mask: CellMask = { kind, when: null, because: '', ...(kind === 'bucket' ? { size: 10 } : {}) };
          const hidden = withoutCells(
            vector,
            rows,
            Uint8Array.from({ length: rows.count }, (__, k) => (masked(k) ? 1 : 0)),
          );
          const shown = renderColumn({
            vector,
            type,
            rows,
            maskAt: (k) => (masked(k) ? mask : null),
            pathAt: () => 'acme/eu',
            hash,
          });
          for (let k = 0; k < rows.count; k++) {
            const row = rows.selection === null ? rows.first + k : rows.selection[k]!;
            const cell = cellAt(vector, type, row);
            expect(cellAt(hidden, type, row)).toEqual(masked(k) ? null : cell);
            expect(cellAt(shown, type, row)).toEqual(masked(k) ? rendering(mask, cell, type, 'acme/eu') : cell);
          }
        }
      }
    }
  });
});

test('what a text is shown as does not change when storage uses its memory for others', () => {
  const heap = new TextEncoder().encode('secret-1secret-2');
  const vector: Vector = { kind: 'text', offsets: Uint32Array.of(0, 8, 16), heap, nulls: null };
  const mask: CellMask = { kind: 'last4', when: null, because: '' };
  const shown = renderColumn({
    vector,
    type: 'string',
    rows: { selection: null, first: 0, count: 2 },
    maskAt: () => mask,
    pathAt: () => null,
    hash,
  });
  heap.fill(0x41);
  expect([0, 1].map((row) => cellAt(shown, 'string', row))).toEqual(['****et-1', '****et-2']);
});

test('texts are rendered when they are looked at', () => {
  let rendered = 0;
  const counted = { hashOf: (): string => `h:${rendered++}` } as unknown as MaskHash;
  const vector = vectorsOf('string')[0]!;
  const rows = { selection: null, first: 0, count: cells.string.length };
  const mask: CellMask = { kind: 'hash', when: null, because: '' };
  const shown = renderColumn({ vector, type: 'string', rows, maskAt: () => mask, pathAt: () => null, hash: counted });
  expect(rendered).toBe(0);
  cellAt(shown, 'string', 3);
  cellAt(shown, 'string', 3);
  expect(rendered).toBe(1);
});

test('hashes are of a tenant: equal below one, different between two, and under another store’s key', () => {
  expect(hash.hashOf('x', 'acme')).toMatch(/^h:[0-9a-f]{16}$/);
  expect(hash.hashOf('x', 'acme/eu')).toBe(hash.hashOf('x', 'acme'));
  expect(
    new Set([hash.hashOf('x', 'acme'), hash.hashOf('x', 'globex'), hash.hashOf('x', null), hash.hashOf('y', 'acme')]).size,
  ).toBe(4);
  expect(new MaskHash(new Uint8Array(32)).hashOf('x', 'acme')).not.toBe(hash.hashOf('x', 'acme'));
});

const columns = {
  _pk: 'string',
  name: 'string',
  city: 'string',
  n: 'integer',
  big: 'integer',
  flag: 'boolean',
  at: 'timestamp',
  score: 'number',
  doc: 'json',
} as const;
const read = ['_pk', 'name', 'city', 'n', 'big', 'flag', 'at', 'score', 'doc'];

/** Names are many, cities few: the one rests as text, the other as codes. */
function people(segmentRows: number): LaneWorld {
  const world = new LaneWorld({ segmentRows });
  const dice = new Seeded(5);
  for (const path of ['acme', 'acme/eu', 'globex', 'acme']) {
    const rows = Array.from({ length: 60 }, (_, i) => ({
      _pk: `k${dice.below(50)}`,
      name: dice.chance(0.1) ? null : `name ${i} of ${path} ${dice.below(10 ** 6)}`,
      city: dice.chance(0.1) ? null : dice.pick(['rome', 'oslo', '2024-01-01']),
      n: BigInt(dice.below(100) - 50),
      big: 2n ** 60n + BigInt(dice.below(1000)),
      flag: dice.chance(0.5),
      at: 1_700_000_000_000_000_000n + BigInt(dice.below(10 ** 9)) * 10n ** 8n,
      score: dice.below(1000) / 7,
      doc: `{"i":${i}}`,
    }));
    world.store.put('Person', columns, rows, { path });
  }
  world.store.run({ kind: 'fork-branch', name: 'dev', source: 'main', shares: 'everything' });
  world.store.put('Person', columns, [{ _pk: 'k1', name: 'of the branch', city: 'rome', n: 3n }], {
    path: 'acme',
    branch: 'dev',
  });
  return world;
}

const masksOn = (kind: string, condition: string): readonly string[] =>
  ['name', 'city', 'n', 'big', 'flag', 'at', 'score', 'doc'].map(
    (column) =>
      `@mask("${kind}") forbid(principal, action == Action::"readCell", resource == Column::"Person.${column}") ${condition};`,
  );

describe.each([8, 1000])('of a store, %i rows a segment', (segmentRows) => {
  test.each(['redact', 'null', 'hash', 'bucket:10', 'last4', 'year'])(
    '%s, in every row, in some, on a branch, of many layouts',
    (kind) => {
      const world = people(segmentRows);
      for (const condition of [
        '',
        'when { resource.n > 0 }',
        'unless { resource has city && resource.city == "rome" }',
        'when { resource.flag && resource.big > 0 }',
      ]) {
        world.install('permit(principal, action, resource);', ...masksOn(kind, condition));
        for (const request of [
          {},
          { keys: ['k1', 'k7'] },
          { unsiftedRows: 50 },
          { blockRows: 7 },
          { time: { system: 2n ** 62n, valid: 'all' } } as const,
        ]) {
          for (const names of [read, bothWays(...read)]) {
            for (const branch of 'keys' in request ? ['main', 'dev'] : ['dev']) {
              const asked = { columns: names, ...request };
              const order = (rows: readonly object[]): string[] =>
                rows
                  .map((row) => JSON.stringify(row, (__, cell: unknown) => (typeof cell === 'bigint' ? String(cell) : cell)))
                  .sort();
              expect(order(world.read(acme, asked, { branch }).rows)).toEqual(order(world.expected(acme, asked, { branch })));
            }
          }
        }
      }
    },
  );
});

test('a column that its type declares masked is masked without any policy, but for who may unmask', () => {
  const world = new LaneWorld();
  const plain = { required: false, masked: false, indexed: false, subject: false, dims: 0 };
  const properties = { secret: { ...plain, type: 'string', masked: true }, n: { ...plain, type: 'integer' } } as const;
  world.store.run({ kind: 'register-type', name: 'Person', properties, primaryKey: null, graphTriggers: [] });
  world.store.put('Person', { _pk: 'string', secret: 'string', n: 'integer' }, [{ _pk: 'a', secret: 's', n: 1n }], {
    path: 'acme',
  });
  const names = ['secret', shownColumn('secret'), 'n'];
  const rowsOf = (caller: Caller): unknown => world.read(caller, { columns: names }).rows;
  expect(rowsOf(acme)).toEqual([{ secret: null, [names[1]!]: '***', n: 1n }]);
  expect(rowsOf(callerOf('acme', { roles: ['unmask'] }))).toEqual([{ secret: 's', [names[1]!]: 's', n: 1n }]);
  expect([...world.snapshot(acme).masksOf('Person')]).toEqual([['secret', 'redact']]);
  expect(world.snapshot(callerOf('acme', { roles: ['unmask'] })).masksOf('Person').size).toBe(0);
  expect(world.snapshot(acme).grantKey).not.toBe(world.snapshot(callerOf('acme', { roles: ['unmask'] })).grantKey);
  expect(world.snapshot(acme).grantKey).toBe(world.snapshot(callerOf('acme', { principal: 'another' })).grantKey);
});

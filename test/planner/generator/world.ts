/**
 * Random small schemas with a history, the same for a seed: tables that join, columns full of NULLs, edges of integers and
 * of text, keys written, corrected for a span of time and deleted.
 */
import { FOREVER, formatInstant, parseInstant } from '../../../src/log/values/timestamp.ts';
import type { Cell } from '../../../src/log/values/value.ts';
import type { Caller } from '../../../src/governance/caller.ts';
import { analyst, type InputRow, TestStore } from '../../harness.ts';
import { Choices } from './random.ts';
import type { ColumnNode, Facts, LiteralNode } from './tree.ts';

export interface WorldColumn extends Facts {
  readonly name: string;
  /** What its rows hold; null for the columns that the store fills. */
  readonly pool: readonly LiteralNode['value'][] | null;
}

export interface WorldTable {
  readonly name: string;
  readonly columns: readonly WorldColumn[];
  /** Stored versions at most. */
  readonly rows: number;
}

export interface World {
  readonly seed: number;
  readonly tables: readonly WorldTable[];
  readonly batches: readonly WorldBatch[];
  /** Instants around those of the writes. */
  readonly instants: readonly bigint[];
}

type WorldBatch =
  | { readonly kind: 'put'; readonly table: string; readonly rows: readonly InputRow[]; readonly at: bigint }
  | { readonly kind: 'delete'; readonly table: string; readonly keys: readonly string[]; readonly at: bigint };

const unknown = Number.POSITIVE_INFINITY;

export const instantPool = [
  parseInstant('2024-01-01'),
  parseInstant('2024-01-02T03:04:05'),
  parseInstant('2024-01-02T03:04:05.000000001'),
  parseInstant('1969-12-31T23:59:59.999Z'),
] as const;

const kinds: Readonly<Record<string, Facts & { readonly pool: readonly LiteralNode['value'][] }>> = {
  i: {
    type: 'integer',
    size: unknown,
    grain: unknown,
    pool: [0n, 1n, 2n, -1n, 3n, 2147483648n, 9007199254740993n, 9007199254740992n, FOREVER, -FOREVER - 1n],
  },
  j: { type: 'integer', size: 3, grain: 0, pool: [-3n, -2n, -1n, 0n, 1n, 2n, 3n] },
  n: { type: 'integer', size: 9, grain: 0, pool: Array.from({ length: 10 }, (_, i) => BigInt(i)) },
  x: { type: 'number', size: 3, grain: 2, pool: [-1.5, 0, 0.25, 0.5, 1, 2, 3] },
  y: { type: 'number', size: unknown, grain: unknown, pool: [-1e300, -0.1, 0, 1e-7, 0.1, 0.30000000000000004, 1e300] },
  s: { type: 'string', size: unknown, grain: unknown, pool: ['', 'a', 'A', 'ab', 'b%', 'ä', 'z', '\u{1F600}', '\uffee', "o'x"] },
  u: { type: 'string', size: unknown, grain: unknown, pool: ['a', 'b', 'ab', 'abc', 'B', '_', 'k1', 'k2'] },
  b: { type: 'boolean', size: unknown, grain: unknown, pool: [true, false] },
  t: { type: 'timestamp', size: unknown, grain: unknown, pool: instantPool },
};

const minute = 60_000_000_000n;
const start = parseInstant('2024-01-05');

export interface WorldShape {
  readonly tables: readonly [number, number];
  readonly rows: readonly [number, number];
}

export const smallWorld: WorldShape = { tables: [2, 4], rows: [0, 24] };

export function worldOf(seed: number, shape: WorldShape = smallWorld): World {
  const choices = new Choices(0x70_77, seed);
  const count = choices.between(...shape.tables);
  const batches: WorldBatch[] = [];
  let at = start;
  const tables = Array.from({ length: count }, (_, index): WorldTable => {
    const name = `T${index + 1}`;
    const columns = columnsOf(choices);
    const target = choices.between(...shape.rows);
    let versions = 0;
    const keys = Math.max(1, Math.ceil(target * 0.7));
    const live = new Set<string>();
    while (versions < target) {
      at += BigInt(choices.between(1, 200)) * minute;
      if (live.size > 2 && choices.chance(15)) {
        const key = choices.of([...live]);
        live.delete(key);
        batches.push({ kind: 'delete', table: name, keys: [key], at });
        versions++;
        continue;
      }
      const some = choices
        .shuffled(Array.from({ length: keys }, (_, i) => i))
        .slice(0, choices.between(1, Math.min(keys, target)));
      const bounds = boundsOf(choices, at);
      // A correction may split a version in three.
      versions += some.length * (bounds === null ? 1 : 3);
      for (const key of some) live.add(`k${key}`);
      batches.push({ kind: 'put', table: name, rows: some.map((key) => rowOf(choices, columns, key, bounds)), at });
    }
    return { name, columns: [...stored, ...columns], rows: Math.max(1, versions) };
  });
  const instants = [...new Set(batches.flatMap((batch) => [batch.at - 1n, batch.at, batch.at + 1n]))];
  return { seed, tables, batches, instants: instants.length > 0 ? instants : [start] };
}

/** Columns that the store itself fills: no arithmetic, their values are its own business. */
const stored: readonly WorldColumn[] = [
  { name: '_pk', type: 'string', size: unknown, grain: unknown, pool: null },
  { name: 'valid_from', type: 'timestamp', size: unknown, grain: unknown, pool: null },
  { name: 'valid_to', type: 'timestamp', size: unknown, grain: unknown, pool: null },
  { name: 'system_from', type: 'timestamp', size: unknown, grain: unknown, pool: null },
  { name: 'k', type: 'string', size: unknown, grain: unknown, pool: Array.from({ length: 6 }, (_, i) => `k${i}`) },
];

function columnsOf(choices: Choices): WorldColumn[] {
  const names = choices.shuffled(Object.keys(kinds)).slice(0, choices.between(3, 7));
  // Something to reckon with and something to join on.
  for (const needed of ['j', 's']) if (!names.includes(needed)) names.push(needed);
  const columns = names.map((name): WorldColumn => ({ name, ...kinds[name]! }));
  if (choices.chance(30)) columns.push({ name: 'j2', ...kinds['j']! });
  return columns;
}

type Bounds = { readonly valid_from: string; readonly valid_to?: string } | null;

function boundsOf(choices: Choices, at: bigint): Bounds {
  if (!choices.chance(25)) return null;
  const back = BigInt(choices.between(0, 2000)) * minute;
  const length = BigInt(choices.between(0, 1500)) * minute;
  return { valid_from: formatInstant(at - back), ...(length > 0n && { valid_to: formatInstant(at - back + length) }) };
}

function rowOf(choices: Choices, columns: readonly WorldColumn[], key: number, bounds: Bounds): InputRow {
  const row: Record<string, unknown> = { k: `k${key}`, ...bounds };
  for (const { name, type, pool } of columns) {
    if (pool === null || choices.chance(20)) continue;
    const value = choices.of(pool);
    row[name] = type === 'timestamp' ? formatInstant(value as bigint) : value;
  }
  return row;
}

/** Moves the store's clock past the history, so that nothing that comes later falls into it. */
export async function loadWorld(world: World, store: TestStore, caller: Caller = analyst): Promise<void> {
  for (const { name, columns } of world.tables) {
    const declared = columns.filter(({ pool }) => pool !== null);
    await store.register(name, Object.fromEntries(declared.map((column) => [column.name, column.type])), 'k');
  }
  for (const batch of world.batches) {
    store.clock.wallNs = batch.at;
    if (batch.kind === 'put') await store.put(batch.table, batch.rows, caller);
    else await store.delete(batch.table, batch.keys, caller);
  }
  store.clock.wallNs = (world.batches.at(-1)?.at ?? start) + 86_400_000_000_000n;
}

export async function openWorld(world: World): Promise<TestStore> {
  const store = await TestStore.open('2024-01-01');
  await loadWorld(world, store);
  return store;
}

/**
 * A store in which the tenant `acme` wrote the world's history between the writes of others, who used the same keys, and
 * one in which nobody else wrote.
 */
export async function openGovernedPair(world: World): Promise<{ mixed: TestStore; alone: TestStore }> {
  const acme: Caller = { ...analyst, principal: 'acme', path: 'acme' };
  const others: Caller[] = [
    { ...analyst, principal: 'evil', path: 'acme-evil' },
    { ...analyst, principal: 'nobody', path: null },
    { ...analyst, principal: 'ac', path: 'ac' },
  ];
  const alone = await TestStore.open('2024-01-01');
  await loadWorld(world, alone, acme);
  const mixed = await TestStore.open('2024-01-01');
  const choices = new Choices(world.seed, 0x60);
  await loadWorld({ ...world, batches: [] }, mixed, acme);
  const puts = world.batches.flatMap((batch) => (batch.kind === 'put' ? [batch] : []));
  for (const batch of world.batches) {
    mixed.clock.wallNs = batch.at;
    const foreign = puts.filter(({ table }) => table === batch.table);
    if (foreign.length > 0) await mixed.put(batch.table, choices.of(foreign).rows, choices.of(others));
    if (batch.kind === 'put') await mixed.put(batch.table, batch.rows, acme);
    else await mixed.delete(batch.table, batch.keys, acme);
  }
  mixed.clock.wallNs = alone.clock.wallNs;
  return { mixed, alone };
}

export function columnOf(column: WorldColumn, table: string | null): ColumnNode {
  const { name, type, size, grain } = column;
  return { kind: 'column', table, name, type, size, grain };
}

/** Cells as text, alike for both engines: booleans as 0 and 1, one zero, numbers to twelve digits. */
export function shownCell(cell: Cell, type: string): string {
  if (cell === null) return 'NULL';
  switch (type) {
    case 'number':
      return String(Number(Number(cell).toPrecision(12)) + 0);
    case 'boolean':
      return String(Number(cell));
    case 'integer':
    case 'timestamp':
      return String(cell);
    default:
      return typeof cell === 'string' ? JSON.stringify(cell) : String(cell);
  }
}

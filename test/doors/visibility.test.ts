/**
 * Specification, "Cross-door visibility": a row written through any door is readable through every other door, by those
 * who may see it and by nobody else. Every pair of built doors gets every relation of reader to writer; a door that is
 * built without a driver here fails the first test.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { doors } from '../../src/doors/doors.ts';
import { StoreWorld } from './http/store-world.ts';

interface Driver {
  /** Writes one row of `type` with this key as a caller of this organisation path; null: without the header. */
  write(world: StoreWorld, type: string, key: string, path: string | null): Promise<void>;
  /** Keys of `type` that a caller of this path is shown, by each way that the door has of asking. */
  readonly reads: Readonly<
    Record<string, (world: StoreWorld, type: string, key: string, path: string | null) => Promise<string[]>>
  >;
}

const scoped = (path: string | null): Record<string, string> => (path === null ? {} : { 'x-organization-id': path });

const keysOf = async (world: StoreWorld, sql: string, path: string | null): Promise<string[]> =>
  (await world.rows(sql, scoped(path))).map((row) => row['_pk'] as string).sort();

const drivers: Readonly<Record<string, Driver>> = {
  http: {
    async write(world, type, key, path) {
      const reply = await world.call('POST', `/ingest/auto?object_type=${type}`, { id: key, note: `of ${path}` }, scoped(path));
      if (reply.status !== 200 || reply.json['accepted'] !== 1) throw new Error(reply.text);
    },
    reads: {
      scan: (world, type, _key, path) => keysOf(world, `SELECT _pk FROM ${type}`, path),
      'point read': (world, type, key, path) => keysOf(world, `SELECT _pk FROM ${type} WHERE _pk = '${key}'`, path),
      'as of current': (world, type, _key, path) => keysOf(world, `SELECT _pk FROM ${type} AS OF CURRENT`, path),
      'filter on another column': (world, type, _key, path) =>
        keysOf(world, `SELECT _pk FROM ${type} WHERE note LIKE 'of%'`, path),
      group: (world, type, _key, path) => keysOf(world, `SELECT _pk, COUNT(*) AS n FROM ${type} GROUP BY _pk`, path),
      sort: (world, type, _key, path) => keysOf(world, `SELECT _pk FROM ${type} ORDER BY note`, path),
    },
  },
};

/** Who reads what `acme/eu` wrote, and whether it is theirs to see. */
const readers: readonly (readonly [name: string, path: string | null, sees: boolean])[] = [
  ['the same path', 'acme/eu', true],
  ['its parent', 'acme', true],
  ['a path below', 'acme/eu/berlin', false],
  ['a sibling', 'acme/us', false],
  ['a sibling that starts alike', 'acme/eu-west', false],
  ['another tenant that starts alike', 'acme-evil', false],
  ['the same name in other letters', 'Acme/eu', false],
  ['nobody: no header', null, false],
];

const built = doors.filter((door) => door.built).map((door) => door.name);

let world: StoreWorld;
beforeAll(async () => {
  world = await StoreWorld.open();
});
afterAll(() => world.close());

test('every built door is in the matrix', () => {
  expect(Object.keys(drivers)).toEqual(built);
});

describe.each(built)('written through %s', (writer) => {
  const type = `Written_${writer.replaceAll('-', '_')}`;
  beforeAll(async () => {
    await drivers[writer]!.write(world, type, 'k1', 'acme/eu');
  });

  describe.each(built)('read through %s', (door) => {
    for (const [way, read] of Object.entries(drivers[door]!.reads)) {
      test.each(readers)(`by ${way}: %s`, async (_name, path, sees) => {
        expect(await read(world, type, 'k1', path)).toEqual(sees ? ['k1'] : []);
      });
    }
  });
});

test('one key in three organisations is three rows, and a write of one touches no other', async () => {
  const { write } = drivers['http']!;
  for (const path of ['acme/eu', 'acme/us', null]) await write(world, 'Shared', 'same', path);
  const eu = await world.call('DELETE', '/types/Shared/same', undefined, scoped('acme/eu'));
  expect(eu.status).toBe(200);
  const current = 'SELECT _pk FROM Shared AS OF CURRENT';
  expect(await keysOf(world, current, 'acme/eu')).toEqual([]);
  expect(await keysOf(world, current, 'acme/us')).toEqual(['same']);
  expect(await keysOf(world, current, 'acme')).toEqual(['same']);
  expect(await keysOf(world, current, null)).toEqual(['same']);
});

test('counts and hits are of what the caller may see', async () => {
  const { write } = drivers['http']!;
  for (let i = 0; i < 20; i++) await write(world, 'Counted', `hidden${i}`, 'globex');
  await write(world, 'Counted', 'mine', 'acme');
  const reply = await world.query('SELECT COUNT(*) AS n FROM Counted', scoped('acme'));
  expect(reply.json['rows']).toEqual([{ n: 1 }]);
  const all = await world.query('SELECT _pk FROM Counted LIMIT 1', scoped('acme'));
  expect([all.json['estimatedTotalHits'], all.json['cost_units']]).toEqual([1, 1]);
});

test('a hard delete in one organisation leaves the other’s row alone', async () => {
  const { write } = drivers['http']!;
  for (const path of ['acme', 'globex']) await write(world, 'Removed', 'same', path);
  expect((await world.call('DELETE', '/types/Removed/same?hard=true', undefined, scoped('acme'))).status).toBe(200);
  expect(await keysOf(world, 'SELECT _pk FROM Removed', 'acme')).toEqual([]);
  expect(await keysOf(world, 'SELECT _pk FROM Removed', 'globex')).toEqual(['same']);
  expect((await world.call('DELETE', '/types/Removed/same', undefined, scoped('initech'))).status).toBe(404);
});

test('audit entries are of the caller’s own scope', async () => {
  await world.query('SELECT 1 FROM Counted', scoped('acme/eu'));
  const seen = async (path: string | null): Promise<Set<unknown>> => {
    const { json } = await world.call('GET', '/audit/entries?limit=1000', undefined, scoped(path));
    return new Set((json['entries'] as { organization: unknown }[]).map((entry) => entry.organization));
  };
  expect(await seen('acme')).toEqual(new Set(['acme', 'acme/eu', 'acme/us', 'acme/eu-west', 'acme/eu/berlin']));
  expect(await seen('acme-evil')).toEqual(new Set(['acme-evil']));
  expect(await seen(null)).toEqual(new Set([null]));
});

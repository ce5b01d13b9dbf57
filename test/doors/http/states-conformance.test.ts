/**
 * Specification, "States and transitions", over HTTP: row versions that are superseded, branches, storage. What is deleted, held
 * or forgotten is in `forget-conformance.test.ts`, tenants are in `control-plane.test.ts`, licences in `licence.test.ts`.
 */
import { afterEach, describe, expect, test } from 'vitest';
import { MemoryDisk } from '../../../src/log/disk/memory-disk.ts';
import { closeWorlds, codeOf, opened } from './conformance-world.ts';
import type { Reply } from './door-world.ts';
import type { StoreWorld } from './store-world.ts';

afterEach(closeWorlds);

const forever = '9223372036854775807';
const put = (world: StoreWorld, rows: object[], headers = {}): Promise<Reply> =>
  world.call('POST', '/ingest?object_type=Note', rows, headers);
const on = (branch: string): Record<string, string> => ({ 'x-service-branch': branch });

describe('Row version', () => {
  test('live (system_to = max), update: superseded; closed with system_to = now, the new one from now on, history kept', async () => {
    const world = await opened();
    await put(world, [{ id: 'a', text: 'first' }]);
    await put(world, [{ id: 'a', text: 'second' }]);
    const { text } = await world.query('SELECT text, system_from, system_to FROM Note');
    const rows = [...text.matchAll(/\{"text":"(\w+)","system_from":(\d+),"system_to":(\d+)\}/g)].map(([, ...cells]) => cells);
    expect(rows.map(([content]) => content)).toEqual(['first', 'second']);
    const [first, second] = rows as [string[], string[]];
    expect(first[2]).toBe(second[1]);
    expect(second[2]).toBe(forever);
    expect(await world.rows('SELECT text FROM Note AS OF CURRENT')).toEqual([{ text: 'second' }]);
    const believed = await world.query(`SELECT text FROM Note WHERE system_from <= ${first[1]} AND system_to > ${first[1]}`);
    expect(believed.json['rows']).toEqual([{ text: 'first' }]);
  });
});

describe('Branch', () => {
  const forks: [string, (world: StoreWorld, name: string) => Promise<Reply>][] = [
    ['BRANCH <name> FROM <source>', (world, name) => world.query(`BRANCH '${name}' FROM main`)],
    [
      'POST /v1/namespaces/<name>/branch',
      (world, name) => world.call('POST', `/v1/namespaces/${name}/branch`, { branch_from: 'main' }),
    ],
  ];

  test.each(forks)('absent, %s: exists, with all rows, and writes on either are isolated', async (_, fork) => {
    const world = await opened();
    await put(world, [{ id: 'a' }]);
    expect((await fork(world, 'dev')).status).toBeLessThan(300);
    expect(codeOf(await fork(world, 'dev'))).toEqual([409, 'REL_CONFLICT']);
    expect((await fork(world, 'x'.repeat(128))).status).toBeLessThan(300);
    expect((await fork(world, 'x'.repeat(129))).status).toBe(400);
    await put(world, [{ id: 'on main' }]);
    await put(world, [{ id: 'on dev' }], on('dev'));
    expect(await world.rows('SELECT id FROM Note')).toEqual([{ id: 'a' }, { id: 'on main' }]);
    expect(await world.rows('SELECT id FROM Note', on('dev'))).toEqual([{ id: 'a' }, { id: 'on dev' }]);
  });

  test.each(forks)('absent, %s: one commit, however many rows there are', async (_, fork) => {
    const world = await opened();
    const cost = async (): Promise<number> => {
      const { bytes } = world.service.store.log.status();
      expect((await fork(world, `b${bytes}`)).status).toBeLessThan(300);
      return world.service.store.log.status().bytes - bytes;
    };
    const empty = await cost();
    await put(
      world,
      Array.from({ length: 2_000 }, (_each, i) => ({ id: `n${i}`, text: 'x'.repeat(100) })),
    );
    expect(await cost()).toBeLessThan(2 * empty);
  });

  test('exists, DELETE /schema/branches/<name>: absent, tables freed; main stays', async () => {
    const world = await opened();
    await world.query('BRANCH dev FROM main');
    const { rows } = world.service.store.projections;
    const before = rows.bytes;
    await put(world, [{ id: 'on dev' }], on('dev'));
    expect(rows.bytes).toBeGreaterThan(before);
    expect((await world.call('DELETE', '/schema/branches/dev')).status).toBe(200);
    expect(rows.bytes).toBeLessThanOrEqual(before);
    expect(codeOf(await world.query('SELECT id FROM Note', on('dev')))).toEqual([404, 'REL_NOT_FOUND']);
    expect((await world.query('BRANCH dev FROM main')).status).toBe(200);
    expect(await world.rows('SELECT id FROM Note', on('dev'))).toEqual([]);
    expect((await world.call('DELETE', '/schema/branches/main')).status).toBe(400);
  });
});

describe('Storage', () => {
  async function filledTo(bytes: number): Promise<{ reply: Reply; said: string[]; world: StoreWorld }> {
    const said: string[] = [];
    const world = await opened({}, { disk: new MemoryDisk(), say: (line) => void said.push(line) });
    const { log } = world.service.store;
    const status = log.status.bind(log);
    log.status = () => ({ ...status(), bytes });
    const reply = await put(world, [{ id: 'a' }]);
    return { reply, said: said.filter((line) => line.startsWith('storage')), world };
  }

  test('below 90% of cap, ingest: accepted, and nothing is said', async () => {
    const { reply, said } = await filledTo(8_999_999_999);
    expect([reply.status, said]).toEqual([200, []]);
  });

  test('90% up to 100%, ingest: accepted with a soft warning logged', async () => {
    for (const [bytes, percent] of [
      [9_000_000_000, 90],
      [9_999_999_999, 99],
    ] as const) {
      const { reply, said } = await filledTo(bytes);
      expect([reply.status, said]).toEqual([200, [`storage is at ${percent} % of its cap of 10000000000 bytes`]]);
    }
  });

  test('at or above 100%, ingest: rejected with 402; reading and removing stay open', async () => {
    for (const bytes of [10_000_000_000, 20_000_000_000]) {
      const { reply, world } = await filledTo(bytes);
      expect(codeOf(reply)).toEqual([402, 'REL_STORAGE_CAP']);
      expect(await world.rows('SELECT id FROM Note')).toEqual([]);
      expect((await world.call('DELETE', '/types/Note/a?hard=true')).status).toBe(404);
    }
  });
});

/** Each tool of the domain against its function: the same rows, cell by cell, for somebody who sees all and for one who does not. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { StoreWorld } from '../http/store-world.ts';

/** Whatever a reply holds. */
type Json = ReturnType<typeof JSON.parse>;

let world: StoreWorld;

beforeAll(async () => {
  world = await StoreWorld.open();
  const types: Readonly<Record<string, object>> = {
    Party: { name: 'string', kind: 'string', birth_date: 'string', country: 'string', phone: 'string' },
    Ownership: { owner: 'string', owned: 'string', pct: 'number' },
    Listing: { name: 'string', aliases: 'json', program: 'string', list: 'string' },
    Transfer: { from: 'string', to: 'string', amount: 'number', currency: 'string', at: 'timestamp' },
    Sighting: { subject: 'string', lat: 'number', lon: 'number', at: 'timestamp' },
    Incident: { kind: 'string', lat: 'number', lon: 'number', severity: 'number', status: 'string' },
  };
  for (const [name, properties] of Object.entries(types)) {
    await world.call('POST', '/types', { name, properties: { id: 'string', ...properties }, primary_key: 'id' });
  }
  const day = (n: number): string => `2024-03-0${n}T00:00:00Z`;
  const rows: Readonly<Record<string, readonly object[]>> = {
    Party: [
      { id: 'p1', name: 'Robert Tomb', birth_date: '1970-01-31', phone: '+44 20 7946 0018' },
      { id: 'p2', name: 'Bob Tomb', birth_date: '1970-01-31', phone: '+442079460018' },
      { id: 'c1', name: 'Harbour Shipping Ltd', kind: 'company' },
      { id: 'c2', name: 'Pier Holding SA', kind: 'company' },
    ],
    Ownership: [
      { id: 'o1', owner: 'p1', owned: 'c2', pct: 50 },
      { id: 'o2', owner: 'c2', owned: 'c1', pct: 50 },
    ],
    Listing: [{ id: 'l1', name: 'TOMB, Robert', aliases: ['Bobby Tomb'], program: 'P', list: 'one' }],
    Transfer: [
      { id: 't1', from: 'w1', to: 'w2', amount: 100, currency: 'EUR', at: day(1) },
      { id: 't2', from: 'w2', to: 'w3', amount: 60, currency: 'EUR', at: day(2) },
      { id: 't3', from: 'w2', to: 'w4', amount: 40, currency: 'EUR', at: day(3) },
      { id: 't4', from: 'w5', to: 'w6', amount: 58, currency: 'EUR', at: day(3) },
    ],
    Sighting: [
      { id: 's1', subject: 'AB12CDE', lat: 51.5, lon: -0.1, at: day(1) },
      { id: 's2', subject: 'AB12CDE', lat: 51.501, lon: -0.1, at: day(2) },
    ],
    Incident: [{ id: 'i1', kind: 'theft', lat: 51.5, lon: -0.101, severity: 0.5, status: 'open' }],
  };
  for (const [type, all] of Object.entries(rows)) await world.call('POST', `/ingest?object_type=${type}`, [...all]);
});
afterAll(() => world.close());

async function answerOf(name: string, given: object): Promise<Json> {
  const { status, json } = await world.call('POST', '/mcp/tools/call', { name, arguments: { purpose: 'test', ...given } });
  const { isError, content } = json as Json;
  expect([name, status, isError]).toEqual([name, 200, false]);
  return content[1].json as Json;
}

const calls: readonly (readonly [tool: string, given: object, call: string])[] = [
  ['lookup_identity', { raw: '0044 20 79460018' }, "LOOKUP_IDENTITY('0044 20 79460018')"],
  ['resolve_entity_identity', { identity: 'p1' }, "RESOLVE_IDENTITY('p1')"],
  ['resolve_entity_identity', { identity: '+442079460018' }, "RESOLVE_IDENTITY('+442079460018')"],
  ['trace_crypto', { address: 'w1', max_hops: 2 }, "CRYPTO_TRACE('w1', MAX_HOPS => 2)"],
  ['beneficial_ownership', { party: 'c1', max_depth: 3 }, "BENEFICIAL_OWNERSHIP_CHAIN('c1', MAX_DEPTH => 3)"],
  ['reconstruct_wire', { account: 'w2', tolerance_pct: 1 }, "WIRE_RECONSTRUCTION('w2', TOLERANCE_PCT => 1)"],
  ['trace_hawala', { seed: 'w1', max_hops: 3 }, "HAWALA_TRACE('w1', MAX_HOPS => 3)"],
  ['geofence', { lat: 51.5, lon: -0.1, radius_m: 200 }, 'GEOFENCE(51.5, -0.1, 200)'],
  ['screen_sanctions', { name: 'Bob Tomb', threshold: 0.5 }, "SANCTIONS_SCREEN('Bob Tomb', THRESHOLD => 0.5)"],
  ['find_connections', { entity_id: 'p1', max_hops: 2 }, "NETWORK_EXPAND('p1', MAX_HOPS => 2)"],
];

describe('a tool gives the rows of its function', () => {
  test.each(calls)('%s %o', async (tool, given, call) => {
    const { rows, columns, row_count: count } = await answerOf(tool, given);
    const asked = await answerOf('query', { sql: `SELECT * FROM ${call}` });
    expect([rows, columns]).toEqual([asked['rows'], asked['columns']]);
    expect(count).toBe(rows.length);
    // An empty answer would equal another one.
    expect(rows.length > 0).toBe(tool !== 'find_connections');
  });

  test('so many rows as are asked for, the first ones', async () => {
    const all = (await answerOf('query', { sql: "SELECT * FROM CRYPTO_TRACE('w1')" }))['rows'];
    expect((await answerOf('trace_crypto', { address: 'w1', limit: 2 }))['rows']).toEqual(all.slice(0, 2));
  });

  test('a bad argument is refused as the function refuses it', async () => {
    for (const [name, given] of [
      ['trace_crypto', { address: 'w1', max_hops: 11 }],
      ['screen_sanctions', { name: 'x', threshold: 2 }],
      ['geofence', { lat: 91, lon: 0, radius_m: 1 }],
    ] as const) {
      const { json } = await world.call('POST', '/mcp/tools/call', { name, arguments: { purpose: 'test', ...given } });
      expect([name, JSON.stringify(json).includes('REL_INVALID')]).toEqual([name, true]);
    }
  });
});

test('an investigation has what its parts have, at one instant', async () => {
  const made = await answerOf('investigate_entity', { entity_id: 'p1' });
  const cluster = (await answerOf('resolve_entity_identity', { identity: 'p1' }))['rows'];
  const inCluster = JSON.stringify(made);
  for (const { nodeId } of cluster) expect(inCluster).toContain(JSON.stringify(nodeId));
  expect(inCluster).toContain('TOMB, Robert');
});

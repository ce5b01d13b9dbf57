/** Specification, "States and transitions": the rows on DELETE, hard delete, forget, retention, legal hold and erasure, over HTTP. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ErasureChores } from '../../../src/governance/erasure/erasure-chores.ts';
import type { Clock } from '../../../src/clock.ts';
import { systemClock } from '../../../src/clock.ts';
import { formatInstant } from '../../../src/log/values/timestamp.ts';
import type { Reply } from './door-world.ts';
import { StoreWorld } from './store-world.ts';

const day = 86_400_000_000_000n;

let world: StoreWorld;
let ahead = 0n;
const clock: Clock = {
  now: () => systemClock.now() + ahead,
  monotonicMs: () => systemClock.monotonicMs(),
  sleep: (ms, signal) => systemClock.sleep(ms, signal),
};

beforeEach(async () => {
  ahead = 0n;
  world = await StoreWorld.open({}, { clock });
  const rows = [
    { id: 'm1', content: 'likes tea', confidence: 0.5 },
    { id: 'm2', content: 'likes milk' },
  ];
  expect((await world.call('POST', '/ingest?object_type=MemoryItem', rows)).status).toBe(200);
});
afterEach(() => world.close());

const forget = (id: string, query = ''): Promise<Reply> => world.call('DELETE', `/memory/forget/${id}?purpose=test${query}`);

const said = ({ status, json }: Reply): unknown => {
  const { isError, content } = json as { isError: boolean; content: { type: string; text: string }[] };
  return [status, isError, JSON.parse(content[0]!.text)];
};

const contents = async (): Promise<unknown[]> => {
  const { json } = await world.call('POST', '/query', { sql: 'SELECT content FROM MemoryItem' });
  return (json['rows'] as { content: string }[]).map(({ content }) => content);
};

/** As the clock does once a minute. */
const round = (): Promise<void> => {
  const { gate, ids } = world.service;
  const { erasures: desk } = world.service.upkeep;
  const { projections } = world.service.store;
  return new ErasureChores({ gate, desk, retention: projections.retention, clock, ids }).round();
};

describe('MemoryItem, live, forget', () => {
  test('retain_days given: scheduled for retention, queryable until the window ends, then removed', async () => {
    expect(said(await forget('m1', '&retain_days=30'))).toEqual([200, false, { scheduled: true, policy: 'retain_days=30' }]);
    await round();
    expect(await contents()).toEqual(['likes tea', 'likes milk']);
    ahead = 29n * day;
    await round();
    expect(await contents()).toEqual(['likes tea', 'likes milk']);
    ahead = 31n * day;
    await round();
    expect(await contents()).toEqual(['likes milk']);
    expect((await forget('m1', '&retain_days=30')).status).toBe(404);
  });

  test('retain_days = -1: legal hold, which neither a hard delete nor an earlier schedule gets past', async () => {
    await forget('m1', '&retain_days=1');
    expect(said(await forget('m1', '&retain_days=-1'))).toEqual([200, false, { scheduled: false, policy: 'legal_hold' }]);
    const refused = await world.call('DELETE', '/types/MemoryItem/m1?hard=true');
    expect([refused.status, refused.json['type']]).toEqual([409, expect.stringContaining('REL_CONFLICT')]);
    expect(refused.json['detail']).toMatch(/legal hold/);
    expect((await forget('m1')).status).toBe(409);
    ahead = 10n * day;
    await round();
    expect(await contents()).toEqual(['likes tea', 'likes milk']);
    // A hold ends when a time is given instead.
    expect(said(await forget('m1', '&retain_days=0'))).toEqual([200, false, { scheduled: true, policy: 'retain_days=0' }]);
    await round();
    expect(await contents()).toEqual(['likes milk']);
  });

  test('in the body of the request too', async () => {
    const reply = await world.call('DELETE', '/memory/forget/m1', { retain_days: 7, purpose: 'test' });
    expect(said(reply)).toEqual([200, false, { scheduled: true, policy: 'retain_days=7' }]);
  });

  test('what it takes: a purpose, a row, a whole number of days', async () => {
    expect((await world.call('DELETE', '/memory/forget/m1?retain_days=7')).status).toBe(400);
    expect((await forget('m9', '&retain_days=7')).status).toBe(404);
    for (const days of ['-2', '1.5', 'x'])
      expect([days, (await forget('m1', `&retain_days=${days}`)).status]).toEqual([days, 400]);
  });
});

describe('Row, any, hard delete', () => {
  test('DELETE /types/<name>/<id>?hard=true: removed, not a soft delete', async () => {
    expect((await world.call('DELETE', '/types/MemoryItem/m2?hard=true')).status).toBe(200);
    expect(await contents()).toEqual(['likes tea']);
  });

  test('forget as a GDPR-style operation: removed', async () => {
    expect(said(await forget('m2'))).toEqual([200, false, { scheduled: false, policy: 'removed' }]);
    expect(await contents()).toEqual(['likes tea']);
  });
});

describe("ERASE SUBJECT '<subject>' REASON '<reason>' CERTIFY", () => {
  const erase = (rest: string): Promise<Reply> => world.call('POST', '/query', { sql: `ERASE SUBJECT ${rest}` });
  const names = async (more = ''): Promise<unknown[]> => {
    const { json } = await world.call('POST', '/query', { sql: `SELECT name FROM Person ${more}` });
    return (json['rows'] as { name: string }[]).map(({ name }) => name);
  };

  beforeEach(async () => {
    const text = { type: 'string' };
    const properties = { id: text, who: { ...text, subject: true }, name: text };
    expect((await world.call('POST', '/types', { name: 'Person', properties, primary_key: 'id' })).status).toBe(201);
    for (const name of ['Alice', 'Alice Married']) {
      const rows = [
        { id: 'p1', who: 'alice', name },
        { id: 'p2', who: 'bob', name: 'Bob' },
      ];
      expect((await world.call('POST', '/ingest?object_type=Person', rows)).status).toBe(200);
    }
  });

  test('reason required: without one, or with an empty one, nothing is erased', async () => {
    for (const rest of ["'alice'", "'alice' CERTIFY", "'alice' REASON '' CERTIFY", "'alice' REASON ' '", "'' REASON 'r'"]) {
      expect([rest, (await erase(rest)).status]).toEqual([rest, 400]);
    }
    expect(await names()).toHaveLength(4);
  });

  test('irreversible: every version is gone, at every instant, on every branch, and no rows come back with the next write', async () => {
    const { text } = await world.call('POST', '/query', { sql: 'SELECT name FROM Person' });
    const before = formatInstant(BigInt(/"as_of_system":(\d+)/.exec(text)![1]!));
    expect(await names(`AS OF SYSTEM TIME '${before}'`)).toContain('Alice Married');
    expect((await world.call('POST', '/query', { sql: 'BRANCH dev FROM main' })).status).toBe(200);
    const reply = await erase("'alice' REASON 'asked to' CERTIFY");
    expect([reply.status, reply.json['rows']]).toEqual([200, [expect.objectContaining({ versions: 2, certified: true })]]);
    for (const more of ['', `AS OF SYSTEM TIME '${before}'`, 'AS OF CURRENT']) {
      expect([more, (await names(more)).filter((name) => name !== 'Bob')]).toEqual([more, []]);
    }
    const { json } = await world.call('POST', '/query', { sql: 'SELECT name FROM Person' }, { 'x-service-branch': 'dev' });
    expect(json['rows']).toEqual([{ name: 'Bob' }, { name: 'Bob' }]);
    await world.call('POST', '/ingest?object_type=Person', [{ id: 'p1', who: 'carol', name: 'Carol' }]);
    expect(await names()).toEqual(['Bob', 'Bob', 'Carol']);
  });

  test('shreds the per-subject key: none that opened a row of the subject is left', async () => {
    const { subjects } = world.service.store.keyring;
    const [key] = subjects.idsOf(null, 'alice');
    await erase("'alice' REASON 'asked to' CERTIFY");
    expect(subjects.idsOf(null, 'alice')).toEqual([]);
    expect(subjects.opening(key!)).toBeNull();
    expect(subjects.idsOf(null, 'bob')).toHaveLength(1);
  });

  test('returns a signed receipt, and the same one when it is asked for again', async () => {
    const rowOf = ({ json }: Reply): Record<string, unknown> => (json['rows'] as Record<string, unknown>[])[0]!;
    const first = rowOf(await erase("'alice' REASON 'asked to' CERTIFY"));
    expect(first['receipt']).toMatchObject({
      payloadType: 'application/vnd.annals.erasure-receipt+json',
      signatures: [{ sig: expect.any(String) as string }],
    });
    expect(JSON.stringify(first)).not.toContain('alice');
    expect(rowOf(await erase("'alice' REASON 'another' CERTIFY"))).toEqual({ ...first, salt: null });
  });
});

describe('Row version, live, DELETE', () => {
  test('soft-deleted: valid_to set to now; the row stays in the store', async () => {
    expect((await world.call('DELETE', '/types/MemoryItem/m2')).status).toBe(200);
    expect(await contents()).toContain('likes milk');
    const { json } = await world.call('POST', '/query', { sql: 'SELECT content FROM MemoryItem AS OF CURRENT' });
    expect(json['rows']).toEqual([{ content: 'likes tea' }]);
  });
});

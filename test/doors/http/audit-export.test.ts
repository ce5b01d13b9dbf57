/** POST /api/v1/audit/export: what is in it, for whom, in which form, and that it is on record itself. */
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ServiceError } from '../../../src/errors.ts';
import type { AuditEntry } from '../../../src/projections/access-paths.ts';
import { DoorWorld, goodToken, type Reply } from './door-world.ts';
import { StoreWorld } from './store-world.ts';

type Entry = Record<string, unknown>;

const lines = (reply: Reply): Entry[] =>
  reply.text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Entry);

const route = '/api/v1/audit/export';

describe('over a store', () => {
  let world: StoreWorld;
  const headers: Record<string, Record<string, string>> = {};
  beforeAll(async () => {
    world = await StoreWorld.open();
    await world.call('POST', '/types', { name: 'Note', properties: { id: 'string', text: 'string' } });
    await world.call('POST', '/types', { name: 'Memo', properties: { id: 'string' } });
    headers['acme'] = await world.tokenFor({ tenant_id: 'acme', principal: 'ada' });
    headers['globex'] = await world.tokenFor({ tenant_id: 'globex', principal: 'guy' });
    for (const tenant of ['acme', 'globex']) {
      await world.query(`SELECT id FROM Note WHERE text = 'CANARY of ${tenant}'`, headers[tenant]);
      await world.query('SELECT id FROM Memo', { ...headers[tenant], 'x-service-purpose': 'test' });
    }
    await world.query('SELECT id FROM Memo', { ...headers['acme'], 'x-organization-id': 'acme/eu' });
    await world.query('SELECT id FROM Absent', headers['acme']);
  });
  afterAll(() => world.close());

  const exported = (body: object | undefined, who: Record<string, string> = {}): Promise<Reply> =>
    world.call('POST', route, body, who);

  test('NDJSON has the entries of /audit/entries, with their members, in the order of the log', async () => {
    const reply = await exported(undefined);
    expect(reply.status).toBe(200);
    expect(reply.headers).toMatchObject({
      'content-type': 'application/x-ndjson; charset=utf-8',
      'content-disposition': 'attachment; filename="audit.ndjson"',
      'cache-control': 'no-store',
    });
    const entries = lines(reply);
    expect(reply.headers['x-service-row-count']).toBe(String(entries.length));
    expect(entries.length).toBeGreaterThan(3);
    const page = (await world.call('GET', `/audit/entries?limit=${entries.length}`)).json['entries'];
    expect(entries).toEqual(page);
  });

  test('CSV has the same in columns: texts in quotes, NULL as nothing', async () => {
    const until = String((await exportedEntries({})).at(-1)!['time']);
    const reply = await exported({ format: 'csv', until });
    expect(reply.headers['content-type']).toBe('text/csv; charset=utf-8; header=present');
    const [header, ...rows] = reply.text.split('\r\n').slice(0, -1);
    const names = header!.split(',').map((name) => JSON.parse(name) as string);
    const entries = await exportedEntries({ until });
    expect(names).toEqual(Object.keys(entries[0]!));
    expect(rows.length).toBe(entries.length);
    rows.forEach((row, i) => {
      const cells = [...row.matchAll(/("(?:[^"]|"")*"|[^,]*)(?:,|$)/g)].slice(0, names.length).map((match) => match[1]!);
      const read = cells.map((cell) =>
        cell === '' ? null : cell.startsWith('"') ? cell.slice(1, -1).replaceAll('""', '"') : Number(cell),
      );
      expect(read).toEqual(names.map((name) => entries[i]![name]));
    });
  });

  async function exportedEntries(body: object, who: Record<string, string> = {}): Promise<Entry[]> {
    const reply = await exported(body, who);
    expect(reply.status, reply.text).toBe(200);
    return lines(reply);
  }

  test.each<[string, object, (entry: Entry) => boolean]>([
    ['object_type', { object_type: 'Memo' }, (entry) => entry['object_type'] === 'Memo'],
    ['principal', { principal: 'ada' }, (entry) => entry['principal'] === 'ada'],
    ['purpose', { purpose: 'test' }, (entry) => entry['purpose'] === 'test'],
    ['action', { action: 'query' }, (entry) => entry['action'] === 'query'],
    ['kind', { kind: 'query' }, (entry) => entry['action'] === 'query'],
    [
      'two',
      { principal: 'ada', object_type: 'Memo' },
      (entry) => entry['principal'] === 'ada' && entry['object_type'] === 'Memo',
    ],
    ['what nobody did', { action: 'remove' }, () => false],
  ])('is filtered by %s', async (_, filter, matches) => {
    const everything = lines(await world.admin('POST', '/admin/audit/export', { action: 'query' }));
    const last = String(everything.at(-1)!['time']);
    const found = lines(await world.admin('POST', '/admin/audit/export', { ...filter, until: last }));
    const all = lines(await world.admin('POST', '/admin/audit/export', { until: last }));
    expect(found).toEqual(all.filter(matches));
    if (!('action' in filter && filter.action === 'remove')) expect(found.length).toBeGreaterThan(0);
  });

  test('since is inclusive, until is not, and both take either spelling of an instant', async () => {
    const all = await exportedEntries({});
    const [from, to] = [all[1]!['time'] as number, all[3]!['time'] as number];
    const texts = (await exported({})).text.match(/"time":\d+/g)!.map((text) => text.slice(7));
    const between = await exportedEntries({ since: texts[1], until: texts[3] });
    expect(between.map((entry) => entry['time'])).toEqual([from, all[2]!['time']]);
    expect(to).toBeGreaterThan(from);
    expect(await exportedEntries({ since: '2200-01-01T00:00:00Z' })).toEqual([]);
    expect((await exportedEntries({ until: '2200-01-01' })).length).toBeGreaterThan(all.length);
  });

  test('a tenant’s has what was done under its paths, the platform’s has everybody’s', async () => {
    const organizations = (entries: Entry[]) => [...new Set(entries.map((entry) => String(entry['organization'])))].sort();
    expect(organizations(await exportedEntries({}, headers['acme']))).toEqual(['acme', 'acme/eu']);
    expect(organizations(await exportedEntries({}, { ...headers['acme'], 'x-organization-id': 'acme/eu' }))).toEqual(['acme/eu']);
    expect(organizations(await exportedEntries({}, headers['globex']))).toEqual(['globex']);
    expect(organizations(await exportedEntries({}))).toEqual(['null']);
    const platform = lines(await world.admin('POST', '/admin/audit/export', {}));
    expect(organizations(platform)).toEqual(['acme', 'acme/eu', 'globex', 'null']);
    expect((await world.call('POST', route, {}, { authorization: 'Bearer admin-secret-for-tests' })).status).toBe(401);
  });

  test('the admin listener counts and pages everybody’s too', async () => {
    const before = (await world.admin('GET', '/admin/audit/count?principal=guy')).json['count'];
    expect(before).toBeGreaterThan(1);
    expect((await world.call('GET', '/audit/count?principal=guy')).json['count']).toBe(0);
    const page = await world.admin('GET', '/admin/audit/entries?principal=guy&limit=1');
    expect((page.json['entries'] as Entry[])[0]).toMatchObject({ principal: 'guy', organization: 'globex' });
  });

  test('an export is on record with how many it gave and what was filtered by, not with the values; and not in itself', async () => {
    const before = await exportedEntries({ principal: 'ada', format: 'ndjson' });
    const [record] = (await exportedEntries({ action: 'audit' })).slice(-1);
    expect(record).toMatchObject({
      action: 'audit',
      decision: 'allow',
      row_count: before.length,
      cost_units: 1,
      template: 'AUDIT EXPORT ndjson principal=?',
      query_digest: expect.stringMatching(/^[0-9a-f]{64}$/) as unknown,
    });
    const once = await exportedEntries({ action: 'audit' });
    const twice = await exportedEntries({ action: 'audit' });
    expect(twice.length).toBe(once.length + 1);
  });

  test('statements are in it as templates: no literal of anybody’s, and equal ones have equal digests', async () => {
    await world.query("SELECT id FROM Note WHERE text = 'CANARY of acme'");
    const { text } = await world.admin('POST', '/admin/audit/export', {});
    expect(text).not.toContain('CANARY');
    const digests = lines(await world.admin('POST', '/admin/audit/export', { action: 'query', object_type: 'Note' })).map(
      (entry) => [entry['template'], entry['query_digest']],
    );
    expect(digests.map(([template]) => template)).toEqual(Array(3).fill('SELECT id FROM Note WHERE text = ?s'));
    expect(digests[0]).toEqual(digests[2]);
    expect(digests[0]).not.toEqual(digests[1]);
  });

  test.each<[string, unknown]>([
    ['another format', { format: 'xml' }],
    ['a field that is none', { sinc: '2024-01-01' }],
    ['an instant that is none', { since: 'yesterday' }],
    ['a list', []],
    ['no JSON', '{'],
  ])('%s is refused and on record', async (_, body) => {
    const count = async () => Number((await world.admin('GET', '/admin/audit/count?action=audit')).json['count']);
    const before = await count();
    const reply = await world.call('POST', route, body);
    expect([reply.status, reply.json['type']]).toEqual([400, 'urn:annals:errors/REL_INVALID']);
    // The refused one, and the count before it.
    expect(await count()).toBe(before + 2);
  });
});

describe('while it streams', () => {
  const entry: AuditEntry = {
    time: 1n,
    correlationId: 'c',
    principal: '=1+1',
    tenant: null,
    path: null,
    door: 'http',
    action: 'query',
    purpose: null,
    objectType: 'say "hi", twice',
    decision: 'allow',
    code: null,
    template: 'x'.repeat(2_000),
    literalDigest: null,
    basis: 0n,
    rowCount: 0,
    costUnits: 1,
    durationMs: 1,
    leaf: 0,
    indexInEntry: 0,
  };

  /** A reply that is read when the test says so. */
  function opened(world: DoorWorld, body = '{}'): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const sent = httpRequest(
        {
          port: world.door.port,
          host: '127.0.0.1',
          method: 'POST',
          path: route,
          headers: { authorization: `Bearer ${goodToken}`, 'content-length': body.length },
        },
        (response) => resolve(response.pause()),
      );
      sent.on('error', reject);
      sent.end(body);
    });
  }

  /** What arrives, and whether it arrived whole. */
  async function rest(response: IncomingMessage): Promise<{ text: string; whole: boolean }> {
    const chunks: Buffer[] = [];
    response.on('data', (chunk: Buffer) => chunks.push(chunk));
    response.on('error', () => undefined).resume();
    await new Promise((resolve) => response.once('close', resolve));
    return { text: Buffer.concat(chunks).toString(), whole: response.complete };
  }

  test('no more is read of the log than the client takes', async () => {
    const world = await new DoorWorld().open();
    let read = 0;
    world.trail = async function* () {
      for (; read < 200_000; read++) yield entry;
    };
    const response = await opened(world);
    const settled = async (): Promise<number> => {
      for (let before = -1; before !== read; ) {
        before = read;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      return read;
    };
    expect(await settled()).toBeLessThan(100_000);
    response.destroy();
    const left = await settled();
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(read).toBe(left);
    await world.close();
  });

  test('a credential that ends ends it, and nobody takes a part for the whole', async () => {
    let revoked = false;
    const world = await new DoorWorld().open();
    world.authenticator = {
      ...world.authenticator,
      renew: (caller) => {
        if (revoked) throw new ServiceError('REL_UNAUTHENTICATED', 'missing or invalid credential');
        return caller;
      },
    };
    world.trail = async function* () {
      for (let i = 0; i < 100_000; i++) yield entry;
    };
    const response = await opened(world);
    revoked = true;
    const { text, whole } = await rest(response);
    expect(whole).toBe(false);
    expect(text.length).toBeLessThan(100_000 * 1_000);
    await world.close();
  });

  test('a log that can’t be read on ends the connection', async () => {
    const world = await new DoorWorld().open();
    world.trail = async function* () {
      for (let i = 0; i < 1_000; i++) yield entry;
      throw new ServiceError('REL_STORAGE', 'a frame is damaged');
    };
    const { text, whole } = await rest(await opened(world));
    expect([whole, text.split('\n').length > 256]).toEqual([false, true]);
    expect(world.lines.map(({ event }) => event)).toEqual(['answer cut off']);
    await world.close();
  });

  test('a text that a spreadsheet would run, or that has quotes, stays a text', async () => {
    const world = await new DoorWorld().open();
    world.trail = async function* () {
      yield entry;
    };
    const { text, whole } = await rest(await opened(world, '{"format":"csv"}'));
    expect(whole).toBe(true);
    const [, row] = text.split('\r\n');
    expect(row).toContain(',"=1+1",,,"http",,"say ""hi"", twice","allow",,');
    await world.close();
  });
});

/** What becomes of a tenant's requests and open streams when it is suspended or deleted, its token revoked, its agreement ended. */
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { tenantlessCaller } from '../../../src/governance/caller.ts';
import type { Command, Outcome } from '../../../src/projections/command.ts';
import { termsOf } from '../../projections/histories.ts';
import type { Reply } from './door-world.ts';
import { EventStream } from './event-stream.ts';
import { StoreWorld } from './store-world.ts';

type Headers = Record<string, string>;

let world: StoreWorld;
/** Of a token that is bound to acme. */
let bound: Headers;
beforeAll(async () => {
  world = await StoreWorld.open();
  await administer({ kind: 'create-tenant', id: 'acme', name: '', tier: 't', quota: {}, search: {}, members: [], tenantsMax: 0 });
  await world.call('POST', '/types', { name: 'Fact', properties: { n: 'integer' } });
});
afterAll(() => world.close());
beforeEach(async () => {
  bound = await world.tokenFor({ principal: 'ann', tenant_id: 'acme' });
  expect((await world.query('SELECT COUNT(*) FROM Fact', bound)).status).toBe(200);
});

const admin = tenantlessCaller('root', 'admin', 'test');

function administer(command: Command): Promise<Outcome> {
  return world.service.gate.invoke(admin, { action: 'administer', purpose: null, correlationId: 'c' }, (invocation) =>
    invocation.submit(command),
  );
}

async function suspended<T>(run: () => Promise<T>): Promise<T> {
  await administer({ kind: 'suspend-tenant', id: 'acme' });
  try {
    return await run();
  } finally {
    await administer({ kind: 'reactivate-tenant', id: 'acme' });
  }
}

const codeOf = ({ status, json }: Reply): unknown => [status, String(json['type']).split('/').at(-1)];

describe('a suspended tenant', () => {
  const refused = [402, 'REL_TENANT_SUSPENDED'];

  test('is asked to pay on every data route, and is as it was once it is reactivated', async () => {
    const unbound = { 'x-organization-id': 'acme/eu' };
    await suspended(async () => {
      for (const who of [bound, unbound]) {
        expect(codeOf(await world.query('SELECT * FROM Fact', who))).toEqual(refused);
        expect(codeOf(await world.call('POST', '/query/arrow', { sql: 'SELECT * FROM Fact' }, who))).toEqual(refused);
        expect(codeOf(await world.call('POST', '/query/stream', { sql: 'SELECT * FROM Fact' }, who))).toEqual(refused);
        expect(codeOf(await world.call('GET', '/export?sql=SELECT%20n%20FROM%20Fact', undefined, who))).toEqual(refused);
        expect(codeOf(await world.call('POST', '/ingest?object_type=Fact', { n: 1 }, who))).toEqual(refused);
        expect(codeOf(await world.call('POST', '/ingest?object_type=Fact&async=true', { n: 1 }, who))).toEqual(refused);
        expect(codeOf(await world.call('POST', '/types', { name: 'Other' }, who))).toEqual(refused);
        expect(codeOf(await world.call('GET', '/types', undefined, who))).toEqual(refused);
        expect(codeOf(await world.call('GET', '/audit/entries', undefined, who))).toEqual(refused);
        expect(codeOf(await world.call('DELETE', '/types/Fact/x', undefined, who))).toEqual(refused);
        expect(codeOf(await world.call('POST', '/v1/namespaces/b/branch', { branch_from: 'main' }, who))).toEqual(refused);
      }
      expect((await world.query('SELECT * FROM Fact', { 'x-organization-id': 'acme-2' })).status).toBe(200);
      expect((await world.query('SELECT * FROM Fact')).status).toBe(200);
    });
    expect((await world.query('SELECT * FROM Fact', bound)).status).toBe(200);
  });

  test('sees its own tokens and what they did, and changes none', async () => {
    await suspended(async () => {
      expect((await world.call('GET', '/tokens/self', undefined, bound)).status).toBe(200);
      expect((await world.call('GET', '/tokens/self/audit', undefined, bound)).status).toBe(200);
      expect(codeOf(await world.call('POST', '/tokens/self/rotate', {}, bound))).toEqual(refused);
      expect((await world.admin('GET', '/admin/tokens')).status).toBe(200);
    });
  });
});

test('a deleted tenant is gone for tokens that name it, and those of its own are revoked', async () => {
  await administer({ kind: 'delete-tenant', id: 'acme', manner: 'purge' });
  try {
    expect(codeOf(await world.query('SELECT * FROM Fact', bound))).toEqual([401, 'REL_UNAUTHENTICATED']);
    const reply = await world.query('SELECT * FROM Fact', { 'x-organization-id': 'acme/eu' });
    expect([codeOf(reply), reply.json['detail']]).toEqual([[403, 'REL_ACL'], 'the tenant is deleted']);
    expect(codeOf(await world.call('POST', '/ingest?object_type=Fact', { n: 1 }, { 'x-organization-id': 'acme' }))).toEqual([
      403,
      'REL_ACL',
    ]);
  } finally {
    await administer({ kind: 'purge-tenant', id: 'acme', cursor: null, keysMax: 100 });
    await administer({
      kind: 'create-tenant',
      id: 'acme',
      name: '',
      tier: 't',
      quota: {},
      search: {},
      members: [],
      tenantsMax: 0,
    });
  }
});

describe('another organisation’s rows', () => {
  test('are REL_XORG without an agreement in force, and are read, never written, under one', async () => {
    const who: Headers = { ...bound, 'x-organization-id': 'globex' };
    expect((await world.call('POST', '/ingest?object_type=Fact', { n: 7 }, { 'x-organization-id': 'globex' })).status).toBe(200);
    const asked = (): Promise<Reply> => world.query('SELECT n FROM Fact', who);
    expect(codeOf(await asked())).toEqual([403, 'REL_XORG']);
    const terms = termsOf('globex', 'acme', { types: ['Fact'], permission: ['read'], validFrom: 0n, validTo: 2n ** 62n });
    await administer({ kind: 'propose-agreement', id: 'shared', terms });
    await administer({ kind: 'move-agreement', id: 'shared', to: 'accepted', side: 'assignee' });
    expect(codeOf(await asked())).toEqual([403, 'REL_XORG']);
    await administer({ kind: 'move-agreement', id: 'shared', to: 'active', side: 'assigner' });
    expect((await asked()).json['rows']).toEqual([{ n: 7 }]);
    expect(codeOf(await world.call('POST', '/ingest?object_type=Fact', { n: 8 }, who))).toEqual([403, 'REL_XORG']);
    expect(codeOf(await world.call('GET', '/audit/entries', undefined, who))).toEqual([403, 'REL_XORG']);
    expect(codeOf(await world.query('SELECT n FROM Fact', { ...who, 'x-organization-id': 'globex-evil' }))).toEqual([
      403,
      'REL_XORG',
    ]);
    await administer({ kind: 'move-agreement', id: 'shared', to: 'revoked', side: 'assigner' });
    expect(codeOf(await asked())).toEqual([403, 'REL_XORG']);
  });
});

describe('an open stream ends', () => {
  /** Returns how a stream was ended. */
  async function endedBy(end: () => Promise<unknown>, over: () => Promise<string>): Promise<string> {
    await new Promise((resolve) => setTimeout(resolve, 100));
    await end();
    return over();
  }

  const endings: readonly (readonly [string, () => Promise<unknown>, RegExp])[] = [
    ['its tenant is suspended', () => administer({ kind: 'suspend-tenant', id: 'acme' }), /REL_TENANT_SUSPENDED/],
    ['its token is revoked', () => revoked(), /REL_UNAUTHENTICATED/],
  ];

  async function revoked(): Promise<void> {
    const { json } = await world.call('GET', '/tokens/self', undefined, bound);
    for (const { id } of json['tokens'] as { id: string }[]) await world.admin('DELETE', `/admin/tokens/${id}`);
  }

  describe.each(endings)('once %s', (_, end, expected) => {
    const again = (): Promise<unknown> => administer({ kind: 'reactivate-tenant', id: 'acme' });

    test('of a standing query', async () => {
      const query = new URLSearchParams({ sql: 'SELECT n FROM Fact', purpose: 'test' }).toString();
      const open = await new EventStream(world.door.port, `/watch/stream?${query}`, bound).opened();
      await open.until((events) => events.length > 0);
      try {
        const ended = await endedBy(end, async () => {
          await open.until((events) => events.some(({ event }) => event === 'error'));
          return open.events.at(-1)!.data;
        });
        expect(ended).toMatch(expected);
      } finally {
        await again();
      }
    });

    test('of rows that come in, whether or not more of them come', async () => {
      const reply = new Promise<IncomingMessage>((resolve, reject) => {
        const request = httpRequest(
          {
            port: world.door.port,
            method: 'POST',
            path: '/ingest?object_type=Fact',
            headers: { ...bound, 'content-type': 'application/x-ndjson' },
          },
          resolve,
        );
        request.on('error', reject);
        request.write('{"n":1}\n{"n":2}\n');
      });
      try {
        const ended = await endedBy(end, async () => {
          const response = await reply;
          let text = '';
          for await (const chunk of response) text += String(chunk);
          return text;
        });
        expect(ended).toMatch(expected);
      } finally {
        await again();
      }
    });
  });
});

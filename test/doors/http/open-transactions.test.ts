/** Who sees which open transactions, and what is said of them. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { analyst } from '../../harness.ts';
import { StoreWorld } from './store-world.ts';

let world: StoreWorld;
beforeAll(async () => {
  world = await StoreWorld.open();
});
afterAll(() => world.close());

interface Shown {
  readonly principal: string;
  readonly rows: number;
  readonly pinned_bytes: number;
}

async function shownTo(token: object | null): Promise<readonly Shown[]> {
  const headers = token === null ? {} : await world.tokenFor(token);
  const { json } = await (token === null ? world.admin('GET', '/admin/tx') : world.call('GET', '/tx', undefined, headers));
  return json['transactions'] as readonly Shown[];
}

test('a caller sees its own, an administrator those of the tenant, who runs the store all; ended ones are gone', async () => {
  const { gate } = world.service;
  const of = (principal: string, tenant: string) => ({ ...analyst, principal, tenant, path: tenant });
  const acme = gate.begin(of('ann', 'acme'));
  const other = gate.begin(of('eve', 'rival'));
  const named = (shown: readonly Shown[]): string[] => shown.map(({ principal }) => principal);
  expect(named(await shownTo({ principal: 'bob', tenant_id: 'acme' }))).toEqual([]);
  expect(named(await shownTo({ principal: 'ann', tenant_id: 'acme' }))).toEqual(['ann']);
  expect(named(await shownTo({ principal: 'boss', tenant_id: 'acme', roles: ['tenant-admin'] }))).toEqual(['ann']);
  expect(named(await shownTo(null))).toEqual(['ann', 'eve']);
  const metric = async (): Promise<string | undefined> =>
    /^service_transactions_open (\d+)$/m.exec((await world.call('GET', '/metrics')).text)?.[1];
  expect(await metric()).toBe('2');
  acme.end();
  other.end();
  expect(await shownTo(null)).toEqual([]);
  expect(await metric()).toBe('0');
});

test('what waits for a commit is counted, and gone with its end', async () => {
  const transaction = world.service.gate.begin(analyst);
  await world.call('POST', '/types', { name: 'Counted', properties: { n: 'integer' } });
  const asked = { action: 'query', purpose: 'test', correlationId: 'c', transaction } as const;
  await world.service.gate.invoke(analyst, asked, (invocation) =>
    world.service.planner.execute(invocation, { sql: 'INSERT INTO Counted (n) VALUES (1), (2)' }),
  );
  const [shown] = await shownTo(null);
  expect(shown).toMatchObject({ principal: 'analyst', rows: 2 });
  expect(shown!.pinned_bytes).toBeGreaterThan(0);
  transaction.end();
});

/** A policy text is rehearsed: what would appear, vanish and be masked for whom, and which recorded reads it touches; nothing is installed. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Reply } from './door-world.ts';
import { codeOf, TenantWorld } from './tenant-world.ts';

let world: TenantWorld;
beforeAll(async () => {
  world = await TenantWorld.open();
  await world.store.call('POST', '/types', {
    name: 'Note',
    primary_key: 'id',
    properties: { id: 'string', region: 'string', amount: 'integer' },
  });
  await world.put(world.clerk, 'Note', [
    { id: 'a', region: 'EU', amount: 1 },
    { id: 'b', region: 'US', amount: 2 },
  ]);
  expect(await world.keys(world.clerk, 'Note')).toEqual(['a', 'b']);
});
afterAll(() => world.close());

const eu = 'permit(principal, action == Action::"read", resource is Note) when { resource.region == "EU" };';
const masked = `permit(principal, action, resource);
  @mask("redact") forbid(principal, action == Action::"readCell", resource == Column::"Note.amount");`;
const all = 'SELECT * FROM Note AS OF CURRENT';

const rehearse = (body: object, id = 'p'): Promise<Reply> =>
  world.store.admin('POST', `/admin/policies/${id}/rehearsal`, { reason: 'a test', ...body });

interface Rehearsal {
  readonly principals: readonly string[];
  readonly touched: readonly Record<string, unknown>[];
  readonly differences: readonly Record<string, unknown>[];
}
const rehearsed = async (body: object, id?: string): Promise<Rehearsal> => {
  const reply = await rehearse(body, id);
  expect(reply.status, reply.text).toBe(200);
  return reply.json as unknown as Rehearsal;
};
/** The principal that asks. */
const ofClerk = <T extends Record<string, unknown>>(list: readonly T[]): T | undefined =>
  list.find(({ principal }) => principal === 'cleo');

test('rows that would vanish are named by their key, for the principals whose reads are on record', async () => {
  const { principals, differences, touched } = await rehearsed({
    policy: eu,
    statements: [all, 'SELECT COUNT(*) AS n FROM Note AS OF CURRENT'],
  });
  expect(principals).toContain('cleo');
  const own = differences.filter(({ principal }) => principal === 'cleo');
  expect(own[0]).toMatchObject({ before: 2, after: 1, appear: [], counts: { appear: 0, vanish: 1, changed: 0 }, cut: false });
  expect(own[0]!['vanish']).toEqual([expect.stringMatching(/\bid b\b/)]);
  expect(own[1]).toMatchObject({ vanish: ['n 2'], appear: ['n 1'] });
  expect(ofClerk(touched)).toMatchObject({ object_type: 'Note', before: 'allow', after: expect.stringContaining('by row') });
});

test('cells that would be masked are told by their column, and nothing was installed', async () => {
  const { differences, touched } = await rehearsed({ policy: masked, statements: [all] });
  const own = ofClerk(differences)!;
  expect(own).toMatchObject({ before: 2, after: 2, counts: { appear: 0, vanish: 0, changed: 2 } });
  expect((own['changed'] as { columns: string[] }[]).map(({ columns }) => columns)).toEqual([['amount'], ['amount']]);
  expect(ofClerk(touched)).toMatchObject({ object_type: 'Note' });
  expect(await world.admin('GET', '/admin/policies')).toEqual({ policies: [], digest: '', epoch: 0 });
  expect((await world.store.call('POST', '/query', { sql: all }, world.clerk)).json['rows']).toMatchObject([
    { amount: 1 },
    { amount: 2 },
  ]);
});

test('a policy that is installed is rehearsed as deleted: its rows would come back', async () => {
  await world.admin('PUT', '/admin/policies/eu', { policy: eu }, 201);
  const { differences } = await rehearsed({ policy: null, statements: [all] }, 'eu');
  expect(ofClerk(differences)).toMatchObject({ before: 1, after: 2, counts: { appear: 1, vanish: 0, changed: 0 } });
  const forbidden = await rehearsed({ policy: 'forbid(principal, action, resource);', statements: [all] });
  expect(ofClerk(forbidden.differences)).toMatchObject({ before: 1, after: expect.stringContaining('REL_ACL') });
  expect(codeOf(await rehearse({ policy: null }, 'nobody'))).toEqual([404, 'REL_NOT_FOUND']);
  await world.admin('DELETE', '/admin/policies/eu');
});

test('a rehearsal writes nothing, needs a reason, and is recorded: the administrator with it, each principal with its reads', async () => {
  const write = await rehearsed({ policy: eu, statements: ["INSERT INTO Note (id) VALUES ('c')"] });
  expect(ofClerk(write.differences)).toMatchObject({
    before: expect.stringContaining('REL_'),
    after: expect.stringContaining('REL_'),
  });
  expect(await world.keys(world.clerk, 'Note')).toEqual(['a', 'b']);
  expect(codeOf(await rehearse({ policy: eu, reason: '' }))).toEqual([400, 'REL_INVALID']);
  expect(codeOf(await rehearse({ policy: 'permit(' }))).toEqual([400, 'REL_INVALID']);
  expect(codeOf(await world.store.call('POST', '/admin/policies/p/rehearsal', { policy: eu, reason: 'x' }, world.clerk))[0]).toBe(
    404,
  );
  const { entries } = (await world.admin('GET', '/admin/audit/entries?limit=1000')) as { entries: Record<string, unknown>[] };
  const own = entries.findLast(({ template }) => template === 'rehearse p')!;
  expect(own).toMatchObject({ action: 'administer', break_glass: 'a test' });
  const reads = entries.filter(({ correlation_id: id, principal }) => id === own['correlation_id'] && principal === 'cleo');
  // The principal asked nothing: its records say that these were trials.
  expect(reads.length).toBeGreaterThan(0);
  expect([...new Set(reads.map(({ template }) => template))]).toEqual(['rehearsal ? ?']);
  const before = (await rehearsed({ policy: eu, statements: [all] })).touched;
  expect((await rehearsed({ policy: eu, statements: [all] })).touched).toEqual(before);
});

/** Specification, "Endpoints": POST /admin/rotate-dek, while the store is written and read, and when its disk fails. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { FaultyDisk, type Step } from '../../simulation/faulty-disk.ts';
import { send } from './door-world.ts';
import { StoreWorld } from './store-world.ts';

const settings = { SERVICE_IN_MEMORY: '', SERVICE_DATA_DIR: '/data' };

let failing: (step: Step) => boolean = () => false;
const disk = new FaultyDisk({
  beforeStep: (step) => (failing(step) ? { kind: 'error', code: 'ENOSPC', bytes: 0 } : undefined),
});
let world: StoreWorld;

beforeAll(async () => {
  world = await StoreWorld.open(settings, { disk });
  await world.call('POST', '/ingest/auto?object_type=Note', [{ id: 'n0', text: 'before' }]);
});
afterAll(() => world.close());

const rotate = (body: unknown = {}): ReturnType<StoreWorld['admin']> => world.admin('POST', '/admin/rotate-dek', body);

async function notes(): Promise<number> {
  const { json } = await world.call('POST', '/query', { sql: 'SELECT COUNT(*) AS n FROM Note' });
  return (json['rows'] as { n: number }[])[0]!.n;
}

test('puts a new key into use and says which, and who asked is on record', async () => {
  const { status, json } = await rotate();
  expect([status, json]).toEqual([
    200,
    { active_key: 2, previous_key: 1, keys: 2, rotated_at: expect.stringMatching(/^\d{4}-.*Z$/) as string },
  ]);
  expect(world.service.store.keyring.activeDataKey).toBe(2);
  const { json: audit } = await world.admin('GET', '/admin/audit/entries?action=administer');
  expect(audit['entries']).toContainEqual(
    expect.objectContaining({ action: 'administer', principal: 'admin', decision: 'allow', template: 'rotate data key ?' }),
  );
});

test('takes no body as well as an empty one, and nothing else', async () => {
  expect((await world.admin('POST', '/admin/rotate-dek')).json).toMatchObject({ active_key: 3, previous_key: 2, keys: 3 });
  const { status, json } = await rotate({ key: 'mine' });
  expect([status, json['type']]).toEqual([400, 'urn:annals:errors/REL_INVALID']);
});

test('under load loses nothing, and a restart reads what was sealed under every key', async () => {
  const count = await notes();
  const writes = Array.from({ length: 40 }, (_, i) =>
    world.call('POST', '/ingest?object_type=Note', [{ id: `w${i}`, text: 'beside' }]),
  );
  const rotations = [rotate(), rotate(), rotate()];
  const statuses = (await Promise.all([...writes, ...rotations])).map(({ status }) => status);
  expect(new Set(statuses)).toEqual(new Set([200]));
  expect(await notes()).toBe(count + 40);
  await world.close();
  world = await StoreWorld.open(settings, { disk });
  expect(world.service.store.keyring.activeDataKey).toBe(6);
  expect(await notes()).toBe(count + 40);
});

test('that can not be stored leaves the key that was in use, and the store goes on', async () => {
  for (const kind of ['create', 'write', 'sync', 'rename', 'syncDirectory'] as const) {
    failing = (step) => step.kind === kind && step.path.startsWith('/data/keys');
    const { status, json } = await rotate();
    failing = () => false;
    expect([kind, status, json['type']]).toEqual([kind, 500, 'urn:annals:errors/REL_STORAGE']);
    expect(world.service.store.keyring.activeDataKey).toBe(6);
    expect((await world.call('POST', '/ingest?object_type=Note', [{ id: kind, text: 'after' }])).status).toBe(200);
  }
  expect((await rotate()).json).toMatchObject({ active_key: 12, previous_key: 6, keys: 7 });
});

test('wants the admin credential, and is not on the data listener', async () => {
  const active = world.service.store.keyring.activeDataKey;
  const asked = await send(world.door.adminPort, 'POST', '/admin/rotate-dek', {}, { authorization: `Bearer ${world.token}` });
  expect(asked.status).toBe(401);
  expect((await world.call('POST', '/admin/rotate-dek', {})).status).toBe(404);
  expect(world.service.store.keyring.activeDataKey).toBe(active);
});

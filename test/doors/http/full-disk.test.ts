/** A disk that fills under a running server: everybody is told why, nothing that was acknowledged is lost, and no restart is needed. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { FaultyDisk } from '../../simulation/faulty-disk.ts';
import { send } from './door-world.ts';
import { StoreWorld } from './store-world.ts';

let full = false;
const disk = new FaultyDisk({
  beforeStep: ({ kind }) =>
    full && (kind === 'write' || kind === 'create') ? { kind: 'error', code: 'ENOSPC', bytes: 9 } : undefined,
});
disk.freeBytes = () => Promise.resolve(5 << 20);
/** Lets the log try again. */
let retry = (): void => undefined;
const clock = {
  ...systemClock,
  sleep: (ms: number, signal?: AbortSignal): Promise<void> =>
    ms === 500 ? new Promise((resolve) => (retry = resolve)) : systemClock.sleep(ms, signal),
};
const said: string[] = [];
let world: StoreWorld;

beforeAll(async () => {
  const settings = { SERVICE_IN_MEMORY: '', SERVICE_DATA_DIR: '/data' };
  world = await StoreWorld.open(settings, { disk, clock, say: (line) => said.push(line) });
});
afterAll(() => world.close());

const why = 'the disk is full (ENOSPC) at /data/log, 5 MiB free';

test('replies, readiness and the operator’s messages name it; with room the store goes on, and a retry is written once', async () => {
  const put = (id: string): ReturnType<StoreWorld['call']> =>
    world.call('POST', '/ingest/auto?object_type=Thing', { id }, { 'idempotency-key': id });
  expect((await put('before')).status).toBe(200);
  full = true;
  const open = await put('open');
  expect([open.status, open.json['detail']]).toEqual([
    503,
    `${why}: what was sent may be written once there is room: send it again with the same Idempotency-Key, and it is written once`,
  ]);
  const refused = `${why}: nothing was written; the store takes writes again by itself once there is room`;
  expect((await put('refused')).json['detail']).toBe(refused);
  const leaves = world.service.store.log.status().leaves;
  for (const reply of [await world.query('SELECT id FROM Thing'), await world.call('GET', '/status')])
    expect([reply.status, reply.json['detail']]).toEqual([
      503,
      `the invocation could not be recorded, so its answer is withheld: ${refused}`,
    ]);
  const ready = await send(world.door.port, 'GET', '/health/ready');
  expect([ready.status, ready.json['detail']]).toEqual([503, `${why}: the store goes on by itself once there is room`]);
  expect((await send(world.door.port, 'GET', '/health')).status).toBe(200);
  // Nothing is kept of what is refused.
  expect(world.service.store.log.status().leaves).toBe(leaves);

  full = false;
  retry();
  await expect.poll(() => world.service.state()).toBe('ready');
  const again = await put('open');
  expect([again.status, again.json['accepted']]).toEqual([200, 1]);
  expect((await put('refused')).status).toBe(200);
  expect(await world.rows('SELECT id FROM Thing ORDER BY id')).toEqual(['before', 'open', 'refused'].map((id) => ({ id })));
  expect((await send(world.door.port, 'GET', '/health/ready')).status).toBe(200);
  expect(said).toEqual(
    expect.arrayContaining([
      `${why}: nothing is written until there is room, and then the store goes on by itself`,
      'the disk at /data/log has room again: the store takes writes',
    ]),
  );
});

/** Specification, "Other HTTP routes": long work in one list, seen by whoever asked for it and who looks after it. Over the whole stack. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock, systemRandom } from '../../../src/clock.ts';
import { restoreStore } from '../../../src/upkeep/store-restores.ts';
import { ColumnMemory } from '../../../src/log/values/column-memory.ts';
import { FaultyDisk } from '../../simulation/faulty-disk.ts';
import type { Reply } from './door-world.ts';
import { StoreWorld } from './store-world.ts';

/** What is held waits until it is let go, and says when it got there. */
class Held {
  #there: () => void = () => undefined;
  #release: () => void = () => undefined;
  #holds: Promise<void> | null = null;

  /** Resolves once something waits. */
  hold(): Promise<void> {
    this.#holds = new Promise((resolve) => (this.#release = resolve));
    return new Promise((resolve) => (this.#there = resolve));
  }

  async wait(): Promise<void> {
    if (this.#holds === null) return;
    this.#there();
    await this.#holds;
  }

  letGo(): void {
    this.#holds = null;
    this.#release();
  }
}

const restoring = new Held();
const writing = new Held();

let world: StoreWorld;
let disk: FaultyDisk;
beforeEach(async () => {
  // Segment files that are packed again wait.
  disk = new FaultyDisk({
    turn: async ({ path }) => {
      if (path.includes('/segment-')) await writing.wait();
    },
  });
  world = await StoreWorld.open(
    { SERVICE_IN_MEMORY: '', SERVICE_DATA_DIR: '/data', SERVICE_BACKUP_DIR: '/backups' },
    {
      disk,
      derived: { machineBytes: 1 << 30, segmentRows: 8, memory: new ColumnMemory({ memoryBytes: 1 << 20 }) },
      restoreBeside: (request, signal, onProgress) =>
        restoreStore({
          ...request,
          disk,
          clock: systemClock,
          random: systemRandom,
          say: () => undefined,
          yieldTurn: async () => {
            await restoring.wait();
            signal.throwIfAborted();
          },
          ...(onProgress && { onProgress }),
        }),
    },
  );
});
afterEach(async () => {
  restoring.letGo();
  writing.letGo();
  await world.close();
});

const codeOf = ({ status, json }: Reply): [number, unknown] => [status, (json['type'] as string | undefined)?.split('/').at(-1)];
const jobs = async (): Promise<Record<string, unknown>[]> =>
  (await world.admin('GET', '/admin/jobs')).json['jobs'] as Record<string, unknown>[];
const rows = (from: number, to: number): object[] =>
  Array.from({ length: to - from }, (_, i) => ({ id: `r${from + i}`, n: from + i }));

async function restoreInProgress(): Promise<{ id: string; reply: Promise<Reply> }> {
  await world.call('POST', '/ingest/auto?object_type=Note', rows(0, 40));
  const { backup } = (await world.admin('POST', '/admin/backup', {})).json;
  const there = restoring.hold();
  const reply = world.admin('POST', '/admin/restore', { backup, target_dir: '/restored' });
  await there;
  const [job] = await jobs();
  expect(job).toMatchObject({
    kind: 'restore',
    about: backup,
    state: 'running',
    unit: 'bytes',
    organization: null,
    finished_at: null,
  });
  return { id: job!['id'] as string, reply };
}

describe('a restore', () => {
  test('is shown while it runs and when it has ended, with its reply as it was', async () => {
    const { id, reply } = await restoreInProgress();
    expect((await world.admin('GET', `/admin/jobs/${id}`)).json).toMatchObject({ id, state: 'running' });
    restoring.letGo();
    expect((await reply).json).toMatchObject({ root_match: true, target_dir: '/restored' });
    const ended = (await world.admin('GET', `/admin/jobs/${id}`)).json;
    expect(ended).toMatchObject({ state: 'done', error: null });
    expect(ended['done']).toBe(ended['total']);
    expect((await jobs()).map(({ kind, state }) => [kind, state])).toEqual([
      ['restore', 'done'],
      ['backup', 'done'],
    ]);
    expect(codeOf(await world.admin('DELETE', `/admin/jobs/${id}`))).toEqual([409, 'REL_CONFLICT']);
  });

  test('is cancelled, and leaves nothing', async () => {
    const { id, reply } = await restoreInProgress();
    const cancelled = await world.admin('DELETE', `/admin/jobs/${id}`);
    expect([cancelled.status, cancelled.json['id']]).toEqual([202, id]);
    restoring.letGo();
    expect(codeOf(await reply)).toEqual([408, 'REL_CANCELLED']);
    expect((await world.admin('GET', `/admin/jobs/${id}`)).json).toMatchObject({ state: 'cancelled', error: 'REL_CANCELLED' });
    expect((await disk.list('/restored').catch(() => [])) as unknown[]).toEqual([]);
    // The next one is not in its way.
    const [{ about: backup }] = (await jobs()) as [{ about: string }];
    expect((await world.admin('POST', '/admin/restore', { backup, target_dir: '/again' })).status).toBe(200);
  });

  test('ends with a drain', async () => {
    const { reply } = await restoreInProgress();
    const stopped = world.service.close();
    restoring.letGo();
    expect(codeOf(await reply)).toEqual([503, 'REL_UNAVAILABLE']);
    expect(await stopped).toBe(true);
  });
});

test('a compaction is shown while it runs, segment by segment', { timeout: 30_000 }, async () => {
  await world.call('POST', '/ingest/auto?object_type=Fact', rows(0, 64));
  await world.call('POST', '/ingest/auto?object_type=Fact', rows(0, 64));
  await world.service.store.columns!.whenIdle();
  const there = writing.hold();
  const reply = world.admin('POST', '/admin/compact', {});
  await there;
  const [job] = await jobs();
  expect(job).toMatchObject({ kind: 'compaction', state: 'running', unit: 'segments' });
  expect(job!['total']).toBeGreaterThan(4);
  writing.letGo();
  const { segments } = (await reply).json;
  expect(segments).toBe(job!['total']);
  expect((await world.admin('GET', `/admin/jobs/${job!['id'] as string}`)).json).toMatchObject({
    state: 'done',
    done: segments,
    total: segments,
  });
});

test('a compaction is cancelled: what was packed by then stays, and the next one does the rest', {
  timeout: 30_000,
}, async () => {
  await world.call('POST', '/ingest/auto?object_type=Fact', rows(0, 64));
  await world.call('POST', '/ingest/auto?object_type=Fact', rows(0, 64));
  await world.service.store.columns!.whenIdle();
  const answer = async () =>
    (await world.call('POST', '/query', { sql: 'SELECT id, n, system_from, system_to FROM Fact' })).json['rows'];
  const before = await answer();
  const there = writing.hold();
  const reply = world.admin('POST', '/admin/compact', {});
  await there;
  const [job] = await jobs();
  const id = job!['id'] as string;
  expect((await world.admin('DELETE', `/admin/jobs/${id}`)).status).toBe(202);
  writing.letGo();
  expect(codeOf(await reply)).toEqual([408, 'REL_CANCELLED']);
  const ended = (await world.admin('GET', `/admin/jobs/${id}`)).json;
  expect(ended).toMatchObject({ state: 'cancelled', error: 'REL_CANCELLED' });
  // Those that were being packed are finished; no other is begun.
  expect(ended['done']).toBeLessThan(ended['total'] as number);
  expect(await answer()).toEqual(before);
  const { segments } = (await world.admin('POST', '/admin/compact', {})).json;
  expect(segments).toBe((ended['total'] as number) - (ended['done'] as number));
  expect(await answer()).toEqual(before);
});

test('a compaction ends with a drain', { timeout: 30_000 }, async () => {
  await world.call('POST', '/ingest/auto?object_type=Fact', rows(0, 64));
  await world.call('POST', '/ingest/auto?object_type=Fact', rows(0, 64));
  await world.service.store.columns!.whenIdle();
  const there = writing.hold();
  const reply = world.admin('POST', '/admin/compact', {});
  await there;
  const stopped = world.service.close();
  writing.letGo();
  expect(codeOf(await reply)).toEqual([503, 'REL_UNAVAILABLE']);
  expect(await stopped).toBe(true);
});

test('indexes of texts are made anew as a job, segment by segment', async () => {
  const said = (i: number) => ({
    id: `r${i}`,
    text: `${['alpha', 'beta', 'gamma', 'delta', 'epsilon'][i % 5]!} of many`,
    more: 'more',
  });
  await world.call(
    'POST',
    '/ingest/auto?object_type=Saying',
    Array.from({ length: 40 }, (_, i) => said(i)),
  );
  const found = async () =>
    (
      await world.call('POST', '/query', {
        sql: "SELECT id, _score FROM Saying WHERE MATCH(text, 'delta') ORDER BY _score DESC, id",
      })
    ).json['rows'];
  const before = await found();
  expect(before).toHaveLength(8);
  const reindex = async (body: object) => (await world.admin('POST', '/admin/reindex', body)).json;
  const searched = await reindex({});
  const all = await reindex({ object_type: 'Saying' });
  // One column was searched; the type has two of texts. The fifth segment grows still: its rows are indexed as they are read.
  expect([searched['indexes'], all['indexes']]).toEqual([4, 8]);
  expect(await found()).toEqual(before);
  expect((await jobs()).map(({ kind, about, state, unit, done }) => [kind, about, state, unit, done])).toEqual([
    ['reindex', 'Saying', 'done', 'indexes', 10],
    ['reindex', null, 'done', 'indexes', 5],
  ]);
  expect(codeOf(await world.admin('POST', '/admin/reindex', { object_type: 'Sayings' }))).toEqual([404, 'REL_UNKNOWN_TYPE']);
  const ready = world.service.store.workers.run;
  const there = new Held();
  const at = there.hold();
  world.service.store.workers.run = async (...work: unknown[]) => {
    await there.wait();
    return (await ready.apply(world.service.store.workers, work as never)) as never;
  };
  const reply = world.admin('POST', '/admin/reindex', {});
  await at;
  const [job] = await jobs();
  expect(job).toMatchObject({ kind: 'reindex', state: 'running', done: 0, total: 10 });
  expect((await world.admin('DELETE', `/admin/jobs/${job!['id'] as string}`)).status).toBe(202);
  there.letGo();
  expect(codeOf(await reply)).toEqual([408, 'REL_CANCELLED']);
  expect(await found()).toEqual(before);
});

describe('who sees a job', () => {
  const task = async (headers: Record<string, string>): Promise<string> => {
    const reply = await world.call('POST', '/ingest/auto?object_type=Ware&async=true', rows(0, 3), headers);
    expect(reply.status, reply.text).toBe(202);
    return reply.json['task_id'] as string;
  };
  const seen = async (headers: Record<string, string>): Promise<unknown[]> =>
    ((await world.call('GET', '/jobs', undefined, headers)).json['jobs'] as { id: string }[]).map(({ id }) => id);

  test('who asked for it, an administrator of the tenant, and who runs the store', async () => {
    const ann = await world.tokenFor({ tenant_id: 'acme', principal: 'ann' });
    const bob = await world.tokenFor({ tenant_id: 'acme', principal: 'bob' });
    const chief = await world.tokenFor({ tenant_id: 'acme', principal: 'chief', roles: ['tenant-admin'] });
    const other = await world.tokenFor({ tenant_id: 'globex', principal: 'ann', roles: ['tenant-admin'] });
    const platform = await world.tokenFor({ principal: 'ops', roles: ['platform-admin'] });
    const below = { ...ann, 'x-organization-id': 'acme/eu' };
    const id = await task(ann);
    const deep = await task(below);
    expect(await seen(ann)).toEqual([deep, id]);
    expect(await seen(below)).toEqual([deep]);
    expect(await seen(bob)).toEqual([]);
    expect(await seen(chief)).toEqual([deep, id]);
    expect(await seen(other)).toEqual([]);
    expect(await seen(platform)).toEqual([deep, id]);
    expect((await jobs()).map((job) => [job['kind'], job['about'], job['principal'], job['organization']])).toEqual([
      ['ingest', 'Ware', 'ann', 'acme/eu'],
      ['ingest', 'Ware', 'ann', 'acme'],
    ]);
    for (const headers of [bob, other, below]) {
      for (const method of ['GET', 'DELETE']) {
        expect(codeOf(await world.call(method, `/jobs/${id}`, undefined, headers))).toEqual([404, 'REL_NOT_FOUND']);
      }
    }
    expect((await world.call('GET', `/jobs/${id}`, undefined, chief)).json).toMatchObject({ id, kind: 'ingest' });
  });

  test('a task that waits is cancelled by whoever asked for it', async () => {
    const ann = await world.tokenFor({ tenant_id: 'acme', principal: 'ann' });
    const ids = await Promise.all(Array.from({ length: 30 }, () => task(ann)));
    const id = ids.at(-1)!;
    const reply = await world.call('DELETE', `/jobs/${id}`, undefined, ann);
    // As a rule it waits behind the others; the list says what became of it in either case.
    expect([202, 409]).toContain(reply.status);
    for (;;) {
      const listed = (await world.call('GET', '/jobs', undefined, ann)).json['jobs'] as { id: string; state: string }[];
      if (listed.some(({ state }) => state === 'queued' || state === 'running')) continue;
      const state = listed.find((job) => job.id === id)!.state;
      expect(state).toBe(reply.status === 202 ? 'cancelled' : 'done');
      break;
    }
    const { json } = await world.call('GET', `/ingest/tasks/${id}`, undefined, ann);
    expect(json['state']).toBe(reply.status === 202 ? 'failed' : 'done');
  });
});

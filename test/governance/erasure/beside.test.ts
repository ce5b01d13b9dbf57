/** Erasing beside everything else: writes that come meanwhile, a drain, policies, a start that knows commitments alone. */
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { tenantlessCaller } from '../../../src/governance/caller.ts';
import type { DiskFile } from '../../../src/log/disk/disk.ts';
import { MemoryDisk } from '../../../src/log/disk/memory-disk.ts';
import { acme, ErasureWorld } from './erasure-world.ts';

/** Files of columns are written once they are let go. */
class SlowSegments extends MemoryDisk {
  held: Promise<void> = Promise.resolve();
  release: () => void = () => undefined;

  override async open(path: string, mode: 'read' | 'write' | 'create'): Promise<DiskFile> {
    const file = await super.open(path, mode);
    if (mode !== 'create' || !path.includes('/segment-')) return file;
    const write = file.write.bind(file);
    return Object.assign(file, {
      write: async (...args: Parameters<DiskFile['write']>) => {
        await this.held;
        return write(...args);
      },
    });
  }
}

let world: ErasureWorld;
beforeEach(async () => {
  world = await (await new ErasureWorld().open()).fill();
});

const statement = "ERASE SUBJECT 'alice' REASON 'r' CERTIFY";

test('rows of the subject that come while it is erased are gone with the others, or stay for ever', async () => {
  for (let round = 0; round < 12; round++) {
    const puts: Promise<unknown>[] = [];
    const erasing = world.erase();
    for (let i = 0; i < 8; i++) {
      puts.push(world.store.put('Person', [{ id: `q${round}-${i}`, who: 'alice', name: `Alice ${round} ${i}` }], acme));
      if (i % 3 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    await Promise.all([erasing, ...puts]);
    const names = await world.names();
    await world.restart();
    expect(await world.names()).toEqual(names);
    expect(world.store.service.store.projections.erasures.openErasures()).toEqual([]);
  }
  await world.erase();
  expect(await world.names()).toEqual(['Bob', 'Nobody']);
});

test('a file of columns that is being written meanwhile is nothing that is left of them', async () => {
  const disk = new SlowSegments();
  const own = await (await new ErasureWorld(disk).open()).fill();
  disk.held = new Promise((resolve) => (disk.release = resolve));
  await own.store.put(
    'Person',
    Array.from({ length: 70 }, (_, i) => ({ id: `r${i}`, who: 'bob', name: `Bob ${i}` })),
    acme,
  );
  const segments = async (): Promise<string[]> =>
    (await disk.list('/data/projections')).filter((name) => name.startsWith('segment-'));
  const checkpoints = own.store.service.store.checkpoints!;
  const taken = checkpoints.take();
  await expect.poll(segments).toHaveLength(1);
  const strays = checkpoints.strays();
  await new Promise((resolve) => setImmediate(resolve));
  disk.release();
  expect([await strays, await taken]).toEqual([[], true]);
  expect(await segments()).toHaveLength(1);
  // One that nobody writes, and nothing rests on, is told.
  await (await disk.open('/data/projections/segment-of-before', 'create')).close();
  expect(await checkpoints.strays()).toEqual(['segment-of-before']);
});

test('nor is one that is being packed', async () => {
  const disk = new SlowSegments();
  const own = await (await new ErasureWorld(disk).open()).fill();
  const rows = Array.from({ length: 70 }, (_, i) => ({ id: `r${i}`, who: 'bob', name: `Bob ${i}` }));
  await own.store.put('Person', rows, acme);
  await own.store.put('Person', rows, acme);
  const { checkpoints, columns } = own.store.service.store;
  expect(await checkpoints!.take()).toBe(true);
  const segments = async (): Promise<string[]> =>
    (await disk.list('/data/projections')).filter((name) => name.startsWith('segment-'));
  const before = (await segments()).length;
  disk.held = new Promise((resolve) => (disk.release = resolve));
  const compacted = columns!.compact();
  await expect.poll(async () => (await segments()).length).toBe(before + 1);
  const strays = checkpoints!.strays();
  await new Promise((resolve) => setImmediate(resolve));
  disk.release();
  expect(await strays).toEqual([]);
  expect((await compacted).segments).toBeGreaterThan(0);
});

test('a drain lets a run stop between two steps; the next start goes on with it', async () => {
  world.store.service.upkeep.erasures.close();
  const error = await world.store.refusal(statement, acme);
  expect([error.code, await world.names()]).toEqual(['REL_UNAVAILABLE', ['Bob', 'Nobody']]);
  await world.restart();
  const { erasures } = world.store.service.store.projections;
  expect(erasures.openErasures()).toHaveLength(1);
  await world.store.service.upkeep.erasures.resume();
  expect(erasures.openErasures()).toEqual([]);
  const { receipt } = await world.erase();
  const said = JSON.parse(Buffer.from(receipt!.payload, 'base64').toString('utf8')) as { verification: { method: string } };
  expect(said.verification.method).toBe('blind-index rescan');
});

test('a start finds by the commitment alone what still says the subject, and waits for somebody', async () => {
  await world.store.register('Note', { id: 'string', about: 'string' }, 'id');
  await world.store.put(
    'Note',
    [
      { id: 'n1', about: 'alice' },
      { id: 'n2', about: 'bob' },
    ],
    acme,
  );
  expect((await world.store.refusal(statement, acme)).code).toBe('REL_UNPROCESSABLE');
  await world.restart();
  const { service } = world.store;
  await service.upkeep.erasures.resume();
  expect(world.said.filter((line) => line.includes('Note.about: 1'))).toHaveLength(1);
  expect(world.said.join('\n')).not.toContain('alice');
  // It is not looked for again and again.
  await service.upkeep.erasures.resume();
  expect(world.said.filter((line) => line.includes('Note.about'))).toHaveLength(1);
  await world.store.invoke(acme, 'remove', (invocation) =>
    invocation.submit({ kind: 'remove-rows', type: 'Note', keys: ['n1'] }),
  );
  expect((await world.erase()).certified).toBe(true);
});

describe('policies', () => {
  const admin = tenantlessCaller('root', 'admin', 'test');
  const dpo = { ...acme, principal: 'dora', roles: ['dpo'] };
  const install = (id: string, text: string): Promise<unknown> =>
    world.store.service.gate.invoke(admin, { action: 'administer', purpose: null, correlationId: 'c' }, (invocation) =>
      invocation.submit({ kind: 'put-policy', id, text }),
    );

  test('that forbid erasing one of the rows refuse all of it, as if nobody were there', async () => {
    await install('all', 'permit(principal, action, resource);');
    await install('dpo', 'forbid(principal, action == Action::"erase", resource is Person) unless { principal in Role::"dpo" };');
    await install('old', 'forbid(principal, action == Action::"erase", resource is Person) when { resource.age == 31 };');
    for (const caller of [acme, dpo]) {
      const refused = await world.store.refusal(statement, caller);
      const unknown = await world.store.refusal("ERASE SUBJECT 'zoe' REASON 'r' CERTIFY", caller);
      expect([refused.code, refused.message]).toEqual([unknown.code, unknown.message]);
    }
    expect(await world.names()).toHaveLength(4);
    await install('old', 'forbid(principal, action == Action::"erase", resource is Person) when { resource.age == 99 };');
    expect((await world.store.refusal(statement, acme)).code).toBe('REL_NOT_FOUND');
    expect((await world.erase('alice', { caller: dpo })).certified).toBe(true);
    expect(await world.names()).toEqual(['Bob', 'Nobody']);
  });

  test('that forbid erasing a row let nobody schedule or hold it, as if it were not there', async () => {
    await install('all', 'permit(principal, action, resource);');
    await install('old', 'forbid(principal, action == Action::"erase", resource is Person) when { resource.age == 40 };');
    const keep = (kind: 'hold-row' | 'schedule-retention', key: string): Promise<unknown> =>
      world.store.invoke(acme, 'remove', (invocation) =>
        invocation.submit({ kind, id: `${kind} ${key}`, type: 'Person', key, until: 1n } as Parameters<
          typeof invocation.submit
        >[0]),
      );
    for (const kind of ['hold-row', 'schedule-retention'] as const) {
      for (const key of ['p2', 'p77']) await expect(keep(kind, key)).rejects.toMatchObject({ code: 'REL_NOT_FOUND' });
      await keep(kind, 'p3');
    }
  });
});

test('what was brought within reach for one erasure stays there until all that are made ready have ended', async () => {
  const { rows } = world.store.service.store.projections;
  const expected = vi.spyOn(rows, 'expectErasure');
  const givenUp = vi.spyOn(rows, 'expectNoErasure');
  await Promise.all([world.erase('alice'), world.erase('bob')]);
  expect(expected).toHaveBeenCalledTimes(2);
  expect(givenUp).toHaveBeenCalledTimes(1);
  expect(givenUp.mock.invocationCallOrder[0]).toBeGreaterThan(expected.mock.invocationCallOrder[1]!);
  await world.erase('alice').catch(() => undefined);
  expect(givenUp).toHaveBeenCalledTimes(2);
});

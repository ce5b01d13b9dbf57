import { expect, test } from 'vitest';
import type { Appended, WalSync } from '../../src/log/log-store.ts';
import { Gate, RecordingDisk } from './recording-disk.ts';
import { accessDraft, all, type OpenedLog, openLog, rowsDraft, SeededRandom, settle, type World, worldOn } from './world.ts';

async function opened(walSync: WalSync): Promise<OpenedLog & { disk: RecordingDisk; world: World }> {
  const disk = new RecordingDisk();
  const world = worldOn(disk);
  const log = await openLog(world, { walSync });
  disk.take();
  return { ...log, disk, world };
}

/** Kinds of the steps taken so far. */
function kinds(disk: RecordingDisk): string[] {
  return disk.take().map((step) => step.split(' ')[0]!);
}

async function state(promise: Promise<unknown>): Promise<'pending' | 'resolved' | 'rejected'> {
  let seen: 'pending' | 'resolved' | 'rejected' = 'pending';
  promise.then(
    () => (seen = 'resolved'),
    () => (seen = 'rejected'),
  );
  await settle();
  return seen;
}

test.each(['always', 'interval'] as const)(
  '%s: appends of one turn are one write and one fsync, and acknowledged after it',
  async (mode) => {
    const { log, disk } = await opened(mode);
    const gate = new Gate();
    disk.before = (step) => (step.startsWith('fsync') ? gate.wait() : undefined);
    const appends = Array.from({ length: 20 }, (_, i) => log.append([rowsDraft([`k${i}`])]));
    await gate.arrived;
    expect(kinds(disk)).toEqual(['write', 'fsync']);
    expect(await state(appends[0]!.written)).toBe('resolved');
    expect(await state(appends[0]!.acknowledged)).toBe('pending');
    expect(log.basis().position).toBe(1);
    gate.release();
    expect(new Set(await Promise.all(appends.map(({ acknowledged }) => acknowledged)))).toEqual(new Set(['synced']));
    expect(log.basis().position).toBe(21);
    expect(log.status().durableLeaves).toBe(21);
  },
);

/** Appends one after the other within a turn of the event loop, as callers do that wake each other. */
async function inOneTurn(count: number, append: (i: number) => Promise<unknown>): Promise<unknown[]> {
  await settle();
  const appends: Promise<unknown>[] = [];
  for (let i = 0; i < count; i++) {
    appends.push(append(i));
    for (let hops = 0; hops < 50; hops++) await Promise.resolve();
  }
  return Promise.all(appends);
}

test('a group of many begins in the midst of a turn; what comes in the rest of it is the next', async () => {
  const { log, disk } = await opened('always');
  const placed: number[] = [];
  // This disk is never busy: the event loop turns between any two groups all the same.
  disk.before = (step) => void (step.startsWith('fsync') && placed.push(log.status().leaves - 1));
  await inOneTurn(24, (i) => log.append([rowsDraft([`k${i}`])]).acknowledged);
  expect(placed).toEqual([8, 24]);
  // Half of the last group is worth waiting for.
  placed.length = 0;
  await inOneTurn(48, (i) => log.append([rowsDraft([`l${i}`])]).acknowledged);
  expect(placed).toEqual([32, 72]);
  placed.length = 0;
  await inOneTurn(48, (i) => log.append([rowsDraft([`m${i}`])]).acknowledged);
  expect(placed).toEqual([92, 120]);
});

test('access records alone never begin a group early: without an fsync the event loop would not turn', async () => {
  const { log, disk } = await opened('always');
  await inOneTurn(24, (i) => log.append([accessDraft(`p${i}`)]).written);
  expect(kinds(disk)).toEqual(['write']);
});

test('what arrives during an fsync is the next group, which starts when that fsync ends', async () => {
  const { log, disk } = await opened('interval');
  const gate = new Gate();
  let held = 0;
  disk.before = (step) => (step.startsWith('fsync') && held++ === 0 ? gate.wait() : undefined);
  const first = log.append([rowsDraft(['a'])]);
  await gate.arrived;
  const later = [log.append([rowsDraft(['b'])]), log.append([rowsDraft(['c'])])];
  expect(await state(later[0]!.written)).toBe('pending');
  gate.release();
  await Promise.all([first, ...later].map(({ acknowledged }) => acknowledged));
  expect(kinds(disk)).toEqual(['write', 'fsync', 'write', 'fsync']);
});

test('no timer stands between an append and its fsync while the disk is idle', async () => {
  const { log, world } = await opened('interval');
  // The clock of this world never moves by itself: an acknowledgement that waited for it would never come.
  expect(await log.append([rowsDraft(['a'])]).acknowledged).toBe('synced');
  expect(world.clock.milliseconds).toBe(0);
});

test('off: acknowledged as buffered after the write, with no fsync; a sync append gets one', async () => {
  const { log, disk } = await opened('off');
  const buffered = log.append([rowsDraft(['a'])]);
  expect(await buffered.acknowledged).toBe('buffered');
  expect(log.basis().position).toBe(2);
  expect(kinds(disk)).toEqual(['write']);
  expect(log.status().durableLeaves).toBe(1);
  const both = [log.append([rowsDraft(['b'])], { sync: true }), log.append([rowsDraft(['c'])])];
  expect(await both[0]!.acknowledged).toBe('synced');
  expect(await both[1]!.acknowledged).toBe('buffered');
  expect(kinds(disk)).toEqual(['write', 'fsync']);
  expect(log.status().durableLeaves).toBe(4);
});

test('access records are written at once and cause no fsync; the next one covers them', async () => {
  const { log, disk } = await opened('always');
  const access = log.append([accessDraft('ada')]);
  await access.written;
  expect(kinds(disk)).toEqual(['write']);
  expect(await state(access.acknowledged)).toBe('pending');
  expect(log.status().durableLeaves).toBe(1);
  await log.append([rowsDraft(['a'])]).acknowledged;
  expect(await access.acknowledged).toBe('synced');
  expect(log.status().durableLeaves).toBe(3);
});

test('access records alone are sealed, and so fsynced, when the log goes idle', async () => {
  const { log, world } = await opened('always');
  const access = log.append([accessDraft('ada')]);
  await access.written;
  await world.clock.advance(1000);
  expect(await access.acknowledged).toBe('synced');
  expect((await all(log.read(0))).map(({ body }) => body.kind)).toEqual(['genesis', 'access', 'seal']);
});

test.each(['always', 'interval', 'off'] as const)(
  '%s: a failed write refuses everything that waits and everything after',
  async (mode) => {
    const { log, disk } = await opened(mode);
    await log.append([rowsDraft(['kept'])]).acknowledged;
    const before = log.basis().position;
    disk.before = (step) => {
      if (step.startsWith('write')) throw Object.assign(new Error('no space'), { code: 'ENOSPC' });
    };
    const appends = [log.append([rowsDraft(['a'])]), log.append([accessDraft('ada')])];
    for (const { acknowledged, written } of appends) {
      await expect(acknowledged).rejects.toMatchObject({ code: 'REL_UNAVAILABLE' });
      await expect(written).rejects.toMatchObject({ code: 'REL_UNAVAILABLE' });
    }
    disk.before = () => undefined;
    disk.take();
    expect(() => log.append([rowsDraft(['b'])])).toThrow(expect.objectContaining({ code: 'REL_UNAVAILABLE' }));
    await expect(log.seal()).rejects.toMatchObject({ code: 'REL_UNAVAILABLE' });
    expect(log.status()).toMatchObject({ state: 'failed', failure: 'no space' });
    expect(log.basis().position).toBe(before);
    expect((await all(log.read(0))).map(({ body }) => body.kind)).toEqual(['genesis', 'rows']);
    await log.close();
    expect(disk.take().filter((step) => !step.startsWith('close'))).toEqual([]);
  },
);

test('a failed fsync is never tried again, and its group is not acknowledged by a later one', async () => {
  const { log, disk } = await opened('always');
  let syncs = 0;
  disk.before = (step) => {
    if (step.startsWith('fsync') && ++syncs === 1) throw Object.assign(new Error('I/O error'), { code: 'EIO' });
  };
  const lost = log.append([rowsDraft(['a'])]);
  await expect(lost.acknowledged).rejects.toMatchObject({ code: 'REL_UNAVAILABLE' });
  expect(() => log.append([rowsDraft(['b'])])).toThrow(expect.objectContaining({ code: 'REL_UNAVAILABLE' }));
  await log.close();
  await settle();
  expect(syncs).toBe(1);
  expect(log.basis().position).toBe(1);
});

test('what queued behind a failing fsync is refused with it, written to no file', async () => {
  const { log, disk } = await opened('always');
  const gate = new Gate();
  disk.before = (step) => (step.startsWith('fsync') ? gate.wait() : undefined);
  const first = log.append([rowsDraft(['a'])]);
  await gate.arrived;
  const queued: Appended[] = [log.append([rowsDraft(['b'])]), log.append([accessDraft('ada')])];
  gate.fail(new Error('I/O error'));
  for (const { acknowledged } of [first, ...queued])
    await expect(acknowledged).rejects.toMatchObject({ code: 'REL_UNAVAILABLE' });
  expect(kinds(disk)).toEqual(['write', 'fsync']);
});

test('a checkpoint that cannot be written fails the log: it could no longer tell a lost tail from a torn one', async () => {
  const { log, disk } = await opened('always');
  await log.append([rowsDraft(['a'])]).acknowledged;
  disk.before = (step) => {
    if (step.includes('checkpoint')) throw Object.assign(new Error('no space'), { code: 'ENOSPC' });
  };
  await expect(log.seal()).rejects.toMatchObject({ code: 'REL_UNAVAILABLE' });
  expect(log.status().state).toBe('failed');
});

test('a group is bounded: what exceeds it waits for the next write', async () => {
  const { log, disk } = await opened('always');
  const gate = new Gate();
  let held = 0;
  disk.before = (step) => (step.startsWith('fsync') && held++ === 0 ? gate.wait() : undefined);
  const first = log.append([rowsDraft(['a'])]);
  await gate.arrived;
  const noise = new SeededRandom().fill(new Uint8Array(1_500_000));
  const large = Buffer.from(noise).toString('base64');
  const appends = Array.from({ length: 10 }, () => log.append([rowsDraft([large])]));
  gate.release();
  await Promise.all([first, ...appends].map(({ acknowledged }) => acknowledged));
  const sizes = disk.take().flatMap((step) => /write \S+ (\d+) bytes/.exec(step)?.[1] ?? []);
  expect(sizes.length).toBeGreaterThan(3);
  for (const size of sizes.map(Number)) expect(size).toBeLessThan(9 << 20);
  await log.close();
});

test('closing a failed log twice is as good as once', async () => {
  const { log, disk } = await opened('always');
  disk.before = (step) => {
    if (step.startsWith('fsync')) throw new Error('I/O error');
  };
  await expect(log.append([rowsDraft(['a'])]).acknowledged).rejects.toMatchObject({ code: 'REL_UNAVAILABLE' });
  await log.close();
  await log.close();
  expect(disk.take().filter((step) => step.startsWith('close'))).toHaveLength(1);
  expect(log.status().state).toBe('failed');
});

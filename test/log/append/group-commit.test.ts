import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import type { Appended, WalSync } from '../../../src/log/log-store.ts';
import { Gate, RecordingDisk } from '../recording-disk.ts';
import { accessDraft, all, type OpenedLog, openLog, rowsDraft, SeededRandom, settle, type World, worldOn } from '../world.ts';

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

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Appends in turns of the event loop of their own. */
async function turnByTurn(log: OpenedLog['log'], keys: readonly string[]): Promise<Appended[]> {
  const appends: Appended[] = [];
  for (const key of keys) {
    appends.push(log.append([rowsDraft([key])]));
    await turn();
  }
  return appends;
}

test('an fsync waits for those who waited for the last one, while others keep coming', async () => {
  const { log, disk } = await opened('always');
  const keys = Array.from({ length: 24 }, (_, i) => `k${i}`);
  await inOneTurn(24, (i) => log.append([rowsDraft([keys[i]!])]).acknowledged);
  expect(kinds(disk)).toEqual(['write', 'fsync']);
  const appends = await turnByTurn(log, keys);
  await Promise.all(appends.map(({ acknowledged }) => acknowledged));
  expect(kinds(disk)).toEqual(['write', 'fsync']);
});

test('who does not come is waited for a few turns of the event loop, and then no more', async () => {
  const { log, disk } = await opened('always');
  await inOneTurn(24, (i) => log.append([rowsDraft([`k${i}`])]).acknowledged);
  disk.take();
  const appended = log.append([rowsDraft(['alone'])]);
  for (let turns = 0; turns < 8; turns++) await turn();
  expect(kinds(disk)).toEqual([]);
  expect(await appended.acknowledged).toBe('synced');
  expect(kinds(disk)).toEqual(['write', 'fsync']);
  const next = log.append([rowsDraft(['alone'])]);
  for (let turns = 0; turns < 3; turns++) await turn();
  expect(kinds(disk)).toEqual(['write', 'fsync']);
  expect(await next.acknowledged).toBe('synced');
});

test('nobody is waited for beyond his time, or after a while without commits', async () => {
  const { log, disk, world } = await opened('always');
  const many = (): Promise<unknown> => inOneTurn(24, (i) => log.append([rowsDraft([`k${i}`])]).acknowledged);
  await many();
  disk.take();
  const alone = log.append([rowsDraft(['alone'])]);
  await turn();
  await turn();
  expect(kinds(disk)).toEqual([]);
  world.clock.milliseconds += 0.2;
  for (let turns = 0; turns < 3; turns++) await turn();
  expect(kinds(disk)).toEqual(['write', 'fsync']);
  await alone.acknowledged;
  await many();
  disk.take();
  // Others come in every turn, each soon after the one before.
  for (let i = 0; i < 23; i++) {
    log.append([rowsDraft([`l${i}`])]);
    await turn();
    world.clock.milliseconds += 0.1;
  }
  expect(kinds(disk).slice(0, 2)).toEqual(['write', 'fsync']);
  await settle();
  await many();
  await settle();
  disk.take();
  world.clock.milliseconds += 6;
  const late = log.append([rowsDraft(['late'])]);
  for (let turns = 0; turns < 3; turns++) await turn();
  expect(kinds(disk)).toEqual(['write', 'fsync']);
  await late.acknowledged;
});

test('a record that an answer waits for is written while commits wait for others', async () => {
  const { log, disk } = await opened('always');
  await inOneTurn(24, (i) => log.append([rowsDraft([`k${i}`])]).acknowledged);
  disk.take();
  const row = log.append([rowsDraft(['a'])]);
  const access = log.append([accessDraft('ada')]);
  for (let turns = 0; turns < 3; turns++) await turn();
  expect(kinds(disk)).toEqual(['write']);
  expect(await Promise.all([row.acknowledged, access.acknowledged])).toEqual(['synced', 'synced']);
  expect(kinds(disk)).toEqual(['fsync']);
  expect(log.status().durableLeaves).toBe(log.status().leaves);
});

test('the turn is held for an fsync where all who are expected wait for it, and not while the disk is slow', async () => {
  const { log, disk, world } = await opened('always');
  const next = async (): Promise<boolean | undefined> => {
    disk.inTurn.length = 0;
    await log.append([rowsDraft(['k'])]).acknowledged;
    return disk.inTurn[0];
  };
  expect(await next()).toBe(true);
  disk.before = (step) => void (step.startsWith('fsync') && (world.clock.milliseconds += 0.6));
  expect(await next()).toBe(true);
  const tried: number[] = [];
  for (let i = 1; i <= 16 + 1 + 32 + 1; i++) if (await next()) tried.push(i);
  expect(tried).toEqual([17, 50]);
  // Larger groups take longer, and leave time for others.
  disk.before = () => undefined;
  for (let i = 0; i < 64; i++) await next();
  expect(await next()).toBe(true);
  disk.inTurn.length = 0;
  await log.append([rowsDraft(['k'.repeat(500)])]).acknowledged;
  expect(disk.inTurn).toEqual([true]);
  disk.inTurn.length = 0;
  await log.append([rowsDraft(Array.from({ length: 2000 }, (_, i) => `${i}${'k'.repeat(400)}${(i * 7919) ** 3}`))]).acknowledged;
  expect(disk.inTurn).toEqual([false]);
  // Somebody who is expected has not come: there is work to do meanwhile.
  await inOneTurn(4, (i) => log.append([rowsDraft([`l${i}`])]).acknowledged);
  expect(await next()).toBe(false);
  expect(await next()).toBe(true);
});

test('the turn is not held for an fsync while others read', async () => {
  const { log, disk, world } = await opened('always');
  const next = async (beside: () => unknown = () => undefined): Promise<boolean | undefined> => {
    disk.inTurn.length = 0;
    const { acknowledged } = log.append([rowsDraft(['k'])]);
    beside();
    await acknowledged;
    return disk.inTurn[0];
  };
  expect(await next()).toBe(true);
  // A record of the committer's own comes after its commit.
  await log.append([accessDraft('ada')]).written;
  expect(await next()).toBe(true);
  expect(await next(() => log.append([accessDraft('bob')]))).toBe(false);
  expect(await next()).toBe(false);
  world.clock.milliseconds += 50;
  expect(await next()).toBe(true);
  await log.close();
});

test('access records are written in the turn that appends them: whoever makes them has gathered them', async () => {
  const { log, disk } = await opened('always');
  await settle();
  let turned = false;
  setImmediate(() => (turned = true));
  const both = [log.append([accessDraft('ada')]), log.append([accessDraft('bob')])];
  await Promise.all(both.map(({ written }) => written));
  expect(kinds(disk)).toEqual(['write']);
  expect(turned).toBe(false);
});

test('commits behind an access record are gathered as any others', async () => {
  const { log, disk } = await opened('always');
  await settle();
  await log.append([accessDraft('ada')]).written;
  const first = log.append([rowsDraft(['a'])]);
  for (let hops = 0; hops < 50; hops++) await Promise.resolve();
  await Promise.all([first, log.append([rowsDraft(['b'])])].map(({ acknowledged }) => acknowledged));
  expect(kinds(disk)).toEqual(['write', 'write', 'fsync']);
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

/** The first fsync from here on waits for the first gate, the second for the second. */
function holdSyncs(disk: RecordingDisk): [Gate, Gate] {
  const gates: [Gate, Gate] = [new Gate(), new Gate()];
  let syncs = 0;
  disk.before = (step) => (step.startsWith('fsync') ? gates[syncs++]?.wait() : undefined);
  return gates;
}

test('a record is written beside an fsync, with the commits before it; both are durable with the next one alone', async () => {
  const { log, disk } = await opened('always');
  const [first, second] = holdSyncs(disk);
  const begun = log.append([rowsDraft(['a'])]);
  await first.arrived;
  const commit = log.append([rowsDraft(['b'])]);
  expect(await state(commit.written)).toBe('pending');
  const access = log.append([accessDraft('ada')]);
  expect(await Promise.all([commit, access].map(({ written }) => state(written)))).toEqual(['resolved', 'resolved']);
  expect(kinds(disk)).toEqual(['write', 'fsync', 'write']);
  expect(await Promise.all([begun, commit].map(({ acknowledged }) => state(acknowledged)))).toEqual(['pending', 'pending']);
  first.release();
  expect(await begun.acknowledged).toBe('synced');
  await second.arrived;
  expect(log.basis().position).toBe(2);
  expect(log.status()).toMatchObject({ durableLeaves: 2, leaves: 4 });
  expect(await Promise.all([commit, access].map(({ acknowledged }) => state(acknowledged)))).toEqual(['pending', 'pending']);
  second.release();
  expect(await Promise.all([commit.acknowledged, access.acknowledged])).toEqual(['synced', 'synced']);
  expect(log.status()).toMatchObject({ durableLeaves: 4, leaves: 4 });
  expect(kinds(disk)).toEqual(['fsync']);
});

test('off: who asks for no fsync does not wait for one', async () => {
  const { log, disk } = await opened('off');
  const [first] = holdSyncs(disk);
  const synced = log.append([rowsDraft(['a'])], { sync: true });
  await first.arrived;
  const buffered = log.append([rowsDraft(['b'])]);
  expect(await state(buffered.acknowledged)).toBe('resolved');
  expect(await buffered.acknowledged).toBe('buffered');
  expect(log.basis().position).toBe(3);
  expect(await state(synced.acknowledged)).toBe('pending');
  first.release();
  expect(await synced.acknowledged).toBe('synced');
  expect(log.status()).toMatchObject({ durableLeaves: 2, leaves: 3 });
});

test('a file is not ended under its fsync: a record that has no room in it waits', async () => {
  const roomy = await opened('always');
  await roomy.log.append([rowsDraft(['a'])]).acknowledged;
  await roomy.log.append([accessDraft('ada')]).written;
  const disk = new RecordingDisk();
  const { log } = await openLog(worldOn(disk), { limits: { fileBytesMax: roomy.log.status().bytes } });
  const [first, second] = holdSyncs(disk);
  second.release();
  const begun = log.append([rowsDraft(['a'])]);
  await first.arrived;
  disk.take();
  const fits = log.append([accessDraft('ada')]);
  expect(await state(fits.written)).toBe('resolved');
  const waits = log.append([accessDraft('bob')]);
  expect(await state(waits.written)).toBe('pending');
  expect(kinds(disk)).toEqual(['write']);
  first.release();
  await Promise.all([begun.acknowledged, waits.written]);
  expect(log.status().files).toBe(2);
  expect((await all(log.read(0))).map(({ body }) => body.kind)).toEqual(['genesis', 'rows', 'access', 'access']);
});

test('a write that fails beside an fsync refuses what waits for the fsync too', async () => {
  const { log, disk } = await opened('always');
  const [gate] = holdSyncs(disk);
  const begun = log.append([rowsDraft(['a'])]);
  await gate.arrived;
  disk.before = (step) => {
    if (step.startsWith('write')) throw Object.assign(new Error('I/O error'), { code: 'EIO' });
  };
  const access = log.append([accessDraft('ada')]);
  const refusals = [begun.acknowledged, access.written, access.acknowledged];
  expect(await Promise.all(refusals.map(state))).toEqual(['rejected', 'rejected', 'rejected']);
  for (const refused of refusals) await expect(refused).rejects.toMatchObject({ code: 'REL_UNAVAILABLE' });
  gate.release();
  await settle();
  expect(log.status()).toMatchObject({ state: 'failed', failure: 'I/O error' });
  await log.close();
});

test('a record that was written beside an fsync that fails was written; nothing is acknowledged, and nothing follows', async () => {
  const { log, disk } = await opened('always');
  const [gate] = holdSyncs(disk);
  const begun = log.append([rowsDraft(['a'])]);
  await gate.arrived;
  const commit = log.append([rowsDraft(['b'])]);
  const access = log.append([accessDraft('ada')]);
  expect(await state(access.written)).toBe('resolved');
  gate.fail(new Error('I/O error'));
  for (const { acknowledged } of [begun, commit, access])
    await expect(acknowledged).rejects.toMatchObject({ code: 'REL_UNAVAILABLE' });
  expect(await state(access.written)).toBe('resolved');
  expect(() => log.append([accessDraft('bob')])).toThrow(expect.objectContaining({ code: 'REL_UNAVAILABLE' }));
  expect(kinds(disk)).toEqual(['write', 'fsync', 'write']);
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

test('of access records that wait for an fsync nothing is kept in memory but that somebody may ask', async () => {
  const { log } = await opened('always');
  // A function of its own, so that no variable of this one holds the entry.
  const written = async (): Promise<WeakRef<object>> => {
    const { entries, written } = log.append([accessDraft('ada')]);
    await written;
    return new WeakRef(entries[0]!);
  };
  const entry = await written();
  await log.append([accessDraft('bob')]).written;
  await settle();
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  expect(log.status().durableLeaves).toBe(1);
  expect(entry.deref()).toBeUndefined();
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
      if (step.startsWith('write')) throw Object.assign(new Error('I/O error'), { code: 'EIO' });
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
    expect(log.status()).toMatchObject({ state: 'failed', failure: 'I/O error' });
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
  const queued: Appended[] = [log.append([rowsDraft(['b'])]), log.append([rowsDraft(['c'])])];
  gate.fail(new Error('I/O error'));
  for (const { acknowledged } of [first, ...queued])
    await expect(acknowledged).rejects.toMatchObject({ code: 'REL_UNAVAILABLE' });
  expect(kinds(disk)).toEqual(['write', 'fsync']);
});

test('a checkpoint that cannot be written fails the log: it could no longer tell a lost tail from a torn one', async () => {
  const { log, disk } = await opened('always');
  await log.append([rowsDraft(['a'])]).acknowledged;
  disk.before = (step) => {
    if (step.includes('checkpoint')) throw Object.assign(new Error('I/O error'), { code: 'EIO' });
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

/** A disk that takes no more for a while: what was taken is kept and written once there is room, and nothing is taken meanwhile. */
import { expect, test } from 'vitest';
import { noRoomIn } from '../../../src/log/disk/disk.ts';
import { DiskError } from '../../../src/log/disk/memory-disk.ts';
import { verifyDirectory } from '../../../src/log/proofs/verify.ts';
import { Gate, RecordingDisk } from '../recording-disk.ts';
import { subjectDraft } from '../subjects.ts';
import { accessDraft, all, directory, openLog, rowsDraft, settle, worldOn } from '../world.ts';

const wordsOf = {
  ENOSPC: 'the disk is full (ENOSPC) at /data/log, 12 KiB free',
  EDQUOT: 'the quota on the disk is used up (EDQUOT) at /data/log, 12 KiB free',
  EROFS: 'the disk is read-only (EROFS) at /data/log, 12 KiB free',
} as const;

async function opened(limits = {}) {
  const disk = new RecordingDisk();
  disk.freeBytes = () => Promise.resolve(12_500);
  const world = worldOn(disk);
  const said: string[] = [];
  const { log } = await openLog(world, { limits, say: (line) => said.push(line) });
  disk.take();
  /** Refuses steps that begin so, until it is given null. */
  const refuse = (pattern: RegExp | null, code = 'ENOSPC', syscall = 'write'): void => {
    disk.before = (step) => {
      if (pattern?.test(step)) throw new DiskError(code, step, syscall);
    };
  };
  const kindsRead = async (): Promise<string[]> => (await all(log.read(0))).map(({ body }) => body.kind);
  return { disk, world, log, said, refuse, kindsRead };
}

const codeOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'resolved',
    (error: Error & { code: string }) => `${error.code} ${error.message}`,
  );

test.each(['ENOSPC', 'EDQUOT', 'EROFS'] as const)(
  '%s: the same frame is written again at the same place once there is room',
  async (code) => {
    const { disk, world, log, said, refuse, kindsRead } = await opened();
    await log.append([rowsDraft(['kept'])]).acknowledged;
    const before = log.basis().position;
    disk.take();
    refuse(/^write/, code);
    const waits = log.append([rowsDraft(['a'])]);
    const access = log.append([accessDraft('ada')]);
    const open = `REL_UNAVAILABLE ${wordsOf[code]}: what was sent may be written once there is room: send it again with the same Idempotency-Key, and it is written once`;
    expect(await Promise.all([waits.acknowledged, waits.written, access.written].map(codeOf))).toEqual([open, open, open]);
    expect(log.status()).toMatchObject({ state: 'full', failure: wordsOf[code] });
    expect(said).toEqual([`${wordsOf[code]}: nothing is written until there is room, and then the store goes on by itself`]);
    const refused = `${wordsOf[code]}: nothing was written; the store takes writes again by itself once there is room`;
    for (const draft of [rowsDraft(['b']), accessDraft('bob')]) expect(() => log.append([draft])).toThrow(refused);
    await expect(log.seal()).rejects.toThrow(refused);
    expect(await codeOf(log.acknowledged)).toBe(open);
    expect(log.basis().position).toBe(before);

    await settle();
    await world.clock.advance(500);
    expect(log.status().state).toBe('full');
    refuse(null);
    await world.clock.advance(500);
    expect(await log.acknowledged).toBe('synced');
    expect(await waits.acknowledged).toBe('synced');
    expect(log.status()).toMatchObject({ state: 'open', failure: null });
    expect(log.basis().position).toBe(before + 1);
    expect(said.at(-1)).toBe('the disk at /data/log has room again: the store takes writes');
    const writes = disk.take().filter((step) => step.startsWith('write'));
    expect(writes.slice(0, 3)).toEqual([writes[0], writes[0], writes[0]]);
    await log.append([rowsDraft(['c'])]).acknowledged;
    expect((await kindsRead()).filter((kind) => kind !== 'seal')).toEqual(['genesis', 'rows', 'rows', 'access', 'rows']);
    await log.close();
    expect((await verifyDirectory({ disk: disk.inner, directory })).findings).toEqual([]);
  },
);

test('what was written before gets its fsync while the disk is full', async () => {
  const { log, disk } = await opened();
  const gate = new Gate();
  let syncs = 0;
  disk.before = (step) => {
    if (step.startsWith('fsync') && syncs++ === 0) return gate.wait();
    if (step.startsWith('write') && syncs > 0 && disk.steps.filter((each) => each.startsWith('write')).length > 2)
      throw new DiskError('ENOSPC', step);
    return undefined;
  };
  const begun = log.append([rowsDraft(['a'])]);
  await gate.arrived;
  const commit = log.append([rowsDraft(['b'])]);
  await log.append([accessDraft('ada')]).written;
  const late = log.append([accessDraft('bob')]);
  expect(await codeOf(late.written)).toContain('ENOSPC');
  gate.release();
  expect(await begun.acknowledged).toBe('synced');
  expect(await commit.acknowledged).toBe('synced');
  expect(log.status()).toMatchObject({ state: 'full', durableLeaves: 4, leaves: 5 });
});

test.each([/^create/, /^write \S*1\.log/, /^replace \S*manifest/])('no room to begin the next file: %s', async (step) => {
  const { disk, world, log, refuse, kindsRead } = await opened({ fileBytesMax: 1_200 });
  await log.append([rowsDraft(['a'])]).acknowledged;
  refuse(step);
  const waits = log.append([rowsDraft(['b'])]);
  expect(await codeOf(waits.acknowledged)).toContain('ENOSPC');
  await world.clock.advance(500);
  refuse(null);
  await world.clock.advance(500);
  expect(await waits.acknowledged).toBe('synced');
  expect(log.status().files).toBe(2);
  await log.close();
  expect(await kindsRead()).toEqual(['genesis', 'rows', 'rows', 'seal']);
  expect((await verifyDirectory({ disk: disk.inner, directory })).findings).toEqual([]);
});

test('no room for the signed head: no seal follows before it is in its place', async () => {
  const { disk, world, log, refuse } = await opened();
  await log.append([rowsDraft(['a'])]).acknowledged;
  refuse(/^replace \S*checkpoint/);
  await expect(log.seal()).rejects.toThrow('nothing was written');
  expect(log.status().state).toBe('full');
  expect(() => log.append([rowsDraft(['b'])])).toThrow('ENOSPC');
  refuse(null);
  await settle();
  await world.clock.advance(500);
  expect(log.status().state).toBe('open');
  await log.append([rowsDraft(['b'])]).acknowledged;
  await log.close();
  expect((await verifyDirectory({ disk: disk.inner, directory })).findings).toEqual([]);
});

test('no room for the keys of subjects: the frame that needs them waits', async () => {
  const { world, log, refuse, kindsRead } = await opened();
  refuse(/subjects-/);
  const waits = log.append([subjectDraft(['somebody'])]);
  expect(await codeOf(waits.acknowledged)).toContain('ENOSPC');
  await world.clock.advance(500);
  expect(log.status().state).toBe('full');
  refuse(null);
  await world.clock.advance(500);
  expect(await waits.acknowledged).toBe('synced');
  expect((await kindsRead()).slice(0, 2)).toEqual(['genesis', 'rows']);
});

test('an fsync that finds no room is never made again: the log has failed, and says that a restart is needed', async () => {
  const { world, log, said, refuse, disk } = await opened();
  refuse(/^fsync/, 'ENOSPC', 'fdatasync');
  const lost = log.append([rowsDraft(['a'])]);
  expect(await codeOf(lost.acknowledged)).toMatch(/ENOSPC.*until the server is restarted; what was sent may have been written/);
  refuse(null);
  await world.clock.advance(5_000);
  expect(log.status().state).toBe('failed');
  expect(() => log.append([rowsDraft(['b'])])).toThrow('restart the server');
  expect(said).toEqual([expect.stringContaining('/data/log: the log has failed (ENOSPC')]);
  expect(disk.steps.filter((step) => step.startsWith('fsync')).length).toBe(1);
  for (const syscall of ['fsync', 'fdatasync']) expect(noRoomIn(new DiskError('ENOSPC', 'fsync', syscall))).toBe(null);
  expect(noRoomIn(new DiskError('ENOSPC', 'write', 'write'))).toBe('ENOSPC');
});

test('a close waits for no room: what is kept is tried once more, and the next start finds the log whole', async () => {
  const { disk, log, refuse } = await opened();
  await log.append([rowsDraft(['a'])]).acknowledged;
  refuse(/^write/);
  expect(await codeOf(log.append([rowsDraft(['b'])]).acknowledged)).toContain('ENOSPC');
  await log.close();
  expect(log.status().state).toBe('failed');
  refuse(null);
  const { log: again } = await openLog(worldOn(disk));
  expect((await all(again.read(0))).map(({ body }) => body.kind)).toEqual(['genesis', 'rows']);
  await again.close();
});

test('no log begins on a disk that is full', async () => {
  const disk = new RecordingDisk();
  disk.before = (step) => {
    if (/^write \S*\.log (?!64 bytes)/.test(step)) throw new DiskError('ENOSPC', step);
  };
  await expect(openLog(worldOn(disk))).rejects.toThrow('the disk is full (ENOSPC) at /data/log');
});

test('what changes the files between groups is refused without room, and nothing has failed', async () => {
  const { log, refuse } = await opened();
  await log.append([rowsDraft(['a'])]).acknowledged;
  refuse(/^create/);
  await expect(log.redact([1], () => Promise.resolve())).rejects.toMatchObject({ code: 'ENOSPC' });
  expect(log.status().state).toBe('open');
  await log.append([rowsDraft(['b'])]).acknowledged;
  refuse(null);
  expect((await log.redact([1], () => Promise.resolve())).rows).toBe(1);
  await log.append([rowsDraft(['c'])]).acknowledged;
});

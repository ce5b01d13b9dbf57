import { expect, test } from 'vitest';
import { FRAME_HEADER_BYTES, FILE_HEADER_BYTES, judgeTail, type TailEvidence } from '../../src/log/files/log-file.ts';
import { hasTurn } from '../runner/turn.ts';
import { RecordingDisk } from './recording-disk.ts';
import { all, openLog, plain, rowsDraft, settle, type World, worldOn } from './world.ts';

const file0 = '/data/log/00000000.log';
const checkpoint = '/data/log/checkpoint';

/** A log with the given groups on disk, left as a killed process leaves it: no seal, no checkpoint beyond the first. */
async function killed(
  groups: readonly (readonly string[])[],
  limits = {},
): Promise<{ world: World; disk: RecordingDisk; entries: string[]; ends: number[] }> {
  const disk = new RecordingDisk();
  const world = worldOn(disk);
  const { log } = await openLog(world, { limits });
  const ends: number[] = [];
  for (const keys of groups) {
    await log.append([rowsDraft(keys)]).acknowledged;
    ends.push(log.status().bytes);
  }
  return { world, disk, entries: plain(await all(log.read(0))), ends };
}

/** The process is gone; the disk as it is belongs to a new one. */
function successor(disk: RecordingDisk): World {
  return worldOn(disk, 'successor');
}

async function replayOf(disk: RecordingDisk): Promise<{ entries: string[]; cutBytes: number; cutFrom: string | null }> {
  const { log, replayed } = await openLog(successor(disk));
  const { cutBytes, cutFrom } = log.status().recovery;
  await log.close();
  return { entries: plain(replayed), cutBytes, cutFrom };
}

const evidence: TailEvidence = { leaves: 10, bad: null, sealed: false, laterClaim: null, nextFileLeaf: null, checkpointSize: 0 };

test.each([
  ['a file that ends with its last frame', {}, 'clean'],
  ['bad bytes that nothing claims', { bad: 'x' }, 'torn'],
  ['a later frame that claims no more than was read', { bad: 'x', laterClaim: 10 }, 'torn'],
  ['a later frame that claims one leaf more', { bad: 'x', laterClaim: 11 }, 'corrupt'],
  ['a checkpoint of what was read', { bad: 'x', checkpointSize: 10 }, 'torn'],
  ['a checkpoint of one leaf more', { bad: 'x', checkpointSize: 11 }, 'corrupt'],
  ['a cut at a frame boundary below the checkpoint', { checkpointSize: 11 }, 'corrupt'],
  ['bad bytes in a sealed file', { bad: 'x', sealed: true }, 'corrupt'],
  ['a next file begun where this one ends', { bad: 'x', nextFileLeaf: 10 }, 'torn'],
  ['a next file begun one leaf later', { nextFileLeaf: 11 }, 'corrupt'],
] as [string, Partial<TailEvidence>, string][])('the tail verdict on %s', (_, given, verdict) => {
  expect(judgeTail({ ...evidence, ...given }).tail).toBe(verdict);
});

test('a killed process loses nothing that it wrote', async () => {
  const { disk, entries } = await killed([['a'], ['b', 'c'], ['d']]);
  const replay = await replayOf(disk);
  expect(replay.entries).toEqual(entries);
  expect(replay.cutBytes).toBe(0);
});

test('the last frame cut anywhere is a torn tail: cut, reported, and the rest replayed', async () => {
  const { disk, entries, ends } = await killed([['a'], ['b'], ['c']]);
  const whole = await disk.bytes(file0);
  for (let length = ends[1]! + 1; length < ends[2]!; length++) {
    await disk.inner.replaceFile(file0, whole.subarray(0, length));
    await disk.inner.unlink(checkpoint);
    const { log, replayed } = await openLog(successor(disk));
    expect(plain(replayed)).toEqual(entries.slice(0, 3));
    const { cutBytes, cutFrom } = log.status().recovery;
    expect(cutFrom).toBe(`00000000.log offset ${ends[1]} (leaf 3)`);
    expect(cutBytes).toBeGreaterThan(0);
    expect(cutBytes).toBeLessThanOrEqual(length - ends[1]!);
    // The cut is real before anything is appended.
    expect((await disk.bytes(file0)).length).toBe(ends[1]);
  }
});

test('every flipped bit of a frame that a later frame claims as durable halts the open, with its place', async () => {
  const { disk, ends } = await killed([['a'], ['b'], ['c'], ['d']]);
  const whole = await disk.bytes(file0);
  await disk.inner.unlink(checkpoint);
  for (let bit = ends[0]! * 8; bit < ends[1]! * 8; bit++) {
    if (!hasTurn(bit, 21)) continue;
    const changed = Buffer.from(whole);
    changed[bit >> 3]! ^= 1 << (bit & 7);
    await disk.inner.replaceFile(file0, changed);
    const failure = openLog(successor(disk));
    await expect(failure, `bit ${bit}`).rejects.toMatchObject({
      code: 'REL_STORAGE',
      message: expect.stringContaining(`00000000.log offset ${ends[0]} (leaf 2)`),
    });
    expect((await disk.bytes(file0)).equals(changed)).toBe(true);
  }
});

test('every flipped byte of a log that was closed is found', async () => {
  const disk = new RecordingDisk();
  const { log } = await openLog(worldOn(disk));
  await log.append([rowsDraft(['a', 'b'])]).acknowledged;
  await log.append([rowsDraft(['c'])]).acknowledged;
  await log.close();
  const whole = await disk.bytes(file0);
  for (let at = 0; at < whole.length; at++) {
    if (!hasTurn(at, 4)) continue;
    const changed = Buffer.from(whole);
    changed[at]! ^= 1 << (at & 7);
    await disk.inner.replaceFile(file0, changed);
    await expect(openLog(successor(disk)), `byte ${at}`).rejects.toMatchObject({ code: 'REL_STORAGE' });
  }
});

test('a closed log cut at any byte, frame boundaries included, is found', async () => {
  const disk = new RecordingDisk();
  const { log } = await openLog(worldOn(disk));
  await log.append([rowsDraft(['a'])]).acknowledged;
  await log.close();
  const whole = await disk.bytes(file0);
  for (let length = 0; length < whole.length; length++) {
    if (!hasTurn(length, 4)) continue;
    await disk.inner.replaceFile(file0, whole.subarray(0, length));
    await expect(openLog(successor(disk)), `cut to ${length}`).rejects.toMatchObject({ code: 'REL_STORAGE' });
  }
});

test('a log that was sealed and lost its checkpoint, or holds another log’s, does not open', async () => {
  const disk = new RecordingDisk();
  const world = worldOn(disk);
  const { log } = await openLog(world);
  for (const key of ['a', 'b']) {
    await log.append([rowsDraft([key])]).acknowledged;
    await log.seal();
  }
  await log.close();
  const note = await disk.bytes(checkpoint);
  await disk.inner.unlink(checkpoint);
  await expect(openLog(successor(disk))).rejects.toMatchObject({
    code: 'REL_STORAGE',
    message: expect.stringContaining('checkpoint'),
  });
  const other = new RecordingDisk();
  const { log: otherLog } = await openLog(worldOn(other, 'other'));
  await otherLog.close();
  await disk.inner.replaceFile(checkpoint, await other.bytes(checkpoint));
  await expect(openLog(successor(disk))).rejects.toMatchObject({ code: 'REL_STORAGE' });
  await disk.inner.replaceFile(checkpoint, note);
  await expect(openLog(successor(disk))).resolves.toBeDefined();
});

test('a second recovery changes no byte, and frames beyond a cut never come back', async () => {
  const { disk, entries, ends } = await killed([['a'], ['b'], ['c']]);
  const damaged = await disk.bytes(file0);
  damaged[ends[1]! + FRAME_HEADER_BYTES + 20]! ^= 1;
  await disk.inner.replaceFile(file0, damaged);
  await disk.inner.unlink(checkpoint);
  expect((await replayOf(disk)).cutBytes).toBeGreaterThan(0);
  const files = async (): Promise<Buffer[]> =>
    Promise.all([file0, checkpoint, '/data/log/manifest'].map((path) => disk.bytes(path)));
  const after = await files();
  const second = await replayOf(disk);
  expect(second).toMatchObject({ cutBytes: 0, cutFrom: null });
  expect(second.entries.slice(0, 3)).toEqual(entries.slice(0, 3));
  expect(await files()).toEqual(after);
});

test('a frame that an older file of the same number left behind is not a frame of this log', async () => {
  const { disk, entries, ends } = await killed([['a'], ['b']]);
  const stranger = await killed([['x'], ['y'], ['z']]);
  const foreign = (await stranger.disk.bytes(file0)).subarray(stranger.ends[0]!, stranger.ends[1]!);
  const bytes = await disk.bytes(file0);
  expect(ends[1]).toBe(stranger.ends[1]);
  await disk.inner.replaceFile(file0, Buffer.concat([bytes.subarray(0, ends[0]), foreign]));
  await disk.inner.unlink(checkpoint);
  // Whole, at its own offset, and not linked to what stands before it.
  await expect(openLog(successor(disk))).rejects.toMatchObject({ message: expect.stringContaining('does not link') });
  expect(entries.length).toBe(3);
});

test('a frame moved to another offset is not a frame', async () => {
  const { disk, ends } = await killed([['a'], ['b']]);
  const bytes = await disk.bytes(file0);
  const frame = bytes.subarray(ends[0]!, ends[1]!);
  await disk.inner.replaceFile(file0, Buffer.concat([bytes.subarray(0, ends[1]), frame]));
  await disk.inner.unlink(checkpoint);
  const replay = await replayOf(disk);
  expect(replay.cutBytes).toBeGreaterThan(frame.length - 16);
});

test('zeros written ahead of the data are no tail', async () => {
  const { disk, entries, ends } = await killed([['a']], { preallocateBytes: 4096 });
  expect((await disk.bytes(file0)).length).toBeGreaterThan(ends[0]!);
  const replay = await replayOf(disk);
  expect(replay).toMatchObject({ cutBytes: 0, cutFrom: null });
  expect(replay.entries).toEqual(entries);
  expect((await disk.bytes(file0)).at(-1)).not.toBe(0);
});

const smallFiles = { limits: { fileBytesMax: 4096, preallocateBytes: 512 } };

test('files roll, are sealed in the manifest, and replay as one log', async () => {
  const disk = new RecordingDisk();
  const { log } = await openLog(worldOn(disk), smallFiles);
  for (let i = 0; i < 40; i++) await log.append([rowsDraft([`k${i}`, `l${i}`])]).acknowledged;
  expect(log.status().files).toBeGreaterThan(3);
  const read = plain(await all(log.read(0)));
  expect(plain(await all(log.read(17)))).toEqual(read.slice(17));
  await log.close();
  const { log: again, replayed } = await openLog(successor(disk), smallFiles);
  expect(plain(replayed.slice(0, -1))).toEqual(read);
  expect(replayed.at(-1)!.body.kind).toBe('seal');
  const sizes = await Promise.all(
    (await disk.list('/data/log')).filter((name) => name.endsWith('.log')).map((name) => disk.size(`/data/log/${name}`)),
  );
  expect(sizes.reduce<number>((sum, size) => sum + size!, 0)).toBe(again.status().bytes);
});

test('any damage to a sealed file halts the open', async () => {
  const disk = new RecordingDisk();
  const { log } = await openLog(worldOn(disk), smallFiles);
  for (let i = 0; i < 20; i++) await log.append([rowsDraft([`k${i}`])]).acknowledged;
  const whole = await disk.bytes(file0);
  const broken = async (bytes: Uint8Array): Promise<void> => {
    await disk.inner.replaceFile(file0, bytes);
    await expect(openLog(successor(disk), smallFiles)).rejects.toMatchObject({
      code: 'REL_STORAGE',
      message: expect.stringContaining('00000000.log'),
    });
  };
  await broken(whole.subarray(0, whole.length - 1));
  await broken(Buffer.concat([whole, Buffer.alloc(1)]));
  for (let at = 0; at < whole.length; at += 13) {
    const changed = Buffer.from(whole);
    changed[at]! ^= 0x10;
    await broken(changed);
  }
  await disk.inner.unlink(file0);
  await expect(openLog(successor(disk), smallFiles)).rejects.toMatchObject({ message: expect.stringContaining('missing') });
});

test('a file begun and not listed is dropped, and proves that the one before it was durable', async () => {
  const disk = new RecordingDisk();
  const { log } = await openLog(worldOn(disk), smallFiles);
  let begun = false;
  disk.before = (step) => {
    if (begun) throw new Error('the process is dead');
    if (step.startsWith('replace') && step.includes('manifest')) {
      begun = true;
      throw new Error('the process is dead');
    }
  };
  let written = 0;
  for (; !begun; written++) await log.append([rowsDraft([`k${written}`])]).acknowledged.catch(() => undefined);
  await settle();
  disk.before = () => undefined;
  expect(await disk.size('/data/log/00000001.log')).toBe(FILE_HEADER_BYTES);
  const whole = await disk.bytes(file0);
  await disk.inner.unlink(checkpoint);
  await disk.inner.replaceFile(file0, whole.subarray(0, whole.length - 1));
  await expect(openLog(successor(disk), smallFiles)).rejects.toMatchObject({
    message: expect.stringContaining('the next file begins at leaf'),
  });
  await disk.inner.replaceFile(file0, whole);
  const { log: again, replayed } = await openLog(successor(disk), smallFiles);
  expect(replayed.length).toBe(written);
  expect(await disk.size('/data/log/00000001.log')).toBeUndefined();
  await again.append([rowsDraft(['next'])]).acknowledged;
  await again.close();
  expect(await disk.size('/data/log/00000001.log')).toBeGreaterThan(FILE_HEADER_BYTES);
});

test('a manifest that is gone is not guessed, unless nothing was ever written', async () => {
  const { disk } = await killed([['a']]);
  await disk.inner.unlink('/data/log/manifest');
  // The key file would be made anew where no log is seen, so it stays.
  await expect(openLog(successor(disk))).rejects.toMatchObject({ code: 'REL_STORAGE' });
});

test('a log file that the manifest does not know halts the open', async () => {
  const { disk } = await killed([['a']]);
  await disk.inner.replaceFile('/data/log/00000007.log', Buffer.alloc(10));
  await expect(openLog(successor(disk))).rejects.toMatchObject({ message: expect.stringContaining('00000007.log') });
});

test('replay gives way to other work', async () => {
  const { disk } = await killed(Array.from({ length: 30 }, (_, i) => [`k${i}`]));
  const world = successor(disk);
  world.clock.monotonicMs = () => (world.clock.milliseconds += 5);
  let turns = 0;
  const tick = (): void => {
    turns++;
    if (turns < 1000) setImmediate(tick);
  };
  setImmediate(tick);
  const { log } = await openLog(world);
  expect(turns).toBeGreaterThan(20);
  turns = 1000;
  await log.close();
});

import { expect, test } from 'vitest';
import { signCheckpoint } from '../../src/log/tree/checkpoint-note.ts';
import type { LocalLog, LocalLogOptions } from '../../src/log/log.ts';
import type { ResumeOptions, SavedLog } from '../../src/log/files/saved-log.ts';
import { hexOf } from '../../src/log/bytes/sha256.ts';
import { draftsFor, textOf } from '../simulation/drafts.ts';
import { Seeded } from '../simulation/seeded.ts';
import { RecordingDisk } from './recording-disk.ts';
import { accessDraft, all, keyringOf, openLog, origin, rowsDraft, settle, type World, worldOn } from './world.ts';

const manifest = '/data/log/manifest';
const checkpoint = '/data/log/checkpoint';
const path = (file: number): string => `/data/log/0000000${file}.log`;

function successor(disk: RecordingDisk): World {
  return worldOn(disk, 'successor');
}

/** The files as they lie, for a process of its own. */
async function copyOf(disk: RecordingDisk): Promise<RecordingDisk> {
  const copy = new RecordingDisk();
  for (const directory of ['/data/log', '/data/keys']) {
    await copy.inner.makeDirectory(directory);
    for (const name of await disk.list(directory)) {
      await copy.inner.replaceFile(`${directory}/${name}`, await disk.bytes(`${directory}/${name}`));
    }
  }
  return copy;
}

/** What somebody keeps of a saved state. */
interface Kept {
  readonly saved: SavedLog;
  readonly blobs: Map<string, Uint8Array>;
}

function keep(log: LocalLog): Kept {
  const { logId, leaves, leafHash, bytes, blobs } = log.savedState();
  return { saved: { logId, leaves, leafHash, bytes, blobs }, blobs: new Map(blobs.map(({ name, bytes }) => [name, bytes()])) };
}

function resumeOf({ saved, blobs }: Kept, refusals: string[], bytes = saved.bytes): ResumeOptions {
  const blob = (name: string): Uint8Array => {
    const found = blobs.get(name);
    if (!found) throw new Error('it is gone');
    return found;
  };
  return { bytes, blob, onRefused: (reason) => void refusals.push(reason) };
}

/** Everything that must not depend on how the log was opened. */
async function picture(log: LocalLog): Promise<unknown> {
  const { size, root } = log.head();
  const { cutBytes, cutFrom } = log.status().recovery;
  const steps = Array.from({ length: 12 }, (_, i) => Math.floor((i * (size - 1)) / 11));
  const proofs = steps.map((leaf) => [
    hexOf(log.proofs.leafHash(leaf)),
    log.proofs.inclusion(leaf, size).map(hexOf),
    log.proofs.consistency(leaf + 1, size).map(hexOf),
    hexOf(log.proofs.root(leaf + 1)),
  ]);
  const found = [];
  for (const leaf of steps) found.push(hexOf((await log.proofs.entry({ leaf }))!.leaf));
  for (const leaf of steps) found.push((await log.proofs.entry({ position: Math.floor(leaf / 2) }))?.facts.leaf);
  const { recovery: _, ...status } = log.status();
  const lastLeafHash = hexOf(log.lastLeafHash);
  const next = log.next().position;
  return { size, root: hexOf(root), status, cutBytes, cutFrom, proofs, found, lastLeafHash, next };
}

async function opened(disk: RecordingDisk, kept: Kept | null, refusals: string[] = []) {
  const copy = await copyOf(disk);
  const replayed: string[] = [];
  const log = await openOn(copy, kept, refusals, replayed);
  const seen = await picture(log);
  const read = (await all(log.read(0))).map(textOf);
  return { seen, read, replayed };
}

/** What is refused is refused before anything is replayed. */
async function openOn(disk: RecordingDisk, kept: Kept | null, refusals: string[], replayed: string[]): Promise<LocalLog> {
  const replay: LocalLogOptions['replay'] = (entry) => void replayed.push(textOf(entry));
  if (!kept) return (await openLog(successor(disk), { replay })).log;
  const resume = resumeOf(kept, refusals);
  const refused = (reason: string): void => {
    expect([reason, replayed]).toEqual([reason, []]);
    resume.onRefused(reason);
  };
  return (await openLog(successor(disk), { replay, resume: { ...resume, onRefused: refused } })).log;
}

/** The same judgement, with and without what was saved: the same log, or the same refusal to open it. */
async function expectSame(disk: RecordingDisk, kept: Kept): Promise<readonly string[]> {
  const outcome = async (state: Kept | null) => {
    const refusals: string[] = [];
    try {
      return { ...(await opened(disk, state, refusals)), refusals };
    } catch (cause) {
      return { failed: String(cause), refusals };
    }
  };
  const full = await outcome(null);
  const resumed = await outcome(kept);
  const { refusals } = resumed;
  const from = refusals.length > 0 ? 0 : kept.saved.leaves;
  expect(resumed).toEqual('failed' in full ? { ...full, refusals } : { ...full, replayed: full.replayed.slice(from), refusals });
  return refusals;
}

const limits = { fileBytesMax: 6000, preallocateBytes: 512 };

test('resumed from any place of random histories, a log is the one that it was', async () => {
  for (let seed = 1; seed <= 6; seed++) {
    const random = new Seeded(seed);
    const disk = new RecordingDisk();
    const { log } = await openLog(worldOn(disk, `history ${seed}`), { limits, walSync: seed % 3 === 0 ? 'off' : 'always' });
    const kept: Kept[] = [keep(log)];
    for (let i = 0; i < 40; i++) {
      const appended = log.append(draftsFor(random, i % 4, i));
      // In the turn of the append, so that the state stands for entries which no file holds yet.
      if (random.chance(0.2)) kept.push(keep(log));
      if (random.chance(0.7)) await appended.written;
      if (random.chance(0.15)) {
        const sealing = log.seal();
        for (let turns = random.below(4); turns > 0; turns--) await Promise.resolve();
        // A seal that is placed and that no file holds yet.
        kept.push(keep(log));
        await sealing;
      }
      if (random.chance(0.1)) kept.push(keep(log));
    }
    kept.push(keep(log));
    if (seed % 2 === 0) await log.close();
    else await log.durable(log.head().size);
    kept.push(keep(log));
    for (const state of kept) expect(await expectSame(disk, state), `seed ${seed}`).toEqual([]);
  }
});

/** Entries before and after the place, in two files and more. */
async function halfway(options: Partial<LocalLogOptions> = {}) {
  const disk = new RecordingDisk();
  const { log } = await openLog(worldOn(disk), { limits, ...options });
  const append = async (from: number, count: number): Promise<void> => {
    for (let i = from; i < from + count; i++) await log.append([rowsDraft([`k${i}`, `l${i}`])]).acknowledged;
  };
  await append(0, 12);
  await log.seal();
  const kept = keep(log);
  await log.durable(kept.saved.leaves);
  return { disk, log, kept, append };
}

test('only what follows is read, and a log goes on from there like any other', async () => {
  const { disk, log, kept, append } = await halfway();
  await append(12, 3);
  const before = await copyOf(disk);
  const touched: string[] = [];
  const open = before.open.bind(before);
  before.open = (name, mode) => (touched.push(name), open(name, mode));
  const refusals: string[] = [];
  const { log: again, replayed } = await openLog(successor(before), { limits, resume: resumeOf(kept, refusals) });
  expect(refusals).toEqual([]);
  expect(replayed.map(({ leaf }) => leaf)).toEqual([kept.saved.leaves, kept.saved.leaves + 1, kept.saved.leaves + 2]);
  expect(again.status().recovery).toEqual({ cutBytes: 0, cutFrom: null, replayedLeaves: 3 });
  expect(touched).toContain(path(log.status().files - 1));
  expect(touched).not.toContain(path(0));
  await again.append([rowsDraft(['more'])]).acknowledged;
  const second = keep(again);
  await again.close();
  expect(await expectSame(before, second)).toEqual([]);
  expect(await expectSame(before, kept)).toEqual([]);
  await log.close();
});

test('damage behind the place gets the verdict of a full open', async () => {
  const { disk, log, kept, append } = await halfway();
  const { bytes: placeBytes, files } = log.status();
  await append(12, 3);
  const last = log.status().files - 1;
  expect(last).toBe(files - 1);
  const whole = await disk.bytes(path(last));
  const end = log.status().bytes - placeBytes;
  const from = whole.length;
  expect(from).toBeGreaterThan(0);
  const place = (await disk.size(path(last)))! - (whole.length - whole.findLastIndex((byte) => byte !== 0) - 1) - end;
  for (let at = place; at < place + end; at += 29) {
    const changed = Buffer.from(whole);
    changed[at]! ^= 1 << (at % 8);
    await disk.inner.replaceFile(path(last), changed);
    await expectSame(disk, kept);
  }
  for (let length = place; length < place + end; length += 41) {
    await disk.inner.replaceFile(path(last), whole.subarray(0, length));
    await expectSame(disk, kept);
  }
});

test('a tail torn behind the place is cut and reported the same way', async () => {
  const { disk, kept, append } = await halfway();
  await append(12, 1);
  const last = (await disk.list('/data/log')).filter((name) => name.endsWith('.log')).length - 1;
  const whole = await disk.bytes(path(last));
  const end = whole.findLastIndex((byte) => byte !== 0) + 1;
  await disk.inner.replaceFile(path(last), whole.subarray(0, end - 5));
  expect(await expectSame(disk, kept)).toEqual([]);
  const { seen, replayed } = await opened(disk, kept);
  expect(seen).toMatchObject({ cutFrom: expect.stringContaining(`(leaf ${kept.saved.leaves})`) });
  expect(replayed).toEqual([]);
});

test('a state that is ahead of its log is refused, and the log is judged without it', async () => {
  const { disk, log, kept } = await halfway();
  const last = log.status().files - 1;
  const whole = await disk.bytes(path(last));
  const data = whole.findLastIndex((byte) => byte !== 0) + 1;
  // The signed checkpoint covers what is lost here: the log does not open at all, and says why.
  await disk.inner.replaceFile(path(last), whole.subarray(0, data - 5));
  await expect(opened(disk, kept)).rejects.toMatchObject({ message: expect.stringContaining('signed checkpoint covers') });
  await disk.inner.unlink(checkpoint);
  expect(await expectSame(disk, kept)).toEqual([expect.stringContaining('00000')]);
  // Zeros where the frame was: nothing is too short, and still it is not there.
  await disk.inner.replaceFile(path(last), Buffer.concat([whole.subarray(0, data - 200), Buffer.alloc(1000)]));
  expect(await expectSame(disk, kept)).toEqual([expect.stringContaining('no such frame')]);
});

test('a state whose unwritten entries never reached the disk is refused', async () => {
  const disk = new RecordingDisk();
  const { log } = await openLog(worldOn(disk), { limits });
  await log.append([rowsDraft(['a'])]).acknowledged;
  disk.before = (step) => {
    if (step.startsWith('write')) throw new Error('the process is dead');
  };
  const lost = log.append([rowsDraft(['b'])]);
  const kept = keep(log);
  await expect(lost.acknowledged).rejects.toMatchObject({ code: 'REL_UNAVAILABLE' });
  await expect(log.durable(kept.saved.leaves)).rejects.toMatchObject({ code: 'REL_UNAVAILABLE' });
  disk.before = () => undefined;
  expect(await expectSame(disk, kept)).toEqual([`malformed bytes: it stands for 3 leaves; the log has 2`]);
  // Another entry took its place.
  const { log: other } = await openLog(worldOn(disk, 'another'), { limits });
  await other.append([rowsDraft(['c'])]).acknowledged;
  expect(await expectSame(disk, kept)).toEqual([expect.stringContaining('went another way')]);
});

test('what is wrong with a saved state is refused before anything is replayed', async () => {
  const { disk, log, kept, append } = await halfway();
  await append(12, 3);
  await log.close();
  const { bytes } = kept.saved;
  const refused = async (changed: Uint8Array): Promise<string> => {
    const refusals: string[] = [];
    let replayedBefore = 0;
    const resume = resumeOf(kept, refusals, changed);
    const watched = { ...resume, refused: (reason: string) => (expect(replayedBefore).toBe(0), resume.onRefused(reason)) };
    const { log: again } = await openLog(successor(await copyOf(disk)), { resume: watched, replay: () => replayedBefore++ });
    expect(replayedBefore).toBe(again.head().size);
    expect(refusals.length).toBe(1);
    return refusals[0]!;
  };
  const changedAt = (at: number, value: number): Uint8Array => {
    const changed = Uint8Array.from(bytes);
    changed[at] = value;
    return changed;
  };
  const logIdAt = 16;
  const leavesAt = logIdAt + 32;
  const writtenAt = leavesAt + 8 + 32;
  const linkAt = writtenAt + 8 + 4;
  const fileAt = linkAt + 64;
  expect(await refused(new Uint8Array(0))).toContain('the end came early');
  expect(await refused(changedAt(0, 0))).toContain('no saved state');
  expect(await refused(changedAt(8, 9))).toContain('format 9');
  expect(await refused(changedAt(logIdAt, bytes[logIdAt] === 0x61 ? 0x62 : 0x61))).toContain('is of log');
  expect(await refused(changedAt(leavesAt, bytes[leavesAt]! + 100))).toContain('it stands for');
  expect(await refused(changedAt(leavesAt, bytes[leavesAt]! - 1))).toContain('contradict');
  expect(await refused(changedAt(leavesAt + 8, bytes[leavesAt + 8]! ^ 1))).toContain('two hashes');
  expect(await refused(changedAt(writtenAt, bytes[writtenAt]! - 1))).toContain('malformed');
  expect(await refused(changedAt(linkAt, bytes[linkAt] === 0x61 ? 0x62 : 0x61))).toContain('other files');
  expect(await refused(changedAt(fileAt, 9))).toContain('does not list');
  expect(await refused(changedAt(fileAt + 4, bytes[fileAt + 4]! ^ 1))).toContain('no such frame');
  expect(await refused(changedAt(bytes.length - 1, bytes.at(-1)! ^ 1))).toContain('leaf');
  expect(await refused(bytes.subarray(0, bytes.length - 1))).toContain('the end came early');
  expect(await refused(Buffer.concat([bytes, Buffer.alloc(1)]))).toContain('bytes after the end');
});

test('a file before the place that is missing or has another length is left to the full open to judge', async () => {
  const { disk, log, kept } = await halfway();
  expect(log.status().files).toBeGreaterThan(1);
  await log.close();
  const whole = await disk.bytes(path(0));
  for (const damaged of [whole.subarray(0, whole.length - 1), Buffer.concat([whole, Buffer.alloc(1)])]) {
    await disk.inner.replaceFile(path(0), damaged);
    const refusals: string[] = [];
    const failure = openLog(successor(await copyOf(disk)), { resume: resumeOf(kept, refusals) });
    await expect(failure).rejects.toMatchObject({ code: 'REL_STORAGE' });
    expect(refusals).toEqual([expect.stringContaining(`00000000.log has ${damaged.length} bytes`)]);
  }
  await disk.inner.unlink(path(0));
  const refusals: string[] = [];
  const failure = openLog(successor(await copyOf(disk)), { resume: resumeOf(kept, refusals) });
  await expect(failure).rejects.toMatchObject({ message: expect.stringContaining('missing') });
  expect(refusals).toEqual([expect.stringContaining('00000000.log is missing')]);
});

test('a manifest that was rewritten, or a checkpoint of another log, does not pass for lack of reading', async () => {
  const { disk, log, kept } = await halfway();
  await log.close();
  const text = (await disk.bytes(manifest)).toString('latin1');
  await disk.inner.replaceFile(manifest, Buffer.from(text.replace(/ (\d+) ([0-9a-f]{64}) /, ' 1 $2 '), 'latin1'));
  await expect(opened(disk, kept)).rejects.toMatchObject({ code: 'REL_STORAGE' });
  await disk.inner.replaceFile(manifest, Buffer.from(text, 'latin1'));
  const other = new RecordingDisk();
  const { log: otherLog } = await openLog(worldOn(other, 'other'));
  await otherLog.close();
  await disk.inner.replaceFile(checkpoint, await other.bytes(checkpoint));
  await expect(opened(disk, kept)).rejects.toMatchObject({ code: 'REL_STORAGE' });
});

test('a signed head of another tree than the saved one is not passed over', async () => {
  const { disk, log, kept } = await halfway();
  await log.close();
  const { signer } = await keyringOf(successor(disk));
  const note = signCheckpoint(origin, { size: 5, root: log.proofs.root(4) }, signer);
  await disk.inner.replaceFile(checkpoint, Buffer.from(note));
  const refusals: string[] = [];
  const failure = openLog(successor(disk), { resume: resumeOf(kept, refusals) });
  await expect(failure).rejects.toMatchObject({ message: expect.stringContaining('has another root than the log') });
  expect(refusals).toEqual([expect.stringContaining('the signed checkpoint of 5 leaves has another root')]);
});

test('damage before the place is not looked for: reading it says so, and verify finds it', async () => {
  const { disk, log, kept } = await halfway();
  await log.close();
  const whole = await disk.bytes(path(0));
  whole[whole.length - 40]! ^= 1;
  await disk.inner.replaceFile(path(0), whole);
  const refusals: string[] = [];
  const { log: again } = await openLog(successor(disk), { resume: resumeOf(kept, refusals) });
  expect(refusals).toEqual([]);
  await expect(all(again.read(0))).rejects.toMatchObject({ message: expect.stringContaining('00000000.log offset') });
});

test('whole groups of tree nodes rest in blobs, are read back when asked for, and are missed when gone', async () => {
  const disk = new RecordingDisk();
  const { log } = await openLog(worldOn(disk));
  const drafts = Array.from({ length: 10_000 }, () => accessDraft('reader'));
  for (let i = 0; i < 7; i++) await log.append(drafts).written;
  await log.durable(log.head().size);
  const kept = keep(log);
  expect([...kept.blobs.keys()].map((name) => name.replace(/[0-9a-f]{16}$/, '#'))).toEqual(['tree-0-#']);
  expect(kept.saved.bytes.length).toBeLessThan(500_000);
  await log.append([rowsDraft(['after'])]).acknowledged;
  const full = await openLog(successor(await copyOf(disk)), { replay: () => undefined });
  const refusals: string[] = [];
  const { log: resumed, replayed } = await openLog(successor(await copyOf(disk)), { resume: resumeOf(kept, refusals) });
  expect(refusals).toEqual([]);
  expect(replayed.length).toBe(1);
  expect(await picture(resumed)).toEqual(await picture(full.log));
  // The next state names the same blobs, with the same bytes.
  const next = keep(resumed);
  expect([...next.blobs.keys()]).toEqual([...kept.blobs.keys()]);
  for (const [name, bytes] of next.blobs) expect(Buffer.from(bytes).equals(kept.blobs.get(name)!)).toBe(true);

  const gone = { saved: kept.saved, blobs: new Map() };
  const { log: without } = await openLog(successor(await copyOf(disk)), { resume: resumeOf(gone, refusals) });
  expect(refusals).toEqual([]);
  const { size } = without.head();
  expect(() => without.proofs.inclusion(5, size)).toThrow(expect.objectContaining({ code: 'REL_STORAGE' }));
  expect(without.proofs.inclusion(size - 1, size).length).toBeGreaterThan(0);
  await without.append([rowsDraft(['goes on'])]).acknowledged;
  await settle();
});

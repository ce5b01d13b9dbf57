import { expect, test } from 'vitest';
import { ServiceError } from '../../src/errors.ts';
import type { LocalLogOptions } from '../../src/log/log.ts';
import { hexOf } from '../../src/log/bytes/sha256.ts';
import { inlineWorker, type StartWorker, threadWorker } from '../../src/log/threads/workers.ts';
import { draftsFor, textOf } from '../simulation/drafts.ts';
import { rewritten } from '../simulation/forgery.ts';
import { Seeded } from '../simulation/seeded.ts';
import { RecordingDisk } from './recording-disk.ts';
import { openLog, rowsDraft, worldOn } from './world.ts';

const deadWorker: StartWorker = () => ({
  ask: () => Promise.reject(new ServiceError('REL_INTERNAL', 'a worker has ended')),
  end: () => Promise.resolve(),
});

const limits = { fileBytesMax: 20_000, preallocateBytes: 512 };

async function history(seed: number, appends: number): Promise<RecordingDisk> {
  const random = new Seeded(seed);
  const disk = new RecordingDisk();
  const { log } = await openLog(worldOn(disk, `history ${seed}`), { limits });
  for (let i = 0; i < appends; i++) {
    const { written } = log.append(draftsFor(random, i % 4, i));
    if (random.chance(0.5)) await written;
    if (random.chance(0.05)) await log.seal();
  }
  await log.append([rowsDraft(Array.from({ length: 3000 }, (_, i) => `key ${i}`))]).acknowledged;
  await log.close();
  return disk;
}

/** Everything that replay saw, or why there was none. */
async function outcome(disk: RecordingDisk, startWorker: StartWorker | null): Promise<readonly string[]> {
  const seen: string[] = [];
  // Taken down within the call: the bodies lie in memory that is used again.
  const replay: LocalLogOptions['replay'] = (entry, leafHash) => void seen.push(`${hexOf(leafHash)} ${textOf(entry)}`);
  const openBeside = startWorker && { startWorker, bytesMin: 0, windowBytes: 4000, poison: true };
  try {
    const { log } = await openLog(worldOn(disk, 'successor'), { replay, limits, ...(openBeside ? { openBeside } : {}) });
    const { recovery: _, ...status } = log.status();
    return [...seen, JSON.stringify(status), hexOf(log.head().root)];
  } catch (cause) {
    return [...seen, String(cause)];
  }
}

test.each([
  ['a thread', threadWorker],
  ['its twin', inlineWorker],
  ['a worker that has died', deadWorker],
])('opened by %s, a log is replayed as in the turn', async (_, startWorker) => {
  for (const seed of [1, 2]) {
    const disk = await history(seed, 60);
    const inTurn = await outcome(disk, null);
    expect(inTurn.length).toBeGreaterThan(60);
    expect(await outcome(disk, startWorker)).toEqual(inTurn);
  }
});

test('whatever is wrong is found at the same place and said in the same words', async () => {
  const disk = await history(3, 12);
  const names = (await disk.list('/data/log')).filter((name) => name.endsWith('.log'));
  const failures = new Set<string>();
  for (const name of names) {
    const path = `/data/log/${name}`;
    const whole = await disk.bytes(path);
    for (let at = 64; at < whole.length; at += 1 + Math.floor(whole.length / 60)) {
      const changed = Buffer.from(whole);
      changed[at]! ^= 1 << (at % 8);
      await disk.inner.replaceFile(path, changed);
      const inTurn = await outcome(disk, null);
      expect(await outcome(disk, inlineWorker), `${name} byte ${at}`).toEqual(inTurn);
      failures.add(inTurn.at(-1)!.replace(/.*: /, ''));
    }
    await disk.inner.replaceFile(path, whole);
  }
  expect(failures.size).toBeGreaterThan(0);
});

test('a forged payload under a good checksum is no better for having been opened elsewhere', async () => {
  const disk = await history(4, 30);
  const files = new Map<string, Buffer>();
  for (const name of await disk.list('/data/log')) files.set(`/data/log/${name}`, await disk.bytes(`/data/log/${name}`));
  let forged = 0;
  for (let leaf = 0; leaf < 20; leaf += 3) {
    const image = rewritten({ files, directories: new Set() }, ({ payload }, at) => {
      // The tag, or what it authenticates.
      if (at === leaf) payload[payload.length - 1 - (leaf % 2) * 20]! ^= 1;
    });
    for (const [path, bytes] of image.files) await disk.inner.replaceFile(path, bytes);
    const inTurn = await outcome(disk, null);
    expect(inTurn.at(-1)).toContain('the payload does not match its digest');
    expect(await outcome(disk, inlineWorker)).toEqual(inTurn);
    forged++;
  }
  expect(forged).toBe(7);
});

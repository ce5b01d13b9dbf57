/**
 * An attacker owns the disk and none of the keys. Every change made to a closed log must be found by `verify`, and its
 * place named: single bits, lost and repeated bytes, frames and files, parts of other logs, rewritten chains, and
 * whole directories of yesterday, where somebody kept today's head.
 */
import assert from 'node:assert/strict';
import type { Keyring } from '../../src/log/keys/keys.ts';
import { openKeyring } from '../../src/log/keys/keys.ts';
import { decodeFrameHeader, FILE_HEADER_BYTES, FRAME_HEADER_BYTES } from '../../src/log/files/log-file.ts';
import { FileWindow, frameAt } from '../../src/log/proofs/verify-frames.ts';
import { verifyDirectory, type VerifyReport } from '../../src/log/proofs/verify.ts';
import { inlineWorker } from '../../src/log/threads/workers.ts';
import { draftsFor } from './drafts.ts';
import { FaultyDisk, type Image } from './faulty-disk.ts';
import { rechained, withManifest } from './forgery.ts';
import { imageDisk } from './image-disk.ts';
import { Seeded } from './seeded.ts';
import { directory, kek, openLocalLog } from './subject.ts';
import { drive } from './workload.ts';
import { SimulatedClock } from './world.ts';

const logDirectory = `${directory}/log`;

export interface SealedLog {
  readonly image: Image;
  readonly keyring: Keyring;
  readonly checkpoint: string;
  readonly seals: number;
}

/** A log of at least so many bytes in its files, closed; with `begin`, one that goes on from another. */
export async function sealedLog(
  seed: number,
  bytes: number,
  begin?: Image,
  end: 'closed' | 'unsealed' = 'closed',
): Promise<SealedLog> {
  const random = new Seeded(seed);
  const disk = new FaultyDisk({}, begin);
  const clock = new SimulatedClock(1_760_000_000_000_000_000n + BigInt(seed) * 1_000_000_000_000n);
  const fileBytes = Math.max(2000, bytes >> 2);
  const log = await openLocalLog({ disk, clock, random, walSync: 'interval', fileBytes });
  let seals = 1;
  for (let i = 0; log.status().bytes < bytes; i++) {
    const { acknowledged } = log.append(draftsFor(random, i % 3, i), { sync: true });
    await drive(acknowledged, clock);
    if (i % 8 !== 7 || end === 'unsealed') continue;
    await drive(log.seal(), clock);
    seals++;
  }
  if (end === 'closed') await drive(log.close(), clock);
  const image = disk.visible();
  const checkpoint = Buffer.from(image.files.get(`${directory}/log/checkpoint`)!).toString('utf8');
  return { image, keyring: await openKeyring({ disk, random, directory, kek }), checkpoint, seals };
}

/** Files of the log proper, by path. */
export function logFilesOf(image: Image): [string, Uint8Array][] {
  return [...image.files].filter(([path]) => path.startsWith(`${directory}/log/`)).sort(([a], [b]) => (a < b ? -1 : 1));
}

export function withFile(image: Image, path: string, bytes: Uint8Array | null): Image {
  const files = new Map(image.files);
  if (bytes) files.set(path, bytes);
  else files.delete(path);
  return { directories: image.directories, files };
}

/** The report, which a walk with bodies opened beside it must give as well. */
export async function check(
  image: Image,
  log: SealedLog,
  options: { keys: boolean | 'none'; held?: readonly string[] },
): Promise<VerifyReport> {
  const { keyring } = log;
  const keys = options.keys === true ? { keyring } : options.keys === false ? { publicKeys: keyring.publicKeys } : {};
  const given = { disk: imageDisk(image), directory, ...keys, heldCheckpoints: options.held ?? [] };
  const report = await verifyDirectory(given);
  const beside = await verifyDirectory({ ...given, openBeside: { startWorker: inlineWorker, bytesMin: 0, windowBytes: 2000 } });
  assert.deepEqual(beside, report);
  return report;
}

function numberOf(path: string): number {
  return Number(/(\d{8})\.log$/.exec(path)![1]);
}

/** The frames of a log file, as byte ranges. */
export function framesOf(path: string, bytes: Uint8Array): [number, number][] {
  const number = numberOf(path);
  const frames: [number, number][] = [];
  for (let at = FILE_HEADER_BYTES; at < bytes.length; ) {
    const header = decodeFrameHeader(bytes.subarray(at), number, at);
    if (!header) break;
    const end = at + FRAME_HEADER_BYTES + header.size;
    frames.push([at, end]);
    at = end;
  }
  return frames;
}

export interface FlipFigures {
  readonly bits: number;
  /** Of them, those after which the whole log was verified. */
  readonly whole: number;
  readonly missed: readonly string[];
  readonly misplaced: readonly string[];
}

export interface FlipOptions {
  readonly onByte?: (done: number, total: number) => void;
  /** A bit of a frame is looked for in its frame alone, but for one in `of` of them, from the `first` on. */
  readonly sample?: { readonly of: number; readonly first: number };
}

/**
 * Turns every bit of every log file, one at a time. A finding must name the file and begin no later than the bit; where only
 * the bit's frame is read, it must be none any more.
 */
export async function flipEveryBit(log: SealedLog, { onByte, sample }: FlipOptions = {}): Promise<FlipFigures> {
  const files = logFilesOf(log.image).map(([path, bytes]): [string, Uint8Array] => [path, bytes.slice()]);
  const image: Image = { directories: log.image.directories, files: new Map([...log.image.files, ...files]) };
  const total = files.reduce((sum, [, bytes]) => sum + bytes.length, 0);
  const missed: string[] = [];
  const misplaced: string[] = [];
  let done = 0;
  let whole = 0;
  for (const [path, bytes] of files) {
    const name = path.slice(directory.length + 1);
    // The signature is of the checkpoint's bytes alone; everything else must be found without any key.
    const keys = name.endsWith('checkpoint') ? false : 'none';
    const frames = path.endsWith('.log') ? framesOf(path, bytes) : [];
    for (let at = 0; at < bytes.length; at++) {
      onByte?.(done++, total);
      const frame = sample && frames.find(([from, to]) => from <= at && at < to);
      for (let bit = 0; bit < 8; bit++) {
        const inFrame = frame && (done * 8 + bit) % sample.of !== sample.first % sample.of;
        bytes[at] = bytes[at]! ^ (1 << bit);
        const report = inFrame ? null : await check(image, log, { keys });
        const stands = report ? report.ok : await isFrame(path, bytes, frame!);
        bytes[at] = bytes[at]! ^ (1 << bit);
        if (report) whole++;
        if (stands) missed.push(`${name}@${at}.${bit}`);
        else if (report && !report.findings.some(({ place }) => namesPlace(place, name, at)))
          misplaced.push(`${name}@${at}.${bit}`);
      }
    }
  }
  return { bits: total * 8, whole, missed, misplaced };
}

async function isFrame(path: string, bytes: Uint8Array, [from, to]: [number, number]): Promise<boolean> {
  const file = await imageDisk({ directories: new Set(), files: new Map([[path, bytes]]) }).open(path, 'read');
  const window = new FileWindow(file, bytes.length, { windowBytes: to - from });
  return typeof (await frameAt(window, numberOf(path), from, bytes.length)) !== 'string';
}

function namesPlace(place: string, name: string, at: number): boolean {
  const [file, offset] = place.split('@');
  return file === name && (offset === undefined || Number(offset) <= at);
}

export interface Tampering {
  readonly name: string;
  readonly image: Image;
  /** Heads that somebody kept. */
  readonly held?: readonly string[];
  /** Bytes after the last entry look like an append that a crash cut short: they are reported, and nothing is lost. */
  readonly tailOnly?: boolean;
}

/** Everything but single bits. `other` is a log of the same length under the same keys. */
export function* tamperings(log: SealedLog, other: SealedLog, later: SealedLog): Generator<Tampering> {
  const { image } = log;
  const files = logFilesOf(image);
  const lastLog = files.filter(([path]) => path.endsWith('.log')).at(-1)![0];
  for (const [path, bytes] of files) {
    const name = path.slice(directory.length + 1);
    const put = (what: string, content: Uint8Array | null): Tampering => ({
      name: `${name}: ${what}`,
      image: withFile(image, path, content),
      tailOnly: path === lastLog && content !== null && Buffer.compare(content.subarray(0, bytes.length), bytes) === 0,
    });
    for (let length = 0; length < bytes.length; length++) yield put(`cut to ${length}`, bytes.subarray(0, length));
    // A crash may come between the first seal and the first checkpoint, so only then is a missing one no tampering.
    if (log.seals > 1 || !name.endsWith('checkpoint')) yield put('deleted', null);
    yield put('a byte longer', Buffer.concat([bytes, Uint8Array.of(1)]));
    const elsewhere = other.image.files.get(path);
    if (elsewhere) yield put('of another log', elsewhere);
    if (!name.endsWith('.log')) continue;
    const frames = framesOf(path, bytes);
    for (const [i, [from, to]] of frames.entries()) {
      yield put(`frame ${i} removed`, Buffer.concat([bytes.subarray(0, from), bytes.subarray(to)]));
      yield put(`frame ${i} zeroed`, Buffer.from(bytes).fill(0, from, to));
      yield put(`frame ${i} twice`, Buffer.concat([bytes.subarray(0, to), bytes.subarray(from)]));
      const next = frames[i + 1];
      if (next) {
        const [, end] = next;
        const swapped = [bytes.subarray(0, from), bytes.subarray(to, end), bytes.subarray(from, to), bytes.subarray(end)];
        yield put(`frames ${i} and ${i + 1} swapped`, Buffer.concat(swapped));
      }
      if (elsewhere && elsewhere.length > from) {
        yield put(`from ${from} on of another log`, Buffer.concat([bytes.subarray(0, from), elsewhere.subarray(from)]));
      }
    }
  }
  const forge = (change: Parameters<typeof withManifest>[2]): Image => withManifest(image, logDirectory, change);
  yield {
    name: 'a principal replaced, and everything unsigned made to fit',
    image: rechained(image, logDirectory, 'writer-1', 'writer-9'),
  };
  yield {
    name: 'a manifest with another root',
    image: forge((record, i) => (i === 0 ? { ...record, root: 'ab'.repeat(32) } : record)),
  };
  yield {
    name: 'a manifest with a shorter file',
    image: forge((record, i) => (i === 1 ? { ...record, length: record.length - 8 } : record)),
  };
  yield {
    name: 'a manifest with fewer leaves',
    image: forge((record, i) => (i === 1 ? { ...record, leaves: record.leaves - 1 } : record)),
  };
  const paths = files.map(([path]) => path);
  yield { name: 'the whole directory is older than a head that was kept', image, held: [later.checkpoint] };
  yield { name: 'another log under the same keys', image: other.image, held: [log.checkpoint] };
  const emptied: Image = {
    directories: image.directories,
    files: new Map([...image.files].filter(([path]) => !paths.includes(path))),
  };
  yield { name: 'no log at all, where a head was kept', image: emptied, held: [log.checkpoint] };
}

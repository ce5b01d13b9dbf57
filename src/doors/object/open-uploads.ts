/**
 * Uploads in parts: lost with the process, and ended a day after their last part. A completed one is remembered for an hour,
 * since a client that missed the answer completes it again.
 */
import type { Clock, Random } from '../../clock.ts';
import type { Caller } from '../../governance/caller.ts';
import type { Part } from '../../governance/writing/large-bodies.ts';
import type { ChecksumName } from './checksums.ts';
import type { ObjectMetadata } from './object-metadata.ts';
import { objectBytesMax, tooLarge } from './object-size.ts';
import { ObjectRefusal, s3Refusals } from './errors.ts';

export interface UploadedPart {
  readonly part: Part;
  readonly sha256: string;
  readonly checksums: ReadonlyMap<string, string>;
  readonly atMs: number;
}

/** The checksum that an upload was begun with: one over the checksums of its parts, or one over all of the body. */
export interface UploadChecksum {
  readonly algorithm: ChecksumName;
  readonly type: 'COMPOSITE' | 'FULL_OBJECT';
}

export interface UploadRequest {
  readonly bucket: string;
  readonly key: string;
  readonly facts: ObjectMetadata;
  readonly checksum: UploadChecksum | null;
}

export interface Upload extends UploadRequest {
  readonly id: string;
  readonly owner: string;
  readonly begunMs: number;
  readonly parts: Map<number, UploadedPart>;
  /** Bytes of parts that are on their way. */
  comingBytes: number;
  /** Whether some parts are copies of objects. */
  isCopied: boolean;
  lastMs: number;
  /** It is over, or is being completed: it takes no more parts. Resolves when the latter has ended, well or not. */
  ending: Promise<unknown> | null;
}

/** The result of a completed upload. */
export interface Completion {
  readonly version: bigint;
  readonly sha256: string;
  readonly checksums: ReadonlyMap<string, string>;
  /** The parts that it was made of, as they were named. */
  readonly named: string;
}

type Completed = Completion & Pick<Upload, 'bucket' | 'key' | 'owner'> & { readonly atMs: number };

/** Limits of one caller; the parts on disk count as stored bytes. */
const uploadsMax = 1_000;
const idleMs = 86_400_000;
const rememberedMs = 3_600_000;
const completedMax = 10_000;

/** Only its owner sees an upload, even if another caller knows its id. */
const ownerOf = ({ principal, tenant, path, branch }: Caller): string => JSON.stringify([principal, tenant, path, branch]);

export class OpenUploads {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #uploads = new Map<string, Upload>();
  /** Completed uploads, in the order of completion. */
  readonly #completed = new Map<string, Completed>();

  constructor({ clock, random }: { readonly clock: Clock; readonly random: Random }) {
    this.#clock = clock;
    this.#random = random;
  }

  begin(caller: Caller, request: UploadRequest): Upload {
    const owner = ownerOf(caller);
    let own = 0;
    for (const upload of this.#uploads.values()) if (upload.owner === owner) own++;
    if (own >= uploadsMax)
      throw new ObjectRefusal('SlowDown', 503, 'REL_QUEUE_FULL', `${uploadsMax} uploads are going on: complete or abort some`);
    const id = Buffer.from(this.#random.fill(new Uint8Array(24))).toString('base64url');
    const lastMs = this.#clock.monotonicMs();
    const begunMs = Number(this.#clock.now() / 1_000_000n);
    const upload = { ...request, id, owner, begunMs, lastMs, parts: new Map(), comingBytes: 0, isCopied: false, ending: null };
    this.#uploads.set(id, upload);
    return upload;
  }

  /** Throws NoSuchUpload for an upload of another caller or key, and for one that takes no more parts. */
  get(caller: Caller, id: string, bucket: string, key: string): Upload {
    const upload = this.#uploads.get(id);
    if (upload === undefined || upload.ending !== null || !isOf(upload, caller, bucket, key)) throw s3Refusals.noSuchUpload();
    upload.lastMs = this.#clock.monotonicMs();
    return upload;
  }

  /** The result of an upload that the caller completed within the last hour; waits for one that is being completed. */
  async findCompletion(caller: Caller, id: string, bucket: string, key: string): Promise<Completion | null> {
    const upload = this.#uploads.get(id);
    if (upload !== undefined && isOf(upload, caller, bucket, key)) await upload.ending;
    const completed = this.#completed.get(id);
    if (completed === undefined || !isOf(completed, caller, bucket, key)) return null;
    return this.#clock.monotonicMs() - completed.atMs > rememberedMs ? null : completed;
  }

  list(caller: Caller, bucket: string): Upload[] {
    const owner = ownerOf(caller);
    return [...this.#uploads.values()].filter((upload) => upload.owner === owner && upload.bucket === bucket);
  }

  /** Makes room for a part; returns what ends that. Throws EntityTooLarge as soon as all parts together are too large. */
  expect(upload: Upload, number: number, bytes: number): () => void {
    let all = upload.comingBytes + bytes;
    for (const [each, { part }] of upload.parts) if (each !== number) all += part.size;
    if (all > objectBytesMax) throw tooLarge();
    upload.comingBytes += bytes;
    return () => void (upload.comingBytes -= bytes);
  }

  async put(upload: Upload, number: number, part: UploadedPart): Promise<void> {
    if (upload.ending !== null) {
      await part.part.drop();
      throw s3Refusals.noSuchUpload();
    }
    const before = upload.parts.get(number);
    upload.parts.set(number, part);
    await before?.part.drop();
  }

  /** Takes no parts while it is being completed; afterwards it is over, or where that failed goes on. */
  async complete(upload: Upload, named: string, run: () => Promise<Omit<Completion, 'named'>>): Promise<Completion> {
    const running = run();
    upload.ending = running.then(ignore, ignore);
    try {
      const completion = { ...(await running), named };
      const { bucket, key, owner } = upload;
      this.#completed.set(upload.id, { ...completion, bucket, key, owner, atMs: this.#clock.monotonicMs() });
      this.#forget();
      await this.end(upload);
      return completion;
    } catch (error) {
      // The upload can be completed again, or aborted.
      if (this.#uploads.has(upload.id)) upload.ending = null;
      throw error;
    }
  }

  #forget(): void {
    const nowMs = this.#clock.monotonicMs();
    for (const [id, { atMs }] of this.#completed) {
      if (nowMs - atMs <= rememberedMs && this.#completed.size <= completedMax) break;
      this.#completed.delete(id);
    }
  }

  /** Ends uploads without a new part for a day. */
  async endIdle(): Promise<void> {
    const nowMs = this.#clock.monotonicMs();
    for (const upload of this.#uploads.values())
      if (nowMs - upload.lastMs > idleMs && upload.ending === null && upload.comingBytes === 0) await this.end(upload);
    this.#forget();
  }

  async end(upload: Upload): Promise<void> {
    upload.ending ??= Promise.resolve();
    this.#uploads.delete(upload.id);
    const parts = [...upload.parts.values()];
    upload.parts.clear();
    for (const { part } of parts) await part.drop();
  }

  async close(): Promise<void> {
    for (const upload of this.#uploads.values()) await this.end(upload);
  }
}

function isOf(upload: Pick<Upload, 'bucket' | 'key' | 'owner'>, caller: Caller, bucket: string, key: string): boolean {
  return upload.owner === ownerOf(caller) && upload.bucket === bucket && upload.key === key;
}

function ignore(): void {}

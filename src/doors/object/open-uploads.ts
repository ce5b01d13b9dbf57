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

type CompletedUpload = Completion & Pick<Upload, 'bucket' | 'key' | 'owner'> & { readonly atMs: number };

/** Limits of one caller; the parts on disk count as stored bytes. */
const openUploadsMax = 1_000;
const idleUploadMs = 86_400_000;
const completedUploadMs = 3_600_000;
const completedUploadsMax = 10_000;

/** Only its owner sees an upload, even if another caller knows its id. */
const uploadOwnerOf = ({ principal, tenant, path: callerPath, branch }: Caller): string =>
  JSON.stringify([principal, tenant, callerPath, branch]);

export class OpenUploads {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #uploads = new Map<string, Upload>();
  /** Completed uploads, in the order of completion. */
  readonly #completed = new Map<string, CompletedUpload>();

  constructor({ clock: uploadClock, random: uploadRandom }: { readonly clock: Clock; readonly random: Random }) {
    this.#clock = uploadClock;
    this.#random = uploadRandom;
  }

  begin(uploadCaller: Caller, uploadRequest: UploadRequest): Upload {
    const uploadOwner = uploadOwnerOf(uploadCaller);
    let ownUploads = 0;
    for (const openUpload of this.#uploads.values()) if (openUpload.owner === uploadOwner) ownUploads++;
    if (ownUploads >= openUploadsMax)
      throw new ObjectRefusal(
        'SlowDown',
        503,
        'REL_QUEUE_FULL',
        `${openUploadsMax} uploads are going on: complete or abort some`,
      );
    const uploadId = Buffer.from(this.#random.fill(new Uint8Array(24))).toString('base64url');
    const lastMs = this.#clock.monotonicMs();
    const begunMs = Number(this.#clock.now() / 1_000_000n);
    const upload = {
      ...uploadRequest,
      id: uploadId,
      owner: uploadOwner,
      begunMs,
      lastMs,
      parts: new Map(),
      comingBytes: 0,
      isCopied: false,
      ending: null,
    };
    this.#uploads.set(uploadId, upload);
    return upload;
  }

  /** Throws NoSuchUpload for an upload of another caller or key, and for one that takes no more parts. */
  get(uploadCaller: Caller, uploadId: string, bucketName: string, objectName: string): Upload {
    const openUpload = this.#uploads.get(uploadId);
    if (openUpload === undefined || openUpload.ending !== null || !isUploadOf(openUpload, uploadCaller, bucketName, objectName))
      throw s3Refusals.noSuchUpload();
    openUpload.lastMs = this.#clock.monotonicMs();
    return openUpload;
  }

  /** The result of an upload that the caller completed within the last hour; waits for one that is being completed. */
  async findCompletion(
    uploadCaller: Caller,
    uploadId: string,
    bucketName: string,
    objectName: string,
  ): Promise<Completion | null> {
    const openUpload = this.#uploads.get(uploadId);
    if (openUpload !== undefined && isUploadOf(openUpload, uploadCaller, bucketName, objectName)) await openUpload.ending;
    const completedUpload = this.#completed.get(uploadId);
    if (completedUpload === undefined || !isUploadOf(completedUpload, uploadCaller, bucketName, objectName)) return null;
    return this.#clock.monotonicMs() - completedUpload.atMs > completedUploadMs ? null : completedUpload;
  }

  list(uploadCaller: Caller, bucketName: string): Upload[] {
    const uploadOwner = uploadOwnerOf(uploadCaller);
    return [...this.#uploads.values()].filter(
      (listedUpload) => listedUpload.owner === uploadOwner && listedUpload.bucket === bucketName,
    );
  }

  /** Makes room for a part; returns what ends that. Throws EntityTooLarge as soon as all parts together are too large. */
  expect(openUpload: Upload, partNumber: number, comingBytes: number): () => void {
    let uploadBytes = openUpload.comingBytes + comingBytes;
    for (const [otherPartNumber, { part: otherPart }] of openUpload.parts)
      if (otherPartNumber !== partNumber) uploadBytes += otherPart.size;
    if (uploadBytes > objectBytesMax) throw tooLarge();
    openUpload.comingBytes += comingBytes;
    return () => void (openUpload.comingBytes -= comingBytes);
  }

  async put(openUpload: Upload, partNumber: number, uploadedPart: UploadedPart): Promise<void> {
    if (openUpload.ending !== null) {
      await uploadedPart.part.drop();
      throw s3Refusals.noSuchUpload();
    }
    const replacedPart = openUpload.parts.get(partNumber);
    openUpload.parts.set(partNumber, uploadedPart);
    await replacedPart?.part.drop();
  }

  /** Takes no parts while it is being completed; afterwards it is over, or where that failed goes on. */
  async complete(
    openUpload: Upload,
    partsIdentity: string,
    runCompletion: () => Promise<Omit<Completion, 'named'>>,
  ): Promise<Completion> {
    const runningCompletion = runCompletion();
    openUpload.ending = runningCompletion.then(ignoreOutcome, ignoreOutcome);
    try {
      const uploadCompletion = { ...(await runningCompletion), named: partsIdentity };
      const { bucket, key, owner } = openUpload;
      this.#completed.set(openUpload.id, { ...uploadCompletion, bucket, key, owner, atMs: this.#clock.monotonicMs() });
      this.#forget();
      await this.end(openUpload);
      return uploadCompletion;
    } catch (completionError) {
      // The upload can be completed again, or aborted.
      if (this.#uploads.has(openUpload.id)) openUpload.ending = null;
      throw completionError;
    }
  }

  #forget(): void {
    const clockNowMs = this.#clock.monotonicMs();
    for (const [uploadId, { atMs }] of this.#completed) {
      if (clockNowMs - atMs <= completedUploadMs && this.#completed.size <= completedUploadsMax) break;
      this.#completed.delete(uploadId);
    }
  }

  /** Ends uploads without a new part for a day. */
  async endIdle(): Promise<void> {
    const clockNowMs = this.#clock.monotonicMs();
    for (const idleUpload of this.#uploads.values())
      if (clockNowMs - idleUpload.lastMs > idleUploadMs && idleUpload.ending === null && idleUpload.comingBytes === 0)
        await this.end(idleUpload);
    this.#forget();
  }

  async end(endedUpload: Upload): Promise<void> {
    endedUpload.ending ??= Promise.resolve();
    this.#uploads.delete(endedUpload.id);
    const droppedParts = [...endedUpload.parts.values()];
    endedUpload.parts.clear();
    for (const { part: droppedPart } of droppedParts) await droppedPart.drop();
  }

  async close(): Promise<void> {
    for (const openUpload of this.#uploads.values()) await this.end(openUpload);
  }
}

function isUploadOf(
  uploadFacts: Pick<Upload, 'bucket' | 'key' | 'owner'>,
  uploadCaller: Caller,
  bucketName: string,
  objectName: string,
): boolean {
  return uploadFacts.owner === uploadOwnerOf(uploadCaller) && uploadFacts.bucket === bucketName && uploadFacts.key === objectName;
}

function ignoreOutcome(): void {}

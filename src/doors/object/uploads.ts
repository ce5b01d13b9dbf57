/** Uploads in parts, while they go on: lost with the process, and given up a day after their last part. */
import type { Clock, Random } from '../../clock.ts';
import type { Caller } from '../../governance/caller.ts';
import type { Part } from '../../governance/large-bodies.ts';
import type { ObjectFacts } from './object-facts.ts';
import { ObjectRefusal, refusals } from './refusal.ts';

export interface UploadedPart {
  readonly part: Part;
  readonly sha256: string;
  readonly checksums: ReadonlyMap<string, string>;
  readonly atMs: number;
}

export interface Upload {
  readonly id: string;
  readonly bucket: string;
  readonly key: string;
  readonly facts: ObjectFacts;
  readonly owner: string;
  readonly parts: Map<number, UploadedPart>;
  lastMs: number;
  /** It is being completed, or is over: it takes no more parts. */
  closed: boolean;
}

const uploadsMax = 1_000;
const idleMs = 86_400_000;

/** Whoever else knows the id of an upload is shown none. */
const ownerOf = ({ principal, tenant, path, branch }: Caller): string => JSON.stringify([principal, tenant, path, branch]);

export class Uploads {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #uploads = new Map<string, Upload>();

  constructor({ clock, random }: { readonly clock: Clock; readonly random: Random }) {
    this.#clock = clock;
    this.#random = random;
  }

  async begin(caller: Caller, bucket: string, key: string, facts: ObjectFacts): Promise<Upload> {
    const nowMs = this.#clock.monotonicMs();
    for (const upload of this.#uploads.values()) if (nowMs - upload.lastMs > idleMs && !upload.closed) await this.end(upload);
    if (this.#uploads.size >= uploadsMax)
      throw new ObjectRefusal('SlowDown', 503, 'REL_QUEUE_FULL', `${uploadsMax} uploads are going on: complete or abort some`);
    const id = Buffer.from(this.#random.fill(new Uint8Array(24))).toString('base64url');
    const upload = { id, bucket, key, facts, owner: ownerOf(caller), parts: new Map(), lastMs: nowMs, closed: false };
    this.#uploads.set(id, upload);
    return upload;
  }

  /** Throws NoSuchUpload for what is not the caller's, or not of this key. */
  find(caller: Caller, id: string, bucket: string, key: string): Upload {
    const upload = this.#uploads.get(id);
    const own = upload !== undefined && upload.owner === ownerOf(caller) && upload.bucket === bucket && upload.key === key;
    if (!own || upload.closed) throw refusals.noSuchUpload();
    upload.lastMs = this.#clock.monotonicMs();
    return upload;
  }

  async put(upload: Upload, number: number, part: UploadedPart): Promise<void> {
    if (upload.closed) {
      await part.part.drop();
      throw refusals.noSuchUpload();
    }
    const before = upload.parts.get(number);
    upload.parts.set(number, part);
    await before?.part.drop();
  }

  async end(upload: Upload): Promise<void> {
    upload.closed = true;
    this.#uploads.delete(upload.id);
    for (const { part } of upload.parts.values()) await part.drop();
    upload.parts.clear();
  }

  async close(): Promise<void> {
    for (const upload of this.#uploads.values()) await this.end(upload);
  }
}

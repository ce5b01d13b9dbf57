/**
 * Frames opened beside the event loop: checksum, payload digests, decryption, LZ4 and the whole check of each body, for a window
 * of frames at a time. An entry that the reply vouches for needs no second check; any other, for whatever cause, the caller
 * checks once more in its own turn and finds the reason there. So a job can only save time: verdicts and their words are made in
 * one place.
 *
 * Frames lie in shared memory. Bodies are laid one after the other into a buffer that goes back and forth. Rows that are
 * sealed by subject come back as they are without sections, erased ones dropped; which keys they need shows once a body is
 * open, so a window whose keys are not all known is asked about twice.
 */
import type { KeyObject } from 'node:crypto';
import { ServiceError } from '../../errors.ts';
import { encodeBody, subjectKeysOf } from '../entries/body-codec.ts';
import type { SubjectOpener } from '../entries/rows-codec.ts';
import { ByteWriter } from '../bytes/byte-stream.ts';
import { SECRET_BYTES } from '../entries/section-memory.ts';
import { KEY_ID_BYTES, keyNames } from '../entries/subject-sections.ts';
import {
  type BodyKeys,
  checkDigest,
  decodeLeaf,
  decodeOpened,
  type OpenedEntry,
  openPayload,
  payloadKey,
} from '../entries/entry-codec.ts';
import { ENTRY_HEADER_BYTES, FRAME_HEADER_BYTES, type FrameHeader, frameEntries, frameIsWhole } from './log-file.ts';
import type { Job, StartWorker, Worker } from '../threads/workers.ts';

/** How bodies are opened beside the event loop. */
export interface BackgroundOpening {
  readonly startWorker: StartWorker;
  /** Where there is less than this to read, all is done in the turn. */
  readonly bytesMin: number;
  /** Bytes read and opened at a time. */
  readonly windowBytes?: number;
  /** Overwrites bodies that are no longer valid: a reader that still holds one reads nonsense, which tests notice. */
  readonly poison?: boolean;
}

/** Starting a worker takes as long as reading so much. */
export const OPEN_BESIDE_BYTES_MIN = 8 << 20;

/** A frame as it was read, looked at no further than its header. */
export interface ReadFrame {
  readonly header: FrameHeader;
  readonly bytes: Uint8Array;
}

export interface OpenRequest {
  /** Shared, where another thread is asked. */
  readonly source: ArrayBufferLike;
  /** Offset in `source`, size and entries of one frame after the other. */
  readonly frames: Float64Array;
  /** Data keys that have not been sent before. */
  readonly keys: readonly (readonly [number, KeyObject])[];
  /** Keys of subjects. */
  readonly subjectKeys: HandedSubjectKeys | null;
  /** The root over the rows is computed again. */
  readonly rows: boolean;
  /** Bodies are handed back. Null: not asked for. */
  readonly bodies: SharedArrayBuffer | null;
}

/** Ids of 16 bytes each, a byte each that is 1 where there is a key, and 32 bytes for it. */
interface HandedSubjectKeys {
  readonly ids: Uint8Array;
  readonly has: Uint8Array;
  readonly secrets: Uint8Array;
}

export interface OpenReply {
  /** Per entry: where its body begins, how long it is, and how many rows are erased; -1 where its content is not vouched for. */
  readonly bodyRanges: Int32Array;
  /** Ids of keys of subjects that were not handed over, 16 bytes each: entries that need one are not vouched for. */
  readonly missing: Uint8Array;
  /** The buffer that was handed over, or a larger one. */
  readonly bodies: SharedArrayBuffer | null;
}

const NOTHING = -1;
const PLACE_FIELDS = 3;
const ALIGNMENT = 8;

export const openJob: Job<null, OpenRequest, OpenReply> = {
  module: import.meta.url,
  name: 'openJob',
  begin() {
    const keys = new HandedKeys();
    return (request) => {
      keys.add(request);
      return openFrames(request, keys, (id) => keys.has(id));
    };
  },
};

/** The keys handed to a thread. */
class HandedKeys implements BodyKeys {
  readonly #keys = new Map<number, KeyObject>();
  /** Null: destroyed. */
  readonly #subjectKeys = new Map<string, Uint8Array | null>();

  add({ keys, subjectKeys }: OpenRequest): void {
    for (const [id, key] of keys) this.#keys.set(id, key);
    if (!subjectKeys) return;
    const { ids, has, secrets } = subjectKeys;
    for (const [i, name] of keyNames(ids).entries()) {
      this.#subjectKeys.set(name, has[i] === 1 ? secrets.subarray(i * SECRET_BYTES, (i + 1) * SECRET_BYTES) : null);
    }
  }

  open(id: number): KeyObject {
    const key = this.#keys.get(id);
    if (!key) throw new ServiceError('REL_STORAGE', `data key ${id} was not handed over`);
    return key;
  }

  readonly subjects: SubjectOpener = {
    copyKey: (id, target, at) => {
      const secret = this.#subjectKeys.get(keyNames(id)[0]!) ?? null;
      if (secret) target.set(secret, at);
      return secret !== null;
    },
  };

  has(subjectKey: string): boolean {
    return this.#subjectKeys.has(subjectKey);
  }
}

/** Entry `i` of those that were asked about is in order. */
export function vouches(reply: OpenReply | null, i: number): boolean {
  return reply !== null && reply.bodyRanges[i * PLACE_FIELDS]! !== NOTHING;
}

/** Erased rows of entry i, which must be in order. */
export function erasedRows(reply: OpenReply, i: number): number {
  return reply.bodyRanges[i * PLACE_FIELDS + 2]!;
}

export function bodyAt({ bodyRanges, bodies }: OpenReply, i: number): Uint8Array {
  return new Uint8Array(bodies!, bodyRanges[i * PLACE_FIELDS]!, bodyRanges[i * PLACE_FIELDS + 1]!);
}

/** A request for frames of one buffer, without keys. */
export function requestFor(frames: readonly ReadFrame[], rows: boolean): OpenRequest {
  const list = new Float64Array(frames.length * 3);
  frames.forEach(({ header, bytes }, i) => {
    list[i * 3] = bytes.byteOffset;
    list[i * 3 + 1] = bytes.length;
    list[i * 3 + 2] = header.entries;
  });
  return { source: frames[0]!.bytes.buffer, frames: list, keys: [], subjectKeys: null, rows, bodies: null };
}

/** `has`: whether the key of a subject was handed over, where keys are. */
export function openFrames(
  { source, frames, rows, bodies }: OpenRequest,
  keys: BodyKeys,
  has: (subjectKey: string) => boolean = () => true,
): OpenReply {
  let entries = 0;
  for (let i = 0; i < frames.length; i += 3) entries += frames[i + 2]!;
  const bodyRanges = new Int32Array(entries * PLACE_FIELDS).fill(NOTHING);
  const missing = new Set<string>();
  const opened: Uint8Array[] = [];
  let size = 0;
  let entry = 0;
  for (let i = 0; i < frames.length; i += 3) {
    const bytes = new Uint8Array(source, frames[i]!, frames[i + 1]!);
    const count = frames[i + 2]!;
    for (const [k, openedBody] of openFrame(bytes, count, rows, keys, has).entries()) {
      if (openedBody === null) continue;
      if ('missing' in openedBody) {
        for (const id of openedBody.missing) missing.add(id);
        continue;
      }
      const { body, erased } = openedBody;
      bodyRanges.set([size, body.length, erased], (entry + k) * PLACE_FIELDS);
      if (bodies) opened.push(body);
      size += Math.ceil(body.length / ALIGNMENT) * ALIGNMENT;
    }
    entry += count;
  }
  if (!bodies) return { bodyRanges, missing: idsOf(missing), bodies: null };
  const target = bodies.byteLength >= size ? bodies : new SharedArrayBuffer(Math.ceil(size * 1.25));
  let at = 0;
  for (const body of opened) {
    new Uint8Array(target, at, body.length).set(body);
    at += Math.ceil(body.length / ALIGNMENT) * ALIGNMENT;
  }
  return { bodyRanges, missing: idsOf(missing), bodies: target };
}

function idsOf(names: ReadonlySet<string>): Uint8Array {
  return Uint8Array.from(Buffer.from([...names].join(''), 'latin1'));
}

/** Null: nothing is vouched for. */
type Found = { readonly body: Uint8Array; readonly erased: number } | { readonly missing: readonly string[] } | null;

function openFrame(
  bytes: Uint8Array,
  count: number,
  rows: boolean,
  keys: BodyKeys,
  has: (subjectKey: string) => boolean,
): Found[] {
  try {
    if (!frameIsWhole(bytes)) return [];
    return frameEntries(bytes, { entries: count }).map(({ leaf, payload, redacted }) => {
      try {
        const facts = decodeLeaf(leaf);
        // Vectors may lie under keys of subjects, which only the caller has at hand.
        if (facts.kind === 'embedding') return null;
        checkDigest(facts, payload, redacted);
        const body = openPayload(payload, keys);
        const missing = keyNames(subjectKeysOf(body)).filter((id) => !has(id));
        if (missing.length > 0) return { missing };
        return openedBody(body, decodeOpened(facts, body, { redacted, rows }, keys.subjects));
      } catch {
        return null;
      }
    });
  } catch {
    return [];
  }
}

/** Without sections, which whoever asked has no need to open once more. */
function openedBody(body: Uint8Array, { entry, parts }: OpenedEntry): Found {
  if (parts.every(({ sealed }) => sealed === null)) return { body, erased: 0 };
  const plain = new ByteWriter(body.length);
  encodeBody(
    entry.body,
    parts.map(({ secrets }) => secrets),
    plain,
  );
  return { body: plain.view(), erased: parts.reduce((sum, part) => sum + (part.body.dropped?.length ?? 0), 0) };
}

/** Asks a worker to open windows of frames, and hands it the keys that it needs. */
export class FrameOpener {
  readonly #worker: Worker<OpenRequest, OpenReply>;
  readonly #keyring: BodyKeys;
  readonly #rows: boolean;
  readonly #sent = new Set<number>();
  #asked = 0;

  constructor(startWorker: StartWorker, keyring: BodyKeys, rows: boolean) {
    this.#worker = startWorker(openJob, null);
    this.#keyring = keyring;
    this.#rows = rows;
  }

  /** Windows that were asked for and not answered. */
  get asked(): number {
    return this.#asked;
  }

  /** The frames lie in one shared buffer. A worker that has ended vouches for nothing. */
  async open(frames: readonly ReadFrame[], bodies: SharedArrayBuffer | null): Promise<OpenReply> {
    const keys: [number, KeyObject][] = [];
    for (const { header, bytes } of frames) this.#addKeys(bytes, header.entries, keys);
    const request = requestFor(frames, this.#rows);
    this.#asked++;
    try {
      const reply = await this.#worker.ask({ ...request, keys, bodies });
      const subjectKeys = this.#subjectKeys(reply.missing);
      return subjectKeys === null ? reply : await this.#worker.ask({ ...request, subjectKeys, bodies: reply.bodies });
    } finally {
      this.#asked--;
    }
  }

  end(): Promise<void> {
    return this.#worker.end();
  }

  /** Null where none of them is here: opening a body whose key is lost reports the loss. */
  #subjectKeys(missing: Uint8Array): HandedSubjectKeys | null {
    const count = missing.length / KEY_ID_BYTES;
    const ids: number[] = [];
    const has = new Uint8Array(count);
    const secrets = new Uint8Array(count * SECRET_BYTES);
    let missingKeys = 0;
    for (let at = 0; at < missing.length; at += KEY_ID_BYTES) {
      const id = missing.subarray(at, at + KEY_ID_BYTES);
      try {
        has[missingKeys] = this.#keyring.subjects.copyKey(id, secrets, missingKeys * SECRET_BYTES) ? 1 : 0;
      } catch (cause) {
        if (!(cause instanceof ServiceError)) throw cause;
        continue;
      }
      ids.push(...id);
      missingKeys++;
    }
    return missingKeys === 0 ? null : { ids: Uint8Array.from(ids), has, secrets };
  }

  /** Adds keys that payloads of a frame name and that were not sent yet, as far as the unchecked frame can be read. */
  #addKeys(bytes: Uint8Array, entries: number, keys: [number, KeyObject][]): void {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    for (let left = entries, at = FRAME_HEADER_BYTES; left > 0 && at + ENTRY_HEADER_BYTES <= bytes.length; left--) {
      const payload = at + ENTRY_HEADER_BYTES + view.getUint32(at, true);
      const id = payloadKey(bytes, payload);
      if (id !== null && !this.#sent.has(id)) {
        this.#sent.add(id);
        try {
          keys.push([id, this.#keyring.open(id)]);
        } catch (cause) {
          // The key is missing: opening the payload reports it.
          if (!(cause instanceof ServiceError)) throw cause;
        }
      }
      at = payload + view.getUint32(at + 4, true);
    }
  }
}

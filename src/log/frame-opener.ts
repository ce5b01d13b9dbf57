/**
 * Frames opened beside the event loop: checksum, payload digests, decryption, LZ4 and the whole check of each body, for a
 * window of frames at a time. What the reply vouches for needs no second look; what it does not vouch for, whatever the
 * cause, whoever asked looks at once more in its own turn and finds the reason there. So a job can only save time: verdicts
 * and their words are made in one place.
 *
 * Frames lie in shared memory. Bodies are laid one after the other into a buffer that goes back and forth.
 */
import type { KeyObject } from 'node:crypto';
import { ServiceError } from '../errors.ts';
import { checkDigest, decodeLeaf, decodeOpened, openPayload, payloadKey } from './entry-codec.ts';
import type { Keyring } from './keys.ts';
import { ENTRY_HEADER_BYTES, FRAME_HEADER_BYTES, type FrameHeader, frameEntries, frameIsWhole } from './log-file.ts';
import type { Job, StartWorker, Worker } from './workers.ts';

/** How bodies are opened beside the event loop. */
export interface OpenBeside {
  readonly startWorker: StartWorker;
  /** Where there is less than this to read, all is done in the turn. */
  readonly bytesMin: number;
  /** What is read, and opened, at a time. */
  readonly windowBytes?: number;
  /** Overwrites bodies when they are no longer valid: who holds on to them then reads nonsense, which tests notice. */
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
  /** The root over the rows is computed again. */
  readonly rows: boolean;
  /** Bodies are handed back. Null: not asked for. */
  readonly bodies: SharedArrayBuffer | null;
}

export interface OpenReply {
  /** Of entry after entry: where its body begins, and how long it is; -1 where nothing is vouched for. */
  readonly places: Int32Array;
  /** Those that were handed over, or larger ones. */
  readonly bodies: SharedArrayBuffer | null;
}

const NOTHING = -1;
const ALIGNMENT = 8;

export const openJob: Job<null, OpenRequest, OpenReply> = {
  module: import.meta.url,
  name: 'openJob',
  begin() {
    const keys = new Map<number, KeyObject>();
    const open = (id: number): KeyObject => {
      const key = keys.get(id);
      if (!key) throw new ServiceError('REL_STORAGE', `data key ${id} was not handed over`);
      return key;
    };
    return (request) => {
      for (const [id, key] of request.keys) keys.set(id, key);
      return openFrames(request, { open });
    };
  },
};

/** Entry `i` of those that were asked about is in order. */
export function vouches(reply: OpenReply | null, i: number): boolean {
  return reply !== null && reply.places[i * 2]! !== NOTHING;
}

/** A request for frames of one buffer, without keys. */
export function requestFor(frames: readonly ReadFrame[], rows: boolean): OpenRequest {
  const list = new Float64Array(frames.length * 3);
  frames.forEach(({ header, bytes }, i) => {
    list[i * 3] = bytes.byteOffset;
    list[i * 3 + 1] = bytes.length;
    list[i * 3 + 2] = header.entries;
  });
  return { source: frames[0]!.bytes.buffer, frames: list, keys: [], rows, bodies: null };
}

export function openFrames({ source, frames, rows, bodies }: OpenRequest, keyring: Pick<Keyring, 'open'>): OpenReply {
  let entries = 0;
  for (let i = 0; i < frames.length; i += 3) entries += frames[i + 2]!;
  const places = new Int32Array(entries * 2).fill(NOTHING);
  const opened: Uint8Array[] = [];
  let size = 0;
  let entry = 0;
  for (let i = 0; i < frames.length; i += 3) {
    const bytes = new Uint8Array(source, frames[i]!, frames[i + 1]!);
    const count = frames[i + 2]!;
    for (const [k, body] of openFrame(bytes, count, rows, keyring).entries()) {
      if (!body) continue;
      places[(entry + k) * 2] = size;
      places[(entry + k) * 2 + 1] = body.length;
      if (bodies) opened.push(body);
      size += Math.ceil(body.length / ALIGNMENT) * ALIGNMENT;
    }
    entry += count;
  }
  if (!bodies) return { places, bodies: null };
  const target = bodies.byteLength >= size ? bodies : new SharedArrayBuffer(Math.ceil(size * 1.25));
  let at = 0;
  for (const body of opened) {
    new Uint8Array(target, at, body.length).set(body);
    at += Math.ceil(body.length / ALIGNMENT) * ALIGNMENT;
  }
  return { places, bodies: target };
}

function openFrame(bytes: Uint8Array, count: number, rows: boolean, keyring: Pick<Keyring, 'open'>): (Uint8Array | null)[] {
  try {
    if (!frameIsWhole(bytes)) return [];
    return frameEntries(bytes, { entries: count }).map(({ leaf, payload, redacted }) => {
      try {
        const facts = decodeLeaf(leaf);
        checkDigest(facts, payload, redacted);
        const body = openPayload(payload, keyring);
        decodeOpened(facts, body, { redacted, rows });
        return body;
      } catch {
        return null;
      }
    });
  } catch {
    return [];
  }
}

/** Asks a worker to open windows of frames, and hands it the keys that it needs. */
export class FrameOpener {
  readonly #worker: Worker<OpenRequest, OpenReply>;
  readonly #keyring: Keyring;
  readonly #rows: boolean;
  readonly #sent = new Set<number>();
  #asked = 0;

  constructor(startWorker: StartWorker, keyring: Keyring, rows: boolean) {
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
    this.#asked++;
    try {
      return await this.#worker.ask({ ...requestFor(frames, this.#rows), keys, bodies });
    } finally {
      this.#asked--;
    }
  }

  end(): Promise<void> {
    return this.#worker.end();
  }

  /** Keys that payloads of a frame name and that were not sent yet: as far as the frame, which nobody has checked, tells. */
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
          // A key that is not there: whoever opens the payload says so.
          if (!(cause instanceof ServiceError)) throw cause;
        }
      }
      at = payload + view.getUint32(at + 4, true);
    }
  }
}

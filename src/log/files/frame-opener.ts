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

const NOT_OPENED = -1;
const BODY_RANGE_FIELDS = 3;
const BODY_ALIGNMENT = 8;

export const openJob: Job<null, OpenRequest, OpenReply> = {
  module: import.meta.url,
  name: 'openJob',
  begin() {
    const keys = new HandedDataKeys();
    return (request) => {
      keys.add(request);
      return openFrames(request, keys, (id) => keys.has(id));
    };
  },
};

/** The keys handed to a thread. */
class HandedDataKeys implements BodyKeys {
  readonly #handedDataKeys = new Map<number, KeyObject>();
  /** Null: destroyed. */
  readonly #handedSubjectKeys = new Map<string, Uint8Array | null>();

  add({ keys, subjectKeys }: OpenRequest): void {
    for (const [id, key] of keys) this.#handedDataKeys.set(id, key);
    if (!subjectKeys) return;
    const { ids, has, secrets } = subjectKeys;
    for (const [i, subjectKeyName] of keyNames(ids).entries()) {
      this.#handedSubjectKeys.set(
        subjectKeyName,
        has[i] === 1 ? secrets.subarray(i * SECRET_BYTES, (i + 1) * SECRET_BYTES) : null,
      );
    }
  }

  open(id: number): KeyObject {
    const dataKey = this.#handedDataKeys.get(id);
    if (!dataKey) throw new ServiceError('REL_STORAGE', `data key ${id} was not handed over`);
    return dataKey;
  }

  readonly subjects: SubjectOpener = {
    copyKey: (id, target, at) => {
      const secret = this.#handedSubjectKeys.get(keyNames(id)[0]!) ?? null;
      if (secret) target.set(secret, at);
      return secret !== null;
    },
  };

  has(subjectKey: string): boolean {
    return this.#handedSubjectKeys.has(subjectKey);
  }
}

/** Entry `entryInWindow` of those that were asked about is in order. */
export function vouches(openReply: OpenReply | null, entryInWindow: number): boolean {
  return openReply !== null && openReply.bodyRanges[entryInWindow * BODY_RANGE_FIELDS]! !== NOT_OPENED;
}

/** Erased rows of entry i, which must be in order. */
export function erasedRows(openReply: OpenReply, entryInWindow: number): number {
  return openReply.bodyRanges[entryInWindow * BODY_RANGE_FIELDS + 2]!;
}

export function bodyAt({ bodyRanges, bodies }: OpenReply, entryInWindow: number): Uint8Array {
  return new Uint8Array(
    bodies!,
    bodyRanges[entryInWindow * BODY_RANGE_FIELDS]!,
    bodyRanges[entryInWindow * BODY_RANGE_FIELDS + 1]!,
  );
}

/** A request for frames of one buffer, without keys. */
export function requestFor(readFrames: readonly ReadFrame[], checksRows: boolean): OpenRequest {
  const frameRanges = new Float64Array(readFrames.length * 3);
  readFrames.forEach(({ header, bytes }, i) => {
    frameRanges[i * 3] = bytes.byteOffset;
    frameRanges[i * 3 + 1] = bytes.length;
    frameRanges[i * 3 + 2] = header.entries;
  });
  return {
    source: readFrames[0]!.bytes.buffer,
    frames: frameRanges,
    keys: [],
    subjectKeys: null,
    rows: checksRows,
    bodies: null,
  };
}

/** `hasSubjectKey`: whether the key of a subject was handed over, where keys are. */
export function openFrames(
  { source: frameMemory, frames: frameRanges, rows: checksRows, bodies }: OpenRequest,
  bodyKeys: BodyKeys,
  hasSubjectKey: (subjectKey: string) => boolean = () => true,
): OpenReply {
  let entryCount = 0;
  for (let i = 0; i < frameRanges.length; i += 3) entryCount += frameRanges[i + 2]!;
  const bodyRanges = new Int32Array(entryCount * BODY_RANGE_FIELDS).fill(NOT_OPENED);
  const missingSubjectKeys = new Set<string>();
  const openedBodies: Uint8Array[] = [];
  let bodiesSize = 0;
  let firstEntry = 0;
  for (let i = 0; i < frameRanges.length; i += 3) {
    const frameBytes = new Uint8Array(frameMemory, frameRanges[i]!, frameRanges[i + 1]!);
    const frameEntryCount = frameRanges[i + 2]!;
    for (const [k, openedBody] of openFrameBodies(frameBytes, frameEntryCount, checksRows, bodyKeys, hasSubjectKey).entries()) {
      if (openedBody === null) continue;
      if ('missing' in openedBody) {
        for (const id of openedBody.missing) missingSubjectKeys.add(id);
        continue;
      }
      const { body: openedFrameBody, erased } = openedBody;
      bodyRanges.set([bodiesSize, openedFrameBody.length, erased], (firstEntry + k) * BODY_RANGE_FIELDS);
      if (bodies) openedBodies.push(openedFrameBody);
      bodiesSize += Math.ceil(openedFrameBody.length / BODY_ALIGNMENT) * BODY_ALIGNMENT;
    }
    firstEntry += frameEntryCount;
  }
  if (!bodies) return { bodyRanges, missing: subjectKeyIdsOf(missingSubjectKeys), bodies: null };
  const bodiesMemory = bodies.byteLength >= bodiesSize ? bodies : new SharedArrayBuffer(Math.ceil(bodiesSize * 1.25));
  let bodyOffset = 0;
  for (const body of openedBodies) {
    new Uint8Array(bodiesMemory, bodyOffset, body.length).set(body);
    bodyOffset += Math.ceil(body.length / BODY_ALIGNMENT) * BODY_ALIGNMENT;
  }
  return { bodyRanges, missing: subjectKeyIdsOf(missingSubjectKeys), bodies: bodiesMemory };
}

function subjectKeyIdsOf(names: ReadonlySet<string>): Uint8Array {
  return Uint8Array.from(Buffer.from([...names].join(''), 'latin1'));
}

/** Null: nothing is vouched for. */
type OpenedBody = { readonly body: Uint8Array; readonly erased: number } | { readonly missing: readonly string[] } | null;

function openFrameBodies(
  frameBytes: Uint8Array,
  frameEntryCount: number,
  checksRows: boolean,
  bodyKeys: BodyKeys,
  hasSubjectKey: (subjectKey: string) => boolean,
): OpenedBody[] {
  try {
    if (!frameIsWhole(frameBytes)) return [];
    return frameEntries(frameBytes, { entries: frameEntryCount }).map(({ leaf, payload, redacted }) => {
      try {
        const leafFields = decodeLeaf(leaf);
        // Vectors may lie under keys of subjects, which only the caller has at hand.
        if (leafFields.kind === 'embedding') return null;
        checkDigest(leafFields, payload, redacted);
        const payloadBody = openPayload(payload, bodyKeys);
        const missingKeyIds = keyNames(subjectKeysOf(payloadBody)).filter((id) => !hasSubjectKey(id));
        if (missingKeyIds.length > 0) return { missing: missingKeyIds };
        return plainBodyOf(payloadBody, decodeOpened(leafFields, payloadBody, { redacted, rows: checksRows }, bodyKeys.subjects));
      } catch {
        return null;
      }
    });
  } catch {
    return [];
  }
}

/** Without sections, which whoever asked has no need to open once more. */
function plainBodyOf(body: Uint8Array, { entry, parts }: OpenedEntry): OpenedBody {
  if (parts.every(({ sealed }) => sealed === null)) return { body, erased: 0 };
  const plainWriter = new ByteWriter(body.length);
  encodeBody(
    entry.body,
    parts.map(({ secrets }) => secrets),
    plainWriter,
  );
  return { body: plainWriter.view(), erased: parts.reduce((sum, part) => sum + (part.body.dropped?.length ?? 0), 0) };
}

/** Asks a worker to open windows of frames, and hands it the keys that it needs. */
export class FrameOpener {
  readonly #openWorker: Worker<OpenRequest, OpenReply>;
  readonly #bodyKeyring: BodyKeys;
  readonly #checksRows: boolean;
  readonly #sentDataKeys = new Set<number>();
  #requestCount = 0;

  constructor(startWorker: StartWorker, bodyKeyring: BodyKeys, checksRows: boolean) {
    this.#openWorker = startWorker(openJob, null);
    this.#bodyKeyring = bodyKeyring;
    this.#checksRows = checksRows;
  }

  /** Windows that were asked for and not answered. */
  get requestCount(): number {
    return this.#requestCount;
  }

  /** The frames lie in one shared buffer. A worker that has ended vouches for nothing. */
  async open(readFrames: readonly ReadFrame[], bodiesMemory: SharedArrayBuffer | null): Promise<OpenReply> {
    const dataKeysToSend: [number, KeyObject][] = [];
    for (const { header, bytes } of readFrames) this.#addDataKeys(bytes, header.entries, dataKeysToSend);
    const openRequest = requestFor(readFrames, this.#checksRows);
    this.#requestCount++;
    try {
      const openReply = await this.#openWorker.ask({ ...openRequest, keys: dataKeysToSend, bodies: bodiesMemory });
      const subjectKeys = this.#missingSubjectKeys(openReply.missing);
      return subjectKeys === null
        ? openReply
        : await this.#openWorker.ask({ ...openRequest, subjectKeys, bodies: openReply.bodies });
    } finally {
      this.#requestCount--;
    }
  }

  end(): Promise<void> {
    return this.#openWorker.end();
  }

  /** Null where none of them is here: opening a body whose key is lost reports the loss. */
  #missingSubjectKeys(missingKeyIds: Uint8Array): HandedSubjectKeys | null {
    const missingCount = missingKeyIds.length / KEY_ID_BYTES;
    const foundKeyIds: number[] = [];
    const hasSubjectKey = new Uint8Array(missingCount);
    const subjectSecrets = new Uint8Array(missingCount * SECRET_BYTES);
    let missingKeys = 0;
    for (let missingOffset = 0; missingOffset < missingKeyIds.length; missingOffset += KEY_ID_BYTES) {
      const subjectKeyId = missingKeyIds.subarray(missingOffset, missingOffset + KEY_ID_BYTES);
      try {
        hasSubjectKey[missingKeys] = this.#bodyKeyring.subjects.copyKey(subjectKeyId, subjectSecrets, missingKeys * SECRET_BYTES)
          ? 1
          : 0;
      } catch (cause) {
        if (!(cause instanceof ServiceError)) throw cause;
        continue;
      }
      foundKeyIds.push(...subjectKeyId);
      missingKeys++;
    }
    return missingKeys === 0 ? null : { ids: Uint8Array.from(foundKeyIds), has: hasSubjectKey, secrets: subjectSecrets };
  }

  /** Adds keys that payloads of a frame name and that were not sent yet, as far as the unchecked frame can be read. */
  #addDataKeys(frameBytes: Uint8Array, entries: number, dataKeysToSend: [number, KeyObject][]): void {
    const frameView = new DataView(frameBytes.buffer, frameBytes.byteOffset, frameBytes.length);
    for (
      let entriesLeft = entries, entryOffset = FRAME_HEADER_BYTES;
      entriesLeft > 0 && entryOffset + ENTRY_HEADER_BYTES <= frameBytes.length;
      entriesLeft--
    ) {
      const payloadOffset = entryOffset + ENTRY_HEADER_BYTES + frameView.getUint32(entryOffset, true);
      const dataKeyId = payloadKey(frameBytes, payloadOffset);
      if (dataKeyId !== null && !this.#sentDataKeys.has(dataKeyId)) {
        this.#sentDataKeys.add(dataKeyId);
        try {
          dataKeysToSend.push([dataKeyId, this.#bodyKeyring.open(dataKeyId)]);
        } catch (cause) {
          // The key is missing: opening the payload reports it.
          if (!(cause instanceof ServiceError)) throw cause;
        }
      }
      entryOffset = payloadOffset + frameView.getUint32(entryOffset + 4, true);
    }
  }
}

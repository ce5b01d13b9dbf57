/**
 * Large bodies, sealed beside the event loop: in a thread where there is one, else a slice a turn. The bodies lie in memory
 * that the thread shares; a slot is taken when a body is encoded and given back when its payload is in a frame.
 *
 * - Sealings begin in the order in which they are started, and may be waited for in any.
 * - A caller that can't wait gets its sealing at once: it is computed again, in the calling turn, to the same bytes.
 * - A sealing that fails, whatever the cause, fails the log: its entry has been placed and will never be written.
 */
import type { KeyObject } from 'node:crypto';
import { bytesOfCells } from '../values/columns.ts';
import { positionsOf, type RowPartsBody, type RowsBody, rowBodiesOf } from './entry.ts';
import { ByteWriter } from '../bytes/byte-stream.ts';
import { payloadBytesMax, type SealReply, type SealRequest, sealAtOnce, sealInSlices, sealJob } from './body-sealer.ts';
import type { StartWorker, Worker } from '../threads/workers.ts';

export interface BulkOptions {
  /** Null: in slices on the event loop. */
  readonly startWorker: StartWorker | null;
  /** Bodies of fewer rows are sealed in the turn in which they are placed, unless their cells are large. */
  readonly rowsMin: number;
  /** Between two slices: other work goes first. The next round of the event loop where it is absent. */
  readonly yieldTurn?: () => Promise<void>;
}

/** Below this handing over and waiting cost more than they save. */
export const BULK_ROWS_MIN = 256;
/** A larger body would block the turn in which it is placed, however few its rows. */
const BULK_BYTES_MIN = 512 << 10;
const ROOM_BESIDE_CELLS = 64 << 10;
/** Slots that are kept: a stream has four batches under way. */
const SLOTS_MAX = 4;
/** A slot that one huge body made is not kept. */
const SLOT_BYTES_MAX = 24 << 20;
const SLOT_BYTES_MIN = 1 << 20;

export interface SealedBody {
  readonly payload: Uint8Array;
  readonly root: Uint8Array;
  readonly digest: Uint8Array;
}

type Secrets = Pick<SealRequest, 'path' | 'keyId' | 'seals'> & { readonly key: KeyObject; readonly nonce: Uint8Array };

/** A body on its way. */
export class Sealing {
  readonly request: SealRequest;
  /** Null until it is done. */
  sealed: SealedBody | null = null;
  /** Another thread reads its body or writes to its slot. */
  busy = false;

  constructor(request: SealRequest) {
    this.request = request;
  }

  /** Done within the turn, if it is not yet. */
  now(): SealedBody {
    if (this.sealed) return this.sealed;
    // Into memory of its own: a thread may be writing to the slot.
    const target = new Uint8Array(payloadBytesMax(this.request));
    return this.finish(sealAtOnce({ ...this.request, target }), target);
  }

  finish({ payloadBytes, root, digest }: SealReply, target = this.request.target): SealedBody {
    this.sealed ??= { payload: target.subarray(0, payloadBytes), root, digest };
    // A worker that still seals this body works for nothing: its copy of the secrets is ignored.
    for (const { sections } of this.request.seals) sections?.secrets.fill(0);
    return this.sealed;
  }
}

export class BulkSealer {
  readonly #options: BulkOptions;
  readonly #onDone: () => void;
  readonly #onFailed: (cause: unknown) => void;
  readonly #slots: SharedArrayBuffer[] = [];
  /** Half the bytes of the next new slot: the size of the last body that found no slot. */
  #slotBytes = SLOT_BYTES_MIN;
  readonly #queue: Sealing[] = [];
  #worker: Worker<SealRequest, SealReply> | null = null;
  #slicing = false;
  #ended = false;

  /** `done` is called whenever a sealing is; `failed` when one never will be. */
  constructor(options: BulkOptions, done: () => void, failed: (cause: unknown) => void) {
    this.#options = options;
    this.#onDone = done;
    this.#onFailed = failed;
  }

  takes(body: RowsBody | RowPartsBody): boolean {
    return positionsOf(body) >= this.#options.rowsMin || bytesOf(body) >= BULK_BYTES_MIN;
  }

  /** Encodes a body into a slot; nothing happens to it before `start`. */
  prepare(rows: RowsBody | RowPartsBody, encode: (target: ByteWriter) => void, secrets: Secrets): Sealing {
    // Cells that don't fit are known to be: growing would copy them again and again.
    const least = 2 * (bytesOf(rows) + ROOM_BESIDE_CELLS);
    const reusedSlot = this.#slots.pop();
    const slot =
      reusedSlot && reusedSlot.byteLength >= least ? reusedSlot : new SharedArrayBuffer(Math.max(this.#slotBytes, least));
    if (reusedSlot && reusedSlot !== slot) this.#keep(reusedSlot);
    const writer = new ByteWriter(new Uint8Array(slot, 0, slot.byteLength >> 1));
    try {
      encode(writer);
    } catch (error) {
      this.#keep(slot);
      throw error;
    }
    const body = writer.view();
    const room = payloadBytesMax({ body, seals: secrets.seals });
    if (body.buffer === slot && room <= slot.byteLength >> 1) {
      return new Sealing({ ...secrets, body, target: new Uint8Array(slot, slot.byteLength >> 1) });
    }
    // Half as much again, in the hope that the next one fits as well.
    const half = Math.ceil(room * 1.5);
    const larger = new SharedArrayBuffer(half * 2);
    this.#slotBytes = Math.min(SLOT_BYTES_MAX, half * 2);
    const copy = new Uint8Array(larger, 0, body.length);
    copy.set(body);
    return new Sealing({ ...secrets, body: copy, target: new Uint8Array(larger, half) });
  }

  start(sealing: Sealing): void {
    const { startWorker } = this.#options;
    sealing.busy = true;
    if (startWorker === null) {
      this.#queue.push(sealing);
      if (!this.#slicing) void this.#slice();
      return;
    }
    this.#worker ??= startWorker(sealJob, null);
    void this.#worker.ask(sealing.request).then(
      (reply) => {
        sealing.busy = false;
        sealing.finish(reply);
        this.#onDone();
      },
      (cause: unknown) => {
        if (!this.#ended) this.#onFailed(cause);
      },
    );
  }

  /** The payload is no longer needed, or the sealing was never started. */
  release({ request, busy }: Sealing): void {
    if (!busy) this.#keep(request.target.buffer as SharedArrayBuffer);
  }

  async end(): Promise<void> {
    this.#ended = true;
    await this.#worker?.end();
  }

  #keep(slot: SharedArrayBuffer): void {
    if (this.#slots.length < SLOTS_MAX && slot.byteLength <= SLOT_BYTES_MAX) this.#slots.push(slot);
  }

  async #slice(): Promise<void> {
    this.#slicing = true;
    const { yieldTurn = nextRound } = this.#options;
    try {
      for (let next = this.#queue.shift(); next; next = this.#queue.shift()) {
        const slices = sealInSlices(next.request, true);
        let step = slices.next();
        while (!step.done) {
          const packed = await step.value;
          await yieldTurn();
          // A caller that could not wait has sealed it.
          if (next.sealed) break;
          step = slices.next(packed);
        }
        next.busy = false;
        if (step.done) next.finish(step.value);
        this.#onDone();
      }
      this.#slicing = false;
    } catch (cause) {
      this.#onFailed(cause);
    }
  }
}

function bytesOf(rows: RowsBody | RowPartsBody): number {
  let bytes = 0;
  for (const { ops, cells } of rowBodiesOf(rows))
    for (const { vector } of cells.columns) bytes += bytesOfCells(vector, ops.length);
  return bytes;
}

function nextRound(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

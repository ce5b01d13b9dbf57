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
const BULK_BODY_BYTES_MIN = 512 << 10;
const SLOT_ROOM_BESIDE_CELLS = 64 << 10;
/** Slots that are kept: a stream has four batches under way. */
const SEALING_SLOTS_MAX = 4;
/** A slot that one huge body made is not kept. */
const SEALING_SLOT_BYTES_MAX = 24 << 20;
const SEALING_SLOT_BYTES_MIN = 1 << 20;

export interface SealedBody {
  readonly payload: Uint8Array;
  readonly root: Uint8Array;
  readonly digest: Uint8Array;
}

type BulkSecrets = Pick<SealRequest, 'path' | 'keyId' | 'seals'> & { readonly key: KeyObject; readonly nonce: Uint8Array };

/** A body on its way. */
export class Sealing {
  readonly request: SealRequest;
  /** Null until it is done. */
  sealed: SealedBody | null = null;
  /** Another thread reads its body or writes to its slot. */
  busy = false;

  constructor(sealRequest: SealRequest) {
    this.request = sealRequest;
  }

  /** Done within the turn, if it is not yet. */
  now(): SealedBody {
    if (this.sealed) return this.sealed;
    // Into memory of its own: a thread may be writing to the slot.
    const payloadTarget = new Uint8Array(payloadBytesMax(this.request));
    return this.finish(sealAtOnce({ ...this.request, target: payloadTarget }), payloadTarget);
  }

  finish({ payloadBytes, root, digest }: SealReply, payloadTarget = this.request.target): SealedBody {
    this.sealed ??= { payload: payloadTarget.subarray(0, payloadBytes), root, digest };
    // A worker that still seals this body works for nothing: its copy of the secrets is ignored.
    for (const { sections } of this.request.seals) sections?.secrets.fill(0);
    return this.sealed;
  }
}

export class BulkSealer {
  readonly #bulkOptions: BulkOptions;
  readonly #onBodySealed: () => void;
  readonly #onSealFailed: (cause: unknown) => void;
  readonly #idleSlots: SharedArrayBuffer[] = [];
  /** Half the bytes of the next new slot: the size of the last body that found no slot. */
  #nextSlotBytes = SEALING_SLOT_BYTES_MIN;
  readonly #sealingQueue: Sealing[] = [];
  #sealWorker: Worker<SealRequest, SealReply> | null = null;
  #isSealingInTurn = false;
  #hasEnded = false;

  /** `onBodySealed` is called whenever a sealing is; `onSealFailed` when one never will be. */
  constructor(bulkOptions: BulkOptions, onBodySealed: () => void, onSealFailed: (cause: unknown) => void) {
    this.#bulkOptions = bulkOptions;
    this.#onBodySealed = onBodySealed;
    this.#onSealFailed = onSealFailed;
  }

  takes(rowsBody: RowsBody | RowPartsBody): boolean {
    return positionsOf(rowsBody) >= this.#bulkOptions.rowsMin || cellBytesOfRows(rowsBody) >= BULK_BODY_BYTES_MIN;
  }

  /** Encodes a body into a slot; nothing happens to it before `start`. */
  prepare(rowsToSeal: RowsBody | RowPartsBody, encodeBody: (target: ByteWriter) => void, bulkSecrets: BulkSecrets): Sealing {
    // Cells that don't fit are known to be: growing would copy them again and again.
    const slotBytesMin = 2 * (cellBytesOfRows(rowsToSeal) + SLOT_ROOM_BESIDE_CELLS);
    const reusedSlot = this.#idleSlots.pop();
    const sealingSlot =
      reusedSlot && reusedSlot.byteLength >= slotBytesMin
        ? reusedSlot
        : new SharedArrayBuffer(Math.max(this.#nextSlotBytes, slotBytesMin));
    if (reusedSlot && reusedSlot !== sealingSlot) this.#keepSlot(reusedSlot);
    const bodyWriter = new ByteWriter(new Uint8Array(sealingSlot, 0, sealingSlot.byteLength >> 1));
    try {
      encodeBody(bodyWriter);
    } catch (error) {
      this.#keepSlot(sealingSlot);
      throw error;
    }
    const encodedBody = bodyWriter.view();
    const payloadRoom = payloadBytesMax({ body: encodedBody, seals: bulkSecrets.seals });
    if (encodedBody.buffer === sealingSlot && payloadRoom <= sealingSlot.byteLength >> 1) {
      return new Sealing({ ...bulkSecrets, body: encodedBody, target: new Uint8Array(sealingSlot, sealingSlot.byteLength >> 1) });
    }
    // Half as much again, in the hope that the next one fits as well.
    const halfSlotBytes = Math.ceil(payloadRoom * 1.5);
    const largerSlot = new SharedArrayBuffer(halfSlotBytes * 2);
    this.#nextSlotBytes = Math.min(SEALING_SLOT_BYTES_MAX, halfSlotBytes * 2);
    const bodyCopy = new Uint8Array(largerSlot, 0, encodedBody.length);
    bodyCopy.set(encodedBody);
    return new Sealing({ ...bulkSecrets, body: bodyCopy, target: new Uint8Array(largerSlot, halfSlotBytes) });
  }

  start(startedSealing: Sealing): void {
    const { startWorker } = this.#bulkOptions;
    startedSealing.busy = true;
    if (startWorker === null) {
      this.#sealingQueue.push(startedSealing);
      if (!this.#isSealingInTurn) void this.#sealInTurn();
      return;
    }
    this.#sealWorker ??= startWorker(sealJob, null);
    void this.#sealWorker.ask(startedSealing.request).then(
      (sealReply) => {
        startedSealing.busy = false;
        startedSealing.finish(sealReply);
        this.#onBodySealed();
      },
      (cause: unknown) => {
        if (!this.#hasEnded) this.#onSealFailed(cause);
      },
    );
  }

  /** The payload is no longer needed, or the sealing was never started. */
  release({ request, busy }: Sealing): void {
    if (!busy) this.#keepSlot(request.target.buffer as SharedArrayBuffer);
  }

  async end(): Promise<void> {
    this.#hasEnded = true;
    await this.#sealWorker?.end();
  }

  #keepSlot(sealingSlot: SharedArrayBuffer): void {
    if (this.#idleSlots.length < SEALING_SLOTS_MAX && sealingSlot.byteLength <= SEALING_SLOT_BYTES_MAX)
      this.#idleSlots.push(sealingSlot);
  }

  async #sealInTurn(): Promise<void> {
    this.#isSealingInTurn = true;
    const { yieldTurn = nextLoopRound } = this.#bulkOptions;
    try {
      for (let nextSealing = this.#sealingQueue.shift(); nextSealing; nextSealing = this.#sealingQueue.shift()) {
        const sealSlices = sealInSlices(nextSealing.request, true);
        let sealStep = sealSlices.next();
        while (!sealStep.done) {
          const packedBody = await sealStep.value;
          await yieldTurn();
          // A caller that could not wait has sealed it.
          if (nextSealing.sealed) break;
          sealStep = sealSlices.next(packedBody);
        }
        nextSealing.busy = false;
        if (sealStep.done) nextSealing.finish(sealStep.value);
        this.#onBodySealed();
      }
      this.#isSealingInTurn = false;
    } catch (cause) {
      this.#onSealFailed(cause);
    }
  }
}

function cellBytesOfRows(rowsBody: RowsBody | RowPartsBody): number {
  let cellBytes = 0;
  for (const { ops, cells } of rowBodiesOf(rowsBody))
    for (const { vector } of cells.columns) cellBytes += bytesOfCells(vector, ops.length);
  return cellBytes;
}

function nextLoopRound(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

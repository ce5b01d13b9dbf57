/**
 * How many rows may be accepted ahead of the disk: bytes of rows that were placed in the log and not acknowledged yet. Beyond the
 * bound a batch waits, first come first served, or its sender gets a refusal to retry later. Invariants: batches of one stream
 * keep their order, so none passes a waiting batch; and a batch larger than the bound is taken when nothing else is under way, or
 * it could never be.
 */
import { ServiceError } from '../../errors.ts';
import { bytesOfCells, type RowBatch } from '../../log/values/columns.ts';

export class IngestBacklog {
  readonly #backlogBytesMax: number;
  readonly #waitingIngests: { readonly bytes: number; readonly admit: () => void }[] = [];
  #backlogBytes = 0;

  constructor(bytesMax: number) {
    this.#backlogBytesMax = bytesMax;
  }

  /** Makes room in the calling turn, or not at all. Every byte taken is given back by `leave`. */
  take(bytes: number): boolean {
    if (this.#waitingIngests.length > 0 || !this.#fitsBacklog(bytes)) return false;
    this.#backlogBytes += bytes;
    return true;
  }

  /** Resolves once the bytes were taken, in the order of the calls. */
  wait(bytes: number): Promise<void> {
    return new Promise((admit) => this.#waitingIngests.push({ bytes, admit }));
  }

  leave(bytes: number): void {
    this.#backlogBytes -= bytes;
    while (this.#waitingIngests.length > 0 && this.#fitsBacklog(this.#waitingIngests[0]!.bytes)) {
      const nextIngest = this.#waitingIngests.shift()!;
      this.#backlogBytes += nextIngest.bytes;
      nextIngest.admit();
    }
  }

  get bytes(): number {
    return this.#backlogBytes;
  }

  #fitsBacklog(bytes: number): boolean {
    return this.#backlogBytes === 0 || this.#backlogBytes + bytes <= this.#backlogBytesMax;
  }
}

export const backlogFull = (): ServiceError =>
  new ServiceError('REL_QUEUE_FULL', 'too many rows wait for the disk; retry later', { retryAfterSecs: 1 });

/** Bytes of a row beside its cells: position, key, organisation and provenance. */
const backlogRowBytes = 64;

/** Memory of the cells of a batch, as far as its length goes. */
export function bytesOfRows({ length, columns }: RowBatch): number {
  let batchBytes = length * backlogRowBytes;
  for (const { vector } of columns) batchBytes += bytesOfCells(vector, length);
  return batchBytes;
}

/**
 * How many rows may be accepted ahead of the disk: bytes of rows that were placed in the log and not acknowledged yet. Beyond the
 * bound a batch waits, first come first served, or its sender gets a refusal to retry later. Invariants: batches of one stream
 * keep their order, so none passes a waiting batch; and a batch larger than the bound is taken when nothing else is under way, or
 * it could never be.
 */
import { ServiceError } from '../../errors.ts';
import { bytesOfCells, type RowBatch } from '../../log/values/columns.ts';

export class IngestBacklog {
  readonly #bytesMax: number;
  readonly #waiting: { readonly bytes: number; readonly admit: () => void }[] = [];
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Makes room in the calling turn, or not at all. Every byte taken is given back by `leave`. */
  take(bytes: number): boolean {
    if (this.#waiting.length > 0 || !this.#fits(bytes)) return false;
    this.#bytes += bytes;
    return true;
  }

  /** Resolves once the bytes were taken, in the order of the calls. */
  wait(bytes: number): Promise<void> {
    return new Promise((admit) => this.#waiting.push({ bytes, admit }));
  }

  leave(bytes: number): void {
    this.#bytes -= bytes;
    while (this.#waiting.length > 0 && this.#fits(this.#waiting[0]!.bytes)) {
      const next = this.#waiting.shift()!;
      this.#bytes += next.bytes;
      next.admit();
    }
  }

  get bytes(): number {
    return this.#bytes;
  }

  #fits(bytes: number): boolean {
    return this.#bytes === 0 || this.#bytes + bytes <= this.#bytesMax;
  }
}

export const backlogFull = (): ServiceError =>
  new ServiceError('REL_QUEUE_FULL', 'too many rows wait for the disk; retry later', { retryAfterSecs: 1 });

/** Bytes of a row beside its cells: position, key, organisation and provenance. */
const rowBytes = 64;

/** Memory of the cells of a batch, as far as its length goes. */
export function bytesOfRows({ length, columns }: RowBatch): number {
  let bytes = length * rowBytes;
  for (const { vector } of columns) bytes += bytesOfCells(vector, length);
  return bytes;
}

/**
 * The arrays of one segment in column memory. Invariants:
 *
 * - an array that is given back may still be read by a reader of the running turn, and by one that took a block before and has
 *   not come back for the next: its bytes are used again only once neither can be (`ColumnSpace.retire`);
 * - an unreachable segment gives back its arrays: a branch that was deleted while it was read has no other end;
 * - an array's length is that of its extent, and its first contents are undefined.
 */
import type { ColumnMemory } from '../../../log/values/column-memory.ts';

export type FixedArray = Uint8Array | Uint16Array | Int32Array | Uint32Array | Float32Array | Float64Array | BigInt64Array;

export interface FixedKind<T extends FixedArray> {
  readonly BYTES_PER_ELEMENT: number;
  new (length: number): T;
  new (buffer: ArrayBufferLike, offset: number, length: number): T;
}

/** The epoch since which a reader may hold its last block. An epoch is a run of turns; it ends when arrays are given back. */
interface BlockReader {
  since: number;
  /** Its place among the open ones. */
  at: number;
}

/**
 * The memory that all segments of a store share, and the queue of arrays that were given back while a reader may still hold them.
 */
export class ColumnSpace {
  readonly memory: ColumnMemory;
  readonly #defer: (task: () => void) => void;
  /** In the order in which they were given back. */
  readonly #retired: { readonly view: ArrayBufferView; readonly epoch: number }[] = [];
  /** Weakly: a reading that was dropped without an end holds nothing. */
  readonly #readers: WeakRef<BlockReader>[] = [];
  #epoch = 0;
  #deferred = false;
  readonly #lost = new FinalizationRegistry<Set<ArrayBufferView>>((held) => {
    for (const view of held) this.retire(view);
  });

  /** `defer` runs a task in a later turn of the event loop, when no reader holds a view. */
  constructor(memory: ColumnMemory, defer: (task: () => void) => void) {
    this.memory = memory;
    this.#defer = defer;
  }

  extents(): Extents {
    return new Extents(this);
  }

  /** The arrays that such extents will hold; they are given back when the extents become unreachable. */
  heldBy(extents: Extents): Set<ArrayBufferView> {
    const held = new Set<ArrayBufferView>();
    this.#lost.register(extents, held);
    return held;
  }

  retire(view: ArrayBufferView): void {
    this.#retired.push({ view, epoch: this.#epoch });
    if (this.#deferred) return;
    this.#deferred = true;
    this.#defer(() => {
      this.#deferred = false;
      this.#epoch++;
      this.#releaseUnseen();
    });
  }

  /** Resolves in a later turn of the event loop. */
  turn(): Promise<void> {
    return new Promise((resolve) => this.#defer(resolve));
  }

  /** Frees arrays that were given back and that no open reader holds: for callers that walk the whole store within one turn. */
  reclaim(): void {
    this.#epoch++;
    this.#releaseUnseen();
  }

  /**
   * Blocks as they come. Arrays that were given back after a block was taken stay as they are until the next block is taken, or
   * the reading ends: operators hold a block for many turns.
   */
  *read<Block>(blocks: Iterable<Block>): Generator<Block, void> {
    const reader: BlockReader = { since: this.#epoch, at: this.#readers.length };
    this.#readers.push(new WeakRef(reader));
    try {
      for (const block of blocks) {
        yield block;
        const held = reader.since;
        reader.since = this.#epoch;
        if (held < this.#epoch && this.#retired.length > 0) this.#releaseUnseen();
      }
    } finally {
      this.#forget(reader.at);
      if (this.#retired.length > 0) this.#releaseUnseen();
    }
  }

  /** The last one takes its place: a list costs less than a set that is emptied and filled by every look-up. */
  #forget(at: number): void {
    const last = this.#readers.pop();
    if (last === undefined || at === this.#readers.length) return;
    this.#readers[at] = last;
    const moved = last.deref();
    if (moved) moved.at = at;
  }

  /** Releases arrays given back in an earlier turn, and before every open reader took the block that it has. */
  #releaseUnseen(): void {
    let least = this.#epoch;
    for (let at = this.#readers.length - 1; at >= 0; at--) {
      const reader = this.#readers[at]!.deref();
      if (!reader) this.#forget(at);
      else if (reader.since < least) least = reader.since;
    }
    let count = 0;
    while (count < this.#retired.length && this.#retired[count]!.epoch < least) count++;
    for (const { view } of this.#retired.splice(0, count)) this.memory.release(view);
  }
}

export class Extents {
  readonly #space: ColumnSpace;
  /** Null until there is one: small tables have none. */
  #held: Set<ArrayBufferView> | null = null;

  constructor(space: ColumnSpace) {
    this.#space = space;
  }

  /** An array of its own where an extent can't be as long. */
  allocate<T extends FixedArray>(kind: FixedKind<T>, length: number): T {
    const extent = this.#space.memory.allocate(length * kind.BYTES_PER_ELEMENT);
    if (!extent) return new kind(length);
    const view = new kind(extent.buffer, extent.byteOffset, length);
    (this.#held ??= this.#space.heldBy(this)).add(view);
    return view;
  }

  /** The first `length` elements in an extent of just that length; gives back their former extent. */
  settle<T extends FixedArray>(from: T, length: number): T {
    if (from.length === length && (length === 0 || this.#held?.has(from))) return from;
    if (length > 0 && from.length > length && this.#held?.has(from)) return this.#shorten(from, length);
    const to = this.allocate(from.constructor as unknown as FixedKind<T>, length);
    // Elements of one kind: the union only hides it.
    (to as Uint8Array).set(from.subarray(0, length) as Uint8Array);
    this.giveBack(from);
    return to;
  }

  /** Shortens in place: no reader looks behind the end, and copying a column would block the event loop for milliseconds. */
  #shorten<T extends FixedArray>(from: T, length: number): T {
    const to = new (from.constructor as unknown as FixedKind<T>)(from.buffer, from.byteOffset, length);
    this.#held!.delete(from);
    this.#held!.add(to);
    this.#space.memory.shorten(from, to.byteLength);
    return to;
  }

  /** Arrays that never were in column memory are the collector's. */
  giveBack(view: ArrayBufferView): void {
    if (this.#held?.delete(view)) this.#space.retire(view);
  }
}

/** Empty ones, shared by all columns: each of its own would take 200 bytes, and a column has several that it does not use. */
export const no = {
  i32: new Int32Array(0),
  f64: new Float64Array(0),
  i64: new BigInt64Array(0),
  bytes: new Uint8Array(0),
  floats: new Float32Array(0),
  offsets: new Uint32Array(0),
} as const;

/** In a buffer of its own: a part of one that was read would keep all of that in memory. */
export function alone<T extends FixedArray>(array: T): T {
  return array.byteLength === array.buffer.byteLength ? array : (array.slice() as T);
}

const zeros = new Uint8Array(65_536);

/** All zeros. Shared memory is filled byte by byte, but copied in one go. */
export function zeroFill(bytes: Uint8Array): Uint8Array {
  for (let at = 0; at < bytes.length; at += zeros.length) bytes.set(zeros.subarray(0, bytes.length - at), at);
  return bytes;
}

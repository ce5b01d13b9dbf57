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
  readonly #deferToNextTurn: (task: () => void) => void;
  /** In the order in which they were given back. */
  readonly #retiredViews: { readonly view: ArrayBufferView; readonly epoch: number }[] = [];
  /** Weakly: a reading that was dropped without an end holds nothing. */
  readonly #blockReaders: WeakRef<BlockReader>[] = [];
  #extentEpoch = 0;
  #isReleaseDeferred = false;
  readonly #lostExtents = new FinalizationRegistry<Set<ArrayBufferView>>((held) => {
    for (const view of held) this.retire(view);
  });

  /** `deferToNextTurn` runs a task in a later turn of the event loop, when no reader holds a view. */
  constructor(columnMemory: ColumnMemory, deferToNextTurn: (task: () => void) => void) {
    this.memory = columnMemory;
    this.#deferToNextTurn = deferToNextTurn;
  }

  extents(): Extents {
    return new Extents(this);
  }

  /** The arrays that such extents will hold; they are given back when the extents become unreachable. */
  heldBy(extents: Extents): Set<ArrayBufferView> {
    const heldViews = new Set<ArrayBufferView>();
    this.#lostExtents.register(extents, heldViews);
    return heldViews;
  }

  retire(retiredView: ArrayBufferView): void {
    this.#retiredViews.push({ view: retiredView, epoch: this.#extentEpoch });
    if (this.#isReleaseDeferred) return;
    this.#isReleaseDeferred = true;
    this.#deferToNextTurn(() => {
      this.#isReleaseDeferred = false;
      this.#extentEpoch++;
      this.#releaseUnseenExtents();
    });
  }

  /** Resolves in a later turn of the event loop. */
  turn(): Promise<void> {
    return new Promise((resolve) => this.#deferToNextTurn(resolve));
  }

  /** Frees arrays that were given back and that no open reader holds: for callers that walk the whole store within one turn. */
  reclaim(): void {
    this.#extentEpoch++;
    this.#releaseUnseenExtents();
  }

  /**
   * Blocks as they come. Arrays that were given back after a block was taken stay as they are until the next block is taken, or
   * the reading ends: operators hold a block for many turns.
   */
  *read<Block>(blocks: Iterable<Block>): Generator<Block, void> {
    const reader: BlockReader = { since: this.#extentEpoch, at: this.#blockReaders.length };
    this.#blockReaders.push(new WeakRef(reader));
    try {
      for (const block of blocks) {
        yield block;
        const held = reader.since;
        reader.since = this.#extentEpoch;
        if (held < this.#extentEpoch && this.#retiredViews.length > 0) this.#releaseUnseenExtents();
      }
    } finally {
      this.#forgetBlockReader(reader.at);
      if (this.#retiredViews.length > 0) this.#releaseUnseenExtents();
    }
  }

  /** The last one takes its place: a list costs less than a set that is emptied and filled by every look-up. */
  #forgetBlockReader(readerIndex: number): void {
    const lastReader = this.#blockReaders.pop();
    if (lastReader === undefined || readerIndex === this.#blockReaders.length) return;
    this.#blockReaders[readerIndex] = lastReader;
    const movedReader = lastReader.deref();
    if (movedReader) movedReader.at = readerIndex;
  }

  /** Releases arrays given back in an earlier turn, and before every open reader took the block that it has. */
  #releaseUnseenExtents(): void {
    let leastEpochRead = this.#extentEpoch;
    for (let readerIndex = this.#blockReaders.length - 1; readerIndex >= 0; readerIndex--) {
      const blockReader = this.#blockReaders[readerIndex]!.deref();
      if (!blockReader) this.#forgetBlockReader(readerIndex);
      else if (blockReader.since < leastEpochRead) leastEpochRead = blockReader.since;
    }
    let unseenCount = 0;
    while (unseenCount < this.#retiredViews.length && this.#retiredViews[unseenCount]!.epoch < leastEpochRead) unseenCount++;
    for (const { view } of this.#retiredViews.splice(0, unseenCount)) this.memory.release(view);
  }
}

export class Extents {
  readonly #columnSpace: ColumnSpace;
  /** Null until there is one: small tables have none. */
  #heldViews: Set<ArrayBufferView> | null = null;

  constructor(columnSpace: ColumnSpace) {
    this.#columnSpace = columnSpace;
  }

  /** An array of its own where an extent can't be as long. */
  allocate<T extends FixedArray>(arrayKind: FixedKind<T>, length: number): T {
    const columnExtent = this.#columnSpace.memory.allocate(length * arrayKind.BYTES_PER_ELEMENT);
    if (!columnExtent) return new arrayKind(length);
    const extentView = new arrayKind(columnExtent.buffer, columnExtent.byteOffset, length);
    (this.#heldViews ??= this.#columnSpace.heldBy(this)).add(extentView);
    return extentView;
  }

  /** The first `length` elements in an extent of just that length; gives back their former extent. */
  settle<T extends FixedArray>(unsettledArray: T, length: number): T {
    if (unsettledArray.length === length && (length === 0 || this.#heldViews?.has(unsettledArray))) return unsettledArray;
    if (length > 0 && unsettledArray.length > length && this.#heldViews?.has(unsettledArray))
      return this.#shortenArray(unsettledArray, length);
    const settledArray = this.allocate(unsettledArray.constructor as unknown as FixedKind<T>, length);
    // Elements of one kind: the union only hides it.
    (settledArray as Uint8Array).set(unsettledArray.subarray(0, length) as Uint8Array);
    this.giveBack(unsettledArray);
    return settledArray;
  }

  /** Shortens in place: no reader looks behind the end, and copying a column would block the event loop for milliseconds. */
  #shortenArray<T extends FixedArray>(longArray: T, length: number): T {
    const shortArray = new (longArray.constructor as unknown as FixedKind<T>)(longArray.buffer, longArray.byteOffset, length);
    this.#heldViews!.delete(longArray);
    this.#heldViews!.add(shortArray);
    this.#columnSpace.memory.shorten(longArray, shortArray.byteLength);
    return shortArray;
  }

  /** Arrays that never were in column memory are the collector's. */
  giveBack(returnedView: ArrayBufferView): void {
    if (this.#heldViews?.delete(returnedView)) this.#columnSpace.retire(returnedView);
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

const zeroBytes = new Uint8Array(65_536);

/** All zeros. Shared memory is filled byte by byte, but copied in one go. */
export function zeroFill(zeroedBytes: Uint8Array): Uint8Array {
  for (let zeroOffset = 0; zeroOffset < zeroedBytes.length; zeroOffset += zeroBytes.length)
    zeroedBytes.set(zeroBytes.subarray(0, zeroedBytes.length - zeroOffset), zeroOffset);
  return zeroedBytes;
}

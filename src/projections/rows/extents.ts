/**
 * The arrays of one segment in column memory. What must hold:
 *
 * - an array that is given back may still be looked at by a reader of the running turn, so its bytes are used again only
 *   from a later turn on (`ColumnSpace.retire`);
 * - a segment that nobody can reach any more gives back what it held: a branch that was deleted while readers were at it
 *   has no other end;
 * - an array's length is that of its extent, and its first contents are undefined.
 */
import type { ColumnMemory } from '../../log/column-memory.ts';

export type FixedArray = Uint8Array | Uint16Array | Int32Array | Uint32Array | Float32Array | Float64Array | BigInt64Array;

export interface FixedKind<T extends FixedArray> {
  readonly BYTES_PER_ELEMENT: number;
  new (length: number): T;
  new (buffer: ArrayBufferLike, offset: number, length: number): T;
}

/** What all segments of a store share: the memory, and the queue of what was given back in this turn. */
export class ColumnSpace {
  readonly memory: ColumnMemory;
  readonly #defer: (task: () => void) => void;
  readonly #retired: ArrayBufferView[] = [];
  readonly #lost = new FinalizationRegistry<Set<ArrayBufferView>>((held) => {
    for (const view of held) this.memory.release(view);
  });

  /** `defer` runs a task in a later turn of the event loop, when no reader holds a view. */
  constructor(memory: ColumnMemory, defer: (task: () => void) => void) {
    this.memory = memory;
    this.#defer = defer;
  }

  extents(): Extents {
    const held = new Set<ArrayBufferView>();
    const extents = new Extents(this, held);
    this.#lost.register(extents, held);
    return extents;
  }

  retire(view: ArrayBufferView): void {
    if (this.#retired.push(view) > 1) return;
    this.#defer(() => this.reclaim());
  }

  /** What was given back may be used again: for who walks all of a store within one turn, in which nobody else reads. */
  reclaim(): void {
    for (const each of this.#retired.splice(0)) this.memory.release(each);
  }
}

export class Extents {
  readonly #space: ColumnSpace;
  readonly #held: Set<ArrayBufferView>;

  constructor(space: ColumnSpace, held: Set<ArrayBufferView>) {
    this.#space = space;
    this.#held = held;
  }

  /** An array of its own where an extent can't be as long. */
  allocate<T extends FixedArray>(kind: FixedKind<T>, length: number): T {
    const extent = this.#space.memory.allocate(length * kind.BYTES_PER_ELEMENT);
    if (!extent) return new kind(length);
    const view = new kind(extent.buffer, extent.byteOffset, length);
    this.#held.add(view);
    return view;
  }

  /** The first `length` elements in an extent of just that length; what held them before is given back. */
  settle<T extends FixedArray>(from: T, length: number): T {
    if (from.length === length && (length === 0 || this.#held.has(from))) return from;
    const to = this.allocate(from.constructor as unknown as FixedKind<T>, length);
    // Elements of one kind: the union only hides it.
    (to as Uint8Array).set(from.subarray(0, length) as Uint8Array);
    this.giveBack(from);
    return to;
  }

  /** Arrays that never were in column memory are the collector's. */
  giveBack(view: ArrayBufferView): void {
    if (this.#held.delete(view)) this.#space.retire(view);
  }
}

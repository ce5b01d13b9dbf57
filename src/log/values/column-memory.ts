/**
 * Where fixed-width columns of sealed segments rest: shared WebAssembly memories, so that kernels and workers read them in
 * place. A memory never shrinks, so bytes are given out as extents that are given back and used again.
 *
 * - An extent begins on 64 bytes and has the requested length; its first content is undefined.
 * - An extent is not read after it was released. Readers of blocks keep no view beyond a turn of the event loop
 *   (`RowBlock`), and `release` is called in a turn of its own.
 * - All of a memory is reserved at once and touched as it is used: its buffer never changes, and costs what it holds.
 * - Behind the last extent lies an unused page: kernels read whole words of rows, which may end behind a column.
 */
import { assert } from '../../errors.ts';

const PAGE_BYTES = 65_536;
const ALIGNMENT = 64;
/** Columns of one segment should share a memory, so one memory holds many segments; kernels take 32-bit offsets. */
const MEMORY_BYTES = 1024 * 1024 * 1024;
/** Extra share of a memory for workspaces, beside its columns. */
const SPARE_SHARE = 1 / 32;

interface Free {
  at: number;
  size: number;
}

interface Arena {
  readonly owner: ColumnMemory;
  readonly memory: WebAssembly.Memory;
  readonly buffer: ArrayBufferLike;
  /** By offset; neighbours are joined. */
  readonly free: Free[];
  /** The same behind the columns, for workspaces: a memory full of columns still has room for kernels. */
  readonly spare: Free[];
  readonly spareAt: number;
}

const arenas = new WeakMap<ArrayBufferLike, Arena>();

/** The WebAssembly memory that a view's buffer belongs to; undefined for ordinary arrays. */
export function memoryOf(view: ArrayBufferView): WebAssembly.Memory | undefined {
  return arenas.get(view.buffer)?.memory;
}

/** Bytes in one memory beside the columns that rest there, for kernels to work in. */
export interface Workspace {
  readonly memory: WebAssembly.Memory;
  readonly bytes: Uint8Array;
  release(): void;
}

/** Null where the memory has no room. */
export function workspaceIn(memory: WebAssembly.Memory, bytes: number): Workspace | null {
  const arena = arenas.get(memory.buffer);
  assert(arena, 'workspaces lie beside columns');
  const view = arena.owner.allocateIn(arena, bytes) ?? arena.owner.allocateIn(arena, bytes, true);
  return view && { memory, bytes: view, release: () => arena.owner.release(view) };
}

export interface ColumnMemoryOptions {
  /** Size of each memory; a multiple of 64 KiB. */
  readonly memoryBytes?: number;
  /** Overwrites what is released: a reader that holds on to it then reads nonsense, which tests notice. */
  readonly poison?: boolean;
}

export class ColumnMemory {
  readonly #memoryBytes: number;
  readonly #poison: boolean;
  readonly #arenas: Arena[] = [];
  #used = 0;

  constructor({ memoryBytes = MEMORY_BYTES, poison = false }: ColumnMemoryOptions = {}) {
    assert(memoryBytes > 0 && memoryBytes % PAGE_BYTES === 0, 'a memory has whole pages');
    this.#memoryBytes = memoryBytes;
    this.#poison = poison;
  }

  /** Bytes that are given out. */
  get used(): number {
    return this.#used;
  }

  /** `null` for what is longer than a memory: such a column stays in an array of its own. */
  allocate(bytes: number): Uint8Array | null {
    const size = roundUp(bytes);
    if (size > this.#memoryBytes) return null;
    for (const arena of this.#arenas) {
      const view = this.allocateIn(arena, bytes);
      if (view) return view;
    }
    const columnPages = this.#memoryBytes / PAGE_BYTES;
    const sparePages = Math.floor(columnPages * SPARE_SHARE);
    const pages = columnPages + sparePages + 1;
    const memory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
    // Nothing lies at 0: kernels take that address for none. The page beyond makes up for it.
    const free = [{ at: ALIGNMENT, size: this.#memoryBytes }];
    const spareAt = ALIGNMENT + this.#memoryBytes;
    const spare = sparePages > 0 ? [{ at: spareAt, size: sparePages * PAGE_BYTES }] : [];
    const arena: Arena = { owner: this, memory, buffer: memory.buffer, free, spare, spareAt };
    arenas.set(arena.buffer, arena);
    this.#arenas.push(arena);
    return this.allocateIn(arena, bytes);
  }

  /** Allocates in one of its memories; `spare` bytes are for workspaces alone. */
  allocateIn(arena: Arena, bytes: number, spare = false): Uint8Array | null {
    const at = take(spare ? arena.spare : arena.free, roundUp(bytes));
    if (at < 0) return null;
    this.#used += roundUp(bytes);
    return new Uint8Array(arena.buffer, at, bytes);
  }

  /** Gives back an extent: a view over the whole result of `allocate`, in any element type. */
  release(view: ArrayBufferView): void {
    const arena = this.#arenas.find(({ buffer }) => buffer === view.buffer);
    assert(arena, 'what is released was allocated here');
    const size = roundUp(view.byteLength);
    if (this.#poison) new Uint8Array(arena.buffer, view.byteOffset, size).fill(0xdd);
    give(view.byteOffset < arena.spareAt ? arena.free : arena.spare, view.byteOffset, size);
    this.#used -= size;
  }

  /** Releases the bytes of an extent behind its first `bytes`. */
  shorten(view: ArrayBufferView, bytes: number): void {
    const arena = this.#arenas.find(({ buffer }) => buffer === view.buffer);
    assert(arena && bytes <= view.byteLength, 'what is shortened was allocated here');
    const bytesLeft = roundUp(bytes);
    const size = roundUp(view.byteLength) - bytesLeft;
    if (size === 0) return;
    if (this.#poison) new Uint8Array(arena.buffer, view.byteOffset + bytesLeft, size).fill(0xdd);
    give(view.byteOffset < arena.spareAt ? arena.free : arena.spare, view.byteOffset + bytesLeft, size);
    this.#used -= size;
  }
}

function roundUp(bytes: number): number {
  return Math.max(ALIGNMENT, Math.ceil(bytes / ALIGNMENT) * ALIGNMENT);
}

/** Offset of the first hole that is large enough, or -1. */
function take(free: Free[], size: number): number {
  const index = free.findIndex((hole) => hole.size >= size);
  if (index < 0) return -1;
  const hole = free[index]!;
  const { at } = hole;
  hole.at += size;
  hole.size -= size;
  if (hole.size === 0) free.splice(index, 1);
  return at;
}

function give(free: Free[], at: number, size: number): void {
  let low = 0;
  let high = free.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (free[middle]!.at < at) low = middle + 1;
    else high = middle;
  }
  const before = free[low - 1];
  const after = free[low];
  assert((!before || before.at + before.size <= at) && (!after || at + size <= after.at), 'an extent is released once');
  const joinsBefore = before !== undefined && before.at + before.size === at;
  const joinsAfter = after !== undefined && at + size === after.at;
  if (joinsBefore && joinsAfter) {
    before.size += size + after.size;
    free.splice(low, 1);
  } else if (joinsBefore) before.size += size;
  else if (joinsAfter) {
    after.at = at;
    after.size += size;
  } else free.splice(low, 0, { at, size });
}

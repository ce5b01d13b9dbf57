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

const ARENA_PAGE_BYTES = 65_536;
const EXTENT_ALIGNMENT = 64;
/** Columns of one segment should share a memory, so one memory holds many segments; kernels take 32-bit offsets. */
const ARENA_BYTES = 1024 * 1024 * 1024;
/** Extra share of a memory for workspaces, beside its columns. */
const ARENA_SPARE_SHARE = 1 / 32;

interface FreeExtent {
  at: number;
  size: number;
}

interface ColumnArena {
  readonly owner: ColumnMemory;
  readonly memory: WebAssembly.Memory;
  readonly buffer: ArrayBufferLike;
  /** By offset; neighbours are joined. */
  readonly free: FreeExtent[];
  /** The same behind the columns, for workspaces: a memory full of columns still has room for kernels. */
  readonly spare: FreeExtent[];
  readonly spareAt: number;
}

const arenasByBuffer = new WeakMap<ArrayBufferLike, ColumnArena>();

/** The WebAssembly memory that a view's buffer belongs to; undefined for ordinary arrays. */
export function memoryOf(view: ArrayBufferView): WebAssembly.Memory | undefined {
  return arenasByBuffer.get(view.buffer)?.memory;
}

/** Bytes in one memory beside the columns that rest there, for kernels to work in. */
export interface Workspace {
  readonly memory: WebAssembly.Memory;
  readonly bytes: Uint8Array;
  release(): void;
}

/** Null where the memory has no room. */
export function workspaceIn(memory: WebAssembly.Memory, workspaceBytes: number): Workspace | null {
  const columnArena = arenasByBuffer.get(memory.buffer);
  assert(columnArena, 'workspaces lie beside columns');
  const workspaceView =
    columnArena.owner.allocateIn(columnArena, workspaceBytes) ?? columnArena.owner.allocateIn(columnArena, workspaceBytes, true);
  return workspaceView && { memory, bytes: workspaceView, release: () => columnArena.owner.release(workspaceView) };
}

export interface ColumnMemoryOptions {
  /** Size of each memory; a multiple of 64 KiB. */
  readonly memoryBytes?: number;
  /** Overwrites what is released: a reader that holds on to it then reads nonsense, which tests notice. */
  readonly poison?: boolean;
}

export class ColumnMemory {
  readonly #arenaBytes: number;
  readonly #poisonsFreed: boolean;
  readonly #columnArenas: ColumnArena[] = [];
  #usedColumnBytes = 0;

  constructor({ memoryBytes = ARENA_BYTES, poison = false }: ColumnMemoryOptions = {}) {
    assert(memoryBytes > 0 && memoryBytes % ARENA_PAGE_BYTES === 0, 'a memory has whole pages');
    this.#arenaBytes = memoryBytes;
    this.#poisonsFreed = poison;
  }

  /** Bytes that are given out. */
  get used(): number {
    return this.#usedColumnBytes;
  }

  /** `null` for what is longer than a memory: such a column stays in an array of its own. */
  allocate(columnBytes: number): Uint8Array | null {
    const extentSize = alignedExtent(columnBytes);
    if (extentSize > this.#arenaBytes) return null;
    for (const columnArena of this.#columnArenas) {
      const columnView = this.allocateIn(columnArena, columnBytes);
      if (columnView) return columnView;
    }
    const columnPages = this.#arenaBytes / ARENA_PAGE_BYTES;
    const sparePages = Math.floor(columnPages * ARENA_SPARE_SHARE);
    const arenaPages = columnPages + sparePages + 1;
    const arenaMemory = new WebAssembly.Memory({ initial: arenaPages, maximum: arenaPages, shared: true });
    // Nothing lies at 0: kernels take that address for none. The page beyond makes up for it.
    const freeExtents = [{ at: EXTENT_ALIGNMENT, size: this.#arenaBytes }];
    const spareAt = EXTENT_ALIGNMENT + this.#arenaBytes;
    const spareExtents = sparePages > 0 ? [{ at: spareAt, size: sparePages * ARENA_PAGE_BYTES }] : [];
    const arena: ColumnArena = {
      owner: this,
      memory: arenaMemory,
      buffer: arenaMemory.buffer,
      free: freeExtents,
      spare: spareExtents,
      spareAt,
    };
    arenasByBuffer.set(arena.buffer, arena);
    this.#columnArenas.push(arena);
    return this.allocateIn(arena, columnBytes);
  }

  /** Allocates in one of its memories; `useSpare` bytes are for workspaces alone. */
  allocateIn(columnArena: ColumnArena, columnBytes: number, useSpare = false): Uint8Array | null {
    const extentOffset = takeExtent(useSpare ? columnArena.spare : columnArena.free, alignedExtent(columnBytes));
    if (extentOffset < 0) return null;
    this.#usedColumnBytes += alignedExtent(columnBytes);
    return new Uint8Array(columnArena.buffer, extentOffset, columnBytes);
  }

  /** Gives back an extent: a view over the whole result of `allocate`, in any element type. */
  release(columnView: ArrayBufferView): void {
    const columnArena = this.#columnArenas.find(({ buffer }) => buffer === columnView.buffer);
    assert(columnArena, 'what is released was allocated here');
    const extentSize = alignedExtent(columnView.byteLength);
    if (this.#poisonsFreed) new Uint8Array(columnArena.buffer, columnView.byteOffset, extentSize).fill(0xdd);
    freeExtent(
      columnView.byteOffset < columnArena.spareAt ? columnArena.free : columnArena.spare,
      columnView.byteOffset,
      extentSize,
    );
    this.#usedColumnBytes -= extentSize;
  }

  /** Releases the bytes of an extent behind its first `shortenedBytes`. */
  shorten(columnView: ArrayBufferView, shortenedBytes: number): void {
    const columnArena = this.#columnArenas.find(({ buffer }) => buffer === columnView.buffer);
    assert(columnArena && shortenedBytes <= columnView.byteLength, 'what is shortened was allocated here');
    const bytesLeft = alignedExtent(shortenedBytes);
    const freedExtent = alignedExtent(columnView.byteLength) - bytesLeft;
    if (freedExtent === 0) return;
    if (this.#poisonsFreed) new Uint8Array(columnArena.buffer, columnView.byteOffset + bytesLeft, freedExtent).fill(0xdd);
    freeExtent(
      columnView.byteOffset < columnArena.spareAt ? columnArena.free : columnArena.spare,
      columnView.byteOffset + bytesLeft,
      freedExtent,
    );
    this.#usedColumnBytes -= freedExtent;
  }
}

function alignedExtent(extentBytes: number): number {
  return Math.max(EXTENT_ALIGNMENT, Math.ceil(extentBytes / EXTENT_ALIGNMENT) * EXTENT_ALIGNMENT);
}

/** Offset of the first hole that is large enough, or -1. */
function takeExtent(freeExtents: FreeExtent[], extentSize: number): number {
  const holeIndex = freeExtents.findIndex((freeHole) => freeHole.size >= extentSize);
  if (holeIndex < 0) return -1;
  const hole = freeExtents[holeIndex]!;
  const { at: extentOffset } = hole;
  hole.at += extentSize;
  hole.size -= extentSize;
  if (hole.size === 0) freeExtents.splice(holeIndex, 1);
  return extentOffset;
}

function freeExtent(freeExtents: FreeExtent[], extentOffset: number, extentSize: number): void {
  let lowHole = 0;
  let highHole = freeExtents.length;
  while (lowHole < highHole) {
    const middleHole = (lowHole + highHole) >>> 1;
    if (freeExtents[middleHole]!.at < extentOffset) lowHole = middleHole + 1;
    else highHole = middleHole;
  }
  const holeBefore = freeExtents[lowHole - 1];
  const holeAfter = freeExtents[lowHole];
  assert(
    (!holeBefore || holeBefore.at + holeBefore.size <= extentOffset) && (!holeAfter || extentOffset + extentSize <= holeAfter.at),
    'an extent is released once',
  );
  const joinsBefore = holeBefore !== undefined && holeBefore.at + holeBefore.size === extentOffset;
  const joinsAfter = holeAfter !== undefined && extentOffset + extentSize === holeAfter.at;
  if (joinsBefore && joinsAfter) {
    holeBefore.size += extentSize + holeAfter.size;
    freeExtents.splice(lowHole, 1);
  } else if (joinsBefore) holeBefore.size += extentSize;
  else if (joinsAfter) {
    holeAfter.at = extentOffset;
    holeAfter.size += extentSize;
  } else freeExtents.splice(lowHole, 0, { at: extentOffset, size: extentSize });
}

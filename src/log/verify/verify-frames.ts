/** Frames as `verify.ts` finds them in a file: a second reading of the drawing in `log-file.ts`. */
import { ServiceError } from '../../errors.ts';
import type { DiskFile } from '../disk/disk.ts';
import { decodeFrameHeader, FRAME_HEADER_BYTES, type FrameHeader, frameIsWhole } from '../files/log-file.ts';

const windowBytes = 4 << 20;
const magic = Buffer.from('ANLF', 'latin1');

export interface FrameAtOffset {
  readonly at: number;
  readonly header: FrameHeader;
  readonly bytes: Uint8Array;
}

/** Why a frame that reads otherwise is none. */
export const failsChecksum = 'a frame that fails its checksum';

/** The frame at an offset, or why there is none. Unless it is `check`ed, the caller must check that it is whole. */
export async function frameAt(
  window: FileWindow,
  file: number,
  at: number,
  length: number,
  check = true,
): Promise<FrameAtOffset | string> {
  const header = decodeFrameHeader(await window.view(at, Math.min(FRAME_HEADER_BYTES, length - at)), file, at);
  if (!header) return 'no frame header';
  const size = FRAME_HEADER_BYTES + header.size;
  if (at + size > length) return 'a frame longer than the file';
  const bytes = await window.view(at, size);
  return !check || frameIsWhole(bytes) ? { at, header, bytes } : failsChecksum;
}

/** The first whole frame at or after an offset. */
export async function nextFrame(window: FileWindow, file: number, from: number, length: number): Promise<FrameAtOffset | null> {
  for (let at = from; at + FRAME_HEADER_BYTES <= length; ) {
    const view = await window.view(at, Math.min(windowBytes, length - at));
    const hit = Buffer.from(view.buffer, view.byteOffset, view.length).indexOf(magic);
    if (hit < 0) {
      at += Math.max(1, view.length - magic.length + 1);
      continue;
    }
    const frame = await frameAt(window, file, at + hit, length);
    if (typeof frame !== 'string') return frame;
    at += hit + 1;
  }
  return null;
}

export async function onlyZeros(window: FileWindow, from: number, length: number): Promise<boolean> {
  for (let at = from; at < length; at += windowBytes) {
    const view = await window.view(at, Math.min(windowBytes, length - at));
    for (let i = 0; i < view.length; i++) if (view[i] !== 0) return false;
  }
  return true;
}

/** A window of a file in memory, refilled when a view lies outside of it. The next window is read while this one is checked. */
export class FileWindow {
  readonly #file: DiskFile;
  readonly #length: number;
  readonly #shared: boolean;
  readonly #windowBytes: number;
  #bytes: Uint8Array = new Uint8Array(0);
  #at = 0;
  /** The window behind `#bytes`, with room before it for a frame that begins in `#bytes`. */
  #next: { readonly memory: Uint8Array; readonly span: number; readonly read: Promise<boolean> } | null = null;
  readonly #free: ArrayBufferLike[] = [];

  /** `shared`: in memory that other threads can read; `windowBytes` is how much is read at a time. */
  constructor(
    file: DiskFile,
    length: number,
    { shared = false, windowBytes: bytes = windowBytes }: { readonly shared?: boolean; readonly windowBytes?: number } = {},
  ) {
    this.#file = file;
    this.#length = length;
    this.#shared = shared;
    this.#windowBytes = bytes;
  }

  /** `size` bytes at `offset`, all inside the file. Later views leave this one as it is. */
  async view(offset: number, size: number): Promise<Uint8Array> {
    if (offset < this.#at || offset + size > this.#at + this.#bytes.length) {
      this.#bytes = (await this.#fromNext(offset, size)) ?? (await this.#read(offset, size));
      this.#at = offset;
      this.#beginNext();
    }
    return this.#bytes.subarray(offset - this.#at, offset - this.#at + size);
  }

  /** Returns memory whose views are not in use: later reads may fill it. False while the window itself uses it. */
  release(memory: ArrayBufferLike): boolean {
    if (memory === this.#bytes.buffer || memory === this.#next?.memory.buffer) return false;
    this.#free.push(memory);
    return true;
  }

  /** Nothing is being read when it resolves: the file can be closed. */
  async settle(): Promise<void> {
    await this.#next?.read;
    this.#next = null;
  }

  async #read(offset: number, size: number): Promise<Uint8Array> {
    const bytes = this.#memory(Math.min(Math.max(size, this.#windowBytes), this.#length - offset));
    await readAll(this.#file, bytes, offset);
    return bytes;
  }

  #beginNext(): void {
    const from = this.#at + this.#bytes.length;
    const span = Math.min(this.#windowBytes, this.#length - from);
    if (span === 0) return;
    const memory = this.#memory(this.#carryBytes + span);
    // A reading that fails is tried again by who needs it, and fails there.
    const read = readAll(this.#file, memory.subarray(this.#carryBytes), from).then(
      () => true,
      () => false,
    );
    this.#next = { memory, span, read };
  }

  /** The view where it begins in this window and ends in the next. */
  async #fromNext(offset: number, size: number): Promise<Uint8Array | null> {
    const next = this.#next;
    if (!next) return null;
    this.#next = null;
    const end = this.#at + this.#bytes.length;
    const carried = end - offset;
    const here = carried >= 0 && carried <= Math.min(this.#carryBytes, this.#bytes.length) && size <= carried + next.span;
    if (!(await next.read) || !here) return null;
    const bytes = next.memory.subarray(this.#carryBytes - carried);
    bytes.set(this.#bytes.subarray(this.#bytes.length - carried));
    return bytes;
  }

  get #carryBytes(): number {
    return this.#windowBytes >> 2;
  }

  /** To touch fresh memory for the first time takes longer than to read into it. */
  #memory(bytes: number): Uint8Array {
    const used = this.#free.pop();
    if (used && used.byteLength >= bytes) return new Uint8Array(used, 0, bytes);
    return new Uint8Array(this.#shared ? new SharedArrayBuffer(bytes) : new ArrayBuffer(bytes));
  }
}

export async function readAll(file: DiskFile, target: Uint8Array, offset: number): Promise<void> {
  for (let at = 0; at < target.length; ) {
    const count = await file.read(target.subarray(at), offset + at);
    if (count === 0) throw new ServiceError('REL_STORAGE', `${file.path} ended early`);
    at += count;
  }
}

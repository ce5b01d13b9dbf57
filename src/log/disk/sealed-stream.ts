/**
 * Bytes of any length sealed while they come, in frames of 1 MiB, each readable by itself; memory holds one of them.
 *
 *   frame i = sealed [1 MiB, the last one less] · tag [16]      AES-256-GCM, nonce = prefix [8] · i u32
 */
import { createCipheriv, createDecipheriv } from 'node:crypto';
import { ServiceError } from '../../errors.ts';
import { type DiskFile, writeFully } from './disk.ts';

export const FRAME_BYTES = 1 << 20;
const TAG_BYTES = 16;

/** Key material of one stream: no other stream is sealed under this key. */
export interface StreamSeal {
  readonly key: Uint8Array;
  /** 8 bytes. */
  readonly prefix: Uint8Array;
}

export class SealedWriter {
  readonly #file: DiskFile;
  readonly #seal: StreamSeal;
  readonly #onSealed: (bytes: Uint8Array) => void;
  readonly #frame = Buffer.allocUnsafe(FRAME_BYTES);
  #used = 0;
  #frames = 0;
  #at: number;
  #size = 0;

  /** From `offset` of the file on; `onSealed` is shown every byte that is written. */
  constructor(file: DiskFile, seal: StreamSeal, offset = 0, onSealed: (bytes: Uint8Array) => void = () => undefined) {
    this.#file = file;
    this.#seal = seal;
    this.#at = offset;
    this.#onSealed = onSealed;
  }

  /** Bytes of content so far. */
  get size(): number {
    return this.#size;
  }

  /** Where the next byte goes in the file. */
  get end(): number {
    return this.#at;
  }

  async write(piece: Uint8Array): Promise<void> {
    this.#size += piece.length;
    for (let at = 0; at < piece.length; ) {
      const part = piece.subarray(at, at + FRAME_BYTES - this.#used);
      this.#frame.set(part, this.#used);
      this.#used += part.length;
      at += part.length;
      if (this.#used === FRAME_BYTES) await this.#put();
    }
  }

  /** Seals and writes the rest as the last frame. */
  async flush(): Promise<void> {
    if (this.#used > 0) await this.#put();
  }

  async #put(): Promise<void> {
    const { key, prefix } = this.#seal;
    const cipher = createCipheriv('aes-256-gcm', key, nonceOf(prefix, this.#frames++));
    const sealed = cipher.update(this.#frame.subarray(0, this.#used));
    cipher.final();
    const tag = cipher.getAuthTag();
    this.#used = 0;
    for (const bytes of [sealed, tag]) {
      this.#onSealed(bytes);
      await writeFully(this.#file, bytes, this.#at);
      this.#at += bytes.length;
    }
  }
}

/** Content from `from` to before `to`, frame by frame. Throws REL_STORAGE for what is not as it was written. */
export async function* readSealed(
  file: DiskFile,
  seal: StreamSeal,
  { offset, size, from, to }: { readonly offset: number; readonly size: number; readonly from: number; readonly to: number },
): AsyncGenerator<Buffer, void> {
  const sealed = Buffer.allocUnsafe(FRAME_BYTES + TAG_BYTES);
  for (let at = from; at < to; ) {
    const index = Math.floor(at / FRAME_BYTES);
    const start = index * FRAME_BYTES;
    const length = Math.min(FRAME_BYTES, size - start);
    await readFully(file, sealed.subarray(0, length + TAG_BYTES), offset + index * (FRAME_BYTES + TAG_BYTES));
    const content = openFrame(seal, index, sealed.subarray(0, length), sealed.subarray(length, length + TAG_BYTES));
    const end = Math.min(to, start + length);
    yield content.subarray(at - start, end - start);
    at = end;
  }
}

/** Bytes that so much content takes when it is sealed. */
export function sealedBytes(size: number): number {
  return size + Math.ceil(size / FRAME_BYTES) * TAG_BYTES;
}

function openFrame({ key, prefix }: StreamSeal, index: number, sealed: Uint8Array, tag: Uint8Array): Buffer {
  const decipher = createDecipheriv('aes-256-gcm', key, nonceOf(prefix, index), { authTagLength: TAG_BYTES });
  decipher.setAuthTag(tag);
  try {
    const content = decipher.update(sealed);
    decipher.final();
    return content;
  } catch (cause) {
    throw new ServiceError('REL_STORAGE', `frame ${index} of a sealed file is damaged`, { cause });
  }
}

/** Throws REL_STORAGE where the file ends before that. */
export async function readFully(file: DiskFile, target: Uint8Array, offset: number): Promise<void> {
  for (let at = 0; at < target.length; ) {
    const read = await file.read(target.subarray(at), offset + at);
    if (read === 0) throw new ServiceError('REL_STORAGE', `${file.path} is cut off`);
    at += read;
  }
}

function nonceOf(prefix: Uint8Array, index: number): Buffer {
  const nonce = Buffer.alloc(12);
  nonce.set(prefix);
  nonce.writeUInt32LE(index, 8);
  return nonce;
}

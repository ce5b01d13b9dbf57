/**
 * Bytes of any length sealed while they come, in frames of 1 MiB, each readable by itself; memory holds one of them.
 *
 *   frame i = sealed [1 MiB, the last one less] · tag [16]      AES-256-GCM, nonce = prefix [8] · i u32
 */
import { createCipheriv, createDecipheriv } from 'node:crypto';
import { ServiceError } from '../../errors.ts';
import { type DiskFile, writeFully } from './disk.ts';

export const FRAME_BYTES = 1 << 20;
const STREAM_TAG_BYTES = 16;

/** Key material of one stream: no other stream is sealed under this key. */
export interface StreamSeal {
  readonly key: Uint8Array;
  /** 8 bytes. */
  readonly prefix: Uint8Array;
}

export class SealedWriter {
  readonly #sealedFile: DiskFile;
  readonly #streamSeal: StreamSeal;
  readonly #onSealed: (bytes: Uint8Array) => void;
  readonly #plainFrame = Buffer.allocUnsafe(FRAME_BYTES);
  #usedFrameBytes = 0;
  #sealedFrameCount = 0;
  #sealedOffset: number;
  #plainStreamSize = 0;

  /** From `offset` of the file on; `onSealed` is shown every byte that is written. */
  constructor(sealedFile: DiskFile, streamSeal: StreamSeal, offset = 0, onSealed: (bytes: Uint8Array) => void = () => undefined) {
    this.#sealedFile = sealedFile;
    this.#streamSeal = streamSeal;
    this.#sealedOffset = offset;
    this.#onSealed = onSealed;
  }

  /** Bytes of content so far. */
  get size(): number {
    return this.#plainStreamSize;
  }

  /** Where the next byte goes in the file. */
  get end(): number {
    return this.#sealedOffset;
  }

  async write(plainPiece: Uint8Array): Promise<void> {
    this.#plainStreamSize += plainPiece.length;
    for (let pieceOffset = 0; pieceOffset < plainPiece.length; ) {
      const framePart = plainPiece.subarray(pieceOffset, pieceOffset + FRAME_BYTES - this.#usedFrameBytes);
      this.#plainFrame.set(framePart, this.#usedFrameBytes);
      this.#usedFrameBytes += framePart.length;
      pieceOffset += framePart.length;
      if (this.#usedFrameBytes === FRAME_BYTES) await this.#sealFrame();
    }
  }

  /** Seals and writes the rest as the last frame. */
  async flush(): Promise<void> {
    if (this.#usedFrameBytes > 0) await this.#sealFrame();
  }

  async #sealFrame(): Promise<void> {
    const { key, prefix } = this.#streamSeal;
    const frameCipher = createCipheriv('aes-256-gcm', key, streamFrameNonce(prefix, this.#sealedFrameCount++));
    const sealedFrame = frameCipher.update(this.#plainFrame.subarray(0, this.#usedFrameBytes));
    frameCipher.final();
    const frameTag = frameCipher.getAuthTag();
    this.#usedFrameBytes = 0;
    for (const sealedFrameBytes of [sealedFrame, frameTag]) {
      this.#onSealed(sealedFrameBytes);
      await writeFully(this.#sealedFile, sealedFrameBytes, this.#sealedOffset);
      this.#sealedOffset += sealedFrameBytes.length;
    }
  }
}

/** Content from `plainFrom` to before `plainTo`, frame by frame. Throws REL_STORAGE for what is not as it was written. */
export async function* readSealed(
  sealedFile: DiskFile,
  streamSeal: StreamSeal,
  {
    offset: streamOffset,
    size: streamSize,
    from: plainFrom,
    to: plainTo,
  }: { readonly offset: number; readonly size: number; readonly from: number; readonly to: number },
): AsyncGenerator<Buffer, void> {
  const sealedFrame = Buffer.allocUnsafe(FRAME_BYTES + STREAM_TAG_BYTES);
  for (let plainOffset = plainFrom; plainOffset < plainTo; ) {
    const frameNumber = Math.floor(plainOffset / FRAME_BYTES);
    const frameStart = frameNumber * FRAME_BYTES;
    const frameLength = Math.min(FRAME_BYTES, streamSize - frameStart);
    await readFully(
      sealedFile,
      sealedFrame.subarray(0, frameLength + STREAM_TAG_BYTES),
      streamOffset + frameNumber * (FRAME_BYTES + STREAM_TAG_BYTES),
    );
    const plainFrame = openSealedFrame(
      streamSeal,
      frameNumber,
      sealedFrame.subarray(0, frameLength),
      sealedFrame.subarray(frameLength, frameLength + STREAM_TAG_BYTES),
    );
    const plainEnd = Math.min(plainTo, frameStart + frameLength);
    yield plainFrame.subarray(plainOffset - frameStart, plainEnd - frameStart);
    plainOffset = plainEnd;
  }
}

/** Bytes that so much content takes when it is sealed. */
export function sealedBytes(plainSize: number): number {
  return plainSize + Math.ceil(plainSize / FRAME_BYTES) * STREAM_TAG_BYTES;
}

function openSealedFrame(
  { key, prefix }: StreamSeal,
  frameNumber: number,
  sealedFrame: Uint8Array,
  frameTag: Uint8Array,
): Buffer {
  const frameDecipher = createDecipheriv('aes-256-gcm', key, streamFrameNonce(prefix, frameNumber), {
    authTagLength: STREAM_TAG_BYTES,
  });
  frameDecipher.setAuthTag(frameTag);
  try {
    const plainFrame = frameDecipher.update(sealedFrame);
    frameDecipher.final();
    return plainFrame;
  } catch (cause) {
    throw new ServiceError('REL_STORAGE', `frame ${frameNumber} of a sealed file is damaged`, { cause });
  }
}

/** Throws REL_STORAGE where the file ends before that. */
export async function readFully(readFile: DiskFile, readBuffer: Uint8Array, fileOffset: number): Promise<void> {
  for (let filledBytes = 0; filledBytes < readBuffer.length; ) {
    const readCount = await readFile.read(readBuffer.subarray(filledBytes), fileOffset + filledBytes);
    if (readCount === 0) throw new ServiceError('REL_STORAGE', `${readFile.path} is cut off`);
    filledBytes += readCount;
  }
}

function streamFrameNonce(prefix: Uint8Array, frameNumber: number): Buffer {
  const frameNonce = Buffer.alloc(12);
  frameNonce.set(prefix);
  frameNonce.writeUInt32LE(frameNumber, 8);
  return frameNonce;
}

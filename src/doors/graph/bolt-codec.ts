/**
 * Bytes of Bolt as messages: a handshake, then chunks, and an empty one behind each message. Empty chunks between two messages say
 * nothing. Source: neo4j.com/docs/bolt/current/bolt/handshake and /message.
 */
import { ServiceError } from '../../errors.ts';
import type { Codec, Decoded } from '../shared/codec.ts';

export type BoltFrame =
  | { readonly kind: 'handshake'; readonly version: Version | null }
  /** Says nothing, but that the client is there. */
  | { readonly kind: 'noop' }
  /** PackStream of one structure. */
  | { readonly kind: 'message'; readonly body: Buffer };

export interface Version {
  readonly major: number;
  readonly minor: number;
}

interface BoltDecodeState {
  readonly isOpen: boolean;
  /** Offset of the next chunk. */
  readonly at: number;
  /** Begin and end of each chunk. */
  readonly bounds: number[];
}

/** Drivers fill chunks with 1,400 bytes and more. */
const messageChunksMax = 65_536;
const boltChunksInTurn = 4_096;
const boltChunkBytesMax = 0xffff;
const boltPreamble = 0x6060b017;
const boltHandshakeBytes = 20;
/** The versions that are spoken, the best first. */
const spokenVersions: readonly Version[] = [
  ...[4, 3, 2, 1, 0].map((minorVersion) => ({ major: 5, minor: minorVersion })),
  { major: 4, minor: 4 },
];

export const boltCodec: Codec<BoltDecodeState, BoltFrame> = {
  start: { isOpen: false, at: 0, bounds: [] },
  cost: { part: 150, byte: 0.1 },
  partsInTurn: boltChunksInTurn,
  decode: (boltState, boltBytes) => (boltState.isOpen ? decodeMessage(boltState, boltBytes) : decodeHandshake(boltBytes)),
};

function decodeHandshake(handshake: Buffer): Decoded<BoltDecodeState, BoltFrame> {
  if (handshake.length < 4) return { needs: 4 };
  if (handshake.readUInt32BE(0) !== boltPreamble) throw new ServiceError('REL_INVALID', 'this port speaks Bolt');
  if (handshake.length < boltHandshakeBytes) return { needs: boltHandshakeBytes };
  return {
    message: { kind: 'handshake', version: agreeBoltVersion(handshake) },
    taken: boltHandshakeBytes,
    state: openChunkState(),
  };
}

const noopFrame = { kind: 'noop' } as const;
const openChunkState = (): BoltDecodeState => ({ isOpen: true, at: 0, bounds: [] });

/** The client's four offers stand in its order: 0, how many minor versions below, minor, major. */
function agreeBoltVersion(handshake: Buffer): Version | null {
  for (let versionOffset = 4; versionOffset < boltHandshakeBytes; versionOffset += 4) {
    const [minorRange, minorVersion, majorVersion] = [
      handshake[versionOffset + 1]!,
      handshake[versionOffset + 2]!,
      handshake[versionOffset + 3]!,
    ];
    const agreedVersion = spokenVersions.find(
      (spokenVersion) =>
        spokenVersion.major === majorVersion &&
        spokenVersion.minor <= minorVersion &&
        spokenVersion.minor >= minorVersion - minorRange,
    );
    if (agreedVersion !== undefined) return agreedVersion;
  }
  return null;
}

/** `from` is the state's owner's no longer: its list is filled on. */
function decodeMessage(
  { at: chunkStart, bounds: chunkBounds }: BoltDecodeState,
  boltBytes: Buffer,
): Decoded<BoltDecodeState, BoltFrame> {
  let chunkOffset = chunkStart;
  for (let turnChunks = 0; ; turnChunks++) {
    const needsMore = (neededBytes: number): Decoded<BoltDecodeState, BoltFrame> => ({
      needs: neededBytes,
      state: { isOpen: true, at: chunkOffset, bounds: chunkBounds },
    });
    if (boltBytes.length < chunkOffset + 2) return needsMore(chunkOffset + 2);
    if (turnChunks === boltChunksInTurn) return needsMore(chunkOffset);
    const chunkLength = boltBytes.readUInt16BE(chunkOffset);
    if (chunkLength === 0) {
      chunkOffset += 2;
      const boltMessage =
        chunkBounds.length === 0 ? noopFrame : ({ kind: 'message', body: joinChunks(boltBytes, chunkBounds) } as const);
      return { message: boltMessage, taken: chunkOffset, state: openChunkState() };
    }
    if (boltBytes.length < chunkOffset + 2 + chunkLength) return needsMore(chunkOffset + 2 + chunkLength);
    if (chunkBounds.length === 2 * messageChunksMax)
      throw new ServiceError('REL_INVALID', `a message has at most ${messageChunksMax} chunks`);
    chunkBounds.push(chunkOffset + 2, chunkOffset + 2 + chunkLength);
    chunkOffset += 2 + chunkLength;
  }
}

/** A copy: it may wait while other bytes come. */
function joinChunks(boltBytes: Buffer, chunkBounds: readonly number[]): Buffer {
  const chunkPieces: Buffer[] = [];
  for (let i = 0; i < chunkBounds.length; i += 2) chunkPieces.push(boltBytes.subarray(chunkBounds[i], chunkBounds[i + 1]));
  return Buffer.concat(chunkPieces);
}

/** A message in chunks. */
export function chunk(messageBody: Uint8Array): Buffer {
  const chunkCount = Math.ceil(messageBody.length / boltChunkBytesMax);
  const chunkBytes = Buffer.allocUnsafe(messageBody.length + 2 * chunkCount + 2);
  let chunkedOffset = 0;
  for (let bodyOffset = 0; bodyOffset < messageBody.length; bodyOffset += boltChunkBytesMax) {
    const bodyChunk = messageBody.subarray(bodyOffset, bodyOffset + boltChunkBytesMax);
    chunkedOffset = chunkBytes.writeUInt16BE(bodyChunk.length, chunkedOffset);
    chunkBytes.set(bodyChunk, chunkedOffset);
    chunkedOffset += bodyChunk.length;
  }
  chunkBytes.writeUInt16BE(0, chunkedOffset);
  return chunkBytes;
}

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

interface DecodeState {
  readonly isOpen: boolean;
  /** Offset of the next chunk. */
  readonly at: number;
  /** Begin and end of each chunk. */
  readonly bounds: number[];
}

/** Drivers fill chunks with 1,400 bytes and more. */
const chunksMax = 65_536;
const chunksInTurn = 4_096;
const chunkBytesMax = 0xffff;
const preamble = 0x6060b017;
const handshakeBytes = 20;
/** The versions that are spoken, the best first. */
const spoken: readonly Version[] = [...[4, 3, 2, 1, 0].map((minor) => ({ major: 5, minor })), { major: 4, minor: 4 }];

export const boltCodec: Codec<DecodeState, BoltFrame> = {
  start: { isOpen: false, at: 0, bounds: [] },
  cost: { part: 150, byte: 0.1 },
  partsInTurn: chunksInTurn,
  decode: (state, bytes) => (state.isOpen ? decodeMessage(state, bytes) : decodeHandshake(bytes)),
};

function decodeHandshake(bytes: Buffer): Decoded<DecodeState, BoltFrame> {
  if (bytes.length < 4) return { needs: 4 };
  if (bytes.readUInt32BE(0) !== preamble) throw new ServiceError('REL_INVALID', 'this port speaks Bolt');
  if (bytes.length < handshakeBytes) return { needs: handshakeBytes };
  return { message: { kind: 'handshake', version: agreeVersion(bytes) }, taken: handshakeBytes, state: initialState() };
}

const noop = { kind: 'noop' } as const;
const initialState = (): DecodeState => ({ isOpen: true, at: 0, bounds: [] });

/** The client's four offers stand in its order: 0, how many minor versions below, minor, major. */
function agreeVersion(bytes: Buffer): Version | null {
  for (let at = 4; at < handshakeBytes; at += 4) {
    const [below, minor, major] = [bytes[at + 1]!, bytes[at + 2]!, bytes[at + 3]!];
    const agreedVersion = spoken.find(
      (version) => version.major === major && version.minor <= minor && version.minor >= minor - below,
    );
    if (agreedVersion !== undefined) return agreedVersion;
  }
  return null;
}

/** `from` is the state's owner's no longer: its list is filled on. */
function decodeMessage({ at: begin, bounds }: DecodeState, bytes: Buffer): Decoded<DecodeState, BoltFrame> {
  let at = begin;
  for (let turn = 0; ; turn++) {
    const later = (needs: number): Decoded<DecodeState, BoltFrame> => ({ needs, state: { isOpen: true, at, bounds } });
    if (bytes.length < at + 2) return later(at + 2);
    if (turn === chunksInTurn) return later(at);
    const length = bytes.readUInt16BE(at);
    if (length === 0) {
      at += 2;
      const message = bounds.length === 0 ? noop : ({ kind: 'message', body: join(bytes, bounds) } as const);
      return { message, taken: at, state: initialState() };
    }
    if (bytes.length < at + 2 + length) return later(at + 2 + length);
    if (bounds.length === 2 * chunksMax) throw new ServiceError('REL_INVALID', `a message has at most ${chunksMax} chunks`);
    bounds.push(at + 2, at + 2 + length);
    at += 2 + length;
  }
}

/** A copy: it may wait while other bytes come. */
function join(bytes: Buffer, bounds: readonly number[]): Buffer {
  const pieces: Buffer[] = [];
  for (let i = 0; i < bounds.length; i += 2) pieces.push(bytes.subarray(bounds[i], bounds[i + 1]));
  return Buffer.concat(pieces);
}

/** A message in chunks. */
export function chunk(body: Uint8Array): Buffer {
  const chunks = Math.ceil(body.length / chunkBytesMax);
  const chunkBytes = Buffer.allocUnsafe(body.length + 2 * chunks + 2);
  let at = 0;
  for (let from = 0; from < body.length; from += chunkBytesMax) {
    const chunk = body.subarray(from, from + chunkBytesMax);
    at = chunkBytes.writeUInt16BE(chunk.length, at);
    chunkBytes.set(chunk, at);
    at += chunk.length;
  }
  chunkBytes.writeUInt16BE(0, at);
  return chunkBytes;
}

/**
 * Compressed request bodies, decoded as they stream in, with a limit relative to the bytes sent: a bomb ends early and costs no
 * memory.
 */
import type { IncomingMessage } from 'node:http';
import { pipeline, Readable } from 'node:stream';
import { promisify } from 'node:util';
import { createGunzip, createInflate, gunzip, inflate } from 'node:zlib';
import { ServiceError } from '../../errors.ts';
import type { RequestBodies } from './http-request-bodies.ts';

export type Encoding = 'identity' | 'gzip' | 'deflate';

const gunzipWhole = promisify(gunzip);
const inflateWhole = promisify(inflate);

/** Text of rows rarely packs tighter than this. */
const unpackedRatioMax = 200;

/** REL_NOT_IMPLEMENTED for an encoding that is not read. */
export function encodingOf({ headers: requestHeaders }: Pick<IncomingMessage, 'headers'>): Encoding {
  const encodingName = (requestHeaders['content-encoding'] ?? 'identity').trim().toLowerCase();
  if (encodingName === 'x-gzip') return 'gzip';
  if (encodingName === 'identity' || encodingName === 'gzip' || encodingName === 'deflate') return encodingName;
  throw new ServiceError(
    'REL_NOT_IMPLEMENTED',
    'the content encoding is not supported: send the body plain, or as gzip or deflate',
  );
}

/** Throws the errors of decompressing a body, without keeping its content. */
export async function checkEncoded(
  bodySource: AsyncIterable<Uint8Array>,
  bodyEncoding: Encoding,
  freeBytes: number,
): Promise<void> {
  if (bodyEncoding === 'identity') return;
  const decodedPieces = decodeBody(bodySource, bodyEncoding, freeBytes);
  while ((await decodedPieces.next()).done !== true);
}

/** A body as it comes, decoded in turns. */
export function decodeInTurns(
  { bodies, bodyLimitBytes }: { readonly bodies: RequestBodies; readonly bodyLimitBytes: number },
  bodySource: AsyncIterable<Uint8Array>,
  bodyEncoding: Encoding,
): AsyncIterable<Uint8Array> {
  return bodyEncoding === 'identity' ? bodySource : bodies.inTurns(decodeBody(bodySource, bodyEncoding, bodyLimitBytes));
}

/** A body that is here, of so many bytes at most once it is unfolded. */
export async function unfoldedWhole(encodedBody: Buffer, bodyEncoding: Encoding, unpackedBytesMax: number): Promise<Buffer> {
  if (bodyEncoding === 'identity') return encodedBody;
  try {
    return await (bodyEncoding === 'gzip' ? gunzipWhole : inflateWhole)(encodedBody, { maxOutputLength: unpackedBytesMax });
  } catch (unpackError) {
    if ((unpackError as { readonly code?: string }).code === 'ERR_BUFFER_TOO_LARGE')
      throw new ServiceError('REL_TOO_LARGE', `the body unpacks to more than ${unpackedBytesMax} bytes`);
    throw new ServiceError('REL_INVALID', `the body is not valid ${bodyEncoding}`, { cause: unpackError });
  }
}

/** `freeBytes` may come out of however little went in. */
async function* decodeBody(
  encodedSource: AsyncIterable<Uint8Array>,
  bodyEncoding: Encoding,
  freeBytes: number,
): AsyncGenerator<Uint8Array, void> {
  if (bodyEncoding === 'identity') return yield* encodedSource;
  let encodedBytes = 0;
  async function* countSent(): AsyncGenerator<Uint8Array, void> {
    for await (const encodedChunk of encodedSource) {
      encodedBytes += encodedChunk.length;
      yield encodedChunk;
    }
  }
  const unpackStream = bodyEncoding === 'gzip' ? createGunzip() : createInflate();
  // Errors of either end reach the loop below through the stream itself.
  pipeline(Readable.from(countSent(), { objectMode: false }), unpackStream, () => undefined);
  let unpackedBytes = 0;
  try {
    for await (const unpackedChunk of unpackStream as AsyncIterable<Buffer>) {
      unpackedBytes += unpackedChunk.length;
      if (unpackedBytes > Math.max(freeBytes, encodedBytes * unpackedRatioMax)) {
        throw new ServiceError('REL_TOO_LARGE', `the body unpacks to more than ${unpackedRatioMax} times its size`);
      }
      yield unpackedChunk;
    }
  } catch (unpackError) {
    if (unpackError instanceof ServiceError) throw unpackError;
    throw new ServiceError('REL_INVALID', `the body is not valid ${bodyEncoding}`, { cause: unpackError });
  }
}

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

const gunzipped = promisify(gunzip);
const inflated = promisify(inflate);

/** Text of rows rarely packs tighter than this. */
const ratioMax = 200;

/** REL_NOT_IMPLEMENTED for an encoding that is not read. */
export function encodingOf({ headers }: Pick<IncomingMessage, 'headers'>): Encoding {
  const name = (headers['content-encoding'] ?? 'identity').trim().toLowerCase();
  if (name === 'x-gzip') return 'gzip';
  if (name === 'identity' || name === 'gzip' || name === 'deflate') return name;
  throw new ServiceError(
    'REL_NOT_IMPLEMENTED',
    'the content encoding is not supported: send the body plain, or as gzip or deflate',
  );
}

/** Throws the errors of decompressing a body, without keeping its content. */
export async function checkEncoded(source: AsyncIterable<Uint8Array>, encoding: Encoding, freeBytes: number): Promise<void> {
  if (encoding === 'identity') return;
  const pieces = decode(source, encoding, freeBytes);
  while ((await pieces.next()).done !== true);
}

/** A body as it comes, decoded in turns. */
export function decodeInTurns(
  { bodies, bodyLimitBytes }: { readonly bodies: RequestBodies; readonly bodyLimitBytes: number },
  source: AsyncIterable<Uint8Array>,
  encoding: Encoding,
): AsyncIterable<Uint8Array> {
  return encoding === 'identity' ? source : bodies.inTurns(decode(source, encoding, bodyLimitBytes));
}

/** A body that is here, of so many bytes at most once it is unfolded. */
export async function unfoldedWhole(body: Buffer, encoding: Encoding, bytesMax: number): Promise<Buffer> {
  if (encoding === 'identity') return body;
  try {
    return await (encoding === 'gzip' ? gunzipped : inflated)(body, { maxOutputLength: bytesMax });
  } catch (error) {
    if ((error as { readonly code?: string }).code === 'ERR_BUFFER_TOO_LARGE')
      throw new ServiceError('REL_TOO_LARGE', `the body unpacks to more than ${bytesMax} bytes`);
    throw new ServiceError('REL_INVALID', `the body is not valid ${encoding}`, { cause: error });
  }
}

/** `freeBytes` may come out of however little went in. */
async function* decode(
  source: AsyncIterable<Uint8Array>,
  encoding: Encoding,
  freeBytes: number,
): AsyncGenerator<Uint8Array, void> {
  if (encoding === 'identity') return yield* source;
  let sent = 0;
  async function* countSent(): AsyncGenerator<Uint8Array, void> {
    for await (const chunk of source) {
      sent += chunk.length;
      yield chunk;
    }
  }
  const unpacking = encoding === 'gzip' ? createGunzip() : createInflate();
  // Errors of either end reach the loop below through the stream itself.
  pipeline(Readable.from(countSent(), { objectMode: false }), unpacking, () => undefined);
  let came = 0;
  try {
    for await (const chunk of unpacking as AsyncIterable<Buffer>) {
      came += chunk.length;
      if (came > Math.max(freeBytes, sent * ratioMax)) {
        throw new ServiceError('REL_TOO_LARGE', `the body unpacks to more than ${ratioMax} times its size`);
      }
      yield chunk;
    }
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    throw new ServiceError('REL_INVALID', `the body is not valid ${encoding}`, { cause: error });
  }
}

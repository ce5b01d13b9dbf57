/**
 * Bodies in AWS's own chunks (`Content-Encoding: aws-chunked`), signed or not, with trailers or not. Pure: the same bytes give the
 * same content wherever they were cut.
 *
 *   <hex length>[;chunk-signature=<64 hex>]\r\n <data> \r\n … 0[;chunk-signature=…]\r\n [name:value\r\n …] \r\n
 */
import { createHash, type Hash } from 'node:crypto';
import type { ChunkSignatures } from '../../governance/authentication/sigv4.ts';
import { ObjectRefusal, s3Refusals } from './errors.ts';

export interface ChunkedOptions {
  /** Each chunk says its signature. */
  readonly signed: boolean;
  /** Checks the chunks' signatures; null: they can't be checked. */
  readonly signatures: ChunkSignatures | null;
  readonly trailers: boolean;
  /** Length of all data together. */
  readonly length: number;
}

const lineBytesMax = 1_024;
const trailersMax = 16;

type State =
  | { readonly at: 'length' }
  | { readonly at: 'data'; left: number; readonly hash: Hash | null; readonly signature: string }
  | { readonly at: 'data end' }
  | { readonly at: 'trailer' }
  | { readonly at: 'over' };

export class ChunkedDecoder {
  readonly #options: ChunkedOptions;
  #state: State = { at: 'length' };
  #line: Buffer[] = [];
  #lineBytes = 0;
  #taken = 0;
  readonly #trailers = new Map<string, string>();
  #trailerLines = '';
  #trailerSignature: string | null = null;

  constructor(options: ChunkedOptions) {
    this.#options = options;
  }

  /** The content among these bytes. Throws for a malformed body. */
  push(bytes: Buffer): Buffer[] {
    const content: Buffer[] = [];
    for (let at = 0; at < bytes.length; ) {
      const state = this.#state;
      if (state.at === 'over') throw s3Refusals.incompleteBody();
      if (state.at === 'data') {
        const piece = bytes.subarray(at, at + state.left);
        at += piece.length;
        state.left -= piece.length;
        state.hash?.update(piece);
        content.push(piece);
        if (state.left === 0) {
          this.#checkChunk(state.hash, state.signature);
          this.#state = { at: 'data end' };
        }
        continue;
      }
      const end = bytes.indexOf(0x0a, at);
      const piece = bytes.subarray(at, end < 0 ? bytes.length : end);
      this.#lineBytes += piece.length;
      if (this.#lineBytes > lineBytesMax) throw malformedError();
      this.#line.push(piece);
      at += piece.length + 1;
      if (end >= 0) this.#takeLine(state.at);
    }
    return content;
  }

  /** Trailers, by lower-case name. Throws where the body is not over. */
  end(): ReadonlyMap<string, string> {
    if (this.#state.at !== 'over' || this.#taken !== this.#options.length) throw s3Refusals.incompleteBody();
    return this.#trailers;
  }

  #takeLine(at: 'length' | 'data end' | 'trailer'): void {
    const line = Buffer.concat(this.#line).toString('latin1').replace(/\r$/, '');
    this.#line = [];
    this.#lineBytes = 0;
    if (at === 'length') return this.#begin(line);
    if (at === 'trailer') return this.#trailer(line);
    if (line !== '') throw malformedError();
    this.#state = { at: 'length' };
  }

  #begin(line: string): void {
    const { signed, signatures, length } = this.#options;
    const match = /^([0-9a-fA-F]{1,12})(?:;chunk-signature=([0-9a-f]{64}))?$/.exec(line);
    if (!match || (signed && match[2] === undefined)) throw malformedError();
    const bytes = Number.parseInt(match[1]!, 16);
    const signature = match[2] ?? '';
    this.#taken += bytes;
    if (this.#taken > length) throw s3Refusals.incompleteBody();
    const hash = signed && signatures !== null ? createHash('sha256') : null;
    if (bytes > 0) {
      this.#state = { at: 'data', left: bytes, hash, signature };
      return;
    }
    this.#checkChunk(hash, signature);
    this.#state = { at: 'trailer' };
  }

  #trailer(line: string): void {
    if (line === '') return this.#finish();
    const colon = line.indexOf(':');
    if (!this.#options.trailers || colon < 1 || this.#trailers.size === trailersMax || this.#trailerSignature !== null)
      throw malformedError();
    const name = line.slice(0, colon).trim().toLowerCase();
    const value = line.slice(colon + 1).trim();
    if (name === 'x-amz-trailer-signature') {
      this.#trailerSignature = value;
      return;
    }
    if (this.#trailers.has(name)) throw malformedError();
    this.#trailers.set(name, value);
    this.#trailerLines += `${name}:${value}\n`;
  }

  #finish(): void {
    const { signed, signatures, trailers } = this.#options;
    if (signed && signatures !== null && trailers && !signatures.takesTrailer(this.#trailerLines, this.#trailerSignature ?? ''))
      throw mismatch();
    this.#state = { at: 'over' };
  }

  #checkChunk(hash: Hash | null, signature: string): void {
    const { signatures } = this.#options;
    if (hash !== null && !signatures!.takes(hash.digest('hex'), signature)) throw mismatch();
  }
}

const malformedError = (): ObjectRefusal =>
  new ObjectRefusal('InvalidRequest', 400, 'REL_INVALID', 'the body is not in chunks as x-amz-content-sha256 says');
const mismatch = (): ObjectRefusal =>
  new ObjectRefusal('SignatureDoesNotMatch', 403, 'REL_UNAUTHENTICATED', 'a chunk of the body is not the one that was signed');

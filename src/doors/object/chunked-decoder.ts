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

const chunkLineBytesMax = 1_024;
const chunkTrailersMax = 16;

type ChunkState =
  | { readonly at: 'length' }
  | { readonly at: 'data'; left: number; readonly hash: Hash | null; readonly signature: string }
  | { readonly at: 'data end' }
  | { readonly at: 'trailer' }
  | { readonly at: 'over' };

export class ChunkedDecoder {
  readonly #chunkedOptions: ChunkedOptions;
  #chunkState: ChunkState = { at: 'length' };
  #chunkLine: Buffer[] = [];
  #chunkLineBytes = 0;
  #decodedBytes = 0;
  readonly #trailersByName = new Map<string, string>();
  #trailerLines = '';
  #trailerSignature: string | null = null;

  constructor(chunkedOptions: ChunkedOptions) {
    this.#chunkedOptions = chunkedOptions;
  }

  /** The content among these bytes. Throws for a malformed body. */
  push(chunkedBytes: Buffer): Buffer[] {
    const chunkContent: Buffer[] = [];
    for (let chunkedOffset = 0; chunkedOffset < chunkedBytes.length; ) {
      const chunkState = this.#chunkState;
      if (chunkState.at === 'over') throw s3Refusals.incompleteBody();
      if (chunkState.at === 'data') {
        const chunkPiece = chunkedBytes.subarray(chunkedOffset, chunkedOffset + chunkState.left);
        chunkedOffset += chunkPiece.length;
        chunkState.left -= chunkPiece.length;
        chunkState.hash?.update(chunkPiece);
        chunkContent.push(chunkPiece);
        if (chunkState.left === 0) {
          this.#checkChunkSignature(chunkState.hash, chunkState.signature);
          this.#chunkState = { at: 'data end' };
        }
        continue;
      }
      const lineEnd = chunkedBytes.indexOf(0x0a, chunkedOffset);
      const piece = chunkedBytes.subarray(chunkedOffset, lineEnd < 0 ? chunkedBytes.length : lineEnd);
      this.#chunkLineBytes += piece.length;
      if (this.#chunkLineBytes > chunkLineBytesMax) throw malformedChunks();
      this.#chunkLine.push(piece);
      chunkedOffset += piece.length + 1;
      if (lineEnd >= 0) this.#takeChunkLine(chunkState.at);
    }
    return chunkContent;
  }

  /** Trailers, by lower-case name. Throws where the body is not over. */
  end(): ReadonlyMap<string, string> {
    if (this.#chunkState.at !== 'over' || this.#decodedBytes !== this.#chunkedOptions.length) throw s3Refusals.incompleteBody();
    return this.#trailersByName;
  }

  #takeChunkLine(chunkStage: 'length' | 'data end' | 'trailer'): void {
    const chunkLine = Buffer.concat(this.#chunkLine).toString('latin1').replace(/\r$/, '');
    this.#chunkLine = [];
    this.#chunkLineBytes = 0;
    if (chunkStage === 'length') return this.#beginChunk(chunkLine);
    if (chunkStage === 'trailer') return this.#takeTrailer(chunkLine);
    if (chunkLine !== '') throw malformedChunks();
    this.#chunkState = { at: 'length' };
  }

  #beginChunk(chunkLine: string): void {
    const { signed: isSigned, signatures: chunkSignatures, length: statedLength } = this.#chunkedOptions;
    const chunkHeadMatch = /^([0-9a-fA-F]{1,12})(?:;chunk-signature=([0-9a-f]{64}))?$/.exec(chunkLine);
    if (!chunkHeadMatch || (isSigned && chunkHeadMatch[2] === undefined)) throw malformedChunks();
    const chunkBytes = Number.parseInt(chunkHeadMatch[1]!, 16);
    const chunkSignature = chunkHeadMatch[2] ?? '';
    this.#decodedBytes += chunkBytes;
    if (this.#decodedBytes > statedLength) throw s3Refusals.incompleteBody();
    const chunkHash = isSigned && chunkSignatures !== null ? createHash('sha256') : null;
    if (chunkBytes > 0) {
      this.#chunkState = { at: 'data', left: chunkBytes, hash: chunkHash, signature: chunkSignature };
      return;
    }
    this.#checkChunkSignature(chunkHash, chunkSignature);
    this.#chunkState = { at: 'trailer' };
  }

  #takeTrailer(trailerLine: string): void {
    if (trailerLine === '') return this.#finishTrailers();
    const trailerColon = trailerLine.indexOf(':');
    if (
      !this.#chunkedOptions.trailers ||
      trailerColon < 1 ||
      this.#trailersByName.size === chunkTrailersMax ||
      this.#trailerSignature !== null
    )
      throw malformedChunks();
    const trailerName = trailerLine.slice(0, trailerColon).trim().toLowerCase();
    const trailerValue = trailerLine.slice(trailerColon + 1).trim();
    if (trailerName === 'x-amz-trailer-signature') {
      this.#trailerSignature = trailerValue;
      return;
    }
    if (this.#trailersByName.has(trailerName)) throw malformedChunks();
    this.#trailersByName.set(trailerName, trailerValue);
    this.#trailerLines += `${trailerName}:${trailerValue}\n`;
  }

  #finishTrailers(): void {
    const { signed: isSigned, signatures: chunkSignatures, trailers: hasTrailers } = this.#chunkedOptions;
    if (
      isSigned &&
      chunkSignatures !== null &&
      hasTrailers &&
      !chunkSignatures.takesTrailer(this.#trailerLines, this.#trailerSignature ?? '')
    )
      throw chunkSignatureMismatch();
    this.#chunkState = { at: 'over' };
  }

  #checkChunkSignature(chunkHash: Hash | null, chunkSignature: string): void {
    const { signatures: chunkSignatures } = this.#chunkedOptions;
    if (chunkHash !== null && !chunkSignatures!.takes(chunkHash.digest('hex'), chunkSignature)) throw chunkSignatureMismatch();
  }
}

const malformedChunks = (): ObjectRefusal =>
  new ObjectRefusal('InvalidRequest', 400, 'REL_INVALID', 'the body is not in chunks as x-amz-content-sha256 says');
const chunkSignatureMismatch = (): ObjectRefusal =>
  new ObjectRefusal('SignatureDoesNotMatch', 403, 'REL_UNAUTHENTICATED', 'a chunk of the body is not the one that was signed');

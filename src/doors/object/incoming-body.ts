/** The body of a request as content: decoded from its chunks, and checked against its stated length and digests. */
import { createHash, type Hash } from 'node:crypto';
import { ServiceError } from '../../errors.ts';
import { ChunkSignatures, type Signature, unsignedPayload } from '../../governance/authentication/sigv4.ts';
import type { RequestBodies } from '../shared/http-request-bodies.ts';
import { ChunkedDecoder } from './chunked-decoder.ts';
import {
  type Checksum,
  checksumHeader,
  type ChecksumName,
  checksumNamed,
  checksumNames,
  checksumOf,
  isChecksumValue,
} from './checksums.ts';
import { ObjectRefusal, s3Refusals } from './errors.ts';
import type { ObjectRequest } from './request-path.ts';

/** How a request was signed, and with which secret: the signatures of its chunks are made with it too. */
export interface VerifiedSignature {
  readonly signature: Signature;
  readonly secretKey: string;
}

export interface BodyExpectations {
  readonly bodies: RequestBodies;
  /** null: the request was not signed, or the signature can't be checked. */
  readonly signed: VerifiedSignature | null;
  /** Tells the client to go on, where it waits for that. */
  readonly goOn: () => void;
}

export interface IncomingOptions {
  /** A checksum to compute even where the client sent none. */
  readonly checksum?: ChecksumName | null;
  /** false: checksums in the headers are of something else than the body. */
  readonly statesOwn?: boolean;
}

export class IncomingBody {
  /** Bytes of content. */
  readonly length: number;
  readonly #objectRequest: ObjectRequest;
  readonly #incomingFacts: BodyExpectations & IncomingOptions;
  readonly #statedPayload: string;
  readonly #chunkedDecoder: ChunkedDecoder | null;
  readonly #bodySha256 = createHash('sha256');
  readonly #bodyMd5: Hash | null;
  readonly #checksumByName = new Map<ChecksumName, Checksum>();
  #bodyDigest: string | null = null;
  readonly #checksumTexts = new Map<string, string>();

  /** Throws for a request that does not say how its body comes. */
  constructor(objectRequest: ObjectRequest, incomingFacts: BodyExpectations & IncomingOptions) {
    this.#objectRequest = objectRequest;
    this.#incomingFacts = incomingFacts;
    this.#statedPayload =
      incomingFacts.signed?.signature.payload ?? objectRequest.header('x-amz-content-sha256') ?? unsignedPayload;
    const chunkedPayload = /^STREAMING-(AWS4-HMAC-SHA256-PAYLOAD|UNSIGNED-PAYLOAD)(-TRAILER)?$/.exec(this.#statedPayload);
    if (chunkedPayload === null && !/^(UNSIGNED-PAYLOAD|[0-9a-f]{64})$/.test(this.#statedPayload))
      throw s3Refusals.notImplemented(`a body signed as ${JSON.stringify(this.#statedPayload.slice(0, 80))}`);
    this.length = incomingLengthOf(objectRequest, chunkedPayload === null ? 'content-length' : 'x-amz-decoded-content-length');
    const isChunkSigned = chunkedPayload !== null && chunkedPayload[1] !== 'UNSIGNED-PAYLOAD';
    const verifiedSignature = isChunkSigned ? incomingFacts.signed : null;
    const chunkSignatures = verifiedSignature && new ChunkSignatures(verifiedSignature.signature, verifiedSignature.secretKey);
    this.#chunkedDecoder =
      chunkedPayload &&
      new ChunkedDecoder({
        signed: isChunkSigned,
        signatures: chunkSignatures,
        trailers: chunkedPayload[2] !== undefined,
        length: this.length,
      });
    this.#bodyMd5 = objectRequest.header('content-md5') === null ? null : createHash('md5');
    for (const checksumName of statedChecksums(objectRequest, incomingFacts))
      this.#checksumByName.set(checksumName, checksumOf(checksumName));
  }

  /** Lower-case hex, once all of it was read. */
  get sha256(): string {
    return this.#bodyDigest!;
  }

  /** The client's verified checksums, and the requested one, by header. */
  get checksums(): ReadonlyMap<string, string> {
    return this.#checksumTexts;
  }

  /** The content, piece by piece; throws at its end where it does not match its headers. */
  async *read(): AsyncGenerator<Buffer, void> {
    const { bodies, goOn } = this.#incomingFacts;
    goOn();
    let bodyBytesLeft = this.length;
    for await (const wireBytes of bodies.stream(this.#objectRequest.raw) as AsyncIterable<Buffer>) {
      for (const bodyPiece of this.#chunkedDecoder?.push(wireBytes) ?? [wireBytes]) {
        bodyBytesLeft -= bodyPiece.length;
        if (bodyBytesLeft < 0) throw s3Refusals.incompleteBody();
        this.#bodySha256.update(bodyPiece);
        this.#bodyMd5?.update(bodyPiece);
        for (const bodyChecksum of this.#checksumByName.values()) bodyChecksum.update(bodyPiece);
        yield bodyPiece;
      }
    }
    if (bodyBytesLeft > 0) throw s3Refusals.incompleteBody();
    this.#checkDigests(this.#chunkedDecoder?.end() ?? new Map());
  }

  /** Collects the content in memory, at most so many bytes. */
  async collect(bytesMax: number): Promise<Buffer> {
    if (this.length > bytesMax) throw new ServiceError('REL_TOO_LARGE', `the body has at most ${bytesMax} bytes`);
    const bodyPieces: Buffer[] = [];
    for await (const bodyPiece of this.read()) bodyPieces.push(bodyPiece);
    return bodyPieces.length === 1 ? bodyPieces[0]! : Buffer.concat(bodyPieces);
  }

  #checkDigests(bodyTrailers: ReadonlyMap<string, string>): void {
    this.#bodyDigest = this.#bodySha256.digest('hex');
    if (/^[0-9a-f]{64}$/.test(this.#statedPayload) && this.#statedPayload !== this.#bodyDigest)
      throw new ObjectRefusal(
        'XAmzContentSHA256Mismatch',
        400,
        'REL_INVALID',
        'the body is not the one that x-amz-content-sha256 is of',
      );
    if (this.#bodyMd5 !== null && this.#bodyMd5.digest('base64') !== this.#objectRequest.header('content-md5'))
      throw s3Refusals.badDigest('Content-MD5');
    for (const [checksumName, bodyChecksum] of this.#checksumByName) {
      const checksumHeaderName = checksumHeader(checksumName);
      const stated =
        bodyTrailers.get(checksumHeaderName) ??
        (this.#incomingFacts.statesOwn === false ? null : this.#objectRequest.header(checksumHeaderName));
      const checksumValue = bodyChecksum.value();
      const isAskedByServer = this.#incomingFacts.checksum === checksumName && stated === null;
      if (!isAskedByServer && stated !== checksumValue) throw s3Refusals.badDigest(checksumHeaderName);
      this.#checksumTexts.set(checksumHeaderName, checksumValue);
    }
  }
}

/** Throws InvalidRequest for malformed checksums, for several, and for one that is announced but missing. */
function statedChecksums(
  { header: requestHeader }: ObjectRequest,
  { checksum: askedChecksum = null, statesOwn: hasOwnChecksum = true }: IncomingOptions,
): readonly ChecksumName[] {
  const headerChecksums = hasOwnChecksum
    ? checksumNames.filter((checksumName) => requestHeader(checksumHeader(checksumName)) !== null)
    : [];
  for (const name of headerChecksums)
    if (!isChecksumValue(name, requestHeader(checksumHeader(name))!))
      throw s3Refusals.invalidRequest(`${checksumHeader(name)} is none`);
  const trailerChecksums = (requestHeader('x-amz-trailer') ?? '').split(',').flatMap((stated) => {
    const checksumName = stated.trim().toLowerCase();
    if (checksumName === '') return [];
    return (
      checksumNames.find((trailerChecksum) => checksumHeader(trailerChecksum) === checksumName) ??
      unknownChecksum(`a trailer ${checksumName}`)
    );
  });
  const sentChecksums = [...headerChecksums, ...trailerChecksums];
  if (sentChecksums.length > 1) throw s3Refusals.invalidRequest('a body has one checksum');
  const stated = hasOwnChecksum ? requestHeader('x-amz-sdk-checksum-algorithm') : null;
  if (stated !== null) {
    const announcedChecksum = checksumNamed(stated) ?? unknownChecksum(stated);
    if (!sentChecksums.includes(announcedChecksum))
      throw s3Refusals.invalidRequest(`the checksum ${stated} is announced but missing`);
  }
  return askedChecksum === null || sentChecksums.includes(askedChecksum) ? sentChecksums : [...sentChecksums, askedChecksum];
}

export function unknownChecksum(stated: string): never {
  throw s3Refusals.invalidRequest(`${stated}: checksums are ${checksumNames.join(', ').toUpperCase()}`);
}

function incomingLengthOf(objectRequest: ObjectRequest, lengthHeader: string): number {
  const stated = objectRequest.header(lengthHeader);
  if (stated === null && lengthHeader === 'content-length' && objectRequest.header('transfer-encoding') === null) return 0;
  if (stated === null)
    throw new ObjectRefusal('MissingContentLength', 411, 'REL_INVALID', `the header ${lengthHeader} is missing`);
  if (!/^\d{1,15}$/.test(stated)) throw s3Refusals.invalidArgument(`${lengthHeader} is a number of bytes`);
  return Number(stated);
}

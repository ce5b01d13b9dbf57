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
  readonly #request: ObjectRequest;
  readonly #facts: BodyExpectations & IncomingOptions;
  readonly #payload: string;
  readonly #decoder: ChunkedDecoder | null;
  readonly #sha256 = createHash('sha256');
  readonly #md5: Hash | null;
  readonly #checksums = new Map<ChecksumName, Checksum>();
  #digest: string | null = null;
  readonly #checksumTexts = new Map<string, string>();

  /** Throws for a request that does not say how its body comes. */
  constructor(request: ObjectRequest, facts: BodyExpectations & IncomingOptions) {
    this.#request = request;
    this.#facts = facts;
    this.#payload = facts.signed?.signature.payload ?? request.header('x-amz-content-sha256') ?? unsignedPayload;
    const chunked = /^STREAMING-(AWS4-HMAC-SHA256-PAYLOAD|UNSIGNED-PAYLOAD)(-TRAILER)?$/.exec(this.#payload);
    if (chunked === null && !/^(UNSIGNED-PAYLOAD|[0-9a-f]{64})$/.test(this.#payload))
      throw s3Refusals.notImplemented(`a body signed as ${JSON.stringify(this.#payload.slice(0, 80))}`);
    this.length = lengthOf(request, chunked === null ? 'content-length' : 'x-amz-decoded-content-length');
    const signed = chunked !== null && chunked[1] !== 'UNSIGNED-PAYLOAD';
    const by = signed ? facts.signed : null;
    const signatures = by && new ChunkSignatures(by.signature, by.secretKey);
    this.#decoder =
      chunked && new ChunkedDecoder({ signed, signatures, trailers: chunked[2] !== undefined, length: this.length });
    this.#md5 = request.header('content-md5') === null ? null : createHash('md5');
    for (const name of checksumsStated(request, facts)) this.#checksums.set(name, checksumOf(name));
  }

  /** Lower-case hex, once all of it was read. */
  get sha256(): string {
    return this.#digest!;
  }

  /** The client's verified checksums, and the requested one, by header. */
  get checksums(): ReadonlyMap<string, string> {
    return this.#checksumTexts;
  }

  /** The content, piece by piece; throws at its end where it does not match its headers. */
  async *read(): AsyncGenerator<Buffer, void> {
    const { bodies, goOn } = this.#facts;
    goOn();
    let left = this.length;
    for await (const bytes of bodies.stream(this.#request.raw) as AsyncIterable<Buffer>) {
      for (const piece of this.#decoder?.push(bytes) ?? [bytes]) {
        left -= piece.length;
        if (left < 0) throw s3Refusals.incompleteBody();
        this.#sha256.update(piece);
        this.#md5?.update(piece);
        for (const checksum of this.#checksums.values()) checksum.update(piece);
        yield piece;
      }
    }
    if (left > 0) throw s3Refusals.incompleteBody();
    this.#check(this.#decoder?.end() ?? new Map());
  }

  /** Collects the content in memory, at most so many bytes. */
  async collect(bytesMax: number): Promise<Buffer> {
    if (this.length > bytesMax) throw new ServiceError('REL_TOO_LARGE', `the body has at most ${bytesMax} bytes`);
    const pieces: Buffer[] = [];
    for await (const piece of this.read()) pieces.push(piece);
    return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
  }

  #check(trailers: ReadonlyMap<string, string>): void {
    this.#digest = this.#sha256.digest('hex');
    if (/^[0-9a-f]{64}$/.test(this.#payload) && this.#payload !== this.#digest)
      throw new ObjectRefusal(
        'XAmzContentSHA256Mismatch',
        400,
        'REL_INVALID',
        'the body is not the one that x-amz-content-sha256 is of',
      );
    if (this.#md5 !== null && this.#md5.digest('base64') !== this.#request.header('content-md5'))
      throw s3Refusals.badDigest('Content-MD5');
    for (const [name, checksum] of this.#checksums) {
      const header = checksumHeader(name);
      const stated = trailers.get(header) ?? (this.#facts.statesOwn === false ? null : this.#request.header(header));
      const value = checksum.value();
      const isAsked = this.#facts.checksum === name && stated === null;
      if (!isAsked && stated !== value) throw s3Refusals.badDigest(header);
      this.#checksumTexts.set(header, value);
    }
  }
}

/** Throws InvalidRequest for malformed checksums, for several, and for one that is announced but missing. */
function checksumsStated(
  { header }: ObjectRequest,
  { checksum = null, statesOwn = true }: IncomingOptions,
): readonly ChecksumName[] {
  const inHeader = statesOwn ? checksumNames.filter((name) => header(checksumHeader(name)) !== null) : [];
  for (const name of inHeader)
    if (!isChecksumValue(name, header(checksumHeader(name))!)) throw s3Refusals.invalidRequest(`${checksumHeader(name)} is none`);
  const behind = (header('x-amz-trailer') ?? '').split(',').flatMap((stated) => {
    const name = stated.trim().toLowerCase();
    if (name === '') return [];
    return checksumNames.find((each) => checksumHeader(each) === name) ?? unknownChecksum(`a trailer ${name}`);
  });
  const sent = [...inHeader, ...behind];
  if (sent.length > 1) throw s3Refusals.invalidRequest('a body has one checksum');
  const stated = statesOwn ? header('x-amz-sdk-checksum-algorithm') : null;
  if (stated !== null) {
    const named = checksumNamed(stated) ?? unknownChecksum(stated);
    if (!sent.includes(named)) throw s3Refusals.invalidRequest(`the checksum ${stated} is announced but missing`);
  }
  return checksum === null || sent.includes(checksum) ? sent : [...sent, checksum];
}

export function unknownChecksum(stated: string): never {
  throw s3Refusals.invalidRequest(`${stated}: checksums are ${checksumNames.join(', ').toUpperCase()}`);
}

function lengthOf(request: ObjectRequest, header: string): number {
  const stated = request.header(header);
  if (stated === null && header === 'content-length' && request.header('transfer-encoding') === null) return 0;
  if (stated === null) throw new ObjectRefusal('MissingContentLength', 411, 'REL_INVALID', `the header ${header} is missing`);
  if (!/^\d{1,15}$/.test(stated)) throw s3Refusals.invalidArgument(`${header} is a number of bytes`);
  return Number(stated);
}

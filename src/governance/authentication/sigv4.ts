/**
 * AWS Signature Version 4 as the server checks it: of a request by its headers, of one by its URL (presigned), and of the chunks
 * that a body is cut into. Pure: a request, a secret and an instant in, a verdict out.
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';

/** A request as it was sent: nothing decoded, names of headers in lower case. */
export interface SignedRequest {
  readonly method: string;
  readonly path: string;
  /** Without the question mark. */
  readonly query: string;
  readonly headers: Readonly<Record<string, string | undefined>>;
}

/** The signature fields of a request. */
export interface Signature {
  readonly by: 'header' | 'url';
  readonly accessKey: string;
  /** `20240501/region/s3/aws4_request`. */
  readonly scope: string;
  /** `20240501T120000Z`. */
  readonly date: string;
  readonly signedHeaders: readonly string[];
  readonly signature: string;
  /** As the signature covers it: a digest, or a word that says how the body is sent. */
  readonly payload: string;
  /** For how long a URL is good. */
  readonly expiresSecs: number;
}

export type Verdict = 'verified' | 'mismatch' | 'skewed' | 'expired';

export const unsignedPayload = 'UNSIGNED-PAYLOAD';
const sigv4Algorithm = 'AWS4-HMAC-SHA256';
const signatureSkewMs = 15 * 60_000;
const expiresSecsMax = 604_800;
const signedHeadersMax = 64;

/** Null: the request carries no signature. `malformed`: its signature can't be one. */
export function signatureOf(request: SignedRequest): Signature | 'malformed' | null {
  const { authorization } = request.headers;
  const queryParameters = parametersOf(request.query);
  const urlAlgorithm = queryParameters.find(([name]) => name === 'X-Amz-Algorithm');
  if (urlAlgorithm !== undefined) return authorization === undefined ? urlSignature(queryParameters) : 'malformed';
  if (authorization === undefined || !/^AWS4-/i.test(authorization)) return null;
  const authorizationMatch = /^AWS4-HMAC-SHA256\s+(.*)$/s.exec(authorization);
  if (!authorizationMatch) return 'malformed';
  const authorizationFields = new Map<string, string>();
  for (const authorizationPart of authorizationMatch[1]!.split(',')) {
    const equals = authorizationPart.indexOf('=');
    if (equals < 0) return 'malformed';
    authorizationFields.set(authorizationPart.slice(0, equals).trim(), authorizationPart.slice(equals + 1).trim());
  }
  return completeSignature({
    by: 'header',
    credential: authorizationFields.get('Credential'),
    date: request.headers['x-amz-date'],
    signedHeaders: authorizationFields.get('SignedHeaders'),
    signature: authorizationFields.get('Signature'),
    // A request without a body hash has no body.
    payload: request.headers['x-amz-content-sha256'] ?? emptySha256,
    expires: '0',
  });
}

function urlSignature(query: readonly (readonly [string, string])[]): Signature | 'malformed' {
  const signatureParameters = new Map(query);
  if (signatureParameters.size !== query.length || signatureParameters.get('X-Amz-Algorithm') !== sigv4Algorithm)
    return 'malformed';
  return completeSignature({
    by: 'url',
    credential: signatureParameters.get('X-Amz-Credential'),
    date: signatureParameters.get('X-Amz-Date'),
    signedHeaders: signatureParameters.get('X-Amz-SignedHeaders'),
    signature: signatureParameters.get('X-Amz-Signature'),
    payload: signatureParameters.get('X-Amz-Content-Sha256') ?? unsignedPayload,
    expires: signatureParameters.get('X-Amz-Expires'),
  });
}

type SignatureFields = Pick<Signature, 'by' | 'payload'> &
  Readonly<Record<'credential' | 'date' | 'signedHeaders' | 'signature' | 'expires', string | undefined>>;

function completeSignature({
  by,
  credential,
  date,
  signedHeaders,
  signature,
  payload,
  expires,
}: SignatureFields): Signature | 'malformed' {
  // The access key may hold slashes: the scope behind it has fixed ones.
  const credentialMatch = /^(.+)\/(\d{8}\/[^/]+\/[^/]+\/aws4_request)$/s.exec(credential ?? '');
  const signedHeaderNames = (signedHeaders ?? '').split(';');
  const isCompleteSignature =
    credentialMatch !== null &&
    /^\d{8}T\d{6}Z$/.test(date ?? '') &&
    credentialMatch[2]!.startsWith(`${date!.slice(0, 8)}/`) &&
    /^[0-9a-f]{64}$/.test(signature ?? '') &&
    /^\d{1,6}$/.test(expires ?? '') &&
    signedHeaderNames.length <= signedHeadersMax &&
    signedHeaderNames.includes('host') &&
    signedHeaderNames.every((name) => name !== '' && name === name.toLowerCase());
  if (!isCompleteSignature) return 'malformed';
  const expiresSecs = Number(expires);
  if (by === 'url' && (expiresSecs < 1 || expiresSecs > expiresSecsMax)) return 'malformed';
  const [, accessKey, scope] = credentialMatch;
  return {
    by,
    accessKey: accessKey!,
    scope: scope!,
    date: date!,
    signedHeaders: signedHeaderNames,
    signature: signature!,
    payload,
    expiresSecs,
  };
}

/** Whether the secret made this signature of this request, and the request is of now. */
export function verifySignature(request: SignedRequest, signature: Signature, secret: string, nowNs: bigint): Verdict {
  const signingKeyBytes = signingKey(secret, signature.scope);
  const canonicalDigest = sigv4Sha256(canonicalRequest(request, signature));
  const expectedSignature = sigv4Hmac(
    signingKeyBytes,
    `${sigv4Algorithm}\n${signature.date}\n${signature.scope}\n${canonicalDigest}`,
  );
  if (!timingSafeEqual(expectedSignature, Buffer.from(signature.signature, 'hex'))) return 'mismatch';
  const signatureAgeMs = Number(nowNs / 1_000_000n) - instantMs(signature.date);
  if (signature.by === 'header') return Math.abs(signatureAgeMs) > signatureSkewMs ? 'skewed' : 'verified';
  if (signatureAgeMs < -signatureSkewMs) return 'skewed';
  return signatureAgeMs > signature.expiresSecs * 1000 ? 'expired' : 'verified';
}

function canonicalRequest({ method, path, query, headers }: SignedRequest, signature: Signature): string {
  const canonicalQuery = parametersOf(query)
    .filter(([name]) => name !== 'X-Amz-Signature')
    .map(([name, value]) => [uriEncoded(name), uriEncoded(value)] as const)
    .sort(([a, x], [b, y]) => (a < b ? -1 : a > b ? 1 : x < y ? -1 : x > y ? 1 : 0))
    .map(([name, value]) => `${name}=${value}`)
    .join('&');
  const canonicalHeaders = signature.signedHeaders.map(
    (name) => `${name}:${(headers[name] ?? '').trim().replaceAll(/ +/g, ' ')}\n`,
  );
  const canonicalUri = path
    .split('/')
    .map((segment) => uriEncoded(percentDecoded(segment)))
    .join('/');
  return [
    method,
    canonicalUri,
    canonicalQuery,
    canonicalHeaders.join(''),
    signature.signedHeaders.join(';'),
    signature.payload,
  ].join('\n');
}

/** The signatures of a body that is sent in chunks: each covers the one before it, the first that of the request. */
export class ChunkSignatures {
  readonly #chunkSigningKey: Buffer;
  readonly #signingDate: string;
  readonly #signingScope: string;
  #previousSignature: string;

  constructor(signature: Signature, secret: string) {
    this.#chunkSigningKey = signingKey(secret, signature.scope);
    this.#signingDate = signature.date;
    this.#signingScope = signature.scope;
    this.#previousSignature = signature.signature;
  }

  /** Takes the next chunk, by the digest of its data. */
  takes(dataSha256: string, signature: string): boolean {
    return this.#verifyNextChunk(`${sigv4Algorithm}-PAYLOAD`, `${emptySha256}\n${dataSha256}`, signature);
  }

  /** Takes the trailer, as `name:value\n` lines. */
  takesTrailer(lines: string, signature: string): boolean {
    return this.#verifyNextChunk(`${sigv4Algorithm}-TRAILER`, sigv4Sha256(lines), signature);
  }

  #verifyNextChunk(chunkAlgorithm: string, chunkDigests: string, signature: string): boolean {
    const stringToSign = [chunkAlgorithm, this.#signingDate, this.#signingScope, this.#previousSignature, chunkDigests].join(
      '\n',
    );
    const expectedSignature = sigv4Hmac(this.#chunkSigningKey, stringToSign);
    this.#previousSignature = signature;
    return /^[0-9a-f]{64}$/.test(signature) && timingSafeEqual(expectedSignature, Buffer.from(signature, 'hex'));
  }
}

/** A public id derived from the shared secret, for places that anyone can read, such as a presigned URL. */
export function keyIdOf(secret: string): string {
  const base32Letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
  const keyIdDigest = createHmac('sha256', secret).update('annals object key').digest();
  return `ANNL${Array.from(keyIdDigest.subarray(0, 16), (byte) => base32Letters[byte & 31]).join('')}`;
}

/** Names and values in their order, decoded; a plus is a space. */
export function parametersOf(query: string): (readonly [name: string, value: string])[] {
  if (query === '') return [];
  return query.split('&').flatMap((queryPart) => {
    if (queryPart === '') return [];
    const equals = queryPart.indexOf('=');
    const decode = (text: string): string => percentDecoded(text.replaceAll('+', ' '));
    return [equals < 0 ? [decode(queryPart), ''] : [decode(queryPart.slice(0, equals)), decode(queryPart.slice(equals + 1))]];
  });
}

/** Malformed encoding is left as it is: the signature then matches none. */
function percentDecoded(text: string): string {
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const uriEncoded = (text: string): string =>
  encodeURIComponent(text).replaceAll(/[!'()*]/g, (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`);

function signingKey(secret: string, scope: string): Buffer {
  let derivedKey: Buffer = Buffer.from(`AWS4${secret}`);
  for (const scopePart of scope.split('/')) derivedKey = sigv4Hmac(derivedKey, scopePart);
  return derivedKey;
}

function instantMs(date: string): number {
  const [, year, month, day, hours, minutes, seconds] = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(date)!;
  return Date.UTC(Number(year), Number(month) - 1, Number(day), Number(hours), Number(minutes), Number(seconds));
}

const sigv4Hmac = (key: Uint8Array, text: string): Buffer => createHmac('sha256', key).update(text).digest();
const sigv4Sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const emptySha256 = sigv4Sha256('');

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
const algorithm = 'AWS4-HMAC-SHA256';
const skewMs = 15 * 60_000;
const expiresSecsMax = 604_800;
const signedHeadersMax = 64;

/** Null: the request carries no signature. `malformed`: its signature can't be one. */
export function signatureOf(request: SignedRequest): Signature | 'malformed' | null {
  const { authorization } = request.headers;
  const query = parametersOf(request.query);
  const inUrl = query.find(([name]) => name === 'X-Amz-Algorithm');
  if (inUrl !== undefined) return authorization === undefined ? ofUrl(query) : 'malformed';
  if (authorization === undefined || !/^AWS4-/i.test(authorization)) return null;
  const match = /^AWS4-HMAC-SHA256\s+(.*)$/s.exec(authorization);
  if (!match) return 'malformed';
  const fields = new Map<string, string>();
  for (const part of match[1]!.split(',')) {
    const equals = part.indexOf('=');
    if (equals < 0) return 'malformed';
    fields.set(part.slice(0, equals).trim(), part.slice(equals + 1).trim());
  }
  return complete({
    by: 'header',
    credential: fields.get('Credential'),
    date: request.headers['x-amz-date'],
    signedHeaders: fields.get('SignedHeaders'),
    signature: fields.get('Signature'),
    // A request without a body hash has no body.
    payload: request.headers['x-amz-content-sha256'] ?? emptySha256,
    expires: '0',
  });
}

function ofUrl(query: readonly (readonly [string, string])[]): Signature | 'malformed' {
  const values = new Map(query);
  if (values.size !== query.length || values.get('X-Amz-Algorithm') !== algorithm) return 'malformed';
  return complete({
    by: 'url',
    credential: values.get('X-Amz-Credential'),
    date: values.get('X-Amz-Date'),
    signedHeaders: values.get('X-Amz-SignedHeaders'),
    signature: values.get('X-Amz-Signature'),
    payload: values.get('X-Amz-Content-Sha256') ?? unsignedPayload,
    expires: values.get('X-Amz-Expires'),
  });
}

type SignatureFields = Pick<Signature, 'by' | 'payload'> &
  Readonly<Record<'credential' | 'date' | 'signedHeaders' | 'signature' | 'expires', string | undefined>>;

function complete({
  by,
  credential,
  date,
  signedHeaders,
  signature,
  payload,
  expires,
}: SignatureFields): Signature | 'malformed' {
  // The access key may hold slashes: the scope behind it has fixed ones.
  const match = /^(.+)\/(\d{8}\/[^/]+\/[^/]+\/aws4_request)$/s.exec(credential ?? '');
  const names = (signedHeaders ?? '').split(';');
  const isWhole =
    match !== null &&
    /^\d{8}T\d{6}Z$/.test(date ?? '') &&
    match[2]!.startsWith(`${date!.slice(0, 8)}/`) &&
    /^[0-9a-f]{64}$/.test(signature ?? '') &&
    /^\d{1,6}$/.test(expires ?? '') &&
    names.length <= signedHeadersMax &&
    names.includes('host') &&
    names.every((name) => name !== '' && name === name.toLowerCase());
  if (!isWhole) return 'malformed';
  const expiresSecs = Number(expires);
  if (by === 'url' && (expiresSecs < 1 || expiresSecs > expiresSecsMax)) return 'malformed';
  const [, accessKey, scope] = match;
  return {
    by,
    accessKey: accessKey!,
    scope: scope!,
    date: date!,
    signedHeaders: names,
    signature: signature!,
    payload,
    expiresSecs,
  };
}

/** Whether the secret made this signature of this request, and the request is of now. */
export function verifySignature(request: SignedRequest, signature: Signature, secret: string, nowNs: bigint): Verdict {
  const key = signingKey(secret, signature.scope);
  const digest = sha256(canonicalRequest(request, signature));
  const expected = hmac(key, `${algorithm}\n${signature.date}\n${signature.scope}\n${digest}`);
  if (!timingSafeEqual(expected, Buffer.from(signature.signature, 'hex'))) return 'mismatch';
  const agedMs = Number(nowNs / 1_000_000n) - instantMs(signature.date);
  if (signature.by === 'header') return Math.abs(agedMs) > skewMs ? 'skewed' : 'verified';
  if (agedMs < -skewMs) return 'skewed';
  return agedMs > signature.expiresSecs * 1000 ? 'expired' : 'verified';
}

function canonicalRequest({ method, path, query, headers }: SignedRequest, signature: Signature): string {
  const parameters = parametersOf(query)
    .filter(([name]) => name !== 'X-Amz-Signature')
    .map(([name, value]) => [uriEncoded(name), uriEncoded(value)] as const)
    .sort(([a, x], [b, y]) => (a < b ? -1 : a > b ? 1 : x < y ? -1 : x > y ? 1 : 0))
    .map(([name, value]) => `${name}=${value}`)
    .join('&');
  const lines = signature.signedHeaders.map((name) => `${name}:${(headers[name] ?? '').trim().replaceAll(/ +/g, ' ')}\n`);
  const uri = path
    .split('/')
    .map((segment) => uriEncoded(percentDecoded(segment)))
    .join('/');
  return [method, uri, parameters, lines.join(''), signature.signedHeaders.join(';'), signature.payload].join('\n');
}

/** The signatures of a body that is sent in chunks: each covers the one before it, the first that of the request. */
export class ChunkSignatures {
  readonly #key: Buffer;
  readonly #date: string;
  readonly #scope: string;
  #previous: string;

  constructor(signature: Signature, secret: string) {
    this.#key = signingKey(secret, signature.scope);
    this.#date = signature.date;
    this.#scope = signature.scope;
    this.#previous = signature.signature;
  }

  /** Takes the next chunk, by the digest of its data. */
  takes(dataSha256: string, signature: string): boolean {
    return this.#next(`${algorithm}-PAYLOAD`, `${emptySha256}\n${dataSha256}`, signature);
  }

  /** Takes the trailer, as `name:value\n` lines. */
  takesTrailer(lines: string, signature: string): boolean {
    return this.#next(`${algorithm}-TRAILER`, sha256(lines), signature);
  }

  #next(kind: string, rest: string, signature: string): boolean {
    const said = [kind, this.#date, this.#scope, this.#previous, rest].join('\n');
    const expected = hmac(this.#key, said);
    this.#previous = signature;
    return /^[0-9a-f]{64}$/.test(signature) && timingSafeEqual(expected, Buffer.from(signature, 'hex'));
  }
}

/** A public id derived from the shared secret, for places that anyone can read, such as a presigned URL. */
export function keyIdOf(secret: string): string {
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
  const digest = createHmac('sha256', secret).update('annals object key').digest();
  return `ANNL${Array.from(digest.subarray(0, 16), (byte) => letters[byte & 31]).join('')}`;
}

/** Names and values in their order, decoded; a plus is a space. */
export function parametersOf(query: string): (readonly [name: string, value: string])[] {
  if (query === '') return [];
  return query.split('&').flatMap((part) => {
    if (part === '') return [];
    const equals = part.indexOf('=');
    const decode = (text: string): string => percentDecoded(text.replaceAll('+', ' '));
    return [equals < 0 ? [decode(part), ''] : [decode(part.slice(0, equals)), decode(part.slice(equals + 1))]];
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
  let key: Buffer = Buffer.from(`AWS4${secret}`);
  for (const part of scope.split('/')) key = hmac(key, part);
  return key;
}

function instantMs(date: string): number {
  const [, year, month, day, hours, minutes, seconds] = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(date)!;
  return Date.UTC(Number(year), Number(month) - 1, Number(day), Number(hours), Number(minutes), Number(seconds));
}

const hmac = (key: Uint8Array, text: string): Buffer => createHmac('sha256', key).update(text).digest();
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const emptySha256 = sha256('');

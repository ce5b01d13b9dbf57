/**
 * What a client of the object door may send, as any bytes: a head of lines, a blank one, and a body in chunks. What must hold: however
 * a body is cut, the same content comes out, or the same refusal; and nothing that claims to be a signature or a document is answered
 * by anything but a ServiceError.
 */
import { createHash, createHmac } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { assert, ServiceError } from '../../../src/errors.ts';
import { ChunkedDecoder } from '../../../src/doors/object/chunked-decoder.ts';
import { isKnown, byteRangeOf } from '../../../src/doors/object/preconditions.ts';
import { IncomingBody } from '../../../src/doors/object/incoming-body.ts';
import { listRequestOf } from '../../../src/doors/object/list-objects.ts';
import { factsOf } from '../../../src/doors/object/object-metadata.ts';
import { checksumStated, copiedRange, namedParts } from '../../../src/doors/object/multipart-upload.ts';
import { operationOf } from '../../../src/doors/object/operations.ts';
import { sourceOf } from '../../../src/doors/object/put-object.ts';
import { requestOf } from '../../../src/doors/object/request-path.ts';
import type { RequestBodies } from '../../../src/doors/shared/http-request-bodies.ts';
import { xmlMembers } from '../../../src/doors/object/xml.ts';
import { ChunkSignatures, type Signature, signatureOf, verifySignature } from '../../../src/governance/authentication/sigv4.ts';

export const name = 'object-request';

const secret = 'secret';
const nowNs = 1_714_557_600_000_000_000n;
const signature: Signature = {
  by: 'header',
  accessKey: 'key',
  scope: '20240501/us-east-1/s3/aws4_request',
  date: '20240501T100000Z',
  signedHeaders: ['host'],
  signature: '0'.repeat(64),
  payload: 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER',
  expiresSecs: 0,
};

export function run(bytes: Uint8Array): void {
  const whole = Buffer.from(bytes);
  const blank = whole.indexOf('\n\n');
  const [head, body] = blank < 0 ? [whole, Buffer.alloc(0)] : [whole.subarray(0, blank), whole.subarray(blank + 2)];
  look(head.toString('latin1').split('\n'));
  attempt(() => xmlMembers(body.toString(), 'Delete', { element: 'Object', most: 10, otherwise: 'too many' }));
  attempt(() => namedParts(body.toString()));
  for (const signed of [false, true])
    for (const trailers of [false, true]) {
      const read = decoded([body], signed, trailers);
      const pieces = Array.from({ length: body.length }, (_, i) => body.subarray(i, i + 1));
      assert(decoded(pieces, signed, trailers) === read, 'the same content, however the bytes are cut');
    }
}

function look([first = '', ...lines]: readonly string[]): void {
  const [method = '', url = ''] = first.split(' ');
  const rawHeaders = lines.flatMap((line) => [line.split(':', 1)[0]!, line.slice(line.indexOf(':') + 1).trim()]);
  const headers: Record<string, string> = Object.create(null);
  for (let i = 0; i < rawHeaders.length; i += 2) headers[rawHeaders[i]!.toLowerCase()] = rawHeaders[i + 1]!;
  attempt(() => {
    const request = requestOf({ method, url, rawHeaders, headers } as unknown as IncomingMessage);
    const found = signatureOf(request.signed);
    if (found !== null && found !== 'malformed') verifySignature(request.signed, found, secret, nowNs);
    attempt(() => operationOf(request));
    attempt(() => listRequestOf(request));
    attempt(() => factsOf(request));
    attempt(() => checksumStated(request));
    attempt(() => (request.header('x-amz-copy-source') === null ? null : sourceOf(request)));
    attempt(() => new IncomingBody(request, { bodies: null as unknown as RequestBodies, signed: null, goOn: () => undefined }));
    attempt(() => {
      const { from, to } = copiedRange(request, 10);
      assert(from >= 0 && from < to && to <= 10, 'a part is copied from within its object');
    });
    attempt(() => isKnown(request, { hash: 'a', modifiedMs: 0 }));
    attempt(() => {
      const span = byteRangeOf(request, { hash: 'a', modifiedMs: 0 }, 10);
      assert(span === null || (span.from >= 0 && span.from < span.to && span.to <= 10), 'a range lies within its object');
    });
  });
}

function decoded(pieces: readonly Buffer[], signed: boolean, trailers: boolean): string {
  const signatures = signed ? new ChunkSignatures(signature, secret) : null;
  const decoder = new ChunkedDecoder({ signed, signatures, trailers, length: 9 });
  const content: Buffer[] = [];
  try {
    for (const piece of pieces) content.push(...decoder.push(piece));
    return `${Buffer.concat(content).toString('latin1')} ${JSON.stringify([...decoder.end()])}`;
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return `${error.code} ${error.message}`;
  }
}

function attempt(step: () => unknown): void {
  try {
    step();
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
  }
}

export function seeds(): Uint8Array[] {
  const authorization = `AWS4-HMAC-SHA256 Credential=a/b/20240501/us-east-1/s3/aws4_request, SignedHeaders=host;x-amz-date, Signature=${'0'.repeat(64)}`;
  const head = (first: string, ...lines: string[]): string => [first, 'host: a', ...lines].join('\n');
  const byHeader = head('PUT /b/k%20%C3%BC?x=%2F&y', `authorization: ${authorization}`, 'x-amz-date: 20240501T100000Z');
  const byUrl = head(
    `GET /b/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=a%2F20240501%2Fr%2Fs3%2Faws4_request&X-Amz-Date=20240501T100000Z&X-Amz-Expires=60&X-Amz-SignedHeaders=host&X-Amz-Signature=${'0'.repeat(64)}`,
    'range: bytes=2-4',
    'if-none-match: "a", W/"b"',
  );
  const list = head('GET /b?list-type=2&prefix=a%2F&delimiter=%2F&max-keys=3&continuation-token=YQ&encoding-type=url');
  const open = '<Delete'.repeat(30);
  const xml = '<Delete xmlns="x"><Quiet>true</Quiet><Object><Key>a&amp;b</Key></Object></Delete>';
  const parts = `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>"a"</ETag></Part></CompleteMultipartUpload>`;
  const copy = head(
    'PUT /b/k?uploadId=u&partNumber=2',
    'x-amz-copy-source: /b/a%20?versionId=3',
    'x-amz-copy-source-range: bytes=1-4',
    'x-amz-checksum-algorithm: CRC32C',
    'x-amz-checksum-type: COMPOSITE',
    'x-amz-checksum-crc32: AAAAAA==',
    'x-amz-trailer: x-amz-checksum-sha1',
  );
  const plain = '4\r\nabcd\r\n5\r\nefghi\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n';
  return [byHeader, byUrl, list, copy, head('PUT /b/k', 'x-amz-meta-a: ü', 'content-encoding: gzip,aws-chunked')].flatMap(
    (each) => [xml, parts, open, plain, signedChunks()].map((body) => Buffer.from(`${each}\n\n${body}`, 'latin1')),
  );
}

/** As a client with the secret would make them. */
function signedChunks(): string {
  const hmac = (key: Uint8Array, text: string): Buffer => createHmac('sha256', key).update(text).digest();
  const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
  const key = signature.scope.split('/').reduce<Uint8Array>(hmac, Buffer.from(`AWS4${secret}`));
  let previous = signature.signature;
  const sign = (kind: string, rest: string): string => {
    const said = [kind, signature.date, signature.scope, previous, rest].join('\n');
    previous = hmac(key, said).toString('hex');
    return previous;
  };
  const chunk = (data: string): string =>
    `${data.length.toString(16)};chunk-signature=${sign('AWS4-HMAC-SHA256-PAYLOAD', `${sha256('')}\n${sha256(data)}`)}\r\n${data}`;
  const trailer = 'x-amz-checksum-crc32:AAAAAA==';
  const body = `${chunk('abcd')}\r\n${chunk('efghi')}\r\n${chunk('')}${trailer}\r\n`;
  return `${body}x-amz-trailer-signature:${sign('AWS4-HMAC-SHA256-TRAILER', sha256(`${trailer}\n`))}\r\n\r\n`;
}

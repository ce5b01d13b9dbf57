/** Signatures and chunks without a server: Amazon's own examples, and what a changed byte comes to. */
import { expect, test, vi } from 'vitest';
import { objectKeyCommand } from '../../../src/cli/object-key.ts';
import { ChunkedDecoder } from '../../../src/doors/object/chunked-decoder.ts';
import {
  ChunkSignatures,
  keyIdOf,
  type Signature,
  signatureOf,
  type SignedRequest,
  verifySignature,
} from '../../../src/governance/authentication/sigv4.ts';

const secret = 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY';
const scope = '20130524/us-east-1/s3/aws4_request';
const nowNs = BigInt(Date.UTC(2013, 4, 24)) * 1_000_000n;
const emptySha256 = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';

/** The examples of "Authenticating Requests (AWS Signature Version 4)" in Amazon's reference of the S3 API. */
const examples: readonly (readonly [name: string, request: SignedRequest])[] = [
  [
    'GET of a range',
    request(
      'GET',
      '/test.txt',
      '',
      'f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
      'host;range;x-amz-content-sha256;x-amz-date',
      {
        range: 'bytes=0-9',
        'x-amz-content-sha256': emptySha256,
      },
    ),
  ],
  [
    'PUT with a key that is encoded',
    request(
      'PUT',
      '/test%24file.text',
      '',
      '98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd',
      'date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class',
      {
        date: 'Fri, 24 May 2013 00:00:00 GMT',
        'x-amz-content-sha256': '44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072',
        'x-amz-storage-class': 'REDUCED_REDUNDANCY',
      },
    ),
  ],
  [
    'GET of a subresource',
    request(
      'GET',
      '/',
      'lifecycle',
      'fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543',
      'host;x-amz-content-sha256;x-amz-date',
      {
        'x-amz-content-sha256': emptySha256,
      },
    ),
  ],
  [
    'GET of a listing',
    request(
      'GET',
      '/',
      'max-keys=2&prefix=J',
      '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7',
      'host;x-amz-content-sha256;x-amz-date',
      {
        'x-amz-content-sha256': emptySha256,
      },
    ),
  ],
];

function request(
  method: string,
  path: string,
  query: string,
  signature: string,
  signed: string,
  headers: Readonly<Record<string, string>>,
): SignedRequest {
  const authorization = `AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/${scope},SignedHeaders=${signed},Signature=${signature}`;
  const date = '20130524T000000Z';
  return {
    method,
    path,
    query,
    headers: { host: 'examplebucket.s3.amazonaws.com', 'x-amz-date': date, authorization, ...headers },
  };
}

const found = (asked: SignedRequest): Signature => signatureOf(asked) as Signature;

test.each(examples)('%s verifies, and nothing else that looks like it', (_name, asked) => {
  const verdict = (each: SignedRequest): string => verifySignature(each, found(each), secret, nowNs);
  expect(verdict(asked)).toBe('verified');
  expect(found(asked).accessKey).toBe('AKIAIOSFODNN7EXAMPLE');
  expect(verdict({ ...asked, method: 'HEAD' })).toBe('mismatch');
  expect(verdict({ ...asked, path: `${asked.path}x` })).toBe('mismatch');
  expect(verdict({ ...asked, query: `${asked.query}&x` })).toBe('mismatch');
  expect(verdict({ ...asked, headers: { ...asked.headers, host: 'elsewhere' } })).toBe('mismatch');
  expect(verifySignature(asked, found(asked), `${secret}x`, nowNs)).toBe('mismatch');
  expect(verifySignature(asked, found(asked), secret, nowNs + 16n * 60_000_000_000n)).toBe('skewed');
});

test('a URL that was signed verifies until it expires', () => {
  const signed = 'aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404';
  const query = `X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=${encodeURIComponent(`AKIAIOSFODNN7EXAMPLE/${scope}`)}&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature=${signed}`;
  const asked = { method: 'GET', path: '/test.txt', query, headers: { host: 'examplebucket.s3.amazonaws.com' } };
  expect(verifySignature(asked, found(asked), secret, nowNs + 86_399_000_000_000n)).toBe('verified');
  expect(verifySignature(asked, found(asked), secret, nowNs + 86_401_000_000_000n)).toBe('expired');
  const longer = { ...asked, query: query.replace('86400', '604800') };
  expect(verifySignature(longer, found(longer), secret, nowNs)).toBe('mismatch');
  expect(signatureOf({ ...asked, query: query.replace('86400', '604801') })).toBe('malformed');
  expect(signatureOf({ ...asked, query: `${query}&X-Amz-Expires=1` })).toBe('malformed');
});

test('chunks verify one after the other, as in Amazon’s example of 66,560 bytes', () => {
  const seed: Signature = {
    by: 'header',
    accessKey: 'AKIAIOSFODNN7EXAMPLE',
    scope,
    date: '20130524T000000Z',
    signedHeaders: [],
    signature: '4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9',
    payload: 'STREAMING-AWS4-HMAC-SHA256-PAYLOAD',
    expiresSecs: 0,
  };
  const chunk = (length: number, signature: string): string =>
    `${length.toString(16)};chunk-signature=${signature}\r\n${'a'.repeat(length)}\r\n`;
  const body = Buffer.from(
    chunk(65_536, 'ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648') +
      chunk(1_024, '0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497') +
      chunk(0, 'b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9'),
  );
  const read = (bytes: Buffer): string => {
    const signatures = new ChunkSignatures(seed, secret);
    const decoder = new ChunkedDecoder({ signed: true, signatures, trailers: false, length: 66_560 });
    try {
      const content = Buffer.concat(decoder.push(bytes));
      decoder.end();
      return content.toString();
    } catch (error) {
      return (error as { s3: string }).s3;
    }
  };
  expect(read(body)).toBe('a'.repeat(66_560));
  for (const at of [100, 65_700, 66_700]) {
    const changed = Buffer.from(body);
    changed[at] = 'b'.charCodeAt(0);
    expect(read(changed)).toMatch(/^(SignatureDoesNotMatch|InvalidRequest)$/);
  }
  expect(read(body.subarray(0, -2))).toBe('IncompleteBody');
  expect(read(Buffer.concat([body, Buffer.from('x')]))).toBe('IncompleteBody');
});

test('what stands for the shared secret is the same each time, and tells nothing of it', async () => {
  let said = '';
  const write = vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    said += String(text);
    return true;
  });
  vi.stubEnv('SERVICE_BEARER_TOKEN', 'change-me');
  expect(await objectKeyCommand({})).toBe(0);
  const id = '018f2a3b-0000-7000-8000-000000000001';
  const token = `ann_${id}_${'A'.repeat(43)}`;
  const shared = said;
  said = '';
  expect(await objectKeyCommand({ token })).toBe(0);
  write.mockRestore();
  vi.unstubAllEnvs();
  expect(said).toMatch(new RegExp(`^AWS_ACCESS_KEY_ID=ann_${id}\nAWS_SECRET_ACCESS_KEY=[\\w-]{43}\n$`));
  expect(said).not.toContain('A'.repeat(43));
  await expect(objectKeyCommand({ token: `ann_${id}` })).rejects.toThrow('this is not a registry token');
  said = shared;
  expect(said).toBe(`${keyIdOf('change-me')}\n`);
  expect(said).toMatch(/^ANNL[A-Z2-7]{16}\n$/);
  expect(keyIdOf('change-m3')).not.toBe(keyIdOf('change-me'));
});

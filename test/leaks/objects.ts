/** What the object door says: rows of any type in the bucket `types`, and objects and buckets of others beside one's own. */
import { S3Client, GetObjectCommand } from '@aws-sdk/client-s3';
import { getSignedUrl } from '@aws-sdk/s3-request-presigner';
import { assert } from '../../src/errors.ts';
import { keyPairOf } from '../../src/governance/authentication/access-keys.ts';
import { keyIdOf } from '../../src/governance/authentication/sigv4.ts';
import { type Conversation, talk } from './conversations.ts';
import { bootstrapSecret } from './lab.ts';

const rows: readonly string[] = [
  '/',
  '/types',
  '/types?list-type=2',
  '/types?list-type=2&delimiter=/',
  '/types?list-type=2&prefix=Deal/',
  '/types?list-type=2&prefix=Deal/x',
  '/types?list-type=2&prefix=Deal/&max-keys=1',
  '/types?list-type=2&prefix=Party/',
  '/types?list-type=2&prefix=Hidden/',
  '/types?list-type=2&prefix=ObjectStoreObject/',
  '/types/Deal/x1.json',
  '/types/Deal/y7.json',
  '/types/Party/p1.json',
  '/types/Hidden/x1.json',
  '/types/ObjectStoreObject/box%252Fx1.json',
  '/types/SourceTrueIdentity/x1.json',
];

const objects: readonly (readonly [method: string, path: string, body?: object])[] = [
  ['HEAD', '/box'],
  ['GET', '/box?list-type=2'],
  ['GET', '/box/x1'],
  ['PUT', '/box/x1', { own: 1 }],
  ['PUT', '/box'],
  ['GET', '/box?list-type=2&delimiter=/'],
  ['GET', '/box/x1'],
  ['HEAD', '/box/x1'],
  ['PUT', '/box/x1', { own: 1 }],
  ['GET', '/box/x1'],
  ['GET', '/box?list-type=2&prefix=x&encoding-type=url'],
  ['DELETE', '/box/x1'],
  ['GET', '/box/x1'],
  ['DELETE', '/box'],
  ['POST', '/box/x1?uploads'],
];

export const objectConversations: readonly Conversation[] = [
  {
    name: 'the object door',
    hold: talk(async (_ask, stage, adversary, heard) => {
      if (adversary.opensDoors === true) return;
      const ask = async (method: string, path: string, body?: object, headers: Record<string, string> = {}): Promise<void> => {
        const sent = { method, path, door: 'object', headers: { ...adversary.headers(stage), ...headers } } as const;
        heard.push(await stage.lab.ask({ ...sent, ...(body && { body: JSON.stringify(body) }) }));
      };
      for (const path of rows) await ask('GET', path);
      for (const [method, path, body] of objects) await ask(method, path, body);
      await ask('GET', '/types/Deal/x1.json', undefined, { 'x-service-as-of-system': '2024-01-01T00:00:01Z' });
      await ask('PUT', '/box/copy', undefined, { 'x-amz-copy-source': '/box/x1' });
      assert(heard.length > rows.length, 'all of it was asked');
    }),
  },
  {
    name: 'presigned key ids of others',
    hold: talk(async (_ask, stage, adversary, heard) => {
      if (adversary.holder === undefined) return;
      const { secretKey } = keyPairOf(stage.tokens.get(adversary.holder)!)!;
      const victim = keyPairOf(stage.tokens.get('acme')!)!.accessKey;
      if (adversary.holder === 'acme') return;
      for (const accessKeyId of [victim, keyIdOf(bootstrapSecret)]) {
        const { url, authorization } = await signatureBy(accessKeyId, secretKey, stage.lab.nextNow);
        const sent = { method: 'GET', door: 'object', headers: { host: signedHost, 'x-organization-id': 'acme/eu' } } as const;
        const headers = { ...sent.headers, authorization, 'x-amz-date': url.searchParams.get('X-Amz-Date')! };
        for (const path of [url.pathname + url.search, '/box/x1', '/types/Deal/x1.json', '/']) {
          const reply = await stage.lab.ask({ ...sent, path, headers: path.includes('?') ? sent.headers : headers });
          assert(reply.status === 403, 'nobody signs for another');
          heard.push(reply);
        }
      }
    }),
  },
];

const signedHost = 'objects.test';

/** A URL that somebody signed under another's key id, and the same signature in a header. */
async function signatureBy(accessKeyId: string, secretAccessKey: string, nowNs: bigint) {
  const signer = new S3Client({
    endpoint: `http://${signedHost}`,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: { accessKeyId, secretAccessKey },
  });
  const signingDate = new Date(Number(nowNs / 1_000_000n));
  const url = new URL(await getSignedUrl(signer, new GetObjectCommand({ Bucket: 'box', Key: 'x1' }), { signingDate }));
  signer.destroy();
  const value = (name: string): string => url.searchParams.get(`X-Amz-${name}`)!;
  const authorization = `AWS4-HMAC-SHA256 Credential=${value('Credential')}, SignedHeaders=host, Signature=${value('Signature')}`;
  return { url, authorization };
}

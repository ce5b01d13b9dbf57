/** What the object door says: rows of any type in the bucket `types`, and objects and buckets of others beside one's own. */
import { assert } from '../../src/errors.ts';
import { type Conversation, talk } from './conversations.ts';

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
      // There the bootstrap secret is what opens the door, for whatever organisation it names.
      if (adversary.name === 'the bootstrap secret') return;
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
];

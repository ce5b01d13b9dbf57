/** What was written to hurt, in the words of the doors beside HTTP and by their real clients, and how each must end. */
import { Redis } from 'ioredis';
import { type Document, MongoClient } from 'mongodb';
import { on } from 'node:events';
import { connect, type Socket } from 'node:net';
import { deflateSync, gzipSync } from 'node:zlib';
import { setTimeout as pause } from 'node:timers/promises';
import { Client } from 'pg';
import { doorSecret, type Siege } from './siege.ts';

export interface DoorBomb {
  readonly name: string;
  /** `answered`, or what the client was told. */
  readonly run: (siege: Siege) => Promise<string>;
  readonly ends: RegExp;
}

async function told(asked: Promise<unknown>): Promise<string> {
  return asked.then(
    () => 'answered',
    (error: { code?: number | string; name: string; message: string }) =>
      `${error.code ?? error.name} ${error.message}`.slice(0, 200),
  );
}

const kv = (name: string, ends: RegExp, ask: (client: Redis) => Promise<unknown>): DoorBomb => ({
  name: `key-value: ${name}`,
  ends,
  async run({ ports }) {
    const client = new Redis(ports['kv']!, '127.0.0.1', {
      username: 'x',
      password: doorSecret,
      retryStrategy: () => undefined,
      replyMapping: 'legacy',
    });
    client.on('error', () => undefined);
    try {
      return await told(ask(client));
    } finally {
      client.disconnect();
    }
  },
});

/** As bytes, since no client sends so many words: the first line that they are answered with. */
const kvBytes = (name: string, ends: RegExp, bytes: () => string): DoorBomb => ({
  name: `key-value: ${name}`,
  ends,
  async run({ ports }) {
    const socket = connect(ports['kv']!, '127.0.0.1').setEncoding('latin1');
    const line = async (sent: string): Promise<string> => {
      socket.write(sent);
      let answer = '';
      for await (const piece of on(socket, 'data', { close: ['end', 'close'] })) {
        answer += String(piece);
        if (answer.includes('\r\n')) break;
      }
      return answer.split('\r\n', 1)[0]!;
    };
    try {
      const login = await line(`AUTH x ${doorSecret}\r\n`);
      return login === '+OK' ? await line(bytes()) : login;
    } finally {
      socket.destroy();
    }
  },
});

const documents = (name: string, ends: RegExp, ask: (client: MongoClient) => Promise<unknown>): DoorBomb => ({
  name: `document: ${name}`,
  ends,
  async run({ ports }) {
    const client = await new MongoClient(`mongodb://127.0.0.1:${ports['document']}/?directConnection=true`, {
      auth: { username: 'x', password: doorSecret },
      authMechanism: 'SCRAM-SHA-256',
      socketTimeoutMS: 60_000,
    }).connect();
    try {
      return await told(ask(client));
    } finally {
      await client.close();
    }
  },
});

const relational = (name: string, ends: RegExp, ask: (connected: () => Promise<Client>) => Promise<unknown>): DoorBomb => ({
  name: `relational: ${name}`,
  ends,
  async run({ ports }) {
    const connected = async (): Promise<Client> => {
      const client = new Client({
        host: '127.0.0.1',
        port: ports['relational']!,
        user: 'x',
        password: doorSecret,
        database: 'annals',
      });
      client.on('error', () => undefined);
      await client.connect();
      return client;
    };
    return told(ask(connected));
  },
});

/** What `pg` speaks with, below its queries. */
interface Wire {
  readonly stream: Socket;
  once(event: string, run: (value: unknown) => void): void;
  query(text: string): void;
  sendCopyFromChunk(bytes: Buffer): void;
  endCopyFrom(): void;
}

const document = (name: string, ends: RegExp, input: () => object): DoorBomb => ({
  name: `http: ${name}`,
  ends,
  async run({ port, token }) {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'x-service-purpose': 'analytics' };
    const body = JSON.stringify({ name: 'ingest_document', arguments: input() });
    const reply = await fetch(`http://127.0.0.1:${port}/mcp/tools/call`, { method: 'POST', headers, body });
    return `${reply.status} ${(await reply.text()).slice(0, 200)}`;
  },
});

const posted = (name: string, ends: RegExp, path: string, body: () => string): DoorBomb => ({
  name: `http: ${name}`,
  ends,
  async run({ port, token }) {
    const accept = 'application/json, text/event-stream';
    const headers = {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      accept,
      'x-service-purpose': 'analytics',
    };
    const reply = await fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST', headers, body: body() });
    return `${reply.status} ${(await reply.text()).slice(0, 200)}`;
  },
});

function unfoldingPdf(): Buffer {
  const content = deflateSync(Buffer.alloc(400 << 20, ' '));
  const objects = [
    '<</Type/Catalog/Pages 2 0 R>>',
    '<</Type/Pages/Kids[3 0 R]/Count 1>>',
    '<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R>>',
  ].map((object, i) => `${i + 1} 0 obj${object}endobj\n`);
  const stream = `4 0 obj<</Filter/FlateDecode/Length ${content.length}>>stream\n`;
  const end = '\nendstream endobj\ntrailer<</Size 5/Root 1 0 R>>\n%%EOF';
  return Buffer.concat([Buffer.from(`%PDF-1.4\n${objects.join('')}${stream}`), content, Buffer.from(end)]);
}

const object = (name: string, ends: RegExp, method: string, path: string, body?: string): DoorBomb => ({
  name: `object: ${name}`,
  ends,
  async run({ ports }) {
    const sent = { method, headers: { authorization: `Bearer ${doorSecret}` }, ...(body !== undefined && { body }) };
    const reply = await fetch(`http://127.0.0.1:${ports['object']}${path}`, sent);
    return `${reply.status} ${(await reply.text()).slice(0, 200)}`;
  },
});

const nested = (depth: number, leaf: Document): Document => {
  let made = leaf;
  for (let i = 0; i < depth; i++) made = { d: made };
  return made;
};
const many = <T>(count: number, of: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => of(i));
const all = (client: MongoClient, filter: Document, more: object = {}): Promise<unknown> =>
  client.db('h').collection('things').find(filter, more).toArray();

const fields = (count: number, value: unknown): Document => Object.fromEntries(many(count, (i) => [`f${i}`, value]));
const conditions = (count: number): Document => ({ $nor: many(count, (i) => ({ [`f${i}`]: 1 })) });
const aggregate = (client: MongoClient, stages: Document[]): Promise<unknown> =>
  client.db('h').collection('things').aggregate(stages).toArray();

const found = (client: MongoClient) => client.db('h').collection<{ _id: number; n?: number; list?: unknown }>('found');

/** The first of each door makes what the others ask of. */
export const doorBombs: readonly DoorBomb[] = [
  kv('a hundred thousand commands at once', /^answered/, (client) => {
    const line = client.pipeline();
    for (let i = 0; i < 100_000; i++)
      if (i % 20 === 0) line.set(`key:${i}`, 'x'.repeat(100));
      else line.get(`key:${i}`);
    return line.exec();
  }),
  kv('keys by a pattern that tries every way', /^answered/, (client) => client.keys(`*${'e*'.repeat(400)}nothing`)),
  kv('fifty thousand keys in one command', /^answered|ERR/, (client) => client.mget(many(50_000, (i) => `key:${i}`))),
  kv('ten thousand values in one command', /^answered|ERR/, (client) =>
    client.mset(...many(20_000, (i) => (i % 2 === 0 ? `m:${i}` : 'v'))),
  ),
  kv('sixty thousand keys, written in steps and deleted', /^answered/, async (client) => {
    const keys = many(60_000, (i) => `d:${i}`);
    for (let from = 0; from < keys.length; from += 4_096)
      await client.mset(...keys.slice(from, from + 4_096).flatMap((key) => [key, 'v']));
    await client.exists(...keys);
    await client.del(...keys);
  }),
  kvBytes('as many words as are taken', /^-ERR/, () => `*131072\r\n$6\r\nEXISTS\r\n${'$1\r\nk\r\n'.repeat(131_071)}`),
  kvBytes(
    'a command that takes few words, with as many',
    /^-ERR/,
    () => `*131072\r\n$6\r\nCONFIG\r\n$3\r\nGET\r\n${'$4\r\n*a*b\r\n'.repeat(131_070)}`,
  ),
  kv('a value of fifteen MiB that grows, and is read', /^answered|ERR/, async (client) => {
    await client.set('grows', 'é'.repeat(6 << 20));
    await client.append('grows', 'x'.repeat(3 << 20));
    await Promise.all([client.get('grows'), client.get('grows'), client.strlen('grows')]);
  }),
  kv('messages without end to one that reads none', /^answered|closed/i, async (client) => {
    const deaf = client.duplicate();
    deaf.on('error', () => undefined);
    await deaf.subscribe('flood');
    (deaf as unknown as { stream: Socket }).stream.pause();
    const line = client.pipeline();
    for (let i = 0; i < 5_000; i++) line.publish('flood', 'x'.repeat(10_000));
    await line.exec();
    deaf.disconnect();
  }),
  kv('a value of fifteen MiB, five times', /^answered|ERR/, (client) =>
    Promise.all(many(5, (i) => client.set(`large:${i}`, 'x'.repeat(15 << 20)))),
  ),
  kv('a value of seventeen MiB', /closed|ERR/, (client) => client.set('larger', 'x'.repeat(17 << 20))),
  documents('ten thousand documents at once', /^answered/, async (client) => {
    const things = client.db('h').collection('things');
    for (let from = 0; from < 10_000; from += 1_000)
      await things.insertMany(many(1_000, (i) => ({ n: from + i, text: 'a'.repeat(40), tags: many(10, String) })));
  }),
  documents('distinct documents of ten thousand, each of a hundred fields', /^answered|^\d+ /, async (client) => {
    const wholes = client.db('h').collection('wholes');
    for (let from = 0; from < 10_000; from += 1_000)
      await wholes.insertMany(many(1_000, (i) => ({ of: fields(100, from + i), list: many(20, (k) => ({ k, n: i })) })));
    await wholes.distinct('of');
  }),
  documents('distinct elements of ten thousand lists', /^answered|^\d+ /, (client) =>
    client.db('h').collection('wholes').distinct('list'),
  ),
  documents('a document of three hundred thousand elements', /^answered/, async (client) => {
    await found(client).insertOne({ _id: 1, list: many(300_000, (i) => ({ i, text: 'x' })) });
  }),
  documents('the same, found and modified', /^answered/, async (client) => {
    await found(client).findOneAndUpdate({ _id: 1 }, { $set: { n: 1 } }, { returnDocument: 'after' });
  }),
  documents('the same without a member of each element', /^2 /, async (client) => {
    await found(client).findOneAndUpdate({ _id: 1 }, { $inc: { n: 1 } }, { projection: { 'list.text': 0 } });
  }),
  documents('the same, found and deleted', /^answered/, async (client) => {
    await found(client).findOneAndDelete({ _id: 1 });
  }),
  documents('a document of sixty levels', /^answered/, (client) =>
    client
      .db('h')
      .collection('deep')
      .insertOne(nested(60, { n: 1 })),
  ),
  documents('a document of a thousand levels', /closed|^\d+ /, (client) =>
    client
      .db('h')
      .collection('deep')
      .insertOne(nested(1_000, { n: 1 })),
  ),
  documents('a filter of five thousand ways', /^answered|^\d+ /, (client) =>
    all(client, { $or: many(5_000, (i) => ({ n: -i })) }),
  ),
  documents('a filter of a hundred levels', /closed|^answered|^\d+ /, (client) => {
    let filter: Document = { n: 1 };
    for (let i = 0; i < 100; i++) filter = { $and: [filter, { $nor: [{ n: -1 }] }] };
    return all(client, filter);
  }),
  documents('a pattern that tries every way', /^answered|^\d+ /, (client) => all(client, { text: { $regex: '^(a+)+(a+)+$b' } })),
  documents('a thousand conditions in a later stage', /^answered/, (client) =>
    aggregate(client, [{ $skip: 0 }, { $match: conditions(1_000) }, { $count: 'n' }]),
  ),
  documents('a thousand stages of a hundred conditions', /^answered|^50 /, (client) =>
    aggregate(
      client,
      many(1_000, () => ({ $match: conditions(100) })),
    ),
  ),
  documents('a thousand sums of one group', /^answered/, (client) =>
    aggregate(client, [{ $group: { _id: null, ...fields(1_000, { $sum: '$n' }) } }]),
  ),
  documents('a thousand lists of everything', /^292 /, (client) =>
    aggregate(client, [{ $group: { _id: null, ...fields(1_000, { $push: '$$ROOT' }) } }]),
  ),
  documents('a projection of a hundred thousand fields', /^answered/, (client) =>
    all(client, {}, { projection: fields(100_000, 1) }),
  ),
  documents('a sort by what has a billion ways', /^2 /, async (client) => {
    let ways: unknown = 1;
    for (let i = 0; i < 29; i++) ways = [{ 0: ways }];
    const things = client.db('h').collection('ways');
    await things.insertOne({ a: ways });
    await things.find({}, { sort: { [`a${'.0'.repeat(29)}`]: 1 } }).toArray();
  }),
  documents('an update of twenty thousand fields', /^answered/, (client) =>
    client
      .db('h')
      .collection('set')
      .updateOne({ _id: 1 as never }, { $set: fields(20_000, 1) }, { upsert: true }),
  ),
  documents('an update of ten thousand documents', /^answered|REL_/, (client) =>
    client
      .db('h')
      .collection('things')
      .updateMany({ n: { $lt: 4_000 } }, { $set: fields(100, 1) }),
  ),
  documents('an update at the end of a long path', /^15 /, (client) =>
    client
      .db('h')
      .collection('set')
      .updateOne({ _id: 2 as never }, { $set: { [`a${'.a'.repeat(1_000_000)}`]: 1 } }, { upsert: true }),
  ),
  documents('ten thousand values in $in', /^answered|^\d+ /, (client) => all(client, { text: { $in: many(10_000, String) } })),
  documents('a sort of everything, twice', /^answered|^\d+ /, (client) =>
    client
      .db('h')
      .collection('things')
      .aggregate([{ $sort: { text: 1, n: -1 } }, { $group: { _id: '$n', c: { $sum: 1 } } }, { $sort: { c: 1 } }])
      .toArray(),
  ),
  documents('ten thousand fields', /^answered|^\d+ /, (client) =>
    client
      .db('h')
      .collection('wide')
      .insertOne(Object.fromEntries(many(10_000, (i) => [`f${i}`, i]))),
  ),
  documents('a document of fifteen MiB', /^answered|^\d+ /, (client) =>
    client
      .db('h')
      .collection('wide')
      .insertOne({ text: 'x'.repeat(15 << 20) }),
  ),
  relational('rows that nobody reads, on twenty connections', /^answered/, async (connected) => {
    const readers = await Promise.all(many(20, () => connected()));
    for (const reader of readers) {
      (reader as unknown as { connection: { stream: Socket } }).connection.stream.pause();
      void reader.query('SELECT a.body, b.body FROM Text a, Text b').catch(() => undefined);
    }
    await pause(3_000);
    for (const reader of readers) (reader as unknown as { connection: { stream: Socket } }).connection.stream.destroy();
  }),
  relational('sixteen MiB of statement, and parameters', /^answered|^[0-9A-Z]{5} /, async (connected) => {
    const client = await connected();
    await client.query(`SELECT 1 /* ${'x'.repeat(15 << 20)} */`).catch(() => undefined);
    try {
      await client.query('SELECT $1::text', ['x'.repeat(15 << 20)]);
    } finally {
      await client.end();
    }
  }),
  relational('a million characters of names, as each command reads them', /^answered/, async (connected) => {
    const client = await connected();
    const names = 'a,'.repeat(500_000);
    for (const text of [
      `DROP TABLE ${names}b`,
      `TRUNCATE ${names}b`,
      `CREATE INDEX i ON T (${names}b)`,
      `COPY T (${names}b) FROM STDIN`,
      `CREATE TABLE T (${names.replaceAll(',', ' text,').slice(0, 1_000_000)}b text)`,
      `SELECT * FROM ${'public.a,'.repeat(110_000)}b`,
      `SELECT a = ANY('{1}') ${'+1'.repeat(500_000)}`,
      `SELECT ${"''".repeat(500_000)}`,
    ])
      await client.query(text).catch(() => undefined);
    await client.end();
  }),
  relational('a line without an end, by COPY', /^54000 .*row is over/, async (connected) => {
    const client = await connected();
    await client.query('CREATE TABLE copied (id text PRIMARY KEY, v text)').catch(() => undefined);
    const { connection } = client as unknown as { connection: Wire };
    const refused = new Promise<never>((_, reject) => connection.once('errorMessage', reject));
    const ready = new Promise((resolve) => connection.once('copyInResponse', resolve));
    connection.query('COPY copied FROM STDIN WITH (FORMAT csv)');
    try {
      await Promise.race([ready, refused]);
      for (let i = 0; i < 80; i++) connection.sendCopyFromChunk(Buffer.alloc(1 << 20, i === 0 ? '"' : ','));
      connection.endCopyFrom();
      await Promise.race([refused, pause(30_000)]);
      throw new Error('no answer within 30 s');
    } finally {
      connection.stream.destroy();
    }
  }),
  document('a PDF of a few kilobytes that unfolds to 400 MB', /^4(?!08|00)\d\d/, () => ({
    content_base64: unfoldingPdf().toString('base64'),
    format: 'pdf',
  })),
  document('a page of nothing but comments', /^200|^4\d\d/, () => ({ content: `${'<!---->'.repeat(144)}x` })),
  document('a page of elements within each other', /^4(?!08|00)\d\d/, () => ({
    content: '<div>'.repeat(500_000),
    format: 'html',
  })),
  {
    name: 'http: a compressed body that unfolds to a gigabyte',
    ends: /^4\d\d/,
    async run({ port, token }) {
      const body = gzipSync(Buffer.alloc(1 << 30, 'x'));
      const headers = { authorization: `Bearer ${token}`, 'content-encoding': 'gzip', 'content-type': 'application/x-ndjson' };
      const reply = await fetch(`http://127.0.0.1:${port}/ingest/auto?object_type=Unfolded`, { method: 'POST', headers, body });
      return `${reply.status} ${(await reply.text()).slice(0, 200)}`;
    },
  },
  posted('sixty thousand malformed filters', /^413/, '/search', () =>
    JSON.stringify({ type: 'Small', query: 'x', filters: many(60_000, () => ({ field: 1 })) }),
  ),
  posted('eight thousand malformed filters', /^400/, '/search', () =>
    JSON.stringify({ type: 'Small', query: 'x', filters: many(8_000, () => ({ field: 1 })) }),
  ),
  posted('eight thousand filters', /^[24]\d\d/, '/search', () =>
    JSON.stringify({ from: 'Small', filters: many(8_000, (i) => ({ field: 'n', op: 'ne', value: i })) }),
  ),
  posted('a hundred thousand long integers', /^413/, '/search', () => `[${'12345678901234567890,'.repeat(100_000)}1]`),
  posted('four thousand unknown members, eight times', /^4\d\d/, '/mcp/tools/call', () =>
    JSON.stringify({ name: 'query', arguments: { a: many(8, () => fields(4_000, 1)) } }),
  ),
  posted('a text of nothing but escapes', /^200/, '/memory/remember', () => `{"content":"${'\\u0041'.repeat(690_000)}"}`),
  posted('a million messages in a batch', /^4\d\d/, '/mcp', () => `[${'{},'.repeat(1_000_000)}{}]`),
  posted('six thousand messages in a batch', /^[24]\d\d/, '/mcp', () =>
    JSON.stringify(many(6_000, (id) => ({ jsonrpc: '2.0', id, method: 'ping' }))),
  ),
  posted('a selection of a hundred thousand fields', /^[24]\d\d/, '/graphql', () =>
    JSON.stringify({ query: `{ Small { ${many(100_000, (i) => `a${i}: n`).join(' ')} } }` }),
  ),
  posted('a selection of a thousand levels', /^4\d\d/, '/graphql', () =>
    JSON.stringify({ query: `${'{ a '.repeat(1_000)}${'}'.repeat(1_000)}` }),
  ),
  posted('two hundred thousand columns', /^4\d\d/, '/ingest/auto?object_type=Broad', () => `${'x,'.repeat(200_000)}\n1\n`),
  posted('a row of two hundred thousand members', /^[24]\d\d/, '/ingest/auto?object_type=Broad', () =>
    JSON.stringify(fields(200_000, 1)),
  ),
  object('a bucket', /^200/, 'PUT', '/docs'),
  object(
    'a list of keys to remove, ten thousand',
    /^[24]\d\d/,
    'POST',
    '/docs?delete=',
    `<Delete>${many(10_000, (i) => `<Object><Key>k${i}</Key></Object>`).join('')}</Delete>`,
  ),
  object('a document of a thousand levels', /^4\d\d/, 'POST', '/docs?delete=', `${'<a>'.repeat(1_000)}${'</a>'.repeat(1_000)}`),
  object(
    'entities within entities',
    /^4\d\d/,
    'POST',
    '/docs?delete=',
    `<!DOCTYPE a [${many(20, (i) => `<!ENTITY e${i + 1} "&e${i};&e${i};">`).join('')}]><Delete><Object><Key>&e20;</Key></Object></Delete>`,
  ),
  object('a body of sixty MiB', /^200/, 'PUT', '/docs/large', 'x'.repeat(60 << 20)),
  object('all keys, by a delimiter', /^200/, 'GET', '/docs?list-type=2&delimiter=k&max-keys=1000'),
];

export interface Burst {
  readonly name: string;
  readonly end: string;
  readonly ms: number;
  readonly wrong: boolean;
}

export async function burst(siege: Siege, { name, run, ends }: DoorBomb): Promise<Burst> {
  const started = performance.now();
  const end = await run(siege).catch((error: Error) => `failed: ${error.message}`);
  return { name, end, ms: performance.now() - started, wrong: !ends.test(end) };
}

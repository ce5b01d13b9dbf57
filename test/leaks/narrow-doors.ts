/** What the key-value, the document, the native columnar and the binary graph door say: keys, messages, documents and rows of others beside one's own. */
import type { NativeMessage } from '../../src/doors/columnar/native-codec.ts';
import { NativeSession } from '../../src/doors/columnar/native-session.ts';
import { RunningQueries } from '../../src/doors/columnar/running-queries.ts';
import { OpenCursors } from '../../src/doors/document/cursors.ts';
import { DocumentCommandContext } from '../../src/doors/document/command.ts';
import { writeDocument } from '../../src/doors/document/bson.ts';
import { errorDocument } from '../../src/doors/document/errors.ts';
import { documentCommandRows as documentCommands } from '../../src/doors/document/session.ts';
import { ConnectionCaller } from '../../src/doors/shared/connection-caller.ts';
import type { Connection } from '../../src/doors/shared/socket-connection.ts';
import { type DoorDependencies, wireBounds } from '../../src/doors/shared/door-dependencies.ts';
import { BoltSession } from '../../src/doors/graph/bolt-session.ts';
import { PackStreamWriter, type PackStreamValue, PackStreamStructure } from '../../src/doors/graph/packstream.ts';
import { ScanCursors } from '../../src/doors/kv/scan-cursors.ts';
import { KvSession } from '../../src/doors/kv/session.ts';
import { Channels } from '../../src/doors/kv/pub-sub.ts';
import { ServiceError } from '../../src/errors.ts';
import { RateLimiter } from '../../src/governance/admission/rate-limit.ts';
import { readText, textOf } from '../../src/planner/expressions/documents/document-json.ts';
import type { StoredObject } from '../../src/planner/expressions/documents/document-values.ts';
import type { Adversary } from './adversaries.ts';
import { type Conversation, talk } from './conversations.ts';
import { type Heard, settled } from './lab.ts';
import type { Stage } from './stage.ts';

export function partsOf({ lab: { service } }: Stage): DoorDependencies {
  const { gate, planner, authenticator, clock, ids, random } = service;
  const yieldTurn = service.turns.yieldFor('bodies');
  const limit = new RateLimiter(1e9);
  const limits = { readLimit: limit, writeLimit: limit, refusalRecordLimit: limit };
  const failed = (error: unknown): never => {
    throw error;
  };
  const wire = wireBounds({ SERVICE_WIRE_MESSAGE_MB: 16, SERVICE_WIRE_MEMORY_MB: 256 }, clock);
  return {
    gate,
    planner,
    authenticator,
    clock,
    ids,
    random,
    yieldTurn,
    ...limits,
    organizationRequired: false,
    wire,
    reportFailure: failed,
  };
}

interface Comes {
  readonly token: string;
  readonly organization: string | null;
  readonly purpose: string | null;
}

/** Null for who can't come by a protocol without headers. */
export function comesAs(stage: Stage, adversary: Adversary): Comes | null {
  const {
    authorization = '',
    'x-organization-id': organization = null,
    'x-service-purpose': purpose = null,
  } = adversary.headers(stage);
  if (typeof authorization !== 'string' || adversary.opensDoors === true) return null;
  if (Array.isArray(organization) || Array.isArray(purpose)) return null;
  const token = authorization.replace(/^bearer /i, '');
  return { token, organization: organization as string | null, purpose: purpose as string | null };
}

export const heardOf = (door: string, asked: string, body: Buffer): Heard => ({
  sent: { method: door, path: asked },
  status: 200,
  headers: [],
  body,
});

const commands: readonly string[] = [
  'GET x1',
  'ANNALS.HISTORY x1',
  'EXISTS x1 x2',
  'STRLEN x1',
  'TTL x1',
  'TYPE x1',
  'KEYS *',
  'SCAN 0 COUNT 3',
  'DBSIZE',
  'DEL x1',
  'EXPIRE x1 100',
  'PERSIST x1',
  'GETDEL x1',
  'SET x1 own NX',
  'GET x1',
  'APPEND x1 more',
  'SET x1 own XX GET',
  'MGET x1 x2 x3',
  'ANNALS.HISTORY x1',
  'INCR n1',
  'DBSIZE',
  'SCAN 0 MATCH x* COUNT 1',
  'ANNALS.AT 2024-01-01T00:00:01Z SYSTEM GET x1',
  'ANNALS.AT 2024-01-01T00:00:01Z KEYS *',
  ...['Deal x1', 'Deal x2', 'Party p1', 'Dossier d1', 'Hidden x1', 'hidden_view x1', 'SourceTrueIdentity x1', 'Nowhere x1'].map(
    (named) => `ANNALS.ROW ${named}`,
  ),
  'PUBLISH news own',
  'SUBSCRIBE news@2024-01-01 other',
  'PSUBSCRIBE n*@2024-01-01',
  'GET x1',
  'RESET',
];

/** A connection that writes here. */
const connectionTo = (write: (bytes: Uint8Array) => void, gone: AbortSignal): Connection => ({
  clientIp: '127.0.0.1',
  gone,
  canSecure: false,
  isDraining: false,
  secure: () => undefined,
  write,
  caughtUp: async () => undefined,
  markAuthenticated: () => undefined,
  watches: () => undefined,
  loginRefused: async () => undefined,
  end: () => undefined,
});

async function talkKv(stage: Stage, { token, organization, purpose }: Comes, heard: Heard[]): Promise<void> {
  let sent: Buffer[] = [];
  const gone = new AbortController();
  const connection = connectionTo((bytes) => void sent.push(Buffer.from(bytes)), gone.signal);
  const parts = { ...partsOf(stage), cursors: new ScanCursors(), channels: new Channels(), number: () => 1 };
  const session = new KvSession(parts, connection);
  const ask = async (words: readonly string[]): Promise<void> => {
    await stage.lab.tick();
    await session.handle(words.map((word) => Buffer.from(word)));
    await settled(8);
    heard.push(heardOf('KV', words[0] === 'AUTH' ? 'AUTH' : words.join(' '), Buffer.concat(sent)));
    sent = [];
  };
  await ask(['AUTH', organization === null ? 'me' : `me@${organization}`, token]);
  if (purpose !== null) await ask(['ANNALS.SET', 'purpose', purpose]);
  for (const command of commands) await ask(command.split(' '));
  session.close();
  gone.abort();
}

const deals = { $db: 'shop' } as const;
const statements = [
  { find: 'deals', filter: { _id: 'x1' }, ...deals },
  { find: 'deals', filter: {}, ...deals },
  { find: 'deals', filter: { note: { $exists: true } }, sort: { _id: 1 }, projection: { note: 1 }, ...deals },
  { find: 'deals', comment: { annals: { as_of_system: '2024-01-01T00:00:01Z' } }, ...deals },
  { count: 'deals', ...deals },
  { distinct: 'deals', key: 'note', ...deals },
  { aggregate: 'deals', pipeline: [{ $group: { _id: '$note', n: { $sum: 1 } } }], cursor: {}, ...deals },
  { listCollections: 1, ...deals },
  { listDatabases: 1, $db: 'admin' },
  { listIndexes: 'deals', ...deals },
  { update: 'deals', updates: [{ q: {}, u: { $set: { note: 'own' } }, multi: true }], ...deals },
  { delete: 'deals', deletes: [{ q: {}, limit: 0 }], ...deals },
  { findAndModify: 'deals', query: { _id: 'x1' }, update: { $inc: { n: 1 } }, upsert: true, new: true, ...deals },
  { insert: 'deals', documents: [{ _id: 'x1' }, { _id: 'x2', note: 'own' }], ordered: false, ...deals },
  { find: 'deals', batchSize: 1, ...deals },
  { drop: 'deals', ...deals },
  { listCollections: 1, $db: 'types' },
  ...['Deal', 'Party', 'Dossier', 'Hidden', 'hidden_view', 'SourceTrueIdentity', 'Nowhere'].flatMap((type) => [
    { find: type, filter: { _id: 'x1' }, $db: 'types' },
    { find: type, filter: {}, $db: 'types' },
    { count: type, query: { amount: { $gt: 1_000_000 } }, $db: 'types' },
  ]),
].map((statement) => readText(JSON.stringify(statement)) as StoredObject);

async function talkDocuments(stage: Stage, { token, organization, purpose }: Comes, heard: Heard[]): Promise<void> {
  const parts = partsOf(stage);
  const gone = new AbortController();
  const cursors = new OpenCursors(parts.random);
  const stated = purpose === null ? [] : [['comment', readText(JSON.stringify({ annals: { purpose } }))] as const];
  for (const statement of statements) {
    await stage.lab.tick();
    const [name] = [...statement.keys()] as [string];
    const run = async (): Promise<Buffer> => {
      const caller = parts.authenticator.passwordCaller(token, { door: 'document', clientIp: '127.0.0.1', organization });
      const context = new DocumentCommandContext(
        name,
        new Map([...statement, ...stated]),
        new ConnectionCaller(parts, caller, gone.signal),
        cursors,
      );
      return writeDocument(await documentCommands[name]!.run(context));
    };
    const reply = await run().catch((error: unknown) => {
      if (!(error instanceof ServiceError)) throw error;
      return writeDocument(errorDocument(error));
    });
    heard.push(heardOf('DOCUMENT', textOf(statement), reply));
  }
  gone.abort();
}

const questions: readonly string[] = [
  ...['Deal', 'Party', 'Dossier', 'Hidden', 'hidden_view', 'SourceTrueIdentity', 'Nowhere'].flatMap((type) => [
    `SELECT * FROM ${type}`,
    `SELECT COUNT(*) AS n FROM ${type}`,
    `SELECT _pk FROM ${type} WHERE _pk = 'x1'`,
    `SELECT _pk, system_from FROM ${type} ORDER BY _pk LIMIT 1`,
  ]),
  'SELECT amount, COUNT(*) AS n FROM Deal WHERE amount > 1 GROUP BY amount ORDER BY amount',
  "SELECT note FROM Deal AS OF SYSTEM TIME '2024-01-01T00:00:01Z'",
  "INSERT INTO Deal (id) VALUES ('x1')",
  'EXPLAIN SELECT * FROM Deal',
];

async function talkNative(stage: Stage, { token, organization, purpose }: Comes, heard: Heard[]): Promise<void> {
  let sent: Buffer[] = [];
  const gone = new AbortController();
  const session = new NativeSession(
    { ...partsOf(stage), running: new RunningQueries() },
    connectionTo((bytes) => void sent.push(Buffer.from(bytes)), gone.signal),
  );
  const say = async (message: NativeMessage, shown: string): Promise<void> => {
    await stage.lab.tick();
    try {
      await session.handle(message);
      await session.done;
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      sent.push(Buffer.from(session.farewell(error)));
    }
    await settled(8);
    heard.push(heardOf('NATIVE', shown, Buffer.concat(sent)));
    sent = [];
  };
  const user = organization === null ? 'me' : `me@${organization}`;
  await say({ kind: 'hello', revision: 54_453, database: '', user, password: token }, 'Hello');
  const settings = purpose === null ? [] : [['annals_purpose', purpose] as const];
  for (const text of questions) {
    if (!session.isLoggedIn) break;
    await say({ kind: 'query', id: '', settings, compressed: false, text }, text);
    await say({ kind: 'empty-block' }, `${text}: the answer`);
  }
  if (session.isLoggedIn) {
    const tables = ['Deal', 'Dossier', 'Hidden', 'Nowhere'].map((table) => ({ database: 'default', table }));
    await say({ kind: 'tables-status', tables }, 'TablesStatus');
  }
  session.close();
  gone.abort();
}

const patterns: readonly string[] = [
  ...['Deal', 'Party', 'Dossier', 'Hidden', 'SourceTrueIdentity', 'Nowhere'].flatMap((type) => [
    `MATCH (n:${type}) RETURN n._pk AS key`,
    `MATCH (n:${type}) WHERE n._pk = 'x1' RETURN count(*) AS n`,
    `MATCH (n:${type} {id: 'x1'})-[r]-(m) RETURN m, r`,
  ]),
  'MATCH (n) RETURN n',
  'MATCH p = (a)-[*1..2]->(b) RETURN a, b',
  'CALL traverse.pageRank.stream({}) YIELD nodeId',
];

async function talkBolt(stage: Stage, { token, organization, purpose }: Comes, heard: Heard[]): Promise<void> {
  let sent: Buffer[] = [];
  const gone = new AbortController();
  const session = new BoltSession(
    partsOf(stage),
    connectionTo((bytes) => void sent.push(Buffer.from(bytes)), gone.signal),
  );
  const packer = new PackStreamWriter();
  const say = async (tag: number, fields: readonly PackStreamValue[], shown: string): Promise<void> => {
    await stage.lab.tick();
    packer.clear();
    packer.value(new PackStreamStructure(tag, fields));
    void session.handle({ kind: 'message', body: Buffer.from(packer.bytes) });
    await session.done;
    await settled(8);
    heard.push(heardOf('BOLT', shown, Buffer.concat(sent)));
    sent = [];
  };
  await session.handle({ kind: 'handshake', version: { major: 5, minor: 0 } });
  const user = organization === null ? 'me' : `me@${organization}`;
  sent = [];
  const login = { scheme: 'basic', principal: user, credentials: token };
  await session.handle({ kind: 'noop' });
  packer.clear();
  packer.value(new PackStreamStructure(0x01, [new Map(Object.entries(login))]));
  void session.handle({ kind: 'message', body: Buffer.from(packer.bytes) });
  await session.done;
  // It tells the number of the connection, which is of nobody's rows.
  sent = [];
  const extra: PackStreamValue = new Map([['tx_metadata', new Map(purpose === null ? [] : [['purpose', purpose]])]]);
  for (const text of patterns) {
    if (!session.isLoggedIn) break;
    await say(0x10, [text, new Map(), extra], text);
    await say(0x3f, [new Map([['n', -1n]])], `${text}: rows`);
    await say(0x0f, [], 'RESET');
  }
  session.close();
  gone.abort();
}

export const narrowConversations: readonly Conversation[] = [
  {
    name: 'the key-value door',
    hold: talk(async (_ask, stage, adversary, heard) => {
      const comes = comesAs(stage, adversary);
      if (comes !== null) await talkKv(stage, comes, heard);
    }),
  },
  {
    name: 'the document door',
    hold: talk(async (_ask, stage, adversary, heard) => {
      const comes = comesAs(stage, adversary);
      if (comes !== null) await talkDocuments(stage, comes, heard);
    }),
  },
  {
    name: 'the native columnar door',
    hold: talk(async (_ask, stage, adversary, heard) => {
      const comes = comesAs(stage, adversary);
      if (comes !== null) await talkNative(stage, comes, heard);
    }),
  },
  {
    name: 'the binary graph door',
    hold: talk(async (_ask, stage, adversary, heard) => {
      const comes = comesAs(stage, adversary);
      if (comes !== null) await talkBolt(stage, comes, heard);
    }),
  },
];

/**
 * Specification, "Cross-door visibility": a row written through any door is readable through every other door, by those
 * who may see it and by nobody else. Every pair of built doors gets every relation of reader to writer; a door that is
 * built without a driver here fails the first test.
 */
import { CreateBucketCommand, GetObjectCommand, ListObjectsV2Command, PutObjectCommand } from '@aws-sdk/client-s3';
import { createHash } from 'node:crypto';
import { Table, tableFromIPC, Utf8, vectorFromArray } from 'apache-arrow';
import { parquetReadObjects } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';
import type { Session } from 'neo4j-driver';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { doors } from '../../src/doors/doors.ts';
import { absentDoor, covers } from '../../src/governance/caller.ts';
import { EventStream } from './http/event-stream.ts';
import { StoreWorld } from './http/store-world.ts';
import { request } from './columnar/columnar-client.ts';
import { graphRequest } from './graph/graph-http-client.ts';
import { FlightClient, rowsOf as flightRows, typeDescriptor } from './grpc/flight-client.ts';
import { GrpcClient, rowsOf } from './grpc/grpc-client.ts';
import { asNative, type NativeOptions } from './columnar/native-client.ts';
import { documentsConnected } from './document/document-client.ts';
import { boltDriver } from './graph/bolt-client.ts';
import { asKv, kvConnected } from './kv/kv-client.ts';
import { forPath } from './object/object-client.ts';
import { connected, relationalSecret } from './relational/relational-client.ts';

interface Driver {
  /** Where it always writes; absent: to the type that it is given, and to its column `note`. */
  readonly stores?: { readonly type: string; readonly key: string; readonly note: string };
  /** Writes one row of `type` with this key as a caller of this organisation path; null: without the header. Absent: it only reads. */
  write?(world: StoreWorld, type: string, key: string, path: string | null): Promise<void>;
  /** Keys of `type` that a caller of this path is shown, by each way that the door has of asking. */
  readonly reads: Readonly<
    Record<string, (world: StoreWorld, type: string, key: string, path: string | null, note: string) => Promise<string[]>>
  >;
}

const scoped = (path: string | null): Record<string, string> => (path === null ? {} : { 'x-organization-id': path });

const keysOf = async (world: StoreWorld, sql: string, path: string | null): Promise<string[]> =>
  (await world.rows(sql, scoped(path))).map((row) => row['_pk'] as string).sort();

async function fetched(world: StoreWorld, route: string, path: string | null, body?: string): Promise<Buffer> {
  const reply = await fetch(world.door.dataUrl + route, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${world.token}`, ...scoped(path) },
    ...(body === undefined ? {} : { body }),
  });
  if (reply.status !== 200) throw new Error(await reply.text());
  return Buffer.from(await reply.arrayBuffer());
}

async function exported(world: StoreWorld, type: string, path: string | null, format: string): Promise<string[]> {
  const parameters = new URLSearchParams({ sql: `SELECT _pk FROM ${type}`, format });
  const bytes = await fetched(world, `/export?${parameters.toString()}`, path);
  switch (format) {
    case 'csv':
      return bytes
        .toString()
        .split('\r\n')
        .slice(1, -1)
        .map((field) => field.slice(1, -1));
    case 'json':
      return (JSON.parse(bytes.toString()) as { _pk: string }[]).map((row) => row._pk);
    case 'ndjson':
      return bytes
        .toString()
        .split('\n')
        .slice(0, -1)
        .map((line) => (JSON.parse(line) as { _pk: string })._pk);
    case 'arrow':
      return [...tableFromIPC(bytes).getChild('_pk')!] as string[];
    default: {
      const file = Uint8Array.from(bytes).buffer;
      return (await parquetReadObjects({ file, compressors })).map((row) => row['_pk'] as string);
    }
  }
}

const drivers: Readonly<Record<string, Driver>> = {
  http: {
    async write(world, type, key, path) {
      // Registered without a tenant: everybody means the same type by the name.
      await world.call('POST', '/types', { name: type, properties: { id: 'string', note: 'string' }, primary_key: 'id' });
      const reply = await world.call('POST', `/ingest/auto?object_type=${type}`, { id: key, note: `of ${path}` }, scoped(path));
      if (reply.status !== 200 || reply.json['accepted'] !== 1) throw new Error(reply.text);
    },
    reads: {
      scan: (world, type, _key, path) => keysOf(world, `SELECT _pk FROM ${type}`, path),
      'point read': (world, type, key, path) => keysOf(world, `SELECT _pk FROM ${type} WHERE _pk = '${key}'`, path),
      'as of current': (world, type, _key, path) => keysOf(world, `SELECT _pk FROM ${type} AS OF CURRENT`, path),
      'a view, cached': async (world, type, _key, path) => {
        const view = `view_of_${type}`;
        await world.query(`CREATE MATERIALIZED VIEW ${view} AS SELECT _pk FROM ${type}`, scoped(path));
        for (let tries = 0; tries < 200; tries++) {
          const { text } = await world.query(`EXPLAIN SELECT _pk FROM ${view}`, scoped(path));
          if (text.includes('by cached view')) return keysOf(world, `SELECT _pk FROM ${view}`, path);
          await new Promise((resolve) => setTimeout(resolve, 5));
        }
        throw new Error('never cached');
      },
      'a standing query': async (world, type, _key, path) => {
        const query = new URLSearchParams({ sql: `SELECT _pk FROM ${type}`, purpose: 'test' }).toString();
        const headers = { authorization: `Bearer ${world.token}`, ...scoped(path) };
        const stream = new EventStream(world.door.port, `/watch/stream?${query}`, headers);
        await stream.until((events) => events.some(({ event }) => event === 'heartbeat'));
        await stream.close();
        const told = stream.events.filter(({ event }) => event === 'insert');
        return told.map(({ data }) => (JSON.parse(data) as { row: { _pk: string } }).row._pk);
      },
      'filter on another column': (world, type, _key, path, note) =>
        keysOf(world, `SELECT _pk FROM ${type} WHERE ${note} LIKE '%o%'`, path),
      group: (world, type, _key, path) => keysOf(world, `SELECT _pk, COUNT(*) AS n FROM ${type} GROUP BY _pk`, path),
      'proof of the row': async (world, type, key, path) => {
        const sql = `SELECT system_from FROM ${type} WHERE _pk = '${key}'`;
        const instant = /"system_from":(\d+)/.exec((await world.query(sql, scoped('acme/eu'))).text)![1];
        const { status, json } = await world.call(
          'GET',
          `/audit/proof?system_from=${instant}&row=${key}`,
          undefined,
          scoped(path),
        );
        return status === 200 ? [(json['row'] as { pk: string }).pk] : [];
      },
      'a sealed answer': async (world, type, key, path) => {
        const opened = await world.call('POST', '/exhibits', {}, scoped(path));
        const exhibit = opened.json['exhibit_id'] as string;
        const sql = `SELECT _pk FROM ${type}`;
        const { json, text } = await world.call('POST', `/exhibits/${exhibit}/links`, { sql }, scoped(path));
        const [replayed] = await world.rows(`EXPLAIN_REPLAY('${exhibit}')`, scoped(path));
        expect(replayed, text).toMatchObject({ match: true, stored_seal: json['seal'] });
        // A seal shows no rows: which of the two answers it can be of is told by its hash.
        const answers = [[], [key]].filter((keys) => {
          const result = { columns: [{ name: '_pk', type: 'string' }], rows: keys.map((each) => [each]) };
          return createHash('sha256').update(JSON.stringify(result)).digest('hex') === json['result_digest'];
        });
        expect(answers).toHaveLength(1);
        return answers[0]!;
      },
      sort: (world, type, _key, path, note) => keysOf(world, `SELECT _pk FROM ${type} ORDER BY ${note}`, path),
      export: async (world, type, _key, path) => {
        const keys = await Promise.all(
          ['csv', 'json', 'ndjson', 'arrow', 'parquet'].map((format) => exported(world, type, path, format)),
        );
        expect(new Set(keys.map(String)).size).toBe(1);
        return keys[0]!;
      },
      arrow: async (world, type, _key, path) => {
        const bytes = await fetched(world, '/query/arrow', path, JSON.stringify({ sql: `SELECT _pk FROM ${type}` }));
        return [...tableFromIPC(bytes).getChild('_pk')!] as string[];
      },
      stream: async (world, type, _key, path) => {
        const bytes = await fetched(world, '/query/stream', path, JSON.stringify({ sql: `SELECT _pk FROM ${type}` }));
        const rows = bytes.toString().match(/(?<=^event: rows\ndata: ).*$/gm) ?? [];
        return rows.flatMap((data) => JSON.parse(data) as { _pk: string }[]).map((row) => row._pk);
      },
    },
  },
  grpc: {
    async write(world, type, key, path) {
      await world.call('POST', '/types', { name: type, properties: { id: 'string', note: 'string' }, primary_key: 'id' });
      await kept.grpc.of(path).then(async (client) => {
        const rows = JSON.stringify({ id: key, note: `of ${path}` });
        expect(await client.ingest({ type }, [rows.slice(0, 9), rows.slice(9)])).toMatchObject({ accepted: '1', rejected: '0' });
      });
    },
    reads: {
      rows: (_world, type, _key, path) =>
        kept.grpc
          .of(path)
          .then(async (client) => (await client.rows(`SELECT _pk FROM ${type}`)).map((row) => row['_pk'] as string)),
      'a look-up, and no delete': (_world, type, key, path) =>
        kept.grpc.of(path).then(async (client) => {
          const found = rowsOf(await client.all('Lookup', { type, keys: [key], columns: ['_pk'] })).map(
            (row) => row['_pk'] as string,
          );
          if (path !== 'acme/eu') {
            const outcome = await client.call('Delete', { type, keys: [key] }).catch(() => ({ accepted: '0' }));
            expect(outcome['accepted']).toBe('0');
          }
          return found;
        }),
    },
  },
  flight: {
    async write(world, type, key, path) {
      await world.call('POST', '/types', { name: type, properties: { id: 'string', note: 'string' }, primary_key: 'id' });
      const table = new Table({ id: vectorFromArray([key], new Utf8()), note: vectorFromArray([`of ${path}`], new Utf8()) });
      await kept.flight.of(path).then((client) => client.put(typeDescriptor(type), table));
    },
    reads: {
      'a command': (_world, type, _key, path) =>
        kept.flight
          .of(path)
          .then(async (client) => (await client.rows(`SELECT _pk FROM ${type}`)).map((row) => row['_pk'] as string)),
      'a path': (_world, type, _key, path) =>
        kept.flight.of(path).then(async (client) => {
          const { ticket } = await client.info(typeDescriptor(type));
          return flightRows(await client.get(ticket)).map((row) => row['_pk'] as string);
        }),
    },
  },
  object: {
    stores: { type: 'ObjectStoreObject', key: 'visible/k1', note: 'note' },
    async write(world, _type, _key, path) {
      // Metadata of a name that the type has a column for is in that column.
      await world.call('POST', '/types/ObjectStoreObject/schema', { properties: { note: { type: 'string' } } });
      const client = await kept.object.of(path);
      await client.send(new CreateBucketCommand({ Bucket: 'visible' }));
      const Metadata = { note: `of ${path}` };
      await client.send(new PutObjectCommand({ Bucket: 'visible', Key: 'k1', Body: 'v', Metadata }));
    },
    reads: {
      'get of a row': async (_world, type, key, path) => {
        const client = await kept.object.of(path);
        try {
          const at = { Bucket: 'types', Key: `${type}/${encodeURIComponent(key)}.json` };
          const { Body } = await client.send(new GetObjectCommand(at));
          return [(JSON.parse(await Body!.transformToString()) as { _pk: string })._pk];
        } catch (error) {
          if ((error as Error).name === 'NoSuchKey') return [];
          throw error;
        }
      },
      'list of rows': async (_world, type, _key, path) => {
        const client = await kept.object.of(path);
        const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket: 'types', Prefix: `${type}/` }));
        return Contents.map(({ Key }) => decodeURIComponent(Key!.slice(type.length + 1, -'.json'.length)));
      },
      'get and list of an object': async (world, type, key, path) => {
        // Other types have no objects: there is nothing to tell apart.
        if (type !== 'ObjectStoreObject') return keysOf(world, `SELECT _pk FROM ${type}`, path);
        const client = await kept.object.of(path);
        const [Bucket, Key] = key.split('/') as [string, string];
        const got = client.send(new GetObjectCommand({ Bucket, Key })).then(() => [key]);
        const listed = client
          .send(new ListObjectsV2Command({ Bucket }))
          .then((page) => (page.Contents ?? []).map((each) => `${Bucket}/${each.Key}`));
        const [keys, ...others] = await Promise.all(
          [got, listed].map((asked) => asked.catch((error: Error) => (error.name === 'NoSuchBucket' ? [] : [error.name]))),
        );
        expect(others).toEqual([keys]);
        return keys!;
      },
    },
  },
  relational: {
    async write(world, type, key, path) {
      await world.call('POST', '/types', { name: type, properties: { id: 'string', note: 'string' }, primary_key: 'id' });
      const { rowCount } = await kept.relational
        .of(path)
        .then((client) => client.query(`INSERT INTO ${type} (id, note) VALUES ($1, $2)`, [key, `of ${path}`]));
      expect(rowCount).toBe(1);
    },
    reads: {
      'simple query': (_world, type, _key, path) => keysBy(path, `SELECT _pk FROM ${type}`),
      'prepared look-up': (_world, type, key, path) => keysBy(path, `SELECT _pk FROM ${type} WHERE _pk = $1`, [key]),
      'filter, and no delete': (_world, type, key, path, note) =>
        kept.relational.of(path).then(async (client) => {
          const sql = `SELECT _pk FROM ${type} WHERE ${note} LIKE $1 LIMIT 1`;
          const { rows } = await client.query<{ _pk: string }>(sql, ['%o%']);
          // Another organisation's row is not there to be written, either: what lies below is read, and never changed.
          const foreign =
            path === 'acme/eu' ? [] : (await client.query(`DELETE FROM ${type} WHERE _pk = $1 RETURNING _pk`, [key])).rows;
          expect(foreign).toEqual([]);
          return rows.map((row) => row._pk);
        }),
    },
  },
  'columnar-http': {
    async write(world, type, key, path) {
      await world.call('POST', '/types', { name: type, properties: { id: 'string', note: 'string' }, primary_key: 'id' });
      const body = `INSERT INTO ${type} (id, note) FORMAT JSONEachRow\n${JSON.stringify({ id: key, note: `of ${path}` })}\n`;
      const { status, text } = await request(world, relationalSecret, {}, { method: 'POST', body, headers: scoped(path) });
      expect([status, text]).toEqual([200, '']);
    },
    reads: {
      'lines of JSON': async (world, type, _key, path) =>
        (await columnarLines(world, path, `SELECT _pk FROM ${type} FORMAT JSONEachRow`)).map(
          (line) => (JSON.parse(line) as { _pk: string })._pk,
        ),
      'filter, and its count': async (world, type, _key, path, note) => {
        const where = `FROM ${type} WHERE ${note} LIKE '%o%'`;
        const keys = await columnarLines(world, path, `SELECT _pk ${where} FORMAT TSV`);
        expect(await columnarLines(world, path, `SELECT count() ${where} FORMAT CSV`)).toEqual([String(keys.length)]);
        return keys;
      },
    },
  },
  'columnar-native': {
    reads: {
      'blocks, compressed': (world, type, _key, path) => nativeKeys(world, path, `SELECT _pk FROM ${type}`, { compressed: true }),
      'filter, and its count': async (world, type, _key, path, note) => {
        const where = `FROM ${type} WHERE ${note} LIKE '%o%'`;
        const keys = await nativeKeys(world, path, `SELECT _pk ${where}`);
        expect(await nativeKeys(world, path, `SELECT COUNT(*) AS n ${where}`)).toEqual([String(keys.length)]);
        return keys;
      },
    },
  },
  'graph-http': {
    async write(world, type, key, path) {
      await world.call('POST', '/types', { name: type, properties: { id: 'string', note: 'string' }, primary_key: 'id' });
      await graphRows(world, path, `CREATE (n:${type} {id: $id, note: $note})`, { id: key, note: `of ${path}` });
    },
    reads: {
      'a statement': (world, type, _key, path) => graphRows(world, path, `SELECT _pk FROM ${type}`),
      'a pattern': (world, type, _key, path) => graphRows(world, path, `MATCH (n:${type}) RETURN n._pk AS k`),
    },
  },
  'graph-binary': {
    async write(world, type, key, path) {
      await world.call('POST', '/types', { name: type, properties: { id: 'string', note: 'string' }, primary_key: 'id' });
      await asBolt(path, (session) => session.run(`CREATE (t:${type} {id: $key, note: $note})`, { key, note: `of ${path}` }));
    },
    reads: {
      'a pattern': (_world, type, _key, path) => keysByBolt(path, `MATCH (t:${type}) RETURN t._pk AS _pk`),
      'a pattern with a condition, in a transaction': (_world, type, key, path) =>
        asBolt(path, async (session) => {
          const asked = `MATCH (t:${type}) WHERE t._pk = $key RETURN t._pk AS _pk`;
          const { records } = await session.executeRead((transaction) => transaction.run(asked, { key }));
          return records.map((record) => record.get('_pk') as string);
        }),
    },
  },
  kv: {
    stores: { type: 'KvEntry', key: 'k1', note: 'value' },
    async write(_world, _type, key, path) {
      await kept.kv.of(path).then((client) => client.set(key, `of ${path}`));
    },
    reads: {
      'row of any type': (_world, type, key, path) =>
        kept.kv.of(path).then(async (client) => {
          const row = (await client.call('ANNALS.ROW', type, key)) as string | null;
          return row === null ? [] : [(JSON.parse(row) as { _pk: string })._pk];
        }),
      'its own commands, and no delete': (_world, type, key, path) =>
        kept.kv.of(path).then(async (client) => {
          if (type !== 'KvEntry') return path === null || !covers(path, 'acme/eu') ? [] : [key];
          const [listed, [, scanned], size, found, history, value] = await Promise.all([
            client.keys('*'),
            client.scan(0),
            client.dbsize(),
            client.exists(key),
            client.call('ANNALS.HISTORY', key) as Promise<string[]>,
            client.get(key),
          ]);
          expect([scanned, size, found, history.length]).toEqual([listed, listed.length, listed.length, listed.length]);
          expect(value).toBe(listed.length === 0 ? null : 'of acme/eu');
          if (path !== 'acme/eu') expect([await client.del(key), await client.expire(key, 1)]).toEqual([0, 0]);
          return listed;
        }),
      'a message that was published': async (world, type, key, path) => {
        if (type !== 'KvEntry') return path === null || !covers(path, 'acme/eu') ? [] : [key];
        const since = String(world.service.clock.now());
        return asKv(world, path, async (reader) => {
          const heard: string[] = [];
          reader.on('message', (_channel, message) => heard.push(message));
          await reader.subscribe('before');
          await asKv(world, 'acme/eu', (writer) => writer.publish('before', key));
          await asKv(world, path, async (own) => {
            await own.publish('before', 'own');
            const replayed = own.duplicate();
            replayed.on('message', (_channel, message) => heard.push(message));
            await replayed.subscribe(`before@${since}`);
            while (heard.filter((message) => message === 'own').length < 2) await new Promise((wake) => setTimeout(wake, 2));
            replayed.disconnect();
          });
          return [...new Set(heard.filter((message) => message !== 'own'))];
        });
      },
    },
  },
  document: {
    stores: { type: 'DocumentEntry', key: 'shop.seen/k1', note: '"database"' },
    async write(_world, _type, _key, path) {
      await kept.document.of(path).then((client) =>
        client
          .db('shop')
          .collection<{ _id: string; note: string }>('seen')
          .insertOne({ _id: 'k1', note: `of ${path}` }),
      );
    },
    reads: {
      'row of any type': (_world, type, key, path) =>
        kept.document.of(path).then(async (client) => {
          const rows = client.db('types').collection<{ _id: string }>(type);
          const [one, all] = [await rows.findOne({ _id: key }), await rows.find({}).toArray()];
          const keys = all.map(({ _id }) => _id);
          expect(keys).toEqual(one === null ? [] : [key]);
          return keys;
        }),
      'its own commands, and no change': (_world, type, key, path) =>
        kept.document.of(path).then(async (client) => {
          if (type !== 'DocumentEntry') return path === null || !covers(path, 'acme/eu') ? [] : [key];
          const seen = client.db('shop').collection<{ _id: string; note: string }>('seen');
          const found = await seen.find({ note: /^of/ }).toArray();
          const n = found.length;
          expect(await seen.countDocuments({ _id: 'k1' })).toBe(n);
          expect(await seen.distinct('_id')).toEqual(found.map(({ _id }) => _id));
          expect((await client.db('shop').listCollections().toArray()).map(({ name }) => name)).toEqual(n > 0 ? ['seen'] : []);
          if (path !== 'acme/eu') {
            expect((await seen.updateMany({}, { $set: { note: 'changed' } })).matchedCount).toBe(0);
            expect((await seen.deleteMany({})).deletedCount).toBe(0);
          }
          return found.map(({ _id }) => `shop.seen/${_id}`);
        }),
    },
  },
};

/** Clients are kept, one for each door and path: to connect and to prove a password takes longer than to ask. */
class Kept<C> {
  static readonly #all: Kept<unknown>[] = [];
  readonly #open: (path: string | null) => C | Promise<C>;
  readonly #close: (client: C) => unknown;
  readonly #clients = new Map<string | null, C | Promise<C>>();

  constructor(open: (path: string | null) => C | Promise<C>, close: (client: C) => unknown) {
    this.#open = open;
    this.#close = close;
    Kept.#all.push(this as Kept<unknown>);
  }

  async of(path: string | null): Promise<C> {
    let client = this.#clients.get(path);
    if (client === undefined) this.#clients.set(path, (client = this.#open(path)));
    return client;
  }

  static async closeAll(): Promise<void> {
    for (const kept of Kept.#all) for (const client of kept.#clients.values()) await kept.#close(await client);
  }
}

const userOf = (path: string | null): string => (path === null ? 'tester' : `tester@${path}`);
const kept = {
  flight: new Kept(
    (path) => new FlightClient(world, scoped(path), relationalSecret),
    (client) => client.close(),
  ),
  grpc: new Kept(
    (path) => new GrpcClient(world, scoped(path), relationalSecret),
    (client) => client.close(),
  ),
  object: new Kept(
    (path) => forPath(world, path),
    (client) => client.destroy(),
  ),
  relational: new Kept(
    (path) => connected(world, { user: userOf(path) }),
    (client) => client.end(),
  ),
  bolt: new Kept(
    (path) => boltDriver(world, relationalSecret, { user: userOf(path) }),
    (driver) => driver.close(),
  ),
  kv: new Kept(
    (path) => kvConnected(world, { username: userOf(path) }),
    (client) => client.disconnect(),
  ),
  document: new Kept(
    (path) => documentsConnected(world, { user: userOf(path) }),
    (client) => client.close(),
  ),
} as const;

async function asBolt<T>(path: string | null, run: (session: Session) => Promise<T>): Promise<T> {
  const session = (await kept.bolt.of(path)).session();
  try {
    return await run(session);
  } finally {
    await session.close();
  }
}

const keysByBolt = (path: string | null, text: string): Promise<string[]> =>
  asBolt(path, async (session) => (await session.run(text)).records.map((record) => record.get('_pk') as string));

async function graphRows(world: StoreWorld, path: string | null, statement: string, parameters = {}): Promise<string[]> {
  const headers = { key: relationalSecret, ...scoped(path) };
  const { status, text, json } = await graphRequest(world, 'POST', '/db/neo4j/query/v2', { statement, parameters }, headers);
  if (status !== 202) throw new Error(text);
  return (json['data'].values as string[][]).map(([key]) => key!);
}

async function columnarLines(world: StoreWorld, path: string | null, query: string): Promise<string[]> {
  const { status, text } = await request(world, relationalSecret, { query }, { headers: scoped(path) });
  if (status !== 200) throw new Error(text);
  return text.split('\n').filter((line) => line !== '');
}

const nativeKeys = (world: StoreWorld, path: string | null, sql: string, options: NativeOptions = {}): Promise<string[]> =>
  asNative(world, path, async (client) => (await client.query(sql)).rows.map(([key]) => String(key)), {
    password: relationalSecret,
    ...options,
  });

/** Keys that a statement shows a user of this path, by the simple protocol or, with values, the extended one. */
const keysBy = (path: string | null, sql: string, values?: unknown[]): Promise<string[]> =>
  kept.relational.of(path).then(async (client) => (await client.query<{ _pk: string }>(sql, values)).rows.map((row) => row._pk));

/** Who reads what `acme/eu` wrote, and whether it is theirs to see. */
const readers: readonly (readonly [name: string, path: string | null, sees: boolean])[] = [
  ['the same path', 'acme/eu', true],
  ['its parent', 'acme', true],
  ['a path below', 'acme/eu/berlin', false],
  ['a sibling', 'acme/us', false],
  ['a sibling that starts alike', 'acme/eu-west', false],
  ['another tenant that starts alike', 'acme-evil', false],
  ['the same name in other letters', 'Acme/eu', false],
  ['nobody: no header', null, false],
];

const built = doors.filter((door) => door.built).map((door) => door.name);

let world: StoreWorld;
beforeAll(async () => {
  world = await StoreWorld.open({ SERVICE_BEARER_TOKEN: relationalSecret, SERVICE_FLIGHT_ENABLE: 'true' });
});
afterAll(async () => {
  await Kept.closeAll();
  await world.close();
});

test('every built door is in the matrix', () => {
  expect(Object.keys(drivers)).toEqual(built);
});

describe.each(built.filter((door) => drivers[door]?.write))('written through %s', (writer) => {
  const given = { type: `Written_${writer.replaceAll('-', '_')}`, key: 'k1', note: 'note' };
  const { type, key, note } = drivers[writer]!.stores ?? given;
  beforeAll(async () => {
    await drivers[writer]!.write!(world, type, key, 'acme/eu');
  });

  describe.each(built)('read through %s', (door) => {
    for (const [way, read] of Object.entries(drivers[door]!.reads)) {
      test.each(readers)(`by ${way}: %s`, async (_name, path, sees) => {
        expect(await read(world, type, key, path, note)).toEqual(sees ? [key] : []);
      });
    }
  });
});

test.each(built)('whoever asks through %s goes before work that nobody waits for', async (door) => {
  await drivers['http']!.write!(world, 'Asked', 'k1', 'acme/eu');
  const { gate, planner } = world.service;
  const [invoked, queried] = [vi.spyOn(gate, 'invoke'), vi.spyOn(planner, 'query')];
  try {
    for (const read of Object.values(drivers[door]!.reads)) await read(world, 'Asked', 'k1', 'acme/eu', 'note');
    expect(invoked.mock.calls.length).toBeGreaterThan(0);
    expect(invoked.mock.calls.filter(([caller]) => caller.door === absentDoor)).toEqual([]);
    expect(queried.mock.calls.filter(([, { inBackground }]) => inBackground === true)).toEqual([]);
  } finally {
    for (const spy of [invoked, queried]) spy.mockRestore();
  }
});

/** Where a reader stands to a row that `acme/eu` wrote on the branch `written`, and whether that shows it to its owner. */
const branchesRead: readonly (readonly [name: string, shows: boolean])[] = [
  ['written', true],
  ['main', false],
  ['sibling', false],
  ['child forked before', false],
  ['child forked after', true],
  ['types only', false],
];

describe('written on a branch', () => {
  const on = (branch: string, path: string | null): Record<string, string> => ({ 'x-service-branch': branch, ...scoped(path) });
  beforeAll(async () => {
    const fork = async (name: string, from: string): Promise<void> => {
      const at = `/v1/namespaces/${encodeURIComponent(name)}/branch`;
      expect((await world.call('POST', at, { branch_from: from })).status).toBe(201);
    };
    // The type and its branches are the store's: every tenant can name them.
    await world.call('POST', '/types', { name: 'Branched', properties: { id: 'string', note: 'string' }, primary_key: 'id' });
    for (const name of ['written', 'sibling']) await fork(name, 'main');
    await fork('child forked before', 'written');
    const row = { id: 'k1', note: 'of acme/eu' };
    const reply = await world.call('POST', '/ingest?object_type=Branched', row, on('written', 'acme/eu'));
    expect(reply.json['accepted']).toBe(1);
    await fork('child forked after', 'written');
    expect((await world.call('POST', '/schema/branches/types%20only', { from: 'written' })).status).toBe(201);
  });

  describe.each(branchesRead)('read on %s', (branch, shows) => {
    test.each(readers)('by %s', async (_name, path, sees) => {
      for (const sql of [
        'SELECT _pk FROM Branched',
        "SELECT _pk FROM Branched WHERE _pk = 'k1'",
        'SELECT _pk FROM Branched AS OF CURRENT',
        "SELECT _pk FROM Branched WHERE note LIKE 'of acme%'",
        'SELECT _pk, COUNT(*) AS n FROM Branched GROUP BY _pk',
        'SELECT _pk FROM Branched WITH PROVENANCE',
      ]) {
        const rows = await world.rows(sql, on(branch, path));
        expect([sql, ...rows.map((row) => row['_pk'])]).toEqual([sql, ...(sees && shows ? ['k1'] : [])]);
      }
    });
  });
});

test('one key in three organisations is three rows, and a write of one touches no other', async () => {
  const write = drivers['http']!.write!;
  for (const path of ['acme/eu', 'acme/us', null]) await write(world, 'Shared', 'same', path);
  const eu = await world.call('DELETE', '/types/Shared/same', undefined, scoped('acme/eu'));
  expect(eu.status).toBe(200);
  const current = 'SELECT _pk FROM Shared AS OF CURRENT';
  expect(await keysOf(world, current, 'acme/eu')).toEqual([]);
  expect(await keysOf(world, current, 'acme/us')).toEqual(['same']);
  expect(await keysOf(world, current, 'acme')).toEqual(['same']);
  expect(await keysOf(world, current, null)).toEqual(['same']);
});

test('counts and hits are of what the caller may see', async () => {
  const write = drivers['http']!.write!;
  for (let i = 0; i < 20; i++) await write(world, 'Counted', `hidden${i}`, 'globex');
  await write(world, 'Counted', 'mine', 'acme');
  const reply = await world.query('SELECT COUNT(*) AS n FROM Counted', scoped('acme'));
  expect(reply.json['rows']).toEqual([{ n: 1 }]);
  const all = await world.query('SELECT _pk FROM Counted LIMIT 1', scoped('acme'));
  expect([all.json['estimatedTotalHits'], all.json['cost_units']]).toEqual([1, 1]);
});

test('a hard delete in one organisation leaves the other’s row alone', async () => {
  const write = drivers['http']!.write!;
  for (const path of ['acme', 'globex']) await write(world, 'Removed', 'same', path);
  expect((await world.call('DELETE', '/types/Removed/same?hard=true', undefined, scoped('acme'))).status).toBe(200);
  expect(await keysOf(world, 'SELECT _pk FROM Removed', 'acme')).toEqual([]);
  expect(await keysOf(world, 'SELECT _pk FROM Removed', 'globex')).toEqual(['same']);
  expect((await world.call('DELETE', '/types/Removed/same', undefined, scoped('initech'))).status).toBe(404);
});

test('audit entries are of the caller’s own scope', async () => {
  await world.query('SELECT 1 FROM Counted', scoped('acme/eu'));
  const seen = async (path: string | null): Promise<Set<unknown>> => {
    const { json } = await world.call('GET', '/audit/entries?limit=1000', undefined, scoped(path));
    return new Set((json['entries'] as { organization: unknown }[]).map((entry) => entry.organization));
  };
  expect(await seen('acme')).toEqual(new Set(['acme', 'acme/eu', 'acme/us', 'acme/eu-west', 'acme/eu/berlin']));
  expect(await seen('acme-evil')).toEqual(new Set(['acme-evil']));
  expect(await seen(null)).toEqual(new Set([null]));
});

/** What a reply says besides instants, durations, keyed digests and the id of the request itself. */
const told = (text: string): string =>
  text
    .replace(/\d{16,}|\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<instant>')
    .replace(/"(next_cursor|query_digest)":"[^"]*"/g, '"$1":""')
    .replace(/"(processing_time_ms|elapsed_ms|duration_ms|time_ms)":[\d.e-]+/g, '"$1":0')
    .replace(/; [\d.]+ ms([\];])/g, '; 0 ms$1')
    .replace(/"correlation_id":"[^"]*"/g, '"correlation_id":""');

test('two worlds that differ in what a caller may not see give that caller the same bytes', async () => {
  const definition = { name: 'Ware', properties: { key: 'string', n: 'integer', text: 'string' }, primary_key: 'key' };
  const visible = Array.from({ length: 30 }, (_, i) => ({ key: `k${i}`, n: i, text: `visible ${i % 3}` }));
  const hidden = Array.from({ length: 700 }, (_, i) => ({
    key: `k${i}`,
    n: 1000 + i,
    text: `canary ${i}`,
    valid_from: 1,
    valid_to: 2,
  }));
  const scope = { 'x-organization-id': 'acme' };
  const lines = (rows: readonly object[]): string => rows.map((row) => JSON.stringify(row)).join('\n');

  const replies = async (withHidden: boolean): Promise<string[]> => {
    const own = await StoreWorld.open();
    await own.call('POST', '/types', definition);
    const others = ['globex', 'acme-evil', 'globex/acme'];
    const write = async (path: string, rows: readonly object[]): Promise<unknown> =>
      own.call('POST', '/ingest?object_type=Ware', lines(rows), { 'x-organization-id': path });
    if (withHidden) for (const path of others) await write(path, hidden);
    await write('acme', visible.slice(0, 15));
    if (withHidden) for (const path of others) await write(path, hidden.slice(0, 50));
    await write('acme', visible.slice(15));
    if (withHidden) {
      for (const path of others) {
        await own.call('DELETE', '/types/Ware/k3', undefined, { 'x-organization-id': path });
        await own.call('DELETE', '/types/Ware/k4?hard=true', undefined, { 'x-organization-id': path });
        await own.query("SELECT * FROM Ware WHERE key = 'k3'", { 'x-organization-id': path });
      }
    }
    const said: string[] = [];
    for (const sql of [
      'SELECT * FROM Ware',
      'SELECT * FROM Ware AS OF CURRENT ORDER BY n DESC LIMIT 5',
      "SELECT * FROM Ware WHERE _pk = 'k3'",
      "SELECT * FROM Ware WHERE _pk = 'k300'",
      "SELECT key FROM Ware WHERE text LIKE 'canary%'",
      'SELECT COUNT(*) AS c, SUM(n) AS s, MIN(text) AS t, MAX(n) AS m FROM Ware',
      'SELECT text, COUNT(*) AS c FROM Ware GROUP BY text ORDER BY text',
      'SELECT DISTINCT text FROM Ware ORDER BY text',
      'SELECT key FROM Ware LIMIT 3',
      "SELECT key FROM Ware AS OF SYSTEM TIME '2020-01-01'",
      "SELECT key FROM Ware AS OF '1970-01-01T00:00:00.000000001Z'",
      'EXPLAIN SELECT * FROM Ware WHERE n > 5',
      "EXPLAIN SELECT * FROM Ware WHERE _pk = 'k300'",
      'EXPLAIN ANALYZE SELECT text FROM Ware AS OF CURRENT',
      'SELECT key FROM Ware WHERE n IN (1, 1001) WITH PROVENANCE',
      'SELECT nothing FROM Ware',
    ]) {
      said.push(`${sql}: ${told((await own.query(sql, scope)).text)}`);
    }
    if (withHidden) {
      for (const path of others) {
        const { json } = await own.call('POST', '/exhibits', { title: 'hidden' }, { 'x-organization-id': path });
        await own.call(
          'POST',
          `/exhibits/${json['exhibit_id'] as string}/links`,
          { act: 'note', text: 'canary' },
          { 'x-organization-id': path },
        );
      }
    }
    const exhibit = (await own.call('POST', '/exhibits', { title: 'mine' }, scope)).json['exhibit_id'] as string;
    // Of the audit's own surfaces, sizes and hashes of the log are everybody's who may audit; what a replay says of the
    // log (leaf_index, tree_size, root_hash) is everybody's who may replay, and seals cover instants: left out here.
    for (const [method, path, body] of [
      ['POST', `/exhibits/${exhibit}/links`, { sql: 'SELECT key, n, text FROM Ware ORDER BY key' }],
      ['POST', `/exhibits/${exhibit}/links`, { act: 'note', text: 'seen' }],
      ['POST', '/query', { sql: `EXPLAIN_REPLAY('${exhibit}', SEQ => 1)` }],
      ['GET', `/exhibits/${exhibit}`, undefined],
      ['GET', '/types', undefined],
      ['GET', '/audit/count', undefined],
      ['GET', '/audit/entries', undefined],
      ['GET', '/status', undefined],
      ['GET', '/export?sql=SELECT+key,n,text+FROM+Ware', undefined],
      ['GET', '/export?format=json&sql=SELECT+*+FROM+Ware+ORDER+BY+text', undefined],
      ['DELETE', '/types/Ware/k300', undefined],
      ['DELETE', '/types/Ware/k300?hard=true', undefined],
      ['POST', '/ingest?object_type=Ware', { key: 'k300', n: 1 }],
    ] as const) {
      said.push(
        `${method} ${path.replace(exhibit, '<exhibit>')}: ${told((await own.call(method, path, body, scope)).text)
          .replaceAll(exhibit, '<exhibit>')
          .replace(/"(seal|prev_seal|opening_seal|stored_seal|derived_seal|root_hash)":"[^"]*"/g, '"$1":""')
          .replace(/"(leaf_index|index_in_entry|tree_size|port|uptime_secs)":\d+/g, '"$1":0')
          .replace(/"(entry_hash|prev_hash)":"[^"]*"/g, '"$1":""')}`,
      );
    }
    await own.close();
    return said;
  };

  expect(await replies(true)).toEqual(await replies(false));
});

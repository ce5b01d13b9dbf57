/** The binary graph door of one server, through Neo4j's own driver. */
import { once } from 'node:events';
import { connect } from 'node:net';
import neo4j, { type Driver, type Integer, type Node, type Path, type Relationship, type Session } from 'neo4j-driver';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { boltCodec } from '../../../src/doors/graph/bolt-codec.ts';
import { type PackStreamValue, PackStreamStructure, unpackSteps } from '../../../src/doors/graph/packstream.ts';
import { allAtOnce } from '../../../src/planner/expressions/resumable-steps.ts';
import { StoreWorld } from '../http/store-world.ts';
import { boltDriver, boltPort, handshakeBytes, helloBytes, map, messageBytes } from './bolt-client.ts';

const secret = 'bolt-secret-of-tests';
let world: StoreWorld;
let driver: Driver;
beforeAll(async () => {
  world = await StoreWorld.open({ SERVICE_BEARER_TOKEN: secret });
  const properties = { id: 'string', whole: 'integer', share: 'number', sure: 'boolean', at: 'timestamp', facts: 'json' };
  const made = await world.call('POST', '/types', { name: 'Thing', properties, primary_key: 'id' });
  expect(made.status).toBe(201);
  driver = boltDriver(world, secret);
});

afterAll(async () => {
  await driver.close();
  await world.close();
});

async function inSession<T>(run: (session: Session) => Promise<T>, options: Record<string, unknown> = {}): Promise<T> {
  const session = driver.session(options);
  try {
    return await run(session);
  } finally {
    await session.close();
  }
}

const codeOf = (asked: Promise<unknown>): Promise<string> =>
  asked.then(
    () => 'answered',
    (error: { code: string }) => error.code,
  );

test('A driver connects by bolt:// and neo4j://, and is refused a wrong secret', async () => {
  const info = await driver.getServerInfo();
  expect(info.agent).toMatch(/^Neo4j\/5/);
  expect(info.protocolVersion).toMatchObject({ major: 5, minor: 4 });
  const routed = boltDriver(world, secret, { scheme: 'neo4j' });
  const { records } = await routed.executeQuery('SELECT 1 AS one', {}, { database: 'neo4j' });
  expect((records[0]!.get('one') as Integer).toNumber()).toBe(1);
  await routed.close();
  const stranger = boltDriver(world, 'wrong');
  expect(await codeOf(stranger.verifyAuthentication().then((known) => known || Promise.reject({ code: 'no' })))).toBe('no');
  await stranger.close();
});

test('Rows are created with parameters, and values come back as they were sent', async () => {
  const at = neo4j.types.DateTime.fromStandardDate(new Date('2024-02-29T12:00:00.123Z'));
  const sent = { id: 'a', most: neo4j.int('9223372036854775807'), share: 0.5, at };
  await inSession((session) => session.run('CREATE (t:Thing {id: $id, whole: $most, share: $share, sure: true, at: $at})', sent));
  const { records } = await inSession((session) =>
    session.run('MATCH (t:Thing {id: $id}) RETURN t.whole AS whole, t.share AS share, t.sure AS sure, t.at AS at', { id: 'a' }),
  );
  const row = records[0]!;
  expect((row.get('whole') as Integer).toString()).toBe('9223372036854775807');
  expect(row.get('share')).toBe(0.5);
  expect(row.get('sure')).toBe(true);
  expect((row.get('at') as InstanceType<typeof neo4j.types.DateTime>).toStandardDate().toISOString()).toBe(
    '2024-02-29T12:00:00.123Z',
  );
});

test('Nodes, relationships and paths come as what drivers know, with exact values in them', async () => {
  const at = neo4j.types.DateTime.fromStandardDate(new Date('2024-02-29T12:00:00.123Z'));
  const made = await inSession((session) =>
    session.run(
      `UNWIND $rows AS row CREATE (t:Thing {id: row.id, whole: row.whole, share: $share, at: $at})
       RETURN t, labels(t) AS labels, elementId(t) AS id`,
      { rows: [{ id: 'n1', whole: neo4j.int('9223372036854775807') }, { id: 'n2' }], share: 2, at },
    ),
  );
  expect(made.summary.counters.updates()).toMatchObject({ nodesCreated: 2, labelsAdded: 2, propertiesSet: 7 });
  const [node] = made.records.map((record) => record.get('t') as Node);
  expect(neo4j.isNode(node!)).toBe(true);
  expect([node!.labels, node!.elementId, node!.properties['id']]).toEqual([['Thing'], 'Thing/n1', 'n1']);
  expect(String(node!.properties['whole'])).toBe('9223372036854775807');
  expect(node!.properties['share']).toBe(2);
  expect(String(node!.properties['at'])).toBe('2024-02-29T12:00:00.123000000Z');
  expect(made.records[1]!.get('labels')).toEqual(['Thing']);
  const joined = await inSession((session) =>
    session.run("MATCH (a:Thing {id: 'n1'}), (b:Thing {id: 'n2'}) CREATE (a)-[r:Near {far: 3}]->(b) RETURN r"),
  );
  const near = joined.records[0]!.get('r') as Relationship;
  expect(neo4j.isRelationship(near)).toBe(true);
  expect([near.type, near.startNodeElementId, near.endNodeElementId]).toEqual(['Near', 'Thing/n1', 'Thing/n2']);
  expect(String(near.start)).toBe(String(node!.identity));
  const { records } = await inSession((session) =>
    session.run(
      'MATCH p = (b:Thing {id: $b})<-[r:Near]-(a) RETURN p, nodes(p) AS nodes, {of: a, by: [r]} AS it, length(p) AS n',
      {
        b: 'n2',
      },
    ),
  );
  const noted = await inSession((session) => session.run('MATCH (a:Thing)-[:Near]->(b:Thing)-[:Near]->(c) RETURN c.id AS id'));
  expect(noted.summary.notifications.map(({ description }) => description)).toEqual([
    'only relationships of the types that the pattern names are gone along',
  ]);
  const path = records[0]!.get('p') as Path;
  expect(neo4j.isPath(path)).toBe(true);
  expect([path.start.elementId, path.end.elementId, path.length]).toEqual(['Thing/n2', 'Thing/n1', 1]);
  expect(path.segments[0]!.relationship.startNodeElementId).toBe('Thing/n1');
  expect((records[0]!.get('nodes') as Node[]).map(({ elementId }) => elementId)).toEqual(['Thing/n2', 'Thing/n1']);
  expect((records[0]!.get('it') as { by: Relationship[] }).by[0]!.elementId).toBe(near.elementId);
  expect((records[0]!.get('n') as Integer).toNumber()).toBe(1);
  const alone = await inSession((session) => session.run("MATCH (t:Thing {id: 'n2'}) RETURN t"));
  expect(neo4j.isNode(alone.records[0]!.get('t') as object)).toBe(true);
});

test('Labels, types of relationships and property keys are those that the caller may read', async () => {
  const asked = async (text: string): Promise<unknown[][]> =>
    inSession(async (session) => (await session.run(text)).records.map((record) => [...record.values()] as unknown[]));
  const labels = (await asked('CALL db.labels()')).flat();
  expect(labels).toContain('Thing');
  expect(labels).not.toContain('Near');
  expect((await asked('CALL db.relationshipTypes() YIELD relationshipType AS type RETURN type')).flat()).toContain('Near');
  expect((await asked('CALL db.propertyKeys()')).flat()).toContain('whole');
  expect(await asked('CALL dbms.components() YIELD name, versions')).toEqual([['Neo4j Kernel', ['5.13.0']]]);
  expect(await codeOf(asked('CALL db.nothing()'))).toBe('Neo.ClientError.Statement.SyntaxError');
});

test('A small fetchSize streams, and a session that is left early goes on', async () => {
  const lines = Array.from({ length: 250 }, (_, i) => JSON.stringify({ id: `s${i}`, whole: i }));
  const loaded = await fetch(`${world.door.dataUrl}/ingest?object_type=Thing`, {
    method: 'POST',
    headers: { authorization: `Bearer ${world.token}`, 'content-type': 'application/x-ndjson' },
    body: lines.join('\n'),
  });
  expect(await loaded.json()).toMatchObject({ accepted: 250 });
  const text = "MATCH (t:Thing) WHERE t.id STARTS WITH 's' RETURN t.id AS id, t.whole AS whole ORDER BY whole";
  await inSession(
    async (session) => {
      const { records } = await session.run(text);
      expect(records.map((record) => record.get('id') as string)).toEqual(lines.map((_, i) => `s${i}`));
      let seen = 0;
      for await (const _ of session.run(text)) if (++seen === 20) break;
      expect(seen).toBe(20);
      expect((await session.run('SELECT 2 AS two')).records).toHaveLength(1);
    },
    { fetchSize: 7 },
  );
});

test('A transaction shows what it wrote, commits or rolls back, and an error in its middle undoes it', async () => {
  const there = (id: string): Promise<number> =>
    inSession(async (session) => (await session.run('MATCH (t:Thing {id: $id}) RETURN t.id AS id', { id })).records.length);
  await inSession(async (session) => {
    const kept = session.beginTransaction();
    await kept.run("CREATE (t:Thing {id: 'kept'})");
    expect((await kept.run("MATCH (t:Thing {id: 'kept'}) RETURN t.id AS id")).records).toHaveLength(1);
    expect(await there('kept')).toBe(0);
    await kept.commit();
    expect(await there('kept')).toBe(1);
    const dropped = session.beginTransaction();
    await dropped.run("CREATE (t:Thing {id: 'dropped'})");
    await dropped.rollback();
    expect(await there('dropped')).toBe(0);
    const failing = session.beginTransaction();
    await failing.run("CREATE (t:Thing {id: 'failing'})");
    expect(await codeOf(failing.run('MATCH (('))).toBe('Neo.ClientError.Statement.SyntaxError');
    await failing.close();
    expect(await there('failing')).toBe(0);
  });
});

test('executeWrite runs again after a conflict', async () => {
  const id = 'contended';
  await inSession((session) => session.run('CREATE (t:Thing {id: $id, whole: 0})', { id }));
  let attempts = 0;
  await inSession((session) =>
    session.executeWrite(async (transaction) => {
      attempts++;
      await transaction.run('UPDATE Thing SET whole = whole + 1 WHERE id = $id', { id });
      if (attempts > 1) return;
      await inSession((other) => other.run('UPDATE Thing SET whole = whole + 10 WHERE id = $id', { id }));
    }),
  );
  expect(attempts).toBe(2);
  const { records } = await inSession((session) =>
    session.executeRead((transaction) => transaction.run('MATCH (t:Thing {id: $id}) RETURN t.whole AS whole', { id })),
  );
  expect((records[0]!.get('whole') as Integer).toNumber()).toBe(11);
});

test('What is refused says so by a code of its own, and changes nothing', async () => {
  const refusals: [string, Record<string, unknown>, Record<string, unknown>, string][] = [
    ["MATCH (t:Thing {id: 'a'}) SET t.whole = 1", {}, {}, 'Neo.ClientError.Statement.AccessMode'],
    ["MATCH (t:Thing {id: 'a'}) DELETE t", {}, {}, 'Neo.ClientError.Statement.AccessMode'],
    ["CREATE (t:Thing {id: 'read'})", {}, { defaultAccessMode: 'READ' }, 'Neo.ClientError.Statement.AccessMode'],
    ['SELECT $b AS b', { b: new Int8Array(2) }, {}, 'Neo.ClientError.Statement.SyntaxError'],
    ['SELECT 1 AS one', {}, { database: 'nowhere' }, 'Neo.ClientError.Database.DatabaseNotFound'],
  ];
  for (const [text, parameters, options, code] of refusals)
    expect([text, await codeOf(inSession((session) => session.run(text, parameters), options))]).toEqual([text, code]);
  const { records } = await inSession((session) => session.run("SELECT id, whole FROM Thing WHERE id IN ('a', 'read')", {}));
  expect(records.map((record) => [record.get('id'), String(record.get('whole'))])).toEqual([['a', '9223372036854775807']]);
});

test('Metadata of a transaction asks as of an instant', async () => {
  const then = new Date().toISOString();
  await inSession((session) => session.run("CREATE (t:Thing {id: 'later'})"));
  const count = (metadata: Record<string, string>): Promise<number> =>
    inSession(
      async (session) => (await session.run("MATCH (t:Thing {id: 'later'}) RETURN t.id AS id", {}, { metadata })).records.length,
    );
  expect(await count({})).toBe(1);
  expect(await count({ as_of_system: then })).toBe(0);
});

/** What is answered to these bytes in one piece, until so many messages came. */
async function answersTo(bytes: Buffer, count: number): Promise<PackStreamStructure[]> {
  const socket = connect(boltPort(world), '127.0.0.1');
  await once(socket, 'connect');
  socket.write(bytes);
  const answers: PackStreamStructure[] = [];
  let heard = Buffer.alloc(0);
  for await (const piece of socket) {
    heard = Buffer.concat([heard, piece as Buffer]);
    answers.length = 0;
    for (let at = 4; at < heard.length; ) {
      const begun = { isOpen: true, at: 0, bounds: [] };
      const decoded = boltCodec.decode(begun, heard.subarray(at));
      if (!('message' in decoded)) break;
      at += decoded.taken;
      if (decoded.message.kind === 'message') answers.push(allAtOnce(unpackSteps(decoded.message.body)) as PackStreamStructure);
    }
    if (answers.length >= count) break;
  }
  socket.destroy();
  return answers;
}

const tagsOf = (answers: readonly PackStreamStructure[]): number[] => answers.map(({ tag }) => tag);
const run = (text: string): Buffer => messageBytes(0x10, text, map(), map());
const pull = messageBytes(0x3f, map({ n: -1n }));

test('Bolt 4.4 logs in by HELLO, tells instants by the clock of their zone, and takes empty chunks between messages', async () => {
  await inSession((session) =>
    session.run("CREATE (t:Thing {id: 'old', at: $at})", { at: new neo4j.types.DateTime(2024, 1, 1, 0, 0, 0, 7, 0) }),
  );
  const noop = Buffer.alloc(2);
  const asked = run("MATCH (t:Thing {id: 'old'}) RETURN t.at AS at");
  const answers = await answersTo(Buffer.concat([handshakeBytes(0, 4, 4), helloBytes(secret), noop, asked, noop, noop, pull]), 4);
  expect(tagsOf(answers)).toEqual([0x70, 0x70, 0x71, 0x70]);
  const [row] = answers[2]!.fields as [readonly PackStreamValue[]];
  expect(row[0]).toEqual(new PackStreamStructure(0x46, [1_704_067_200n, 7n, 0n]));
});

test('After a failure everything is ignored until RESET, and RESET passes over what waits before it', async () => {
  const reset = messageBytes(0x0f);
  const failing = [run('MATCH (('), pull, run('SELECT 1 AS one')];
  const hello = [handshakeBytes(0, 4, 4), helloBytes(secret)];
  const failed = await answersTo(Buffer.concat([...hello, ...failing]), 4);
  expect(tagsOf(failed)).toEqual([0x70, 0x7f, 0x7e, 0x7e]);
  const answers = await answersTo(
    Buffer.concat([...hello, run('SELECT 1 AS one'), pull, reset, run('SELECT 2 AS two'), pull]),
    7,
  );
  expect(tagsOf(answers).slice(2)).toEqual([0x7e, 0x70, 0x70, 0x71, 0x70]);
});

test('RESET cancels the question that runs', async () => {
  const long = 'SELECT COUNT(*) AS n FROM Thing a, Thing b, Thing c WHERE a.whole + b.whole + c.whole = 77';
  const asked = [
    handshakeBytes(0, 4, 4),
    helloBytes(secret),
    run(long),
    pull,
    messageBytes(0x0f),
    run('SELECT 3 AS three'),
    pull,
  ];
  const answers = await answersTo(Buffer.concat(asked), 7);
  expect(tagsOf(answers)).toEqual([0x70, 0x7f, 0x7e, 0x70, 0x70, 0x71, 0x70]);
  expect((answers[1]!.fields[0] as ReadonlyMap<string, PackStreamValue>).get('code')).toBe(
    'Neo.ClientError.Transaction.Terminated',
  );
});

/** The Flight door, as a Flight SQL client of npm and clients made of the protocol's own messages see it. */
import { FlightSQLClient } from '@firetiger-oss/flight-sql-client';
import { Metadata, status } from '@grpc/grpc-js';
import {
  Bool,
  Dictionary,
  FixedSizeList,
  Field,
  Float32,
  Float64,
  Int32,
  Int64,
  List,
  Table,
  tableFromArrays,
  tableFromIPC,
  tableToIPC,
  TimestampMicrosecond,
  Utf8,
  vectorFromArray,
} from 'apache-arrow';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { flightDataFrom } from '../../../src/doors/grpc/flight-messages.ts';
import { FlightTickets } from '../../../src/doors/grpc/flight-tickets.ts';
import { tenantlessCaller } from '../../../src/governance/caller.ts';
import { StoreWorld } from '../http/store-world.ts';
import {
  commandDescriptor,
  FlightClient,
  flightSecret,
  rowsOf,
  sqlDescriptor,
  sqlMessages,
  typeDescriptor,
} from './flight-client.ts';
import { refusalOf } from './grpc-client.ts';

let world: StoreWorld;
let client: FlightClient;
const port = (): number => world.others.find(({ name }) => name === 'flight')!.port;

beforeAll(async () => {
  world = await StoreWorld.open({ SERVICE_BEARER_TOKEN: flightSecret, SERVICE_FLIGHT_ENABLE: 'true' });
  client = new FlightClient(world);
  const [result] = await client.put(typeDescriptor('Reading'), readings());
  expect(JSON.parse(String(result))).toMatchObject({ type: 'Reading', accepted: 3, rejected: 0, ids: ['a', 'b', 'c'] });
});

afterAll(async () => {
  client?.close();
  await world?.close();
});

const text = (values: (string | null)[]) => vectorFromArray(values, new Utf8());
const readings = (): Table =>
  new Table({
    id: text(['a', 'b', 'c']),
    big: vectorFromArray([9223372036854775807n, -9223372036854775808n, null], new Int64()),
    ratio: vectorFromArray([0.1, null, -1.5e300], new Float64()),
    flag: vectorFromArray([true, false, null], new Bool()),
    at: vectorFromArray([1714557600123, null, 0], new TimestampMicrosecond('UTC')),
    place: vectorFromArray([[0.5, -1], null, [1, 2]], new FixedSizeList(2, new Field('item', new Float32(), true))),
    kind: vectorFromArray(['x', 'y', 'x'], new Dictionary(new Utf8(), new Int32())),
  });

const rows = [
  { id: 'a', big: 9223372036854775807n, ratio: 0.1, flag: true, at: 1714557600123000000n, place: [0.5, -1], kind: 'x' },
  { id: 'b', big: -9223372036854775808n, ratio: null, flag: false, at: null, place: null, kind: 'y' },
  { id: 'c', big: null, ratio: -1.5e300, flag: null, at: 0n, place: [1, 2], kind: 'x' },
];
const columns = 'SELECT id, big, ratio, flag, at, place, kind FROM Reading ORDER BY id';
const schemaText = (bytes: Uint8Array): string[] => tableFromIPC(bytes).schema.fields.map(({ name, type }) => `${name} ${type}`);

describe('rows', () => {
  test('that were put are there, typed, and come back with the schema that was promised', async () => {
    const { schema, ticket } = await client.info(commandDescriptor(Buffer.from(columns)));
    const table = await client.get(ticket);
    expect(rowsOf(table)).toEqual(rows);
    expect(schemaText(schema)).toEqual(table.schema.fields.map(({ name, type }) => `${name} ${type}`));
    expect(schemaText(schema)).toContain('place FixedSizeList[2]<Float32>');
    const { json } = await world.call('GET', '/types/Reading');
    expect(json).toMatchObject({ open: false, properties: { at: { type: 'timestamp' }, place: { type: 'vector', dims: 2 } } });
  });

  test('of a type are read by its path; all versions of them, unless a time is stated', async () => {
    const again = new Table({ id: text(['v']), n: vectorFromArray([1n], new Int64()) });
    for (let i = 0; i < 2; i++) await client.put(typeDescriptor('Twice'), again);
    const { ticket } = await client.info(typeDescriptor('Twice'));
    expect(rowsOf(await client.get(ticket)).map(({ _pk }) => _pk)).toEqual(['v', 'v']);
    const now = new FlightClient(world, { 'x-service-as-of': '2100-01-01T00:00:00Z' });
    expect(await now.rows('SELECT id FROM Twice')).toEqual([{ id: 'v' }]);
    now.close();
  });

  test('of columns that nobody declared a length of have no schema before they are there', async () => {
    const { schema, ticket } = await client.info(commandDescriptor(Buffer.from('SELECT place, id FROM Reading')));
    expect(schemaText(schema)[0]).toBe('place FixedSizeList[2]<Float32>');
    expect((await client.get(ticket)).numRows).toBe(3);
  });

  test('go in messages that every client takes', async () => {
    const long = new Table({
      id: text(Array.from({ length: 12 }, (_, i) => `k${i}`)),
      note: text(Array.from({ length: 12 }, () => 'x'.repeat(400_000))),
    });
    await client.put(typeDescriptor('Long'), long);
    // The client takes four mebibytes at most.
    expect((await client.table('SELECT note FROM Long')).numRows).toBe(12);
  });

  test('a plan is rows, too', async () => {
    const [first] = await client.rows('EXPLAIN SELECT id FROM Reading');
    expect(String(first!['plan'])).toMatch(/\w/);
  });

  test('that a column does not take end the call, after those before them', async () => {
    const bad = new Table({ id: text(['d', 'e']), ratio: vectorFromArray([1, Number.NaN], new Float64()) });
    expect(await refusalOf(client.put(typeDescriptor('Reading'), bad))).toMatchObject({
      code: status.INVALID_ARGUMENT,
      reason: 'REL_TYPE_MISMATCH',
    });
    expect(await client.rows("SELECT id FROM Reading WHERE id = 'd'")).toEqual([]);
  });

  test('of lists of any length make no type', async () => {
    const lists = new Table({ v: vectorFromArray([[1, 2]], new List(new Field('item', new Float32(), true))) });
    expect(await refusalOf(client.put(typeDescriptor('Lists'), lists))).toMatchObject({ reason: 'REL_TYPE_MISMATCH' });
    expect((await world.call('GET', '/types/Lists')).status).toBe(404);
  });

  test('of another schema are refused before one is written; a descriptor and a schema come first', async () => {
    expect(await refusalOf(client.put(typeDescriptor('Reading'), tableFromArrays({ nope: Int32Array.of(1) })))).toMatchObject({
      reason: 'REL_UNKNOWN_COLUMN',
    });
    expect(await refusalOf(client.put(typeDescriptor('a', 'b'), readings()))).toMatchObject({ reason: 'REL_INVALID' });
    const [, batch] = [...flightDataFrom([tableToIPC(readings(), 'stream')])].map((each) => each.toBuffer());
    expect(await refusalOf(client.putMessages([batch!], typeDescriptor('Reading')))).toMatchObject({ reason: 'REL_PARSE' });
  });

  test('by the bulk command of Flight SQL are counted; a table that has to be new is', async () => {
    const command = (name: string, ifAbsent: number, ifPresent: number) => {
      // TableDefinitionOptions and the name of the table, which the client’s package does not have.
      const bytes = Buffer.from([0x0a, 4, 0x08, ifAbsent, 0x10, ifPresent, 0x12, name.length, ...Buffer.from(name)]);
      return sqlDescriptor('CommandStatementIngest', { serializeBinary: () => bytes });
    };
    const [result] = await client.put(command('Bulk', 1, 2), readings());
    expect([...result!]).toEqual([0x08, 3]);
    expect(await refusalOf(client.put(command('Bulk', 1, 1), readings()))).toMatchObject({ reason: 'REL_CONFLICT' });
    expect(await refusalOf(client.put(command('Absent', 2, 2), readings()))).toMatchObject({ reason: 'REL_UNKNOWN_TYPE' });
    expect(await refusalOf(client.put(command('Bulk', 1, 3), readings()))).toMatchObject({ reason: 'REL_NOT_IMPLEMENTED' });
  });
});

describe('who asks', () => {
  test('shakes hands by a password, and comes back with a token', async () => {
    const by = new Metadata();
    by.set('authorization', `Basic ${Buffer.from(`anybody:${flightSecret}`).toString('base64')}`);
    const call = client.raw['handshake']!(by);
    const given = new Promise<Metadata>((resolve) => call.on('metadata', resolve));
    call.resume();
    call.end();
    expect((await given).get('authorization')).toEqual([`Bearer ${flightSecret}`]);
  });

  test('without a credential, or with a wrong one, is refused', async () => {
    for (const key of [null, 'wrong']) {
      const stranger = new FlightClient(world, {}, key);
      expect(await refusalOf(stranger.rows('SELECT 1 AS n'))).toMatchObject({ code: status.UNAUTHENTICATED });
      stranger.close();
    }
  });

  test('opens no ticket of another caller', async () => {
    const { ticket } = await client.info(commandDescriptor(Buffer.from(columns)));
    const other = new FlightClient(world, { 'x-organization-id': 'acme' });
    const refused = { code: status.NOT_FOUND, reason: 'REL_NOT_FOUND' };
    expect(await refusalOf(other.get(ticket))).toMatchObject(refused);
    expect(await refusalOf(client.get(ticket.map((byte, i) => (i === 20 ? byte ^ 1 : byte))))).toMatchObject(refused);
    expect(await refusalOf(client.get(Buffer.from('SELECT 1')))).toMatchObject(refused);
    other.close();
  });

  test('opens a ticket for a minute', () => {
    let nowMs = 0;
    const tickets = new FlightTickets({ clock: { monotonicMs: () => nowMs }, random: { fill: (bytes) => bytes.fill(7) } });
    const caller = tenantlessCaller('ada', 'shared-secret', 'flight');
    const ticket = tickets.seal('ticket', caller, { n: 1 });
    nowMs = 60_000;
    expect(tickets.open('ticket', caller, ticket)).toEqual({ n: 1 });
    expect(() => tickets.open('handle', caller, ticket)).toThrow('no such handle');
    nowMs = 60_001;
    expect(() => tickets.open('ticket', caller, ticket)).toThrow('no such ticket');
  });

  test('has a ticket whose basis stays: rows that are written later are in no answer of it', async () => {
    const one = (id: string): Table => new Table({ id: text([id]), n: vectorFromArray([1n], new Int64()) });
    await client.put(typeDescriptor('Basis'), one('k1'));
    const asked = [
      'SELECT _pk, system_to FROM Basis',
      'SELECT COUNT(*) AS n FROM Basis',
      'SELECT COUNT(*) AS n FROM Basis WHERE system_to = 9223372036854775807',
      'SELECT id FROM Basis ORDER BY id DESC LIMIT 1',
      "SELECT n FROM Basis WHERE _pk = 'k1'",
      'SELECT id, COUNT(*) AS n FROM Basis GROUP BY id',
      'SELECT a.id FROM Basis a JOIN Basis b ON a.id = b.id',
      'SELECT id FROM Basis AS OF CURRENT',
    ];
    const tickets = await Promise.all(asked.map((sql) => client.info(commandDescriptor(Buffer.from(sql)))));
    const before = await Promise.all(asked.map((sql) => client.rows(sql)));
    for (const id of ['k1', 'k2']) await client.put(typeDescriptor('Basis'), one(id));
    await world.call('DELETE', '/types/Basis/k1');
    const after = await Promise.all(tickets.map(async ({ ticket }) => rowsOf(await client.get(ticket))));
    expect(after).toEqual(before);
    expect(await client.rows('SELECT COUNT(*) AS n FROM Basis')).toEqual([{ n: 4n }]);
  });

  test('is asked for again by the gate when a ticket is used', async () => {
    const authorization = (await world.tokenFor({ principal: 'ends' })).authorization;
    const ending = new FlightClient(world, { authorization }, null);
    const { ticket } = await ending.info(commandDescriptor(Buffer.from('SELECT id FROM Reading')));
    expect((await ending.get(ticket)).numRows).toBeGreaterThan(2);
    await world.admin('DELETE', `/admin/tokens/${/ann_([0-9a-f-]{36})_/.exec(authorization)![1]}`);
    expect(await refusalOf(ending.get(ticket))).toMatchObject({ code: status.UNAUTHENTICATED });
    ending.close();
  });

  test('is told what is wrong with a question, and no more', async () => {
    const refused = (sql: string) => refusalOf(client.info(commandDescriptor(Buffer.from(sql))));
    expect(await refused('SELECT nope FROM Reading')).toMatchObject({ reason: 'REL_UNKNOWN_COLUMN' });
    expect(await refused('SELECT')).toMatchObject({ reason: 'REL_PARSE' });
    expect(await refused('')).toMatchObject({ reason: 'REL_INVALID' });
    expect(
      await refusalOf(client.info(sqlDescriptor('CommandGetXdbcTypeInfo', new sqlMessages.CommandGetXdbcTypeInfo()))),
    ).toMatchObject({
      code: status.UNIMPLEMENTED,
      reason: 'REL_NOT_IMPLEMENTED',
    });
  });
});

describe('Flight SQL', () => {
  test('prepares statements, binds values to them and closes them', async () => {
    const request = new sqlMessages.ActionCreatePreparedStatementRequest();
    request.setQuery('SELECT id FROM Reading WHERE big = $1');
    const [prepared] = await client.action('CreatePreparedStatement', request);
    expect(schemaText(prepared!.bytes(2)!)).toEqual(['id Utf8']);
    expect(schemaText(prepared!.bytes(3)!)).toEqual(['$1 Int64']);
    const command = new sqlMessages.CommandPreparedStatementQuery();
    command.setPreparedStatementHandle(prepared!.bytes(1)!);
    const values = new Table({ '?': vectorFromArray([9223372036854775807n], new Int64()) });
    const [bound] = await client.put(sqlDescriptor('CommandPreparedStatementQuery', command), values);
    command.setPreparedStatementHandle(bound!.subarray(bound!.length - (bound!.length - 3)));
    expect(await client.catalogue('CommandPreparedStatementQuery', command)).toEqual([{ id: 'a' }]);
    const close = new sqlMessages.ActionClosePreparedStatementRequest();
    close.setPreparedStatementHandle(prepared!.bytes(1)!);
    expect(await client.action('ClosePreparedStatement', close)).toEqual([]);
    close.setPreparedStatementHandle(Buffer.from('none'));
    expect(await refusalOf(client.action('ClosePreparedStatement', close))).toMatchObject({ reason: 'REL_NOT_FOUND' });
  });

  test('tells of catalogs, schemas, tables and keys', async () => {
    expect(await client.catalogue('CommandGetCatalogs', new sqlMessages.CommandGetCatalogs())).toEqual([
      { catalog_name: 'main' },
    ]);
    const schemas = new sqlMessages.CommandGetDbSchemas();
    schemas.setDbSchemaFilterPattern('pub%');
    expect(await client.catalogue('CommandGetDbSchemas', schemas)).toEqual([{ catalog_name: 'main', db_schema_name: 'public' }]);
    const tables = new sqlMessages.CommandGetTables();
    tables.setTableNameFilterPattern('Readin_');
    tables.setIncludeSchema(true);
    const [table, ...more] = await client.catalogue('CommandGetTables', tables);
    expect(more).toEqual([]);
    expect(table).toMatchObject({
      catalog_name: 'main',
      db_schema_name: 'public',
      table_name: 'Reading',
      table_type: 'BASE TABLE',
    });
    expect(schemaText(Uint8Array.from(table!['table_schema'] as number[]))).toContain('big Int64');
    expect(await client.catalogue('CommandGetTableTypes', new sqlMessages.CommandGetTableTypes())).toEqual([
      { table_type: 'BASE TABLE' },
      { table_type: 'VIEW' },
    ]);
    await world.call('POST', '/types', { name: 'Keyed', properties: { code: 'string' }, primary_key: 'code' });
    const keys = new sqlMessages.CommandGetPrimaryKeys();
    keys.setTable('Keyed');
    expect(await client.catalogue('CommandGetPrimaryKeys', keys)).toMatchObject([
      { table_name: 'Keyed', column_name: 'code', key_sequence: 1 },
    ]);
  });

  test('tells of the server', async () => {
    const info = new sqlMessages.CommandGetSqlInfo();
    info.setInfoList([0, 3, 8]);
    expect(await client.catalogue('CommandGetSqlInfo', info)).toEqual([
      { info_name: 0, value: 'annals' },
      { info_name: 3, value: true },
      { info_name: 8, value: 0 },
    ]);
  });
});

test('a client of npm asks, lists flights and actions, and goes', async () => {
  const npm = new FlightSQLClient({ host: '127.0.0.1', port: port(), plaintext: true, token: flightSecret });
  const table = await npm.execute('SELECT id, big FROM Reading ORDER BY id LIMIT 1');
  expect(table.toArray().map((row) => row.toJSON())).toEqual([{ id: 'a', big: 9223372036854775807n }]);
  const tables = await npm.getTables('main', 'public', 'Reading');
  expect(tables).toEqual([{ catalog: 'main', schema: 'public', tableName: 'Reading', tableType: 'BASE TABLE' }]);
  const flights = (await npm.listFlights()) as { getFlightDescriptor(): { getPathList(): string[] } }[];
  expect(flights.map((flight) => flight.getFlightDescriptor().getPathList()[0])).toContain('Reading');
  const actions = (await npm.listActions()) as { getType(): string }[];
  expect(actions.map((action) => action.getType())).toEqual(['CreatePreparedStatement', 'ClosePreparedStatement']);
  await expect(npm.execute('SELECT nope FROM Reading')).rejects.toThrow('has no column');
  await npm.close();
});

test('a deadline ends the question', async () => {
  const { ticket } = await client.info(
    commandDescriptor(Buffer.from('SELECT COUNT(*) AS n FROM Reading a, Reading b, Reading c')),
  );
  expect((await refusalOf(client.get(ticket, { deadline: Date.now() - 1 }))).code).toBe(status.DEADLINE_EXCEEDED);
});

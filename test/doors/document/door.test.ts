/** The document door by the driver that most people use: one server, everything asked through `mongodb`. */
import {
  Binary,
  type Collection,
  Decimal128,
  type Document,
  Double,
  Int32,
  Long,
  MaxKey,
  type MongoClient,
  ObjectId,
  Timestamp,
  UUID,
} from 'mongodb';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { StoreWorld } from '../http/store-world.ts';
import { documentsConnected, errorOf } from './document-client.ts';

let world: StoreWorld;
let client: MongoClient;
/** Names its own _id. */
interface Thing extends Document {
  readonly _id: string | number;
}
const things = (name: string): Collection<Thing> => client.db('shop').collection<Thing>(name);

beforeAll(async () => {
  world = await StoreWorld.open({ SERVICE_BEARER_TOKEN: 'bearer-for-tests' });
  client = await documentsConnected(world);
});

afterAll(async () => {
  await client.close();
  await world.close();
});

describe('documents', () => {
  test('what is inserted is found, by SQL too', async () => {
    const collection = things('first');
    expect(await collection.insertOne({ _id: 'a', name: 'één', n: 1, in: { x: [1, 2.5] } })).toMatchObject({ insertedId: 'a' });
    expect(await collection.findOne({ _id: 'a' })).toEqual({ _id: 'a', name: 'één', n: 1, in: { x: [1, 2.5] } });
    expect(await collection.findOne({ _id: 'b' })).toBeNull();
    const [row] = await world.rows("SELECT _pk, database, document FROM DocumentEntry WHERE collection = 'first'");
    expect(row).toEqual({
      _pk: 'shop.first/a',
      database: 'shop',
      document: { _id: 'a', name: 'één', n: 1, in: { x: [1, 2.5] } },
    });
    const made = await client.db('shop').collection('own').insertOne({ x: 1 });
    expect(made.insertedId).toBeInstanceOf(ObjectId);
    expect(await client.db('shop').collection('own').findOne({ _id: made.insertedId })).toEqual({ _id: made.insertedId, x: 1 });
  });

  test('every type comes back as it was', async () => {
    const document = {
      _id: 'types',
      oid: new ObjectId('0123456789abcdef01234567'),
      long: Long.fromString('9007199254740993'),
      whole: new Double(2),
      minus: new Double(-0),
      big: new Double(1e300),
      nan: new Double(Number.NaN),
      int: new Int32(-7),
      decimal: Decimal128.fromString('1.10'),
      date: new Date('2024-05-01T10:00:00.123Z'),
      bytes: new Binary(Buffer.from([0, 255, 7])),
      uuid: new UUID('01234567-89ab-cdef-0123-456789abcdef'),
      regex: /a.b/i,
      stamp: new Timestamp({ t: 7, i: 3 }),
      most: new MaxKey(),
      nothing: null,
      yes: true,
      list: [[], {}, 'x'],
    };
    const typed = client.db('shop').collection<{ _id: string }>('typed');
    await typed.insertOne(document);
    const found = await typed.findOne({ _id: 'types' }, { promoteValues: false, promoteLongs: false, bsonRegExp: false });
    const { int, nothing: _nothing, list: _list, yes: _yes, ...same } = document;
    expect(found).toMatchObject({ ...same, minus: new Double(-0) });
    expect(String((found as unknown as { int: Int32 }).int)).toBe(String(int));
    expect(await typed.findOne({ oid: document.oid, long: document.long, bytes: document.bytes })).not.toBeNull();
  });

  test('an _id is taken once, whatever the type of its number', async () => {
    const collection = things('taken');
    const error = await collection.insertMany([{ _id: 1 }, { _id: '1' }, { _id: 1 }, { _id: 2 }]).catch((e: unknown) => e);
    expect(error).toMatchObject({ code: 11_000, result: { insertedCount: 2 } });
    const rest = await collection.insertMany([{ _id: 1 }, { _id: 2 }], { ordered: false }).catch((e: unknown) => e);
    expect(rest).toMatchObject({ code: 11_000, result: { insertedCount: 1 } });
    expect(await collection.countDocuments()).toBe(3);
    const ids = (await collection.find().sort({ _id: 1 }).toArray()).map(({ _id }) => _id);
    expect(ids).toEqual([1, 2, '1']);
    expect(await collection.findOne({ _id: new Double(1) as unknown as number })).toEqual({ _id: 1 });
  });
});

describe('finding', () => {
  beforeAll(async () => {
    await things('people').insertMany([
      { _id: 'ann', age: 31, tags: ['a', 'b'], address: { city: 'Oslo' }, kids: [{ name: 'x', age: 3 }] },
      { _id: 'bob', age: 25, tags: ['b'], address: { city: 'Rome' } },
      { _id: 'cid', age: 47.5, tags: [], address: null },
      {
        _id: 'dan',
        age: '31',
        kids: [
          { name: 'x', age: 9 },
          { name: 'y', age: 3 },
        ],
      },
    ]);
  });

  test.each<[object, string]>([
    [{}, 'ann bob cid dan'],
    [{ age: 31 }, 'ann'],
    [{ age: { $gt: 25 } }, 'ann cid'],
    [{ age: { $gte: 25, $lt: 40 } }, 'ann bob'],
    [{ age: { $ne: 31 } }, 'bob cid dan'],
    [{ age: { $in: [25, '31'] } }, 'bob dan'],
    [{ age: { $nin: [25] } }, 'ann cid dan'],
    [{ age: { $not: { $gt: 30 } } }, 'bob dan'],
    [{ age: { $type: 'string' } }, 'dan'],
    [{ tags: 'b' }, 'ann bob'],
    [{ tags: ['b'] }, 'bob'],
    [{ tags: { $size: 2 } }, 'ann'],
    [{ tags: { $all: ['a', 'b'] } }, 'ann'],
    [{ 'tags.0': 'b' }, 'bob'],
    [{ tags: { $exists: false } }, 'dan'],
    [{ 'address.city': 'Oslo' }, 'ann'],
    [{ address: { city: 'Rome' } }, 'bob'],
    [{ address: null }, 'cid dan'],
    [{ 'kids.age': { $lt: 4 } }, 'ann dan'],
    [{ kids: { $elemMatch: { name: 'x', age: { $lt: 4 } } } }, 'ann'],
    [{ _id: /^[ab]/ }, 'ann bob'],
    [{ _id: { $regex: 'NN', $options: 'i' } }, 'ann'],
    [{ $or: [{ age: 25 }, { tags: 'a' }] }, 'ann bob'],
    [{ $nor: [{ age: 25 }, { tags: 'a' }] }, 'cid dan'],
    [{ $and: [{ age: 31 }, { tags: 'a' }] }, 'ann'],
    [{ _id: { $in: ['ann', 'zoe', 'bob'] }, age: 25 }, 'bob'],
    [{ age: { $mod: [5, 0] } }, 'bob'],
  ])('%j', async (filter, ids) => {
    const people = things('people');
    const found = await people.find(filter).toArray();
    expect(
      found
        .map(({ _id }) => String(_id))
        .sort((a, b) => (a < b ? -1 : 1))
        .join(' '),
    ).toBe(ids);
    expect(await people.countDocuments(filter)).toBe(found.length);
  });

  test('sorted, cut, projected', async () => {
    const people = things('people');
    const ids = (cursor: { toArray(): Promise<Thing[]> }): Promise<string> =>
      cursor.toArray().then((all) => all.map(({ _id }) => _id).join(' '));
    expect(await ids(people.find().sort({ age: -1 }))).toBe('dan cid ann bob');
    expect(await ids(people.find().sort({ tags: 1, _id: 1 }))).toBe('cid dan ann bob');
    expect(await ids(people.find().sort({ _id: 1 }).skip(1).limit(2))).toBe('bob cid');
    expect(await people.findOne({ _id: 'ann' }, { projection: { 'kids.name': 1, _id: 0 } })).toEqual({ kids: [{ name: 'x' }] });
    expect(await people.findOne({ _id: 'ann' }, { projection: { kids: 0, tags: 0 } })).toEqual({
      _id: 'ann',
      age: 31,
      address: { city: 'Oslo' },
    });
    expect(await people.distinct('tags')).toEqual(['a', 'b']);
    expect(await people.estimatedDocumentCount()).toBe(4);
  });

  test('in batches, from one basis', async () => {
    const many = things('many');
    await many.insertMany(Array.from({ length: 250 }, (_, i) => ({ _id: i })));
    const cursor = many.find({}, { batchSize: 40 });
    const first = await cursor.next();
    await many.deleteMany({ _id: { $gte: 200 } });
    const rest = await cursor.toArray();
    expect([first, ...rest]).toHaveLength(250);
    expect(await many.countDocuments()).toBe(200);
    const left = many.find({}, { batchSize: 2 });
    await left.next();
    await left.close();
  });

  test('aggregated', async () => {
    const sums = await things('people')
      .aggregate([
        { $match: { age: { $type: 'number' } } },
        { $group: { _id: '$address.city', n: { $sum: 1 }, ages: { $push: '$age' }, mean: { $avg: '$age' } } },
        { $sort: { _id: -1 } },
        { $project: { mean: 0 } },
      ])
      .toArray();
    expect(sums).toEqual([
      { _id: 'Rome', n: 1, ages: [25] },
      { _id: 'Oslo', n: 1, ages: [31] },
      { _id: null, n: 1, ages: [47.5] },
    ]);
    expect(
      await things('people')
        .aggregate([{ $skip: 1 }, { $limit: 2 }, { $count: 'n' }])
        .toArray(),
    ).toEqual([{ n: 2 }]);
  });
});

describe('changing', () => {
  test('some fields, or all of it', async () => {
    const collection = things('changed');
    await collection.insertMany([
      { _id: 'a', n: 1, in: { x: 1 } },
      { _id: 'b', n: 1 },
    ]);
    expect(await collection.updateOne({ n: 1 }, { $set: { 'in.y': 2 }, $inc: { n: 4 } })).toMatchObject({
      matchedCount: 1,
      modifiedCount: 1,
    });
    expect(await collection.findOne({ _id: 'a' })).toEqual({ _id: 'a', n: 5, in: { x: 1, y: 2 } });
    expect(await collection.updateMany({}, { $inc: { n: 1 } })).toMatchObject({ matchedCount: 2, modifiedCount: 2 });
    expect(await collection.updateMany({}, { $set: { done: true } })).toMatchObject({ modifiedCount: 2 });
    expect(await collection.updateMany({}, { $set: { done: true } })).toMatchObject({ matchedCount: 2, modifiedCount: 0 });
    expect(await collection.replaceOne({ _id: 'b' }, { only: 1 })).toMatchObject({ modifiedCount: 1 });
    expect(await collection.findOne({ _id: 'b' })).toEqual({ _id: 'b', only: 1 });
    const upserted = await collection.updateOne(
      { _id: 'c', kind: 'k' },
      { $set: { n: 1 }, $setOnInsert: { made: 1 } },
      { upsert: true },
    );
    expect(upserted).toMatchObject({ upsertedCount: 1, upsertedId: 'c' });
    expect(await collection.findOne({ _id: 'c' })).toEqual({ _id: 'c', kind: 'k', n: 1, made: 1 });
    await collection.updateOne({ _id: 'c' }, { $setOnInsert: { made: 2 } }, { upsert: true });
    expect(await collection.findOne({ _id: 'c' })).toMatchObject({ made: 1 });
    expect(await collection.deleteOne({ _id: 'a' })).toMatchObject({ deletedCount: 1 });
    expect(await collection.deleteMany({ _id: { $in: ['b', 'zzz'] } })).toMatchObject({ deletedCount: 1 });
    expect(await collection.countDocuments()).toBe(1);
  });

  test('and getting it, at once', async () => {
    const collection = things('modified');
    await collection.insertMany([
      { _id: 'a', n: 1 },
      { _id: 'b', n: 2 },
    ]);
    expect(await collection.findOneAndUpdate({}, { $inc: { n: 1 } }, { sort: { n: -1 } })).toEqual({ _id: 'b', n: 2 });
    expect(await collection.findOneAndUpdate({ _id: 'b' }, { $inc: { n: 1 } }, { returnDocument: 'after' })).toEqual({
      _id: 'b',
      n: 4,
    });
    expect(await collection.findOneAndDelete({ _id: 'a' })).toEqual({ _id: 'a', n: 1 });
    expect(await collection.findOneAndReplace({ _id: 'q' }, { n: 9 }, { upsert: true, returnDocument: 'after' })).toEqual({
      _id: 'q',
      n: 9,
    });
    await Promise.all(Array.from({ length: 10 }, () => collection.updateOne({ _id: 'b' }, { $inc: { n: 1 } })));
    expect(await collection.findOne({ _id: 'b' })).toEqual({ _id: 'b', n: 14 });
  });

  test('what other doors put beside a document stays', async () => {
    await world.call('POST', '/ingest?object_type=DocumentEntry', {
      _pk: 'shop.beside/x',
      database: 'shop',
      collection: 'beside',
      document: { n: 1 },
      note: 'kept',
    });
    expect(await things('beside').updateOne({ n: 1 }, { $set: { n: 2 } })).toMatchObject({ modifiedCount: 1 });
    const rows = await world.rows("SELECT note, document FROM DocumentEntry AS OF CURRENT WHERE _pk = 'shop.beside/x'");
    expect(rows).toEqual([{ note: 'kept', document: { _id: 'x', n: 2 } }]);
  });
});

describe('time and what a command states', () => {
  test('as of then', async () => {
    const collection = things('timed');
    await collection.insertOne({ _id: 't', n: 1 });
    const then = String(world.service.clock.now());
    await collection.updateOne({ _id: 't' }, { $set: { n: 2 } });
    const asOf = { comment: { annals: { as_of_system: then } } };
    expect(await collection.findOne({ _id: 't' }, asOf)).toEqual({ _id: 't', n: 1 });
    expect(await collection.find({ n: 1 }, asOf).toArray()).toHaveLength(1);
    expect(await collection.findOne({ n: 1 })).toBeNull();
    expect(await errorOf(collection.deleteOne({ _id: 't' }, asOf))).toBe('2 BadValue');
    expect(await errorOf(collection.findOne({}, { comment: { annals: { purpose: 'nobody knows' } } }))).toBe('13 Unauthorized');
    expect(await collection.findOne({}, { comment: { annals: { purpose: 'test' } } })).toEqual({ _id: 't', n: 2 });
    expect(await errorOf(collection.findOne({}, { comment: { annals: { nothing: 'x' } } }))).toMatch(/^26/);
  });

  test('rows of any type', async () => {
    await world.call('POST', '/types', {
      name: 'Item',
      properties: { sku: 'string', n: 'integer', at: 'timestamp' },
      primary_key: 'sku',
    });
    await world.call('POST', '/ingest?object_type=Item', { sku: 's1', n: 7, at: '2024-05-01' });
    await world.call('POST', '/ingest?object_type=Item', { sku: 's2', n: 8 });
    const items = client.db('types').collection<{ _id: string; n: number }>('Item');
    expect(await items.findOne({ _id: 's1' })).toMatchObject({ _id: 's1', sku: 's1', n: 7, at: new Date('2024-05-01') });
    expect(await items.find({ n: { $gt: 7 } }).toArray()).toMatchObject([{ _id: 's2' }]);
    expect(await errorOf(items.insertOne({ _id: 's3', n: 1 }))).toBe('166 CommandNotSupportedOnView');
    expect(await errorOf(client.db('types').collection('SigintIntercept').findOne({}))).toBe('13 Unauthorized');
    expect((await client.db('types').listCollections().toArray()).map(({ name }) => name)).toContain('Item');
  });
});

describe('collections', () => {
  test('are there while a document is in them', async () => {
    await client.db('lists').collection<Thing>('one').insertOne({ _id: 1 });
    await client.db('lists').createCollection('two');
    expect((await client.db('lists').listCollections().toArray()).map(({ name }) => name)).toEqual(['one']);
    expect((await client.db('admin').admin().listDatabases()).databases.map(({ name }) => name)).toContain('lists');
    expect(await client.db('lists').collection('one').createIndex({ n: 1 })).toBe('n_1');
    expect((await client.db('lists').collection('one').indexes()).map(({ name }) => name)).toEqual(['_id_']);
    expect(await client.db('lists').collection('one').drop()).toBe(true);
    expect(await client.db('lists').listCollections().toArray()).toEqual([]);
    expect(await client.db('lists').command({ ping: 1 })).toMatchObject({ ok: 1 });
  });
});

describe('refusals', () => {
  const refused = (): Collection<Thing> => things('refused');
  test.each<[string, () => Promise<unknown>, string]>([
    ['$push', () => refused().updateOne({}, { $push: { a: 1 } } as object), '115'],
    ['$unset', () => refused().updateOne({}, { $unset: { a: 1 } } as object), '115'],
    ['$where', () => refused().findOne({ $where: 'true' }), '115 CommandNotSupported'],
    ['$expr', () => refused().findOne({ $expr: { $eq: [1, 1] } }), '115 CommandNotSupported'],
    ['an unknown operator', () => refused().findOne({ a: { $nope: 1 } } as object), '2 BadValue'],
    [
      '$lookup',
      () =>
        refused()
          .aggregate([{ $lookup: {} }])
          .toArray(),
      '115 CommandNotSupported',
    ],
    [
      'an unknown stage',
      () =>
        refused()
          .aggregate([{ $nope: {} }])
          .toArray(),
      '40324 Location40324',
    ],
    ['a change stream', () => refused().watch().next(), '115 CommandNotSupported'],
    ['an unknown command', () => client.db('shop').command({ nope: 1 }), '59 CommandNotFound'],
    ['an unknown member', () => client.db('shop').command({ find: 'x', nope: 1 }), '40415 Location40415'],
    ['a name with $', () => refused().insertOne({ _id: 1, a: { $b: 1 } }), '52 DollarPrefixedFieldName'],
    [
      'an _id that changes',
      () => refused().updateOne({ _id: 'r' }, { $set: { _id: 'q' } } as object, { upsert: true }),
      'answered',
    ],
    ['a unique index', () => refused().createIndex({ a: 1 }, { unique: true }), '115 CommandNotSupported'],
    ['a collection with $', () => client.db('shop').command({ find: 'a$b' }), '73 InvalidNamespace'],
  ])('%s', async (_name, run, code) => {
    expect(await errorOf(run())).toBe(code);
    expect(await client.db('shop').command({ ping: 1 })).toMatchObject({ ok: 1 });
  });

  test('what is nested too deeply is refused, and the connection goes on', async () => {
    const nested = (levels: number): object => Array.from({ length: levels }).reduce<object>((deep) => ({ a: deep }), {});
    const connection = async (): Promise<unknown> => (await client.db('shop').command({ hello: 1 }))['connectionId'];
    const before = await connection();
    for (const levels of [65, 500]) {
      expect(await errorOf(refused().insertOne({ _id: 'deep', a: nested(levels) } as object as Thing))).toBe('15 Overflow');
      expect(await errorOf(refused().findOne({ a: nested(levels) } as object))).toBe('15 Overflow');
    }
    expect(await connection()).toBe(before);
    expect(await refused().findOne({ _id: 'deep' })).toBeNull();
    await refused().insertOne({ _id: 'shallow', a: nested(50) } as object as Thing);
    expect(await refused().findOne({ _id: 'shallow' })).toMatchObject({ a: nested(50) });
  });

  test('a transaction, and a wrong password', async () => {
    const inTransaction = { txnNumber: Long.fromNumber(1), startTransaction: true, autocommit: false };
    const insert = client.db('shop').command({ insert: 'refused', documents: [{ _id: 'in' }], ...inTransaction });
    expect(await errorOf(insert)).toBe('20 IllegalOperation');
    expect(await refused().findOne({ _id: 'in' })).toBeNull();
    expect(await errorOf(documentsConnected(world, { auth: { username: 'x', password: 'wrong' } }))).toBe(
      '18 AuthenticationFailed',
    );
    const bare = await documentsConnected(world, { auth: undefined as never, authMechanism: undefined as never }).catch(
      () => null,
    );
    if (bare !== null) {
      expect(await errorOf(bare.db('shop').collection('people').findOne())).toBe('13 Unauthorized');
      await bare.close();
    }
  });

  test('every command leaves one access record', async () => {
    const own = await documentsConnected(world, { user: 'me@audited' });
    const collection = own.db('shop').collection<Thing>('audited');
    await collection.insertOne({ _id: 1 });
    await collection.findOne({ _id: 1 });
    await errorOf(collection.findOne({ $where: '1' }));
    await own.close();
    const { json } = await world.call('GET', '/audit/entries?limit=100', undefined, { 'x-organization-id': 'audited' });
    const entries = (json['entries'] as { door: string }[]).filter(({ door }) => door === 'document');
    expect(entries).toHaveLength(3);
  });
});

/** The document door by the driver that most people use: one server, everything asked through `mongodb`. */
import { on } from 'node:events';
import { connect } from 'node:net';
import { deserialize, onDemand, serialize } from 'bson';
import {
  Binary,
  BSONSymbol,
  Code,
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

/** A number as the driver reads it. */
interface Read {
  readonly _bsontype: string;
  toString(): string;
}

interface Loose extends Document {
  readonly _id: unknown;
}

/** As it is: a driver gives a document that has no _id, or none that it likes, one of its own. */
const inserted = (collection: string, documents: readonly unknown[]): Promise<Document> =>
  client.db('shop').command({ insert: collection, documents });

/** Members in this order, whatever their names are. */
const doc = (members: readonly (readonly [string, unknown])[]): Map<string, unknown> => new Map(members);
/** Names of its members as they lie in its bytes, and of those of its objects, in brackets. */
function namesIn(bytes: Uint8Array, at = 0): string {
  const names = [...onDemand.parseToElements(bytes, at)].map(([type, name, length, value]) => {
    const inner = type === 3 ? `(${namesIn(bytes, value)})` : '';
    return `${Buffer.from(bytes).toString('utf8', name, name + length)}${inner}`;
  });
  return names.join(' ');
}

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

  test('the texts in a document are searched', async () => {
    await things('read').insertOne({ _id: 'a', in: { list: ['a quokka in the garden'] } });
    const { json } = await world.call('POST', '/search', { query: 'quokka', type: 'DocumentEntry' });
    expect((json['rows'] as { _pk: string }[]).map(({ _pk }) => _pk)).toEqual(['shop.read/a']);
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

describe('values are what they were', () => {
  test('members keep their order, which is part of equality', async () => {
    const db = client.db('shop').collection('ordered');
    const nested = (...names: string[]): Map<string, unknown> => doc(names.map((name) => [name, name]));
    const written = doc(['_id', 'b', '2024', 'a', '2023'].map((name, i) => [name, i]));
    const second = doc([
      ['m', nested('z', '10', '9')],
      ['_id', 2],
    ]);
    await inserted('ordered', [written, second]);
    const names = async (filter: object, options = {}): Promise<string[]> =>
      ((await db.find(filter, { raw: true, ...options }).toArray()) as unknown as Buffer[]).map((bytes) => namesIn(bytes));
    expect(await names({ _id: 0 })).toEqual(['_id b 2024 a 2023']);
    expect(await names({ m: nested('z', '10', '9') })).toEqual(['_id m(z 10 9)']);
    expect(await names({ m: nested('9', '10', 'z') })).toEqual([]);
    expect(await names({ _id: nested('9', '10') })).toEqual([]);
    expect(await names({ _id: 0 }, { projection: { 2023: 1, b: 1 } })).toEqual(['_id b 2023']);
    await db.updateOne({ _id: 0 } as object, { $set: { 1: 'new', a: 5 }, $inc: { 2024: 1 } });
    expect(await names({ a: 5 })).toEqual(['_id b 2024 a 2023 1']);
    const stages = [{ $group: { _id: '$m', all: { $push: '$$ROOT' } } }, { $sort: { _id: -1 } }, { $limit: 1 }];
    const [grouped] = (await db.aggregate(stages, { raw: true }).toArray()) as unknown as [Buffer];
    expect(namesIn(grouped)).toBe('_id(z 10 9) all');
    await inserted('ordered', [doc([['_id', nested('z', '9')]]), doc([['_id', nested('9', 'z')]])]);
    expect(await db.countDocuments()).toBe(4);
    const rows = await world.rows(
      "SELECT CAST(document AS STRING) AS text FROM DocumentEntry AS OF CURRENT WHERE collection = 'ordered' AND _pk LIKE '%/0'",
    );
    expect(rows).toEqual([{ text: '{"_id":0,"b":1,"2024":3,"a":5,"2023":4,"1":"new"}' }]);
  });

  test('a null _id is one document', async () => {
    const nulls = client.db('shop').collection<{ _id: null; n?: number }>('nulls');
    await inserted('nulls', [{ _id: null, n: 1 }]);
    expect((await inserted('nulls', [{ _id: null }]))['writeErrors']).toMatchObject([{ code: 11_000, keyValue: { _id: null } }]);
    expect(await nulls.findOne({ _id: null })).toEqual({ _id: null, n: 1 });
    expect(await nulls.countDocuments({ _id: { $in: [null] } })).toBe(1);
    expect(await nulls.updateOne({ _id: null }, { $set: { n: 2 } }, { upsert: true })).toMatchObject({ modifiedCount: 1 });
    expect(await nulls.findOne({ n: 2 })).toEqual({ _id: null, n: 2 });
    expect(await nulls.deleteOne({ _id: null })).toMatchObject({ deletedCount: 1 });
    await nulls.updateOne({ _id: null }, { $set: { n: 3 } }, { upsert: true });
    await nulls.updateOne({ _id: null }, { $set: { n: 4 } }, { upsert: true });
    expect(await nulls.find().toArray()).toEqual([{ _id: null, n: 4 }]);
  });

  test('numbers keep their kind and their digits', async () => {
    const numbers = client.db('shop').collection<Loose>('numbers');
    const decimal = (text: string): Decimal128 => Decimal128.fromString(text);
    const ids = async (filter: object): Promise<unknown[]> =>
      (await numbers.find(filter).sort({ n: 1 }).toArray()).map(({ _id }) => _id);
    await numbers.insertMany([
      { _id: 'a', n: decimal('9007199254740993') },
      { _id: 'b', n: decimal('9007199254740992') },
      { _id: 'c', n: decimal('0.1') },
      { _id: 'd', n: 0.1 },
      { _id: 'e', n: decimal('1E+400') },
      { _id: 'f', n: decimal('2E+400') },
      { _id: 'g', n: decimal('1.00') },
      { _id: 'h', n: Long.fromString('9007199254740993') },
      { _id: 'i', n: 1 },
    ]);
    expect(await ids({})).toEqual(['c', 'd', 'g', 'i', 'b', 'a', 'h', 'e', 'f']);
    expect(await ids({ n: decimal('9007199254740993') })).toEqual(['a', 'h']);
    expect(await ids({ n: 9_007_199_254_740_992 })).toEqual(['b']);
    expect(await ids({ n: decimal('0.1') })).toEqual(['c']);
    expect(await ids({ n: 0.1 })).toEqual(['d']);
    expect(await ids({ n: { $gt: decimal('1E+400') } })).toEqual(['f']);
    expect(await ids({ n: decimal('1.0') })).toEqual(['g', 'i']);
    expect(await ids({ n: { $mod: [2, 1] } })).toEqual(['g', 'i', 'a', 'h']);
    expect(await errorOf(numbers.insertMany([{ _id: decimal('7.0') }, { _id: 7 }]))).toBe('11000');
    const read = async (id: string): Promise<string> => {
      const found = await numbers.findOne({ _id: id } as object, { promoteValues: false });
      const { n } = found as unknown as { n: Read };
      return `${n._bsontype} ${String(n)}`;
    };
    await numbers.updateOne({ _id: 'g' } as object, { $inc: { n: decimal('0.10') } });
    expect(await read('g')).toBe('Decimal128 1.10');
    await numbers.updateOne({ _id: 'i' } as object, { $mul: { n: decimal('2.50') } });
    expect(await read('i')).toBe('Decimal128 2.50');
    await numbers.updateOne({ _id: 'h' } as object, { $inc: { n: 1 } });
    expect(await read('h')).toBe('Long 9007199254740994');
    await numbers.updateOne({ _id: 'd' } as object, { $inc: { n: 1.9 } });
    expect(await read('d')).toBe('Double 2');
    await numbers.updateOne({ _id: 'new' } as object, { $mul: { n: Long.fromNumber(5) } }, { upsert: true });
    expect(await read('new')).toBe('Long 0');
    const sums = async (...values: unknown[]): Promise<unknown> => {
      const sums = things('sums');
      await sums.deleteMany({});
      await sums.insertMany(values.map((n, i) => ({ _id: i, n })));
      const group = { $group: { _id: null, n: { $sum: '$n' }, mean: { $avg: '$n' } } };
      const [{ n, mean }] = (await sums.aggregate([group], { promoteValues: false }).toArray()) as unknown as [
        { n: Read; mean: Read },
      ];
      return `${String(n)} ${n._bsontype} ${String(mean)}`;
    };
    expect(await sums(decimal('0.1'), decimal('0.2'), 1)).toBe('1.3 Decimal128 0.4333333333333333333333333333333333');
    expect(await sums(...Array.from({ length: 10 }, () => 0.1))).toBe('1 Double 0.1');
    expect(await sums(Long.fromString('9007199254740993'), 1)).toBe('9007199254740994 Long 4503599627370497');
    expect(await sums(2_147_483_647, 1)).toBe('2147483648 Long 1073741824');
    expect(await numbers.distinct('n', { _id: { $in: ['a', 'b'] } } as object)).toHaveLength(2);
  });

  test('code with a scope and pointers are stored', async () => {
    const kept = client.db('shop').collection<Loose>('kept');
    const code = new Code('f()', { 9: 1, b: 'x', 10: 2 });
    await kept.insertOne({ _id: 'code', code, symbol: new BSONSymbol('s') });
    const found = await kept.findOne({ code }, { promoteValues: false });
    expect(found).toMatchObject({ code: { code: 'f()' }, symbol: new BSONSymbol('s') });
    expect(await kept.findOne({ code: { $type: 'javascriptWithScope' } })).not.toBeNull();
    expect(await kept.findOne({ code: new Code('f()') })).toBeNull();
  });

  test('what is no BSON is refused with a number, and the connection goes on', async () => {
    const { port } = world.others.find(({ name }) => name === 'document')!;
    const socket = connect({ port, host: '127.0.0.1' });
    const ask = async (body: Buffer): Promise<Document> => {
      const head = Buffer.alloc(21);
      head.writeInt32LE(head.length + body.length, 0);
      head.writeInt32LE(2_013, 12);
      socket.write(Buffer.concat([head, body]));
      let reply = Buffer.alloc(0);
      for await (const piece of on(socket, 'data')) {
        reply = Buffer.concat([reply, ...(piece as Buffer[])]);
        if (reply.length >= 4 && reply.length >= reply.readInt32LE(0)) break;
      }
      return deserialize(reply.subarray(21));
    };
    const ping = serialize({ ping: 1, $db: 'admin', x: true, y: 'zz' });
    const changed = (from: number[], to: number[]): Buffer => {
      const bytes = Buffer.from(ping);
      bytes.set(to, bytes.indexOf(Buffer.from(from)));
      return bytes;
    };
    const x = [0x08, 0x78, 0, 1];
    const wrong = {
      'a bad boolean': changed(x, [0x08, 0x78, 0, 2]),
      'a type that is none': changed(x, [0x55, 0x78, 0, 1]),
      'bad UTF-8': changed([0x7a, 0x7a, 0], [0xff, 0xfe, 0]),
      'a length beyond the end': changed([3, 0, 0, 0, 0x7a], [99, 0, 0, 0, 0x7a]),
    };
    for (const [what, bytes] of Object.entries(wrong)) {
      expect(await ask(bytes), what).toMatchObject({ ok: 0, code: 22, codeName: 'InvalidBSON' });
      expect(await ask(Buffer.from(ping)), what).toMatchObject({ ok: 1 });
    }
    socket.destroy();
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

describe('a malformed operator is an error everywhere', () => {
  beforeAll(async () => {
    await things('malformed').insertMany([{ _id: 1, a: 1, v: 5, l: [1, 2] }, { _id: 2 }]);
  });

  test.each<[unknown, string]>([
    [{ a: { $not: {} } }, '2'],
    [{ a: { $not: { b: 1 } } }, '2'],
    [{ a: { $not: 5 } }, '2'],
    [{ a: { $not: { $not: {} } } }, '2'],
    [{ a: { $options: 'i' } }, '2'],
    [{ a: { $gt: 1, $options: 'i' } }, '2'],
    [{ a: { $regex: 5 } }, '2'],
    [{ a: { $regex: 'x', $options: 5 } }, '2'],
    [{ a: { $regex: 'x', $options: 'q' } }, '51108'],
    [{ a: { $regex: '(' } }, '51091'],
    [{ a: { $gt: 1, b: 2 } }, '2'],
    [{ a: { $: 1 } }, '2'],
    [{ a: { $nope: 1 } }, '2'],
    [{ a: { $ne: /x/ } }, '2'],
    [{ a: { $gt: /x/ } }, '2'],
    [{ a: { $in: 1 } }, '2'],
    [{ a: { $nin: {} } }, '2'],
    [{ a: { $in: [{ $gt: 1 }] } }, '2'],
    [{ a: { $all: 1 } }, '2'],
    [{ a: { $all: [{ $gt: 1 }] } }, '2'],
    [{ a: { $all: [{ $elemMatch: { b: 1 } }, 1] } }, '2'],
    [{ a: { $elemMatch: 1 } }, '2'],
    [{ a: { $elemMatch: { $gt: 1, b: 1 } } }, '2'],
    [{ a: { $elemMatch: { b: { $not: {} } } } }, '2'],
    [{ a: { $size: 'x' } }, '9'],
    [{ a: { $size: 1.5 } }, '9'],
    [{ a: { $size: -1 } }, '9'],
    [{ a: { $mod: 2 } }, '2'],
    [{ a: { $mod: [2] } }, '2'],
    [{ a: { $mod: [2, 1, 0] } }, '2'],
    [{ a: { $mod: [0, 1] } }, '2'],
    [{ a: { $mod: ['x', 1] } }, '2'],
    [{ a: { $mod: [Number.NaN, 1] } }, '2'],
    [{ a: { $type: 'nothing' } }, '2'],
    [{ a: { $type: 99 } }, '2'],
    [{ a: { $type: [] } }, '9'],
    [{ $and: [] }, '2'],
    [{ $or: {} }, '2'],
    [{ $nor: [1] }, '2'],
    [{ $not: { a: 1 } }, '2'],
    [{ $nope: 1 }, '2'],
    [{ _id: { $nope: 1 } }, '2'],
    [{ _id: { $in: [1], $options: 'i' } }, '2'],
    [{ _id: 1, a: { $not: {} } }, '2'],
  ])('in a filter: %j', async (filter, code) => {
    const malformed = things('malformed');
    const given = filter as object;
    for (const ask of [
      () => malformed.deleteMany(given),
      () => malformed.updateMany(given, { $set: { hit: 1 } }),
      () => malformed.findOne(given),
      () => malformed.countDocuments(given),
      () => malformed.findOneAndDelete(given),
      () => malformed.updateOne(given, { $set: { hit: 1 } }, { upsert: true }),
    ])
      expect((await errorOf(ask())).split(' ')[0]).toBe(code);
    expect(await malformed.find({ hit: { $exists: false } }).toArray()).toHaveLength(2);
  });

  test.each<[unknown, string]>([
    [{ $set: { 'v.x': 9 } }, '28'],
    [{ $set: { 'l.x': 9 } }, '28'],
    [{ $inc: { 'a.b.c': 9 } }, '28'],
    [{ $set: { 'a.': 9 } }, '56'],
    [{ $set: { '.a': 9 } }, '56'],
    [{ $set: { 'a..b': 9 } }, '56'],
    [{ $set: { '': 9 } }, '56'],
    [{ $set: 5 }, '9'],
    [{ $nope: { a: 1 } }, '9'],
    [{ $set: { a: 1 }, b: 1 }, '9'],
    [{ $set: { a: { $gt: 1 } } }, '52'],
    [{ $inc: { a: 'x' } }, '14'],
    [{ $mul: { a: null } }, '14'],
    [{ $inc: { l: 1 } }, '14'],
    [{ $set: { a: 1 }, $inc: { a: 1 } }, '40'],
    [{ $set: { n: 1, 'n-b': 1, 'n.b': 1 } }, '40'],
    [{ $set: { _id: 9 } }, '66'],
    [{ $set: { '_id.x': 9 } }, '28'],
    [{ $push: { l: 9 } }, '115'],
    [[{ $set: { a: 1 } }], '115'],
  ])('in an update: %j', async (update, code) => {
    const asked = { update: 'malformed', updates: [{ q: { _id: 1 }, u: update }] };
    const { writeErrors } = await client.db('shop').command(asked);
    expect(writeErrors).toMatchObject([{ index: 0, code: Number(code) }]);
    expect(await things('malformed').findOne({ _id: 1 })).toEqual({ _id: 1, a: 1, v: 5, l: [1, 2] });
  });

  test.each<[object, string]>([
    [{ projection: { a: 1, 'a.b': 1 } }, '31249'],
    [{ projection: { 'a.b': 1, a: 1 } }, '31250'],
    [{ projection: { 'a.b': 0, 'a.b.c': 0 } }, '31249'],
    [{ projection: { a: 1, b: 0 } }, '31254'],
    [{ projection: { a: 0, b: 1 } }, '31253'],
    [{ projection: { 'a.': 1 } }, '40353'],
    [{ projection: { '': 1 } }, '40352'],
    [{ projection: { 'a..b': 1 } }, '15998'],
    [{ projection: { a: {} } }, '51270'],
    [{ projection: { a: { $nope: 1 } } }, '115'],
    [{ projection: { a: 'x' } }, '115'],
    [{ sort: { a: 'x' } }, '15974'],
    [{ sort: { a: 2 } }, '15975'],
    [{ sort: { 'a.': 1 } }, '40353'],
    [{ sort: { $a: 1 } }, '16410'],
    [{ sort: 1 }, '14'],
    [{ skip: -1 }, '2'],
    [{ limit: 'x' }, '14'],
    [{ singleBatch: 'x' }, '14'],
    [{ filter: 1 }, '14'],
  ])('in a find: %j', async (asked, code) => {
    expect((await errorOf(client.db('shop').command({ find: 'malformed', ...asked }))).split(' ')[0]).toBe(code);
  });

  test.each<[object, string]>([
    [{}, '40323'],
    [{ $match: {}, $limit: 1 }, '40323'],
    [{ $match: 1 }, '15959'],
    [{ $match: { a: { $not: {} } } }, '2'],
    [{ $sort: 1 }, '15973'],
    [{ $sort: {} }, '15976'],
    [{ $sort: { a: 0 } }, '15975'],
    [{ $skip: -1 }, '5107200'],
    [{ $limit: 'x' }, '5107201'],
    [{ $limit: 0 }, '15958'],
    [{ $project: {} }, '51272'],
    [{ $project: 1 }, '15969'],
    [{ $project: { a: 1, 'a.b': 1 } }, '31249'],
    [{ $count: '' }, '40157'],
    [{ $count: 'a.b' }, '40160'],
    [{ $group: 1 }, '15947'],
    [{ $group: {} }, '15955'],
    [{ $group: { _id: null, n: 1 } }, '40234'],
    [{ $group: { _id: null, n: { $nope: 1 } } }, '15952'],
    [{ $group: { _id: null, n: { $sum: 1, $avg: 1 } } }, '40238'],
    [{ $group: { _id: null, n: { $sum: [1, 2] } } }, '40237'],
    [{ $group: { _id: '$', n: { $sum: 1 } } }, '16872'],
    [{ $group: { _id: '$a..b', n: { $sum: 1 } } }, '15998'],
    [{ $nope: 1 }, '40324'],
  ])('in a stage: %j', async (stage, code) => {
    for (const pipeline of [[stage], [{ $match: {} }, stage]])
      expect((await errorOf(client.db('shop').command({ aggregate: 'malformed', pipeline, cursor: {} }))).split(' ')[0]).toBe(
        code,
      );
  });

  test('a document that is there under the _id of an upsert is a duplicate key', async () => {
    const jobs = things('jobs');
    await jobs.insertOne({ _id: 'job', until: 5 });
    const error = await jobs
      .findOneAndUpdate({ _id: 'job', until: { $lte: 1 } }, { $set: { until: 9 } }, { upsert: true })
      .catch((e: unknown) => e);
    expect(error).toMatchObject({ code: 11_000, codeName: 'DuplicateKey', keyPattern: { _id: 1 }, keyValue: { _id: 'job' } });
    const updated = await jobs
      .updateOne({ _id: 'job', until: 1 }, { $set: { until: 9 } }, { upsert: true })
      .catch((e: unknown) => e);
    expect(updated).toMatchObject({ code: 11_000 });
    const asked = { insert: 'jobs', documents: [{ _id: 'job' }] };
    const { writeErrors } = await client.db('shop').command(asked);
    expect(writeErrors).toMatchObject([{ code: 11_000, keyPattern: { _id: 1 }, keyValue: { _id: 'job' } }]);
    expect(await jobs.findOne({})).toEqual({ _id: 'job', until: 5 });
  });

  test('names of commands in small letters, as drivers send them', async () => {
    const { db } = { db: client.db('shop') };
    for (const asked of [{ buildinfo: 1 }, { ismaster: 1 }, { isMaster: 1 }, { listcollections: 1 }, { connectionstatus: 1 }])
      expect(await db.command(asked)).toMatchObject({ ok: 1 });
    expect(
      await db.command({ findandmodify: 'jobs', query: { _id: 'job' }, update: { $set: { x: 1 } }, new: true }),
    ).toMatchObject({
      value: { _id: 'job', x: 1 },
    });
    expect(await errorOf(db.command({ BUILDINFO: 1 }))).toBe('59 CommandNotFound');
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
    ['an _id that changes', () => refused().updateOne({ _id: 'r' }, { $set: { _id: 'q' } } as object, { upsert: true }), '66'],
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

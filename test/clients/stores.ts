/** Programs of Python that keep values under keys, and documents. */
import type { Client } from './list.ts';

const python = '/usr/bin/python3';

const redis: Client = {
  name: 'redis-py',
  door: 'kv',
  package: 'python3-redis',
  probe: `${python} -c 'import redis'`,
  steps: ({ port, secret }) => [
    {
      name: 'values, expiry, a pipeline, fifty that count, a value that is too long, messages',
      script: `${python} - <<'END'
import redis, threading, time
who = dict(host='127.0.0.1', port=${port}, password='${secret}')
r = redis.Redis(decode_responses=True, **who)
print(r.ping(), r.set('greeting', 'hello', ex=100), r.get('greeting'), r.ttl('greeting') > 90, r.set('greeting', 'x', nx=True), r.exists('greeting', 'none'))
print(r.mset({'a': 1, 'b': 'zwei', 'c': 2.5}), r.mget('a', 'b', 'none', 'c'), r.append('b', '!'), r.strlen('b'), r.getset('b', 'drei'))
with r.pipeline(transaction=False) as p:
    p.incr('piped').incr('piped', 4).decr('piped', 2).get('piped').delete('piped').get('piped')
    print(p.execute())
def count():
    own = redis.Redis(**who)
    for _ in range(10):
        own.incr('hits')
threads = [threading.Thread(target=count) for _ in range(50)]
[t.start() for t in threads]
[t.join() for t in threads]
print(r.get('hits'), r.incrbyfloat('f', 0.1), r.incrbyfloat('f', 0.2))
r.set('k', 'v')
print(r.getex('k', exat=1), r.get('k'))
raw = redis.Redis(**who)
print(raw.set('bytes', bytes(range(256))), raw.get('bytes') == bytes(range(256)))
try:
    raw.set('long', b'x' * (17 << 20))
except redis.RedisError as e:
    print(type(e).__name__, str(e)[:60])
print(raw.set('after', 1), sorted(r.scan_iter(match='[abc]', count=2)))
p = r.pubsub()
p.subscribe('news')
p.get_message(timeout=5)
r.publish('news', 'first')
print([m['data'] for m in [p.get_message(timeout=5)]])
try:
    r.incr('b')
except redis.ResponseError as e:
    print(e)
END`,
      prints:
        /True True hello True None 1\nTrue \['1', 'zwei', None, '2\.5'\] 5 5 zwei!\n\[1, 5, 3, '3', 1, None\]\n500 0\.1 0\.3\nv None\nTrue True\n\w+Error .*\nTrue \['a', 'b', 'c'\]\n\['first'\]\nvalue is not an integer or out of range\n/,
    },
  ],
};

const mongo: Client = {
  name: 'pymongo',
  door: 'document',
  package: 'python3-pymongo',
  probe: `${python} -c 'import pymongo'`,
  steps: ({ port, secret }) => [
    {
      name: 'documents in and out, in their order and of their kinds; upserts, bulk writes with an error, cursors, counts',
      script: `${python} - <<'END'
import datetime, pymongo
from bson import ObjectId, Decimal128, Int64, SON
from pymongo import MongoClient, InsertOne, UpdateOne, DeleteOne
from pymongo.errors import BulkWriteError, DuplicateKeyError, OperationFailure
m = MongoClient('mongodb://me:${secret}@127.0.0.1:${port}/annals')
print(m.admin.command('ping')['ok'], len(m.server_info()['version'].split('.')) >= 3)
c = m.annals.crate
at = datetime.datetime(2024, 5, 1, 12, 0, 0, 123000)
one = SON([('_id', 1), ('b', 1), ('2024', Int64(2**53 + 1)), ('a', Decimal128('0.1')), ('at', at), ('more', SON([('z', 1), ('10', [1, None])])), ('bin', b'\\\\x00\\\\xff')])
print(c.insert_one(one).inserted_id, list(c.find_one({'_id': 1}).keys()), c.find_one({'2024': Int64(2**53 + 1)}) == one.to_dict(), c.count_documents({'2024': Int64(2**53)}))
print(len(c.insert_many([{'n': i, 'tag': 'even' if i % 2 == 0 else 'odd'} for i in range(10)]).inserted_ids))
print(c.update_many({'tag': 'odd'}, {'$inc': {'n': 100}}).modified_count, c.update_one({'_id': 'job'}, {'$set': {'until': at}}, upsert=True).upserted_id)
print([d['n'] for d in c.find({'n': {'$gte': 100}}, {'_id': 0, 'n': 1}).sort('n', -1).skip(1).limit(2)], c.distinct('tag'))
print(sum(1 for _ in c.find({'n': {'$exists': True}}, batch_size=3)))
try:
    c.bulk_write([InsertOne({'_id': 2}), InsertOne({'_id': 1}), DeleteOne({'_id': 2})])
except BulkWriteError as e:
    print(e.details['nInserted'], e.details['writeErrors'][0]['code'], e.details['writeErrors'][0]['index'])
print(c.bulk_write([UpdateOne({'_id': 2}, {'$set': {'x': 1}}), DeleteOne({'_id': 2})], ordered=False).bulk_api_result['nRemoved'])
try:
    c.insert_one({'_id': 1})
except DuplicateKeyError as e:
    print(e.code)
try:
    c.delete_many({'a': {'$not': {}}})
except OperationFailure as e:
    print(e.code)
print(c.find_one_and_update({'_id': 1}, {'$set': {'b': 2}}, return_document=True)['b'], c.find_one_and_delete({'_id': 'job'})['_id'], c.delete_many({}).deleted_count, c.estimated_document_count())
print(list(m.annals.list_collection_names()))
END`,
      prints:
        /1(\.0)? True\n1 \['_id', 'b', '2024', 'a', 'at', 'more', 'bin'\] True 0\n10\n5 job\n\[107, 105\] \['even', 'odd'\]\n10\n1 11000 1\n1\n11000\n2\n2 job 11 0\n/,
    },
  ],
};

export const storeClients: readonly Client[] = [redis, mongo];

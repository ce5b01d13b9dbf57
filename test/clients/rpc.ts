/** Python's gRPC, which knows the door by what reflection tells of it. */
import type { Client, Place } from './list.ts';

/** Debian's, whatever other versions of Python come first on the PATH. */
const python = '/usr/bin/python3';

/** A channel, the methods of the door as its own description has them, and what an error carries. */
const described = ({ port, secret }: Place, text: string): string => `${python} - <<'END'
import json
import grpc
from google.protobuf import descriptor_pool, message_factory

def fields(data):
    at = 0
    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7
    while at < len(data):
        tag = varint()
        if tag & 7 != 2:
            yield tag >> 3, varint()
            continue
        size = varint()
        yield tag >> 3, data[at:at + size]
        at += size

def of(number, data):
    return next((value for found, value in fields(data) if found == number), b'')

channel = grpc.insecure_channel('127.0.0.1:${port}')
name = b'annals.v1.Annals'
reflection = channel.stream_stream('/grpc.reflection.v1.ServerReflection/ServerReflectionInfo')
told = next(iter(reflection(iter([bytes([0x22, len(name)]) + name]))))
pool = descriptor_pool.DescriptorPool()
for number, file in fields(of(4, told)):
    pool.AddSerializedFile(file)
classes = message_factory.MessageFactory(pool)

def message(name, **members):
    return classes.GetPrototype(pool.FindMessageTypeByName('annals.v1.' + name))(**members)

def method(name, kind='unary_unary'):
    output = pool.FindServiceByName('annals.v1.Annals').methods_by_name[name].output_type
    call = getattr(channel, kind)('/annals.v1.Annals/' + name, lambda request: request.SerializeToString(), classes.GetPrototype(output).FromString)
    return lambda request, **more: call(request, metadata=(('authorization', 'Bearer ${secret}'),), **more)

ask = method('Query', 'unary_stream')

def rows(sql, **more):
    parts = ask(message('QueryRequest', sql=sql, **more))
    return [[getattr(value, value.WhichOneof('kind')) if value.WhichOneof('kind') else None for value in row.values]
            for part in parts for row in part.rows.rows]

def refusal(error):
    details = dict(error.trailing_metadata())['grpc-status-details-bin']
    infos = [of(2, detail) for number, detail in fields(details) if number == 3 and of(1, detail).endswith(b'ErrorInfo')]
    return error.code().name, of(1, infos[0]).decode()

${text}
END`;

const grpcio: Client = {
  name: 'grpcio',
  door: 'grpc',
  package: 'python3-grpcio python3-protobuf',
  probe: `${python} -c 'import grpc, google.protobuf'`,
  steps: (place) => [
    {
      name: 'a type, a batch of rows in pieces, every kind of cell',
      script: described(
        place,
        `properties = dict(id='string', whole='integer', share='number', sure='boolean', at='timestamp', note='json', place=dict(type='vector', dims=2))
print(method('RegisterType')(message('RegisterTypeRequest', definition=json.dumps(dict(name='Mooring', primary_key='id', properties=properties)))).type)
lines = b'{"id":"m1","whole":9223372036854775807,"share":0.1,"sure":true,"at":1714521600123456789,"note":{"a":[1]},"place":[1,2.5]}\\n{"id":"m2"}\\n'
sent = [message('IngestRequest', head=message('IngestHead', type='Mooring', atomic=True)), message('IngestRequest', rows=lines[:50]), message('IngestRequest', rows=lines[50:])]
print(method('Ingest', 'stream_unary')(iter(sent)).accepted)
for id, whole, share, sure, at, note, where in rows('SELECT id, whole, share, sure, at, note, place FROM Mooring AS OF CURRENT ORDER BY id'):
    print(id, whole, share, sure, at, note, where and list(where.values))`,
      ),
      prints:
        /^Mooring\n2\nm1 9223372036854775807 0\.1 True 1714521600123456789 \{"a":\[1\]\} \[1\.0, 2\.5\]\nm2 None None None None None None\n$/,
    },
    {
      name: 'one channel for all: parameters, an error in the middle, and who is not known',
      script: described(
        place,
        `by_name = dict(named={'whole': message('Value', integer=9223372036854775807)})
print(rows('SELECT id FROM Mooring AS OF CURRENT WHERE whole = $whole', **by_name))
print(rows('SELECT id FROM Mooring AS OF CURRENT WHERE id = $1', positional=[message('Value', text='m2')]))
for failing in ['SELECT nothing FROM Mooring', 'SELECT']:
    try:
        rows(failing)
    except grpc.RpcError as error:
        print(*refusal(error))
print(rows('SELECT COUNT(*) AS n FROM Mooring AS OF CURRENT'))
try:
    list(channel.unary_stream('/annals.v1.Annals/Query')(b''))
except grpc.RpcError as error:
    print(error.code().name)`,
      ),
      prints: /^\[\['m1'\]\]\n\[\['m2'\]\]\n[A-Z_]+ REL_[A-Z_]+\nINVALID_ARGUMENT REL_PARSE\n\[\[2\]\]\nUNAUTHENTICATED\n$/,
    },
    {
      name: 'a cancelled question, one past its deadline, and the next',
      script: described(
        place,
        `endless = message('QueryRequest', sql='SELECT COUNT(*) AS n FROM Mooring a' + ''.join(', Mooring b%d' % i for i in range(30)))
running = ask(endless)
running.cancel()
try:
    list(running)
except grpc.RpcError as error:
    print(error.code().name)
try:
    list(ask(endless, timeout=1))
except grpc.RpcError as error:
    print(error.code().name)
print(rows('SELECT COUNT(*) AS n FROM Mooring AS OF CURRENT'))`,
      ),
      prints: /^CANCELLED\nDEADLINE_EXCEEDED\n\[\[2\]\]\n$/,
      seconds: 20,
    },
  ],
};

export const rpcClients: readonly Client[] = [grpcio];

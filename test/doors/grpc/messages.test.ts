/** What a gRPC door makes of an answer, and how much of it waits for a client that does not read. */
import { expect, test } from 'vitest';
import { UnsentMessages } from '../../../src/doors/grpc/unsent-messages.ts';
import { ProtobufMessage } from '../../../src/doors/grpc/protobuf.ts';
import { reflectable } from '../../../src/doors/grpc/reflection.ts';
import { loadProto } from '../../../src/doors/grpc/server.ts';
import { rowMessages } from '../../../src/doors/grpc/values.ts';
import { VectorBuilder } from '../../../src/log/values/vector-builder.ts';
import type { Answer } from '../../../src/planner/planner-contract.ts';

test('rows of long texts are few a message', () => {
  const builder = new VectorBuilder('string', 1_000);
  for (let i = 0; i < 1_000; i++) builder.appendString('x'.repeat(i < 500 ? 10 : 40_000));
  const answer = {
    columns: [{ name: 's', type: 'string' }],
    batches: [{ columns: [builder.build()], selection: null, first: 0, count: 1_000 }],
  } as unknown as Answer;
  const bytes = [...rowMessages(answer)].map((each) => each.bytes);
  expect(bytes.reduce((sum, each) => sum + each, 0)).toBe(500 * 10 + 500 * 40_000);
  expect(Math.max(...bytes)).toBeLessThan(65_536 + 40_000);
});

test('calls of one connection wait for room together, and those of another do not', async () => {
  const outboxes = new UnsentMessages();
  outboxes.add('a', 600_000);
  expect(outboxes.room('a')).toBeNull();
  outboxes.add('a', 600_000);
  let woken = 0;
  for (let i = 0; i < 3; i++) void outboxes.room('a')!.then(() => woken++);
  expect(outboxes.room('b')).toBeNull();
  await Promise.resolve();
  expect(woken).toBe(0);
  outboxes.remove('a', 600_000);
  await Promise.resolve();
  expect([woken, outboxes.room('a')]).toEqual([3, null]);
});

test('entries of a map are called as compilers demand where reflection tells of them', () => {
  const loaded = loadProto(new URL('../../../src/doors/grpc/', import.meta.url), 'annals.proto');
  const { fileDescriptorProtos } = reflectable(loaded)['annals.v1.QueryRequest'] as { readonly fileDescriptorProtos: Buffer[] };
  const [type] = new ProtobufMessage(fileDescriptorProtos[0]!).all(4).flatMap((each) => {
    const read = new ProtobufMessage(each);
    return read.text(1) === 'QueryRequest' ? [read] : [];
  });
  const named = type!.all(2).find((field) => new ProtobufMessage(field).text(1) === 'named');
  expect(type!.all(3).map((nested) => new ProtobufMessage(nested).text(1))).toEqual(['NamedEntry']);
  expect(new ProtobufMessage(named!).text(6)).toBe('NamedEntry');
});

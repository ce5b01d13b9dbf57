/** Messages of a call and of its connection that the client has not taken. */
import { Metadata } from '@grpc/grpc-js';
import { EventEmitter } from 'node:events';
import { expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { RpcCall, type RpcDependencies } from '../../../src/doors/grpc/call.ts';
import { UnsentMessages } from '../../../src/doors/grpc/unsent-messages.ts';
import { RpcConnections } from '../../../src/doors/grpc/connections.ts';
import type { SentMessage } from '../../../src/doors/grpc/values.ts';

const bytes = 600_000;

/** A client that takes a message when told to. */
class Client extends EventEmitter {
  readonly metadata = new Metadata();
  readonly untaken: (() => void)[] = [];
  made = 0;
  getPeer(): string {
    return '127.0.0.1:1';
  }
  write(_: unknown, taken: () => void): boolean {
    this.untaken.push(taken);
    return true;
  }
  *messages(count: number): Generator<SentMessage, void> {
    for (let i = 0; i < count; i++) {
      this.made++;
      yield { message: {}, bytes };
    }
  }
}

const settle = async (): Promise<void> => {
  for (let i = 0; i < 10; i++) await new Promise((resolve) => setImmediate(resolve));
};

test('messages are made while a MiB of their connection waits to be taken, whatever its calls', async () => {
  const parts = {
    clock: systemClock,
    yieldTurn: () => new Promise<void>((resolve) => setImmediate(resolve)),
    outboxes: new UnsentMessages(),
    endings: new RpcConnections(systemClock).endings,
    sending: new RpcConnections(systemClock).sending,
    ids: { next: () => 'a' },
  } as unknown as RpcDependencies;
  const send = (client: Client): Promise<void> =>
    new RpcCall(parts, 'grpc', client).sendAll(client.messages(3), { overtaken: () => false });
  const [first, second] = [new Client(), new Client()];
  const ends = [send(first)];
  await settle();
  ends.push(send(second));
  await settle();
  expect([first.made, second.made]).toEqual([2, 0]);
  for (const client of [first, first, first, second, second, second]) {
    client.untaken.shift()!();
    await settle();
  }
  await Promise.all(ends);
  expect([first.made, second.made]).toEqual([3, 3]);
  parts.outboxes.add('127.0.0.1:1', 0);
  parts.outboxes.remove('127.0.0.1:1', 0);
  // A call that is taken back frees what it held.
  const gone = send(first);
  await settle();
  expect(parts.outboxes.room('127.0.0.1:1')).not.toBeNull();
  first.emit('cancelled');
  await expect(gone).rejects.toMatchObject({ code: 'REL_CANCELLED' });
  expect(parts.outboxes.room('127.0.0.1:1')).toBeNull();
});

test('the end of a call that is answered cancels nothing, and that of one that is not does', () => {
  const parts = { endings: { next: (one: RpcCall) => one.work() }, ids: { next: () => 'a' } } as unknown as RpcDependencies;
  const [answered, open] = [new Client(), new Client()].map((client) => ({ client, call: new RpcCall(parts, 'grpc', client) }));
  answered!.call.end();
  for (const { client } of [answered!, open!]) client.emit('cancelled');
  expect([answered!.call.signal.aborted, open!.call.signal.aborted]).toEqual([false, true]);
});

test('a client that takes nothing for two minutes has its answer ended, and one that takes a little has not', async () => {
  let nowMs = 0;
  const clock = { ...systemClock, monotonicMs: () => nowMs, sleep: () => new Promise<void>((resolve) => setImmediate(resolve)) };
  const parts = {
    clock,
    authenticator: { renew: () => undefined },
    gate: { checkStanding: () => undefined },
    yieldTurn: () => new Promise<void>((resolve) => setImmediate(resolve)),
    outboxes: new UnsentMessages(),
    endings: new RpcConnections(systemClock).endings,
    sending: new RpcConnections(systemClock).sending,
    ids: { next: () => 'a' },
  } as unknown as RpcDependencies;
  const client = new Client();
  const call = new RpcCall(parts, 'grpc', client);
  Object.defineProperty(call, 'caller', { value: {} });
  let ended: unknown = null;
  const sent = call.sendAll(client.messages(4), { overtaken: () => false }).catch((error: unknown) => (ended = error));
  await settle();
  for (let i = 0; i < 2; i++) {
    nowMs += 100_000;
    client.untaken.shift()!();
    await settle();
    expect(ended).toBeNull();
  }
  nowMs += 120_000;
  await sent;
  expect(ended).toMatchObject({ code: 'REL_TIMEOUT' });
});

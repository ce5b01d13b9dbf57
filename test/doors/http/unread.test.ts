/** Clients that ask and don't read: one answer at a time waits for them, in both lanes, and not for ever. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { DoorWorld, emptyAnswer, goodToken } from './door-world.ts';

const answerBytes = 400_000;
const asked = 30;

/** Time passes only when the test says so; who sleeps is woken each time. */
class HeldClock {
  #ms = 0;
  #wakes: (() => void)[] = [];

  now = systemClock.now;
  monotonicMs = (): number => this.#ms;
  sleep = (_ms: number, signal?: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      this.#wakes.push(resolve);
      signal?.addEventListener('abort', () => resolve(), { once: true });
    });

  async pass(ms: number): Promise<void> {
    this.#ms += ms;
    for (const wake of this.#wakes.splice(0)) wake();
    await new Promise((resolve) => setImmediate(resolve));
  }
}

let world: DoorWorld;
let clock: HeldClock;
/** The server's end of the connection made last. */
let served: Socket;
const onServed = (message: unknown): void => void ({ socket: served } = message as { socket: Socket });
beforeEach(async () => {
  subscribe('net.server.socket', onServed);
  clock = new HeldClock();
  world = await new DoorWorld().open({ clock });
  world.answer = async () => ({ ...emptyAnswer, plan: 'x'.repeat(answerBytes) });
});
afterEach(async () => {
  served.destroy();
  unsubscribe('net.server.socket', onServed);
  await world.close();
});

const question = (target: string): string =>
  `POST ${target} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${goodToken}\r\ncontent-length: 16\r\n\r\n{"sql":"SELECT"}`;

describe.each([
  ['plain', '/query'],
  ['the framework’s', '/query?x=1'],
])('questions that are %s, sent in one go', (_, target) => {
  test('wait until the answer before them has been taken', async () => {
    const waiting: number[] = [];
    let running = 0;
    let most = 0;
    const { answer } = world;
    world.answer = async (request, invocation) => {
      waiting.push(served.writableLength);
      most = Math.max(most, ++running);
      await Promise.resolve();
      running--;
      return answer(request, invocation);
    };
    const client = connect(world.door.port, '127.0.0.1');
    let bytes = 0;
    const all = new Promise<void>((resolve) => {
      client.on('data', (chunk) => (bytes += chunk.length) > asked * answerBytes && resolve());
    });
    client.write(question(target).repeat(asked));
    await all;
    client.destroy();
    expect(waiting.length).toBe(asked);
    expect(most).toBe(1);
    expect(Math.max(...waiting)).toBeLessThanOrEqual(64 * 1024);
  });

  test('end with their connection when nothing is taken for two minutes', async () => {
    const client = connect(world.door.port, '127.0.0.1').pause();
    client.write(question(target).repeat(asked));
    await expect.poll(() => served.writableLength).toBeGreaterThan(64 * 1024);
    for (let s = 0; s < 119; s++) await clock.pass(1_000);
    expect(served.destroyed).toBe(false);
    for (let s = 0; s < 3; s++) await clock.pass(1_000);
    expect(served.destroyed).toBe(true);
    expect(world.questions.length).toBeLessThan(asked);
    client.destroy();
  });
});

test('a plain connection that waits for its client ends with its answer when the door closes', async () => {
  const client = connect(world.door.port, '127.0.0.1').pause();
  client.write(question('/query').repeat(asked));
  await expect.poll(() => served.writableLength).toBeGreaterThan(64 * 1024);
  const answered = world.questions.length;
  const stopped = world.close();
  let bytes = 0;
  await new Promise<void>((resolve) =>
    client
      .on('data', (chunk) => (bytes += chunk.length))
      .on('end', resolve)
      .resume(),
  );
  await stopped;
  expect(world.questions.length).toBe(answered);
  expect(bytes).toBeGreaterThan(answered * answerBytes);
});

test('of thousands of requests that wait for one answer most wait in their socket, and go on behind it', async () => {
  const sent = 2_000;
  let answer = (): void => undefined;
  world.answer = () => new Promise((resolve) => (answer = () => resolve(emptyAnswer)));
  const client = connect(world.door.port, '127.0.0.1').on('error', () => undefined);
  let text = '';
  const replies = (): number => text.split('HTTP/1.1 ').length - 1;
  const all = new Promise<void>((resolve) => {
    client.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
      if (replies() === sent + 1) resolve();
    });
  });
  client.write(question('/query?x=1') + 'GET /a HTTP/1.1\r\nhost:\r\n\r\n'.repeat(sent));
  await expect.poll(() => served.isPaused(), { timeout: 60_000 }).toBe(true);
  expect([world.questions.length, replies()]).toEqual([1, 0]);
  answer();
  await all;
  client.destroy();
});

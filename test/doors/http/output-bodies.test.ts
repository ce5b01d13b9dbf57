/** What the door alone decides about bodies that take their time: heartbeats, late failures, slow and lost readers. */
import { type ClientRequest, type IncomingMessage, request as httpRequest } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { ServiceError } from '../../../src/errors.ts';
import type { Answer, OutputBatch } from '../../../src/planner/planner-contract.ts';
import { DoorWorld, emptyAnswer, goodToken } from './door-world.ts';

let world: DoorWorld;
/** What the time between heartbeats takes here: a moment, or so long that none comes. */
let beatMs = 10;
beforeAll(async () => {
  const clock = {
    ...systemClock,
    sleep: (ms: number, signal?: AbortSignal) => systemClock.sleep(ms === 500 ? beatMs : ms, signal),
  };
  world = await new DoorWorld().open({ clock });
});
afterAll(() => world.close());
beforeEach(() => {
  beatMs = 10;
  world.recordFailure = null;
  world.lines.length = 0;
  world.records.length = 0;
  world.questions.length = 0;
});

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const marker = 424_242;

function answerOf(batches: readonly OutputBatch[]): Answer {
  const rowCount = batches.length * 4;
  return { ...emptyAnswer, columns: [{ name: 'n', type: 'integer' }], batches, rowCount };
}

const batch: OutputBatch = {
  columns: [{ kind: 'i32', values: Int32Array.of(marker, 1, 2, 3), nulls: null }],
  selection: null,
  first: 0,
  count: 4,
};

const stream = () => world.call('POST', '/query/stream', { sql: 'SELECT 1' });

describe('POST /query/stream', () => {
  test('says that it runs, and nothing else, until the answer is there', async () => {
    world.answer = async () => {
      await pause(80);
      return answerOf([batch]);
    };
    const { status, text } = await stream();
    expect(status).toBe(200);
    const blocks = text.split('\n\n');
    const beats = blocks.filter((block) => block === ': running').length;
    expect(beats).toBeGreaterThan(1);
    expect(blocks.slice(0, beats)).toEqual(Array.from({ length: beats }, () => ': running'));
    expect(blocks.slice(beats).map((block) => block.split('\n')[0])).toEqual(['event: schema', 'event: rows', 'event: end', '']);
    await pause(50);
    expect(world.lines).toEqual([]);
  });

  test('a failure before the first heartbeat is a problem record, a later one an event of the same content', async () => {
    const failure = new ServiceError('REL_TIMEOUT', 'too slow');
    world.answer = () => Promise.reject(failure);
    beatMs = 60_000;
    const early = await stream();
    beatMs = 10;
    expect([early.status, early.headers['content-type']]).toEqual([408, 'application/problem+json']);
    world.answer = () => pause(50).then(() => Promise.reject(failure));
    const late = await stream();
    expect(late.status).toBe(200);
    const [event, data] = late.text.split('\n\n').at(-2)!.split('\n');
    expect(event).toBe('event: error');
    const problem = JSON.parse(data!.replace('data: ', '')) as Record<string, unknown>;
    expect({ ...problem, correlation_id: '' }).toEqual({ ...early.json, correlation_id: '' });
    expect(late.text).not.toContain('event: end');
  });

  test('a bug of ours is told by its correlation id only', async () => {
    world.answer = () => pause(50).then(() => Promise.reject(new Error('secret detail')));
    const { text } = await stream();
    expect(text).not.toContain('secret');
    const [line] = world.lines;
    expect(line).toMatchObject({ event: 'internal error', route: '/query/stream' });
    expect(text).toContain(`"correlation_id":"${line!.correlationId}"`);
  });

  test('rows that can not be written end in an error event', async () => {
    const broken = { ...batch, columns: [] };
    world.answer = async () => answerOf([batch, broken]);
    const { text } = await stream();
    expect(text.split('\n\n').map((block) => block.split('\n')[0])).toEqual(['event: schema', 'event: rows', 'event: error', '']);
  });
});

const outputs: readonly (readonly [string, string])[] = [
  ['POST', '/query/stream'],
  ['POST', '/query/arrow'],
  ...['csv', 'json', 'ndjson', 'arrow', 'parquet'].map((format) => ['GET', `/export?sql=x&format=${format}`] as const),
];

describe.each(outputs)('%s %s', (method, path) => {
  const body = method === 'POST' ? { sql: 'x' } : undefined;

  test('lets nothing out when the access record can not be written', async () => {
    world.recordFailure = new ServiceError('REL_UNAVAILABLE', 'the log refuses');
    for (const ms of [0, 40]) {
      beatMs = ms === 0 ? 60_000 : 10;
      world.answer = () => pause(ms).then(() => answerOf([batch]));
      const reply = await world.call(method, path, body);
      expect(reply.text).not.toContain(String(marker));
      expect(reply.text).toContain('REL_UNAVAILABLE');
      if (ms === 0) expect(reply.status).toBe(503);
    }
  });

  test('encodes no more than a slow reader takes, and stops when it goes', async () => {
    let touched = 0;
    const wide: OutputBatch = {
      columns: [{ kind: 'i32', values: Int32Array.from({ length: 8_192 }, (_, i) => Math.imul(i + 1, 0x9e3779b1)), nulls: null }],
      selection: null,
      first: 0,
      count: 8_192,
    };
    const batches = new Proxy(
      Array.from({ length: 4_000 }, () => wide),
      {
        get(target, name, receiver) {
          if (typeof name === 'string' && /^\d+$/.test(name)) touched++;
          return Reflect.get(target, name, receiver) as unknown;
        },
      },
    );
    world.answer = async () => answerOf(batches);
    const { request, response } = await open(method, path, body);
    response.pause();
    await expect.poll(() => touched).toBeGreaterThan(0);
    let seen = -1;
    for (let i = 0; i < 100 && seen !== touched; i++) {
      seen = touched;
      await pause(100);
    }
    // What waits fits the buffers of a connection, a few megabytes of the two hundred and more.
    expect(seen).toBe(touched);
    expect(touched).toBeLessThan(2_500);
    request.destroy();
    await pause(50);
    expect(touched - seen).toBeLessThan(50);
    expect(world.lines).toEqual([]);
  });

  test('a question whose client went away is aborted', async () => {
    const aborted = new Promise<void>((resolve) => {
      world.answer = ({ signal }) =>
        new Promise((_, reject) => {
          signal!.addEventListener('abort', () => {
            resolve();
            reject(new ServiceError('REL_CANCELLED', 'gone'));
          });
        });
    });
    const request = ask(method, path, body);
    request.on('error', () => undefined);
    await expect.poll(() => world.questions.length).toBe(1);
    request.destroy();
    await aborted;
  });
});

test.each(outputs.slice(1))(
  '%s %s that breaks off ends its connection, so that nobody takes a part for the whole',
  async (method, path) => {
    const failing = { ...batch, columns: [] };
    world.answer = async () => answerOf([...Array.from({ length: 20_000 }, () => batch), failing]);
    const { response } = await open(method, path, method === 'POST' ? { sql: 'x' } : undefined);
    response.resume();
    const ended = await new Promise<string>((resolve) => {
      response.on('end', () => resolve('end'));
      response.on('error', (error: Error & { code?: string }) => resolve(error.code ?? 'error'));
    });
    expect(ended).toBe('ECONNRESET');
    expect(world.lines).toEqual([expect.objectContaining({ event: 'answer cut off' })]);
  },
);

function ask(method: string, path: string, body: object | undefined): ClientRequest {
  const headers = { authorization: `Bearer ${goodToken}` };
  const request = httpRequest({ port: world.door.port, method, path, headers });
  request.end(body === undefined ? undefined : JSON.stringify(body));
  return request;
}

function open(
  method: string,
  path: string,
  body: object | undefined,
): Promise<{ request: ClientRequest; response: IncomingMessage }> {
  const request = ask(method, path, body);
  return new Promise((resolve, reject) => {
    request.on('response', (response) => {
      response.on('error', () => undefined);
      resolve({ request, response });
    });
    request.on('error', reject);
  });
}

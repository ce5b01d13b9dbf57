/** Specification, "Ingest": five body forms, streamed, and what the reply says became of each row. */
import { request as httpRequest } from 'node:http';
import { Readable } from 'node:stream';
import { tableFromArrays, tableToIPC } from 'apache-arrow';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { ServiceError } from '../../../src/errors.ts';
import { exactJson } from '../../../src/doors/shared/write-exact-json.ts';
import { replyText } from '../../../src/doors/http/routes/ingest.ts';
import { cellAt } from '../../../src/log/values/vector-builder.ts';
import type { Command, PutRows } from '../../../src/projections/command.ts';
import { DoorWorld, goodToken, openType, type Reply } from './door-world.ts';

let world: DoorWorld;
beforeAll(async () => {
  world = await new DoorWorld().open();
  world.types.set('T', openType('T'));
});
afterAll(() => world.close());
beforeEach(() => {
  world.records.length = 0;
  world.commands.length = 0;
  world.submit = async () => ({});
});

const ingest = (body: string | Uint8Array, query = '', headers: Record<string, string> = {}) =>
  world.call('POST', `/ingest?object_type=T${query}`, body, headers);

const batches = (): PutRows[] => world.commands.map(({ command }) => command as PutRows);

const column = (batch: PutRows, name: string): unknown[] => {
  const found = batch.rows.columns.find((candidate) => candidate.name === name)!;
  return Array.from({ length: batch.rows.length }, (_, i) => cellAt(found.vector, found.type, i));
};

/** Sends a body of any length without holding it. */
function upload(path: string, chunks: Iterable<string>, headers: Record<string, string> = {}): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      { port: world.door.port, method: 'POST', path, headers: { authorization: `Bearer ${goodToken}`, ...headers } },
      (response) => {
        let text = '';
        response.on('data', (chunk: Buffer) => (text += chunk.toString('utf8')));
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text,
            json: JSON.parse(text) as Record<string, unknown>,
          }),
        );
      },
    );
    request.on('error', reject);
    Readable.from(chunks).pipe(request);
  });
}

describe('body forms', () => {
  test.each([
    ['NDJSON', '{"a":"x"}\n{"a":"y"}\n'],
    ['a JSON array', ' [{"a":"x"},\n{"a":"y"}] '],
    ['a wrapper object', '{"rows":[{"a":"x"},{"a":"y"}]}'],
    ['CSV', 'a\nx\ny\n'],
    ['an Arrow stream', tableToIPC(tableFromArrays({ a: ['x', 'y'] }), 'stream')],
  ])('%s is told by its first byte', async (_name, body) => {
    const reply = await ingest(body);
    expect(reply.json).toMatchObject({ type: 'T', accepted: 2, rejected: 0, errors: [] });
    expect(batches().map((batch) => [batch.type, batch.atomic, batch.createType, column(batch, 'a')])).toEqual([
      ['T', false, false, ['x', 'y']],
    ]);
  });

  test('CSV without a header takes its names and its word for NULL from the query string', async () => {
    await ingest('x,1\n\\N,2\n', '&columns=a,b&null_text=%5CN');
    expect(column(batches()[0]!, 'a')).toEqual(['x', null]);
  });

  test('an empty body writes nothing', async () => {
    const reply = await ingest('');
    expect([reply.status, reply.json]).toMatchObject([
      200,
      { accepted: 0, rejected: 0, system_from: null, system_from_last: null, ids: [] },
    ]);
    expect(world.commands).toEqual([]);
  });
});

describe('the reply', () => {
  test('has exact instants, ids and durability', async () => {
    world.submit = async () => ({
      systemFrom: 9007199254740993n,
      systemFromLast: 9223372036854775807n,
      ids: ['k1', 'k2'],
      durability: 'buffered',
    });
    const { text, json } = await ingest('{"a":1}\n{"a":2}\n');
    expect(text).toContain('"system_from":9007199254740993,"system_from_last":9223372036854775807');
    expect(json).toMatchObject({ ids: ['k1', 'k2'], truncated: false, durability: 'buffered' });
  });

  test('places rejected rows by their index in the body, whoever rejected them', async () => {
    // Row 1 can't be read; of the rows that can, the store rejects the second, which is row 2 of the body.
    world.submit = async () => ({
      accepted: 2,
      rejected: 1,
      errors: [{ index: 1, code: 'REL_REQUIRED', detail: 'a is required' }],
    });
    const { json } = await ingest('{"a":1}\n[]\n{"a":2}\n{"a":3}\n');
    expect(json).toMatchObject({ accepted: 2, rejected: 2 });
    expect((json['errors'] as { index: number }[]).map((error) => error.index)).toEqual([1, 2]);
  });

  test('keeps to its caps and says so', async () => {
    world.submit = async (command: Command) => ({
      ids: Array.from({ length: (command as PutRows).rows.length }, (_, i) => `k${i}`),
    });
    const { json } = await ingest('{"a":1}\n'.repeat(1500));
    expect([(json['ids'] as string[]).length, json['truncated'], json['accepted']]).toEqual([1000, true, 1500]);
    const broken = await ingest('{"a":1}\n[]\n'.repeat(1500));
    expect([(broken.json['errors'] as unknown[]).length, broken.json['rejected'], broken.json['truncated']]).toEqual([
      1000,
      1500,
      true,
    ]);
  });

  test('counts its rows in the access record', async () => {
    await ingest('{"a":1}\n{"a":2}\n');
    expect(world.records.map((record) => [record.request.action, record.facts.objectType, record.facts.rowCount])).toEqual([
      ['ingest', 'T', 2],
    ]);
  });
});

describe('types', () => {
  test('an unregistered type is 404, and its body is not parsed', async () => {
    const reply = await world.call('POST', '/ingest?object_type=U', 'not,even\n"csv');
    expect([reply.status, reply.json['type'], world.commands.length]).toEqual([404, 'urn:test:errors/REL_UNKNOWN_TYPE', 0]);
  });

  test('/ingest/auto makes the type', async () => {
    const reply = await world.call('POST', '/ingest/auto?object_type=U', '{"a":1}');
    expect(reply.status).toBe(200);
    expect(batches()[0]).toMatchObject({ type: 'U', createType: true });
  });

  test('object_type is required', async () => {
    const reply = await world.call('POST', '/ingest', '{"a":1}');
    expect([reply.status, reply.json['detail']]).toEqual([400, expect.stringMatching(/^object_type: /)]);
  });
});

describe('streaming', () => {
  function* lines(count: number): Generator<string> {
    const block = Array.from({ length: 1000 }, (_, i) => `{"a":${i},"text":"${'x'.repeat(80)}"}\n`).join('');
    for (let i = 0; i < count; i += 1000) yield block;
  }

  test('a body far over the body limit is taken batch by batch, in order', async () => {
    const rows = 30_000;
    const reply = await upload('/ingest?object_type=T', lines(rows));
    expect(reply.json).toMatchObject({ accepted: rows, rejected: 0 });
    expect(batches().length).toBeGreaterThan(5);
    expect(batches().flatMap((batch) => column(batch, 'a'))).toEqual(Array.from({ length: rows }, (_, i) => BigInt(i % 1000)));
  });

  test('/ingest/bulk takes larger batches under a key, and the usual ones otherwise', async () => {
    await upload('/ingest?object_type=T', lines(30_000));
    const usual = batches().length;
    await upload('/ingest/bulk?object_type=T', lines(30_000), { 'idempotency-key': 'k' });
    const keyed = batches().length - usual;
    expect(keyed).toBeLessThan(0.9 * usual);
    await upload('/ingest/bulk?object_type=T', lines(30_000));
    expect(batches().length - usual - keyed).toBe(usual);
  });

  test('only a few batches wait for their acknowledgement at once', async () => {
    let waiting = 0;
    let most = 0;
    world.submit = async () => {
      most = Math.max(most, ++waiting);
      // Longer than a batch takes to be read, on a busy machine too.
      await new Promise((resolve) => setTimeout(resolve, 100));
      waiting--;
      return {};
    };
    await upload('/ingest?object_type=T', lines(60_000));
    expect(most).toBeGreaterThan(1);
    expect(most).toBeLessThanOrEqual(4);
  });

  test('an error on the way says what was written before it', async () => {
    let submitted = 0;
    world.submit = async () => {
      if (++submitted > 2) throw new ServiceError('REL_STORAGE_CAP', 'the storage cap is reached');
      return { systemFrom: BigInt(submitted), systemFromLast: BigInt(submitted) };
    };
    const reply = await upload('/ingest?object_type=T', lines(60_000));
    expect([reply.status, reply.json['type']]).toEqual([402, 'urn:test:errors/REL_STORAGE_CAP']);
    expect(reply.json).toMatchObject({
      accepted: expect.any(Number) as unknown,
      rejected: 0,
      system_from: 1,
      system_from_last: 2,
      durability: 'synced',
    });
    expect(reply.json['accepted']).toBeGreaterThan(0);
  });

  test('an error before the first row is an ordinary problem', async () => {
    world.submit = async () => {
      throw new ServiceError('REL_STORAGE_CAP', 'the storage cap is reached');
    };
    const reply = await ingest('{"a":1}\n');
    expect(reply.status).toBe(402);
    expect(reply.json).not.toHaveProperty('accepted');
  });

  test('a client that goes away leaves a record of what it wrote', async () => {
    const request = httpRequest({
      port: world.door.port,
      method: 'POST',
      path: '/ingest?object_type=T',
      headers: { authorization: `Bearer ${goodToken}` },
    });
    request.on('error', () => undefined);
    for (const block of lines(20_000)) request.write(block);
    await expect.poll(() => world.commands.length).toBeGreaterThan(0);
    request.destroy();
    await expect.poll(() => world.records.map((record) => record.code)).toEqual(['REL_CANCELLED']);
  });
});

describe('atomic=true', () => {
  test('is one command, however many rows', async () => {
    const reply = await ingest('{"a":1}\n'.repeat(10_000), '&atomic=true');
    expect(reply.json).toMatchObject({ accepted: 10_000 });
    expect(batches().map((batch) => [batch.atomic, batch.rows.length])).toEqual([[true, 10_000]]);
  });

  test('one row that can’t be read refuses all of them, and names it', async () => {
    const reply = await ingest('{"a":1}\n[]\n{"a":2}\n', '&atomic=true');
    expect([reply.status, reply.json['detail'], world.commands.length]).toEqual([400, expect.stringMatching(/^row 1: /), 0]);
  });

  test('over the body limit is 413, and nothing is written', async () => {
    const reply = await ingest('{"a":1}\n'.repeat(140_000), '&atomic=true');
    expect([reply.status, reply.json['type'], world.commands.length]).toEqual([413, 'urn:test:errors/REL_TOO_LARGE', 0]);
  });

  test('takes true, false, 1, 0 and nothing else', async () => {
    for (const [value, atomic] of [
      ['true', true],
      ['1', true],
      ['', true],
      ['false', false],
      ['0', false],
    ] as const) {
      world.commands.length = 0;
      await ingest('{"a":1}\n', `&atomic=${value}`);
      expect(batches()[0]?.atomic).toBe(atomic);
    }
    expect((await ingest('{"a":1}\n', '&atomic=maybe')).status).toBe(400);
  });
});

test('writes the reply to one row as it writes every other', () => {
  const reply = {
    type: 'Reading',
    accepted: 1,
    rejected: 0,
    errors: [],
    system_from: 9_223_372_036_854_775_807n,
    system_from_last: 9_223_372_036_854_775_807n,
    ids: ['a "key"\n\u2028 é'],
    truncated: false,
    durability: 'synced',
  } as const;
  for (const each of [
    reply,
    { ...reply, durability: 'buffered', truncated: true } as const,
    { ...reply, ids: ['a', 'b'], accepted: 2 },
  ])
    expect(replyText(each)).toBe(exactJson(each));
});

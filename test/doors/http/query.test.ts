/** Specification, "Query" and "Result envelopes", as far as the door writes them. */
import { request as httpRequest } from 'node:http';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { OutputColumn } from '../../../src/planner/planner-contract.ts';
import { VectorBuilder } from '../../../src/log/values/vector-builder.ts';
import type { Cell } from '../../../src/log/values/value.ts';
import type { Answer } from '../../../src/planner/planner-contract.ts';
import { DoorWorld, emptyAnswer, goodToken } from './door-world.ts';

let world: DoorWorld;
beforeAll(async () => {
  world = await new DoorWorld().open();
});
afterAll(() => world.close());
beforeEach(() => {
  world.questions.length = 0;
  world.records.length = 0;
});

const ask = (body: object = { sql: 'SELECT 1' }) => world.call('POST', '/query', body);

function answerOf(columns: readonly OutputColumn[], rows: readonly (readonly Cell[])[], more: Partial<Answer> = {}): Answer {
  const builders = columns.map((column) => new VectorBuilder(column.type));
  for (const row of rows) row.forEach((cell, i) => builders[i]!.append(cell));
  const batch = { columns: builders.map((builder) => builder.build()), selection: null, first: 0, count: rows.length };
  return { ...emptyAnswer, columns, batches: [batch], rowCount: rows.length, estimatedTotalHits: rows.length, ...more };
}

describe('POST /query', () => {
  test('hands the statement on as it is', async () => {
    const sql = `SELECT *\n FROM "T" -- "quoted" \u{1f642} \\ \u0000`;
    await ask({ sql });
    expect(world.questions[0]?.sql).toBe(sql);
  });

  test('facets keep the order of their values and every digit, whatever the values are called', async () => {
    const facets = {
      counts: new Map([
        [
          'n',
          new Map([
            ['10', 3],
            ['9', 2],
            ['__proto__', 1],
          ]),
        ],
        ['city "x"', new Map<string, number>()],
      ]),
      stats: new Map([['n', { min: 9n, max: 9_223_372_036_854_775_807n, sum: 9_007_199_254_740_993n, avg: 9.5, count: 5 }]]),
    };
    world.answer = async () => answerOf([{ name: 'id', type: 'string' }], [['a']], { facets });
    const { text, json } = await ask();
    expect(text).toContain(
      '"facets":{"n":{"10":3,"9":2,"__proto__":1},"city \\"x\\"":{}},' +
        '"facetStats":{"n":{"min":9,"max":9223372036854775807,"sum":9007199254740993,"avg":9.5,"count":5}}',
    );
    expect(Object.keys(json)).toEqual(expect.arrayContaining(['facets', 'facetStats']));
    world.answer = async () => answerOf([{ name: 'id', type: 'string' }], [['a']]);
    expect((await ask()).text).not.toContain('facet');
  });

  test('answers with the envelope of the specification', async () => {
    const columns = [
      { name: 'id', type: 'string' },
      { name: 'n', type: 'number' },
    ] as const;
    world.answer = async () =>
      answerOf(
        columns,
        [
          ['a', 1.5],
          ['b', null],
        ],
        { costUnits: 2, estimatedTotalHits: 9, asOfSystem: 1_700_000_000_000_000_001n },
      );
    const reply = await ask();
    expect(reply.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(reply.text).toContain('"as_of_system":1700000000000000001');
    expect(reply.json).toEqual({
      rows: [
        { id: 'a', n: 1.5 },
        { id: 'b', n: null },
      ],
      row_count: 2,
      cost_units: 2,
      columns: ['id', 'n'],
      processing_time_ms: 0.5,
      elapsed_ms: 0.5,
      estimatedTotalHits: 9,
      as_of_system: expect.any(Number) as unknown,
    });
  });

  test('writes every i64 as its exact digits', async () => {
    const extremes = [9223372036854775807n, -9223372036854775808n, 9007199254740993n, -9007199254740993n, 0n];
    world.answer = async () =>
      answerOf(
        [{ name: 'n', type: 'integer' }],
        extremes.map((value) => [value]),
        { asOfSystem: 9223372036854775807n },
      );
    const { text } = await ask();
    expect(text).toContain(`"rows":[${extremes.map((value) => `{"n":${value}}`).join(',')}]`);
    expect(text).toContain('"as_of_system":9223372036854775807');
  });

  test('carries cursors, provenance and plans when there are any', async () => {
    world.answer = async () => ({
      ...emptyAnswer,
      cursor: '1700000000000000001',
      nextCursor: 'opaque',
      provenance: [{ source: 's', method: 'm', confidence: 0.5, recordedAt: 9007199254740993n, derivedFrom: null }],
      plan: 'Project\n  Scan\n',
      actualRows: 3,
    });
    const { text, json } = await ask();
    expect(json).toMatchObject({
      cursor: '1700000000000000001',
      next_cursor: 'opaque',
      plan: ['Project', '  Scan'],
      actual_rows: 3,
    });
    expect(text).toContain('"recorded_at":9007199254740993,"derived_from":null');
    world.answer = async () => emptyAnswer;
    expect(Object.keys((await ask()).json)).toEqual([
      'rows',
      'row_count',
      'cost_units',
      'columns',
      'processing_time_ms',
      'elapsed_ms',
      'estimatedTotalHits',
      'as_of_system',
    ]);
  });

  test('column names that JSON must escape are escaped', async () => {
    world.answer = async () => answerOf([{ name: 'a"\\b\n', type: 'integer' }], [[1n]]);
    expect((await ask()).json).toMatchObject({ rows: [{ 'a"\\b\n': 1 }], columns: ['a"\\b\n'] });
  });

  test('takes both spellings of typo_tolerance and ignores fields it does not know', async () => {
    for (const more of [{ typo_tolerance: { enabled: true } }, { typoTolerance: {} }, { unknown: 1 }]) {
      expect((await ask({ sql: 'SELECT 1', ...more })).status).toBe(200);
    }
  });

  test('a branch is named by field, parameter or header, and they agree', async () => {
    const branchOf = async (path: string, field?: string, header?: string): Promise<unknown> => {
      const body = { sql: 'SELECT 1', ...(field === undefined ? {} : { branch: field }) };
      const reply = await world.call('POST', path, body, header === undefined ? {} : { 'x-service-branch': header });
      return reply.status === 200 ? world.records.at(-1)!.caller.branch : reply.json['type'];
    };
    expect(await branchOf('/query')).toBe('main');
    expect(await branchOf('/query', 'dev')).toBe('dev');
    expect(await branchOf('/query?branch=dev')).toBe('dev');
    expect(await branchOf('/query', undefined, 'dev')).toBe('dev');
    expect(await branchOf('/query?branch=d%C3%A9v', 'dév', Buffer.from('dév').toString('latin1'))).toBe('dév');
    for (const [path, field, header] of [
      ['/query?branch=dev', 'other', undefined],
      ['/query?branch=dev', undefined, 'other'],
      ['/query', 'dev', 'other'],
      ['/query?branch=dev&branch=other', undefined, undefined],
      ['/query?branch=dev', 'dev', 'main'],
    ] as const) {
      expect(await branchOf(path, field, header)).toBe('urn:test:errors/REL_INVALID');
      expect(world.records.at(-1)!.code).toBe('REL_INVALID');
    }
  });
});

/** What the last pieces were made in must not be taken for pieces that wait. */
const collectGarbage = (): void => {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
};

describe('large answers', () => {
  const count = 300_000;
  const large = (): Answer =>
    answerOf(
      [{ name: 'n', type: 'integer' }],
      Array.from({ length: count }, (_, i) => [BigInt(i)]),
    );

  test('leave in pieces and arrive whole', async () => {
    world.answer = async () => large();
    const reply = await ask();
    expect(reply.headers['transfer-encoding']).toBe('chunked');
    const rows = reply.json['rows'] as { n: number }[];
    expect([rows.length, rows[0]?.n, rows.at(-1)?.n, reply.json['row_count']]).toEqual([count, 0, count - 1, count]);
  });

  test('wait for a slow reader instead of piling up', async () => {
    world.answer = async () => large();
    collectGarbage();
    const before = process.memoryUsage().arrayBuffers;
    const readers = await Promise.all(
      Array.from(
        { length: 8 },
        () =>
          new Promise<{ close: () => void }>((resolve, reject) => {
            const request = httpRequest(
              { port: world.door.port, method: 'POST', path: '/query', headers: { authorization: `Bearer ${goodToken}` } },
              (response) => {
                response.pause();
                resolve({ close: () => request.destroy() });
              },
            );
            request.on('error', reject);
            request.end('{"sql":"SELECT 1"}');
          }),
      ),
    );
    await new Promise((resolve) => setTimeout(resolve, 200));
    // Eight answers are about 27 MB of text; what waits in each connection is a fraction of its own. Memory is given back
    // some time after it was collected.
    const held = (): number => {
      collectGarbage();
      return process.memoryUsage().arrayBuffers - before;
    };
    await expect.poll(held, { timeout: 20_000, interval: 200 }).toBeLessThan(24_000_000);
    for (const reader of readers) reader.close();
  });
});

describe('a client that goes away', () => {
  test('aborts its query', async () => {
    const aborted = new Promise<void>((resolve) => {
      world.answer = ({ signal }) =>
        new Promise((_, reject) => {
          signal!.addEventListener('abort', () => {
            resolve();
            reject(new Error('aborted'));
          });
        });
    });
    const request = httpRequest({
      port: world.door.port,
      method: 'POST',
      path: '/query',
      headers: { authorization: `Bearer ${goodToken}` },
    });
    request.on('error', () => undefined);
    request.end('{"sql":"SELECT 1"}');
    await expect.poll(() => world.questions.length).toBe(1);
    request.destroy();
    await aborted;
  }, 5_000);

  test('one that stays does not', async () => {
    world.answer = async () => emptyAnswer;
    await ask();
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(world.questions[0]?.signal?.aborted).toBe(false);
  });
});

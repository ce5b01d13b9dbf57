/** What ends a query early, and what it must never do meanwhile: hold the event loop, keep the store's arrays. */
import { describe, expect, test } from 'vitest';
import type { Clock } from '../../../src/clock.ts';
import { ServiceError } from '../../../src/errors.ts';
import type { RowBlock } from '../../../src/projections/access-paths.ts';
import type { GovernedSnapshot } from '../../../src/governance/gate-contract.ts';
import type { PlannerLimits } from '../../../src/planner/planner-options.ts';
import { Planner } from '../../../src/planner/planner.ts';
import { FakeStore, type Row, rowsOf } from '../fake-snapshot.ts';

const rows: Row[] = Array.from({ length: 1_000 }, (_, i) => ({ n: BigInt(i % 700), text: `row ${i}` }));

/** Each look at the clock costs `stepMs`. */
class SteppingClock implements Clock {
  #ms = 0;
  readonly #stepMs: number;

  constructor(stepMs: number) {
    this.#stepMs = stepMs;
  }

  now = (): bigint => 0n;
  sleep = (): Promise<void> => Promise.resolve();
  monotonicMs = (): number => (this.#ms += this.#stepMs);
}

interface World {
  readonly stepMs?: number;
  readonly limits?: Partial<PlannerLimits>;
  readonly onYield?: (turn: number) => void;
}

function world({ stepMs = 0, limits = {}, onYield }: World): { planner: Planner; store: FakeStore; turns: () => number } {
  let turns = 0;
  const store = new FakeStore([{ name: 'T', properties: { n: 'integer', text: 'string' }, rows, blockRows: 10 }]);
  const yieldTurn = async (): Promise<void> => onYield?.(++turns);
  return { planner: new Planner({ clock: new SteppingClock(stepMs), limits, yieldTurn }), store, turns: () => turns };
}

async function refusal(answer: Promise<unknown>): Promise<string> {
  try {
    await answer;
  } catch (error) {
    if (error instanceof ServiceError) return error.code;
    throw error;
  }
  return 'answered';
}

const statements = [
  'SELECT * FROM T',
  'SELECT n, COUNT(*) FROM T GROUP BY n',
  'SELECT DISTINCT text FROM T',
  'SELECT text FROM T ORDER BY n DESC',
  'SELECT text FROM T WHERE n = 9999 LIMIT 5',
];

describe.each(statements)('%s', (sql) => {
  test('ends with REL_TIMEOUT once its time is over, whatever it is doing', async () => {
    const { planner, store } = world({ stepMs: 3, limits: { timeoutMs: 200 } });
    expect(await refusal(planner.query(store.invocation(), { sql }))).toBe('REL_TIMEOUT');
  });

  test('gives others a turn every millisecond or two', async () => {
    const { planner, store, turns } = world({ stepMs: 1, onYield: () => undefined });
    await planner.query(store.invocation(), { sql });
    expect(turns()).toBeGreaterThan(30);
  });

  test('stops at the next turn after its caller has gone', async () => {
    const controller = new AbortController();
    const { planner, store, turns } = world({ stepMs: 1, onYield: (turn) => turn === 3 && controller.abort() });
    const answer = planner.query(store.invocation(), { sql, signal: controller.signal });
    expect(await refusal(answer)).toBe('REL_CANCELLED');
    expect(turns()).toBe(3);
  });

  test('does not start for a caller that has gone already', async () => {
    const { planner, store } = world({});
    expect(await refusal(planner.query(store.invocation(), { sql, signal: AbortSignal.abort() }))).toBe('REL_CANCELLED');
  });

  test('ends with REL_SCAN_CAP when it looks at more rows than one query may', async () => {
    const { planner, store } = world({ limits: { scannedRowsMax: 999 } });
    expect(await refusal(planner.query(store.invocation(), { sql }))).toBe('REL_SCAN_CAP');
    const enough = world({ limits: { scannedRowsMax: 1_000 } });
    expect(await refusal(enough.planner.query(enough.store.invocation(), { sql }))).toBe('answered');
  });

  test('lets go of the store, also when it fails', async () => {
    const { planner, store } = world({ limits: { scannedRowsMax: 500 } });
    const snapshot = store.snapshot();
    let closed = 0;
    const watched: GovernedSnapshot = {
      ...snapshot,
      rows: {
        ...snapshot.rows,
        scan: (request) => {
          const blocks = snapshot.rows.scan(request);
          return {
            next: () => blocks.next(),
            return: () => {
              closed++;
              return { done: true, value: undefined };
            },
          };
        },
      },
    };
    await refusal(planner.query({ ...store.invocation(), snapshot: () => watched }, { sql }));
    expect(closed).toBe(1);
  });
});

test('more rows than SERVICE_MAX_RESULT_ROWS end with REL_RESULT_CAP, as many are answered', async () => {
  const { planner, store } = world({ limits: { resultRowsMax: 700 } });
  expect(await refusal(planner.query(store.invocation(), { sql: 'SELECT n FROM T' }))).toBe('REL_RESULT_CAP');
  expect(await refusal(planner.query(store.invocation(), { sql: 'SELECT n FROM T LIMIT 700' }))).toBe('answered');
  expect(await refusal(planner.query(store.invocation(), { sql: 'SELECT DISTINCT n FROM T' }))).toBe('answered');
});

test.each([
  'SELECT * FROM T',
  'SELECT text, COUNT(*) FROM T GROUP BY text',
  'SELECT DISTINCT text FROM T',
  'SELECT text FROM T ORDER BY text',
])('%s ends with REL_MEMORY_CAP at the ceiling of one query', async (sql) => {
  const { planner, store } = world({ limits: { memoryBytesMax: 4_000 } });
  expect(await refusal(planner.query(store.invocation(), { sql }))).toBe('REL_MEMORY_CAP');
  const enough = world({ limits: { memoryBytesMax: 4_000_000 } });
  expect(await refusal(enough.planner.query(enough.store.invocation(), { sql }))).toBe('answered');
});

test('ORDER BY with LIMIT holds few rows, however many there are', async () => {
  const many = Array.from({ length: 60_000 }, (_, i): Row => ({ n: BigInt((i * 7919) % 60_000), text: 'x'.repeat(50) }));
  const store = new FakeStore([{ name: 'T', properties: { n: 'integer', text: 'string' }, rows: many, blockRows: 1_000 }]);
  const { planner } = world({ limits: { memoryBytesMax: 1_500_000 } });
  const answer = await planner.query(store.invocation(), { sql: 'SELECT n, text FROM T ORDER BY n LIMIT 3' });
  expect(rowsOf(answer).map(({ n }) => n)).toEqual([0n, 1n, 2n]);
  expect(answer.estimatedTotalHits).toBe(60_000);
});

test('an answer keeps nothing of the store: its arrays may change the moment the query ends', async () => {
  const { planner, store } = world({});
  const snapshot = store.snapshot();
  const blocks: RowBlock[] = [];
  const watched: GovernedSnapshot = {
    ...snapshot,
    rows: {
      ...snapshot.rows,
      *scan(request) {
        for (const block of { [Symbol.iterator]: () => snapshot.rows.scan(request) }) {
          blocks.push(block);
          yield block;
        }
      },
    },
  };
  const answer = await planner.query(
    { ...store.invocation(), snapshot: () => watched },
    { sql: 'SELECT n, text, system_from FROM T' },
  );
  const before = JSON.stringify(rowsOf(answer), (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value));
  for (const block of blocks) {
    for (const column of block.columns) {
      if (column.kind === 'i64') column.values.fill(0n);
      else if ('values' in column) column.values.fill(0);
      if (column.kind === 'text') column.heap.fill(0x3f);
    }
  }
  expect(JSON.stringify(rowsOf(answer), (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))).toBe(before);
});

describe('dear conditions and columns', () => {
  const conditions = Array.from({ length: 1_000 }, (_, i) => `{"a":${-1 - i}}`).join(',');
  const dear = `DOCUMENT_MATCHES(CAST(CONCAT('{"a":', CAST(n AS TEXT), '}') AS JSON), '{"$nor":[${conditions}]}')`;
  const batch = (timeoutMs: number) => {
    let turns = 0;
    const store = new FakeStore([{ name: 'T', properties: { n: 'integer', text: 'string' }, rows, blockRows: 1_000 }]);
    const yieldTurn = async (): Promise<void> => void turns++;
    const planner = new Planner({ clock: new SteppingClock(3), limits: { timeoutMs }, yieldTurn });
    return { planner, store, turns: () => turns };
  };

  test.each([
    `SELECT COUNT(*) AS c FROM T WHERE ${dear}`,
    `SELECT n, ${dear} AS x, ${dear} AS y FROM T`,
    `SELECT COUNT(*) AS c FROM T a JOIN T b ON a.n = b.n AND ${dear.replaceAll('n AS', 'b.n AS')}`,
    `SELECT COUNT(*) AS c FROM T WHERE LPAD(text, 100000, 'ab') LIKE '%x_y%' OR text IS NOT NULL`,
  ])('give others turns within one batch, and a deadline ends them there: %#', async (sql) => {
    const whole = batch(3_600_000);
    await whole.planner.query(whole.store.invocation(), { sql, dialect: 'wide' });
    expect(whole.turns()).toBeGreaterThan(20);
    const { planner, store, turns } = batch(15);
    expect(await refusal(planner.query(store.invocation(), { sql, dialect: 'wide' }))).toBe('REL_TIMEOUT');
    expect(turns()).toBeLessThan(whole.turns() / 2);
  });

  test('yield the rows that they yield in one go', async () => {
    const { planner, store } = batch(3_600_000);
    const sql = `SELECT n, LENGTH(LPAD(text, n * 100, 'ab')) AS l FROM T WHERE LPAD(text, 5000, 'x') LIKE '%row_%7%' AND LENGTH(text) > 4`;
    const answer = await planner.query(store.invocation(), { sql, dialect: 'wide' });
    const found = rows.filter(({ text }) => /row .*7/.test(String(text)) && String(text).length > 4);
    expect(rowsOf(answer)).toEqual(found.map(({ n }) => ({ n, l: (n as bigint) * 100n })));
  });
});

test.each([
  ['SELECT text FROM T LIMIT 0', 1_000],
  ['SELECT text FROM T ORDER BY n LIMIT 0', 1_000],
  ['SELECT text FROM T WHERE n >= 600 ORDER BY n DESC, text LIMIT 0 OFFSET 3', 100],
  ['SELECT DISTINCT n FROM T ORDER BY n LIMIT 0', 700],
  ['SELECT n, COUNT(*) AS c FROM T GROUP BY n ORDER BY c LIMIT 0', 700],
  ["SELECT text, _score FROM T WHERE MATCH(text, 'row') ORDER BY _score DESC LIMIT 0", 1_000],
])('%s counts the matching set', async (sql, hits) => {
  const { planner, store } = world({});
  const answer = await planner.query(store.invocation(), { sql, dialect: 'wide' });
  expect([answer.rowCount, answer.estimatedTotalHits]).toEqual([0, hits]);
});

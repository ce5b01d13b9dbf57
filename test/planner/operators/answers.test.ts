/** Whole questions beside a naive reading: groups, order, distinct rows, pages, and the edges of exact arithmetic. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { ServiceError } from '../../../src/errors.ts';
import type { InvocationDetails } from '../../../src/governance/gate-contract.ts';
import { type Cell, compareText, I64_MAX, I64_MIN } from '../../../src/log/values/value.ts';
import { Planner } from '../../../src/planner/planner.ts';
import { FakeStore, type FakeType, type Row, rowsOf, tuplesOf } from '../fake-snapshot.ts';
import { columns, randomRows } from '../execution/random-expressions.ts';
import { whole } from '../../runner/turn.ts';

const planner = new Planner({ clock: systemClock });
const numRuns = Number(process.env['ANNALS_RUNS'] ?? (whole ? 400 : 50));

function storeOf(rows: readonly Row[], more: Partial<FakeType> = {}): FakeStore {
  const dictionaries = { color: 'shared', shade: 'per segment' } as const;
  return new FakeStore([{ name: 'T', properties: columns, rows, dictionaries, segmentRows: 5, blockRows: 3, ...more }]);
}

async function ask(store: FakeStore, sql: string): Promise<Cell[][]> {
  return tuplesOf(await planner.query(store.invocation(), { sql }));
}

async function refusal(store: FakeStore, sql: string): Promise<string> {
  try {
    await planner.query(store.invocation(), { sql });
  } catch (error) {
    if (error instanceof ServiceError) return `${error.code} ${error.message}`;
    throw error;
  }
  return 'answered';
}

const keyColumns = ['small', 'large', 'mixed', 'ratio', 'label', 'color', 'shade', 'flag', 'seen', 'never'] as const;

describe('GROUP BY', () => {
  test('gives each combination of keys once, in order of appearance, with what its rows add up to', async () => {
    await fc.assert(
      fc.asyncProperty(randomRows, fc.uniqueArray(fc.constantFrom(...keyColumns), { maxLength: 3 }), async (rows, keys) => {
        const groups = new Map<string, Row[]>();
        for (const row of rows) {
          const key = keys.map((name) => `${typeof row[name]}${String(row[name] === 0 ? 0 : row[name])}`).join('|');
          const group = groups.get(key) ?? [];
          groups.set(key, group);
          group.push(row);
        }
        const select = [
          ...keys,
          'COUNT(*)',
          'COUNT(large)',
          'SUM(small)',
          'AVG(small)',
          'MIN(large)',
          'MAX(mixed)',
          'MIN(ratio)',
          'MAX(label)',
          'MIN(shade)',
          'MAX(seen)',
          'COUNT(DISTINCT color)',
          'COUNT(DISTINCT large)',
        ];
        const by = keys.length > 0 ? ` GROUP BY ${keys.join(', ')}` : '';
        const expected = [...groups.values()].map((group) => [
          ...keys.map((name) => group[0]![name]!),
          BigInt(group.length),
          BigInt(present(group, 'large').length),
          present(group, 'small').length === 0 ? null : (present(group, 'small') as bigint[]).reduce((a, b) => a + b),
          present(group, 'small').length === 0
            ? null
            : Number((present(group, 'small') as bigint[]).reduce((a, b) => a + b)) / present(group, 'small').length,
          extreme(group, 'large', -1),
          extreme(group, 'mixed', 1),
          extreme(group, 'ratio', -1),
          extreme(group, 'label', 1),
          extreme(group, 'shade', -1),
          extreme(group, 'seen', 1),
          BigInt(new Set(present(group, 'color')).size),
          BigInt(new Set(present(group, 'large')).size),
        ]);
        expect(unsigned(await ask(storeOf(rows), `SELECT ${select.join(', ')} FROM T${by}`))).toEqual(unsigned(expected));
      }),
      { numRuns },
    );
  });

  test('without rows there are no groups, and without GROUP BY there is one', async () => {
    const store = storeOf([]);
    expect(await ask(store, 'SELECT small, COUNT(*) FROM T GROUP BY small')).toEqual([]);
    expect(await ask(store, 'SELECT COUNT(*), SUM(small), MIN(label), AVG(ratio) FROM T')).toEqual([[0n, null, null, null]]);
  });

  test('an expression of the projection is the key when it says the same, by value and not by place', async () => {
    const store = storeOf([{ small: 5n }, { small: 6n }, { small: 15n }]);
    expect(await ask(store, 'SELECT small % 10 AS digit, COUNT(*) FROM T GROUP BY small % 10')).toEqual([
      [5n, 2n],
      [6n, 1n],
    ]);
    // One template, other values: the first plan may not serve it.
    expect(await refusal(store, 'SELECT small % 10 AS digit, COUNT(*) FROM T GROUP BY small % 5')).toContain('REL_INVALID');
    expect(await ask(store, 'SELECT small % 5 AS digit, COUNT(*) FROM T GROUP BY digit')).toEqual([
      [0n, 2n],
      [1n, 1n],
    ]);
  });

  test('tells thousands of keys apart', async () => {
    const rows = Array.from(
      { length: 12_000 },
      (_, i): Row => ({ label: `text ${i % 3_000}`, large: BigInt(i % 3_000) * 10n ** 13n, ratio: (i % 3_000) / 7 }),
    );
    const store = storeOf(rows, { segmentRows: 5_000, blockRows: 1_000 });
    for (const key of ['label', 'large', 'ratio']) {
      const groups = await ask(store, `SELECT ${key}, COUNT(*) FROM T GROUP BY ${key}`);
      expect(groups).toEqual(rows.slice(0, 3_000).map((row) => [row[key]!, 4n]));
    }
    expect(await ask(store, 'SELECT COUNT(DISTINCT label), COUNT(DISTINCT large), COUNT(DISTINCT ratio) FROM T')).toEqual([
      [3_000n, 3_000n, 3_000n],
    ]);
    expect(await ask(store, 'SELECT label, large FROM T GROUP BY label, large')).toHaveLength(3_000);
  });

  test('HAVING on keys and on results', async () => {
    const store = storeOf([{ small: 1n }, { small: 2n }, { small: 2n }, { small: 3n }, { small: 3n }]);
    const sql = 'SELECT small FROM T GROUP BY small HAVING small > 1 AND COUNT(*) > 1 AND small != 3';
    expect(await ask(store, sql)).toEqual([[2n]]);
  });
});

describe('sums of integers', () => {
  test('are exact where doubles are not, and across layouts', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.bigInt({ min: I64_MIN / 64n, max: I64_MAX / 64n }), { minLength: 1, maxLength: 60 }),
        async (values) => {
          const rows = values.map((value, i): Row => ({ large: i % 3 === 0 ? value : value % 1000n }));
          const sum = rows.reduce((total, row) => total + (row['large'] as bigint), 0n);
          expect(await ask(storeOf(rows), 'SELECT SUM(large) FROM T')).toEqual([[sum]]);
        },
      ),
      { numRuns },
    );
  });

  test('go through extremes and come back', async () => {
    const rows = [I64_MAX, I64_MAX, I64_MIN, I64_MIN, 5n].map((large) => ({ large }));
    expect(await ask(storeOf(rows), 'SELECT SUM(large) FROM T')).toEqual([[3n]]);
  });

  test('are refused beyond 64 bits, never changed', async () => {
    const rows = [{ large: I64_MAX }, { large: 1n }];
    expect(await refusal(storeOf(rows), 'SELECT SUM(large) FROM T')).toMatch(/^REL_INVALID integer overflow/);
    expect(await refusal(storeOf(rows), 'SELECT large + 1 FROM T')).toMatch(/^REL_INVALID integer overflow/);
    expect(await refusal(storeOf([{ ratio: 1e308 }, { ratio: 1e308 }]), 'SELECT SUM(ratio) FROM T')).toMatch(
      /^REL_INVALID number overflow/,
    );
  });
});

describe('ORDER BY', () => {
  const sortable = ['small', 'large', 'mixed', 'ratio', 'label', 'color', 'shade', 'seen', 'flag'] as const;

  test('sorts by every key, NULL last both ways, ties by _pk and then by age', async () => {
    const keys = fc.array(fc.record({ name: fc.constantFrom(...sortable), descending: fc.boolean() }), {
      minLength: 1,
      maxLength: 3,
    });
    const limits = fc.option(fc.integer({ min: 0, max: 20 }));
    await fc.assert(
      fc.asyncProperty(randomRows, keys, limits, async (plain, order, limit) => {
        const rows = plain.map((row, i): Row => ({ ...row, _pk: `k${(i * 5) % 3}` }));
        const by = order.map(({ name, descending }) => `${name}${descending ? ' DESC' : ''}`).join(', ');
        const sorted = rows
          .map((row, i) => ({ row, i }))
          .sort((a, b) => {
            for (const { name, descending } of order) {
              const difference = ordered(a.row[name]!, b.row[name]!, descending);
              if (difference !== 0) return difference;
            }
            return compareText(String(a.row['_pk']), String(b.row['_pk'])) || a.i - b.i;
          })
          .map(({ i }) => [BigInt(1000 + i)]);
        const sql = `SELECT system_from FROM T ORDER BY ${by}${limit === null ? '' : ` LIMIT ${limit}`}`;
        expect(await ask(storeOf(rows), sql)).toEqual(sorted.slice(0, limit ?? sorted.length));
      }),
      { numRuns },
    );
  });

  test('with LIMIT over many rows is the beginning of the whole order', async () => {
    const rows = Array.from(
      { length: 20_000 },
      (_, i): Row => ({
        small: i % 11 === 0 ? null : BigInt((i * 7_919) % 1_000),
        label: `w${(i * 31) % 977}`,
        color: `c${i % 50}`,
        ratio: i % 3,
        large: BigInt((i * 104_729) % 20_011) * 10n ** 12n,
      }),
    );
    const store = storeOf(rows, { segmentRows: 4_096, blockRows: 512 });
    for (const by of [
      'small',
      'small DESC',
      'label DESC, small',
      'color, label',
      'large DESC',
      'label COLLATE UNICODE',
      'ratio',
      'ratio DESC',
    ]) {
      const whole = await ask(store, `SELECT system_from FROM T ORDER BY ${by}`);
      expect(await ask(store, `SELECT system_from FROM T ORDER BY ${by} LIMIT 37`)).toEqual(whole.slice(0, 37));
    }
  });
});

test('DISTINCT keeps the first of equal rows', async () => {
  await fc.assert(
    fc.asyncProperty(
      randomRows,
      fc.uniqueArray(fc.constantFrom(...keyColumns), { minLength: 1, maxLength: 3 }),
      async (rows, names) => {
        const seen = new Set<string>();
        const expected = rows
          .map((row) => names.map((name) => row[name]!))
          .filter((tuple) => {
            const key = tuple.map((cell) => `${typeof cell}${String(cell)}`).join('|');
            return !seen.has(key) && seen.add(key);
          });
        expect(unsigned(await ask(storeOf(rows), `SELECT DISTINCT ${names.join(', ')} FROM T`))).toEqual(unsigned(expected));
      },
    ),
    { numRuns },
  );
});

test('64-bit integers compare by all their bits', async () => {
  const base = 2n ** 60n;
  const values = [base, base + 1n, base + 2n ** 31n, base + 2n ** 32n - 1n, base + 2n ** 32n, -base, -base + 2n ** 31n];
  const store = storeOf(
    values.map((large) => ({ large })),
    { segmentRows: 20 },
  );
  for (const [op, holds] of [
    ['<', (a: bigint, b: bigint) => a < b],
    ['>=', (a: bigint, b: bigint) => a >= b],
    ['=', (a: bigint, b: bigint) => a === b],
    ['!=', (a: bigint, b: bigint) => a !== b],
  ] as const) {
    for (const bound of values) {
      const expected = values.filter((value) => holds(value, bound)).map((value) => [value]);
      expect(await ask(store, `SELECT large FROM T WHERE large ${op} ${bound}`)).toEqual(expected);
    }
  }
});

describe('pages', () => {
  const rows = Array.from({ length: 57 }, (_, i): Row => ({ small: BigInt(i), flag: i % 3 !== 0 }));

  test.each(['cursor', 'nextCursor'] as const)('by %s make up the whole, without gap or duplicate', async (kind) => {
    const store = storeOf(rows);
    const whole = await ask(store, 'SELECT small FROM T WHERE flag');
    const pages: Cell[][] = [];
    let after = '';
    for (;;) {
      const answer = await planner.query(store.invocation(), { sql: `SELECT small FROM T WHERE flag LIMIT 5${after}` });
      pages.push(...tuplesOf(answer));
      if (answer[kind] === null) break;
      after = ` AFTER '${answer[kind]}'`;
    }
    expect(pages).toEqual(whole);
  });

  test('an answer that ends with its page has no cursor', async () => {
    expect((await planner.query(storeOf(rows).invocation(), { sql: 'SELECT small FROM T LIMIT 57' })).cursor).toBeNull();
    expect((await planner.query(storeOf(rows).invocation(), { sql: 'SELECT small FROM T LIMIT 56' })).cursor).toBe('1055');
  });

  test('by next_cursor stay with their snapshot: later versions are left out, later closings undone', async () => {
    const first = storeOf(rows.map((row, i) => ({ ...row, system_from: BigInt(100 + i) })));
    first.instant = 500n;
    const page = await planner.query(first.invocation(), { sql: 'SELECT small, system_to FROM T LIMIT 50' });
    // Since then, row 52 was closed and another version written.
    const later = storeOf([
      ...rows.map((row, i) => ({ ...row, system_from: BigInt(100 + i), ...(i === 52 ? { system_to: 600n } : {}) })),
      { small: 999n, flag: true, system_from: 600n },
    ]);
    later.instant = 700n;
    const rest = await planner.query(later.invocation(), {
      sql: `SELECT small, system_to FROM T LIMIT 50 AFTER '${page.nextCursor}'`,
    });
    expect(tuplesOf(rest)).toEqual([50n, 51n, 52n, 53n, 54n, 55n, 56n].map((n) => [n, I64_MAX]));
    expect(rest.asOfSystem).toBe(500n);
    const live = `SELECT small FROM T WHERE system_to = ${I64_MAX} AND small > 51 LIMIT 50 AFTER '${page.nextCursor}'`;
    expect((await planner.query(later.invocation(), { sql: live })).rowCount).toBe(5);
  });

  test('of a cursor that is none, or from the future, are refused', async () => {
    const store = storeOf(rows);
    expect(await refusal(store, "SELECT small FROM T LIMIT 5 AFTER 'nonsense'")).toContain('REL_INVALID 1:35');
    const ahead = await planner.query(store.invocation(), { sql: 'SELECT small FROM T LIMIT 5' });
    store.instant = 5n;
    expect(await refusal(store, `SELECT small FROM T LIMIT 5 AFTER '${ahead.nextCursor}'`)).toContain('later instant');
    expect(await refusal(store, "SELECT small FROM T ORDER BY small LIMIT 5 AFTER '1'")).toMatch(/^REL_(INVALID|PARSE)/);
  });
});

describe('estimatedTotalHits', () => {
  const rows = Array.from({ length: 3_000 }, (_, i): Row => ({ small: BigInt(i % 10), label: 'x' }));

  test.each([
    ['SELECT small FROM T WHERE small = 3 LIMIT 7', 300],
    ['SELECT small FROM T LIMIT 7', 3_000],
    ['SELECT small FROM T LIMIT 0', 3_000],
    ['SELECT small FROM T ORDER BY small LIMIT 7', 3_000],
    ['SELECT DISTINCT small FROM T LIMIT 7', 10],
    ['SELECT small, COUNT(*) FROM T GROUP BY small LIMIT 3', 10],
    ['SELECT small FROM T WHERE small < 2', 600],
  ])('%s: %i', async (sql, hits) => {
    const answer = await planner.query(storeOf(rows, { segmentRows: 700, blockRows: 64 }).invocation(), { sql });
    expect(answer.estimatedTotalHits).toBe(hits);
  });

  test('counts over the columns of the condition alone', async () => {
    const store = storeOf(rows, { segmentRows: 700, blockRows: 64 });
    await planner.query(store.invocation(), { sql: 'SELECT * FROM T WHERE small = 3 LIMIT 7' });
    expect(store.scans.map(({ columns: read }) => read.length)).toEqual([18, 1]);
  });
});

describe('what the gate is told', () => {
  async function facts(sql: string): Promise<InvocationDetails> {
    const told: InvocationDetails[] = [];
    const invocation = storeOf([{ small: 1n, label: 'secret' }]).invocation(told);
    await planner.query(invocation, { sql }).catch(() => undefined);
    return Object.assign({}, ...told) as InvocationDetails;
  }

  test('template, literals, type, purpose and rows', async () => {
    const sql = "PURPOSE 'audit' SELECT small FROM T WHERE label = 'secret'";
    expect(await facts(sql)).toMatchObject({
      objectType: 'T',
      purpose: 'audit',
      rowCount: 1,
      costUnits: 1,
      literals: ['audit', 'secret'],
    });
    expect((await facts(sql)).template).not.toContain('secret');
  });

  test('the type of a question that is refused, too', async () => {
    expect(await facts('SELECT nothing FROM T')).toMatchObject({ objectType: 'T' });
    expect(await facts("INSERT INTO T VALUES ('secret')")).toHaveProperty('template');
  });

  test('a PURPOSE that disagrees with the request is refused', async () => {
    const invocation = storeOf([]).invocation();
    const asked = planner.query(invocation, { sql: "PURPOSE 'a' SELECT small FROM T", purpose: 'b' });
    await expect(asked).rejects.toMatchObject({ code: 'REL_INVALID' });
  });
});

test('WITH PROVENANCE has one entry a row, in its order', async () => {
  const answer = await planner.query(storeOf([{ small: 3n }, { small: 2n }]).invocation(), {
    sql: 'SELECT small FROM T ORDER BY small WITH PROVENANCE',
  });
  expect(rowsOf(answer)).toEqual([{ small: 2n }, { small: 3n }]);
  expect(answer.provenance?.map(({ recordedAt }) => recordedAt)).toEqual([1001n, 1000n]);
});

test('literals that are equal in one statement may differ in the next of its template', async () => {
  const store = storeOf([{ small: 3n }, { small: 7n }]);
  expect(await ask(store, 'SELECT small FROM T WHERE small > 5 AND small < 5')).toEqual([]);
  expect(await ask(store, 'SELECT small FROM T WHERE small > 5 AND small < 9')).toEqual([[7n]]);
});

test('a plan is not reused once types or grants have changed', async () => {
  const store = storeOf([{ small: 1n }]);
  await ask(store, 'SELECT * FROM T');
  const other = new FakeStore([{ name: 'T', properties: { big: 'string' }, rows: [{ big: 'one' }] }]);
  other.ontologyVersion = 2;
  const answer = await planner.query(other.invocation(), { sql: 'SELECT * FROM T' });
  expect(answer.columns.slice(8)).toEqual([{ name: 'big', type: 'string' }]);
});

function present(rows: readonly Row[], name: string): Cell[] {
  return rows.map((row) => row[name]!).filter((cell) => cell !== null);
}

function extreme(rows: readonly Row[], name: string, sign: 1 | -1): Cell {
  return present(rows, name).reduce<Cell>(
    (best, cell) => (best === null || ordered(cell, best, sign < 0) > 0 ? cell : best),
    null,
  );
}

/** Below 0 where `a` comes first. */
function ordered(a: Cell, b: Cell, descending: boolean): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  const order = typeof a === 'string' ? compareText(a, String(b)) : a < b ? -1 : a > b ? 1 : 0;
  return descending ? -order : order;
}

function unsigned(tuples: readonly (readonly Cell[])[]): Cell[][] {
  return tuples.map((tuple) => tuple.map((cell) => (cell === 0 ? 0 : cell)));
}

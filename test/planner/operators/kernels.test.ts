/** Generated kernels beside a naive reading of the rules: any expression, any layout, the same rows and values. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { ServiceError } from '../../../src/errors.ts';
import { Planner } from '../../../src/planner/planner.ts';
import { FakeStore, type Row, tuplesOf } from '../fake-snapshot.ts';
import {
  columns,
  condition,
  integer,
  number,
  Overflow,
  type Random,
  randomRows,
  text,
  type Value,
} from '../execution/random-expressions.ts';
import { whole } from '../../runner/turn.ts';

const planner = new Planner({ clock: systemClock });
const runs = { numRuns: Number(process.env['ANNALS_RUNS'] ?? (whole ? 1_500 : 150)) };

function storeOf({ rows, segmentRows, blockRows }: { rows: readonly Row[]; segmentRows: number; blockRows: number }): FakeStore {
  const dictionaries = { color: 'shared', shade: 'per segment' } as const;
  return new FakeStore([{ name: 'T', properties: columns, rows, segmentRows, blockRows, dictionaries }]);
}

const tables = fc.record({
  rows: randomRows,
  segmentRows: fc.integer({ min: 1, max: 12 }),
  blockRows: fc.integer({ min: 1, max: 8 }),
});

async function ask(store: FakeStore, sql: string): Promise<unknown[][] | 'overflow'> {
  try {
    const tuples = tuplesOf(await planner.query(store.invocation(), { sql }));
    // Zero has no sign in the dialect.
    return tuples.map((tuple) => tuple.map((cell) => (cell === 0 ? 0 : cell)));
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'REL_INVALID' && error.message.includes('overflow')) return 'overflow';
    throw error;
  }
}

/** What the rules say of every row, or `overflow` when some row has none. */
function expected(rows: readonly Row[], of: (row: Row) => Value): Value[] | 'overflow' {
  try {
    return rows.map((row) => of(row));
  } catch (error) {
    if (error instanceof Overflow) return 'overflow';
    throw error;
  }
}

describe('a WHERE condition', () => {
  test('keeps the rows for which it is true, whatever the layout', async () => {
    await fc.assert(
      fc.asyncProperty(tables, condition, async (table, predicate) => {
        const { rows } = table;
        const store = storeOf(table);
        const answers = expected(rows, predicate.of);
        const got = await ask(store, `SELECT system_from FROM T WHERE ${predicate.sql}`);
        // A condition that fails on some row may be spared that row by another conjunct.
        if (answers === 'overflow') return;
        expect(got).toEqual(answers.flatMap((answer, i) => (answer === true ? [[BigInt(1000 + i)]] : [])));
      }),
      runs,
    );
  });

  test('and its opposite and its IS NULL part the rows among them', async () => {
    await fc.assert(
      fc.asyncProperty(tables, condition, async (table, { sql, of }) => {
        const { rows } = table;
        const store = storeOf(table);
        if (expected(rows, of) === 'overflow') return;
        const parts = await Promise.all(
          [sql, `NOT ${sql}`, `(${sql}) IS NULL`].map((where) => ask(store, `SELECT system_from FROM T WHERE ${where}`)),
        );
        expect(parts.flat().map(String).sort()).toEqual(rows.map((_, i) => String(1000 + i)).sort());
      }),
      { numRuns: Math.ceil(runs.numRuns / 3) },
    );
  });
});

describe('a projected expression', () => {
  const cases: [string, fc.Arbitrary<Random>][] = [
    ['of integers is exact', integer],
    ['of numbers is what doubles give', number],
    ['of text is the text', text],
    ['of truth values is true, false or NULL', condition],
  ];
  test.each(cases)('%s', async (_, expression) => {
    await fc.assert(
      fc.asyncProperty(tables, expression, async (table, { sql, of }) => {
        const { rows } = table;
        const store = storeOf(table);
        const answers = expected(rows, of);
        const got = await ask(store, `SELECT ${sql} AS x FROM T`);
        if (answers === 'overflow') expect(got).toBe('overflow');
        else expect(got).toEqual(answers.map((answer) => [answer === 0 ? 0 : answer]));
      }),
      { numRuns: Math.ceil(runs.numRuns / 2) },
    );
  });
});

describe('text that is written like code', () => {
  const hostile = ["'); process.exit(1); ('", '`${1}`', '\\', '"]; throw 1; //', '__proto__', 'constructor', '\u2028'];
  test.each(hostile)('%j is a value and a name, nothing else', async (word) => {
    const store = new FakeStore([{ name: 'T', properties: { [word]: 'string' }, rows: [{ [word]: word }, { [word]: 'x' }] }]);
    const name = `"${word.replaceAll('"', '""')}"`;
    const literal = `'${word.replaceAll("'", "''")}'`;
    const answer = await ask(store, `SELECT ${name}, ${literal} AS y FROM T WHERE ${name} = ${literal}`);
    expect(answer).toEqual([[word, word]]);
  });
});

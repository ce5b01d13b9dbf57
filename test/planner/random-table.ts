/**
 * A table `T` with a history, the same in every run, and random predicates over it: what the oracles ask about. Columns
 * hold NULLs, both zeros, the edges of integers and of text; keys are written, corrected for a span of time and deleted.
 */
import fc from 'fast-check';
import { formatInstant } from '../../src/log/values/timestamp.ts';
import { type Row, TestStore } from '../harness.ts';

const keys = 24;
const changes = 160;

export async function openRandomTable(): Promise<TestStore> {
  const store = await TestStore.open('2024-01-01');
  await store.register(
    'T',
    { k: 'string', i: 'integer', j: 'integer', x: 'number', s: 'string', b: 'boolean', t: 'timestamp' },
    'k',
  );
  await grow(store);
  // Time had stood still for the last writes: from here on the clock is ahead of all of them.
  store.clock.wallNs += 60_000_000_000n;
  return store;
}

/** A history of single and bulk writes, corrections with bounds, and deletions; the same in every run. */
async function grow(target: TestStore): Promise<void> {
  const [history] = fc.sample(fc.array(change, { minLength: changes, maxLength: changes }), { numRuns: 1, seed: 20240101 });
  for (const step of history!) {
    target.clock.wallNs += BigInt(step.minutes) * 60_000_000_000n;
    if (step.kind === 'delete') {
      if ((await target.column(`SELECT k FROM T AS OF CURRENT WHERE k = 'k${step.key}'`)).length > 0)
        await target.delete('T', [`k${step.key}`]);
      continue;
    }
    const bounds = step.bounds && {
      valid_from: formatInstant(target.clock.wallNs - BigInt(step.bounds.back) * 3_600_000_000_000n),
      ...(step.bounds.length > 0 && {
        valid_to: formatInstant(target.clock.wallNs + BigInt(step.bounds.length - step.bounds.back) * 3_600_000_000_000n),
      }),
    };
    await target.put(
      'T',
      step.rows.map((row) => ({ ...row, k: `k${row.k}`, ...bounds })),
    );
  }
}

const integer = fc.oneof(fc.integer({ min: -3, max: 3 }), fc.constantFrom(9007199254740993n, -9223372036854775808n, 2147483648));
const text = fc.constantFrom('', 'a', 'A', 'ab', 'b%', 'ä', 'z', '\u{1F600}', '\uffee');
export const instants = ['2024-01-01', '2024-01-02T03:04:05', '1969-12-31T23:59:59.999Z'] as const;
const instant = fc.constantFrom(...instants);
const orNull = <T>(value: fc.Arbitrary<T>) => fc.option(value, { freq: 4 });

const row = fc.record({
  k: fc.integer({ min: 0, max: keys - 1 }),
  i: orNull(integer),
  j: orNull(fc.integer({ min: -2, max: 2 })),
  x: orNull(fc.constantFrom(-1.5, -0, 0, 0.1, 2, 1e300)),
  s: orNull(text),
  b: orNull(fc.boolean()),
  t: orNull(instant),
});

const change = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('put' as const),
      minutes: fc.integer({ min: 0, max: 300 }),
      rows: fc.uniqueArray(row, { minLength: 1, maxLength: 6, selector: ({ k }) => k }),
      bounds: fc.option(fc.record({ back: fc.integer({ min: 0, max: 48 }), length: fc.integer({ min: 0, max: 24 }) }), {
        freq: 3,
      }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('delete' as const),
      minutes: fc.integer({ min: 0, max: 300 }),
      key: fc.integer({ min: 0, max: keys - 1 }),
    }),
  },
);

export const comparison = fc.constantFrom('=', '!=', '<', '<=', '>', '>=');
const quoted = (value: string) => `'${value.replaceAll("'", "''")}'`;

/** Predicates over the columns of T, with NULLs in every place. */
export const predicate = fc.letrec<{ bool: string; number: string }>((tie) => ({
  number: fc.oneof(
    { maxDepth: 2 },
    fc.constantFrom('i', 'j', 'x', 'NULL'),
    integer.map(String),
    fc.constantFrom('0.5', '-1.5', '1e300'),
    // Kept small, so that arithmetic never leaves 64 bits: an error would depend on which rows are evaluated.
    fc
      .tuple(fc.constantFrom('j', '2', '-1'), fc.constantFrom('+', '-', '*'), fc.constantFrom('j', '3'))
      .map((parts) => `(${parts.join(' ')})`),
  ),
  bool: fc.oneof(
    { maxDepth: 3 },
    fc.tuple(tie('number'), comparison, tie('number')).map((parts) => parts.join(' ')),
    fc.tuple(fc.constantFrom('s', 'k'), comparison, text.map(quoted)).map((parts) => parts.join(' ')),
    fc.tuple(comparison, instant.map(quoted)).map(([op, value]) => `t ${op} ${value}`),
    fc.constantFrom(
      'b',
      'b = TRUE',
      'b != FALSE',
      's = k',
      's IS NULL',
      'x IS NOT NULL',
      "s LIKE 'a%'",
      "s LIKE '%b\\%'",
      "s NOT LIKE '_'",
      "k LIKE 'k1%'",
      "k = 'k5'",
      "k IN ('k1', 'k7', 'nobody')",
      "_pk = 'k3'",
    ),
    fc
      .tuple(
        fc.constantFrom('i', 'j', 'x'),
        fc.constantFrom('IN', 'NOT IN'),
        fc.array(orNull(integer), { minLength: 1, maxLength: 12, size: 'max' }),
      )
      .map(([column, word, list]) => `${column} ${word} (${list.map((each) => each ?? 'NULL').join(', ')})`),
    fc
      .tuple(
        fc.constantFrom('s', 'k'),
        fc.constantFrom('IN', 'NOT IN'),
        fc.array(orNull(text), { minLength: 1, maxLength: 12, size: 'max' }),
      )
      .map(
        ([column, word, list]) => `${column} ${word} (${list.map((each) => (each === null ? 'NULL' : quoted(each))).join(', ')})`,
      ),
    fc
      .tuple(tie('number'), fc.constantFrom('BETWEEN', 'NOT BETWEEN'), tie('number'), tie('number'))
      .map(([v, word, low, high]) => `${v} ${word} ${low} AND ${high}`),
    fc
      .tuple(
        fc.constantFrom('valid_from', 'system_from', 'valid_to'),
        comparison,
        fc.constantFrom('now()', "now() - INTERVAL '5 days'", "'2024-01-09'"),
      )
      .map((parts) => parts.join(' ')),
    fc.tuple(tie('bool'), fc.constantFrom('AND', 'OR'), tie('bool')).map(([l, op, r]) => `(${l}) ${op} (${r})`),
    tie('bool').map((inner) => `NOT (${inner})`),
    fc.tuple(tie('bool'), tie('number')).map(([when, value]) => `CASE WHEN ${when} THEN ${value} ELSE j END > 0`),
  ),
})).bool;

export const asOf = fc.constantFrom('', '', ' AS OF CURRENT', " AS OF '2024-01-08'", " AS OF SYSTEM TIME '2024-01-08T12:00:00'");

export const shown = (rows: readonly Row[]) =>
  rows.map((each) =>
    JSON.stringify(each, (_, value: unknown) => (typeof value === 'bigint' ? `${value}n` : Object.is(value, -0) ? '-0' : value)),
  );
export const multiset = (...parts: readonly (readonly Row[])[]) => parts.flatMap(shown).toSorted();

/**
 * Partitioning by a predicate, its negation and its NULL (TLP), and counting with and without the filter (NoREC).
 */
import type { Cell } from '../../../src/log/values/value.ts';
import { rowsOf } from '../../harness.ts';
import { aggregateOf, anyType } from './expressions.ts';
import { boolean, differs, type Oracle, type OracleBench, type Probe, queryOf, select } from './oracle-bench.ts';
import { ourText } from './render.ts';
import type { StatementGenerator } from './statements.ts';
import type { BodyNode, ColumnNode, Expr, QueryNode, SelectNode } from './tree.ts';
import { shownCell } from './world.ts';

/** Where `p` holds, where its negation does, where neither is known. */
function partitioned(p: Expr): Expr[] {
  return [p, { ...boolean, kind: 'not', operand: p }, { ...boolean, kind: 'is-null', operand: p, negated: false }];
}

export function withWhere({ query }: Probe, where: Expr): QueryNode {
  return { ...query, body: { ...(query.body as SelectNode), where } };
}

function withHaving({ query }: Probe, having: Expr): QueryNode {
  return { ...query, body: { ...(query.body as SelectNode), having } };
}

/** Rows of a random source, without WHERE, and a predicate over them. */
export function overSource(
  generator: StatementGenerator,
  seed: number,
  items: (columns: readonly ColumnNode[], scope: ReturnType<StatementGenerator['source']>) => Expr[],
  parts: (columns: readonly Expr[]) => Partial<SelectNode> = () => ({}),
): Probe {
  const source = generator.source();
  const chosen = items(source.columns, source);
  const asOf = generator.features.asOf && generator.choices.chance(30) ? generator.asOf() : null;
  const query = queryOf(select(source.from, chosen, parts(chosen)), { asOf });
  return { kind: 'probe', query, predicate: generator.predicate(source.scope), seed };
}

export function someColumns(generator: StatementGenerator, columns: readonly ColumnNode[]): ColumnNode[] {
  return generator.choices.shuffled(columns).slice(0, generator.choices.between(1, 3));
}

async function parts(bench: OracleBench, probe: Probe, arm: typeof withWhere): Promise<string[][]> {
  await bench.shape(arm(probe, probe.predicate!));
  return Promise.all(partitioned(probe.predicate!).map((p) => bench.rows(ourText(arm(probe, p)))));
}

export const tlpRows: Oracle = {
  name: 'tlp rows',
  make: (generator, seed) => overSource(generator, seed, (columns) => someColumns(generator, columns)),
  check: async (bench, probe) => differs((await parts(bench, probe, withWhere)).flat(), await bench.rows(ourText(probe.query))),
};

export const tlpDistinct: Oracle = {
  name: 'tlp distinct',
  make: (generator, seed) =>
    overSource(
      generator,
      seed,
      (columns) => someColumns(generator, columns),
      () => ({ distinct: true }),
    ),
  check: async (bench, probe) => {
    const whole = await bench.rows(ourText(probe.query));
    return differs([...new Set((await parts(bench, probe, withWhere)).flat())], whole);
  },
};

const countAll: Expr = {
  kind: 'aggregate',
  function: 'count',
  operand: null,
  distinct: false,
  type: 'integer',
  size: 1e6,
  grain: 0,
};

export const tlpGroups: Oracle = {
  name: 'tlp group by',
  make: (generator, seed) =>
    overSource(
      generator,
      seed,
      (columns) => [countAll, ...someColumns(generator, columns)],
      (items) => ({ groupBy: items.slice(1) }),
    ),
  check: async (bench, probe) => {
    const added = new Map<string, bigint>();
    for (const row of (await parts(bench, probe, withWhere)).flat()) {
      const [count = '', ...key] = row.split(' | ');
      added.set(key.join(' | '), (added.get(key.join(' | ')) ?? 0n) + BigInt(count));
    }
    return differs(
      [...added].map(([key, n]) => `${n} | ${key}`),
      await bench.rows(ourText(probe.query)),
    );
  },
};

export const tlpHaving: Oracle = {
  name: 'tlp having',
  make: (generator, seed) => {
    const { from, scope, rows, columns } = generator.source();
    const keys = someColumns(generator, columns);
    const found = aggregateOf({ ...scope, subquery: null }, anyType(generator.choices), rows) ?? countAll;
    const query = queryOf(select(from, [...keys, found], { groupBy: keys }));
    return { kind: 'probe', query, predicate: generator.predicate({ ...scope, leaves: [...keys, found, countAll] }), seed };
  },
  check: async (bench, probe) => differs((await parts(bench, probe, withHaving)).flat(), await bench.rows(ourText(probe.query))),
};

export const tlpAggregates: Oracle = {
  name: 'tlp aggregates',
  make: (generator, seed) =>
    overSource(generator, seed, (_, { scope, rows }) => {
      const plain = { ...scope, subquery: null, distinctSums: false };
      const made = ['integer', 'number', 'string', 'timestamp', 'integer'] as const;
      const found = made.flatMap((type) => aggregateOf(plain, type, rows) ?? []);
      return [countAll, ...found.filter((each) => each.kind === 'aggregate' && each.function !== 'avg' && !each.distinct)];
    }),
  check: async (bench, probe) => {
    const ask = async (query: QueryNode) => rowsOf(await bench.answer(ourText(query)))[0]!;
    const items = (probe.query.body as SelectNode).items;
    const whole = await ask(probe.query);
    const pieces = await Promise.all(partitioned(probe.predicate!).map((p) => ask(withWhere(probe, p))));
    const merged = items.map(({ alias, expression }) => {
      const cells = pieces.map((piece) => piece[alias]!).filter((cell) => cell !== null);
      return cells.length === 0 ? null : cells.reduce<Cell>((a, b) => (a === null ? b : merge(expression, a, b)), null);
    });
    const line = (cells: readonly Cell[]) => [cells.map((cell, i) => shownCell(cell, items[i]!.expression.type)).join(' | ')];
    return differs(line(merged), line(items.map(({ alias }) => whole[alias]!)));
  },
};

function merge(expression: Expr, a: NonNullable<Cell>, b: Cell): Cell {
  if (expression.kind !== 'aggregate') return a;
  switch (expression.function) {
    case 'count':
    case 'sum':
      return typeof a === 'bigint' ? a + (b as bigint) : (a as number) + (b as number);
    case 'min':
      return before(a, b) ? a : b;
    default:
      return before(a, b) ? b : a;
  }
}

function before(a: NonNullable<Cell>, b: Cell): boolean {
  if (typeof a === 'string') return Buffer.compare(Buffer.from(a), Buffer.from(b as string)) < 0;
  return b !== null && a < b;
}

export const tlpUnionAll: Oracle = {
  name: 'tlp union all',
  make: (generator, seed) => overSource(generator, seed, (columns) => someColumns(generator, columns)),
  check: async (bench, probe) => {
    const [first, second, third] = partitioned(probe.predicate!).map((p) => withWhere(probe, p).body);
    const both: BodyNode = { kind: 'set-operation', op: 'union all', left: first!, right: second! };
    const together: QueryNode = { ...probe.query, body: { kind: 'set-operation', op: 'union all', left: both, right: third! } };
    await bench.shape(together);
    return differs(await bench.rows(ourText(together)), await bench.rows(ourText(probe.query)));
  },
};

export const norec: Oracle = {
  name: 'norec',
  make: (generator, seed) => overSource(generator, seed, () => [countAll]),
  check: async (bench, probe) => {
    const p = probe.predicate!;
    const one: Expr = { kind: 'literal', value: 1n, type: 'integer', size: 1, grain: 0 };
    const none: Expr = { ...one, value: 0n };
    const counted: Expr = {
      kind: 'case',
      operand: null,
      branches: [{ kind: 'branch', when: p, result: one }],
      otherwise: none,
      type: 'integer',
      size: 1,
      grain: 0,
    };
    const body = probe.query.body as SelectNode;
    const evaluated = { ...probe.query, body: select(body.from, [p]) };
    const summed = { ...probe.query, body: select(body.from, [{ ...countAll, function: 'sum' as const, operand: counted }]) };
    await bench.shape(withWhere(probe, p));
    const [kept] = await bench.rows(ourText(withWhere(probe, p)));
    const truths = (await bench.rows(ourText(evaluated))).filter((row) => row === '1').length;
    const [sum] = await bench.rows(ourText(summed));
    const wrong = kept !== String(truths) || (sum === 'NULL' ? '0' : sum) !== kept;
    return wrong ? `WHERE keeps ${kept}, the predicate is true for ${truths}, CASE counts ${sum}` : null;
  },
};

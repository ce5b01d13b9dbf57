/**
 * Answers checked against each other, so that no expected answer has to be written down. An oracle makes a probe (a query
 * and a predicate over its source) and says what is wrong with the answers to it.
 */
import { ServiceError } from '../../../src/errors.ts';
import type { Caller } from '../../../src/governance/caller.ts';
import type { Cell } from '../../../src/log/value.ts';
import type { Command } from '../../../src/projections/command.ts';
import { passes, Planner } from '../../../src/planner/planner.ts';
import type { Answer } from '../../../src/planner/planner-contract.ts';
import { analyst, type Row, rowsOf, TestStore } from '../../harness.ts';
import { valueIn } from './evaluate.ts';
import { aggregateOf, anyType } from './expressions.ts';
import { planShape } from './plan-shape.ts';
import { Choices } from './random.ts';
import { ourText, spelledOut } from './render.ts';
import { type Features, StatementGenerator } from './statements.ts';
import {
  type BodyNode,
  type ColumnNode,
  type Expr,
  type Facts,
  nodesOf,
  type QueryNode,
  type SelectNode,
  type SourceNode,
  totallyOrdered,
  type TreeNode,
} from './tree.ts';
import { openGovernedPair, openWorld, shownCell, type World } from './world.ts';

/** A tree that can be made small as a whole. */
export interface Probe extends TreeNode {
  readonly kind: 'probe';
  readonly query: QueryNode;
  readonly predicate: Expr | null;
  /** Everything that is left to chance while a probe is checked. */
  readonly seed: number;
}

export interface Oracle {
  readonly name: string;
  /** Later checks of the same world see what this one wrote. */
  readonly writes?: boolean;
  make(generator: StatementGenerator, seed: number): Probe;
  /** What is wrong; null where nothing is. */
  check(bench: OracleBench, probe: Probe): Promise<string | null>;
}

const boolean: Facts = { type: 'boolean', size: Number.POSITIVE_INFINITY, grain: Number.POSITIVE_INFINITY };

/** One world's store and the planners that are asked about it. */
export class OracleBench {
  readonly world: World;
  readonly store: TestStore;
  readonly features: Features;
  readonly shapes: Set<string>;
  /** Rows of each table as they are stored, for pivots. */
  readonly pivots = new Map<string, Row[]>();
  readonly remembered: { readonly sql: string; readonly rows: readonly string[]; readonly ordered: boolean }[] = [];
  asked = 0;
  forks = 0;
  #governed: Promise<{ mixed: TestStore; alone: TestStore }> | undefined;
  readonly #blocks: Planner;
  readonly #fewer: Planner[];

  private constructor(world: World, store: TestStore, features: Features, shapes: Set<string>) {
    this.world = world;
    this.store = store;
    this.features = features;
    this.shapes = shapes;
    const { clock } = store;
    const choices = new Choices(world.seed, 0xb1);
    this.#blocks = new Planner({ clock, limits: { blockRows: choices.of([1, 2, 3, 7, 64]) } });
    // Each one alone left out, each one alone, none but the first, and random sets. The first is no choice.
    const [first, ...rest] = passes;
    const sets = [
      [],
      ...rest.map((left) => rest.filter((pass) => pass !== left)),
      ...rest.map((pass) => [pass]),
      ...Array.from({ length: 2 }, () => rest.filter(() => choices.chance(50))),
    ];
    this.#fewer = sets.map((set) => new Planner({ clock, passes: [first!, ...set] }));
  }

  static async open(world: World, features: Features, shapes = new Set<string>()): Promise<OracleBench> {
    const bench = new OracleBench(world, await openWorld(world), features, shapes);
    for (const { name } of world.tables) bench.pivots.set(name, await bench.store.rows(`SELECT * FROM ${name}`));
    return bench;
  }

  async close(): Promise<void> {
    await this.store.close();
    const governed = await this.#governed;
    await governed?.mixed.close();
    await governed?.alone.close();
  }

  /** A store of several tenants, and one that holds the first tenant's rows only. */
  governed(): Promise<{ mixed: TestStore; alone: TestStore }> {
    return (this.#governed ??= openGovernedPair(this.world));
  }

  get withFewerPasses(): readonly Planner[] {
    return this.#fewer;
  }

  get withSmallBlocks(): Planner {
    return this.#blocks;
  }

  async answer(sql: string, planner: Planner | null = null, store = this.store, caller: Caller = analyst): Promise<Answer> {
    this.asked++;
    return store.invoke(caller, 'query', (invocation) => (planner ?? store.service.planner).query(invocation, { sql }));
  }

  async rows(sql: string, planner: Planner | null = null, store = this.store, caller: Caller = analyst): Promise<string[]> {
    return shownRows(await this.answer(sql, planner, store, caller));
  }

  /** A plan is bound again to be shown: one in a few tells enough. */
  async shape(query: QueryNode): Promise<void> {
    if (this.asked % 3 !== 0) return;
    this.shapes.add(planShape((await this.answer(`EXPLAIN ${ourText(query)}`)).plan!));
  }
}

function shownRows(answer: Answer): string[] {
  const types = answer.columns.map(({ type }) => type);
  return rowsOf(answer).map((row) =>
    Object.values(row)
      .map((cell, i) => shownCell(cell, types[i]!))
      .join(' | '),
  );
}

/** What `run` finds; a refusal of what the generator made is a finding as well. */
export async function checked(
  bench: OracleBench,
  oracle: Oracle,
  probe: Probe,
): Promise<{ what: string; detail: string } | null> {
  try {
    const detail = await oracle.check(bench, probe);
    return detail === null ? null : { what: 'answers differ', detail };
  } catch (error) {
    if (error instanceof ServiceError) return { what: `refused: ${error.code}`, detail: error.message };
    return { what: `broke: ${String(error).replaceAll(/\d+/g, '#')}`, detail: error instanceof Error ? (error.stack ?? '') : '' };
  }
}

function differs(left: readonly string[], right: readonly string[], ordered = false): string | null {
  const [a, b] = ordered ? [left, right] : [left.toSorted(), right.toSorted()];
  if (a.length === b.length && a.every((each, i) => each === b[i])) return null;
  const only = (mine: readonly string[], others: readonly string[]) => {
    const rest = [...others];
    return mine.filter((row) => {
      const at = rest.indexOf(row);
      if (at >= 0) rest.splice(at, 1);
      return at < 0;
    });
  };
  const shown = (rows: readonly string[]) => rows.slice(0, 4).join(' ; ') || 'none (other order)';
  return `${a.length} rows, only here: ${shown(only(a, b))}\n${b.length} rows, only here: ${shown(only(b, a))}`;
}

function select(from: SourceNode, items: readonly Expr[], parts: Partial<SelectNode> = {}): SelectNode {
  return {
    kind: 'select',
    distinct: false,
    items: items.map((expression, i) => ({ kind: 'item', expression, alias: `o${i}` })),
    from,
    where: null,
    groupBy: [],
    having: null,
    ...parts,
  };
}

function queryOf(body: BodyNode, parts: Partial<QueryNode> = {}): QueryNode {
  return { kind: 'query', with: [], body, asOf: null, orderBy: [], limit: null, ...parts };
}

/** Where `p` holds, where its negation does, where neither is known. */
function partitioned(p: Expr): Expr[] {
  return [p, { ...boolean, kind: 'not', operand: p }, { ...boolean, kind: 'is-null', operand: p, negated: false }];
}

function withWhere({ query }: Probe, where: Expr): QueryNode {
  return { ...query, body: { ...(query.body as SelectNode), where } };
}

function withHaving({ query }: Probe, having: Expr): QueryNode {
  return { ...query, body: { ...(query.body as SelectNode), having } };
}

/** Rows of a random source, without WHERE, and a predicate over them. */
function overSource(
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

function someColumns(generator: StatementGenerator, columns: readonly ColumnNode[]): ColumnNode[] {
  return generator.choices.shuffled(columns).slice(0, generator.choices.between(1, 3));
}

async function parts(bench: OracleBench, probe: Probe, arm: typeof withWhere): Promise<string[][]> {
  await bench.shape(arm(probe, probe.predicate!));
  return Promise.all(partitioned(probe.predicate!).map((p) => bench.rows(ourText(arm(probe, p)))));
}

const tlpRows: Oracle = {
  name: 'tlp rows',
  make: (generator, seed) => overSource(generator, seed, (columns) => someColumns(generator, columns)),
  check: async (bench, probe) => differs((await parts(bench, probe, withWhere)).flat(), await bench.rows(ourText(probe.query))),
};

const tlpDistinct: Oracle = {
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

const tlpGroups: Oracle = {
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

const tlpHaving: Oracle = {
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

const tlpAggregates: Oracle = {
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

const tlpUnionAll: Oracle = {
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

const norec: Oracle = {
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

/** One row or a pair of rows, a predicate that is true of it: it must come out. */
const pivot: Oracle = {
  name: 'pivot',
  make: (generator, seed) => {
    const { choices } = generator;
    const plain = { ...generator.features, subqueries: false, inQueries: false, common: false };
    const own = generator.with(plain);
    const { from, scope, columns } = own.source(generator.features.joins && choices.chance(50));
    const query = queryOf(
      select(
        from,
        columns.filter(({ name }) => name === 'system_from'),
      ),
    );
    return { kind: 'probe', query, predicate: own.predicate(scope), seed };
  },
  check: async (bench, probe) => {
    const choices = new Choices(probe.seed, 0x917);
    const body = probe.query.body as SelectNode;
    const row = new Map<string, Cell>();
    const chosen: Cell[] = [];
    const named = body.from.kind === 'table' && body.from.alias === body.from.name;
    for (const { name, alias } of tablesOf(body.from)) {
      const rows = bench.pivots.get(name) ?? [];
      if (rows.length === 0) return null;
      const one = choices.of(rows);
      chosen.push(one['system_from']!);
      for (const [column, cell] of Object.entries(one)) {
        row.set(`${alias}.${column}`, cell);
        if (named) row.set(column, cell);
      }
    }
    const now = bench.store.clock.wallNs;
    const trueOf = (p: Expr): Expr => {
      const value = valueIn(p, row, now);
      const [is, isNot, unknown] = partitioned(p);
      return value === true ? is! : value === false ? isNot! : unknown!;
    };
    const from = mapOn(body.from, trueOf);
    const query = { ...probe.query, body: { ...body, from, where: trueOf(probe.predicate!) } };
    await bench.shape(query);
    const sql = ourText(query);
    const wanted = chosen.map(String).join(' | ');
    return (await bench.rows(sql)).includes(wanted) ? null : `${wanted} must come out of ${sql}`;
  },
};

function tablesOf(source: SourceNode): { name: string; alias: string }[] {
  if (source.kind === 'join') return [...tablesOf(source.left), ...tablesOf(source.right)];
  return source.kind === 'table' ? [source] : [];
}

function mapOn(source: SourceNode, map: (on: Expr) => Expr): SourceNode {
  if (source.kind !== 'join') return source;
  return { ...source, left: mapOn(source.left, map), right: mapOn(source.right, map), on: map(source.on) };
}

/** A whole statement of any form. */
function whole(generator: StatementGenerator, seed: number): Probe {
  return { kind: 'probe', query: generator.statement(), predicate: null, seed };
}

const fewerPasses: Oracle = {
  name: 'passes off',
  make: whole,
  check: async (bench, { query, seed }) => {
    const sql = ourText(query);
    await bench.shape(query);
    const all = await bench.rows(sql);
    const planner = bench.withFewerPasses[seed % bench.withFewerPasses.length]!;
    return differs(all, await bench.rows(sql, planner), totallyOrdered(query));
  },
};

/** Rows and their order: nothing of how a question is run may show in its answer. */
const sameBytes: Oracle = {
  name: 'same bytes',
  make: whole,
  check: async (bench, { query }) => {
    const sql = ourText(query);
    const all = await bench.rows(sql);
    return differs(all, await bench.rows(sql, bench.withSmallBlocks), true) ?? differs(all, await bench.rows(sql), true);
  },
};

const asOfSpelledOut: Oracle = {
  name: 'as of spelled out',
  make: (generator, seed) => {
    const probe = whole(generator, seed);
    return { ...probe, query: { ...probe.query, asOf: generator.asOf() } };
  },
  check: async (bench, { query }) => {
    const tables = new Set(bench.world.tables.map(({ name }) => name));
    await bench.shape(query);
    const defined = spelledOut(query, tables, bench.store.clock.wallNs);
    return differs(await bench.rows(ourText(query)), await bench.rows(defined), totallyOrdered(query));
  },
};

/** What was believed at an instant stays what was believed then, whatever is written later. */
const unmoved: Oracle = {
  name: 'as of unmoved by writes',
  writes: true,
  make: (generator, seed) => {
    const probe = whole(generator, seed);
    const instant = generator.choices.of(generator.world.instants);
    return { ...probe, query: { ...probe.query, asOf: { kind: 'as-of', axis: 'system', instant } } };
  },
  check: async (bench, { query, seed }) => {
    // `now()` is the instant of asking, and `*` shows system_to, which a later write closes.
    const moves =
      [...nodesOf(query)].some(({ kind }) => kind === 'now') || (query.body.kind === 'select' && query.body.items.length === 0);
    if (moves || query.asOf?.axis !== 'system') return null;
    const sql = ourText(query);
    const before = await bench.rows(sql);
    await scribble(bench, seed);
    bench.remembered.push({ sql, rows: before, ordered: totallyOrdered(query) });
    for (const each of [bench.remembered.at(-1)!, bench.remembered[seed % bench.remembered.length]!]) {
      const wrong = differs(each.rows, await bench.rows(each.sql), each.ordered);
      if (wrong !== null) return `${each.sql}\n${wrong}`;
    }
    return null;
  },
};

/** A branch holds what its source held at the fork, whatever either of them writes later. */
const branches: Oracle = {
  name: 'branches',
  writes: true,
  make: (generator, seed) => {
    const probe = whole(generator, seed);
    const system = { kind: 'as-of', axis: 'system', instant: generator.choices.of(generator.world.instants) } as const;
    return { ...probe, query: { ...probe.query, asOf: generator.choices.chance(40) ? system : null } };
  },
  check: async (bench, { query, seed }) => {
    // `now()` is the instant of asking, and time passes here.
    if ([...nodesOf(query)].some(({ kind }) => kind === 'now') || query.asOf?.axis === 'current') return null;
    const { store } = bench;
    const name = `b${bench.forks++}`;
    const onBranch: Caller = { ...analyst, branch: name };
    const sql = ourText(query);
    const ordered = totallyOrdered(query);
    const before = await bench.rows(sql);
    await fork(store, { kind: 'fork-branch', name, source: 'main', shares: 'everything' });
    await scribble(bench, seed);
    const inherited = differs(before, await bench.rows(sql, null, store, onBranch), ordered);
    if (inherited !== null) return `at the fork, then on the branch: ${inherited}`;
    const main = await bench.rows(sql);
    await scribble(bench, seed + 1, onBranch);
    const unmoved = differs(main, await bench.rows(sql), ordered);
    await fork(store, { kind: 'delete-branch', name });
    return unmoved === null ? null : `main, before and after a write on its branch: ${unmoved}`;
  },
};

async function fork(store: TestStore, command: Command): Promise<void> {
  const request = { action: 'fork', purpose: null, correlationId: 'fork' } as const;
  await store.service.gate.invoke(analyst, request, (invocation) => invocation.submit(command));
}

/** Pages of any size make up the whole while others write. */
const pages: Oracle = {
  name: 'pages',
  writes: true,
  make: (generator, seed) => {
    const own = generator.with({ ...generator.features, joins: false, subqueries: false, common: false });
    return overSource(own, seed, (columns) => someColumns(own, columns));
  },
  check: async (bench, probe) => {
    const choices = new Choices(probe.seed, 0x9a9e);
    const query = withWhere(probe, probe.predicate!);
    const all = await bench.rows(ourText(query));
    const size = choices.between(1, 9);
    const page = { ...query, limit: size };
    let answer = await bench.answer(ourText(page));
    const seen = shownRows(answer);
    for (let turns = 0; answer.nextCursor !== null; turns++) {
      if (turns > all.length) return `more pages than rows: ${seen.length} of ${all.length}`;
      if (choices.chance(30)) await scribble(bench, probe.seed + turns);
      answer = await bench.answer(`${ourText(page)} AFTER '${answer.nextCursor}'`);
      seen.push(...shownRows(answer));
    }
    return differs(seen, all, true);
  },
};

/** A few rows more, a key corrected, a key deleted; pivots are read again. */
async function scribble(bench: OracleBench, seed: number, caller = analyst): Promise<void> {
  const choices = new Choices(seed, 0x5c);
  const table = choices.of(bench.world.tables);
  const rows = bench.pivots.get(table.name) ?? [];
  // Bounded, so that a long run stays a run over small tables.
  if (rows.length > 150) return;
  bench.store.clock.wallNs += 1_000_000n;
  const key = `k${choices.below(12)}`;
  const alive = await bench.store.column(`SELECT k FROM ${table.name} AS OF CURRENT WHERE k = '${key}'`, caller);
  if (alive.length > 0 && choices.chance(30)) await bench.store.delete(table.name, [key], caller);
  else await bench.store.put(table.name, [{ k: key, j: choices.between(-3, 3), s: choices.of(['a', 'z', 'ä']) }], caller);
  bench.store.clock.wallNs += 1_000_000n;
  if (caller === analyst) bench.pivots.set(table.name, await bench.store.rows(`SELECT * FROM ${table.name}`));
}

export const tenant: Caller = { ...analyst, principal: 'acme', path: 'acme' };

/** Other tenants' rows change nothing of one tenant's answers. */
const governance: Oracle = {
  name: 'governance',
  make: (generator, seed) => {
    const own = generator.with({ ...generator.features, storedColumns: false, asOf: false });
    const probe = whole(own, seed);
    return generator.choices.chance(40)
      ? { ...probe, query: { ...probe.query, asOf: { kind: 'as-of', axis: 'current' } } }
      : probe;
  },
  check: async (bench, { query }) => {
    const { mixed, alone } = await bench.governed();
    const sql = ourText(query);
    const [all, own] = [await bench.rows(sql, null, mixed, tenant), await bench.rows(sql, null, alone, tenant)];
    return differs(all, own, totallyOrdered(query));
  },
};

export const oracles: readonly Oracle[] = [
  tlpRows,
  tlpDistinct,
  tlpGroups,
  tlpHaving,
  tlpAggregates,
  tlpUnionAll,
  norec,
  pivot,
  fewerPasses,
  sameBytes,
  asOfSpelledOut,
  unmoved,
  branches,
  pages,
  governance,
];

/** Oracles that need what is switched off have nothing to ask. */
export function oraclesFor(features: Features): Oracle[] {
  const needs = new Map<Oracle, boolean>([
    [tlpUnionAll, features.setOperations],
    [asOfSpelledOut, features.subqueries && features.asOf],
  ]);
  return oracles.filter((oracle) => needs.get(oracle) ?? true);
}

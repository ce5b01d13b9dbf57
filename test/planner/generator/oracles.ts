/**
 * Answers checked against each other, so that no expected answer has to be written down. An oracle makes a probe (a query
 * and a predicate over its source) and says what is wrong with the answers to it.
 */
import type { Caller } from '../../../src/governance/caller.ts';
import type { Command } from '../../../src/projections/command.ts';
import { analyst, type TestStore } from '../../harness.ts';
import { differs, type Oracle, type OracleBench, type Probe, shownRows } from './oracle-bench.ts';
import {
  norec,
  overSource,
  someColumns,
  tlpAggregates,
  tlpDistinct,
  tlpGroups,
  tlpHaving,
  tlpRows,
  tlpUnionAll,
  withWhere,
} from './partition-oracles.ts';
import { Choices } from './random.ts';
import { ourText, spelledOut } from './render.ts';
import type { Features, StatementGenerator } from './statements.ts';
import { nodesOf, totallyOrdered } from './tree.ts';

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

/** A few rows more, a key corrected, a key deleted. */
async function scribble(bench: OracleBench, seed: number, caller = analyst): Promise<void> {
  const choices = new Choices(seed, 0x5c);
  const table = choices.of(bench.world.tables);
  const versions = await bench.store.column(`SELECT _pk FROM ${table.name}`);
  // Bounded, so that a long run stays a run over small tables.
  if (versions.length > 150) return;
  bench.store.clock.wallNs += 1_000_000n;
  const key = `k${choices.below(12)}`;
  const alive = await bench.store.column(`SELECT k FROM ${table.name} AS OF CURRENT WHERE k = '${key}'`, caller);
  if (alive.length > 0 && choices.chance(30)) await bench.store.delete(table.name, [key], caller);
  else await bench.store.put(table.name, [{ k: key, j: choices.between(-3, 3), s: choices.of(['a', 'z', 'ä']) }], caller);
  bench.store.clock.wallNs += 1_000_000n;
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

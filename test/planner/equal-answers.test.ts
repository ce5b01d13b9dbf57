/**
 * The same question of the same history has the same answer, whatever keeps the rows and whoever evaluates it: generated
 * code over one growing segment, kernels over sealed ones, columns that come and go under a budget, packed files, a store
 * that was restored; and a planner without any pass that reads row by row.
 */
import { expect, test } from 'vitest';
import { formatInstant } from '../../src/log/values/timestamp.ts';
import type { Cell } from '../../src/log/values/value.ts';
import { GroupKernels } from '../../src/planner/operators/group-kernels.ts';
import { RowMask } from '../../src/planner/kernels/row-mask.ts';
import { passes, Planner } from '../../src/planner/planner.ts';
import { SegmentColumns } from '../../src/projections/rows/segments/segment-columns.ts';
import { ColumnStore } from '../../src/projections/rows/store/column-store.ts';
import { analyst, rowsOf } from '../harness.ts';
import { seedBase } from '../runner/seed.ts';
import { whole } from '../runner/turn.ts';
import { shownRows } from './generator/oracle-bench.ts';
import { ourText } from './generator/render.ts';
import { everyFeature, oneTable, StatementGenerator } from './generator/statements.ts';
import { totallyOrdered } from './generator/tree.ts';
import { type Layout, type LayoutName, largeSegments, layoutNames, openLayout, smallSegments } from './generator/layouts.ts';
import { type World, worldOf } from './generator/world.ts';

/** Two worlds, one small and one large, which move with the commit. */
const statementsMin = Number(process.env['EQUAL_STATEMENTS'] ?? (whole ? 240 : 50));
const perWorld = whole ? 60 : 25;

test(`${statementsMin} random statements over random histories, in every layout`, { timeout: 900_000 }, async () => {
  const found: string[] = [];
  let statements = 0;
  const counts = { filters: 0, groups: 0, evicted: 0 };
  const loaded = new Map<unknown, number>();
  const restore = [
    // -1 and false say that a block was left to generated code.
    watching(RowMask.prototype, 'select', (found) => (counts.filters += Number((found as number) >= 0))),
    watching(GroupKernels.prototype, 'take', (taken) => (counts.groups += Number(taken))),
    watching(SegmentColumns.prototype, 'evict', () => counts.evicted++),
    watching(ColumnStore.prototype, 'onLoaded', (_, store) => loaded.set(store, (loaded.get(store) ?? 0) + 1)),
  ];
  const hydrated: Partial<Record<LayoutName, number>> = {};
  // Some worlds have no block that a kernel reads: others are asked too, until one has.
  const isDone = (): boolean =>
    found.length > 0 ||
    statements >= 8 * statementsMin ||
    (statements >= statementsMin && counts.filters > statements / 10 && counts.groups > statements / 20);
  for (let seed = 2 + 3 * (seedBase % 1_000); !isDone(); seed++) {
    const large = seed % 3 === 0;
    const world = worldOf(seed, large ? { tables: [1, 1], rows: [1_500, 2_500] } : { tables: [2, 3], rows: [20, 70] });
    const layouts: Layout[] = [];
    for (const name of layoutNames) layouts.push(await openLayout(name, world, large ? largeSegments : smallSegments));
    const [first, ...others] = layouts;
    // EXPLAIN tells the instant of AS OF CURRENT: the clocks of all layouts stand at the latest.
    const latest = layouts.map(({ store }) => store.clock.wallNs).reduce((a, b) => (a > b ? a : b));
    for (const { store } of layouts) store.clock.wallNs = latest;
    const digests = first!.store.service.store.projections.projector.digests();
    for (const layout of others) {
      const theirs = layout.store.service.store.projections.projector.digests();
      if (theirs['rows'] !== digests['rows'] || theirs['temporal'] !== digests['temporal'])
        found.push(`${layout.name}: other digests in world ${seed}`);
    }
    // Columns that are in memory when their segment gets its file are no hydration.
    const rested = new Map(layouts.map(({ name, store }) => [name, loaded.get(store.service.store.columns) ?? 0]));
    const plain = new Planner({ clock: first!.store.clock, passes: passes.slice(0, 1), limits: { blockRows: large ? 64 : 1 } });
    for (const sql of large ? aggregatesOver(world) : []) {
      const answer = await exactly(first!, sql);
      for (const layout of others) {
        const other = await exactly(layout, sql);
        if (other !== answer) found.push(`${layout.name}, world ${seed}: ${sql}\n${other}\n${answer}`);
      }
    }
    for (let index = 0; index < perWorld; index++, statements++) {
      const query = new StatementGenerator(world, index, large || index % 2 === 0 ? oneTable : everyFeature).statement();
      const sql = ourText(query);
      // Guesses are of rows, wherever these rest.
      for (const asked of index % 4 === 0 ? [sql, `EXPLAIN ${sql}`] : [sql]) {
        const answer = await exactly(first!, asked);
        for (const layout of others) {
          const other = await exactly(layout, asked);
          if (other !== answer) found.push(`${layout.name}, world ${seed}, statement ${index}: ${asked}\n${other}\n${answer}`);
        }
      }
      // Sums of doubles depend on the order of rows, and a plan without passes may read in another one.
      const [reference, shown] = await Promise.all([asked(first!, sql, plain), asked(first!, sql)]);
      const same = totallyOrdered(query) ? shown : shown.toSorted();
      if (JSON.stringify(same) !== JSON.stringify(totallyOrdered(query) ? reference : reference.toSorted()))
        found.push(
          `the plain planner, world ${seed}, statement ${index}: ${sql}\n${JSON.stringify(reference)}\n${JSON.stringify(shown)}`,
        );
    }
    for (const { name, store } of layouts) {
      hydrated[name] = (hydrated[name] ?? 0) + (loaded.get(store.service.store.columns) ?? 0) - (rested.get(name) ?? 0);
      await store.close();
    }
  }
  for (const each of restore) each();
  expect(found.slice(0, 3)).toEqual([]);
  // What did not happen was not tested.
  expect(counts.filters, 'filters by kernel').toBeGreaterThan(statements / 10);
  expect(counts.groups, 'groups by kernel').toBeGreaterThan(statements / 20);
  expect(counts.evicted, 'columns that left memory').toBeGreaterThan(statements * 5);
  expect(hydrated.sealed, 'columns of a store without limits').toBe(0);
  for (const name of ['evicting', 'packed', 'restored'] as const)
    expect(hydrated[name], `${name}: columns that came back`).toBeGreaterThan(statements * 2);
});

/** What a random statement over columns with many NULLs seldom is: the shapes that kernels were made for. */
function aggregatesOver({ tables, instants }: World): string[] {
  const [{ name, columns }] = tables as [World['tables'][number]];
  const numbers = columns.filter(
    ({ name: column, type }) => (type === 'number' || column === 'j' || column === 'n') && !column.includes('_'),
  );
  const calls = numbers.map(({ name: c }) => `SUM(${c}) AS s${c}, MIN(${c}) AS l${c}, MAX(${c}) AS h${c}, COUNT(${c}) AS c${c}`);
  const bases = [
    '',
    'AS OF CURRENT',
    ...[3, 2].map((part) => `AS OF SYSTEM TIME '${formatInstant(instants[Math.floor(instants.length / part)]!)}'`),
  ];
  return bases.flatMap((basis) =>
    calls.flatMap((call) => [
      `SELECT COUNT(*) AS n, ${call} FROM ${name} ${basis}`,
      `SELECT k, COUNT(*) AS n, ${call} FROM ${name} ${basis} GROUP BY k`,
      `SELECT s, j, COUNT(*) AS n, ${call} FROM ${name} ${basis} GROUP BY s, j`,
      `SELECT COUNT(*) AS n, ${call} FROM ${name} ${basis} WHERE k <> 'k7' AND valid_to > 0`,
    ]),
  );
}

/** Looks at what a method returns, and changes nothing; returns how to end that. */
function watching<K extends string>(
  prototype: Record<K, (...args: never[]) => unknown>,
  name: K,
  look: (result: unknown, self: unknown) => unknown,
): () => void {
  const original = prototype[name];
  prototype[name] = function (this: unknown, ...args: never[]) {
    const result = original.apply(this, args);
    look(result, this);
    return result;
  };
  return () => {
    prototype[name] = original;
  };
}

/** Every bit of the answer, in its order; or the error that it ends in. */
async function exactly(layout: Layout, sql: string): Promise<string> {
  try {
    const answer = await layout.store.answer(sql);
    const rows = rowsOf(answer).map((row) => Object.values(row).map(exact));
    return JSON.stringify({ columns: answer.columns, rows });
  } catch (error) {
    return String(error);
  }
}

async function asked({ store }: Layout, sql: string, planner: Planner = store.service.planner): Promise<string[]> {
  try {
    return shownRows(await store.invoke(analyst, 'query', (invocation) => planner.query(invocation, { sql })));
  } catch (error) {
    return [String(error)];
  }
}

function exact(cell: Cell): string {
  if (typeof cell === 'number') return `f${Buffer.from(new Float64Array([cell]).buffer).toString('hex')}`;
  return typeof cell === 'bigint' ? `i${cell}` : JSON.stringify(cell);
}

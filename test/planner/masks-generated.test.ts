/**
 * Random statements over a table some of whose columns are masked, and over the same table where they hold nothing: where
 * the first is answered, the answers are the same, but for what is shown in place of a cell.
 */
import { describe, expect, test } from 'vitest';
import { ServiceError } from '../../src/errors.ts';
import type { GovernedSnapshot, Invocation } from '../../src/governance/gate-contract.ts';
import type { MaskKind } from '../../src/log/entries/entry.ts';
import type { Dictionary, Vector } from '../../src/log/values/columns.ts';
import type { Cell } from '../../src/log/values/value.ts';
import { type RowBlock, type RowReader, shownOf } from '../../src/projections/access-paths.ts';
import { Planner } from '../../src/planner/planner.ts';
import { analyst, rowsOf, type TestStore } from '../harness.ts';
import { seedBase } from '../runner/seed.ts';
import { whole } from '../runner/turn.ts';
import { Choices } from './generator/random.ts';
import { ourText } from './generator/render.ts';
import { everyFeature, StatementGenerator } from './generator/statements.ts';
import { nodesOf, type QueryNode } from './generator/tree.ts';
import { openWorld, worldOf } from './generator/world.ts';

const statements = Number(process.env['ANNALS_RUNS'] ?? (whole ? 600 : 200));
const perWorld = whole ? 150 : 50;
/** Whose first world moves with the commit. */
const firstWorld = 90_000 + (seedBase % 100_000);

type Masks = ReadonlyMap<string, ReadonlyMap<string, MaskKind>>;

const noMasks: ReadonlyMap<string, MaskKind> = new Map();
const stars: Dictionary = { size: 1, text: () => '***', codeOf: (text) => (text === '***' ? 0 : -1) };

/** Texts in every row; values of other types are shown as NULL. */
function shown(block: RowBlock, isText: boolean): Vector {
  if (!isText) return { kind: 'null' };
  const { selection, first, count } = block;
  let length = first + count;
  if (selection !== null) for (let i = 0; i < count; i++) length = Math.max(length, selection[i]! + 1);
  return { kind: 'dict', values: new Int32Array(length), dictionary: stars, nulls: null };
}

/** Rows without the cells of these columns, and no way to find them by those. */
function hiding(rows: RowReader, masks: Masks, kind: MaskKind, textOf: (type: string, column: string) => boolean): RowReader {
  return {
    ...rows,
    estimate: (request) => rows.estimate(request),
    pathCodes: () => rows.pathCodes(),
    provenanceOf: (type, systemFrom) => rows.provenanceOf(type, systemFrom),
    *scan(request) {
      const hidden = masks.get(request.type) ?? noMasks;
      const isHidden = (name: string): boolean => hidden.has(shownOf(name) ?? name);
      const { zones: _, ...rest } = request;
      const blocks = rows.scan({ ...rest, columns: request.columns.map((name) => (isHidden(name) ? 'system_from' : name)) });
      try {
        for (let step = blocks.next(); step.done !== true; step = blocks.next()) {
          const block = step.value;
          const cells = request.columns.map((name, i): Vector => {
            if (!isHidden(name)) return block.columns[i]!;
            const of = shownOf(name);
            return of === null ? { kind: 'null' } : shown(block, kind === 'redact' && textOf(request.type, of));
          });
          yield { ...block, columns: cells };
        }
      } finally {
        blocks.return?.();
      }
    },
  };
}

interface World {
  readonly store: TestStore;
  readonly masks: Masks;
  readonly textOf: (type: string, column: string) => boolean;
  /** Masked columns by which rows were sought. */
  readonly asked: string[];
}

const planners = new WeakMap<TestStore, Planner>();

async function ask({ store, masks, textOf, asked }: World, sql: string, kind: MaskKind | null): Promise<Cell[][]> {
  const own = planners.get(store) ?? new Planner({ clock: store.clock });
  planners.set(store, own);
  const answer = await store.invoke(analyst, 'query', (invocation) => {
    const { rows, ...snapshot } = invocation.snapshot();
    const governed: GovernedSnapshot = {
      ...snapshot,
      grantKey: `${snapshot.grantKey} ${kind ?? 'nothing'}`,
      masksOf: (type) => (kind === null ? noMasks : (masks.get(type) ?? noMasks)),
      rows: hiding(rows, masks, kind ?? 'null', textOf),
    };
    const watched: RowReader = {
      ...governed.rows,
      scan: (request) => {
        for (const { column } of request.zones ?? [])
          if (kind !== null && masks.get(request.type)?.has(column)) asked.push(column);
        return governed.rows.scan(request);
      },
    };
    const over: Invocation = {
      caller: invocation.caller,
      correlationId: '',
      describe: () => undefined,
      snapshot: () => ({ ...governed, rows: watched }),
    } as Pick<Invocation, 'caller' | 'correlationId' | 'describe' | 'snapshot'> as Invocation;
    return own.query(over, { sql });
  });
  return rowsOf(answer).map((row) => Object.values(row));
}

/** What could refuse it at all. */
function tellsApart(query: QueryNode): boolean {
  for (const node of nodesOf(query)) {
    if (node.kind === 'query' && (node as QueryNode).orderBy.length > 0) return true;
    if (node.kind === 'aggregate' && (node as { operand?: unknown }).operand) return true;
    const { distinct, groupBy } = node as { distinct?: boolean; groupBy?: readonly unknown[] };
    if (node.kind === 'select' && (distinct === true || groupBy!.length > 0)) return true;
  }
  return false;
}

/** So many statements to one that shows `*`, which few of themselves do. */
const starEvery = 10;

function statementOf(world: Parameters<typeof openWorld>[0], index: number, wantsStar: boolean): QueryNode {
  for (let drawn = 1; wantsStar && drawn < 200; drawn++) {
    const query = new StatementGenerator(world, index + 10_000 * drawn, everyFeature).statement();
    if (query.body.kind === 'select' && query.body.items.length === 0) return query;
  }
  return new StatementGenerator(world, index, everyFeature).statement();
}

describe('a table with masked columns', () => {
  test(`answers as if they held nothing: ${statements} statements`, { timeout: 120_000 }, async () => {
    const seen = { answered: 0, refused: 0, stars: 0, rows: 0 };
    for (let number = 0; number * perWorld < statements; number++) {
      const world = worldOf(number + firstWorld);
      const store = await openWorld(world);
      const choices = new Choices(number, 0x3a5c);
      const masks: Masks = new Map(
        world.tables.map(({ name, columns }): [string, ReadonlyMap<string, MaskKind>] => {
          const own = choices.shuffled(columns.filter(({ pool, name: column }) => pool !== null && column !== 'k'));
          return [name, new Map(own.slice(0, choices.between(1, 2)).map((column) => [column.name, 'redact' as const]))];
        }),
      );
      const types = new Map(
        world.tables.map(({ name, columns }) => [name, new Map(columns.map((each) => [each.name, each.type]))]),
      );
      const bench: World = { store, masks, textOf: (type, column) => types.get(type)?.get(column) === 'string', asked: [] };
      try {
        for (let index = 0; index < perWorld && seen.answered + seen.refused < statements; index++) {
          const query = statementOf(world, index, (seen.answered + seen.refused) % starEvery === 0);
          const sql = ourText(query);
          const nothing = await ask(bench, sql, null);
          let without: Cell[][];
          try {
            without = await ask(bench, sql, 'null');
          } catch (error) {
            if (!(error instanceof ServiceError) || error.code !== 'REL_MASKED_COLUMN') throw error;
            expect(tellsApart(query), sql).toBe(true);
            await expect(ask(bench, sql, 'redact'), sql).rejects.toMatchObject({ code: 'REL_MASKED_COLUMN' });
            seen.refused++;
            continue;
          }
          seen.answered++;
          seen.rows += nothing.length;
          expect(without, sql).toEqual(nothing);
          const starred = await ask(bench, sql, 'redact');
          expect(starred, sql).toHaveLength(nothing.length);
          starred.forEach((row, i) =>
            row.forEach((cell, c) => {
              if (cell === '***' && nothing[i]![c] === null) seen.stars++;
              else expect(cell, sql).toEqual(nothing[i]![c]);
            }),
          );
        }
        expect(bench.asked).toEqual([]);
      } finally {
        await store.close();
      }
    }
    expect(seen.answered).toBeGreaterThan(statements / 8);
    expect(seen.refused).toBeGreaterThan(statements / 40);
    expect(seen.stars).toBeGreaterThan(statements / 40);
    expect(seen.rows).toBeGreaterThan(statements);
  });
});

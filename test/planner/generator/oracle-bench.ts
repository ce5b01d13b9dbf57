/** What oracles ask: one world's store, the planners over it, and how answers are compared. */
import { ServiceError } from '../../../src/errors.ts';
import type { Caller } from '../../../src/governance/caller.ts';
import type { Answer } from '../../../src/planner/planner-contract.ts';
import { passes, Planner } from '../../../src/planner/planner.ts';
import { analyst, rowsOf, type TestStore } from '../../harness.ts';
import { planShape } from './plan-shape.ts';
import { Choices } from './random.ts';
import { ourText } from './render.ts';
import type { Features, StatementGenerator } from './statements.ts';
import type { BodyNode, Expr, Facts, QueryNode, SelectNode, SourceNode, TreeNode } from './tree.ts';
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

export const boolean: Facts = { type: 'boolean', size: Number.POSITIVE_INFINITY, grain: Number.POSITIVE_INFINITY };

/** One world's store and the planners that are asked about it. */
export class OracleBench {
  readonly world: World;
  readonly store: TestStore;
  readonly features: Features;
  readonly shapes: Set<string>;
  readonly remembered: { readonly sql: string; readonly rows: readonly string[]; readonly ordered: boolean }[] = [];
  asked = 0;
  /** Checks that an answer beyond the caps ended. */
  capped = 0;
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
    return store.invoke(caller, 'query', (invocation) =>
      (planner ?? store.service.planner).query(invocation, { sql, dialect: this.features.wide ? 'wide' : 'spec' }),
    );
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

export function shownRows(answer: Answer): string[] {
  const types = answer.columns.map(({ type }) => type);
  return rowsOf(answer).map((row) =>
    Object.values(row)
      .map((cell, i) => shownCell(cell, types[i]!))
      .join(' | '),
  );
}

/** What `run` finds; a refusal of what the generator made is a finding as well, but for one by size. */
export async function checked(
  bench: OracleBench,
  oracle: Oracle,
  probe: Probe,
): Promise<{ what: string; detail: string } | null> {
  try {
    const detail = await oracle.check(bench, probe);
    return detail === null ? null : { what: 'answers differ', detail };
  } catch (error) {
    // Random joins may come to more rows than any answer may have: that is what the cap is for.
    if (error instanceof ServiceError && error.kind === 'cap_exceeded') {
      bench.capped++;
      return null;
    }
    if (error instanceof ServiceError) return { what: `refused: ${error.code}`, detail: error.message };
    return { what: `broke: ${String(error).replaceAll(/\d+/g, '#')}`, detail: error instanceof Error ? (error.stack ?? '') : '' };
  }
}

export function differs(left: readonly string[], right: readonly string[], ordered = false): string | null {
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

export function select(from: SourceNode, items: readonly Expr[], parts: Partial<SelectNode> = {}): SelectNode {
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

export function queryOf(body: BodyNode, parts: Partial<QueryNode> = {}): QueryNode {
  return { kind: 'query', with: [], body, asOf: null, orderBy: [], limit: null, ...parts };
}

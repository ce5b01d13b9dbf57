/**
 * Plans of queries. A shared plan holds nothing of a single caller: it is found by its statement and by the meaning of the names in
 * it (`plan-names.ts`), while tables, paths, purposes and instants are those of each run. The arrangement of joins follows
 * estimates, so each run works it out anew from the rows that its caller may see; arrangements that recur are cached with their
 * plan, by their shape, because generated code depends on it.
 */
import { shownColumns } from './output-origins.ts';
import { assert } from '../../errors.ts';
import type { GovernedSnapshot } from '../../governance/gate-contract.ts';
import { shownOf } from '../../projections/access-paths.ts';
import { bindQuery } from '../binding/binder.ts';
import type { RankingRule } from '../binding/ranking.ts';
import type { PlanKernels } from '../execution/executor.ts';
import { countValues, guardHolds } from '../expressions/bound-expression.ts';
import { isClosedType } from '../graph/node-and-edge-types.ts';
import { hasJoin, inputsOf, type LogicalPlan, nodesOf, type PlanNode, type ScanNode } from '../logical-plan.ts';
import { associateJoins } from '../passes/associate-joins.ts';
import { orderJoins } from '../passes/order-joins.ts';
import type { Pass, PassContext } from '../passes/pass.ts';
import { reorderJoins } from '../passes/reorder-joins.ts';
import { PlanCache } from './plan-cache.ts';
import { namesRead, PlanNames, type ReadNames } from './plan-names.ts';
import type { Answer } from '../planner-contract.ts';
import { type StatementSource, type QueryStatement, queryStatementOf, typesNamed } from '../statements/statement-source.ts';
import { type Sketches, withoutSketches } from './sketches.ts';
import type { LookupTables } from '../continuous/views/lookup-tables.ts';
import type { ServedView } from '../continuous/views/materialized-views.ts';
import type { Literal } from '../syntax/statement.ts';
import { catalogueFunctions } from '../system-catalogue/catalogue-calls.ts';
import { virtualNode } from '../system-catalogue/relation-source.ts';

/**
 * Passes that use estimates: they, and the passes between them, run anew for each run. Their decisions show in the tree of joins;
 * all nodes above a join follow from it.
 */
const arranging: ReadonlySet<Pass> = new Set([reorderJoins, associateJoins, orderJoins]);

/** Plans in all, and arrangements of one. */
const plansMax = 1_024;
const arrangementsMax = 16;

/** A plan as one run takes it. */
export interface ReadyPlan {
  readonly plan: LogicalPlan;
  /** The columns of its answers: one array for all of them, so that a door can cache by it. */
  readonly columns: Answer['columns'];
  readonly kernels: PlanKernels;
  readonly readsMore: boolean;
  /** Types and columns that its scans read, for notices about shared rows. */
  readonly reads: readonly { readonly type: string; readonly columns: readonly string[] }[];
}

interface SharedPlan {
  /** Before its joins are arranged. */
  readonly plan: LogicalPlan;
  readonly columns: Answer['columns'];
  readonly readsMore: boolean;
  /** Null for a plan with joins, which are arranged for each run. */
  readonly ready: ReadyPlan | null;
  /** Nodes of the plan, by number. */
  readonly numbers: ReadonlyMap<PlanNode, number>;
  readonly arrangements: Map<string, ReadyPlan>;
}

export interface PlansOptions {
  readonly passes: readonly Pass[];
  readonly pinnedBranches: readonly string[];
  /** False: every run makes its plan. The same answers, only slower. */
  readonly keep: boolean;
  readonly sketches: Sketches;
  readonly lookups: Pick<LookupTables, 'table'> | null;
  readonly rankings?: ReadonlyMap<string, readonly RankingRule[]>;
}

export class Plans {
  readonly #options: PlansOptions;
  readonly #cache: PlanCache<SharedPlan>;
  readonly #names: PlanNames;
  /** The names in a question: each statement is searched for names once. */
  readonly #read = new WeakMap<QueryStatement, ReadNames>();
  readonly #settling: readonly Pass[];
  readonly #arranging: readonly Pass[];
  readonly #finishing: readonly Pass[];
  /** Runs that found their plan, and plans that were made: for tests and figures. */
  readonly counts = { found: 0, made: 0 };

  constructor(options: PlansOptions) {
    this.#options = options;
    this.#cache = new PlanCache({ plansMax, pinned: new Set(options.pinnedBranches) });
    this.#names = new PlanNames((path, name) => options.lookups?.table(path, name));
    const { passes: all } = options;
    const first = all.findIndex((pass) => arranging.has(pass));
    const last = all.findLastIndex((pass) => arranging.has(pass));
    this.#settling = first < 0 ? all : all.slice(0, first);
    this.#arranging = first < 0 ? [] : all.slice(first, last + 1);
    this.#finishing = first < 0 ? [] : all.slice(last + 1);
  }

  clear(): void {
    this.#cache.clear();
    this.#names.clear();
  }

  /** The cached plan of a run, where no work has to wait for others: null where `make` has to be called. */
  find(
    source: StatementSource,
    statement: QueryStatement,
    snapshot: GovernedSnapshot,
    served: ServedView | null,
  ): ReadyPlan | null {
    const shared = this.#findShared(source, statement, snapshot, served);
    if (shared === null || (shared.ready === null && !this.#options.sketches.areOff)) return null;
    this.counts.found++;
    return shared.ready ?? this.#arrange(shared, withoutSketches, snapshot);
  }

  /** Gives others a turn between any two steps, where it is due. `parsed` is the tree of this very text, where there is one. */
  async make(
    source: StatementSource,
    statement: QueryStatement,
    snapshot: GovernedSnapshot,
    served: ServedView | null,
    parsed: QueryStatement | null,
    turn: () => Promise<void>,
  ): Promise<ReadyPlan> {
    let shared = this.#findShared(source, statement, snapshot, served);
    if (shared === null) {
      this.counts.made++;
      shared = await this.#makeShared(source, snapshot, served, parsed, turn);
      if (this.#options.keep) this.#cache.set(snapshot.branch, this.#key(source, statement, snapshot, served), shared);
    } else {
      this.counts.found++;
    }
    if (shared.ready !== null) return shared.ready;
    const sketch = await this.#options.sketches.sketchesOf(shared.plan, snapshot);
    await turn();
    const steps = this.#arrangedInSteps(shared, sketch, snapshot);
    for (;;) {
      const { done, value } = steps.next();
      if (done === true) return value;
      await turn();
    }
  }

  /** Right and naive: names are bound, and no pass has seen it. */
  bindQuestion(
    { query, withProvenance }: Pick<QueryStatement, 'query' | 'withProvenance'>,
    { dialect }: Pick<StatementSource, 'dialect'>,
    snapshot: GovernedSnapshot,
    served: ServedView | null,
    literals: readonly Literal[],
  ): LogicalPlan {
    return bindQuery({
      query,
      withProvenance,
      dialect,
      literals,
      catalog: snapshot.catalog,
      views: (name) => this.#names.view(snapshot, name),
      masksOf: (type) => snapshot.masksOf(type),
      hides: (type, column) => snapshot.hides(type, column),
      offers: (type) => snapshot.offers(type),
      viewNames: () => snapshot.views.map(({ name }) => name),
      lookups: (name) => this.#options.lookups?.table(snapshot.caller.path, name),
      rankings: (type) => this.#options.rankings?.get(type),
      virtual: virtualNode,
      catalogue: catalogueFunctions,
      servedView: (name) => (name === served?.name ? served.columns : undefined),
    });
  }

  /** Plans with all passes but those that arrange joins, at once; the plan is not cached. */
  atOnce(statement: QueryStatement, source: StatementSource, snapshot: GovernedSnapshot): LogicalPlan {
    const plan = this.bindQuestion(statement, source, snapshot, null, source.parameters);
    return [...this.#settling, ...this.#finishing].reduce((before, pass) => pass(before, ofNobody), plan);
  }

  #findShared(
    source: StatementSource,
    statement: QueryStatement,
    snapshot: GovernedSnapshot,
    served: ServedView | null,
  ): SharedPlan | null {
    const known = this.#cache.get(snapshot.branch, this.#key(source, statement, snapshot, served));
    const { parameters } = source;
    return known?.plan.guards.every((guard) => guardHolds(guard, parameters)) === true ? known : null;
  }

  /** Everything that a shared plan depends on; no literals, except those that its guards compare. */
  #key(source: StatementSource, statement: QueryStatement, snapshot: GovernedSnapshot, served: ServedView | null): string {
    let names = this.#read.get(statement);
    if (names === undefined) this.#read.set(statement, (names = namesRead(statement.query)));
    const read = { query: statement.query, literals: source.parameters, names };
    return source.key + this.#names.keyOf(read, snapshot, served);
  }

  async #makeShared(
    source: StatementSource,
    snapshot: GovernedSnapshot,
    served: ServedView | null,
    parsed: QueryStatement | null,
    turn: () => Promise<void>,
  ): Promise<SharedPlan> {
    // Parsed again where a tree was cached: errors must have locations in this text, not in that of the cached tree.
    const statement = parsed ?? queryStatementOf(source.parse());
    await turn();
    let plan = this.bindQuestion(statement, source, snapshot, served, source.parameters);
    const columns = shownColumns(plan, source.dialect);
    for (const pass of this.#settling) {
      await turn();
      plan = pass(plan, ofNobody);
    }
    const isArranged = this.#arranging.length > 0 && hasJoin(plan);
    if (!isArranged) {
      for (const pass of this.#finishing) {
        await turn();
        plan = pass(plan, ofNobody);
      }
    }
    await turn();
    const named = new Set(typesNamed(statement.query));
    const shared = {
      plan,
      columns,
      readsMore: plan.objectTypes.some((type) => !named.has(type)),
    };
    return {
      ...shared,
      ready: isArranged ? null : readyOf(shared, plan),
      numbers: new Map(isArranged ? nodesOf(plan).map((node, number) => [node, number]) : []),
      arrangements: new Map(),
    };
  }

  #arrange(shared: SharedPlan, sketch: PassContext['sketch'], snapshot: GovernedSnapshot): ReadyPlan {
    const steps = this.#arrangedInSteps(shared, sketch, snapshot);
    for (;;) {
      const { done, value } = steps.next();
      if (done === true) return value;
    }
  }

  *#arrangedInSteps(
    shared: SharedPlan,
    sketch: PassContext['sketch'],
    snapshot: GovernedSnapshot,
  ): Generator<undefined, ReadyPlan, undefined> {
    const estimates = new Map<string, number>();
    const estimate = (scan: ScanNode): number => {
      if (scan.keys) return countValues(scan.keys);
      let rows = estimates.get(scan.type);
      if (rows === undefined) estimates.set(scan.type, (rows = rowsOf(snapshot, scan.type)));
      return rows;
    };
    let { plan } = shared;
    for (const pass of this.#arranging) {
      plan = pass(plan, { estimate, sketch });
      yield;
    }
    const key = arrangementOf(plan, shared.numbers);
    const known = key === null ? undefined : shared.arrangements.get(key);
    if (known !== undefined) return known;
    for (const pass of this.#finishing) {
      yield;
      plan = pass(plan, ofNobody);
    }
    const ready = readyOf(shared, plan);
    if (key !== null && shared.arrangements.size < arrangementsMax) shared.arrangements.set(key, ready);
    return ready;
  }
}

/** The context of passes over shared plans, which must not use estimates. */
const ofNobody: PassContext = {
  estimate: () => {
    assert(false, 'a pass that asks for estimates is among those that arrange joins');
  },
  sketch: () => {
    assert(false, 'a pass that asks for sketches is among those that arrange joins');
  },
};

function readyOf({ columns, readsMore }: Pick<SharedPlan, 'columns' | 'readsMore'>, plan: LogicalPlan): ReadyPlan {
  const reads = nodesOf(plan).flatMap((node) => {
    const isStored = node.kind === 'scan' || (node.kind === 'function' && node.type !== null);
    if (!isStored) return [];
    return [{ type: node.type!, columns: [...new Set(node.columns.map(({ name }) => shownOf(name) ?? name))] }];
  });
  return { plan, columns, kernels: new Map(), readsMore, reads };
}

/** How joins stand to each other, and which side each one holds; null where something stands below them that is not of the plan. */
function arrangementOf({ root, subqueries, facets }: LogicalPlan, numbers: ReadonlyMap<PlanNode, number>): string | null {
  let isKnown = true;
  const writeNode = (node: PlanNode): string => {
    const number = numbers.get(node);
    if (number !== undefined) return String(number);
    if (node.kind === 'join') {
      const keys = `${node.leftKeys.join()}=${node.rightKeys.join()}`;
      const side = node.build === 'left' ? '<' : node.leads === true ? '>>' : '>';
      return `(${writeNode(node.left)}${side}${node.type}${keys} ${writeNode(node.right)})`;
    }
    const inputs = inputsOf(node);
    if (inputs.length === 0) isKnown = false;
    return `${node.kind}[${inputs.map(writeNode).join()}]`;
  };
  const text = [root, ...subqueries.map((subquery) => subquery.root), ...(facets ? [facets.root] : [])].map(writeNode).join('|');
  return isKnown ? text : null;
}

/** A type that may not be read has no rows, or is refused when it is. */
function rowsOf(snapshot: GovernedSnapshot, type: string): number {
  if (isClosedType(snapshot, type)) return 0;
  return snapshot.rows.estimate({ type, columns: [], time: { system: 'all', valid: 'all' } }).rows;
}

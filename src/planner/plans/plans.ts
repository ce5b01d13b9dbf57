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
const passesArranging: ReadonlySet<Pass> = new Set([reorderJoins, associateJoins, orderJoins]);

/** Plans in all, and arrangements of one. */
const cachedPlansMax = 1_024;
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
  readonly #plansOptions: PlansOptions;
  readonly #planCache: PlanCache<SharedPlan>;
  readonly #planNames: PlanNames;
  /** The names in a question: each statement is searched for names once. */
  readonly #namesByQuery = new WeakMap<QueryStatement, ReadNames>();
  readonly #settlingPasses: readonly Pass[];
  readonly #arrangingPasses: readonly Pass[];
  readonly #finishingPasses: readonly Pass[];
  /** Runs that found their plan, and plans that were made: for tests and figures. */
  readonly counts = { found: 0, made: 0 };

  constructor(options: PlansOptions) {
    this.#plansOptions = options;
    this.#planCache = new PlanCache({ plansMax: cachedPlansMax, pinned: new Set(options.pinnedBranches) });
    this.#planNames = new PlanNames((path, name) => options.lookups?.table(path, name));
    const { passes: allPasses } = options;
    const firstArranging = allPasses.findIndex((pass) => passesArranging.has(pass));
    const lastArranging = allPasses.findLastIndex((pass) => passesArranging.has(pass));
    this.#settlingPasses = firstArranging < 0 ? allPasses : allPasses.slice(0, firstArranging);
    this.#arrangingPasses = firstArranging < 0 ? [] : allPasses.slice(firstArranging, lastArranging + 1);
    this.#finishingPasses = firstArranging < 0 ? [] : allPasses.slice(lastArranging + 1);
  }

  clear(): void {
    this.#planCache.clear();
    this.#planNames.clear();
  }

  /** The cached plan of a run, where no work has to wait for others: null where `make` has to be called. */
  find(
    source: StatementSource,
    statement: QueryStatement,
    snapshot: GovernedSnapshot,
    served: ServedView | null,
  ): ReadyPlan | null {
    const sharedPlan = this.#findSharedPlan(source, statement, snapshot, served);
    if (sharedPlan === null || (sharedPlan.ready === null && !this.#plansOptions.sketches.areOff)) return null;
    this.counts.found++;
    return sharedPlan.ready ?? this.#arrangePlan(sharedPlan, withoutSketches, snapshot);
  }

  /** Gives others a turn between any two steps, where it is due. `parsed` is the tree of this very text, where there is one. */
  async make(
    source: StatementSource,
    statement: QueryStatement,
    snapshot: GovernedSnapshot,
    served: ServedView | null,
    parsed: QueryStatement | null,
    takeTurn: () => Promise<void>,
  ): Promise<ReadyPlan> {
    let sharedPlan = this.#findSharedPlan(source, statement, snapshot, served);
    if (sharedPlan === null) {
      this.counts.made++;
      sharedPlan = await this.#makeShared(source, snapshot, served, parsed, takeTurn);
      if (this.#plansOptions.keep)
        this.#planCache.set(snapshot.branch, this.#planKey(source, statement, snapshot, served), sharedPlan);
    } else {
      this.counts.found++;
    }
    if (sharedPlan.ready !== null) return sharedPlan.ready;
    const planSketch = await this.#plansOptions.sketches.sketchesOf(sharedPlan.plan, snapshot);
    await takeTurn();
    const arrangeSteps = this.#arrangedInSteps(sharedPlan, planSketch, snapshot);
    for (;;) {
      const { done, value } = arrangeSteps.next();
      if (done === true) return value;
      await takeTurn();
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
      views: (name) => this.#planNames.view(snapshot, name),
      masksOf: (type) => snapshot.masksOf(type),
      hides: (type, column) => snapshot.hides(type, column),
      offers: (type) => snapshot.offers(type),
      viewNames: () => snapshot.views.map(({ name }) => name),
      lookups: (name) => this.#plansOptions.lookups?.table(snapshot.caller.path, name),
      rankings: (type) => this.#plansOptions.rankings?.get(type),
      virtual: virtualNode,
      catalogue: catalogueFunctions,
      servedView: (name) => (name === served?.name ? served.columns : undefined),
    });
  }

  /** Plans with all passes but those that arrange joins, at once; the plan is not cached. */
  atOnce(statement: QueryStatement, source: StatementSource, snapshot: GovernedSnapshot): LogicalPlan {
    const plan = this.bindQuestion(statement, source, snapshot, null, source.parameters);
    return [...this.#settlingPasses, ...this.#finishingPasses].reduce((planBefore, pass) => pass(planBefore, noStatistics), plan);
  }

  #findSharedPlan(
    source: StatementSource,
    statement: QueryStatement,
    snapshot: GovernedSnapshot,
    served: ServedView | null,
  ): SharedPlan | null {
    const cachedPlan = this.#planCache.get(snapshot.branch, this.#planKey(source, statement, snapshot, served));
    const { parameters } = source;
    return cachedPlan?.plan.guards.every((guard) => guardHolds(guard, parameters)) === true ? cachedPlan : null;
  }

  /** Everything that a shared plan depends on; no literals, except those that its guards compare. */
  #planKey(source: StatementSource, statement: QueryStatement, snapshot: GovernedSnapshot, served: ServedView | null): string {
    let namesOfQuery = this.#namesByQuery.get(statement);
    if (namesOfQuery === undefined) this.#namesByQuery.set(statement, (namesOfQuery = namesRead(statement.query)));
    const readQuery = { query: statement.query, literals: source.parameters, names: namesOfQuery };
    return source.key + this.#planNames.keyOf(readQuery, snapshot, served);
  }

  async #makeShared(
    source: StatementSource,
    snapshot: GovernedSnapshot,
    served: ServedView | null,
    parsed: QueryStatement | null,
    takeTurn: () => Promise<void>,
  ): Promise<SharedPlan> {
    // Parsed again where a tree was cached: errors must have locations in this text, not in that of the cached tree.
    const statement = parsed ?? queryStatementOf(source.parse());
    await takeTurn();
    let plan = this.bindQuestion(statement, source, snapshot, served, source.parameters);
    const columns = shownColumns(plan, source.dialect);
    for (const pass of this.#settlingPasses) {
      await takeTurn();
      plan = pass(plan, noStatistics);
    }
    const isArranged = this.#arrangingPasses.length > 0 && hasJoin(plan);
    if (!isArranged) {
      for (const pass of this.#finishingPasses) {
        await takeTurn();
        plan = pass(plan, noStatistics);
      }
    }
    await takeTurn();
    const typesInQuery = new Set(typesNamed(statement.query));
    const sharedFacts = {
      plan,
      columns,
      readsMore: plan.objectTypes.some((type) => !typesInQuery.has(type)),
    };
    return {
      ...sharedFacts,
      ready: isArranged ? null : readyPlanOf(sharedFacts, plan),
      numbers: new Map(isArranged ? nodesOf(plan).map((node, number) => [node, number]) : []),
      arrangements: new Map(),
    };
  }

  #arrangePlan(sharedPlan: SharedPlan, sketch: PassContext['sketch'], snapshot: GovernedSnapshot): ReadyPlan {
    const arrangeSteps = this.#arrangedInSteps(sharedPlan, sketch, snapshot);
    for (;;) {
      const { done, value } = arrangeSteps.next();
      if (done === true) return value;
    }
  }

  *#arrangedInSteps(
    sharedPlan: SharedPlan,
    sketch: PassContext['sketch'],
    snapshot: GovernedSnapshot,
  ): Generator<undefined, ReadyPlan, undefined> {
    const rowsByType = new Map<string, number>();
    const estimateScan = (scan: ScanNode): number => {
      if (scan.keys) return countValues(scan.keys);
      let typeRows = rowsByType.get(scan.type);
      if (typeRows === undefined) rowsByType.set(scan.type, (typeRows = typeRowsOf(snapshot, scan.type)));
      return typeRows;
    };
    let { plan } = sharedPlan;
    for (const pass of this.#arrangingPasses) {
      plan = pass(plan, { estimate: estimateScan, sketch });
      yield;
    }
    const arrangementKey = arrangementKeyOf(plan, sharedPlan.numbers);
    const knownArrangement = arrangementKey === null ? undefined : sharedPlan.arrangements.get(arrangementKey);
    if (knownArrangement !== undefined) return knownArrangement;
    for (const pass of this.#finishingPasses) {
      yield;
      plan = pass(plan, noStatistics);
    }
    const readyPlan = readyPlanOf(sharedPlan, plan);
    if (arrangementKey !== null && sharedPlan.arrangements.size < arrangementsMax)
      sharedPlan.arrangements.set(arrangementKey, readyPlan);
    return readyPlan;
  }
}

/** The context of passes over shared plans, which must not use estimates. */
const noStatistics: PassContext = {
  estimate: () => {
    assert(false, 'a pass that asks for estimates is among those that arrange joins');
  },
  sketch: () => {
    assert(false, 'a pass that asks for sketches is among those that arrange joins');
  },
};

function readyPlanOf({ columns, readsMore }: Pick<SharedPlan, 'columns' | 'readsMore'>, plan: LogicalPlan): ReadyPlan {
  const readColumns = nodesOf(plan).flatMap((node) => {
    const readsStored = node.kind === 'scan' || (node.kind === 'function' && node.type !== null);
    if (!readsStored) return [];
    return [{ type: node.type!, columns: [...new Set(node.columns.map(({ name }) => shownOf(name) ?? name))] }];
  });
  return { plan, columns, kernels: new Map(), readsMore, reads: readColumns };
}

/** How joins stand to each other, and which side each one holds; null where something stands below them that is not of the plan. */
function arrangementKeyOf({ root, subqueries, facets }: LogicalPlan, nodeNumbers: ReadonlyMap<PlanNode, number>): string | null {
  let isKnown = true;
  const writeNode = (node: PlanNode): string => {
    const nodeNumber = nodeNumbers.get(node);
    if (nodeNumber !== undefined) return String(nodeNumber);
    if (node.kind === 'join') {
      const joinKeys = `${node.leftKeys.join()}=${node.rightKeys.join()}`;
      const buildSide = node.build === 'left' ? '<' : node.leads === true ? '>>' : '>';
      return `(${writeNode(node.left)}${buildSide}${node.type}${joinKeys} ${writeNode(node.right)})`;
    }
    const nodeInputs = inputsOf(node);
    if (nodeInputs.length === 0) isKnown = false;
    return `${node.kind}[${nodeInputs.map(writeNode).join()}]`;
  };
  const arrangementText = [root, ...subqueries.map((subquery) => subquery.root), ...(facets ? [facets.root] : [])]
    .map(writeNode)
    .join('|');
  return isKnown ? arrangementText : null;
}

/** A type that may not be read has no rows, or is refused when it is. */
function typeRowsOf(snapshot: GovernedSnapshot, type: string): number {
  if (isClosedType(snapshot, type)) return 0;
  return snapshot.rows.estimate({ type, columns: [], time: { system: 'all', valid: 'all' } }).rows;
}

/** The pipeline, top to bottom: lex, look the plan up, else parse, bind and pass; then execute. */
import type { Clock } from '../clock.ts';
import { AssertionError, ServiceError } from '../errors.ts';
import type { GovernedSnapshot, Invocation } from '../governance/gate-contract.ts';
import type { JobRunner } from '../governance/jobs/job-runner.ts';
import { runControl } from './control/control.ts';
import { exampleValues, inferredTypes, lexWithoutValues, markerTypes, openSlots, slotTypes } from './statements/infer-types.ts';
import type { ContinuousServices } from './control/control-request.ts';
import { queryAnswer, rowTaker } from './query-answer.ts';
import { RunTurns, sliceMs } from './execution/run-turns.ts';
import { forgetHashed } from './embedding/hashing.ts';
import { Explainer, planColumns } from './plans/explain-answers.ts';
import { typesCalled, unitsOf } from './table-functions/statement-call.ts';
import { BasisCache } from './graph/basis-cache.ts';
import { GraphCache } from './graph/graph-cache.ts';
import type { LogicalPlan } from './logical-plan.ts';
import type { Execution } from './operators/operator.ts';
import { longWorkOf } from './operators/statement-job.ts';
import { looksOfUnit } from './graph/graph-limits.ts';
import { lookUp, lookUpInTurns, unitsOfKey } from './execution/key-look-up.ts';
import { keysLookedUp } from './execution/keyed-plan.ts';
import { Measurements } from './operators/measurements.ts';
import { provenanceOf } from './execution/answer-versions.ts';
import { defaultBounds, Executions, noWorking } from './execution/executions.ts';
import { StatementReader } from './statements/statement-reader.ts';
import { associateJoins } from './passes/associate-joins.ts';
import { chooseAccessPaths } from './passes/choose-access-paths.ts';
import { commonConditions } from './passes/common-conditions.ts';
import { useTextIndexes } from './passes/use-text-indexes.ts';
import { useVectorIndexes } from './passes/use-vector-indexes.ts';
import { findJoinKeys } from './passes/find-join-keys.ts';
import { orderJoins } from './passes/order-joins.ts';
import type { Pass } from './passes/pass.ts';
import { pruneColumns } from './passes/prune-columns.ts';
import { pushDownFilters } from './passes/push-down-filters.ts';
import { reorderJoins } from './passes/reorder-joins.ts';
import { simplifyExpressions } from './passes/simplify-expressions.ts';
import { errorAt } from './syntax/error-location.ts';
import { Sketches } from './plans/sketches.ts';
import { shownColumns } from './plans/output-origins.ts';
import { Plans } from './plans/plans.ts';
import type { Parsed as ParsedSigma } from './continuous/sigma/parse-rules.ts';
import { readSigmaRules } from './continuous/sigma/read-rules.ts';
import { CatalogueReader } from './system-catalogue/catalogue-reader.ts';
import { WriteSource, type InternalQuery, WriteStatements } from './writes/write-statements.ts';
import type {
  Answer,
  DescribeRequest,
  Description,
  Executed,
  ExecuteRequest,
  KeyLookUp,
  OutputColumn,
  PlannerDoor,
  QuerySeries,
  QueryRequest,
  SeriesVerb,
} from './planner-contract.ts';
import { defaultLimits, type PlannerOptions } from './planner-options.ts';
import {
  type StatementSource,
  QuerySource,
  TextSource,
  type QueryStatement,
  queryStatementOf,
  statedPurpose,
} from './statements/statement-source.ts';
import { typoPresets } from '../governance/text-search/text-query.ts';
import { type QueryInvocation, SnapshotQueries } from './statements/query-series.ts';
import type { ControlStatement } from './syntax/statement.ts';

export const passes: readonly Pass[] = [
  simplifyExpressions, // first: the others look for conjuncts and constants
  commonConditions, // before push-down, which takes the parts to where they belong
  pushDownFilters, // before access paths: what reaches the scan decides how it reads
  useTextIndexes, // needs the final predicates, and projections where they stay
  chooseAccessPaths, // needs the final predicates
  reorderJoins, // after access paths, which say how many rows a table gives; before keys, which it would have to move
  findJoinKeys, // after push-down, which leaves to a join what is about both of its sides
  associateJoins, // before sides are chosen, which it changes
  orderJoins, // needs to know which scans are lookups
  pruneColumns, // it renumbers columns, and no pass after it may ask for another one
  useVectorIndexes, // needs the numbers of columns as they stay
];

const shortText = 4_096;
/** Graphs that are kept for questions to come. */
const graphBytesMax = 512 * 1024 * 1024;
/** The most bytes of all that functions keep of rows for the next question. */
const keptBytesMax = 512 * 1024 * 1024;
/** One query on its way to its answer. */
interface PendingQuery {
  readonly invocation: QueryInvocation;
  readonly request: QueryRequest;
  readonly own: InternalQuery;
  readonly source: StatementSource;
  readonly statement: QueryStatement;
  /** Whether its tree was kept: parsing took no time. */
  readonly isKnown: boolean;
  readonly isLong: boolean;
  readonly startedMs: number;
}

export class Planner implements PlannerDoor {
  readonly #clock: Clock;
  readonly #version: string;
  readonly #continuous: ContinuousServices | null;
  readonly #turns: RunTurns;
  readonly #jobs: JobRunner | null;
  readonly #statements: StatementReader;
  readonly #plans: Plans;
  readonly #sketches: Sketches;
  readonly #executions: Executions;
  readonly #explainer: Explainer;
  readonly #writes: WriteStatements;
  readonly #graphs = new GraphCache(graphBytesMax);
  readonly #basisCache = new BasisCache(keptBytesMax);
  readonly #catalogue: CatalogueReader;

  constructor(options: PlannerOptions) {
    const { clock, yieldTurn, yieldBackground } = options;
    const limits = { ...defaultLimits, ...options.limits };
    const { timeoutMs, resultRowsMax } = limits;
    this.#clock = clock;
    this.#version = options.version ?? '';
    this.#catalogue = new CatalogueReader(options.random);
    this.#continuous = options.continuous ?? null;
    this.#jobs = options.jobs ?? null;
    this.#turns = new RunTurns({ clock, timeoutMs, resultRowsMax, yieldTurn, yieldBackground });
    const { foreground } = this.#turns;
    this.#statements = new StatementReader((key) => this.#writes.knows(key));
    this.#sketches = new Sketches(options.sketchColumns ?? [], clock, foreground);
    this.#plans = new Plans({
      passes: options.passes ?? passes,
      pinnedBranches: options.pinnedBranches ?? [],
      keep: options.keepPlans !== false,
      sketches: this.#sketches,
      lookups: this.#continuous?.lookups ?? null,
      ...(options.rankings && { rankings: options.rankings }),
    });
    const { workers = null, embedder = null, embeddings = null, reranker = null } = options;
    const beside = workers && { workers, looksMin: limits.looksBesideMin };
    this.#executions = new Executions({
      limits,
      services: { graphs: this.#graphs, basisCache: this.#basisCache, beside, embedder, embeddings, reranker },
      searchTypo: typoPresets[options.searchPreset ?? 'exact'],
    });
    this.#explainer = new Explainer(clock, foreground, this.#sketches);
    this.#writes = new WriteStatements({
      clock,
      turn: () => foreground.yield(),
      plans: this.#plans,
      newKey: options.newKey ?? null,
      jobs: this.#jobs,
      ask: (invocation, request, own) => this.#query(invocation, request, own),
      executionOf: (plan, query, source, snapshot) => this.#executions.make(plan, query, source, {}, snapshot, refuseCatalogue),
    });
  }

  /** Lets go of every text, plan and guess that is kept: literals of statements are among them, and traces of rows. */
  forget(): void {
    this.#statements.clear();
    this.#plans.clear();
    this.#writes.clear();
    this.#sketches.clear();
    this.#graphs.clear();
    this.#basisCache.clear();
    this.#catalogue.clear();
    forgetHashed();
  }

  /** Bytes of the graphs that are kept, the names of their nodes aside. */
  get graphBytes(): number {
    return this.#graphs.edgeBytes;
  }

  /** Runs that found their plan, and plans that were made. */
  get planCounts(): { readonly found: number; readonly made: number } {
    return { ...this.#plans.counts };
  }

  query(invocation: Invocation, request: QueryRequest): Promise<Answer> {
    return this.querySeries(invocation).query(request);
  }

  querySeries(invocation: Invocation, verb?: SeriesVerb): QuerySeries {
    return new SnapshotQueries(invocation, verb ?? null, (within, request) => this.#query(within, request));
  }

  lookUp(invocation: Invocation, request: KeyLookUp): Answer {
    return lookUp(invocation, request, defaultBounds);
  }

  async lookUpMany(invocation: Invocation, request: KeyLookUp, signal?: AbortSignal): Promise<Answer> {
    return lookUpInTurns(invocation, request, { boundsOf: defaultBounds, yieldTurn: this.turns(signal) });
  }

  readSigma(snapshot: GovernedSnapshot, documents: readonly string[], signal?: AbortSignal): Promise<readonly ParsedSigma[]> {
    const { path } = snapshot.caller;
    return readSigmaRules(documents, {
      placeholders: (name) => this.#continuous?.lookups.keys(path, name) ?? null,
      registered: snapshot
        .rules()
        .flatMap(({ definition, owner }) =>
          owner === path && definition.kind === 'detection' && definition.language === 'sigma' ? [definition.condition] : [],
        ),
      yieldTurn: this.turns(signal),
    });
  }

  turns(signal?: AbortSignal): () => Promise<void> {
    return this.#turns.limited(signal);
  }

  async execute(invocation: Invocation, request: ExecuteRequest): Promise<Executed> {
    const startedMs = this.#clock.monotonicMs();
    const { dialect = 'wide', purpose = null, signal, session } = request;
    if (request.write !== undefined) {
      const { write } = request;
      return this.#writes.execute(invocation, new WriteSource(write, dialect), write.statement, request, startedMs);
    }
    const { sql, parameters, time = 'current' } = request;
    const query = { sql, dialect, purpose, parameters, signal, session, time };
    const source =
      sql.length > shortText
        ? await this.#statements.readInTurns(query, () => this.#turns.foreground.yield())
        : this.#statements.read(query);
    const graphWrite = request.graph && source instanceof TextSource ? source.graphWrite() : null;
    if (graphWrite !== null && (request.graph === true || graphWrite.kind === request.graph))
      return this.#writes.executeGraph(invocation, source, graphWrite, request, startedMs);
    const statement = this.#writes.statementOf(source);
    if (statement === null) {
      const locking = invocation.transaction !== null && /\bFOR\b/i.test(source.template) ? source.parse() : null;
      if (locking?.kind === 'query' && locking.query.lock)
        await this.#writes.lock(invocation, source, locking.query, request, time, startedMs);
      const series = new SnapshotQueries(invocation, null, (within, each) => this.#query(within, each, { source }));
      return { answer: await series.query(query), written: null };
    }
    return this.#writes.execute(invocation, source, statement, request, startedMs);
  }

  async describe(invocation: Invocation, request: DescribeRequest): Promise<Description> {
    const dialect = request.dialect ?? 'spec';
    const stated = request.parsed === undefined ? (request.parameterTypes ?? []) : [];
    const lexed = request.parsed === undefined ? lexWithoutValues(request.sql, stated) : null;
    const source = request.parsed === undefined ? new TextSource(lexed!, dialect) : new QuerySource(request.parsed, dialect);
    invocation.describe({ template: source.guardedTemplate });
    const write = request.writes && lexed ? this.#writes.statementOf(source) : null;
    if (write !== null)
      return this.#writes.describe(invocation, { source, lexed: lexed!, stated, statement: write, purpose: request.purpose });
    const statement = source.parse();
    if (statement.kind === 'control')
      throw errorAt('REL_INVALID', 'only a query can be described: this statement runs at once', statement.location);
    const query = queryStatementOf(statement);
    invocation.describe({ ...query.details, ...statedPurpose(query.purposeSlot, source, request) });
    const snapshot = invocation.snapshot('describe');
    const plan = this.#plans.bindQuestion(query, source, snapshot, null, lexed ? exampleValues(lexed) : source.parameters);
    invocation.describe({ template: source.template, objectType: plan.objectTypes.join(','), rowCount: 0, costUnits });
    const open = lexed
      ? openSlots(lexed, stated)
      : new Set(source.parameters.flatMap((value, slot) => (value === null ? [slot] : [])));
    const inferred = inferredTypes(plan, open);
    return {
      columns: query.mode === 'run' ? shownColumns(plan, dialect) : planColumns,
      parameters: lexed ? markerTypes(lexed, stated, inferred) : slotTypes(source.parameters, inferred),
    };
  }

  async #query(
    invocation: QueryInvocation,
    request: QueryRequest,
    own: InternalQuery & { readonly source?: StatementSource } = {},
  ): Promise<Answer> {
    const startedMs = this.#clock.monotonicMs();
    const { foreground } = this.#turns;
    const isLong = request.sql !== undefined && request.sql.length > shortText;
    const source =
      own.source ??
      (isLong ? await this.#statements.readInTurns(request, () => foreground.yield()) : this.#statements.read(request));
    invocation.describe({ template: source.guardedTemplate, literals: source.parameters.map(String) });
    if (isLong) await foreground.yield();
    const known = this.#statements.find(source);
    if (isLong) await foreground.yield();
    const statement = known ?? this.#statements.parse(source);
    if ('control' in statement) return this.#control(invocation, request, source, statement.control, startedMs);
    invocation.describe(statement.details);
    const called = typesCalled(statement.query, source.parameters);
    if (called.length > 0) invocation.describe({ objectType: called.join(',') });
    invocation.describe(statedPurpose(statement.purposeSlot, source, request));

    if (statement.mode === 'policy') return this.#explainer.policy(invocation, statement.query, source, request, startedMs);

    if (isLong) await foreground.yield();
    const isKnown = known !== undefined;
    return this.#answer({ invocation, request, own, source, statement, isKnown, isLong, startedMs });
  }

  /** Plans and runs a query, once more where a subject was erased meanwhile. */
  async #answer(pending: PendingQuery): Promise<Answer> {
    const { invocation, request, own, source, statement, isKnown, isLong, startedMs } = pending;
    const now = invocation.snapshot();
    const { time = 'all', basis, inBackground = false } = request;
    for (;;) {
      const served = time === 'all' && basis === undefined ? (this.#continuous?.views.serve(statement.query, now) ?? null) : null;
      const snapshot = served?.snapshot ?? now;
      const ready =
        this.#plans.find(source, statement, snapshot, served) ??
        (await this.#plans.make(
          source,
          statement,
          snapshot,
          served,
          isKnown ? null : statement,
          this.#turns.planning(isLong, request.signal),
        ));
      const { plan } = ready;
      own.onPlan?.(ready);
      // A short text may still have a long plan, which takes long to build.
      const isSlow = isLong || (!isKnown && this.#clock.monotonicMs() - startedMs > sliceMs);
      if (source.guardedTemplate !== source.template) invocation.describe({ template: source.template });
      // Subqueries and views read types that FROM does not name.
      if (ready.readsMore) invocation.describe({ objectType: plan.objectTypes.join(',') });
      const watch = statement.mode === 'analyze' ? new Measurements(plan, this.#clock) : null;
      const execution = this.#execution(pending, plan, snapshot, watch);
      if (isSlow) await this.#turns.foreground.yield();
      if (statement.mode === 'plan') return this.#explainer.explain(plan, execution, startedMs, { statement, run: null });

      const overtaken = snapshot.erasing(plan.objectTypes);
      const { longWork } = execution;
      const signal = longWork?.signal(request.signal) ?? request.signal;
      const taker = rowTaker(statement, ready, request);
      const { kernels } = ready;
      const result = await this.#turns.run({ plan, kernels, execution, signal, isLong: isSlow, startedMs, taker }, inBackground);
      const provenance = plan.withProvenance
        ? await provenanceOf(plan, result.batches, execution, {
            clock: this.#clock,
            scheduler: this.#turns.schedulerOf(inBackground),
          })
        : null;
      // The run may have seen some rows that are erased by now, and not others: it runs again, while its time lasts.
      if (overtaken()) {
        request.rows?.restart();
        continue;
      }
      const costUnits = unitsOfRun(statement, plan, execution);
      invocation.describe({ rowCount: result.rowCount, costUnits });
      if (watch)
        return this.#explainer.explain(plan, execution, startedMs, { statement, run: { actualRows: result.rowCount, watch } });
      const processingTimeMs = this.#clock.monotonicMs() - startedMs;
      return queryAnswer({
        ready,
        statement,
        snapshot,
        execution,
        result,
        provenance,
        costUnits,
        processingTimeMs,
        overtaken,
      });
    }
  }

  #execution(
    { invocation, request, own, source, statement }: PendingQuery,
    plan: LogicalPlan,
    snapshot: GovernedSnapshot,
    watch: Measurements | null,
  ): Execution {
    const catalogue = this.#catalogue.open({
      invocation,
      session: request.session,
      snapshot,
      columnsOf: (view) => this.#viewColumns(view, snapshot),
      lookupEpoch: this.#continuous?.lookups.epoch ?? 0,
    });
    return this.#executions.make(plan, statement.query, source, request, snapshot, catalogue, {
      watch,
      longWork: own.isListed === true ? null : longWorkOf(plan, invocation.caller, this.#jobs, this.#clock),
      working: own.given ?? noWorking,
    });
  }

  #control(
    invocation: QueryInvocation,
    request: QueryRequest,
    source: StatementSource,
    statement: ControlStatement,
    startedMs: number,
  ): Promise<Answer> {
    invocation.describe({ ...statedPurpose(statement.purpose?.slot ?? null, source, request), template: source.template });
    if (request.queriesOnly === true) {
      throw new ServiceError('REL_INVALID', 'only queries can be run here: send the statement to POST /query');
    }
    return runControl({
      statement,
      literals: source.parameters,
      invocation: invocation.control(),
      request,
      text: () => source.text(),
      clock: this.#clock,
      startedMs,
      continuous: this.#continuous,
      locationOf: (slot) => source.locationOf(slot),
      query: (within, query) => this.query(within, query),
      engine: this.#version,
      yieldTurn: () => this.#turns.foreground.yield(),
    });
  }

  /** The columns that a reader of the view would get; none of a view that can't be queried. */
  #viewColumns(view: string, snapshot: GovernedSnapshot): readonly OutputColumn[] {
    const source = this.#statements.lex(`SELECT * FROM "${view.replaceAll('"', '""')}"`, 'wide');
    try {
      const statement = this.#statements.parse(source);
      if ('control' in statement) return [];
      return shownColumns(this.#plans.bindQuestion(statement, source, snapshot, null, source.parameters), 'wide');
    } catch (error) {
      if (!(error instanceof ServiceError) || error.code === 'REL_INTERNAL') throw error;
      return [];
    }
  }
}

/** Source: specification, "Tool protocol": a query costs 1. */
const costUnits = 1;

const refuseCatalogue = (): never => {
  throw new AssertionError('rows that are given are joined with no relation');
};

/** The cost of a run: reads by key cost less than a query, looks at edges of a graph more. */
function unitsOfRun({ query }: QueryStatement, plan: LogicalPlan, { counters }: Execution): number {
  const keys = keysLookedUp(plan);
  const units = keys === null ? unitsOf(query) : Math.min(1, keys * unitsOfKey);
  return units + Math.floor(counters.looks / looksOfUnit);
}

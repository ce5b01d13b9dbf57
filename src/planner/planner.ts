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

const shortStatementMax = 4_096;
/** Graphs that are kept for questions to come. */
const graphBytesMax = 512 * 1024 * 1024;
/** The most bytes of all that functions keep of rows for the next question. */
const basisBytesMax = 512 * 1024 * 1024;
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
  readonly #plannerClock: Clock;
  readonly #engineVersion: string;
  readonly #continuousServices: ContinuousServices | null;
  readonly #turns: RunTurns;
  readonly #jobRunner: JobRunner | null;
  readonly #statementReader: StatementReader;
  readonly #readyPlans: Plans;
  readonly #columnSketches: Sketches;
  readonly #planExecutions: Executions;
  readonly #planExplainer: Explainer;
  readonly #writeStatements: WriteStatements;
  readonly #graphCache = new GraphCache(graphBytesMax);
  readonly #basisCache = new BasisCache(basisBytesMax);
  readonly #catalogue: CatalogueReader;

  constructor(options: PlannerOptions) {
    const { clock, yieldTurn, yieldBackground } = options;
    const limits = { ...defaultLimits, ...options.limits };
    const { timeoutMs, resultRowsMax } = limits;
    this.#plannerClock = clock;
    this.#engineVersion = options.version ?? '';
    this.#catalogue = new CatalogueReader(options.random);
    this.#continuousServices = options.continuous ?? null;
    this.#jobRunner = options.jobs ?? null;
    this.#turns = new RunTurns({ clock, timeoutMs, resultRowsMax, yieldTurn, yieldBackground });
    const { foreground } = this.#turns;
    this.#statementReader = new StatementReader((key) => this.#writeStatements.knows(key));
    this.#columnSketches = new Sketches(options.sketchColumns ?? [], clock, foreground);
    this.#readyPlans = new Plans({
      passes: options.passes ?? passes,
      pinnedBranches: options.pinnedBranches ?? [],
      keep: options.keepPlans !== false,
      sketches: this.#columnSketches,
      lookups: this.#continuousServices?.lookups ?? null,
      ...(options.rankings && { rankings: options.rankings }),
    });
    const { workers = null, embedder = null, embeddings = null, reranker = null } = options;
    const workersBeside = workers && { workers, looksMin: limits.looksBesideMin };
    this.#planExecutions = new Executions({
      limits,
      services: { graphs: this.#graphCache, basisCache: this.#basisCache, beside: workersBeside, embedder, embeddings, reranker },
      searchTypo: typoPresets[options.searchPreset ?? 'exact'],
    });
    this.#planExplainer = new Explainer(clock, foreground, this.#columnSketches);
    this.#writeStatements = new WriteStatements({
      clock,
      turn: () => foreground.yield(),
      plans: this.#readyPlans,
      newKey: options.newKey ?? null,
      jobs: this.#jobRunner,
      ask: (invocation, request, ownStatement) => this.#query(invocation, request, ownStatement),
      executionOf: (plan, query, source, snapshot) =>
        this.#planExecutions.make(plan, query, source, {}, snapshot, refuseRelations),
    });
  }

  /** Lets go of every text, plan and guess that is kept: literals of statements are among them, and traces of rows. */
  forget(): void {
    this.#statementReader.clear();
    this.#readyPlans.clear();
    this.#writeStatements.clear();
    this.#columnSketches.clear();
    this.#graphCache.clear();
    this.#basisCache.clear();
    this.#catalogue.clear();
    forgetHashed();
  }

  /** Bytes of the graphs that are kept, the names of their nodes aside. */
  get graphBytes(): number {
    return this.#graphCache.edgeBytes;
  }

  /** Runs that found their plan, and plans that were made. */
  get planCounts(): { readonly found: number; readonly made: number } {
    return { ...this.#readyPlans.counts };
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
      placeholders: (name) => this.#continuousServices?.lookups.keys(path, name) ?? null,
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
    const startedMs = this.#plannerClock.monotonicMs();
    const { dialect = 'wide', purpose = null, signal, session: querySession } = request;
    if (request.write !== undefined) {
      const { write: parsedWrite } = request;
      return this.#writeStatements.execute(
        invocation,
        new WriteSource(parsedWrite, dialect),
        parsedWrite.statement,
        request,
        startedMs,
      );
    }
    const { sql, parameters, time = 'current' } = request;
    const query = { sql, dialect, purpose, parameters, signal, session: querySession, time };
    const source =
      sql.length > shortStatementMax
        ? await this.#statementReader.readInTurns(query, () => this.#turns.foreground.yield())
        : this.#statementReader.read(query);
    const graphWrite = request.graph && source instanceof TextSource ? source.graphWrite() : null;
    if (graphWrite !== null && (request.graph === true || graphWrite.kind === request.graph))
      return this.#writeStatements.executeGraph(invocation, source, graphWrite, request, startedMs);
    const writeStatement = this.#writeStatements.statementOf(source);
    if (writeStatement === null) {
      const lockingStatement = invocation.transaction !== null && /\bFOR\b/i.test(source.template) ? source.parse() : null;
      if (lockingStatement?.kind === 'query' && lockingStatement.query.lock)
        await this.#writeStatements.lock(invocation, source, lockingStatement.query, request, time, startedMs);
      const series = new SnapshotQueries(invocation, null, (within, each) => this.#query(within, each, { source }));
      return { answer: await series.query(query), written: null };
    }
    return this.#writeStatements.execute(invocation, source, writeStatement, request, startedMs);
  }

  async describe(invocation: Invocation, request: DescribeRequest): Promise<Description> {
    const dialect = request.dialect ?? 'spec';
    const statedTypes = request.parsed === undefined ? (request.parameterTypes ?? []) : [];
    const unaskedLexed = request.parsed === undefined ? lexWithoutValues(request.sql, statedTypes) : null;
    const source =
      request.parsed === undefined ? new TextSource(unaskedLexed!, dialect) : new QuerySource(request.parsed, dialect);
    invocation.describe({ template: source.guardedTemplate });
    const describedWrite = request.writes && unaskedLexed ? this.#writeStatements.statementOf(source) : null;
    if (describedWrite !== null)
      return this.#writeStatements.describe(invocation, {
        source,
        lexed: unaskedLexed!,
        stated: statedTypes,
        statement: describedWrite,
        purpose: request.purpose,
      });
    const statement = source.parse();
    if (statement.kind === 'control')
      throw errorAt('REL_INVALID', 'only a query can be described: this statement runs at once', statement.location);
    const query = queryStatementOf(statement);
    invocation.describe({ ...query.details, ...statedPurpose(query.purposeSlot, source, request) });
    const snapshot = invocation.snapshot('describe');
    const describedPlan = this.#readyPlans.bindQuestion(
      query,
      source,
      snapshot,
      null,
      unaskedLexed ? exampleValues(unaskedLexed) : source.parameters,
    );
    invocation.describe({
      template: source.template,
      objectType: describedPlan.objectTypes.join(','),
      rowCount: 0,
      costUnits: describeCostUnits,
    });
    const openParameters = unaskedLexed
      ? openSlots(unaskedLexed, statedTypes)
      : new Set(source.parameters.flatMap((value, slot) => (value === null ? [slot] : [])));
    const typesInferred = inferredTypes(describedPlan, openParameters);
    return {
      columns: query.mode === 'run' ? shownColumns(describedPlan, dialect) : planColumns,
      parameters: unaskedLexed
        ? markerTypes(unaskedLexed, statedTypes, typesInferred)
        : slotTypes(source.parameters, typesInferred),
    };
  }

  async #query(
    invocation: QueryInvocation,
    request: QueryRequest,
    own: InternalQuery & { readonly source?: StatementSource } = {},
  ): Promise<Answer> {
    const startedMs = this.#plannerClock.monotonicMs();
    const { foreground } = this.#turns;
    const isLong = request.sql !== undefined && request.sql.length > shortStatementMax;
    const source =
      own.source ??
      (isLong ? await this.#statementReader.readInTurns(request, () => foreground.yield()) : this.#statementReader.read(request));
    invocation.describe({ template: source.guardedTemplate, literals: source.parameters.map(String) });
    if (isLong) await foreground.yield();
    const known = this.#statementReader.find(source);
    if (isLong) await foreground.yield();
    const statement = known ?? this.#statementReader.parse(source);
    if ('control' in statement) return this.#runControlStatement(invocation, request, source, statement.control, startedMs);
    invocation.describe(statement.details);
    const called = typesCalled(statement.query, source.parameters);
    if (called.length > 0) invocation.describe({ objectType: called.join(',') });
    invocation.describe(statedPurpose(statement.purposeSlot, source, request));

    if (statement.mode === 'policy') return this.#planExplainer.policy(invocation, statement.query, source, request, startedMs);

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
      const served =
        time === 'all' && basis === undefined ? (this.#continuousServices?.views.serve(statement.query, now) ?? null) : null;
      const snapshot = served?.snapshot ?? now;
      const ready =
        this.#readyPlans.find(source, statement, snapshot, served) ??
        (await this.#readyPlans.make(
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
      const isSlow = isLong || (!isKnown && this.#plannerClock.monotonicMs() - startedMs > sliceMs);
      if (source.guardedTemplate !== source.template) invocation.describe({ template: source.template });
      // Subqueries and views read types that FROM does not name.
      if (ready.readsMore) invocation.describe({ objectType: plan.objectTypes.join(',') });
      const watch = statement.mode === 'analyze' ? new Measurements(plan, this.#plannerClock) : null;
      const execution = this.#execution(pending, plan, snapshot, watch);
      if (isSlow) await this.#turns.foreground.yield();
      if (statement.mode === 'plan') return this.#planExplainer.explain(plan, execution, startedMs, { statement, run: null });

      const overtaken = snapshot.erasing(plan.objectTypes);
      const { longWork } = execution;
      const signal = longWork?.signal(request.signal) ?? request.signal;
      const taker = rowTaker(statement, ready, request);
      const { kernels } = ready;
      const result = await this.#turns.run({ plan, kernels, execution, signal, isLong: isSlow, startedMs, taker }, inBackground);
      const provenance = plan.withProvenance
        ? await provenanceOf(plan, result.batches, execution, {
            clock: this.#plannerClock,
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
        return this.#planExplainer.explain(plan, execution, startedMs, {
          statement,
          run: { actualRows: result.rowCount, watch },
        });
      const processingTimeMs = this.#plannerClock.monotonicMs() - startedMs;
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
      columnsOf: (view) => this.#viewColumnsOf(view, snapshot),
      lookupEpoch: this.#continuousServices?.lookups.epoch ?? 0,
    });
    return this.#planExecutions.make(plan, statement.query, source, request, snapshot, catalogue, {
      watch,
      longWork: own.isListed === true ? null : longWorkOf(plan, invocation.caller, this.#jobRunner, this.#plannerClock),
      working: own.given ?? noWorking,
    });
  }

  #runControlStatement(
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
      clock: this.#plannerClock,
      startedMs,
      continuous: this.#continuousServices,
      locationOf: (slot) => source.locationOf(slot),
      query: (within, query) => this.query(within, query),
      engine: this.#engineVersion,
      yieldTurn: () => this.#turns.foreground.yield(),
    });
  }

  /** The columns that a reader of the view would get; none of a view that can't be queried. */
  #viewColumnsOf(viewName: string, snapshot: GovernedSnapshot): readonly OutputColumn[] {
    const source = this.#statementReader.lex(`SELECT * FROM "${viewName.replaceAll('"', '""')}"`, 'wide');
    try {
      const statement = this.#statementReader.parse(source);
      if ('control' in statement) return [];
      return shownColumns(this.#readyPlans.bindQuestion(statement, source, snapshot, null, source.parameters), 'wide');
    } catch (error) {
      if (!(error instanceof ServiceError) || error.code === 'REL_INTERNAL') throw error;
      return [];
    }
  }
}

/** Source: specification, "Tool protocol": a query costs 1. */
const describeCostUnits = 1;

const refuseRelations = (): never => {
  throw new AssertionError('rows that are given are joined with no relation');
};

/** The cost of a run: reads by key cost less than a query, looks at edges of a graph more. */
function unitsOfRun({ query }: QueryStatement, plan: LogicalPlan, { counters }: Execution): number {
  const keys = keysLookedUp(plan);
  const units = keys === null ? unitsOf(query) : Math.min(1, keys * unitsOfKey);
  return units + Math.floor(counters.looks / looksOfUnit);
}

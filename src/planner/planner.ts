/** The pipeline, top to bottom: lex, look the plan up, else parse, bind and pass; then execute. */
import type { Clock } from '../clock.ts';
import { AssertionError, ServiceError } from '../errors.ts';
import type { GovernedSnapshot, Invocation } from '../governance/gate-contract.ts';
import type { JobRunner } from '../governance/jobs/job-runner.ts';
import { runControl } from './control/control.ts';
import { exampleValues, inferredTypes, lexUnasked, markerTypes, openSlots, slotTypes } from './statements/infer-types.ts';
import type { ContinuousServices } from './control/control-request.ts';
import { type Result, run, type RunRequest, type Scheduler } from './execution/executor.ts';
import { forgetHashed } from './embedding/hashing.ts';
import { Explainer, planColumns } from './plans/explain-answers.ts';
import { typesCalled, unitsOf } from './table-functions/statement-call.ts';
import { BasisCache } from './graph/basis-cache.ts';
import { GraphCache } from './graph/graph-cache.ts';
import { longWorkOf } from './operators/statement-job.ts';
import { looksOfUnit } from './graph/graph-limits.ts';
import { lookUp, lookUpInTurns, unitsOfKey } from './execution/key-look-up.ts';
import { keysLookedUp } from './execution/keyed-plan.ts';
import { Measurements } from './operators/measurements.ts';
import { cursors, provenanceOf } from './execution/answer-versions.ts';
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
import { Plans, type ReadyPlan } from './plans/plans.ts';
import { TurnQueue } from './execution/turn-queue.ts';
import type { Parsed as ParsedSigma } from './continuous/sigma/parse-rules.ts';
import { readSigmaRules } from './continuous/sigma/read-rules.ts';
import { CatalogueCache } from './system-catalogue/catalogue-cache.ts';
import { Draws } from './system-catalogue/random-draws.ts';
import { type SeenCatalogue, seenCatalogue } from './system-catalogue/seen-catalogue.ts';
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
  QueryOptions,
  QueryRequest,
  SeriesVerb,
} from './planner-contract.ts';
import { defaultLimits, type PlannerLimits, type PlannerOptions } from './planner-options.ts';
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
/** Work of one statement between two turns of others, where it can be cut. */
const sliceMs = 1.5;
/** The same for a question behind others: whoever asks meanwhile waits for it. */
const sliceBehindMs = 0.3;
/** Graphs that are kept for questions to come. */
const graphBytesMax = 512 * 1024 * 1024;
/** The most bytes of all that functions keep of rows for the next question. */
const keptBytesMax = 512 * 1024 * 1024;
/** The most bytes that are kept of catalogues as callers see them. */
const catalogueBytesMax = 128 * 1024 * 1024;

/** Whose turns a run takes. */
interface RunOrder {
  readonly scheduler: Scheduler;
  readonly isBehind: boolean;
}

export class Planner implements PlannerDoor {
  readonly #clock: Clock;
  readonly #version: string;
  readonly #continuous: ContinuousServices | null;
  readonly #limits: Required<PlannerLimits>;
  readonly #scheduler: Scheduler;
  /** For questions that go behind others. */
  readonly #background: Scheduler;
  readonly #jobs: JobRunner | null;
  readonly #statements: StatementReader;
  readonly #plans: Plans;
  readonly #sketches: Sketches;
  readonly #executions: Executions;
  readonly #explainer: Explainer;
  readonly #writes: WriteStatements;
  readonly #graphs = new GraphCache(graphBytesMax);
  readonly #kept = new BasisCache(keptBytesMax);
  readonly #catalogues = new CatalogueCache(catalogueBytesMax);
  readonly #draws: () => Draws;

  constructor(options: PlannerOptions) {
    this.#clock = options.clock;
    this.#version = options.version ?? '';
    this.#draws = () => {
      if (options.random === undefined) throw new ServiceError('REL_NOT_IMPLEMENTED', 'nothing here draws random numbers');
      return new Draws(options.random);
    };
    this.#continuous = options.continuous ?? null;
    this.#jobs = options.jobs ?? null;
    this.#limits = { ...defaultLimits, ...options.limits };
    const turns = new TurnQueue();
    this.#scheduler = { yield: options.yieldTurn ?? (() => turns.next()) };
    this.#background = { yield: options.yieldBackground ?? this.#scheduler.yield };
    this.#statements = new StatementReader((key) => this.#writes.knows(key));
    this.#sketches = new Sketches(options.sketchColumns ?? [], this.#clock, this.#scheduler);
    this.#plans = new Plans({
      passes: options.passes ?? passes,
      pinnedBranches: options.pinnedBranches ?? [],
      keep: options.keepPlans !== false,
      sketches: this.#sketches,
      lookups: this.#continuous?.lookups ?? null,
      ...(options.rankings && { rankings: options.rankings }),
    });
    const { workers = null, embedder = null, embeddings = null, reranker = null } = options;
    const beside = workers && { workers, looksMin: this.#limits.looksBesideMin };
    this.#executions = new Executions({
      limits: this.#limits,
      services: { graphs: this.#graphs, kept: this.#kept, beside, embedder, embeddings, reranker },
      searchTypo: typoPresets[options.searchPreset ?? 'exact'],
    });
    this.#explainer = new Explainer(this.#clock, this.#scheduler, this.#sketches);
    this.#writes = new WriteStatements({
      clock: this.#clock,
      turn: () => this.#scheduler.yield(),
      plans: this.#plans,
      newKey: options.newKey ?? null,
      jobs: this.#jobs,
      ask: (reading, request, own) => this.#ask(reading, request, own),
      executionOf: (plan, query, asked, snapshot) => this.#executions.make(plan, query, asked, {}, snapshot, refuseCatalogue),
    });
  }

  /** Lets go of every text, plan and guess that is kept: literals of statements are among them, and traces of rows. */
  forget(): void {
    this.#statements.clear();
    this.#plans.clear();
    this.#writes.clear();
    this.#sketches.clear();
    this.#graphs.clear();
    this.#kept.clear();
    this.#catalogues.clear();
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
    return new SnapshotQueries(invocation, verb ?? null, (reading, request) => this.#ask(reading, request));
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
    const startedMs = this.#clock.monotonicMs();
    const { timeoutMs } = this.#limits;
    return async () => {
      await this.#scheduler.yield();
      if (signal?.aborted) throw new ServiceError('REL_CANCELLED', 'the caller went away');
      if (this.#clock.monotonicMs() - startedMs > timeoutMs)
        throw new ServiceError('REL_TIMEOUT', `the query ran longer than ${timeoutMs} ms`);
    };
  }

  /** Yields turns while a statement is planned: a short text may take long to plan. */
  #planning(isLong: boolean, { signal }: Pick<QueryRequest, 'signal'>): () => Promise<void> {
    const yieldTurn = this.turns(signal);
    let startedMs = this.#clock.monotonicMs();
    return async () => {
      if (!isLong && this.#clock.monotonicMs() - startedMs < sliceMs) return;
      await yieldTurn();
      startedMs = this.#clock.monotonicMs();
    };
  }

  async execute(invocation: Invocation, request: ExecuteRequest): Promise<Executed> {
    const startedMs = this.#clock.monotonicMs();
    const { dialect = 'wide', purpose = null, signal, session } = request;
    if (request.write !== undefined) {
      const { write } = request;
      return this.#writes.execute(invocation, new WriteSource(write, dialect), write.statement, request, startedMs);
    }
    const { sql, parameters, time = 'current' } = request;
    const question = { sql, dialect, purpose, parameters, signal, session, time };
    const asked =
      sql.length > shortText
        ? await this.#statements.readInTurns(question, () => this.#scheduler.yield())
        : this.#statements.read(question);
    const made = request.graph && asked instanceof TextSource ? asked.graphWrite() : null;
    if (made !== null && (request.graph === true || made.kind === request.graph))
      return this.#writes.executeGraph(invocation, asked, made, request, startedMs);
    const statement = this.#writes.statementOf(asked);
    if (statement === null) {
      const own = { asked };
      const locking = invocation.transaction !== null && /\bFOR\b/i.test(asked.template) ? asked.parse() : null;
      if (locking?.kind === 'query' && locking.query.lock)
        await this.#writes.lock(invocation, asked, locking.query, request, time, startedMs);
      const session = new SnapshotQueries(invocation, null, (reading, each) => this.#ask(reading, each, own));
      return { answer: await session.query(question), written: null };
    }
    return this.#writes.execute(invocation, asked, statement, request, startedMs);
  }

  async describe(invocation: Invocation, request: DescribeRequest): Promise<Description> {
    const dialect = request.dialect ?? 'spec';
    const stated = request.parsed === undefined ? (request.parameterTypes ?? []) : [];
    const lexed = request.parsed === undefined ? lexUnasked(request.sql, stated) : null;
    const asked = request.parsed === undefined ? new TextSource(lexed!, dialect) : new QuerySource(request.parsed, dialect);
    invocation.describe({ template: asked.guardedTemplate });
    const write = request.writes && lexed ? this.#writes.statementOf(asked) : null;
    if (write !== null)
      return this.#writes.describe(invocation, { asked, lexed: lexed!, stated, statement: write, purpose: request.purpose });
    const statement = asked.parse();
    if (statement.kind === 'control')
      throw errorAt('REL_INVALID', 'only a query can be described: this statement runs at once', statement.location);
    const question = queryStatementOf(statement);
    invocation.describe({ ...question.facts, ...statedPurpose(question.purposeSlot, asked, request) });
    const snapshot = invocation.snapshot('describe');
    const plan = this.#plans.bindQuestion(question, asked, snapshot, null, lexed ? exampleValues(lexed) : asked.parameters);
    invocation.describe({ template: asked.template, objectType: plan.objectTypes.join(','), rowCount: 0, costUnits });
    const open = lexed
      ? openSlots(lexed, stated)
      : new Set(asked.parameters.flatMap((value, slot) => (value === null ? [slot] : [])));
    const inferred = inferredTypes(plan, open);
    return {
      columns: question.mode === 'run' ? shownColumns(plan, dialect) : planColumns,
      parameters: lexed ? markerTypes(lexed, stated, inferred) : slotTypes(asked.parameters, inferred),
    };
  }

  async #ask(
    reading: QueryInvocation,
    request: QueryRequest,
    own: InternalQuery & { readonly asked?: StatementSource } = {},
  ): Promise<Answer> {
    const startedMs = this.#clock.monotonicMs();
    const isLong = request.sql !== undefined && request.sql.length > shortText;
    const asked =
      own.asked ??
      (isLong ? await this.#statements.readInTurns(request, () => this.#scheduler.yield()) : this.#statements.read(request));
    reading.describe({ template: asked.guardedTemplate, literals: asked.parameters.map(String) });
    if (isLong) await this.#scheduler.yield();
    const known = this.#statements.find(asked);
    if (isLong) await this.#scheduler.yield();
    const question = known ?? this.#statements.parse(asked);
    if ('control' in question) return this.#control(reading, request, asked, question.control, startedMs);
    reading.describe(question.facts);
    const called = typesCalled(question.query, asked.parameters);
    if (called.length > 0) reading.describe({ objectType: called.join(',') });
    reading.describe(statedPurpose(question.purposeSlot, asked, request));

    if (question.mode === 'policy') return this.#explainer.policy(reading, question.query, asked, request, startedMs);

    if (isLong) await this.#scheduler.yield();
    const now = reading.snapshot();
    const { time = 'all', basis } = request;
    for (;;) {
      const served = time === 'all' && basis === undefined ? (this.#continuous?.views.serve(question.query, now) ?? null) : null;
      const snapshot = served?.snapshot ?? now;
      const cached =
        this.#plans.find(asked, question, snapshot, served) ??
        (await this.#plans.make(asked, question, snapshot, served, known ? null : question, this.#planning(isLong, request)));
      const { plan } = cached;
      own.onPlan?.(cached);
      // A short text may still have a long plan, which takes long to build.
      const isSlow = isLong || (known === undefined && this.#clock.monotonicMs() - startedMs > sliceMs);
      if (asked.guardedTemplate !== asked.template) reading.describe({ template: asked.template });
      // Subqueries and views read types that FROM does not name.
      if (cached.readsMore) reading.describe({ objectType: plan.objectTypes.join(',') });
      const watch = question.mode === 'analyze' ? new Measurements(plan, this.#clock) : null;
      const longWork = own.isListed === true ? null : longWorkOf(plan, reading.caller, this.#jobs, this.#clock);
      const beside = { watch, longWork, working: own.given ?? noWorking };
      const catalogue = this.#catalogueFor(reading, request, snapshot);
      const execution = this.#executions.make(plan, question.query, asked, request, snapshot, catalogue, beside);
      if (isSlow) await this.#scheduler.yield();
      if (question.mode === 'plan') return this.#explainer.explain(plan, execution, startedMs, { question, run: null });

      const erasedMeanwhile = snapshot.erasing(plan.objectTypes);
      const { inBackground: isBehind = false } = request;
      const scheduler = isBehind ? this.#background : this.#scheduler;
      const result = await this.#run(
        { scheduler, isBehind },
        {
          plan,
          kernels: cached.kernels,
          execution,
          signal: longWork?.signal(request.signal) ?? request.signal,
          isLong: isSlow,
          startedMs,
          taker: takerOf(question, cached, request),
        },
      );
      const provenance = plan.withProvenance
        ? await provenanceOf(plan, result.batches, execution, { clock: this.#clock, scheduler })
        : null;
      // The run may have seen some rows that are erased by now, and not others: it runs again, while its time lasts.
      if (erasedMeanwhile()) {
        request.rows?.restart();
        continue;
      }
      const keys = keysLookedUp(plan);
      const units = keys === null ? unitsOf(question.query) : Math.min(1, keys * unitsOfKey);
      const costUnits = units + Math.floor(execution.counters.looks / looksOfUnit);
      reading.describe({ rowCount: result.rowCount, costUnits });
      if (watch)
        return this.#explainer.explain(plan, execution, startedMs, { question, run: { actualRows: result.rowCount, watch } });
      const { byGraph, leftOut, warm } = execution.counters;
      const { cursor, nextCursor } = cursors(plan, question.query, result, execution);
      return {
        columns: cached.columns,
        batches: result.batches.map(({ columns, selection, first, count }) => ({
          columns: columns.slice(0, plan.visible),
          selection,
          first,
          count,
        })),
        rowCount: result.rowCount,
        costUnits,
        estimatedTotalHits: Math.max(execution.counters.hits, result.rowCount),
        asOfSystem: execution.kernels.instant,
        cursor,
        nextCursor,
        provenance,
        facets: result.facets,
        notices: noticesOf(cached, snapshot, execution.notices),
        isApproximate: byGraph + leftOut + warm > 0 || undefined,
        plan: null,
        actualRows: null,
        processingTimeMs: this.#clock.monotonicMs() - startedMs,
        overtaken: erasedMeanwhile,
      };
    }
  }

  async #run({ scheduler, isBehind }: RunOrder, request: RunRequest): Promise<Result> {
    const clock = this.#clock;
    const { resultRowsMax } = this.#limits;
    const { longWork } = request.execution;
    const timeoutMs = isBehind ? Number.POSITIVE_INFINITY : this.#limits.timeoutMs;
    const slice = isBehind ? sliceBehindMs : sliceMs;
    try {
      const result = await run({ clock, scheduler, timeoutMs, resultRowsMax, sliceMs: slice }, request);
      await longWork?.finish();
      return result;
    } catch (error) {
      throw longWork === null ? error : await longWork.finish(error);
    }
  }

  #control(
    reading: QueryInvocation,
    request: QueryRequest,
    asked: StatementSource,
    statement: ControlStatement,
    startedMs: number,
  ): Promise<Answer> {
    reading.describe({ ...statedPurpose(statement.purpose?.slot ?? null, asked, request), template: asked.template });
    if (request.queriesOnly === true) {
      throw new ServiceError('REL_INVALID', 'only queries can be run here: send the statement to POST /query');
    }
    return runControl({
      statement,
      literals: asked.parameters,
      invocation: reading.control(),
      request,
      text: () => asked.text(),
      clock: this.#clock,
      startedMs,
      continuous: this.#continuous,
      locationOf: (slot) => asked.locationOf(slot),
      query: (inner, question) => this.query(inner, question),
      engine: this.#version,
      yieldTurn: () => this.#scheduler.yield(),
    });
  }

  /** Made lazily, for runs that read the catalogue. */
  #catalogueFor(reading: QueryInvocation, { session }: QueryOptions, snapshot: GovernedSnapshot): () => SeenCatalogue {
    let seen: SeenCatalogue | null = null;
    return () =>
      (seen ??= seenCatalogue(
        {
          session,
          snapshot,
          branches: reading.branches(),
          columnsOf: (view) => this.#viewColumns(view, snapshot),
          check: () => reading.checkInspects(),
          draws: this.#draws,
          lookupEpoch: this.#continuous?.lookups.epoch ?? 0,
        },
        this.#catalogues,
      ));
  }

  /** The columns that a reader of the view would get; none of a view that can't be queried. */
  #viewColumns(view: string, snapshot: GovernedSnapshot): readonly OutputColumn[] {
    const asked = this.#statements.lex(`SELECT * FROM "${view.replaceAll('"', '""')}"`, 'wide');
    try {
      const question = this.#statements.parse(asked);
      if ('control' in question) return [];
      return shownColumns(this.#plans.bindQuestion(question, asked, snapshot, null, asked.parameters), 'wide');
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

/** Notices about the rows that were read, and those that came up during the run. */
function noticesOf({ reads }: ReadyPlan, snapshot: GovernedSnapshot, own: readonly string[]): readonly string[] {
  const notices = [...reads.flatMap(({ type, columns }) => snapshot.notices(type, columns)), ...own];
  return notices.length === 0 ? none : [...new Set(notices)];
}

const none: readonly string[] = [];

/** Cursors and lineage look at rows once more. */
function takerOf({ mode }: QueryStatement, { plan, columns }: ReadyPlan, { rows }: QueryRequest): RunRequest['taker'] {
  return rows === undefined || mode !== 'run' || plan.paged || plan.withProvenance ? null : { columns, rows };
}

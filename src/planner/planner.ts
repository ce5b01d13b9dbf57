/** The pipeline, top to bottom: lex, look the plan up, else parse, bind and pass; then execute. */
import { LRUCache } from 'lru-cache';
import type { Clock } from '../clock.ts';
import { AssertionError, ServiceError } from '../errors.ts';
import type { GovernedSnapshot, Invocation } from '../governance/gate-contract.ts';
import type { JobRunner } from '../governance/jobs/job-runner.ts';
import type { WorkerKeeper } from '../log/threads/worker-keeper.ts';
import { smallAnswer } from './run/answers.ts';
import { timeOf } from './binding/binder.ts';
import { runControl } from './control/control.ts';
import { exampleValues, inferredTypes, lexUnasked, markerTypes, openSlots, slotTypes } from './question/describe.ts';
import type { ControlStatement, Standing } from './control/control-request.ts';
import { type Cursor, opaqueCursor, readCursor } from './question/cursor.ts';
import { type Result, run, type RunRequest, type Scheduler } from './run/executor.ts';
import type { Embedder, EmbeddingWishes } from '../governance/embedding/embedder.ts';
import type { Reranker } from './embedding/reranker.ts';
import { forgetHashed } from './embedding/hashing.ts';
import { explain, planAsJson, policyLines, type TextsOf } from './plans/explain.ts';
import { typesCalled, unitsOf } from './functions/calls.ts';
import { caveatsOf } from './expressions/caveats.ts';
import { asInstant } from './expressions/evaluate.ts';
import { GraphCache } from './graph/graph-cache.ts';
import { longWorkOf } from './operators/long-work.ts';
import { looksOfUnit } from './graph/limits.ts';
import { lookUp, lookUpInTurns, unitsOfKey } from './run/key-look-up.ts';
import { keysLookedUp } from './run/keyed-plan.ts';
import { KernelContext } from './expressions/kernel-context.ts';
import { type LexedStatement, lexing, lexStatement } from './languages/sql-lexer.ts';
import { KnownShapes } from './languages/sql-shapes.ts';
import { type AxisBound, type LogicalPlan, nodesOf, type PlanNode } from './logical-plan.ts';
import { Measurements } from './operators/measurements.ts';
import { type Execution, MemoryMeter } from './operators/operator.ts';
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
import { allUsed, MarkedTexts, valuesOf } from './question/parameters.ts';
import { at } from './places.ts';
import { Sketches } from './plans/sketches.ts';
import { tablesOf } from './standing/view-definition.ts';
import { shownColumns } from './plans/output-origins.ts';
import { byText } from './plans/plan-cache.ts';
import { Plans, type ReadyPlan } from './plans/plans.ts';
import { TurnQueue } from './run/turn-queue.ts';
import { type SeenCatalogue, seenCatalogue } from './virtual/rows.ts';
import { AskedWrite, type OwnQuestion, WriteFront } from './writes/write-front.ts';
import type {
  Answer,
  DescribeRequest,
  Description,
  Executed,
  ExecuteRequest,
  KeyLookUp,
  OutputBatch,
  OutputColumn,
  PlannerDoor,
  PlannerSession,
  ProvenanceEntry,
  QuestionOptions,
  QuestionRequest,
  SessionVerb,
} from './planner-contract.ts';
import { defaultLimits, type PlannerLimits, type PlannerOptions } from './options.ts';
import {
  type Asked,
  AskedStatement,
  AskedText,
  type Question,
  questionOf,
  statedPurpose,
  typesNamed,
} from './question/question.ts';
import { type TypoTolerance, typoPresets } from '../governance/search/text-query.ts';
import { SearchRules } from './expressions/text-rules.ts';
import { type TextsReady, textsReady } from './search/texts-ready.ts';
import { type Reading, Session } from './question/session.ts';
import type { DefaultTime, Dialect, Place, Query, Slot } from './statement.ts';

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
/** Graphs that are kept for questions to come. */
const graphBytesMax = 512 * 1024 * 1024;

export class Planner implements PlannerDoor {
  readonly #clock: Clock;
  readonly #version: string;
  readonly #standing: Standing | null;
  readonly #limits: Required<PlannerLimits>;
  readonly #scheduler: Scheduler;
  readonly #lexed = new LRUCache<string, LexedStatement>({ max: 512 });
  readonly #marked = new MarkedTexts();
  readonly #shapes = new KnownShapes();
  readonly #questions = new LRUCache<string, Question>({ max: 1_024, ...byText });
  readonly #plans: Plans;
  readonly #writes: WriteFront;
  readonly #sketches: Sketches;
  readonly #graphs = new GraphCache(graphBytesMax);
  readonly #jobs: JobRunner | null;
  readonly #workers: WorkerKeeper | null;
  readonly #embedder: Embedder | null;
  readonly #embeddings: EmbeddingWishes | null;
  readonly #reranker: Reranker | null;
  readonly #searchTypo: TypoTolerance;

  constructor(options: PlannerOptions) {
    this.#clock = options.clock;
    this.#version = options.version ?? '';
    this.#standing = options.standing ?? null;
    this.#jobs = options.jobs ?? null;
    this.#workers = options.workers ?? null;
    this.#limits = { ...defaultLimits, ...options.limits };
    const turns = new TurnQueue();
    this.#scheduler = { yield: options.yieldTurn ?? (() => turns.next()) };
    this.#embedder = options.embedder ?? null;
    this.#embeddings = options.embeddings ?? null;
    this.#reranker = options.reranker ?? null;
    this.#searchTypo = typoPresets[options.searchPreset ?? 'exact'];
    this.#sketches = new Sketches(options.sketchColumns ?? [], this.#clock, this.#scheduler);
    this.#plans = new Plans({
      passes: options.passes ?? passes,
      pinnedBranches: options.pinnedBranches ?? [],
      keep: options.keepPlans !== false,
      sketches: this.#sketches,
      lookups: this.#standing?.lookups ?? null,
      ...(options.rankings && { rankings: options.rankings }),
    });
    this.#writes = new WriteFront({
      clock: this.#clock,
      turn: () => this.#scheduler.yield(),
      plans: this.#plans,
      newKey: options.newKey ?? null,
      jobs: this.#jobs,
      ask: (reading, request, own) => this.#ask(reading, request, own),
      executionOf: (plan, query, asked, snapshot) => this.#execution(plan, query, asked, {}, snapshot, refuseCatalogue),
    });
  }

  /** Lets go of every text, plan and guess that is kept: literals of statements are among them, and traces of rows. */
  forget(): void {
    this.#lexed.clear();
    this.#marked.clear();
    this.#shapes.clear();
    this.#questions.clear();
    this.#plans.clear();
    this.#writes.clear();
    this.#sketches.clear();
    this.#graphs.clear();
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

  query(invocation: Invocation, request: QuestionRequest): Promise<Answer> {
    return this.session(invocation).ask(request);
  }

  session(invocation: Invocation, verb?: SessionVerb): PlannerSession {
    return new Session(invocation, verb ?? null, (reading, request) => this.#ask(reading, request));
  }

  lookUp(invocation: Invocation, request: KeyLookUp): Answer {
    return lookUp(invocation, request, defaultBounds);
  }

  async lookUpMany(invocation: Invocation, request: KeyLookUp, signal?: AbortSignal): Promise<Answer> {
    return lookUpInTurns(invocation, request, { boundsOf: defaultBounds, yieldTurn: this.turns(signal) });
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
  #planning(isLong: boolean, { signal }: Pick<QuestionRequest, 'signal'>): () => Promise<void> {
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
      return this.#writes.execute(invocation, new AskedWrite(write, dialect), write.statement, request, startedMs);
    }
    const { sql, parameters, time = 'current' } = request;
    const question = { sql, dialect, purpose, parameters, signal, session, time };
    const asked = sql.length > shortText ? await this.#askedLong(question) : this.#asked(question);
    const made = request.graph && asked instanceof AskedText ? asked.graphWrite() : null;
    if (made !== null && (request.graph === true || made.kind === request.graph))
      return this.#writes.executeGraph(invocation, asked, made, request, startedMs);
    const statement = this.#writes.statementOf(asked);
    if (statement === null) {
      const own = { asked };
      const locking = invocation.transaction !== null && /\bFOR\b/i.test(asked.template) ? asked.parse() : null;
      if (locking?.kind === 'query' && locking.query.lock)
        await this.#writes.lock(invocation, asked, locking.query, request, time, startedMs);
      const session = new Session(invocation, null, (reading, each) => this.#ask(reading, each, own));
      return { answer: await session.ask(question), written: null };
    }
    return this.#writes.execute(invocation, asked, statement, request, startedMs);
  }

  async describe(invocation: Invocation, request: DescribeRequest): Promise<Description> {
    const dialect = request.dialect ?? 'spec';
    const stated = request.parsed === undefined ? (request.parameterTypes ?? []) : [];
    const lexed = request.parsed === undefined ? lexUnasked(request.sql, stated) : null;
    const asked = request.parsed === undefined ? new AskedText(lexed!, dialect) : new AskedStatement(request.parsed, dialect);
    invocation.describe({ template: asked.guardedTemplate });
    const write = request.writes && lexed ? this.#writes.statementOf(asked) : null;
    if (write !== null)
      return this.#writes.describe(invocation, { asked, lexed: lexed!, stated, statement: write, purpose: request.purpose });
    const statement = asked.parse();
    if (statement.kind === 'control')
      throw at('REL_INVALID', 'only a query can be described: this statement runs at once', statement.place);
    const question = questionOf(statement);
    invocation.describe({ ...question.facts, ...statedPurpose(question.purposeSlot, asked, request) });
    const snapshot = invocation.snapshot();
    const plan = this.#plans.bound(question, asked, snapshot, null, lexed ? exampleValues(lexed) : asked.parameters);
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

  async #ask(reading: Reading, request: QuestionRequest, own: OwnQuestion & { readonly asked?: Asked } = {}): Promise<Answer> {
    const startedMs = this.#clock.monotonicMs();
    const isLong = request.sql !== undefined && request.sql.length > shortText;
    const asked = own.asked ?? (isLong ? await this.#askedLong(request) : this.#asked(request));
    reading.describe({ template: asked.guardedTemplate, literals: asked.parameters.map(String) });
    const known = this.#questions.get(asked.key);
    const question = known ?? this.#parse(asked);
    if ('control' in question) return this.#control(reading, request, asked, question.control, startedMs);
    reading.describe(question.facts);
    const called = typesCalled(question.query, asked.parameters);
    if (called.length > 0) reading.describe({ objectType: called.join(',') });
    reading.describe(statedPurpose(question.purposeSlot, asked, request));

    if (question.mode === 'policy') return this.#policy(reading, question.query, asked, request, startedMs);

    if (isLong) await this.#scheduler.yield();
    const now = reading.snapshot();
    const { time = 'all', basis } = request;
    for (;;) {
      const served = time === 'all' && basis === undefined ? (this.#standing?.views.serve(question.query, now) ?? null) : null;
      const snapshot = served?.snapshot ?? now;
      const cached =
        this.#plans.found(asked, question, snapshot, served) ??
        (await this.#plans.make(asked, question, snapshot, served, known ? null : question, this.#planning(isLong, request)));
      const { plan } = cached;
      own.onPlan?.(cached);
      // A short text may still have a long plan, which takes long to build.
      const isSlow = isLong || (known === undefined && this.#clock.monotonicMs() - startedMs > sliceMs);
      if (asked.guardedTemplate !== asked.template) reading.describe({ template: asked.template });
      // Subqueries and views read types that FROM does not name.
      if (cached.readsMore) reading.describe({ objectType: plan.objectTypes.join(',') });
      const watch = question.mode === 'analyze' ? new Measurements(plan, this.#clock) : null;
      const longWork = longWorkOf(plan, reading.caller, this.#jobs, this.#clock);
      const beside = { watch, longWork, working: own.given ?? noWorking };
      const catalogue = this.#seen(reading, request, snapshot);
      const execution = this.#execution(plan, question.query, asked, request, snapshot, catalogue, beside);
      if (isSlow) await this.#scheduler.yield();
      if (question.mode === 'plan') return this.#explained(plan, execution, startedMs, { question, run: null });

      const erasedMeanwhile = snapshot.erasing(plan.objectTypes);
      const result = await this.#run({
        plan,
        kernels: cached.kernels,
        execution,
        signal: longWork?.signal(request.signal) ?? request.signal,
        isLong: isSlow,
        startedMs,
        taker: takerOf(question, cached, request),
      });
      const provenance = plan.withProvenance ? await this.#provenance(plan, result.batches, execution) : null;
      // The run may have seen some rows that are erased by now, and not others: it runs again, while its time lasts.
      if (erasedMeanwhile()) {
        request.rows?.restart();
        continue;
      }
      const keys = keysLookedUp(plan);
      const units = keys === null ? unitsOf(question.query) : Math.min(1, keys * unitsOfKey);
      const costUnits = units + Math.floor(execution.counters.looks / looksOfUnit);
      reading.describe({ rowCount: result.rowCount, costUnits });
      if (watch) return this.#explained(plan, execution, startedMs, { question, run: { actualRows: result.rowCount, watch } });
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

  async #run(request: RunRequest): Promise<Result> {
    const clock = this.#clock;
    const { timeoutMs, resultRowsMax } = this.#limits;
    const { longWork } = request.execution;
    try {
      const result = await run({ clock, scheduler: this.#scheduler, timeoutMs, resultRowsMax }, request);
      await longWork?.over();
      return result;
    } catch (error) {
      throw longWork === null ? error : await longWork.over(error);
    }
  }

  /** The same text again, or one of other literals, is the common case. */
  #lex(sql: string, dialect: Dialect): AskedText {
    const known = this.#shapes.recognise(sql) ?? this.#lexed.get(sql);
    if (known) return new AskedText(known, dialect);
    const lexed = lexStatement(sql);
    this.#lexed.set(sql, lexed);
    const asked = new AskedText(lexed, dialect);
    if (this.#questions.has(asked.key) || this.#writes.knows(asked.key)) this.#shapes.learn(lexed);
    return asked;
  }

  #asked({ sql, parameters, parsed, dialect = 'spec' }: QuestionRequest): AskedText | AskedStatement {
    if (parsed !== undefined) return new AskedStatement(parsed, dialect);
    if (parameters === undefined) return this.#lex(sql, dialect);
    return new AskedText(this.#marked.lex(sql, parameters), dialect);
  }

  async #askedLong({ sql, parameters, dialect = 'spec' }: QuestionRequest): Promise<AskedText> {
    const work = lexing(sql!, parameters === undefined ? null : valuesOf(parameters));
    for (;;) {
      const step = work.next();
      await this.#scheduler.yield();
      if (step.done) return new AskedText(allUsed(step.value, parameters ?? []), dialect);
    }
  }

  #parse(asked: Asked): Question | { readonly control: ControlStatement } {
    const statement = asked.parse();
    // Names of a control statement may have been written as literals: it is never cached by template.
    if (statement.kind === 'control') return { control: statement };
    const question = questionOf(statement);
    this.#questions.set(asked.key, question);
    return question;
  }

  #control(
    reading: Reading,
    request: QuestionRequest,
    asked: Asked,
    statement: ControlStatement,
    startedMs: number,
  ): Promise<Answer> {
    reading.describe({ ...statedPurpose(statement.purpose?.slot ?? null, asked, request), template: asked.template });
    if (request.questionsOnly === true) {
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
      standing: this.#standing,
      placeOf: (slot) => asked.placeOf(slot),
      query: (inner, question) => this.query(inner, question),
      engine: this.#version,
      yieldTurn: () => this.#scheduler.yield(),
    });
  }

  #execution(
    plan: LogicalPlan,
    query: Query,
    asked: Asked,
    { time = 'all', basis, typo, consistency = 'strong' }: QuestionOptions,
    snapshot: GovernedSnapshot,
    catalogue: () => SeenCatalogue,
    beside: Pick<Execution, 'watch' | 'longWork' | 'working'> = alone,
  ): Execution {
    const stated = asked.parameters.length;
    const literals = plan.viewLiterals.length > 0 ? [...asked.parameters, ...plan.viewLiterals] : asked.parameters;
    const placeOf = (slot: number): Place => (slot < stated ? asked.placeOf(slot) : query.place);
    const cursor: Cursor | null = query.after && readCursor(literals[query.after.slot]!, placeOf(query.after.slot));
    const isBehind = basis !== undefined && isWrittenAfter(basis, plan.objectTypes, snapshot);
    const pinned = cursor?.pinned ?? (isBehind ? basis : null);
    if (pinned !== null && pinned > snapshot.instant)
      throw at('REL_INVALID', 'the cursor is of a later instant', query.after ? placeOf(query.after.slot) : query.place);
    const instant = pinned ?? basis ?? snapshot.instant;
    const typos = typo === 'configured' ? { otherwise: this.#searchTypo } : (typo ?? null);
    let believed = instant;
    const rules = (): SearchRules => new SearchRules(snapshot.searchAt(believed), snapshot.textLanguage, typos);
    const kernels = new KernelContext({ literals, placeOf, instant, rules, catalogue, parameters: plan.parameters });
    const axis = (bound: AxisBound): 'all' | bigint =>
      bound === 'all' ? 'all' : bound === 'now' ? instant : asInstant(kernels.constant(bound.instant));
    const isDefault = query.asOf === null && time !== 'all';
    const bounds = isDefault ? defaultBounds(time, instant) : { system: axis(plan.time.system), valid: axis(plan.time.valid) };
    const { system } = bounds;
    if (system !== 'all' && system < instant) believed = system;
    const rowLimit = ({ slot }: Slot): number => {
      const limit = literals[slot];
      if (typeof limit !== 'bigint' || limit < 0n) {
        throw at('REL_INVALID', 'LIMIT takes a whole number of at least 0', placeOf(slot));
      }
      return Number(limit);
    };
    const pageRows = plan.paged && query.limit ? rowLimit(query.limit) : null;
    return {
      snapshot,
      kernels,
      // Beyond the pinned basis nothing was known yet: a later instant means the basis itself.
      time: { system: system !== 'all' && pinned !== null && system > pinned ? pinned : system, valid: bounds.valid },
      after: cursor?.after ?? null,
      pinned,
      literals,
      rowLimit,
      working: beside.working,
      virtual: (read) => catalogue().rows(read),
      blockRows: pageRows === null ? this.#limits.blockRows : Math.min(this.#limits.blockRows, Math.max(1_024, 2 * pageRows)),
      scannedRowsMax: this.#limits.scannedRowsMax,
      vectorRowsMax: this.#limits.vectorRowsMax === 0 ? Number.POSITIVE_INFINITY : this.#limits.vectorRowsMax,
      vectorExactRows: this.#limits.vectorExactRows,
      consistency,
      unbuilt: new Set(),
      graphs: this.#graphs,
      beside: this.#workers && { workers: this.#workers, looksMin: this.#limits.looksBesideMin },
      graphRowsMax: this.#limits.resultRowsMax,
      embedder: this.#embedder,
      embeddings: this.#embeddings,
      reranker: this.#reranker,
      wait: { until: null },
      notices: caveatsOf(plan.caveats, literals, placeOf),
      memory: new MemoryMeter(this.#limits.memoryBytesMax),
      counters: { scanned: 0, looks: 0, hits: 0, byGraph: 0, leftOut: 0, warm: 0 },
      longWork: beside.longWork,
      watch: beside.watch,
    };
  }

  /** Made lazily, for runs that read the catalogue. */
  #seen(reading: Reading, { session }: QuestionOptions, snapshot: GovernedSnapshot): () => SeenCatalogue {
    let seen: SeenCatalogue | null = null;
    return () =>
      (seen ??= seenCatalogue({
        session,
        snapshot,
        branches: reading.branches(),
        columnsOf: (view) => this.#viewColumns(view, snapshot),
        check: () => reading.checkInspects(),
      }));
  }

  /** The columns that a reader of the view would get; none of a view that can't be queried. */
  #viewColumns(view: string, snapshot: GovernedSnapshot): readonly OutputColumn[] {
    const asked = this.#lex(`SELECT * FROM "${view.replaceAll('"', '""')}"`, 'wide');
    try {
      const question = this.#parse(asked);
      if ('control' in question) return [];
      return shownColumns(this.#plans.bound(question, asked, snapshot, null, asked.parameters), 'wide');
    } catch (error) {
      if (!(error instanceof ServiceError) || error.code === 'REL_INTERNAL') throw error;
      return [];
    }
  }

  async #provenance(plan: LogicalPlan, batches: readonly OutputBatch[], execution: Execution): Promise<ProvenanceEntry[]> {
    const entries: ProvenanceEntry[] = [];
    let sliceStart = this.#clock.monotonicMs();
    for (const batch of batches) {
      for (let row = 0; row < batch.count; row++) {
        const entry = execution.snapshot.rows.provenanceOf(plan.objectTypes[0]!, systemFromAt(plan, batch, row));
        // A version removed for good between scan and lookup has no lineage left to tell.
        entries.push(
          entry ?? { source: '', method: '', confidence: 0, recordedAt: systemFromAt(plan, batch, row), derivedFrom: null },
        );
        if (row % 256 === 255 && this.#clock.monotonicMs() - sliceStart > 1.5) {
          await this.#scheduler.yield();
          sliceStart = this.#clock.monotonicMs();
        }
      }
    }
    return entries;
  }

  async #explained(
    plan: LogicalPlan,
    execution: Execution,
    startedMs: number,
    {
      question,
      run,
    }: { readonly question: Question; readonly run: { readonly actualRows: number; readonly watch: Measurements } | null },
  ): Promise<Answer> {
    // The time of formatting is not part of the measured time.
    const processingTimeMs = this.#clock.monotonicMs() - startedMs;
    const sketch = await this.#sketches.of(plan, execution.snapshot);
    const texts = await this.#textsOf(plan, execution);
    const { lines, operators } = explain(plan, execution, sketch, texts, run?.watch);
    const answer = this.#lines(question.asJson ? [planAsJson(lines)] : lines, execution.kernels.instant, startedMs);
    return run ? { ...answer, actualRows: run.actualRows, operators, processingTimeMs } : answer;
  }

  /** By search: whether its columns are indexed. */
  async #textsOf(plan: LogicalPlan, execution: Execution): Promise<TextsOf> {
    const texts = new Map<PlanNode, TextsReady>();
    for (const node of nodesOf(plan)) {
      if (node.kind !== 'search') continue;
      const steps = textsReady(node, execution);
      let step = steps.next();
      for (; step.done !== true; step = steps.next()) await this.#scheduler.yield();
      texts.set(node, step.value);
    }
    return texts;
  }

  /**
   * The decision that reading would meet, now or, with AS OF SYSTEM TIME, would have met then: reading itself meets that of now,
   * for any instant. Source: specification, "SQL dialect" rule 12; the live one is given here too.
   */
  #policy(reading: Reading, query: Query, asked: Asked, { time }: QuestionOptions, startedMs: number): Answer {
    const now = this.#clock.now();
    const literals = asked.parameters;
    const kernels = new KernelContext({ literals, placeOf: (slot) => asked.placeOf(slot), instant: now, parameters: [] });
    const { system } = timeOf(query, literals, asked.dialect !== 'spec');
    const stated = typeof system === 'string' ? undefined : asInstant(kernels.constant(system.instant));
    const at = query.asOf === null && typeof time === 'object' && time.system !== 'now' ? time.system : stated;
    const types = [...new Set([...typesNamed(query), ...typesCalled(query, literals), ...(tablesOf(query) ?? [])])];
    const lines = (types.length === 0 ? [null] : types).flatMap((type) => {
      const told = policyLines(reading.explainPolicy(type, at));
      return types.length > 1 ? [`type ${type}`, ...told] : told;
    });
    return this.#lines(lines, now, startedMs);
  }

  #lines(lines: readonly string[], asOfSystem: bigint, startedMs: number): Answer {
    return smallAnswer(
      planColumns,
      lines.map((line) => [line]),
      {
        asOfSystem,
        costUnits: 1,
        plan: lines.join('\n'),
        processingTimeMs: this.#clock.monotonicMs() - startedMs,
      },
    );
  }
}

/** Columns of what EXPLAIN answers. */
const planColumns: Answer['columns'] = [{ name: 'plan', type: 'string' }];

/** Blocks of rows of others that are looked at before it is taken for granted. */
const blocksLookedAt = 16;

/** Whether a version of one of these types came after the instant: without one, all that there is is what there was then. */
function isWrittenAfter(instant: bigint, types: readonly string[], { rows, catalog }: GovernedSnapshot): boolean {
  const time = { system: 'all', valid: 'all' } as const;
  return types.some((type) => {
    if (catalog.type(type) === undefined) return true;
    const blocks = rows.scan({ type, columns: ['system_from'], time, after: instant, blockRows: 1 });
    try {
      for (let seen = 0; seen < blocksLookedAt; seen++) {
        const step = blocks.next();
        if (step.done === true) return false;
        if (step.value.count > 0) return true;
      }
      return true;
    } finally {
      blocks.return?.();
    }
  });
}

/** Outside of a recursion. */
const noWorking: Execution['working'] = new Map();

/** A run without measurement, long work or a recursion around it. */
const alone: Pick<Execution, 'watch' | 'longWork' | 'working'> = { watch: null, longWork: null, working: noWorking };

/** Source: specification, "Tool protocol": a query costs 1. */
const costUnits = 1;

const refuseCatalogue = (): never => {
  throw new AssertionError('rows that are given are joined with no relation');
};

/** The default time of a query without AS OF, as of an instant. */
function defaultBounds(time: DefaultTime, now: bigint): Execution['time'] {
  if (time === 'all') return { system: 'all', valid: 'all' };
  if (time === 'current') return { system: now, valid: now };
  const { system = 'all', valid = 'all' } = time;
  return { system: system === 'now' ? now : system, valid: valid === 'now' ? now : valid };
}

/** Notices about the rows that were read, and those that came up during the run. */
function noticesOf({ reads }: ReadyPlan, snapshot: GovernedSnapshot, own: readonly string[]): readonly string[] {
  const notices = [...reads.flatMap(({ type, columns }) => snapshot.notices(type, columns)), ...own];
  return notices.length === 0 ? none : [...new Set(notices)];
}

const none: readonly string[] = [];

/** Cursors and lineage look at rows once more. */
function takerOf({ mode }: Question, { plan, columns }: ReadyPlan, { rows }: QuestionRequest): RunRequest['taker'] {
  return rows === undefined || mode !== 'run' || plan.paged || plan.withProvenance ? null : { columns, rows };
}

/** Only a page that was cut has a cursor: a full page at the very end has nothing after it. */
function cursors(
  plan: LogicalPlan,
  query: Query,
  { batches, rowCount }: Result,
  execution: Execution,
): { cursor: string | null; nextCursor: string | null } {
  const last = batches[batches.length - 1];
  const full = plan.paged && query.limit !== null && rowCount === execution.rowLimit(query.limit);
  if (!full || last === undefined || execution.counters.hits === rowCount) return { cursor: null, nextCursor: null };
  const systemFrom = systemFromAt(plan, last, last.count - 1);
  return { cursor: systemFrom.toString(), nextCursor: opaqueCursor(execution.kernels.instant, systemFrom) };
}

function systemFromAt(plan: LogicalPlan, batch: OutputBatch, row: number): bigint {
  const vector = plan.systemFrom === null ? undefined : batch.columns[plan.systemFrom];
  if (vector?.kind !== 'i64') throw new ServiceError('REL_INTERNAL', 'rows of a type carry their system_from');
  return vector.values[batch.first + row]!;
}

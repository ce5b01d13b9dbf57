/** The pipeline, top to bottom: lex, look the plan up, else parse, bind and pass; then execute. */
import { LRUCache } from 'lru-cache';
import type { Clock } from '../clock.ts';
import { ServiceError } from '../errors.ts';
import type { GovernedSnapshot, Invocation } from '../governance/gate-contract.ts';
import { smallAnswer } from './answers.ts';
import { bindQuery } from './binder.ts';
import { runControl } from './control.ts';
import type { ControlStatement } from './control-request.ts';
import { type Cursor, opaqueCursor, readCursor } from './cursor.ts';
import { type PlanKernels, run, type Scheduler } from './executor.ts';
import { explain } from './explain.ts';
import { asInstant } from './expressions/evaluate.ts';
import { KernelContext } from './expressions/kernel-context.ts';
import { parseLexed } from './languages/sql-parser.ts';
import { type LexedStatement, lexStatement } from './languages/sql-lexer.ts';
import { type AxisBound, type LogicalPlan, scanOf } from './logical-plan.ts';
import { type Execution, MemoryMeter } from './operators/operator.ts';
import { chooseAccessPaths } from './passes/choose-access-paths.ts';
import { pruneColumns } from './passes/prune-columns.ts';
import { pushDownFilters } from './passes/push-down-filters.ts';
import { simplifyExpressions } from './passes/simplify-expressions.ts';
import { at } from './places.ts';
import type { Answer, OutputBatch, PlannerContract, ProvenanceEntry, QuestionRequest } from './planner-contract.ts';
import type { Literal, Query, Statement } from './statement.ts';

export type Pass = (plan: LogicalPlan, literals: readonly Literal[]) => LogicalPlan;

export const passes: readonly Pass[] = [
  simplifyExpressions, // first: the others look for conjuncts and constants
  pushDownFilters, // before access paths: what reaches the scan decides how it reads
  chooseAccessPaths, // needs the final predicates
  pruneColumns, // last: it renumbers columns, and no pass after it may ask for another one
];

export interface PlannerLimits {
  readonly timeoutMs: number;
  readonly resultRowsMax: number;
  readonly scannedRowsMax: number;
  readonly memoryBytesMax: number;
  /** Rows that operators exchange at once. */
  readonly blockRows?: number;
}

export interface PlannerOptions {
  readonly clock: Clock;
  /** Version of this program, as recipes of exhibits name it. */
  readonly version?: string;
  readonly limits?: Partial<PlannerLimits>;
  /** Gives other work a turn; `setImmediate` unless a simulation schedules. */
  readonly yieldTurn?: () => Promise<void>;
  /** Fewer passes give the same answers, only slower; the first one can't be left out. */
  readonly passes?: readonly Pass[];
}

/** Source: specification, "Limits". */
const defaultLimits: Required<PlannerLimits> = {
  timeoutMs: 30_000,
  resultRowsMax: 1_000_000,
  scannedRowsMax: 10_000_000,
  memoryBytesMax: 512 * 1024 * 1024,
  blockRows: 8_192,
};

interface CachedPlan {
  readonly plan: LogicalPlan;
  /** What its answers show: one array for all of them, so that a door can keep what it made of it. */
  readonly columns: Answer['columns'];
  readonly kernels: PlanKernels;
}

/** The part of a statement that runs, and how. */
interface Question {
  readonly query: Query;
  readonly withProvenance: boolean;
  readonly purposeSlot: number | null;
  readonly mode: 'run' | 'plan' | 'analyze' | 'policy';
}

const shortText = 4_096;

export class Planner implements PlannerContract {
  readonly #clock: Clock;
  readonly #version: string;
  readonly #limits: Required<PlannerLimits>;
  readonly #scheduler: Scheduler;
  readonly #passes: readonly Pass[];
  readonly #lexed = new LRUCache<string, LexedStatement>({ max: 512 });
  readonly #questions = new LRUCache<string, Question>({ max: 1_024 });
  readonly #plans = new LRUCache<string, CachedPlan>({ max: 1_024 });

  constructor(options: PlannerOptions) {
    this.#clock = options.clock;
    this.#version = options.version ?? '';
    this.#limits = { ...defaultLimits, ...options.limits };
    this.#passes = options.passes ?? passes;
    this.#scheduler = { yield: options.yieldTurn ?? (() => new Promise((resolve) => setImmediate(resolve))) };
  }

  async query(invocation: Invocation, request: QuestionRequest): Promise<Answer> {
    const startedMs = this.#clock.monotonicMs();
    const lexed = this.#lex(request.sql);
    const literals = lexed.parameters;
    invocation.describe({ template: lexed.guardedTemplate, literals: literals.map(String) });
    const question = this.#questions.get(lexed.template) ?? this.#parse(lexed);
    if ('control' in question) return this.#control(invocation, request, lexed, question.control, startedMs);
    invocation.describe({ ...statedPurpose(question.purposeSlot, literals, request, lexed), ...objectType(question.query) });

    if (question.mode === 'policy') return this.#policy(invocation, question.query, startedMs);

    const snapshot = invocation.snapshot();
    const cached = this.#plan(lexed, snapshot);
    const { plan } = cached;
    if (lexed.guardedTemplate !== lexed.template) invocation.describe({ template: lexed.template });
    const execution = this.#execution(plan, question.query, lexed, snapshot);
    if (question.mode === 'plan') return this.#explained(plan, execution, null, startedMs);

    const result = await run(
      {
        clock: this.#clock,
        scheduler: this.#scheduler,
        timeoutMs: this.#limits.timeoutMs,
        resultRowsMax: this.#limits.resultRowsMax,
      },
      { plan, kernels: cached.kernels, execution, signal: request.signal, startedMs },
    );
    invocation.describe({ rowCount: result.rowCount, costUnits });
    if (question.mode === 'analyze') return this.#explained(plan, execution, result.rowCount, startedMs);
    const provenance = plan.withProvenance ? await this.#provenance(plan, result.batches, execution) : null;
    return {
      columns: cached.columns,
      batches: result.batches.map((batch) => ({ ...batch, columns: batch.columns.slice(0, plan.visible) })),
      rowCount: result.rowCount,
      costUnits,
      estimatedTotalHits: Math.max(execution.counters.hits, result.rowCount),
      asOfSystem: execution.kernels.instant,
      ...cursors(plan, result.batches, result.rowCount, execution),
      provenance,
      facets: null,
      plan: null,
      actualRows: null,
      processingTimeMs: this.#clock.monotonicMs() - startedMs,
    };
  }

  /** The same text again is the common case: its tokens are kept. */
  #lex(sql: string): LexedStatement {
    let lexed = sql.length <= shortText ? this.#lexed.get(sql) : undefined;
    if (!lexed) {
      lexed = lexStatement(sql);
      if (sql.length <= shortText) this.#lexed.set(sql, lexed);
    }
    return lexed;
  }

  #parse(lexed: LexedStatement): Question | { readonly control: ControlStatement } {
    const { statement } = parseLexed(lexed);
    // Names of a control statement may have been written as literals: it is never cached by template.
    if (statement.kind === 'control') return { control: statement };
    const question = questionOf(statement);
    this.#questions.set(lexed.template, question);
    return question;
  }

  #control(
    invocation: Invocation,
    request: QuestionRequest,
    lexed: LexedStatement,
    statement: ControlStatement,
    startedMs: number,
  ): Promise<Answer> {
    const literals = lexed.parameters;
    invocation.describe({
      ...statedPurpose(statement.purpose?.slot ?? null, literals, request, lexed),
      template: lexed.template,
    });
    if (request.questionsOnly === true) {
      throw new ServiceError('REL_INVALID', 'this way of asking takes questions only; POST /query takes the statement');
    }
    return runControl({
      statement,
      literals,
      invocation,
      request,
      clock: this.#clock,
      startedMs,
      placeOf: (slot) => lexed.placeOf(slot),
      query: (inner, question) => this.query(inner, question),
      engine: this.#version,
      yieldTurn: () => this.#scheduler.yield(),
    });
  }

  /** Everything that a plan depends on is in the key; literals are not, but for those that its guards compare. */
  #plan(lexed: LexedStatement, snapshot: GovernedSnapshot): CachedPlan {
    const literals = lexed.parameters;
    const key = `${lexed.template}\0${snapshot.branch}\0${snapshot.catalog.ontologyVersion}\0${snapshot.grantKey}`;
    const cached = this.#plans.get(key);
    if (cached?.plan.guards.every(([a, b]) => literals[a] === literals[b])) return cached;
    // Parsed again where a tree was cached: errors must point into this text, not into the one that the tree came from.
    const { query, withProvenance } = questionOf(parseLexed(lexed).statement);
    let plan = bindQuery({ query, withProvenance, literals, catalog: snapshot.catalog });
    for (const pass of this.#passes) plan = pass(plan, literals);
    const made: CachedPlan = { plan, columns: plan.root.columns.slice(0, plan.visible), kernels: new Map() };
    this.#plans.set(key, made);
    return made;
  }

  #execution(plan: LogicalPlan, query: Query, lexed: LexedStatement, snapshot: GovernedSnapshot): Execution {
    const literals = lexed.parameters;
    const placeOf = (slot: number) => lexed.placeOf(slot);
    const cursor: Cursor | null = query.after && readCursor(literals[query.after.slot]!, placeOf(query.after.slot));
    const pinned = cursor?.pinned ?? null;
    if (pinned !== null && pinned > snapshot.instant)
      throw at('REL_INVALID', 'the cursor is of a later instant', placeOf(query.after!.slot));
    const instant = pinned ?? snapshot.instant;
    const kernels = new KernelContext({ literals, placeOf, instant, parameters: plan.parameters });
    const axis = (bound: AxisBound): 'all' | bigint =>
      bound === 'all' ? 'all' : bound === 'now' ? instant : asInstant(kernels.constant(bound.instant));
    const scan = scanOf(plan.root);
    const system = axis(scan.system);
    const limit = query.limit ? literals[query.limit.slot] : null;
    if (query.limit && (typeof limit !== 'bigint' || limit < 0n)) {
      throw at('REL_INVALID', 'LIMIT takes a whole number of at least 0', placeOf(query.limit.slot));
    }
    return {
      snapshot,
      kernels,
      // Beyond the pinned basis nothing was known yet: a later instant means the basis itself.
      time: { system: system !== 'all' && pinned !== null && system > pinned ? pinned : system, valid: axis(scan.valid) },
      after: cursor?.after ?? null,
      pinned,
      limit: typeof limit === 'bigint' ? Number(limit) : Number.POSITIVE_INFINITY,
      blockRows: plan.paged ? Math.min(this.#limits.blockRows, Math.max(1_024, 2 * Number(limit))) : this.#limits.blockRows,
      scannedRowsMax: this.#limits.scannedRowsMax,
      memory: new MemoryMeter(this.#limits.memoryBytesMax),
      counters: { scanned: 0, hits: 0 },
    };
  }

  async #provenance(plan: LogicalPlan, batches: readonly OutputBatch[], execution: Execution): Promise<ProvenanceEntry[]> {
    const entries: ProvenanceEntry[] = [];
    let sliceStart = this.#clock.monotonicMs();
    for (const batch of batches) {
      for (let row = 0; row < batch.count; row++) {
        const entry = execution.snapshot.rows.provenanceOf(plan.objectType, systemFromAt(plan, batch, row));
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

  #explained(plan: LogicalPlan, execution: Execution, actualRows: number | null, startedMs: number): Answer {
    return this.#lines(explain(plan, execution), execution.kernels.instant, actualRows, startedMs);
  }

  /** The decision that reading would meet now. Source: specification, "SQL dialect" rule 12; the live one is given here too. */
  #policy(invocation: Invocation, query: Query, startedMs: number): Answer {
    const { decision, because, scope } = invocation.explainPolicy(objectType(query).objectType ?? null);
    const lines = [`decision ${decision}`, ...because.map((rule) => `because ${rule}`), `scope ${scope}`];
    return this.#lines(lines, this.#clock.now(), null, startedMs);
  }

  #lines(lines: readonly string[], asOfSystem: bigint, actualRows: number | null, startedMs: number): Answer {
    return smallAnswer(
      [{ name: 'plan', type: 'string' }],
      lines.map((line) => [line]),
      {
        asOfSystem,
        costUnits,
        plan: lines.join('\n'),
        actualRows,
        processingTimeMs: this.#clock.monotonicMs() - startedMs,
      },
    );
  }
}

/** Source: specification, "Tool protocol": a query costs 1. */
const costUnits = 1;

function questionOf(statement: Statement): Question {
  switch (statement.kind) {
    case 'query':
      return {
        query: statement.query,
        withProvenance: statement.withProvenance,
        purposeSlot: statement.purpose?.slot ?? null,
        mode: 'run',
      };
    case 'explain': {
      const inner = statement.statement;
      const question = questionOf(inner);
      return { ...question, mode: statement.mode };
    }
    case 'control':
      throw at('REL_PARSE', 'EXPLAIN takes a query', statement.place);
    case 'write':
      throw at('REL_READ_ONLY', `${statement.verb}: /query is read-only, use ingest`, statement.place);
    case 'unimplemented':
      throw at(
        'REL_NOT_IMPLEMENTED',
        `${statement.verb} is not implemented: use POST /ontology/migrate or POST /types/:name/schema`,
        statement.place,
      );
  }
}

function statedPurpose(
  purposeSlot: number | null,
  literals: readonly Literal[],
  request: QuestionRequest,
  lexed: LexedStatement,
): { purpose?: string } {
  if (purposeSlot === null) return {};
  const purpose = String(literals[purposeSlot]);
  if (request.purpose !== undefined && request.purpose !== null && request.purpose !== purpose) {
    throw at('REL_INVALID', 'PURPOSE disagrees with the purpose of the request', lexed.placeOf(purposeSlot));
  }
  return { purpose };
}

function objectType(query: Query): { objectType?: string } {
  return query.body.kind === 'select' && query.body.from.kind === 'table' ? { objectType: query.body.from.name } : {};
}

/** Only a page that was cut has a cursor: a full page at the very end has nothing after it. */
function cursors(
  plan: LogicalPlan,
  batches: readonly OutputBatch[],
  rowCount: number,
  execution: Execution,
): { cursor: string | null; nextCursor: string | null } {
  const last = batches[batches.length - 1];
  const cut = plan.paged && last !== undefined && rowCount === execution.limit && execution.counters.hits !== rowCount;
  if (!cut) return { cursor: null, nextCursor: null };
  const systemFrom = systemFromAt(plan, last, last.count - 1);
  return { cursor: systemFrom.toString(), nextCursor: opaqueCursor(execution.kernels.instant, systemFrom) };
}

function systemFromAt(plan: LogicalPlan, batch: OutputBatch, row: number): bigint {
  const vector = plan.systemFrom === null ? undefined : batch.columns[plan.systemFrom];
  if (vector?.kind !== 'i64') throw new ServiceError('REL_INTERNAL', 'rows of a type carry their system_from');
  return vector.values[batch.first + row]!;
}

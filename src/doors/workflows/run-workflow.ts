/**
 * Runs the steps of a workflow that are not on record. Each is an invocation of its own, by the grants that the owner has then.
 *
 * - A step's end and the rows that it writes are one append, so they are there once; a tool's writes have a key of run, step and item, so
 *   that a repeated call finds them.
 * - The record of a step has no text of a row. Behind a restart, a step that names an answer asks again, at the instant that stands there;
 *   one that names the output of a tool that writes is refused.
 * - No value of an erased subject goes on: an answer that an erasure may have touched is asked for again, and has to have as many rows as
 *   before; else the run fails, since its items would be others.
 */
import { createHash } from 'node:crypto';
import type { Clock } from '../../clock.ts';
import { ServiceError } from '../../errors.ts';
import type { Caller } from '../../governance/caller.ts';
import type { GateContract, Invocation } from '../../governance/gate-contract.ts';
import type { PerformWorkflow, WorkflowEffect } from '../../governance/jobs/job-scheduler.ts';
import { canonicalJson, type Json } from '../../log/values/canonical-json.ts';
import { tenantOf } from '../../log/values/value.ts';
import type { PlannerContract } from '../../planner/planner-contract.ts';
import { questionOf } from '../../planner/continuous/jobs/job-run.ts';
import { alertTypeIn, putAlerts } from '../../planner/continuous/rules/alerts.ts';
import type { Literal } from '../../planner/syntax/statement.ts';
import type { PutRows } from '../../projections/command.ts';
import type { JobRecord, RecordedStep, WorkflowStep } from '../../projections/jobs/job.ts';
import { putting, type VerbRow, rowsOf } from '../verbs/verb-rows.ts';
import { itemsMax, readSteps, type Step, type StepKind } from './definition.ts';
import { fill, fillSql, parameterOf, type Scope } from './templates.ts';

/** A call of a tool by a step. `callId`: key of the row that the call leaves; one that is there already is not made again. */
export interface StepCall {
  readonly caller: Caller;
  readonly signal: AbortSignal;
  readonly name: string;
  readonly input: Json;
  readonly purpose: string | null;
  readonly correlationId: string;
  readonly callId: string;
}

export interface WorkflowDependencies {
  readonly gate: Pick<GateContract, 'invoke'>;
  readonly planner: PlannerContract;
  readonly clock: Clock;
  /** Null: nothing of this id is left. */
  /** As they were stored. */
  readonly stepsOf: (id: string) => Json | null;
  readonly callTool: (call: StepCall) => Promise<{ readonly output: unknown; readonly readsOnly: boolean }>;
  /** How many subjects of a tenant were erased so far. */
  readonly erasedOf: (tenant: string | null) => number;
}

export interface WorkflowRunner {
  readonly perform: PerformWorkflow;
  /** Drops the outputs of tools that runs of the tenant keep. */
  forget(tenant: string | null): void;
}

/** Rows that a step may hand on. */
const rowsMax = 10_000;
const insertMax = 1_000;
/** Ends of steps that a run may have, those of all items together. */
const endsMax = 100_000;
const nsPerSec = 1_000_000_000n;

export function performWorkflows(parts: WorkflowDependencies): WorkflowRunner {
  /** By run that is under way or waits: outputs of tools, which no record can give back. */
  const outputsByJob = new Map<string, { readonly tenant: string | null; readonly outputs: ToolOutputs }>();
  const perform: PerformWorkflow = async (job, work) => {
    const stored = parts.stepsOf(work.run.workflow!);
    if (stored === null) throw new ServiceError('REL_NOT_FOUND', 'the workflow is gone');
    const outputs: ToolOutputs = outputsByJob.get(work.run.id)?.outputs ?? new Map();
    outputsByJob.set(work.run.id, { tenant: tenantOf(job.path), outputs });
    let waits = false;
    try {
      const effect = await new WorkflowRun(parts, job, work, outputs).run(readSteps(stored));
      waits = 'until' in effect;
      return effect;
    } finally {
      if (!waits) outputsByJob.delete(work.run.id);
    }
  };
  const forget = (tenant: string | null): void => {
    for (const of of outputsByJob.values()) if (of.tenant === tenant) of.outputs.clear();
  };
  return { perform, forget };
}

/** By path of the step, with how many subjects had been erased before the call. */
type ToolOutputs = Map<string, { readonly output: unknown; readonly erased: number }>;

type StepArguments<K extends StepKind> = Extract<Step, { kind: K }>['given'];
type Work = Parameters<PerformWorkflow>[1];
type Result = WorkflowStep['result'];

/** The run stops here until something comes. */
class Waits {
  readonly until: bigint | null;
  readonly result: Result;
  constructor(until: bigint | null, result: Result = {}) {
    this.until = until;
    this.result = result;
  }
}

/** The result of a step for its record, its output for later steps, and the rows that go with its record. */
interface Performed {
  readonly result: Result;
  readonly output: unknown;
  readonly rows?: (invocation: Invocation) => PutRows;
  /** Whether rows of the output may have been erased since. */
  readonly overtaken?: () => boolean;
}

/** The output of a step, asked for when it is named, and again where rows of it may be gone. */
class Output {
  readonly #ask: () => Promise<Performed>;
  readonly #isAnswer: boolean;
  #held: Promise<Performed> | null;
  #overtaken: () => boolean = () => false;

  constructor(kind: StepKind, ask: () => Promise<Performed>, first: Performed | null) {
    this.#isAnswer = kind !== 'tool';
    this.#ask = ask;
    this.#held = first === null ? null : this.#hold(first);
  }

  /** True of answers alone: a tool is not called again before its output is named. */
  get isOvertaken(): boolean {
    return this.#isAnswer && this.#overtaken();
  }

  async value(): Promise<unknown> {
    if (this.#overtaken()) this.#held = null;
    this.#held ??= this.#ask().then((performed) => this.#hold(performed));
    return (await this.#held).output;
  }

  async #hold(performed: Performed): Promise<Performed> {
    this.#overtaken = performed.overtaken ?? (() => false);
    return performed;
  }
}

interface StepScope {
  readonly path: string;
  /** Paths of the steps of the `for_each` around it begin with this. */
  readonly block: string;
  readonly scope: Scope;
}

class WorkflowRun {
  readonly #parts: WorkflowDependencies;
  readonly #job: JobRecord;
  readonly #work: Work;
  readonly #keptOutputs: ToolOutputs;
  /** By path. */
  readonly #outputs = new Map<string, Output>();
  /** Errors whose step is on record. */
  readonly #reportedErrors = new WeakSet<ServiceError>();
  #alerts = 0;
  #done = 0;

  constructor(parts: WorkflowDependencies, job: JobRecord, work: Work, keptOutputs: ToolOutputs) {
    this.#parts = parts;
    this.#job = job;
    this.#work = work;
    this.#keptOutputs = keptOutputs;
  }

  async run(steps: readonly Step[]): Promise<WorkflowEffect> {
    const stopped = await this.#block(steps, '', '', {});
    if (stopped !== null) return stopped;
    return { alerts: this.#alerts, result: { steps: this.#done } };
  }

  /** Null: all of its steps have ended. */
  async #block(
    steps: readonly Step[],
    prefix: string,
    block: string,
    names: Readonly<Record<string, unknown>>,
  ): Promise<Stopped | null> {
    const scope: Scope = { value: (root, step) => this.#value(root, step, block, names) };
    for (const [nth, step] of steps.entries()) {
      if (prefix === '') this.#work.progress(nth, steps.length);
      const stopped = await this.#step(step, { path: `${prefix}${nth}`, block, scope }, names);
      if (stopped !== null) return stopped;
    }
    return null;
  }

  async #step(step: Step, stepScope: StepScope, names: Readonly<Record<string, unknown>>): Promise<Stopped | null> {
    const { signal, run, record } = this.#work;
    signal.throwIfAborted();
    if (this.#done >= endsMax) throw new ServiceError('REL_UNPROCESSABLE', `a run has at most ${endsMax} steps`);
    const { path } = stepScope;
    const before = this.#work.steps.get(path);
    const started = before?.started ?? String(this.#parts.clock.now());
    const tell = (state: WorkflowStep['state'], result: Result): WorkflowStep => ({
      path,
      state,
      started,
      attempt: run.attempt,
      result,
    });
    if (before?.state === 'done') {
      this.#count(before.result);
      this.#keep(step, stepScope, before.result, null);
      return step.kind === 'if' ? this.#branch(step, stepScope, before.result['taken'] === 'then', names) : null;
    }
    try {
      if (step.kind === 'for_each') {
        const items = await this.#itemsOf(step.given, stepScope);
        const stopped = await this.#items(step, stepScope, items, names);
        if (stopped !== null) return stopped;
        await record(tell('done', { items: items.length }));
        this.#keep(step, stepScope, { items: items.length }, null);
        this.#done++;
        return null;
      }
      for (;;) {
        const performed = await this.#perform(step, stepScope, before ?? null, BigInt(started));
        const { result } = performed;
        if (performed instanceof Waits) return { until: performed.until, step: tell('waiting', result) };
        if (!(await this.#end(tell('done', result), performed.rows))) continue;
        this.#count(result);
        this.#keep(step, stepScope, result, performed);
        return step.kind === 'if' ? await this.#branch(step, stepScope, result['taken'] === 'then', names) : null;
      }
    } catch (error) {
      if (
        !(error instanceof ServiceError) ||
        signal.aborted ||
        error.code === 'REL_UNAVAILABLE' ||
        this.#reportedErrors.has(error)
      )
        throw error;
      this.#reportedErrors.add(error);
      await record(tell('failed', { error: error.code }));
      throw error;
    }
  }

  #keep(step: Step, stepScope: StepScope, result: Result, performed: Performed | null): void {
    this.#outputs.set(stepScope.path, new Output(step.kind, () => this.#derive(step, stepScope, result), performed));
  }

  /** Asks again what rows may be gone of. REL_CONFLICT where some are. */
  async #renew(): Promise<void> {
    for (const output of this.#outputs.values()) if (output.isOvertaken) await output.value();
  }

  /** False: nothing is written, since the rows were made of some that may be gone. */
  async #end(step: WorkflowStep, rows: Performed['rows']): Promise<boolean> {
    const overtaken = rowsAreGone();
    const outputs = this.#outputs;
    const makeCommand = (invocation: Invocation): PutRows => {
      for (const { isOvertaken } of outputs.values()) if (isOvertaken) throw overtaken;
      return rows!(invocation);
    };
    try {
      await this.#work.record(step, rows && makeCommand);
      return true;
    } catch (error) {
      if (error === overtaken) return false;
      throw error;
    }
  }

  #count(result: Result): void {
    this.#done++;
    if (result['alert'] !== undefined) this.#alerts++;
  }

  async #branch(
    { inner }: Step,
    { path, block }: StepScope,
    isTrue: boolean,
    names: Readonly<Record<string, unknown>>,
  ): Promise<Stopped | null> {
    const nth = isTrue ? 0 : 1;
    return inner[nth] === undefined ? null : this.#block(inner[nth], `${path}.${nth}.`, block, names);
  }

  async #items(
    { inner }: Step,
    { path }: StepScope,
    items: readonly unknown[],
    names: Readonly<Record<string, unknown>>,
  ): Promise<Stopped | null> {
    for (const [index, item] of items.entries()) {
      this.#work.progress(index, items.length);
      const block = `${path}.${index}.`;
      const stopped = await this.#block(inner[0]!, block, block, { ...names, item, index });
      if (stopped !== null) return stopped;
      for (const known of this.#outputs.keys()) if (known.startsWith(block)) this.#outputs.delete(known);
    }
    return null;
  }

  async #itemsOf({ items }: StepArguments<'for_each'>, { scope }: StepScope): Promise<readonly unknown[]> {
    const filled = await fill(items as Json, scope);
    if (!Array.isArray(filled)) throw new ServiceError('REL_UNPROCESSABLE', 'for_each: items are a list');
    if (filled.length > itemsMax) throw new ServiceError('REL_UNPROCESSABLE', `for_each: at most ${itemsMax} items are expected`);
    return filled;
  }

  async #value(root: string, step: number | null, block: string, names: Readonly<Record<string, unknown>>): Promise<unknown> {
    if (root === 'arguments') return this.#job.definition.run.arguments ?? {};
    if (step === null) {
      if (!Object.hasOwn(names, root)) throw new ServiceError('REL_UNPROCESSABLE', `{{${root}}}: there is no for_each around it`);
      return names[root];
    }
    const output = this.#outputs.get(root === 'steps' ? String(step) : `${block}${step}`);
    if (output === undefined) throw new ServiceError('REL_UNPROCESSABLE', `{{${root}.${step}}}: the step has not run`);
    return output.value();
  }

  async #perform(
    step: Exclude<Step, { kind: 'for_each' }>,
    stepScope: StepScope,
    before: RecordedStep | null,
    started: bigint,
  ): Promise<Performed | Waits> {
    await this.#renew();
    const now = this.#parts.clock.now();
    switch (step.kind) {
      case 'query':
      case 'function':
        return this.#ask(step, stepScope, null);
      case 'tool':
        return this.#call(step.given, stepScope);
      case 'insert':
        return this.#insert(step.given, stepScope);
      case 'alert':
        return this.#alert(step.given, stepScope);
      case 'if': {
        const { sql, parameters } = await fillSql(`SELECT (${step.given.condition}) AS yes`, [], stepScope.scope);
        const taken = (await this.#rows(sql, parameters, null)).rows[0]?.['yes'] === true ? 'then' : 'else';
        return { result: { taken }, output: { taken } };
      }
      case 'wait': {
        const { seconds, sql, every_secs: every, timeout_secs: timeout } = step.given;
        if (seconds !== undefined) {
          const until = started + BigInt(seconds) * nsPerSec;
          return now < until ? new Waits(until) : { result: {}, output: {} };
        }
        const question = await fillSql(sql!, [], stepScope.scope);
        const answer = await this.#rows(question.sql, question.parameters, null);
        if (answer.rows.length > 0) return answerStep(answer);
        if (now >= started + BigInt(timeout) * nsPerSec) throw new ServiceError('REL_TIMEOUT', 'the rows did not come');
        return new Waits(now + BigInt(every) * nsPerSec);
      }
      case 'approve': {
        // An approval is put on record when it is given: the step is found here only while there is none.
        const { timeout_secs: timeout } = step.given;
        if (timeout === undefined) return new Waits(null);
        const until = started + BigInt(timeout) * nsPerSec;
        if (before !== null && now >= until) throw new ServiceError('REL_TIMEOUT', 'nobody approved');
        return new Waits(until);
      }
    }
  }

  /** `basis` null: over what is there now. */
  async #ask(
    step: Extract<Step, { kind: 'query' | 'function' }>,
    { scope }: StepScope,
    basis: bigint | null,
  ): Promise<Performed> {
    if (step.kind === 'function') {
      const filled = (await fill(step.given.arguments as Json, scope)) as readonly unknown[];
      const { sql } = questionOf({ function: step.given.name, arguments: filled.map(() => null) });
      return answerStep(await this.#rows(sql, filled.map(parameterOf), basis));
    }
    const given = ((await fill(step.given.parameters as Json, scope)) as readonly unknown[]).map(parameterOf);
    const { sql, parameters } = await fillSql(step.given.sql, given, scope);
    return answerStep(await this.#rows(sql, parameters, basis));
  }

  #rows(sql: string, parameters: readonly Literal[], basis: bigint | null): Promise<Found> {
    const { caller, run, signal } = this.#work;
    const { gate, planner } = this.#parts;
    const request = { action: 'query', purpose: this.#purpose, correlationId: run.id, gone: signal } as const;
    return gate.invoke(caller, request, async (invocation) => {
      const asked = { sql, parameters, time: 'current', dialect: 'wide', signal, queriesOnly: true } as const;
      const answer = await planner.query(invocation, basis === null ? asked : { ...asked, basis });
      if (answer.rowCount > rowsMax)
        throw new ServiceError('REL_UNPROCESSABLE', `a step hands on at most ${rowsMax} rows: LIMIT them, or COUNT`);
      return { rows: rowsOf(answer), basis: answer.asOfSystem, overtaken: () => answer.overtaken() };
    });
  }

  async #call({ name, arguments: given }: StepArguments<'tool'>, { path, scope }: StepScope, again = 0): Promise<Performed> {
    const callId = this.#keyOf(path, again);
    const { caller, run, signal } = this.#work;
    const input = (await fill(given as Json, scope)) as Json;
    const call = { name, input, caller, signal, purpose: this.#purpose, correlationId: run.id, callId };
    const erased = this.#erased;
    const { output, readsOnly } = await this.#parts.callTool(call);
    this.#keptOutputs.set(path, { output, erased });
    const overtaken = (): boolean => erased !== this.#erased;
    return { result: { call: callId, ...(readsOnly && { reads: true }) }, output, overtaken };
  }

  async #insert(given: StepArguments<'insert'>, stepScope: StepScope): Promise<Performed> {
    const rows = await this.#rowsOf(given, stepScope);
    const keys = rows.map((row, nth) => ('_pk' in row ? row['_pk'] : 'id' in row ? row['id'] : this.#keyOf(stepScope.path, nth)));
    const provenance = { source: this.#work.caller.principal, method: 'workflow', confidence: 1, derivedFrom: null };
    return {
      result: { rows: rows.length },
      output: { ids: keys, id: keys[0] ?? null },
      rows: (invocation) => {
        const definition = invocation.snapshot().catalog.type(given.type);
        if (definition === undefined)
          throw new ServiceError('REL_UNKNOWN_TYPE', `type ${JSON.stringify(given.type)} is not registered`);
        const keyed = rows.map((row, nth) =>
          definition.primaryKey !== null || '_pk' in row || 'id' in row ? row : { ...row, _pk: keys[nth] },
        );
        return putting({ definition, rows: keyed, provenance });
      },
    };
  }

  async #rowsOf({ row, rows }: StepArguments<'insert'>, { scope }: StepScope): Promise<readonly VerbRow[]> {
    const filled = rows === undefined ? [await fill(row as Json, scope)] : await fill(rows as Json, scope);
    const isRow = (each: unknown): boolean => typeof each === 'object' && each !== null && !Array.isArray(each);
    if (!Array.isArray(filled) || filled.length === 0 || filled.length > insertMax || !filled.every(isRow))
      throw new ServiceError('REL_UNPROCESSABLE', `insert: 1 to ${insertMax} objects are expected`);
    return filled as readonly VerbRow[];
  }

  async #alert(given: StepArguments<'alert'>, { path, scope }: StepScope): Promise<Performed> {
    const id = this.#keyOf(path);
    const { run } = this.#work;
    const [title, type, key] = (await fill([given.title, given.matched_type, given.matched_pk as Json], scope)) as unknown[];
    const alert = {
      id,
      rule: { id: run.workflow!, version: 1, definition: { name: textOf(title) ?? '', severity: given.severity } },
      match: {
        type: textOf(type),
        key: textOf(key),
        systemFrom: null,
        values: [],
      },
      count: 1,
    };
    return {
      result: { alert: id },
      output: { id },
      rows: (invocation) => putAlerts(alertTypeIn(invocation.snapshot().catalog), [alert], new Map(), run.id),
    };
  }

  /** A step that is on record as it was performed, for a step that names it. */
  async #derive(step: Step, stepScope: StepScope, result: Result): Promise<Performed> {
    const { path } = stepScope;
    const basis = result['basis'] === undefined ? null : BigInt(result['basis'] as string);
    switch (step.kind) {
      case 'query':
      case 'function':
        return sameRows(await this.#ask(step, stepScope, basis), result);
      case 'insert':
        return this.#insert(step.given, stepScope);
      case 'alert':
        return { result, output: { id: result['alert'] } };
      case 'tool': {
        const keptOutput = this.#keptOutputs.get(path);
        if (keptOutput?.erased === this.#erased)
          return { result, output: keptOutput.output, overtaken: () => keptOutput.erased !== this.#erased };
        if (result['reads'] === true) return this.#call(step.given, stepScope, this.#work.run.attempt);
        throw new ServiceError(
          'REL_UNPROCESSABLE',
          `{{steps.${path}}}: the output of a tool is not kept over a restart or an erasure`,
        );
      }
      case 'wait': {
        if (basis === null) return { result, output: {} };
        const { sql, parameters } = await fillSql(step.given.sql!, [], stepScope.scope);
        return sameRows(answerStep(await this.#rows(sql, parameters, basis)), result);
      }
      default:
        return { result, output: result };
    }
  }

  /** Subjects of the tenant that were erased so far. */
  get #erased(): number {
    return this.#parts.erasedOf(tenantOf(this.#job.path));
  }

  /** Key of a write: of the run, the step and, in its path, the item. */
  #keyOf(path: string, nth = 0): string {
    return createHash('sha256')
      .update(canonicalJson(['step/1', this.#work.run.id, path, nth]))
      .digest('hex');
  }

  get #purpose(): string | null {
    return this.#job.definition.purpose;
  }
}

type Stopped = Extract<WorkflowEffect, { readonly step: WorkflowStep }>;

interface Found {
  readonly rows: readonly VerbRow[];
  readonly basis: bigint;
  overtaken(): boolean;
}

function answerStep({ rows, basis, overtaken }: Found): Performed {
  return { result: { rows: rows.length, basis: String(basis) }, output: { rows, count: rows.length }, overtaken };
}

/** Items are told apart by their number: with fewer rows the later ones would be others. */
function sameRows(performed: Performed, before: Result): Performed {
  if (performed.result['rows'] !== before['rows']) throw rowsAreGone();
  return performed;
}

const rowsAreGone = (): ServiceError => new ServiceError('REL_CONFLICT', 'rows that the run has found are gone');

/** A value as the text of a cell. */
const textOf = (value: unknown): string | null => {
  const cell = parameterOf(value);
  return cell === null ? null : String(cell);
};

/**
 * The context of a verb, inside one invocation of the gate: queries on one snapshot, and one commit of its writes. Invariants:
 *
 * - nothing is read but through the governed snapshot, nothing written but by commands of the gate;
 * - a call leaves one ToolCall row, in the same append as what it wrote, or by itself: no answer without its record.
 */
import { type ErrorCode, ServiceError } from '../../errors.ts';
import type { Clock, Ids } from '../../clock.ts';
import type { GovernedSnapshot, Invocation, InvocationDetails } from '../../governance/gate-contract.ts';
import type { JobDesk } from '../../governance/desks/job-desk.ts';
import type { JobRunner } from '../../governance/jobs/job-runner.ts';
import type { WorkflowDesk } from '../../governance/desks/workflow-desk.ts';
import type { Provenance, TypeDefinition } from '../../log/entries/entry.ts';
import type { Embedder } from '../../governance/embedding/embedder.ts';
import { readingThrough } from '../../planner/exhibits/pinned-invocation.ts';
import type { Answer, PlannerDoor, QuerySeries } from '../../planner/planner-contract.ts';
import type { DefaultTime, Literal } from '../../planner/syntax/statement.ts';
import type { SubjectErasure } from '../../governance/erasure/subject-erasure.ts';
import type { Batch, DeleteRows, Outcome, PutRows } from '../../projections/command.ts';
import type { ReadDocuments } from '../rich-text/rich-text.ts';
import { exactJson } from '../shared/write-exact-json.ts';
import type { SystemContract } from '../http/system-contract.ts';
import { putting, type VerbRow, rowsOf } from './verb-rows.ts';
import type { Translator } from '../../planner/languages/question-translator.ts';

/** The services of the store that verbs need beside the gate. */
export interface VerbDependencies {
  readonly planner: Pick<PlannerDoor, 'query' | 'querySeries' | 'readSigma' | 'turns'>;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly embedder: Embedder | null;
  readonly jobs: JobRunner;
  readonly schedule: JobDesk;
  readonly workflows: WorkflowDesk;
  readonly system: SystemContract;
  readonly erasures?: Pick<SubjectErasure, 'reach'>;
  readonly yieldTurn: () => Promise<void>;
  /** A model that turns questions into statements; null: there is none. */
  readonly translator: Translator | null;
  readonly readDocuments: ReadDocuments;
  readonly metrics: { readonly registry: { metrics(): Promise<string> } };
}

/** The members of a call's ToolCall row. */
export interface CallDetails {
  readonly arguments?: unknown;
  readonly result?: unknown;
  /** The input needed to repeat the call. */
  readonly recipe?: unknown;
  readonly sessionId?: string | null;
}

interface CallInfo {
  readonly verb: string;
  readonly purpose: string | null;
  readonly signal: AbortSignal | undefined;
  readonly callId?: string | undefined;
  readonly arguments: unknown;
}

/** The most queries of a planner session, and of an access record's list. */
const questionsMax = 256;

export class VerbCall {
  readonly parts: VerbDependencies;
  readonly invocation: Invocation;
  readonly purpose: string | null;
  readonly signal: AbortSignal | undefined;
  /** Key of the ToolCall row that this call leaves. */
  readonly callId: string;
  readonly #call: CallInfo;
  readonly #startedMs: number;
  #facts: CallDetails = {};
  #snapshot: GovernedSnapshot | null = null;
  #questions: QuerySeries | null = null;
  /** Full planner sessions, and the one that still takes queries. */
  readonly #before: QuerySeries[] = [];
  #asked = 0;
  /** By planner session: the facts that it described last. */
  readonly #described: InvocationDetails[] = [];
  #isRecorded = false;

  constructor(parts: VerbDependencies, invocation: Invocation, call: CallInfo) {
    this.parts = parts;
    this.invocation = invocation;
    this.purpose = call.purpose;
    this.signal = call.signal;
    this.callId = call.callId ?? parts.ids.next();
    this.#call = call;
    this.#startedMs = parts.clock.monotonicMs();
  }

  /** Taken once, when it is asked for first. */
  get snapshot(): GovernedSnapshot {
    return (this.#snapshot ??= this.invocation.snapshot());
  }

  /** Rows of a query, over current rows unless `time` says otherwise. */
  async ask(sql: string, parameters: readonly Literal[] = [], time: DefaultTime = 'current'): Promise<VerbRow[]> {
    return rowsOf(await this.answer(sql, parameters, time));
  }

  answer(sql: string, parameters: readonly Literal[] = [], time: DefaultTime = 'current'): Promise<Answer> {
    if (this.#questions !== null && this.#asked === questionsMax) {
      this.#before.push(this.#questions);
      this.#questions = null;
      this.#asked = 0;
    }
    this.#asked++;
    this.#questions ??= this.#sessionOn(() => this.snapshot);
    return this.#questions.query(this.#request(sql, parameters, time));
  }

  /** Rows of a query on another snapshot. */
  async askOn(snapshot: GovernedSnapshot, sql: string, parameters: readonly Literal[], time: DefaultTime): Promise<VerbRow[]> {
    const questions = this.#sessionOn(() => snapshot);
    return rowsOf(await questions.query(this.#request(sql, parameters, time)));
  }

  /** The invocation for a reader that describes questions of its own: the record names them beside all others of this call. */
  reader(snapshot: () => GovernedSnapshot = () => this.snapshot): Invocation {
    const nth = this.#described.push({}) - 1;
    const describe = (facts: InvocationDetails): void => {
      this.#described[nth] = { ...this.#described[nth], ...facts };
      const types = this.#described.flatMap(({ objectType }) => objectType?.split(',') ?? []);
      const statements = this.#described.flatMap((each) => each.statements ?? []).slice(0, questionsMax);
      this.invocation.describe({
        ...facts,
        ...(types.length > 0 && { objectType: [...new Set(types)].join(',') }),
        ...(statements.length > 0 && { statements }),
      });
    };
    return readingThrough(this.invocation, { snapshot, describe });
  }

  #sessionOn(snapshot: () => GovernedSnapshot): QuerySeries {
    const { verb, arguments: given } = this.#call;
    return this.parts.planner.querySeries(this.reader(snapshot), {
      template: `${verb} ?`,
      literals: [given === undefined ? '' : exactJson(given)],
    });
  }

  #request(sql: string, parameters: readonly Literal[], time: DefaultTime) {
    const signal = this.signal ? { signal: this.signal } : {};
    return {
      sql,
      time,
      dialect: 'wide',
      queriesOnly: true,
      purpose: this.purpose,
      ...(parameters.length > 0 && { parameters }),
      ...signal,
    } as const;
  }

  /** REL_INVALID for a name that is no type: of a verb it is an argument, not a resource. */
  type(name: string): TypeDefinition {
    const definition = this.snapshot.catalog.type(name);
    if (definition === undefined) throw new ServiceError('REL_INVALID', `the type ${JSON.stringify(name)} is not registered`);
    return definition;
  }

  provenance(confidence = 1): Provenance {
    return { source: this.invocation.caller.principal, method: this.#call.verb, confidence, derivedFrom: null };
  }

  /** Adds members to the ToolCall row of this call; later calls override earlier ones. */
  note(facts: CallDetails): void {
    this.#facts = { ...this.#facts, ...facts };
  }

  /** All of it in one append, the record of the call included. Throws what refuses the first row. */
  async commit(steps: Batch['steps']): Promise<Outcome> {
    this.#isRecorded = true;
    return this.put([...steps, this.#record()]);
  }

  /** Writes that the record of the call comes after. */
  async put(steps: readonly (PutRows | DeleteRows)[]): Promise<Outcome> {
    const outcome = await this.#submit(steps);
    const [refused] = outcome.errors;
    if (refused !== undefined) throw new ServiceError(refused.code as ErrorCode, refused.detail);
    return outcome;
  }

  /** A verb's caller knows nothing of steps: removes their number from the error. */
  async #submit(steps: Batch['steps']): Promise<Outcome> {
    try {
      return await this.invocation.submit({ kind: 'batch', steps });
    } catch (error) {
      if (!(error instanceof ServiceError) || !error.message.startsWith('step ')) throw error;
      throw new ServiceError(error.code, error.message.replace(/^step \d+: /, ''), error.facts);
    }
  }

  /**
   * Writes the ToolCall row where nothing was committed. Shared rows of another organisation take none: there the access record
   * alone tells of the call.
   */
  async end(): Promise<void> {
    if (!this.#isRecorded && this.invocation.caller.sharedFrom === null) await this.commit([]);
    if ([...this.#before, this.#questions].some((each) => each?.overtaken() === true))
      throw new ServiceError('REL_CONFLICT', 'rows of the answer were erased while it was made: call again');
  }

  #record(): PutRows {
    const { arguments: given = this.#call.arguments, result = null, recipe = null, sessionId = null } = this.#facts;
    const latency = this.parts.clock.monotonicMs() - this.#startedMs;
    const row = { id: this.callId, name: this.#call.verb, arguments: given, result, latency, session_id: sessionId, recipe };
    const put = putting({ definition: this.type('ToolCall'), rows: [row], provenance: this.provenance() });
    return this.#call.callId === undefined ? put : { ...put, when: 'absent' };
  }
}

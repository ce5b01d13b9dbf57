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

interface VerbCallInfo {
  readonly verb: string;
  readonly purpose: string | null;
  readonly signal: AbortSignal | undefined;
  readonly callId?: string | undefined;
  readonly arguments: unknown;
}

/** The most queries of a planner session, and of an access record's list. */
const verbQuestionsMax = 256;

export class VerbCall {
  readonly parts: VerbDependencies;
  readonly invocation: Invocation;
  readonly purpose: string | null;
  readonly signal: AbortSignal | undefined;
  /** Key of the ToolCall row that this call leaves. */
  readonly callId: string;
  readonly #call: VerbCallInfo;
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

  constructor(verbDependencies: VerbDependencies, verbInvocation: Invocation, verbCall: VerbCallInfo) {
    this.parts = verbDependencies;
    this.invocation = verbInvocation;
    this.purpose = verbCall.purpose;
    this.signal = verbCall.signal;
    this.callId = verbCall.callId ?? verbDependencies.ids.next();
    this.#call = verbCall;
    this.#startedMs = verbDependencies.clock.monotonicMs();
  }

  /** Taken once, when it is asked for first. */
  get snapshot(): GovernedSnapshot {
    return (this.#snapshot ??= this.invocation.snapshot());
  }

  /** Rows of a query, over current rows unless `defaultTime` says otherwise. */
  async ask(verbSql: string, sqlParameters: readonly Literal[] = [], defaultTime: DefaultTime = 'current'): Promise<VerbRow[]> {
    return rowsOf(await this.answer(verbSql, sqlParameters, defaultTime));
  }

  answer(verbSql: string, sqlParameters: readonly Literal[] = [], defaultTime: DefaultTime = 'current'): Promise<Answer> {
    if (this.#questions !== null && this.#asked === verbQuestionsMax) {
      this.#before.push(this.#questions);
      this.#questions = null;
      this.#asked = 0;
    }
    this.#asked++;
    this.#questions ??= this.#sessionOn(() => this.snapshot);
    return this.#questions.query(this.#request(verbSql, sqlParameters, defaultTime));
  }

  /** Rows of a query on another snapshot. */
  async askOn(
    pinnedSnapshot: GovernedSnapshot,
    verbSql: string,
    sqlParameters: readonly Literal[],
    defaultTime: DefaultTime,
  ): Promise<VerbRow[]> {
    const snapshotQuestions = this.#sessionOn(() => pinnedSnapshot);
    return rowsOf(await snapshotQuestions.query(this.#request(verbSql, sqlParameters, defaultTime)));
  }

  /** The invocation for a reader that describes questions of its own: the record names them beside all others of this call. */
  reader(readSnapshot: () => GovernedSnapshot = () => this.snapshot): Invocation {
    const readOrdinal = this.#described.push({}) - 1;
    const describeRead = (readDetails: InvocationDetails): void => {
      this.#described[readOrdinal] = { ...this.#described[readOrdinal], ...readDetails };
      const describedTypes = this.#described.flatMap(({ objectType }) => objectType?.split(',') ?? []);
      const describedStatements = this.#described
        .flatMap((describedRead) => describedRead.statements ?? [])
        .slice(0, verbQuestionsMax);
      this.invocation.describe({
        ...readDetails,
        ...(describedTypes.length > 0 && { objectType: [...new Set(describedTypes)].join(',') }),
        ...(describedStatements.length > 0 && { statements: describedStatements }),
      });
    };
    return readingThrough(this.invocation, { snapshot: readSnapshot, describe: describeRead });
  }

  #sessionOn(readSnapshot: () => GovernedSnapshot): QuerySeries {
    const { verb: verbName, arguments: callArguments } = this.#call;
    return this.parts.planner.querySeries(this.reader(readSnapshot), {
      template: `${verbName} ?`,
      literals: [callArguments === undefined ? '' : exactJson(callArguments)],
    });
  }

  #request(verbSql: string, sqlParameters: readonly Literal[], defaultTime: DefaultTime) {
    const signalOption = this.signal ? { signal: this.signal } : {};
    return {
      sql: verbSql,
      time: defaultTime,
      dialect: 'wide',
      queriesOnly: true,
      purpose: this.purpose,
      ...(sqlParameters.length > 0 && { parameters: sqlParameters }),
      ...signalOption,
    } as const;
  }

  /** REL_INVALID for a name that is no type: of a verb it is an argument, not a resource. */
  type(typeName: string): TypeDefinition {
    const typeDefinition = this.snapshot.catalog.type(typeName);
    if (typeDefinition === undefined)
      throw new ServiceError('REL_INVALID', `the type ${JSON.stringify(typeName)} is not registered`);
    return typeDefinition;
  }

  provenance(confidence = 1): Provenance {
    return { source: this.invocation.caller.principal, method: this.#call.verb, confidence, derivedFrom: null };
  }

  /** Adds members to the ToolCall row of this call; later calls override earlier ones. */
  note(callDetails: CallDetails): void {
    this.#facts = { ...this.#facts, ...callDetails };
  }

  /** All of it in one append, the record of the call included. Throws what refuses the first row. */
  async commit(batchSteps: Batch['steps']): Promise<Outcome> {
    this.#isRecorded = true;
    return this.put([...batchSteps, this.#record()]);
  }

  /** Writes that the record of the call comes after. */
  async put(batchSteps: readonly (PutRows | DeleteRows)[]): Promise<Outcome> {
    const batchOutcome = await this.#submit(batchSteps);
    const [refusedRow] = batchOutcome.errors;
    if (refusedRow !== undefined) throw new ServiceError(refusedRow.code as ErrorCode, refusedRow.detail);
    return batchOutcome;
  }

  /** A verb's caller knows nothing of steps: removes their number from the error. */
  async #submit(batchSteps: Batch['steps']): Promise<Outcome> {
    try {
      return await this.invocation.submit({ kind: 'batch', steps: batchSteps });
    } catch (batchError) {
      if (!(batchError instanceof ServiceError) || !batchError.message.startsWith('step ')) throw batchError;
      throw new ServiceError(batchError.code, batchError.message.replace(/^step \d+: /, ''), batchError.facts);
    }
  }

  /**
   * Writes the ToolCall row where nothing was committed. Shared rows of another organisation take none: there the access record
   * alone tells of the call.
   */
  async end(): Promise<void> {
    if (!this.#isRecorded && this.invocation.caller.sharedFrom === null) await this.commit([]);
    if ([...this.#before, this.#questions].some((querySeries) => querySeries?.overtaken() === true))
      throw new ServiceError('REL_CONFLICT', 'rows of the answer were erased while it was made: call again');
  }

  #record(): PutRows {
    const {
      arguments: callArguments = this.#call.arguments,
      result: callResult = null,
      recipe: callRecipe = null,
      sessionId: agentSessionId = null,
    } = this.#facts;
    const callLatencyMs = this.parts.clock.monotonicMs() - this.#startedMs;
    const toolCallRow = {
      id: this.callId,
      name: this.#call.verb,
      arguments: callArguments,
      result: callResult,
      latency: callLatencyMs,
      session_id: agentSessionId,
      recipe: callRecipe,
    };
    const toolCallPut = putting({ definition: this.type('ToolCall'), rows: [toolCallRow], provenance: this.provenance() });
    return this.#call.callId === undefined ? toolCallPut : { ...toolCallPut, when: 'absent' };
  }
}

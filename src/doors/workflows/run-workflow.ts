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
const stepRowsMax = 10_000;
const stepInsertMax = 1_000;
/** Ends of steps that a run may have, those of all items together. */
const endedStepsMax = 100_000;
const stepNsPerSec = 1_000_000_000n;

export function performWorkflows(workflowDependencies: WorkflowDependencies): WorkflowRunner {
  /** By run that is under way or waits: outputs of tools, which no record can give back. */
  const outputsByJob = new Map<string, { readonly tenant: string | null; readonly outputs: ToolOutputs }>();
  const performWorkflow: PerformWorkflow = async (workflowJob, workflowWork) => {
    const storedSteps = workflowDependencies.stepsOf(workflowWork.run.workflow!);
    if (storedSteps === null) throw new ServiceError('REL_NOT_FOUND', 'the workflow is gone');
    const toolOutputs: ToolOutputs = outputsByJob.get(workflowWork.run.id)?.outputs ?? new Map();
    outputsByJob.set(workflowWork.run.id, { tenant: tenantOf(workflowJob.path), outputs: toolOutputs });
    let isWaiting = false;
    try {
      const workflowEffect = await new WorkflowExecution(workflowDependencies, workflowJob, workflowWork, toolOutputs).run(
        readSteps(storedSteps),
      );
      isWaiting = 'until' in workflowEffect;
      return workflowEffect;
    } finally {
      if (!isWaiting) outputsByJob.delete(workflowWork.run.id);
    }
  };
  const forgetTenantOutputs = (forgottenTenant: string | null): void => {
    for (const runOutputs of outputsByJob.values()) if (runOutputs.tenant === forgottenTenant) runOutputs.outputs.clear();
  };
  return { perform: performWorkflow, forget: forgetTenantOutputs };
}

/** By path of the step, with how many subjects had been erased before the call. */
type ToolOutputs = Map<string, { readonly output: unknown; readonly erased: number }>;

type StepArguments<K extends StepKind> = Extract<Step, { kind: K }>['given'];
type WorkflowWork = Parameters<PerformWorkflow>[1];
type StepResult = WorkflowStep['result'];

/** The run stops here until something comes. */
class StepWait {
  readonly until: bigint | null;
  readonly result: StepResult;
  constructor(waitUntil: bigint | null, waitResult: StepResult = {}) {
    this.until = waitUntil;
    this.result = waitResult;
  }
}

/** The result of a step for its record, its output for later steps, and the rows that go with its record. */
interface PerformedStep {
  readonly result: StepResult;
  readonly output: unknown;
  readonly rows?: (invocation: Invocation) => PutRows;
  /** Whether rows of the output may have been erased since. */
  readonly overtaken?: () => boolean;
}

/** The output of a step, asked for when it is named, and again where rows of it may be gone. */
class StepOutput {
  readonly #deriveOutput: () => Promise<PerformedStep>;
  readonly #isAnswerOfStore: boolean;
  #heldOutput: Promise<PerformedStep> | null;
  #isOutputOvertaken: () => boolean = () => false;

  constructor(stepKind: StepKind, deriveOutput: () => Promise<PerformedStep>, firstOutput: PerformedStep | null) {
    this.#isAnswerOfStore = stepKind !== 'tool';
    this.#deriveOutput = deriveOutput;
    this.#heldOutput = firstOutput === null ? null : this.#holdOutput(firstOutput);
  }

  /** True of answers alone: a tool is not called again before its output is named. */
  get isOvertaken(): boolean {
    return this.#isAnswerOfStore && this.#isOutputOvertaken();
  }

  async value(): Promise<unknown> {
    if (this.#isOutputOvertaken()) this.#heldOutput = null;
    this.#heldOutput ??= this.#deriveOutput().then((performedStep) => this.#holdOutput(performedStep));
    return (await this.#heldOutput).output;
  }

  async #holdOutput(performedStep: PerformedStep): Promise<PerformedStep> {
    this.#isOutputOvertaken = performedStep.overtaken ?? (() => false);
    return performedStep;
  }
}

interface StepScope {
  readonly path: string;
  /** Paths of the steps of the `for_each` around it begin with this. */
  readonly block: string;
  readonly scope: Scope;
}

class WorkflowExecution {
  readonly #workflowDependencies: WorkflowDependencies;
  readonly #workflowJob: JobRecord;
  readonly #workflowWork: WorkflowWork;
  readonly #keptOutputs: ToolOutputs;
  /** By path. */
  readonly #stepOutputs = new Map<string, StepOutput>();
  /** Errors whose step is on record. */
  readonly #reportedErrors = new WeakSet<ServiceError>();
  #alertCount = 0;
  #doneStepCount = 0;

  constructor(
    workflowDependencies: WorkflowDependencies,
    workflowJob: JobRecord,
    workflowWork: WorkflowWork,
    keptOutputs: ToolOutputs,
  ) {
    this.#workflowDependencies = workflowDependencies;
    this.#workflowJob = workflowJob;
    this.#workflowWork = workflowWork;
    this.#keptOutputs = keptOutputs;
  }

  async run(workflowSteps: readonly Step[]): Promise<WorkflowEffect> {
    const stoppedStep = await this.#runBlock(workflowSteps, '', '', {});
    if (stoppedStep !== null) return stoppedStep;
    return { alerts: this.#alertCount, result: { steps: this.#doneStepCount } };
  }

  /** Null: all of its steps have ended. */
  async #runBlock(
    blockSteps: readonly Step[],
    pathPrefix: string,
    blockPath: string,
    forEachNames: Readonly<Record<string, unknown>>,
  ): Promise<StoppedStep | null> {
    const templateScope: Scope = {
      value: (templateRoot, templateStep) => this.#templateValue(templateRoot, templateStep, blockPath, forEachNames),
    };
    for (const [stepOrdinal, blockStep] of blockSteps.entries()) {
      if (pathPrefix === '') this.#workflowWork.progress(stepOrdinal, blockSteps.length);
      const stoppedStep = await this.#runStep(
        blockStep,
        { path: `${pathPrefix}${stepOrdinal}`, block: blockPath, scope: templateScope },
        forEachNames,
      );
      if (stoppedStep !== null) return stoppedStep;
    }
    return null;
  }

  async #runStep(
    workflowStep: Step,
    stepScope: StepScope,
    forEachNames: Readonly<Record<string, unknown>>,
  ): Promise<StoppedStep | null> {
    const { signal: runSignal, run: workflowRun, record: recordStep } = this.#workflowWork;
    runSignal.throwIfAborted();
    if (this.#doneStepCount >= endedStepsMax)
      throw new ServiceError('REL_UNPROCESSABLE', `a run has at most ${endedStepsMax} steps`);
    const { path: stepPath } = stepScope;
    const recordedBefore = this.#workflowWork.steps.get(stepPath);
    const stepStarted = recordedBefore?.started ?? String(this.#workflowDependencies.clock.now());
    const stepRecord = (stepState: WorkflowStep['state'], recordedResult: StepResult): WorkflowStep => ({
      path: stepPath,
      state: stepState,
      started: stepStarted,
      attempt: workflowRun.attempt,
      result: recordedResult,
    });
    if (recordedBefore?.state === 'done') {
      this.#countStep(recordedBefore.result);
      this.#keepOutput(workflowStep, stepScope, recordedBefore.result, null);
      return workflowStep.kind === 'if'
        ? this.#runIfBranch(workflowStep, stepScope, recordedBefore.result['taken'] === 'then', forEachNames)
        : null;
    }
    try {
      if (workflowStep.kind === 'for_each') {
        const forEachItems = await this.#forEachItems(workflowStep.given, stepScope);
        const stoppedStep = await this.#runForEach(workflowStep, stepScope, forEachItems, forEachNames);
        if (stoppedStep !== null) return stoppedStep;
        await recordStep(stepRecord('done', { items: forEachItems.length }));
        this.#keepOutput(workflowStep, stepScope, { items: forEachItems.length }, null);
        this.#doneStepCount++;
        return null;
      }
      for (;;) {
        const performedStep = await this.#performStep(workflowStep, stepScope, recordedBefore ?? null, BigInt(stepStarted));
        const { result: stepResult } = performedStep;
        if (performedStep instanceof StepWait) return { until: performedStep.until, step: stepRecord('waiting', stepResult) };
        if (!(await this.#endStep(stepRecord('done', stepResult), performedStep.rows))) continue;
        this.#countStep(stepResult);
        this.#keepOutput(workflowStep, stepScope, stepResult, performedStep);
        return workflowStep.kind === 'if'
          ? await this.#runIfBranch(workflowStep, stepScope, stepResult['taken'] === 'then', forEachNames)
          : null;
      }
    } catch (stepError) {
      if (
        !(stepError instanceof ServiceError) ||
        runSignal.aborted ||
        stepError.code === 'REL_UNAVAILABLE' ||
        this.#reportedErrors.has(stepError)
      )
        throw stepError;
      this.#reportedErrors.add(stepError);
      await recordStep(stepRecord('failed', { error: stepError.code }));
      throw stepError;
    }
  }

  #keepOutput(workflowStep: Step, stepScope: StepScope, stepResult: StepResult, performedStep: PerformedStep | null): void {
    this.#stepOutputs.set(
      stepScope.path,
      new StepOutput(workflowStep.kind, () => this.#deriveStepOutput(workflowStep, stepScope, stepResult), performedStep),
    );
  }

  /** Asks again what rows may be gone of. REL_CONFLICT where some are. */
  async #renewOvertaken(): Promise<void> {
    for (const stepOutput of this.#stepOutputs.values()) if (stepOutput.isOvertaken) await stepOutput.value();
  }

  /** False: nothing is written, since the rows were made of some that may be gone. */
  async #endStep(endedStep: WorkflowStep, makeRows: PerformedStep['rows']): Promise<boolean> {
    const overtakenError = rowsGoneError();
    const stepOutputs = this.#stepOutputs;
    const makeStepCommand = (stepInvocation: Invocation): PutRows => {
      for (const { isOvertaken: isOutputOvertaken } of stepOutputs.values()) if (isOutputOvertaken) throw overtakenError;
      return makeRows!(stepInvocation);
    };
    try {
      await this.#workflowWork.record(endedStep, makeRows && makeStepCommand);
      return true;
    } catch (recordError) {
      if (recordError === overtakenError) return false;
      throw recordError;
    }
  }

  #countStep(stepResult: StepResult): void {
    this.#doneStepCount++;
    if (stepResult['alert'] !== undefined) this.#alertCount++;
  }

  async #runIfBranch(
    { inner: innerBlocks }: Step,
    { path: stepPath, block: blockPath }: StepScope,
    isConditionTrue: boolean,
    forEachNames: Readonly<Record<string, unknown>>,
  ): Promise<StoppedStep | null> {
    const branchOrdinal = isConditionTrue ? 0 : 1;
    return innerBlocks[branchOrdinal] === undefined
      ? null
      : this.#runBlock(innerBlocks[branchOrdinal], `${stepPath}.${branchOrdinal}.`, blockPath, forEachNames);
  }

  async #runForEach(
    { inner: innerBlocks }: Step,
    { path: stepPath }: StepScope,
    forEachItems: readonly unknown[],
    forEachNames: Readonly<Record<string, unknown>>,
  ): Promise<StoppedStep | null> {
    for (const [forEachIndex, forEachItem] of forEachItems.entries()) {
      this.#workflowWork.progress(forEachIndex, forEachItems.length);
      const blockPath = `${stepPath}.${forEachIndex}.`;
      const stoppedStep = await this.#runBlock(innerBlocks[0]!, blockPath, blockPath, {
        ...forEachNames,
        item: forEachItem,
        index: forEachIndex,
      });
      if (stoppedStep !== null) return stoppedStep;
      for (const outputPath of this.#stepOutputs.keys())
        if (outputPath.startsWith(blockPath)) this.#stepOutputs.delete(outputPath);
    }
    return null;
  }

  async #forEachItems(
    { items: itemsTemplate }: StepArguments<'for_each'>,
    { scope: templateScope }: StepScope,
  ): Promise<readonly unknown[]> {
    const filled = await fill(itemsTemplate as Json, templateScope);
    if (!Array.isArray(filled)) throw new ServiceError('REL_UNPROCESSABLE', 'for_each: items are a list');
    if (filled.length > itemsMax) throw new ServiceError('REL_UNPROCESSABLE', `for_each: at most ${itemsMax} items are expected`);
    return filled;
  }

  async #templateValue(
    templateRoot: string,
    templateStep: number | null,
    blockPath: string,
    forEachNames: Readonly<Record<string, unknown>>,
  ): Promise<unknown> {
    if (templateRoot === 'arguments') return this.#workflowJob.definition.run.arguments ?? {};
    if (templateStep === null) {
      if (!Object.hasOwn(forEachNames, templateRoot))
        throw new ServiceError('REL_UNPROCESSABLE', `{{${templateRoot}}}: there is no for_each around it`);
      return forEachNames[templateRoot];
    }
    const stepOutput = this.#stepOutputs.get(templateRoot === 'steps' ? String(templateStep) : `${blockPath}${templateStep}`);
    if (stepOutput === undefined)
      throw new ServiceError('REL_UNPROCESSABLE', `{{${templateRoot}.${templateStep}}}: the step has not run`);
    return stepOutput.value();
  }

  async #performStep(
    workflowStep: Exclude<Step, { kind: 'for_each' }>,
    stepScope: StepScope,
    recordedBefore: RecordedStep | null,
    stepStarted: bigint,
  ): Promise<PerformedStep | StepWait> {
    await this.#renewOvertaken();
    const stepNow = this.#workflowDependencies.clock.now();
    switch (workflowStep.kind) {
      case 'query':
      case 'function':
        return this.#askStep(workflowStep, stepScope, null);
      case 'tool':
        return this.#callToolStep(workflowStep.given, stepScope);
      case 'insert':
        return this.#insertStep(workflowStep.given, stepScope);
      case 'alert':
        return this.#alertStep(workflowStep.given, stepScope);
      case 'if': {
        const { sql: stepSql, parameters: sqlParameters } = await fillSql(
          `SELECT (${workflowStep.given.condition}) AS yes`,
          [],
          stepScope.scope,
        );
        const branchTaken = (await this.#queryStepRows(stepSql, sqlParameters, null)).rows[0]?.['yes'] === true ? 'then' : 'else';
        return { result: { taken: branchTaken }, output: { taken: branchTaken } };
      }
      case 'wait': {
        const { seconds: waitSeconds, sql: stepSql, every_secs: pollSecs, timeout_secs: timeoutSecs } = workflowStep.given;
        if (waitSeconds !== undefined) {
          const waitUntil = stepStarted + BigInt(waitSeconds) * stepNsPerSec;
          return stepNow < waitUntil ? new StepWait(waitUntil) : { result: {}, output: {} };
        }
        const waitQuestion = await fillSql(stepSql!, [], stepScope.scope);
        const answer = await this.#queryStepRows(waitQuestion.sql, waitQuestion.parameters, null);
        if (answer.rows.length > 0) return performedAnswer(answer);
        if (stepNow >= stepStarted + BigInt(timeoutSecs) * stepNsPerSec)
          throw new ServiceError('REL_TIMEOUT', 'the rows did not come');
        return new StepWait(stepNow + BigInt(pollSecs) * stepNsPerSec);
      }
      case 'approve': {
        // An approval is put on record when it is given: the step is found here only while there is none.
        const { timeout_secs: timeoutSecs } = workflowStep.given;
        if (timeoutSecs === undefined) return new StepWait(null);
        const waitUntil = stepStarted + BigInt(timeoutSecs) * stepNsPerSec;
        if (recordedBefore !== null && stepNow >= waitUntil) throw new ServiceError('REL_TIMEOUT', 'nobody approved');
        return new StepWait(waitUntil);
      }
    }
  }

  /** `rowsBasis` null: over what is there now. */
  async #askStep(
    workflowStep: Extract<Step, { kind: 'query' | 'function' }>,
    { scope: templateScope }: StepScope,
    rowsBasis: bigint | null,
  ): Promise<PerformedStep> {
    if (workflowStep.kind === 'function') {
      const filledArguments = (await fill(workflowStep.given.arguments as Json, templateScope)) as readonly unknown[];
      const { sql: stepSql } = questionOf({ function: workflowStep.given.name, arguments: filledArguments.map(() => null) });
      return performedAnswer(await this.#queryStepRows(stepSql, filledArguments.map(parameterOf), rowsBasis));
    }
    const filledParameters = ((await fill(workflowStep.given.parameters as Json, templateScope)) as readonly unknown[]).map(
      parameterOf,
    );
    const { sql, parameters: sqlParameters } = await fillSql(workflowStep.given.sql, filledParameters, templateScope);
    return performedAnswer(await this.#queryStepRows(sql, sqlParameters, rowsBasis));
  }

  #queryStepRows(stepSql: string, sqlParameters: readonly Literal[], rowsBasis: bigint | null): Promise<StepRows> {
    const { caller: runCaller, run: workflowRun, signal: runSignal } = this.#workflowWork;
    const { gate: workflowGate, planner: workflowPlanner } = this.#workflowDependencies;
    const stepInvocation = {
      action: 'query',
      purpose: this.#runPurpose,
      correlationId: workflowRun.id,
      gone: runSignal,
    } as const;
    return workflowGate.invoke(runCaller, stepInvocation, async (invocation) => {
      const stepQuestion = {
        sql: stepSql,
        parameters: sqlParameters,
        time: 'current',
        dialect: 'wide',
        signal: runSignal,
        queriesOnly: true,
      } as const;
      const stepAnswer = await workflowPlanner.query(
        invocation,
        rowsBasis === null ? stepQuestion : { ...stepQuestion, basis: rowsBasis },
      );
      if (stepAnswer.rowCount > stepRowsMax)
        throw new ServiceError('REL_UNPROCESSABLE', `a step hands on at most ${stepRowsMax} rows: LIMIT them, or COUNT`);
      return { rows: rowsOf(stepAnswer), basis: stepAnswer.asOfSystem, overtaken: () => stepAnswer.overtaken() };
    });
  }

  async #callToolStep(
    { name: toolName, arguments: toolArguments }: StepArguments<'tool'>,
    { path: stepPath, scope: templateScope }: StepScope,
    repeatOrdinal = 0,
  ): Promise<PerformedStep> {
    const toolCallId = this.#stepKey(stepPath, repeatOrdinal);
    const { caller: runCaller, run: workflowRun, signal: runSignal } = this.#workflowWork;
    const toolInput = (await fill(toolArguments as Json, templateScope)) as Json;
    const toolCall = {
      name: toolName,
      input: toolInput,
      caller: runCaller,
      signal: runSignal,
      purpose: this.#runPurpose,
      correlationId: workflowRun.id,
      callId: toolCallId,
    };
    const erasedBefore = this.#erasedCount;
    const { output: toolOutput, readsOnly: isReadOnlyTool } = await this.#workflowDependencies.callTool(toolCall);
    this.#keptOutputs.set(stepPath, { output: toolOutput, erased: erasedBefore });
    const isToolOvertaken = (): boolean => erasedBefore !== this.#erasedCount;
    return {
      result: { call: toolCallId, ...(isReadOnlyTool && { reads: true }) },
      output: toolOutput,
      overtaken: isToolOvertaken,
    };
  }

  async #insertStep(insertFields: StepArguments<'insert'>, stepScope: StepScope): Promise<PerformedStep> {
    const insertRows = await this.#insertedRows(insertFields, stepScope);
    const insertKeys = insertRows.map((insertRow, rowOrdinal) =>
      '_pk' in insertRow ? insertRow['_pk'] : 'id' in insertRow ? insertRow['id'] : this.#stepKey(stepScope.path, rowOrdinal),
    );
    const insertProvenance = {
      source: this.#workflowWork.caller.principal,
      method: 'workflow',
      confidence: 1,
      derivedFrom: null,
    };
    return {
      result: { rows: insertRows.length },
      output: { ids: insertKeys, id: insertKeys[0] ?? null },
      rows: (insertInvocation) => {
        const insertedType = insertInvocation.snapshot().catalog.type(insertFields.type);
        if (insertedType === undefined)
          throw new ServiceError('REL_UNKNOWN_TYPE', `type ${JSON.stringify(insertFields.type)} is not registered`);
        const keyedRows = insertRows.map((unkeyedRow, rowOrdinalOf) =>
          insertedType.primaryKey !== null || '_pk' in unkeyedRow || 'id' in unkeyedRow
            ? unkeyedRow
            : { ...unkeyedRow, _pk: insertKeys[rowOrdinalOf] },
        );
        return putting({ definition: insertedType, rows: keyedRows, provenance: insertProvenance });
      },
    };
  }

  async #insertedRows(
    { row: rowTemplate, rows: rowsTemplate }: StepArguments<'insert'>,
    { scope: templateScope }: StepScope,
  ): Promise<readonly VerbRow[]> {
    const filledRows =
      rowsTemplate === undefined
        ? [await fill(rowTemplate as Json, templateScope)]
        : await fill(rowsTemplate as Json, templateScope);
    const isInsertRow = (filledRow: unknown): boolean =>
      typeof filledRow === 'object' && filledRow !== null && !Array.isArray(filledRow);
    if (
      !Array.isArray(filledRows) ||
      filledRows.length === 0 ||
      filledRows.length > stepInsertMax ||
      !filledRows.every(isInsertRow)
    )
      throw new ServiceError('REL_UNPROCESSABLE', `insert: 1 to ${stepInsertMax} objects are expected`);
    return filledRows as readonly VerbRow[];
  }

  async #alertStep(
    alertFields: StepArguments<'alert'>,
    { path: stepPath, scope: templateScope }: StepScope,
  ): Promise<PerformedStep> {
    const alertId = this.#stepKey(stepPath);
    const { run: workflowRun } = this.#workflowWork;
    const [alertTitle, matchedType, matchedKey] = (await fill(
      [alertFields.title, alertFields.matched_type, alertFields.matched_pk as Json],
      templateScope,
    )) as unknown[];
    const stepAlert = {
      id: alertId,
      rule: {
        id: workflowRun.workflow!,
        version: 1,
        definition: { name: templateText(alertTitle) ?? '', severity: alertFields.severity },
      },
      match: {
        type: templateText(matchedType),
        key: templateText(matchedKey),
        systemFrom: null,
        values: [],
      },
      count: 1,
    };
    return {
      result: { alert: alertId },
      output: { id: alertId },
      rows: (invocation) => putAlerts(alertTypeIn(invocation.snapshot().catalog), [stepAlert], new Map(), workflowRun.id),
    };
  }

  /** A step that is on record as it was performed, for a step that names it. */
  async #deriveStepOutput(workflowStep: Step, stepScope: StepScope, stepResult: StepResult): Promise<PerformedStep> {
    const { path: stepPath } = stepScope;
    const rowsBasis = stepResult['basis'] === undefined ? null : BigInt(stepResult['basis'] as string);
    switch (workflowStep.kind) {
      case 'query':
      case 'function':
        return requireSameRows(await this.#askStep(workflowStep, stepScope, rowsBasis), stepResult);
      case 'insert':
        return this.#insertStep(workflowStep.given, stepScope);
      case 'alert':
        return { result: stepResult, output: { id: stepResult['alert'] } };
      case 'tool': {
        const keptOutput = this.#keptOutputs.get(stepPath);
        if (keptOutput?.erased === this.#erasedCount)
          return { result: stepResult, output: keptOutput.output, overtaken: () => keptOutput.erased !== this.#erasedCount };
        if (stepResult['reads'] === true)
          return this.#callToolStep(workflowStep.given, stepScope, this.#workflowWork.run.attempt);
        throw new ServiceError(
          'REL_UNPROCESSABLE',
          `{{steps.${stepPath}}}: the output of a tool is not kept over a restart or an erasure`,
        );
      }
      case 'wait': {
        if (rowsBasis === null) return { result: stepResult, output: {} };
        const { sql: stepSql, parameters: sqlParameters } = await fillSql(workflowStep.given.sql!, [], stepScope.scope);
        return requireSameRows(performedAnswer(await this.#queryStepRows(stepSql, sqlParameters, rowsBasis)), stepResult);
      }
      default:
        return { result: stepResult, output: stepResult };
    }
  }

  /** Subjects of the tenant that were erased so far. */
  get #erasedCount(): number {
    return this.#workflowDependencies.erasedOf(tenantOf(this.#workflowJob.path));
  }

  /** Key of a write: of the run, the step and, in its path, the item. */
  #stepKey(stepPath: string, keyOrdinal = 0): string {
    return createHash('sha256')
      .update(canonicalJson(['step/1', this.#workflowWork.run.id, stepPath, keyOrdinal]))
      .digest('hex');
  }

  get #runPurpose(): string | null {
    return this.#workflowJob.definition.purpose;
  }
}

type StoppedStep = Extract<WorkflowEffect, { readonly step: WorkflowStep }>;

interface StepRows {
  readonly rows: readonly VerbRow[];
  readonly basis: bigint;
  overtaken(): boolean;
}

function performedAnswer({ rows: stepRows, basis: rowsBasis, overtaken: isOvertaken }: StepRows): PerformedStep {
  return {
    result: { rows: stepRows.length, basis: String(rowsBasis) },
    output: { rows: stepRows, count: stepRows.length },
    overtaken: isOvertaken,
  };
}

/** Items are told apart by their number: with fewer rows the later ones would be others. */
function requireSameRows(performedStep: PerformedStep, resultBefore: StepResult): PerformedStep {
  if (performedStep.result['rows'] !== resultBefore['rows']) throw rowsGoneError();
  return performedStep;
}

const rowsGoneError = (): ServiceError => new ServiceError('REL_CONFLICT', 'rows that the run has found are gone');

/** A value as the text of a cell. */
const templateText = (templateCell: unknown): string | null => {
  const templateLiteral = parameterOf(templateCell);
  return templateLiteral === null ? null : String(templateLiteral);
};

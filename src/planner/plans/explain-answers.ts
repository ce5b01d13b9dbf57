/** Answers of EXPLAIN, in each of its modes. */
import type { Clock } from '../../clock.ts';
import { timeOf } from '../binding/binder.ts';
import { asInstant } from '../expressions/evaluate.ts';
import { KernelContext } from '../expressions/kernel-context.ts';
import { typesCalled } from '../table-functions/statement-call.ts';
import { type LogicalPlan, nodesOf, type PlanNode } from '../logical-plan.ts';
import type { Measurements } from '../operators/measurements.ts';
import type { Execution } from '../operators/operator.ts';
import type { Answer, QueryOptions } from '../planner-contract.ts';
import { type StatementSource, type QueryStatement, typesNamed } from '../statements/statement-source.ts';
import type { QueryInvocation } from '../statements/query-series.ts';
import { smallAnswer } from '../execution/small-answer.ts';
import type { Scheduler } from '../execution/executor.ts';
import { type TextsReady, textsReady } from '../search/index-readiness.ts';
import { tablesOf } from '../continuous/views/view-definition.ts';
import type { Query } from '../syntax/statement.ts';
import { explain, planAsJson, policyLines, type IndexReadiness } from './plan-text.ts';
import type { Sketches } from './sketches.ts';

/** Columns of what EXPLAIN answers. */
export const planColumns: Answer['columns'] = [{ name: 'plan', type: 'string' }];

export class Explainer {
  readonly #explainClock: Clock;
  readonly #explainScheduler: Scheduler;
  readonly #planSketches: Sketches;

  constructor(clock: Clock, scheduler: Scheduler, sketches: Sketches) {
    this.#explainClock = clock;
    this.#explainScheduler = scheduler;
    this.#planSketches = sketches;
  }

  async explain(
    plan: LogicalPlan,
    execution: Execution,
    startedMs: number,
    {
      statement,
      run,
    }: { readonly statement: QueryStatement; readonly run: { readonly actualRows: number; readonly watch: Measurements } | null },
  ): Promise<Answer> {
    // To explain takes no part in what it explains.
    const processingTimeMs = this.#explainClock.monotonicMs() - startedMs;
    const planSketch = await this.#planSketches.sketchesOf(plan, execution.snapshot);
    const texts = await this.#textsReadyOf(plan, execution);
    const { lines, operators } = explain(plan, execution, planSketch, texts, run?.watch);
    const explainAnswer = this.lines(statement.asJson ? [planAsJson(lines)] : lines, execution.kernels.instant, startedMs);
    return run ? { ...explainAnswer, actualRows: run.actualRows, operators, processingTimeMs } : explainAnswer;
  }

  /** By search: whether what it searches is indexed. */
  async #textsReadyOf(plan: LogicalPlan, execution: Execution): Promise<IndexReadiness> {
    const textsByNode = new Map<PlanNode, TextsReady>();
    for (const node of nodesOf(plan)) {
      if (node.kind !== 'search') continue;
      const readinessSteps = textsReady(node, execution);
      let readinessStep = readinessSteps.next();
      for (; readinessStep.done !== true; readinessStep = readinessSteps.next()) await this.#explainScheduler.yield();
      textsByNode.set(node, readinessStep.value);
    }
    return textsByNode;
  }

  /**
   * The decision that reading would meet, now or, with AS OF SYSTEM TIME, would have met then: reading itself meets that of now,
   * for any instant. Source: specification, "SQL dialect" rule 12; the live one is given here too.
   */
  policy(invocation: QueryInvocation, query: Query, source: StatementSource, { time }: QueryOptions, startedMs: number): Answer {
    const now = this.#explainClock.now();
    const literals = source.parameters;
    const policyKernels = new KernelContext({
      literals,
      locationOf: (slot) => source.locationOf(slot),
      instant: now,
      parameters: [],
    });
    const { system } = timeOf(query, literals, source.dialect !== 'spec');
    const statedInstant = typeof system === 'string' ? undefined : asInstant(policyKernels.constant(system.instant));
    const policyInstant = query.asOf === null && typeof time === 'object' && time.system !== 'now' ? time.system : statedInstant;
    const namedTypes = [...new Set([...typesNamed(query), ...typesCalled(query, literals), ...(tablesOf(query) ?? [])])];
    const lines = (namedTypes.length === 0 ? [null] : namedTypes).flatMap((type) => {
      const policyText = policyLines(invocation.explainPolicy(type, policyInstant));
      return namedTypes.length > 1 ? [`type ${type}`, ...policyText] : policyText;
    });
    return this.lines(lines, now, startedMs);
  }

  lines(lines: readonly string[], asOfSystem: bigint, startedMs: number): Answer {
    return smallAnswer(
      planColumns,
      lines.map((line) => [line]),
      {
        asOfSystem,
        costUnits: 1,
        plan: lines.join('\n'),
        processingTimeMs: this.#explainClock.monotonicMs() - startedMs,
      },
    );
  }
}

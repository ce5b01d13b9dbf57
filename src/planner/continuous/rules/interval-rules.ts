/**
 * Judges rules that no single row decides (joins, aggregates, windows, `now()`) at intervals, counted from the registration of their
 * version: as a question about the instant when it is due, by the grants that the author has then. A round leaves an entry where it
 * raises alerts; one that was missed is made up for by the next.
 *
 * Tenants take turns: of each the rule that is due the longest is judged, then that of the next. However many rules one of them has, the
 * others wait for one of its rules.
 */
import { createHash } from 'node:crypto';
import { ServiceError } from '../../../errors.ts';
import { WorkSlices } from '../../../governance/jobs/work-slices.ts';
import { canonicalJson } from '../../../log/values/canonical-json.ts';
import { tenantOf } from '../../../log/values/value.ts';
import type { RunRecord } from '../../../projections/jobs/job.ts';
import type { DetectionDefinition, RuleRecord } from '../../../projections/rules/rule.ts';
import { putAlerts } from './alerts.ts';
import { standingCondition } from './rule-condition.ts';
import type { RuleFailure, RuleJudgeDependencies } from './commit-rules.ts';
import { matchesAt, raise } from './query-rules.ts';

/** The loop looks at the clock this often at least: it may be set. */
const ruleTickMsMax = 30_000;
const ruleNsPerSec = 1_000_000_000n;

/** A rule, and the next instant at which it is due. */
interface TimedRule {
  readonly rule: RuleRecord;
  due: bigint;
}

export class IntervalRules {
  readonly #dependencies: RuleJudgeDependencies;
  readonly #intervalFailures = new Map<string, RuleFailure>();
  #rulesEpoch: number | null = null;
  /** By tenant, then by id and version. */
  #timedRules: ReadonlyMap<string | null, ReadonlyMap<string, TimedRule>> = new Map();
  #wakeIntervals: (() => void) | null = null;

  constructor(dependencies: RuleJudgeDependencies) {
    this.#dependencies = dependencies;
  }

  /** Why a rule was not judged the last time; null: it was. */
  failureOf(rule: string): RuleFailure | null {
    return this.#intervalFailures.get(rule) ?? null;
  }

  /** Rules may have changed. */
  look(): void {
    if (this.#haveRulesChanged()) this.#wakeIntervals?.();
  }

  /** Until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#dependencies;
    while (!signal.aborted) {
      const nextDue = await this.round(signal);
      if (this.#haveRulesChanged()) continue;
      const untilDueMs = nextDue === null ? ruleTickMsMax : Number((nextDue - clock.now()) / 1_000_000n) + 1;
      const wokenEarly = new AbortController();
      this.#wakeIntervals = () => wokenEarly.abort();
      await clock.sleep(Math.max(0, Math.min(untilDueMs, ruleTickMsMax)), AbortSignal.any([signal, wokenEarly.signal]));
      this.#wakeIntervals = null;
    }
  }

  /** Judges what is due until nothing is. Returns the next instant at which something is; null: nothing is. */
  async round(signal: AbortSignal | null = null): Promise<bigint | null> {
    const { clock, yieldTurn } = this.#dependencies;
    for (;;) {
      await this.#learnTimedRules();
      let [nextDue, judgedRuleCount]: [bigint | null, number] = [null, 0];
      for (const tenantRules of this.#timedRules.values()) {
        const firstDueRule = await this.#earliestDueRule(tenantRules.values());
        if (signal?.aborted === true || firstDueRule === null) return null;
        if (firstDueRule.due <= clock.now()) {
          await yieldTurn();
          await this.#judgeTimedRule(firstDueRule);
          judgedRuleCount++;
        } else if (nextDue === null || firstDueRule.due < nextDue) nextDue = firstDueRule.due;
      }
      if (judgedRuleCount === 0) return nextDue;
    }
  }

  async #earliestDueRule(timedRules: Iterable<TimedRule>): Promise<TimedRule | null> {
    const earliestSlices = new WorkSlices(this.#dependencies);
    let earliestRule: TimedRule | null = null;
    for (const timedRule of timedRules) {
      if (earliestRule === null || timedRule.due < earliestRule.due) earliestRule = timedRule;
      if (earliestSlices.isOver()) await earliestSlices.next();
    }
    return earliestRule;
  }

  #haveRulesChanged(): boolean {
    return this.#dependencies.rules.epoch !== this.#rulesEpoch;
  }

  async #learnTimedRules(): Promise<void> {
    if (!this.#haveRulesChanged()) return;
    const { rules, beginning, clock } = this.#dependencies;
    const { epoch: learnedEpoch } = rules;
    const learningSlices = new WorkSlices(this.#dependencies);
    const timedByTenant = new Map<string | null, Map<string, TimedRule>>();
    for (const { record: rule, until } of rules.listJudged()) {
      if (learningSlices.isOver()) await learningSlices.next();
      const tenant = tenantOf(rule.owner);
      if (until !== null || rule.time < beginning(tenant) || !isJudgedAtIntervals(rule)) continue;
      const ruleVersionKey = `${rule.id} ${rule.version}`;
      const ruleDue = this.#timedRules.get(tenant)?.get(ruleVersionKey)?.due ?? lastDueInstant(rule, clock.now());
      const tenantTimedRules = timedByTenant.get(tenant) ?? new Map<string, TimedRule>();
      timedByTenant.set(tenant, tenantTimedRules.set(ruleVersionKey, { rule, due: ruleDue }));
    }
    this.#timedRules = timedByTenant;
    this.#rulesEpoch = learnedEpoch;
  }

  /** As of the last instant at which it was due. */
  async #judgeTimedRule(timedRule: TimedRule): Promise<void> {
    const { rule } = timedRule;
    const ruleDue = lastDueInstant(rule, this.#dependencies.clock.now());
    timedRule.due = ruleDue + ruleIntervalNs(rule);
    // Rows that it read were erased meanwhile: it is due still.
    if (!(await this.#judgeRuleAt(rule, ruleDue))) timedRule.due = ruleDue;
  }

  /** False: nothing was raised, since rows that matched may be gone. */
  async #judgeRuleAt(rule: RuleRecord, ruleDue: bigint): Promise<boolean> {
    const { gate, ids, planner, absentCaller, judgedUpTo } = this.#dependencies;
    const { id, version, author, owner: path, branch } = rule;
    const { purpose } = rule.definition as DetectionDefinition;
    const intervalGroup = createHash('sha256')
      .update(canonicalJson(['interval/1', id, version]))
      .digest('hex');
    try {
      const caller = absentCaller({ ...author, path, branch });
      const judgeRequest = { action: 'query', purpose, correlationId: ids.next(), continues: true } as const;
      const isJudged = await gate.invoke(caller, judgeRequest, async (invocation) => {
        invocation.describe({ template: 'rule ?', literals: [id], costUnits: 0 });
        const snapshot = invocation.snapshot();
        const ruleQuestion = { planner, caller, snapshot };
        const ruleMatches = await matchesAt(ruleQuestion, rule, ruleDue);
        const { type, all: intervalAlerts, counted, overtaken } = await raise(ruleQuestion, [ruleMatches], ruleDue, true);
        if (overtaken()) return false;
        invocation.describe({ rowCount: intervalAlerts.length });
        if (intervalAlerts.length === 0) return true;
        const run: RunRecord = {
          id: ids.next(),
          job: null,
          group: intervalGroup,
          state: 'done',
          attempt: 1,
          due: String(ruleDue),
          basis: String(ruleDue),
          alerts: intervalAlerts.length,
          reason: null,
          missed: 0,
          result: null,
        };
        await invocation.submit({
          kind: 'record-run',
          run,
          alerts: putAlerts(type, intervalAlerts, counted, run.id),
          from: judgedUpTo(intervalGroup),
        });
        return true;
      });
      this.#intervalFailures.delete(id);
      return isJudged;
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      this.#intervalFailures.set(id, { rule: id, code: error.code, detail: error.message });
      return true;
    }
  }
}

const ruleIntervalNs = ({ definition }: RuleRecord): bigint =>
  BigInt((definition as DetectionDefinition).interval_secs) * ruleNsPerSec;

/** The last instant at which the rule was due; its registration where it has not been. */
function lastDueInstant(rule: RuleRecord, now: bigint): bigint {
  const { time } = rule;
  return now <= time ? time : now - ((now - time) % ruleIntervalNs(rule));
}

function isJudgedAtIntervals({ definition }: RuleRecord): boolean {
  const isSqlDetection = definition.kind === 'detection' && definition.enabled && definition.language === 'sql';
  return isSqlDetection && standingCondition(definition)?.judged === 'at intervals';
}

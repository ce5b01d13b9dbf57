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
const tickMsMax = 30_000;
const nsPerSec = 1_000_000_000n;

/** A rule, and the next instant at which it is due. */
interface Timed {
  readonly rule: RuleRecord;
  due: bigint;
}

export class IntervalRules {
  readonly #dependencies: RuleJudgeDependencies;
  readonly #failures = new Map<string, RuleFailure>();
  #epoch: number | null = null;
  /** By tenant, then by id and version. */
  #tenants: ReadonlyMap<string | null, ReadonlyMap<string, Timed>> = new Map();
  #wake: (() => void) | null = null;

  constructor(dependencies: RuleJudgeDependencies) {
    this.#dependencies = dependencies;
  }

  /** Why a rule was not judged the last time; null: it was. */
  failureOf(rule: string): RuleFailure | null {
    return this.#failures.get(rule) ?? null;
  }

  /** Rules may have changed. */
  look(): void {
    if (this.#hasChanged()) this.#wake?.();
  }

  /** Until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#dependencies;
    while (!signal.aborted) {
      const next = await this.round(signal);
      if (this.#hasChanged()) continue;
      const ms = next === null ? tickMsMax : Number((next - clock.now()) / 1_000_000n) + 1;
      const woken = new AbortController();
      this.#wake = () => woken.abort();
      await clock.sleep(Math.max(0, Math.min(ms, tickMsMax)), AbortSignal.any([signal, woken.signal]));
      this.#wake = null;
    }
  }

  /** Judges what is due until nothing is. Returns the next instant at which something is; null: nothing is. */
  async round(signal: AbortSignal | null = null): Promise<bigint | null> {
    const { clock, yieldTurn } = this.#dependencies;
    for (;;) {
      await this.#learn();
      let [next, judged]: [bigint | null, number] = [null, 0];
      for (const rules of this.#tenants.values()) {
        const first = await this.#earliest(rules.values());
        if (signal?.aborted === true || first === null) return null;
        if (first.due <= clock.now()) {
          await yieldTurn();
          await this.#judge(first);
          judged++;
        } else if (next === null || first.due < next) next = first.due;
      }
      if (judged === 0) return next;
    }
  }

  async #earliest(rules: Iterable<Timed>): Promise<Timed | null> {
    const slices = new WorkSlices(this.#dependencies);
    let first: Timed | null = null;
    for (const timed of rules) {
      if (first === null || timed.due < first.due) first = timed;
      if (slices.isOver()) await slices.next();
    }
    return first;
  }

  #hasChanged(): boolean {
    return this.#dependencies.rules.epoch !== this.#epoch;
  }

  async #learn(): Promise<void> {
    if (!this.#hasChanged()) return;
    const { rules, beginning, clock } = this.#dependencies;
    const { epoch } = rules;
    const slices = new WorkSlices(this.#dependencies);
    const tenants = new Map<string | null, Map<string, Timed>>();
    for (const { record: rule, until } of rules.listJudged()) {
      if (slices.isOver()) await slices.next();
      const tenant = tenantOf(rule.owner);
      if (until !== null || rule.time < beginning(tenant) || !isAtIntervals(rule)) continue;
      const key = `${rule.id} ${rule.version}`;
      const due = this.#tenants.get(tenant)?.get(key)?.due ?? lastDue(rule, clock.now());
      const standing = tenants.get(tenant) ?? new Map<string, Timed>();
      tenants.set(tenant, standing.set(key, { rule, due }));
    }
    this.#tenants = tenants;
    this.#epoch = epoch;
  }

  /** As of the last instant at which it was due. */
  async #judge(timed: Timed): Promise<void> {
    const { rule } = timed;
    const due = lastDue(rule, this.#dependencies.clock.now());
    timed.due = due + intervalOf(rule);
    // Rows that it read were erased meanwhile: it is due still.
    if (!(await this.#judgeAt(rule, due))) timed.due = due;
  }

  /** False: nothing was raised, since rows that matched may be gone. */
  async #judgeAt(rule: RuleRecord, due: bigint): Promise<boolean> {
    const { gate, ids, planner, absentCaller, judgedUpTo } = this.#dependencies;
    const { id, version, author, owner: path, branch } = rule;
    const { purpose } = rule.definition as DetectionDefinition;
    const group = createHash('sha256')
      .update(canonicalJson(['interval/1', id, version]))
      .digest('hex');
    try {
      const caller = absentCaller({ ...author, path, branch });
      const request = { action: 'query', purpose, correlationId: ids.next(), continues: true } as const;
      const isJudged = await gate.invoke(caller, request, async (invocation) => {
        invocation.describe({ template: 'rule ?', literals: [id], costUnits: 0 });
        const snapshot = invocation.snapshot();
        const question = { planner, caller, snapshot };
        const ruleMatches = await matchesAt(question, rule, due);
        const { type, all, counted, overtaken } = await raise(question, [ruleMatches], due, true);
        if (overtaken()) return false;
        invocation.describe({ rowCount: all.length });
        if (all.length === 0) return true;
        const run: RunRecord = {
          id: ids.next(),
          job: null,
          group,
          state: 'done',
          attempt: 1,
          due: String(due),
          basis: String(due),
          alerts: all.length,
          reason: null,
          missed: 0,
          result: null,
        };
        await invocation.submit({
          kind: 'record-run',
          run,
          alerts: putAlerts(type, all, counted, run.id),
          from: judgedUpTo(group),
        });
        return true;
      });
      this.#failures.delete(id);
      return isJudged;
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      this.#failures.set(id, { rule: id, code: error.code, detail: error.message });
      return true;
    }
  }
}

const intervalOf = ({ definition }: RuleRecord): bigint => BigInt((definition as DetectionDefinition).interval_secs) * nsPerSec;

/** The last instant at which the rule was due; its registration where it has not been. */
function lastDue(rule: RuleRecord, now: bigint): bigint {
  const { time } = rule;
  return now <= time ? time : now - ((now - time) % intervalOf(rule));
}

function isAtIntervals({ definition }: RuleRecord): boolean {
  const isJudged = definition.kind === 'detection' && definition.enabled && definition.language === 'sql';
  return isJudged && standingCondition(definition)?.judged === 'at intervals';
}

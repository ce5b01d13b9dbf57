/**
 * Judges rules that no single row decides (joins, aggregates, windows, `now()`) at intervals, counted from the registration of their
 * version: as a question about the instant when it is due, by the grants that the author has then. A round leaves an entry where it
 * raises alerts; one that was missed is made up for by the next.
 */
import { createHash } from 'node:crypto';
import { ServiceError } from '../../../errors.ts';
import { canonicalJson } from '../../../log/values/canonical-json.ts';
import { tenantOf } from '../../../log/values/value.ts';
import type { RunRecord } from '../../../projections/jobs/job.ts';
import type { DetectionDefinition, RuleRecord } from '../../../projections/rules/rule.ts';
import { putAlerts } from './alerts.ts';
import { readCondition } from './condition.ts';
import type { RuleFailure, RuleJudgeDependencies } from './judge.ts';
import { matchesAt, raise } from './query-rules.ts';

/** The loop looks at the clock this often at least: it may be set. */
const tickMsMax = 30_000;
const nsPerSec = 1_000_000_000n;

export class IntervalRules {
  readonly #parts: RuleJudgeDependencies;
  /** By id and version: the next due instant. */
  readonly #due = new Map<string, bigint>();
  readonly #failures = new Map<string, RuleFailure>();
  #epoch: number | null = null;
  #rules: readonly RuleRecord[] = [];
  #wake: (() => void) | null = null;

  constructor(parts: RuleJudgeDependencies) {
    this.#parts = parts;
  }

  /** Why a rule was not judged the last time; null: it was. */
  failureOf(rule: string): RuleFailure | null {
    return this.#failures.get(rule) ?? null;
  }

  /** Rules may have changed. */
  look(): void {
    if (this.#parts.rules.epoch !== this.#epoch) this.#wake?.();
  }

  /** Until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#parts;
    while (!signal.aborted) {
      const next = await this.round(signal);
      const ms = next === null ? tickMsMax : Number((next - clock.now()) / 1_000_000n) + 1;
      const woken = new AbortController();
      this.#wake = () => woken.abort();
      await clock.sleep(Math.max(0, Math.min(ms, tickMsMax)), AbortSignal.any([signal, woken.signal]));
      this.#wake = null;
    }
  }

  /** Judges what is due. Returns the next instant at which something is; null: nothing is. */
  async round(signal: AbortSignal | null = null): Promise<bigint | null> {
    const { clock, yieldTurn } = this.#parts;
    this.#learn();
    let next: bigint | null = null;
    for (const rule of this.#rules) {
      if (signal?.aborted) return null;
      const key = `${rule.id} ${rule.version}`;
      const interval = BigInt((rule.definition as DetectionDefinition).interval_secs) * nsPerSec;
      const now = clock.now();
      const due = this.#due.get(key) ?? lastDue(rule.time, interval, now);
      if (due <= now) {
        await yieldTurn();
        await this.#judge(rule, lastDue(rule.time, interval, now));
      }
      const later = due <= now ? lastDue(rule.time, interval, now) + interval : due;
      this.#due.set(key, later);
      if (next === null || later < next) next = later;
    }
    return next;
  }

  #learn(): void {
    const { rules, beginning } = this.#parts;
    if (rules.epoch === this.#epoch) return;
    this.#epoch = rules.epoch;
    this.#rules = [...rules.judged()].flatMap(({ record, until }) => {
      const { definition, owner, time } = record;
      const isOf = until === null && definition.kind === 'detection' && definition.enabled && definition.language === 'sql';
      return isOf && time >= beginning(tenantOf(owner)) && isAtIntervals(definition) ? [record] : [];
    });
    const standing = new Set(this.#rules.map(({ id, version }) => `${id} ${version}`));
    for (const key of this.#due.keys()) if (!standing.has(key)) this.#due.delete(key);
  }

  async #judge(rule: RuleRecord, due: bigint): Promise<void> {
    const { gate, ids, planner, absentCaller, judgedUpTo } = this.#parts;
    const { id, version, author, owner: path, branch } = rule;
    const { purpose } = rule.definition as DetectionDefinition;
    const group = createHash('sha256')
      .update(canonicalJson(['interval/1', id, version]))
      .digest('hex');
    try {
      const caller = absentCaller({ ...author, path, branch });
      const request = { action: 'query', purpose, correlationId: ids.next(), continues: true } as const;
      await gate.invoke(caller, request, async (invocation) => {
        invocation.describe({ template: 'rule ?', literals: [id], costUnits: 0 });
        const snapshot = invocation.snapshot();
        const question = { planner, caller, snapshot };
        const matches = await matchesAt(question, rule, due);
        const { type, all, counted } = await raise(question, [{ rule, matches }], due, true);
        invocation.describe({ rowCount: all.length });
        if (all.length === 0) return;
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
      });
      this.#failures.delete(id);
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      this.#failures.set(id, { rule: id, code: error.code, detail: error.message });
    }
  }
}

/** The last instant at which the rule was due; its registration where it has not been. */
function lastDue(since: bigint, interval: bigint, now: bigint): bigint {
  return now <= since ? since : since + ((now - since) / interval) * interval;
}

function isAtIntervals(definition: DetectionDefinition): boolean {
  try {
    return readCondition(definition).judged === 'at intervals';
  } catch (error) {
    if (error instanceof ServiceError) return false;
    throw error;
  }
}

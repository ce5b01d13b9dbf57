/** Judges the past by a rule as it stands: what it would have raised, and nothing is written. */
import { ServiceError } from '../../../errors.ts';
import type { Caller } from '../../../governance/caller.ts';
import type { GovernedSnapshot } from '../../../governance/gate-contract.ts';
import type { DetectionDefinition, RuleRecord, RuleVersion } from '../../../projections/rules/rule.ts';
import type { PlannerContract } from '../../planner-contract.ts';
import { snapshotInvocation } from '../watch/snapshot-invocation.ts';
import { type Alert, alertsOf, type Match } from './alerts.ts';
import { readCondition } from './rule-condition.ts';
import { matchesAt, matchesOf } from './query-rules.ts';
import { type SigmaMatcherRequest, sigmaMatcher } from './sigma-change-matcher.ts';

export interface PastAlerts {
  readonly matches: number;
  readonly alerts: readonly Alert[];
}

/** Rounds of a rule that is judged at intervals. */
const backtestRoundsMax = 1_000;

/** Versions that came after `from`, up to and with `to`, or rounds that would have been due then: nanoseconds. */
export async function testPast(
  {
    planner,
    caller,
    snapshot,
    signal,
    sigma,
  }: {
    readonly planner: PlannerContract;
    readonly caller: Caller;
    readonly snapshot: GovernedSnapshot;
    readonly signal?: AbortSignal | undefined;
    /** For rules in Sigma. */
    readonly sigma: Pick<SigmaMatcherRequest, 'placeholders' | 'turn'>;
  },
  rule: RuleRecord,
  { from, to }: { readonly from: bigint; readonly to: bigint },
): Promise<PastAlerts> {
  if (from > to) throw new ServiceError('REL_INVALID', 'from lies behind to');
  const detection = rule.definition as DetectionDefinition;
  const alertsById = new Map<string, Alert>();
  let pastMatchCount = 0;
  const addPastMatches = (pastMatches: readonly Match[], instant: bigint): void => {
    pastMatchCount += pastMatches.length;
    for (const [id, alert] of alertsOf(rule, pastMatches, instant)) {
      const earlierAlert = alertsById.get(id);
      const alertCount = detection.dedupe_by.length > 0 ? alert.count + (earlierAlert?.count ?? 0) : alert.count;
      alertsById.set(id, earlierAlert === undefined ? alert : { ...earlierAlert, count: alertCount });
    }
  };
  if (detection.language === 'sigma') {
    for (const match of await sigmaMatches({ planner, caller, snapshot, sigma }, rule, { from, to }))
      addPastMatches([match], match.systemFrom!);
    return { matches: pastMatchCount, alerts: [...alertsById.values()] };
  }
  const condition = readCondition(detection);
  if (condition.judged === 'by row') {
    const request = { sql: condition.sql, queriesOnly: true, signal } as const;
    const rowMatches = matchesOf(await planner.query(snapshotInvocation(caller, snapshot), request), detection);
    addPastMatches(
      rowMatches.filter(({ systemFrom }) => from < systemFrom! && systemFrom! <= to),
      to,
    );
  } else {
    const judgingInterval = BigInt(detection.interval_secs) * 1_000_000_000n;
    if ((to - from) / judgingInterval >= backtestRoundsMax)
      throw new ServiceError('REL_INVALID', `between from and to the rule is judged more than ${backtestRoundsMax} times`);
    for (let instant = from + judgingInterval; instant <= to; instant += judgingInterval)
      addPastMatches((await matchesAt({ planner, caller, snapshot, signal }, rule, instant)).matches, instant);
  }
  return { matches: pastMatchCount, alerts: [...alertsById.values()] };
}

/** With the rules beside it, on which it may rest as a correlation: all of them as they stand, whenever they were made. */
async function sigmaMatches(
  { planner, caller, snapshot, sigma }: Pick<Parameters<typeof testPast>[0], 'planner' | 'caller' | 'snapshot' | 'sigma'>,
  rule: RuleRecord,
  { from, to }: { readonly from: bigint; readonly to: bigint },
): Promise<readonly Match[]> {
  const type = rule.definition.object_type!;
  const isSiblingRule = ({ definition, owner }: RuleRecord): boolean =>
    definition.kind === 'detection' && definition.language === 'sigma' && definition.object_type === type && owner === rule.owner;
  const siblingVersions = snapshot
    .rules()
    .filter((each) => isSiblingRule(each))
    .map((record): RuleVersion => ({ record: { ...record, time: -1n }, until: null }));
  const onError = ({ record }: RuleVersion, error: unknown): void => {
    if (record.id === rule.id) throw error;
  };
  const pastSigmaMatcher = await sigmaMatcher({ planner, onError, ...sigma }, caller, snapshot, type, siblingVersions);
  const pastSigmaMatches = await pastSigmaMatcher.past(snapshot, from, to);
  return pastSigmaMatches.filter(({ rule: { record } }) => record.id === rule.id).flatMap(({ matches }) => matches);
}

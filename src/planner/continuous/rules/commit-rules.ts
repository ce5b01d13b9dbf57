/**
 * Judges rules on every commit. Rules of one author, purpose, branch and type are a group: they read each change set once, in an
 * invocation of a caller with the grants that the author has now.
 *
 *   commit -> notice -> what changed since the group's cursor -> matches -> alerts + cursor, one append
 *
 * Invariants:
 * - A row is judged by the versions of rules that were in force when it came, however late that is.
 * - Alerts and the cursor behind them are one append: a round that was cut off is judged again, and raises each alert once.
 * - Nothing is done, and so nothing recorded, when rows change that the author may not see.
 * - Commits don't wait: rounds run outside the turn that commits, and take no more than a share of the time.
 */
import { createHash } from 'node:crypto';
import type { Clock, Ids } from '../../../clock.ts';
import { ServiceError } from '../../../errors.ts';
import type { AbsentOwner } from '../../../governance/authentication/authenticator.ts';
import type { Caller } from '../../../governance/caller.ts';
import { sees } from '../../../governance/caller.ts';
import type { GateContract, GovernedSnapshot, Invocation } from '../../../governance/gate-contract.ts';
import { WorkSlices } from '../../../governance/jobs/work-slices.ts';
import { canonicalJson } from '../../../log/values/canonical-json.ts';
import { tenantOf } from '../../../log/values/value.ts';
import { splitTypeName } from '../../../projections/access-paths.ts';
import type { RunRecord } from '../../../projections/jobs/job.ts';
import type { DetectionDefinition, RuleRecord, RuleVersion } from '../../../projections/rules/rule.ts';
import type { PlannerContract } from '../../planner-contract.ts';
import { changesAfter } from '../watch/change-set.ts';
import type { LookupTables } from '../views/lookup-tables.ts';
import { putAlerts } from './alerts.ts';
import { standingCondition } from './rule-condition.ts';
import { joinMatchers, type RowMatcher, sqlMatcher } from './rule-matcher.ts';
import { raise } from './query-rules.ts';
import { sigmaMatcher } from './sigma-change-matcher.ts';

export interface RuleJudgeDependencies {
  readonly gate: GateContract;
  readonly planner: PlannerContract;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly rules: {
    /** Rises with every change of any rule. */
    readonly epoch: number;
    listJudged(): Iterable<RuleVersion>;
  };
  /** Nanoseconds: the cursor of a group, as it is on record. */
  readonly judgedUpTo: (group: string) => bigint | undefined;
  /** Nanosecond from which a tenant is the one that it is: rules of an earlier one of its id are not its. */
  readonly beginning: (tenant: string | null) => bigint;
  /** Throws REL_ACL where the owner has lost its rights. */
  readonly absentCaller: (owner: AbsentOwner) => Caller;
  readonly lookups: Pick<LookupTables, 'keys'>;
  readonly yieldTurn: () => Promise<void>;
}

interface RuleGroupKey {
  readonly key: string;
  readonly type: string;
  readonly owner: AbsentOwner;
  readonly purpose: string | null;
}

interface RuleGroup extends RuleGroupKey {
  versions: readonly RuleVersion[];
  cursor: bigint;
  isDue: boolean;
  shows: (path: string | null) => boolean;
  stop: () => void;
  /** Made under one grant, ontology and set of rules. */
  matcher: { readonly under: string; readonly standing: readonly RuleVersion[]; readonly judgesRows: RowMatcher } | null;
}

/** A caller's rules that could not be judged, and why. */
export interface RuleFailure {
  readonly rule: string;
  readonly code: string;
  readonly detail: string;
}

/** Least gap between rounds; it grows by a multiple of the time of the last ones. */
const judgingGapMs = 10;
const idleShare = 4;
/** Groups that could not be judged are tried again so much later. */
const judgingRetryMs = 5_000;

export class RuleJudge {
  readonly #dependencies: RuleJudgeDependencies;
  readonly #ruleGroups = new Map<string, RuleGroup>();
  readonly #ruleFailures = new Map<string, RuleFailure>();
  /** The group of a version: all of them are grouped again when any changes. */
  readonly #groupByRule = new WeakMap<RuleRecord, RuleGroupKey | null>();
  readonly #judgingSlices: WorkSlices;
  readonly #judgeClosing = new AbortController();
  #rulesEpoch: number | null = null;
  #judgingWork: Promise<void> | null = null;

  constructor(dependencies: RuleJudgeDependencies) {
    this.#dependencies = dependencies;
    this.#judgingSlices = new WorkSlices(dependencies);
  }

  /** Called when anything became visible: rules may have changed. */
  look(): void {
    if (this.#judgeClosing.signal.aborted) return;
    const { epoch } = this.#dependencies.rules;
    if (epoch === this.#rulesEpoch) return;
    this.#rulesEpoch = epoch;
    this.#regroupRules();
    this.#wakeJudge();
  }

  /** Resolves when all that is visible now was judged. */
  async settle(): Promise<void> {
    this.look();
    for (const group of this.#ruleGroups.values()) group.isDue = true;
    this.#wakeJudge();
    while (this.#judgingWork !== null) await this.#judgingWork;
  }

  /** Why a rule was not judged the last time; null: it was, or there was nothing to judge. */
  failureOf(rule: string): RuleFailure | null {
    return this.#ruleFailures.get(rule) ?? null;
  }

  close(): void {
    this.#judgeClosing.abort();
    for (const { stop } of this.#ruleGroups.values()) stop();
    this.#ruleGroups.clear();
  }

  #regroupRules(): void {
    const byGroup = new Map<string, RuleVersion[]>();
    const groupKeys = new Map<string, RuleGroupKey>();
    for (const version of this.#dependencies.rules.listJudged()) {
      const { record: ruleRecord } = version;
      let ruleGroup = this.#groupByRule.get(ruleRecord);
      if (ruleGroup === undefined) this.#groupByRule.set(ruleRecord, (ruleGroup = ruleGroupOf(ruleRecord)));
      if (ruleGroup === null || ruleRecord.time < this.#dependencies.beginning(tenantOf(ruleRecord.owner))) continue;
      const ruleVersions = byGroup.get(ruleGroup.key);
      if (ruleVersions === undefined) byGroup.set(ruleGroup.key, [version]);
      else ruleVersions.push(version);
      groupKeys.set(ruleGroup.key, ruleGroup);
    }
    for (const [key, group] of this.#ruleGroups) {
      if (byGroup.has(key)) continue;
      group.stop();
      this.#ruleGroups.delete(key);
    }
    for (const [key, versions] of byGroup) {
      const knownGroup = this.#ruleGroups.get(key);
      if (knownGroup !== undefined) knownGroup.versions = versions;
      else this.#beginRuleGroup(groupKeys.get(key)!, versions);
    }
  }

  #beginRuleGroup(ruleGroupKey: RuleGroupKey, versions: readonly RuleVersion[]): void {
    const { key, owner, type: qualifiedType } = ruleGroupKey;
    const earliestRuleTime = versions.reduce(
      (earliestTime, { record }) => (record.time < earliestTime ? record.time : earliestTime),
      versions[0]!.record.time,
    );
    const ruleGroup: RuleGroup = {
      ...ruleGroupKey,
      versions,
      cursor: this.#dependencies.judgedUpTo(key) ?? earliestRuleTime,
      isDue: true,
      shows: (path) => sees(owner.path, path),
      stop: () => undefined,
      matcher: null,
    };
    const type = splitTypeName(qualifiedType)?.type ?? qualifiedType;
    const { branch, path } = owner;
    const visibleRowsScope = { branch, tenant: tenantOf(path), type, shows: (of: string | null) => ruleGroup.shows(of) };
    ruleGroup.stop = this.#dependencies.gate.onVisible(visibleRowsScope, () => {
      ruleGroup.isDue = true;
      this.#wakeJudge();
    });
    this.#ruleGroups.set(key, ruleGroup);
  }

  #wakeJudge(): void {
    this.#judgingWork ??= this.#judgeDueGroups().finally(() => (this.#judgingWork = null));
  }

  async #judgeDueGroups(): Promise<void> {
    const { clock, yieldTurn } = this.#dependencies;
    const { signal } = this.#judgeClosing;
    for (;;) {
      await yieldTurn();
      const dueRuleGroups = [...this.#ruleGroups.values()].filter(({ isDue }) => isDue);
      if (dueRuleGroups.length === 0 || signal.aborted) return;
      const judgingStartedMs = clock.monotonicMs();
      for (const group of dueRuleGroups) {
        if (signal.aborted) return;
        group.isDue = false;
        await this.#judge(group);
      }
      await clock.sleep(Math.max(judgingGapMs, (clock.monotonicMs() - judgingStartedMs) * idleShare), signal);
    }
  }

  async #judge(group: RuleGroup): Promise<void> {
    const { ids, gate, clock } = this.#dependencies;
    const { type, purpose } = group;
    try {
      const ruleOwner = this.#dependencies.absentCaller(group.owner);
      const judgeRequest = { action: 'watch', purpose, correlationId: ids.next(), continues: true } as const;
      await gate.invoke(ruleOwner, judgeRequest, (invocation) => {
        invocation.describe({ template: 'rules of ?', literals: [type], objectType: type, costUnits: 0 });
        return this.#judgeRound(group, ruleOwner, invocation);
      });
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      if (error.code === 'REL_UNAVAILABLE') return;
      for (const { record } of group.versions) this.#recordRuleFailure(record.id, error);
      // Rights may come back, types may come: what changed meanwhile is judged then.
      void clock.sleep(judgingRetryMs, this.#judgeClosing.signal).then(() => {
        if (this.#judgeClosing.signal.aborted) return;
        group.isDue = true;
        this.#wakeJudge();
      });
    }
  }

  async #judgeRound(group: RuleGroup, caller: Caller, invocation: Invocation): Promise<void> {
    const snapshot = invocation.snapshot();
    // In the turn of the snapshot: no rule that it knows of is missing, and none judges rows before it.
    this.look();
    const { type, versions: ruleVersions, cursor: judgedCursor } = group;
    if (snapshot.catalog.type(type) === undefined)
      throw new ServiceError('REL_UNKNOWN_TYPE', `type ${JSON.stringify(type)} is not registered`);
    group.shows = (path) => snapshot.mayShow(type, path);
    const rulesInForce = ruleVersions.filter(({ until }) => until === null || until > judgedCursor);
    const groupMatcher = await this.#matcherOf(group, caller, snapshot, rulesInForce);
    const groupChanges = await this.#judgingSlices.finish(
      changesAfter(snapshot, { type, from: judgedCursor, columns: groupMatcher.columns }),
    );
    if (!groupChanges.complete) group.isDue = true;
    const isOvertaken = snapshot.erasing([type]);
    const ruleMatches = await groupMatcher.judge(groupChanges, type, snapshot);
    const raisableMatches = ruleMatches.map(({ rule, matches }) => ({ rule: rule.record, matches, overtaken: isOvertaken }));
    const raisedAlerts = await raise(
      { planner: this.#dependencies.planner, caller, snapshot },
      raisableMatches,
      groupChanges.end,
      false,
    );
    // A subject of what was read may be gone by now: nothing is raised on it.
    if (isOvertaken()) {
      group.isDue = true;
      return;
    }
    invocation.describe({ rowCount: raisedAlerts.all.length });
    if (raisedAlerts.all.length > 0) {
      const run: RunRecord = {
        id: this.#dependencies.ids.next(),
        job: null,
        group: group.key,
        state: 'done',
        attempt: 1,
        due: String(judgedCursor),
        basis: String(groupChanges.end),
        alerts: raisedAlerts.all.length,
        reason: null,
        missed: 0,
        result: null,
      };
      const alertRows = putAlerts(raisedAlerts.type, raisedAlerts.all, raisedAlerts.counted, run.id);
      await invocation.submit({ kind: 'record-run', run, alerts: alertRows, from: this.#dependencies.judgedUpTo(group.key) });
    }
    group.cursor = groupChanges.end;
    for (const { record } of rulesInForce)
      if (this.#ruleFailures.get(record.id)?.code === 'REL_ACL') this.#ruleFailures.delete(record.id);
  }

  async #matcherOf(
    group: RuleGroup,
    caller: Caller,
    snapshot: GovernedSnapshot,
    standing: readonly RuleVersion[],
  ): Promise<RowMatcher> {
    const matcherBasis = `${snapshot.grantKey} ${snapshot.catalog.ontologyVersion}`;
    const knownMatcher = group.matcher;
    if (knownMatcher?.under !== matcherBasis || !areSameRules(knownMatcher.standing, standing)) {
      const onError = ({ record }: RuleVersion, error: unknown): void => this.#recordRuleFailure(record.id, error);
      const { planner, lookups } = this.#dependencies;
      const isSigma = ({ record: { definition } }: RuleVersion): boolean =>
        definition.kind === 'detection' && definition.language === 'sigma';
      const sigmaRules = standing.filter(isSigma);
      const sqlRules = standing.filter((version) => !isSigma(version));
      const matcherParts = {
        planner,
        placeholders: (name: string) => lookups.keys(caller.path, name),
        onError,
        turn: () => this.#judgingSlices.turn(),
      };
      const ruleMatchers = [await sqlMatcher(matcherParts, caller, snapshot, sqlRules)];
      if (sigmaRules.length > 0) ruleMatchers.push(await sigmaMatcher(matcherParts, caller, snapshot, group.type, sigmaRules));
      group.matcher = { under: matcherBasis, standing, judgesRows: joinMatchers(ruleMatchers) };
    }
    return group.matcher!.judgesRows;
  }

  #recordRuleFailure(rule: string, error: unknown): void {
    const ruleError = error instanceof ServiceError ? error : new ServiceError('REL_INTERNAL', 'internal error');
    this.#ruleFailures.set(rule, { rule, code: ruleError.code, detail: ruleError.message });
  }
}

function areSameRules(ruleVersions: readonly RuleVersion[], otherVersions: readonly RuleVersion[]): boolean {
  return (
    ruleVersions.length === otherVersions.length &&
    ruleVersions.every(({ record, until }, i) => record === otherVersions[i]!.record && until === otherVersions[i]!.until)
  );
}

/** Null: it is judged at intervals, not at all, or what it says has become unreadable. */
function ruleGroupOf({ definition, owner: path, branch, author }: RuleRecord): RuleGroupKey | null {
  if (definition.kind !== 'detection' || !definition.enabled) return null;
  const judgedRuleType = definition.language === 'sql' ? judgedType(definition) : definition.object_type;
  if (judgedRuleType === null) return null;
  const ruleOwner: AbsentOwner = { ...author, path, branch };
  const { purpose } = definition;
  const ruleGroupKey = createHash('sha256')
    .update(canonicalJson([judgedRuleType, purpose, ruleOwner.principal, ruleOwner.credential, ruleOwner.token, path, branch]))
    .digest('hex');
  return { key: ruleGroupKey, type: judgedRuleType, owner: ruleOwner, purpose };
}

/** The type whose commits a rule in SQL is judged on. */
function judgedType(definition: DetectionDefinition): string | null {
  const rowCondition = standingCondition(definition);
  return rowCondition?.judged === 'by row' ? rowCondition.type : null;
}

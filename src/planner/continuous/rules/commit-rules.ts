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

interface GroupKey {
  readonly key: string;
  readonly type: string;
  readonly owner: AbsentOwner;
  readonly purpose: string | null;
}

interface Group extends GroupKey {
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
const roundGapMs = 10;
const idleShare = 4;
/** Groups that could not be judged are tried again so much later. */
const retryMs = 5_000;

export class RuleJudge {
  readonly #dependencies: RuleJudgeDependencies;
  readonly #groups = new Map<string, Group>();
  readonly #failures = new Map<string, RuleFailure>();
  /** The group of a version: all of them are grouped again when any changes. */
  readonly #grouped = new WeakMap<RuleRecord, GroupKey | null>();
  readonly #slices: WorkSlices;
  readonly #closing = new AbortController();
  #epoch: number | null = null;
  #working: Promise<void> | null = null;

  constructor(dependencies: RuleJudgeDependencies) {
    this.#dependencies = dependencies;
    this.#slices = new WorkSlices(dependencies);
  }

  /** Called when anything became visible: rules may have changed. */
  look(): void {
    if (this.#closing.signal.aborted) return;
    const { epoch } = this.#dependencies.rules;
    if (epoch === this.#epoch) return;
    this.#epoch = epoch;
    this.#regroup();
    this.#wake();
  }

  /** Resolves when all that is visible now was judged. */
  async settle(): Promise<void> {
    this.look();
    for (const group of this.#groups.values()) group.isDue = true;
    this.#wake();
    while (this.#working !== null) await this.#working;
  }

  /** Why a rule was not judged the last time; null: it was, or there was nothing to judge. */
  failureOf(rule: string): RuleFailure | null {
    return this.#failures.get(rule) ?? null;
  }

  close(): void {
    this.#closing.abort();
    for (const { stop } of this.#groups.values()) stop();
    this.#groups.clear();
  }

  #regroup(): void {
    const byGroup = new Map<string, RuleVersion[]>();
    const about = new Map<string, GroupKey>();
    for (const version of this.#dependencies.rules.listJudged()) {
      const { record } = version;
      let group = this.#grouped.get(record);
      if (group === undefined) this.#grouped.set(record, (group = groupOf(record)));
      if (group === null || record.time < this.#dependencies.beginning(tenantOf(record.owner))) continue;
      const versions = byGroup.get(group.key);
      if (versions === undefined) byGroup.set(group.key, [version]);
      else versions.push(version);
      about.set(group.key, group);
    }
    for (const [key, group] of this.#groups) {
      if (byGroup.has(key)) continue;
      group.stop();
      this.#groups.delete(key);
    }
    for (const [key, versions] of byGroup) {
      const known = this.#groups.get(key);
      if (known !== undefined) known.versions = versions;
      else this.#begin(about.get(key)!, versions);
    }
  }

  #begin(about: GroupKey, versions: readonly RuleVersion[]): void {
    const { key, owner, type: named } = about;
    const first = versions.reduce((least, { record }) => (record.time < least ? record.time : least), versions[0]!.record.time);
    const group: Group = {
      ...about,
      versions,
      cursor: this.#dependencies.judgedUpTo(key) ?? first,
      isDue: true,
      shows: (path) => sees(owner.path, path),
      stop: () => undefined,
      matcher: null,
    };
    const type = splitTypeName(named)?.type ?? named;
    const { branch, path } = owner;
    const scope = { branch, tenant: tenantOf(path), type, shows: (of: string | null) => group.shows(of) };
    group.stop = this.#dependencies.gate.onVisible(scope, () => {
      group.isDue = true;
      this.#wake();
    });
    this.#groups.set(key, group);
  }

  #wake(): void {
    this.#working ??= this.#work().finally(() => (this.#working = null));
  }

  async #work(): Promise<void> {
    const { clock, yieldTurn } = this.#dependencies;
    const { signal } = this.#closing;
    for (;;) {
      await yieldTurn();
      const due = [...this.#groups.values()].filter(({ isDue }) => isDue);
      if (due.length === 0 || signal.aborted) return;
      const startedMs = clock.monotonicMs();
      for (const group of due) {
        if (signal.aborted) return;
        group.isDue = false;
        await this.#judge(group);
      }
      await clock.sleep(Math.max(roundGapMs, (clock.monotonicMs() - startedMs) * idleShare), signal);
    }
  }

  async #judge(group: Group): Promise<void> {
    const { ids, gate, clock } = this.#dependencies;
    const { type, purpose } = group;
    try {
      const caller = this.#dependencies.absentCaller(group.owner);
      const request = { action: 'watch', purpose, correlationId: ids.next(), continues: true } as const;
      await gate.invoke(caller, request, (invocation) => {
        invocation.describe({ template: 'rules of ?', literals: [type], objectType: type, costUnits: 0 });
        return this.#round(group, caller, invocation);
      });
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      if (error.code === 'REL_UNAVAILABLE') return;
      for (const { record } of group.versions) this.#fail(record.id, error);
      // Rights may come back, types may come: what changed meanwhile is judged then.
      void clock.sleep(retryMs, this.#closing.signal).then(() => {
        if (this.#closing.signal.aborted) return;
        group.isDue = true;
        this.#wake();
      });
    }
  }

  async #round(group: Group, caller: Caller, invocation: Invocation): Promise<void> {
    const snapshot = invocation.snapshot();
    // In the turn of the snapshot: no rule that it knows of is missing, and none judges rows before it.
    this.look();
    const { type, versions, cursor } = group;
    if (snapshot.catalog.type(type) === undefined)
      throw new ServiceError('REL_UNKNOWN_TYPE', `type ${JSON.stringify(type)} is not registered`);
    group.shows = (path) => snapshot.mayShow(type, path);
    const standing = versions.filter(({ until }) => until === null || until > cursor);
    const matcher = await this.#matcherOf(group, caller, snapshot, standing);
    const changes = await this.#slices.finish(changesAfter(snapshot, { type, from: cursor, columns: matcher.columns }));
    if (!changes.complete) group.isDue = true;
    const overtaken = snapshot.erasing([type]);
    const ruleMatches = await matcher.judge(changes, type, snapshot);
    const matched = ruleMatches.map(({ rule, matches }) => ({ rule: rule.record, matches, overtaken }));
    const alerts = await raise({ planner: this.#dependencies.planner, caller, snapshot }, matched, changes.end, false);
    // A subject of what was read may be gone by now: nothing is raised on it.
    if (overtaken()) {
      group.isDue = true;
      return;
    }
    invocation.describe({ rowCount: alerts.all.length });
    if (alerts.all.length > 0) {
      const run: RunRecord = {
        id: this.#dependencies.ids.next(),
        job: null,
        group: group.key,
        state: 'done',
        attempt: 1,
        due: String(cursor),
        basis: String(changes.end),
        alerts: alerts.all.length,
        reason: null,
        missed: 0,
        result: null,
      };
      const put = putAlerts(alerts.type, alerts.all, alerts.counted, run.id);
      await invocation.submit({ kind: 'record-run', run, alerts: put, from: this.#dependencies.judgedUpTo(group.key) });
    }
    group.cursor = changes.end;
    for (const { record } of standing) if (this.#failures.get(record.id)?.code === 'REL_ACL') this.#failures.delete(record.id);
  }

  async #matcherOf(
    group: Group,
    caller: Caller,
    snapshot: GovernedSnapshot,
    standing: readonly RuleVersion[],
  ): Promise<RowMatcher> {
    const under = `${snapshot.grantKey} ${snapshot.catalog.ontologyVersion}`;
    const known = group.matcher;
    if (known?.under !== under || !areSame(known.standing, standing)) {
      const onError = ({ record }: RuleVersion, error: unknown): void => this.#fail(record.id, error);
      const { planner, lookups } = this.#dependencies;
      const isSigma = ({ record: { definition } }: RuleVersion): boolean =>
        definition.kind === 'detection' && definition.language === 'sigma';
      const sigma = standing.filter(isSigma);
      const sql = standing.filter((version) => !isSigma(version));
      const parts = {
        planner,
        placeholders: (name: string) => lookups.keys(caller.path, name),
        onError,
        turn: () => this.#slices.turn(),
      };
      const matchers = [await sqlMatcher(parts, caller, snapshot, sql)];
      if (sigma.length > 0) matchers.push(await sigmaMatcher(parts, caller, snapshot, group.type, sigma));
      group.matcher = { under, standing, judgesRows: joinMatchers(matchers) };
    }
    return group.matcher!.judgesRows;
  }

  #fail(rule: string, error: unknown): void {
    const known = error instanceof ServiceError ? error : new ServiceError('REL_INTERNAL', 'internal error');
    this.#failures.set(rule, { rule, code: known.code, detail: known.message });
  }
}

function areSame(some: readonly RuleVersion[], others: readonly RuleVersion[]): boolean {
  return (
    some.length === others.length &&
    some.every(({ record, until }, i) => record === others[i]!.record && until === others[i]!.until)
  );
}

/** Null: it is judged at intervals, not at all, or what it says has become unreadable. */
function groupOf({ definition, owner: path, branch, author }: RuleRecord): GroupKey | null {
  if (definition.kind !== 'detection' || !definition.enabled) return null;
  const type = definition.language === 'sql' ? typeJudged(definition) : definition.object_type;
  if (type === null) return null;
  const owner: AbsentOwner = { ...author, path, branch };
  const { purpose } = definition;
  const key = createHash('sha256')
    .update(canonicalJson([type, purpose, owner.principal, owner.credential, owner.token, path, branch]))
    .digest('hex');
  return { key, type, owner, purpose };
}

/** The type whose commits a rule in SQL is judged on. */
function typeJudged(definition: DetectionDefinition): string | null {
  const condition = standingCondition(definition);
  return condition?.judged === 'by row' ? condition.type : null;
}

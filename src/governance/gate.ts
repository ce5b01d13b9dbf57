/**
 * The only way in. Every question and every write passes the same steps in the same order:
 *
 *   snapshot   running? -> branch -> purpose -> quota ------------> policy ---------> pin the basis -> govern
 *   submit     running? -> branch -> purpose -> quota, storage cap -> policy, egress -> decide -> append -> apply
 *              '------------------------------ one turn, no await ------------------------------------------'
 *              -> wait for the acknowledgement
 *   audit      running? -> branch -> purpose -> quota ------------> policy ---------> reader of the caller's scope
 *
 *   invoke     run the above -> settle what is still being written -> append one access record -> answer
 *
 * What must hold: whatever way an invocation ends, exactly one access record of it is appended before its promise
 * settles; when that fails, the answer is withheld.
 */
import type { Clock } from '../clock.ts';
import type { Settings } from '../config.ts';
import { assert, ServiceError } from '../errors.ts';
import type { AccessRecord, CommittedEntry, EntryContext, EntryDraft, TokenRecord } from '../log/entry.ts';
import type { Appended, Basis, Durability, LogStore, NextPlace } from '../log/log-store.ts';
import type { Timeline } from '../log/timeline.ts';
import type { AccessPaths, AuditReader } from '../projections/access-paths.ts';
import type { AuditProjection } from '../projections/audit/projection.ts';
import { LogAuditReader } from '../projections/audit/reader.ts';
import type { Command, Outcome } from '../projections/command.ts';
import type { Decision } from '../projections/decision.ts';
import { unknownBranch } from '../projections/branches/commands.ts';
import type { BranchRecord, Branches } from '../projections/branches/projection.ts';
import type { Directory } from '../projections/directory/projection.ts';
import type { Exhibits } from '../projections/exhibits/projection.ts';
import { accessRecord, type Ending } from './access-record.ts';
import { actionOf, touchesRows, typeNamed, typesMigrated, unitsAtStart } from './actions.ts';
import { Quota } from './admission/quota.ts';
import { AuditTrail, LiteralDigest } from './audit-trail.ts';
import { TokenRegistry } from './authentication/token-registry.ts';
import { authorise, decide, defaultRules, type PolicyRequest, type Rule } from './authorization/policy.ts';
import { checkPurpose, type PurposeRules } from './authorization/purpose.ts';
import type { Caller } from './caller.ts';
import { Committer } from './committer.ts';
import { GovernedExhibits } from './exhibit-desk.ts';
import type {
  Action,
  ExhibitDesk,
  GateContract,
  GovernedSnapshot,
  BranchView,
  Invocation,
  InvocationFacts,
  InvocationRequest,
  PinnedGrant,
  PolicyExplanation,
  ProofReader,
  TokenView,
  WriteScope,
} from './gate-contract.ts';
import { GovernedProofs } from './proofs.ts';
import { governSnapshot, ScopeCache, sees } from './governed-snapshot.ts';
import { StorageCap, type Licence } from './tenancy/licence.ts';
import { receiptedOutcome } from './receipted-outcome.ts';
import { tenantOf } from './tenancy/organization.ts';
import { VisibleWrites } from './visible-writes.ts';

/** What the gate holds of the projections. */
export interface GovernedState {
  /** All projections at one branch and basis, ungoverned. Throws REL_NOT_FOUND for an unknown branch. */
  snapshot(basis: Basis, branch: string): AccessPaths;
  /** The same as of an instant that some snapshot had, under the column types of then. */
  snapshotOf(instant: bigint, branch: string): AccessPaths;
  /** Pure: nothing changes until the drafts are appended and applied. Throws what refuses the command. */
  decide(command: Command, context: EntryContext, next: NextPlace): Decision;
  /** Feeds every projection, the audit projection included. */
  apply(entry: CommittedEntry): void;
  readonly directory: Pick<Directory, 'token' | 'tokens' | 'size'>;
  readonly branches: Pick<Branches, 'branch' | 'idOf' | 'list'>;
  readonly timeline: Pick<Timeline, 'positionAt'>;
  readonly exhibits: Pick<Exhibits, 'exhibit' | 'removals'>;
}

export type GateSettings = Pick<
  Settings,
  | 'SERVICE_PURPOSE_MODE'
  | 'SERVICE_PURPOSES'
  | 'SERVICE_QUERY_QUOTA'
  | 'SERVICE_QUERY_QUOTA_PERIOD_SECS'
  | 'SERVICE_MAX_INFLIGHT_QUERIES'
  | 'SERVICE_DURABILITY'
  | 'SERVICE_WAL_SYNC'
>;

export interface GateParts {
  readonly log: LogStore;
  readonly projections: GovernedState;
  readonly audit: AuditProjection;
  readonly clock: Clock;
  readonly settings: GateSettings;
  readonly licence: Licence;
  /** 32 bytes: keys the digests of statement literals. */
  readonly digestKey: Uint8Array;
  /** One line for the operator: the storage warning. */
  readonly warn: (line: string) => void;
  /** Runs a task once the work of this turn is done; `setImmediate` unless a simulation schedules. */
  readonly defer?: (task: () => void) => void;
}

export class Gate implements GateContract {
  readonly #trail: AuditTrail;
  readonly #core: Core;
  #draining = false;
  #active = 0;
  #idle: (() => void)[] = [];

  constructor(parts: GateParts) {
    const { log, projections, settings } = parts;
    const committer = new Committer(log, (entry) => projections.apply(entry));
    const defer = parts.defer ?? ((task) => void setImmediate(task));
    this.#trail = new AuditTrail((drafts) => committer.commit(drafts), defer);
    this.#core = {
      parts,
      committer,
      writes: new VisibleWrites(defer),
      scopes: new ScopeCache(),
      digest: new LiteralDigest(parts.digestKey),
      storage: new StorageCap(parts.licence, () => log.status().bytes, parts.warn),
      tokens: new TokenRegistry(projections.directory),
      rules: defaultRules,
      policyEpoch: 0,
      purposes: { mode: settings.SERVICE_PURPOSE_MODE, registered: settings.SERVICE_PURPOSES },
      quota: new Quota({
        unitsMax: settings.SERVICE_QUERY_QUOTA,
        periodMs: settings.SERVICE_QUERY_QUOTA_PERIOD_SECS * 1000,
        inFlightMax: settings.SERVICE_MAX_INFLIGHT_QUERIES,
      }),
      lastAcknowledged: Promise.resolve(settings.SERVICE_WAL_SYNC === 'off' ? 'buffered' : 'synced'),
    };
  }

  async invoke<T>(caller: Caller, request: InvocationRequest, run: (invocation: Invocation) => Promise<T>): Promise<T> {
    const invocation = new GatedInvocation(this.#core, caller, request);
    this.#active++;
    try {
      let ending: Ending<T>;
      try {
        if (this.#draining) throw new ServiceError('REL_UNAVAILABLE', 'the service is draining');
        ending = { answer: await run(invocation) };
      } catch (failure) {
        ending = { failure };
      }
      // Writes that it started and did not wait for are waited for: the record tells what they did.
      const writing = invocation.close();
      if (writing !== null) await writing;
      await this.#trail.record(invocation.record(ending));
      if ('failure' in ending) throw ending.failure;
      return ending.answer;
    } finally {
      this.#active--;
      if (this.#active === 0) for (const wake of this.#idle.splice(0)) wake();
    }
  }

  onVisible(scope: WriteScope, listener: () => void): () => void {
    return this.#core.writes.listen(scope, listener);
  }

  /** Refuses new invocations and resolves when the running ones have ended, records included. */
  async drain(): Promise<void> {
    this.#draining = true;
    if (this.#active > 0) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }
}

/** What all invocations of one gate share. */
interface Core {
  readonly parts: GateParts;
  readonly committer: Committer;
  readonly writes: VisibleWrites;
  readonly scopes: ScopeCache;
  readonly digest: LiteralDigest;
  readonly storage: StorageCap;
  readonly quota: Quota;
  readonly tokens: TokenRegistry;
  readonly purposes: PurposeRules;
  rules: readonly Rule[];
  /** Rises with every change of the rules: part of every grant key. */
  policyEpoch: number;
  /** Of the newest append: a command that changed nothing still rests on what was written before it. */
  lastAcknowledged: Promise<Durability>;
}

class GatedInvocation implements Invocation {
  readonly caller: Caller;
  readonly correlationId: string;
  readonly #core: Core;
  readonly #request: InvocationRequest;
  readonly #time: bigint;
  readonly #startedMs: number;
  /** Writes under way, and what is called when the last one has ended. */
  #writing = 0;
  #allWritten: () => void = ignore;
  readonly #facts: { -readonly [K in keyof InvocationFacts]: InvocationFacts[K] } = {};
  #basis = 0n;
  #rowsWritten = 0;
  #charged = 0;
  /** The purpose that passed admission; undefined before. */
  #admittedFor: string | null | undefined = undefined;
  /** Fork of the branch that was admitted: a name that is forked anew meanwhile is another branch. */
  #branch: number | undefined = undefined;
  #running = false;
  #closed = false;

  constructor(core: Core, caller: Caller, request: InvocationRequest) {
    this.caller = caller;
    this.correlationId = request.correlationId;
    this.#core = core;
    this.#request = request;
    this.#time = core.parts.clock.now();
    this.#startedMs = core.parts.clock.monotonicMs();
  }

  describe(facts: InvocationFacts): void {
    Object.assign(this.#facts, facts);
  }

  snapshot(): GovernedSnapshot {
    this.#admit();
    this.#authorise({ action: this.#action, objectType: null });
    const { parts, scopes, policyEpoch } = this.#core;
    const basis = parts.log.basis();
    this.#basis = basis.instant;
    const paths = parts.projections.snapshot(basis, this.caller.branch);
    return governSnapshot(paths, { caller: this.caller, purpose: this.#purpose, policyEpoch }, scopes);
  }

  submit(command: Command, options: { readonly sync?: boolean } = {}): Promise<Outcome> {
    const write = this.#submit(command, options);
    // Handled where it is awaited; here it only must not count as unhandled when the caller gave up on it.
    write.then(undefined, ignore);
    return write;
  }

  audit(): AuditReader {
    this.#admit();
    this.#authorise({ action: 'audit', objectType: null });
    const { log, audit } = this.#core.parts;
    const { credential, path } = this.caller;
    const everything = credential === 'admin';
    return new LogAuditReader(
      audit,
      (leaf) => log.read(leaf),
      (recordPath) => everything || sees(path, recordPath),
    );
  }

  proofs(): ProofReader {
    this.#admit();
    this.#authorise({ action: 'audit', objectType: null });
    const { log, projections } = this.#core.parts;
    const { credential, path } = this.caller;
    const everything = credential === 'admin';
    return new GovernedProofs({
      proofs: log.proofs,
      origin: log.status().origin,
      visible: (entryPath) => everything || sees(path, entryPath),
      readable: (context, type, systemFrom) => {
        const { rows } = projections.snapshot(log.basis(), context.branch);
        const code = rows.pathCodes().codeOf(context.path);
        return rows.provenanceOf(type, systemFrom, [code]) !== undefined;
      },
      positionAt: (systemFrom) => projections.timeline.positionAt(systemFrom),
      forkOf: (branch) => projections.branches.branch(branch)?.fork,
    });
  }

  exhibits(): ExhibitDesk {
    this.#admit();
    this.#authorise({ action: this.#action, objectType: null });
    const { log, projections } = this.#core.parts;
    return new GovernedExhibits({
      caller: this.caller,
      exhibits: projections.exhibits,
      log,
      mayReplay: () => decide(this.#core.rules, this.#policyRequest({ action: 'replay', objectType: null })).allowed,
      snapshotOf: (instant, branch) => projections.snapshotOf(instant, branch),
      govern: (paths, grant) => this.#pinned(paths, grant),
    });
  }

  branches(): readonly BranchView[] {
    this.#admit();
    this.#authorise({ action: this.#action, objectType: null });
    return this.#core.parts.projections.branches.list().map((branch) => {
      const { owner: _, ...view } = branch;
      const { allowed } = decide(this.#core.rules, this.#policyRequest({ action: 'fork', objectType: null, branch }));
      return { ...view, own: allowed };
    });
  }

  tokens(): readonly TokenView[] {
    this.#admit();
    const seen: TokenView[] = [];
    for (const token of this.#core.tokens.tokens()) {
      const action = 'administer';
      const { allowed } = decide(this.#core.rules, this.#policyRequest({ action, objectType: null, token }));
      if (!allowed) continue;
      const { secretHash: _, ...view } = token;
      seen.push(view);
    }
    return seen;
  }

  explainPolicy(objectType: string | null): PolicyExplanation {
    const decision = decide(this.#core.rules, this.#policyRequest({ action: 'query', objectType }));
    return {
      decision: decision.allowed ? 'allow' : 'deny',
      because: decision.because.map((rule) => `${rule.id}: ${rule.says}`),
      scope: this.caller.path === null ? 'rows without a tenant' : `rows of ${this.caller.path} and below`,
    };
  }

  /** Under the scope of then; never cached with plans of now. */
  #pinned(paths: AccessPaths, grant: PinnedGrant): GovernedSnapshot {
    const { scopes, policyEpoch } = this.#core;
    const { principal, path, branch, roles, attributes, purpose, instant } = grant;
    this.#basis = instant;
    const caller = { ...this.caller, principal, path, branch, roles, attributes };
    const snapshot = governSnapshot(paths, { caller, purpose, policyEpoch }, scopes);
    return { ...snapshot, grantKey: `${snapshot.grantKey}\u0000@${instant}`, pinned: true };
  }

  /** Ends the invocation for its holder: nothing can be read or written through it any more. Null when nothing is under way. */
  close(): Promise<void> | null {
    this.#closed = true;
    if (this.#writing > 0) return new Promise<void>((resolve) => (this.#allWritten = resolve)).then(() => this.#leave());
    this.#leave();
    return null;
  }

  #leave(): void {
    // The slot is for running queries; waiting for the record's bytes is the log's time, not the query's.
    if (this.#running) this.#core.quota.leave(this.#tenantKey);
    this.#running = false;
  }

  record(ending: Ending<unknown>): AccessRecord {
    const { parts, digest, quota } = this.#core;
    const { template, literals, objectType, rowCount, costUnits = 1 } = this.#facts;
    const nowMs = parts.clock.monotonicMs();
    if (this.#charged > 0) quota.settle(this.caller.principal, costUnits - this.#charged, nowMs);
    return accessRecord({
      caller: this.caller,
      action: this.#action,
      correlationId: this.correlationId,
      time: this.#time,
      purpose: this.#purpose,
      objectType: objectType ?? null,
      template: template ?? null,
      literalDigest: literals === undefined || literals.length === 0 ? null : digest.of(literals),
      basis: this.#basis,
      rowCount: rowCount ?? this.#rowsWritten,
      costUnits,
      durationMs: nowMs - this.#startedMs,
      ending,
    });
  }

  async #submit(command: Command, options: { readonly sync?: boolean }): Promise<Outcome> {
    this.#writing++;
    try {
      const { outcome, receiptLeaf, acknowledged } = this.#place(command, options);
      const durability = await acknowledged;
      this.#rowsWritten += outcome.accepted;
      if (receiptLeaf === undefined) return { ...outcome, durability };
      const { log } = this.#core.parts;
      return { ...outcome, ...(await receiptedOutcome(log, receiptLeaf)), durability, replayed: true };
    } finally {
      this.#writing--;
      if (this.#writing === 0) this.#allWritten();
    }
  }

  /** All that one turn does of a write. */
  #place(
    command: Command,
    options: { readonly sync?: boolean },
  ): {
    readonly outcome: Decision['outcome'];
    readonly receiptLeaf: number | undefined;
    readonly acknowledged: Promise<Durability>;
  } {
    this.#admit();
    if (command.kind === 'put-rows' || command.kind === 'link-exhibit') this.#core.storage.admitWrite();
    const objectType = typeNamed(command);
    if (objectType !== null) this.#facts.objectType = objectType;
    for (const type of typesMigrated(command)) this.#authorise({ action: 'schema', objectType: type });
    this.#authorise({ action: actionOf[command.kind], objectType, ...this.#tokenNamed(command), ...this.#branchEnded(command) });

    const { log, projections, settings } = this.#core.parts;
    if (command.kind === 'link-exhibit' && !command.open) this.exhibits().exhibit(command.exhibit);
    const next = log.next();
    const { drafts, outcome, receiptLeaf } = projections.decide(command, this.#context(), next);
    const acknowledged = drafts.length === 0 ? this.#core.lastAcknowledged : this.#append(drafts, next, options, settings);
    return { outcome, receiptLeaf, acknowledged };
  }

  #append(
    drafts: readonly EntryDraft[],
    at: NextPlace,
    options: { readonly sync?: boolean },
    settings: GateSettings,
  ): Promise<Durability> {
    const sync = options.sync === true || settings.SERVICE_DURABILITY === 'sync';
    const appended: Appended = this.#core.committer.commit(drafts, { at, sync });
    this.#core.writes.placed(drafts, appended);
    this.#core.lastAcknowledged = appended.acknowledged;
    return appended.acknowledged;
  }

  /** The steps before policy: running, branch, purpose, quota. A purpose stated later is checked when it is used. */
  #admit(): void {
    assert(!this.#closed, 'an invocation is not used after it has ended');
    this.#core.committer.checkRunning();
    const purpose = this.#purpose;
    this.#checkBranch();
    if (this.#admittedFor === purpose) return;
    const { caller } = this;
    checkPurpose(this.#core.purposes, purpose, caller.purposes, this.#purposeRequired);
    if (this.#request.continues !== true) this.#takeUnits(unitsAtStart[this.#action]);
    this.#admittedFor = purpose;
  }

  #checkBranch(): void {
    const { branch } = this.caller;
    const id = this.#core.parts.projections.branches.idOf(branch);
    if (id === undefined || id !== (this.#branch ?? id)) throw unknownBranch(branch);
    this.#branch = id;
  }

  #takeUnits(units: number): void {
    if (units === 0 || this.#charged > 0) return;
    const { quota, parts } = this.#core;
    if (!this.#running) quota.enter(this.#tenantKey);
    this.#running = true;
    quota.spend(this.caller.principal, units, parts.clock.monotonicMs());
    this.#charged = units;
  }

  #authorise(about: Pick<PolicyRequest, 'action' | 'objectType' | 'token' | 'branch'>): void {
    authorise(this.#core.rules, this.#policyRequest(about));
  }

  #policyRequest(about: Pick<PolicyRequest, 'action' | 'objectType' | 'token' | 'branch'>): PolicyRequest {
    return { caller: this.caller, purpose: this.#purpose, ...about };
  }

  #tokenNamed(command: Command): { token?: TokenRecord } {
    if (command.kind !== 'rotate-token' && command.kind !== 'revoke-token') return {};
    const token = this.#core.tokens.token(command.id);
    return token === undefined ? {} : { token };
  }

  #branchEnded(command: Command): { branch?: BranchRecord } {
    if (command.kind !== 'delete-branch') return {};
    const branch = this.#core.parts.projections.branches.branch(command.name);
    return branch === undefined ? {} : { branch };
  }

  get #action(): Action {
    return this.#facts.action ?? this.#request.action;
  }

  get #purpose(): string | null {
    return (this.#facts.purpose ?? this.#request.purpose) || null;
  }

  /** A credential limited to purposes says for which of them it touches rows; its own upkeep needs none. */
  get #purposeRequired(): boolean {
    const { purposeRequired } = this.#request;
    return purposeRequired === true || (this.caller.purposes.length > 0 && touchesRows.has(this.#action));
  }

  get #tenantKey(): string {
    return tenantOf(this.caller.path) ?? '';
  }

  #context(): EntryContext {
    const { caller } = this;
    return {
      branch: caller.branch,
      tenant: tenantOf(caller.path),
      path: caller.path,
      principal: caller.principal,
      door: caller.door,
      purpose: this.#purpose,
      correlationId: this.correlationId,
      policyDigest: '',
    };
  }
}

function ignore(): void {}

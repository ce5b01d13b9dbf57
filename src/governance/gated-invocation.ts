/**
 * One invocation, from admission to its access record. Every question and every write passes the same steps in the same order:
 *
 *   snapshot   running? -> branch -> standing -> purpose -> quota ------------> policy ---------> pin the basis -> govern
 *   submit     running? -> branch -> standing -> purpose -> quota, storage cap -> policy, egress, guards -> decide -> append -> apply
 *              '---------------------------------------- one turn, no await ----------------------------------------------'
 *              -> wait for the acknowledgement
 *   audit      running? -> branch -> standing -> purpose -> quota ------------> policy ---------> reader of the caller's scope
 *
 * What must hold: nothing is read or written before admission, nor after the invocation was closed.
 */
import { assert, ServiceError } from '../errors.ts';
import type { AccessRecord, EntryContext, EntryDraft, TokenRecord } from '../log/entry.ts';
import type { Appended, Durability, NextPlace } from '../log/log-store.ts';
import type { AccessPaths, AuditReader } from '../projections/access-paths.ts';
import { LogAuditReader } from '../projections/audit/reader.ts';
import { unknownBranch } from '../projections/branches/commands.ts';
import type { BranchRecord } from '../projections/branches/projection.ts';
import type { Command, Outcome } from '../projections/command.ts';
import type { Decision, RowCheck } from '../projections/decision.ts';
import type { Kept } from '../projections/retention/projection.ts';
import { accessRecord, type Ending } from './access-record.ts';
import { actionOf, readsOnly, touchesRows, typeNamed, typesMigrated, unitsAtStart } from './actions.ts';
import { backlogFull, bytesOfRows } from './admission/ingest-backlog.ts';
import { priorityOf } from './admission/query-places.ts';
import type { Account } from './admission/quota.ts';
import type { About, Judged } from './authorization/judge.ts';
import type { Decision as PolicyDecision, PolicyRequest } from './authorization/policy.ts';
import { GovernedPolicyDesk } from './authorization/policy-desk.ts';
import { checkPurpose } from './authorization/purpose.ts';
import { sees, type Caller } from './caller.ts';
import type { PolicyDesk, TenantDesk } from './desks.ts';
import { GovernedExhibits } from './exhibit-desk.ts';
import { explainPolicy } from './explain-policy.ts';
import type {
  Action,
  BranchView,
  ExhibitDesk,
  GovernedSnapshot,
  Invocation,
  InvocationFacts,
  InvocationRequest,
  PinnedGrant,
  PolicyExplanation,
  ProofReader,
  SubmitOptions,
  TokenView,
} from './gate-contract.ts';
import type { Core, GateSettings } from './gate-core.ts';
import { governSnapshot } from './governed-snapshot.ts';
import { keptNamed } from './kept-named.ts';
import { GovernedProofs } from './proofs.ts';
import { receiptedOutcome } from './receipted-outcome.ts';
import { auditFrom, type Beginning, beginningOf, onceFrom } from './tenancy/earlier-tenant.ts';
import { checkMinted } from './tenancy/multi-tenancy.ts';
import { tenantOf } from './tenancy/organization.ts';
import { registryPart } from './tenancy/registry.ts';
import { checkStanding } from './tenancy/standing.ts';
import { GovernedTenants } from './tenancy/tenant-desk.ts';
import { branchesNow } from './tenancy/usage.ts';
import { rowCheck, writeCheck, writesRows } from './write-checks.ts';

export class GatedInvocation implements Invocation {
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
  /** Holds a slot of its tenant, and a place of the store: a query that waits for a place has the first already. */
  #running = false;
  #placed = false;
  #payer: Account | null = null;
  #closed = false;
  /** Until something else is described. */
  #judgedAs: Judged | null = null;

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
    this.#judgedAs = null;
  }

  snapshot(): GovernedSnapshot {
    this.#admit();
    this.#authorise({ action: this.#action, objectType: null });
    const { parts } = this.#core;
    const basis = parts.log.basis();
    this.#basis = basis.instant;
    return this.#governed(parts.projections.snapshot(basis, this.caller.branch), this.#judged);
  }

  /**
   * Takes a place among the running queries; null where that takes no waiting, as nearly always. Who is not let in takes
   * none, and is told so by routes too that ask nothing else of the invocation.
   */
  enter(): Promise<void> | null {
    const { action, recordOnly } = this.#request;
    if (recordOnly === true) return null;
    this.#checkStanding();
    if (unitsAtStart[action] === 0) return null;
    if (!this.#core.places.take()) return this.#waitForPlace();
    this.#placed = true;
    return null;
  }

  async #waitForPlace(): Promise<void> {
    const { action, continues = false, gone } = this.#request;
    // What waits counts as running for its tenant: one tenant alone can't fill the lines.
    if (!continues) this.#takeSlot();
    await this.#core.places.wait(priorityOf(action, continues, this.caller), gone);
    this.#placed = true;
  }

  submit(command: Command, options: SubmitOptions = {}): Promise<Outcome> {
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
    const reader = new LogAuditReader(
      audit,
      (leaf) => log.read(leaf),
      (recordPath) => everything || sees(path, recordPath),
    );
    return auditFrom(this.#beginning, reader);
  }

  proofs(): ProofReader {
    this.#admit();
    this.#authorise({ action: 'audit', objectType: null });
    const { log, projections } = this.#core.parts;
    const { credential, path } = this.caller;
    const everything = credential === 'admin';
    const from = this.#beginning?.time ?? 0n;
    return new GovernedProofs({
      proofs: log.proofs,
      origin: log.status().origin,
      visible: (entryPath, time) => everything || (time >= from && sees(path, entryPath)),
      readable: (context, type, systemFrom) => {
        const paths = projections.snapshot(log.basis(), context.branch);
        const code = paths.rows.pathCodes().codeOf(context.path);
        if (paths.rows.provenanceOf(type, systemFrom, [code]) === undefined) return false;
        return everything || this.#mayProve(paths, type, systemFrom);
      },
      positionAt: (systemFrom) => projections.timeline.positionAt(systemFrom),
      forkOf: (branch) => projections.branches.branch(branch)?.fork,
    });
  }

  /** A proof shows every cell of its row: guards, policies and masks let all of it through, or none. */
  #mayProve(paths: AccessPaths, type: string, systemFrom: bigint): boolean {
    const judged: Judged = { ...this.#judged, action: 'query', caller: { ...this.caller, branch: paths.branch } };
    try {
      const governed = this.#governed(paths, judged);
      return governed.masked(type).size === 0 && governed.rows.provenanceOf(type, systemFrom) !== undefined;
    } catch (error) {
      if (error instanceof ServiceError) return false;
      throw error;
    }
  }

  exhibits(): ExhibitDesk {
    this.#admit();
    this.#authorise({ action: this.#action, objectType: null });
    const { log, projections } = this.#core.parts;
    return new GovernedExhibits({
      caller: this.caller,
      beginning: this.#beginning,
      exhibits: projections.exhibits,
      log,
      mayReplay: (objectType) => this.#decide({ action: 'replay', objectType }).allowed,
      snapshotOf: (instant, branch) => projections.snapshotOf(instant, branch),
      govern: (paths, grant) => this.#pinned(paths, grant),
      policyDigestAt: (position) => this.#core.judge.policies.at(position)?.digest ?? '',
      openRecipe: (stored) => this.#core.parts.recipes.open(stored),
    });
  }

  branches(): readonly BranchView[] {
    this.#admit();
    this.#authorise({ action: this.#action, objectType: null });
    return this.#core.parts.projections.branches.list().map((branch) => {
      const { owner: _, ...view } = branch;
      const { allowed } = this.#decide({ action: 'fork', objectType: null, branch });
      return { ...view, own: allowed };
    });
  }

  tokens(): readonly TokenView[] {
    this.#admit();
    const seen: TokenView[] = [];
    for (const token of this.#core.tokens.tokens()) {
      const { allowed } = this.#decide({ action: 'administer', objectType: null, token });
      if (!allowed) continue;
      const { secretHash: _, ...view } = token;
      seen.push(view);
    }
    return seen;
  }

  tenants(): TenantDesk {
    this.#admit();
    const { caller } = this;
    const { log, audit, projections, licence, settings } = this.#core.parts;
    return new GovernedTenants({
      caller,
      tenants: projections.tenants,
      may: (registry) => this.#decide({ action: 'administer', objectType: null, registry }).allowed,
      usage: {
        audit: new LogAuditReader(
          audit,
          (leaf) => log.read(leaf),
          () => true,
        ),
        branches: () => branchesNow(projections, log.basis()),
      },
      licence,
      typeOf: (name) => projections.catalog.on(0).type(name),
      now: this.#time,
      periodNs: BigInt(settings.SERVICE_QUERY_QUOTA_PERIOD_SECS) * 1_000_000_000n,
    });
  }

  policies(): PolicyDesk {
    this.#admit();
    this.#authorise({ action: 'administer', objectType: null });
    const { policies, catalog } = this.#core.parts.projections;
    return new GovernedPolicyDesk(policies, (name) => catalog.on(0).type(name));
  }

  kept(type: string, key: string): readonly Kept[] {
    this.#admit();
    this.#authorise({ action: 'remove', objectType: type });
    const { branch, path } = this.caller;
    const kept = this.#core.parts.projections.keptOf(branch, type, path, key);
    if (kept === undefined) throw new ServiceError('REL_NOT_FOUND', 'no such row');
    return kept;
  }

  erasing(): RowCheck | undefined {
    this.#admit();
    this.#authorise({ action: 'erase', objectType: null });
    return rowCheck(this.#core.judge, this.#judged, 'erase', this.#time);
  }

  explainPolicy(objectType: string | null, asOf?: number | bigint): PolicyExplanation {
    this.#core.committer.checkRunning();
    this.#checkBranch();
    return explainPolicy(this.#core, this.#judged, objectType, asOf);
  }

  /** Under the scope and the policies of then, read as it was, whoever derives it again; never cached with plans of now. */
  #pinned(paths: AccessPaths, pinned: PinnedGrant): GovernedSnapshot {
    const { judge, grants, reading } = this.#core;
    const { principal, path, branch, roles, attributes, door, clientIp, instant, masked } = pinned;
    const { purpose, breakGlass, accessScopeRef } = pinned;
    this.#basis = instant;
    const set = judge.policies.at(paths.position);
    if ((set?.digest ?? '') !== pinned.policyDigest) {
      throw new ServiceError('REL_UNPROCESSABLE', 'the policy set at the basis of the recipe is not the one that it names');
    }
    const caller = { ...this.caller, principal, path, branch, roles, attributes, door, clientIp, sharedFrom: null };
    const judged: Judged = { caller, action: 'query', purpose, breakGlass, accessScopeRef };
    const grant = grants.grantOfThen({ caller, action: 'query', stated: judged, now: instant }, set);
    const guards = judge.guards(judged, paths.protection);
    const protection = (type: string) => ({ ...paths.protection(type), masked: new Set(masked[type]) });
    const snapshot = governSnapshot({ ...paths, protection }, { ...judged, guards, grant, beginning: null }, reading);
    return { ...snapshot, grantKey: `${snapshot.grantKey}\u0000@${instant}`, pinned: true };
  }

  #governed(paths: AccessPaths, judged: Judged): GovernedSnapshot {
    const { judge, reading, grants, parts } = this.#core;
    const guards = judge.guards(judged, paths.protection);
    const { caller, action, purpose, breakGlass, accessScopeRef } = judged;
    const grant = grants.grantFor({ caller, action, stated: judged, now: this.#time });
    const beginning = beginningOf(parts.projections.tenants, caller);
    return governSnapshot(paths, { caller, purpose, breakGlass, accessScopeRef, guards, grant, beginning }, reading);
  }

  get #beginning(): Beginning {
    return beginningOf(this.#core.parts.projections.tenants, this.caller);
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
    const { quota, places } = this.#core;
    if (this.#running) quota.leave(this.#account.tenant);
    if (this.#placed) places.leave();
    this.#running = this.#placed = false;
  }

  record(ending: Ending<unknown>): AccessRecord {
    const { parts, digest, quota } = this.#core;
    const { template, literals, objectType, rowCount, costUnits = this.#charged } = this.#facts;
    const { breakGlass, accessScopeRef } = this.#judged;
    const nowMs = parts.clock.monotonicMs();
    if (this.#charged > 0) quota.settle(this.#account, costUnits - this.#charged, nowMs);
    return accessRecord({
      caller: this.caller,
      action: this.#action,
      correlationId: this.correlationId,
      time: this.#time,
      purpose: this.#purpose,
      breakGlass,
      accessScopeRef,
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

  async #submit(command: Command, options: SubmitOptions): Promise<Outcome> {
    const { backlog } = this.#core;
    const bytes = command.kind === 'put-rows' ? bytesOfRows(command.rows) : 0;
    let held = 0;
    this.#writing++;
    try {
      if (bytes > 0 && !backlog.take(bytes)) {
        if (options.waits !== true) throw backlogFull();
        await backlog.wait(bytes);
      }
      held = bytes;
      const { outcome, receiptLeaf, acknowledged } = this.#place(command, options);
      const durability = await acknowledged;
      this.#rowsWritten += outcome.accepted;
      if (receiptLeaf === undefined) return { ...outcome, durability };
      const { log, projections } = this.#core.parts;
      return { ...outcome, ...(await receiptedOutcome(log, projections.timeline, receiptLeaf)), durability, replayed: true };
    } finally {
      if (held > 0) backlog.leave(held);
      this.#writing--;
      if (this.#writing === 0) this.#allWritten();
    }
  }

  /** All that one turn does of a write. */
  #place(
    command: Command,
    options: SubmitOptions,
  ): {
    readonly outcome: Decision['outcome'];
    readonly receiptLeaf: number | undefined;
    readonly acknowledged: Promise<Durability>;
  } {
    this.#admit();
    if (this.caller.sharedFrom !== null) throw foreign();
    this.#core.term.admit(command.kind, this.#time);
    this.#admitStorage(command);
    const objectType = typeNamed(command);
    if (objectType !== null) this.#facts.objectType = objectType;
    for (const type of typesMigrated(command)) this.#authorise({ action: 'schema', objectType: type });
    this.#authorise({ action: actionOf[command.kind], objectType, ...this.#named(command) });
    this.#checkKept(command);
    this.#checkGuards(command);

    const { log, projections, settings } = this.#core.parts;
    if (command.kind === 'mint-token' && settings.SERVICE_TENANCY_MODE === 'multi') {
      checkMinted(command.token, projections.tenants);
    }
    if (command.kind === 'link-exhibit' && !command.open) this.exhibits().exhibit(command.exhibit);
    // Whoever submits it: a text that can't be decided by would leave nobody's rows readable.
    if (command.kind === 'put-policy') this.policies().checkText(command.id, command.text);
    const next = log.next();
    const check = writeCheck(this.#core.judge, this.#judged, command, this.#core.parts.clock.now());
    const { drafts, outcome, receiptLeaf } = projections.decide(this.#asMeant(command), this.#context(), next, check);
    const acknowledged = drafts.length === 0 ? this.#core.lastAcknowledged : this.#append(drafts, next, options, settings);
    return { outcome, receiptLeaf, acknowledged };
  }

  #admitStorage(command: Command): void {
    const { storage, tenantStorage, parts } = this.#core;
    if (command.kind === 'put-rows' || command.kind === 'link-exhibit') storage.admitWrite();
    const tenant = tenantOf(this.caller.path);
    if (command.kind !== 'put-rows' || tenant === null) return;
    tenantStorage.admitWrite(tenant, bytesOfRows(command.rows), parts.clock.monotonicMs());
  }

  #append(drafts: readonly EntryDraft[], at: NextPlace, options: SubmitOptions, settings: GateSettings): Promise<Durability> {
    const sync = options.sync === true || settings.SERVICE_DURABILITY === 'sync';
    const appended: Appended = this.#core.committer.commit(drafts, { at, sync });
    this.#core.writes.placed(drafts, appended);
    this.#core.lastAcknowledged = appended.acknowledged;
    return appended.acknowledged;
  }

  /** Types that are guarded are written as they are read: what opens them is stated. */
  #checkGuards(command: Command): void {
    if (!writesRows(command)) return;
    const columns = command.kind === 'put-rows' ? command.rows.columns.filter(({ vector }) => vector.kind !== 'null') : [];
    const guards = this.#core.judge.writeGuards({ ...this.#judged, action: actionOf[command.kind] });
    guards.check(
      command.type,
      columns.map(({ name }) => name),
    );
  }

  /** Policies are asked about the type of the row that it is about, which the command does not name. */
  #checkKept(command: Command): void {
    const { path } = this.caller;
    const kept = keptNamed(command, this.#core.parts.projections.retention, { path, fork: this.#branch });
    if (kept !== null) this.#authorise({ action: actionOf[command.kind], objectType: kept.type });
  }

  /** The steps before policy: running, branch, standing, purpose, quota. A purpose stated later is checked when it is used. */
  #admit(): void {
    assert(!this.#closed, 'an invocation is not used after it has ended');
    this.#core.committer.checkRunning();
    const purpose = this.#purpose;
    this.#checkBranch();
    const { caller } = this;
    this.#checkStanding();
    if (caller.sharedFrom !== null && !readsOnly.has(this.#action)) throw foreign();
    if (this.#admittedFor === purpose) return;
    checkPurpose(this.#core.purposes, purpose, caller.purposes, this.#purposeRequired);
    if (this.#request.continues !== true) this.#takeUnits(unitsAtStart[this.#action]);
    this.#admittedFor = purpose;
  }

  #checkStanding(): void {
    if (this.#request.whileSuspended !== true) checkStanding(this.#core.parts.projections.tenants, this.caller);
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
    this.#takeSlot();
    quota.spend(this.#account, units, parts.clock.monotonicMs());
    this.#charged = units;
  }

  #takeSlot(): void {
    if (this.#running) return;
    this.#core.quota.enter(this.#account.tenant);
    this.#running = true;
  }

  #authorise(about: About): void {
    this.#core.judge.authorise(this.#judged, about);
  }

  #decide(about: About): PolicyDecision {
    return this.#core.judge.decide(this.#judged, about);
  }

  /** Who asks for what, and what they state. */
  get #judged(): Judged {
    if (this.#judgedAs !== null) return this.#judgedAs;
    const { breakGlass = this.#request.breakGlass, accessScopeRef = this.#request.accessScopeRef } = this.#facts;
    this.#judgedAs = {
      caller: this.caller,
      action: this.#action,
      purpose: this.#purpose,
      breakGlass: breakGlass || null,
      accessScopeRef: accessScopeRef || null,
    };
    return this.#judgedAs;
  }

  /** What a command is about, where that is neither a type nor the store. */
  #named(command: Command): Pick<PolicyRequest, 'token' | 'branch' | 'registry'> {
    const registry = registryPart(command, this.#core.parts.projections.tenants);
    return { ...this.#tokenNamed(command), ...this.#branchEnded(command), ...(registry && { registry }) };
  }

  /** As many tenants as the licence allows, whatever the command says; keys of this tenant, not of an earlier one of its id. */
  #asMeant(command: Command): Command {
    if (command.kind === 'create-tenant') return { ...command, tenantsMax: this.#core.parts.licence.tenantsMax };
    if (command.kind === 'link-exhibit') return { ...command, stored: this.#core.parts.recipes.seal(command.recipe) };
    return command.kind === 'put-rows' && command.receipt !== undefined ? onceFrom(this.#beginning, command) : command;
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

  /** Who pays: the tenant that the credential is of, else the one that it acts for. */
  get #account(): Account {
    const { tenant, path, principal } = this.caller;
    return (this.#payer ??= { tenant: tenant ?? tenantOf(path) ?? '', principal });
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
      policyDigest: this.#core.judge.policies.digest,
    };
  }
}

const foreign = (): ServiceError =>
  new ServiceError('REL_XORG', 'what another organisation shares is read, and nothing else is done with it');

function ignore(): void {}

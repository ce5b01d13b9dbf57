/**
 * The writes of one invocation: admitted, authorised, decided, appended and applied in one turn, then waited for until the
 * log has acknowledged them. Invariant: no await stands between admission and append.
 */
import { assert, ServiceError } from '../../errors.ts';
import {
  type EntryContext,
  type EntryDraft,
  type MaskKind,
  positionsOf,
  type TokenRecord,
  type TypeDefinition,
} from '../../log/entries/entry.ts';
import { tenantOf } from '../../log/values/value.ts';
import type { Appended, Durability, NextPosition } from '../../log/log-store.ts';
import type { BranchRecord } from '../../projections/branches/projection.ts';
import type { AccessPaths } from '../../projections/access-paths.ts';
import type { Command, DeleteRows, Outcome, PutRows } from '../../projections/command.ts';
import type { RuleAuthor } from '../../projections/rules/rule.ts';
import type { Decision } from '../../projections/decision.ts';
import { actionOf, partsOf, typeNamed, typesBeside } from '../authorization/action-names.ts';
import { type Admission, foreign } from '../admission/admission.ts';
import { backlogFull, bytesOfRows } from '../admission/ingest-backlog.ts';
import type { About } from '../authorization/judge.ts';
import { administers } from '../authorization/access-rules.ts';
import type { PolicyRequest } from '../authorization/access-rules.ts';
import type { InvocationDescription } from '../access-records/invocation-description.ts';
import type { ExhibitDesk, StatementDetails, SubmitOptions } from '../gate-contract.ts';
import type { Core, GateSettings } from '../gate-core.ts';
import type { PolicyDeskContract } from '../desk-contract.ts';
import { grantedTypes } from '../reading/governed-snapshot.ts';
import type { Caller } from '../caller.ts';
import { rowToRelease } from './retention-release.ts';
import { outcomeInReceipt } from './receipt-lookup.ts';
import { beginningOf, onceFrom } from '../tenancy/earlier-tenant.ts';
import { checkMinted } from '../tenancy/multi-tenancy.ts';
import { registryPart } from '../tenancy/registry-access.ts';
import { writeChecks, writesRows } from './write-checks.ts';
import { sourceTypes } from '../../projections/rows/checks/source-seals.ts';
import { joinDrafts, typesBehindRows } from '../../projections/rows/writes/joined-drafts.ts';
import { netEffect } from '../../projections/rows/writes/net-effect.ts';
import { type ConflictingRow, openOf, type OpenTransaction, type WaitingCommand } from '../transactions/transaction.ts';
import { writtenRows } from './rows-to-write.ts';

/** Desks that check commands on exhibits and policies. */
interface Desks {
  exhibits(): Pick<ExhibitDesk, 'exhibit'>;
  policies(): Pick<PolicyDeskContract, 'checkText'>;
}

/** The result of a command in one turn. */
interface Placed {
  readonly outcome: Decision['outcome'];
  readonly receiptLeaf: number | undefined;
  readonly acknowledged: Promise<Durability>;
  /** False: it waits for a commit. */
  readonly isWritten?: boolean;
}

export class GovernedWrites {
  readonly #core: Core;
  readonly #asked: InvocationDescription;
  readonly #admission: Admission;
  readonly #desks: Desks;
  readonly #correlationId: string;
  /** Writes under way, and the callback for the end of the last one. */
  #underWay = 0;
  #allEnded: () => void = ignore;
  #placed = false;

  constructor(core: Core, asked: InvocationDescription, admission: Admission, desks: Desks) {
    this.#core = core;
    this.#asked = asked;
    this.#admission = admission;
    this.#desks = desks;
    this.#correlationId = asked.request.correlationId;
  }

  /** Whether anything was appended, acknowledged or not. */
  get wrote(): boolean {
    return this.#placed;
  }

  submit(command: Command, options: SubmitOptions): Promise<Outcome> {
    const write = this.#submit(command, options);
    // Handled where it is awaited; here it only must not count as unhandled when the caller gave up on it.
    write.then(undefined, ignore);
    return write;
  }

  /** Resolves once all have ended; null when none is under way. */
  whenEnded(): Promise<void> | null {
    return this.#underWay === 0 ? null : new Promise((resolve) => (this.#allEnded = resolve));
  }

  async #submit(command: Command, options: SubmitOptions): Promise<Outcome> {
    const { backlog } = this.#core;
    const bytes = bytesOf(command);
    let held = 0;
    this.#underWay++;
    this.#asked.submits(command);
    try {
      if (bytes > 0 && !backlog.take(bytes)) {
        if (options.waits !== true) throw backlogFull();
        await backlog.wait(bytes);
      }
      held = bytes;
      for (const within of this.#keysWithin(command)) if (within !== null) await within;
      const placed = this.#isLong(command) ? await this.#placeInTurns(command, options) : this.#placeCommand(command, options);
      const { outcome, receiptLeaf, acknowledged, isWritten = true } = placed;
      const durability = await acknowledged;
      // The commit of a transaction reports its writes.
      if (isWritten) this.#asked.wrote(command, outcome);
      // Written first: properties behind a spread make a new hidden class each time.
      if (receiptLeaf === undefined) return { durability, ...outcome };
      const { log, projections } = this.#core.parts;
      return { ...outcome, ...(await outcomeInReceipt(log, projections.timeline, receiptLeaf)), durability, replayed: true };
    } finally {
      if (held > 0) backlog.leave(held);
      this.#underWay--;
      if (this.#underWay === 0) this.#allEnded();
    }
  }

  /** See `Invocation`. */
  async rehearse(command: PutRows, unknown: ReadonlySet<string>): Promise<Pick<Outcome, 'errors'>> {
    for (const within of this.#keysWithin(command)) if (within !== null) await within;
    this.#admit(command, false);
    const { judge, parts } = this.#core;
    const checks = writeChecks(judge, this.#asked.judged, command, parts.clock.now(), unknown);
    return parts.projections.decide(command, this.#context(), parts.log.next(), checks).outcome;
  }

  /** Keys that have to be in memory first; null where they are, so that the write is placed in the turn that asks for it. */
  *#keysWithin(command: Command): Iterable<Promise<void> | null> {
    const { projections } = this.#core.parts;
    const tenant = tenantOf(this.#asked.caller.path);
    for (const type of this.#typesWritten(command)) yield projections.keysWithin(tenant, type, this.#core.turn);
  }

  /** Up to what is asked of each row. */
  #admit(command: Command, stores: boolean): void {
    this.#admission.admit();
    if (this.#asked.caller.sharedFrom !== null) throw foreign();
    for (const part of partsOf(command)) this.#core.term.admit(part.kind, this.#asked.time);
    if (stores) this.#admitStored(command);
    for (const type of typesBeside(command)) this.#authorise({ action: actionOf[command.kind], objectType: type });
    for (const part of partsOf(command)) {
      this.#authorise({ action: actionOf[part.kind], objectType: typeNamed(part), ...this.#subjectOf(part) });
      this.#checkKept(part);
      this.#checkGuards(part);
      this.#checkSources(part);
    }
  }

  /** See `Invocation`. */
  async commit(options: Pick<SubmitOptions, 'sync'>): Promise<Outcome | null> {
    const transaction = openOf(this.#asked.request);
    assert(transaction !== undefined, 'who commits is in a transaction');
    transaction.enter(this.#asked.caller);
    const { steps } = transaction;
    const { backlog } = this.#core;
    const bytes = steps.reduce((sum, step) => sum + step.bytes, 0);
    let held = 0;
    this.#underWay++;
    try {
      for (const { command } of steps) this.#asked.submits(command);
      this.#asked.describe({ template: 'COMMIT', statements: firstStatements(steps.map(({ statement }) => statement)) });
      if (bytes > 0 && !backlog.take(bytes)) await backlog.wait(bytes);
      held = bytes;
      for (const { command } of steps) for (const within of this.#keysWithin(command)) if (within !== null) await within;
      const { outcome, acknowledged } = await this.#placeAll(transaction, options);
      transaction.end(acknowledged);
      const durability = await acknowledged;
      for (const [i, { command }] of steps.entries()) this.#asked.wrote(command, outcome.steps![i]!);
      return steps.length === 0 ? null : { durability, ...outcome };
    } finally {
      // The transaction is over, whatever its outcome.
      transaction.end();
      if (held > 0) backlog.leave(held);
      this.#underWay--;
      if (this.#underWay === 0) this.#allEnded();
    }
  }

  /** Decides a transaction's writes again on the state of now, and appends them in one append. */
  #placeAll(
    transaction: OpenTransaction,
    options: SubmitOptions,
  ): Promise<Settled & { readonly acknowledged: Promise<Durability> }> {
    const { log, settings } = this.#core.parts;
    const deciding = (next: NextPosition) => this.#decideAll(transaction, next);
    return this.#settleInTurns(transaction.rows, deciding, ({ outcome, drafts }, next, isSameTurn) => {
      transaction.enter(this.#asked.caller);
      for (const { command } of transaction.steps) {
        if (isSameTurn) this.#admitStored(command);
        else this.#admit(command, true);
      }
      const acknowledged = drafts.length === 0 ? log.acknowledged : this.#append(drafts, next, options, settings);
      return { outcome, drafts, acknowledged };
    });
  }

  /** Rows that are decided one by one, and too many or too long for one turn. Those of a transaction are decided in turns by its commit. */
  #isLong(command: Command): command is PutRows | DeleteRows {
    if (command.kind === 'delete-rows') return command.keys.length > rowsPerTurn && !this.#isWithin();
    if (command.kind !== 'put-rows' || weightOf(command) <= rowsPerTurn || this.#isWithin()) return false;
    return command.receipt === undefined && (command.patch !== undefined || typeof command.when === 'object');
  }

  #isWithin(): boolean {
    return openOf(this.#asked.request) !== undefined;
  }

  #placeInTurns(command: PutRows | DeleteRows, options: SubmitOptions): Promise<Placed> {
    const { projections, clock } = this.#core.parts;
    const rows = command.kind === 'put-rows' ? weightOf(command) : command.keys.length;
    const deciding = (next: NextPosition) => {
      this.#admit(command, false);
      const checks = writeChecks(this.#core.judge, this.#asked.judged, command, clock.now());
      return projections.decideInSteps(command, this.#context(), next, checks);
    };
    return this.#settleInTurns(rows, deciding, (decision, next) => {
      this.#admit(command, true);
      return this.#appendDecision(decision, next, options);
    });
  }

  /**
   * Large writes are decided over several turns, for an instant in the future: reads meanwhile take earlier ones. They are
   * decided again if a write or a policy change came before that instant, or if it has passed; in the end within one turn.
   * `place` runs in the turn that found everything as decided; `isSameTurn` says whether that is the turn of the decision.
   */
  async #settleInTurns<D, P>(
    rows: number,
    decide: (next: NextPosition) => Generator<undefined, D>,
    placeDrafts: (decided: D, next: NextPosition, isSameTurn: boolean) => P,
  ): Promise<P> {
    const { log, clock } = this.#core.parts;
    // Small writes are decided in the calling turn, even if the caller is gone by then.
    const isCancelled = (): boolean => rows > rowsPerTurn && this.#asked.request.gone?.aborted === true;
    for (let tries = 1; ; tries++) {
      // Once it is appended, nothing calls it off any more.
      if (isCancelled()) throw new ServiceError('REL_CANCELLED', 'it was cancelled before any row was written');
      const isInTurns = rows > rowsPerTurn && tries <= decidingNs.length;
      const aheadNs = isInTurns ? BigInt(rows * decidingNs[tries - 1]!) : 0n;
      const { position, time } = log.next();
      const next = { position, time: time + aheadNs };
      const { digest } = this.#core.judge.policies;
      const isAsDecided = (): boolean => log.claim(next) && this.#core.judge.policies.digest === digest;
      let step: IteratorResult<undefined, D>;
      try {
        const deciding = decide(next);
        step = deciding.next();
        while (step.done !== true) {
          if (isInTurns) await this.#core.turn();
          if (isCancelled()) break;
          step = deciding.next();
        }
      } catch (error) {
        if (isAsDecided()) throw error;
        continue;
      }
      // No time of a row lies ahead of what its readers call now.
      const leftNs = isInTurns ? next.time - clock.now() : 0n;
      if (leftNs > 0n && leftNs <= aheadNs) await clock.sleep(Math.ceil(Number(leftNs) / 1e6));
      if (step.done === true && !isCancelled() && isAsDecided()) return placeDrafts(step.value, next, !isInTurns);
    }
  }

  /** So many rows a step. */
  *#decideAll(transaction: OpenTransaction, next: NextPosition): Generator<undefined, Settled> {
    const { projections } = this.#core.parts;
    const { caller } = this.#asked;
    transaction.enter(caller);
    for (const { command } of transaction.steps) this.#admit(command, false);
    const { steps, basis } = transaction;
    const { branch, path } = caller;
    let looked = 0;
    const isWritten = projections.writtenSince(branch, tenantOf(path), basis?.position ?? next.position);
    const conflicting: ConflictingRow[] = [];
    for (const { type, path: of, keys } of transaction.touchedRows()) {
      for (const key of keys) {
        if (isWritten(type, of, key)) conflicting.push({ type, path: of, key });
        if (++looked % rowsPerTurn > 0) continue;
        if (conflicting.length > 0) break;
        yield;
      }
    }
    if (conflicting.length > 0) throw transaction.meets(conflicting.slice(0, conflictingMax));
    let decided = yield* this.#decideSteps(steps, next, []);
    // Types come before all rows, so that the rows are one entry: with these the steps define none.
    const types = typesBehindRows(decided.drafts);
    if (types.length > 0) decided = yield* this.#decideSteps(steps, next, types);
    const drafts = netEffect(decided.drafts, next);
    const positions = drafts.reduce((sum, { body }) => sum + positionsOf(body), 0);
    return { outcome: sumOutcomes(decided.outcomes, next, positions), drafts: joinDrafts(drafts) };
  }

  /** Steps one after the other, behind definitions of types. */
  *#decideSteps(
    steps: OpenTransaction['steps'],
    next: NextPosition,
    types: readonly EntryDraft[],
  ): Generator<undefined, { readonly outcomes: readonly Decision['outcome'][]; readonly drafts: readonly EntryDraft[] }> {
    const { projections, clock } = this.#core.parts;
    const { caller, judged } = this.#asked;
    const outcomes: Decision['outcome'][] = [];
    const drafts: EntryDraft[] = [...types];
    // One step has none before it to stand on.
    const isAlone = steps.length <= 1 && types.length === 0;
    const basis = { position: next.position, instant: next.time - 1n };
    const head = isAlone ? null : projections.privately(basis, caller.branch, tenantOf(caller.path));
    head?.take(types);
    let looked = 0;
    for (const [i, { command, keys, rows }] of steps.entries()) {
      const checks = writeChecks(this.#core.judge, judged, command, clock.now());
      const isLast = i === steps.length - 1;
      const meant = unconditional(command);
      const decision =
        head === null
          ? projections.decide(meant, this.#context(), next, checks, keys)
          : head.write(meant, this.#context(), { checks, keys, isLast }).decision;
      drafts.push(...decision.drafts);
      outcomes.push(decision.outcome);
      looked += rows;
      if (looked < rowsPerTurn) continue;
      looked = 0;
      yield;
    }
    return { outcomes, drafts };
  }

  /** Decided in the transaction that it is in: it is written when that is committed. */
  #placeWithin(transaction: OpenTransaction, command: Command, options: SubmitOptions): Placed {
    const { caller, facts } = this.#asked;
    if (command.kind !== 'put-rows' && command.kind !== 'delete-rows' && command.kind !== 'batch')
      throw new ServiceError('REL_NOT_IMPLEMENTED', `${command.kind} is not part of a transaction: send it outside of one`);
    if (partsOf(command).some((part) => part.kind === 'put-rows' && part.receipt !== undefined))
      throw new ServiceError('REL_INVALID', 'a transaction takes no idempotency key: its commit writes once');
    transaction.enter(caller);
    this.#admit(command, false);
    const checks = writeChecks(this.#core.judge, this.#asked.judged, command, this.#core.parts.clock.now());
    const { literals, objectType } = facts;
    const template = facts.template ?? this.#asked.request.template;
    const { outcome } = transaction.write(command, this.#context(), {
      checks,
      statement: { template, literals, ...(objectType !== undefined && { objectType }) },
      before: (decision, at) =>
        options.before?.(decision.outcome, () => writtenRows(decision.drafts, at, caller.path, (type) => this.#reads(type))),
    });
    return { outcome, receiptLeaf: undefined, acknowledged: Promise.resolve('buffered'), isWritten: false };
  }

  #placeCommand(command: Command, options: SubmitOptions): Placed {
    const transaction = openOf(this.#asked.request);
    if (transaction !== undefined && !standsAlone.has(command.kind)) return this.#placeWithin(transaction, command, options);
    this.#admit(command, true);
    const { log, projections, settings } = this.#core.parts;
    if (command.kind === 'mint-token' && settings.SERVICE_TENANCY_MODE === 'multi') {
      checkMinted(command.token, projections.tenants);
    }
    if (command.kind === 'link-exhibit' && !command.open) this.#desks.exhibits().exhibit(command.exhibit);
    // For every caller: an undecidable policy text would make all rows unreadable.
    if (command.kind === 'put-policy') this.#desks.policies().checkText(command.id, command.text);
    const next = log.next();
    const checks = {
      textSeals: this.#core.parts.textSeals,
      ...writeChecks(this.#core.judge, this.#asked.judged, command, this.#core.parts.clock.now()),
    };
    return this.#appendDecision(projections.decide(this.#asMeant(command), this.#context(), next, checks), next, options);
  }

  #appendDecision({ drafts, outcome, receiptLeaf }: Decision, next: NextPosition, options: SubmitOptions): Placed {
    const { log, settings } = this.#core.parts;
    options.before?.(outcome, () => writtenRows(drafts, next, this.#asked.caller.path, (type) => this.#reads(type)));
    // A command that changed nothing still rests on what was written before it.
    const acknowledged = drafts.length === 0 ? log.acknowledged : this.#append(drafts, next, options, settings);
    return { outcome, receiptLeaf, acknowledged };
  }

  /** The last step of admission: room to store it. */
  #admitStored(command: Command): void {
    for (const part of partsOf(command)) this.#admitStorage(part);
  }

  #admitStorage(command: Command): void {
    const { storage, tenantStorage, parts } = this.#core;
    if (storesMore.has(command.kind)) storage.admitWrite();
    const tenant = tenantOf(this.#asked.caller.path);
    if (command.kind !== 'put-rows' || tenant === null) return;
    tenantStorage.admitWrite(tenant, bytesOfRows(command.rows), parts.clock.monotonicMs());
  }

  #append(drafts: readonly EntryDraft[], at: NextPosition, options: SubmitOptions, settings: GateSettings): Promise<Durability> {
    const sync = options.sync === true || settings.SERVICE_DURABILITY === 'sync';
    const appended: Appended = this.#core.committer.commit(drafts, { at, sync });
    this.#core.writes.onPlaced(drafts, appended);
    this.#placed = true;
    return appended.acknowledged;
  }

  /** Guarded types are written as they are read: the caller states the reason that opens them. */
  #checkGuards(command: Command): void {
    if (command.kind === 'judge-identities') {
      const guards = this.#core.judge.writeGuards({ ...this.#asked.judged, action: 'ingest' });
      for (const { type } of [command.a, command.b]) guards.check(type, []);
    }
    if (!writesRows(command)) return;
    const columns = command.kind === 'put-rows' ? command.rows.columns.filter(({ vector }) => vector.kind !== 'null') : [];
    const guards = this.#core.judge.writeGuards({ ...this.#asked.judged, action: actionOf[command.kind] });
    guards.check(
      command.type,
      columns.map(({ name }) => name),
    );
  }

  /**
   * Columns that the caller sees masked cannot feed a write: a copy would show their cells, and a selection by them would reveal
   * them.
   */
  #checkSources(command: Command): void {
    if (command.kind !== 'put-rows' && command.kind !== 'delete-rows') return;
    const { computedFrom, type } = command;
    if (computedFrom === undefined || computedFrom.length === 0) return;
    const masks = this.#masksOf(type);
    const masked = computedFrom.find((name) => masks.has(name));
    if (masked === undefined) return;
    const column = JSON.stringify(masked);
    throw new ServiceError('REL_MASKED_COLUMN', `${column} is masked: nothing can be written from it, nor by a condition on it`);
  }

  /** A type as its writer reads it now. */
  #reads(type: string): { readonly definition: TypeDefinition | undefined; readonly masks: ReadonlyMap<string, MaskKind> } {
    return { definition: this.#paths().catalog.type(type), masks: this.#masksOf(type) };
  }

  #masksOf(type: string): ReadonlyMap<string, MaskKind> {
    const { judged, time } = this.#asked;
    return grantedTypes(this.#core, this.#paths(), { ...judged, action: 'query' }, time).typeNamed(type).grant.masked;
  }

  #paths(): AccessPaths {
    const { log, projections } = this.#core.parts;
    const { branch, path } = this.#asked.caller;
    return openOf(this.#asked.request)?.paths() ?? projections.snapshot(log.basis(), branch, tenantOf(path));
  }

  /** Types that a command writes to, and those of the edges that its rows may have. */
  #typesWritten(command: Command): readonly string[] {
    const types = partsOf(command).flatMap((part) => typeNamed(part) ?? []);
    if (!partsOf(command).some(writesRows)) return types;
    const { projections } = this.#core.parts;
    const { branch, path } = this.#asked.caller;
    const fork = projections.branches.idOf(branch, tenantOf(path));
    if (fork === undefined) return types;
    const catalog = projections.catalog.catalogOn(fork, tenantOf(path));
    const links = types.flatMap((type) => catalog.type(type)?.graphTriggers.map(({ linkType }) => linkType) ?? []);
    return [...types, ...links, ...sourceTypes(types, catalog)];
  }

  /** Policies are asked about the type of the row that it is about, which the command does not name. */
  #checkKept(command: Command): void {
    const { path } = this.#asked.caller;
    const releasedRule = rowToRelease(command, this.#core.parts.projections.retention, { path, fork: this.#admission.fork });
    if (releasedRule !== null) this.#authorise({ action: actionOf[command.kind], objectType: releasedRule.type });
  }

  #authorise(about: About): void {
    this.#core.judge.authorise(this.#asked.judged, about);
  }

  /** The subject of a command that is about neither a type nor the store. */
  #subjectOf(command: Command): Pick<PolicyRequest, 'token' | 'branch' | 'registry'> {
    const registry = registryPart(command, this.#core.parts.projections.tenants);
    return { ...this.#tokenNamed(command), ...this.#branchEnded(command), ...(registry && { registry }) };
  }

  #tokenNamed(command: Command): { token?: TokenRecord } {
    if (command.kind !== 'rotate-token' && command.kind !== 'revoke-token') return {};
    const token = this.#core.tokens.token(command.id);
    return token === undefined ? {} : { token };
  }

  #branchEnded(command: Command): { branch?: BranchRecord } {
    if (command.kind !== 'delete-branch') return {};
    const branch = this.#core.parts.projections.branches.branch(command.name, tenantOf(this.#asked.caller.path));
    return branch === undefined ? {} : { branch };
  }

  /** As many tenants as the licence allows, whatever the command says; keys of this tenant, not of an earlier one of its id. */
  #asMeant(command: Command): Command {
    if (command.kind === 'create-tenant') return { ...command, tenantsMax: this.#core.parts.licence.tenantsMax };
    if (command.kind === 'evolve-type') return { ...command, mayTakeBack: administers(this.#asked.caller) };
    if (command.kind === 'migrate-types') {
      const mayTakeBack = administers(this.#asked.caller);
      return { ...command, steps: command.steps.map((step) => (step.kind === 'evolve-type' ? { ...step, mayTakeBack } : step)) };
    }
    if (command.kind === 'put-rule') return { ...command, author: authorOf(this.#asked.caller) };
    if (command.kind === 'put-job') return { ...command, owner: authorOf(this.#asked.caller) };
    if (command.kind === 'link-exhibit') return { ...command, stored: this.#core.parts.textSeals.seal(command.recipe) };
    if (command.kind !== 'put-rows' || command.receipt === undefined) return command;
    return onceFrom(beginningOf(this.#core.parts.projections.tenants, this.#asked.caller), command);
  }

  #context(): EntryContext {
    const { caller, purpose } = this.#asked;
    return {
      branch: caller.branch,
      tenant: tenantOf(caller.path),
      path: caller.path,
      principal: caller.principal,
      door: caller.door,
      purpose,
      correlationId: this.#correlationId,
      policyDigest: this.#core.judge.policies.digest,
    };
  }
}

function bytesOf(command: Command): number {
  let bytes = 0;
  for (const part of partsOf(command)) if (part.kind === 'put-rows') bytes += bytesOfRows(part.rows);
  return bytes;
}

/** In rows: each of long texts counts for several. */
function weightOf({ rows }: PutRows): number {
  return rows.length + Math.floor(bytesOfRows(rows) / bytesOfLongRow);
}

function authorOf({ credential, tokenId }: Caller): Omit<RuleAuthor, 'principal'> {
  return { credential, token: tokenId };
}

function ignore(): void {}

/** Commands that are refused where the store is full. */
const storesMore: ReadonlySet<Command['kind']> = new Set(['put-rows', 'link-exhibit', 'judge-identities']);

/** Made at once where a transaction asks for them, and not undone with it. */
const standsAlone: ReadonlySet<Command['kind']> = new Set(['register-type', 'evolve-type', 'create-view', 'drop-view']);

/** Rows that a transaction chose stand as it saw them: that was looked at for all of it, and its own writes are none of another's. */
function unconditional(command: WaitingCommand): WaitingCommand {
  if (command.kind === 'batch')
    return { ...command, steps: command.steps.map((step) => unconditional(step) as PutRows | DeleteRows) };
  return typeof command.when === 'object' ? { ...command, when: 'present' } : command;
}

/** As many as a record has room for; of the others, one digest. */
function firstStatements(statements: readonly StatementDetails[]): readonly StatementDetails[] {
  if (statements.length <= statementsMax) return statements;
  const others = statements.slice(statementsMax - 1);
  const literals = others.flatMap((each) => [each.template ?? '', ...(each.literals ?? [])]);
  return [...statements.slice(0, statementsMax - 1), { template: `${others.length} more statements`, literals }];
}

const statementsMax = 256;

/** The result of a transaction at its commit. */
interface Settled {
  readonly outcome: Decision['outcome'];
  readonly drafts: readonly EntryDraft[];
}

/** Rows of a conflict that are remembered. */
const conflictingMax = 16;
/** Rows of a transaction that are looked at or decided within a turn. */
const rowsPerTurn = 1_024;
/** So many bytes of text take as long as a row. */
const bytesOfLongRow = 4_096;
/** For each time that all of it is decided in turns, how long a row may take. */
const decidingNs = [10_000, 40_000, 160_000] as const;

/** Adds up the outcomes of all steps of a commit. */
function sumOutcomes(steps: readonly Decision['outcome'][], next: NextPosition, positions: number): Decision['outcome'] {
  const changed = positions > 0;
  return {
    kind: 'batch',
    accepted: steps.reduce((sum, { accepted }) => sum + accepted, 0),
    rejected: 0,
    errors: [],
    ids: [],
    idsTruncated: false,
    systemFrom: changed ? next.time : 0n,
    systemFromLast: changed ? next.time + BigInt(positions - 1) : 0n,
    changed,
    steps,
  };
}

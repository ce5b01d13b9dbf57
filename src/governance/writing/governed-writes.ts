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
interface WriteDesks {
  exhibits(): Pick<ExhibitDesk, 'exhibit'>;
  policies(): Pick<PolicyDeskContract, 'checkText'>;
}

/** The result of a command in one turn. */
interface PlacedCommand {
  readonly outcome: Decision['outcome'];
  readonly receiptLeaf: number | undefined;
  readonly acknowledged: Promise<Durability>;
  /** False: it waits for a commit. */
  readonly isWritten?: boolean;
}

export class GovernedWrites {
  readonly #core: Core;
  readonly #description: InvocationDescription;
  readonly #admission: Admission;
  readonly #writeDesks: WriteDesks;
  readonly #correlationId: string;
  /** Writes under way, and the callback for the end of the last one. */
  #writesUnderWay = 0;
  #onAllWritesEnded: () => void = ignoreResult;
  #hasPlaced = false;

  constructor(core: Core, description: InvocationDescription, admission: Admission, desks: WriteDesks) {
    this.#core = core;
    this.#description = description;
    this.#admission = admission;
    this.#writeDesks = desks;
    this.#correlationId = description.request.correlationId;
  }

  /** Whether anything was appended, acknowledged or not. */
  get wrote(): boolean {
    return this.#hasPlaced;
  }

  submit(command: Command, options: SubmitOptions): Promise<Outcome> {
    const write = this.#submitCommand(command, options);
    // Handled where it is awaited; here it only must not count as unhandled when the caller gave up on it.
    write.then(undefined, ignoreResult);
    return write;
  }

  /** Resolves once all have ended; null when none is under way. */
  whenEnded(): Promise<void> | null {
    return this.#writesUnderWay === 0 ? null : new Promise((resolve) => (this.#onAllWritesEnded = resolve));
  }

  async #submitCommand(command: Command, options: SubmitOptions): Promise<Outcome> {
    const { backlog } = this.#core;
    const ingestBytes = commandBytesOf(command);
    let heldBytes = 0;
    this.#writesUnderWay++;
    this.#description.submits(command);
    try {
      if (ingestBytes > 0 && !backlog.take(ingestBytes)) {
        if (options.waits !== true) throw backlogFull();
        await backlog.wait(ingestBytes);
      }
      heldBytes = ingestBytes;
      for (const keysReady of this.#keysWithin(command)) if (keysReady !== null) await keysReady;
      const placedCommand = this.#isLongCommand(command)
        ? await this.#placeInTurns(command, options)
        : this.#placeCommand(command, options);
      const { outcome, receiptLeaf, acknowledged, isWritten = true } = placedCommand;
      const writeDurability = await acknowledged;
      // The commit of a transaction reports its writes.
      if (isWritten) this.#description.wrote(command, outcome);
      // Written first: properties behind a spread make a new hidden class each time.
      if (receiptLeaf === undefined) return { durability: writeDurability, ...outcome };
      const { log, projections } = this.#core.parts;
      return {
        ...outcome,
        ...(await outcomeInReceipt(log, projections.timeline, receiptLeaf)),
        durability: writeDurability,
        replayed: true,
      };
    } finally {
      if (heldBytes > 0) backlog.leave(heldBytes);
      this.#writesUnderWay--;
      if (this.#writesUnderWay === 0) this.#onAllWritesEnded();
    }
  }

  /** See `Invocation`. */
  async rehearse(command: PutRows, unknown: ReadonlySet<string>): Promise<Pick<Outcome, 'errors'>> {
    for (const keysReady of this.#keysWithin(command)) if (keysReady !== null) await keysReady;
    this.#admitCommand(command, false);
    const { judge, parts } = this.#core;
    const rehearsalChecks = writeChecks(judge, this.#description.judged, command, parts.clock.now(), unknown);
    return parts.projections.decide(command, this.#writeContext(), parts.log.next(), rehearsalChecks).outcome;
  }

  /** Keys that have to be in memory first; null where they are, so that the write is placed in the turn that asks for it. */
  *#keysWithin(command: Command): Iterable<Promise<void> | null> {
    const { projections } = this.#core.parts;
    const tenant = tenantOf(this.#description.caller.path);
    for (const type of this.#typesWritten(command)) yield projections.keysWithin(tenant, type, this.#core.turn);
  }

  /** Up to what is asked of each row. */
  #admitCommand(command: Command, stores: boolean): void {
    this.#admission.admit();
    if (this.#description.caller.sharedFrom !== null) throw foreign();
    for (const part of partsOf(command)) this.#core.term.admit(part.kind, this.#description.time);
    if (stores) this.#admitStored(command);
    for (const type of typesBeside(command)) this.#authoriseWrite({ action: actionOf[command.kind], objectType: type });
    for (const part of partsOf(command)) {
      this.#authoriseWrite({ action: actionOf[part.kind], objectType: typeNamed(part), ...this.#policySubjectOf(part) });
      this.#checkKeptRow(part);
      this.#checkGuards(part);
      this.#checkSources(part);
    }
  }

  /** See `Invocation`. */
  async commit(options: Pick<SubmitOptions, 'sync'>): Promise<Outcome | null> {
    const transaction = openOf(this.#description.request);
    assert(transaction !== undefined, 'who commits is in a transaction');
    transaction.enter(this.#description.caller);
    const { steps } = transaction;
    const { backlog } = this.#core;
    const transactionBytes = steps.reduce((sum, step) => sum + step.bytes, 0);
    let heldBytes = 0;
    this.#writesUnderWay++;
    try {
      for (const { command } of steps) this.#description.submits(command);
      this.#description.describe({ template: 'COMMIT', statements: firstStatements(steps.map(({ statement }) => statement)) });
      if (transactionBytes > 0 && !backlog.take(transactionBytes)) await backlog.wait(transactionBytes);
      heldBytes = transactionBytes;
      for (const { command } of steps) for (const keysReady of this.#keysWithin(command)) if (keysReady !== null) await keysReady;
      const { outcome, acknowledged } = await this.#placeTransaction(transaction, options);
      transaction.end(acknowledged);
      const durability = await acknowledged;
      for (const [i, { command }] of steps.entries()) this.#description.wrote(command, outcome.steps![i]!);
      return steps.length === 0 ? null : { durability, ...outcome };
    } finally {
      // The transaction is over, whatever its outcome.
      transaction.end();
      if (heldBytes > 0) backlog.leave(heldBytes);
      this.#writesUnderWay--;
      if (this.#writesUnderWay === 0) this.#onAllWritesEnded();
    }
  }

  /** Decides a transaction's writes again on the state of now, and appends them in one append. */
  #placeTransaction(
    transaction: OpenTransaction,
    options: SubmitOptions,
  ): Promise<SettledTransaction & { readonly acknowledged: Promise<Durability> }> {
    const { log, settings } = this.#core.parts;
    const decideTransaction = (next: NextPosition) => this.#decideAll(transaction, next);
    return this.#settleInTurns(transaction.rows, decideTransaction, ({ outcome, drafts }, next, isSameTurn) => {
      transaction.enter(this.#description.caller);
      for (const { command } of transaction.steps) {
        if (isSameTurn) this.#admitStored(command);
        else this.#admitCommand(command, true);
      }
      const acknowledged = drafts.length === 0 ? log.acknowledged : this.#appendDrafts(drafts, next, options, settings);
      return { outcome, drafts, acknowledged };
    });
  }

  /** Rows that are decided one by one, and too many or too long for one turn. Those of a transaction are decided in turns by its commit. */
  #isLongCommand(command: Command): command is PutRows | DeleteRows {
    if (command.kind === 'delete-rows') return command.keys.length > decidedRowsPerTurn && !this.#isInTransaction();
    if (command.kind !== 'put-rows' || rowWeightOf(command) <= decidedRowsPerTurn || this.#isInTransaction()) return false;
    return command.receipt === undefined && (command.patch !== undefined || typeof command.when === 'object');
  }

  #isInTransaction(): boolean {
    return openOf(this.#description.request) !== undefined;
  }

  #placeInTurns(command: PutRows | DeleteRows, options: SubmitOptions): Promise<PlacedCommand> {
    const { projections, clock } = this.#core.parts;
    const rowWeight = command.kind === 'put-rows' ? rowWeightOf(command) : command.keys.length;
    const decideInTurns = (next: NextPosition) => {
      this.#admitCommand(command, false);
      const checks = writeChecks(this.#core.judge, this.#description.judged, command, clock.now());
      return projections.decideInSteps(command, this.#writeContext(), next, checks);
    };
    return this.#settleInTurns(rowWeight, decideInTurns, (decision, next) => {
      this.#admitCommand(command, true);
      return this.#appendDecision(decision, next, options);
    });
  }

  /**
   * Large writes are decided over several turns, for an instant in the future: reads meanwhile take earlier ones. They are
   * decided again if a write or a policy change came before that instant, or if it has passed; in the end within one turn.
   * `place` runs in the turn that found everything as decided; `isSameTurn` says whether that is the turn of the decision.
   */
  async #settleInTurns<D, P>(
    rowWeight: number,
    decide: (nextPosition: NextPosition) => Generator<undefined, D>,
    placeDrafts: (decided: D, nextPosition: NextPosition, isSameTurn: boolean) => P,
  ): Promise<P> {
    const { log, clock } = this.#core.parts;
    // Small writes are decided in the calling turn, even if the caller is gone by then.
    const isCancelled = (): boolean => rowWeight > decidedRowsPerTurn && this.#description.request.gone?.aborted === true;
    for (let settleTries = 1; ; settleTries++) {
      // Once it is appended, nothing calls it off any more.
      if (isCancelled()) throw new ServiceError('REL_CANCELLED', 'it was cancelled before any row was written');
      const isInTurns = rowWeight > decidedRowsPerTurn && settleTries <= decidingNsPerRow.length;
      const aheadNs = isInTurns ? BigInt(rowWeight * decidingNsPerRow[settleTries - 1]!) : 0n;
      const { position, time } = log.next();
      const nextPosition = { position, time: time + aheadNs };
      const { digest } = this.#core.judge.policies;
      const isAsDecided = (): boolean => log.claim(nextPosition) && this.#core.judge.policies.digest === digest;
      let decisionStep: IteratorResult<undefined, D>;
      try {
        const decisionSteps = decide(nextPosition);
        decisionStep = decisionSteps.next();
        while (decisionStep.done !== true) {
          if (isInTurns) await this.#core.turn();
          if (isCancelled()) break;
          decisionStep = decisionSteps.next();
        }
      } catch (error) {
        if (isAsDecided()) throw error;
        continue;
      }
      // No time of a row lies ahead of what its readers call now.
      const remainingNs = isInTurns ? nextPosition.time - clock.now() : 0n;
      if (remainingNs > 0n && remainingNs <= aheadNs) await clock.sleep(Math.ceil(Number(remainingNs) / 1e6));
      if (decisionStep.done === true && !isCancelled() && isAsDecided())
        return placeDrafts(decisionStep.value, nextPosition, !isInTurns);
    }
  }

  /** So many rows a step. */
  *#decideAll(transaction: OpenTransaction, next: NextPosition): Generator<undefined, SettledTransaction> {
    const { projections } = this.#core.parts;
    const { caller } = this.#description;
    transaction.enter(caller);
    for (const { command } of transaction.steps) this.#admitCommand(command, false);
    const { steps, basis } = transaction;
    const { branch, path } = caller;
    let keysChecked = 0;
    const isWritten = projections.writtenSince(branch, tenantOf(path), basis?.position ?? next.position);
    const conflictingRows: ConflictingRow[] = [];
    for (const { type, path: touchedPath, keys } of transaction.touchedRows()) {
      for (const key of keys) {
        if (isWritten(type, touchedPath, key)) conflictingRows.push({ type, path: touchedPath, key });
        if (++keysChecked % decidedRowsPerTurn > 0) continue;
        if (conflictingRows.length > 0) break;
        yield;
      }
    }
    if (conflictingRows.length > 0) throw transaction.meets(conflictingRows.slice(0, conflictingRowsMax));
    let decidedSteps = yield* this.#decideSteps(steps, next, []);
    // Types come before all rows, so that the rows are one entry: with these the steps define none.
    const typeDrafts = typesBehindRows(decidedSteps.drafts);
    if (typeDrafts.length > 0) decidedSteps = yield* this.#decideSteps(steps, next, typeDrafts);
    const netDrafts = netEffect(decidedSteps.drafts, next);
    const positionCount = netDrafts.reduce((sum, { body }) => sum + positionsOf(body), 0);
    return { outcome: sumOutcomes(decidedSteps.outcomes, next, positionCount), drafts: joinDrafts(netDrafts) };
  }

  /** Steps one after the other, behind definitions of types. */
  *#decideSteps(
    steps: OpenTransaction['steps'],
    next: NextPosition,
    typeDrafts: readonly EntryDraft[],
  ): Generator<undefined, { readonly outcomes: readonly Decision['outcome'][]; readonly drafts: readonly EntryDraft[] }> {
    const { projections, clock } = this.#core.parts;
    const { caller, judged } = this.#description;
    const outcomes: Decision['outcome'][] = [];
    const drafts: EntryDraft[] = [...typeDrafts];
    // One step has none before it to stand on.
    const isAlone = steps.length <= 1 && typeDrafts.length === 0;
    const basis = { position: next.position, instant: next.time - 1n };
    const transactionHead = isAlone ? null : projections.privately(basis, caller.branch, tenantOf(caller.path));
    transactionHead?.take(typeDrafts);
    let rowsDecided = 0;
    for (const [i, { command, keys, rows }] of steps.entries()) {
      const stepChecks = writeChecks(this.#core.judge, judged, command, clock.now());
      const isLast = i === steps.length - 1;
      const unconditionalWrite = withoutCondition(command);
      const decision =
        transactionHead === null
          ? projections.decide(unconditionalWrite, this.#writeContext(), next, stepChecks, keys)
          : transactionHead.write(unconditionalWrite, this.#writeContext(), { checks: stepChecks, keys, isLast }).decision;
      drafts.push(...decision.drafts);
      outcomes.push(decision.outcome);
      rowsDecided += rows;
      if (rowsDecided < decidedRowsPerTurn) continue;
      rowsDecided = 0;
      yield;
    }
    return { outcomes, drafts };
  }

  /** Decided in the transaction that it is in: it is written when that is committed. */
  #placeInTransaction(transaction: OpenTransaction, command: Command, options: SubmitOptions): PlacedCommand {
    const { caller, facts } = this.#description;
    if (command.kind !== 'put-rows' && command.kind !== 'delete-rows' && command.kind !== 'batch')
      throw new ServiceError('REL_NOT_IMPLEMENTED', `${command.kind} is not part of a transaction: send it outside of one`);
    if (partsOf(command).some((part) => part.kind === 'put-rows' && part.receipt !== undefined))
      throw new ServiceError('REL_INVALID', 'a transaction takes no idempotency key: its commit writes once');
    transaction.enter(caller);
    this.#admitCommand(command, false);
    const transactionChecks = writeChecks(this.#core.judge, this.#description.judged, command, this.#core.parts.clock.now());
    const { literals, objectType } = facts;
    const template = facts.template ?? this.#description.request.template;
    const { outcome } = transaction.write(command, this.#writeContext(), {
      checks: transactionChecks,
      statement: { template, literals, ...(objectType !== undefined && { objectType }) },
      before: (decision, at) =>
        options.before?.(decision.outcome, () =>
          writtenRows(decision.drafts, at, caller.path, (type) => this.#writtenTypeOf(type)),
        ),
    });
    return { outcome, receiptLeaf: undefined, acknowledged: Promise.resolve('buffered'), isWritten: false };
  }

  #placeCommand(command: Command, options: SubmitOptions): PlacedCommand {
    const transaction = openOf(this.#description.request);
    if (transaction !== undefined && !untransactedCommands.has(command.kind))
      return this.#placeInTransaction(transaction, command, options);
    this.#admitCommand(command, true);
    const { log, projections, settings } = this.#core.parts;
    if (command.kind === 'mint-token' && settings.SERVICE_TENANCY_MODE === 'multi') {
      checkMinted(command.token, projections.tenants);
    }
    if (command.kind === 'link-exhibit' && !command.open) this.#writeDesks.exhibits().exhibit(command.exhibit);
    // For every caller: an undecidable policy text would make all rows unreadable.
    if (command.kind === 'put-policy') this.#writeDesks.policies().checkText(command.id, command.text);
    const next = log.next();
    const checks = {
      textSeals: this.#core.parts.textSeals,
      ...writeChecks(this.#core.judge, this.#description.judged, command, this.#core.parts.clock.now()),
    };
    return this.#appendDecision(
      projections.decide(this.#completeCommand(command), this.#writeContext(), next, checks),
      next,
      options,
    );
  }

  #appendDecision({ drafts, outcome, receiptLeaf }: Decision, next: NextPosition, options: SubmitOptions): PlacedCommand {
    const { log, settings } = this.#core.parts;
    options.before?.(outcome, () =>
      writtenRows(drafts, next, this.#description.caller.path, (type) => this.#writtenTypeOf(type)),
    );
    // A command that changed nothing still rests on what was written before it.
    const acknowledged = drafts.length === 0 ? log.acknowledged : this.#appendDrafts(drafts, next, options, settings);
    return { outcome, receiptLeaf, acknowledged };
  }

  /** The last step of admission: room to store it. */
  #admitStored(command: Command): void {
    for (const part of partsOf(command)) this.#admitStorage(part);
  }

  #admitStorage(command: Command): void {
    const { storage, tenantStorage, parts } = this.#core;
    if (storingCommands.has(command.kind)) storage.admitWrite();
    const tenant = tenantOf(this.#description.caller.path);
    if (command.kind !== 'put-rows' || tenant === null) return;
    tenantStorage.admitWrite(tenant, bytesOfRows(command.rows), parts.clock.monotonicMs());
  }

  #appendDrafts(
    drafts: readonly EntryDraft[],
    appendPosition: NextPosition,
    options: SubmitOptions,
    settings: GateSettings,
  ): Promise<Durability> {
    const isSynced = options.sync === true || settings.SERVICE_DURABILITY === 'sync';
    const appendedEntries: Appended = this.#core.committer.commit(drafts, { at: appendPosition, sync: isSynced });
    this.#core.writes.onPlaced(drafts, appendedEntries);
    this.#hasPlaced = true;
    return appendedEntries.acknowledged;
  }

  /** Guarded types are written as they are read: the caller states the reason that opens them. */
  #checkGuards(command: Command): void {
    if (command.kind === 'judge-identities') {
      const guards = this.#core.judge.writeGuards({ ...this.#description.judged, action: 'ingest' });
      for (const { type } of [command.a, command.b]) guards.check(type, []);
    }
    if (!writesRows(command)) return;
    const columns = command.kind === 'put-rows' ? command.rows.columns.filter(({ vector }) => vector.kind !== 'null') : [];
    const guards = this.#core.judge.writeGuards({ ...this.#description.judged, action: actionOf[command.kind] });
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
    const sourceMasks = this.#masksOf(type);
    const maskedSource = computedFrom.find((name) => sourceMasks.has(name));
    if (maskedSource === undefined) return;
    const column = JSON.stringify(maskedSource);
    throw new ServiceError('REL_MASKED_COLUMN', `${column} is masked: nothing can be written from it, nor by a condition on it`);
  }

  /** A type as its writer reads it now. */
  #writtenTypeOf(type: string): {
    readonly definition: TypeDefinition | undefined;
    readonly masks: ReadonlyMap<string, MaskKind>;
  } {
    return { definition: this.#writtenPaths().catalog.type(type), masks: this.#masksOf(type) };
  }

  #masksOf(type: string): ReadonlyMap<string, MaskKind> {
    const { judged, time } = this.#description;
    return grantedTypes(this.#core, this.#writtenPaths(), { ...judged, action: 'query' }, time).typeNamed(type).grant.masked;
  }

  #writtenPaths(): AccessPaths {
    const { log, projections } = this.#core.parts;
    const { branch, path } = this.#description.caller;
    return openOf(this.#description.request)?.paths() ?? projections.snapshot(log.basis(), branch, tenantOf(path));
  }

  /** Types that a command writes to, and those of the edges that its rows may have. */
  #typesWritten(command: Command): readonly string[] {
    const types = partsOf(command).flatMap((part) => typeNamed(part) ?? []);
    if (!partsOf(command).some(writesRows)) return types;
    const { projections } = this.#core.parts;
    const { branch, path } = this.#description.caller;
    const branchFork = projections.branches.idOf(branch, tenantOf(path));
    if (branchFork === undefined) return types;
    const catalog = projections.catalog.catalogOn(branchFork, tenantOf(path));
    const linkTypes = types.flatMap((type) => catalog.type(type)?.graphTriggers.map(({ linkType }) => linkType) ?? []);
    return [...types, ...linkTypes, ...sourceTypes(types, catalog)];
  }

  /** Policies are asked about the type of the row that it is about, which the command does not name. */
  #checkKeptRow(command: Command): void {
    const { path } = this.#description.caller;
    const releasedRule = rowToRelease(command, this.#core.parts.projections.retention, { path, fork: this.#admission.fork });
    if (releasedRule !== null) this.#authoriseWrite({ action: actionOf[command.kind], objectType: releasedRule.type });
  }

  #authoriseWrite(writeAbout: About): void {
    this.#core.judge.authorise(this.#description.judged, writeAbout);
  }

  /** The subject of a command that is about neither a type nor the store. */
  #policySubjectOf(command: Command): Pick<PolicyRequest, 'token' | 'branch' | 'registry'> {
    const registry = registryPart(command, this.#core.parts.projections.tenants);
    return { ...this.#tokenOfCommand(command), ...this.#endedBranchOf(command), ...(registry && { registry }) };
  }

  #tokenOfCommand(command: Command): { token?: TokenRecord } {
    if (command.kind !== 'rotate-token' && command.kind !== 'revoke-token') return {};
    const token = this.#core.tokens.token(command.id);
    return token === undefined ? {} : { token };
  }

  #endedBranchOf(command: Command): { branch?: BranchRecord } {
    if (command.kind !== 'delete-branch') return {};
    const branch = this.#core.parts.projections.branches.branch(command.name, tenantOf(this.#description.caller.path));
    return branch === undefined ? {} : { branch };
  }

  /** As many tenants as the licence allows, whatever the command says; keys of this tenant, not of an earlier one of its id. */
  #completeCommand(command: Command): Command {
    if (command.kind === 'create-tenant') return { ...command, tenantsMax: this.#core.parts.licence.tenantsMax };
    if (command.kind === 'evolve-type') return { ...command, mayTakeBack: administers(this.#description.caller) };
    if (command.kind === 'migrate-types') {
      const mayTakeBack = administers(this.#description.caller);
      return { ...command, steps: command.steps.map((step) => (step.kind === 'evolve-type' ? { ...step, mayTakeBack } : step)) };
    }
    if (command.kind === 'put-rule') return { ...command, author: authorOf(this.#description.caller) };
    if (command.kind === 'put-job') return { ...command, owner: authorOf(this.#description.caller) };
    if (command.kind === 'link-exhibit') return { ...command, stored: this.#core.parts.textSeals.seal(command.recipe) };
    if (command.kind !== 'put-rows' || command.receipt === undefined) return command;
    return onceFrom(beginningOf(this.#core.parts.projections.tenants, this.#description.caller), command);
  }

  #writeContext(): EntryContext {
    const { caller, purpose } = this.#description;
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

function commandBytesOf(command: Command): number {
  let commandBytes = 0;
  for (const part of partsOf(command)) if (part.kind === 'put-rows') commandBytes += bytesOfRows(part.rows);
  return commandBytes;
}

/** In rows: each of long texts counts for several. */
function rowWeightOf({ rows }: PutRows): number {
  return rows.length + Math.floor(bytesOfRows(rows) / bytesOfLongRow);
}

function authorOf({ credential, tokenId }: Caller): Omit<RuleAuthor, 'principal'> {
  return { credential, token: tokenId };
}

function ignoreResult(): void {}

/** Commands that are refused where the store is full. */
const storingCommands: ReadonlySet<Command['kind']> = new Set(['put-rows', 'link-exhibit', 'judge-identities']);

/** Made at once where a transaction asks for them, and not undone with it. */
const untransactedCommands: ReadonlySet<Command['kind']> = new Set(['register-type', 'evolve-type', 'create-view', 'drop-view']);

/** Rows that a transaction chose stand as it saw them: that was looked at for all of it, and its own writes are none of another's. */
function withoutCondition(command: WaitingCommand): WaitingCommand {
  if (command.kind === 'batch')
    return { ...command, steps: command.steps.map((step) => withoutCondition(step) as PutRows | DeleteRows) };
  return typeof command.when === 'object' ? { ...command, when: 'present' } : command;
}

/** As many as a record has room for; of the others, one digest. */
function firstStatements(statements: readonly StatementDetails[]): readonly StatementDetails[] {
  if (statements.length <= recordedStatementsMax) return statements;
  const otherStatements = statements.slice(recordedStatementsMax - 1);
  const otherLiterals = otherStatements.flatMap((each) => [each.template ?? '', ...(each.literals ?? [])]);
  return [
    ...statements.slice(0, recordedStatementsMax - 1),
    { template: `${otherStatements.length} more statements`, literals: otherLiterals },
  ];
}

const recordedStatementsMax = 256;

/** The result of a transaction at its commit. */
interface SettledTransaction {
  readonly outcome: Decision['outcome'];
  readonly drafts: readonly EntryDraft[];
}

/** Rows of a conflict that are remembered. */
const conflictingRowsMax = 16;
/** Rows of a transaction that are looked at or decided within a turn. */
const decidedRowsPerTurn = 1_024;
/** So many bytes of text take as long as a row. */
const bytesOfLongRow = 4_096;
/** For each time that all of it is decided in turns, how long a row may take. */
const decidingNsPerRow = [10_000, 40_000, 160_000] as const;

/** Adds up the outcomes of all steps of a commit. */
function sumOutcomes(steps: readonly Decision['outcome'][], next: NextPosition, positions: number): Decision['outcome'] {
  const hasChanged = positions > 0;
  return {
    kind: 'batch',
    accepted: steps.reduce((sum, { accepted }) => sum + accepted, 0),
    rejected: 0,
    errors: [],
    ids: [],
    idsTruncated: false,
    systemFrom: hasChanged ? next.time : 0n,
    systemFromLast: hasChanged ? next.time + BigInt(positions - 1) : 0n,
    changed: hasChanged,
    steps,
  };
}

/**
 * One invocation, from admission to its access record. Every question and every write passes the same steps in the same order:
 *
 *   snapshot   running? -> branch -> standing -> purpose -> quota ------------> policy ---------> pin the basis -> govern
 *   submit     running? -> branch -> standing -> purpose -> quota, storage cap -> policy, egress, guards -> decide -> append -> apply
 *              '---------------------------------------- one turn, no await ----------------------------------------------'
 *              -> wait for the acknowledgement
 *   audit      running? -> branch -> standing -> purpose -> quota ------------> policy ---------> reader of the caller's scope
 *
 * The steps up to quota stand in `admission/admission.ts`, those of a write from there on in `governed-writes.ts`, those of
 * whatever else is handed out in `invocation-desks.ts`.
 * Invariant: nothing is read or written before admission, nor after the invocation was closed.
 */
import { ServiceError } from '../errors.ts';
import type { AccessRecord } from '../log/entries/entry.ts';
import { tenantOf } from '../log/values/value.ts';
import type { AccessPaths, AuditReader } from '../projections/access-paths.ts';
import type { Command, Outcome, PutRows } from '../projections/command.ts';
import type { RowCheck } from '../projections/decision.ts';
import type { HeldRow } from '../projections/retention/holds.ts';
import type { RetentionRule } from '../projections/retention/projection.ts';
import { accessRecord, type Ending, type InvocationFacts } from './access-records/access-record.ts';
import { Admission, foreign } from './admission/admission.ts';
import type { Caller } from './caller.ts';
import { InvocationDescription, type RecordedAct } from './access-records/invocation-description.ts';
import type { PolicyDeskContract, TenantDeskContract } from './desk-contract.ts';
import { explainPolicy } from './reading/explain-policy.ts';
import type {
  BranchView,
  ExhibitDesk,
  GovernedSnapshot,
  Invocation,
  InvocationDetails,
  InvocationRequest,
  PolicyExplanation,
  ProofReader,
  SubmitOptions,
  TokenView,
  Transaction,
} from './gate-contract.ts';
import type { Core } from './gate-core.ts';
import { GovernedWrites } from './writing/governed-writes.ts';
import { grantedSnapshot } from './reading/governed-snapshot.ts';
import { InvocationDesks } from './desks/invocation-desks.ts';
import { type BodyDesk, LargeBodies } from './writing/large-bodies.ts';
import { openOf } from './transactions/transaction.ts';
import { rowCheck } from './writing/write-checks.ts';

export class GatedInvocation implements Invocation {
  readonly caller: Caller;
  readonly correlationId: string;
  readonly #gateCore: Core;
  readonly #startedMs: number;
  readonly #description: InvocationDescription;
  readonly #admission: Admission;
  /** Made for who needs them: most invocations are one question. */
  #governedWrites: GovernedWrites | null = null;
  #invocationDesks: InvocationDesks | null = null;
  #largeBodies: LargeBodies | null = null;
  /** To run once its slot is given back. */
  #whenEndedTasks: (() => void)[] | null = null;
  #hasEnded = false;

  constructor(core: Core, caller: Caller, request: InvocationRequest) {
    this.caller = caller;
    this.correlationId = request.correlationId;
    this.#gateCore = core;
    this.#description = new InvocationDescription(caller, request, core.parts.clock.now());
    this.#startedMs = core.parts.clock.monotonicMs();
    this.#admission = new Admission(core, this.#description);
  }

  get transaction(): Transaction | null {
    return this.#description.request.transaction ?? null;
  }

  describe(facts: InvocationDetails): void {
    this.#description.describe(facts);
  }

  /** See `Admission.enter`. */
  enter(): Promise<void> | null {
    return this.#admission.enter();
  }

  snapshot(use: 'read' | 'describe' = 'read'): GovernedSnapshot {
    const description = this.#description;
    this.#admission.admit(use === 'read' ? 'one' : 'none');
    this.#gateCore.judge.authorise(description.judged, { action: description.action, objectType: null });
    return grantedSnapshot(this.#gateCore, this.#accessPaths(), description.judged, description.time);
  }

  /** The paths of now, or of the transaction that it is in. */
  #accessPaths(): AccessPaths {
    const transaction = openOf(this.#description.request);
    if (transaction !== undefined) {
      transaction.enter(this.caller);
      const transactionPaths = transaction.paths();
      this.#description.basis = transaction.basis!.instant;
      return transactionPaths;
    }
    const { log, projections } = this.#gateCore.parts;
    const basis = log.basis();
    this.#description.basis = basis.instant;
    return projections.snapshot(basis, this.caller.branch, tenantOf(this.caller.path));
  }

  submit(command: Command, options: SubmitOptions = {}): Promise<Outcome> {
    return this.#writes.submit(command, options);
  }

  commit(options: Pick<SubmitOptions, 'sync'> = {}): Promise<Outcome | null> {
    return this.#writes.commit(options);
  }

  retryConflicts<T>(about: string, attempt: () => Promise<T>): Promise<T> {
    // A transaction's reads are fixed: another attempt would meet the same conflict.
    if (this.#description.request.transaction !== undefined) return attempt();
    const { contention, parts } = this.#gateCore;
    const { path, branch } = this.caller;
    const untilMs = this.#startedMs + parts.settings.SERVICE_QUERY_TIMEOUT_SECS * 1000;
    const { gone } = this.#description.request;
    return contention.retryConflicts(
      {
        tenant: tenantOf(path),
        about: JSON.stringify([path, branch, about]),
        gone,
        untilMs,
        pause: () => this.#admission.pause(),
        resume: () => this.#admission.resume(),
        whenEnded: (run) => this.#whenEnded(run),
      },
      attempt,
    );
  }

  rehearse(command: PutRows, unknown: ReadonlySet<string>): Promise<Pick<Outcome, 'errors'>> {
    return this.#writes.rehearse(command, unknown);
  }

  audit(): AuditReader {
    return this.#desks.audit();
  }

  proofs(): ProofReader {
    return this.#desks.proofs();
  }

  bodies(): BodyDesk {
    const { bodies } = this.#gateCore.parts;
    if (bodies === undefined) throw new ServiceError('REL_NOT_IMPLEMENTED', 'this store has no storage for large bodies');
    const { path } = this.caller;
    const { storage } = this.#gateCore;
    return (this.#largeBodies ??= new LargeBodies(bodies, path, {
      begin: (type, size, madeOf) => this.#admitLargeBody(type, size, madeOf === 'parts'),
      goOn: () => storage.admitWrite(),
    }));
  }

  /** As a row of the type, which is to name it. */
  #admitLargeBody(objectType: string, size: number, isCounted: boolean): () => void {
    const { storage, tenantStorage, judge, parts, term } = this.#gateCore;
    this.#admission.admit();
    if (this.caller.sharedFrom !== null) throw foreign();
    term.admit('put-rows', this.#description.time);
    judge.authorise(this.#description.judged, { action: 'ingest', objectType });
    const tenant = tenantOf(this.caller.path);
    if (!isCounted) storage.admitWrite(size);
    if (tenant === null || isCounted) return () => undefined;
    tenantStorage.admitWrite(tenant, size, parts.clock.monotonicMs());
    return once(() => tenantStorage.giveBack(tenant, size));
  }

  exhibits(): ExhibitDesk {
    return this.#desks.exhibits();
  }

  branches(): readonly BranchView[] {
    return this.#desks.branches();
  }

  tokens(): readonly TokenView[] {
    return this.#desks.tokens();
  }

  tenants(): TenantDeskContract {
    return this.#desks.tenants();
  }

  policies(): PolicyDeskContract {
    return this.#desks.policies();
  }

  retentionOf(type: string, key: string): readonly RetentionRule[] {
    this.#admission.admit();
    this.#gateCore.judge.authorise(this.#description.judged, { action: 'remove', objectType: type });
    const { branch, path } = this.caller;
    const retentionRules = this.#gateCore.parts.projections.retentionRulesOf(branch, type, path, key);
    if (retentionRules === undefined) throw new ServiceError('REL_NOT_FOUND', 'no such row');
    return retentionRules;
  }

  heldRows(type: string, action: 'delete' | 'remove'): readonly HeldRow[] {
    const { judge, parts } = this.#gateCore;
    const { judged, time } = this.#description;
    this.#admission.admit();
    judge.authorise(judged, { action, objectType: type });
    const versionsChecked = action === 'delete' ? 'open' : 'all';
    const refusedRows = {
      check: rowCheck(judge, judged, action, time),
      versions: versionsChecked,
      at: parts.log.next(),
    } as const;
    return parts.projections.heldRows(type, this.caller, refusedRows);
  }

  deletable(type: string): GovernedSnapshot {
    const description = this.#description;
    this.#admission.admit();
    this.#gateCore.judge.authorise(description.judged, { action: 'delete', objectType: type });
    return grantedSnapshot(
      this.#gateCore,
      this.#accessPaths(),
      { ...description.judged, action: 'delete' },
      description.time,
      'delete',
    );
  }

  checkInspects(): void {
    this.#admission.admit();
    this.#gateCore.judge.authorise(this.#description.judged, { action: 'inspect', objectType: null });
  }

  erasing(): RowCheck | undefined {
    const { judge } = this.#gateCore;
    this.#admission.admit();
    judge.authorise(this.#description.judged, { action: 'erase', objectType: null });
    return rowCheck(judge, this.#description.judged, 'erase', this.#description.time);
  }

  explainPolicy(objectType: string | null, asOf?: number | bigint): PolicyExplanation {
    this.#admission.checkThere();
    return explainPolicy(this.#gateCore, this.#description.judged, objectType, asOf);
  }

  /** Ends the invocation for its holder: nothing can be read or written through it any more. Null when nothing is under way. */
  close(): Promise<unknown> | null {
    this.#admission.close();
    const writesEnded = this.#governedWrites?.whenEnded() ?? null;
    const endRunning = (): Promise<unknown> | null => {
      this.#admission.leave();
      this.#hasEnded = true;
      for (const run of this.#whenEndedTasks?.splice(0) ?? []) run();
      return this.#largeBodies?.end(this.wrote) ?? null;
    };
    return writesEnded === null ? endRunning() : writesEnded.then(endRunning);
  }

  /** Whether it appended anything, acknowledged or not. */
  get wrote(): boolean {
    return this.#governedWrites?.wrote ?? false;
  }

  /** The access record of what was done, and of the call that asked for it. */
  records(ending: Ending<unknown>): readonly AccessRecord[] {
    const { parts, digest } = this.#gateCore;
    const description = this.#description;
    const { statements = [], recalled = null } = description.facts;
    const { breakGlass, accessScopeRef } = description.judged;
    const nowMs = parts.clock.monotonicMs();
    const digestOf = (recordedLiterals: readonly string[] | undefined): string | null =>
      recordedLiterals === undefined || recordedLiterals.length === 0 ? null : digest.digestOf(recordedLiterals);
    const recordOf = (
      recordedAct: RecordedAct,
      recordDetails: Pick<InvocationFacts, 'statements' | 'recalled' | 'costUnits'>,
    ): AccessRecord =>
      accessRecord({
        caller: this.caller,
        action: recordedAct.action,
        correlationId: this.correlationId,
        time: description.time,
        purpose: description.purpose,
        objectType: recordedAct.objectType,
        breakGlass,
        accessScopeRef,
        template: recordedAct.template,
        literalDigest: digestOf(recordedAct.literals),
        basis: description.basis,
        rowCount: recordedAct.rowCount,
        costUnits: recordDetails.costUnits,
        durationMs: nowMs - this.#startedMs,
        statements: recordDetails.statements,
        recalled: recordDetails.recalled,
        ending,
      });
    const ownRecord = recordOf(description.recordedAct, {
      statements: statements.map((each) => ({
        template: each.template ?? null,
        literalDigest: digestOf(each.literals),
        objectType: each.objectType ?? null,
        rowCount: each.rowCount ?? 0,
      })),
      recalled,
      costUnits: this.#admission.settle(nowMs),
    });
    const { recordedCall } = description;
    if (recordedCall === null) return [ownRecord];
    return [ownRecord, recordOf(recordedCall, { statements: [], recalled: null, costUnits: 0 })];
  }

  #whenEnded(run: () => void): void {
    if (this.#hasEnded) run();
    else (this.#whenEndedTasks ??= []).push(run);
  }

  get #writes(): GovernedWrites {
    return (this.#governedWrites ??= new GovernedWrites(this.#gateCore, this.#description, this.#admission, this));
  }

  get #desks(): InvocationDesks {
    return (this.#invocationDesks ??= new InvocationDesks(this.#gateCore, this.#description, this.#admission));
  }
}

function once(run: () => void): () => void {
  let isDone = false;
  return () => {
    if (!isDone) run();
    isDone = true;
  };
}

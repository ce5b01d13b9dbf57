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
  readonly #core: Core;
  readonly #startedMs: number;
  readonly #asked: InvocationDescription;
  readonly #admission: Admission;
  /** Made for who needs them: most invocations are one question. */
  #writesMade: GovernedWrites | null = null;
  #desksMade: InvocationDesks | null = null;
  #bodiesMade: LargeBodies | null = null;
  /** To run once its slot is given back. */
  #waiting: (() => void)[] | null = null;
  #isOver = false;

  constructor(core: Core, caller: Caller, request: InvocationRequest) {
    this.caller = caller;
    this.correlationId = request.correlationId;
    this.#core = core;
    this.#asked = new InvocationDescription(caller, request, core.parts.clock.now());
    this.#startedMs = core.parts.clock.monotonicMs();
    this.#admission = new Admission(core, this.#asked);
  }

  get transaction(): Transaction | null {
    return this.#asked.request.transaction ?? null;
  }

  describe(facts: InvocationDetails): void {
    this.#asked.describe(facts);
  }

  /** See `Admission.enter`. */
  enter(): Promise<void> | null {
    return this.#admission.enter();
  }

  snapshot(use: 'read' | 'describe' = 'read'): GovernedSnapshot {
    const asked = this.#asked;
    this.#admission.admit(use === 'read' ? 'one' : 'none');
    this.#core.judge.authorise(asked.judged, { action: asked.action, objectType: null });
    return grantedSnapshot(this.#core, this.#paths(), asked.judged, asked.time);
  }

  /** The paths of now, or of the transaction that it is in. */
  #paths(): AccessPaths {
    const transaction = openOf(this.#asked.request);
    if (transaction !== undefined) {
      transaction.enter(this.caller);
      const paths = transaction.paths();
      this.#asked.basis = transaction.basis!.instant;
      return paths;
    }
    const { log, projections } = this.#core.parts;
    const basis = log.basis();
    this.#asked.basis = basis.instant;
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
    if (this.#asked.request.transaction !== undefined) return attempt();
    const { contention, parts } = this.#core;
    const { path, branch } = this.caller;
    const untilMs = this.#startedMs + parts.settings.SERVICE_QUERY_TIMEOUT_SECS * 1000;
    const { gone } = this.#asked.request;
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
    const { bodies } = this.#core.parts;
    if (bodies === undefined) throw new ServiceError('REL_NOT_IMPLEMENTED', 'this store has no storage for large bodies');
    const { path } = this.caller;
    const { storage } = this.#core;
    return (this.#bodiesMade ??= new LargeBodies(bodies, path, {
      begin: (type, size, madeOf) => this.#admitBody(type, size, madeOf === 'parts'),
      goOn: () => storage.admitWrite(),
    }));
  }

  /** As a row of the type, which is to name it. */
  #admitBody(objectType: string, size: number, isCounted: boolean): () => void {
    const { storage, tenantStorage, judge, parts, term } = this.#core;
    this.#admission.admit();
    if (this.caller.sharedFrom !== null) throw foreign();
    term.admit('put-rows', this.#asked.time);
    judge.authorise(this.#asked.judged, { action: 'ingest', objectType });
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
    this.#core.judge.authorise(this.#asked.judged, { action: 'remove', objectType: type });
    const { branch, path } = this.caller;
    const retentionRules = this.#core.parts.projections.keptOf(branch, type, path, key);
    if (retentionRules === undefined) throw new ServiceError('REL_NOT_FOUND', 'no such row');
    return retentionRules;
  }

  heldRows(type: string, action: 'delete' | 'remove'): readonly HeldRow[] {
    const { judge, parts } = this.#core;
    const { judged, time } = this.#asked;
    this.#admission.admit();
    judge.authorise(judged, { action, objectType: type });
    const versions = action === 'delete' ? 'open' : 'all';
    const refused = { check: rowCheck(judge, judged, action, time), versions, at: parts.log.next() } as const;
    return parts.projections.heldRows(type, this.caller, refused);
  }

  deletable(type: string): GovernedSnapshot {
    const asked = this.#asked;
    this.#admission.admit();
    this.#core.judge.authorise(asked.judged, { action: 'delete', objectType: type });
    return grantedSnapshot(this.#core, this.#paths(), { ...asked.judged, action: 'delete' }, asked.time, 'delete');
  }

  checkInspects(): void {
    this.#admission.admit();
    this.#core.judge.authorise(this.#asked.judged, { action: 'inspect', objectType: null });
  }

  erasing(): RowCheck | undefined {
    const { judge } = this.#core;
    this.#admission.admit();
    judge.authorise(this.#asked.judged, { action: 'erase', objectType: null });
    return rowCheck(judge, this.#asked.judged, 'erase', this.#asked.time);
  }

  explainPolicy(objectType: string | null, asOf?: number | bigint): PolicyExplanation {
    this.#admission.checkThere();
    return explainPolicy(this.#core, this.#asked.judged, objectType, asOf);
  }

  /** Ends the invocation for its holder: nothing can be read or written through it any more. Null when nothing is under way. */
  close(): Promise<unknown> | null {
    this.#admission.close();
    const writing = this.#writesMade?.whenEnded() ?? null;
    const endRunning = (): Promise<unknown> | null => {
      this.#admission.leave();
      this.#isOver = true;
      for (const run of this.#waiting?.splice(0) ?? []) run();
      return this.#bodiesMade?.end(this.wrote) ?? null;
    };
    return writing === null ? endRunning() : writing.then(endRunning);
  }

  /** Whether it appended anything, acknowledged or not. */
  get wrote(): boolean {
    return this.#writesMade?.wrote ?? false;
  }

  /** The access record of what was done, and of the call that asked for it. */
  records(ending: Ending<unknown>): readonly AccessRecord[] {
    const { parts, digest } = this.#core;
    const asked = this.#asked;
    const { statements = [], recalled = null } = asked.facts;
    const { breakGlass, accessScopeRef } = asked.judged;
    const nowMs = parts.clock.monotonicMs();
    const digestOf = (of: readonly string[] | undefined): string | null =>
      of === undefined || of.length === 0 ? null : digest.digestOf(of);
    const recordOf = (act: RecordedAct, beside: Pick<InvocationFacts, 'statements' | 'recalled' | 'costUnits'>): AccessRecord =>
      accessRecord({
        caller: this.caller,
        action: act.action,
        correlationId: this.correlationId,
        time: asked.time,
        purpose: asked.purpose,
        objectType: act.objectType,
        breakGlass,
        accessScopeRef,
        template: act.template,
        literalDigest: digestOf(act.literals),
        basis: asked.basis,
        rowCount: act.rowCount,
        costUnits: beside.costUnits,
        durationMs: nowMs - this.#startedMs,
        statements: beside.statements,
        recalled: beside.recalled,
        ending,
      });
    const own = recordOf(asked.recordedAct, {
      statements: statements.map((each) => ({
        template: each.template ?? null,
        literalDigest: digestOf(each.literals),
        objectType: each.objectType ?? null,
        rowCount: each.rowCount ?? 0,
      })),
      recalled,
      costUnits: this.#admission.settle(nowMs),
    });
    const { recordedCall } = asked;
    if (recordedCall === null) return [own];
    return [own, recordOf(recordedCall, { statements: [], recalled: null, costUnits: 0 })];
  }

  #whenEnded(run: () => void): void {
    if (this.#isOver) run();
    else (this.#waiting ??= []).push(run);
  }

  get #writes(): GovernedWrites {
    return (this.#writesMade ??= new GovernedWrites(this.#core, this.#asked, this.#admission, this));
  }

  get #desks(): InvocationDesks {
    return (this.#desksMade ??= new InvocationDesks(this.#core, this.#asked, this.#admission));
  }
}

function once(run: () => void): () => void {
  let isDone = false;
  return () => {
    if (!isDone) run();
    isDone = true;
  };
}

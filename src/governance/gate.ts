/**
 * The only way in: every read and every write is one invocation (`gated-invocation.ts` draws its steps), and
 *
 *   invoke     run it -> settle what is still being written -> append its access record -> answer
 *
 * Invariant: however an invocation ends, exactly one access record of it is appended before its promise settles, and where it
 * serves a tool call one of the call beside it; when that fails, the answer is withheld.
 */
import { ServiceError } from '../errors.ts';
import { tenantOf } from '../log/values/value.ts';
import { encodeRun } from '../projections/jobs/codec.ts';
import type { RunRecord } from '../projections/jobs/job.ts';
import type { Ending } from './access-records/access-record.ts';
import { IngestBacklog } from './admission/ingest-backlog.ts';
import { QuerySlots } from './admission/query-slots.ts';
import { Quota } from './admission/quota.ts';
import { TenantStorage } from './admission/tenant-storage.ts';
import { AccessRecordWriter, LiteralDigest, mayBeWritten } from './access-records/access-record-writer.ts';
import { TokenRegistry } from './authentication/token-registry.ts';
import { Grants } from './authorization/grants.ts';
import { Judge } from './authorization/judge.ts';
import { MaskHash } from './authorization/mask-renderings.ts';
import { RowConditionBits } from './authorization/row-condition-bits.ts';
import { absentDoor, type Caller } from './caller.ts';
import { Committer } from './writing/committer.ts';
import { ConflictRetry } from './transactions/conflict-retry.ts';
import { ConflictQueue } from './transactions/conflict-queue.ts';
import type { GateContract, Invocation, InvocationRequest, PolicyDraft, Transaction, WriteScope } from './gate-contract.ts';
import type { Core, GateDependencies } from './gate-core.ts';
import { GatedInvocation } from './gated-invocation.ts';
import { ScopeCache } from './reading/path-scopes.ts';
import { LicenceTerm, StorageCap } from './tenancy/licence.ts';
import { multiTenancyRules } from './tenancy/multi-tenancy.ts';
import { checkTenantStatus } from './tenancy/tenant-status.ts';
import { branchesToMeasure, measureHeld } from './tenancy/tenant-usage.ts';
import { rehearsalCore } from './policy-rehearsal.ts';
import { openOf } from './transactions/transaction.ts';
import { transactionBounds, Transactions } from './transactions/transactions.ts';
import { WriteNotices } from './writing/write-notices.ts';

export class Gate implements GateContract {
  readonly #accessRecords: AccessRecordWriter;
  readonly #gateCore: Core;
  readonly #openTransactions: Transactions;
  #isDraining = false;
  #activeInvocations = 0;
  #onGateIdle: (() => void)[] = [];

  constructor(parts: GateDependencies) {
    const { log, projections, settings } = parts;
    const committer = new Committer(log, (entry) => projections.apply(entry));
    const defer = parts.defer ?? ((task) => void setImmediate(task));
    this.#accessRecords = new AccessRecordWriter((drafts) => committer.commit(drafts), defer);
    const { policies, branches, catalog, tenants } = projections;
    const conflictQueue = new ConflictQueue(parts.clock);
    this.#openTransactions = new Transactions({
      state: projections,
      basis: () => log.basis(),
      clock: parts.clock,
      ids: parts.ids,
      line: conflictQueue,
      waitMsMax: settings.SERVICE_QUERY_TIMEOUT_SECS * 1000,
      bounds: { ...transactionBounds, ...parts.transactions },
    });
    const tenancyRules = settings.SERVICE_TENANCY_MODE === 'multi' ? multiTenancyRules(tenants) : [];
    const policyJudge = new Judge({ policies, branches, catalog, clock: parts.clock, rules: tenancyRules });
    this.#gateCore = {
      parts,
      committer,
      turn: () => new Promise(defer),
      writes: new WriteNotices(defer, (branch, tenant) => parts.projections.branches.idOf(branch, tenant)),
      reading: { scopes: new ScopeCache(), bits: new RowConditionBits(), hash: new MaskHash(parts.digestKey) },
      digest: new LiteralDigest(parts.digestKey),
      storage: new StorageCap(parts.licence, () => log.status().bytes + (parts.bodies?.blobs.bytes ?? 0), parts.warn),
      tenantStorage: new TenantStorage({
        bytesMaxOf: (tenant) => tenants.tenant(tenant)?.record.quota.storageBytes,
        measure: (tenant) =>
          measureHeld(branchesToMeasure(projections, log.basis(), tenant), tenant).storedBytes +
          (parts.bodies?.blobs.bytesOf(tenant) ?? 0),
        warn: parts.warn,
      }),
      term: new LicenceTerm(parts.licence, parts.warn),
      tokens: new TokenRegistry(projections.directory),
      judge: policyJudge,
      grants: new Grants(policyJudge.policies, tenants),
      purposes: { mode: settings.SERVICE_PURPOSE_MODE, registered: settings.SERVICE_PURPOSES },
      quota: new Quota(
        {
          unitsMax: settings.SERVICE_QUERY_QUOTA,
          periodMs: settings.SERVICE_QUERY_QUOTA_PERIOD_SECS * 1000,
          inFlightMax: settings.SERVICE_MAX_INFLIGHT_QUERIES,
        },
        (tenant) => tenants.tenant(tenant)?.record.quota,
      ),
      slots: new QuerySlots(
        {
          runningMax: settings.SERVICE_MAX_RUNNING_QUERIES,
          waitingMax: settings.SERVICE_QUERY_QUEUE_MAX,
          waitMsMax: settings.SERVICE_QUERY_TIMEOUT_SECS * 1000,
        },
        parts.clock,
      ),
      backlog: new IngestBacklog(settings.SERVICE_INGEST_QUEUE_MB * 2 ** 20),
      contention: new ConflictRetry(conflictQueue, () => parts.log.acknowledged),
    };
  }

  invoke<T>(caller: Caller, request: InvocationRequest, run: (invocation: Invocation) => Promise<T>): Promise<T> {
    return this.#invokeGated(this.#gateCore, caller, request, run);
  }

  rehearsal(draft: PolicyDraft): Pick<GateContract, 'invoke'> {
    const core = rehearsalCore(this.#gateCore, draft);
    return { invoke: (caller, request, run) => this.#invokeGated(core, caller, request, run) };
  }

  async #invokeGated<T>(
    core: Core,
    caller: Caller,
    request: InvocationRequest,
    run: (invocation: Invocation) => Promise<T>,
  ): Promise<T> {
    const invocation = new GatedInvocation(core, caller, request);
    this.#activeInvocations++;
    if (caller.door !== absentDoor) core.parts.onRequest?.();
    try {
      let invocationEnding: Ending<T>;
      try {
        // Before it takes a place: others may need it.
        const transactionTurn = openOf(request)?.waits(request.gone) ?? null;
        if (transactionTurn !== null) await transactionTurn;
        if (this.#isDraining) throw new ServiceError('REL_UNAVAILABLE', 'the service is draining');
        const admissionTurn = invocation.enter();
        if (admissionTurn !== null) await admissionTurn;
        invocationEnding = { answer: await run(invocation) };
      } catch (failure) {
        invocationEnding = { failure };
      }
      // Writes that it started and did not wait for are waited for: the record tells what they did.
      const writesEnded = invocation.close();
      if (writesEnded !== null) await writesEnded;
      await this.#recordInvocation(invocation, invocationEnding);
      if ('failure' in invocationEnding) throw invocationEnding.failure;
      return invocationEnding.answer;
    } finally {
      this.#activeInvocations--;
      if (this.#activeInvocations === 0) for (const wakeDrain of this.#onGateIdle.splice(0)) wakeDrain();
    }
  }

  /** No answer leaves unrecorded, except the log's own error for a write: that reveals no rows. */
  async #recordInvocation(invocation: GatedInvocation, ending: Ending<unknown>): Promise<void> {
    try {
      await this.#accessRecords.record(invocation.records(ending));
    } catch (unrecorded) {
      if ('failure' in ending && ending.failure instanceof ServiceError && ending.failure.kind === 'unavailable')
        throw ending.failure;
      throw invocation.wrote ? mayBeWritten(unrecorded) : unrecorded;
    }
  }

  begin(caller: Caller, after: Transaction | string | null = null): Transaction {
    const lastTransaction = typeof after === 'string' ? after : openOf({ transaction: after ?? undefined });
    return this.#openTransactions.begin(caller, lastTransaction);
  }

  transaction(id: string, caller: Caller): Transaction {
    return this.#openTransactions.find(id, caller);
  }

  transactions(caller?: Caller): readonly Transaction[] {
    return caller === undefined ? this.#openTransactions.all() : this.#openTransactions.shownTo(caller);
  }

  /** Ends transactions that were idle for too long: their pins are freed, even if no client uses them again. */
  endIdle(): void {
    this.#openTransactions.sweep();
  }

  checkStanding(caller: Caller): void {
    checkTenantStatus(this.#gateCore.parts.projections.tenants, caller);
  }

  onVisible(scope: WriteScope, listener: () => void): () => void {
    return this.#gateCore.writes.listen(scope, listener);
  }

  /**
   * Puts long work on record, in an entry of its path. While the store drains too, as the access records of what it waits for: their work is
   * waited for as well.
   */
  async recordWork(run: RunRecord, { path }: Pick<Caller, 'path'>): Promise<void> {
    const workContext = {
      branch: 'main',
      tenant: tenantOf(path),
      path,
      principal: 'annals',
      door: 'gate',
      purpose: null,
      correlationId: run.id,
      policyDigest: '',
    };
    const sealWorkText = (text: string): string => this.#gateCore.parts.textSeals.seal(text);
    await this.#gateCore.committer.commit([{ context: workContext, body: encodeRun(run, sealWorkText) }]).written;
  }

  /** Refuses new invocations and resolves when the running ones have ended, records included. */
  async drain(): Promise<void> {
    this.#isDraining = true;
    this.#gateCore.slots.close();
    if (this.#activeInvocations > 0) await new Promise<void>((resolve) => this.#onGateIdle.push(resolve));
  }
}

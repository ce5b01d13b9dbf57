/**
 * Advisory locks: numbers that sessions of one tenant agree to take one at a time. They protect nothing of the store. Invariants:
 * waiting sessions are served in the order of arrival, and the locks of a connection or a transaction are released when it ends.
 */
import { ServiceError } from '../../errors.ts';

export type LockMode = 'exclusive' | 'shared';

export interface LockName {
  readonly tenant: string | null;
  readonly key: string;
}

interface AdvisoryLock {
  /** How often each session holds it, by mode. */
  readonly holders: Map<object, Record<LockMode, number>>;
  readonly waiting: { readonly session: object; readonly mode: LockMode; readonly onTaken: () => void }[];
}

/** How many one tenant holds, each as often as it does, and waits for. */
export const advisoryLocksMax = 10_000;

interface TenantAdvisoryLocks {
  readonly byKey: Map<string, AdvisoryLock>;
  taken: number;
}

export class AdvisoryLocks {
  readonly #locksByTenant = new Map<string | null, TenantAdvisoryLocks>();
  /** The lock that a session waits for: one at most. */
  readonly #awaitedLocks = new Map<object, AdvisoryLock>();

  /** False where another session holds it. */
  tryTake(lockSession: object, { tenant, key }: LockName, lockMode: LockMode): boolean {
    const tenantLocks = this.#enterTenant(tenant);
    const advisoryLock = advisoryLockOf(tenantLocks, key);
    const isLockFree = mayTakeLock(advisoryLock, lockSession, lockMode);
    if (isLockFree) holdLock(advisoryLock, lockSession, lockMode);
    else this.#leaveTenant(tenant, tenantLocks);
    return isLockFree;
  }

  /** Resolves once it is taken. REL_CONFLICT where its holder waits, directly or through others, for this session. */
  async take(lockSession: object, { tenant, key }: LockName, lockMode: LockMode, sessionGone: AbortSignal): Promise<void> {
    const tenantLocks = this.#enterTenant(tenant);
    const advisoryLock = advisoryLockOf(tenantLocks, key);
    // A session that already holds the lock does not queue behind later ones.
    if (
      mayTakeLock(advisoryLock, lockSession, lockMode) &&
      (advisoryLock.waiting.length === 0 || advisoryLock.holders.has(lockSession))
    )
      return holdLock(advisoryLock, lockSession, lockMode);
    try {
      if (this.#isDeadlocked(advisoryLock, lockSession))
        throw new ServiceError('REL_CONFLICT', 'each of these sessions waits for an advisory lock that another of them holds', {
          reason: 'deadlock',
        });
      this.#awaitedLocks.set(lockSession, advisoryLock);
      await awaitLockTurn(advisoryLock, lockSession, lockMode, sessionGone);
    } catch (error) {
      serveWaitingSessions(advisoryLock);
      this.#leaveTenant(tenant, tenantLocks, key);
      throw error;
    } finally {
      this.#awaitedLocks.delete(lockSession);
    }
  }

  /** False where the session does not hold it. */
  free(lockSession: object, { tenant, key }: LockName, lockMode: LockMode): boolean {
    const tenantLocks = this.#locksByTenant.get(tenant);
    const advisoryLock = tenantLocks?.byKey.get(key);
    const heldModes = advisoryLock?.holders.get(lockSession);
    if (tenantLocks === undefined || advisoryLock === undefined || heldModes === undefined || heldModes[lockMode] === 0)
      return false;
    heldModes[lockMode]--;
    if (heldModes.exclusive + heldModes.shared === 0) advisoryLock.holders.delete(lockSession);
    serveWaitingSessions(advisoryLock);
    this.#leaveTenant(tenant, tenantLocks, key);
    return true;
  }

  /** Counts a lock that is taken or waited for. */
  #enterTenant(tenant: string | null): TenantAdvisoryLocks {
    let tenantLocks = this.#locksByTenant.get(tenant);
    if (tenantLocks === undefined) this.#locksByTenant.set(tenant, (tenantLocks = { byKey: new Map(), taken: 0 }));
    if (tenantLocks.taken >= advisoryLocksMax)
      throw new ServiceError('REL_TOO_LARGE', `${advisoryLocksMax} advisory locks are held or waited for: free some first`, {
        reason: 'transaction-full',
      });
    tenantLocks.taken++;
    return tenantLocks;
  }

  #leaveTenant(tenant: string | null, tenantLocks: TenantAdvisoryLocks, lockKey?: string): void {
    tenantLocks.taken--;
    const leftLock = lockKey === undefined ? undefined : tenantLocks.byKey.get(lockKey);
    if (leftLock?.holders.size === 0 && leftLock.waiting.length === 0) tenantLocks.byKey.delete(lockKey!);
    if (tenantLocks.taken === 0) this.#locksByTenant.delete(tenant);
  }

  /** Whether a holder of this lock waits, directly or through others, for a lock that the session holds. */
  #isDeadlocked(awaitedLock: AdvisoryLock, askingSession: object): boolean {
    const seenLocks = new Set<AdvisoryLock>();
    const locksToFollow = [awaitedLock];
    for (let followedLock = locksToFollow.pop(); followedLock !== undefined; followedLock = locksToFollow.pop()) {
      if (seenLocks.has(followedLock)) continue;
      seenLocks.add(followedLock);
      for (const lockHolder of followedLock.holders.keys()) {
        const holderAwaits = lockHolder === askingSession ? undefined : this.#awaitedLocks.get(lockHolder);
        if (holderAwaits?.holders.has(askingSession)) return true;
        if (holderAwaits) locksToFollow.push(holderAwaits);
      }
    }
    return false;
  }
}

function advisoryLockOf({ byKey: locksByKey }: TenantAdvisoryLocks, lockKey: string): AdvisoryLock {
  let advisoryLock = locksByKey.get(lockKey);
  if (advisoryLock === undefined) locksByKey.set(lockKey, (advisoryLock = { holders: new Map(), waiting: [] }));
  return advisoryLock;
}

function awaitLockTurn(advisoryLock: AdvisoryLock, session: object, lockMode: LockMode, sessionGone: AbortSignal): Promise<void> {
  return new Promise((lockTaken, lockRefused) => {
    const cancelWait = (): void => {
      const waitingIndex = advisoryLock.waiting.indexOf(waitingSession);
      if (waitingIndex < 0) return;
      advisoryLock.waiting.splice(waitingIndex, 1);
      lockRefused(new ServiceError('REL_CANCELLED', 'the statement was cancelled while it waited for an advisory lock'));
    };
    const waitingSession = {
      session,
      mode: lockMode,
      onTaken: () => {
        sessionGone.removeEventListener('abort', cancelWait);
        lockTaken();
      },
    };
    // A holder that needs the other mode goes before the waiting sessions.
    if (advisoryLock.holders.has(session)) advisoryLock.waiting.unshift(waitingSession);
    else advisoryLock.waiting.push(waitingSession);
    if (sessionGone.aborted) cancelWait();
    else sessionGone.addEventListener('abort', cancelWait, { once: true });
  });
}

function serveWaitingSessions(advisoryLock: AdvisoryLock): void {
  for (
    let waitingSession = advisoryLock.waiting[0];
    waitingSession !== undefined && mayTakeLock(advisoryLock, waitingSession.session, waitingSession.mode);
    waitingSession = advisoryLock.waiting[0]
  ) {
    advisoryLock.waiting.shift();
    holdLock(advisoryLock, waitingSession.session, waitingSession.mode);
    waitingSession.onTaken();
  }
}

function mayTakeLock({ holders: lockHolders }: AdvisoryLock, askingSession: object, lockMode: LockMode): boolean {
  for (const [otherHolder, { exclusive: exclusiveCount }] of lockHolders)
    if (otherHolder !== askingSession && (lockMode === 'exclusive' || exclusiveCount > 0)) return false;
  return true;
}

function holdLock({ holders: lockHolders }: AdvisoryLock, lockSession: object, lockMode: LockMode): void {
  let heldModes = lockHolders.get(lockSession);
  if (heldModes === undefined) lockHolders.set(lockSession, (heldModes = { exclusive: 0, shared: 0 }));
  heldModes[lockMode]++;
}

/** The locks of one connection: those of its session, and those of its open transaction. */
export class HeldLocks {
  readonly #advisoryLocks: AdvisoryLocks;
  readonly #sessionLocks: { readonly name: LockName; readonly mode: LockMode }[] = [];
  readonly #transactionLocks: { readonly name: LockName; readonly mode: LockMode }[] = [];

  constructor(advisoryLocks: AdvisoryLocks) {
    this.#advisoryLocks = advisoryLocks;
  }

  tryTake(lockName: LockName, lockMode: LockMode, ofTransaction: boolean): boolean {
    const isLockTaken = this.#advisoryLocks.tryTake(this, lockName, lockMode);
    if (isLockTaken) this.#noteTakenLock(lockName, lockMode, ofTransaction);
    return isLockTaken;
  }

  async take(lockName: LockName, lockMode: LockMode, ofTransaction: boolean, sessionGone: AbortSignal): Promise<void> {
    await this.#advisoryLocks.take(this, lockName, lockMode, sessionGone);
    this.#noteTakenLock(lockName, lockMode, ofTransaction);
  }

  /** False where the session does not hold it. */
  free(lockName: LockName, lockMode: LockMode): boolean {
    const heldIndex = this.#sessionLocks.findIndex(
      (heldLock) => heldLock.name.tenant === lockName.tenant && heldLock.name.key === lockName.key && heldLock.mode === lockMode,
    );
    if (heldIndex < 0) return false;
    this.#sessionLocks.splice(heldIndex, 1);
    return this.#advisoryLocks.free(this, lockName, lockMode);
  }

  freeAll(): void {
    for (const { name: lockName, mode: lockMode } of this.#sessionLocks.splice(0))
      this.#advisoryLocks.free(this, lockName, lockMode);
  }

  transactionEnds(): void {
    for (const { name: lockName, mode: lockMode } of this.#transactionLocks.splice(0))
      this.#advisoryLocks.free(this, lockName, lockMode);
  }

  end(): void {
    this.transactionEnds();
    this.freeAll();
  }

  #noteTakenLock(name: LockName, mode: LockMode, ofTransaction: boolean): void {
    (ofTransaction ? this.#transactionLocks : this.#sessionLocks).push({ name, mode });
  }
}

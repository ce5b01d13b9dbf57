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

interface Lock {
  /** How often each session holds it, by mode. */
  readonly holders: Map<object, Record<LockMode, number>>;
  readonly waiting: { readonly session: object; readonly mode: LockMode; readonly onTaken: () => void }[];
}

/** How many one tenant holds, each as often as it does, and waits for. */
export const advisoryLocksMax = 10_000;

interface TenantLocks {
  readonly byKey: Map<string, Lock>;
  taken: number;
}

export class AdvisoryLocks {
  readonly #tenants = new Map<string | null, TenantLocks>();
  /** The lock that a session waits for: one at most. */
  readonly #waitsFor = new Map<object, Lock>();

  /** False where another session holds it. */
  tryTake(session: object, { tenant, key }: LockName, mode: LockMode): boolean {
    const locks = this.#enter(tenant);
    const lock = lockOf(locks, key);
    const isFree = mayTake(lock, session, mode);
    if (isFree) hold(lock, session, mode);
    else this.#leave(tenant, locks);
    return isFree;
  }

  /** Resolves once it is taken. REL_CONFLICT where its holder waits, directly or through others, for this session. */
  async take(session: object, { tenant, key }: LockName, mode: LockMode, gone: AbortSignal): Promise<void> {
    const locks = this.#enter(tenant);
    const lock = lockOf(locks, key);
    // A session that already holds the lock does not queue behind later ones.
    if (mayTake(lock, session, mode) && (lock.waiting.length === 0 || lock.holders.has(session)))
      return hold(lock, session, mode);
    try {
      if (this.#isHeldUp(lock, session))
        throw new ServiceError('REL_CONFLICT', 'each of these sessions waits for an advisory lock that another of them holds', {
          reason: 'deadlock',
        });
      this.#waitsFor.set(session, lock);
      await turnOf(lock, session, mode, gone);
    } catch (error) {
      serve(lock);
      this.#leave(tenant, locks, key);
      throw error;
    } finally {
      this.#waitsFor.delete(session);
    }
  }

  /** False where the session does not hold it. */
  free(session: object, { tenant, key }: LockName, mode: LockMode): boolean {
    const locks = this.#tenants.get(tenant);
    const lock = locks?.byKey.get(key);
    const held = lock?.holders.get(session);
    if (locks === undefined || lock === undefined || held === undefined || held[mode] === 0) return false;
    held[mode]--;
    if (held.exclusive + held.shared === 0) lock.holders.delete(session);
    serve(lock);
    this.#leave(tenant, locks, key);
    return true;
  }

  /** Counts a lock that is taken or waited for. */
  #enter(tenant: string | null): TenantLocks {
    let locks = this.#tenants.get(tenant);
    if (locks === undefined) this.#tenants.set(tenant, (locks = { byKey: new Map(), taken: 0 }));
    if (locks.taken >= advisoryLocksMax)
      throw new ServiceError('REL_TOO_LARGE', `${advisoryLocksMax} advisory locks are held or waited for: free some first`, {
        reason: 'transaction-full',
      });
    locks.taken++;
    return locks;
  }

  #leave(tenant: string | null, locks: TenantLocks, key?: string): void {
    locks.taken--;
    const lock = key === undefined ? undefined : locks.byKey.get(key);
    if (lock?.holders.size === 0 && lock.waiting.length === 0) locks.byKey.delete(key!);
    if (locks.taken === 0) this.#tenants.delete(tenant);
  }

  /** Whether a holder of this lock waits, directly or through others, for a lock that the session holds. */
  #isHeldUp(lock: Lock, session: object): boolean {
    const seen = new Set<Lock>();
    const next = [lock];
    for (let each = next.pop(); each !== undefined; each = next.pop()) {
      if (seen.has(each)) continue;
      seen.add(each);
      for (const holder of each.holders.keys()) {
        const waitsFor = holder === session ? undefined : this.#waitsFor.get(holder);
        if (waitsFor?.holders.has(session)) return true;
        if (waitsFor) next.push(waitsFor);
      }
    }
    return false;
  }
}

function lockOf({ byKey }: TenantLocks, key: string): Lock {
  let lock = byKey.get(key);
  if (lock === undefined) byKey.set(key, (lock = { holders: new Map(), waiting: [] }));
  return lock;
}

function turnOf(lock: Lock, session: object, mode: LockMode, gone: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const cancelWait = (): void => {
      const at = lock.waiting.indexOf(one);
      if (at < 0) return;
      lock.waiting.splice(at, 1);
      reject(new ServiceError('REL_CANCELLED', 'the statement was cancelled while it waited for an advisory lock'));
    };
    const one = {
      session,
      mode,
      onTaken: () => {
        gone.removeEventListener('abort', cancelWait);
        resolve();
      },
    };
    // A holder that needs the other mode goes before the waiting sessions.
    if (lock.holders.has(session)) lock.waiting.unshift(one);
    else lock.waiting.push(one);
    if (gone.aborted) cancelWait();
    else gone.addEventListener('abort', cancelWait, { once: true });
  });
}

function serve(lock: Lock): void {
  for (let next = lock.waiting[0]; next !== undefined && mayTake(lock, next.session, next.mode); next = lock.waiting[0]) {
    lock.waiting.shift();
    hold(lock, next.session, next.mode);
    next.onTaken();
  }
}

function mayTake({ holders }: Lock, session: object, mode: LockMode): boolean {
  for (const [other, { exclusive }] of holders) if (other !== session && (mode === 'exclusive' || exclusive > 0)) return false;
  return true;
}

function hold({ holders }: Lock, session: object, mode: LockMode): void {
  let held = holders.get(session);
  if (held === undefined) holders.set(session, (held = { exclusive: 0, shared: 0 }));
  held[mode]++;
}

/** The locks of one connection: those of its session, and those of its open transaction. */
export class HeldLocks {
  readonly #locks: AdvisoryLocks;
  readonly #ofSession: { readonly name: LockName; readonly mode: LockMode }[] = [];
  readonly #ofTransaction: { readonly name: LockName; readonly mode: LockMode }[] = [];

  constructor(locks: AdvisoryLocks) {
    this.#locks = locks;
  }

  tryTake(name: LockName, mode: LockMode, ofTransaction: boolean): boolean {
    const isTaken = this.#locks.tryTake(this, name, mode);
    if (isTaken) this.#note(name, mode, ofTransaction);
    return isTaken;
  }

  async take(name: LockName, mode: LockMode, ofTransaction: boolean, gone: AbortSignal): Promise<void> {
    await this.#locks.take(this, name, mode, gone);
    this.#note(name, mode, ofTransaction);
  }

  /** False where the session does not hold it. */
  free(name: LockName, mode: LockMode): boolean {
    const at = this.#ofSession.findIndex(
      (each) => each.name.tenant === name.tenant && each.name.key === name.key && each.mode === mode,
    );
    if (at < 0) return false;
    this.#ofSession.splice(at, 1);
    return this.#locks.free(this, name, mode);
  }

  freeAll(): void {
    for (const { name, mode } of this.#ofSession.splice(0)) this.#locks.free(this, name, mode);
  }

  transactionEnds(): void {
    for (const { name, mode } of this.#ofTransaction.splice(0)) this.#locks.free(this, name, mode);
  }

  end(): void {
    this.transactionEnds();
    this.freeAll();
  }

  #note(name: LockName, mode: LockMode, ofTransaction: boolean): void {
    (ofTransaction ? this.#ofTransaction : this.#ofSession).push({ name, mode });
  }
}

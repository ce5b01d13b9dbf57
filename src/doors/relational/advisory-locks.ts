/**
 * Advisory locks: numbers that sessions of one tenant agree to take one at a time. They guard nothing of the store. What must hold: who
 * waits is served in the order of coming, and what a connection or a transaction took is free when it ends.
 */
import { ServiceError } from '../../errors.ts';

export type LockMode = 'exclusive' | 'shared';

interface Lock {
  /** How often each session holds it, by mode. */
  readonly holders: Map<object, Record<LockMode, number>>;
  readonly waiting: { readonly session: object; readonly mode: LockMode; readonly taken: () => void }[];
}

export const advisoryLocksMax = 10_000;

export class AdvisoryLocks {
  /** By tenant and key. */
  readonly #locks = new Map<string, Lock>();

  /** False where another session holds it. */
  tryTake(session: object, key: string, mode: LockMode): boolean {
    const lock = this.#lockOf(key);
    const isFree = mayTake(lock, session, mode);
    if (isFree) hold(lock, session, mode);
    else this.#forgetEmpty(key, lock);
    return isFree;
  }

  /** Resolves once it is taken. */
  async take(session: object, key: string, mode: LockMode, gone: AbortSignal): Promise<void> {
    const lock = this.#lockOf(key);
    // Who holds it already waits for nobody.
    if (mayTake(lock, session, mode) && (lock.waiting.length === 0 || lock.holders.has(session)))
      return hold(lock, session, mode);
    await new Promise<void>((resolve, reject) => {
      const ended = (): void => {
        const at = lock.waiting.indexOf(one);
        if (at < 0) return;
        lock.waiting.splice(at, 1);
        this.#serve(key, lock);
        reject(new ServiceError('REL_CANCELLED', 'the statement was cancelled while it waited for an advisory lock'));
      };
      const one = {
        session,
        mode,
        taken: () => {
          gone.removeEventListener('abort', ended);
          resolve();
        },
      };
      lock.waiting.push(one);
      if (gone.aborted) ended();
      else gone.addEventListener('abort', ended, { once: true });
    });
  }

  /** False where the session does not hold it. */
  free(session: object, key: string, mode: LockMode): boolean {
    const lock = this.#locks.get(key);
    const held = lock?.holders.get(session);
    if (lock === undefined || held === undefined || held[mode] === 0) return false;
    held[mode]--;
    if (held.exclusive + held.shared === 0) lock.holders.delete(session);
    this.#serve(key, lock);
    return true;
  }

  #lockOf(key: string): Lock {
    let lock = this.#locks.get(key);
    if (lock !== undefined) return lock;
    if (this.#locks.size >= advisoryLocksMax)
      throw new ServiceError('REL_TOO_LARGE', `${advisoryLocksMax} advisory locks are held: free some first`, {
        reason: 'transaction-full',
      });
    this.#locks.set(key, (lock = { holders: new Map(), waiting: [] }));
    return lock;
  }

  #serve(key: string, lock: Lock): void {
    for (let next = lock.waiting[0]; next !== undefined && mayTake(lock, next.session, next.mode); next = lock.waiting[0]) {
      lock.waiting.shift();
      hold(lock, next.session, next.mode);
      next.taken();
    }
    this.#forgetEmpty(key, lock);
  }

  #forgetEmpty(key: string, lock: Lock): void {
    if (lock.holders.size === 0 && lock.waiting.length === 0) this.#locks.delete(key);
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

/** What one connection holds: of its session, and of the transaction that is open. */
export class HeldLocks {
  readonly #locks: AdvisoryLocks;
  readonly #ofSession: { readonly key: string; readonly mode: LockMode }[] = [];
  readonly #ofTransaction: { readonly key: string; readonly mode: LockMode }[] = [];

  constructor(locks: AdvisoryLocks) {
    this.#locks = locks;
  }

  tryTake(key: string, mode: LockMode, ofTransaction: boolean): boolean {
    const isTaken = this.#locks.tryTake(this, key, mode);
    if (isTaken) this.#note(key, mode, ofTransaction);
    return isTaken;
  }

  async take(key: string, mode: LockMode, ofTransaction: boolean, gone: AbortSignal): Promise<void> {
    await this.#locks.take(this, key, mode, gone);
    this.#note(key, mode, ofTransaction);
  }

  /** False where the session does not hold it. */
  free(key: string, mode: LockMode): boolean {
    const at = this.#ofSession.findIndex((each) => each.key === key && each.mode === mode);
    if (at < 0) return false;
    this.#ofSession.splice(at, 1);
    return this.#locks.free(this, key, mode);
  }

  freeAll(): void {
    for (const { key, mode } of this.#ofSession.splice(0)) this.#locks.free(this, key, mode);
  }

  transactionEnds(): void {
    for (const { key, mode } of this.#ofTransaction.splice(0)) this.#locks.free(this, key, mode);
  }

  end(): void {
    this.transactionEnds();
    this.freeAll();
  }

  #note(key: string, mode: LockMode, ofTransaction: boolean): void {
    (ofTransaction ? this.#ofTransaction : this.#ofSession).push({ key, mode });
  }
}

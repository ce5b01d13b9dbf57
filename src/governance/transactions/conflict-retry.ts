/**
 * Work that reads and then writes, decided again when a row that it read was written meanwhile. After such a conflict an attempt stands
 * in the line (`conflict-queue.ts`) for its subject, and so do newcomers while somebody stands there: the head then competes only with
 * blind writes. Invariant: no attempt decides more often than `retriesMax`, nor after its deadline.
 */
import { ServiceError } from '../../errors.ts';
import { SlotsTaken } from '../admission/quota.ts';
import { QueueTicket, type Waiter, type ConflictQueue } from './conflict-queue.ts';

export interface Contender extends Waiter {
  readonly tenant: string | null;
  /** The subject that contenders of one line have in common. */
  readonly about: string;
  /** Gives back what others may need while it waits, and takes it again. */
  readonly pause: () => void;
  readonly resume: () => Promise<void>;
  /** Runs it once the contender holds no slot any more. */
  readonly whenEnded: (run: () => void) => void;
}

const retriesMax = 16;

/** Read again, it may go through. */
export function isStale(error: unknown): boolean {
  return error instanceof ServiceError && error.code === 'REL_CONFLICT' && error.facts.stale === true;
}

export class ConflictRetry {
  readonly #conflictQueue: ConflictQueue;
  readonly #whenAcknowledged: () => Promise<unknown>;
  /** How many decide about the same, or wait to, or have decided and still hold their slot. */
  readonly #attemptsByKey = new Map<string, number>();

  /** `acknowledged` resolves once all that was written so far shows. */
  constructor(line: ConflictQueue, acknowledged: () => Promise<unknown>) {
    this.#conflictQueue = line;
    this.#whenAcknowledged = acknowledged;
  }

  /** `attempt` reads, and throws what `isStale` where that was written since; nothing of it is done then. */
  async retryConflicts<T>(contender: Contender, attempt: () => Promise<T>): Promise<T> {
    const { about, tenant } = contender;
    const conflictKeys = new Set([about]);
    const attemptsByKey = this.#attemptsByKey;
    attemptsByKey.set(about, (attemptsByKey.get(about) ?? 0) + 1);
    contender.whenEnded(() => {
      const remainingAttempts = attemptsByKey.get(about)! - 1;
      if (remainingAttempts === 0) attemptsByKey.delete(about);
      else attemptsByKey.set(about, remainingAttempts);
    });
    let conflict: unknown = null;
    if (!this.#conflictQueue.hasTickets(tenant, conflictKeys)) {
      try {
        return await attempt();
      } catch (error) {
        // Where others decide about the same, a slot comes free as the line goes on.
        if (!isStale(error) && !(error instanceof SlotsTaken && attemptsByKey.get(about)! > 1)) throw error;
        conflict = error;
      }
    }
    return await this.#retryInQueue(contender, conflictKeys, conflict, attempt);
  }

  /** `conflict`: what it met before it came; null: nothing yet. */
  async #retryInQueue<T>(
    contender: Contender,
    conflictKeys: ReadonlySet<string>,
    conflict: unknown,
    attempt: () => Promise<T>,
  ): Promise<T> {
    const { clock } = this.#conflictQueue;
    let ticket = await this.#standInQueue(contender, conflictKeys);
    try {
      for (let retryCount = 1, fullCount = 0, lastConflict = conflict; ; ) {
        if (lastConflict !== null && this.#isContenderOver(contender)) throw lastConflict;
        try {
          await contender.resume();
          return await attempt();
        } catch (error) {
          const isFull = error instanceof SlotsTaken;
          if (!isFull && !isStale(error)) throw error;
          lastConflict = error;
          if ((!isFull && retryCount++ >= retriesMax) || this.#isContenderOver(contender)) throw error;
          if (isFull) await clock.sleep(2 ** Math.min(fullCount++, 6), contender.gone);
          // A write becomes visible once it is acknowledged.
          else await this.#whenAcknowledged();
        }
        // After a refusal of its slot it holds none that it could give back.
        if (lastConflict instanceof SlotsTaken || !ticket.isLost) continue;
        ticket.leave();
        ticket = await this.#standInQueue(contender, conflictKeys);
      }
    } finally {
      ticket.leave();
    }
  }

  /** At the end of the line, until nobody is before it. */
  async #standInQueue(contender: Contender, conflictKeys: ReadonlySet<string>): Promise<QueueTicket> {
    contender.pause();
    const ticket = new QueueTicket(this.#conflictQueue, contender.tenant, conflictKeys);
    const ticketTurn = ticket.enter(contender);
    if (ticketTurn !== null) await ticketTurn;
    return ticket;
  }

  #isContenderOver({ gone, untilMs }: Contender): boolean {
    return gone?.aborted === true || this.#conflictQueue.clock.monotonicMs() >= untilMs;
  }
}

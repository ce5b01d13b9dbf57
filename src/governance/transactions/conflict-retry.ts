/**
 * Work that reads and then writes, decided again when a row that it read was written meanwhile. After such a conflict an attempt stands
 * in the line (`conflict-queue.ts`) for its subject, and so do newcomers while somebody stands there: the head then competes only with
 * blind writes. Invariant: no attempt decides more often than `triesMax`, nor after its deadline.
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

const triesMax = 16;

/** Read again, it may go through. */
export function isStale(error: unknown): boolean {
  return error instanceof ServiceError && error.code === 'REL_CONFLICT' && error.facts.stale === true;
}

export class ConflictRetry {
  readonly #line: ConflictQueue;
  readonly #whenAcknowledged: () => Promise<unknown>;
  /** How many decide about the same, or wait to, or have decided and still hold their slot. */
  readonly #inside = new Map<string, number>();

  /** `acknowledged` resolves once all that was written so far shows. */
  constructor(line: ConflictQueue, acknowledged: () => Promise<unknown>) {
    this.#line = line;
    this.#whenAcknowledged = acknowledged;
  }

  /** `attempt` reads, and throws what `isStale` where that was written since; nothing of it is done then. */
  async retryConflicts<T>(contender: Contender, attempt: () => Promise<T>): Promise<T> {
    const { about, tenant } = contender;
    const keys = new Set([about]);
    const inside = this.#inside;
    inside.set(about, (inside.get(about) ?? 0) + 1);
    contender.whenEnded(() => {
      const left = inside.get(about)! - 1;
      if (left === 0) inside.delete(about);
      else inside.set(about, left);
    });
    let conflict: unknown = null;
    if (!this.#line.hasPlaces(tenant, keys)) {
      try {
        return await attempt();
      } catch (error) {
        // Where others decide about the same, a slot comes free as the line goes on.
        if (!isStale(error) && !(error instanceof SlotsTaken && inside.get(about)! > 1)) throw error;
        conflict = error;
      }
    }
    return await this.#inLine(contender, keys, conflict, attempt);
  }

  /** `conflict`: what it met before it came; null: nothing yet. */
  async #inLine<T>(contender: Contender, keys: ReadonlySet<string>, conflict: unknown, attempt: () => Promise<T>): Promise<T> {
    const { clock } = this.#line;
    let ticket = await this.#standIn(contender, keys);
    try {
      for (let tries = 1, full = 0, last = conflict; ; ) {
        if (last !== null && this.#isOver(contender)) throw last;
        try {
          await contender.resume();
          return await attempt();
        } catch (error) {
          const isFull = error instanceof SlotsTaken;
          if (!isFull && !isStale(error)) throw error;
          last = error;
          if ((!isFull && tries++ >= triesMax) || this.#isOver(contender)) throw error;
          if (isFull) await clock.sleep(2 ** Math.min(full++, 6), contender.gone);
          // A write becomes visible once it is acknowledged.
          else await this.#whenAcknowledged();
        }
        // After a refusal of its slot it holds none that it could give back.
        if (last instanceof SlotsTaken || !ticket.isLost) continue;
        ticket.leave();
        ticket = await this.#standIn(contender, keys);
      }
    } finally {
      ticket.leave();
    }
  }

  /** At the end of the line, until nobody is before it. */
  async #standIn(contender: Contender, keys: ReadonlySet<string>): Promise<QueueTicket> {
    contender.pause();
    const ticket = new QueueTicket(this.#line, contender.tenant, keys);
    const waits = ticket.enter(contender);
    if (waits !== null) await waits;
    return ticket;
  }

  #isOver({ gone, untilMs }: Contender): boolean {
    return gone?.aborted === true || this.#line.clock.monotonicMs() >= untilMs;
  }
}

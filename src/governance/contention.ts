/**
 * Work that reads and then writes, decided again when a row that it read was written meanwhile. After such a conflict an attempt
 * waits in a line for its subject, and so do newcomers while there is a line: the head then competes only with blind writes.
 * Invariants: a line moves on however its head ends; no attempt decides more often than `triesMax`, nor after its deadline.
 */
import { ServiceError } from '../errors.ts';
import type { Clock } from '../clock.ts';
import { SlotsTaken } from './admission/quota.ts';

export interface Contender {
  /** The subject that contenders of one line have in common. */
  readonly about: string;
  /** Its caller is gone. */
  readonly gone: AbortSignal | undefined;
  /** On the monotonic clock. */
  readonly untilMs: number;
  /** Gives back what others may need while it waits, and takes it again. */
  readonly pause: () => void;
  readonly resume: () => Promise<void>;
}

const triesMax = 16;

/** Read again, it may go through. */
export function isStale(error: unknown): boolean {
  return error instanceof ServiceError && error.code === 'REL_CONFLICT' && error.facts.stale === true;
}

interface Line {
  /** Attempts that are deciding, or wait to. */
  inside: number;
  /** When the last one of the line has left it; null: there is none. */
  last: Promise<void> | null;
}

export class Contention {
  readonly #clock: Pick<Clock, 'sleep' | 'monotonicMs'>;
  readonly #acknowledged: () => Promise<unknown>;
  readonly #lines = new Map<string, Line>();

  /** `acknowledged` resolves once all that was written so far shows. */
  constructor(clock: Pick<Clock, 'sleep' | 'monotonicMs'>, acknowledged: () => Promise<unknown>) {
    this.#clock = clock;
    this.#acknowledged = acknowledged;
  }

  /** `attempt` reads, and throws what `isStale` where that was written since; nothing of it is done then. */
  async retryConflicts<T>(contender: Contender, attempt: () => Promise<T>): Promise<T> {
    const { about } = contender;
    let line = this.#lines.get(about);
    if (line === undefined) this.#lines.set(about, (line = { inside: 0, last: null }));
    line.inside++;
    try {
      let conflict: unknown = null;
      if (line.last === null) {
        try {
          return await attempt();
        } catch (error) {
          // Where others decide about the same, a slot comes free as the line goes on.
          if (!isStale(error) && !(error instanceof SlotsTaken && line.inside > 1)) throw error;
          conflict = error;
        }
      }
      return await this.#inLine(line, contender, async () => {
        if (conflict !== null && this.#isOver(contender)) throw conflict;
        await contender.resume();
        return attempt();
      });
    } finally {
      if (--line.inside === 0) this.#lines.delete(about);
    }
  }

  async #inLine<T>(line: Line, contender: Contender, attempt: () => Promise<T>): Promise<T> {
    contender.pause();
    const before = line.last;
    let leave = (): void => undefined;
    const left = new Promise<void>((resolve) => (leave = resolve));
    line.last = left;
    if (before !== null) await before;
    try {
      for (let tries = 1, full = 0; ; ) {
        try {
          return await attempt();
        } catch (error) {
          const isFull = error instanceof SlotsTaken;
          if (!isFull && !isStale(error)) throw error;
          if (tries >= triesMax || this.#isOver(contender)) throw error;
          if (isFull) await this.#clock.sleep(2 ** Math.min(full++, 6), contender.gone);
          else {
            tries++;
            // A write becomes visible once it is acknowledged.
            await this.#acknowledged();
          }
        }
      }
    } finally {
      if (line.last === left) line.last = null;
      leave();
    }
  }

  #isOver({ gone, untilMs }: Contender): boolean {
    return gone?.aborted === true || this.#clock.monotonicMs() >= untilMs;
  }
}

/**
 * Slots for running queries, and the lines in front of them. The whole store runs a bounded number of queries at once; without a
 * free slot a query waits in one of three lines:
 *
 *   interactive -> background -> low        a line that is full passes newcomers on to the next, the last refuses them
 *
 * Invariants: while slots are free, one is taken in the calling turn, without a promise; a freed slot goes to a waiting query,
 * and within a line to the oldest; no line starves: of sixteen freed slots, background has the first claim to three and low to
 * one. A query leaves its line when its caller goes away, when it waits too long, or when the store drains.
 */
import type { Clock } from '../../clock.ts';
import { ServiceError } from '../../errors.ts';
import type { Caller } from '../caller.ts';
import type { Action } from '../gate-contract.ts';

/** From the one that is served first to the one that is served last. */
export const priorities = ['interactive', 'background', 'low'] as const;
export type Priority = (typeof priorities)[number];

export interface PlaceLimits {
  /** Queries that run at once. */
  readonly runningMax: number;
  /** Queries in one line. */
  readonly waitingMax: number;
  readonly waitMsMax: number;
}

interface Waiter {
  readonly admit: () => void;
  readonly refuse: (error: ServiceError) => void;
}

/**
 * Exports, deliveries of standing queries and renewed views can wait for queries with a user in front of them; the token
 * attribute `priority` can put its holder further back, never further ahead.
 */
export function priorityOf(action: Action, continues: boolean, { attributes }: Pick<Caller, 'attributes'>): Priority {
  const ofAction = continues || action === 'export' ? 1 : 0;
  const ofToken = priorities.findIndex((known) => known === attributes['priority']);
  return priorities[Math.max(ofAction, ofToken)]!;
}

export class QuerySlots {
  readonly #limits: PlaceLimits;
  readonly #clock: Pick<Clock, 'sleep'>;
  readonly #lines: readonly Waiter[][] = priorities.map(() => []);
  #running = 0;
  /** Places that went from one query straight to another. */
  #handed = 0;
  #closed = false;

  constructor(limits: PlaceLimits, clock: Pick<Clock, 'sleep'>) {
    this.#limits = limits;
    this.#clock = clock;
  }

  /** Takes a place where one is free, which none is while anybody waits. Every place taken is given back by one `leave`. */
  take(): boolean {
    if (this.#running >= this.#limits.runningMax) return false;
    this.#running++;
    return true;
  }

  /**
   * Resolves with a place. Rejects with REL_QUEUE_FULL when no line has room, REL_CANCELLED when `gone` aborts first,
   * REL_TIMEOUT when it takes too long and REL_UNAVAILABLE in a drain: then there is nothing to give back.
   */
  async wait(priority: Priority, gone?: AbortSignal): Promise<void> {
    if (this.#closed) throw draining();
    if (gone?.aborted) throw cancelledError();
    const line = this.#lines.slice(priorities.indexOf(priority)).find(({ length }) => length < this.#limits.waitingMax);
    if (line === undefined) {
      throw new ServiceError('REL_QUEUE_FULL', 'too many queries are running and waiting; retry later', {
        retryAfterSecs: 1,
      });
    }
    const timeout = new AbortController();
    const leave = (error: ServiceError): void => {
      line.splice(line.indexOf(waiter), 1);
      waiter.refuse(error);
    };
    const onGone = (): void => leave(cancelledError());
    let waiter!: Waiter;
    const slotPromise = new Promise<void>((resolve, reject) => {
      waiter = { admit: resolve, refuse: reject };
    }).finally(() => {
      timeout.abort();
      gone?.removeEventListener('abort', onGone);
    });
    line.push(waiter);
    gone?.addEventListener('abort', onGone, { once: true });
    void this.#clock.sleep(this.#limits.waitMsMax, timeout.signal).then(() => {
      if (line.includes(waiter)) leave(new ServiceError('REL_TIMEOUT', 'the query waited too long for its turn to run'));
    });
    await slotPromise;
  }

  leave(): void {
    const next = this.#next();
    if (next === undefined) this.#running--;
    else next.admit();
  }

  /** Refuses all waiting queries, and every later one that would have to wait. */
  close(): void {
    this.#closed = true;
    for (const line of this.#lines) for (const waiter of line.splice(0)) waiter.refuse(draining());
  }

  get running(): number {
    return this.#running;
  }

  /** Length of each line. */
  get waiting(): Readonly<Record<Priority, number>> {
    const [interactive, background, low] = this.#lines.map(({ length }) => length);
    return { interactive: interactive!, background: background!, low: low! };
  }

  #next(): Waiter | undefined {
    if (this.#lines.every(({ length }) => length === 0)) return undefined;
    const turn = this.#handed++ % 16;
    const claim = turn === 15 ? 2 : turn % 5 === 4 ? 1 : 0;
    const line = this.#lines[claim]!.length > 0 ? this.#lines[claim] : this.#lines.find(({ length }) => length > 0);
    return line!.shift();
  }
}

const draining = (): ServiceError => new ServiceError('REL_UNAVAILABLE', 'the service is draining');
const cancelledError = (): ServiceError =>
  new ServiceError('REL_CANCELLED', 'the caller went away while the query waited to run');

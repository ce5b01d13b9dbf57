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

export interface SlotLimits {
  /** Queries that run at once. */
  readonly runningMax: number;
  /** Queries in one line. */
  readonly waitingMax: number;
  readonly waitMsMax: number;
}

interface SlotWaiter {
  readonly admit: () => void;
  readonly refuse: (error: ServiceError) => void;
}

/**
 * Exports, deliveries of standing queries and renewed views can wait for queries with a user in front of them; the token
 * attribute `priority` can put its holder further back, never further ahead.
 */
export function priorityOf(action: Action, continues: boolean, { attributes }: Pick<Caller, 'attributes'>): Priority {
  const actionPriority = continues || action === 'export' ? 1 : 0;
  const tokenPriority = priorities.findIndex((known) => known === attributes['priority']);
  return priorities[Math.max(actionPriority, tokenPriority)]!;
}

export class QuerySlots {
  readonly #slotLimits: SlotLimits;
  readonly #clock: Pick<Clock, 'sleep'>;
  readonly #waiterQueues: readonly SlotWaiter[][] = priorities.map(() => []);
  #runningQueries = 0;
  /** Places that went from one query straight to another. */
  #slotsHandedOn = 0;
  #isDraining = false;

  constructor(limits: SlotLimits, clock: Pick<Clock, 'sleep'>) {
    this.#slotLimits = limits;
    this.#clock = clock;
  }

  /** Takes a place where one is free, which none is while anybody waits. Every place taken is given back by one `leave`. */
  take(): boolean {
    if (this.#runningQueries >= this.#slotLimits.runningMax) return false;
    this.#runningQueries++;
    return true;
  }

  /**
   * Resolves with a place. Rejects with REL_QUEUE_FULL when no line has room, REL_CANCELLED when `gone` aborts first,
   * REL_TIMEOUT when it takes too long and REL_UNAVAILABLE in a drain: then there is nothing to give back.
   */
  async wait(priority: Priority, gone?: AbortSignal): Promise<void> {
    if (this.#isDraining) throw drainingError();
    if (gone?.aborted) throw cancelledError();
    const waiterQueue = this.#waiterQueues
      .slice(priorities.indexOf(priority))
      .find(({ length }) => length < this.#slotLimits.waitingMax);
    if (waiterQueue === undefined) {
      throw new ServiceError('REL_QUEUE_FULL', 'too many queries are running and waiting; retry later', {
        retryAfterSecs: 1,
      });
    }
    const timeout = new AbortController();
    const refuseWaiter = (error: ServiceError): void => {
      waiterQueue.splice(waiterQueue.indexOf(waiter), 1);
      waiter.refuse(error);
    };
    const onCallerGone = (): void => refuseWaiter(cancelledError());
    let waiter!: SlotWaiter;
    const slotPromise = new Promise<void>((resolve, reject) => {
      waiter = { admit: resolve, refuse: reject };
    }).finally(() => {
      timeout.abort();
      gone?.removeEventListener('abort', onCallerGone);
    });
    waiterQueue.push(waiter);
    gone?.addEventListener('abort', onCallerGone, { once: true });
    void this.#clock.sleep(this.#slotLimits.waitMsMax, timeout.signal).then(() => {
      if (waiterQueue.includes(waiter))
        refuseWaiter(new ServiceError('REL_TIMEOUT', 'the query waited too long for its turn to run'));
    });
    await slotPromise;
  }

  leave(): void {
    const nextWaiter = this.#nextWaiter();
    if (nextWaiter === undefined) this.#runningQueries--;
    else nextWaiter.admit();
  }

  /** Refuses all waiting queries, and every later one that would have to wait. */
  close(): void {
    this.#isDraining = true;
    for (const waiterQueue of this.#waiterQueues) for (const waiter of waiterQueue.splice(0)) waiter.refuse(drainingError());
  }

  get running(): number {
    return this.#runningQueries;
  }

  /** Length of each line. */
  get waiting(): Readonly<Record<Priority, number>> {
    const [interactive, background, low] = this.#waiterQueues.map(({ length }) => length);
    return { interactive: interactive!, background: background!, low: low! };
  }

  #nextWaiter(): SlotWaiter | undefined {
    if (this.#waiterQueues.every(({ length }) => length === 0)) return undefined;
    const slotTurn = this.#slotsHandedOn++ % 16;
    const favouredPriority = slotTurn === 15 ? 2 : slotTurn % 5 === 4 ? 1 : 0;
    const favouredQueue =
      this.#waiterQueues[favouredPriority]!.length > 0
        ? this.#waiterQueues[favouredPriority]
        : this.#waiterQueues.find(({ length }) => length > 0);
    return favouredQueue!.shift();
  }
}

const drainingError = (): ServiceError => new ServiceError('REL_UNAVAILABLE', 'the service is draining');
const cancelledError = (): ServiceError =>
  new ServiceError('REL_CANCELLED', 'the caller went away while the query waited to run');

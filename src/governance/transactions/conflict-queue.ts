/**
 * The one line of those who met a conflict: each stands in it for the keys of which it met one, behind those who came before it for one
 * of them. Transactions wait in it before their first statement, and statements outside of transactions before they are decided again.
 * Invariants: a waiter holds nothing, and gives up after its own deadline; a head that does not come back within
 * `headMsMax` loses its place, so that nobody waits longer for it; nobody else waits at all.
 */
import type { Clock } from '../../clock.ts';

export const headMsMax = 1_000;

type QueueClock = Pick<Clock, 'sleep' | 'monotonicMs'>;

export interface Waiter {
  /** Its caller is gone. */
  readonly gone: AbortSignal | undefined;
  /** When it gives up, on the monotonic clock. */
  readonly untilMs: number;
}

export class ConflictQueue {
  readonly clock: QueueClock;
  /** In order, those of each tenant. */
  readonly #tickets = new Map<string | null, QueueTicket[]>();

  constructor(clock: QueueClock) {
    this.clock = clock;
  }

  /** Whether somebody stands in it for one of these keys. */
  hasTickets(tenant: string | null, keys: ReadonlySet<string>): boolean {
    return this.ticketsOf(tenant).some((ticket) => ticket.isFor(keys));
  }

  ticketsOf(tenant: string | null): readonly QueueTicket[] {
    return this.#tickets.get(tenant) ?? [];
  }

  add(tenant: string | null, ticket: QueueTicket): void {
    const tickets = this.#tickets.get(tenant);
    if (tickets === undefined) this.#tickets.set(tenant, [ticket]);
    else tickets.push(ticket);
  }

  /** False where it does not stand there. */
  remove(tenant: string | null, ticket: QueueTicket): boolean {
    const tickets = this.#tickets.get(tenant);
    const ticketIndex = tickets?.indexOf(ticket) ?? -1;
    if (ticketIndex < 0) return false;
    tickets!.splice(ticketIndex, 1);
    if (tickets!.length === 0) this.#tickets.delete(tenant);
    return true;
  }
}

export class QueueTicket {
  readonly keys: ReadonlySet<string>;
  readonly #conflictQueue: ConflictQueue;
  readonly #tenant: string | null;
  readonly #hasLeft: Promise<void>;
  #resolveLeft: () => void = () => undefined;
  #hasEntered = false;
  /** When nobody was before it any more, or it had waited long enough. */
  #headSinceMs: number | null = null;
  #isContended = false;

  constructor(line: ConflictQueue, tenant: string | null, keys: ReadonlySet<string>) {
    this.keys = keys;
    this.#conflictQueue = line;
    this.#tenant = tenant;
    this.#hasLeft = new Promise((resolve) => (this.#resolveLeft = resolve));
  }

  /** Takes its place at the end of the line. Null where nobody is before it, or it has entered already. */
  enter(waiter: Waiter): Promise<void> | null {
    if (this.#hasEntered) return null;
    this.#hasEntered = true;
    this.#conflictQueue.add(this.#tenant, this);
    const ticketBefore = this.#ticketBefore();
    if (ticketBefore !== undefined) return this.#waitBehind(ticketBefore, waiter);
    this.#headSinceMs = this.#conflictQueue.clock.monotonicMs();
    return null;
  }

  /** Others wanted the same keys: whoever stood here had better stand in line again. */
  get isContended(): boolean {
    return this.#isContended;
  }

  /** It was at the head for too long: those behind it have gone on. */
  get isLost(): boolean {
    return this.#headSinceMs !== null && this.#conflictQueue.clock.monotonicMs() - this.#headSinceMs >= headMsMax;
  }

  isFor(conflictKeys: ReadonlySet<string>): boolean {
    for (const conflictKey of this.keys) if (conflictKeys.has(conflictKey)) return true;
    return false;
  }

  leave(): void {
    if (!this.#conflictQueue.remove(this.#tenant, this)) return;
    if (this.#conflictQueue.hasTickets(this.#tenant, this.keys)) this.#isContended = true;
    this.#resolveLeft();
  }

  async #waitBehind(firstAhead: QueueTicket, { gone, untilMs }: Waiter): Promise<void> {
    this.#isContended = true;
    const { clock } = this.#conflictQueue;
    for (let ticketAhead: QueueTicket | undefined = firstAhead; ticketAhead !== undefined; ticketAhead = this.#ticketBefore()) {
      const nowMs = clock.monotonicMs();
      if (gone?.aborted === true || nowMs >= untilMs) break;
      await ticketAhead.#leftOrTimeout(Math.min(untilMs, (ticketAhead.#headSinceMs ?? nowMs) + headMsMax) - nowMs, gone);
    }
    this.#headSinceMs = clock.monotonicMs();
  }

  async #leftOrTimeout(ms: number, gone: AbortSignal | undefined): Promise<void> {
    const sleepCancelled = new AbortController();
    const cancelSleep = (): void => sleepCancelled.abort();
    gone?.addEventListener('abort', cancelSleep);
    await Promise.race([this.#hasLeft, this.#conflictQueue.clock.sleep(ms, sleepCancelled.signal)]);
    gone?.removeEventListener('abort', cancelSleep);
    cancelSleep();
  }

  /** The nearest one that it has to wait for. */
  #ticketBefore(): QueueTicket | undefined {
    const tickets = this.#conflictQueue.ticketsOf(this.#tenant);
    for (let at = tickets.indexOf(this) - 1; at >= 0; at--) {
      const other = tickets[at]!;
      if (!other.isLost && other.isFor(this.keys)) return other;
    }
    return undefined;
  }
}

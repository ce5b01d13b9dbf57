/**
 * The one line of those who met a conflict: each stands in it for the keys of which it met one, behind those who came before it for one
 * of them. Transactions wait in it before their first statement, and statements outside of transactions before they are decided again.
 * Invariants: a waiter holds nothing, and gives up after its own deadline; a head that does not come back within
 * `headMsMax` loses its place, so that nobody waits longer for it; nobody else waits at all.
 */
import type { Clock } from '../../clock.ts';

export const headMsMax = 1_000;

type LineClock = Pick<Clock, 'sleep' | 'monotonicMs'>;

export interface Waiter {
  /** Its caller is gone. */
  readonly gone: AbortSignal | undefined;
  /** When it gives up, on the monotonic clock. */
  readonly untilMs: number;
}

export class ConflictQueue {
  readonly clock: LineClock;
  /** In order, those of each tenant. */
  readonly #tickets = new Map<string | null, QueueTicket[]>();

  constructor(clock: LineClock) {
    this.clock = clock;
  }

  /** Whether somebody stands in it for one of these keys. */
  hasPlaces(tenant: string | null, keys: ReadonlySet<string>): boolean {
    return this.placesOf(tenant).some((ticket) => ticket.isFor(keys));
  }

  placesOf(tenant: string | null): readonly QueueTicket[] {
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
    const index = tickets?.indexOf(ticket) ?? -1;
    if (index < 0) return false;
    tickets!.splice(index, 1);
    if (tickets!.length === 0) this.#tickets.delete(tenant);
    return true;
  }
}

export class QueueTicket {
  readonly keys: ReadonlySet<string>;
  readonly #line: ConflictQueue;
  readonly #tenant: string | null;
  readonly #left: Promise<void>;
  #leave: () => void = () => undefined;
  #hasEntered = false;
  /** When nobody was before it any more, or it had waited long enough. */
  #headMs: number | null = null;
  #isContended = false;

  constructor(line: ConflictQueue, tenant: string | null, keys: ReadonlySet<string>) {
    this.keys = keys;
    this.#line = line;
    this.#tenant = tenant;
    this.#left = new Promise((resolve) => (this.#leave = resolve));
  }

  /** Takes its place at the end of the line. Null where nobody is before it, or it has entered already. */
  enter(waiter: Waiter): Promise<void> | null {
    if (this.#hasEntered) return null;
    this.#hasEntered = true;
    this.#line.add(this.#tenant, this);
    const before = this.#ticketBefore();
    if (before !== undefined) return this.#wait(before, waiter);
    this.#headMs = this.#line.clock.monotonicMs();
    return null;
  }

  /** Others wanted the same keys: whoever stood here had better stand in line again. */
  get isContended(): boolean {
    return this.#isContended;
  }

  /** It was at the head for too long: those behind it have gone on. */
  get isLost(): boolean {
    return this.#headMs !== null && this.#line.clock.monotonicMs() - this.#headMs >= headMsMax;
  }

  isFor(keys: ReadonlySet<string>): boolean {
    for (const key of this.keys) if (keys.has(key)) return true;
    return false;
  }

  leave(): void {
    if (!this.#line.remove(this.#tenant, this)) return;
    if (this.#line.hasPlaces(this.#tenant, this.keys)) this.#isContended = true;
    this.#leave();
  }

  async #wait(first: QueueTicket, { gone, untilMs }: Waiter): Promise<void> {
    this.#isContended = true;
    const { clock } = this.#line;
    for (let before: QueueTicket | undefined = first; before !== undefined; before = this.#ticketBefore()) {
      const nowMs = clock.monotonicMs();
      if (gone?.aborted === true || nowMs >= untilMs) break;
      await before.#leftOr(Math.min(untilMs, (before.#headMs ?? nowMs) + headMsMax) - nowMs, gone);
    }
    this.#headMs = clock.monotonicMs();
  }

  async #leftOr(ms: number, gone: AbortSignal | undefined): Promise<void> {
    const called = new AbortController();
    const callOff = (): void => called.abort();
    gone?.addEventListener('abort', callOff);
    await Promise.race([this.#left, this.#line.clock.sleep(ms, called.signal)]);
    gone?.removeEventListener('abort', callOff);
    callOff();
  }

  /** The nearest one that it has to wait for. */
  #ticketBefore(): QueueTicket | undefined {
    const tickets = this.#line.placesOf(this.#tenant);
    for (let at = tickets.indexOf(this) - 1; at >= 0; at--) {
      const other = tickets[at]!;
      if (!other.isLost && other.isFor(this.keys)) return other;
    }
    return undefined;
  }
}

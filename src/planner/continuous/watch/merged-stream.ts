/**
 * Several subscriptions on one connection. Each is followed as if it were alone; events are sent in the order in which they come.
 * Invariant: the id of an event holds the cursor of each subscription at the time of writing, so a resumption misses nothing and
 * repeats nothing, however the events were mixed.
 */
import { ServiceError } from '../../../errors.ts';
import type { WatchClient } from './subscription.ts';
import type { WatchEvent } from './watch-events.ts';

/** Cursors of subscriptions, by the end of their ids. */
export type Cursors = ReadonlyMap<string, bigint>;

/** Digits that distinguish the subscriptions of one caller. */
const tagLength = 12;
const tagOf = (subscription: string): string => subscription.slice(-tagLength);

/** `<end of the subscription's id>-<instant, base 36>`, joined by dots. Throws REL_INVALID for another text. */
export function readCursors(id: string): Cursors {
  const cursorOf = new Map<string, bigint>();
  for (const part of id.split('.')) {
    const [, tag, digits] = /^([0-9a-f]{12})-([0-9a-z]{1,13})$/.exec(part) ?? [];
    if (tag === undefined) throw new ServiceError('REL_INVALID', 'Last-Event-ID is not the id of an event of this stream');
    let instant = 0n;
    for (const digit of digits!) instant = instant * 36n + BigInt(Number.parseInt(digit, 36));
    cursorOf.set(tag, instant);
  }
  return cursorOf;
}

export function cursorFor(cursors: Cursors, subscription: string): bigint | null {
  return cursors.get(tagOf(subscription)) ?? null;
}

export class MergedStream {
  readonly #client: WatchClient;
  readonly #over = new AbortController();
  readonly #cursors = new Map<string, bigint>();
  /** A controller for each followed subscription. */
  readonly #parts = new Map<string, AbortController>();
  #lastWrite: Promise<boolean> = Promise.resolve(true);

  constructor(client: WatchClient) {
    this.#client = client;
    const leave = (): void => this.#letGo();
    if (client.gone.aborted) leave();
    else client.gone.addEventListener('abort', leave, { once: true });
  }

  /** Aborts when the client has gone, or a subscription has ended the stream. */
  get over(): AbortSignal {
    return this.#over.signal;
  }

  /** Sets the cursor that a subscription had on an earlier stream. */
  knows(subscription: string, toldBefore: bigint | null): void {
    if (toldBefore !== null) this.#cursors.set(tagOf(subscription), toldBefore);
  }

  /** The end of the stream as one subscription has it. Its failure ends the stream, and leaves the others to a next one. */
  part(subscription: string): WatchClient {
    const ending = new AbortController();
    if (this.over.aborted) ending.abort();
    this.#parts.set(subscription, ending);
    return {
      renew: () => this.#client.renew(),
      gone: ending.signal,
      write: (events) => {
        this.#lastWrite = this.#lastWrite.then(() => this.#client.write(this.#withCursors(subscription, events)));
        return this.#lastWrite;
      },
      end: (last) => {
        this.#parts.delete(subscription);
        this.end(last);
      },
    };
  }

  end(last: WatchEvent | null): void {
    this.#client.end(last);
    this.#letGo();
  }

  #letGo(): void {
    this.#over.abort();
    for (const part of this.#parts.values()) part.abort();
  }

  #withCursors(subscription: string, events: readonly WatchEvent[]): readonly WatchEvent[] {
    const tag = tagOf(subscription);
    const others = [...this.#cursors]
      .filter(([other]) => other !== tag)
      .map(([other, instant]) => `${other}-${instant.toString(36)}`);
    return events.map((each) => {
      if (each.id === null) return each;
      const instant = BigInt(each.id);
      this.#cursors.set(tag, instant);
      return { event: each.event, id: [...others, `${tag}-${instant.toString(36)}`].join('.'), data: each.data };
    });
  }
}

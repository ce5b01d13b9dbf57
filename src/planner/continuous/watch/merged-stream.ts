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
const cursorTagLength = 12;
const cursorTagOf = (subscription: string): string => subscription.slice(-cursorTagLength);

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
  return cursors.get(cursorTagOf(subscription)) ?? null;
}

export class MergedStream {
  readonly #mergedClient: WatchClient;
  readonly #streamOver = new AbortController();
  readonly #cursors = new Map<string, bigint>();
  /** A controller for each followed subscription. */
  readonly #streamParts = new Map<string, AbortController>();
  #lastWrite: Promise<boolean> = Promise.resolve(true);

  constructor(mergedClient: WatchClient) {
    this.#mergedClient = mergedClient;
    const leaveMerged = (): void => this.#leaveStreams();
    if (mergedClient.gone.aborted) leaveMerged();
    else mergedClient.gone.addEventListener('abort', leaveMerged, { once: true });
  }

  /** Aborts when the client has gone, or a subscription has ended the stream. */
  get over(): AbortSignal {
    return this.#streamOver.signal;
  }

  /** Sets the cursor that a subscription had on an earlier stream. */
  knows(subscription: string, toldBefore: bigint | null): void {
    if (toldBefore !== null) this.#cursors.set(cursorTagOf(subscription), toldBefore);
  }

  /** The end of the stream as one subscription has it. Its failure ends the stream, and leaves the others to a next one. */
  part(subscription: string): WatchClient {
    const ending = new AbortController();
    if (this.over.aborted) ending.abort();
    this.#streamParts.set(subscription, ending);
    return {
      renew: () => this.#mergedClient.renew(),
      gone: ending.signal,
      write: (events) => {
        this.#lastWrite = this.#lastWrite.then(() => this.#mergedClient.write(this.#withMergedCursors(subscription, events)));
        return this.#lastWrite;
      },
      end: (last) => {
        this.#streamParts.delete(subscription);
        this.end(last);
      },
    };
  }

  end(lastEvent: WatchEvent | null): void {
    this.#mergedClient.end(lastEvent);
    this.#leaveStreams();
  }

  #leaveStreams(): void {
    this.#streamOver.abort();
    for (const streamPart of this.#streamParts.values()) streamPart.abort();
  }

  #withMergedCursors(subscription: string, events: readonly WatchEvent[]): readonly WatchEvent[] {
    const cursorTag = cursorTagOf(subscription);
    const otherCursors = [...this.#cursors]
      .filter(([otherTag]) => otherTag !== cursorTag)
      .map(([otherTag, eventInstant]) => `${otherTag}-${eventInstant.toString(36)}`);
    return events.map((watchEvent) => {
      if (watchEvent.id === null) return watchEvent;
      const eventInstant = BigInt(watchEvent.id);
      this.#cursors.set(cursorTag, eventInstant);
      return {
        event: watchEvent.event,
        id: [...otherCursors, `${cursorTag}-${eventInstant.toString(36)}`].join('.'),
        data: watchEvent.data,
      };
    });
  }
}

/**
 * Turns changes into the events of one subscription. Pure.
 *
 *   insert   a version matches, and none that matched was closed by it
 *   update   a version matches and closed one that did: `row` takes the place of `before`
 *   delete   a DELETE ended a row that matched; or a key was removed for good: then only its name is left, sent whether or
 *            not its row matched, which can't be known any more. Of an erased subject not even the name is left
 *            (`unnamed`): a client that holds rows of the path has to check which of them still exist
 *   leave    a version that does not match closed one that did
 *
 * Events come in order of system_from, and `id` is the system_from of the version. Where one version makes several events (it
 * closed more than one that matched), only the last carries the id: a client that resumes after it has had all of them. Applied to the rows
 * that matched at some instant, they yield the rows that match at any later one.
 */
import type { ChangeSet } from './change-set.ts';

export interface WatchEvent {
  readonly event: 'insert' | 'update' | 'delete' | 'leave' | 'heartbeat' | 'error';
  /** A client that has the event resumes after it; null: it is followed by one that has an id. */
  readonly id: string | null;
  /** One line of JSON. */
  readonly data: string;
}

/** `rows` is JSON text by system_from of those versions, come or closed, that match. */
export function eventsOf(
  subscription: string,
  changes: Pick<ChangeSet, 'versions' | 'removals'>,
  after: bigint,
  rows: ReadonlyMap<bigint, string>,
): readonly WatchEvent[] {
  const writer = new EventWriter(subscription);
  const removals = changes.removals.filter(({ instant }) => instant > after);
  let removal = 0;
  const removedBefore = (instant: bigint | null): void => {
    for (; removal < removals.length && (instant === null || removals[removal]!.instant < instant); removal++) {
      const { instant: system, keys, path, unnamed } = removals[removal]!;
      const where = `"namespace_path":${JSON.stringify(path)}`;
      if (unnamed) writer.add('delete', system, 'null', `{${where}}`, ',"removed":true,"unnamed":true');
      for (const key of keys) writer.add('delete', system, 'null', `{"_pk":${JSON.stringify(key)},${where}}`, ',"removed":true');
      writer.identify(system);
    }
  };
  for (const { systemFrom, isDelete, closed } of changes.versions) {
    if (systemFrom <= after) continue;
    removedBefore(systemFrom);
    const row = rows.get(systemFrom);
    const left = closed.map((instant) => rows.get(instant)).filter((before) => before !== undefined);
    const replaced = row === undefined ? undefined : left.shift();
    for (const before of left) writer.add(isDelete ? 'delete' : 'leave', systemFrom, 'null', before);
    if (row !== undefined) writer.add(replaced === undefined ? 'insert' : 'update', systemFrom, row, replaced);
    writer.identify(systemFrom);
  }
  removedBefore(null);
  return writer.events;
}

/** Rows that matched when the subscription began. They carry no id: a stream cut off among them is begun again. */
export function initialEvents(subscription: string, rows: Iterable<readonly [bigint, string]>): readonly WatchEvent[] {
  const writer = new EventWriter(subscription);
  for (const [systemFrom, row] of rows) writer.add('insert', systemFrom, row, undefined);
  return writer.events;
}

/** All changes up to this instant were sent: a stream can be resumed after it. */
export function heartbeat(subscription: string, instant: bigint): WatchEvent {
  const data = `{"subscription":${JSON.stringify(subscription)},"system_from":${instant}}`;
  return { event: 'heartbeat', id: String(instant), data };
}

/** Why a stream ends. `data` is one line of JSON. */
export const errorEvent = (data: string): WatchEvent => ({ event: 'error', id: null, data });

class EventWriter {
  readonly events: WatchEvent[] = [];
  readonly #prefix: string;
  #identified = 0;

  constructor(subscription: string) {
    this.#prefix = `"subscription":${JSON.stringify(subscription)}`;
  }

  add(event: WatchEvent['event'], systemFrom: bigint, row: string, before: string | undefined, rest = ''): void {
    const previous = before === undefined ? '' : `,"before":${before}`;
    this.events.push({ event, id: null, data: `{${this.#prefix},"system_from":${systemFrom},"row":${row}${previous}${rest}}` });
  }

  /** The last event since this was called before, if there is one, gets the id. */
  identify(systemFrom: bigint): void {
    const last = this.events.length - 1;
    if (last >= this.#identified) {
      const { event, data } = this.events[last]!;
      this.events[last] = { event, id: String(systemFrom), data };
    }
    this.#identified = this.events.length;
  }
}

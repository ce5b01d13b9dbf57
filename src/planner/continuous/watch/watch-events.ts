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
  const eventWriter = new WatchEventWriter(subscription);
  const newRemovals = changes.removals.filter(({ instant }) => instant > after);
  let removalOrdinal = 0;
  const writeRemovalsBefore = (instant: bigint | null): void => {
    for (
      ;
      removalOrdinal < newRemovals.length && (instant === null || newRemovals[removalOrdinal]!.instant < instant);
      removalOrdinal++
    ) {
      const { instant: system, keys, path, unnamed } = newRemovals[removalOrdinal]!;
      const removedPath = `"namespace_path":${JSON.stringify(path)}`;
      if (unnamed) eventWriter.add('delete', system, 'null', `{${removedPath}}`, ',"removed":true,"unnamed":true');
      for (const removedKey of keys)
        eventWriter.add('delete', system, 'null', `{"_pk":${JSON.stringify(removedKey)},${removedPath}}`, ',"removed":true');
      eventWriter.identify(system);
    }
  };
  for (const { systemFrom, isDelete, closed: closedInstants } of changes.versions) {
    if (systemFrom <= after) continue;
    writeRemovalsBefore(systemFrom);
    const newRow = rows.get(systemFrom);
    const leftRows = closedInstants.map((instant) => rows.get(instant)).filter((leftRow) => leftRow !== undefined);
    const replacedRow = newRow === undefined ? undefined : leftRows.shift();
    for (const before of leftRows) eventWriter.add(isDelete ? 'delete' : 'leave', systemFrom, 'null', before);
    if (newRow !== undefined) eventWriter.add(replacedRow === undefined ? 'insert' : 'update', systemFrom, newRow, replacedRow);
    eventWriter.identify(systemFrom);
  }
  writeRemovalsBefore(null);
  return eventWriter.events;
}

/** Rows that matched when the subscription began. They carry no id: a stream cut off among them is begun again. */
export function initialEvents(subscription: string, initialRows: Iterable<readonly [bigint, string]>): readonly WatchEvent[] {
  const eventWriter = new WatchEventWriter(subscription);
  for (const [systemFrom, initialRow] of initialRows) eventWriter.add('insert', systemFrom, initialRow, undefined);
  return eventWriter.events;
}

/** All changes up to this instant were sent: a stream can be resumed after it. */
export function heartbeat(subscription: string, instant: bigint): WatchEvent {
  const heartbeatData = `{"subscription":${JSON.stringify(subscription)},"system_from":${instant}}`;
  return { event: 'heartbeat', id: String(instant), data: heartbeatData };
}

/** Why a stream ends. `problemData` is one line of JSON. */
export const errorEvent = (problemData: string): WatchEvent => ({ event: 'error', id: null, data: problemData });

class WatchEventWriter {
  readonly events: WatchEvent[] = [];
  readonly #subscriptionPrefix: string;
  #identifiedCount = 0;

  constructor(subscription: string) {
    this.#subscriptionPrefix = `"subscription":${JSON.stringify(subscription)}`;
  }

  add(event: WatchEvent['event'], systemFrom: bigint, row: string, rowBefore: string | undefined, eventSuffix = ''): void {
    const previousRow = rowBefore === undefined ? '' : `,"before":${rowBefore}`;
    this.events.push({
      event,
      id: null,
      data: `{${this.#subscriptionPrefix},"system_from":${systemFrom},"row":${row}${previousRow}${eventSuffix}}`,
    });
  }

  /** The last event since this was called before, if there is one, gets the id. */
  identify(systemFrom: bigint): void {
    const lastEvent = this.events.length - 1;
    if (lastEvent >= this.#identifiedCount) {
      const { event, data } = this.events[lastEvent]!;
      this.events[lastEvent] = { event, id: String(systemFrom), data };
    }
    this.#identifiedCount = this.events.length;
  }
}

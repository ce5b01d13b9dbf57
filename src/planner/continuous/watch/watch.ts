/**
 * WATCH: standing queries push the rows that begin to match them. Source: specification, "Events".
 *
 *   register   an invocation of its own: purpose, policy, cap -> the rows at the instant n are fixed by n alone
 *   follow     rows at n, then for each round of news: what changed since the cursor -> events -> invocation -> client
 *
 * Invariants:
 * - Between the rows at n and the events after it nothing is missing and nothing is sent twice; the same after a
 *   resumption, because all of it is read from storage by system time and nothing from a queue.
 * - Each delivery is an invocation under the caller as it is now, recorded before its text leaves. A caller whose credential
 *   has ended is cut off within a second.
 * - Nothing is done, and so nothing recorded, when rows change that the caller may not see.
 * - Commits don't wait: rounds run outside the turn that commits, in slices, and take no more than a share of the time.
 */
import { tenantOf } from '../../../log/values/value.ts';
import type { Clock, Ids } from '../../../clock.ts';
import { ServiceError } from '../../../errors.ts';
import type { Caller } from '../../../governance/caller.ts';
import type { GateContract, Invocation } from '../../../governance/gate-contract.ts';
import { splitTypeName } from '../../../projections/access-paths.ts';
import { errorAt } from '../../syntax/error-location.ts';
import type { PlannerContract } from '../../planner-contract.ts';
import { believedRows, type ChangeSet, changesAfter } from './change-set.ts';
import { Feed } from './change-feed.ts';
import { MergedStream, type Cursors, cursorFor } from './merged-stream.ts';
import { Subscription, type WatchClient } from './subscription.ts';
import { errorEvent, eventsOf, heartbeat, initialEvents, type WatchEvent } from './watch-events.ts';
import { readWatchStatement } from './watch-statement.ts';

export interface WatchDependencies {
  readonly gate: GateContract;
  readonly planner: PlannerContract;
  readonly clock: Clock;
  readonly ids: Ids;
  /** Per tenant. */
  readonly subscriptionsMax: number;
  /** The limit agreed with a tenant instead; null or undefined where none was. */
  readonly subscriptionsAgreed?: (tenant: string) => number | null | undefined;
  /** Gives other work a turn. */
  readonly yieldTurn: () => Promise<void>;
}

/** How long a subscription waits for a client to follow it, or to come back. */
const waitingMs = 60_000;
const heartbeatMs = 15_000;
/** How often credentials are looked at: an ended one must be noticed within a second. */
const sweepMs = 400;
const sliceMs = 1.5;
/** Least gap between rounds of one feed; it grows by a multiple of the time of the last ones. */
const roundGapMs = 10;
const idleShare = 8;
/** System time may run ahead of the clock for a while, when that is set back. */
const clockSlackNs = 3_600_000_000_000n;
/** How far back a resumption may reach, in versions. */
const catchUpVersionsMax = 1_000_000;

interface Stream {
  readonly subscription: Subscription;
  readonly client: WatchClient;
  readonly ended: AbortController;
  /** Everything up to here was sent. */
  cursor: bigint;
  seenRound: number;
  /** Settles when everything handed over so far was taken. */
  lastWrite: Promise<void>;
  lastWriteMs: number;
}

/** A stream of all of a caller's subscriptions: `join` adds one that was claimed for it. */
interface WideStream {
  readonly caller: Caller;
  readonly merged: MergedStream;
  readonly join: (subscription: Subscription) => void;
}

export class StandingQueries {
  readonly #dependencies: WatchDependencies;
  readonly #subscriptions = new Map<string, Subscription>();
  readonly #streams = new Set<Stream>();
  /** Streams of all that their callers have registered. */
  readonly #wide = new Set<WideStream>();
  readonly #feeds = new Map<string, { readonly feed: Feed; readonly stop: () => void }>();
  /** Matching rows of a change set, by the text of the query. */
  readonly #matching = new WeakMap<ChangeSet, Map<string, ReadonlyMap<bigint, string>>>();
  #sweeping = false;
  #closed = false;
  #lastTurn: Promise<void> = Promise.resolve();
  #sliceStartMs = 0;
  /** Work since a round was last put off. */
  #busyMs = 0;

  constructor(dependencies: WatchDependencies) {
    this.#dependencies = dependencies;
  }

  /** Drops the copied rows of all feeds. */
  forget(): void {
    for (const { feed } of this.#feeds.values()) feed.latest = null;
  }

  /** Runs in the caller's invocation. Throws REL_PURPOSE, REL_WATCH_LIMIT, or the errors of the statement. */
  async register(invocation: Invocation, text: string, statedPurpose: string | null): Promise<Subscription> {
    const statement = readWatchStatement(text);
    const purpose = statement.purpose ?? statedPurpose;
    if (purpose === null)
      throw new ServiceError('REL_PURPOSE', "a standing query states its purpose: WATCH PURPOSE '<id>' SELECT …");
    if (statedPurpose !== null && statedPurpose !== purpose) {
      throw new ServiceError('REL_INVALID', 'PURPOSE disagrees with the purpose of the request');
    }
    const { template, literals, type } = statement;
    invocation.describe({ action: 'watch', purpose, template, literals, objectType: type });
    const snapshot = invocation.snapshot();
    if (snapshot.catalog.type(type) === undefined) {
      throw errorAt(
        'REL_UNKNOWN_TYPE',
        `type ${JSON.stringify(type)} is not registered; WATCH follows types`,
        statement.typePlace,
      );
    }
    const { ids, clock, planner } = this.#dependencies;
    const { caller } = invocation;
    const subscription = new Subscription({
      id: `w_${ids.next()}`,
      caller,
      purpose,
      statement,
      snapshot,
      expiresAtMs: clock.monotonicMs() + waitingMs,
    });
    await subscription.learn(planner, snapshot);
    this.#admit(caller);
    this.#subscriptions.set(subscription.id, subscription);
    if (!this.#sweeping) void this.#sweep();
    return subscription;
  }

  /** A registered subscription of this caller. Another's is as if it were not there. */
  requireSubscription(id: string, caller: Caller): Subscription {
    const subscription = this.#subscriptions.get(id);
    if (subscription === undefined || !isOf(subscription, caller))
      throw new ServiceError('REL_NOT_FOUND', 'no such subscription; unfollowed ones end after a minute');
    return subscription;
  }

  /** Subscriptions of this caller that no client follows, in the order of their registration. */
  registeredBy(caller: Caller): readonly Subscription[] {
    return [...this.#subscriptions.values()].filter((each) => each.state === 'waiting' && isOf(each, caller));
  }

  /** Hands a new subscription to the stream of all of its caller's, where one is open. */
  offer(subscription: Subscription): void {
    for (const { caller, merged, join } of this.#wide) {
      if (subscription.state === 'waiting' && !merged.over.aborted && isOf(subscription, caller)) join(this.claim(subscription));
    }
  }

  /** Reserves the subscription for one follower; `follow` or `release` comes next. */
  claim(subscription: Subscription): Subscription {
    if (subscription.state !== 'waiting') throw new ServiceError('REL_CONFLICT', 'the subscription is being followed already');
    subscription.state = 'streaming';
    return subscription;
  }

  /** Undoes a claim that was not used. */
  release(subscription: Subscription): void {
    subscription.state = 'waiting';
    subscription.expiresAtMs = this.#dependencies.clock.monotonicMs() + waitingMs;
  }

  /** Checks the instant up to which the client says it has everything. Throws where that lies ahead. */
  checkResumption(subscription: Subscription, after: bigint | null, isNew: boolean): void {
    const latest = isNew ? subscription.basis : this.#dependencies.clock.now() + clockSlackNs;
    if (after !== null && after > subscription.basis && after > latest)
      throw new ServiceError('REL_INVALID', 'Last-Event-ID lies in the future');
  }

  /**
   * Streams a claimed subscription until the client goes, its credential ends or the service closes. `resumeAfter` null: the rows that the
   * subscription began with come first. A subscription that was only a stream (`keep` false) ends with it.
   */
  async follow(
    subscription: Subscription,
    client: WatchClient,
    options: { readonly resumeAfter: bigint | null; readonly keep: boolean },
  ): Promise<void> {
    const stream: Stream = {
      subscription,
      client,
      ended: new AbortController(),
      cursor: options.resumeAfter ?? subscription.basis,
      seenRound: -1,
      lastWrite: Promise.resolve(),
      lastWriteMs: this.#dependencies.clock.monotonicMs(),
    };
    const end = (): void => stream.ended.abort();
    client.gone.addEventListener('abort', end, { once: true });
    if (client.gone.aborted) end();
    this.#streams.add(stream);
    const feed = this.#feedOf(subscription);
    try {
      if (options.resumeAfter === null) await this.#initial(stream);
      let caughtUp = 0;
      while (!stream.ended.signal.aborted) {
        const changes = await this.#deliver(stream, feed);
        if (changes === null) {
          caughtUp = 0;
          await feed.nextRound(stream.seenRound, stream.ended.signal);
        } else if (!changes.complete && (caughtUp += changes.versions.length) > catchUpVersionsMax) {
          throw new ServiceError(
            'REL_SCAN_CAP',
            `more than ${catchUpVersionsMax} versions to catch up with: begin again without an id`,
          );
        }
      }
      client.end(null);
    } catch (error) {
      client.end(errorEvent(problemText(error)));
      if (!(error instanceof ServiceError)) throw error;
    } finally {
      client.gone.removeEventListener('abort', end);
      this.#streams.delete(stream);
      this.#leave(subscription, feed);
      if (options.keep && client.gone.aborted && !this.#closed) this.release(subscription);
      else this.#end(subscription);
    }
  }

  /**
   * Streams claimed subscriptions of a caller, and those it registers meanwhile, until the first of them ends or the client goes.
   */
  async followAll(caller: Caller, client: WatchClient, claimed: readonly Subscription[], cursors: Cursors): Promise<void> {
    const merged = new MergedStream(client);
    // Subscriptions that another connection still holds are in the ids from the beginning.
    for (const each of this.#subscriptions.values()) if (isOf(each, caller)) merged.knows(each.id, cursorFor(cursors, each.id));
    const running = new Set<Promise<void>>();
    let failure: { readonly error: unknown } | null = null;
    const join = (subscription: Subscription): void => {
      const resumeAfter = cursorFor(cursors, subscription.id);
      const followed = this.follow(subscription, merged.part(subscription.id), { resumeAfter, keep: true })
        .catch((error: unknown) => (failure ??= { error }))
        .finally(() => {
          running.delete(followed);
          // Its caller may be back already.
          this.offer(subscription);
        }) as Promise<void>;
      running.add(followed);
    };
    const wide = { caller, merged, join };
    this.#wide.add(wide);
    for (const subscription of claimed) join(subscription);
    const { over } = merged;
    if (!over.aborted) await new Promise((resolve) => over.addEventListener('abort', resolve, { once: true }));
    this.#wide.delete(wide);
    await Promise.all(running);
    if (failure !== null) throw (failure as { readonly error: unknown }).error;
  }

  /** Ends every stream; registrations are refused from here on. */
  close(): void {
    this.#closed = true;
    const why = new ServiceError('REL_UNAVAILABLE', 'the service is draining');
    for (const stream of this.#streams) this.#cut(stream, why);
    for (const { merged } of this.#wide) merged.end(errorEvent(problemText(why)));
    this.#subscriptions.clear();
  }

  /** Ends a stream from outside, even while it waits: a client that does not read is no reason to stay. */
  #cut(stream: Stream, why: unknown): void {
    if (stream.ended.signal.aborted) return;
    stream.ended.abort();
    stream.client.end(errorEvent(problemText(why)));
  }

  #admit(caller: Caller): void {
    if (this.#closed) throw new ServiceError('REL_UNAVAILABLE', 'the service is draining');
    const tenant = tenantOf(caller.path);
    const agreed = (tenant === null ? null : this.#dependencies.subscriptionsAgreed?.(tenant)) ?? null;
    const subscriptionsMax = agreed ?? this.#dependencies.subscriptionsMax;
    let tenantSubscriptions = 0;
    for (const each of this.#subscriptions.values()) if (tenantOf(each.caller.path) === tenant) tenantSubscriptions++;
    if (tenantSubscriptions < subscriptionsMax) return;
    const limitName = agreed === null ? 'SERVICE_MAX_WATCH_SUBSCRIPTIONS' : 'its quota';
    const rule = `${subscriptionsMax} subscriptions of this tenant stand (${limitName})`;
    throw new ServiceError('REL_WATCH_LIMIT', rule, { retryAfterSecs: 1 });
  }

  #end(subscription: Subscription): void {
    subscription.state = 'ended';
    this.#subscriptions.delete(subscription.id);
  }

  #feedOf(subscription: Subscription): Feed {
    const { caller, statement } = subscription;
    const { branch, path } = caller;
    // Writes name a type as its tenant does; which tenants' writes concern it, `shows` says.
    const type = splitTypeName(statement.type)?.type ?? statement.type;
    const key = feedKey(subscription);
    let known = this.#feeds.get(key);
    if (known === undefined) {
      const feed = new Feed(this.#dependencies.clock, () => this.#gapMs());
      const shows = (path: string | null): boolean => feed.shows(path);
      known = {
        feed,
        stop: this.#dependencies.gate.onVisible({ branch, tenant: tenantOf(path), type, shows }, () => feed.notify()),
      };
      this.#feeds.set(key, known);
    }
    known.feed.subscriptions.add(subscription);
    return known.feed;
  }

  #leave(subscription: Subscription, feed: Feed): void {
    feed.subscriptions.delete(subscription);
    if (feed.subscriptions.size > 0) return;
    const key = feedKey(subscription);
    this.#feeds.get(key)?.stop();
    this.#feeds.delete(key);
  }

  /** The rows at the subscription's basis, then an id to resume from. */
  async #initial(stream: Stream): Promise<void> {
    const { subscription } = stream;
    const answer = await this.#invoke(stream, async (invocation) => {
      const snapshot = invocation.snapshot();
      const then = { ...snapshot, rows: believedRows(snapshot.rows, subscription.basis) };
      const answer = await subscription.matching(this.#dependencies.planner, then);
      invocation.describe({ rowCount: answer.rowCount });
      return answer;
    });
    for (const rows of subscription.texts(answer)) {
      if (stream.ended.signal.aborted) return;
      await this.#write(stream, initialEvents(subscription.id, rows));
      await this.#dependencies.yieldTurn();
    }
    await this.#write(stream, [heartbeat(subscription.id, subscription.basis)]);
  }

  /** Sends the matching changes after the stream's cursor. Null: there are none, up to the round that it has seen. */
  async #deliver(stream: Stream, feed: Feed): Promise<ChangeSet | null> {
    const { subscription } = stream;
    if (feed.reading !== null) await feed.reading;
    const shared = feed.latest;
    const usable = shared !== null && shared.round > stream.seenRound && this.#serves(shared.changes, stream);
    if (!usable) return this.#read(stream, feed);
    const { changes, round } = shared;
    const events = await this.#eventsOf(stream, changes);
    if (events.length > 0) {
      const same = await this.#invoke(stream, async (invocation) => {
        const { grantKey } = invocation.snapshot();
        if (grantKey === changes.grantKey) invocation.describe({ rowCount: events.length });
        else subscription.grantKey = grantKey;
        return grantKey === changes.grantKey;
      });
      // Changes read under another grant must not be sent under this one.
      if (!same) return changes;
      await this.#write(stream, events);
    }
    stream.cursor = changes.end;
    stream.seenRound = round;
    return null;
  }

  #serves(changes: ChangeSet, { subscription, cursor }: Stream): boolean {
    return (
      changes.from <= cursor &&
      cursor < changes.end &&
      changes.grantKey === subscription.grantKey &&
      changes.grantKey === subscription.learntUnder &&
      changes.ontologyVersion === subscription.ontologyVersion &&
      [...subscription.columns].every((column) => changes.columns.has(column))
    );
  }

  /** Reads the changes from storage, for itself and for the waiting streams. */
  async #read(stream: Stream, feed: Feed): Promise<ChangeSet | null> {
    const { subscription } = stream;
    let read!: () => void;
    const reading = new Promise<void>((resolve) => (read = resolve));
    const finishReading = (): void => {
      if (feed.reading === reading) feed.reading = null;
      read();
    };
    feed.reading = reading;
    try {
      const { changes, events, round } = await this.#invoke(stream, async (invocation) => {
        const snapshot = invocation.snapshot();
        subscription.grantKey = snapshot.grantKey;
        // Another grant may hide, and so read, other columns.
        const isOther = snapshot.grantKey !== subscription.learntUnder;
        if (isOther || snapshot.catalog.ontologyVersion !== subscription.ontologyVersion) {
          await subscription.learn(this.#dependencies.planner, snapshot);
        }
        const took = await this.#turn();
        const current = feed.round;
        let changes: ChangeSet;
        try {
          const { type } = subscription.statement;
          changes = await this.#inSlices(changesAfter(snapshot, { type, from: stream.cursor, columns: feed.columns() }));
        } finally {
          took();
        }
        if (changes.complete) feed.latest = { round: current, changes: changes };
        finishReading();
        const events = await this.#eventsOf(stream, changes);
        invocation.describe({ rowCount: events.length });
        return { changes: changes, events: events, round: current };
      });
      if (events.length > 0) await this.#write(stream, events);
      if (changes.end > stream.cursor) stream.cursor = changes.end;
      if (!changes.complete) return changes;
      stream.seenRound = round;
      return null;
    } finally {
      finishReading();
    }
  }

  async #eventsOf({ subscription, cursor }: Stream, changes: ChangeSet): Promise<readonly WatchEvent[]> {
    if (changes.versions.length === 0) return eventsOf(subscription.id, changes, cursor, new Map());
    const took = await this.#turn();
    try {
      // The same query over the same rows under the same grant, as many screens show it, is run once.
      const known = this.#matching.get(changes) ?? new Map<string, ReadonlyMap<bigint, string>>();
      this.#matching.set(changes, known);
      const { sql } = subscription.statement;
      let rows = known.get(sql);
      if (rows === undefined) {
        const answer = await subscription.matching(this.#dependencies.planner, changes.snapshot);
        known.set(sql, (rows = new Map([...subscription.texts(answer)].flat())));
      }
      return eventsOf(subscription.id, changes, cursor, rows);
    } finally {
      took();
    }
  }

  /** Reads queries one after the other and yields a turn in between, so that a hundred of them block no longer than one. */
  async #turn(): Promise<() => void> {
    const { clock, yieldTurn } = this.#dependencies;
    const before = this.#lastTurn;
    let leave!: () => void;
    this.#lastTurn = new Promise((resolve) => (leave = resolve));
    await before;
    if (clock.monotonicMs() - this.#sliceStartMs > sliceMs) {
      await yieldTurn();
      this.#sliceStartMs = clock.monotonicMs();
    }
    const startedMs = clock.monotonicMs();
    return () => {
      this.#busyMs += clock.monotonicMs() - startedMs;
      leave();
    };
  }

  /** Others get a turn wherever a slice is over. */
  async #inSlices<T>(work: Generator<undefined, T, void>): Promise<T> {
    const { clock, yieldTurn } = this.#dependencies;
    for (let step = work.next(); ; step = work.next()) {
      if (step.done === true) return step.value;
      if (clock.monotonicMs() - this.#sliceStartMs <= sliceMs) continue;
      await yieldTurn();
      this.#sliceStartMs = clock.monotonicMs();
    }
  }

  /** The time until the next round: a multiple of the last round's work. */
  #gapMs(): number {
    const busyMs = this.#busyMs;
    this.#busyMs = 0;
    return Math.max(roundGapMs, busyMs * idleShare);
  }

  /** Goes on with the subscription under its caller as of now. */
  #invoke<T>({ subscription, client }: Stream, run: (invocation: Invocation) => Promise<T>): Promise<T> {
    const { gate, ids } = this.#dependencies;
    const { purpose, statement, stated } = subscription;
    const caller = { ...client.renew(), branch: subscription.caller.branch };
    const request = {
      action: 'watch',
      purpose,
      ...stated,
      correlationId: ids.next(),
      purposeRequired: true,
      continues: true,
    } as const;
    return gate.invoke(caller, request, (invocation) => {
      const { template, literals, type } = statement;
      invocation.describe({ template, literals, objectType: type, costUnits: 0 });
      return run(invocation);
    });
  }

  /** Writes behind earlier events. */
  #write(stream: Stream, events: readonly WatchEvent[]): Promise<void> {
    const { client, ended } = stream;
    stream.lastWriteMs = this.#dependencies.clock.monotonicMs();
    stream.lastWrite = stream.lastWrite.then(async () => {
      if (!ended.signal.aborted && !(await client.write(events))) ended.abort();
      stream.lastWriteMs = this.#dependencies.clock.monotonicMs();
    });
    return stream.lastWrite;
  }

  /** While anything is registered: ends unfollowed subscriptions and those whose credential has ended, and sends heartbeats. */
  async #sweep(): Promise<void> {
    this.#sweeping = true;
    while (this.#subscriptions.size > 0 && !this.#closed) {
      await this.#dependencies.clock.sleep(sweepMs);
      const nowMs = this.#dependencies.clock.monotonicMs();
      for (const subscription of this.#subscriptions.values()) {
        if (subscription.state === 'waiting' && nowMs >= subscription.expiresAtMs) this.#end(subscription);
      }
      for (const stream of this.#streams) {
        try {
          this.#dependencies.gate.checkStanding(stream.client.renew());
          if (nowMs - stream.lastWriteMs >= heartbeatMs) {
            void this.#write(stream, [heartbeat(stream.subscription.id, stream.cursor)]);
          }
        } catch (error) {
          this.#cut(stream, error);
        }
      }
    }
    this.#sweeping = false;
  }
}

/** Whether this caller's credential registered it. */
function isOf({ caller: owner }: Subscription, caller: Caller): boolean {
  return owner.principal === caller.principal && owner.tokenId === caller.tokenId && owner.path === caller.path;
}

const feedKey = ({ caller, statement }: Subscription): string =>
  `${caller.branch}\u0000${statement.type}\u0000${caller.path ?? '\u0000'}`;

/** The problem record of an error, as answers have it. */
export function problemText(error: unknown): string {
  const known = error instanceof ServiceError ? error : new ServiceError('REL_INTERNAL', 'internal error');
  return JSON.stringify({ code: known.code, status: known.status, detail: known.message });
}

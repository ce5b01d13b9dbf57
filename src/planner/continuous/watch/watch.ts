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
const unfollowedMs = 60_000;
const heartbeatMs = 15_000;
/** How often credentials are looked at: an ended one must be noticed within a second. */
const subscriptionSweepMs = 400;
const watchSliceMs = 1.5;
/** Least gap between rounds of one feed; it grows by a multiple of the time of the last ones. */
const feedRoundGapMs = 10;
const feedIdleShare = 8;
/** System time may run ahead of the clock for a while, when that is set back. */
const resumptionSlackNs = 3_600_000_000_000n;
/** How far back a resumption may reach, in versions. */
const catchUpVersionsMax = 1_000_000;

interface WatchStream {
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
  readonly #subscriptionsById = new Map<string, Subscription>();
  readonly #watchStreams = new Set<WatchStream>();
  /** Streams of all that their callers have registered. */
  readonly #wideStreams = new Set<WideStream>();
  readonly #changeFeeds = new Map<string, { readonly feed: Feed; readonly stop: () => void }>();
  /** Matching rows of a change set, by the text of the query. */
  readonly #matchesByChanges = new WeakMap<ChangeSet, Map<string, ReadonlyMap<bigint, string>>>();
  #isSweeping = false;
  #isWatchClosed = false;
  #lastWatchTurn: Promise<void> = Promise.resolve();
  #watchSliceStartMs = 0;
  /** Work since a round was last put off. */
  #watchBusyMs = 0;

  constructor(dependencies: WatchDependencies) {
    this.#dependencies = dependencies;
  }

  /** Drops the copied rows of all feeds. */
  forget(): void {
    for (const { feed } of this.#changeFeeds.values()) feed.latest = null;
  }

  /** Runs in the caller's invocation. Throws REL_PURPOSE, REL_WATCH_LIMIT, or the errors of the statement. */
  async register(invocation: Invocation, watchText: string, statedPurpose: string | null): Promise<Subscription> {
    const watchStatement = readWatchStatement(watchText);
    const purpose = watchStatement.purpose ?? statedPurpose;
    if (purpose === null)
      throw new ServiceError('REL_PURPOSE', "a standing query states its purpose: WATCH PURPOSE '<id>' SELECT …");
    if (statedPurpose !== null && statedPurpose !== purpose) {
      throw new ServiceError('REL_INVALID', 'PURPOSE disagrees with the purpose of the request');
    }
    const { template, literals, type } = watchStatement;
    invocation.describe({ action: 'watch', purpose, template, literals, objectType: type });
    const snapshot = invocation.snapshot();
    if (snapshot.catalog.type(type) === undefined) {
      throw errorAt(
        'REL_UNKNOWN_TYPE',
        `type ${JSON.stringify(type)} is not registered; WATCH follows types`,
        watchStatement.typePlace,
      );
    }
    const { ids, clock, planner } = this.#dependencies;
    const { caller } = invocation;
    const subscription = new Subscription({
      id: `w_${ids.next()}`,
      caller,
      purpose,
      statement: watchStatement,
      snapshot,
      expiresAtMs: clock.monotonicMs() + unfollowedMs,
    });
    await subscription.learn(planner, snapshot);
    this.#admitSubscription(caller);
    this.#subscriptionsById.set(subscription.id, subscription);
    if (!this.#isSweeping) void this.#sweepSubscriptions();
    return subscription;
  }

  /** A registered subscription of this caller. Another's is as if it were not there. */
  requireSubscription(id: string, caller: Caller): Subscription {
    const subscription = this.#subscriptionsById.get(id);
    if (subscription === undefined || !isSubscribedBy(subscription, caller))
      throw new ServiceError('REL_NOT_FOUND', 'no such subscription; unfollowed ones end after a minute');
    return subscription;
  }

  /** Subscriptions of this caller that no client follows, in the order of their registration. */
  registeredBy(caller: Caller): readonly Subscription[] {
    return [...this.#subscriptionsById.values()].filter((each) => each.state === 'waiting' && isSubscribedBy(each, caller));
  }

  /** Hands a new subscription to the stream of all of its caller's, where one is open. */
  offer(subscription: Subscription): void {
    for (const { caller, merged, join } of this.#wideStreams) {
      if (subscription.state === 'waiting' && !merged.over.aborted && isSubscribedBy(subscription, caller))
        join(this.claim(subscription));
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
    subscription.expiresAtMs = this.#dependencies.clock.monotonicMs() + unfollowedMs;
  }

  /** Checks the instant up to which the client says it has everything. Throws where that lies ahead. */
  checkResumption(subscription: Subscription, resumeAfter: bigint | null, isNew: boolean): void {
    const latestResumption = isNew ? subscription.basis : this.#dependencies.clock.now() + resumptionSlackNs;
    if (resumeAfter !== null && resumeAfter > subscription.basis && resumeAfter > latestResumption)
      throw new ServiceError('REL_INVALID', 'Last-Event-ID lies in the future');
  }

  /**
   * Streams a claimed subscription until the client goes, its credential ends or the service closes. `resumeAfter` null: the rows that the
   * subscription began with come first. A subscription that was only a stream (`keep` false) ends with it.
   */
  async follow(
    subscription: Subscription,
    watchClient: WatchClient,
    options: { readonly resumeAfter: bigint | null; readonly keep: boolean },
  ): Promise<void> {
    const watchStream: WatchStream = {
      subscription,
      client: watchClient,
      ended: new AbortController(),
      cursor: options.resumeAfter ?? subscription.basis,
      seenRound: -1,
      lastWrite: Promise.resolve(),
      lastWriteMs: this.#dependencies.clock.monotonicMs(),
    };
    const endStream = (): void => watchStream.ended.abort();
    watchClient.gone.addEventListener('abort', endStream, { once: true });
    if (watchClient.gone.aborted) endStream();
    this.#watchStreams.add(watchStream);
    const changeFeed = this.#feedOf(subscription);
    try {
      if (options.resumeAfter === null) await this.#writeInitialRows(watchStream);
      let caughtUpVersions = 0;
      while (!watchStream.ended.signal.aborted) {
        const deliveredChanges = await this.#deliverChanges(watchStream, changeFeed);
        if (deliveredChanges === null) {
          caughtUpVersions = 0;
          await changeFeed.nextRound(watchStream.seenRound, watchStream.ended.signal);
        } else if (!deliveredChanges.complete && (caughtUpVersions += deliveredChanges.versions.length) > catchUpVersionsMax) {
          throw new ServiceError(
            'REL_SCAN_CAP',
            `more than ${catchUpVersionsMax} versions to catch up with: begin again without an id`,
          );
        }
      }
      watchClient.end(null);
    } catch (error) {
      watchClient.end(errorEvent(problemText(error)));
      if (!(error instanceof ServiceError)) throw error;
    } finally {
      watchClient.gone.removeEventListener('abort', endStream);
      this.#watchStreams.delete(watchStream);
      this.#leaveFeed(subscription, changeFeed);
      if (options.keep && watchClient.gone.aborted && !this.#isWatchClosed) this.release(subscription);
      else this.#endSubscription(subscription);
    }
  }

  /**
   * Streams claimed subscriptions of a caller, and those it registers meanwhile, until the first of them ends or the client goes.
   */
  async followAll(
    caller: Caller,
    watchClient: WatchClient,
    claimedSubscriptions: readonly Subscription[],
    cursors: Cursors,
  ): Promise<void> {
    const mergedStream = new MergedStream(watchClient);
    // Subscriptions that another connection still holds are in the ids from the beginning.
    for (const each of this.#subscriptionsById.values())
      if (isSubscribedBy(each, caller)) mergedStream.knows(each.id, cursorFor(cursors, each.id));
    const runningFollows = new Set<Promise<void>>();
    let followFailure: { readonly error: unknown } | null = null;
    const joinMerged = (subscription: Subscription): void => {
      const resumeAfter = cursorFor(cursors, subscription.id);
      const followedStream = this.follow(subscription, mergedStream.part(subscription.id), { resumeAfter, keep: true })
        .catch((error: unknown) => (followFailure ??= { error }))
        .finally(() => {
          runningFollows.delete(followedStream);
          // Its caller may be back already.
          this.offer(subscription);
        }) as Promise<void>;
      runningFollows.add(followedStream);
    };
    const wideStream = { caller, merged: mergedStream, join: joinMerged };
    this.#wideStreams.add(wideStream);
    for (const subscription of claimedSubscriptions) joinMerged(subscription);
    const { over } = mergedStream;
    if (!over.aborted) await new Promise((resolve) => over.addEventListener('abort', resolve, { once: true }));
    this.#wideStreams.delete(wideStream);
    await Promise.all(runningFollows);
    if (followFailure !== null) throw (followFailure as { readonly error: unknown }).error;
  }

  /** Ends every stream; registrations are refused from here on. */
  close(): void {
    this.#isWatchClosed = true;
    const drainingError = new ServiceError('REL_UNAVAILABLE', 'the service is draining');
    for (const watchStream of this.#watchStreams) this.#cutStream(watchStream, drainingError);
    for (const { merged } of this.#wideStreams) merged.end(errorEvent(problemText(drainingError)));
    this.#subscriptionsById.clear();
  }

  /** Ends a stream from outside, even while it waits: a client that does not read is no reason to stay. */
  #cutStream(watchStream: WatchStream, cutReason: unknown): void {
    if (watchStream.ended.signal.aborted) return;
    watchStream.ended.abort();
    watchStream.client.end(errorEvent(problemText(cutReason)));
  }

  #admitSubscription(caller: Caller): void {
    if (this.#isWatchClosed) throw new ServiceError('REL_UNAVAILABLE', 'the service is draining');
    const tenant = tenantOf(caller.path);
    const agreedSubscriptions = (tenant === null ? null : this.#dependencies.subscriptionsAgreed?.(tenant)) ?? null;
    const subscriptionsMax = agreedSubscriptions ?? this.#dependencies.subscriptionsMax;
    let tenantSubscriptions = 0;
    for (const each of this.#subscriptionsById.values()) if (tenantOf(each.caller.path) === tenant) tenantSubscriptions++;
    if (tenantSubscriptions < subscriptionsMax) return;
    const limitName = agreedSubscriptions === null ? 'SERVICE_MAX_WATCH_SUBSCRIPTIONS' : 'its quota';
    const watchLimit = `${subscriptionsMax} subscriptions of this tenant stand (${limitName})`;
    throw new ServiceError('REL_WATCH_LIMIT', watchLimit, { retryAfterSecs: 1 });
  }

  #endSubscription(subscription: Subscription): void {
    subscription.state = 'ended';
    this.#subscriptionsById.delete(subscription.id);
  }

  #feedOf(subscription: Subscription): Feed {
    const { caller, statement } = subscription;
    const { branch, path } = caller;
    // Writes name a type as its tenant does; which tenants' writes concern it, `isFeedVisible` says.
    const type = splitTypeName(statement.type)?.type ?? statement.type;
    const subscriptionFeedKey = feedKey(subscription);
    let knownFeed = this.#changeFeeds.get(subscriptionFeedKey);
    if (knownFeed === undefined) {
      const newFeed = new Feed(this.#dependencies.clock, () => this.#feedGapMs());
      const isFeedVisible = (path: string | null): boolean => newFeed.shows(path);
      knownFeed = {
        feed: newFeed,
        stop: this.#dependencies.gate.onVisible({ branch, tenant: tenantOf(path), type, shows: isFeedVisible }, () =>
          newFeed.notify(),
        ),
      };
      this.#changeFeeds.set(subscriptionFeedKey, knownFeed);
    }
    knownFeed.feed.subscriptions.add(subscription);
    return knownFeed.feed;
  }

  #leaveFeed(subscription: Subscription, changeFeed: Feed): void {
    changeFeed.subscriptions.delete(subscription);
    if (changeFeed.subscriptions.size > 0) return;
    const subscriptionFeedKey = feedKey(subscription);
    this.#changeFeeds.get(subscriptionFeedKey)?.stop();
    this.#changeFeeds.delete(subscriptionFeedKey);
  }

  /** The rows at the subscription's basis, then an id to resume from. */
  async #writeInitialRows(watchStream: WatchStream): Promise<void> {
    const { subscription } = watchStream;
    const initialAnswer = await this.#invokeWatch(watchStream, async (invocation) => {
      const snapshot = invocation.snapshot();
      const basisSnapshot = { ...snapshot, rows: believedRows(snapshot.rows, subscription.basis) };
      const answer = await subscription.matching(this.#dependencies.planner, basisSnapshot);
      invocation.describe({ rowCount: answer.rowCount });
      return answer;
    });
    for (const initialRows of subscription.texts(initialAnswer)) {
      if (watchStream.ended.signal.aborted) return;
      await this.#writeEvents(watchStream, initialEvents(subscription.id, initialRows));
      await this.#dependencies.yieldTurn();
    }
    await this.#writeEvents(watchStream, [heartbeat(subscription.id, subscription.basis)]);
  }

  /** Sends the matching changes after the stream's cursor. Null: there are none, up to the round that it has seen. */
  async #deliverChanges(watchStream: WatchStream, changeFeed: Feed): Promise<ChangeSet | null> {
    const { subscription } = watchStream;
    if (changeFeed.reading !== null) await changeFeed.reading;
    const sharedChanges = changeFeed.latest;
    const isUsable =
      sharedChanges !== null &&
      sharedChanges.round > watchStream.seenRound &&
      this.#servesStream(sharedChanges.changes, watchStream);
    if (!isUsable) return this.#readChanges(watchStream, changeFeed);
    const { changes, round } = sharedChanges;
    const sharedEvents = await this.#changeEvents(watchStream, changes);
    if (sharedEvents.length > 0) {
      const isSameGrant = await this.#invokeWatch(watchStream, async (invocation) => {
        const { grantKey } = invocation.snapshot();
        if (grantKey === changes.grantKey) invocation.describe({ rowCount: sharedEvents.length });
        else subscription.grantKey = grantKey;
        return grantKey === changes.grantKey;
      });
      // Changes read under another grant must not be sent under this one.
      if (!isSameGrant) return changes;
      await this.#writeEvents(watchStream, sharedEvents);
    }
    watchStream.cursor = changes.end;
    watchStream.seenRound = round;
    return null;
  }

  #servesStream(changes: ChangeSet, { subscription, cursor }: WatchStream): boolean {
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
  async #readChanges(watchStream: WatchStream, changeFeed: Feed): Promise<ChangeSet | null> {
    const { subscription } = watchStream;
    let resolveReading!: () => void;
    const changeReading = new Promise<void>((resolve) => (resolveReading = resolve));
    const finishReading = (): void => {
      if (changeFeed.reading === changeReading) changeFeed.reading = null;
      resolveReading();
    };
    changeFeed.reading = changeReading;
    try {
      const {
        changes,
        events: readEvents,
        round,
      } = await this.#invokeWatch(watchStream, async (invocation) => {
        const snapshot = invocation.snapshot();
        subscription.grantKey = snapshot.grantKey;
        // Another grant may hide, and so read, other columns.
        const isOtherGrant = snapshot.grantKey !== subscription.learntUnder;
        if (isOtherGrant || snapshot.catalog.ontologyVersion !== subscription.ontologyVersion) {
          await subscription.learn(this.#dependencies.planner, snapshot);
        }
        const leaveTurn = await this.#takeWatchTurn();
        const currentRound = changeFeed.round;
        let changes: ChangeSet;
        try {
          const { type } = subscription.statement;
          changes = await this.#finishInSlices(
            changesAfter(snapshot, { type, from: watchStream.cursor, columns: changeFeed.columns() }),
          );
        } finally {
          leaveTurn();
        }
        if (changes.complete) changeFeed.latest = { round: currentRound, changes: changes };
        finishReading();
        const events = await this.#changeEvents(watchStream, changes);
        invocation.describe({ rowCount: events.length });
        return { changes: changes, events: events, round: currentRound };
      });
      if (readEvents.length > 0) await this.#writeEvents(watchStream, readEvents);
      if (changes.end > watchStream.cursor) watchStream.cursor = changes.end;
      if (!changes.complete) return changes;
      watchStream.seenRound = round;
      return null;
    } finally {
      finishReading();
    }
  }

  async #changeEvents({ subscription, cursor }: WatchStream, changes: ChangeSet): Promise<readonly WatchEvent[]> {
    if (changes.versions.length === 0) return eventsOf(subscription.id, changes, cursor, new Map());
    const leaveTurn = await this.#takeWatchTurn();
    try {
      // The same query over the same rows under the same grant, as many screens show it, is run once.
      const knownMatches = this.#matchesByChanges.get(changes) ?? new Map<string, ReadonlyMap<bigint, string>>();
      this.#matchesByChanges.set(changes, knownMatches);
      const { sql } = subscription.statement;
      let matchingRows = knownMatches.get(sql);
      if (matchingRows === undefined) {
        const matchingAnswer = await subscription.matching(this.#dependencies.planner, changes.snapshot);
        knownMatches.set(sql, (matchingRows = new Map([...subscription.texts(matchingAnswer)].flat())));
      }
      return eventsOf(subscription.id, changes, cursor, matchingRows);
    } finally {
      leaveTurn();
    }
  }

  /** Reads queries one after the other and yields a turn in between, so that a hundred of them block no longer than one. */
  async #takeWatchTurn(): Promise<() => void> {
    const { clock, yieldTurn } = this.#dependencies;
    const earlierTurn = this.#lastWatchTurn;
    let resolveTurn!: () => void;
    this.#lastWatchTurn = new Promise((resolve) => (resolveTurn = resolve));
    await earlierTurn;
    if (clock.monotonicMs() - this.#watchSliceStartMs > watchSliceMs) {
      await yieldTurn();
      this.#watchSliceStartMs = clock.monotonicMs();
    }
    const turnStartedMs = clock.monotonicMs();
    return () => {
      this.#watchBusyMs += clock.monotonicMs() - turnStartedMs;
      resolveTurn();
    };
  }

  /** Others get a turn wherever a slice is over. */
  async #finishInSlices<T>(slicedWork: Generator<undefined, T, void>): Promise<T> {
    const { clock, yieldTurn } = this.#dependencies;
    for (let workStep = slicedWork.next(); ; workStep = slicedWork.next()) {
      if (workStep.done === true) return workStep.value;
      if (clock.monotonicMs() - this.#watchSliceStartMs <= watchSliceMs) continue;
      await yieldTurn();
      this.#watchSliceStartMs = clock.monotonicMs();
    }
  }

  /** The time until the next round: a multiple of the last round's work. */
  #feedGapMs(): number {
    const busyMs = this.#watchBusyMs;
    this.#watchBusyMs = 0;
    return Math.max(feedRoundGapMs, busyMs * feedIdleShare);
  }

  /** Goes on with the subscription under its caller as of now. */
  #invokeWatch<T>({ subscription, client }: WatchStream, runWatch: (invocation: Invocation) => Promise<T>): Promise<T> {
    const { gate, ids } = this.#dependencies;
    const { purpose, statement, stated } = subscription;
    const caller = { ...client.renew(), branch: subscription.caller.branch };
    const watchRequest = {
      action: 'watch',
      purpose,
      ...stated,
      correlationId: ids.next(),
      purposeRequired: true,
      continues: true,
    } as const;
    return gate.invoke(caller, watchRequest, (invocation) => {
      const { template, literals, type } = statement;
      invocation.describe({ template, literals, objectType: type, costUnits: 0 });
      return runWatch(invocation);
    });
  }

  /** Writes behind earlier events. */
  #writeEvents(watchStream: WatchStream, events: readonly WatchEvent[]): Promise<void> {
    const { client: watchClient, ended: streamEnded } = watchStream;
    watchStream.lastWriteMs = this.#dependencies.clock.monotonicMs();
    watchStream.lastWrite = watchStream.lastWrite.then(async () => {
      if (!streamEnded.signal.aborted && !(await watchClient.write(events))) streamEnded.abort();
      watchStream.lastWriteMs = this.#dependencies.clock.monotonicMs();
    });
    return watchStream.lastWrite;
  }

  /** While anything is registered: ends unfollowed subscriptions and those whose credential has ended, and sends heartbeats. */
  async #sweepSubscriptions(): Promise<void> {
    this.#isSweeping = true;
    while (this.#subscriptionsById.size > 0 && !this.#isWatchClosed) {
      await this.#dependencies.clock.sleep(subscriptionSweepMs);
      const sweepNowMs = this.#dependencies.clock.monotonicMs();
      for (const subscription of this.#subscriptionsById.values()) {
        if (subscription.state === 'waiting' && sweepNowMs >= subscription.expiresAtMs) this.#endSubscription(subscription);
      }
      for (const watchStream of this.#watchStreams) {
        try {
          this.#dependencies.gate.checkStanding(watchStream.client.renew());
          if (sweepNowMs - watchStream.lastWriteMs >= heartbeatMs) {
            void this.#writeEvents(watchStream, [heartbeat(watchStream.subscription.id, watchStream.cursor)]);
          }
        } catch (error) {
          this.#cutStream(watchStream, error);
        }
      }
    }
    this.#isSweeping = false;
  }
}

/** Whether this caller's credential registered it. */
function isSubscribedBy({ caller: owner }: Subscription, caller: Caller): boolean {
  return owner.principal === caller.principal && owner.tokenId === caller.tokenId && owner.path === caller.path;
}

const feedKey = ({ caller, statement }: Subscription): string =>
  `${caller.branch}\u0000${statement.type}\u0000${caller.path ?? '\u0000'}`;

/** The problem record of an error, as answers have it. */
export function problemText(error: unknown): string {
  const watchError = error instanceof ServiceError ? error : new ServiceError('REL_INTERNAL', 'internal error');
  return JSON.stringify({ code: watchError.code, status: watchError.status, detail: watchError.message });
}

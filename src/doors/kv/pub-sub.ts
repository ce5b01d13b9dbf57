/**
 * PUBLISH writes a row of PubSubMessage, and subscribers read such rows: nothing is handed from one connection to another, so a
 * subscriber is sent what it may see, in the order in which it was written, with nothing left out and nothing twice.
 */
import { isUtf8 } from 'node:buffer';
import { ServiceError } from '../../errors.ts';
import { sees } from '../../governance/caller.ts';
import { tenantOf } from '../../log/values/value.ts';
import { cellAt, VectorBuilder } from '../../log/values/vector-builder.ts';
import type { Answer } from '../../planner/planner-contract.ts';
import type { PutRows } from '../../projections/command.ts';
import type { ConnectionCaller } from '../shared/connection-caller.ts';
import type { Connection } from '../shared/socket-connection.ts';
import type { Terms } from '../shared/session-terms.ts';
import { toInstant } from '../shared/instants.ts';
import type { KvCommandContext } from './command.ts';
import { keyOf, refuseFirst } from './key-value-rows.ts';
import { globOf } from './glob.ts';
import type { RespReplies } from './replies.ts';

const pubSubType = 'PubSubMessage';
const messagePageRows = 1_000n;
/** A connection has at most so many. */
const subscriptionsMax = 1_024;

/** All subscriptions of this door: PUBLISH returns the number of receivers. */
export class Channels {
  readonly #subscriptionSets = new Set<Subscriptions>();

  add(subscriptions: Subscriptions): void {
    this.#subscriptionSets.add(subscriptions);
  }

  delete(subscriptions: Subscriptions): void {
    this.#subscriptionSets.delete(subscriptions);
  }

  hearing(publishedMessage: PublishedMessage): number {
    let subscriberCount = 0;
    for (const subscriptionSet of this.#subscriptionSets) subscriberCount += subscriptionSet.hears(publishedMessage);
    return subscriberCount;
  }
}

interface PublishedMessage {
  readonly channel: string;
  readonly branch: string;
  readonly path: string | null;
  readonly systemFrom: bigint;
}

export async function publish(
  respContext: KvCommandContext,
  pubSubChannels: Channels,
  [, respWord, messageWord]: readonly Buffer[],
): Promise<void> {
  const channelName = keyOf(respWord!);
  const isTextMessage = isUtf8(messageWord!);
  const messageCells = [
    ['channel', channelName],
    isTextMessage ? ['message', messageWord!.toString()] : ['message_base64', messageWord!.toString('base64')],
  ] as const;
  const messageColumns = messageCells.map(([cellName, cellText]) => {
    const messageBuilder = new VectorBuilder('string', 1);
    messageBuilder.appendString(cellText);
    return { name: cellName, type: 'string', vector: messageBuilder.build() } as const;
  });
  const { caller } = respContext.connectionCaller;
  const messageCommand: PutRows = {
    kind: 'put-rows',
    type: pubSubType,
    rows: { length: 1, columns: messageColumns },
    atomic: true,
    createType: false,
    provenance: { source: caller.door, method: 'publish', confidence: 1, derivedFrom: null },
    idsMax: 0,
  };
  const { systemFrom } = await respContext.write([channelName], 'ingest', async ({ invocation }) => {
    const publishOutcome = await invocation.submit(messageCommand, { sync: respContext.terms.durability === 'sync' });
    refuseFirst(publishOutcome);
    return publishOutcome;
  });
  const branch = respContext.terms.branch ?? caller.branch;
  respContext.replies.integer(pubSubChannels.hearing({ channel: channelName, branch, path: caller.path, systemFrom }));
}

interface ChannelSubscription {
  /** The name that the client gave: its messages carry it. */
  readonly name: string;
  readonly takes: (channel: string) => boolean;
  /** The one channel; null: a pattern. */
  readonly channel: string | null;
  /** Messages after this instant belong to it. */
  readonly from: bigint;
  /** Everything up to here was sent. */
  after: bigint;
}

export interface SubscriptionsDependencies {
  readonly asker: ConnectionCaller;
  readonly connection: Connection;
  readonly replies: RespReplies;
  readonly channels: Channels;
  readonly flush: () => void;
}

export class Subscriptions {
  readonly #subscriptionParts: SubscriptionsDependencies;
  readonly #channelSubscriptions = new Map<string, ChannelSubscription>();
  readonly #patternSubscriptions = new Map<string, ChannelSubscription>();
  #subscribedTerms: Terms | null = null;
  #stopFollowing: (() => void) | null = null;
  #hasNewMessages = false;
  #wakePump: () => void = () => undefined;
  #isClosed = false;

  constructor(subscriptionParts: SubscriptionsDependencies) {
    this.#subscriptionParts = subscriptionParts;
  }

  get count(): number {
    return this.#channelSubscriptions.size + this.#patternSubscriptions.size;
  }

  hears({ channel: heardChannel, branch: heardBranch, path: publisherPath, systemFrom: publishedAt }: PublishedMessage): number {
    const { caller } = this.#subscriptionParts.asker;
    if (heardBranch !== (this.#subscribedTerms?.branch ?? caller.branch) || !sees(caller.path, publisherPath)) return 0;
    let hearingCount = 0;
    for (const channelSubscription of this.#allSubscriptions())
      if (channelSubscription.from < publishedAt && channelSubscription.takes(heardChannel)) hearingCount++;
    return hearingCount;
  }

  /** SUBSCRIBE and PSUBSCRIBE: from now on, or from the instant on that stands behind the last `@` of a name. */
  async open(isPattern: boolean, channelWords: readonly Buffer[], sessionTerms: Terms): Promise<void> {
    const { asker: connectionCaller, channels } = this.#subscriptionParts;
    const namedChannels = channelWords.map((respWord) => ({ name: keyOf(respWord), ...replayStartOf(keyOf(respWord)) }));
    if (this.count + namedChannels.length > subscriptionsMax)
      throw new ServiceError('REL_WATCH_LIMIT', `a connection has at most ${subscriptionsMax} subscriptions`);
    // Messages written after the snapshot must be read at once.
    let isBehind = false;
    const stopListening = connectionCaller.parts.gate.onVisible(this.#messageScope(sessionTerms), () => (isBehind = true));
    const subscribedAt = await connectionCaller
      .ask({ terms: sessionTerms, action: 'watch' }, ({ invocation }) => {
        invocation.describe({
          objectType: pubSubType,
          template: 'SUBSCRIBE ?',
          literals: namedChannels.map(({ name: subscriptionName }) => subscriptionName),
        });
        return invocation.snapshot().instant;
      })
      .finally(stopListening);
    this.#subscribedTerms = sessionTerms;
    const subscriptionsByName = isPattern ? this.#patternSubscriptions : this.#channelSubscriptions;
    for (const { name, channel: subscribedChannel, from: replayFrom } of namedChannels) {
      const takesChannel = isPattern
        ? globOf(subscribedChannel)
        : (heardChannel: string): boolean => heardChannel === subscribedChannel;
      if (!subscriptionsByName.has(name))
        subscriptionsByName.set(name, {
          name,
          takes: takesChannel,
          channel: isPattern ? null : subscribedChannel,
          from: replayFrom ?? subscribedAt,
          after: replayFrom ?? subscribedAt,
        });
      this.#confirmSubscription(isPattern ? 'psubscribe' : 'subscribe', name);
    }
    channels.add(this);
    if (this.#stopFollowing === null) this.#followMessages();
    if (isBehind || namedChannels.some(({ from }) => from !== null && from < subscribedAt)) this.#notifyPump();
  }

  /** UNSUBSCRIBE and PUNSUBSCRIBE; of all where nothing is named. */
  leave(isPattern: boolean, channelWords: readonly Buffer[]): void {
    const subscriptionsByName = isPattern ? this.#patternSubscriptions : this.#channelSubscriptions;
    const unsubscribeKind = isPattern ? 'punsubscribe' : 'unsubscribe';
    const leftNames =
      channelWords.length > 0 ? channelWords.map((respWord) => respWord.toString()) : [...subscriptionsByName.keys()];
    for (const leftName of leftNames) {
      subscriptionsByName.delete(leftName);
      this.#confirmSubscription(unsubscribeKind, leftName);
    }
    if (leftNames.length === 0) this.#confirmSubscription(unsubscribeKind, null);
  }

  close(): void {
    this.#isClosed = true;
    this.#stopFollowing?.();
    this.#subscriptionParts.channels.delete(this);
    this.#wakePump();
  }

  *#allSubscriptions(): Generator<ChannelSubscription, void> {
    yield* this.#channelSubscriptions.values();
    yield* this.#patternSubscriptions.values();
  }

  #confirmSubscription(confirmedKind: string, channelName: string | null): void {
    const { replies: pushReplies } = this.#subscriptionParts;
    pushReplies.push(3);
    pushReplies.bulk(confirmedKind);
    if (channelName === null) pushReplies.nothing();
    else pushReplies.bulk(channelName);
    pushReplies.integer(this.count);
  }

  #messageScope({ branch: termsBranch }: Terms): Parameters<ConnectionCaller['parts']['gate']['onVisible']>[0] {
    const { caller } = this.#subscriptionParts.asker;
    const showsPath = (publisherPath: string | null): boolean => caller.sharedFrom !== null || sees(caller.path, publisherPath);
    return { branch: termsBranch ?? caller.branch, tenant: tenantOf(caller.path), type: pubSubType, shows: showsPath };
  }

  #followMessages(): void {
    const { asker: connectionCaller, connection } = this.#subscriptionParts;
    this.#stopFollowing = connectionCaller.parts.gate.onVisible(this.#messageScope(this.#subscribedTerms!), () =>
      this.#notifyPump(),
    );
    connection.gone.addEventListener('abort', () => this.#wakePump(), { once: true });
    void this.#pumpMessages();
  }

  #notifyPump(): void {
    this.#hasNewMessages = true;
    this.#wakePump();
  }

  async #pumpMessages(): Promise<void> {
    const { asker: connectionCaller, connection, flush: flushReplies } = this.#subscriptionParts;
    try {
      while (!this.#isClosed && !connection.gone.aborted) {
        if (!this.#hasNewMessages || this.count === 0) {
          await new Promise<void>((wakePump) => (this.#wakePump = wakePump));
          continue;
        }
        this.#hasNewMessages = false;
        await connection.caughtUp();
        // The next page holds the rest of the news.
        if (await this.#pushMessagePage()) this.#hasNewMessages = true;
        flushReplies();
        await connectionCaller.parts.yieldTurn();
      }
    } catch (pumpError) {
      await connectionCaller.refusalOf(pumpError, 'watch');
      // A push has no request that could be refused: the client learns the reason when it subscribes again.
      connection.end();
    }
  }

  /** Sends the next messages; true: there may be more. */
  async #pushMessagePage(): Promise<boolean> {
    const { asker: connectionCaller } = this.#subscriptionParts;
    const pagedSubscriptions = [...this.#allSubscriptions()];
    let pageAfter = pagedSubscriptions[0]!.after;
    for (const pagedSubscription of pagedSubscriptions)
      if (pagedSubscription.after < pageAfter) pageAfter = pagedSubscription.after;
    const messagesAnswer = await connectionCaller.ask(
      { terms: this.#subscribedTerms!, action: 'watch', continues: true },
      ({ invocation, keep: keepAnswer }) => this.#readMessages(invocation, pageAfter, pagedSubscriptions, keepAnswer),
    );
    const { rows: messageCount, last: lastMessageAt } = this.#sendMessages(messagesAnswer);
    const isFullPage = BigInt(messageCount) === messagePageRows;
    const readUntil = isFullPage ? lastMessageAt : messagesAnswer.asOfSystem;
    for (const each of this.#allSubscriptions())
      if (each.after < readUntil && pagedSubscriptions.includes(each)) each.after = readUntil;
    return isFullPage;
  }

  async #readMessages(
    invocation: Parameters<Parameters<ConnectionCaller['ask']>[1]>[0]['invocation'],
    pageAfter: bigint,
    pagedSubscriptions: readonly ChannelSubscription[],
    keepAnswer: (messagesAnswer: Answer) => void,
  ): Promise<Answer> {
    const subscribedChannels = new Set(pagedSubscriptions.map(({ channel: subscribedChannel }) => subscribedChannel));
    const fewChannels =
      subscribedChannels.has(null) || subscribedChannels.size > 32
        ? []
        : [...subscribedChannels].filter((subscribedChannel) => subscribedChannel !== null);
    const channelCondition =
      fewChannels.length === 0 ? '' : ` WHERE channel IN (${fewChannels.map((_, i) => `$${i + 3}`).join(', ')})`;
    const messagesAnswer = await this.#subscriptionParts.asker.parts.planner.query(invocation, {
      sql: `SELECT channel, message, message_base64, system_from FROM PubSubMessage${channelCondition} LIMIT $1 AFTER $2`,
      parameters: [messagePageRows, String(pageAfter), ...fewChannels],
      time: 'current',
      dialect: 'wide',
      purpose: this.#subscribedTerms!.purpose,
      signal: this.#subscriptionParts.asker.gone,
    });
    keepAnswer(messagesAnswer);
    return messagesAnswer;
  }

  #sendMessages({ columns, batches }: Answer): { readonly rows: number; readonly last: bigint } {
    const { replies: pushReplies } = this.#subscriptionParts;
    let messageCount = 0;
    let lastMessageAt = 0n;
    for (const { columns: messageVectors, selection, first, count: batchRowCount } of batches) {
      for (let i = 0; i < batchRowCount; i++, messageCount++) {
        const messageRow = selection === null ? first + i : selection[i]!;
        const messageCell = (columnIndex: number) => cellAt(messageVectors[columnIndex]!, columns[columnIndex]!.type, messageRow);
        const messageChannel = messageCell(0);
        const messageBase64 = messageCell(2);
        lastMessageAt = messageCell(3) as bigint;
        if (typeof messageChannel !== 'string') continue;
        const messagePayload =
          typeof messageBase64 === 'string' ? Buffer.from(messageBase64, 'base64') : String(messageCell(1) ?? '');
        for (const channelSubscription of this.#channelSubscriptions.values()) {
          if (channelSubscription.after >= lastMessageAt || !channelSubscription.takes(messageChannel)) continue;
          pushReplies.push(3);
          pushReplies.bulk('message');
          pushReplies.bulk(channelSubscription.name);
          pushReplies.bulk(messagePayload);
        }
        for (const each of this.#patternSubscriptions.values()) {
          if (each.after >= lastMessageAt || !each.takes(messageChannel)) continue;
          pushReplies.push(4);
          pushReplies.bulk('pmessage');
          pushReplies.bulk(each.name);
          pushReplies.bulk(messageChannel);
          pushReplies.bulk(messagePayload);
        }
      }
    }
    return { rows: messageCount, last: lastMessageAt };
  }
}

/** `from`: just before the instant that a name ends with; null: from now on. */
function replayStartOf(channelName: string): { readonly channel: string; readonly from: bigint | null } {
  const replayMark = channelName.lastIndexOf('@');
  const replayInstant = channelName.slice(replayMark + 1);
  if (replayMark < 1 || !/^(\d{11,19}|\d{4}-\d\d-\d\d(T[\d:.]+Z?)?)$/.test(replayInstant))
    return { channel: channelName, from: null };
  return { channel: channelName.slice(0, replayMark), from: toInstant(replayInstant) - 1n };
}

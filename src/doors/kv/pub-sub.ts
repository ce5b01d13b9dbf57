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
import { toInstant } from '../schemas/instants.ts';
import type { KvCommandContext } from './command.ts';
import { keyOf, refuseFirst } from './key-value-rows.ts';
import { globOf } from './glob.ts';
import type { RespReplies } from './replies.ts';

const messageType = 'PubSubMessage';
const pageRows = 1_000n;
/** A connection has at most so many. */
const subscriptionsMax = 1_024;

/** All subscriptions of this door: PUBLISH returns the number of receivers. */
export class Channels {
  readonly #all = new Set<Subscriptions>();

  add(subscriptions: Subscriptions): void {
    this.#all.add(subscriptions);
  }

  delete(subscriptions: Subscriptions): void {
    this.#all.delete(subscriptions);
  }

  hearing(message: Published): number {
    let count = 0;
    for (const each of this.#all) count += each.hears(message);
    return count;
  }
}

interface Published {
  readonly channel: string;
  readonly branch: string;
  readonly path: string | null;
  readonly systemFrom: bigint;
}

export async function publish(
  context: KvCommandContext,
  channels: Channels,
  [, respWord, message]: readonly Buffer[],
): Promise<void> {
  const channel = keyOf(respWord!);
  const isText = isUtf8(message!);
  const cells = [
    ['channel', channel],
    isText ? ['message', message!.toString()] : ['message_base64', message!.toString('base64')],
  ] as const;
  const columns = cells.map(([name, text]) => {
    const builder = new VectorBuilder('string', 1);
    builder.appendString(text);
    return { name, type: 'string', vector: builder.build() } as const;
  });
  const { caller } = context.connectionCaller;
  const command: PutRows = {
    kind: 'put-rows',
    type: messageType,
    rows: { length: 1, columns },
    atomic: true,
    createType: false,
    provenance: { source: caller.door, method: 'publish', confidence: 1, derivedFrom: null },
    idsMax: 0,
  };
  const { systemFrom } = await context.write([channel], 'ingest', async ({ invocation }) => {
    const outcome = await invocation.submit(command, { sync: context.terms.durability === 'sync' });
    refuseFirst(outcome);
    return outcome;
  });
  const branch = context.terms.branch ?? caller.branch;
  context.replies.integer(channels.hearing({ channel, branch, path: caller.path, systemFrom }));
}

interface Subscription {
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
  readonly #parts: SubscriptionsDependencies;
  readonly #byChannel = new Map<string, Subscription>();
  readonly #byPattern = new Map<string, Subscription>();
  #terms: Terms | null = null;
  #stop: (() => void) | null = null;
  #news = false;
  #wake: () => void = () => undefined;
  #closed = false;

  constructor(parts: SubscriptionsDependencies) {
    this.#parts = parts;
  }

  get count(): number {
    return this.#byChannel.size + this.#byPattern.size;
  }

  hears({ channel, branch, path, systemFrom }: Published): number {
    const { caller } = this.#parts.asker;
    if (branch !== (this.#terms?.branch ?? caller.branch) || !sees(caller.path, path)) return 0;
    let count = 0;
    for (const each of this.#all()) if (each.from < systemFrom && each.takes(channel)) count++;
    return count;
  }

  /** SUBSCRIBE and PSUBSCRIBE: from now on, or from the instant on that stands behind the last `@` of a name. */
  async open(isPattern: boolean, words: readonly Buffer[], terms: Terms): Promise<void> {
    const { asker: connectionCaller, channels } = this.#parts;
    const named = words.map((respWord) => ({ name: keyOf(respWord), ...replayOf(keyOf(respWord)) }));
    if (this.count + named.length > subscriptionsMax)
      throw new ServiceError('REL_WATCH_LIMIT', `a connection has at most ${subscriptionsMax} subscriptions`);
    // Messages written after the snapshot must be read at once.
    let isBehind = false;
    const noLonger = connectionCaller.parts.gate.onVisible(this.#scope(terms), () => (isBehind = true));
    const now = await connectionCaller
      .ask({ terms, action: 'watch' }, ({ invocation }) => {
        invocation.describe({ objectType: messageType, template: 'SUBSCRIBE ?', literals: named.map(({ name }) => name) });
        return invocation.snapshot().instant;
      })
      .finally(noLonger);
    this.#terms = terms;
    const into = isPattern ? this.#byPattern : this.#byChannel;
    for (const { name, channel, from } of named) {
      const takes = isPattern ? globOf(channel) : (each: string): boolean => each === channel;
      if (!into.has(name))
        into.set(name, { name, takes, channel: isPattern ? null : channel, from: from ?? now, after: from ?? now });
      this.#confirm(isPattern ? 'psubscribe' : 'subscribe', name);
    }
    channels.add(this);
    if (this.#stop === null) this.#follow();
    if (isBehind || named.some(({ from }) => from !== null && from < now)) this.#notify();
  }

  /** UNSUBSCRIBE and PUNSUBSCRIBE; of all where nothing is named. */
  leave(isPattern: boolean, words: readonly Buffer[]): void {
    const from = isPattern ? this.#byPattern : this.#byChannel;
    const kind = isPattern ? 'punsubscribe' : 'unsubscribe';
    const names = words.length > 0 ? words.map((respWord) => respWord.toString()) : [...from.keys()];
    for (const name of names) {
      from.delete(name);
      this.#confirm(kind, name);
    }
    if (names.length === 0) this.#confirm(kind, null);
  }

  close(): void {
    this.#closed = true;
    this.#stop?.();
    this.#parts.channels.delete(this);
    this.#wake();
  }

  *#all(): Generator<Subscription, void> {
    yield* this.#byChannel.values();
    yield* this.#byPattern.values();
  }

  #confirm(kind: string, name: string | null): void {
    const { replies } = this.#parts;
    replies.push(3);
    replies.bulk(kind);
    if (name === null) replies.nothing();
    else replies.bulk(name);
    replies.integer(this.count);
  }

  #scope({ branch }: Terms): Parameters<ConnectionCaller['parts']['gate']['onVisible']>[0] {
    const { caller } = this.#parts.asker;
    const shows = (path: string | null): boolean => caller.sharedFrom !== null || sees(caller.path, path);
    return { branch: branch ?? caller.branch, tenant: tenantOf(caller.path), type: messageType, shows };
  }

  #follow(): void {
    const { asker: connectionCaller, connection } = this.#parts;
    this.#stop = connectionCaller.parts.gate.onVisible(this.#scope(this.#terms!), () => this.#notify());
    connection.gone.addEventListener('abort', () => this.#wake(), { once: true });
    void this.#pump();
  }

  #notify(): void {
    this.#news = true;
    this.#wake();
  }

  async #pump(): Promise<void> {
    const { asker: connectionCaller, connection, flush } = this.#parts;
    try {
      while (!this.#closed && !connection.gone.aborted) {
        if (!this.#news || this.count === 0) {
          await new Promise<void>((resolve) => (this.#wake = resolve));
          continue;
        }
        this.#news = false;
        await connection.caughtUp();
        // The next page holds the rest of the news.
        if (await this.#page()) this.#news = true;
        flush();
        await connectionCaller.parts.yieldTurn();
      }
    } catch (error) {
      await connectionCaller.refusalOf(error, 'watch');
      // A push has no request that could be refused: the client learns the reason when it subscribes again.
      connection.end();
    }
  }

  /** Sends the next messages; true: there may be more. */
  async #page(): Promise<boolean> {
    const { asker: connectionCaller } = this.#parts;
    const subscriptions = [...this.#all()];
    let after = subscriptions[0]!.after;
    for (const each of subscriptions) if (each.after < after) after = each.after;
    const answer = await connectionCaller.ask({ terms: this.#terms!, action: 'watch', continues: true }, ({ invocation, keep }) =>
      this.#read(invocation, after, subscriptions, keep),
    );
    const { rows, last } = this.#send(answer);
    const isFull = BigInt(rows) === pageRows;
    const until = isFull ? last : answer.asOfSystem;
    for (const each of this.#all()) if (each.after < until && subscriptions.includes(each)) each.after = until;
    return isFull;
  }

  async #read(
    invocation: Parameters<Parameters<ConnectionCaller['ask']>[1]>[0]['invocation'],
    after: bigint,
    subscriptions: readonly Subscription[],
    keep: (answer: Answer) => void,
  ): Promise<Answer> {
    const channels = new Set(subscriptions.map(({ channel }) => channel));
    const few = channels.has(null) || channels.size > 32 ? [] : [...channels].filter((channel) => channel !== null);
    const among = few.length === 0 ? '' : ` WHERE channel IN (${few.map((_, i) => `$${i + 3}`).join(', ')})`;
    const answer = await this.#parts.asker.parts.planner.query(invocation, {
      sql: `SELECT channel, message, message_base64, system_from FROM PubSubMessage${among} LIMIT $1 AFTER $2`,
      parameters: [pageRows, String(after), ...few],
      time: 'current',
      dialect: 'wide',
      purpose: this.#terms!.purpose,
      signal: this.#parts.asker.gone,
    });
    keep(answer);
    return answer;
  }

  #send({ columns, batches }: Answer): { readonly rows: number; readonly last: bigint } {
    const { replies } = this.#parts;
    let rows = 0;
    let last = 0n;
    for (const { columns: vectors, selection, first, count } of batches) {
      for (let i = 0; i < count; i++, rows++) {
        const at = selection === null ? first + i : selection[i]!;
        const cell = (column: number) => cellAt(vectors[column]!, columns[column]!.type, at);
        const channel = cell(0);
        const base64 = cell(2);
        last = cell(3) as bigint;
        if (typeof channel !== 'string') continue;
        const message = typeof base64 === 'string' ? Buffer.from(base64, 'base64') : String(cell(1) ?? '');
        for (const each of this.#byChannel.values()) {
          if (each.after >= last || !each.takes(channel)) continue;
          replies.push(3);
          replies.bulk('message');
          replies.bulk(each.name);
          replies.bulk(message);
        }
        for (const each of this.#byPattern.values()) {
          if (each.after >= last || !each.takes(channel)) continue;
          replies.push(4);
          replies.bulk('pmessage');
          replies.bulk(each.name);
          replies.bulk(channel);
          replies.bulk(message);
        }
      }
    }
    return { rows, last };
  }
}

/** `from`: just before the instant that a name ends with; null: from now on. */
function replayOf(name: string): { readonly channel: string; readonly from: bigint | null } {
  const at = name.lastIndexOf('@');
  const stated = name.slice(at + 1);
  if (at < 1 || !/^(\d{11,19}|\d{4}-\d\d-\d\d(T[\d:.]+Z?)?)$/.test(stated)) return { channel: name, from: null };
  return { channel: name.slice(0, at), from: toInstant(stated) - 1n };
}

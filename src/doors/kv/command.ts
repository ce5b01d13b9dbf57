/** A command of the key-value door, and its context. */
import { ServiceError } from '../../errors.ts';
import type { Invocation } from '../../governance/gate-contract.ts';
import type { DefaultTime } from '../../planner/syntax/statement.ts';
import { batchRowsMax, type DeleteRows, type PutRows } from '../../projections/command.ts';
import type { ConnectionCaller, CommandInvocation } from '../shared/connection-caller.ts';
import { markConflictsStale } from '../shared/stale-conflicts.ts';
import { type CommandCost, longBytes } from '../shared/codec.ts';
import type { Terms } from '../shared/session-terms.ts';
import {
  type Entry,
  entryType,
  keyOf,
  ownKeys,
  type Put,
  type PutTerms,
  putCommand,
  readEntries,
  readManyEntries,
  readOwn,
  refuseFirst,
  WordPace,
} from './key-value-rows.ts';
import { respRefusals } from './errors.ts';
import { RespReplies } from './replies.ts';
import type { ScanCursors } from './scan-cursors.ts';

export interface KvCommandRow {
  /** Words, the name among them; negative: at least so many. */
  readonly arity: number;
  /** Takes ANNALS.AT before it. */
  readonly reads: boolean;
  readonly cost: CommandCost;
  /** Place of the first key, of the last (negative: from the end), and how far they are apart; none: 0, 0, 0. */
  readonly keys: readonly [number, number, number];
  run(context: KvCommandContext, words: readonly Buffer[]): Promise<void>;
}

export const doorName = 'kv';

/** Looks keys up, and copies values: both in turns. */
export const ofKeys: CommandCost = { part: 2_000, byte: 1, inSteps: true };
/** Goes over all keys that there are, as a question does. */
export const ofAllKeys: CommandCost = { part: 300, byte: 0, inSteps: true };

const keysMax = 65_536;
/** Bytes counted for a written key beside its value. */
const putBytes = 512;
/** Keys that are deleted in one turn: of more, some are gone before the others. */
const keysEndedInTurn = 512;

/** The context of one command. */
export class KvCommandContext {
  readonly connectionCaller: ConnectionCaller;
  readonly replies: RespReplies;
  readonly terms: Terms;
  readonly time: DefaultTime;
  readonly cursors: ScanCursors;
  /** The name as it was sent. */
  readonly name: string;

  constructor(name: string, facts: Pick<KvCommandContext, 'connectionCaller' | 'replies' | 'terms' | 'time' | 'cursors'>) {
    this.name = name;
    this.connectionCaller = facts.connectionCaller;
    this.replies = facts.replies;
    this.terms = facts.terms;
    this.time = facts.time;
    this.cursors = facts.cursors;
  }

  now(): bigint {
    return this.connectionCaller.parts.clock.now();
  }

  /** Values of these keys, by one look-up. */
  read(redisKeys: readonly string[]): Promise<ReadonlyMap<string, Entry>> {
    const { planner, yieldTurn } = this.connectionCaller.parts;
    return this.connectionCaller.ask({ terms: this.terms, keysRead: redisKeys.length }, async ({ invocation, keep }) => {
      const { entries, answer } =
        redisKeys.length === 1
          ? readEntries(planner, invocation, redisKeys, this.time)
          : await readManyEntries(planner, invocation, redisKeys, {
              time: this.time,
              signal: this.connectionCaller.gone,
              yieldTurn,
            });
      if (redisKeys.length === 1) await this.#yieldIfLong(entries.get(redisKeys[0]!)?.value.length ?? 0);
      keep(answer);
      return entries;
    });
  }

  /** Runs `step` for each, in turns; it may tell how many bytes that took. */
  async forEach<T>(all: Iterable<T>, step: (each: T) => number | void): Promise<void> {
    const pace = new WordPace(this.connectionCaller.parts.yieldTurn);
    for (const each of all) {
      const due = pace.did(step(each) ?? 0);
      if (due !== null) await due;
    }
  }

  /** Counts bytes to copy; a promise where others have a turn first. */
  #yieldIfLong(bytes: number): Promise<void> | null {
    return bytes > longBytes ? this.connectionCaller.parts.yieldTurn() : null;
  }

  /** The reply: a list, in turns, of which nothing stands among the replies before all does. */
  async list<T>(all: readonly T[], write: (replies: RespReplies, each: T) => void): Promise<void> {
    const replies = new RespReplies();
    replies.protocol = this.replies.protocol;
    replies.array(all.length);
    await this.forEach(all, (each) => {
      const before = replies.length;
      write(replies, each);
      return replies.length - before;
    });
    this.replies.append(replies);
  }

  /** Keys that these words are. */
  async keys(words: readonly Buffer[]): Promise<string[]> {
    checkKeys(words.length);
    const redisKeys: string[] = [];
    await this.forEach(words, (respWord) => void redisKeys.push(keyOf(respWord)));
    return redisKeys;
  }

  /** Runs what writes these keys, recorded as the command that it is. */
  write<T>(
    redisKeys: readonly string[],
    action: 'ingest' | 'delete',
    run: (asking: CommandInvocation) => Promise<T>,
  ): Promise<T> {
    const act = { action, template: `${this.name.toUpperCase()} ?`, literals: redisKeys };
    return this.connectionCaller.ask({ terms: this.terms, writes: true, keysRead: redisKeys.length, act }, run);
  }

  /** False where the keys stand otherwise than `when` says. */
  async put(puts: readonly Put[], terms: PutTerms = {}): Promise<boolean> {
    if (puts.length > batchRowsMax)
      throw new ServiceError('REL_TOO_LARGE', `a command writes at most ${batchRowsMax} keys, all of them or none`);
    const command = putCommand(puts, doorName, terms);
    await this.#yieldIfLong(puts.reduce((sum, { value }) => sum + value.length, puts.length * putBytes));
    const redisKeys = puts.map(({ key: redisKey }) => redisKey);
    return this.write(redisKeys, 'ingest', async ({ invocation }) => {
      try {
        await this.#submit(invocation, command);
        return true;
      } catch (error) {
        if (command.when !== undefined && error instanceof ServiceError && error.code === 'REL_CONFLICT') return false;
        throw error;
      }
    });
  }

  /** Deletes a key, and returns its former entry. */
  end(redisKey: string): Promise<Entry | null> {
    const { planner } = this.connectionCaller.parts;
    return this.#retryConflicts(redisKey, 'delete', async (invocation) => {
      const { entry: kvEntry, instant } = readOwn(planner, invocation, redisKey);
      if (kvEntry === null) return null;
      await this.#submit(invocation, {
        kind: 'delete-rows',
        type: entryType,
        keys: [redisKey],
        when: { unchangedSince: instant },
      });
      return kvEntry;
    });
  }

  /** Deletes the existing ones of these keys; returns their number. */
  endAll(redisKeys: readonly string[]): Promise<number> {
    const asked = [...new Set(redisKeys)];
    const { planner, yieldTurn } = this.connectionCaller.parts;
    return this.write(asked, 'delete', async ({ invocation }) => {
      const own = await ownKeys(planner, invocation, asked, { signal: this.connectionCaller.gone, yieldTurn });
      for (let at = 0; at < own.length; at += keysEndedInTurn) {
        if (at > 0) await yieldTurn();
        await this.#submit(invocation, { kind: 'delete-rows', type: entryType, keys: own.slice(at, at + keysEndedInTurn) });
      }
      return own.length;
    });
  }

  #retryConflicts<T>(redisKey: string, action: 'ingest' | 'delete', attempt: (invocation: Invocation) => Promise<T>): Promise<T> {
    return this.write([redisKey], action, ({ invocation }) =>
      invocation.retryConflicts(`${entryType} ${redisKey}`, () => attempt(invocation)),
    );
  }

  async #submit(invocation: Invocation, command: PutRows | DeleteRows): Promise<void> {
    await markConflictsStale(async () =>
      refuseFirst(await invocation.submit(command, { sync: this.terms.durability === 'sync' })),
    );
  }

  /**
   * Writes a key depending on its value, again where another client changed it meanwhile. `change` returns the new value; null:
   * unchanged.
   */
  change<T>(
    redisKey: string,
    change: (kvEntry: Entry | null) => { readonly put: Omit<Put, 'key'> | null; readonly result: T },
  ): Promise<T> {
    const { planner } = this.connectionCaller.parts;
    return this.#retryConflicts(redisKey, 'ingest', async (invocation) => {
      const { entry: kvEntry, instant } = readOwn(planner, invocation, redisKey);
      await this.#yieldIfLong(kvEntry?.value.length ?? 0);
      const { put, result } = change(kvEntry);
      if (put === null) return result;
      await this.#yieldIfLong(put.value.length);
      const when = kvEntry === null ? 'absent' : { unchangedSince: instant };
      const isOver = (): boolean => put.expires !== undefined && put.expires <= this.now();
      try {
        if (!isOver()) {
          const command = putCommand([{ ...put, key: redisKey }], doorName, { when, fromValue: kvEntry !== null });
          await this.#yieldIfLong(put.value.length);
          await this.#submit(invocation, command);
          return result;
        }
      } catch (error) {
        if (!(error instanceof ServiceError) || error.code !== 'REL_INVALID' || !isOver()) throw error;
      }
      // A value that expires before it is written is the same as a deleted one.
      if (kvEntry !== null)
        await this.#submit(invocation, {
          kind: 'delete-rows',
          type: entryType,
          keys: [redisKey],
          when: { unchangedSince: instant },
        });
      return result;
    });
  }
}

export function checkKeys(count: number): void {
  if (count > keysMax) throw new ServiceError('REL_TOO_LARGE', `a command names at most ${keysMax} keys`);
}

/** A whole number as Redis takes one: i64, no sign but a minus, no leading zero. */
export function integerOf(word: Buffer | string): bigint {
  const text = word.toString();
  if (!/^(0|-?[1-9]\d{0,18})$/.test(text)) throw respRefusals.notInteger();
  const value = BigInt(text);
  if (value !== BigInt.asIntN(64, value)) throw respRefusals.notInteger();
  return value;
}

export const upper = (respWord: Buffer): string => respWord.toString('latin1').toUpperCase();

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

const commandKeysMax = 65_536;
/** Bytes counted for a written key beside its value. */
const putOverheadBytes = 512;
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

  constructor(
    commandName: string,
    contextFacts: Pick<KvCommandContext, 'connectionCaller' | 'replies' | 'terms' | 'time' | 'cursors'>,
  ) {
    this.name = commandName;
    this.connectionCaller = contextFacts.connectionCaller;
    this.replies = contextFacts.replies;
    this.terms = contextFacts.terms;
    this.time = contextFacts.time;
    this.cursors = contextFacts.cursors;
  }

  now(): bigint {
    return this.connectionCaller.parts.clock.now();
  }

  /** Values of these keys, by one look-up. */
  read(redisKeys: readonly string[]): Promise<ReadonlyMap<string, Entry>> {
    const { planner, yieldTurn } = this.connectionCaller.parts;
    return this.connectionCaller.ask(
      { terms: this.terms, keysRead: redisKeys.length },
      async ({ invocation, keep: keepAnswer }) => {
        const { entries: kvEntries, answer: entriesAnswer } =
          redisKeys.length === 1
            ? readEntries(planner, invocation, redisKeys, this.time)
            : await readManyEntries(planner, invocation, redisKeys, {
                time: this.time,
                signal: this.connectionCaller.gone,
                yieldTurn,
              });
        if (redisKeys.length === 1) await this.#yieldIfLong(kvEntries.get(redisKeys[0]!)?.value.length ?? 0);
        keepAnswer(entriesAnswer);
        return kvEntries;
      },
    );
  }

  /** Runs `walkStep` for each, in turns; it may tell how many bytes that took. */
  async forEach<T>(walkedItems: Iterable<T>, walkStep: (walkedItem: T) => number | void): Promise<void> {
    const wordPace = new WordPace(this.connectionCaller.parts.yieldTurn);
    for (const walkedItem of walkedItems) {
      const dueTurn = wordPace.did(walkStep(walkedItem) ?? 0);
      if (dueTurn !== null) await dueTurn;
    }
  }

  /** Counts bytes to copy; a promise where others have a turn first. */
  #yieldIfLong(valueBytes: number): Promise<void> | null {
    return valueBytes > longBytes ? this.connectionCaller.parts.yieldTurn() : null;
  }

  /** The reply: a list, in turns, of which nothing stands among the replies before all does. */
  async list<T>(listedItems: readonly T[], writeReply: (listReplies: RespReplies, listedItem: T) => void): Promise<void> {
    const listReplies = new RespReplies();
    listReplies.protocol = this.replies.protocol;
    listReplies.array(listedItems.length);
    await this.forEach(listedItems, (listedItem) => {
      const lengthBefore = listReplies.length;
      writeReply(listReplies, listedItem);
      return listReplies.length - lengthBefore;
    });
    this.replies.append(listReplies);
  }

  /** Keys that these words are. */
  async keys(keyWords: readonly Buffer[]): Promise<string[]> {
    checkKeys(keyWords.length);
    const redisKeys: string[] = [];
    await this.forEach(keyWords, (respWord) => void redisKeys.push(keyOf(respWord)));
    return redisKeys;
  }

  /** Runs what writes these keys, recorded as the command that it is. */
  write<T>(
    redisKeys: readonly string[],
    writeAction: 'ingest' | 'delete',
    runWrite: (asking: CommandInvocation) => Promise<T>,
  ): Promise<T> {
    const commandAct = { action: writeAction, template: `${this.name.toUpperCase()} ?`, literals: redisKeys };
    return this.connectionCaller.ask({ terms: this.terms, writes: true, keysRead: redisKeys.length, act: commandAct }, runWrite);
  }

  /** False where the keys stand otherwise than `when` says. */
  async put(entryPuts: readonly Put[], putTerms: PutTerms = {}): Promise<boolean> {
    if (entryPuts.length > batchRowsMax)
      throw new ServiceError('REL_TOO_LARGE', `a command writes at most ${batchRowsMax} keys, all of them or none`);
    const putRowsCommand = putCommand(entryPuts, doorName, putTerms);
    await this.#yieldIfLong(
      entryPuts.reduce(
        (valueBytesSum, { value: putValue }) => valueBytesSum + putValue.length,
        entryPuts.length * putOverheadBytes,
      ),
    );
    const redisKeys = entryPuts.map(({ key: redisKey }) => redisKey);
    return this.write(redisKeys, 'ingest', async ({ invocation }) => {
      try {
        await this.#submit(invocation, putRowsCommand);
        return true;
      } catch (putError) {
        if (putRowsCommand.when !== undefined && putError instanceof ServiceError && putError.code === 'REL_CONFLICT')
          return false;
        throw putError;
      }
    });
  }

  /** Deletes a key, and returns its former entry. */
  end(redisKey: string): Promise<Entry | null> {
    const { planner } = this.connectionCaller.parts;
    return this.#retryConflicts(redisKey, 'delete', async (invocation) => {
      const { entry: kvEntry, instant: readInstant } = readOwn(planner, invocation, redisKey);
      if (kvEntry === null) return null;
      await this.#submit(invocation, {
        kind: 'delete-rows',
        type: entryType,
        keys: [redisKey],
        when: { unchangedSince: readInstant },
      });
      return kvEntry;
    });
  }

  /** Deletes the existing ones of these keys; returns their number. */
  endAll(redisKeys: readonly string[]): Promise<number> {
    const distinctKeys = [...new Set(redisKeys)];
    const { planner, yieldTurn } = this.connectionCaller.parts;
    return this.write(distinctKeys, 'delete', async ({ invocation }) => {
      const ownEntryKeys = await ownKeys(planner, invocation, distinctKeys, { signal: this.connectionCaller.gone, yieldTurn });
      for (let endedOffset = 0; endedOffset < ownEntryKeys.length; endedOffset += keysEndedInTurn) {
        if (endedOffset > 0) await yieldTurn();
        await this.#submit(invocation, {
          kind: 'delete-rows',
          type: entryType,
          keys: ownEntryKeys.slice(endedOffset, endedOffset + keysEndedInTurn),
        });
      }
      return ownEntryKeys.length;
    });
  }

  #retryConflicts<T>(
    redisKey: string,
    writeAction: 'ingest' | 'delete',
    attemptWrite: (invocation: Invocation) => Promise<T>,
  ): Promise<T> {
    return this.write([redisKey], writeAction, ({ invocation }) =>
      invocation.retryConflicts(`${entryType} ${redisKey}`, () => attemptWrite(invocation)),
    );
  }

  async #submit(invocation: Invocation, rowsCommand: PutRows | DeleteRows): Promise<void> {
    await markConflictsStale(async () =>
      refuseFirst(await invocation.submit(rowsCommand, { sync: this.terms.durability === 'sync' })),
    );
  }

  /**
   * Writes a key depending on its value, again where another client changed it meanwhile. `changeEntry` returns the new value; null:
   * unchanged.
   */
  change<T>(
    redisKey: string,
    changeEntry: (kvEntry: Entry | null) => { readonly put: Omit<Put, 'key'> | null; readonly result: T },
  ): Promise<T> {
    const { planner } = this.connectionCaller.parts;
    return this.#retryConflicts(redisKey, 'ingest', async (invocation) => {
      const { entry: kvEntry, instant: readInstant } = readOwn(planner, invocation, redisKey);
      await this.#yieldIfLong(kvEntry?.value.length ?? 0);
      const { put: entryPut, result: changeResult } = changeEntry(kvEntry);
      if (entryPut === null) return changeResult;
      await this.#yieldIfLong(entryPut.value.length);
      const putCondition = kvEntry === null ? 'absent' : { unchangedSince: readInstant };
      const isExpiredNow = (): boolean => entryPut.expires !== undefined && entryPut.expires <= this.now();
      try {
        if (!isExpiredNow()) {
          const putRowsCommand = putCommand([{ ...entryPut, key: redisKey }], doorName, {
            when: putCondition,
            fromValue: kvEntry !== null,
          });
          await this.#yieldIfLong(entryPut.value.length);
          await this.#submit(invocation, putRowsCommand);
          return changeResult;
        }
      } catch (changeError) {
        if (!(changeError instanceof ServiceError) || changeError.code !== 'REL_INVALID' || !isExpiredNow()) throw changeError;
      }
      // A value that expires before it is written is the same as a deleted one.
      if (kvEntry !== null)
        await this.#submit(invocation, {
          kind: 'delete-rows',
          type: entryType,
          keys: [redisKey],
          when: { unchangedSince: readInstant },
        });
      return changeResult;
    });
  }
}

export function checkKeys(keyCount: number): void {
  if (keyCount > commandKeysMax) throw new ServiceError('REL_TOO_LARGE', `a command names at most ${commandKeysMax} keys`);
}

/** A whole number as Redis takes one: i64, no sign but a minus, no leading zero. */
export function integerOf(integerWord: Buffer | string): bigint {
  const integerText = integerWord.toString();
  if (!/^(0|-?[1-9]\d{0,18})$/.test(integerText)) throw respRefusals.notInteger();
  const integerValue = BigInt(integerText);
  if (integerValue !== BigInt.asIntN(64, integerValue)) throw respRefusals.notInteger();
  return integerValue;
}

export const upper = (respWord: Buffer): string => respWord.toString('latin1').toUpperCase();

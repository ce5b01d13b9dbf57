/** GET, SET, INCR, APPEND and the other commands on values. */
import { ServiceError } from '../../errors.ts';
import { FOREVER } from '../../log/values/timestamp.ts';
import { type KvCommandContext, type KvCommandRow, integerOf, ofKeys, upper } from './command.ts';
import { type Entry, keyOf, type Put } from './key-value-rows.ts';
import { respRefusals } from './errors.ts';
import { type LongDouble, longDoubleOf, plainText, sumOf } from './long-double.ts';

const nsPerMs = 1_000_000n;

const int64Max = 2n ** 63n - 1n;
/** No row ends later. */
const lastExpiryNs = FOREVER - 1n;

/** The instant of an expiry; throws Redis' errors for an invalid one. */
export function expiryOf(
  respContext: KvCommandContext,
  expiryUnit: string,
  respWord: Buffer,
  pastExpiry: 'refused' | 'taken' = 'refused',
): bigint {
  const expiryAmount = integerOf(respWord);
  const inSeconds = expiryUnit === 'EX' || expiryUnit === 'EXAT';
  const isRelative = expiryUnit === 'EX' || expiryUnit === 'PX';
  const milliseconds = expiryAmount * (inSeconds ? 1_000n : 1n);
  const expiryMs = milliseconds + (isRelative ? respContext.now() / nsPerMs : 0n);
  const isHuge = expiryMs > int64Max || (inSeconds && (expiryAmount > int64Max / 1_000n || expiryAmount < -(int64Max / 1_000n)));
  if (isHuge || (pastExpiry === 'refused' && expiryAmount <= 0n)) throw respRefusals.expireTime(respContext.name);
  const expiryNs = expiryMs * nsPerMs;
  return expiryNs > lastExpiryNs ? lastExpiryNs : expiryNs < 0n ? 0n : expiryNs;
}

const expiryUnits: ReadonlySet<string> = new Set(['EX', 'PX', 'EXAT', 'PXAT']);

/** The expiry options of a command: a unit and a word, KEEPTTL or PERSIST; of one unit the last word counts. */
interface StatedExpiry {
  readonly unit: string;
  readonly word: Buffer | null;
}

interface SetOptions {
  readonly lasts: StatedExpiry | null;
  readonly when: 'absent' | 'present' | null;
  readonly get: boolean;
}

function setOptionsIn(optionWords: readonly Buffer[], commandKind: 'set' | 'getex'): SetOptions {
  let statedExpiry: StatedExpiry | null = null;
  let setCondition: SetOptions['when'] = null;
  let isGetting = false;
  const keepOption = commandKind === 'set' ? 'KEEPTTL' : 'PERSIST';
  for (let i = 0; i < optionWords.length; i++) {
    const setOption = upper(optionWords[i]!);
    const mayStateExpiry = statedExpiry === null || statedExpiry.unit === setOption;
    if (commandKind === 'set' && setOption === 'NX' && setCondition !== 'present') setCondition = 'absent';
    else if (commandKind === 'set' && setOption === 'XX' && setCondition !== 'absent') setCondition = 'present';
    else if (commandKind === 'set' && setOption === 'GET') isGetting = true;
    else if (setOption === keepOption && mayStateExpiry) statedExpiry = { unit: setOption, word: null };
    else if (expiryUnits.has(setOption) && mayStateExpiry && i + 1 < optionWords.length)
      statedExpiry = { unit: setOption, word: optionWords[++i]! };
    else throw respRefusals.syntax();
  }
  return { lasts: statedExpiry, when: setCondition, get: isGetting };
}

async function setCommand(respContext: KvCommandContext, setWords: readonly Buffer[]): Promise<void> {
  const { replies: setReplies } = respContext;
  const redisKey = keyOf(setWords[1]!);
  const setValue = setWords[2]!;
  const { lasts: statedExpiry, when: setCondition, get: isGetting } = setOptionsIn(setWords.slice(3), 'set');
  const keepsExpiry = statedExpiry?.unit === 'KEEPTTL';
  const expiresNs = statedExpiry?.word ? expiryOf(respContext, statedExpiry.unit, statedExpiry.word) : FOREVER;
  if (!isGetting && !keepsExpiry) {
    const isSet = await putOrEnd(respContext, { key: redisKey, value: setValue, expires: expiresNs }, setCondition);
    return isSet ? setReplies.simple('OK') : setReplies.nothing();
  }
  const entryBefore = await respContext.change(redisKey, (kvEntry) => {
    const isLeftAlone = (setCondition === 'absent' && kvEntry !== null) || (setCondition === 'present' && kvEntry === null);
    const lastsUntil = keepsExpiry ? (kvEntry?.expires ?? FOREVER) : expiresNs;
    return {
      put: isLeftAlone ? null : { value: setValue, expires: lastsUntil },
      result: { entry: kvEntry, isLeft: isLeftAlone },
    };
  });
  if (isGetting) return entryBefore.entry === null ? setReplies.nothing() : setReplies.bulk(entryBefore.entry.value);
  if (entryBefore.isLeft) setReplies.nothing();
  else setReplies.simple('OK');
}

/** A value that expires before it is written is the same as a deleted one. */
async function putOrEnd(respContext: KvCommandContext, entryPut: Put, setCondition: SetOptions['when']): Promise<boolean> {
  const { key: redisKey, expires: expiresNs = FOREVER } = entryPut;
  try {
    if (expiresNs > respContext.now())
      return await respContext.put([entryPut], setCondition === null ? {} : { when: setCondition });
  } catch (putError) {
    if (!(putError instanceof ServiceError) || putError.code !== 'REL_INVALID' || expiresNs > respContext.now()) throw putError;
  }
  if (setCondition !== null && (await respContext.read([redisKey])).has(redisKey) !== (setCondition === 'present')) return false;
  await respContext.endAll([redisKey]);
  return true;
}

const setExCommand =
  (expiryOption: 'EX' | 'PX') =>
  async (respContext: KvCommandContext, [, keyWord, amountWord, valueWord]: readonly Buffer[]): Promise<void> => {
    const expiresNs = expiryOf(respContext, expiryOption, amountWord!);
    await putOrEnd(respContext, { key: keyOf(keyWord!), value: valueWord!, expires: expiresNs }, null);
    respContext.replies.simple('OK');
  };

async function getCommand(respContext: KvCommandContext, [, respWord]: readonly Buffer[]): Promise<void> {
  const redisKey = keyOf(respWord!);
  replyWithValue(respContext, (await respContext.read([redisKey])).get(redisKey));
}

function replyWithValue({ replies: respReplies }: Pick<KvCommandContext, 'replies'>, kvEntry: Entry | null | undefined): void {
  if (!kvEntry) respReplies.nothing();
  else respReplies.bulk(kvEntry.value);
}

async function getExCommand(respContext: KvCommandContext, getExWords: readonly Buffer[]): Promise<void> {
  const redisKey = keyOf(getExWords[1]!);
  const { lasts: statedExpiry } = setOptionsIn(getExWords.slice(2), 'getex');
  if (statedExpiry === null) return getCommand(respContext, getExWords);
  const formerEntry = await respContext.change(redisKey, (kvEntry) => {
    if (kvEntry === null) return { put: null, result: kvEntry };
    const expiresNs = statedExpiry.word === null ? FOREVER : expiryOf(respContext, statedExpiry.unit, statedExpiry.word);
    return { put: kvEntry.expires === expiresNs ? null : { ...kvEntry, expires: expiresNs }, result: kvEntry };
  });
  replyWithValue(respContext, formerEntry);
}

async function putPairs(
  respContext: KvCommandContext,
  pairWords: readonly Buffer[],
  putCondition: 'absent' | null,
): Promise<boolean> {
  if (pairWords.length % 2 === 0) throw respRefusals.arity(respContext.name);
  const redisKeys = await respContext.keys(pairWords.filter((_, i) => i % 2 === 1));
  const entryPuts = new Map(
    redisKeys.map((redisKey, i): [string, Put] => [redisKey, { key: redisKey, value: pairWords[i * 2 + 2]! }]),
  );
  return respContext.put([...entryPuts.values()], putCondition === null ? {} : { when: putCondition });
}

async function addToInteger(respContext: KvCommandContext, respWord: Buffer, addedAmount: bigint): Promise<void> {
  const integerSum = await respContext.change(keyOf(respWord), (kvEntry) => {
    const nextInteger = (kvEntry === null ? 0n : integerOf(kvEntry.value)) + addedAmount;
    if (nextInteger !== BigInt.asIntN(64, nextInteger)) throw respRefusals.overflow();
    return { put: { ...keptEntryOptions(kvEntry), value: String(nextInteger) }, result: nextInteger };
  });
  respContext.replies.integer(integerSum);
}

function decrementAmountOf(respWord: Buffer): bigint {
  const decrementAmount = integerOf(respWord);
  if (decrementAmount === -int64Max - 1n) throw respRefusals.decrementOverflow();
  return decrementAmount;
}

async function incrByFloatCommand(respContext: KvCommandContext, [, respWord, amountWord]: readonly Buffer[]): Promise<void> {
  const floatSum = await respContext.change(keyOf(respWord!), (kvEntry) => {
    const nextFloat = sumOf(kvEntry === null ? zeroLongDouble : longFloatOf(kvEntry.value), longFloatOf(amountWord!));
    if (typeof nextFloat === 'number') throw respRefusals.notFinite();
    const floatText = plainText(nextFloat);
    return { put: { ...keptEntryOptions(kvEntry), value: floatText }, result: floatText };
  });
  respContext.replies.bulk(floatSum);
}

const keptEntryOptions = (kvEntry: Entry | null): Pick<Put, 'expires' | 'others'> =>
  kvEntry === null ? {} : { expires: kvEntry.expires, others: kvEntry.others };

const zeroLongDouble: LongDouble = { mantissa: 0n, exponent: 0 };

function longFloatOf(floatText: Buffer | string): LongDouble {
  const longDouble = longDoubleOf(floatText.toString());
  if (longDouble === null) throw respRefusals.notFloat();
  return longDouble;
}

export const stringCommands: Readonly<Record<string, KvCommandRow>> = {
  get: { arity: 2, reads: true, cost: ofKeys, keys: [1, 1, 1], run: getCommand },
  set: { arity: -3, reads: false, cost: ofKeys, keys: [1, 1, 1], run: setCommand },
  setex: { arity: 4, reads: false, cost: ofKeys, keys: [1, 1, 1], run: setExCommand('EX') },
  psetex: { arity: 4, reads: false, cost: ofKeys, keys: [1, 1, 1], run: setExCommand('PX') },
  setnx: {
    arity: 3,
    reads: false,
    cost: ofKeys,
    keys: [1, 1, 1],
    run: async (respContext, respWords) =>
      respContext.replies.integer((await putPairs(respContext, respWords, 'absent')) ? 1 : 0),
  },
  getset: {
    arity: 3,
    reads: false,
    cost: ofKeys,
    keys: [1, 1, 1],
    run: (respContext, respWords) => setCommand(respContext, [...respWords, Buffer.from('GET')]),
  },
  getdel: {
    arity: 2,
    reads: false,
    cost: ofKeys,
    keys: [1, 1, 1],
    run: async (respContext, [, respWord]) => replyWithValue(respContext, await respContext.end(keyOf(respWord!))),
  },
  getex: { arity: -2, reads: false, cost: ofKeys, keys: [1, 1, 1], run: getExCommand },
  mget: {
    arity: -2,
    reads: true,
    cost: ofKeys,
    keys: [1, -1, 1],
    run: async (respContext, [, ...respWords]) => {
      const redisKeys = await respContext.keys(respWords);
      const kvEntries = await respContext.read(redisKeys);
      await respContext.list(redisKeys, (listReplies, redisKey) =>
        replyWithValue({ replies: listReplies }, kvEntries.get(redisKey)),
      );
    },
  },
  mset: {
    arity: -3,
    reads: false,
    cost: ofKeys,
    keys: [1, -1, 2],
    run: async (respContext, respWords) => {
      await putPairs(respContext, respWords, null);
      respContext.replies.simple('OK');
    },
  },
  msetnx: {
    arity: -3,
    reads: false,
    cost: ofKeys,
    keys: [1, -1, 2],
    run: async (respContext, respWords) =>
      respContext.replies.integer((await putPairs(respContext, respWords, 'absent')) ? 1 : 0),
  },
  strlen: {
    arity: 2,
    reads: true,
    cost: ofKeys,
    keys: [1, 1, 1],
    run: async (respContext, [, respWord]) => {
      const redisKey = keyOf(respWord!);
      const kvEntry = (await respContext.read([redisKey])).get(redisKey);
      respContext.replies.integer(kvEntry === undefined ? 0 : Buffer.byteLength(kvEntry.value));
    },
  },
  append: {
    arity: 3,
    reads: false,
    cost: ofKeys,
    keys: [1, 1, 1],
    run: async (respContext, [, respWord, appendedWord]) => {
      const appendedLength = await respContext.change(keyOf(respWord!), (kvEntry) => {
        const valueBefore = typeof kvEntry?.value === 'string' ? Buffer.from(kvEntry.value) : kvEntry?.value;
        const joinedValue = valueBefore === undefined ? appendedWord! : Buffer.concat([valueBefore, appendedWord!]);
        return { put: { ...keptEntryOptions(kvEntry), value: joinedValue }, result: joinedValue.length };
      });
      respContext.replies.integer(appendedLength);
    },
  },
  incr: {
    arity: 2,
    reads: false,
    cost: ofKeys,
    keys: [1, 1, 1],
    run: (respContext, [, entryKey]) => addToInteger(respContext, entryKey!, 1n),
  },
  decr: {
    arity: 2,
    reads: false,
    cost: ofKeys,
    keys: [1, 1, 1],
    run: (respContext, [, entryKey]) => addToInteger(respContext, entryKey!, -1n),
  },
  incrby: {
    arity: 3,
    reads: false,
    cost: ofKeys,
    keys: [1, 1, 1],
    run: (respContext, [, entryKey, amountWord]) => addToInteger(respContext, entryKey!, integerOf(amountWord!)),
  },
  decrby: {
    arity: 3,
    reads: false,
    cost: ofKeys,
    keys: [1, 1, 1],
    run: (respContext, [, entryKey, amountWord]) => addToInteger(respContext, entryKey!, -decrementAmountOf(amountWord!)),
  },
  incrbyfloat: { arity: 3, reads: false, cost: ofKeys, keys: [1, 1, 1], run: incrByFloatCommand },
};

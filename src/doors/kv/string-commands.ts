/** GET, SET, INCR, APPEND and the other commands on values. */
import { ServiceError } from '../../errors.ts';
import { FOREVER } from '../../log/values/timestamp.ts';
import { type KvCommandContext, type KvCommandRow, integerOf, ofKeys, upper } from './command.ts';
import { type Entry, keyOf, type Put } from './key-value-rows.ts';
import { respRefusals } from './errors.ts';
import { type LongDouble, longDoubleOf, plainText, sumOf } from './long-double.ts';

const perMs = 1_000_000n;

const longMax = 2n ** 63n - 1n;
/** No row ends later. */
const lastExpiry = FOREVER - 1n;

/** The instant of an expiry; throws Redis' errors for an invalid one. */
export function expiryOf(
  context: KvCommandContext,
  unit: string,
  respWord: Buffer,
  past: 'refused' | 'taken' = 'refused',
): bigint {
  const amount = integerOf(respWord);
  const inSeconds = unit === 'EX' || unit === 'EXAT';
  const isRelative = unit === 'EX' || unit === 'PX';
  const milliseconds = amount * (inSeconds ? 1_000n : 1n);
  const until = milliseconds + (isRelative ? context.now() / perMs : 0n);
  const isHuge = until > longMax || (inSeconds && (amount > longMax / 1_000n || amount < -(longMax / 1_000n)));
  if (isHuge || (past === 'refused' && amount <= 0n)) throw respRefusals.expireTime(context.name);
  const instant = until * perMs;
  return instant > lastExpiry ? lastExpiry : instant < 0n ? 0n : instant;
}

const units: ReadonlySet<string> = new Set(['EX', 'PX', 'EXAT', 'PXAT']);

/** The expiry options of a command: a unit and a word, KEEPTTL or PERSIST; of one unit the last word counts. */
interface Lasting {
  readonly unit: string;
  readonly word: Buffer | null;
}

interface SetOptions {
  readonly lasts: Lasting | null;
  readonly when: 'absent' | 'present' | null;
  readonly get: boolean;
}

function optionsIn(words: readonly Buffer[], of: 'set' | 'getex'): SetOptions {
  let lasts: Lasting | null = null;
  let when: SetOptions['when'] = null;
  let get = false;
  const other = of === 'set' ? 'KEEPTTL' : 'PERSIST';
  for (let i = 0; i < words.length; i++) {
    const option = upper(words[i]!);
    const mayLast = lasts === null || lasts.unit === option;
    if (of === 'set' && option === 'NX' && when !== 'present') when = 'absent';
    else if (of === 'set' && option === 'XX' && when !== 'absent') when = 'present';
    else if (of === 'set' && option === 'GET') get = true;
    else if (option === other && mayLast) lasts = { unit: option, word: null };
    else if (units.has(option) && mayLast && i + 1 < words.length) lasts = { unit: option, word: words[++i]! };
    else throw respRefusals.syntax();
  }
  return { lasts, when, get };
}

async function set(context: KvCommandContext, words: readonly Buffer[]): Promise<void> {
  const { replies } = context;
  const redisKey = keyOf(words[1]!);
  const value = words[2]!;
  const { lasts: asked, when, get } = optionsIn(words.slice(3), 'set');
  const keeps = asked?.unit === 'KEEPTTL';
  const expires = asked?.word ? expiryOf(context, asked.unit, asked.word) : FOREVER;
  if (!get && !keeps) {
    const done = await putOrEnd(context, { key: redisKey, value, expires }, when);
    return done ? replies.simple('OK') : replies.nothing();
  }
  const was = await context.change(redisKey, (kvEntry) => {
    const isLeft = (when === 'absent' && kvEntry !== null) || (when === 'present' && kvEntry === null);
    const lasts = keeps ? (kvEntry?.expires ?? FOREVER) : expires;
    return { put: isLeft ? null : { value, expires: lasts }, result: { entry: kvEntry, isLeft } };
  });
  if (get) return was.entry === null ? replies.nothing() : replies.bulk(was.entry.value);
  if (was.isLeft) replies.nothing();
  else replies.simple('OK');
}

/** A value that expires before it is written is the same as a deleted one. */
async function putOrEnd(context: KvCommandContext, put: Put, when: SetOptions['when']): Promise<boolean> {
  const { key: redisKey, expires = FOREVER } = put;
  try {
    if (expires > context.now()) return await context.put([put], when === null ? {} : { when });
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== 'REL_INVALID' || expires > context.now()) throw error;
  }
  if (when !== null && (await context.read([redisKey])).has(redisKey) !== (when === 'present')) return false;
  await context.endAll([redisKey]);
  return true;
}

const setAs =
  (option: 'EX' | 'PX') =>
  async (context: KvCommandContext, [, key, amount, value]: readonly Buffer[]): Promise<void> => {
    const expires = expiryOf(context, option, amount!);
    await putOrEnd(context, { key: keyOf(key!), value: value!, expires }, null);
    context.replies.simple('OK');
  };

async function get(context: KvCommandContext, [, respWord]: readonly Buffer[]): Promise<void> {
  const redisKey = keyOf(respWord!);
  value(context, (await context.read([redisKey])).get(redisKey));
}

function value({ replies }: Pick<KvCommandContext, 'replies'>, kvEntry: Entry | null | undefined): void {
  if (!kvEntry) replies.nothing();
  else replies.bulk(kvEntry.value);
}

async function getEx(context: KvCommandContext, words: readonly Buffer[]): Promise<void> {
  const redisKey = keyOf(words[1]!);
  const { lasts } = optionsIn(words.slice(2), 'getex');
  if (lasts === null) return get(context, words);
  const formerEntry = await context.change(redisKey, (kvEntry) => {
    if (kvEntry === null) return { put: null, result: kvEntry };
    const expires = lasts.word === null ? FOREVER : expiryOf(context, lasts.unit, lasts.word);
    return { put: kvEntry.expires === expires ? null : { ...kvEntry, expires }, result: kvEntry };
  });
  value(context, formerEntry);
}

async function pairs(context: KvCommandContext, words: readonly Buffer[], when: 'absent' | null): Promise<boolean> {
  if (words.length % 2 === 0) throw respRefusals.arity(context.name);
  const redisKeys = await context.keys(words.filter((_, i) => i % 2 === 1));
  const puts = new Map(redisKeys.map((redisKey, i): [string, Put] => [redisKey, { key: redisKey, value: words[i * 2 + 2]! }]));
  return context.put([...puts.values()], when === null ? {} : { when });
}

async function add(context: KvCommandContext, respWord: Buffer, amount: bigint): Promise<void> {
  const sum = await context.change(keyOf(respWord), (kvEntry) => {
    const next = (kvEntry === null ? 0n : integerOf(kvEntry.value)) + amount;
    if (next !== BigInt.asIntN(64, next)) throw respRefusals.overflow();
    return { put: { ...keptOptions(kvEntry), value: String(next) }, result: next };
  });
  context.replies.integer(sum);
}

function decrementOf(respWord: Buffer): bigint {
  const amount = integerOf(respWord);
  if (amount === -longMax - 1n) throw respRefusals.decrementOverflow();
  return amount;
}

async function addFloat(context: KvCommandContext, [, respWord, by]: readonly Buffer[]): Promise<void> {
  const sum = await context.change(keyOf(respWord!), (kvEntry) => {
    const next = sumOf(kvEntry === null ? zero : floatOf(kvEntry.value), floatOf(by!));
    if (typeof next === 'number') throw respRefusals.notFinite();
    const text = plainText(next);
    return { put: { ...keptOptions(kvEntry), value: text }, result: text };
  });
  context.replies.bulk(sum);
}

const keptOptions = (kvEntry: Entry | null): Pick<Put, 'expires' | 'others'> =>
  kvEntry === null ? {} : { expires: kvEntry.expires, others: kvEntry.others };

const zero: LongDouble = { mantissa: 0n, exponent: 0 };

function floatOf(text: Buffer | string): LongDouble {
  const value = longDoubleOf(text.toString());
  if (value === null) throw respRefusals.notFloat();
  return value;
}

export const stringCommands: Readonly<Record<string, KvCommandRow>> = {
  get: { arity: 2, reads: true, cost: ofKeys, keys: [1, 1, 1], run: get },
  set: { arity: -3, reads: false, cost: ofKeys, keys: [1, 1, 1], run: set },
  setex: { arity: 4, reads: false, cost: ofKeys, keys: [1, 1, 1], run: setAs('EX') },
  psetex: { arity: 4, reads: false, cost: ofKeys, keys: [1, 1, 1], run: setAs('PX') },
  setnx: {
    arity: 3,
    reads: false,
    cost: ofKeys,
    keys: [1, 1, 1],
    run: async (context, words) => context.replies.integer((await pairs(context, words, 'absent')) ? 1 : 0),
  },
  getset: {
    arity: 3,
    reads: false,
    cost: ofKeys,
    keys: [1, 1, 1],
    run: (context, words) => set(context, [...words, Buffer.from('GET')]),
  },
  getdel: {
    arity: 2,
    reads: false,
    cost: ofKeys,
    keys: [1, 1, 1],
    run: async (context, [, respWord]) => value(context, await context.end(keyOf(respWord!))),
  },
  getex: { arity: -2, reads: false, cost: ofKeys, keys: [1, 1, 1], run: getEx },
  mget: {
    arity: -2,
    reads: true,
    cost: ofKeys,
    keys: [1, -1, 1],
    run: async (context, [, ...words]) => {
      const redisKeys = await context.keys(words);
      const entries = await context.read(redisKeys);
      await context.list(redisKeys, (replies, redisKey) => value({ replies }, entries.get(redisKey)));
    },
  },
  mset: {
    arity: -3,
    reads: false,
    cost: ofKeys,
    keys: [1, -1, 2],
    run: async (context, words) => {
      await pairs(context, words, null);
      context.replies.simple('OK');
    },
  },
  msetnx: {
    arity: -3,
    reads: false,
    cost: ofKeys,
    keys: [1, -1, 2],
    run: async (context, words) => context.replies.integer((await pairs(context, words, 'absent')) ? 1 : 0),
  },
  strlen: {
    arity: 2,
    reads: true,
    cost: ofKeys,
    keys: [1, 1, 1],
    run: async (context, [, respWord]) => {
      const redisKey = keyOf(respWord!);
      const kvEntry = (await context.read([redisKey])).get(redisKey);
      context.replies.integer(kvEntry === undefined ? 0 : Buffer.byteLength(kvEntry.value));
    },
  },
  append: {
    arity: 3,
    reads: false,
    cost: ofKeys,
    keys: [1, 1, 1],
    run: async (context, [, respWord, more]) => {
      const length = await context.change(keyOf(respWord!), (kvEntry) => {
        const before = typeof kvEntry?.value === 'string' ? Buffer.from(kvEntry.value) : kvEntry?.value;
        const joined = before === undefined ? more! : Buffer.concat([before, more!]);
        return { put: { ...keptOptions(kvEntry), value: joined }, result: joined.length };
      });
      context.replies.integer(length);
    },
  },
  incr: { arity: 2, reads: false, cost: ofKeys, keys: [1, 1, 1], run: (context, [, key]) => add(context, key!, 1n) },
  decr: { arity: 2, reads: false, cost: ofKeys, keys: [1, 1, 1], run: (context, [, key]) => add(context, key!, -1n) },
  incrby: {
    arity: 3,
    reads: false,
    cost: ofKeys,
    keys: [1, 1, 1],
    run: (context, [, key, by]) => add(context, key!, integerOf(by!)),
  },
  decrby: {
    arity: 3,
    reads: false,
    cost: ofKeys,
    keys: [1, 1, 1],
    run: (context, [, key, by]) => add(context, key!, -decrementOf(by!)),
  },
  incrbyfloat: { arity: 3, reads: false, cost: ofKeys, keys: [1, 1, 1], run: addFloat },
};

/** GET, SET and what works on values. */
import { ServiceError } from '../../errors.ts';
import { FOREVER } from '../../log/timestamp.ts';
import { type CommandContext, type CommandRow, integerOf, upper } from './command.ts';
import { type Entry, keyOf, type Put } from './entries.ts';
import { refusals } from './errors.ts';

const perMs = 1_000_000n;

/** Instant that an expiry in these words says; throws what Redis says of one that can't be. */
export function expiryOf(context: CommandContext, unit: string, word: Buffer, past: 'refused' | 'taken' = 'refused'): bigint {
  const amount = integerOf(word);
  const relative = unit === 'EX' || unit === 'PX';
  if (past === 'refused' && amount <= 0n) throw refusals.expireTime(context.name);
  const instant = amount * (unit === 'EX' || unit === 'EXAT' ? 1_000n : 1n) * perMs + (relative ? context.now() : 0n);
  if (instant >= FOREVER || instant <= -FOREVER) throw refusals.expireTime(context.name);
  return instant;
}

const units: ReadonlySet<string> = new Set(['EX', 'PX', 'EXAT', 'PXAT']);

interface SetOptions {
  readonly expires: bigint | 'keep';
  readonly when: 'absent' | 'present' | null;
  readonly get: boolean;
}

function setOptions(context: CommandContext, words: readonly Buffer[]): SetOptions {
  let expires: bigint | 'keep' | null = null;
  let when: SetOptions['when'] = null;
  let get = false;
  for (let i = 0; i < words.length; i++) {
    const option = upper(words[i]!);
    if (option === 'NX' && when === null) when = 'absent';
    else if (option === 'XX' && when === null) when = 'present';
    else if (option === 'GET') get = true;
    else if (option === 'KEEPTTL' && expires === null) expires = 'keep';
    else if (units.has(option) && expires === null && i + 1 < words.length) expires = expiryOf(context, option, words[++i]!);
    else throw refusals.syntax();
  }
  return { expires: expires ?? FOREVER, when, get };
}

async function set(context: CommandContext, words: readonly Buffer[]): Promise<void> {
  const { replies } = context;
  const key = keyOf(words[1]!);
  const value = words[2]!;
  const { expires, when, get } = setOptions(context, words.slice(3));
  if (!get && expires !== 'keep') {
    const done = await putOrEnd(context, { key, value, expires }, when);
    return done ? replies.simple('OK') : replies.nothing();
  }
  const was = await context.change(key, (entry) => {
    const isLeft = (when === 'absent' && entry !== null) || (when === 'present' && entry === null);
    const lasts = expires === 'keep' ? (entry?.expires ?? FOREVER) : expires;
    return { put: isLeft ? null : { value, expires: lasts }, result: { entry, isLeft } };
  });
  if (get) return was.entry === null ? replies.nothing() : replies.bulk(was.entry.value);
  if (was.isLeft) replies.nothing();
  else replies.simple('OK');
}

/** What has expired by the time that it is written is not there: the same as deleting it. */
async function putOrEnd(context: CommandContext, put: Put, when: SetOptions['when']): Promise<boolean> {
  const { key, expires = FOREVER } = put;
  try {
    if (expires > context.now()) return await context.put([put], when === null ? {} : { when });
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== 'REL_INVALID' || expires > context.now()) throw error;
  }
  if (when !== null && (await context.read([key])).has(key) !== (when === 'present')) return false;
  await context.endAll([key]);
  return true;
}

const setAs =
  (option: 'EX' | 'PX') =>
  async (context: CommandContext, [, key, amount, value]: readonly Buffer[]): Promise<void> => {
    const expires = expiryOf(context, option, amount!);
    await putOrEnd(context, { key: keyOf(key!), value: value!, expires }, null);
    context.replies.simple('OK');
  };

async function get(context: CommandContext, [, word]: readonly Buffer[]): Promise<void> {
  const key = keyOf(word!);
  value(context, (await context.read([key])).get(key));
}

function value({ replies }: Pick<CommandContext, 'replies'>, entry: Entry | null | undefined): void {
  if (!entry) replies.nothing();
  else replies.bulk(entry.value);
}

async function getEx(context: CommandContext, words: readonly Buffer[]): Promise<void> {
  const key = keyOf(words[1]!);
  if (words.length === 2) return get(context, words);
  const option = upper(words[2]!);
  const isPersist = option === 'PERSIST' && words.length === 3;
  if (!isPersist && !(units.has(option) && words.length === 4)) throw refusals.syntax();
  const expires = isPersist ? FOREVER : expiryOf(context, option, words[3]!);
  const found = await context.change(key, (entry) => ({
    put: entry === null || entry.expires === expires ? null : { ...entry, expires },
    result: entry,
  }));
  value(context, found);
}

async function pairs(context: CommandContext, words: readonly Buffer[], when: 'absent' | null): Promise<boolean> {
  if (words.length % 2 === 0) throw refusals.arity(context.name);
  const keys = await context.keys(words.filter((_, i) => i % 2 === 1));
  const puts = new Map(keys.map((key, i): [string, Put] => [key, { key, value: words[i * 2 + 2]! }]));
  return context.put([...puts.values()], when === null ? {} : { when });
}

async function add(context: CommandContext, word: Buffer, amount: bigint): Promise<void> {
  const sum = await context.change(keyOf(word), (entry) => {
    const next = (entry === null ? 0n : integerOf(entry.value)) + amount;
    if (next !== BigInt.asIntN(64, next)) throw refusals.overflow();
    return { put: { ...kept(entry), value: String(next) }, result: next };
  });
  context.replies.integer(sum);
}

async function addFloat(context: CommandContext, [, word, by]: readonly Buffer[]): Promise<void> {
  const amount = floatOf(by!.toString());
  const sum = await context.change(keyOf(word!), (entry) => {
    const next = (entry === null ? 0 : floatOf(entry.value.toString())) + amount;
    if (!Number.isFinite(next)) throw refusals.notFloat();
    const text = plainNumber(next);
    return { put: { ...kept(entry), value: text }, result: text };
  });
  context.replies.bulk(sum);
}

const kept = (entry: Entry | null): Pick<Put, 'expires' | 'others'> =>
  entry === null ? {} : { expires: entry.expires, others: entry.others };

function floatOf(text: string): number {
  const value = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (!Number.isFinite(value)) throw refusals.notFloat();
  return value;
}

/** Without an exponent, as Redis writes it. */
function plainNumber(value: number): string {
  const text = String(value);
  if (!/e/.test(text)) return text;
  return Math.abs(value) >= 1 ? String(BigInt(value)) : value.toFixed(20).replace(/\.?0+$/, '');
}

export const strings: Readonly<Record<string, CommandRow>> = {
  get: { arity: 2, reads: true, keys: [1, 1, 1], run: get },
  set: { arity: -3, reads: false, keys: [1, 1, 1], run: set },
  setex: { arity: 4, reads: false, keys: [1, 1, 1], run: setAs('EX') },
  psetex: { arity: 4, reads: false, keys: [1, 1, 1], run: setAs('PX') },
  setnx: {
    arity: 3,
    reads: false,
    keys: [1, 1, 1],
    run: async (context, words) => context.replies.integer((await pairs(context, words, 'absent')) ? 1 : 0),
  },
  getset: { arity: 3, reads: false, keys: [1, 1, 1], run: (context, words) => set(context, [...words, Buffer.from('GET')]) },
  getdel: {
    arity: 2,
    reads: false,
    keys: [1, 1, 1],
    run: async (context, [, word]) => value(context, await context.end(keyOf(word!))),
  },
  getex: { arity: -2, reads: false, keys: [1, 1, 1], run: getEx },
  mget: {
    arity: -2,
    reads: true,
    keys: [1, -1, 1],
    run: async (context, [, ...words]) => {
      const keys = await context.keys(words);
      const entries = await context.read(keys);
      await context.list(keys, (replies, key) => value({ replies }, entries.get(key)));
    },
  },
  mset: {
    arity: -3,
    reads: false,
    keys: [1, -1, 2],
    run: async (context, words) => {
      await pairs(context, words, null);
      context.replies.simple('OK');
    },
  },
  msetnx: {
    arity: -3,
    reads: false,
    keys: [1, -1, 2],
    run: async (context, words) => context.replies.integer((await pairs(context, words, 'absent')) ? 1 : 0),
  },
  strlen: {
    arity: 2,
    reads: true,
    keys: [1, 1, 1],
    run: async (context, [, word]) => {
      const key = keyOf(word!);
      const entry = (await context.read([key])).get(key);
      context.replies.integer(entry === undefined ? 0 : Buffer.byteLength(entry.value));
    },
  },
  append: {
    arity: 3,
    reads: false,
    keys: [1, 1, 1],
    run: async (context, [, word, more]) => {
      const length = await context.change(keyOf(word!), (entry) => {
        const joined = entry === null ? more! : Buffer.concat([Buffer.from(entry.value as string), more!]);
        return { put: { ...kept(entry), value: joined }, result: joined.length };
      });
      context.replies.integer(length);
    },
  },
  incr: { arity: 2, reads: false, keys: [1, 1, 1], run: (context, [, key]) => add(context, key!, 1n) },
  decr: { arity: 2, reads: false, keys: [1, 1, 1], run: (context, [, key]) => add(context, key!, -1n) },
  incrby: { arity: 3, reads: false, keys: [1, 1, 1], run: (context, [, key, by]) => add(context, key!, integerOf(by!)) },
  decrby: { arity: 3, reads: false, keys: [1, 1, 1], run: (context, [, key, by]) => add(context, key!, -integerOf(by!)) },
  incrbyfloat: { arity: 3, reads: false, keys: [1, 1, 1], run: addFloat },
};

/** DEL, EXPIRE, TTL, KEYS, SCAN and the other commands on keys. */
import { FOREVER } from '../../log/values/timestamp.ts';
import type { Answer } from '../../planner/planner-contract.ts';
import type { Cell } from '../../log/values/value.ts';
import { cellAt } from '../../log/values/vector-builder.ts';
import { type KvCommandContext, type KvCommandRow, integerOf, ofAllKeys, ofKeys, upper } from './command.ts';
import { type Entry, keyOf } from './key-value-rows.ts';
import { respRefusals } from './errors.ts';
import { globOf } from './glob.ts';
import { expiryOf } from './string-commands.ts';

async function end(context: KvCommandContext, [, ...words]: readonly Buffer[]): Promise<void> {
  context.replies.integer(await context.endAll(await context.keys(words)));
}

async function exists(context: KvCommandContext, [, ...words]: readonly Buffer[]): Promise<void> {
  const redisKeys = await context.keys(words);
  const entries = await context.read(redisKeys);
  context.replies.integer(redisKeys.filter((redisKey) => entries.has(redisKey)).length);
}

const expiring =
  (unit: 'EX' | 'PX' | 'EXAT' | 'PXAT') =>
  async (context: KvCommandContext, words: readonly Buffer[]): Promise<void> => {
    const redisKey = keyOf(words[1]!);
    const applies = conditionsIn(words.slice(3));
    const expires = expiryOf(context, unit, words[2]!, 'taken');
    const done = await context.change(redisKey, (kvEntry) => {
      const changes = kvEntry !== null && applies.every((holds) => holds(expires, kvEntry.expires));
      return { put: changes ? { ...kvEntry, expires } : null, result: changes };
    });
    context.replies.integer(done ? 1 : 0);
  };

type Condition = (expires: bigint, was: bigint) => boolean;

/** All given conditions must hold. A key that does not expire counts as later than every expiry. */
function conditionsIn(words: readonly Buffer[]): readonly Condition[] {
  const keysSeen = new Set<string>();
  for (const respWord of words) {
    if (!Object.hasOwn(conditions, upper(respWord))) throw respRefusals.expireOption(respWord.toString('latin1'));
    keysSeen.add(upper(respWord));
  }
  if (keysSeen.has('NX') && keysSeen.size > 1) throw respRefusals.expireOptions('NX', 'XX, GT or LT');
  if (keysSeen.has('GT') && keysSeen.has('LT')) throw respRefusals.expireOptions('GT', 'LT');
  return [...keysSeen].map((name) => conditions[name]!);
}

const conditions: Readonly<Record<string, Condition>> = {
  NX: (_expires, was) => was === FOREVER,
  XX: (_expires, was) => was !== FOREVER,
  GT: (expires, was) => expires > was,
  LT: (expires, was) => expires < was,
};

async function persist(context: KvCommandContext, [, respWord]: readonly Buffer[]): Promise<void> {
  const done = await context.change(keyOf(respWord!), (kvEntry) => {
    const changes = kvEntry !== null && kvEntry.expires !== FOREVER;
    return { put: changes ? { ...kvEntry, expires: FOREVER } : null, result: changes };
  });
  context.replies.integer(done ? 1 : 0);
}

const perMs = 1_000_000n;

/** Replies with the time left: -2: there is no such key; -1: it does not expire. */
const replyWithExpiry =
  (of: (expires: bigint, now: bigint) => bigint) =>
  async (context: KvCommandContext, [, respWord]: readonly Buffer[]): Promise<void> => {
    const redisKey = keyOf(respWord!);
    const kvEntry: Entry | undefined = (await context.read([redisKey])).get(redisKey);
    if (kvEntry === undefined) context.replies.integer(-2);
    else context.replies.integer(kvEntry.expires === FOREVER ? -1 : of(kvEntry.expires, context.now()));
  };

const divideRounded = (value: bigint, to: bigint): bigint => (value + to / 2n) / to;
const timeLeft = (expires: bigint, now: bigint): bigint => (expires > now ? expires - now : 0n);

/** Texts of the first column that fit, each once. */
async function texts(context: KvCommandContext, answer: Answer, fits: (text: string) => boolean): Promise<string[]> {
  const matchedKeys = new Set<string>();
  await context.forEach(firstCells(answer), (text) => {
    if (typeof text === 'string' && fits(text)) matchedKeys.add(text);
  });
  return [...matchedKeys];
}

function* firstCells({ columns, batches }: Answer): Generator<Cell, void> {
  for (const { columns: vectors, selection, first, count } of batches)
    for (let i = 0; i < count; i++) yield cellAt(vectors[0]!, columns[0]!.type, selection === null ? first + i : selection[i]!);
}

async function list(context: KvCommandContext, [, pattern]: readonly Buffer[]): Promise<void> {
  const glob = globOf(pattern!.toString());
  const answer = await question(context, 'SELECT _pk FROM KvEntry', []);
  const redisKeys = await texts(context, answer, glob);
  await context.list(redisKeys, (replies, redisKey) => replies.bulk(redisKey));
}

function question(context: KvCommandContext, sql: string, parameters: readonly (string | bigint)[]): Promise<Answer> {
  const { planner } = context.connectionCaller.parts;
  return context.connectionCaller.ask({ terms: context.terms }, async ({ invocation, keep }) => {
    const answer = await planner.query(invocation, {
      sql,
      ...(parameters.length > 0 && { parameters }),
      time: context.time,
      dialect: 'wide',
      purpose: context.terms.purpose,
      signal: context.connectionCaller.gone,
    });
    keep(answer);
    return answer;
  });
}

const pageMax = 10_000n;

async function scan(context: KvCommandContext, [, respWord, ...options]: readonly Buffer[]): Promise<void> {
  const { cursors, replies } = context;
  let count = 10n;
  let glob: (text: string) => boolean = () => true;
  let ofType = true;
  for (let i = 0; i < options.length; i += 2) {
    const given = options[i + 1];
    const option = upper(options[i]!);
    if (given === undefined) throw respRefusals.syntax();
    if (option === 'COUNT') count = integerOf(given);
    else if (option === 'MATCH') glob = globOf(given.toString());
    else if (option === 'TYPE') ofType = given.toString().toLowerCase() === 'string';
    else throw respRefusals.syntax();
  }
  if (count < 1n) throw respRefusals.syntax();
  if (count > pageMax) count = pageMax;
  const number = respWord!.toString();
  if (!/^\d{1,20}$/.test(number)) throw respRefusals.cursor();
  const { caller } = context.connectionCaller;
  const scope = context.terms.branch === null ? caller : { ...caller, branch: context.terms.branch };
  const from = /^0+$/.test(number) ? null : cursors.position(number, scope);
  if (from === undefined) throw respRefusals.cursor();
  const page = await (from === null
    ? question(context, 'SELECT _pk FROM KvEntry LIMIT $1', [count])
    : question(context, 'SELECT _pk FROM KvEntry LIMIT $1 AFTER $2', [count, from]));
  const redisKeys = ofType ? await texts(context, page, glob) : [];
  replies.array(2);
  replies.bulk(page.nextCursor === null ? '0' : cursors.open(page.nextCursor, scope));
  replies.array(redisKeys.length);
  for (const redisKey of redisKeys) replies.bulk(redisKey);
}

async function size(context: KvCommandContext): Promise<void> {
  const answer = await question(context, 'SELECT COUNT(DISTINCT _pk) AS n FROM KvEntry', []);
  const [batch] = answer.batches;
  context.replies.integer(batch === undefined ? 0 : (cellAt(batch.columns[0]!, 'integer', batch.first) as bigint));
}

const one = (reads: boolean, arity: number, run: KvCommandRow['run']): KvCommandRow => ({
  arity,
  reads,
  cost: ofKeys,
  keys: [1, 1, 1],
  run,
});
const many = (reads: boolean, run: KvCommandRow['run']): KvCommandRow => ({
  arity: -2,
  reads,
  cost: ofKeys,
  keys: [1, -1, 1],
  run,
});
const none = (arity: number, run: KvCommandRow['run']): KvCommandRow => ({
  arity,
  reads: true,
  cost: ofAllKeys,
  keys: [0, 0, 0],
  run,
});

export const keyCommands: Readonly<Record<string, KvCommandRow>> = {
  del: many(false, end),
  unlink: many(false, end),
  exists: many(true, exists),
  touch: many(true, exists),
  type: one(true, 2, async (context, [, respWord]) => {
    const redisKey = keyOf(respWord!);
    context.replies.simple((await context.read([redisKey])).has(redisKey) ? 'string' : 'none');
  }),
  expire: one(false, -3, expiring('EX')),
  pexpire: one(false, -3, expiring('PX')),
  expireat: one(false, -3, expiring('EXAT')),
  pexpireat: one(false, -3, expiring('PXAT')),
  persist: one(false, 2, persist),
  ttl: one(
    true,
    2,
    replyWithExpiry((expires, now) => divideRounded(timeLeft(expires, now), 1_000n * perMs)),
  ),
  pttl: one(
    true,
    2,
    replyWithExpiry((expires, now) => divideRounded(timeLeft(expires, now), perMs)),
  ),
  expiretime: one(
    true,
    2,
    replyWithExpiry((expires) => expires / (1_000n * perMs)),
  ),
  pexpiretime: one(
    true,
    2,
    replyWithExpiry((expires) => expires / perMs),
  ),
  keys: none(2, list),
  scan: none(-2, scan),
  dbsize: none(1, size),
};

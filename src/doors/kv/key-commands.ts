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

async function delCommand(respContext: KvCommandContext, [, ...keyWords]: readonly Buffer[]): Promise<void> {
  respContext.replies.integer(await respContext.endAll(await respContext.keys(keyWords)));
}

async function existsCommand(respContext: KvCommandContext, [, ...keyWords]: readonly Buffer[]): Promise<void> {
  const redisKeys = await respContext.keys(keyWords);
  const kvEntries = await respContext.read(redisKeys);
  respContext.replies.integer(redisKeys.filter((redisKey) => kvEntries.has(redisKey)).length);
}

const expireCommand =
  (expireUnit: 'EX' | 'PX' | 'EXAT' | 'PXAT') =>
  async (respContext: KvCommandContext, expireWords: readonly Buffer[]): Promise<void> => {
    const redisKey = keyOf(expireWords[1]!);
    const expireConditions = expiryConditionsIn(expireWords.slice(3));
    const expiresNs = expiryOf(respContext, expireUnit, expireWords[2]!, 'taken');
    const isExpirySet = await respContext.change(redisKey, (kvEntry) => {
      const isChanged =
        kvEntry !== null && expireConditions.every((expireCondition) => expireCondition(expiresNs, kvEntry.expires));
      return { put: isChanged ? { ...kvEntry, expires: expiresNs } : null, result: isChanged };
    });
    respContext.replies.integer(isExpirySet ? 1 : 0);
  };

type ExpiryCondition = (expires: bigint, was: bigint) => boolean;

/** All given conditions must hold. A key that does not expire counts as later than every expiry. */
function expiryConditionsIn(conditionWords: readonly Buffer[]): readonly ExpiryCondition[] {
  const keysSeen = new Set<string>();
  for (const respWord of conditionWords) {
    if (!Object.hasOwn(expiryConditions, upper(respWord))) throw respRefusals.expireOption(respWord.toString('latin1'));
    keysSeen.add(upper(respWord));
  }
  if (keysSeen.has('NX') && keysSeen.size > 1) throw respRefusals.expireOptions('NX', 'XX, GT or LT');
  if (keysSeen.has('GT') && keysSeen.has('LT')) throw respRefusals.expireOptions('GT', 'LT');
  return [...keysSeen].map((conditionName) => expiryConditions[conditionName]!);
}

const expiryConditions: Readonly<Record<string, ExpiryCondition>> = {
  NX: (_expires, was) => was === FOREVER,
  XX: (_expires, was) => was !== FOREVER,
  GT: (expires, was) => expires > was,
  LT: (expires, was) => expires < was,
};

async function persistCommand(respContext: KvCommandContext, [, respWord]: readonly Buffer[]): Promise<void> {
  const isPersisted = await respContext.change(keyOf(respWord!), (kvEntry) => {
    const isChanged = kvEntry !== null && kvEntry.expires !== FOREVER;
    return { put: isChanged ? { ...kvEntry, expires: FOREVER } : null, result: isChanged };
  });
  respContext.replies.integer(isPersisted ? 1 : 0);
}

const nsPerMs = 1_000_000n;

/** Replies with the time left: -2: there is no such key; -1: it does not expire. */
const replyWithExpiry =
  (ttlOf: (expires: bigint, now: bigint) => bigint) =>
  async (respContext: KvCommandContext, [, respWord]: readonly Buffer[]): Promise<void> => {
    const redisKey = keyOf(respWord!);
    const kvEntry: Entry | undefined = (await respContext.read([redisKey])).get(redisKey);
    if (kvEntry === undefined) respContext.replies.integer(-2);
    else respContext.replies.integer(kvEntry.expires === FOREVER ? -1 : ttlOf(kvEntry.expires, respContext.now()));
  };

const divideRounded = (dividend: bigint, divisor: bigint): bigint => (dividend + divisor / 2n) / divisor;
const timeToLive = (expiresNs: bigint, nowNs: bigint): bigint => (expiresNs > nowNs ? expiresNs - nowNs : 0n);

/** Texts of the first column that fit, each once. */
async function matchingKeys(
  respContext: KvCommandContext,
  keysAnswer: Answer,
  matchesPattern: (keyText: string) => boolean,
): Promise<string[]> {
  const matchedKeys = new Set<string>();
  await respContext.forEach(firstCells(keysAnswer), (keyText) => {
    if (typeof keyText === 'string' && matchesPattern(keyText)) matchedKeys.add(keyText);
  });
  return [...matchedKeys];
}

function* firstCells({ columns: answerColumns, batches }: Answer): Generator<Cell, void> {
  for (const { columns: keyVectors, selection, first, count: batchRowCount } of batches)
    for (let i = 0; i < batchRowCount; i++)
      yield cellAt(keyVectors[0]!, answerColumns[0]!.type, selection === null ? first + i : selection[i]!);
}

async function keysCommand(respContext: KvCommandContext, [, keyPattern]: readonly Buffer[]): Promise<void> {
  const keyGlob = globOf(keyPattern!.toString());
  const keysAnswer = await queryKeys(respContext, 'SELECT _pk FROM KvEntry', []);
  const redisKeys = await matchingKeys(respContext, keysAnswer, keyGlob);
  await respContext.list(redisKeys, (respReplies, redisKey) => respReplies.bulk(redisKey));
}

function queryKeys(
  respContext: KvCommandContext,
  keysSql: string,
  keysParameters: readonly (string | bigint)[],
): Promise<Answer> {
  const { planner } = respContext.connectionCaller.parts;
  return respContext.connectionCaller.ask({ terms: respContext.terms }, async ({ invocation, keep: keepAnswer }) => {
    const keysAnswer = await planner.query(invocation, {
      sql: keysSql,
      ...(keysParameters.length > 0 && { parameters: keysParameters }),
      time: respContext.time,
      dialect: 'wide',
      purpose: respContext.terms.purpose,
      signal: respContext.connectionCaller.gone,
    });
    keepAnswer(keysAnswer);
    return keysAnswer;
  });
}

const scanPageMax = 10_000n;

async function scanCommand(respContext: KvCommandContext, [, respWord, ...scanOptions]: readonly Buffer[]): Promise<void> {
  const { cursors: scanCursors, replies: scanReplies } = respContext;
  let pageCount = 10n;
  let keyGlob: (text: string) => boolean = () => true;
  let isStringType = true;
  for (let i = 0; i < scanOptions.length; i += 2) {
    const optionValue = scanOptions[i + 1];
    const scanOption = upper(scanOptions[i]!);
    if (optionValue === undefined) throw respRefusals.syntax();
    if (scanOption === 'COUNT') pageCount = integerOf(optionValue);
    else if (scanOption === 'MATCH') keyGlob = globOf(optionValue.toString());
    else if (scanOption === 'TYPE') isStringType = optionValue.toString().toLowerCase() === 'string';
    else throw respRefusals.syntax();
  }
  if (pageCount < 1n) throw respRefusals.syntax();
  if (pageCount > scanPageMax) pageCount = scanPageMax;
  const cursorText = respWord!.toString();
  if (!/^\d{1,20}$/.test(cursorText)) throw respRefusals.cursor();
  const { caller } = respContext.connectionCaller;
  const cursorScope = respContext.terms.branch === null ? caller : { ...caller, branch: respContext.terms.branch };
  const scanPosition = /^0+$/.test(cursorText) ? null : scanCursors.position(cursorText, cursorScope);
  if (scanPosition === undefined) throw respRefusals.cursor();
  const scanPage = await (scanPosition === null
    ? queryKeys(respContext, 'SELECT _pk FROM KvEntry LIMIT $1', [pageCount])
    : queryKeys(respContext, 'SELECT _pk FROM KvEntry LIMIT $1 AFTER $2', [pageCount, scanPosition]));
  const redisKeys = isStringType ? await matchingKeys(respContext, scanPage, keyGlob) : [];
  scanReplies.array(2);
  scanReplies.bulk(scanPage.nextCursor === null ? '0' : scanCursors.open(scanPage.nextCursor, cursorScope));
  scanReplies.array(redisKeys.length);
  for (const redisKey of redisKeys) scanReplies.bulk(redisKey);
}

async function dbSizeCommand(respContext: KvCommandContext): Promise<void> {
  const countAnswer = await queryKeys(respContext, 'SELECT COUNT(DISTINCT _pk) AS n FROM KvEntry', []);
  const [countBatch] = countAnswer.batches;
  respContext.replies.integer(
    countBatch === undefined ? 0 : (cellAt(countBatch.columns[0]!, 'integer', countBatch.first) as bigint),
  );
}

const oneKeyRow = (isReading: boolean, commandArity: number, runCommand: KvCommandRow['run']): KvCommandRow => ({
  arity: commandArity,
  reads: isReading,
  cost: ofKeys,
  keys: [1, 1, 1],
  run: runCommand,
});
const manyKeysRow = (isReading: boolean, runCommand: KvCommandRow['run']): KvCommandRow => ({
  arity: -2,
  reads: isReading,
  cost: ofKeys,
  keys: [1, -1, 1],
  run: runCommand,
});
const noKeyRow = (commandArity: number, runCommand: KvCommandRow['run']): KvCommandRow => ({
  arity: commandArity,
  reads: true,
  cost: ofAllKeys,
  keys: [0, 0, 0],
  run: runCommand,
});

export const keyCommands: Readonly<Record<string, KvCommandRow>> = {
  del: manyKeysRow(false, delCommand),
  unlink: manyKeysRow(false, delCommand),
  exists: manyKeysRow(true, existsCommand),
  touch: manyKeysRow(true, existsCommand),
  type: oneKeyRow(true, 2, async (respContext, [, respWord]) => {
    const redisKey = keyOf(respWord!);
    respContext.replies.simple((await respContext.read([redisKey])).has(redisKey) ? 'string' : 'none');
  }),
  expire: oneKeyRow(false, -3, expireCommand('EX')),
  pexpire: oneKeyRow(false, -3, expireCommand('PX')),
  expireat: oneKeyRow(false, -3, expireCommand('EXAT')),
  pexpireat: oneKeyRow(false, -3, expireCommand('PXAT')),
  persist: oneKeyRow(false, 2, persistCommand),
  ttl: oneKeyRow(
    true,
    2,
    replyWithExpiry((expires, now) => divideRounded(timeToLive(expires, now), 1_000n * nsPerMs)),
  ),
  pttl: oneKeyRow(
    true,
    2,
    replyWithExpiry((expires, now) => divideRounded(timeToLive(expires, now), nsPerMs)),
  ),
  expiretime: oneKeyRow(
    true,
    2,
    replyWithExpiry((expires) => expires / (1_000n * nsPerMs)),
  ),
  pexpiretime: oneKeyRow(
    true,
    2,
    replyWithExpiry((expires) => expires / nsPerMs),
  ),
  keys: noKeyRow(2, keysCommand),
  scan: noKeyRow(-2, scanCommand),
  dbsize: noKeyRow(1, dbSizeCommand),
};

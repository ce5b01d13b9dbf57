/** Commands beyond those of Redis, `ANNALS.*`: a key as of an instant, its history, a row of any type, and the terms of the session. */
import type { Answer } from '../../planner/planner-contract.ts';
import { writeNdjson } from '../../planner/formats/json-rows.ts';
import { ServiceError } from '../../errors.ts';
import type { ConnectionCaller } from '../shared/connection-caller.ts';
import { rowAsJson } from '../shared/row-by-key.ts';
import { type Terms, withTerm } from '../shared/session-terms.ts';
import { type KvCommandContext, type KvCommandRow, ofKeys } from './command.ts';
import { entryType, keyOf } from './key-value-rows.ts';
import { respRefusals } from './errors.ts';

const historyColumns = ['_pk', 'value', 'value_base64', 'valid_from', 'valid_to', 'system_from', 'system_to'] as const;

/** Every version of a key, oldest first, each as a JSON object. */
async function historyCommand(respContext: KvCommandContext, [, respWord]: readonly Buffer[]): Promise<void> {
  const redisKeys = [keyOf(respWord!)];
  const historyAnswer = await respContext.connectionCaller.ask(
    { terms: respContext.terms, keysRead: 1 },
    ({ invocation, keep: keepAnswer }): Answer => {
      const answer = respContext.connectionCaller.parts.planner.lookUp(invocation, {
        type: entryType,
        keys: redisKeys,
        columns: historyColumns,
        time: 'all',
      });
      keepAnswer(answer);
      return answer;
    },
  );
  const historyLines = historyAnswer.rowCount === 0 ? [] : writeNdjson(historyAnswer).toString().trimEnd().split('\n');
  respContext.replies.array(historyLines.length);
  for (const historyLine of historyLines) respContext.replies.bulk(historyLine);
}

async function rowCommand(respContext: KvCommandContext, [, typeWord, respWord]: readonly Buffer[]): Promise<void> {
  const redisKey = keyOf(respWord!);
  const rowText = await respContext.connectionCaller.ask(
    { terms: respContext.terms, keysRead: 1 },
    ({ invocation, keep: keepAnswer }) => {
      const rowJson = rowAsJson(respContext.connectionCaller.parts.planner, invocation, {
        type: typeWord!.toString(),
        key: redisKey,
        time: respContext.time,
      });
      keepAnswer(rowJson.answer);
      return rowJson.text;
    },
  );
  if (rowText === null) respContext.replies.nothing();
  else respContext.replies.bulk(rowText);
}

export const annalsCommands: Readonly<Record<string, KvCommandRow>> = {
  'annals.history': { arity: 2, reads: false, cost: ofKeys, keys: [1, 1, 1], run: historyCommand },
  'annals.row': { arity: 3, reads: true, cost: ofKeys, keys: [0, 0, 0], run: rowCommand },
};

export const readAsOf = {
  /** `ANNALS.AT <instant> [SYSTEM] <command>`: the command as of an instant of valid time; with SYSTEM, of system time. */
  command(sessionTerms: Terms, respWords: readonly Buffer[]): { readonly terms: Terms; readonly inner: readonly Buffer[] } {
    if (respWords.length < 3) throw respRefusals.arity('annals.at');
    const isSystemTime = respWords[2]!.toString().toUpperCase() === 'SYSTEM';
    const innerWords = respWords.slice(isSystemTime ? 3 : 2);
    if (innerWords.length === 0) throw respRefusals.arity('annals.at');
    const instantText = respWords[1]!.toString();
    const currentTerms = { ...sessionTerms, as_of: null, as_of_system: null };
    return { terms: withTerm(currentTerms, isSystemTime ? 'as_of_system' : 'as_of', instantText), inner: innerWords };
  },

  /** `ANNALS.SET <name> <value>`: the session's terms with this one. */
  async setTerm(connectionCaller: ConnectionCaller, sessionTerms: Terms, termName: string, termValue: string): Promise<Terms> {
    const statedTerms = withTerm(sessionTerms, termName.toLowerCase(), termValue);
    if (statedTerms.branch !== null && statedTerms.branch !== sessionTerms.branch && statedTerms.branch !== 'main') {
      await connectionCaller.ask({ terms: { ...statedTerms, branch: null }, action: 'inspect' }, ({ invocation }) => {
        if (!invocation.branches().some((knownBranch) => knownBranch.name === statedTerms.branch))
          throw new ServiceError('REL_NOT_FOUND', `there is no branch ${JSON.stringify(statedTerms.branch)}`);
      });
    }
    return statedTerms;
  },
} as const;

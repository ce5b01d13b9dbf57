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
async function history(context: KvCommandContext, [, respWord]: readonly Buffer[]): Promise<void> {
  const redisKeys = [keyOf(respWord!)];
  const answer = await context.connectionCaller.ask({ terms: context.terms, keysRead: 1 }, ({ invocation, keep }): Answer => {
    const answer = context.connectionCaller.parts.planner.lookUp(invocation, {
      type: entryType,
      keys: redisKeys,
      columns: historyColumns,
      time: 'all',
    });
    keep(answer);
    return answer;
  });
  const lines = answer.rowCount === 0 ? [] : writeNdjson(answer).toString().trimEnd().split('\n');
  context.replies.array(lines.length);
  for (const line of lines) context.replies.bulk(line);
}

async function row(context: KvCommandContext, [, type, respWord]: readonly Buffer[]): Promise<void> {
  const redisKey = keyOf(respWord!);
  const text = await context.connectionCaller.ask({ terms: context.terms, keysRead: 1 }, ({ invocation, keep }) => {
    const rowJson = rowAsJson(context.connectionCaller.parts.planner, invocation, {
      type: type!.toString(),
      key: redisKey,
      time: context.time,
    });
    keep(rowJson.answer);
    return rowJson.text;
  });
  if (text === null) context.replies.nothing();
  else context.replies.bulk(text);
}

export const annalsCommands: Readonly<Record<string, KvCommandRow>> = {
  'annals.history': { arity: 2, reads: false, cost: ofKeys, keys: [1, 1, 1], run: history },
  'annals.row': { arity: 3, reads: true, cost: ofKeys, keys: [0, 0, 0], run: row },
};

export const readAsOf = {
  /** `ANNALS.AT <instant> [SYSTEM] <command>`: the command as of an instant of valid time; with SYSTEM, of system time. */
  command(terms: Terms, words: readonly Buffer[]): { readonly terms: Terms; readonly inner: readonly Buffer[] } {
    if (words.length < 3) throw respRefusals.arity('annals.at');
    const bySystem = words[2]!.toString().toUpperCase() === 'SYSTEM';
    const inner = words.slice(bySystem ? 3 : 2);
    if (inner.length === 0) throw respRefusals.arity('annals.at');
    const at = words[1]!.toString();
    const timeless = { ...terms, as_of: null, as_of_system: null };
    return { terms: withTerm(timeless, bySystem ? 'as_of_system' : 'as_of', at), inner };
  },

  /** `ANNALS.SET <name> <value>`: the session's terms with this one. */
  async setTerm(connectionCaller: ConnectionCaller, terms: Terms, name: string, value: string): Promise<Terms> {
    const stated = withTerm(terms, name.toLowerCase(), value);
    if (stated.branch !== null && stated.branch !== terms.branch && stated.branch !== 'main') {
      await connectionCaller.ask({ terms: { ...stated, branch: null }, action: 'inspect' }, ({ invocation }) => {
        if (!invocation.branches().some((branch) => branch.name === stated.branch))
          throw new ServiceError('REL_NOT_FOUND', `there is no branch ${JSON.stringify(stated.branch)}`);
      });
    }
    return stated;
  },
} as const;

/** The call MATCH: what it is of, what it seeks, and how. */
import { at } from '../places.ts';
import { type MatchMode, matchModes } from '../search/query.ts';
import type { Expression } from '../statement.ts';
import type { Bound } from './bound-expression.ts';

type Call = Extract<Expression, { kind: 'call' }>;

/** MATCH where there is no search: of one text. */
export function bindMatch(call: Call, bind: (expression: Expression) => Bound): Bound {
  const { texts, slot, mode } = readMatch(call);
  const [text, ...others] = texts;
  if (others.length > 0) {
    throw at('REL_INVALID', 'MATCH of several columns is of rows of one type, not of a join or a subquery', call.place);
  }
  const operand = bind(text!);
  if (operand.type !== 'string' && operand.type !== 'null') throw notText(operand.type, text!);
  const query: Bound = { kind: 'literal', slot, as: 'value', type: 'string', place: call.place };
  return { kind: 'match', operand, query, mode, type: 'boolean' };
}

export function notText(type: string, { place }: Expression): Error {
  return at('REL_TYPE_MISMATCH', `MATCH is of text, not ${type}`, place);
}

export function readMatch({ arguments: given, place }: Call): { texts: readonly Expression[]; slot: number; mode: MatchMode } {
  const named = given.find(({ name }) => name === 'MODE')?.value;
  const plain = given.filter(({ name }) => name === null).map(({ value }) => value);
  const query = plain.at(-1);
  if (plain.length < 2 || query?.kind !== 'literal') {
    throw at('REL_PARSE', "MATCH is written MATCH(column, 'text') or MATCH(column, 'text', MODE)", place);
  }
  const mode = named?.kind === 'column' ? named.name.toUpperCase() : 'ANY';
  return { texts: plain.slice(0, -1), slot: query.slot, mode: matchModes.find((each) => each === mode) ?? 'ANY' };
}

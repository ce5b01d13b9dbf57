/** Reads a MATCH call: its fields, its text and its mode. */
import { holdsTexts } from '../../log/values/value.ts';
import { errorAt } from '../syntax/error-location.ts';
import { type MatchMode, matchModes } from '../../governance/text-search/text-query.ts';
import type { Expression } from '../syntax/statement.ts';
import type { Bound } from './bound-expression.ts';

type Call = Extract<Expression, { kind: 'call' }>;

/** MATCH where there is no search: of one text. */
export function bindMatch(call: Call, bind: (expression: Expression) => Bound): Bound {
  const { fields, slot, mode } = readMatch(call);
  const [field, ...others] = fields;
  if (others.length > 0 || mode === 'FREQUENCY') {
    const matchForm = others.length > 0 ? 'MATCH of several columns' : 'FREQUENCY';
    throw errorAt('REL_INVALID', `${matchForm} needs rows of one type, not of a join or a subquery`, call.location);
  }
  const operand = bind(field!.text);
  if (operand.type !== 'null' && operand.type !== 'interval' && !holdsTexts(operand.type))
    throw notText(operand.type, field!.text);
  const query: Bound = { kind: 'literal', slot, as: 'value', type: 'string', location: call.location };
  return { kind: 'match', operand, query, mode, type: 'boolean' };
}

export function notText(type: string, { location }: Expression): Error {
  return errorAt('REL_TYPE_MISMATCH', `MATCH searches text, not ${type}`, location);
}

/** A field of a search. Its options are numeric literals: weight and boost. */
export interface MatchField {
  readonly text: Expression;
  /** The weight of the field's words relative to the other fields'. */
  readonly weight: number | null;
  /** A factor for the score of rows whose field has any of the words. Of several boosts the highest counts. */
  readonly boost: number | null;
}

export interface ReadMatch {
  readonly fields: readonly MatchField[];
  /** Slot of the literal that says what for. */
  readonly slot: number;
  readonly mode: MatchMode;
}

/** WEIGHT and BOOST stand behind the column that they are of; no text of SQL has them. */
export function readMatch({ arguments: given, location }: Call): ReadMatch {
  const named = given.find(({ name }) => name === 'MODE')?.value;
  const plain = given.filter(({ name }) => name === null).map(({ value }) => value);
  const query = plain.at(-1);
  if (plain.length < 2 || query?.kind !== 'literal') {
    throw errorAt('REL_PARSE', "MATCH is written MATCH(column, 'text') or MATCH(column, 'text', MODE)", location);
  }
  const fields: { -readonly [K in keyof MatchField]: MatchField[K] }[] = [];
  for (const { name, value } of given) {
    if (name === null && value !== query) fields.push({ text: value, weight: null, boost: null });
    else if (name === 'WEIGHT' && value.kind === 'literal') fields.at(-1)!.weight = value.slot;
    else if (name === 'BOOST' && value.kind === 'literal') fields.at(-1)!.boost = value.slot;
  }
  const mode = named?.kind === 'column' ? named.name.toUpperCase() : 'ANY';
  return { fields, slot: query.slot, mode: matchModes.find((each) => each === mode) ?? 'ANY' };
}

/** Reads a MATCH call: its fields, its text and its mode. */
import { holdsTexts } from '../../log/values/value.ts';
import { errorAt } from '../syntax/error-location.ts';
import { type MatchMode, matchModes } from '../../governance/text-search/text-query.ts';
import type { Expression } from '../syntax/statement.ts';
import type { Bound } from './bound-expression.ts';

type MatchCall = Extract<Expression, { kind: 'call' }>;

/** MATCH where there is no search: of one text. */
export function bindMatch(call: MatchCall, bind: (expression: Expression) => Bound): Bound {
  const { fields, slot, mode: matchMode } = readMatch(call);
  const [matchField, ...otherMatchFields] = fields;
  if (otherMatchFields.length > 0 || matchMode === 'FREQUENCY') {
    const matchForm = otherMatchFields.length > 0 ? 'MATCH of several columns' : 'FREQUENCY';
    throw errorAt('REL_INVALID', `${matchForm} needs rows of one type, not of a join or a subquery`, call.location);
  }
  const matchedOperand = bind(matchField!.text);
  if (matchedOperand.type !== 'null' && matchedOperand.type !== 'interval' && !holdsTexts(matchedOperand.type))
    throw notText(matchedOperand.type, matchField!.text);
  const matchQuery: Bound = { kind: 'literal', slot, as: 'value', type: 'string', location: call.location };
  return { kind: 'match', operand: matchedOperand, query: matchQuery, mode: matchMode, type: 'boolean' };
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
export function readMatch({ arguments: matchArguments, location }: MatchCall): ReadMatch {
  const modeArgument = matchArguments.find(({ name }) => name === 'MODE')?.value;
  const plainArguments = matchArguments.filter(({ name }) => name === null).map(({ value: matchArgument }) => matchArgument);
  const queryLiteral = plainArguments.at(-1);
  if (plainArguments.length < 2 || queryLiteral?.kind !== 'literal') {
    throw errorAt('REL_PARSE', "MATCH is written MATCH(column, 'text') or MATCH(column, 'text', MODE)", location);
  }
  const matchFields: { -readonly [K in keyof MatchField]: MatchField[K] }[] = [];
  for (const { name, value } of matchArguments) {
    if (name === null && value !== queryLiteral) matchFields.push({ text: value, weight: null, boost: null });
    else if (name === 'WEIGHT' && value.kind === 'literal') matchFields.at(-1)!.weight = value.slot;
    else if (name === 'BOOST' && value.kind === 'literal') matchFields.at(-1)!.boost = value.slot;
  }
  const mode = modeArgument?.kind === 'column' ? modeArgument.name.toUpperCase() : 'ANY';
  return { fields: matchFields, slot: queryLiteral.slot, mode: matchModes.find((matchMode) => matchMode === mode) ?? 'ANY' };
}

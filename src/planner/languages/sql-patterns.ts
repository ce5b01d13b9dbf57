/** LIKE, ILIKE and SIMILAR TO, with the ESCAPE that the wide dialect has for them: each becomes calls of functions. */
import type { Expression, Location } from '../syntax/statement.ts';
import { argument } from './sql-functions.ts';
import type { TokenCursor } from './token-cursor.ts';

type ReadExpression = (cursor: TokenCursor) => Expression;

function callWithOperands(name: string, callOperands: readonly Expression[], location: Location): Expression {
  return { kind: 'call', name, arguments: callOperands.map((callOperand) => argument(callOperand)), location };
}

/** Behind its word. */
export function readLike(
  sqlCursor: TokenCursor,
  { operand, word: likeWord, location }: { readonly operand: Expression; readonly word: string; readonly location: Location },
  readPatternOperand: ReadExpression,
): Expression {
  let likePattern = readPatternOperand(sqlCursor);
  if (sqlCursor.key() === 'ESCAPE') {
    if (sqlCursor.dialect !== 'wide') throw sqlCursor.notImplemented('ESCAPE');
    const escapeLocation = sqlCursor.location;
    sqlCursor.next();
    likePattern = callWithOperands('LIKE_ESCAPE', [likePattern, readPatternOperand(sqlCursor)], escapeLocation);
  }
  if (likeWord === 'LIKE') return { kind: 'binary', op: 'like', left: operand, right: likePattern, location };
  const backslashConstant: Expression = { kind: 'constant', cell: '\\', location };
  return callWithOperands(
    'ILIKE',
    sqlCursor.dialect === 'wide' ? [operand, likePattern, backslashConstant] : [operand, likePattern],
    location,
  );
}

/** SIMILAR TO matches the whole of a text by the regular expression that its pattern becomes. */
export function readSimilar(
  sqlCursor: TokenCursor,
  operand: Expression,
  location: Location,
  readPatternOperand: ReadExpression,
): Expression {
  sqlCursor.expect('TO');
  const similarOperands = [readPatternOperand(sqlCursor)];
  if (sqlCursor.accept('ESCAPE')) similarOperands.push(readPatternOperand(sqlCursor));
  return callWithOperands('~', [operand, callWithOperands('SIMILAR_TO_ESCAPE', similarOperands, location)], location);
}

/** LIKE, ILIKE and SIMILAR TO, with the ESCAPE that the wide dialect has for them: each becomes calls of functions. */
import type { Expression, Location } from '../syntax/statement.ts';
import { argument } from './sql-functions.ts';
import type { TokenCursor } from './token-cursor.ts';

type Read = (cursor: TokenCursor) => Expression;

function callOf(name: string, operands: readonly Expression[], location: Location): Expression {
  return { kind: 'call', name, arguments: operands.map((each) => argument(each)), location };
}

/** Behind its word. */
export function readLike(
  cursor: TokenCursor,
  { operand, word, location }: { readonly operand: Expression; readonly word: string; readonly location: Location },
  read: Read,
): Expression {
  let pattern = read(cursor);
  if (cursor.key() === 'ESCAPE') {
    if (cursor.dialect !== 'wide') throw cursor.notImplemented('ESCAPE');
    const where = cursor.location;
    cursor.next();
    pattern = callOf('LIKE_ESCAPE', [pattern, read(cursor)], where);
  }
  if (word === 'LIKE') return { kind: 'binary', op: 'like', left: operand, right: pattern, location };
  const backslash: Expression = { kind: 'constant', cell: '\\', location };
  return callOf('ILIKE', cursor.dialect === 'wide' ? [operand, pattern, backslash] : [operand, pattern], location);
}

/** SIMILAR TO matches the whole of a text by the regular expression that its pattern becomes. */
export function readSimilar(cursor: TokenCursor, operand: Expression, location: Location, read: Read): Expression {
  cursor.expect('TO');
  const pattern = [read(cursor)];
  if (cursor.accept('ESCAPE')) pattern.push(read(cursor));
  return callOf('~', [operand, callOf('SIMILAR_TO_ESCAPE', pattern, location)], location);
}

/** Calls that have words where others have commas: CAST(x AS type), EXTRACT(field FROM x), TRIM(BOTH c FROM x) and the like. */
import { typeNames } from '../expressions/functions/casts.ts';
import type { Expression, FunctionArgument, Location } from '../syntax/statement.ts';
import type { TokenCursor } from './token-cursor.ts';

type Read = (cursor: TokenCursor) => Expression;

export function argument(value: Expression, name: string | null = null): FunctionArgument {
  return { name, value };
}

function word(name: string, location: Location): Expression {
  return { kind: 'column', table: null, name, location };
}

/**
 * null where the call is written like any other. The name is read, its bracket is not; `readSide` reads one side of a
 * comparison, which no IN belongs to.
 */
export function readSpecialCall(
  cursor: TokenCursor,
  name: string,
  location: Location,
  { read, readSide }: { readonly read: Read; readonly readSide: Read },
): Expression | null {
  switch (name) {
    case 'CAST': {
      cursor.expect('(');
      const operand = read(cursor);
      cursor.expect('AS');
      const cast = castTo(cursor, operand, location);
      cursor.expect(')');
      return cast;
    }
    case 'EXTRACT': {
      cursor.expect('(');
      const where = cursor.location;
      if (cursor.isLiteral('s')) {
        if (cursor.dialect !== 'wide') throw cursor.error('EXTRACT takes its field as a word: EXTRACT(YEAR FROM x)');
        const fieldExpression: Expression = { kind: 'literal', ...cursor.literal('s', 'a field') };
        cursor.expect('FROM');
        const given = [argument(fieldExpression), argument(read(cursor))];
        cursor.expect(')');
        return { kind: 'call', name: 'DATE_PART', arguments: given, location };
      }
      const field = cursor.name('a field such as YEAR');
      cursor.expect('FROM');
      const list = [argument(word(field.toUpperCase(), where), 'FIELD'), argument(read(cursor))];
      cursor.expect(')');
      return { kind: 'call', name, arguments: list, location };
    }
    case 'POSITION': {
      cursor.expect('(');
      const part = readSide(cursor);
      cursor.expect('IN');
      const list = [argument(part), argument(read(cursor))];
      cursor.expect(')');
      return { kind: 'call', name, arguments: list, location };
    }
    case 'SUBSTRING': {
      cursor.expect('(');
      const list = [argument(read(cursor))];
      const byWords = cursor.key() === 'FROM' || cursor.key() === 'FOR';
      if (byWords) {
        const { location: where } = cursor;
        if (cursor.accept('FROM')) list.push(argument(read(cursor)));
        else list.push(argument({ kind: 'constant', cell: 1n, location: where }));
        if (cursor.accept('FOR')) list.push(argument(read(cursor)));
      } else while (cursor.accept(',')) list.push(argument(read(cursor)));
      cursor.expect(')');
      return { kind: 'call', name, arguments: list, location };
    }
    case 'OVERLAY': {
      cursor.expect('(');
      const list = [argument(read(cursor))];
      if (cursor.accept('PLACING')) {
        list.push(argument(read(cursor)));
        cursor.expect('FROM');
        list.push(argument(read(cursor)));
        if (cursor.accept('FOR')) list.push(argument(read(cursor)));
      } else while (cursor.accept(',')) list.push(argument(read(cursor)));
      cursor.expect(')');
      return { kind: 'call', name, arguments: list, location };
    }
    case 'TRIM':
      return readTrim(cursor, location, read);
    default:
      return null;
  }
}

const trims: Readonly<Record<string, string>> = { BOTH: 'TRIM', LEADING: 'LTRIM', TRAILING: 'RTRIM' };

/** TRIM(x), TRIM(x, characters), TRIM([LEADING|TRAILING|BOTH] [characters] FROM x). */
function readTrim(cursor: TokenCursor, location: Location, read: Read): Expression {
  cursor.expect('(');
  const side = Object.hasOwn(trims, cursor.key()) && cursor.key(1) !== ',' && cursor.key(1) !== ')' ? cursor.next().key : null;
  const name = trims[side ?? 'BOTH']!;
  const first = cursor.key() === 'FROM' ? null : read(cursor);
  const list: FunctionArgument[] = [];
  if (cursor.accept('FROM')) {
    list.push(argument(read(cursor)));
    if (first) list.push(argument(first));
  } else {
    if (first === null) throw cursor.expectedError('a text');
    list.push(argument(first));
    if (side === null && cursor.accept(',')) list.push(argument(read(cursor)));
  }
  cursor.expect(')');
  return { kind: 'call', name, arguments: list, location };
}

/** `x::type` and `x[n]`, any number of times. */
export function readTypeSuffix(cursor: TokenCursor, operand: Expression, read: Read): Expression {
  let cast = operand;
  skipCollation(cursor);
  while (cursor.key() === '::' || (cursor.key() === '[' && cursor.dialect === 'wide')) {
    cursor.countLink();
    const { location } = cursor;
    cast = cursor.next().key === '[' ? readElement(cursor, cast, location, read) : castTo(cursor, cast, location);
    skipCollation(cursor);
  }
  return cast;
}

/** `x[n]`, or `x[from:to]` where either may be left out, behind its bracket. */
function readElement(cursor: TokenCursor, array: Expression, location: Location, read: Read): Expression {
  const given = [argument(array)];
  const from = cursor.key() !== ':';
  if (from) given.push(argument(read(cursor)));
  const isSlice = cursor.accept(':');
  const to = isSlice && cursor.key() !== ']';
  if (to) given.push(argument(read(cursor)));
  cursor.expect(']');
  return { kind: 'call', name: isSlice ? `[${from ? 'from' : ''}:${to ? 'to' : ''}]` : '[]', arguments: given, location };
}

/** Texts are compared by their code points: a collation that says so, or nothing, is passed over. */
function skipCollation(cursor: TokenCursor): void {
  if (cursor.key() !== 'COLLATE' || cursor.dialect !== 'wide') return;
  const isQualified = cursor.key(1) === 'PG_CATALOG' && cursor.key(2) === '.';
  const { text, kind } = cursor.peek(isQualified ? 3 : 1);
  if (!isQualified && kind !== 'quoted') return;
  if (text.toLowerCase() !== 'default' && text !== 'C') return;
  for (let i = isQualified ? 4 : 2; i > 0; i--) cursor.next();
}

/** `int4 '7'`, `double precision '1.5'`, `timestamptz(3) '…'`: a type before a text. Null where this is none. */
export function readTypedLiteral(cursor: TokenCursor): Expression | null {
  const { key } = cursor.token;
  if (!typeNames.has(key)) return null;
  let behind = 1;
  if ((key === 'DOUBLE' && cursor.key(1) === 'PRECISION') || (key === 'CHARACTER' && cursor.key(1) === 'VARYING')) behind++;
  if (cursor.key(behind) === '(') behind += cursor.key(behind + 2) === ',' ? 5 : 3;
  if (cursor.key(behind + 1) === 'TIME' && cursor.key(behind + 2) === 'ZONE') behind += 3;
  const { kind, text } = cursor.peek(behind);
  if (kind !== 'literal' || text !== 's') return null;
  const { location } = cursor;
  const type = readType(cursor);
  const literal = cursor.literal('s', 'a text');
  return castOf(cursor, { kind: 'literal', ...literal }, type, location);
}

interface NamedType {
  readonly name: string;
  readonly location: Location;
  readonly sizes: readonly FunctionArgument[];
}

function castTo(cursor: TokenCursor, operand: Expression, location: Location): Expression {
  return castOf(cursor, operand, readType(cursor), location);
}

/** A word in upper case; in quotes as it stands. */
function typeWord(cursor: TokenCursor): string {
  const isQuoted = cursor.token.kind === 'quoted';
  const name = cursor.name('a type');
  return isQuoted ? `"${name}"` : name.toUpperCase();
}

/** A type, with the length or the digits that it may have. */
function readType(cursor: TokenCursor): NamedType {
  let { location } = cursor;
  let name = typeWord(cursor);
  if ((name === 'PG_CATALOG' || name === 'PUBLIC') && cursor.accept('.')) {
    ({ location } = cursor);
    name = typeWord(cursor);
  }
  if (name === 'DOUBLE') cursor.accept('PRECISION');
  if (name === 'CHARACTER') cursor.accept('VARYING');
  const sizes: FunctionArgument[] = [];
  if (cursor.key() === '(') {
    cursor.next();
    do {
      const size = cursor.literal('i', 'a whole number');
      sizes.push(argument({ kind: 'literal', slot: size.slot, location: size.location }));
    } while (cursor.accept(','));
    cursor.expect(')');
  }
  if (cursor.key() === 'WITHOUT' || (cursor.key() === 'WITH' && cursor.key(1) === 'TIME')) {
    if (cursor.next().key === 'WITH' && name === 'TIMESTAMP') name = 'TIMESTAMPTZ';
    cursor.expect('TIME');
    cursor.expect('ZONE');
  }
  if (cursor.key() === '[') {
    if (cursor.dialect !== 'wide') throw cursor.notImplemented('a cast to an array');
    cursor.next();
    cursor.expect(']');
    name += '[]';
  }
  return { name, location, sizes };
}

/** VARCHAR(n) cuts, NUMERIC(p, s) rounds. */
function castOf(
  cursor: TokenCursor,
  operand: Expression,
  { name: type, location: where, sizes }: NamedType,
  location: Location,
): Expression {
  const list = [argument(operand), argument(word(type, where), 'TYPE')];
  const cast: Expression = { kind: 'call', name: 'CAST', arguments: list, location };
  const last = sizes.at(-1);
  if (!last) return cast;
  if (type === 'VECTOR') return { ...cast, arguments: [...list, ...sizes] };
  if (type === 'NUMERIC' || type === 'DECIMAL') {
    return sizes.length === 2 ? { kind: 'call', name: 'ROUND', arguments: [argument(cast), last], location } : cast;
  }
  if (type === 'VARCHAR' || type === 'CHAR' || type === 'CHARACTER') {
    return { kind: 'call', name: 'LEFT', arguments: [argument(cast), last], location };
  }
  if (type === 'TIMESTAMP' || type === 'TIMESTAMPTZ' || type === 'FLOAT') return cast;
  throw cursor.error(`${type} takes no size`, where);
}

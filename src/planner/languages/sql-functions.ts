/** Calls that have words where others have commas: CAST(x AS type), EXTRACT(field FROM x), TRIM(BOTH c FROM x) and the like. */
import { typeNames } from '../expressions/functions/casts.ts';
import type { Expression, FunctionArgument, Location } from '../syntax/statement.ts';
import type { TokenCursor } from './token-cursor.ts';

type ReadExpression = (cursor: TokenCursor) => Expression;

export function argument(value: Expression, name: string | null = null): FunctionArgument {
  return { name, value };
}

function wordArgument(name: string, location: Location): Expression {
  return { kind: 'column', table: null, name, location };
}

/**
 * null where the call is written like any other. The name is read, its bracket is not; `readSide` reads one side of a
 * comparison, which no IN belongs to.
 */
export function readSpecialCall(
  sqlCursor: TokenCursor,
  name: string,
  location: Location,
  { read: readArgument, readSide }: { readonly read: ReadExpression; readonly readSide: ReadExpression },
): Expression | null {
  switch (name) {
    case 'CAST': {
      sqlCursor.expect('(');
      const castOperand = readArgument(sqlCursor);
      sqlCursor.expect('AS');
      const castCall = readCastTo(sqlCursor, castOperand, location);
      sqlCursor.expect(')');
      return castCall;
    }
    case 'EXTRACT': {
      sqlCursor.expect('(');
      const fieldLocation = sqlCursor.location;
      if (sqlCursor.isLiteral('s')) {
        if (sqlCursor.dialect !== 'wide') throw sqlCursor.error('EXTRACT takes its field as a word: EXTRACT(YEAR FROM x)');
        const fieldExpression: Expression = { kind: 'literal', ...sqlCursor.literal('s', 'a field') };
        sqlCursor.expect('FROM');
        const datePartArguments = [argument(fieldExpression), argument(readArgument(sqlCursor))];
        sqlCursor.expect(')');
        return { kind: 'call', name: 'DATE_PART', arguments: datePartArguments, location };
      }
      const extractField = sqlCursor.name('a field such as YEAR');
      sqlCursor.expect('FROM');
      const callArguments = [
        argument(wordArgument(extractField.toUpperCase(), fieldLocation), 'FIELD'),
        argument(readArgument(sqlCursor)),
      ];
      sqlCursor.expect(')');
      return { kind: 'call', name, arguments: callArguments, location };
    }
    case 'POSITION': {
      sqlCursor.expect('(');
      const soughtPart = readSide(sqlCursor);
      sqlCursor.expect('IN');
      const callArguments = [argument(soughtPart), argument(readArgument(sqlCursor))];
      sqlCursor.expect(')');
      return { kind: 'call', name, arguments: callArguments, location };
    }
    case 'SUBSTRING': {
      sqlCursor.expect('(');
      const callArguments = [argument(readArgument(sqlCursor))];
      const isByWords = sqlCursor.key() === 'FROM' || sqlCursor.key() === 'FOR';
      if (isByWords) {
        const { location: fieldLocation } = sqlCursor;
        if (sqlCursor.accept('FROM')) callArguments.push(argument(readArgument(sqlCursor)));
        else callArguments.push(argument({ kind: 'constant', cell: 1n, location: fieldLocation }));
        if (sqlCursor.accept('FOR')) callArguments.push(argument(readArgument(sqlCursor)));
      } else while (sqlCursor.accept(',')) callArguments.push(argument(readArgument(sqlCursor)));
      sqlCursor.expect(')');
      return { kind: 'call', name, arguments: callArguments, location };
    }
    case 'OVERLAY': {
      sqlCursor.expect('(');
      const callArguments = [argument(readArgument(sqlCursor))];
      if (sqlCursor.accept('PLACING')) {
        callArguments.push(argument(readArgument(sqlCursor)));
        sqlCursor.expect('FROM');
        callArguments.push(argument(readArgument(sqlCursor)));
        if (sqlCursor.accept('FOR')) callArguments.push(argument(readArgument(sqlCursor)));
      } else while (sqlCursor.accept(',')) callArguments.push(argument(readArgument(sqlCursor)));
      sqlCursor.expect(')');
      return { kind: 'call', name, arguments: callArguments, location };
    }
    case 'TRIM':
      return readTrim(sqlCursor, location, readArgument);
    default:
      return null;
  }
}

const trimFunctions: Readonly<Record<string, string>> = { BOTH: 'TRIM', LEADING: 'LTRIM', TRAILING: 'RTRIM' };

/** TRIM(x), TRIM(x, characters), TRIM([LEADING|TRAILING|BOTH] [characters] FROM x). */
function readTrim(sqlCursor: TokenCursor, location: Location, readArgument: ReadExpression): Expression {
  sqlCursor.expect('(');
  const trimSide =
    Object.hasOwn(trimFunctions, sqlCursor.key()) && sqlCursor.key(1) !== ',' && sqlCursor.key(1) !== ')'
      ? sqlCursor.next().key
      : null;
  const trimFunction = trimFunctions[trimSide ?? 'BOTH']!;
  const trimOperand = sqlCursor.key() === 'FROM' ? null : readArgument(sqlCursor);
  const trimArguments: FunctionArgument[] = [];
  if (sqlCursor.accept('FROM')) {
    trimArguments.push(argument(readArgument(sqlCursor)));
    if (trimOperand) trimArguments.push(argument(trimOperand));
  } else {
    if (trimOperand === null) throw sqlCursor.expectedError('a text');
    trimArguments.push(argument(trimOperand));
    if (trimSide === null && sqlCursor.accept(',')) trimArguments.push(argument(readArgument(sqlCursor)));
  }
  sqlCursor.expect(')');
  return { kind: 'call', name: trimFunction, arguments: trimArguments, location };
}

/** `x::type` and `x[n]`, any number of times. */
export function readTypeSuffix(sqlCursor: TokenCursor, operand: Expression, readSubscript: ReadExpression): Expression {
  let castOrElement = operand;
  skipCollation(sqlCursor);
  while (sqlCursor.key() === '::' || (sqlCursor.key() === '[' && sqlCursor.dialect === 'wide')) {
    sqlCursor.countLink();
    const { location } = sqlCursor;
    castOrElement =
      sqlCursor.next().key === '['
        ? readArrayElement(sqlCursor, castOrElement, location, readSubscript)
        : readCastTo(sqlCursor, castOrElement, location);
    skipCollation(sqlCursor);
  }
  return castOrElement;
}

/** `x[n]`, or `x[from:to]` where either may be left out, behind its bracket. */
function readArrayElement(
  sqlCursor: TokenCursor,
  arrayOperand: Expression,
  location: Location,
  readSubscript: ReadExpression,
): Expression {
  const elementArguments = [argument(arrayOperand)];
  const hasLowerBound = sqlCursor.key() !== ':';
  if (hasLowerBound) elementArguments.push(argument(readSubscript(sqlCursor)));
  const isSlice = sqlCursor.accept(':');
  const hasUpperBound = isSlice && sqlCursor.key() !== ']';
  if (hasUpperBound) elementArguments.push(argument(readSubscript(sqlCursor)));
  sqlCursor.expect(']');
  return {
    kind: 'call',
    name: isSlice ? `[${hasLowerBound ? 'from' : ''}:${hasUpperBound ? 'to' : ''}]` : '[]',
    arguments: elementArguments,
    location,
  };
}

/** Texts are compared by their code points: a collation that says so, or nothing, is passed over. */
function skipCollation(sqlCursor: TokenCursor): void {
  if (sqlCursor.key() !== 'COLLATE' || sqlCursor.dialect !== 'wide') return;
  const isQualified = sqlCursor.key(1) === 'PG_CATALOG' && sqlCursor.key(2) === '.';
  const { text, kind } = sqlCursor.peek(isQualified ? 3 : 1);
  if (!isQualified && kind !== 'quoted') return;
  if (text.toLowerCase() !== 'default' && text !== 'C') return;
  for (let i = isQualified ? 4 : 2; i > 0; i--) sqlCursor.next();
}

/** `int4 '7'`, `double precision '1.5'`, `timestamptz(3) '…'`: a type before a text. Null where this is none. */
export function readTypedLiteral(sqlCursor: TokenCursor): Expression | null {
  const { key: typeKey } = sqlCursor.token;
  if (!typeNames.has(typeKey)) return null;
  let literalLexeme = 1;
  if ((typeKey === 'DOUBLE' && sqlCursor.key(1) === 'PRECISION') || (typeKey === 'CHARACTER' && sqlCursor.key(1) === 'VARYING'))
    literalLexeme++;
  if (sqlCursor.key(literalLexeme) === '(') literalLexeme += sqlCursor.key(literalLexeme + 2) === ',' ? 5 : 3;
  if (sqlCursor.key(literalLexeme + 1) === 'TIME' && sqlCursor.key(literalLexeme + 2) === 'ZONE') literalLexeme += 3;
  const { kind, text } = sqlCursor.peek(literalLexeme);
  if (kind !== 'literal' || text !== 's') return null;
  const { location } = sqlCursor;
  const literalType = readType(sqlCursor);
  const typedText = sqlCursor.literal('s', 'a text');
  return castExpression(sqlCursor, { kind: 'literal', ...typedText }, literalType, location);
}

interface NamedType {
  readonly name: string;
  readonly location: Location;
  readonly sizes: readonly FunctionArgument[];
}

function readCastTo(sqlCursor: TokenCursor, operand: Expression, location: Location): Expression {
  return castExpression(sqlCursor, operand, readType(sqlCursor), location);
}

/** A word in upper case; in quotes as it stands. */
function readTypeWord(sqlCursor: TokenCursor): string {
  const isQuoted = sqlCursor.token.kind === 'quoted';
  const typeWordText = sqlCursor.name('a type');
  return isQuoted ? `"${typeWordText}"` : typeWordText.toUpperCase();
}

/** A type, with the length or the digits that it may have. */
function readType(sqlCursor: TokenCursor): NamedType {
  let { location } = sqlCursor;
  let namedTypeName = readTypeWord(sqlCursor);
  if ((namedTypeName === 'PG_CATALOG' || namedTypeName === 'PUBLIC') && sqlCursor.accept('.')) {
    ({ location } = sqlCursor);
    namedTypeName = readTypeWord(sqlCursor);
  }
  if (namedTypeName === 'DOUBLE') sqlCursor.accept('PRECISION');
  if (namedTypeName === 'CHARACTER') sqlCursor.accept('VARYING');
  const typeSizes: FunctionArgument[] = [];
  if (sqlCursor.key() === '(') {
    sqlCursor.next();
    do {
      const typeSize = sqlCursor.literal('i', 'a whole number');
      typeSizes.push(argument({ kind: 'literal', slot: typeSize.slot, location: typeSize.location }));
    } while (sqlCursor.accept(','));
    sqlCursor.expect(')');
  }
  if (sqlCursor.key() === 'WITHOUT' || (sqlCursor.key() === 'WITH' && sqlCursor.key(1) === 'TIME')) {
    if (sqlCursor.next().key === 'WITH' && namedTypeName === 'TIMESTAMP') namedTypeName = 'TIMESTAMPTZ';
    sqlCursor.expect('TIME');
    sqlCursor.expect('ZONE');
  }
  if (sqlCursor.key() === '[') {
    if (sqlCursor.dialect !== 'wide') throw sqlCursor.notImplemented('a cast to an array');
    sqlCursor.next();
    sqlCursor.expect(']');
    namedTypeName += '[]';
  }
  return { name: namedTypeName, location, sizes: typeSizes };
}

/** VARCHAR(n) cuts, NUMERIC(p, s) rounds. */
function castExpression(
  sqlCursor: TokenCursor,
  operand: Expression,
  { name: type, location: typeLocation, sizes: typeSizes }: NamedType,
  location: Location,
): Expression {
  const castArguments = [argument(operand), argument(wordArgument(type, typeLocation), 'TYPE')];
  const castCall: Expression = { kind: 'call', name: 'CAST', arguments: castArguments, location };
  const lastSize = typeSizes.at(-1);
  if (!lastSize) return castCall;
  if (type === 'VECTOR') return { ...castCall, arguments: [...castArguments, ...typeSizes] };
  if (type === 'NUMERIC' || type === 'DECIMAL') {
    return typeSizes.length === 2
      ? { kind: 'call', name: 'ROUND', arguments: [argument(castCall), lastSize], location }
      : castCall;
  }
  if (type === 'VARCHAR' || type === 'CHAR' || type === 'CHARACTER') {
    return { kind: 'call', name: 'LEFT', arguments: [argument(castCall), lastSize], location };
  }
  if (type === 'TIMESTAMP' || type === 'TIMESTAMPTZ' || type === 'FLOAT') return castCall;
  throw sqlCursor.error(`${type} takes no size`, typeLocation);
}

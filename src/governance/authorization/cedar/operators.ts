/**
 * Cedar's operators on values that are known, exactly as the engine has them: the one place where a type mismatch, an
 * absent attribute or an overflow becomes an error. Folding and row by row evaluation both come here.
 */
import { unreachable } from '../../../errors.ts';
import {
  Entity,
  equal,
  ERROR,
  Instant,
  long,
  parseInstant,
  parseSpan,
  SetValue,
  Span,
  type Outcome,
  type Value,
} from './values.ts';
import type { BinaryOp } from './syntax.ts';

/** Everything above an entity, itself left out. */
export type Ancestors = (entity: Entity) => readonly Entity[];

export function binary(op: BinaryOp, a: Value, b: Value, ancestors: Ancestors): Outcome {
  switch (op) {
    case '==':
      return equal(a, b);
    case '!=':
      return !equal(a, b);
    case '<':
    case '<=':
    case '>':
    case '>=':
      return compareBy(op, a, b);
    case '+':
      return typeof a === 'bigint' && typeof b === 'bigint' ? long(a + b) : ERROR;
    case '-':
      return typeof a === 'bigint' && typeof b === 'bigint' ? long(a - b) : ERROR;
    case '*':
      return typeof a === 'bigint' && typeof b === 'bigint' ? long(a * b) : ERROR;
    case 'in':
      return isIn(a, b, ancestors);
    case 'contains':
      return a instanceof SetValue ? a.has(b) : ERROR;
    case 'containsAll':
      return a instanceof SetValue && b instanceof SetValue ? a.hasAll(b) : ERROR;
    case 'containsAny':
      return a instanceof SetValue && b instanceof SetValue ? b.items.some((item) => a.has(item)) : ERROR;
    default:
      return unreachable(op);
  }
}

function compareBy(op: '<' | '<=' | '>' | '>=', a: Value, b: Value): Outcome {
  let leftMagnitude: bigint;
  let rightMagnitude: bigint;
  if (typeof a === 'bigint' && typeof b === 'bigint') [leftMagnitude, rightMagnitude] = [a, b];
  else if (a instanceof Instant && b instanceof Instant) [leftMagnitude, rightMagnitude] = [a.ms, b.ms];
  else if (a instanceof Span && b instanceof Span) [leftMagnitude, rightMagnitude] = [a.ms, b.ms];
  else return ERROR;
  return op === '<'
    ? leftMagnitude < rightMagnitude
    : op === '<='
      ? leftMagnitude <= rightMagnitude
      : op === '>'
        ? leftMagnitude > rightMagnitude
        : leftMagnitude >= rightMagnitude;
}

export function isIn(a: Value, b: Value, ancestors: Ancestors): Outcome {
  if (!(a instanceof Entity)) return ERROR;
  if (b instanceof Entity) return equal(a, b) || ancestors(a).some((above) => equal(above, b));
  if (!(b instanceof SetValue) || !b.items.every((item) => item instanceof Entity)) return ERROR;
  return b.items.some((item) => isIn(a, item, ancestors) === true);
}

export function unary(op: 'not' | 'negate' | 'isEmpty', a: Value): Outcome {
  switch (op) {
    case 'not':
      return typeof a === 'boolean' ? !a : ERROR;
    case 'negate':
      return typeof a === 'bigint' ? long(-a) : ERROR;
    case 'isEmpty':
      return a instanceof SetValue ? a.items.length === 0 : ERROR;
    default:
      return unreachable(op);
  }
}

/** Greedy from the left is enough: a wildcard takes as little as lets the next literal part match. */
export function like(text: Value, pattern: readonly (string | null)[]): Outcome {
  if (typeof text !== 'string') return ERROR;
  const likeLiterals = likeLiteralsOf(pattern);
  const likePrefix = likeLiterals[0]!;
  if (likeLiterals.length === 1) return text === likePrefix;
  const likeSuffix = likeLiterals.at(-1)!;
  if (text.length < likePrefix.length + likeSuffix.length || !text.startsWith(likePrefix) || !text.endsWith(likeSuffix))
    return false;
  let matchedUpTo = likePrefix.length;
  for (const likeLiteral of likeLiterals.slice(1, -1)) {
    const matchStart = text.indexOf(likeLiteral, matchedUpTo);
    if (matchStart < 0) return false;
    matchedUpTo = matchStart + likeLiteral.length;
  }
  return matchedUpTo <= text.length - likeSuffix.length;
}

/** The literal parts between wildcards: one more than there are wildcards. */
function likeLiteralsOf(pattern: readonly (string | null)[]): readonly string[] {
  const literalParts = [''];
  for (const patternPart of pattern) {
    if (patternPart === null) literalParts.push('');
    else literalParts[literalParts.length - 1] += patternPart;
  }
  return literalParts;
}

export const functionNames: ReadonlySet<string> = new Set([
  'datetime',
  'duration',
  'offset',
  'durationSince',
  'toDate',
  'toTime',
  'toMilliseconds',
  'toSeconds',
  'toMinutes',
  'toHours',
  'toDays',
]);

const DAY = 86_400_000n;
const spanUnits: Readonly<Record<string, bigint>> = {
  toMilliseconds: 1n,
  toSeconds: 1000n,
  toMinutes: 60_000n,
  toHours: 3_600_000n,
  toDays: DAY,
};

export function call(name: string, args: readonly Value[]): Outcome {
  const [a, b] = args;
  switch (name) {
    case 'datetime':
      return typeof a === 'string' ? (parseInstant(a) ?? ERROR) : ERROR;
    case 'duration':
      return typeof a === 'string' ? (parseSpan(a) ?? ERROR) : ERROR;
    case 'offset':
      return a instanceof Instant && b instanceof Span ? instantOutcome(a.ms + b.ms) : ERROR;
    case 'durationSince': {
      if (!(a instanceof Instant) || !(b instanceof Instant)) return ERROR;
      const ms = long(a.ms - b.ms);
      return ms === ERROR ? ERROR : new Span(ms);
    }
    case 'toDate':
      return a instanceof Instant ? instantOutcome(a.ms - timeOfDay(a.ms)) : ERROR;
    case 'toTime':
      return a instanceof Instant ? new Span(timeOfDay(a.ms)) : ERROR;
    default: {
      const spanUnitMs = spanUnits[name];
      return spanUnitMs !== undefined && a instanceof Span ? a.ms / spanUnitMs : ERROR;
    }
  }
}

function instantOutcome(ms: bigint): Outcome {
  const instantMs = long(ms);
  return instantMs === ERROR ? ERROR : new Instant(instantMs);
}

function timeOfDay(ms: bigint): bigint {
  return ((ms % DAY) + DAY) % DAY;
}

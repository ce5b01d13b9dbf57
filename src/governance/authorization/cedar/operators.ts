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
  let x: bigint;
  let y: bigint;
  if (typeof a === 'bigint' && typeof b === 'bigint') [x, y] = [a, b];
  else if (a instanceof Instant && b instanceof Instant) [x, y] = [a.ms, b.ms];
  else if (a instanceof Span && b instanceof Span) [x, y] = [a.ms, b.ms];
  else return ERROR;
  return op === '<' ? x < y : op === '<=' ? x <= y : op === '>' ? x > y : x >= y;
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
  const parts = partsOf(pattern);
  const first = parts[0]!;
  if (parts.length === 1) return text === first;
  const last = parts.at(-1)!;
  if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last)) return false;
  let at = first.length;
  for (const part of parts.slice(1, -1)) {
    const matchStart = text.indexOf(part, at);
    if (matchStart < 0) return false;
    at = matchStart + part.length;
  }
  return at <= text.length - last.length;
}

/** The literal parts between wildcards: one more than there are wildcards. */
function partsOf(pattern: readonly (string | null)[]): readonly string[] {
  const parts = [''];
  for (const part of pattern) {
    if (part === null) parts.push('');
    else parts[parts.length - 1] += part;
  }
  return parts;
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
const units: Readonly<Record<string, bigint>> = {
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
      return a instanceof Instant && b instanceof Span ? instant(a.ms + b.ms) : ERROR;
    case 'durationSince': {
      if (!(a instanceof Instant) || !(b instanceof Instant)) return ERROR;
      const ms = long(a.ms - b.ms);
      return ms === ERROR ? ERROR : new Span(ms);
    }
    case 'toDate':
      return a instanceof Instant ? instant(a.ms - timeOfDay(a.ms)) : ERROR;
    case 'toTime':
      return a instanceof Instant ? new Span(timeOfDay(a.ms)) : ERROR;
    default: {
      const unit = units[name];
      return unit !== undefined && a instanceof Span ? a.ms / unit : ERROR;
    }
  }
}

function instant(ms: bigint): Outcome {
  const held = long(ms);
  return held === ERROR ? ERROR : new Instant(held);
}

function timeOfDay(ms: bigint): bigint {
  return ((ms % DAY) + DAY) % DAY;
}

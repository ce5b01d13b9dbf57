/** Dates among instants: a day is added to one and counted between two, as in Postgres. An instant by itself takes no integer. */
import type { ArithmeticOp, Bound } from './bound-expression.ts';
import { casts } from './functions/casts.ts';
import { dayNs } from './functions/instants.ts';

const dateCast = casts.get('date')!;
/** Calls that yield a day. */
const dateCalls: ReadonlySet<string> = new Set([dateCast.name, 'MAKE_DATE', 'TO_DATE']);
const wholeNumberCast = casts.get('integer')!.signatures.find(({ takes }) => takes[0] === 'number')!;

/** It is a day by the way that it is made: CURRENT_DATE, a cast to DATE, a parameter of that type, a date and a number of days. */
export function isDate(bound: Bound): boolean {
  switch (bound.kind) {
    case 'call':
      if (bound.type !== 'timestamp') return false;
      return dateCalls.has(bound.name) || (bound.function.yields === 'same' && bound.operands.every(isDateOrNull));
    case 'arithmetic':
      return bound.type === 'timestamp' && isDate(bound.left) && isDays(bound.right);
    case 'coalesce':
      return bound.type === 'timestamp' && bound.operands.every(isDateOrNull);
    case 'case': {
      const caseResults = [...bound.branches.map(({ result }) => result), ...(bound.otherwise ? [bound.otherwise] : [])];
      return bound.type === 'timestamp' && caseResults.every(isDateOrNull);
    }
    default:
      return false;
  }
}

function isDateOrNull(bound: Bound): boolean {
  return bound.type === 'null' || isDate(bound);
}

function isDays(bound: Bound): boolean {
  return bound.kind === 'arithmetic' && bound.op === '*' && bound.right === oneDay;
}

const oneDay: Bound = { kind: 'constant', cell: dayNs, type: 'integer' };

function daysOf(dayCount: Bound): Bound {
  return { kind: 'arithmetic', op: '*', left: dayCount, right: oneDay, type: 'integer' };
}

/** A date and a number of days, or two dates; `refuse` for all else. */
export function dateArithmetic(op: ArithmeticOp, left: Bound, right: Bound, refuse: () => never): Bound {
  if (isDate(left) && right.type === 'integer' && (op === '+' || op === '-'))
    return { kind: 'arithmetic', op, left, right: daysOf(right), type: 'timestamp' };
  if (left.type === 'integer' && isDate(right) && op === '+')
    return { kind: 'arithmetic', op, left: right, right: daysOf(left), type: 'timestamp' };
  if (right.type === 'interval' && (op === '+' || op === '-')) return { kind: 'arithmetic', op, left, right, type: 'timestamp' };
  if (right.type !== 'timestamp' || op !== '-') return refuse();
  const instantDifference: Bound = { kind: 'arithmetic', op, left, right, type: 'integer' };
  if (!isDate(left) || !isDate(right)) return instantDifference;
  const dayQuotient: Bound = { kind: 'arithmetic', op: '/', left: instantDifference, right: oneDay, type: 'number' };
  return { kind: 'call', name: 'DAYS', function: wholeNumberCast, operands: [dayQuotient], type: 'integer' };
}

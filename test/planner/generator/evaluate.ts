/**
 * Expressions over one row, evaluated as the dialect defines them and in the plainest way: what a pivot row must satisfy is
 * known without asking the planner. NULL is unknown in three-valued logic.
 */
import type { Cell } from '../../../src/log/values/value.ts';
import { called } from './calls.ts';
import type { CompareOp, Expr } from './tree.ts';

/** Cells by `table.column`, or by column where the tree names no table. */
export type PivotRow = ReadonlyMap<string, Cell>;

const dayNs = 86_400_000_000_000n;

/** Trees with subqueries and aggregates have no value in a single row: they throw. */
export function valueIn(expression: Expr, row: PivotRow, now: bigint): Cell {
  const of = (each: Expr): Cell => valueIn(each, row, now);
  const truth = (each: Expr): boolean | null => of(each) as boolean | null;
  switch (expression.kind) {
    case 'column': {
      const value = row.get(expression.table === null ? expression.name : `${expression.table}.${expression.name}`);
      if (value === undefined) throw new Error(`no column ${expression.name}`);
      return value;
    }
    case 'literal':
      return expression.value;
    case 'now':
      return now;
    case 'shift': {
      const value = of(expression.operand);
      return value === null ? null : (value as bigint) + BigInt(expression.days) * dayNs;
    }
    case 'negate': {
      const value = of(expression.operand);
      return value === null ? null : -(value as bigint);
    }
    case 'arithmetic':
      return arithmetic(expression.op, of(expression.left), of(expression.right));
    case 'compare':
      return compared(expression.op, of(expression.left), of(expression.right));
    case 'logic':
      return expression.op === 'and'
        ? both(truth(expression.left), truth(expression.right))
        : inverse(both(inverse(truth(expression.left)), inverse(truth(expression.right))));
    case 'not':
      return inverse(truth(expression.operand));
    case 'is-null':
      return (of(expression.operand) === null) !== expression.negated;
    case 'in-list': {
      const value = of(expression.operand);
      const found = expression.items.map((item) => compared('=', value, of(item)));
      const within = found.includes(true) ? true : found.includes(null) ? null : false;
      return expression.negated ? inverse(within) : within;
    }
    case 'between': {
      const value = of(expression.operand);
      const within = both(compared('>=', value, of(expression.low)), compared('<=', value, of(expression.high)));
      return expression.negated ? inverse(within) : within;
    }
    case 'like': {
      const value = of(expression.operand);
      if (value === null) return null;
      return like(Array.from(expression.pattern.value as string), Array.from(value as string)) !== expression.negated;
    }
    case 'case': {
      const { operand, branches, otherwise } = expression;
      const value = operand ? of(operand) : null;
      const taken = branches.find(({ when }) => (operand ? compared('=', value, of(when)) : truth(when)) === true);
      return taken ? widened(of(taken.result), expression.type) : otherwise ? widened(of(otherwise), expression.type) : null;
    }
    case 'call':
      return called(expression.name, expression.operands.map(of));
    case 'aggregate':
    case 'in-query':
    case 'exists':
    case 'scalar-query':
    case 'quantified':
    case 'window':
      throw new Error(`${expression.kind} has no value in one row`);
  }
}

function arithmetic(op: string, left: Cell, right: Cell): Cell {
  if (left === null || right === null) return null;
  if (op === '/') return Number(right) === 0 ? null : Number(left) / Number(right);
  if (op === '%' && Number(right) === 0) return null;
  if (typeof left === 'bigint' && typeof right === 'bigint') {
    return op === '+' ? left + right : op === '-' ? left - right : op === '*' ? left * right : left % right;
  }
  const [a, b] = [Number(left), Number(right)];
  return op === '+' ? a + b : op === '-' ? a - b : op === '*' ? a * b : a % b;
}

/** JavaScript compares bigint and number by their exact values; text goes by code points. */
function compared(op: CompareOp, left: Cell, right: Cell): boolean | null {
  if (left === null || right === null) return null;
  const order = typeof left === 'string' ? codePointOrder(left, right as string) : left < right ? -1 : left > right ? 1 : 0;
  switch (op) {
    case '=':
      return order === 0;
    case '!=':
      return order !== 0;
    case '<':
      return order < 0;
    case '<=':
      return order <= 0;
    case '>':
      return order > 0;
    case '>=':
      return order >= 0;
  }
}

function codePointOrder(left: string, right: string): number {
  const [a, b] = [Array.from(left), Array.from(right)];
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const difference = a[i]!.codePointAt(0)! - b[i]!.codePointAt(0)!;
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

function both(left: boolean | null, right: boolean | null): boolean | null {
  if (left === false || right === false) return false;
  return left === null || right === null ? null : true;
}

function inverse(value: boolean | null): boolean | null {
  return value === null ? null : !value;
}

function like(pattern: readonly string[], text: readonly string[]): boolean {
  if (pattern.length === 0) return text.length === 0;
  const [first, ...rest] = pattern;
  if (first === '%') return Array.from({ length: text.length + 1 }, (_, i) => i).some((from) => like(rest, text.slice(from)));
  return text.length > 0 && (first === '_' || first === text[0]) && like(rest, text.slice(1));
}

function widened(value: Cell, type: string): Cell {
  return type === 'number' && typeof value === 'bigint' ? Number(value) : value;
}

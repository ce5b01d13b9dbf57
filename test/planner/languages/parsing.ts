/** Statements taken apart for the parser's tests: what was parsed, what was refused and where. */
import { expect } from 'vitest';
import { ServiceError } from '../../../src/errors.ts';
import { parseStatement } from '../../../src/planner/languages/sql-parser.ts';
import type { Expression, Query, Select, Statement } from '../../../src/planner/syntax/statement.ts';

export type OfKind<K extends Statement['kind']> = Extract<Statement, { kind: K }>;

export function parsed<K extends Statement['kind']>(text: string, kind: K): OfKind<K> {
  const { statement } = parseStatement(text);
  expect(statement.kind).toBe(kind);
  return statement as OfKind<K>;
}

export const query = (text: string): Query => parsed(text, 'query').query;

export function select(text: string): Select {
  const { body } = query(text);
  if (body.kind !== 'select') throw new Error(body.kind);
  return body;
}

export function where(condition: string): Expression {
  return select(`SELECT * FROM T WHERE ${condition}`).where!;
}

export function refused(text: string): string {
  try {
    parseStatement(text);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    expect(error.code).toBe('REL_PARSE');
    expect(error.message.startsWith(`${error.facts.line}:${error.facts.column}: `)).toBe(true);
    return error.message;
  }
  throw new Error(`was accepted: ${text}`);
}

/** The whole expression with brackets everywhere. */
function shown(expression: Expression, literals: readonly unknown[]): string {
  const show = (inner: Expression): string => shown(inner, literals);
  switch (expression.kind) {
    case 'column':
      return expression.table ? `${expression.table}.${expression.name}` : expression.name;
    case 'literal':
      return String(literals[expression.slot]);
    case 'constant':
      return JSON.stringify(String(expression.cell));
    case 'binary':
      return `(${show(expression.left)} ${expression.op} ${show(expression.right)})`;
    case 'not':
      return `(not ${show(expression.operand)})`;
    case 'negate':
      return `(- ${show(expression.operand)})`;
    case 'is-null':
      return `(${show(expression.operand)} is${expression.negated ? ' not' : ''} null)`;
    case 'in-list':
      return `(${show(expression.operand)}${expression.negated ? ' not' : ''} in (${expression.items.map(show).join(', ')}))`;
    case 'between':
      return `(${show(expression.operand)}${expression.negated ? ' not' : ''} between ${show(expression.low)} and ${show(expression.high)})`;
    case 'now':
      return 'now()';
    case 'interval':
      return `interval ${String(literals[expression.interval.slot.slot])}`;
    case 'call':
      return `${expression.name}(${expression.arguments.map((each) => (each.name ? `${each.name} => ` : '') + show(each.value)).join(', ')})`;
    case 'aggregate':
      return `${expression.function}(${expression.distinct ? 'distinct ' : ''}${expression.operand ? show(expression.operand) : '*'})`;
    case 'case': {
      const branches = expression.branches.map((each) => ` when ${show(each.when)} then ${show(each.then)}`).join('');
      const operand = expression.operand ? ` ${show(expression.operand)}` : '';
      return `case${operand}${branches}${expression.otherwise ? ` else ${show(expression.otherwise)}` : ''} end`;
    }
    case 'in-query':
      return `(${show(expression.operand)}${expression.negated ? ' not' : ''} in (query))`;
    case 'exists':
      return 'exists (query)';
    case 'scalar-query':
      return '(query)';
    case 'quantified':
      return `(${show(expression.operand)} ${expression.op} ${expression.all ? 'all' : 'any'} (query))`;
    case 'over':
      return `${expression.function}(${expression.arguments.map(show).join(', ')}) over`;
    case 'row':
      return `(${expression.items.map(show).join(', ')})`;
  }
}

export function condition(text: string): string {
  const statement = parseStatement(`SELECT * FROM T WHERE ${text}`);
  return shown(where(text), statement.parameters);
}

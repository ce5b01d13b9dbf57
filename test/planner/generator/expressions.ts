/**
 * Random expressions of a wanted type over given leaves. Every one is valid: an engine that refuses it has a bug. Magnitudes
 * stay where no engine overflows.
 */
import { FOREVER } from '../../../src/log/values/timestamp.ts';
import { callFacts, callNamed, calls } from './calls.ts';
import type { Choices } from './random.ts';
import {
  type AggregateName,
  type CompareOp,
  type Expr,
  type Facts,
  type LiteralNode,
  outputFacts,
  type QueryNode,
  type Type,
} from './tree.ts';
import { instantPool } from './world.ts';

const unknown = Number.POSITIVE_INFINITY;
const sizeMax = 2 ** 30;
const grainMax = 12;
const compareOps: readonly CompareOp[] = ['=', '!=', '<', '<=', '>', '>='];
const orderedTypes: readonly Type[] = ['integer', 'number', 'string', 'timestamp'];

export interface Scope {
  readonly choices: Choices;
  /** Columns, or group keys and aggregates. */
  readonly leaves: readonly Expr[];
  /** A query of one column of this type, to stand behind IN; null where none may stand. */
  readonly subquery: ((type: Type) => QueryNode) | null;
  readonly distinctSums: boolean;
  /** Functions of all sorts. */
  readonly wide?: boolean;
  /** A query over the rows around it: its one row, of one column of this type, or any rows where there is no type. */
  readonly around?: ((type: Type | null, leaves: readonly Expr[]) => QueryNode) | null;
}

export const now: Expr = { kind: 'now', type: 'timestamp', size: unknown, grain: unknown };
const boolean: Facts = { type: 'boolean', size: unknown, grain: unknown };

export function literal(choices: Choices, type: Type): LiteralNode {
  switch (type) {
    case 'integer': {
      if (choices.chance(12)) {
        const value = choices.of([9007199254740993n, FOREVER, -FOREVER, 2147483648n, -2147483649n]);
        return { kind: 'literal', value, type, size: unknown, grain: unknown };
      }
      const value = BigInt(choices.between(-4, 9));
      return { kind: 'literal', value, type, size: Math.abs(Number(value)), grain: 0 };
    }
    case 'number': {
      if (choices.chance(12))
        return { kind: 'literal', value: choices.of([1e300, -1e300, 0.1, 1e-7]), type, size: unknown, grain: unknown };
      const value = choices.of([-1.5, -1, 0, 0.25, 0.5, 1, 2, 2.75]);
      return { kind: 'literal', value, type, size: Math.abs(value), grain: 2 };
    }
    case 'string':
      return {
        ...boolean,
        kind: 'literal',
        type,
        value: choices.of(['', 'a', 'A', 'ab', 'b%', 'ä', 'z', '\u{1F600}', '\uffee', 'k1', 'k2', "o'x"]),
      };
    case 'boolean':
      return { ...boolean, kind: 'literal', value: choices.chance(50) };
    case 'timestamp':
      return { ...boolean, kind: 'literal', type, value: choices.chance(5) ? FOREVER : choices.of(instantPool) };
  }
}

export function nullLiteral(type: Type): LiteralNode {
  return { kind: 'literal', value: null, type, size: 0, grain: 0 };
}

export function expressionOf(scope: Scope, type: Type, depth: number): Expr {
  const { choices } = scope;
  if (type === 'boolean') return predicateOf(scope, depth);
  if (depth <= 0 || choices.chance(35)) return leafOf(scope, type);
  if (choices.chance(18)) return caseOf(scope, type, depth);
  if (scope.wide && choices.chance(22)) return callOf(scope, type, depth) ?? leafOf(scope, type);
  if (scope.around && choices.chance(8)) {
    const query = scope.around(type, scope.leaves);
    const [item] = outputFacts(query.body);
    return { kind: 'scalar-query', query, type, size: item!.size, grain: item!.grain };
  }
  if (type === 'timestamp' && choices.chance(25)) {
    const movable = scope.leaves.filter((leaf) => leaf.kind === 'column' && leaf.name === 't');
    const operand = movable.length > 0 && choices.chance(70) ? choices.of(movable) : now;
    return { kind: 'shift', operand, days: choices.of([-30, -1, 1, 7]), type, size: unknown, grain: unknown };
  }
  if (type === 'integer' || type === 'number') return arithmeticOf(scope, type, depth);
  return leafOf(scope, type);
}

function leafOf(scope: Scope, type: Type): Expr {
  const { choices } = scope;
  const fitting = scope.leaves.filter((leaf) => leaf.type === type);
  // A quoted timestamp is one only beside another: alone it is text.
  if (type === 'timestamp') return fitting.length > 0 ? choices.of(fitting) : now;
  return fitting.length > 0 && choices.chance(78) ? choices.of(fitting) : literal(choices, type);
}

function callOf(scope: Scope, type: Type, depth: number): Expr | null {
  const name = callNamed(scope.choices, type);
  if (name === null) return null;
  const operands = calls[name]!.takes.map((each) =>
    each === 'integer' ? operandOf(scope, each, depth - 1) : expressionOf(scope, each, depth - 1),
  );
  return { kind: 'call', name, operands, ...callFacts(name, operands) };
}

/** What may stand beside a timestamp. */
function besideOf(scope: Scope, type: Type, depth: number): Expr {
  if (type === 'timestamp' && scope.choices.chance(60)) return literal(scope.choices, type);
  return expressionOf(scope, type, depth);
}

/** Small enough to reckon with, of either numeric type where the result is a number. */
function operandOf(scope: Scope, type: 'integer' | 'number', depth: number): Expr {
  for (let attempt = 0; attempt < 4; attempt++) {
    const wanted = type === 'number' && scope.choices.chance(35) ? 'integer' : type;
    const operand = expressionOf(scope, wanted, depth);
    if (operand.size <= sizeMax) return operand;
  }
  const value = type === 'integer' ? 2n : 0.5;
  return { kind: 'literal', value, type, size: 2, grain: 1 };
}

function arithmeticOf(scope: Scope, type: 'integer' | 'number', depth: number): Expr {
  const { choices } = scope;
  if (choices.chance(12)) {
    const operand = operandOf(scope, type, depth - 1);
    return { kind: 'negate', operand, type: operand.type, size: operand.size, grain: operand.grain };
  }
  const op =
    type === 'integer'
      ? choices.weighted({ '+': 4, '-': 4, '*': 3, '%': 2 })
      : choices.weighted({ '+': 4, '-': 4, '*': 3, '/': 3 });
  const left = operandOf(scope, type, depth - 1);
  const right = operandOf(scope, type, depth - 1);
  const integers = left.type === 'integer' && right.type === 'integer';
  if (type === 'number' && integers && op !== '/') return arithmeticOf(scope, type, depth);
  const facts = factsOf(op, left, right);
  // Products of products leave the range in which sums are exact.
  if (facts.size > sizeMax && op !== '/') return left;
  return { kind: 'arithmetic', op, left, right, type, ...facts };
}

function factsOf(op: string, left: Expr, right: Expr): { size: number; grain: number } {
  switch (op) {
    case '+':
    case '-':
      return { size: left.size + right.size, grain: Math.max(left.grain, right.grain) };
    case '*':
      return { size: left.size * right.size, grain: left.grain + right.grain };
    case '%':
      return { size: Math.min(left.size, right.size), grain: 0 };
    // A divisor may be as small as its grain allows.
    default:
      return { size: unknown, grain: unknown };
  }
}

function caseOf(scope: Scope, type: Type, depth: number): Expr {
  const { choices } = scope;
  const operand = choices.chance(40) ? leafOf(scope, choices.of(['integer', 'string', 'timestamp'] as const)) : null;
  const results: Expr[] = [];
  const branches = Array.from({ length: choices.between(1, 3) }, (_, i) => {
    const when = operand ? literal(choices, operand.type) : predicateOf(scope, depth - 1);
    const result = i > 0 && choices.chance(15) ? nullLiteral(type) : expressionOf(scope, type, depth - 1);
    results.push(result);
    return { kind: 'branch', when, result } as const;
  });
  const otherwise = choices.chance(60) ? expressionOf(scope, type, depth - 1) : null;
  if (otherwise) results.push(otherwise);
  // Nothing but NULL would be text to whoever asks for it from outside, whatever type it was made for.
  if (results.every((each) => each.kind === 'literal' && each.value === null)) {
    results[0] = literal(choices, type);
    branches[0] = { ...branches[0]!, result: results[0] };
  }
  const size = Math.max(...results.map((each) => each.size));
  const grain = Math.max(...results.map((each) => each.grain));
  return { kind: 'case', operand, branches, otherwise, type, size, grain };
}

export function predicateOf(scope: Scope, depth: number): Expr {
  const { choices } = scope;
  const kind = choices.weighted({
    compare: 30,
    logic: depth > 0 ? 26 : 0,
    not: depth > 0 ? 8 : 0,
    'is-null': 8,
    'in-list': 8,
    'in-query': scope.subquery && depth > 0 ? 10 : 0,
    exists: scope.around && depth > 0 ? 6 : 0,
    // SQLite has no aggregate in the conditions that they are written as there.
    quantified: scope.around && scope.subquery && depth > 0 && !scope.leaves.some((leaf) => leaf.kind === 'aggregate') ? 5 : 0,
    call: scope.wide && depth > 0 ? 5 : 0,
    'distinct-from': scope.wide ? 5 : 0,
    'row-compare': scope.wide && depth > 0 ? 4 : 0,
    'row-in': scope.wide && depth > 0 ? 3 : 0,
    between: 8,
    like: 8,
    column: 8,
    case: depth > 0 ? 3 : 0,
    literal: 1,
  });
  const negated = choices.chance(35);
  switch (kind) {
    case 'compare':
      return comparisonOf(scope, depth);
    case 'logic': {
      const op = choices.chance(55) ? 'and' : 'or';
      return { ...boolean, kind, op, left: predicateOf(scope, depth - 1), right: predicateOf(scope, depth - 1) };
    }
    case 'not':
      return { ...boolean, kind, operand: predicateOf(scope, depth - 1) };
    case 'is-null':
      return { ...boolean, kind, operand: expressionOf(scope, anyType(choices), depth - 1), negated };
    case 'in-list': {
      const operand = expressionOf(scope, choices.of(orderedTypes), depth - 1);
      const items = Array.from({ length: choices.of([1, 2, 3, 3, 12]) }, (_, i) =>
        i > 0 && choices.chance(12) ? nullLiteral(operand.type) : literal(choices, operand.type),
      );
      return { ...boolean, kind, operand, items, negated };
    }
    case 'in-query': {
      const operand = expressionOf(scope, choices.of(orderedTypes), depth - 1);
      return { ...boolean, kind, operand, query: scope.subquery!(operand.type), negated };
    }
    case 'exists':
      return { ...boolean, kind, query: scope.around!(null, scope.leaves), negated };
    case 'quantified': {
      const operand = expressionOf(scope, choices.of(orderedTypes), depth - 1);
      return { ...boolean, kind, op: choices.of(compareOps), all: negated, operand, query: scope.subquery!(operand.type) };
    }
    case 'call':
      return callOf(scope, 'boolean', depth)!;
    case 'distinct-from': {
      const type = anyType(choices);
      const left = expressionOf(scope, type, depth - 1);
      const right = choices.chance(15) ? nullLiteral(type) : besideOf(scope, type, depth - 1);
      return { ...boolean, kind, left, right, negated };
    }
    case 'row-compare': {
      const left = rowOf(scope, depth);
      const right = left.map(({ type }) => besideOf(scope, type, depth - 1));
      return { ...boolean, kind, op: choices.of(compareOps), left, right };
    }
    case 'row-in': {
      const row = rowOf(scope, depth);
      const among = Array.from({ length: choices.between(1, 3) }, () => ({
        kind: 'row' as const,
        cells: row.map(({ type }) => (choices.chance(12) ? nullLiteral(type) : literal(choices, type))),
      }));
      return { ...boolean, kind, row, among, negated };
    }
    case 'between': {
      const type = choices.of(orderedTypes);
      const operand = expressionOf(scope, type, depth - 1);
      const [low, high] = [besideOf(scope, type, depth - 1), besideOf(scope, type, depth - 1)];
      return { ...boolean, kind, operand, low, high, negated };
    }
    case 'like': {
      const pattern: LiteralNode = { ...boolean, kind: 'literal', type: 'string', value: patternOf(choices) };
      return { ...boolean, kind, operand: expressionOf(scope, 'string', depth - 1), pattern, negated };
    }
    case 'column': {
      const fitting = scope.leaves.filter((leaf) => leaf.type === 'boolean');
      return fitting.length > 0 ? choices.of(fitting) : comparisonOf(scope, depth);
    }
    case 'case':
      return caseOf(scope, 'boolean', depth);
    case 'literal':
      return choices.chance(30) ? nullLiteral('boolean') : literal(choices, 'boolean');
  }
}

function rowOf(scope: Scope, depth: number): Expr[] {
  const { choices } = scope;
  return Array.from({ length: choices.of([2, 2, 3]) }, () => expressionOf(scope, choices.of(orderedTypes), depth - 1));
}

function comparisonOf(scope: Scope, depth: number): Expr {
  const { choices } = scope;
  const type = choices.weighted({ integer: 4, number: 3, string: 3, timestamp: 2, boolean: 1 });
  const op = type === 'boolean' ? choices.of(['=', '!='] as const) : choices.of(compareOps);
  const left = expressionOf(scope, type, depth - 1);
  if (choices.chance(4)) return { ...boolean, kind: 'compare', op, left, right: nullLiteral(type) };
  const mixed = type === 'integer' && choices.chance(15) ? 'number' : type;
  return { ...boolean, kind: 'compare', op, left, right: besideOf(scope, mixed, depth - 1) };
}

function patternOf(choices: Choices): string {
  const parts = ['a', 'A', 'b', '%', '%', '_', 'ä', 'k', '\u{1F600}', 'x'];
  return Array.from({ length: choices.between(1, 4) }, () => choices.of(parts)).join('');
}

export function anyType(choices: Choices): Type {
  return choices.weighted({ integer: 4, number: 3, string: 4, boolean: 2, timestamp: 2 });
}

/** Null where none of this type can be made over these columns. */
export function aggregateOf(scope: Scope, type: Type, rows: number): Expr | null {
  const { choices } = scope;
  const distinct = choices.chance(25);
  const filter = scope.wide && choices.chance(15) ? predicateOf({ ...scope, subquery: null, around: null }, 1) : null;
  const made = (name: AggregateName, operand: Expr | null, facts: Facts): Expr => ({
    kind: 'aggregate',
    function: name,
    operand,
    distinct: distinct && operand !== null && (scope.distinctSums || (name !== 'sum' && name !== 'avg')),
    filter,
    type: facts.type,
    size: facts.size,
    grain: facts.grain,
  });
  const summable = (wanted: 'integer' | 'number'): Expr | null => {
    for (let attempt = 0; attempt < 5; attempt++) {
      const operand = expressionOf(scope, wanted, 2);
      if (operand.grain <= grainMax && operand.size * rows * 2 ** operand.grain < 2 ** 50) return operand;
    }
    return null;
  };
  if (type === 'integer' && choices.chance(50)) {
    const operand = choices.chance(40) ? null : expressionOf(scope, anyType(choices), 1);
    return made('count', operand, { type, size: rows, grain: 0 });
  }
  if ((type === 'integer' || type === 'number') && choices.chance(60)) {
    const average = type === 'number' && choices.chance(50);
    const operand = summable(average && choices.chance(50) ? 'integer' : type);
    if (operand) {
      if (average) return made('avg', operand, { type, size: unknown, grain: unknown });
      return made('sum', operand, { type, size: operand.size * rows, grain: operand.grain });
    }
  }
  if (type === 'boolean') return null;
  const operand = expressionOf(scope, type, 1);
  return made(choices.chance(50) ? 'min' : 'max', operand, operand);
}

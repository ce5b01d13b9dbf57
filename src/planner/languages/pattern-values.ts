/**
 * Terms of a graph pattern as expressions over what its names stand for. An entity is json where it is a value, and what edges call it, or
 * its key, where it is compared. Pure.
 */
import { rowColumns } from '../graph/pattern-columns.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { ColumnRef, EntityShape, Expression, Location } from '../syntax/statement.ts';
import { functions } from './graph-pattern.ts';
import { isTypeFunction, nameFunction } from './pattern-terms.ts';
import type { Term } from '../syntax/pattern-tree.ts';

export interface NodeVariable {
  readonly kind: 'node';
  /** Types that its row may be of; none: any. */
  readonly labels: readonly string[];
  /** The text by which edges name it. */
  readonly id: Expression;
  /** The type of the node's row, where several types are possible. */
  readonly type: Expression | null;
  /** Alias of the table whose row it is, where it is one. */
  readonly table: string | null;
  /** Its entity is among the properties that are read with its row. */
  readonly hasEntity: boolean;
  property(name: string, location: Location): Expression;
}

export interface EdgeVariable {
  readonly kind: 'edge';
  /** Is there wherever the edge is. */
  readonly mark: Expression;
  /** Null: the edge is never compared, or is a path of several edges. */
  readonly key: Expression | null;
  readonly table: string | null;
  /** The variable is a list of several edges. */
  readonly isList: boolean;
  property(name: string, location: Location): Expression;
}

interface PathVariable {
  readonly kind: 'path';
  /** Its entity is all there is of it. */
  property(name: string, location: Location): Expression;
}

/** `shape` says where in a value entities are. */
interface ValueVariable {
  readonly kind: 'value';
  readonly value: Expression;
  readonly shape: EntityShape | null;
  /** The value comes from json: its type is known only at run time. */
  readonly isAny: boolean;
}

/** The binding of a name at some clause. */
export type Variable = NodeVariable | EdgeVariable | PathVariable | ValueVariable;

export type Names = ReadonlyMap<string, Variable>;

/** A value: that of an entity is its json. */
export function compileTerm(term: Term, names: Names): Expression {
  const { location } = term;
  const compile = (each: Term): Expression => compileTerm(each, names);
  switch (term.kind) {
    case 'literal':
      return { kind: 'literal', slot: term.slot, ...(term.typed && { typed: term.typed }), location };
    case 'variable': {
      const variable = findVariable(term.name, names, location);
      return variable.kind === 'value' ? variable.value : variable.property(rowColumns.entity, location);
    }
    case 'property':
      return compileProperty(term, names);
    case 'element':
      return call('#ELEMENT', [compile(term.of), compile(term.at)], location);
    case 'list':
      return call('#LIST', term.items.map(compile), location);
    case 'map': {
      const keys = JSON.stringify(term.entries.map(({ name }) => name));
      return call(
        '#MAP',
        [{ kind: 'constant', cell: keys, location }, ...term.entries.map(({ value }) => compile(value))],
        location,
      );
    }
    case 'function':
      return compileFunction(term, names);
    case 'arithmetic': {
      const { op } = term;
      const [left, right] = [compile(term.left), compile(term.right)];
      return op === '+' ? call('#PLUS', [left, right], location) : { kind: 'binary', op, left, right, location };
    }
    case 'negate':
      return { kind: 'negate', operand: compile(term.operand), location };
    case 'case':
      return compileCase(term, names);
    case 'aggregate': {
      const { of: what, distinct } = term;
      const aggregate = (name: typeof term.function): Expression => {
        const operand =
          what === null ? null : name === 'count' ? compileCounted(what, names) : compileAggregated(name, what, names);
        return { kind: 'aggregate', function: name, operand, second: null, distinct, filter: null, location };
      };
      if (term.function !== 'sum') return aggregate(term.function);
      // The sum of nothing is 0, and so is how many there were.
      return call('COALESCE', [aggregate('sum'), aggregate('count')], location);
    }
    default:
      return compileCondition(term, names);
  }
}

function compileProperty({ of, name, location }: Extract<Term, { kind: 'property' }>, names: Names): Expression {
  const variable = of.kind === 'variable' ? findVariable(of.name, names, of.location) : null;
  if (variable?.kind === 'path')
    throw errorAt('REL_PARSE', 'a path has no properties: its nodes and relationships have', location);
  if (variable?.kind === 'edge' && variable.isList)
    throw errorAt('REL_PARSE', 'a path of several edges has no properties', location);
  if (variable?.kind === 'node' || variable?.kind === 'edge') return variable.property(name, location);
  return call('#MEMBER', [compileTerm(of, names), { kind: 'constant', cell: name, location }], location);
}

function compileFunction({ name, arguments: given, location }: Extract<Term, { kind: 'function' }>, names: Names): Expression {
  const [first] = given;
  if (name === nameFunction) return compileCompared(first!, names);
  const { call: called } = functions.get(name)!;
  if (isTypeFunction(name) && first!.kind === 'variable') {
    const variable = findVariable(first.name, names, location);
    if (variable.kind === 'edge' && !variable.isList) return variable.property(rowColumns.type, location);
    if (variable.kind !== 'value') throw errorAt('REL_PARSE', `${name}() is of a relationship`, location);
  }
  const isAny = given.some((each) => isOfAnyType(each, names));
  const values = given.map((each) => compileTerm(each, names));
  if (called === 'COALESCE' && isAny) {
    const json = values.map((value) => call('#JSON', [value], location));
    return call('#ANY', [call(called, json, location)], location);
  }
  if (!isAny || called.startsWith('#')) return call(called, values, location);
  const cell = ofNumbers.has(called) ? '#TOFLOAT' : '#TOSTRING';
  return call(
    called,
    values.map((value, i) => (isOfAnyType(given[i]!, names) ? call(cell, [value], location) : value)),
    location,
  );
}

function compileCase({ operand, branches, otherwise, location }: Extract<Term, { kind: 'case' }>, names: Names): Expression {
  const results = [...branches.map(({ result }) => result), ...(otherwise ? [otherwise] : [])];
  const isAny = results.some((each) => isOfAnyType(each, names));
  const valueOf = (each: Term): Expression => {
    const value = compileTerm(each, names);
    return isAny ? call('#JSON', [value], location) : value;
  };
  const condition: Expression = {
    kind: 'case',
    operand: operand && compileCompared(operand, names),
    branches: branches.map(({ when, result }) => ({
      when: operand ? compileCompared(when, names) : compileCondition(when, names),
      // oxlint-disable-next-line no-thenable -- the word of the language; nobody awaits a branch
      then: valueOf(result),
    })),
    otherwise: otherwise && valueOf(otherwise),
    location,
  };
  return isAny ? call('#ANY', [condition], location) : condition;
}

function compileAggregated(name: string, of: Term, names: Names): Expression {
  const value = compileTerm(of, names);
  return (name === 'sum' || name === 'avg') && isOfAnyType(of, names) ? call('#TOFLOAT', [value], of.location) : value;
}

/** Whether no plan knows of which type it is. */
export function isOfAnyType(term: Term, names: Names): boolean {
  switch (term.kind) {
    case 'variable': {
      const variable = names.get(term.name);
      return variable?.kind === 'value' && variable.isAny;
    }
    case 'property':
      return term.of.kind !== 'variable' || names.get(term.of.name)?.kind === 'value';
    case 'element':
      return true;
    case 'function':
      if (term.name === 'head' || term.name === 'last') return true;
      return term.name === 'coalesce' && term.arguments.some((each) => isOfAnyType(each, names));
    case 'case':
      return [...term.branches.map(({ result }) => result), ...(term.otherwise ? [term.otherwise] : [])].some((each) =>
        isOfAnyType(each, names),
      );
    default:
      return false;
  }
}

/** The positions of entities in a value; null: there are none. */
export function findShape(term: Term, names: Names): EntityShape | null {
  const shapeOf = (each: Term): EntityShape | null => findShape(each, names);
  const listOf = (shape: EntityShape | null): EntityShape | null => shape && { kind: 'list', of: shape };
  switch (term.kind) {
    case 'variable': {
      const variable = names.get(term.name);
      if (variable === undefined) return null;
      if (variable.kind === 'value') return variable.shape;
      if (variable.kind === 'edge') return variable.isList ? listOf({ kind: 'relationship' }) : { kind: 'relationship' };
      return { kind: variable.kind };
    }
    case 'aggregate':
      return term.function === 'collect' ? listOf(shapeOf(term.of!)) : null;
    case 'list': {
      const [first, ...others] = term.items.map(shapeOf);
      return first && others.every((each) => each?.kind === first.kind) ? listOf(first) : null;
    }
    case 'map': {
      const shapes = term.entries.flatMap(({ name, value }) => {
        const shape = shapeOf(value);
        return shape === null ? [] : [[name, shape] as const];
      });
      return shapes.length === 0 ? null : { kind: 'map', of: new Map(shapes) };
    }
    case 'property': {
      const shape = term.of.kind === 'variable' ? shapeOf(term.of) : null;
      return shape?.kind === 'map' ? (shape.of.get(term.name) ?? null) : null;
    }
    case 'element': {
      const shape = shapeOf(term.of);
      return shape?.kind === 'list' ? shape.of : null;
    }
    case 'function': {
      if (term.name === 'nodes') return { kind: 'list', of: { kind: 'node' } };
      if (term.name === 'relationships') return { kind: 'list', of: { kind: 'relationship' } };
      const shape = shapeOf(term.arguments[0]!);
      if (term.name === 'coalesce') return shape;
      return (term.name === 'head' || term.name === 'last') && shape?.kind === 'list' ? shape.of : null;
    }
    default:
      return null;
  }
}

/** The expression that a comparison uses: for an entity the key by which edges name it, or its own key. */
export function compileCompared(term: Term, names: Names): Expression {
  if (term.kind !== 'variable') return compileTerm(term, names);
  const variable = findVariable(term.name, names, term.location);
  if (variable.kind === 'node') return variable.id;
  if (variable.kind === 'edge' && variable.key !== null) return variable.key;
  return compileTerm(term, names);
}

/** An edge is counted by itself, without its row. */
export function compileCounted(of: Term, names: Names): Expression {
  if (of.kind !== 'variable') return compileTerm(of, names);
  const variable = findVariable(of.name, names, of.location);
  return variable.kind === 'edge' ? variable.mark : compileCompared(of, names);
}

export function findVariable(name: string, names: Names, location: Location): Variable {
  const variable = names.get(name);
  if (variable === undefined) throw errorAt('REL_PARSE', `there is no variable ${JSON.stringify(name)} here`, location);
  return variable;
}

export function compileCondition(condition: Term, names: Names): Expression {
  const { location } = condition;
  const term = (each: Term): Expression => compileTerm(each, names);
  switch (condition.kind) {
    case 'and':
    case 'or':
      return {
        kind: 'binary',
        op: condition.kind,
        left: compileCondition(condition.left, names),
        right: compileCondition(condition.right, names),
        location,
      };
    case 'xor': {
      const [left, right] = [compileCondition(condition.left, names), compileCondition(condition.right, names)];
      return { kind: 'binary', op: '!=', left, right, location };
    }
    case 'not':
      return { kind: 'not', operand: compileCondition(condition.operand, names), location };
    case 'compare': {
      const [left, right] = [compileCompared(condition.left, names), compileCompared(condition.right, names)];
      return { kind: 'binary', op: condition.op, left, right, location };
    }
    case 'in': {
      const { left, list } = condition;
      const isPlain = list.kind === 'list' && list.items.length > 0 && list.items.every((each) => each.kind === 'literal');
      if (!isPlain || isOfAnyType(left, names)) return call('#IN', [term(left), term(list)], location);
      return { kind: 'in-list', operand: compileCompared(left, names), items: list.items.map(term), negated: false, location };
    }
    case 'is-null':
      return { kind: 'is-null', operand: compileCounted(condition.left, names), negated: condition.negated, location };
    case 'text': {
      const [left, right] = [condition.left, condition.right].map((each) =>
        isOfAnyType(each, names) ? call('#TOSTRING', [term(each)], location) : term(each),
      );
      return call(textTests[condition.op], [left!, right!], location);
    }
    case 'labelled': {
      const of = findVariable(condition.of, names, location);
      if (of.kind === 'path' || (of.kind === 'edge' && of.isList))
        throw errorAt('REL_PARSE', `${JSON.stringify(condition.of)} is not a node: only nodes have labels`, location);
      const entity = of.kind === 'value' ? of.value : of.property(rowColumns.entity, location);
      const labels =
        of.kind === 'edge' ? call('#LIST', [call('#TYPE', [entity], location)], location) : call('#LABELS', [entity], location);
      const tests = condition.types.map((type) => call('#IN', [{ kind: 'constant', cell: type, location }, labels], location));
      return both(tests, location);
    }
    default:
      return compileTerm(condition, names);
  }
}

const textTests = { starts: 'STARTS_WITH', ends: 'ENDS_WITH', contains: 'CONTAINS' } as const;

const ofNumbers: ReadonlySet<string> = new Set('ABS CEIL FLOOR SIGN SQRT EXP LN ROUND'.split(' '));

export function call(name: string, values: readonly Expression[], location: Location): Expression {
  return { kind: 'call', name, arguments: values.map((value) => ({ name: null, value })), location };
}

export function column(table: string | null, name: string, location: Location): ColumnRef {
  return { kind: 'column', table, name, location };
}

export function equal(left: Expression, right: Expression, location: Location): Expression {
  return { kind: 'binary', op: '=', left, right, location };
}

export function both(conditions: readonly Expression[], location: Location): Expression {
  return conditions.reduce((left, right): Expression => ({ kind: 'binary', op: 'and', left, right, location }));
}

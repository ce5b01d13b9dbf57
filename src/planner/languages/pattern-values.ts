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
export function compileTerm(term: Term, patternVariables: Names): Expression {
  const { location } = term;
  const compileOperand = (each: Term): Expression => compileTerm(each, patternVariables);
  switch (term.kind) {
    case 'literal':
      return { kind: 'literal', slot: term.slot, ...(term.typed && { typed: term.typed }), location };
    case 'variable': {
      const termVariable = findVariable(term.name, patternVariables, location);
      return termVariable.kind === 'value' ? termVariable.value : termVariable.property(rowColumns.entity, location);
    }
    case 'property':
      return compilePatternProperty(term, patternVariables);
    case 'element':
      return call('#ELEMENT', [compileOperand(term.of), compileOperand(term.at)], location);
    case 'list':
      return call('#LIST', term.items.map(compileOperand), location);
    case 'map': {
      const mapKeys = JSON.stringify(term.entries.map(({ name }) => name));
      return call(
        '#MAP',
        [{ kind: 'constant', cell: mapKeys, location }, ...term.entries.map(({ value }) => compileOperand(value))],
        location,
      );
    }
    case 'function':
      return compilePatternFunction(term, patternVariables);
    case 'arithmetic': {
      const { op } = term;
      const [left, right] = [compileOperand(term.left), compileOperand(term.right)];
      return op === '+' ? call('#PLUS', [left, right], location) : { kind: 'binary', op, left, right, location };
    }
    case 'negate':
      return { kind: 'negate', operand: compileOperand(term.operand), location };
    case 'case':
      return compilePatternCase(term, patternVariables);
    case 'aggregate': {
      const { of: aggregatedTerm, distinct } = term;
      const compileAggregate = (aggregateName: typeof term.function): Expression => {
        const operand =
          aggregatedTerm === null
            ? null
            : aggregateName === 'count'
              ? compileCounted(aggregatedTerm, patternVariables)
              : compileAggregated(aggregateName, aggregatedTerm, patternVariables);
        return { kind: 'aggregate', function: aggregateName, operand, second: null, distinct, filter: null, location };
      };
      if (term.function !== 'sum') return compileAggregate(term.function);
      // The sum of nothing is 0, and so is how many there were.
      return call('COALESCE', [compileAggregate('sum'), compileAggregate('count')], location);
    }
    default:
      return compileCondition(term, patternVariables);
  }
}

function compilePatternProperty(
  { of, name, location }: Extract<Term, { kind: 'property' }>,
  patternVariables: Names,
): Expression {
  const propertyOwner = of.kind === 'variable' ? findVariable(of.name, patternVariables, of.location) : null;
  if (propertyOwner?.kind === 'path')
    throw errorAt('REL_PARSE', 'a path has no properties: its nodes and relationships have', location);
  if (propertyOwner?.kind === 'edge' && propertyOwner.isList)
    throw errorAt('REL_PARSE', 'a path of several edges has no properties', location);
  if (propertyOwner?.kind === 'node' || propertyOwner?.kind === 'edge') return propertyOwner.property(name, location);
  return call('#MEMBER', [compileTerm(of, patternVariables), { kind: 'constant', cell: name, location }], location);
}

function compilePatternFunction(
  { name, arguments: patternArguments, location }: Extract<Term, { kind: 'function' }>,
  patternVariables: Names,
): Expression {
  const [firstArgument] = patternArguments;
  if (name === nameFunction) return compileCompared(firstArgument!, patternVariables);
  const { call: calledFunction } = functions.get(name)!;
  if (isTypeFunction(name) && firstArgument!.kind === 'variable') {
    const typeVariable = findVariable(firstArgument.name, patternVariables, location);
    if (typeVariable.kind === 'edge' && !typeVariable.isList) return typeVariable.property(rowColumns.type, location);
    if (typeVariable.kind !== 'value') throw errorAt('REL_PARSE', `${name}() is of a relationship`, location);
  }
  const isAnyTyped = patternArguments.some((patternArgument) => isOfAnyType(patternArgument, patternVariables));
  const argumentExpressions = patternArguments.map((patternArgument) => compileTerm(patternArgument, patternVariables));
  if (calledFunction === 'COALESCE' && isAnyTyped) {
    const jsonArguments = argumentExpressions.map((value) => call('#JSON', [value], location));
    return call('#ANY', [call(calledFunction, jsonArguments, location)], location);
  }
  if (!isAnyTyped || calledFunction.startsWith('#')) return call(calledFunction, argumentExpressions, location);
  const cellCast = numberCalls.has(calledFunction) ? '#TOFLOAT' : '#TOSTRING';
  return call(
    calledFunction,
    argumentExpressions.map((value, i) =>
      isOfAnyType(patternArguments[i]!, patternVariables) ? call(cellCast, [value], location) : value,
    ),
    location,
  );
}

function compilePatternCase(
  { operand, branches, otherwise, location }: Extract<Term, { kind: 'case' }>,
  patternVariables: Names,
): Expression {
  const caseResults = [...branches.map(({ result }) => result), ...(otherwise ? [otherwise] : [])];
  const isAnyTyped = caseResults.some((caseResult) => isOfAnyType(caseResult, patternVariables));
  const compileResult = (each: Term): Expression => {
    const value = compileTerm(each, patternVariables);
    return isAnyTyped ? call('#JSON', [value], location) : value;
  };
  const condition: Expression = {
    kind: 'case',
    operand: operand && compileCompared(operand, patternVariables),
    branches: branches.map(({ when, result }) => ({
      when: operand ? compileCompared(when, patternVariables) : compileCondition(when, patternVariables),
      // oxlint-disable-next-line no-thenable -- the word of the language; nobody awaits a branch
      then: compileResult(result),
    })),
    otherwise: otherwise && compileResult(otherwise),
    location,
  };
  return isAnyTyped ? call('#ANY', [condition], location) : condition;
}

function compileAggregated(name: string, aggregatedTerm: Term, patternVariables: Names): Expression {
  const aggregatedValue = compileTerm(aggregatedTerm, patternVariables);
  return (name === 'sum' || name === 'avg') && isOfAnyType(aggregatedTerm, patternVariables)
    ? call('#TOFLOAT', [aggregatedValue], aggregatedTerm.location)
    : aggregatedValue;
}

/** Whether no plan knows of which type it is. */
export function isOfAnyType(term: Term, patternVariables: Names): boolean {
  switch (term.kind) {
    case 'variable': {
      const variable = patternVariables.get(term.name);
      return variable?.kind === 'value' && variable.isAny;
    }
    case 'property':
      return term.of.kind !== 'variable' || patternVariables.get(term.of.name)?.kind === 'value';
    case 'element':
      return true;
    case 'function':
      if (term.name === 'head' || term.name === 'last') return true;
      return term.name === 'coalesce' && term.arguments.some((partTerm) => isOfAnyType(partTerm, patternVariables));
    case 'case':
      return [...term.branches.map(({ result }) => result), ...(term.otherwise ? [term.otherwise] : [])].some((partTerm) =>
        isOfAnyType(partTerm, patternVariables),
      );
    default:
      return false;
  }
}

/** The positions of entities in a value; null: there are none. */
export function findShape(term: Term, patternVariables: Names): EntityShape | null {
  const termShape = (each: Term): EntityShape | null => findShape(each, patternVariables);
  const listShape = (shape: EntityShape | null): EntityShape | null => shape && { kind: 'list', of: shape };
  switch (term.kind) {
    case 'variable': {
      const variable = patternVariables.get(term.name);
      if (variable === undefined) return null;
      if (variable.kind === 'value') return variable.shape;
      if (variable.kind === 'edge') return variable.isList ? listShape({ kind: 'relationship' }) : { kind: 'relationship' };
      return { kind: variable.kind };
    }
    case 'aggregate':
      return term.function === 'collect' ? listShape(termShape(term.of!)) : null;
    case 'list': {
      const [firstShape, ...otherShapes] = term.items.map(termShape);
      return firstShape && otherShapes.every((each) => each?.kind === firstShape.kind) ? listShape(firstShape) : null;
    }
    case 'map': {
      const entryShapes = term.entries.flatMap(({ name, value }) => {
        const valueShape = termShape(value);
        return valueShape === null ? [] : [[name, valueShape] as const];
      });
      return entryShapes.length === 0 ? null : { kind: 'map', of: new Map(entryShapes) };
    }
    case 'property': {
      const valueShape = term.of.kind === 'variable' ? termShape(term.of) : null;
      return valueShape?.kind === 'map' ? (valueShape.of.get(term.name) ?? null) : null;
    }
    case 'element': {
      const valueShape = termShape(term.of);
      return valueShape?.kind === 'list' ? valueShape.of : null;
    }
    case 'function': {
      if (term.name === 'nodes') return { kind: 'list', of: { kind: 'node' } };
      if (term.name === 'relationships') return { kind: 'list', of: { kind: 'relationship' } };
      const valueShape = termShape(term.arguments[0]!);
      if (term.name === 'coalesce') return valueShape;
      return (term.name === 'head' || term.name === 'last') && valueShape?.kind === 'list' ? valueShape.of : null;
    }
    default:
      return null;
  }
}

/** The expression that a comparison uses: for an entity the key by which edges name it, or its own key. */
export function compileCompared(term: Term, patternVariables: Names): Expression {
  if (term.kind !== 'variable') return compileTerm(term, patternVariables);
  const comparedVariable = findVariable(term.name, patternVariables, term.location);
  if (comparedVariable.kind === 'node') return comparedVariable.id;
  if (comparedVariable.kind === 'edge' && comparedVariable.key !== null) return comparedVariable.key;
  return compileTerm(term, patternVariables);
}

/** An edge is counted by itself, without its row. */
export function compileCounted(countedTerm: Term, patternVariables: Names): Expression {
  if (countedTerm.kind !== 'variable') return compileTerm(countedTerm, patternVariables);
  const countedVariable = findVariable(countedTerm.name, patternVariables, countedTerm.location);
  return countedVariable.kind === 'edge' ? countedVariable.mark : compileCompared(countedTerm, patternVariables);
}

export function findVariable(name: string, patternVariables: Names, location: Location): Variable {
  const foundVariable = patternVariables.get(name);
  if (foundVariable === undefined) throw errorAt('REL_PARSE', `there is no variable ${JSON.stringify(name)} here`, location);
  return foundVariable;
}

export function compileCondition(patternCondition: Term, patternVariables: Names): Expression {
  const { location } = patternCondition;
  const compileOperand = (each: Term): Expression => compileTerm(each, patternVariables);
  switch (patternCondition.kind) {
    case 'and':
    case 'or':
      return {
        kind: 'binary',
        op: patternCondition.kind,
        left: compileCondition(patternCondition.left, patternVariables),
        right: compileCondition(patternCondition.right, patternVariables),
        location,
      };
    case 'xor': {
      const [leftExpression, rightExpression] = [
        compileCondition(patternCondition.left, patternVariables),
        compileCondition(patternCondition.right, patternVariables),
      ];
      return { kind: 'binary', op: '!=', left: leftExpression, right: rightExpression, location };
    }
    case 'not':
      return { kind: 'not', operand: compileCondition(patternCondition.operand, patternVariables), location };
    case 'compare': {
      const [leftExpression, rightExpression] = [
        compileCompared(patternCondition.left, patternVariables),
        compileCompared(patternCondition.right, patternVariables),
      ];
      return { kind: 'binary', op: patternCondition.op, left: leftExpression, right: rightExpression, location };
    }
    case 'in': {
      const { left: leftExpression, list: inList } = patternCondition;
      const isPlainList =
        inList.kind === 'list' &&
        inList.items.length > 0 &&
        inList.items.every((comparedText) => comparedText.kind === 'literal');
      if (!isPlainList || isOfAnyType(leftExpression, patternVariables))
        return call('#IN', [compileOperand(leftExpression), compileOperand(inList)], location);
      return {
        kind: 'in-list',
        operand: compileCompared(leftExpression, patternVariables),
        items: inList.items.map(compileOperand),
        negated: false,
        location,
      };
    }
    case 'is-null':
      return {
        kind: 'is-null',
        operand: compileCounted(patternCondition.left, patternVariables),
        negated: patternCondition.negated,
        location,
      };
    case 'text': {
      const [leftExpression, rightExpression] = [patternCondition.left, patternCondition.right].map((comparedText) =>
        isOfAnyType(comparedText, patternVariables)
          ? call('#TOSTRING', [compileOperand(comparedText)], location)
          : compileOperand(comparedText),
      );
      return call(textTestCalls[patternCondition.op], [leftExpression!, rightExpression!], location);
    }
    case 'labelled': {
      const labelledVariable = findVariable(patternCondition.of, patternVariables, location);
      if (labelledVariable.kind === 'path' || (labelledVariable.kind === 'edge' && labelledVariable.isList))
        throw errorAt('REL_PARSE', `${JSON.stringify(patternCondition.of)} is not a node: only nodes have labels`, location);
      const labelledEntity =
        labelledVariable.kind === 'value' ? labelledVariable.value : labelledVariable.property(rowColumns.entity, location);
      const labelsOfEntity =
        labelledVariable.kind === 'edge'
          ? call('#LIST', [call('#TYPE', [labelledEntity], location)], location)
          : call('#LABELS', [labelledEntity], location);
      const labelTests = patternCondition.types.map((type) =>
        call('#IN', [{ kind: 'constant', cell: type, location }, labelsOfEntity], location),
      );
      return both(labelTests, location);
    }
    default:
      return compileTerm(patternCondition, patternVariables);
  }
}

const textTestCalls = { starts: 'STARTS_WITH', ends: 'ENDS_WITH', contains: 'CONTAINS' } as const;

const numberCalls: ReadonlySet<string> = new Set('ABS CEIL FLOOR SIGN SQRT EXP LN ROUND'.split(' '));

export function call(name: string, callArguments: readonly Expression[], location: Location): Expression {
  return { kind: 'call', name, arguments: callArguments.map((callArgument) => ({ name: null, value: callArgument })), location };
}

export function column(table: string | null, name: string, location: Location): ColumnRef {
  return { kind: 'column', table, name, location };
}

export function equal(left: Expression, right: Expression, location: Location): Expression {
  return { kind: 'binary', op: '=', left, right, location };
}

export function both(patternConditions: readonly Expression[], location: Location): Expression {
  return patternConditions.reduce((left, right): Expression => ({ kind: 'binary', op: 'and', left, right, location }));
}

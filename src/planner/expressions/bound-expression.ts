/**
 * Expressions after binding: names are column numbers of the operator's input, every node has a type. Literals stay
 * slots, so that one bound tree serves every statement of a template. Nodes are never changed, only rebuilt.
 */
import type { ColumnType } from '../../log/values/value.ts';
import type { Literal, Location } from '../syntax/statement.ts';
import type { MatchMode } from '../../governance/text-search/text-query.ts';
import type { ScalarFunction } from './ranking-functions.ts';
import type { Signature } from './functions/scalar-function.ts';
import type { LookupTable } from './lookup-table.ts';
import type { PhoneticFunction } from './phonetic.ts';
import type { ValueType } from './value-type.ts';

export type CompareOp = '=' | '!=' | '<' | '<=' | '>' | '>=';
export type ArithmeticOp = '+' | '-' | '*' | '/' | '%';

/** The type of Postgres that values have, where that of their cells does not say it. */
interface Wired {
  readonly wire?: string;
}

export type Bound =
  | ({ readonly kind: 'column'; readonly index: number; readonly name: string; readonly type: ColumnType } & Wired)
  /** `as` says how the literal is read: an `instant` is ISO text or integer nanoseconds, so is the `basis` of AS OF. */
  | {
      readonly kind: 'literal';
      readonly slot: number;
      readonly as: 'value' | 'instant' | 'basis' | 'interval';
      /** As an instant, its text may say an offset from UTC, and be written in every form of Postgres. */
      readonly zoned?: true;
      /** The value comes later. */
      readonly unknown?: true;
      readonly type: ValueType;
      readonly location: Location;
    }
  /** An item of IN: as many values as it counts, each written and converted as `first` is, in the slots from its own on. */
  | { readonly kind: 'literals'; readonly first: Bound; readonly slot: number; readonly count: number; readonly type: ValueType }
  /** A constant that no literal of the statement gives. */
  | { readonly kind: 'constant'; readonly cell: bigint | boolean | string | number | null; readonly type: ValueType }
  | { readonly kind: 'now'; readonly type: 'timestamp' }
  /** A column of a query around this one, by the level of that query: `decorrelate.ts` makes a column of it. */
  | ({
      readonly kind: 'outer';
      readonly level: number;
      readonly index: number;
      readonly name: string;
      readonly type: ColumnType;
    } & Wired)
  /** The result of an uncorrelated query: its index in `LogicalPlan.subqueries`. Always part of a parameter. */
  | ({ readonly kind: 'subquery'; readonly index: number; readonly type: ValueType } & Wired)
  /** A column-free subtree, computed once per execution: number in `LogicalPlan.parameters`. */
  | { readonly kind: 'parameter'; readonly index: number; readonly type: ValueType }
  | { readonly kind: 'compare'; readonly op: CompareOp; readonly left: Bound; readonly right: Bound; readonly type: 'boolean' }
  | { readonly kind: 'and' | 'or'; readonly operands: readonly Bound[]; readonly type: 'boolean' }
  | { readonly kind: 'not'; readonly operand: Bound; readonly type: 'boolean' }
  | { readonly kind: 'is-null'; readonly operand: Bound; readonly type: 'boolean' }
  /** Nodes that test one operand several times hold it once: nesting them must not multiply it. */
  | { readonly kind: 'between'; readonly operand: Bound; readonly low: Bound; readonly high: Bound; readonly type: 'boolean' }
  | { readonly kind: 'in'; readonly operand: Bound; readonly items: readonly Bound[]; readonly type: 'boolean' }
  /** Membership in the rows of a subquery: number in `LogicalPlan.subqueries`. Nothing is in an empty set, NULL included. */
  | { readonly kind: 'in-set'; readonly operand: Bound; readonly set: number; readonly type: 'boolean' }
  /** Equal texts, ignoring case. */
  | { readonly kind: 'same-folded'; readonly operand: Bound; readonly text: Bound; readonly type: 'boolean' }
  | { readonly kind: 'function'; readonly name: ScalarFunction; readonly operands: readonly Bound[]; readonly type: 'number' }
  /** MATCH of a text by itself. */
  | {
      readonly kind: 'match';
      readonly operand: Bound;
      readonly query: Bound;
      readonly mode: MatchMode;
      readonly type: 'boolean';
    }
  /** A function of the registry, by the signature that fits. `name` is shown in plans. */
  | ({
      readonly kind: 'call';
      readonly name: string;
      readonly function: Signature;
      readonly operands: readonly Bound[];
      readonly type: ValueType;
    } & Wired)
  /** The first that is not NULL; those behind it are not computed. */
  | ({ readonly kind: 'coalesce'; readonly operands: readonly Bound[]; readonly type: ValueType } & Wired)
  /** `escapes`: a backslash takes the character behind it as it is. */
  | { readonly kind: 'like'; readonly operand: Bound; readonly pattern: Bound; readonly escapes?: true; readonly type: 'boolean' }
  | {
      readonly kind: 'arithmetic';
      readonly op: ArithmeticOp;
      readonly left: Bound;
      readonly right: Bound;
      readonly type: 'integer' | 'number' | 'timestamp' | 'interval';
    }
  | { readonly kind: 'negate'; readonly operand: Bound; readonly type: 'integer' | 'number' }
  /** How a text sounds. */
  | {
      readonly kind: 'lookup';
      readonly table: LookupTable;
      readonly field: string;
      readonly operand: Bound;
      readonly type: 'string';
    }
  | { readonly kind: 'phonetic'; readonly function: PhoneticFunction; readonly operand: Bound; readonly type: 'string' }
  /** An integer as a number: exact, or an error. */
  | { readonly kind: 'to-number'; readonly operand: Bound; readonly type: 'number' }
  | ({
      readonly kind: 'case';
      /** With an operand, each `when` is a value to equal it; without, a condition. */
      readonly operand: Bound | null;
      readonly branches: readonly { readonly when: Bound; readonly result: Bound }[];
      readonly otherwise: Bound | null;
      readonly type: ValueType;
    } & Wired);

export type BoundColumn = Extract<Bound, { kind: 'column' }>;

const noChildren: readonly Bound[] = [];

export function childrenOf(bound: Bound): readonly Bound[] {
  switch (bound.kind) {
    case 'column':
    case 'literal':
    case 'literals':
    case 'constant':
    case 'now':
    case 'outer':
    case 'subquery':
    case 'parameter':
      return noChildren;
    case 'compare':
    case 'arithmetic':
      return [bound.left, bound.right];
    case 'and':
    case 'or':
    case 'function':
    case 'call':
    case 'coalesce':
      return bound.operands;
    case 'same-folded':
      return [bound.operand, bound.text];
    case 'not':
    case 'negate':
    case 'is-null':
    case 'in-set':
    case 'to-number':
    case 'lookup':
    case 'phonetic':
      return [bound.operand];
    case 'between':
      return [bound.operand, bound.low, bound.high];
    case 'in':
      return childrenOfList(bound);
    case 'like':
      return [bound.operand, bound.pattern];
    case 'match':
      return [bound.operand, bound.query];
    case 'case': {
      const branchChildren = bound.branches.flatMap((branch) => [branch.when, branch.result]);
      return [...(bound.operand ? [bound.operand] : []), ...branchChildren, ...(bound.otherwise ? [bound.otherwise] : [])];
    }
  }
}

const listChildren = new WeakMap<Bound, readonly Bound[]>();

/** Many ask for them, and they may be a hundred thousand. */
function childrenOfList(inList: Extract<Bound, { kind: 'in' }>): readonly Bound[] {
  let inListChildren = listChildren.get(inList);
  if (inListChildren === undefined) listChildren.set(inList, (inListChildren = [inList.operand, ...inList.items]));
  return inListChildren;
}

/** Whether any node of a tree is so. */
export function some(bound: Bound, holdsFor: (bound: Bound) => boolean): boolean {
  return holdsFor(bound) || childrenOf(bound).some((childBound) => some(childBound, holdsFor));
}

/** Copies a node with other children. */
export function mapChildren(bound: Bound, mapChild: (child: Bound) => Bound): Bound {
  switch (bound.kind) {
    case 'column':
    case 'literal':
    case 'literals':
    case 'constant':
    case 'now':
    case 'outer':
    case 'subquery':
    case 'parameter':
      return bound;
    case 'compare':
    case 'arithmetic':
      return { ...bound, left: mapChild(bound.left), right: mapChild(bound.right) };
    case 'and':
    case 'or':
    case 'function':
    case 'call':
    case 'coalesce':
      return { ...bound, operands: bound.operands.map(mapChild) };
    case 'same-folded':
      return { ...bound, operand: mapChild(bound.operand), text: mapChild(bound.text) };
    case 'not':
    case 'negate':
    case 'is-null':
    case 'in-set':
    case 'to-number':
    case 'lookup':
    case 'phonetic':
      return { ...bound, operand: mapChild(bound.operand) };
    case 'between':
      return { ...bound, operand: mapChild(bound.operand), low: mapChild(bound.low), high: mapChild(bound.high) };
    case 'in':
      return { ...bound, operand: mapChild(bound.operand), items: bound.items.map(mapChild) };
    case 'match':
      return { ...bound, operand: mapChild(bound.operand), query: mapChild(bound.query) };
    case 'like':
      return { ...bound, operand: mapChild(bound.operand), pattern: mapChild(bound.pattern) };
    case 'case':
      return {
        ...bound,
        operand: bound.operand && mapChild(bound.operand),
        branches: bound.branches.map((branch) => ({ when: mapChild(branch.when), result: mapChild(branch.result) })),
        otherwise: bound.otherwise && mapChild(bound.otherwise),
      };
  }
}

/** Column numbers that the expression reads. */
export function columnsIn(bound: Bound, columnIndexes = new Set<number>()): Set<number> {
  if (bound.kind === 'column') columnIndexes.add(bound.index);
  if (bound.kind === 'in') {
    // Most items of a list are values, and they may be a hundred thousand.
    columnsIn(bound.operand, columnIndexes);
    for (const inListItem of bound.items)
      if (inListItem.kind !== 'parameter' && inListItem.kind !== 'literal') columnsIn(inListItem, columnIndexes);
  } else for (const childBound of childrenOf(bound)) columnsIn(childBound, columnIndexes);
  return columnIndexes;
}

/** Few items, and items that depend on the row, are compared one by one. */
export function isConstantSet(bound: Bound): boolean {
  if (bound.kind !== 'in' || bound.items.length <= 8 || bound.operand.type === 'boolean') return false;
  let isConstantList = constantSets.get(bound);
  if (isConstantList === undefined)
    constantSets.set(bound, (isConstantList = bound.items.every(({ kind }) => kind === 'parameter' || kind === 'literals')));
  return isConstantList;
}

/** A list is asked for each text of a dictionary. */
const constantSets = new WeakMap<Bound, boolean>();

/** How many values the items of a list are. */
export function countValues(inListItems: readonly Bound[]): number {
  return inListItems.reduce((valueCount, inListItem) => valueCount + (inListItem.kind === 'literals' ? inListItem.count : 1), 0);
}

/** The bound form of one of the values. */
export function literalAt({ first, slot }: Extract<Bound, { kind: 'literals' }>, index: number): Bound {
  const moveSlot = (bound: Bound): Bound =>
    bound.kind === 'literal' && bound.slot === slot ? { ...bound, slot: bound.slot + index } : mapChildren(bound, moveSlot);
  return index === 0 ? first : moveSlot(first);
}

export function replaceColumns(bound: Bound, replaceColumn: (column: BoundColumn) => Bound): Bound {
  return bound.kind === 'column' ? replaceColumn(bound) : mapChildren(bound, (child) => replaceColumns(child, replaceColumn));
}

/** True when evaluating can fail on some row (an overflow): such a conjunct runs after those that cannot. */
export function mayRaise(bound: Bound): boolean {
  return raises(bound) || childrenOf(bound).some(mayRaise);
}

/** Whether the node itself can fail, its operands aside. */
export function raises(bound: Bound): boolean {
  switch (bound.kind) {
    case 'arithmetic':
    case 'negate':
    case 'to-number':
    case 'function':
      return true;
    case 'call':
      return bound.function.raises === true;
    case 'like':
      // A pattern from a row may be malformed.
      return columnsIn(bound.pattern).size > 0;
    default:
      return false;
  }
}

/** A condition on the literals under which a plan is valid: two slots hold the same value, or one slot holds this value. */
export type Guard = readonly [slot: number, otherSlot: number] | { readonly slot: number; readonly is: Literal };

export function guardHolds(guard: Guard, literals: readonly Literal[]): boolean {
  return 'slot' in guard ? literals[guard.slot] === guard.is : literals[guard[0]] === literals[guard[1]];
}

/** Same meaning under these literals. Pairs of slots that had to be equal for it are added to `guards`. */
export function sameExpression(leftBound: Bound, rightBound: Bound, literals: readonly Literal[], guards: Guard[]): boolean {
  if (leftBound.kind !== rightBound.kind || leftBound.type !== rightBound.type) return false;
  if (leftBound.kind === 'column') return rightBound.kind === 'column' && leftBound.index === rightBound.index;
  if (leftBound.kind === 'parameter') return rightBound.kind === 'parameter' && leftBound.index === rightBound.index;
  if (leftBound.kind === 'outer')
    return rightBound.kind === 'outer' && leftBound.level === rightBound.level && leftBound.index === rightBound.index;
  if (leftBound.kind === 'subquery') return rightBound.kind === 'subquery' && leftBound.index === rightBound.index;
  if (leftBound.kind === 'literal' && rightBound.kind === 'literal') {
    if (leftBound.as !== rightBound.as || literals[leftBound.slot] !== literals[rightBound.slot]) return false;
    if (leftBound.slot !== rightBound.slot) guards.push([leftBound.slot, rightBound.slot]);
    return true;
  }
  // Only a list that is named a second time is the same.
  if (leftBound.kind === 'literals')
    return rightBound.kind === 'literals' && leftBound.slot === rightBound.slot && leftBound.count === rightBound.count;
  if (leftBound.kind === 'in-set' && rightBound.kind === 'in-set' && leftBound.set !== rightBound.set) return false;
  if (leftBound.kind === 'constant' && rightBound.kind === 'constant') return leftBound.cell === rightBound.cell;
  if (leftBound.kind === 'function' && rightBound.kind === 'function' && leftBound.name !== rightBound.name) return false;
  if (leftBound.kind === 'call' && rightBound.kind === 'call' && leftBound.function !== rightBound.function) return false;
  if ('op' in leftBound && 'op' in rightBound && leftBound.op !== rightBound.op) return false;
  if (
    leftBound.kind === 'lookup' &&
    rightBound.kind === 'lookup' &&
    (leftBound.table !== rightBound.table || leftBound.field !== rightBound.field)
  )
    return false;
  if (leftBound.kind === 'match' && rightBound.kind === 'match' && leftBound.mode !== rightBound.mode) return false;
  if (leftBound.kind === 'phonetic' && rightBound.kind === 'phonetic' && leftBound.function !== rightBound.function) return false;
  if (leftBound.kind === 'case' && rightBound.kind === 'case') {
    if (
      (leftBound.otherwise === null) !== (rightBound.otherwise === null) ||
      (leftBound.operand === null) !== (rightBound.operand === null)
    )
      return false;
  }
  const leftChildren = childrenOf(leftBound);
  const rightChildren = childrenOf(rightBound);
  return (
    leftChildren.length === rightChildren.length &&
    leftChildren.every((child, i) => sameExpression(child, rightChildren[i]!, literals, guards))
  );
}

/** The number of an expression's nodes. */
export function partsOf(bound: Bound): number {
  return childrenOf(bound).reduce((partCount, childBound) => partCount + partsOf(childBound), 1);
}

/** Nodes that are code of a kernel: constants that values are sought among are one set. */
export function codeParts(bound: Bound): number {
  if (bound.kind === 'in' && isConstantSet(bound)) return 1 + codeParts(bound.operand);
  return childrenOf(bound).reduce((codePartCount, childBound) => codePartCount + codeParts(childBound), 1);
}

/** The same operands in the same order, in groups of at most `most` parts; an operand with more stands alone. */
export function groupsOf(operands: readonly Bound[], partsMost: number): Bound[][] {
  const operandGroups: Bound[][] = [];
  let groupCodeParts = Number.POSITIVE_INFINITY;
  for (const operand of operands) {
    const operandCodeParts = codeParts(operand);
    if ((groupCodeParts += operandCodeParts) > partsMost) {
      operandGroups.push([]);
      groupCodeParts = operandCodeParts;
    }
    operandGroups.at(-1)!.push(operand);
  }
  return operandGroups;
}

const wholeParts = 1_024;

/** Longer than a condition that is tested as a whole: it is tested in pieces, each with a kernel of its own. */
export const isLong = (bound: Bound): boolean => codeParts(bound) > wholeParts;

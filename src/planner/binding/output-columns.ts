/** Columns that leave a SELECT: their names, their types, what hides their cells, and the projection that makes them. */
import type { MaskKind } from '../../log/entries/entry.ts';
import type { ColumnType } from '../../log/values/value.ts';
import type { Bound } from '../expressions/bound-expression.ts';
import type { ValueType } from '../expressions/value-type.ts';
import type { PlanNode } from '../logical-plan.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { Expression, Location, QueryBody } from '../syntax/statement.ts';
import type { CatalogueFunctions } from '../expressions/functions/catalogue.ts';

export interface Output {
  readonly name: string;
  readonly bound: Bound;
  /** The column's name for clients of Postgres. */
  readonly label?: string | undefined;
}

/** A column that a query yields. A bare NULL keeps its own type, so that a set operation may give it another. */
export interface OutputType {
  readonly name: string;
  readonly type: ValueType;
  /** The type of Postgres that its values have, where their cells do not say it. */
  readonly wire?: string | undefined;
  /** The column is masked for the caller, or computed from a masked one. */
  readonly masked?: MaskKind | undefined;
  /** Index of the column that shows the masked cells, behind the columns that names can reach; absent without a mask. */
  readonly shown?: number | undefined;
}

/** The column without its shown twin, for queries that do more than pass it on. */
export function withoutShown({ name, type, wire, masked }: OutputType): OutputType {
  return { name, type, wire, masked };
}

export function project(input: PlanNode, outputs: readonly Output[]): PlanNode {
  return {
    kind: 'project',
    input,
    expressions: outputs.map(({ bound }) => bound),
    columns: outputs.map(({ name, bound, label = name }) => ({
      name,
      type: columnType(bound.type),
      ...(label !== name && { label }),
    })),
  };
}

/** The columns of a node as they are, under their own names. */
export function throughColumns(node: PlanNode): Output[] {
  return node.columns.map(({ name, type }, index): Output => ({ name, bound: { kind: 'column', index, name, type } }));
}

/** The final rows of a query: masked columns are replaced by what their masks show. */
export function projectShown({ node, columns }: { readonly node: PlanNode; readonly columns: readonly OutputType[] }): PlanNode {
  if (node.columns.length === columns.length) return node;
  const throughOutputs = throughColumns(node);
  return project(
    node,
    columns.map(({ shown }, i) => ({ ...throughOutputs[i]!, bound: throughOutputs[shown ?? i]!.bound })),
  );
}

/** A bare NULL has no type of its own: it leaves as a string column without values. */
export function columnType(type: ValueType): ColumnType {
  return type === 'null' || type === 'interval' ? 'string' : type;
}

export function nameOf(expression: Expression, position: number): string {
  switch (expression.kind) {
    case 'column':
      return expression.name;
    case 'aggregate':
      return expression.function;
    case 'case':
      return 'case';
    default:
      return `column_${position + 1}`;
  }
}

/** Postgres' name of a column without an alias; several columns may share it. */
export function labelOf(expression: Expression, catalogue: CatalogueFunctions): string {
  return inferLabel(expression, catalogue).label;
}

/** A label and its strength. An expression around a weak label may replace it by a better one. */
interface InferredLabel {
  readonly label: string;
  readonly isWeak?: boolean;
}

const unnamedLabel: InferredLabel = { label: '?column?', isWeak: true };

function inferLabel(expression: Expression, catalogue: CatalogueFunctions): InferredLabel {
  switch (expression.kind) {
    case 'column':
      return { label: expression.name };
    case 'aggregate':
    case 'over':
      return { label: expression.function };
    case 'case': {
      if (expression.isTest === true) return unnamedLabel;
      const elseLabel = expression.otherwise ? inferLabel(expression.otherwise, catalogue) : unnamedLabel;
      return elseLabel.isWeak === true ? { label: 'case', isWeak: true } : elseLabel;
    }
    case 'exists':
    case 'now':
      return { label: expression.kind };
    case 'scalar-query':
      return queryLabel(expression.query.body, catalogue);
    case 'call':
      return callLabel(expression, catalogue);
    default:
      return unnamedLabel;
  }
}

function queryLabel(body: QueryBody, catalogue: CatalogueFunctions): InferredLabel {
  if (body.kind !== 'select') return queryLabel(body.left, catalogue);
  const [firstItem] = body.projection;
  if (firstItem?.kind !== 'expression') return unnamedLabel;
  return firstItem.alias === null ? inferLabel(firstItem.expression, catalogue) : { label: firstItem.alias };
}

function callLabel(
  { name, arguments: callArguments }: Extract<Expression, { kind: 'call' }>,
  catalogue: CatalogueFunctions,
): InferredLabel {
  if (name === 'CAST') {
    const [castOperand, castType] = callArguments;
    const innerLabel = inferLabel(castOperand!.value, catalogue);
    const sourceType =
      innerLabel.isWeak === true && castType?.value.kind === 'column' ? catalogue.typeNamed(castType.value.name) : null;
    return sourceType === null ? innerLabel : { label: catalogue.elementOf(sourceType) ?? sourceType, isWeak: true };
  }
  if (name === 'TRIM') return { label: 'btrim' };
  if (name === '_ARRAY') return { label: 'array' };
  if (name.startsWith('.')) return { label: name.slice(1) };
  if (name.startsWith('[')) return inferLabel(callArguments[0]!.value, catalogue);
  return name === 'ILIKE' || !/^\w+$/.test(name) ? unnamedLabel : { label: name.toLowerCase() };
}

/** A reply row is an object: of two columns with one name, the later one gets `_2`. */
export function uniqueNames(outputs: readonly Output[]): Output[] {
  const takenNames = new Set(outputs.map(({ name }) => name));
  const nameCounts = new Map<string, number>();
  return outputs.map((output) => {
    const { name } = output;
    let nameCount = (nameCounts.get(name) ?? 0) + 1;
    let uniqueName = name;
    if (nameCount > 1) while (takenNames.has((uniqueName = `${name}_${nameCount}`))) nameCount++;
    nameCounts.set(name, nameCount);
    return { ...output, name: uniqueName };
  });
}

/** Gives the columns the names of a column list; a list must name all of them. */
export function renameColumns<Q extends { readonly node: PlanNode; readonly columns: readonly OutputType[] }>(
  renamedQuery: Q,
  table: string,
  names: readonly string[],
  location: Location,
): Q {
  if (names.length === 0) return renamedQuery;
  if (names.length !== renamedQuery.columns.length) {
    const renameError = `${JSON.stringify(table)} names ${names.length} columns, its query has ${renamedQuery.columns.length}`;
    throw errorAt('REL_INVALID', renameError, location, 'no-such-column-here');
  }
  return { ...renamedQuery, columns: renamedQuery.columns.map((column, i) => ({ ...column, name: names[i]! })) };
}

/** The type of Postgres that the values of an expression have, where their cells do not say it. */
export function wireIn(bound: Bound): string | undefined {
  return 'wire' in bound ? bound.wire : undefined;
}

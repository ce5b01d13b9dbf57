/**
 * Rows of several types as the nodes or edges of a graph pattern: one scan a type, brought to the same columns. And the name by which
 * edges know the row of a node.
 */
import { bindExpression, type ExpressionContext } from '../expressions/bind-expression.ts';
import type { Bound } from '../expressions/bound-expression.ts';
import { edgeTypes, linkNamed, nodeTypes } from '../graph/node-and-edge-types.ts';
import { nodeNameCall, rowColumns, rowsName } from '../graph/pattern-columns.ts';
import type { FunctionNode, PlanColumn } from '../logical-plan.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { ColumnRef, Expression, Source } from '../syntax/statement.ts';
import { endsOf } from '../../projections/catalog/edge-columns.ts';
import { entityOf } from './entity-cells.ts';
import type { BoundSource } from './environment.ts';
import { columnType, type Output, type OutputType, project } from './output-columns.ts';
import { Scope } from './scope.ts';
import type { FunctionRequest } from './table-functions.ts';

type GraphRows = Extract<Source, { kind: 'graph-rows' }>;

export function bindGraphRows(source: GraphRows, request: FunctionRequest): BoundSource {
  const { environment } = request;
  const { of, types, properties, alias, location } = source;
  const named = types.length > 0;
  const graphTypes = named ? [...new Set(types)] : (of === 'nodes' ? nodeTypes : edgeTypes)(environment.catalog);
  const typeArms = graphTypes.map((name) => ({ name, source: request.scan(name) }));
  if (of === 'edges' && named) for (const name of graphTypes) linkNamed(environment.catalog.type(name)!, location);
  const columns: OutputType[] = [
    { name: rowColumns.name, type: of === 'nodes' ? 'string' : 'timestamp' },
    { name: rowColumns.key, type: 'string' },
    { name: rowColumns.type, type: 'string' },
    ...properties.map((name) => graphOwnColumns.get(name) ?? commonColumn(name, typeArms)),
  ];
  const armNodes = typeArms.map((arm) => {
    const scope = new Scope(arm.source.tables, []);
    const context = request.contextOf(scope);
    const bindInArm = (expression: Expression): Bound => bindExpression(expression, context);
    const armColumn = (name: string): ColumnRef => ({ kind: 'column', table: arm.source.tables[0]!.name, name, location });
    const armOutputs: Output[] = columns.map(({ name, type }): Output => {
      if (name === rowColumns.name)
        return { name, bound: bindInArm(of === 'nodes' ? nodeNameCallOf(armColumn('id')) : armColumn('system_from')) };
      if (name === rowColumns.key) return { name, bound: bindInArm(armColumn('_pk')) };
      if (name === rowColumns.type) return { name, bound: { kind: 'constant', cell: arm.name, type: 'string' } };
      if (name === rowColumns.entity)
        return { name, bound: entityOf({ of, table: arm.source.tables[0]!, scope, environment, location }) };
      if (name === rowColumns.from || name === rowColumns.to) {
        const armEnds = endsOf(environment.catalog.type(arm.name)!)!;
        return {
          name,
          bound: bindInArm(castExpressionTo('string', armColumn(name === rowColumns.from ? armEnds.from : armEnds.to))),
        };
      }
      if (!scope.has(name)) return { name, bound: { kind: 'constant', cell: null, type: columnType(type) } };
      const boundProperty = bindInArm(armColumn(name));
      return {
        name,
        bound: boundProperty.type === type ? boundProperty : bindInArm(castExpressionTo(columnType(type), armColumn(name))),
      };
    });
    return project(arm.source.node, armOutputs);
  });
  const graphTypesRead = graphTypes.map((name) => ({ name, named }));
  const planColumns = columns.map(({ name, type }): PlanColumn => ({ name, type: columnType(type) }));
  const functionNode: FunctionNode = {
    kind: 'function',
    name: rowsName,
    words: [of, ...types],
    values: new Map(),
    type: null,
    input: null,
    reads: [],
    carries: 'edges',
    limit: null,
    columns: planColumns,
    own: [...planColumns.keys()],
    graph: {
      types: { links: [], nodes: graphTypesRead, isolated: true },
      edges: armNodes,
      weight: null,
      choices: new Map(),
      isWhole: true,
      limitsGroups: false,
      location,
    },
  };
  return { node: functionNode, tables: [{ name: alias, type: null, columns, first: 0 }] };
}

/** Columns that rows of every type have. */
const graphOwnColumns: ReadonlyMap<string, OutputType> = new Map([
  [rowColumns.entity, { name: rowColumns.entity, type: 'json' }],
  [rowColumns.from, { name: rowColumns.from, type: 'string' }],
  [rowColumns.to, { name: rowColumns.to, type: 'string' }],
]);

/** A column of the types that have one: of one type as it is, of integers and numbers a number, of others their text. */
function commonColumn(name: string, arms: readonly { readonly source: BoundSource }[]): OutputType {
  const propertyColumns = arms.flatMap(({ source }) => source.tables[0]!.columns.filter((column) => column.name === name));
  const commonMask = propertyColumns.find((column) => column.masked !== undefined)?.masked;
  const columnTypes = new Set(propertyColumns.map(({ type }) => type));
  const [onlyType = 'string'] = columnTypes;
  const areNumeric = [...columnTypes].every((type) => type === 'integer' || type === 'number');
  return { name, type: columnTypes.size <= 1 ? onlyType : areNumeric ? 'number' : 'string', masked: commonMask };
}

function castExpressionTo(type: string, value: Expression): Expression {
  const { location } = value;
  const castTarget: ColumnRef = { kind: 'column', table: null, name: type === 'number' ? 'DOUBLE' : 'TEXT', location };
  const castArguments = [
    { name: null, value },
    { name: 'TYPE', value: castTarget },
  ];
  return { kind: 'call', name: 'CAST', arguments: castArguments, location };
}

function nodeNameCallOf(id: ColumnRef): Expression {
  return { kind: 'call', name: nodeNameCall, arguments: [{ name: null, value: id }], location: id.location };
}

/**
 * The text by which edges name a node: its `idColumn`, else its key. Undefined for any other expression. A key that is the id is read by
 * itself, so that it can be looked up; a row whose id is masked is called nothing.
 */
export function bindNodeName(
  expression: Expression,
  scope: Scope,
  primaryKeyOf: (type: string) => string | null,
  context: () => ExpressionContext,
): Bound | undefined {
  if (!isNodeName(expression)) return undefined;
  const idColumn = expression.arguments[0]!.value;
  if (idColumn.kind !== 'column') throw errorAt('REL_PARSE', 'a node is named by a column', expression.location);
  const keyColumn: ColumnRef = { ...idColumn, name: '_pk' };
  const nodeTable = scope.tables.find(({ name }) => name === idColumn.table);
  const column = nodeTable?.columns.find(({ name }) => name === 'id');
  const isMasked = scope.maskedColumn(scope.column(idColumn)) !== undefined;
  if (!isMasked && nodeTable !== undefined && nodeTable.type !== null && primaryKeyOf(nodeTable.type) === 'id') {
    if (column?.type === 'string' || column?.type === 'integer') return scope.column(keyColumn);
  }
  const idAsText = castExpressionTo('string', idColumn);
  if (isMasked) return bindExpression(idAsText, context());
  const nameOrKey = [idAsText, keyColumn].map((value) => ({ name: null, value }));
  return bindExpression({ kind: 'call', name: 'COALESCE', arguments: nameOrKey, location: expression.location }, context());
}

export function isNodeName(expression: Expression): expression is Extract<Expression, { kind: 'call' }> {
  return expression.kind === 'call' && expression.name === nodeNameCall;
}

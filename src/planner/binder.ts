/**
 * Statement to plan: names become column numbers, `*` becomes columns, every expression gets a type. The plan that
 * leaves here is right and naive; the passes make it fast.
 */
import { type ColumnType, systemColumns } from '../log/value.ts';
import type { TypeDefinition } from '../log/entry.ts';
import type { CatalogReader, ReadableColumn } from '../projections/access-paths.ts';
import { bindExpression, bindPredicate, type Leaf, notImplemented } from './expressions/bind-expression.ts';
import { type Bound, type Guard, sameExpression } from './expressions/bound-expression.ts';
import type { AggregateCall, AxisBound, LogicalPlan, PlanColumn, PlanNode, ScanNode, SortKey } from './logical-plan.ts';
import { at } from './places.ts';
import type {
  AsOf,
  ColumnRef,
  Expression,
  Literal,
  OrderItem,
  ProjectionItem,
  Query,
  Select,
  Slot,
  Source,
} from './statement.ts';

export interface BindRequest {
  readonly query: Query;
  readonly withProvenance: boolean;
  readonly literals: readonly Literal[];
  readonly catalog: CatalogReader;
}

export function bindQuery(request: BindRequest): LogicalPlan {
  return new QueryBinder(request).bind();
}

/** System columns first, then properties in order; a declared `id` keeps its declared type. */
export function readableColumns(definition: TypeDefinition): ReadableColumn[] {
  const columns: ReadableColumn[] = Object.entries(systemColumns).map(([name, type]) => ({
    name,
    type: (Object.hasOwn(definition.properties, name) && definition.properties[name]?.type) || type,
    system: true,
  }));
  for (const [name, property] of Object.entries(definition.properties)) {
    if (!Object.hasOwn(systemColumns, name)) columns.push({ name, type: property.type, system: false });
  }
  return columns;
}

interface Output {
  readonly name: string;
  readonly bound: Bound;
}

class QueryBinder {
  readonly #request: BindRequest;
  readonly #literals: readonly Literal[];
  readonly #select: Select;
  readonly #table: Extract<Source, { kind: 'table' }>;
  readonly #definition: TypeDefinition;
  readonly #columns: readonly ReadableColumn[];
  readonly #columnNumbers: ReadonlyMap<string, number>;
  readonly #guards: Guard[] = [];

  constructor(request: BindRequest) {
    this.#request = request;
    this.#literals = request.literals;
    this.#select = executableSelect(request.query);
    this.#table = executableTable(this.#select.from);
    const definition = request.catalog.type(this.#table.name);
    if (!definition)
      throw at('REL_UNKNOWN_TYPE', `type ${JSON.stringify(this.#table.name)} is not registered`, this.#table.place);
    this.#definition = definition;
    this.#columns = readableColumns(definition);
    this.#columnNumbers = new Map(this.#columns.map((column, index) => [column.name, index]));
  }

  bind(): LogicalPlan {
    const { query, withProvenance } = this.#request;
    const select = this.#select;
    let source: PlanNode = this.#scan();
    if (select.where) {
      const predicate = bindPredicate(select.where, this.#literals, this.#rowLeaf);
      source = { kind: 'filter', input: source, predicate, columns: source.columns };
    }
    const grouped = select.groupBy.length > 0 || this.#aggregates();
    const rowByRow = !grouped && !select.distinct;
    if (query.after && (!rowByRow || query.orderBy.length > 0)) {
      throw at(
        'REL_INVALID',
        'AFTER pages through rows of a type: it excludes ORDER BY, DISTINCT and aggregates',
        query.after.place,
      );
    }
    if (withProvenance && !rowByRow) {
      throw at('REL_INVALID', 'WITH PROVENANCE needs rows of a type: it excludes DISTINCT and aggregates', query.place);
    }
    if (query.limit) this.#checkLimit(query.limit);

    const { node, outputs, leaf } = grouped ? this.#grouped(source) : this.#plain(source);
    const named = uniqueNames(outputs);
    const visible = named.length;
    const paged = rowByRow && query.orderBy.length === 0 && query.limit !== null;
    const hidden = paged || withProvenance;
    if (hidden) named.push({ name: 'system_from', bound: this.#column('system_from') });
    const root = select.distinct
      ? this.#limited(this.#sortedOutputs(distinct(project(node, named)), named, leaf))
      : project(this.#limited(this.#sortedRows(node, named, leaf, grouped)), named);
    return {
      root,
      parameters: [],
      visible,
      systemFrom: hidden ? visible : null,
      paged,
      withProvenance,
      objectType: this.#table.name,
      guards: this.#guards,
    };
  }

  #scan(): ScanNode {
    const { asOf, after } = this.#request.query;
    return {
      kind: 'scan',
      type: this.#table.name,
      primaryKey: this.#definition.primaryKey,
      columns: this.#columns.map(({ name, type }) => ({ name, type })),
      system: this.#axis(asOf, 'system'),
      valid: this.#axis(asOf, 'valid'),
      keys: null,
      zones: [],
      after,
    };
  }

  #axis(asOf: AsOf | null, axis: 'system' | 'valid'): AxisBound {
    if (asOf?.axis === 'current') return 'now';
    if (asOf?.axis !== axis) return 'all';
    const { slot, place } = asOf.instant;
    const literal = this.#literals[slot];
    if (typeof literal !== 'string' && typeof literal !== 'bigint') {
      throw at('REL_INVALID', 'AS OF takes a timestamp in quotes or integer nanoseconds', place);
    }
    return { instant: { kind: 'literal', slot, as: 'basis', type: 'timestamp', place } };
  }

  #checkLimit(limit: Slot): void {
    const literal = this.#literals[limit.slot];
    if (typeof literal !== 'bigint' || literal < 0n)
      throw at('REL_INVALID', 'LIMIT takes a whole number of at least 0', limit.place);
  }

  #plain(source: PlanNode): { node: PlanNode; outputs: Output[]; leaf: Leaf } {
    return { node: source, outputs: this.#outputs(this.#rowLeaf), leaf: this.#rowLeaf };
  }

  /** Keys and arguments are computed below the aggregate; what stands above sees keys and results only. */
  #grouped(source: PlanNode): { node: PlanNode; outputs: Output[]; leaf: Leaf } {
    const select = this.#select;
    const keys: Bound[] = select.groupBy.map((expression) => this.#groupKey(expression));
    const arguments_: Bound[] = [];
    const calls: { call: AggregateCall; type: ColumnType }[] = [];
    const leaf: Leaf = (expression) => {
      if (expression.kind === 'aggregate') return this.#aggregate(expression, keys.length, arguments_, calls);
      if (expression.kind === 'literal' || containsAggregate(expression)) return undefined;
      const bound = bindExpression(expression, this.#literals, this.#rowLeaf);
      const index = keys.findIndex((key) => sameExpression(key, bound, this.#literals, this.#guards));
      if (index >= 0) return { kind: 'column', index, name: nameOf(expression, index), type: columnType(bound) };
      if (expression.kind === 'column') {
        const text = `${JSON.stringify(expression.name)} must stand in GROUP BY or inside an aggregate`;
        throw at('REL_INVALID', text, expression.place);
      }
      return undefined;
    };
    const outputs = this.#outputs(leaf);
    const having = select.having && bindPredicate(select.having, this.#literals, leaf);
    // ORDER BY may bring aggregates of its own: they must be known before the aggregate node is made.
    for (const item of this.#request.query.orderBy)
      if (!this.#alias(item.expression, outputs)) bindExpression(item.expression, this.#literals, leaf);

    const inner = [...keys, ...arguments_].map((bound, i): Output => ({ name: `#${i}`, bound }));
    const keyColumns = keys.map((key, i): PlanColumn => ({ name: nameOf(select.groupBy[i]!, i), type: columnType(key) }));
    let node: PlanNode = {
      kind: 'aggregate',
      input: project(source, inner),
      groups: keys.length,
      calls: calls.map(({ call }) => call),
      columns: [...keyColumns, ...calls.map(({ call, type }): PlanColumn => ({ name: call.function, type }))],
    };
    if (having) node = { kind: 'filter', input: node, predicate: having, columns: node.columns };
    return { node, outputs, leaf };
  }

  /** A column, an alias of the projection where no column has that name, or any expression over columns. */
  #groupKey(expression: Expression): Bound {
    const isAlias = expression.kind === 'column' && expression.table === null && !this.#columnNumbers.has(expression.name);
    const item = isAlias
      ? this.#select.projection.find((each) => each.kind === 'expression' && each.alias === expression.name)
      : undefined;
    const target = item?.kind === 'expression' ? item.expression : expression;
    const bound = bindExpression(target, this.#literals, this.#rowLeaf);
    if (bound.type === 'vector' || bound.type === 'interval') {
      throw at('REL_TYPE_MISMATCH', `GROUP BY can't group ${bound.type}`, expression.place);
    }
    return bound;
  }

  #aggregate(
    expression: Extract<Expression, { kind: 'aggregate' }>,
    groups: number,
    arguments_: Bound[],
    calls: { call: AggregateCall; type: ColumnType }[],
  ): Bound {
    const { operand, distinct, place } = expression;
    const call = expression.function;
    let column: number | null = null;
    let type: ColumnType = 'integer';
    if (operand) {
      if (containsAggregate(operand)) throw at('REL_PARSE', "aggregates can't be nested", operand.place);
      const bound = bindExpression(operand, this.#literals, this.#rowLeaf);
      type = aggregateType(call, bound, operand);
      let index = arguments_.findIndex((each) => sameExpression(each, bound, this.#literals, this.#guards));
      if (index < 0) index = arguments_.push(bound) - 1;
      column = groups + index;
    } else if (call !== 'count') {
      throw at('REL_INVALID', `${call.toUpperCase()} needs a column`, place);
    }
    let index = calls.findIndex(
      (each) => each.call.function === call && each.call.column === column && each.call.distinct === distinct,
    );
    if (index < 0) index = calls.push({ call: { function: call, column, distinct }, type }) - 1;
    return { kind: 'column', index: groups + index, name: call, type };
  }

  #outputs(leaf: Leaf): Output[] {
    return this.#select.projection.flatMap((item, i) => this.#output(item, i, leaf));
  }

  #output(item: ProjectionItem, position: number, leaf: Leaf): Output[] {
    if (item.kind === 'expression') {
      const bound = bindExpression(item.expression, this.#literals, leaf);
      if (bound.type === 'interval') throw at('REL_TYPE_MISMATCH', 'an INTERVAL is no column', item.place);
      return [{ name: item.alias ?? nameOf(item.expression, position), bound }];
    }
    if (item.table !== null && !this.#names(item.table)) {
      throw at('REL_UNKNOWN_COLUMN', `there is no table ${JSON.stringify(item.table)} in FROM`, item.place);
    }
    if (leaf !== this.#rowLeaf) throw at('REL_INVALID', "* can't stand beside GROUP BY or an aggregate", item.place);
    return this.#columns.map(({ name }) => ({ name, bound: this.#column(name) }));
  }

  /** Sorts rows before they are projected, so that ORDER BY may use what the projection leaves out. */
  #sortedRows(node: PlanNode, outputs: readonly Output[], leaf: Leaf, grouped: boolean): PlanNode {
    const items = this.#request.query.orderBy;
    if (items.length === 0) return node;
    const computed: Output[] = [];
    const keys = items.map((item): SortKey => {
      const bound = this.#alias(item.expression, outputs) ?? bindExpression(item.expression, this.#literals, leaf);
      this.#checkSortKey(bound, item);
      const column = bound.kind === 'column' ? bound.index : node.columns.length + computed.push({ name: '#key', bound }) - 1;
      return { column, descending: item.descending, collate: item.collate };
    });
    // Rows that the keys don't tell apart: `_pk` bytewise, then system_from, the order in which rows arrive.
    if (!grouped) keys.push({ column: this.#columnNumbers.get('_pk')!, descending: false, collate: 'codepoint' });
    const through = node.columns.map(({ name, type }, index): Output => ({ name, bound: { kind: 'column', index, name, type } }));
    const input = computed.length > 0 ? project(node, [...through, ...computed]) : node;
    return { kind: 'sort', input, keys, limit: this.#request.query.limit, columns: input.columns };
  }

  /** Above DISTINCT only output columns are left to sort by. */
  #sortedOutputs(node: PlanNode, outputs: readonly Output[], leaf: Leaf): PlanNode {
    const items = this.#request.query.orderBy;
    if (items.length === 0) return node;
    const keys = items.map((item): SortKey => {
      const bound = this.#alias(item.expression, outputs) ?? bindExpression(item.expression, this.#literals, leaf);
      this.#checkSortKey(bound, item);
      const column = outputs.findIndex((output) => sameExpression(output.bound, bound, this.#literals, this.#guards));
      if (column < 0)
        throw at('REL_INVALID', 'with DISTINCT, ORDER BY takes columns of the projection only', item.expression.place);
      return { column, descending: item.descending, collate: item.collate };
    });
    return { kind: 'sort', input: node, keys, limit: this.#request.query.limit, columns: node.columns };
  }

  #checkSortKey(bound: Bound, item: OrderItem): void {
    const place = item.expression.place;
    if (bound.kind === 'literal') throw at('REL_INVALID', 'ORDER BY takes columns and expressions, not a position', place);
    if (bound.type === 'vector' || bound.type === 'json' || bound.type === 'interval') {
      throw at('REL_TYPE_MISMATCH', `${bound.type} has no order`, place);
    }
    if (item.collate === 'unicode' && bound.type !== 'string' && bound.type !== 'null') {
      throw at('REL_TYPE_MISMATCH', `COLLATE UNICODE sorts text, not ${bound.type}`, place);
    }
  }

  #alias(expression: Expression, outputs: readonly Output[]): Bound | undefined {
    if (expression.kind !== 'column' || expression.table !== null) return undefined;
    const position = this.#select.projection.findIndex((item) => item.kind === 'expression' && item.alias === expression.name);
    if (position < 0) return undefined;
    return outputs.find((output) => output.name === expression.name)?.bound;
  }

  #limited(node: PlanNode): PlanNode {
    const limit = this.#request.query.limit;
    return limit ? { kind: 'limit', input: node, limit, counting: null, columns: node.columns } : node;
  }

  #rowLeaf: Leaf = (expression) => (expression.kind === 'column' ? this.#reference(expression) : undefined);

  #reference(reference: ColumnRef): Bound {
    if (reference.table !== null && !this.#names(reference.table)) {
      throw at('REL_UNKNOWN_COLUMN', `there is no table ${JSON.stringify(reference.table)} in FROM`, reference.place);
    }
    if (!this.#columnNumbers.has(reference.name)) {
      const text = `type ${JSON.stringify(this.#table.name)} has no column ${JSON.stringify(reference.name)}`;
      throw at('REL_UNKNOWN_COLUMN', text, reference.place);
    }
    return this.#column(reference.name);
  }

  #column(name: string): Bound {
    const index = this.#columnNumbers.get(name)!;
    return { kind: 'column', index, name, type: this.#columns[index]!.type };
  }

  #names(table: string): boolean {
    return table === (this.#table.alias ?? this.#table.name);
  }

  #aggregates(): boolean {
    const { projection, having } = this.#select;
    return (
      having !== null ||
      projection.some((item) => item.kind === 'expression' && containsAggregate(item.expression)) ||
      this.#request.query.orderBy.some((item) => containsAggregate(item.expression))
    );
  }
}

function executableSelect(query: Query): Select {
  if (query.with.length > 0) throw notImplemented('WITH', query.place);
  if (query.facets.length > 0) throw notImplemented('FACETS', query.facets[0]!.place);
  if (query.body.kind === 'set-operation') throw notImplemented(query.body.op.toUpperCase(), query.body.place);
  const select = query.body;
  if (select.window) throw notImplemented(select.window.type.toUpperCase(), select.window.place);
  if (select.rankBy.length > 0) throw notImplemented('RANK BY', select.rankBy[0]!.place);
  if (select.compute.length > 0) throw notImplemented('COMPUTE', select.compute[0]!.expression.place);
  return select;
}

function executableTable(source: Source): Extract<Source, { kind: 'table' }> {
  switch (source.kind) {
    case 'table':
      return source;
    case 'join':
      throw notImplemented('JOIN', source.place);
    case 'subquery':
      throw notImplemented('a subquery in FROM', source.place);
    case 'function':
      throw notImplemented(source.name, source.place);
  }
}

function aggregateType(call: AggregateCall['function'], bound: Bound, operand: Expression): ColumnType {
  const type = bound.type;
  const refuse = (): never => {
    throw at('REL_TYPE_MISMATCH', `${call.toUpperCase()} can't take ${type}`, operand.place);
  };
  switch (call) {
    case 'count':
      return type === 'interval' || type === 'vector' ? refuse() : 'integer';
    case 'sum':
      return type === 'integer' || type === 'number' ? type : refuse();
    case 'avg':
      return type === 'integer' || type === 'number' ? 'number' : refuse();
    case 'min':
    case 'max':
      return type === 'integer' || type === 'number' || type === 'timestamp' || type === 'string' ? type : refuse();
  }
}

function containsAggregate(expression: Expression): boolean {
  switch (expression.kind) {
    case 'aggregate':
      return true;
    case 'column':
    case 'literal':
    case 'now':
    case 'interval':
      return false;
    case 'binary':
      return containsAggregate(expression.left) || containsAggregate(expression.right);
    case 'not':
    case 'negate':
    case 'is-null':
    case 'in-query':
      return containsAggregate(expression.operand);
    case 'in-list':
      return containsAggregate(expression.operand) || expression.items.some(containsAggregate);
    case 'between':
      return [expression.operand, expression.low, expression.high].some(containsAggregate);
    case 'case':
      return (
        (expression.operand !== null && containsAggregate(expression.operand)) ||
        (expression.otherwise !== null && containsAggregate(expression.otherwise)) ||
        expression.branches.some(({ when, then }) => containsAggregate(when) || containsAggregate(then))
      );
    case 'call':
      return expression.arguments.some(({ value }) => containsAggregate(value));
  }
}

function nameOf(expression: Expression, position: number): string {
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

/** A reply row is an object: of two columns with one name, the later one gets `_2`. */
function uniqueNames(outputs: readonly Output[]): Output[] {
  const taken = new Set(outputs.map(({ name }) => name));
  const used = new Set<string>();
  return outputs.map((output) => {
    let name = output.name;
    for (let n = 2; used.has(name); n++) {
      const candidate = `${output.name}_${n}`;
      if (!taken.has(candidate)) name = candidate;
    }
    used.add(name);
    return { name, bound: output.bound };
  });
}

function project(input: PlanNode, outputs: readonly Output[]): PlanNode {
  return {
    kind: 'project',
    input,
    expressions: outputs.map(({ bound }) => bound),
    columns: outputs.map(({ name, bound }) => ({ name, type: columnType(bound) })),
  };
}

function distinct(input: PlanNode): PlanNode {
  return { kind: 'distinct', input, columns: input.columns };
}

/** A bare NULL has no type of its own: it leaves as a string column without values. */
function columnType(bound: Bound): ColumnType {
  return bound.type === 'null' || bound.type === 'interval' ? 'string' : bound.type;
}

/**
 * Random statements over a world. `features` switches the parts of the dialect; what is on must be answered, so that every
 * unexpected error is a bug.
 */
import { aggregateOf, anyType, expressionOf, literal, now, nullLiteral, predicateOf, type Scope } from './expressions.ts';
import { Choices } from './random.ts';
import {
  type AsOfNode,
  type BodyNode,
  type ColumnNode,
  type CommonNode,
  type Expr,
  type Facts,
  type Item,
  type OrderNode,
  outputFacts,
  outputsOf,
  type QueryNode,
  type SelectNode,
  type SourceNode,
  type Type,
} from './tree.ts';
import { columnOf, type World, type WorldTable } from './world.ts';

export interface Features {
  readonly joins: boolean;
  readonly subqueries: boolean;
  readonly inQueries: boolean;
  readonly setOperations: boolean;
  readonly common: boolean;
  readonly recursive: boolean;
  readonly asOf: boolean;
  /** The columns that the store fills. */
  readonly storedColumns: boolean;
  /** SUM(DISTINCT …) and AVG(DISTINCT …). */
  readonly distinctSums: boolean;
  /**
   * What people and tools write around it: queries over the rows around them, EXISTS, ANY and ALL, functions, windows, VALUES,
   * USING, places, NULLS FIRST; asked in the wide dialect.
   */
  readonly wide: boolean;
}

export const everyFeature: Features = {
  joins: true,
  subqueries: true,
  inQueries: true,
  setOperations: true,
  common: true,
  recursive: true,
  asOf: true,
  storedColumns: true,
  distinctSums: true,
  wide: false,
};

/** With all that is written around the specified dialect. */
export const wideFeatures: Features = { ...everyFeature, wide: true };

export const oneTable: Features = {
  ...everyFeature,
  joins: false,
  subqueries: false,
  inQueries: false,
  setOperations: false,
  common: false,
  recursive: false,
};

/** Something that FROM can name. */
interface Relation {
  readonly name: string;
  readonly columns: readonly (Facts & { readonly name: string })[];
  readonly rows: number;
}

/** Rows of a source at most: beyond it a product takes too long to ask twice. */
const rowsMax = 20_000;

export class StatementGenerator {
  readonly #world: World;
  readonly #choices: Choices;
  readonly #features: Features;
  #aliases = 0;
  #common: Relation[] = [];

  constructor(world: World, index: number, features: Features = everyFeature) {
    this.#world = world;
    this.#choices = new Choices(0x57_6d, world.seed, index);
    this.#features = features;
  }

  get choices(): Choices {
    return this.#choices;
  }

  get features(): Features {
    return this.#features;
  }

  get world(): World {
    return this.#world;
  }

  /** The same generator with other features. */
  with(features: Features): StatementGenerator {
    return new StatementGenerator(this.#world, this.#choices.below(1 << 30), features);
  }

  statement(): QueryNode {
    const query = this.#query(2, null);
    const asOf = this.#features.asOf && this.#choices.chance(30) ? this.asOf() : null;
    // `*` shows what its source has, so it stands outermost, over stored tables, with nothing that needs a name.
    const { body } = query;
    const plain = body.kind === 'select' && query.orderBy.length === 0 && !body.distinct && ordinary(body);
    if (plain && this.#features.storedColumns && this.#choices.chance(12))
      return { ...query, asOf, body: { ...body, items: [] } };
    return { ...query, asOf };
  }

  asOf(): AsOfNode {
    const kind = this.#choices.weighted({ current: 3, system: 2, valid: 2 });
    if (kind === 'current') return { kind: 'as-of', axis: 'current' };
    return { kind: 'as-of', axis: kind, instant: this.#choices.of(this.#world.instants) };
  }

  /** A source and what may be asked of its rows: for oracles that build statements of their own. */
  source(joins = this.#features.joins): { from: SourceNode; scope: Scope; rows: number; columns: readonly ColumnNode[] } {
    const { source, columns, rows } = this.#source(1, joins);
    return { from: source, scope: this.#scope(columns, 1), rows, columns };
  }

  predicate(scope: Scope): Expr {
    return predicateOf(scope, 3);
  }

  #scope(leaves: readonly Expr[], depth: number): Scope {
    const subquery = this.#features.inQueries && depth > 0 ? (type: Type) => this.#column(type, depth - 1) : null;
    const { distinctSums, wide, inQueries } = this.#features;
    const isAround = wide && inQueries && depth > 0;
    const around = isAround ? (type: Type | null, outer: readonly Expr[]) => this.#around(type, outer) : null;
    return { choices: this.#choices, leaves, subquery, distinctSums, wide, around };
  }

  /** A query over one table whose condition names the rows around it; one row of one column where a type is wanted. */
  #around(type: Type | null, outer: readonly Expr[]): QueryNode {
    const choices = this.#choices;
    if (type !== null && choices.chance(50)) return this.#cellAround(type, outer);
    const { source, columns } = this.#plainTable();
    const where = this.#whereAround(columns, outer);
    const one: Expr = { kind: 'literal', value: 1n, type: 'integer', size: 1, grain: 0 };
    const given = columns.filter((column) => column.type === type);
    const constant = type === 'timestamp' ? now : literal(choices, type ?? 'integer');
    const expression: Expr =
      type === null
        ? one
        : type === 'boolean' || given.length === 0
          ? {
              kind: 'aggregate',
              function: 'max',
              operand: constant,
              distinct: false,
              type,
              size: constant.size,
              grain: constant.grain,
            }
          : {
              kind: 'aggregate',
              function: choices.of(['min', 'max'] as const),
              operand: choices.of(given),
              distinct: false,
              ...factsOf(given[0]!),
              size: Number.POSITIVE_INFINITY,
              grain: Number.POSITIVE_INFINITY,
            };
    const body: SelectNode = {
      kind: 'select',
      distinct: false,
      items: [this.#item(expression)],
      from: source,
      where,
      groupBy: [],
      having: null,
    };
    return { kind: 'query', with: [], body, asOf: null, orderBy: [], limit: null };
  }

  /** A condition that names the rows around it, where these have anything to compare with. */
  #whereAround(columns: readonly ColumnNode[], outer: readonly Expr[]): Expr {
    const choices = this.#choices;
    const facts: Facts = { type: 'boolean', size: Number.POSITIVE_INFINITY, grain: Number.POSITIVE_INFINITY };
    const inner: Scope = { choices, leaves: columns, subquery: null, distinctSums: this.#features.distinctSums, wide: true };
    const pairs = outer.flatMap((a) =>
      a.kind !== 'column' || a.table === null ? [] : columns.filter((b) => b.type === a.type).map((b) => ({ a, b })),
    );
    let where: Expr | null = pairs.length === 0 ? predicateOf(inner, 1) : null;
    for (let left = pairs.length === 0 ? 0 : choices.of([1, 1, 1, 2]); left > 0; left--) {
      const { a, b } = choices.of(pairs);
      const op = a.type === 'boolean' ? '=' : choices.of(['=', '=', '=', '!=', '<', '>='] as const);
      const bound: Expr = { ...facts, kind: 'compare', op, left: b, right: a };
      where = where ? { ...facts, kind: 'logic', op: choices.chance(70) ? 'and' : 'or', left: where, right: bound } : bound;
    }
    if (choices.chance(40)) where = { ...facts, kind: 'logic', op: 'and', left: where!, right: predicateOf(inner, 1) };
    return where!;
  }

  /**
   * A query of at most one row whose cell is any expression: constants, columns around, CASE, IS NULL, COALESCE. Over a row that is
   * written out, over an aggregate, or over the first row of a table or none of it; its condition often leaves nothing.
   */
  #cellAround(type: Type, outer: readonly Expr[]): QueryNode {
    const choices = this.#choices;
    const kind = choices.of(['row', 'row', 'aggregate', 'first'] as const);
    const { source, columns } =
      kind === 'row' ? this.#values(1) : kind === 'first' ? this.#plainTable() : this.#aggregated(outer);
    const around = outer.filter((each) => each.kind === 'column' && each.table !== null);
    const leaves = [...columns, ...(choices.chance(50) ? around : [])];
    const scope: Scope = { choices, leaves, subquery: null, distinctSums: this.#features.distinctSums, wide: true };
    const where = kind === 'aggregate' && choices.chance(40) ? null : this.#whereAround(columns, outer);
    const item = this.#item(expressionOf(scope, type, 2));
    const body: SelectNode = { kind: 'select', distinct: false, items: [item], from: source, where, groupBy: [], having: null };
    const isKey = kind === 'first' && item.expression.kind !== 'literal';
    const orderBy: OrderNode[] = isKey ? [{ kind: 'order', column: item.alias, descending: choices.chance(50) }] : [];
    const limit = kind === 'first' ? choices.of([0, 1, 1, 1]) : choices.chance(10) ? 0 : null;
    return { kind: 'query', with: [], body, asOf: null, orderBy, limit };
  }

  /** The one row of an aggregate over what names the rows around it. */
  #aggregated(outer: readonly Expr[]): { source: SourceNode; columns: ColumnNode[] } {
    const choices = this.#choices;
    const { source, columns } = this.#plainTable();
    const ordered = columns.filter((column) => column.type !== 'boolean');
    const items = ['count', 'min', 'max'].flatMap((name): Item[] => {
      if (name === 'count')
        return [
          this.#item({
            kind: 'aggregate',
            function: name,
            operand: null,
            distinct: false,
            type: 'integer',
            size: rowsMax,
            grain: 0,
          }),
        ];
      if (ordered.length === 0) return [];
      const operand = choices.of(ordered);
      return [this.#item({ kind: 'aggregate', function: name as 'min' | 'max', operand, distinct: false, ...factsOf(operand) })];
    });
    const where = this.#whereAround(columns, outer);
    const body: SelectNode = { kind: 'select', distinct: false, items, from: source, where, groupBy: [], having: null };
    const query: QueryNode = { kind: 'query', with: [], body, asOf: null, orderBy: [], limit: null };
    const alias = `q${++this.#aliases}`;
    const facts = outputFacts(body);
    return {
      source: { kind: 'subquery', query, alias },
      columns: items.map((item, i) => columnFrom(alias, item.alias, facts[i]!)),
    };
  }

  #plainTable(): { source: SourceNode; columns: ColumnNode[]; rows: number } {
    const { name, columns, rows } = this.#choices.of(this.#relations());
    const alias = `a${++this.#aliases}`;
    return { source: { kind: 'table', name, alias }, columns: columns.map((each) => columnFrom(alias, each.name, each)), rows };
  }

  /** What a row is among the rows around it: the same whatever order those of one rank come in. */
  #window(type: Type, scope: Scope, rows: number): Expr | null {
    const choices = this.#choices;
    const columns = scope.leaves.filter((leaf) => leaf.type !== 'boolean');
    if (columns.length === 0) return null;
    const some = (most: number): Expr[] => choices.shuffled(columns).slice(0, choices.between(0, most));
    const partition = some(2);
    const order = some(2);
    const parts = { partition, order, whole: order.length > 0 && choices.chance(25) };
    if (type === 'integer' && choices.chance(50)) {
      const name = choices.of(['rank', 'dense_rank', 'count'] as const);
      const facts: Facts = { type, size: rows, grain: 0 };
      const whole = name === 'count' && parts.whole;
      return {
        kind: 'window',
        function: name,
        operand: null,
        ...parts,
        order: name === 'count' || order.length > 0 ? order : [columns[0]!],
        whole,
        ...facts,
      };
    }
    const fitting = columns.filter((column) => column.type === type);
    if (fitting.length === 0) return null;
    const operand = choices.of(fitting);
    const isSummable = (type === 'integer' || type === 'number') && operand.size * rows * 2 ** operand.grain < 2 ** 50;
    const name = isSummable && choices.chance(50) ? 'sum' : choices.of(['min', 'max'] as const);
    const size = name === 'sum' ? operand.size * rows : operand.size;
    return { kind: 'window', function: name, operand, ...parts, type, size, grain: operand.grain };
  }

  /** Wanted types of the columns; null leaves them to chance. */
  #query(depth: number, types: readonly Type[] | null): QueryNode {
    const outer = this.#common;
    const common = depth > 0 && this.#features.common && this.#choices.chance(22) ? this.#commonTables(depth) : [];
    const wanted = types ?? Array.from({ length: this.#choices.of([1, 1, 2, 2, 3, 4]) }, () => anyType(this.#choices));
    const body = this.#body(depth, wanted);
    this.#common = outer;
    const { orderBy, limit } = this.#order(body);
    return { kind: 'query', with: common, body, asOf: null, orderBy, limit };
  }

  #order(body: BodyNode): { orderBy: OrderNode[]; limit: number | null } {
    if (!this.#choices.chance(30)) return { orderBy: [], limit: null };
    const outputs = outputsOf(body);
    // A constant is refused as a key, in words that many expect to mean a position.
    if (outputs.some(({ expression }) => expression.kind === 'literal')) return { orderBy: [], limit: null };
    const columns = this.#choices.shuffled(outputs);
    const orderBy = columns.map(
      ({ alias }): OrderNode => ({
        kind: 'order',
        column: alias,
        descending: this.#choices.chance(40),
        ...(this.#features.wide && { nullsFirst: this.#choices.chance(30), byPlace: this.#choices.chance(30) }),
      }),
    );
    return { orderBy, limit: this.#choices.chance(50) ? this.#choices.of([0, 1, 2, 3, 5, 10, 100]) : null };
  }

  /** One column, behind IN. */
  #column(type: Type, depth: number): QueryNode {
    return this.#query(depth, [type]);
  }

  #body(depth: number, types: readonly Type[]): BodyNode {
    if (!this.#features.setOperations || depth <= 0 || !this.#choices.chance(20)) return this.#select(depth, types);
    const op = this.#choices.of(['union', 'union all', 'intersect', 'except'] as const);
    return { kind: 'set-operation', op, left: this.#body(depth - 1, types), right: this.#body(depth - 1, types) };
  }

  #select(depth: number, types: readonly Type[]): SelectNode {
    const choices = this.#choices;
    const { source, columns, rows } = this.#source(depth, this.#features.joins);
    const scope = this.#scope(columns, depth);
    const where = choices.chance(60) ? predicateOf(scope, 3) : null;
    if (choices.chance(35)) return this.#grouped(types, source, where, scope, rows, depth);
    const items = types.map((type) =>
      this.#item(
        (this.#features.wide && choices.chance(12) ? this.#window(type, scope, rows) : null) ?? expressionOf(scope, type, 2),
      ),
    );
    return { kind: 'select', distinct: choices.chance(20), items, from: source, where, groupBy: [], having: null };
  }

  #grouped(types: readonly Type[], from: SourceNode, where: Expr | null, scope: Scope, rows: number, depth: number): SelectNode {
    const choices = this.#choices;
    const plain: Scope = { ...scope, subquery: null, around: null };
    const keys: Expr[] = [];
    for (let wanted = choices.of([0, 1, 1, 1, 2, 3]); wanted > 0; wanted--) {
      const column = choices.of(scope.leaves);
      const isSmall = (column.type === 'integer' || column.type === 'number') && column.size < 1000;
      const key = choices.chance(25) && isSmall ? this.#reckoned(column) : column;
      if (!keys.some((each) => each === key)) keys.push(key);
    }
    const aggregates: Expr[] = [];
    for (const type of new Set([...types, 'integer', anyType(choices)] as const)) {
      const aggregate = aggregateOf(plain, type, rows);
      if (aggregate) aggregates.push(aggregate);
    }
    const groupedScope: Scope = { ...plain, leaves: [...keys, ...aggregates], around: scope.around ?? null };
    const items = types.map((type) => this.#item(expressionOf(groupedScope, type, 1)));
    const having = choices.chance(30) ? predicateOf({ ...groupedScope, subquery: depth > 0 ? scope.subquery : null }, 2) : null;
    if (keys.length === 0 && !items.some(({ expression }) => hasAggregate(expression))) {
      // Neither key nor aggregate: HAVING would have nothing to hold on to.
      const rowByRow = types.map((type) => this.#item(expressionOf(scope, type, 1)));
      return { kind: 'select', distinct: false, items: rowByRow, from, where, groupBy: [], having: null };
    }
    const select: SelectNode = { kind: 'select', distinct: choices.chance(10), items, from, where, groupBy: keys, having };
    return this.#features.wide && choices.chance(30) ? { ...select, byPlace: true } : select;
  }

  #reckoned(column: Expr): Expr {
    const two: Expr = { kind: 'literal', value: 2n, type: 'integer', size: 2, grain: 0 };
    const op = column.type === 'integer' && this.#choices.chance(50) ? '%' : '+';
    return { kind: 'arithmetic', op, left: column, right: two, type: column.type, size: column.size + 2, grain: column.grain };
  }

  /** A bare NULL would be a column of text, whatever type it was made for. */
  #item(expression: Expr): Item {
    const bare = expression.kind === 'literal' && expression.value === null;
    return {
      kind: 'item',
      expression: bare ? literal(this.#choices, expression.type) : expression,
      alias: `c${++this.#aliases}`,
    };
  }

  #relations(): Relation[] {
    const hidden = this.#features.storedColumns ? () => true : ({ pool }: WorldTable['columns'][number]) => pool !== null;
    const tables = this.#world.tables.map((table): Relation => ({ ...table, columns: table.columns.filter(hidden) }));
    // Named tables of the statement are why it has them: twice the chance of others.
    return [...tables, ...this.#common, ...this.#common];
  }

  #source(depth: number, joins: boolean): { source: SourceNode; columns: ColumnNode[]; rows: number } {
    const choices = this.#choices;
    const count = joins ? choices.of([1, 1, 1, 2, 2, 2, 3, 4]) : 1;
    let { source, columns, rows } = this.#table(depth, count > 1);
    for (let joined = 1; joined < count; joined++) {
      const right = this.#table(depth, true);
      if (rows * right.rows > rowsMax) break;
      rows = (rows + 1) * (right.rows + 1);
      const all = [...columns, ...right.columns];
      const type = choices.weighted({ inner: 4, left: 3, right: 2, full: 2 });
      source = this.#joined(type, source, right, columns, depth);
      columns = all;
    }
    return { source, columns, rows };
  }

  #joined(
    type: 'inner' | 'left' | 'right' | 'full',
    left: SourceNode,
    right: { readonly source: SourceNode; readonly columns: readonly ColumnNode[] },
    columns: readonly ColumnNode[],
    depth: number,
  ): SourceNode {
    const truth: Expr = { kind: 'literal', value: true, type: 'boolean', size: 1, grain: 0 };
    if (this.#features.wide && this.#choices.chance(25)) {
      // A column that stands in two tables of the left side would be none of them.
      const shared = right.columns.filter(
        ({ name, type: own }) => left.kind === 'table' && columns.some((each) => each.name === name && each.type === own),
      );
      if (shared.length > 0 && type !== 'full') {
        const using = this.#choices.shuffled(shared).slice(0, this.#choices.of([1, 1, 2]));
        return { kind: 'join', type, left, right: right.source, on: truth, using: using.map(({ name }) => name) };
      }
      if (type === 'inner') return { kind: 'join', type, left, right: right.source, on: truth, using: [] };
    }
    return { kind: 'join', type, left, right: right.source, on: this.#on(columns, right.columns, depth) };
  }

  /** Mostly equal columns, sometimes with more conditions, sometimes with conditions only. */
  #on(left: readonly ColumnNode[], right: readonly ColumnNode[], depth: number): Expr {
    const choices = this.#choices;
    const facts: Facts = { type: 'boolean', size: Number.POSITIVE_INFINITY, grain: Number.POSITIVE_INFINITY };
    const isAround = this.#features.wide && this.#features.inQueries && depth > 0;
    const around = isAround ? (type: Type | null, outer: readonly Expr[]) => this.#around(type, outer) : null;
    const leaves = [...left, ...right];
    const scope: Scope = { choices, leaves, subquery: null, distinctSums: this.#features.distinctSums, around };
    const pairs = left.flatMap((a) =>
      right.filter((b) => a.type === b.type || (numeric(a) && numeric(b))).map((b) => ({ a, b })),
    );
    if (pairs.length === 0 || choices.chance(12)) return predicateOf(scope, 1);
    const equal = (): Expr => {
      const { a, b } = choices.of(pairs);
      return choices.chance(50)
        ? { ...facts, kind: 'compare', op: '=', left: a, right: b }
        : { ...facts, kind: 'compare', op: '=', left: b, right: a };
    };
    let on = equal();
    if (choices.chance(20)) on = { ...facts, kind: 'logic', op: 'and', left: on, right: equal() };
    if (choices.chance(30)) on = { ...facts, kind: 'logic', op: 'and', left: on, right: predicateOf(scope, 1) };
    if (isAround && choices.chance(10)) {
      const looking: Expr = { ...facts, kind: 'exists', query: this.#around(null, scope.leaves), negated: choices.chance(40) };
      on = { ...facts, kind: 'logic', op: choices.chance(80) ? 'and' : 'or', left: on, right: looking };
    }
    return on;
  }

  #table(depth: number, aliased: boolean): { source: SourceNode; columns: ColumnNode[]; rows: number } {
    const choices = this.#choices;
    if (this.#features.subqueries && depth > 0 && choices.chance(18)) {
      const query = this.#query(depth - 1, null);
      const alias = `q${++this.#aliases}`;
      const facts = outputFacts(query.body);
      const columns = outputsOf(query.body).map(({ alias: name }, i) => columnFrom(alias, name, facts[i]!));
      return { source: { kind: 'subquery', query, alias }, columns, rows: this.#rowsOf(query) };
    }
    if (this.#features.wide && this.#features.subqueries && choices.chance(8)) return this.#values();
    const { name, columns, rows } = choices.of(this.#relations());
    if (!aliased && choices.chance(60)) {
      return {
        source: { kind: 'table', name, alias: name },
        columns: columns.map((each) => columnFrom(null, each.name, each)),
        rows,
      };
    }
    const alias = `a${++this.#aliases}`;
    return { source: { kind: 'table', name, alias }, columns: columns.map((each) => columnFrom(alias, each.name, each)), rows };
  }

  #values(most = 4): { source: SourceNode; columns: ColumnNode[]; rows: number } {
    const choices = this.#choices;
    const alias = `v${++this.#aliases}`;
    const types = Array.from({ length: choices.between(1, 3) }, () =>
      choices.of(['integer', 'number', 'string', 'boolean'] as const),
    );
    const rows = Array.from({ length: choices.between(1, most) }, (_, i) =>
      types.map((type) => (i > 0 && choices.chance(20) ? nullLiteral(type) : literal(choices, type))),
    );
    const columns = types.map((type, c) => {
      const cells = rows.map((row) => row[c]!);
      const size = Math.max(...cells.map((cell) => cell.size));
      return columnFrom(alias, `e${c + 1}`, { type, size, grain: Math.max(...cells.map((cell) => cell.grain)) });
    });
    return { source: { kind: 'values', alias, columns: columns.map(({ name }) => name), rows }, columns, rows: rows.length };
  }

  /** Counted generously: only sums and the size of products depend on it. */
  #rowsOf(query: QueryNode): number {
    const ofSource = (source: SourceNode): number => {
      switch (source.kind) {
        case 'table':
          return this.#relations().find(({ name }) => name === source.name)?.rows ?? rowsMax;
        case 'subquery':
          return this.#rowsOf(source.query);
        case 'values':
          return source.rows.length;
        case 'join':
          return (ofSource(source.left) + 1) * (ofSource(source.right) + 1);
      }
    };
    const ofBody = (body: BodyNode): number =>
      body.kind === 'select' ? ofSource(body.from) : ofBody(body.left) + ofBody(body.right);
    return Math.min(ofBody(query.body), query.limit ?? rowsMax);
  }

  #commonTables(depth: number): CommonNode[] {
    return Array.from({ length: this.#choices.of([1, 1, 2]) }, () => {
      const made = this.#features.recursive && this.#choices.chance(35) ? this.#recursive() : this.#plainCommon(depth);
      this.#common = [...this.#common, made.relation];
      return made.common;
    });
  }

  #plainCommon(depth: number): { common: CommonNode; relation: Relation } {
    const name = `w${++this.#aliases}`;
    const query = this.#query(depth - 1, null);
    const outputs = outputsOf(query.body);
    const columns = this.#choices.chance(40) ? outputs.map(() => `d${++this.#aliases}`) : [];
    const facts = outputFacts(query.body);
    const shown = outputs.map(({ alias }, i) => ({ ...facts[i]!, name: columns[i] ?? alias }));
    const common: CommonNode = { kind: 'common', name, columns, recursive: false, query };
    return { common, relation: { name, columns: shown, rows: this.#rowsOf(query) } };
  }

  /** A bounded counter, or a walk from row to row. */
  #recursive(): { common: CommonNode; relation: Relation } {
    const choices = this.#choices;
    const name = `r${++this.#aliases}`;
    const table = choices.of(this.#world.tables);
    const bounded: Facts = { type: 'integer', size: 12, grain: 0 };
    const infinite: Facts = { type: 'boolean', size: Number.POSITIVE_INFINITY, grain: Number.POSITIVE_INFINITY };
    const number = (value: number): Expr => ({ kind: 'literal', value: BigInt(value), ...bounded });
    const n = (of: string | null): Expr => ({ kind: 'column', table: of, name: 'n', ...bounded });
    const select = (expression: Expr, from: SourceNode, where: Expr | null): SelectNode => ({
      kind: 'select',
      distinct: false,
      items: [{ kind: 'item', expression, alias: 'n' }],
      from,
      where,
      groupBy: [],
      having: null,
    });
    const stored = (alias: string): SourceNode => ({ kind: 'table', name: table.name, alias });
    const shown = this.#relations().find((each) => each.name === table.name)!;
    const columns = shown.columns.map((each) => columnFrom(null, each.name, each));
    const small = table.columns.filter(({ type, size }) => type === 'integer' && size <= 12);
    let base: SelectNode;
    let step: SelectNode;
    let op: 'union' | 'union all';
    if (small.length > 0 && choices.chance(50)) {
      // Walks along j = n; without duplicates it ends, since there are few values.
      const [from, to] = [choices.of(small), choices.of(small)];
      op = 'union';
      base = select(
        columnOf(from, null),
        stored(table.name),
        predicateOf({ choices, leaves: columns, subquery: null, distinctSums: this.#features.distinctSums }, 1),
      );
      const on: Expr = { ...infinite, kind: 'compare', op: '=', left: columnOf(from, 'z'), right: n(name) };
      const forward = choices.chance(50);
      const [left, right]: [SourceNode, SourceNode] = [{ kind: 'table', name, alias: name }, stored('z')];
      const joined: SourceNode = { kind: 'join', type: 'inner', left: forward ? left : right, right: forward ? right : left, on };
      step = select(
        columnOf(to, 'z'),
        joined,
        choices.chance(30)
          ? predicateOf(
              {
                choices,
                leaves: columns.map((each) => ({ ...each, table: 'z' })),
                subquery: null,
                distinctSums: this.#features.distinctSums,
              },
              1,
            )
          : null,
      );
    } else {
      op = choices.chance(50) ? 'union' : 'union all';
      base = select(
        number(choices.between(0, 3)),
        stored(table.name),
        choices.chance(50)
          ? predicateOf({ choices, leaves: columns, subquery: null, distinctSums: this.#features.distinctSums }, 1)
          : null,
      );
      const where: Expr = { ...infinite, kind: 'compare', op: '<', left: n(null), right: number(choices.between(1, 8)) };
      const next: Expr = { kind: 'arithmetic', op: '+', left: n(null), right: number(choices.between(1, 2)), ...bounded };
      step = select(next, { kind: 'table', name, alias: name }, where);
    }
    const body: BodyNode = { kind: 'set-operation', op, left: base, right: step };
    const query: QueryNode = { kind: 'query', with: [], body, asOf: null, orderBy: [], limit: null };
    const common: CommonNode = { kind: 'common', name, columns: ['n'], recursive: true, query };
    return { common, relation: { name, columns: [{ ...bounded, name: 'n' }], rows: op === 'union' ? 24 : table.rows * 10 } };
  }
}

function columnFrom(table: string | null, name: string, facts: Facts): ColumnNode {
  return { kind: 'column', table, name, ...factsOf(facts) };
}

function factsOf({ type, size, grain }: Facts): Facts {
  return { type, size, grain };
}

const numeric = ({ type }: Facts): boolean => type === 'integer' || type === 'number';

function hasAggregate(expression: Expr): boolean {
  if (expression.kind === 'aggregate') return true;
  return Object.values(expression).some((value: unknown) =>
    (Array.isArray(value) ? value : [value]).some(
      (each: unknown) =>
        typeof each === 'object' && each !== null && 'kind' in each && each.kind !== 'query' && hasAggregate(each as Expr),
    ),
  );
}

/** Rows of stored tables, one by one. */
function ordinary(select: SelectNode): boolean {
  const ofTables = (source: SourceNode): boolean =>
    source.kind === 'join'
      ? source.using === undefined && ofTables(source.left) && ofTables(source.right)
      : source.kind === 'table' && /^T\d/.test(source.name);
  return (
    select.groupBy.length === 0 &&
    !select.having &&
    !select.items.some(({ expression }) => hasAggregate(expression)) &&
    ofTables(select.from)
  );
}

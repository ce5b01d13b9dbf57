/** FROM to a plan: scans, subqueries, views and common tables, and the joins between them. */
import { didYouMean } from '../../errors.ts';
import type { TypeDefinition } from '../../log/entry.ts';
import { systemColumns } from '../../log/value.ts';
import { type ReadableColumn, shownColumn, splitTypeName } from '../../projections/access-paths.ts';
import { bindPredicate, type ExpressionContext } from '../expressions/bind-expression.ts';
import type { PlanColumn, PlanNode } from '../logical-plan.ts';
import { at } from '../places.ts';
import type { Place, Query, Slot, Source } from '../statement.ts';
import { type BoundQuery, type BoundSource, type CommonName, type Environment, noMasks } from './environment.ts';
import type { OutputType } from './outputs.ts';
import { Scope } from './scope.ts';
import { bindFunction } from './table-functions.ts';

export interface SourceRequest {
  readonly environment: Environment;
  readonly names: readonly CommonName[];
  readonly outer: readonly Scope[];
  /** Where pages of a type's rows go on. */
  readonly after: Slot | null;
  readonly bindQuery: (query: Query, names: readonly CommonName[]) => BoundQuery;
  /** What expressions over these tables may hold. */
  readonly contextOf: (scope: Scope) => ExpressionContext;
}

/** Tables that one FROM may join. */
const tablesMax = 64;

export function bindSource(source: Source, request: SourceRequest): BoundSource {
  const bound = new SourceBinder(request).bind(source);
  const seen = new Set<string>();
  for (const { name } of bound.tables) {
    if (name !== null && seen.has(name)) {
      throw at('REL_INVALID', `${JSON.stringify(name)} stands in FROM twice: give each an alias of its own`, source.place);
    }
    if (name !== null) seen.add(name);
  }
  return bound;
}

/** System columns first, then properties in order; a declared `id` keeps its declared type. */
function readableColumns(definition: TypeDefinition): ReadableColumn[] {
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

class SourceBinder {
  readonly #request: SourceRequest;
  #tables = 0;

  constructor(request: SourceRequest) {
    this.#request = request;
  }

  bind(source: Source): BoundSource {
    switch (source.kind) {
      case 'table':
        this.#count(source);
        return this.#table(source);
      case 'subquery': {
        this.#count(source);
        return derived(this.#request.bindQuery(source.query, this.#request.names), source.alias);
      }
      case 'join':
        return this.#join(source);
      case 'function':
        return bindFunction(source, this.#request.environment, (type) => this.#ranked(type, source.place));
    }
  }

  #table(source: Extract<Source, { kind: 'table' }>): BoundSource {
    const { environment, names } = this.#request;
    const name = source.alias ?? splitTypeName(source.name)?.type ?? source.name;
    const common = names.findLast((each) => each.name === source.name);
    if (common) return derived(common.bind(source.place), name);
    const definition = environment.catalog.type(source.name);
    if (definition) return this.#scan(source.name, definition, name);
    const served = environment.request.servedView?.(source.name);
    if (served) return this.#served(source.name, served, name);
    const view = environment.request.views?.(source.name);
    // A view stands for itself: it sees no common table of the statement that names it.
    if (view) return derived(this.#request.bindQuery(environment.adopt(view), []), name);
    throw this.#unknownType(source.name, source.place);
  }

  #unknownType(name: string, place: Place): Error {
    const types = this.#request.environment.catalog.types();
    const guess = didYouMean(
      name,
      types.map((type) => type.name),
    );
    return at('REL_UNKNOWN_TYPE', `type ${JSON.stringify(name)} is not registered${guess}`, place);
  }

  #served(view: string, columns: readonly PlanColumn[], name: string): BoundSource {
    const about = { type: view, primaryKey: null, masked: noMasks };
    const node: PlanNode = { kind: 'scan', ...about, columns, keys: null, zones: [], after: null };
    return derived({ node, columns }, name);
  }

  #ranked(name: string, place: Place): BoundSource {
    const definition = this.#request.environment.catalog.type(name);
    if (!definition) throw this.#unknownType(name, place);
    return this.#scan(name, definition, name);
  }

  /** `type` is the name that the statement gives it: another tenant's stands for that tenant's rows alone. */
  #scan(type: string, definition: TypeDefinition, name: string): BoundSource {
    this.#request.environment.objectTypes.add(type);
    const masked = this.#request.environment.masked(type);
    const columns = readableColumns(definition).map(({ name: column, type: of }): PlanColumn => ({ name: column, type: of }));
    const shown: PlanColumn[] = [];
    const named = columns.map((column): OutputType => {
      const kind = masked.get(column.name);
      if (kind === undefined) return column;
      return { ...column, masked: kind, shown: columns.length + shown.push({ ...column, name: shownColumn(column.name) }) - 1 };
    });
    const node: PlanNode = {
      kind: 'scan',
      type,
      primaryKey: definition.primaryKey,
      masked,
      columns: [...columns, ...shown],
      keys: null,
      zones: [],
      after: this.#request.after,
    };
    return { node, tables: [{ name, type, columns: named, first: 0 }] };
  }

  /** The whole condition is the join's residual: the passes take it apart. */
  #join(source: Extract<Source, { kind: 'join' }>): BoundSource {
    const left = this.bind(source.left);
    const right = this.bind(source.right);
    const width = left.node.columns.length;
    const tables = [...left.tables, ...right.tables.map((table) => ({ ...table, first: table.first + width }))];
    const context = this.#request.contextOf(new Scope(tables, this.#request.outer));
    const node: PlanNode = {
      kind: 'join',
      type: source.type,
      left: left.node,
      right: right.node,
      leftKeys: [],
      rightKeys: [],
      residual: bindPredicate(source.on, context),
      build: 'right',
      columns: [...left.node.columns, ...right.node.columns],
    };
    return { node, tables };
  }

  #count(source: Source): void {
    if (++this.#tables > tablesMax) throw at('REL_PARSE', `FROM joins more than ${tablesMax} tables`, source.place);
  }
}

/** A column of bare NULLs keeps that type, whatever it leaves as. */
function derived({ node, columns }: BoundQuery, name: string | null): BoundSource {
  return { node, tables: [{ name, type: null, columns, first: 0 }] };
}

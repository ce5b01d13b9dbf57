/** State shared by the parts of one binding: the statement's literals, the catalog, and what the parts add to the plan. */
import type { CatalogueFunctions } from '../expressions/functions/catalogue.ts';
import type { MaskKind } from '../../log/entries/entry.ts';
import type { ColumnType } from '../../log/values/value.ts';
import type { CatalogReader } from '../../projections/access-paths.ts';
import type { Caveat } from '../expressions/comparison-notices.ts';
import type { Guard } from '../expressions/bound-expression.ts';
import type { LookupTable } from '../expressions/lookup-table.ts';
import type { PlanColumn, PlanNode, Subquery, VirtualNode } from '../logical-plan.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { AsOf, Dialect, Literal, Location, Query } from '../syntax/statement.ts';
import type { OutputType } from './output-columns.ts';
import type { RankingRule } from './ranking.ts';
import type { ScopeTable } from './scope.ts';

/** A view: its query and the literals that its slots number. */
export interface ViewDefinition {
  readonly query: Query;
  readonly literals: readonly Literal[];
}

export interface BindRequest {
  readonly query: Query;
  readonly withProvenance: boolean;
  /** `spec` where this is absent. */
  readonly dialect?: Dialect;
  readonly literals: readonly Literal[];
  readonly catalog: CatalogReader;
  /** Views by name, where the caller sees any. A type of the same name comes first. */
  readonly views?: (name: string) => ViewDefinition | undefined;
  /** Columns of a type that are masked for the caller; none are where this is absent. */
  readonly masksOf?: (type: string) => ReadonlyMap<string, MaskKind>;
  /** Whether a column is masked in every row; where this is absent, each that is masked in some. */
  readonly hides?: (type: string, column: string) => boolean;
  /** Whether errors may name this type and its columns. Absent: errors may name all of them. */
  readonly offers?: (type: string) => boolean;
  /** Views that the caller sees. */
  readonly viewNames?: () => readonly string[];
  /** The rules that rank a type's rows in a search without RANK BY, by the type's name. */
  readonly rankings?: (type: string) => readonly RankingRule[] | undefined;
  readonly lookups?: (name: string) => LookupTable | undefined;
  /** Virtual relations, which have no stored rows, by the name that a statement of the wide dialect gives them. */
  readonly virtual?: (name: string) => VirtualNode | undefined;
  readonly catalogue?: CatalogueFunctions;
  /** Columns of a view whose rows the snapshot serves as those of a table by its name. */
  readonly servedView?: (name: string) => readonly PlanColumn[] | undefined;
}

/** The rows and columns that a query yields. Columns that show masked ones stand behind those in the rows. */
export interface BoundQuery {
  readonly node: PlanNode;
  readonly columns: readonly OutputType[];
}

/** The rows of FROM, and the tables that column names refer to. */
export interface BoundSource {
  readonly node: PlanNode;
  readonly tables: readonly ScopeTable[];
}

/** A common table within reach: bound anew wherever it is named, so that each place reads only what it needs. */
export interface CommonName {
  readonly name: string;
  /** The rows of a recursion's round before: they are there while it runs, and nowhere else. */
  readonly working: boolean;
  bind(location: Location): BoundQuery;
}

/** Properties of entities whose types json does not tell, by the type of the row. */
export class EntityTypes {
  readonly byType = new Map<string, Map<string, ColumnType>>();

  add(type: string, property: string, propertyType: ColumnType): void {
    if (propertyType !== 'timestamp' && propertyType !== 'number' && propertyType !== 'vector') return;
    const entityProperties = this.byType.get(type) ?? new Map<string, ColumnType>();
    this.byType.set(type, entityProperties.set(property, propertyType));
  }
}

/** A view or a common table named often, or by others that are, unfolds; this is where that ends. */
const unfoldedSelectsMax = 500;

export const noMasks: ReadonlyMap<string, MaskKind> = new Map();

export class Environment {
  readonly request: BindRequest;
  readonly catalog: CatalogReader;
  readonly asOf: AsOf | null;
  readonly guards: Guard[] = [];
  readonly subqueries: Subquery[] = [];
  readonly objectTypes = new Set<string>();
  readonly viewLiterals: Literal[] = [];
  readonly caveats: Caveat[] = [];
  readonly entityTypes = new EntityTypes();
  #boundLiterals: readonly Literal[];
  #selectCount = 0;
  #recursionCount = 0;
  #levelCount = 0;

  constructor(request: BindRequest) {
    this.request = request;
    this.catalog = request.catalog;
    this.asOf = request.query.asOf;
    this.#boundLiterals = request.literals;
  }

  /** Literals of the statement, then those of the views that it names. */
  get literals(): readonly Literal[] {
    return this.#boundLiterals;
  }

  /** Brings a view's literals in; its query comes back with slots that number them here. */
  adopt(adoptedView: ViewDefinition): Query {
    const slotOffset = this.#boundLiterals.length;
    this.viewLiterals.push(...adoptedView.literals);
    this.#boundLiterals = [...this.#boundLiterals, ...adoptedView.literals];
    return shiftSlots(adoptedView.query, slotOffset);
  }

  get wide(): boolean {
    return (this.request.dialect ?? 'spec') !== 'spec';
  }

  get catalogue(): CatalogueFunctions | undefined {
    return this.wide ? this.request.catalogue : undefined;
  }

  masksOf(type: string): ReadonlyMap<string, MaskKind> {
    return this.request.masksOf?.(type) ?? noMasks;
  }

  /** Masked in every row that the caller may see. */
  hides(type: string, column: string): boolean {
    return this.masksOf(type).has(column) && (this.request.hides?.(type, column) ?? true);
  }

  offers(type: string): boolean {
    return this.request.offers?.(type) ?? true;
  }

  lookup(name: string): LookupTable | undefined {
    return this.request.lookups?.(name);
  }

  /** Adds the notice about typed edges once, for callers on a graph door. */
  noteTypedEdges(): void {
    const isAlreadyNoted = this.request.dialect !== 'graph' || this.caveats.some(({ kind }) => kind === 'typed-edges');
    if (!isAlreadyNoted) this.caveats.push({ kind: 'typed-edges' });
  }

  countSelect(location: Location): void {
    if (++this.#selectCount > unfoldedSelectsMax) {
      throw errorAt('REL_PARSE', `views and common tables unfold to more than ${unfoldedSelectsMax} SELECTs`, location);
    }
  }

  /** Its number. */
  addSubquery(subquery: Subquery): number {
    return this.subqueries.push(subquery) - 1;
  }

  /** Tells the queries that subselects stand in apart. */
  nextLevel(): number {
    return ++this.#levelCount;
  }

  recursionName(name: string): string {
    return `${name}#${++this.#recursionCount}`;
  }
}

/** Copies a tree with every slot shifted. */
export function shiftSlots<T>(tree: T, offset: number): T {
  if (Array.isArray(tree)) return tree.map((subtree: unknown) => shiftSlots(subtree, offset)) as T;
  if (tree === null || typeof tree !== 'object') return tree;
  const shiftedTree: Record<string, unknown> = {};
  for (const [key, member] of Object.entries(tree)) {
    shiftedTree[key] = key === 'slot' && typeof member === 'number' ? member + offset : shiftSlots(member as unknown, offset);
  }
  return shiftedTree as T;
}

/** A query in an expression is no part of a round. */
export function outsideRecursion(common: CommonName): CommonName {
  if (!common.working) return common;
  return { ...common, bind: (location) => refuseMisplaced(common.name, 'a query in an expression', location) };
}

export function refuseMisplaced(name: string, misplacedIn: string, location: Location): never {
  throw errorAt(
    'REL_INVALID',
    `the recursive table ${JSON.stringify(name)} can't stand in ${misplacedIn}`,
    location,
    'recursion-misplaced',
  );
}

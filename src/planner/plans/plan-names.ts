/**
 * The part of a plan's key beside its statement: the meaning of each name to the caller. Names are of types, views and lookup
 * tables; a type counts by its definition and by which of its columns are masked, a view by its text and by what the names in
 * that mean. Caller, door, purpose and time are no part of it: two tenants for whom the names mean the same share a plan.
 */
import { LRUCache } from 'lru-cache';
import { ServiceError } from '../../errors.ts';
import { compareText } from '../../log/values/value.ts';
import type { MaskKind, TypeDefinition } from '../../log/entries/entry.ts';
import type { GovernedSnapshot } from '../../governance/gate-contract.ts';
import type { ViewDefinition } from '../binding/environment.ts';
import { nearestView } from '../languages/view-source.ts';
import type { LookupTable } from '../expressions/lookup-table.ts';
import { lexStatement } from '../languages/sql-lexer.ts';
import { parseLexed } from '../languages/sql-parser.ts';
import { functionOfTable } from '../table-functions/all.ts';
import type { Words } from '../calls/argument-spec.ts';
import { typesCalled, wordLiterals } from '../table-functions/statement-call.ts';
import { nowhere } from '../syntax/error-location.ts';
import { byText } from '../statements/statement-source.ts';
import type { Literal, Query } from '../syntax/statement.ts';
import type { ServedView } from '../continuous/views/materialized-views.ts';

/** Names that a query reads by, wherever they stand in it; common tables of its own may be among them. */
export interface ReadNames {
  readonly tables: readonly string[];
  readonly lookups: readonly string[];
  /** A table function stands among them: it names types in its own way. */
  readonly calls: boolean;
  /** Walks and degrees of nodes, which any type has a part in; and the literals that say which way edges are counted. */
  readonly degrees: readonly number[] | null;
}

/** A query, the literals that its slots number, and its names. */
export interface Read extends ViewDefinition {
  readonly names: ReadNames;
}

export function namesRead(query: Query): ReadNames {
  const tableNames = new Set<string>();
  const lookupNames = new Set<string>();
  let hasFunctionCalls = false;
  let degreeSlots: readonly number[] | null = null;
  // Trees are plain data: a kind of node that comes later is found wherever it stands.
  const openNodes: object[] = [query];
  for (let queryNode = openNodes.pop(); queryNode !== undefined; queryNode = openNodes.pop()) {
    const {
      kind,
      name,
      arguments: callArguments,
    } = queryNode as { kind?: unknown; name?: unknown; arguments?: readonly unknown[] };
    if (kind === 'table') tableNames.add(String(name));
    if (kind === 'function') hasFunctionCalls = true;
    if (kind === 'walk' || kind === 'graph-rows' || kind === 'entities') degreeSlots ??= [];
    if (kind === 'call' && name === 'DEGREE') degreeSlots = [...(degreeSlots ?? []), ...degreeWords(callArguments)];
    if (kind === 'call' && name === 'LOOKUP') for (const each of namesIn(callArguments)) lookupNames.add(each);
    // A list of literals may be long: they are left where they are.
    for (const childNode of (Array.isArray(queryNode) ? queryNode : Object.values(queryNode)) as unknown[])
      if (typeof childNode === 'object' && childNode !== null && (childNode as { kind?: unknown }).kind !== 'literal')
        openNodes.push(childNode);
  }
  return { tables: [...tableNames].sort(), lookups: [...lookupNames].sort(), calls: hasFunctionCalls, degrees: degreeSlots };
}

function degreeWords(degreeArguments: readonly unknown[] = []): readonly number[] {
  return degreeArguments.flatMap((argument) => {
    const { value } = argument as { value: { kind: string; slot?: number } };
    return value.kind === 'literal' ? [value.slot!] : [];
  });
}

function namesIn(lookupArguments: readonly unknown[] = []): readonly string[] {
  return lookupArguments.flatMap((argument) => {
    const { value } = argument as { value: { kind: string; name?: string } };
    return value.kind === 'column' ? [value.name!] : [];
  });
}

/**
 * Texts that stand in keys as numbers. No number is used twice, so an evicted one never means another text. No more than 4,096: by
 * their size, since for a number of them the cache would take its room at once.
 */
const namedTextsMax = { maxSize: 8 << 20, sizeCalculation: (_: number, text: string): number => Math.max(text.length, 2_048) };

export class PlanNames {
  readonly #lookupTableOf: (path: string | null, name: string) => LookupTable | undefined;
  readonly #numbersByText = new LRUCache<string, number>(namedTextsMax);
  readonly #viewsBySql = new LRUCache<string, Read>({ max: 256, ...byText });
  #numbersByObject = new WeakMap<object, number>();
  #lastNumber = 0;

  constructor(lookups: (path: string | null, name: string) => LookupTable | undefined) {
    this.#lookupTableOf = lookups;
  }

  clear(): void {
    this.#numbersByText.clear();
    this.#viewsBySql.clear();
    this.#numbersByObject = new WeakMap();
  }

  /** Snapshots of one key give a statement one plan. Throws what naming a type that is out of reach throws. */
  keyOf(readQuery: Read, snapshot: GovernedSnapshot, served: ServedView | null): string {
    return this.#namesKeyOf(readQuery, snapshot, served, noNames);
  }

  #namesKeyOf(
    { query, literals, names }: Read,
    snapshot: GovernedSnapshot,
    served: ServedView | null,
    viewsAround: ReadonlySet<string>,
  ): string {
    let namesKey = '';
    for (const name of names.tables) namesKey += this.#tableNameKey(name, snapshot, served, viewsAround);
    for (const name of names.lookups) {
      const lookupTable = this.#lookupTableOf(snapshot.caller.path, name);
      namesKey += lookupTable === undefined ? '\0-' : `\0l${this.#numberOf(lookupTable)}`;
    }
    if (names.degrees) {
      namesKey += `\0d${JSON.stringify(names.degrees.map((slot) => String(literals[slot])))}`;
      for (const { name } of snapshot.catalog.types()) namesKey += this.#tableNameKey(name, snapshot, served, viewsAround);
    }
    if (!names.calls) return namesKey;
    const calledTypes = calledTypesOf(query, literals, snapshot);
    // Binding reports the error, with its location in the current text.
    if (calledTypes === null) return `${namesKey}\0-`;
    namesKey += `\0${JSON.stringify([...wordLiterals(query, literals), ...calledTypes].map(String))}`;
    for (const name of calledTypes)
      namesKey += this.#tableNameKey(name, snapshot, served, viewsAround) + hiddenColumnsKey(name, snapshot);
    return namesKey;
  }

  #tableNameKey(name: string, snapshot: GovernedSnapshot, served: ServedView | null, viewsAround: ReadonlySet<string>): string {
    const definition = snapshot.catalog.type(name);
    if (definition !== undefined) {
      const maskedColumns = snapshot.masksOf(name);
      const typeKey = `\0t${this.#definitionNumber(definition)}`;
      return maskedColumns.size === 0 ? typeKey : `${typeKey}.${this.#maskNumber(maskedColumns)}`;
    }
    if (name === served?.name) return `\0s${this.#textNumber(JSON.stringify(served.columns))}`;
    const nearView = nearestView(snapshot.views, name);
    const tableFunction = nearView === undefined ? functionOfTable(name) : undefined;
    if (tableFunction)
      return `\0f${this.#textNumber(JSON.stringify(tableFunction.types({ words: noWords, catalog: snapshot.catalog })))}`;
    if (nearView === undefined) return '\0-';
    // A view that reads itself is refused when it is bound.
    if (viewsAround.has(name)) return '\0r';
    const viewRead = this.#viewOf(nearView.sql);
    const viewKey = viewRead === null ? '' : this.#namesKeyOf(viewRead, snapshot, null, new Set([...viewsAround, name]));
    return `\0v${this.#textNumber(nearView.sql)}(${viewKey})`;
  }

  /** The query that a name stands for. */
  view(snapshot: GovernedSnapshot, name: string): ViewDefinition | undefined {
    const nearView = nearestView(snapshot.views, name);
    return (nearView && this.#viewOf(nearView.sql)) ?? undefined;
  }

  /** null: its text is no query. */
  #viewOf(sql: string): Read | null {
    let viewRead = this.#viewsBySql.get(sql);
    if (viewRead === undefined) {
      const { statement, parameters } = parseLexed(lexStatement(sql));
      if (statement.kind !== 'query') return null;
      viewRead = { query: statement.query, literals: parameters, names: namesRead(statement.query) };
      this.#viewsBySql.set(sql, viewRead);
    }
    return viewRead;
  }

  /** The definition as a number, independent of its version. */
  #definitionNumber(definition: TypeDefinition): number {
    return (
      this.#numbersByObject.get(definition) ??
      this.#rememberNumber(definition, JSON.stringify({ ...definition, ontologyVersion: 0 }))
    );
  }

  #maskNumber(masked: ReadonlyMap<string, MaskKind>): number {
    return (
      this.#numbersByObject.get(masked) ??
      this.#rememberNumber(masked, JSON.stringify([...masked].sort(([a], [b]) => compareText(a, b))))
    );
  }

  #rememberNumber(object: object, text: string): number {
    const textNumber = this.#textNumber(text);
    this.#numbersByObject.set(object, textNumber);
    return textNumber;
  }

  #numberOf(object: object): number {
    let objectNumber = this.#numbersByObject.get(object);
    if (objectNumber === undefined) this.#numbersByObject.set(object, (objectNumber = ++this.#lastNumber));
    return objectNumber;
  }

  #textNumber(text: string): number {
    let textNumber = this.#numbersByText.get(text);
    if (textNumber === undefined) this.#numbersByText.set(text, (textNumber = ++this.#lastNumber));
    return textNumber;
  }
}

/** A call names its type by a value, or implies one by the catalog. Null: it is malformed. */
function calledTypesOf(query: Query, literals: readonly Literal[], { catalog }: GovernedSnapshot): readonly string[] | null {
  try {
    return typesCalled(query, literals, catalog);
  } catch (error) {
    if (error instanceof ServiceError) return null;
    throw error;
  }
}

/** Columns that are masked in every row: a call leaves them out, or refuses them, where it takes others of which some cells show. */
function hiddenColumnsKey(type: string, snapshot: GovernedSnapshot): string {
  if (snapshot.catalog.type(type) === undefined) return '';
  const hiddenColumns = [...snapshot.masksOf(type).keys()].filter((column) => snapshot.hides(type, column));
  return hiddenColumns.length === 0 ? '' : `\0h${JSON.stringify(hiddenColumns.sort())}`;
}

const noNames: ReadonlySet<string> = new Set();

/** A call without arguments has none. */
const noWords: Words = { word: () => undefined, locationOf: () => nowhere, given: noNames };

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
  const tables = new Set<string>();
  const lookups = new Set<string>();
  let calls = false;
  let degrees: readonly number[] | null = null;
  // Trees are plain data: a kind of node that comes later is found wherever it stands.
  const open: object[] = [query];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    const { kind, name, arguments: given } = node as { kind?: unknown; name?: unknown; arguments?: readonly unknown[] };
    if (kind === 'table') tables.add(String(name));
    if (kind === 'function') calls = true;
    if (kind === 'walk' || kind === 'graph-rows' || kind === 'entities') degrees ??= [];
    if (kind === 'call' && name === 'DEGREE') degrees = [...(degrees ?? []), ...degreeWords(given)];
    if (kind === 'call' && name === 'LOOKUP') for (const each of namesIn(given)) lookups.add(each);
    // A list of literals may be long: they are left where they are.
    for (const inner of (Array.isArray(node) ? node : Object.values(node)) as unknown[])
      if (typeof inner === 'object' && inner !== null && (inner as { kind?: unknown }).kind !== 'literal') open.push(inner);
  }
  return { tables: [...tables].sort(), lookups: [...lookups].sort(), calls, degrees };
}

function degreeWords(given: readonly unknown[] = []): readonly number[] {
  return given.flatMap((argument) => {
    const { value } = argument as { value: { kind: string; slot?: number } };
    return value.kind === 'literal' ? [value.slot!] : [];
  });
}

function namesIn(given: readonly unknown[] = []): readonly string[] {
  return given.flatMap((argument) => {
    const { value } = argument as { value: { kind: string; name?: string } };
    return value.kind === 'column' ? [value.name!] : [];
  });
}

/**
 * Texts that stand in keys as numbers. No number is used twice, so an evicted one never means another text. No more than 4,096: by
 * their size, since for a number of them the cache would take its room at once.
 */
const textsKept = { maxSize: 8 << 20, sizeCalculation: (_: number, text: string): number => Math.max(text.length, 2_048) };

export class PlanNames {
  readonly #lookups: (path: string | null, name: string) => LookupTable | undefined;
  readonly #texts = new LRUCache<string, number>(textsKept);
  readonly #views = new LRUCache<string, Read>({ max: 256, ...byText });
  #objects = new WeakMap<object, number>();
  #next = 0;

  constructor(lookups: (path: string | null, name: string) => LookupTable | undefined) {
    this.#lookups = lookups;
  }

  clear(): void {
    this.#texts.clear();
    this.#views.clear();
    this.#objects = new WeakMap();
  }

  /** Snapshots of one key give a statement one plan. Throws what naming a type that is out of reach throws. */
  keyOf(read: Read, snapshot: GovernedSnapshot, served: ServedView | null): string {
    return this.#keyOf(read, snapshot, served, none);
  }

  #keyOf(
    { query, literals, names }: Read,
    snapshot: GovernedSnapshot,
    served: ServedView | null,
    within: ReadonlySet<string>,
  ): string {
    let key = '';
    for (const name of names.tables) key += this.#tableKey(name, snapshot, served, within);
    for (const name of names.lookups) {
      const table = this.#lookups(snapshot.caller.path, name);
      key += table === undefined ? '\0-' : `\0l${this.#numberOf(table)}`;
    }
    if (names.degrees) {
      key += `\0d${JSON.stringify(names.degrees.map((slot) => String(literals[slot])))}`;
      for (const { name } of snapshot.catalog.types()) key += this.#tableKey(name, snapshot, served, within);
    }
    if (!names.calls) return key;
    const called = calledBy(query, literals, snapshot);
    // Binding reports the error, with its location in the current text.
    if (called === null) return `${key}\0-`;
    key += `\0${JSON.stringify([...wordLiterals(query, literals), ...called].map(String))}`;
    for (const name of called) key += this.#tableKey(name, snapshot, served, within) + hiddenKey(name, snapshot);
    return key;
  }

  #tableKey(name: string, snapshot: GovernedSnapshot, served: ServedView | null, within: ReadonlySet<string>): string {
    const definition = snapshot.catalog.type(name);
    if (definition !== undefined) {
      const masked = snapshot.masksOf(name);
      const key = `\0t${this.#definitionOf(definition)}`;
      return masked.size === 0 ? key : `${key}.${this.#maskOf(masked)}`;
    }
    if (name === served?.name) return `\0s${this.#text(JSON.stringify(served.columns))}`;
    const view = nearestView(snapshot.views, name);
    const call = view === undefined ? functionOfTable(name) : undefined;
    if (call) return `\0f${this.#text(JSON.stringify(call.types({ words: noWords, catalog: snapshot.catalog })))}`;
    if (view === undefined) return '\0-';
    // A view that reads itself is refused when it is bound.
    if (within.has(name)) return '\0r';
    const known = this.#viewOf(view.sql);
    const inside = known === null ? '' : this.#keyOf(known, snapshot, null, new Set([...within, name]));
    return `\0v${this.#text(view.sql)}(${inside})`;
  }

  /** The query that a name stands for. */
  view(snapshot: GovernedSnapshot, name: string): ViewDefinition | undefined {
    const nearest = nearestView(snapshot.views, name);
    return (nearest && this.#viewOf(nearest.sql)) ?? undefined;
  }

  /** null: its text is no query. */
  #viewOf(sql: string): Read | null {
    let known = this.#views.get(sql);
    if (known === undefined) {
      const { statement, parameters } = parseLexed(lexStatement(sql));
      if (statement.kind !== 'query') return null;
      known = { query: statement.query, literals: parameters, names: namesRead(statement.query) };
      this.#views.set(sql, known);
    }
    return known;
  }

  /** The definition as a number, independent of its version. */
  #definitionOf(definition: TypeDefinition): number {
    return this.#objects.get(definition) ?? this.#remember(definition, JSON.stringify({ ...definition, ontologyVersion: 0 }));
  }

  #maskOf(masked: ReadonlyMap<string, MaskKind>): number {
    return this.#objects.get(masked) ?? this.#remember(masked, JSON.stringify([...masked].sort(([a], [b]) => compareText(a, b))));
  }

  #remember(object: object, text: string): number {
    const number = this.#text(text);
    this.#objects.set(object, number);
    return number;
  }

  #numberOf(object: object): number {
    let number = this.#objects.get(object);
    if (number === undefined) this.#objects.set(object, (number = ++this.#next));
    return number;
  }

  #text(text: string): number {
    let number = this.#texts.get(text);
    if (number === undefined) this.#texts.set(text, (number = ++this.#next));
    return number;
  }
}

/** A call names its type by a value, or implies one by the catalog. Null: it is malformed. */
function calledBy(query: Query, literals: readonly Literal[], { catalog }: GovernedSnapshot): readonly string[] | null {
  try {
    return typesCalled(query, literals, catalog);
  } catch (error) {
    if (error instanceof ServiceError) return null;
    throw error;
  }
}

/** Columns that are masked in every row: a call leaves them out, or refuses them, where it takes others of which some cells show. */
function hiddenKey(type: string, snapshot: GovernedSnapshot): string {
  if (snapshot.catalog.type(type) === undefined) return '';
  const hidden = [...snapshot.masksOf(type).keys()].filter((column) => snapshot.hides(type, column));
  return hidden.length === 0 ? '' : `\0h${JSON.stringify(hidden.sort())}`;
}

const none: ReadonlySet<string> = new Set();

/** A call without arguments has none. */
const noWords: Words = { word: () => undefined, locationOf: () => nowhere, given: none };

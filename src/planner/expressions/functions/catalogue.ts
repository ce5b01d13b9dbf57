/**
 * The binder's access to the catalogue of Postgres: its functions, and casts to and from its types. Their values are cells that
 * carry the name of their type: an object's name is a number, an array is the text that Postgres writes for it.
 */
import type { ColumnType } from '../../../log/values/value.ts';
import type { Signature } from './scalar-function.ts';

export interface CatalogueCall {
  readonly signature: Signature;
  readonly type: ColumnType;
  /** The type of Postgres that it yields. */
  readonly wire: string;
}

/** Names of calls that yield another value each time: no answer with one follows from the log alone. */
export const drawingFunctions: ReadonlySet<string> = new Set(['RANDOM', 'SETSEED', 'GEN_RANDOM_UUID']);

export interface CatalogueFunctions {
  /** Finds a function by name in lower case and types of arguments; null: none takes these. */
  call(name: string, given: readonly string[]): CatalogueCall | null;
  /** A call that yields several rows: all of them as an array, and what an element is. */
  set(
    name: string,
    given: readonly string[],
  ): { readonly array: CatalogueCall; readonly element: Pick<CatalogueCall, 'type' | 'wire'> } | null;
  /** Whether a function yields several rows. */
  isSet(name: string): boolean;
  cast(from: string, to: string): CatalogueCall | null;
  /** The name that Postgres keeps of a type as it is written; null: it is none that is known here. */
  typeNamed(typeName: string): string | null;
  /** Whether values of it are cells like any other: no names of things, no arrays. */
  isPlain(type: string): boolean;
  /** Whether its values name things of the catalogue. */
  isReference(type: string): boolean;
  /** The type that values of both have together; null: there is none. */
  common(a: string, b: string): string | null;
  elementOf(type: string): string | null;
}

/** A column that rows of one ingest fall into, and the rules by which a name in a body becomes one. */
import { didYouMean, ServiceError } from '../../errors.ts';
import type { TypeDefinition } from '../../log/entries/entry.ts';
import { type ColumnType, checkIdentifier, limits, systemColumns } from '../../log/values/value.ts';
import type { VectorBuilder } from '../../log/values/vector-builder.ts';
import type { RowTape } from './row-tape.ts';

export interface Column {
  readonly name: string;
  /** Null until a value is seen. */
  type: ColumnType | null;
  /** False: an open type's column, which widens instead of refusing. */
  readonly fixed: boolean;
  /** An open type's own declaration of the column. */
  readonly declared: ColumnType | null;
  /** Length of the vectors; 0 until one is seen. */
  dims: number;
  /** Integer tokens are taken as their decimal text (`_pk`, and an `id` declared as string). */
  readonly integersAsText: boolean;
  /** A property that the type did not have before. */
  readonly added: boolean;
  /** Bytes of text that the latest batch had in it. */
  heapBytes: number;
  /** Cell kinds, one bit each, of a column that waits for its whole batch to be typed. */
  kindsSeen: number;
  builder: VectorBuilder | null;
  /** Scalars of different kinds came in: they are kept as text. */
  mixed: boolean;
}

/** Misspelt names of one body that a guess is kept for. */
const guessesMax = 64;

export class ColumnDefiner {
  readonly #definition: TypeDefinition | null;
  readonly #tape: RowTape;
  readonly #guesses = new Map<string, string>();
  /** Properties that the type has once these columns are written. */
  #properties: number;

  constructor(definition: TypeDefinition | null, tape: RowTape) {
    this.#definition = definition;
    this.#tape = tape;
    this.#properties = definition === null ? 0 : Object.keys(definition.properties).length;
  }

  /** Null where the row may not name the column; then the tape says why. */
  define(name: string): Column | null {
    const tape = this.#tape;
    try {
      checkIdentifier(name, 'a property name');
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      tape.refuse('REL_INVALID', error.message);
      return null;
    }
    const make = (type: ColumnType | null, fixed: boolean, dims = 0, integersAsText = false): Column => ({
      name,
      type,
      fixed,
      declared: null,
      dims,
      integersAsText,
      added: false,
      heapBytes: 0,
      kindsSeen: 0,
      builder: null,
      mixed: false,
    });
    const definition = this.#definition;
    const property = definition && Object.hasOwn(definition.properties, name) ? definition.properties[name] : undefined;
    if (property) {
      // Timestamps and vectors are never inferred, so someone declared them: a misfit is refused even in an open type.
      const fixed = !definition!.open || property.type === 'timestamp' || property.type === 'vector';
      const column = make(property.type, fixed, property.dims, name === 'id' && property.type === 'string');
      return fixed ? column : { ...column, declared: property.type };
    }
    if (name === '_pk') return make('string', true, 0, true);
    if (name === 'id') return definition && !definition.open ? make('string', true, 0, true) : make(null, false);
    if (name === 'valid_from' || name === 'valid_to') return make('timestamp', true);
    if (name === '_provenance') return make('json', true);
    const embedding = name.startsWith('_emb_');
    if (!embedding && (name.startsWith('_') || Object.hasOwn(systemColumns, name))) {
      tape.refuse('REL_INVALID', `${JSON.stringify(name)} is set by the store and can't be written`);
      return null;
    }
    if (!embedding && definition && !definition.open) {
      tape.refuse('REL_UNKNOWN_COLUMN', `type ${definition.name} has no property ${JSON.stringify(name)}${this.#guess(name)}`);
      return null;
    }
    if (this.#properties >= limits.columnsPerType) {
      tape.refuse('REL_INVALID', `a type has at most ${limits.columnsPerType} properties`);
      return null;
    }
    this.#properties++;
    return { ...(embedding ? make('vector', true) : make(null, false)), added: true };
  }

  /** Finds a suggestion once per unknown name: many rows may have the same mistake. */
  #guess(name: string): string {
    let guess = this.#guesses.get(name);
    if (guess === undefined) {
      guess = didYouMean(name, Object.keys(this.#definition!.properties));
      if (this.#guesses.size < guessesMax) this.#guesses.set(name, guess);
    }
    return guess;
  }

  /** The row that named the column was refused. */
  forget({ added }: Column): void {
    if (added) this.#properties--;
  }
}

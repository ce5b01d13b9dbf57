/**
 * Which columns of a type hold identifiers: those that its definition says, of one kind (`identifier` of a property) or of
 * whichever a value is (`identifier` of the type); and those whose name says it, as far as their values are of that kind.
 */
import type { TypeDefinition } from '../../../log/entries/entry.ts';
import type { IdentifierPredicate } from '../../../projections/access-paths.ts';
import {
  canonicalIdentifier,
  identifierForm,
  type IdentifierKind,
  identifiersIn,
  kindOfName,
} from '../../../projections/entity-resolution/identifiers.ts';

export interface IdentifierColumn {
  readonly column: string;
  /** null: a value is of every kind that it fits. */
  readonly kind: IdentifierKind | null;
}

/** In the order of the properties. */
export function identifierColumns({
  properties,
  identifier = [],
  identifierKinds = {},
}: TypeDefinition): readonly IdentifierColumn[] {
  return Object.entries(properties).flatMap(([column, { type }]): IdentifierColumn[] => {
    if (type !== 'string' && type !== 'integer') return [];
    const identifierKind = identifierKinds[column] as IdentifierKind | undefined;
    if (identifierKind !== undefined) return [{ column, kind: identifierKind }];
    if (identifier.includes(column)) return [{ column, kind: null }];
    const named = kindOfName(column);
    return named === null ? [] : [{ column, kind: named }];
  });
}

/** A value that is looked for, in every kind that it may be. */
export class SoughtIdentifier {
  readonly #forms: ReadonlyMap<IdentifierKind, string>;
  readonly #bare: ReadonlyMap<IdentifierKind, string>;

  constructor(value: string) {
    this.#forms = new Map(identifiersIn(value));
    this.#bare = new Map([...this.#forms].map(([kind, form]) => [kind, bare(form)]));
  }

  get forms(): ReadonlyMap<IdentifierKind, string> {
    return this.#forms;
  }

  /** The request to an index of identifiers: a column of one kind has forms of that alone. */
  predicate({ column, kind }: IdentifierColumn): IdentifierPredicate {
    const forms = [...this.#forms].filter(([each]) => kind === null || each === kind);
    return { column, kind, forms: forms.map(([each, form]) => identifierForm(each, form)) };
  }

  /** The kind as which a cell of a column is the value; null where it is another one. */
  kindIn({ kind }: IdentifierColumn, cell: string): IdentifierKind | null {
    if (kind !== null) return this.#is(kind, cell) ? kind : null;
    for (const each of this.#forms.keys()) if (this.#is(each, cell)) return each;
    return null;
  }

  #is(kind: IdentifierKind, cell: string): boolean {
    const form = this.#forms.get(kind);
    return form !== undefined && this.#mayBe(kind, cell) && canonicalIdentifier(kind, cell) === form;
  }

  /** Normalising a cell takes 25 µs: most cells already differ in the letters and digits that every spelling has. */
  #mayBe(kind: IdentifierKind, cell: string): boolean {
    if (kind === 'phone') return bare(cell).includes(this.#bare.get(kind)!.slice(-6));
    if (kind === 'ip' || kind === 'domain' || kind === 'email' || kind === 'plate' || kind === 'id') return true;
    return bare(cell).includes(this.#bare.get(kind)!);
  }
}

function bare(text: string): string {
  return text.replaceAll(/[^a-z\d]/gi, '').toLowerCase();
}

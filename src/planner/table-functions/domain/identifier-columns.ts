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
  return Object.entries(properties).flatMap(([identifierColumn, { type }]): IdentifierColumn[] => {
    if (type !== 'string' && type !== 'integer') return [];
    const identifierKind = identifierKinds[identifierColumn] as IdentifierKind | undefined;
    if (identifierKind !== undefined) return [{ column: identifierColumn, kind: identifierKind }];
    if (identifier.includes(identifierColumn)) return [{ column: identifierColumn, kind: null }];
    const kindByName = kindOfName(identifierColumn);
    return kindByName === null ? [] : [{ column: identifierColumn, kind: kindByName }];
  });
}

/** A value that is looked for, in every kind that it may be. */
export class SoughtIdentifier {
  readonly #identifierForms: ReadonlyMap<IdentifierKind, string>;
  readonly #bareForms: ReadonlyMap<IdentifierKind, string>;

  constructor(soughtValue: string) {
    this.#identifierForms = new Map(identifiersIn(soughtValue));
    this.#bareForms = new Map([...this.#identifierForms].map(([kind, form]) => [kind, bareIdentifier(form)]));
  }

  get forms(): ReadonlyMap<IdentifierKind, string> {
    return this.#identifierForms;
  }

  /** The request to an index of identifiers: a column of one kind has forms of that alone. */
  predicate({ column, kind }: IdentifierColumn): IdentifierPredicate {
    const soughtForms = [...this.#identifierForms].filter(([soughtKind]) => kind === null || soughtKind === kind);
    return { column, kind, forms: soughtForms.map(([soughtKind, form]) => identifierForm(soughtKind, form)) };
  }

  /** The kind as which a cell of a column is the value; null where it is another one. */
  kindIn({ kind }: IdentifierColumn, identifierCell: string): IdentifierKind | null {
    if (kind !== null) return this.#isIdentifier(kind, identifierCell) ? kind : null;
    for (const soughtKind of this.#identifierForms.keys()) if (this.#isIdentifier(soughtKind, identifierCell)) return soughtKind;
    return null;
  }

  #isIdentifier(kind: IdentifierKind, identifierCell: string): boolean {
    const soughtForm = this.#identifierForms.get(kind);
    return (
      soughtForm !== undefined &&
      this.#mayBeIdentifier(kind, identifierCell) &&
      canonicalIdentifier(kind, identifierCell) === soughtForm
    );
  }

  /** Normalising a cell takes 25 µs: most cells already differ in the letters and digits that every spelling has. */
  #mayBeIdentifier(kind: IdentifierKind, identifierCell: string): boolean {
    if (kind === 'phone') return bareIdentifier(identifierCell).includes(this.#bareForms.get(kind)!.slice(-6));
    if (kind === 'ip' || kind === 'domain' || kind === 'email' || kind === 'plate' || kind === 'id') return true;
    return bareIdentifier(identifierCell).includes(this.#bareForms.get(kind)!);
  }
}

function bareIdentifier(identifierText: string): string {
  return identifierText.replaceAll(/[^a-z\d]/gi, '').toLowerCase();
}

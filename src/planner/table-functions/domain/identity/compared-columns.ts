/**
 * Which columns of a type tell whether two of its rows are one thing, and how their cells are compared. Columns of different types are
 * compared where they are of one group: names with names, identifiers of a kind with those of that kind, and others by their name.
 */
import type { TypeDefinition } from '../../../../log/entries/entry.ts';
import type { IdentifierKind } from '../../../../projections/entity-resolution/identifiers.ts';
import { identifierColumns } from '../identifier-columns.ts';
import { type RoleName, roles } from '../roles.ts';

/** A `text` is compared by its words; an equal `reference` speaks for two rows, an unequal one not against them. */
export type Comparison = 'name' | 'text' | 'date' | 'number' | 'identifier' | 'reference';

export interface ComparedColumn {
  readonly column: string;
  readonly group: string;
  readonly comparison: Comparison;
  /** null: cells are of every kind that they fit, or no identifiers. */
  readonly kind: IdentifierKind | null;
}

const nameWords = new Set(
  'name names fullname firstname lastname surname forename givenname familyname middlename given family first last middle alias aliases nickname'.split(
    ' ',
  ),
);
const dateWords = new Set('date dob birth birthdate birthday born birth_date date_of_birth founded registered'.split(' '));
const referenceWords = new Set(
  'id ids ssn nin ref reference number no nr num code isbn issn doi sku upc ean gtin mpn'.split(' '),
);
/** Parts of an address: rows of one household share all of them. */
const placeWords = new Set('street house address addr suburb city town state country postal postcode zip zipcode'.split(' '));
const otherWords = new Set('key uuid guid hash created updated modified source file url image embedding'.split(' '));

/** Roles whose rows are things that have an identity; of the other roles, rows are what happened to these. */
export const identityRoles: ReadonlySet<RoleName> = new Set(['party', 'listing', 'account']);

/** In the order of the properties. Empty where nothing of the type tells rows apart. */
export function comparedColumns(definition: TypeDefinition): readonly ComparedColumn[] {
  const identifiers = new Map(identifierColumns(definition).map(({ column, kind }) => [column, kind]));
  const key = definition.primaryKey ?? 'id';
  const edge = definition.edge ? [definition.edge.from, definition.edge.to] : [];
  return Object.entries(definition.properties).flatMap(([column, { type, references }]): ComparedColumn[] => {
    if (column === key || references !== undefined || edge.includes(column) || column.startsWith('_')) return [];
    const kind = identifiers.get(column);
    if (kind !== undefined) return [{ column, group: `identifier ${kind ?? ''}`, comparison: 'identifier', kind }];
    const words = wordsOf(column);
    if (words.some((word) => otherWords.has(word))) return [];
    const columnFor = (comparison: Comparison, group: string): ComparedColumn[] => [{ column, group, comparison, kind: null }];
    const isText = type === 'string' || type === 'integer';
    if (type === 'timestamp' || (isText && words.some((word) => dateWords.has(word)))) {
      return columnFor('date', words.some((word) => word.startsWith('b') || word === 'dob') ? 'birth' : words.join(' '));
    }
    if (isText && words.some((word) => placeWords.has(word))) return columnFor('text', words.join(' '));
    if (isText && words.some((word) => referenceWords.has(word))) return columnFor('reference', words.join(' '));
    if (type === 'number' || type === 'integer') return columnFor('number', words.join(' '));
    const isName = words.some((word) => nameWords.has(word));
    if (type === 'json') return isName ? columnFor('name', 'name') : [];
    if (type !== 'string') return [];
    return isName ? columnFor('name', 'name') : columnFor('text', words.join(' '));
  });
}

/** Whether rows of a type are looked through where the call names no type. */
export function hasIdentity(definition: TypeDefinition): boolean {
  if (definition.edge !== undefined || definition.graphTriggers.length > 0) return false;
  const { role, name } = definition;
  const played = Object.values(roles).find((each) => (role === undefined ? each.defaultType === name : each.name === role));
  if (played !== undefined) return identityRoles.has(played.name);
  return comparedColumns(definition).some(({ comparison }) => comparison === 'name' || comparison === 'identifier');
}

function wordsOf(column: string): readonly string[] {
  const words = column
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== '');
  return words;
}

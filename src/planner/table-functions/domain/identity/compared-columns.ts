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

const nameColumnWords = new Set(
  'name names fullname firstname lastname surname forename givenname familyname middlename given family first last middle alias aliases nickname'.split(
    ' ',
  ),
);
const dateColumnWords = new Set('date dob birth birthdate birthday born birth_date date_of_birth founded registered'.split(' '));
const referenceColumnWords = new Set(
  'id ids ssn nin ref reference number no nr num code isbn issn doi sku upc ean gtin mpn'.split(' '),
);
/** Parts of an address: rows of one household share all of them. */
const placeColumnWords = new Set(
  'street house address addr suburb city town state country postal postcode zip zipcode'.split(' '),
);
const uncomparedWords = new Set('key uuid guid hash created updated modified source file url image embedding'.split(' '));

/** Roles whose rows are things that have an identity; of the other roles, rows are what happened to these. */
export const identityRoles: ReadonlySet<RoleName> = new Set(['party', 'listing', 'account']);

/** In the order of the properties. Empty where nothing of the type tells rows apart. */
export function comparedColumns(definition: TypeDefinition): readonly ComparedColumn[] {
  const identifierKinds = new Map(
    identifierColumns(definition).map(({ column: comparedColumn, kind: identifierKind }) => [comparedColumn, identifierKind]),
  );
  const keyColumn = definition.primaryKey ?? 'id';
  const edgeColumns = definition.edge ? [definition.edge.from, definition.edge.to] : [];
  return Object.entries(definition.properties).flatMap(([comparedColumn, { type, references }]): ComparedColumn[] => {
    if (
      comparedColumn === keyColumn ||
      references !== undefined ||
      edgeColumns.includes(comparedColumn) ||
      comparedColumn.startsWith('_')
    )
      return [];
    const identifierKind = identifierKinds.get(comparedColumn);
    if (identifierKind !== undefined)
      return [
        { column: comparedColumn, group: `identifier ${identifierKind ?? ''}`, comparison: 'identifier', kind: identifierKind },
      ];
    const columnWords = columnNameWords(comparedColumn);
    if (columnWords.some((columnWord) => uncomparedWords.has(columnWord))) return [];
    const comparedColumnFor = (comparison: Comparison, group: string): ComparedColumn[] => [
      { column: comparedColumn, group, comparison, kind: null },
    ];
    const isTextColumn = type === 'string' || type === 'integer';
    if (type === 'timestamp' || (isTextColumn && columnWords.some((columnWord) => dateColumnWords.has(columnWord)))) {
      return comparedColumnFor(
        'date',
        columnWords.some((columnWord) => columnWord.startsWith('b') || columnWord === 'dob') ? 'birth' : columnWords.join(' '),
      );
    }
    if (isTextColumn && columnWords.some((columnWord) => placeColumnWords.has(columnWord)))
      return comparedColumnFor('text', columnWords.join(' '));
    if (isTextColumn && columnWords.some((columnWord) => referenceColumnWords.has(columnWord)))
      return comparedColumnFor('reference', columnWords.join(' '));
    if (type === 'number' || type === 'integer') return comparedColumnFor('number', columnWords.join(' '));
    const isNameColumn = columnWords.some((columnWord) => nameColumnWords.has(columnWord));
    if (type === 'json') return isNameColumn ? comparedColumnFor('name', 'name') : [];
    if (type !== 'string') return [];
    return isNameColumn ? comparedColumnFor('name', 'name') : comparedColumnFor('text', columnWords.join(' '));
  });
}

/** Whether rows of a type are looked through where the call names no type. */
export function hasIdentity(definition: TypeDefinition): boolean {
  if (definition.edge !== undefined || definition.graphTriggers.length > 0) return false;
  const { role, name } = definition;
  const playedRole = Object.values(roles).find((each) => (role === undefined ? each.defaultType === name : each.name === role));
  if (playedRole !== undefined) return identityRoles.has(playedRole.name);
  return comparedColumns(definition).some(({ comparison }) => comparison === 'name' || comparison === 'identifier');
}

function columnNameWords(column: string): readonly string[] {
  const columnWords = column
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((columnWord) => columnWord !== '');
  return columnWords;
}

/** The type that a write names, and which of its columns it may write. */
import { didYouMean } from '../../errors.ts';
import type { GovernedSnapshot } from '../../governance/gate-contract.ts';
import type { PropertyDefinition, TypeDefinition } from '../../log/entries/entry.ts';
import { type ColumnType, embeddingPrefix, systemColumns } from '../../log/values/value.ts';
import { errorAt } from '../syntax/error-location.ts';
import type { Assignment, Conflict, InsertStatement, NamedLocation, WriteStatement } from '../syntax/write-statement.ts';

/** `type`: null of a column that the type gets with its first row. */
export interface TargetColumn extends NamedLocation {
  readonly type: ColumnType | null;
}

export function targetOf({ target, with: common }: WriteStatement, snapshot: GovernedSnapshot): TypeDefinition {
  const { type, location } = target;
  const shadowingTable = common.find(({ name }) => name === type || name === target.name);
  if (shadowingTable)
    throw errorAt(
      'REL_INVALID',
      `WITH names ${JSON.stringify(shadowingTable.name)}, which is written: give it another name`,
      location,
    );
  const definition = snapshot.catalog.type(type);
  if (definition !== undefined) return definition;
  if (snapshot.views.some(({ name }) => name === type)) {
    throw errorAt('REL_INVALID', `${JSON.stringify(type)} is a view: write to the types that it reads`, location);
  }
  const typeGuess = didYouMean(
    type,
    snapshot.catalog.types().map(({ name }) => name),
  );
  throw errorAt('REL_UNKNOWN_TYPE', `type ${JSON.stringify(type)} is not registered${typeGuess}`, location);
}

/** Columns of an INSERT: the named ones, else the properties of the type. `count`: values of its rows. */
export function insertedColumns(
  { columns, location }: Pick<InsertStatement, 'columns' | 'location'>,
  definition: TypeDefinition,
  count: number,
): readonly TargetColumn[] {
  if (columns === null) {
    const propertyNames = Object.keys(definition.properties);
    if (propertyNames.length === 0) {
      throw errorAt(
        'REL_INVALID',
        `${JSON.stringify(definition.name)} has no columns yet: name those that are inserted`,
        location,
      );
    }
    if (count > propertyNames.length)
      throw errorAt('REL_INVALID', valueCountText(count, propertyNames.length), location, 'syntax');
    return propertyNames.slice(0, count).map((name) => ({ name, location, type: definition.properties[name]!.type }));
  }
  if (count !== columns.length) throw errorAt('REL_INVALID', valueCountText(count, columns.length), location, 'syntax');
  return columns.map((column) => ({ ...column, type: writableColumnType(column, definition, definition.open) }));
}

const valueCountText = (values: number, columns: number): string =>
  `INSERT has ${values} values for ${columns} columns: each row takes a value for each column`;

/** The columns that SET names. `others`: columns that the type gets in the same statement. */
export function setColumns(
  set: readonly Assignment[],
  definition: TypeDefinition,
  others: readonly TargetColumn[] = [],
): readonly TargetColumn[] {
  const primaryKeyName = definition.primaryKey;
  return set.map((assignment) => {
    const { name, location } = assignment;
    if (name === primaryKeyName || name === '_pk' || (primaryKeyName === null && name === 'id')) {
      throw errorAt(
        'REL_INVALID',
        `${JSON.stringify(name)} is the key of the row and cannot be changed: insert another row and delete this one`,
        location,
      );
    }
    const otherColumn = others.find((column) => column.name === name);
    return { name, location, type: otherColumn ? otherColumn.type : writableColumnType(assignment, definition, false) };
  });
}

/** Without `key = excluded.key`, which is so of every row that conflicts, and which mappers of objects write. */
export function withoutOwnKey(
  conflict: Extract<Conflict, { do: 'update' }>,
  { primaryKey }: TypeDefinition,
): Extract<Conflict, { do: 'update' }> {
  const isOwnKey = ({ name, value }: Assignment): boolean =>
    name === primaryKey && value.kind === 'column' && value.name === name && /^excluded$/i.test(value.table ?? '');
  return { ...conflict, set: conflict.set.filter((assignment) => !isOwnKey(assignment)) };
}

/** The key column by which rows conflict. Throws where another one is named. */
export function checkConflictKey(key: NamedLocation | null, definition: TypeDefinition): void {
  const { name, primaryKey, properties } = definition;
  if (key === null || key.name === '_pk' || key.name === (primaryKey ?? 'id')) return;
  if (!Object.hasOwn(properties, key.name) && !Object.hasOwn(systemColumns, key.name))
    throw errorAt('REL_UNKNOWN_COLUMN', `no column ${JSON.stringify(key.name)}`, key.location);
  const ownKeyText = JSON.stringify(primaryKey ?? 'id');
  throw errorAt(
    'REL_INVALID',
    `rows of ${JSON.stringify(name)} conflict by their key alone: ON CONFLICT (${ownKeyText})`,
    key.location,
    'no-conflict-key',
  );
}

/** Its type; null where an open type takes any. */
function writableColumnType({ name, location }: NamedLocation, definition: TypeDefinition, isOpen: boolean): ColumnType | null {
  if (Object.hasOwn(definition.properties, name)) return (definition.properties[name] as PropertyDefinition).type;
  if (name === '_pk' || name === 'id') return 'string';
  if (name === 'valid_from' || name === 'valid_to') return 'timestamp';
  if (Object.hasOwn(systemColumns, name))
    throw errorAt('REL_INVALID', `column ${JSON.stringify(name)} is set by the store and cannot be written`, location);
  if (isOpen && (!name.startsWith('_') || name.startsWith(embeddingPrefix))) return null;
  const columnGuess = didYouMean(name, Object.keys(definition.properties));
  throw errorAt(
    'REL_UNKNOWN_COLUMN',
    `type ${JSON.stringify(definition.name)} has no column ${JSON.stringify(name)}${columnGuess}`,
    location,
  );
}

/** Columns of a type that describe its rows. */
import type { TypeDefinition } from '../../log/entries/entry.ts';
import { type ColumnType, embeddingPrefix, holdsTexts } from '../../log/values/value.ts';

/** `_emb_` columns where there are any, else all columns of vectors. */
export function vectorColumns({ properties }: TypeDefinition): readonly string[] {
  const allVectors = Object.keys(properties).filter((name) => properties[name]!.type === 'vector');
  const embeddingColumns = allVectors.filter((name) => name.startsWith(embeddingPrefix));
  return embeddingColumns.length > 0 ? embeddingColumns : allVectors;
}

/** Columns searched for words where none is named: texts, and strings of JSON. Keys and ids do not describe a row. */
export function wordColumns(definition: TypeDefinition): readonly string[] {
  return embeddedColumnsOf(definition, holdsTexts);
}

/** Columns whose meaning a model is asked for. */
export function textColumns(definition: TypeDefinition): readonly string[] {
  return embeddedColumnsOf(definition, (type) => type === 'string');
}

function embeddedColumnsOf(
  { properties, primaryKey }: TypeDefinition,
  isEmbeddedType: (type: ColumnType) => boolean,
): readonly string[] {
  return Object.keys(properties).filter((name) => isEmbeddedType(properties[name]!.type) && name !== primaryKey && name !== 'id');
}

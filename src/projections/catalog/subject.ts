/**
 * The property that says whose a row is. Its cell's text names a subject of the tenant; NULL: the row is nobody's. Texts and
 * integers can: what names somebody has to be spelled one way only, and the same text in another type is the same subject.
 */
import type { TypeDefinition } from '../../log/entries/entry.ts';
import type { ColumnType } from '../../log/values/value.ts';

export function canBeSubject(type: ColumnType): boolean {
  return type === 'string' || type === 'integer';
}

const known = new WeakMap<TypeDefinition, string | null>();

/** Null where rows of the type are nobody's. */
export function subjectProperty(type: TypeDefinition): string | null {
  let found = known.get(type);
  if (found === undefined) {
    found = Object.keys(type.properties).find((name) => type.properties[name]!.subject) ?? null;
    known.set(type, found);
  }
  return found;
}

/**
 * The property that holds a row's subject. Its cell names a subject of the tenant; NULL: the row has none. Texts and integers are
 * allowed: a subject must have one spelling only, and the same text in another type is the same subject.
 */
import type { TypeDefinition } from '../../log/entries/entry.ts';
import type { ColumnType } from '../../log/values/value.ts';

export function canBeSubject(type: ColumnType): boolean {
  return type === 'string' || type === 'integer';
}

const subjectsOfTypes = new WeakMap<TypeDefinition, string | null>();

/** Null where rows of the type have no subject. */
export function subjectProperty(type: TypeDefinition): string | null {
  let subjectName = subjectsOfTypes.get(type);
  if (subjectName === undefined) {
    subjectName = Object.keys(type.properties).find((name) => type.properties[name]!.subject) ?? null;
    subjectsOfTypes.set(type, subjectName);
  }
  return subjectName;
}

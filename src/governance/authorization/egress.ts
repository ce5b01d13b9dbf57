/**
 * Classified types never enter or leave through a door, for any caller and whether or not they hold rows: the reply is the same
 * before and after the first row, so it does not reveal what exists.
 */
import { ServiceError } from '../../errors.ts';
import { classifiedTypes } from '../../projections/catalog/builtin-types.ts';

// Spelling a name differently must not open a second drawer under it.
const classifiedNames = new Set([...classifiedTypes].map((name) => name.toLowerCase()));

const classifiedLengths = new Set([...classifiedNames].map(({ length }) => length));

/** Most names are told by their length: a tenant may have 10,000 of them. In lower case no name becomes one of these of another length. */
export function isClassified(type: string): boolean {
  return classifiedLengths.has(type.length) && classifiedNames.has(type.toLowerCase());
}

/** Throws REL_HUMINT. The detail never depends on what is stored. */
export function refuseClassified(type: string): void {
  if (isClassified(type)) throw new ServiceError('REL_HUMINT', `${type} is a classified type`);
}

/** The meaning that a definition gives to rows of a type: edges and their ends, role, identifying properties, language. */
import { didYouMean, ServiceError } from '../../errors.ts';
import type { PropertyDefinition } from '../../log/entries/entry.ts';
import { checkIdentifier, type ColumnType, systemColumns } from '../../log/values/value.ts';
import type { GivenMeaning, TypeMeaning } from '../command.ts';

/** Properties that together name a thing, at most. */
const identifierMax = 16;

export function meaningOf({ edge, role, identifier, language }: GivenMeaning): TypeMeaning {
  return {
    ...(edge && { edge }),
    ...(typeof role === 'string' && { role }),
    ...(identifier && { identifier }),
    ...(typeof language === 'string' && { language }),
  };
}

export function changedMeaning(type: TypeMeaning, given: GivenMeaning = {}): TypeMeaning {
  const stated = Object.entries(given).filter(([, value]) => value !== undefined);
  return meaningOf({ ...meaningOf(type), ...(Object.fromEntries(stated) as GivenMeaning) });
}

export function sameMeaning(a: TypeMeaning, b: TypeMeaning): boolean {
  const said = ({ edge, role, identifier, language }: TypeMeaning): string =>
    JSON.stringify([edge?.from, edge?.to, role, identifier, language]);
  return said(a) === said(b);
}

/** `properties` are those that the type has; an open one gets others as they are written. */
export function checkMeaning(
  { edge, role, identifier, language }: TypeMeaning,
  properties: ReadonlyMap<string, PropertyDefinition>,
  open: boolean,
): void {
  const named = (name: string, what: string): ColumnType | null => {
    checkIdentifier(name, what);
    const found = properties.get(name)?.type ?? (Object.hasOwn(systemColumns, name) ? 'string' : null);
    if (found !== null || open) return found;
    const guess = didYouMean(name, properties.keys());
    throw new ServiceError(
      'REL_UNKNOWN_COLUMN',
      `${what} must name a property of the type, and ${JSON.stringify(name)} is none${guess}`,
    );
  };
  if (edge) {
    const ends = [named(edge.from, 'from of an edge'), named(edge.to, 'to of an edge')];
    if (edge.from === edge.to) throw new ServiceError('REL_INVALID', 'an edge has two ends: from and to name two properties');
    if (ends.includes('vector')) throw new ServiceError('REL_INVALID', 'a vector cannot be an end of an edge');
  }
  if (role !== undefined) checkIdentifier(role, 'the role of a type');
  if (identifier) {
    if (identifier.length === 0 || identifier.length > identifierMax || new Set(identifier).size < identifier.length) {
      throw new ServiceError('REL_INVALID', `an identifier has 1 to ${identifierMax} properties, each once`);
    }
    for (const name of identifier) {
      const type = named(name, 'a property of an identifier');
      if (type === 'vector' || type === 'json') throw new ServiceError('REL_INVALID', `${type} can't name what a row is about`);
    }
  }
  if (language !== undefined && !/^[a-z]{2,8}(-[a-z0-9]{1,8}){0,8}$/i.test(language)) {
    throw new ServiceError('REL_INVALID', 'the language of a type must be a BCP 47 tag, such as de or pt-BR');
  }
}

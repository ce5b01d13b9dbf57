/** The meaning that a definition gives to rows of a type: edges and their ends, role, identifying properties, language. */
import { didYouMean, ServiceError } from '../../errors.ts';
import type { PropertyDefinition } from '../../log/entries/entry.ts';
import { checkIdentifier, type ColumnType, systemColumns } from '../../log/values/value.ts';
import { declaredKinds } from '../entity-resolution/identifiers.ts';
import type { GivenMeaning, TypeMeaning } from '../command.ts';

/** Properties that together name a thing, at most. */
const identifierPropertiesMax = 16;
const roleColumnsMax = 64;

export function meaningOf({ edge, role, roleColumns, identifier, identifierKinds, language }: GivenMeaning): TypeMeaning {
  return {
    ...(edge && { edge }),
    ...(typeof role === 'string' && { role }),
    ...(typeof role === 'string' && hasMeaningPairs(roleColumns) && { roleColumns }),
    ...(identifier && { identifier }),
    ...(hasMeaningPairs(identifierKinds) && { identifierKinds }),
    ...(typeof language === 'string' && { language }),
  };
}

export function changedMeaning(type: TypeMeaning, givenMeaning: GivenMeaning = {}): TypeMeaning {
  const statedMeaning = Object.entries(givenMeaning).filter(([, value]) => value !== undefined);
  const mergedMeaning: GivenMeaning = { ...meaningOf(type), ...(Object.fromEntries(statedMeaning) as GivenMeaning) };
  // Kinds are said of one property at a time: those of the others stay.
  return meaningOf({ ...mergedMeaning, identifierKinds: { ...type.identifierKinds, ...givenMeaning.identifierKinds } });
}

function hasMeaningPairs(
  meaningPairs: Readonly<Record<string, string>> | null | undefined,
): meaningPairs is Readonly<Record<string, string>> {
  return meaningPairs !== null && meaningPairs !== undefined && Object.keys(meaningPairs).length > 0;
}

export function sameMeaning(a: TypeMeaning, b: TypeMeaning): boolean {
  const sortedPairs = (of: Readonly<Record<string, string>> = {}): readonly unknown[] =>
    Object.entries(of).sort(([one], [other]) => (one < other ? -1 : 1));
  const meaningText = ({ edge, role, roleColumns, identifier, identifierKinds, language }: TypeMeaning): string =>
    JSON.stringify([edge?.from, edge?.to, role, sortedPairs(roleColumns), identifier, sortedPairs(identifierKinds), language]);
  return meaningText(a) === meaningText(b);
}

/** `properties` are those that the type has; an open one gets others as they are written. */
export function checkMeaning(
  { edge, role, roleColumns = {}, identifier, identifierKinds = {}, language }: TypeMeaning,
  properties: ReadonlyMap<string, PropertyDefinition>,
  open: boolean,
): void {
  const typeOfProperty = (name: string, what: string): ColumnType | null => {
    checkIdentifier(name, what);
    const columnType = properties.get(name)?.type ?? (Object.hasOwn(systemColumns, name) ? 'string' : null);
    if (columnType !== null || open) return columnType;
    const guess = didYouMean(name, properties.keys());
    throw new ServiceError(
      'REL_UNKNOWN_COLUMN',
      `${what} must name a property of the type, and ${JSON.stringify(name)} is none${guess}`,
    );
  };
  if (edge) {
    const edgeEndTypes = [typeOfProperty(edge.from, 'from of an edge'), typeOfProperty(edge.to, 'to of an edge')];
    if (edge.from === edge.to) throw new ServiceError('REL_INVALID', 'an edge has two ends: from and to name two properties');
    if (edgeEndTypes.includes('vector')) throw new ServiceError('REL_INVALID', 'a vector cannot be an end of an edge');
  }
  if (role !== undefined) checkIdentifier(role, 'the role of a type');
  if (Object.keys(roleColumns).length > roleColumnsMax) {
    throw new ServiceError('REL_INVALID', `a role has at most ${roleColumnsMax} columns`);
  }
  for (const [column, name] of Object.entries(roleColumns)) {
    checkIdentifier(column, 'a column of a role');
    if (typeOfProperty(name, `column ${column} of the role`) === 'vector') {
      throw new ServiceError('REL_INVALID', `a vector is no column of a role: ${JSON.stringify(name)}`);
    }
  }
  for (const [name, identifierKind] of Object.entries(identifierKinds)) {
    if (!(declaredKinds as readonly string[]).includes(identifierKind)) {
      throw new ServiceError(
        'REL_INVALID',
        `identifier of ${JSON.stringify(name)} is one of ${declaredKinds.join(', ')}${didYouMean(identifierKind, declaredKinds)}`,
      );
    }
    const type = typeOfProperty(name, 'a property that is an identifier');
    if (type !== null && type !== 'string' && type !== 'integer') {
      throw new ServiceError(
        'REL_INVALID',
        `property ${JSON.stringify(name)} is no identifier: its cells are no texts and no whole numbers`,
      );
    }
  }
  if (identifier) {
    if (identifier.length === 0 || identifier.length > identifierPropertiesMax || new Set(identifier).size < identifier.length) {
      throw new ServiceError('REL_INVALID', `an identifier has 1 to ${identifierPropertiesMax} properties, each once`);
    }
    for (const name of identifier) {
      const type = typeOfProperty(name, 'a property of an identifier');
      if (type === 'vector' || type === 'json') throw new ServiceError('REL_INVALID', `${type} can't name what a row is about`);
    }
  }
  if (language !== undefined && !/^[a-z]{2,8}(-[a-z0-9]{1,8}){0,8}$/i.test(language)) {
    throw new ServiceError('REL_INVALID', 'the language of a type must be a BCP 47 tag, such as de or pt-BR');
  }
}

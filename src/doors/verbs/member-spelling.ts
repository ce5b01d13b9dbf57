/** Members that are written in snake case, as the specification has them, or in camel case. */
import { z } from 'zod';
import { didYouMean, ServiceError } from '../../errors.ts';

/** An object of these members and no others. Its output has them in snake case. */
export function eitherSpelling<Shape extends z.ZodRawShape>(memberShape: Shape) {
  const snakeNames = Object.keys(memberShape).filter((snakeName) => snakeName.includes('_'));
  const camelMembers = Object.fromEntries(snakeNames.map((snakeName) => [camelCase(snakeName), memberShape[snakeName]!]));
  return z
    .strictObject({ ...memberShape, ...camelMembers })
    .refine(...oneSpelling(...snakeNames))
    .transform((spelledMembers) => {
      const snakeMembers = { ...spelledMembers } as Record<string, unknown>;
      for (const snakeName of snakeNames) {
        const camelName = camelCase(snakeName);
        if (!Object.hasOwn(snakeMembers, camelName)) continue;
        snakeMembers[snakeName] = snakeMembers[camelName];
        delete snakeMembers[camelName];
      }
      return snakeMembers as z.output<z.ZodObject<Shape>>;
    });
}

/**
 * The members of an object in snake case. Throws REL_INVALID for an unknown name, with a suggestion, and for one in two
 * spellings.
 */
export function membersOf(givenMembers: unknown, memberNames: readonly string[], memberOwner: string): Record<string, unknown> {
  if (typeof givenMembers !== 'object' || givenMembers === null || Array.isArray(givenMembers))
    throw new ServiceError('REL_INVALID', `${memberOwner}: one JSON object is expected`);
  const nameBySpelling = new Map(
    memberNames.flatMap((memberName) => [[memberName, memberName] as const, [camelCase(memberName), memberName] as const]),
  );
  const membersByName: Record<string, unknown> = {};
  for (const [memberSpelling, memberValue] of Object.entries(givenMembers)) {
    const memberName = nameBySpelling.get(memberSpelling);
    if (memberName === undefined) {
      const shownSpelling = JSON.stringify(memberSpelling.slice(0, 64));
      throw new ServiceError(
        'REL_INVALID',
        `${memberOwner}: there is no ${shownSpelling}${didYouMean(memberSpelling, memberNames)}; there are ${memberNames.join(', ')}`,
      );
    }
    if (Object.hasOwn(membersByName, memberName))
      throw new ServiceError('REL_INVALID', `${memberName}: in one spelling, snake case or camel case`);
    membersByName[memberName] = memberValue;
  }
  return membersByName;
}

export function inBothCases<Name extends string, T extends z.ZodType>(
  memberName: Name,
  memberType: T,
): Record<Name | CamelCase<Name>, T> {
  return { [memberName]: memberType, [camelCase(memberName)]: memberType } as Record<Name | CamelCase<Name>, T>;
}

/** A check and its message: of a member in two spellings it would be unclear which counts. */
export function oneSpelling(...memberNames: readonly string[]): [(spelledObject: object) => boolean, string] {
  return [
    (spelledObject) =>
      !memberNames.some(
        (memberName) => Object.hasOwn(spelledObject, memberName) && Object.hasOwn(spelledObject, camelCase(memberName)),
      ),
    `${memberNames.join(', ')}: in one spelling each, snake case or camel case`,
  ];
}

function camelCase(snakeName: string): string {
  return snakeName.replaceAll(/_([a-z])/g, (_, firstLetter: string) => firstLetter.toUpperCase());
}

export function snakeCase(camelName: string): string {
  return camelName.replaceAll(/[A-Z]/g, (capitalLetter) => `_${capitalLetter.toLowerCase()}`);
}

type CamelCase<Name extends string> = Name extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<CamelCase<Tail>>}` : Name;

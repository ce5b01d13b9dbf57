/** Members that are written in snake case, as the specification has them, or in camel case. */
import { z } from 'zod';
import { didYouMean, ServiceError } from '../../errors.ts';

/** An object of these members and no others. Its output has them in snake case. */
export function eitherSpelling<Shape extends z.ZodRawShape>(shape: Shape) {
  const names = Object.keys(shape).filter((name) => name.includes('_'));
  const others = Object.fromEntries(names.map((name) => [camelCase(name), shape[name]!]));
  return z
    .strictObject({ ...shape, ...others })
    .refine(...oneSpelling(...names))
    .transform((value) => {
      const given = { ...value } as Record<string, unknown>;
      for (const name of names) {
        const other = camelCase(name);
        if (!Object.hasOwn(given, other)) continue;
        given[name] = given[other];
        delete given[other];
      }
      return given as z.output<z.ZodObject<Shape>>;
    });
}

/**
 * The members of an object in snake case. Throws REL_INVALID for an unknown name, with a suggestion, and for one in two
 * spellings.
 */
export function membersOf(given: unknown, names: readonly string[], what: string): Record<string, unknown> {
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw new ServiceError('REL_INVALID', `${what}: one JSON object is expected`);
  const own = new Map(names.flatMap((name) => [[name, name] as const, [camelCase(name), name] as const]));
  const members: Record<string, unknown> = {};
  for (const [spelling, value] of Object.entries(given)) {
    const name = own.get(spelling);
    if (name === undefined) {
      const shown = JSON.stringify(spelling.slice(0, 64));
      throw new ServiceError(
        'REL_INVALID',
        `${what}: there is no ${shown}${didYouMean(spelling, names)}; there are ${names.join(', ')}`,
      );
    }
    if (Object.hasOwn(members, name)) throw new ServiceError('REL_INVALID', `${name}: in one spelling, snake case or camel case`);
    members[name] = value;
  }
  return members;
}

export function inBothCases<Name extends string, T extends z.ZodType>(name: Name, type: T): Record<Name | CamelCase<Name>, T> {
  return { [name]: type, [camelCase(name)]: type } as Record<Name | CamelCase<Name>, T>;
}

/** A check and its message: of a member in two spellings it would be unclear which counts. */
export function oneSpelling(...names: readonly string[]): [(value: object) => boolean, string] {
  return [
    (value) => !names.some((name) => Object.hasOwn(value, name) && Object.hasOwn(value, camelCase(name))),
    `${names.join(', ')}: in one spelling each, snake case or camel case`,
  ];
}

function camelCase(name: string): string {
  return name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

export function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

type CamelCase<Name extends string> = Name extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<CamelCase<Tail>>}` : Name;

/** Members that are written in snake case, as the specification has them, or in camel case. */
import { z } from 'zod';

/** An object of these members and no others. What comes out has them in snake case. */
export function spelled<Shape extends z.ZodRawShape>(shape: Shape) {
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

export function inBothCases<Name extends string, T extends z.ZodType>(name: Name, type: T): Record<Name | CamelCase<Name>, T> {
  return { [name]: type, [camelCase(name)]: type } as Record<Name | CamelCase<Name>, T>;
}

/** A check and what it says: of a member in two spellings neither would be the one that counts. */
export function oneSpelling(...names: readonly string[]): [(value: object) => boolean, string] {
  return [
    (value) => !names.some((name) => Object.hasOwn(value, name) && Object.hasOwn(value, camelCase(name))),
    `${names.join(', ')}: in one spelling each, snake case or camel case`,
  ];
}

function camelCase(name: string): string {
  return name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

type CamelCase<Name extends string> = Name extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<CamelCase<Tail>>}` : Name;

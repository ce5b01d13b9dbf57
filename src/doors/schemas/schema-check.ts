/**
 * Checks requests against a schema. The check ends at the first wrong member: reporting sixty thousand errors would take seconds.
 * The number of members is bounded before they are read.
 */
import { z } from 'zod';

/** Most characters of an issue's message: it names an unknown member, and that name comes from the caller. */
const messageMax = 300;

/** `abortEarly` belongs to the library's own context of a check, and not to its declared options. */
const endsEarly = { abortEarly: true, reportInput: false };

export interface Issue {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

export function check<T>(
  schema: z.ZodType<T>,
  value: unknown,
): { readonly success: true; readonly data: T } | { readonly success: false; readonly issues: readonly Issue[] } {
  const read = schema.safeParse(value, endsEarly);
  if (read.success) return { success: true, data: read.data };
  return {
    success: false,
    issues: read.error.issues.slice(0, 5).map(({ path, message }) => ({ path, message: message.slice(0, messageMax) })),
  };
}

/** A record of so many members at most. */
export function record<V extends z.ZodType>(values: V, membersMax = 1_024) {
  return z.preprocess(
    (given, context) => {
      if (typeof given !== 'object' || given === null || Object.keys(given).length <= membersMax) return given;
      context.addIssue({ code: 'custom', message: `at most ${membersMax} members are expected` });
      return z.NEVER;
    },
    z.record(z.string(), values).meta({ maxProperties: membersMax }),
  );
}

/** The path at which a schema takes a list or a record of unlimited size; null: there is none. */
export function boundlessIn(schema: unknown, path = '', seen = new Set<unknown>()): string | null {
  if (!(schema instanceof z.ZodType) || seen.has(schema)) return null;
  seen.add(schema);
  const first = (parts: readonly unknown[]): string | null => {
    for (const part of parts) {
      const boundlessPath = boundlessIn(part, path, seen);
      if (boundlessPath !== null) return boundlessPath;
    }
    return null;
  };
  if (schema instanceof z.ZodArray) return hasMost(schema) ? boundlessIn(schema.element, `${path}[]`, seen) : path;
  if (schema instanceof z.ZodRecord)
    return schema.meta()?.['maxProperties'] === undefined ? path : boundlessIn(schema.valueType, `${path}{}`, seen);
  if (schema instanceof z.ZodObject) {
    for (const [name, member] of Object.entries(schema.shape)) {
      const boundlessPath = boundlessIn(member, `${path}.${name}`, seen);
      if (boundlessPath !== null) return boundlessPath;
    }
    return null;
  }
  if (schema instanceof z.ZodUnion) return first(schema.options);
  if (schema instanceof z.ZodTuple) return first(schema.def.items);
  if (schema instanceof z.ZodPipe) return first([schema.in, schema.out]);
  if (schema instanceof z.ZodLazy) return first([schema.unwrap()]);
  return 'innerType' in schema.def ? first([schema.def.innerType]) : null;
}

function hasMost({ def }: z.ZodArray): boolean {
  return (def.checks ?? []).some(({ _zod }) => _zod.def.check === 'max_length' || _zod.def.check === 'length_equals');
}

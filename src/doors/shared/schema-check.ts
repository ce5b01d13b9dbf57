/**
 * Checks requests against a schema. The check ends at the first wrong member: reporting sixty thousand errors would take seconds.
 * The number of members is bounded before they are read.
 */
import { z } from 'zod';

/** Most characters of an issue's message: it names an unknown member, and that name comes from the caller. */
const issueMessageMax = 300;

/** `abortEarly` belongs to the library's own context of a check, and not to its declared options. */
const endsAtFirstIssue = { abortEarly: true, reportInput: false };

export interface Issue {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

export function check<T>(
  checkedSchema: z.ZodType<T>,
  checkedValue: unknown,
): { readonly success: true; readonly data: T } | { readonly success: false; readonly issues: readonly Issue[] } {
  const parsedValue = checkedSchema.safeParse(checkedValue, endsAtFirstIssue);
  if (parsedValue.success) return { success: true, data: parsedValue.data };
  return {
    success: false,
    issues: parsedValue.error.issues.slice(0, 5).map(({ path: issuePath, message: issueMessage }) => ({
      path: issuePath,
      message: issueMessage.slice(0, issueMessageMax),
    })),
  };
}

/** A record of so many members at most. */
export function record<V extends z.ZodType>(memberSchema: V, membersMax = 1_024) {
  return z.preprocess(
    (givenRecord, refineContext) => {
      if (typeof givenRecord !== 'object' || givenRecord === null || Object.keys(givenRecord).length <= membersMax)
        return givenRecord;
      refineContext.addIssue({ code: 'custom', message: `at most ${membersMax} members are expected` });
      return z.NEVER;
    },
    z.record(z.string(), memberSchema).meta({ maxProperties: membersMax }),
  );
}

/** The path at which a schema takes a list or a record of unlimited size; null: there is none. */
export function boundlessIn(searchedSchema: unknown, schemaPath = '', seenSchemas = new Set<unknown>()): string | null {
  if (!(searchedSchema instanceof z.ZodType) || seenSchemas.has(searchedSchema)) return null;
  seenSchemas.add(searchedSchema);
  const firstBoundless = (schemaParts: readonly unknown[]): string | null => {
    for (const schemaPart of schemaParts) {
      const boundlessPath = boundlessIn(schemaPart, schemaPath, seenSchemas);
      if (boundlessPath !== null) return boundlessPath;
    }
    return null;
  };
  if (searchedSchema instanceof z.ZodArray)
    return hasLengthLimit(searchedSchema) ? boundlessIn(searchedSchema.element, `${schemaPath}[]`, seenSchemas) : schemaPath;
  if (searchedSchema instanceof z.ZodRecord)
    return searchedSchema.meta()?.['maxProperties'] === undefined
      ? schemaPath
      : boundlessIn(searchedSchema.valueType, `${schemaPath}{}`, seenSchemas);
  if (searchedSchema instanceof z.ZodObject) {
    for (const [shapeName, shapeMember] of Object.entries(searchedSchema.shape)) {
      const boundlessPath = boundlessIn(shapeMember, `${schemaPath}.${shapeName}`, seenSchemas);
      if (boundlessPath !== null) return boundlessPath;
    }
    return null;
  }
  if (searchedSchema instanceof z.ZodUnion) return firstBoundless(searchedSchema.options);
  if (searchedSchema instanceof z.ZodTuple) return firstBoundless(searchedSchema.def.items);
  if (searchedSchema instanceof z.ZodPipe) return firstBoundless([searchedSchema.in, searchedSchema.out]);
  if (searchedSchema instanceof z.ZodLazy) return firstBoundless([searchedSchema.unwrap()]);
  return 'innerType' in searchedSchema.def ? firstBoundless([searchedSchema.def.innerType]) : null;
}

function hasLengthLimit({ def: arrayDefinition }: z.ZodArray): boolean {
  return (arrayDefinition.checks ?? []).some(({ _zod }) => _zod.def.check === 'max_length' || _zod.def.check === 'length_equals');
}

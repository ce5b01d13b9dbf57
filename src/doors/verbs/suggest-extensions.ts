/** suggest_extensions: what the types of a store don't say yet, and functions would go by. Source: specification, "Tool protocol (MCP)". */
import { z } from 'zod';
import { identifierColumns } from '../../planner/table-functions/domain/identifier-columns.ts';
import { identityRoles } from '../../planner/table-functions/domain/identity/compared-columns.ts';
import { playedRoles, rolePlayers, roles } from '../../planner/table-functions/domain/roles.ts';
import { verb } from './verb.ts';

export const suggestExtensions = verb({
  name: 'suggest_extensions',
  description:
    'What a store could say and does not: roles that no type plays, columns that look like identifiers and are not declared as such, ' +
    'types of things without a rule by which their rows are fused, and models that are not set up.',
  input: z.object({}),
  output: z.object({
    roles: z.array(z.object({ role: z.string(), default_type: z.string(), columns: z.array(z.string()) })),
    identifiers: z.array(z.object({ type: z.string(), column: z.string(), kind: z.string() })),
    rules: z.array(z.object({ type: z.string(), kind: z.string() })),
    models: z.array(z.object({ setting: z.string(), reason: z.string() })),
  }),
  action: 'inspect',
  units: 1,
  purpose: 'required',
  bucket: 'read',
  tool: { title: 'Extensions', readOnly: true },
  example: {},
  run: async (verbCall) => {
    const { catalog: typeCatalog, offers: offersType } = verbCall.snapshot;
    const readableTypes = typeCatalog.types().filter(({ name: typeName }) => offersType(typeName));
    const rolesPlayed = playedRoles(readableTypes);
    const missingRoles = Object.values(roles).filter(({ name: typeName }) => !rolesPlayed.has(typeName));
    const undeclaredIdentifiers = readableTypes.flatMap((typeDefinition) => {
      const { name: typeName, identifier: declaredIdentifiers = [], identifierKinds = {} } = typeDefinition;
      const identifiers = identifierColumns(typeDefinition).filter(
        ({ column: identifierColumn }) =>
          !declaredIdentifiers.includes(identifierColumn) && !(identifierColumn in identifierKinds),
      );
      return identifiers.flatMap(({ column: identifierColumn, kind: identifierKind }) =>
        identifierKind === null ? [] : [{ type: typeName, column: identifierColumn, kind: identifierKind }],
      );
    });
    const enrichedTypes = new Set(
      verbCall.snapshot
        .rules()
        .flatMap(({ definition: typeDefinition }) => (typeDefinition.kind === 'enrich' ? [typeDefinition.object_type] : [])),
    );
    const thingTypes = [
      ...new Set(
        [...identityRoles]
          .flatMap((identityRole) => rolePlayers(readableTypes, identityRole))
          .map(({ type: thingType }) => thingType),
      ),
    ];
    const { embedder, translator } = verbCall.parts;
    return {
      rules: thingTypes
        .filter((thingType) => !enrichedTypes.has(thingType))
        .map((thingType) => ({ type: thingType, kind: 'enrich' })),
      models: [
        ...(embedder === null ? [{ setting: 'SERVICE_EMBED_URL', reason: 'texts are compared by their words alone' }] : []),
        ...(translator === null ? [{ setting: 'SERVICE_LLM_URL', reason: 'nl_query knows its own patterns alone' }] : []),
      ],
      roles: missingRoles.map(({ name: typeName, defaultType, columns: roleColumns }) => ({
        role: typeName,
        default_type: defaultType,
        columns: roleColumns.map((roleColumn) => roleColumn.name),
      })),
      identifiers: undeclaredIdentifiers,
    };
  },
});

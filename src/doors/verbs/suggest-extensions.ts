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
    const { catalog, offers } = verbCall.snapshot;
    const types = catalog.types().filter(({ name }) => offers(name));
    const played = playedRoles(types);
    const missing = Object.values(roles).filter(({ name }) => !played.has(name));
    const undeclared = types.flatMap((definition) => {
      const { name, identifier = [], identifierKinds = {} } = definition;
      const identifiers = identifierColumns(definition).filter(
        ({ column }) => !identifier.includes(column) && !(column in identifierKinds),
      );
      return identifiers.flatMap(({ column, kind }) => (kind === null ? [] : [{ type: name, column, kind }]));
    });
    const enriched = new Set(
      verbCall.snapshot.rules().flatMap(({ definition }) => (definition.kind === 'enrich' ? [definition.object_type] : [])),
    );
    const things = [...new Set([...identityRoles].flatMap((role) => rolePlayers(types, role)).map(({ type }) => type))];
    const { embedder, translator } = verbCall.parts;
    return {
      rules: things.filter((type) => !enriched.has(type)).map((type) => ({ type, kind: 'enrich' })),
      models: [
        ...(embedder === null ? [{ setting: 'SERVICE_EMBED_URL', reason: 'texts are compared by their words alone' }] : []),
        ...(translator === null ? [{ setting: 'SERVICE_LLM_URL', reason: 'nl_query knows its own patterns alone' }] : []),
      ],
      roles: missing.map(({ name, defaultType, columns }) => ({
        role: name,
        default_type: defaultType,
        columns: columns.map((each) => each.name),
      })),
      identifiers: undeclared,
    };
  },
});

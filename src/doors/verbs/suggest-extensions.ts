/** suggest_extensions: what the types of a store don't say yet, and functions would go by. Source: specification, "Tool protocol (MCP)". */
import { z } from 'zod';
import { identifierColumns } from '../../planner/functions/domain/identifier-columns.ts';
import { playedRoles, roles } from '../../planner/functions/domain/roles.ts';
import { verb } from './verb.ts';

export const suggestExtensions = verb({
  name: 'suggest_extensions',
  description:
    'What types could say and do not: roles that no type plays, and columns that look like identifiers and are not declared as such.',
  input: z.object({}),
  output: z.object({
    roles: z.array(z.object({ role: z.string(), default_type: z.string(), columns: z.array(z.string()) })),
    identifiers: z.array(z.object({ type: z.string(), column: z.string(), kind: z.string() })),
  }),
  action: 'inspect',
  units: 1,
  purpose: 'required',
  bucket: 'read',
  tool: { title: 'Extensions', readOnly: true },
  example: {},
  run: async (session) => {
    const { catalog, offers } = session.snapshot;
    const types = catalog.types().filter(({ name }) => offers(name));
    const played = playedRoles(types);
    const missing = Object.values(roles).filter(({ name }) => !played.has(name));
    const undeclared = types.flatMap((definition) => {
      const { name, identifier = [], identifierKinds = {} } = definition;
      const found = identifierColumns(definition).filter(
        ({ column }) => !identifier.includes(column) && !(column in identifierKinds),
      );
      return found.flatMap(({ column, kind }) => (kind === null ? [] : [{ type: name, column, kind }]));
    });
    return {
      roles: missing.map(({ name, defaultType, columns }) => ({
        role: name,
        default_type: defaultType,
        columns: columns.map((each) => each.name),
      })),
      identifiers: undeclared,
    };
  },
});

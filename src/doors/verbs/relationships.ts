/** Edges of the snapshot: rows of link types, which graph triggers and associate write. Source: specification, "Tool protocol (MCP)". */
import { z } from 'zod';
import type { TypeDefinition } from '../../log/entries/entry.ts';
import { knownType } from './query.ts';
import { quote, textOf } from './verb-rows.ts';
import type { VerbCall } from './verb-call.ts';
import { nanosecondsOut, verb } from './verb.ts';

/** Types whose rows have two ends. */
export function isLinkType({ properties }: TypeDefinition): boolean {
  return properties['from_id']?.type === 'string' && properties['to_id']?.type === 'string';
}

function linkTypes(verbCall: VerbCall): readonly string[] {
  return verbCall.snapshot.catalog
    .types()
    .filter(isLinkType)
    .map(({ name }) => name);
}

export const getRelationships = verb({
  name: 'get_relationships',
  description: 'What an entity is connected with, directly: the edges that begin or end at its id, as they hold now.',
  input: z.object({
    entity_id: z.string().min(1).describe('id of the entity'),
    direction: z.enum(['out', 'in', 'both']).default('both'),
    link_types: z.array(z.string().min(1)).max(100).optional().describe('of these alone'),
    limit: z.int().min(1).max(1_000).default(100),
  }),
  output: z.object({
    relationships: z.array(
      z.object({
        edge_id: z.string(),
        link_type: z.string(),
        from_id: z.string(),
        to_id: z.string(),
        valid_from: nanosecondsOut,
      }),
    ),
    total: z.int(),
    truncated: z.boolean(),
  }),
  action: 'query',
  units: 1,
  purpose: 'required',
  bucket: 'read',
  tool: { title: 'Relationships', readOnly: true },
  example: { entity_id: 'a memory' },
  run: async (verbCall, { entity_id: id, direction, link_types: only, limit }) => {
    const types =
      only === undefined
        ? linkTypes(verbCall)
        : only
            .map((name) => knownType(verbCall, name))
            .filter(isLinkType)
            .map(({ name }) => name);
    const where = direction === 'out' ? 'from_id = $1' : direction === 'in' ? 'to_id = $1' : 'from_id = $1 OR to_id = $1';
    const relationships = [];
    for (const type of types) {
      const rows = await verbCall.ask(
        `SELECT _pk, from_id, to_id, valid_from FROM ${quote(type)} WHERE ${where} ORDER BY _pk LIMIT ${limit + 1}`,
        [id],
      );
      for (const row of rows) {
        relationships.push({
          edge_id: String(row['_pk']),
          link_type: type,
          from_id: textOf(row['from_id']) ?? '',
          to_id: textOf(row['to_id']) ?? '',
          valid_from: row['valid_from'] as bigint,
        });
      }
    }
    return {
      relationships: relationships.slice(0, limit),
      total: Math.min(relationships.length, limit),
      truncated: relationships.length > limit,
    };
  },
});

export const listLinkTypes = verb({
  name: 'list_link_types',
  description: 'The kinds of edges there are, and how many of each hold now.',
  input: z.object({}),
  output: z.object({ link_types: z.array(z.object({ name: z.string(), edges: z.int() })), total: z.int() }),
  action: 'query',
  units: 1,
  purpose: 'required',
  bucket: 'read',
  tool: { title: 'Link types', readOnly: true },
  example: {},
  run: async (verbCall) => {
    const counted = [];
    for (const name of linkTypes(verbCall)) {
      const [row] = await verbCall.ask(`SELECT COUNT(*) AS n FROM ${quote(name)}`);
      counted.push({ name, edges: Number(row?.['n'] ?? 0n) });
    }
    return { link_types: counted, total: counted.length };
  },
});

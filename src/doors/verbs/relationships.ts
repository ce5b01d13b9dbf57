/** Edges of the snapshot: rows of link types, which graph triggers and associate write. Source: specification, "Tool protocol (MCP)". */
import { z } from 'zod';
import type { TypeDefinition } from '../../log/entries/entry.ts';
import { knownType } from './query.ts';
import { quote, textOf } from './verb-rows.ts';
import type { VerbCall } from './verb-call.ts';
import { nanosecondsOut, verb } from './verb.ts';

/** Types whose rows have two ends. */
export function isLinkType({ properties: linkProperties }: TypeDefinition): boolean {
  return linkProperties['from_id']?.type === 'string' && linkProperties['to_id']?.type === 'string';
}

function readableLinkTypes(verbCall: VerbCall): readonly string[] {
  return verbCall.snapshot.catalog
    .types()
    .filter(isLinkType)
    .map(({ name: linkTypeName }) => linkTypeName);
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
  run: async (verbCall, { entity_id: relatedEntity, direction: edgeDirection, link_types: onlyLinkTypes, limit: edgeLimit }) => {
    const linkTypeNames =
      onlyLinkTypes === undefined
        ? readableLinkTypes(verbCall)
        : onlyLinkTypes
            .map((linkTypeName) => knownType(verbCall, linkTypeName))
            .filter(isLinkType)
            .map(({ name: linkTypeName }) => linkTypeName);
    const edgeWhere =
      edgeDirection === 'out' ? 'from_id = $1' : edgeDirection === 'in' ? 'to_id = $1' : 'from_id = $1 OR to_id = $1';
    const relationships = [];
    for (const linkTypeOfEdges of linkTypeNames) {
      const edgeRows = await verbCall.ask(
        `SELECT _pk, from_id, to_id, valid_from FROM ${quote(linkTypeOfEdges)} WHERE ${edgeWhere} ORDER BY _pk LIMIT ${edgeLimit + 1}`,
        [relatedEntity],
      );
      for (const edgeRow of edgeRows) {
        relationships.push({
          edge_id: String(edgeRow['_pk']),
          link_type: linkTypeOfEdges,
          from_id: textOf(edgeRow['from_id']) ?? '',
          to_id: textOf(edgeRow['to_id']) ?? '',
          valid_from: edgeRow['valid_from'] as bigint,
        });
      }
    }
    return {
      relationships: relationships.slice(0, edgeLimit),
      total: Math.min(relationships.length, edgeLimit),
      truncated: relationships.length > edgeLimit,
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
    const edgeCounts = [];
    for (const linkTypeName of readableLinkTypes(verbCall)) {
      const [edgeRow] = await verbCall.ask(`SELECT COUNT(*) AS n FROM ${quote(linkTypeName)}`);
      edgeCounts.push({ name: linkTypeName, edges: Number(edgeRow?.['n'] ?? 0n) });
    }
    return { link_types: edgeCounts, total: edgeCounts.length };
  },
});

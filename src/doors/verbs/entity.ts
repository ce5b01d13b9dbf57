/** Tools about one thing, by its id or an identifier: who it is, what became of it, what it is connected with. Source: specification, "Tool protocol (MCP)". */
import { z } from 'zod';
import type { TypeDefinition } from '../../log/entries/entry.ts';
import { identifierColumns } from '../../planner/table-functions/domain/identifier-columns.ts';
import { identifiersIn } from '../../projections/entity-resolution/identifiers.ts';
import { queryReply, answerMembers, shownRows } from './query.ts';
import { isLinkType } from './relationships.ts';
import { quote, textOf } from './verb-rows.ts';
import type { VerbCall } from './verb-call.ts';
import { nanosecondsOut, verb } from './verb.ts';

const entityVerb = { action: 'search', purpose: 'required', bucket: 'read' } as const;
const entityRow = z.record(z.string(), z.unknown());
export const foundIdentifier = z.object({ type: z.string(), column: z.string(), kind: z.string(), canonical: z.string() });
export const timelineEvent = z.object({
  type: z.string(),
  kind: z.enum(['row', 'edge']),
  key: z.string().nullable(),
  system_from: nanosecondsOut.nullable(),
  valid_from: nanosecondsOut.nullable(),
  valid_to: nanosecondsOut.nullable(),
  row: entityRow,
});
const entityIdField = z.string().min(1).describe('id of the thing, in whatever type');

export const lookupIdentity = verb({
  ...entityVerb,
  name: 'lookup_identity',
  description: 'Rows of every type that hold a phone number, account, device, plate or other identifier, however it is written.',
  input: z.object({
    raw: z.string().min(1).max(256).describe('the identifier as it is written'),
    limit: z.int().min(1).max(1_000).default(100),
  }),
  output: z.object(answerMembers) as unknown as z.ZodType,
  units: 1,
  tool: { title: 'Look an identifier up', readOnly: true },
  example: { raw: '+44 20 7946 0018' },
  run: async (verbCall, { raw: rawIdentifier, limit: entityRowLimit }) => {
    const toolAnswer = await verbCall.answer(`SELECT * FROM LOOKUP_IDENTITY($1) LIMIT ${entityRowLimit}`, [rawIdentifier], 'all');
    verbCall.note({ result: { row_count: toolAnswer.rowCount } });
    return queryReply(toolAnswer);
  },
});

export const getEntityProfile = verb({
  ...entityVerb,
  name: 'get_entity_profile',
  description:
    'All that is known now of a thing by its id: its row in every type, its identifiers, and how many edges of each kind it has.',
  input: z.object({ entity_id: entityIdField }),
  output: z.object({
    entity_id: z.string(),
    entities: z.array(z.object({ type: z.string(), row: entityRow })),
    identifiers: z.array(foundIdentifier),
    connections: z.array(z.object({ link_type: z.string(), edges: z.int() })),
  }),
  units: 5,
  tool: { title: 'Profile', readOnly: true },
  example: { entity_id: 'a memory' },
  run: async (verbCall, { entity_id: soughtEntityId }) => {
    const entityRows = [];
    const foundIdentifiers = [];
    const linkCounts = [];
    for (const entityType of readableEntityTypes(verbCall)) {
      const { name: entityTypeName } = entityType;
      const toolAnswer = await verbCall.answer(`SELECT * FROM ${quote(entityTypeName)} WHERE _pk = $1`, [soughtEntityId]);
      for (const profileRow of shownRows(toolAnswer)) {
        entityRows.push({ type: entityTypeName, row: profileRow });
        foundIdentifiers.push(...identifiersOf(verbCall, entityType, profileRow));
      }
      if (!isLinkType(entityType)) continue;
      const [countedEdges] = await verbCall.ask(
        `SELECT COUNT(*) AS n FROM ${quote(entityTypeName)} WHERE from_id = $1 OR to_id = $1`,
        [soughtEntityId],
      );
      const edgeCount = Number(countedEdges?.['n'] ?? 0n);
      if (edgeCount > 0) linkCounts.push({ link_type: entityTypeName, edges: edgeCount });
    }
    verbCall.note({ result: { entities: entityRows.length } });
    return { entity_id: soughtEntityId, entities: entityRows, identifiers: foundIdentifiers, connections: linkCounts };
  },
});

export function identifiersOf(verbCall: VerbCall, entityType: TypeDefinition, identifierRow: Readonly<Record<string, unknown>>) {
  const maskedColumns = verbCall.snapshot.masksOf(entityType.name);
  return identifierColumns(entityType).flatMap(({ column: identifierColumn, kind: identifierKind }) => {
    const identifierCell = identifierRow[identifierColumn];
    if (
      maskedColumns.has(identifierColumn) ||
      (typeof identifierCell !== 'string' && typeof identifierCell !== 'bigint' && typeof identifierCell !== 'number')
    )
      return [];
    return identifiersIn(String(identifierCell))
      .filter(([foundKind]) => identifierKind === null || foundKind === identifierKind)
      .slice(0, 1)
      .map(([foundKind, canonicalIdentifier]) => ({
        type: entityType.name,
        column: identifierColumn,
        kind: foundKind,
        canonical: canonicalIdentifier,
      }));
  });
}

/** Types whose rows may be read: what is closed to the caller has no row for it. */
function readableEntityTypes({ snapshot }: VerbCall): readonly TypeDefinition[] {
  return snapshot.catalog.types().filter(({ name: typeName }) => snapshot.offers(typeName));
}

export const getTimeline = verb({
  ...entityVerb,
  name: 'get_timeline',
  description: 'What became of a thing: every version of its rows and of its edges, in the order in which they were recorded.',
  input: z.object({ entity_id: entityIdField, limit: z.int().min(1).max(1_000).default(100).describe('the last so many') }),
  output: z.object({ entity_id: z.string(), events: z.array(timelineEvent), truncated: z.boolean() }),
  units: 3,
  tool: { title: 'Timeline', readOnly: true },
  example: { entity_id: 'a memory' },
  run: async (verbCall, { entity_id: soughtEntityId, limit: entityRowLimit }) => {
    const entityAnswer = await timelineOf(verbCall, soughtEntityId, entityRowLimit);
    verbCall.note({ result: { events: entityAnswer.events.length } });
    return { entity_id: soughtEntityId, ...entityAnswer };
  },
});

/** The last events of a thing, in the order in which they were recorded. */
export async function timelineOf(verbCall: VerbCall, soughtEntityId: string, eventLimit: number) {
  const timelineEvents: z.output<typeof timelineEvent>[] = [];
  for (const entityType of readableEntityTypes(verbCall)) {
    const { name: entityTypeName } = entityType;
    const isLink = isLinkType(entityType);
    const timelineWhere = isLink ? '_pk = $1 OR from_id = $1 OR to_id = $1' : '_pk = $1';
    // The newest of each type: no more than these can be among the newest of all.
    const timelineSql = `SELECT * FROM ${quote(entityTypeName)} WHERE ${timelineWhere} ORDER BY system_from DESC LIMIT ${eventLimit + 1}`;
    for (const timelineRow of shownRows(await verbCall.answer(timelineSql, [soughtEntityId], 'all'))) {
      const eventInstant = (instantColumn: string): bigint | null =>
        typeof timelineRow[instantColumn] === 'bigint' ? timelineRow[instantColumn] : null;
      timelineEvents.push({
        type: entityTypeName,
        kind: isLink ? 'edge' : 'row',
        key: textOf(timelineRow['_pk'] as string | null),
        system_from: eventInstant('system_from'),
        valid_from: eventInstant('valid_from'),
        valid_to: eventInstant('valid_to'),
        row: timelineRow,
      });
    }
  }
  timelineEvents.sort(byTime);
  return { events: timelineEvents.slice(-eventLimit), truncated: timelineEvents.length > eventLimit };
}

type TimedEvent = Pick<z.output<typeof timelineEvent>, 'system_from'>;

export function byTime({ system_from: earlierFrom }: TimedEvent, { system_from: laterFrom }: TimedEvent): number {
  return Number((earlierFrom ?? 0n) > (laterFrom ?? 0n)) - Number((earlierFrom ?? 0n) < (laterFrom ?? 0n));
}

export const findConnections = verb({
  ...entityVerb,
  name: 'find_connections',
  description: 'Who and what a thing is connected with over edges, nearest first; get_relationships tells the edges themselves.',
  input: z.object({
    entity_id: entityIdField,
    max_hops: z.int().min(1).max(5).default(2),
    limit: z.int().min(1).max(1_000).default(100),
  }),
  output: z.object(answerMembers) as unknown as z.ZodType,
  units: 3,
  tool: { title: 'Connections', readOnly: true },
  example: { entity_id: 'a memory' },
  run: async (verbCall, { entity_id: soughtEntityId, max_hops: hopCount, limit: entityRowLimit }) => {
    const toolAnswer = await verbCall.answer(
      `SELECT * FROM NETWORK_EXPAND($1, MAX_HOPS => $2) LIMIT ${entityRowLimit}`,
      [soughtEntityId, BigInt(hopCount)],
      'all',
    );
    verbCall.note({ result: { row_count: toolAnswer.rowCount } });
    return queryReply(toolAnswer);
  },
});

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

const common = { action: 'search', purpose: 'required', bucket: 'read' } as const;
const shownRow = z.record(z.string(), z.unknown());
export const foundIdentifier = z.object({ type: z.string(), column: z.string(), kind: z.string(), canonical: z.string() });
export const timelineEvent = z.object({
  type: z.string(),
  kind: z.enum(['row', 'edge']),
  key: z.string().nullable(),
  system_from: nanosecondsOut.nullable(),
  valid_from: nanosecondsOut.nullable(),
  valid_to: nanosecondsOut.nullable(),
  row: shownRow,
});
const entityId = z.string().min(1).describe('id of the thing, in whatever type');

export const lookupIdentity = verb({
  ...common,
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
  run: async (verbCall, { raw, limit }) => {
    const toolAnswer = await verbCall.answer(`SELECT * FROM LOOKUP_IDENTITY($1) LIMIT ${limit}`, [raw], 'all');
    verbCall.note({ result: { row_count: toolAnswer.rowCount } });
    return queryReply(toolAnswer);
  },
});

export const getEntityProfile = verb({
  ...common,
  name: 'get_entity_profile',
  description:
    'All that is known now of a thing by its id: its row in every type, its identifiers, and how many edges of each kind it has.',
  input: z.object({ entity_id: entityId }),
  output: z.object({
    entity_id: z.string(),
    entities: z.array(z.object({ type: z.string(), row: shownRow })),
    identifiers: z.array(foundIdentifier),
    connections: z.array(z.object({ link_type: z.string(), edges: z.int() })),
  }),
  units: 5,
  tool: { title: 'Profile', readOnly: true },
  example: { entity_id: 'a memory' },
  run: async (verbCall, { entity_id: id }) => {
    const entities = [];
    const identifiers = [];
    const connections = [];
    for (const definition of readableTypes(verbCall)) {
      const { name } = definition;
      const toolAnswer = await verbCall.answer(`SELECT * FROM ${quote(name)} WHERE _pk = $1`, [id]);
      for (const row of shownRows(toolAnswer)) {
        entities.push({ type: name, row });
        identifiers.push(...identifiersOf(verbCall, definition, row));
      }
      if (!isLinkType(definition)) continue;
      const [counted] = await verbCall.ask(`SELECT COUNT(*) AS n FROM ${quote(name)} WHERE from_id = $1 OR to_id = $1`, [id]);
      const edges = Number(counted?.['n'] ?? 0n);
      if (edges > 0) connections.push({ link_type: name, edges });
    }
    verbCall.note({ result: { entities: entities.length } });
    return { entity_id: id, entities, identifiers, connections };
  },
});

export function identifiersOf(verbCall: VerbCall, definition: TypeDefinition, row: Readonly<Record<string, unknown>>) {
  const masked = verbCall.snapshot.masksOf(definition.name);
  return identifierColumns(definition).flatMap(({ column, kind }) => {
    const cell = row[column];
    if (masked.has(column) || (typeof cell !== 'string' && typeof cell !== 'bigint' && typeof cell !== 'number')) return [];
    return identifiersIn(String(cell))
      .filter(([each]) => kind === null || each === kind)
      .slice(0, 1)
      .map(([each, canonical]) => ({ type: definition.name, column, kind: each, canonical }));
  });
}

/** Types whose rows may be read: what is closed to the caller has no row for it. */
function readableTypes({ snapshot }: VerbCall): readonly TypeDefinition[] {
  return snapshot.catalog.types().filter(({ name }) => snapshot.offers(name));
}

export const getTimeline = verb({
  ...common,
  name: 'get_timeline',
  description: 'What became of a thing: every version of its rows and of its edges, in the order in which they were recorded.',
  input: z.object({ entity_id: entityId, limit: z.int().min(1).max(1_000).default(100).describe('the last so many') }),
  output: z.object({ entity_id: z.string(), events: z.array(timelineEvent), truncated: z.boolean() }),
  units: 3,
  tool: { title: 'Timeline', readOnly: true },
  example: { entity_id: 'a memory' },
  run: async (verbCall, { entity_id: id, limit }) => {
    const made = await timelineOf(verbCall, id, limit);
    verbCall.note({ result: { events: made.events.length } });
    return { entity_id: id, ...made };
  },
});

/** The last events of a thing, in the order in which they were recorded. */
export async function timelineOf(verbCall: VerbCall, id: string, limit: number) {
  const events: z.output<typeof timelineEvent>[] = [];
  for (const definition of readableTypes(verbCall)) {
    const { name } = definition;
    const isLink = isLinkType(definition);
    const where = isLink ? '_pk = $1 OR from_id = $1 OR to_id = $1' : '_pk = $1';
    // The newest of each type: no more than these can be among the newest of all.
    const sql = `SELECT * FROM ${quote(name)} WHERE ${where} ORDER BY system_from DESC LIMIT ${limit + 1}`;
    for (const row of shownRows(await verbCall.answer(sql, [id], 'all'))) {
      const instant = (column: string): bigint | null => (typeof row[column] === 'bigint' ? row[column] : null);
      events.push({
        type: name,
        kind: isLink ? 'edge' : 'row',
        key: textOf(row['_pk'] as string | null),
        system_from: instant('system_from'),
        valid_from: instant('valid_from'),
        valid_to: instant('valid_to'),
        row,
      });
    }
  }
  events.sort(byTime);
  return { events: events.slice(-limit), truncated: events.length > limit };
}

type Timed = Pick<z.output<typeof timelineEvent>, 'system_from'>;

export function byTime({ system_from: a }: Timed, { system_from: b }: Timed): number {
  return Number((a ?? 0n) > (b ?? 0n)) - Number((a ?? 0n) < (b ?? 0n));
}

export const findConnections = verb({
  ...common,
  name: 'find_connections',
  description: 'Who and what a thing is connected with over edges, nearest first; get_relationships tells the edges themselves.',
  input: z.object({
    entity_id: entityId,
    max_hops: z.int().min(1).max(5).default(2),
    limit: z.int().min(1).max(1_000).default(100),
  }),
  output: z.object(answerMembers) as unknown as z.ZodType,
  units: 3,
  tool: { title: 'Connections', readOnly: true },
  example: { entity_id: 'a memory' },
  run: async (verbCall, { entity_id: id, max_hops: hops, limit }) => {
    const toolAnswer = await verbCall.answer(
      `SELECT * FROM NETWORK_EXPAND($1, MAX_HOPS => $2) LIMIT ${limit}`,
      [id, BigInt(hops)],
      'all',
    );
    verbCall.note({ result: { row_count: toolAnswer.rowCount } });
    return queryReply(toolAnswer);
  },
});

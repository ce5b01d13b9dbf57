/**
 * What memories rest on, and what rests on them: by the columns in which rows name each other. Ids are looked up as the caller
 * sees the rows, so that what is not visible ends a path without a trace.
 *
 *   MemoryItem, or another type with these columns   supersedes, derived_from, tool_call_id, session_id
 *   DocumentChunk                                    source_id, tool_call_id
 *   DecisionRecord                                   inputs
 *   ToolCall of a recall                             result: the ids that it answered with
 */
import { ServiceError } from '../../../errors.ts';
import { listOf, quoted, type Row, textOf } from '../rows.ts';
import type { VerbSession } from '../session.ts';
import { memoryItem } from './items.ts';

export interface Link {
  readonly kind: string;
  readonly id: string;
  readonly row: Row;
  /** What it has to do with the one before it. */
  readonly relation: string;
  /** Id of the one before it. */
  readonly of: string;
}

/** What is followed at most: beyond that the caller has to narrow the question. */
const linksMax = 5_000;

const source = 'DocumentSource';
const chunk = 'DocumentChunk';

/** Types whose rows may follow from others; memories first. */
function itemTypes(session: VerbSession): readonly string[] {
  const names = session.snapshot.catalog.types().filter(({ properties }) => 'tool_call_id' in properties);
  return names
    .map(({ name }) => name)
    .filter((name) => name !== 'DecisionRecord' && name !== 'ToolCall')
    .sort((a, b) => Number(b === memoryItem) - Number(a === memoryItem));
}

/** Rows that can be hidden: all but the records of what was done. */
export function isItem(session: VerbSession, kind: string): boolean {
  return itemTypes(session).includes(kind);
}

/** The row of an id, whatever it is of: memories first. Every version counts, the newest one is told. */
export async function findRow(session: VerbSession, id: string): Promise<Link | null> {
  for (const kind of [...itemTypes(session), 'DecisionRecord', 'ToolCall', 'AgentSession']) {
    const row = await newest(session, kind, '_pk = $1', [id]);
    if (row.length > 0) return { kind, id, row: row[0]!, relation: 'asked for', of: id };
  }
  return null;
}

/** What a row rests on, step by step, nearest first. */
export async function upstream(session: VerbSession, from: Link): Promise<readonly Link[]> {
  return walk(session, from, async ({ kind, id, row }) => {
    const links: Link[] = [];
    const add = async (type: string, ids: readonly string[], relation: string): Promise<void> => {
      for (const each of ids) {
        const [found] = await newest(session, type, '_pk = $1', [each]);
        if (found !== undefined) links.push({ kind: type, id: each, row: found, relation, of: id });
      }
    };
    const named = (column: string): string[] => [textOf(row[column]) ?? []].flat();
    if (itemTypes(session).includes(kind)) {
      await add('ToolCall', named('tool_call_id'), 'made by');
      await add(kind, named('supersedes'), 'supersedes');
      if (kind === chunk) await add(source, named('source_id'), 'part of');
      for (const source of listOf(row['derived_from'])) {
        const found = await findRow(session, source);
        if (found !== null) links.push({ ...found, relation: 'derived from', of: id });
      }
      for (const decision of await naming(session, 'DecisionRecord', 'inputs', id))
        links.push({ kind: 'DecisionRecord', id: keyOf(decision), row: decision, relation: 'decided in', of: id });
    }
    // What else a decision weighed is no source of what it was about.
    if (kind === 'DecisionRecord' && id === from.id)
      for (const input of listOf(row['inputs'])) await add('MemoryItem', [input], 'weighed');
    if (kind !== 'AgentSession') await add('AgentSession', named('session_id'), 'in session');
    return links;
  });
}

/** What rests on a row, step by step. `readers`: with the recalls that answered with it. */
export async function downstream(session: VerbSession, from: Link, readers: boolean): Promise<readonly Link[]> {
  return walk(session, from, async ({ kind, id }) => {
    const links: Link[] = [];
    const isSource = kind === 'ToolCall' || kind === 'AgentSession';
    const column = kind === 'ToolCall' ? 'tool_call_id' : 'session_id';
    for (const type of itemTypes(session)) {
      const rows = isSource
        ? await equal(session, type, column, id)
        : [...(await equal(session, type, 'supersedes', id)), ...(await naming(session, type, 'derived_from', id))];
      for (const row of rows) {
        const relation = isSource ? 'made in' : textOf(row['supersedes']) === id ? 'superseded by' : 'source of';
        links.push({ kind: type, id: keyOf(row), row, relation, of: id });
      }
    }
    if (kind === source) {
      for (const row of await equal(session, chunk, 'source_id', id))
        links.push({ kind: chunk, id: keyOf(row), row, relation: 'has part', of: id });
    }
    if (!isSource) {
      for (const row of await naming(session, 'DecisionRecord', 'inputs', id)) {
        links.push({ kind: 'DecisionRecord', id: keyOf(row), row, relation: 'weighed in', of: id });
      }
    }
    if (readers && itemTypes(session).includes(kind)) {
      for (const row of await recallsOf(session, id)) {
        links.push({ kind: 'ToolCall', id: keyOf(row), row, relation: 'recalled by', of: id });
      }
    }
    return links;
  });
}

async function walk(session: VerbSession, from: Link, next: (link: Link) => Promise<readonly Link[]>): Promise<readonly Link[]> {
  const seen = new Set([`${from.kind} ${from.id}`]);
  const found: Link[] = [];
  for (let round: readonly Link[] = [from]; round.length > 0; ) {
    const following: Link[] = [];
    for (const link of round) {
      // Whoever recalled something did not make what else that call names.
      if (link.relation === 'recalled by') continue;
      for (const each of await next(link)) {
        const key = `${each.kind} ${each.id}`;
        if (seen.has(key)) continue;
        seen.add(key);
        found.push(each);
        following.push(each);
        if (found.length > linksMax) {
          throw new ServiceError(
            'REL_UNPROCESSABLE',
            `more than ${linksMax} rows are connected with it: ask about one further on`,
          );
        }
      }
      await session.parts.yieldTurn();
    }
    round = following;
  }
  return found;
}

/** The newest version of each row that fits. */
async function newest(session: VerbSession, type: string, where: string, values: readonly string[]): Promise<readonly Row[]> {
  if (session.snapshot.catalog.type(type) === undefined) return [];
  const rows = await session.ask(`SELECT * FROM ${quoted(type)} WHERE ${where} ORDER BY system_from DESC`, values, 'all');
  const first = new Map<string, Row>();
  for (const row of rows) if (!first.has(keyOf(row))) first.set(keyOf(row), row);
  return [...first.values()];
}

/** The same where the type has the column; none where it has not. */
async function equal(session: VerbSession, type: string, column: string, value: string): Promise<readonly Row[]> {
  return has(session, type, column) ? newest(session, type, `${column} = $1`, [value]) : [];
}

function has(session: VerbSession, type: string, column: string): boolean {
  return session.snapshot.catalog.type(type)?.properties[column] !== undefined;
}

const keyOf = (row: Row): string => String(row['_pk']);

/** Rows whose list names the id. The pattern may find more: LIKE escapes nothing. */
async function naming(session: VerbSession, type: string, column: string, id: string): Promise<readonly Row[]> {
  if (!has(session, type, column)) return [];
  const rows = await newest(session, type, `${column} LIKE $1`, [`%${JSON.stringify(id)}%`]);
  return rows.filter((row) => listOf(row[column]).includes(id));
}

async function recallsOf(session: VerbSession, id: string): Promise<readonly Row[]> {
  const rows = await newest(session, 'ToolCall', "name = 'recall' AND result LIKE $1", [`%${JSON.stringify(id)}%`]);
  return rows.filter(
    (row) => (JSON.parse(textOf(row['result']) ?? '{}') as { ids?: readonly string[] }).ids?.includes(id) === true,
  );
}

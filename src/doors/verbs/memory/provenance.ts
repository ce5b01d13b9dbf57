/**
 * Finds the sources and the dependents of memories, by the columns in which rows name each other. Ids are looked up among the
 * caller's visible rows, so that a hidden row ends a path without a trace.
 *
 *   MemoryItem, or another type with these columns   supersedes, derived_from, tool_call_id, session_id
 *   DocumentChunk                                    source_id, tool_call_id
 *   DecisionRecord                                   inputs
 *   ToolCall of a recall                             result: the ids that it answered with
 */
import { ServiceError } from '../../../errors.ts';
import { listOf, quote, type VerbRow, textOf } from '../verb-rows.ts';
import type { VerbCall } from '../verb-call.ts';
import { parseExactJson } from '../../shared/read-exact-json.ts';
import { memoryItem } from './memory-items.ts';

export interface ProvenanceLink {
  readonly kind: string;
  readonly id: string;
  readonly row: VerbRow;
  /** Its relation to the row before it. */
  readonly relation: string;
  /** Id of the one before it. */
  readonly of: string;
}

/** Most rows that are followed, and hidden at once: beyond that the caller has to narrow the question. */
const linksMax = 4_000;

const source = 'DocumentSource';
const chunk = 'DocumentChunk';

/** Types whose rows may follow from others; memories first. */
function itemTypes(verbCall: VerbCall): readonly string[] {
  const names = verbCall.snapshot.catalog.types().filter(({ properties }) => 'tool_call_id' in properties);
  return names
    .map(({ name }) => name)
    .filter((name) => name !== 'DecisionRecord' && name !== 'ToolCall')
    .sort((a, b) => Number(b === memoryItem) - Number(a === memoryItem));
}

/** Whether rows of a type can be hidden: all but the records of calls. */
export function isItem(verbCall: VerbCall, kind: string): boolean {
  return itemTypes(verbCall).includes(kind);
}

/** The newest version of the row with an id, in any type: memories first. */
export async function findRow(verbCall: VerbCall, id: string): Promise<ProvenanceLink | null> {
  const itemLink = (await new ProvenanceReader(verbCall).find([id])).get(id);
  return itemLink === undefined ? null : { ...itemLink, relation: 'asked for', of: id };
}

/** The sources of a row, step by step, nearest first. */
export async function upstream(verbCall: VerbCall, from: ProvenanceLink): Promise<readonly ProvenanceLink[]> {
  const reader = new ProvenanceReader(verbCall);
  return walk(verbCall, from, async (round) => {
    const links: ProvenanceLink[] = [];
    const items = round.filter(({ kind }) => isItem(verbCall, kind));
    await follow(reader, links, items, 'ToolCall', 'tool_call_id', 'made by');
    for (const kind of new Set(items.map((link) => link.kind))) {
      const own = items.filter((link) => link.kind === kind);
      await follow(reader, links, own, kind, 'supersedes', 'supersedes');
      if (kind === chunk) await follow(reader, links, own, source, 'source_id', 'part of');
    }
    const sources = await reader.find(items.flatMap(({ row }) => listOf(row['derived_from'])));
    for (const { id, row } of items) {
      for (const each of listOf(row['derived_from'])) {
        const sourceLink = sources.get(each);
        if (sourceLink !== undefined) links.push({ ...sourceLink, relation: 'derived from', of: id });
      }
    }
    await followLists(reader, links, items, 'DecisionRecord', 'inputs', 'decided in');
    // Other inputs of a decision are not sources of the row that it was about.
    for (const { kind, id, row } of round) {
      if (kind !== 'DecisionRecord' || id !== from.id) continue;
      const weighed = await reader.byKey(memoryItem, listOf(row['inputs']));
      for (const [key, each] of weighed) links.push({ kind: memoryItem, id: key, row: each, relation: 'weighed', of: id });
    }
    const inSession = round.filter(({ kind }) => kind !== 'AgentSession');
    await follow(reader, links, inSession, 'AgentSession', 'session_id', 'in session');
    return links;
  });
}

/** The dependents of a row, step by step. `readers`: with the recalls that answered with it. */
export async function downstream(verbCall: VerbCall, from: ProvenanceLink, readers: boolean): Promise<readonly ProvenanceLink[]> {
  const reader = new ProvenanceReader(verbCall);
  return walk(verbCall, from, async (round) => {
    const links: ProvenanceLink[] = [];
    const made = { ToolCall: 'tool_call_id', AgentSession: 'session_id' } as const;
    const rest = round.filter(({ kind }) => !Object.hasOwn(made, kind));
    for (const type of itemTypes(verbCall)) {
      for (const [kind, column] of Object.entries(made)) {
        await pointing(
          reader,
          links,
          round.filter((link) => link.kind === kind),
          type,
          column,
          'made in',
        );
      }
      await pointing(reader, links, rest, type, 'supersedes', 'superseded by');
      await followLists(reader, links, rest, type, 'derived_from', 'source of');
    }
    await pointing(
      reader,
      links,
      rest.filter(({ kind }) => kind === source),
      chunk,
      'source_id',
      'has part',
    );
    await followLists(reader, links, rest, 'DecisionRecord', 'inputs', 'weighed in');
    if (readers) {
      const items = rest.filter(({ kind }) => isItem(verbCall, kind));
      for (const { id } of items) {
        for (const row of await reader.recallsOf(id)) {
          links.push({ kind: 'ToolCall', id: keyOf(row), row, relation: 'recalled by', of: id });
        }
      }
    }
    return links;
  });
}

/** Follows a column of links to the rows that it names. */
async function follow(
  reader: ProvenanceReader,
  to: ProvenanceLink[],
  links: readonly ProvenanceLink[],
  type: string,
  column: string,
  relation: string,
) {
  const dependentRows = await reader.byKey(
    type,
    links.flatMap(({ row }) => textOf(row[column]) ?? []),
  );
  for (const { id, row } of links) {
    const key = textOf(row[column]);
    const each = key === null ? undefined : dependentRows.get(key);
    if (each !== undefined) to.push({ kind: type, id: key!, row: each, relation, of: id });
  }
}

/** Finds the rows of a type that name links in a column. */
async function pointing(
  reader: ProvenanceReader,
  to: ProvenanceLink[],
  links: readonly ProvenanceLink[],
  type: string,
  column: string,
  relation: string,
) {
  const ids = links.map(({ id }) => id);
  for (const row of await reader.rows(type, column, ids)) {
    to.push({ kind: type, id: keyOf(row), row, relation, of: textOf(row[column])! });
  }
}

/** Finds the rows of a type that name links in a list column. */
async function followLists(
  reader: ProvenanceReader,
  to: ProvenanceLink[],
  links: readonly ProvenanceLink[],
  type: string,
  column: string,
  relation: string,
) {
  for (const { id } of links) {
    for (const row of await reader.naming(type, column, id)) to.push({ kind: type, id: keyOf(row), row, relation, of: id });
  }
}

async function walk(
  verbCall: VerbCall,
  from: ProvenanceLink,
  next: (round: readonly ProvenanceLink[]) => Promise<readonly ProvenanceLink[]>,
): Promise<readonly ProvenanceLink[]> {
  const seen = new Set([`${from.kind} ${from.id}`]);
  const recallLinks: ProvenanceLink[] = [];
  for (let round: readonly ProvenanceLink[] = [from]; round.length > 0; ) {
    const following: ProvenanceLink[] = [];
    for (const each of await next(round)) {
      const key = `${each.kind} ${each.id}`;
      if (seen.has(key)) continue;
      seen.add(key);
      recallLinks.push(each);
      // A recall only read the row: other rows of that call don't depend on it.
      if (each.relation !== 'recalled by') following.push(each);
      if (recallLinks.length > linksMax) {
        throw new ServiceError(
          'REL_UNPROCESSABLE',
          `more than ${linksMax} rows are connected with it: ask about one of them instead`,
        );
      }
    }
    await verbCall.parts.yieldTurn();
    round = following;
  }
  return recallLinks;
}

/** Ids that one question names. */
const idsAtOnce = 200;

/** Finds rows by the ids that they name, as the caller sees them: few queries for many ids. */
class ProvenanceReader {
  readonly #verbCall: VerbCall;
  /** Lists by type and column: the rows by each id in them. */
  readonly #lists = new Map<string, Promise<ReadonlyMap<string, readonly VerbRow[]>>>();

  constructor(verbCall: VerbCall) {
    this.#verbCall = verbCall;
  }

  /** Finds rows by id, in any type. */
  async find(ids: readonly string[]): Promise<ReadonlyMap<string, Pick<ProvenanceLink, 'kind' | 'id' | 'row'>>> {
    const rowsById = new Map<string, Pick<ProvenanceLink, 'kind' | 'id' | 'row'>>();
    for (const kind of [...itemTypes(this.#verbCall), 'DecisionRecord', 'ToolCall', 'AgentSession']) {
      const open = ids.filter((id) => !rowsById.has(id));
      for (const [id, row] of await this.byKey(kind, open)) rowsById.set(id, { kind, id, row });
    }
    return rowsById;
  }

  async byKey(type: string, keys: readonly string[]): Promise<ReadonlyMap<string, VerbRow>> {
    return new Map((await this.#rowsWhereIn(type, '_pk', keys)).map((row) => [keyOf(row), row]));
  }

  /** Rows by the values of a column; none where the type lacks it. */
  async rows(type: string, column: string, values: readonly string[]): Promise<readonly VerbRow[]> {
    return this.#has(type, column) ? this.#rowsWhereIn(type, column, values) : [];
  }

  /** Rows whose list names the id. */
  async naming(type: string, column: string, id: string): Promise<readonly VerbRow[]> {
    if (!this.#has(type, column)) return [];
    const name = `${type} ${column}`;
    let lists = this.#lists.get(name);
    if (lists === undefined) this.#lists.set(name, (lists = this.#listsOf(type, column)));
    return (await lists).get(id) ?? [];
  }

  /** The pattern may find more: LIKE escapes nothing. */
  async recallsOf(id: string): Promise<readonly VerbRow[]> {
    const rows = await this.#newest('ToolCall', "name = 'recall' AND result LIKE $1", [`%${JSON.stringify(id)}%`]);
    return rows.filter(
      (row) => (parseExactJson(textOf(row['result']) ?? '{}') as { ids?: readonly string[] }).ids?.includes(id) === true,
    );
  }

  async #listsOf(type: string, column: string): Promise<ReadonlyMap<string, readonly VerbRow[]>> {
    const byId = new Map<string, VerbRow[]>();
    for (const row of await this.#newest(type, `${column} IS NOT NULL`, [])) {
      for (const id of new Set(listOf(row[column]))) {
        const known = byId.get(id);
        if (known === undefined) byId.set(id, [row]);
        else known.push(row);
      }
    }
    return byId;
  }

  async #rowsWhereIn(type: string, column: string, values: readonly string[]): Promise<readonly VerbRow[]> {
    const distinct = [...new Set(values)];
    const rows: VerbRow[] = [];
    for (let first = 0; first < distinct.length; first += idsAtOnce) {
      const some = distinct.slice(first, first + idsAtOnce);
      const marks = some.map((_, i) => `$${i + 1}`).join(', ');
      rows.push(...(await this.#newest(type, `${column} IN (${marks})`, some)));
    }
    return rows;
  }

  /** The newest version of each row that fits. */
  async #newest(type: string, where: string, values: readonly string[]): Promise<readonly VerbRow[]> {
    const { snapshot } = this.#verbCall;
    if (snapshot.catalog.type(type) === undefined) return [];
    const rows = await this.#verbCall.ask(`SELECT * FROM ${quote(type)} WHERE ${where} ORDER BY system_from DESC`, values, 'all');
    const first = new Map<string, VerbRow>();
    for (const row of rows) if (!first.has(keyOf(row))) first.set(keyOf(row), row);
    return [...first.values()];
  }

  #has(type: string, column: string): boolean {
    return this.#verbCall.snapshot.catalog.type(type)?.properties[column] !== undefined;
  }
}

const keyOf = (row: VerbRow): string => String(row['_pk']);

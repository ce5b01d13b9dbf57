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
const provenanceLinksMax = 4_000;

const documentSourceType = 'DocumentSource';
const documentChunkType = 'DocumentChunk';

/** Types whose rows may follow from others; memories first. */
function memoryItemTypes(verbCall: VerbCall): readonly string[] {
  const toolCallTypes = verbCall.snapshot.catalog.types().filter(({ properties }) => 'tool_call_id' in properties);
  return toolCallTypes
    .map(({ name: itemTypeName }) => itemTypeName)
    .filter((itemTypeName) => itemTypeName !== 'DecisionRecord' && itemTypeName !== 'ToolCall')
    .sort((typeA, typeB) => Number(typeB === memoryItem) - Number(typeA === memoryItem));
}

/** Whether rows of a type can be hidden: all but the records of calls. */
export function isItem(verbCall: VerbCall, linkKind: string): boolean {
  return memoryItemTypes(verbCall).includes(linkKind);
}

/** The newest version of the row with an id, in any type: memories first. */
export async function findRow(verbCall: VerbCall, memoryId: string): Promise<ProvenanceLink | null> {
  const itemLink = (await new ProvenanceReader(verbCall).find([memoryId])).get(memoryId);
  return itemLink === undefined ? null : { ...itemLink, relation: 'asked for', of: memoryId };
}

/** The sources of a row, step by step, nearest first. */
export async function upstream(verbCall: VerbCall, startLink: ProvenanceLink): Promise<readonly ProvenanceLink[]> {
  const provenanceReader = new ProvenanceReader(verbCall);
  return walkProvenance(verbCall, startLink, async (linkRound) => {
    const upstreamLinks: ProvenanceLink[] = [];
    const itemLinks = linkRound.filter(({ kind: linkKind }) => isItem(verbCall, linkKind));
    await followColumn(provenanceReader, upstreamLinks, itemLinks, 'ToolCall', 'tool_call_id', 'made by');
    for (const kind of new Set(itemLinks.map((itemLink) => itemLink.kind))) {
      const linksOfKind = itemLinks.filter((itemLink) => itemLink.kind === kind);
      await followColumn(provenanceReader, upstreamLinks, linksOfKind, kind, 'supersedes', 'supersedes');
      if (kind === documentChunkType)
        await followColumn(provenanceReader, upstreamLinks, linksOfKind, documentSourceType, 'source_id', 'part of');
    }
    const derivedSources = await provenanceReader.find(itemLinks.flatMap(({ row: linkRow }) => listOf(linkRow['derived_from'])));
    for (const { id: linkId, row } of itemLinks) {
      for (const sourceId of listOf(row['derived_from'])) {
        const sourceLink = derivedSources.get(sourceId);
        if (sourceLink !== undefined) upstreamLinks.push({ ...sourceLink, relation: 'derived from', of: linkId });
      }
    }
    await followListColumn(provenanceReader, upstreamLinks, itemLinks, 'DecisionRecord', 'inputs', 'decided in');
    // Other inputs of a decision are not sources of the row that it was about.
    for (const { kind, id, row } of linkRound) {
      if (kind !== 'DecisionRecord' || id !== startLink.id) continue;
      const weighedMemories = await provenanceReader.byKey(memoryItem, listOf(row['inputs']));
      for (const [weighedKey, sourceId] of weighedMemories)
        upstreamLinks.push({ kind: memoryItem, id: weighedKey, row: sourceId, relation: 'weighed', of: id });
    }
    const linksInSession = linkRound.filter(({ kind: linkKind }) => linkKind !== 'AgentSession');
    await followColumn(provenanceReader, upstreamLinks, linksInSession, 'AgentSession', 'session_id', 'in session');
    return upstreamLinks;
  });
}

/** The dependents of a row, step by step. `includesRecalls`: with the recalls that answered with it. */
export async function downstream(
  verbCall: VerbCall,
  startLink: ProvenanceLink,
  includesRecalls: boolean,
): Promise<readonly ProvenanceLink[]> {
  const provenanceReader = new ProvenanceReader(verbCall);
  return walkProvenance(verbCall, startLink, async (linkRound) => {
    const downstreamLinks: ProvenanceLink[] = [];
    const madeInColumns = { ToolCall: 'tool_call_id', AgentSession: 'session_id' } as const;
    const otherLinks = linkRound.filter(({ kind: linkKind }) => !Object.hasOwn(madeInColumns, linkKind));
    for (const itemTypeName of memoryItemTypes(verbCall)) {
      for (const [linkKind, madeInColumn] of Object.entries(madeInColumns)) {
        await linkRowsPointing(
          provenanceReader,
          downstreamLinks,
          linkRound.filter((roundLink) => roundLink.kind === linkKind),
          itemTypeName,
          madeInColumn,
          'made in',
        );
      }
      await linkRowsPointing(provenanceReader, downstreamLinks, otherLinks, itemTypeName, 'supersedes', 'superseded by');
      await followListColumn(provenanceReader, downstreamLinks, otherLinks, itemTypeName, 'derived_from', 'source of');
    }
    await linkRowsPointing(
      provenanceReader,
      downstreamLinks,
      otherLinks.filter(({ kind: linkKind }) => linkKind === documentSourceType),
      documentChunkType,
      'source_id',
      'has part',
    );
    await followListColumn(provenanceReader, downstreamLinks, otherLinks, 'DecisionRecord', 'inputs', 'weighed in');
    if (includesRecalls) {
      const itemLinks = otherLinks.filter(({ kind: linkKind }) => isItem(verbCall, linkKind));
      for (const { id: linkId } of itemLinks) {
        for (const recallRow of await provenanceReader.recallsOf(linkId)) {
          downstreamLinks.push({
            kind: 'ToolCall',
            id: provenanceRowKey(recallRow),
            row: recallRow,
            relation: 'recalled by',
            of: linkId,
          });
        }
      }
    }
    return downstreamLinks;
  });
}

/** Follows a column of links to the rows that it names. */
async function followColumn(
  provenanceReader: ProvenanceReader,
  foundLinks: ProvenanceLink[],
  fromLinks: readonly ProvenanceLink[],
  linkedType: string,
  linkColumn: string,
  linkRelation: string,
) {
  const dependentRows = await provenanceReader.byKey(
    linkedType,
    fromLinks.flatMap(({ row: linkRow }) => textOf(linkRow[linkColumn]) ?? []),
  );
  for (const { id: linkId, row } of fromLinks) {
    const linkedKey = textOf(row[linkColumn]);
    const linkedRow = linkedKey === null ? undefined : dependentRows.get(linkedKey);
    if (linkedRow !== undefined)
      foundLinks.push({ kind: linkedType, id: linkedKey!, row: linkedRow, relation: linkRelation, of: linkId });
  }
}

/** Finds the rows of a type that name links in a column. */
async function linkRowsPointing(
  provenanceReader: ProvenanceReader,
  foundLinks: ProvenanceLink[],
  fromLinks: readonly ProvenanceLink[],
  linkedType: string,
  linkColumn: string,
  linkRelation: string,
) {
  const linkIds = fromLinks.map(({ id: linkId }) => linkId);
  for (const pointingRow of await provenanceReader.rows(linkedType, linkColumn, linkIds)) {
    foundLinks.push({
      kind: linkedType,
      id: provenanceRowKey(pointingRow),
      row: pointingRow,
      relation: linkRelation,
      of: textOf(pointingRow[linkColumn])!,
    });
  }
}

/** Finds the rows of a type that name links in a list column. */
async function followListColumn(
  provenanceReader: ProvenanceReader,
  foundLinks: ProvenanceLink[],
  fromLinks: readonly ProvenanceLink[],
  linkedType: string,
  listColumn: string,
  linkRelation: string,
) {
  for (const { id: linkId } of fromLinks) {
    for (const namingRow of await provenanceReader.naming(linkedType, listColumn, linkId))
      foundLinks.push({ kind: linkedType, id: provenanceRowKey(namingRow), row: namingRow, relation: linkRelation, of: linkId });
  }
}

async function walkProvenance(
  verbCall: VerbCall,
  startLink: ProvenanceLink,
  nextLinks: (linkRound: readonly ProvenanceLink[]) => Promise<readonly ProvenanceLink[]>,
): Promise<readonly ProvenanceLink[]> {
  const seenLinks = new Set([`${startLink.kind} ${startLink.id}`]);
  const recallLinks: ProvenanceLink[] = [];
  for (let linkRound: readonly ProvenanceLink[] = [startLink]; linkRound.length > 0; ) {
    const followingLinks: ProvenanceLink[] = [];
    for (const walkedLink of await nextLinks(linkRound)) {
      const linkKey = `${walkedLink.kind} ${walkedLink.id}`;
      if (seenLinks.has(linkKey)) continue;
      seenLinks.add(linkKey);
      recallLinks.push(walkedLink);
      // A recall only read the row: other rows of that call don't depend on it.
      if (walkedLink.relation !== 'recalled by') followingLinks.push(walkedLink);
      if (recallLinks.length > provenanceLinksMax) {
        throw new ServiceError(
          'REL_UNPROCESSABLE',
          `more than ${provenanceLinksMax} rows are connected with it: ask about one of them instead`,
        );
      }
    }
    await verbCall.parts.yieldTurn();
    linkRound = followingLinks;
  }
  return recallLinks;
}

/** Ids that one question names. */
const provenanceIdsAtOnce = 200;

/** Finds rows by the ids that they name, as the caller sees them: few queries for many ids. */
class ProvenanceReader {
  readonly #verbCall: VerbCall;
  /** Lists by type and column: the rows by each id in them. */
  readonly #lists = new Map<string, Promise<ReadonlyMap<string, readonly VerbRow[]>>>();

  constructor(verbCall: VerbCall) {
    this.#verbCall = verbCall;
  }

  /** Finds rows by id, in any type. */
  async find(soughtIds: readonly string[]): Promise<ReadonlyMap<string, Pick<ProvenanceLink, 'kind' | 'id' | 'row'>>> {
    const rowsById = new Map<string, Pick<ProvenanceLink, 'kind' | 'id' | 'row'>>();
    for (const linkKind of [...memoryItemTypes(this.#verbCall), 'DecisionRecord', 'ToolCall', 'AgentSession']) {
      const unseenIds = soughtIds.filter((linkId) => !rowsById.has(linkId));
      for (const [id, linkRow] of await this.byKey(linkKind, unseenIds)) rowsById.set(id, { kind: linkKind, id, row: linkRow });
    }
    return rowsById;
  }

  async byKey(keyedType: string, rowKeys: readonly string[]): Promise<ReadonlyMap<string, VerbRow>> {
    return new Map(
      (await this.#rowsWhereIn(keyedType, '_pk', rowKeys)).map((keyedRow) => [provenanceRowKey(keyedRow), keyedRow]),
    );
  }

  /** Rows by the values of a column; none where the type lacks it. */
  async rows(linkedType: string, linkColumn: string, linkValues: readonly string[]): Promise<readonly VerbRow[]> {
    return this.#has(linkedType, linkColumn) ? this.#rowsWhereIn(linkedType, linkColumn, linkValues) : [];
  }

  /** Rows whose list names the id. */
  async naming(listType: string, listColumn: string, linkId: string): Promise<readonly VerbRow[]> {
    if (!this.#has(listType, listColumn)) return [];
    const listName = `${listType} ${listColumn}`;
    let rowsByListedId = this.#lists.get(listName);
    if (rowsByListedId === undefined) this.#lists.set(listName, (rowsByListedId = this.#listsOf(listType, listColumn)));
    return (await rowsByListedId).get(linkId) ?? [];
  }

  /** The pattern may find more: LIKE escapes nothing. */
  async recallsOf(memoryId: string): Promise<readonly VerbRow[]> {
    const recallCalls = await this.#newest('ToolCall', "name = 'recall' AND result LIKE $1", [`%${JSON.stringify(memoryId)}%`]);
    return recallCalls.filter(
      (recallCall) =>
        (parseExactJson(textOf(recallCall['result']) ?? '{}') as { ids?: readonly string[] }).ids?.includes(memoryId) === true,
    );
  }

  async #listsOf(listType: string, listColumn: string): Promise<ReadonlyMap<string, readonly VerbRow[]>> {
    const rowsByListedId = new Map<string, VerbRow[]>();
    for (const listRow of await this.#newest(listType, `${listColumn} IS NOT NULL`, [])) {
      for (const listedId of new Set(listOf(listRow[listColumn]))) {
        const knownRows = rowsByListedId.get(listedId);
        if (knownRows === undefined) rowsByListedId.set(listedId, [listRow]);
        else knownRows.push(listRow);
      }
    }
    return rowsByListedId;
  }

  async #rowsWhereIn(type: string, column: string, values: readonly string[]): Promise<readonly VerbRow[]> {
    const distinct = [...new Set(values)];
    const rows: VerbRow[] = [];
    for (let first = 0; first < distinct.length; first += provenanceIdsAtOnce) {
      const some = distinct.slice(first, first + provenanceIdsAtOnce);
      const marks = some.map((_, i) => `$${i + 1}`).join(', ');
      rows.push(...(await this.#newest(type, `${column} IN (${marks})`, some)));
    }
    return rows;
  }

  /** The newest version of each row that fits. */
  async #newest(linkedType: string, versionWhere: string, whereValues: readonly string[]): Promise<readonly VerbRow[]> {
    const { snapshot } = this.#verbCall;
    if (snapshot.catalog.type(linkedType) === undefined) return [];
    const versionRows = await this.#verbCall.ask(
      `SELECT * FROM ${quote(linkedType)} WHERE ${versionWhere} ORDER BY system_from DESC`,
      whereValues,
      'all',
    );
    const newestByKey = new Map<string, VerbRow>();
    for (const versionRow of versionRows)
      if (!newestByKey.has(provenanceRowKey(versionRow))) newestByKey.set(provenanceRowKey(versionRow), versionRow);
    return [...newestByKey.values()];
  }

  #has(linkedType: string, linkColumn: string): boolean {
    return this.#verbCall.snapshot.catalog.type(linkedType)?.properties[linkColumn] !== undefined;
  }
}

const provenanceRowKey = (provenanceRow: VerbRow): string => String(provenanceRow['_pk']);

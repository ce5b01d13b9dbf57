/**
 * Runs a search in process: its queries become statements over one snapshot, in one invocation, with one access record that lists
 * them. Doors translate their bodies into a `SearchRequest`, and the result into their words.
 */
import { ServiceError } from '../../errors.ts';
import type { Invocation } from '../../governance/gate-contract.ts';
import type { Vector } from '../../log/values/columns.ts';
import type { Cell, ColumnType } from '../../log/values/value.ts';
import { cellAt, VectorBuilder } from '../../log/values/vector-builder.ts';
import { searchStatement } from '../languages/search-json.ts';
import type { Answer, OutputBatch, OutputColumn, PlannerDoor } from '../planner-contract.ts';
import { readSearchCursor, type SearchCursor, searchCursor } from './search-cursor.ts';
import type { SearchQuery, SearchRequest } from '../languages/search-request.ts';

export interface SearchAnswer {
  /** By query. Each has facets, which are empty where none were asked for, and its `nextCursor` is of the search. */
  readonly answers: readonly Answer[];
  readonly fused: Fused | null;
  /** Instant of the one snapshot that all of them saw. */
  readonly asOfSystem: bigint;
  overtaken(): boolean;
}

/** Rows of several answers in one order, best first. */
export interface Fused {
  readonly constant: number;
  readonly rows: readonly FusedRow[];
}

/** A row with the columns of the first answer that has it, and `_rrf_score`. */
export interface FusedRow {
  readonly columns: readonly OutputColumn[];
  readonly batches: readonly [OutputBatch];
}

/** Throws the errors of SQL; with several queries they name the one at fault. */
export async function search(
  planner: Pick<PlannerDoor, 'querySeries'>,
  invocation: Invocation,
  request: SearchRequest,
  signal?: AbortSignal,
): Promise<SearchAnswer> {
  const { name, queries, fuse } = request;
  // The record names the types whether or not they can be read.
  const searchedTypes = [...new Set(queries.map(({ type }) => type))].join(',');
  invocation.describe({ template: name, objectType: searchedTypes });
  const limitSum = queries.reduce((sum, { limit }) => sum + limit, 0);
  if (queries.length > 1 && limitSum > searchRowsMax) {
    throw new ServiceError('REL_RESULT_CAP', `several searches yield at most ${searchRowsMax} rows together: lower their limits`);
  }
  const searchQueries = planner.querySeries(invocation, { template: name, literals: [] });
  const snapshot = searchQueries.snapshot();
  const answers: { readonly answer: Answer; readonly versions: readonly BigInt64Array[] }[] = [];
  for (const [i, searchQuery] of queries.entries()) {
    try {
      const queryCursor = searchQuery.cursor === null ? null : readSearchCursor(searchQuery.cursor);
      const searchPage = searchPageOf(request, queryCursor, snapshot.instant);
      const { question } = searchStatement(searchQuery, snapshot, { offset: searchPage.offset, withVersion: fuse !== null });
      const searchAnswer = await searchQueries.query({
        parsed: question,
        time: { system: searchPage.system, valid: searchPage.valid },
        typo: searchQuery.typo ?? 'configured',
        ...(searchQuery.consistency && { consistency: searchQuery.consistency }),
        queriesOnly: true,
        ...(signal && { signal }),
      });
      const rowVersions = fuse ? answerVersionsOf(searchAnswer) : [];
      const pageAnswer = fuse ? withoutVersionColumn(searchAnswer) : searchAnswer;
      answers.push({
        answer: {
          ...pageAnswer,
          facets: pageAnswer.facets ?? noSearchFacets,
          nextCursor: nextSearchCursor(searchQuery, searchPage, pageAnswer),
        },
        versions: rowVersions,
      });
    } catch (error) {
      throw queries.length > 1 ? withQueryNumber(error, i) : error;
    }
  }
  return {
    answers: answers.map(({ answer: pageAnswer }) => pageAnswer),
    fused: fuse && fuseAnswers(answers, fuse),
    asOfSystem: snapshot.instant,
    overtaken: () => searchQueries.overtaken(),
  };
}

/** All answers of a request are held until the last is made. */
const searchRowsMax = 100_000;

const noSearchFacets: NonNullable<Answer['facets']> = { counts: new Map(), stats: new Map() };

/** Without instants it reads current rows; with a system instant alone, valid time is the same instant. */
function searchPageOf({ asOf, asOfSystem }: SearchRequest, cursor: SearchCursor | null, now: bigint): SearchCursor {
  const systemInstant = asOfSystem ?? cursor?.system ?? now;
  const validInstant = asOf ?? cursor?.valid ?? asOfSystem ?? now;
  if (cursor && (cursor.system !== systemInstant || cursor.valid !== validInstant)) {
    throw new ServiceError('REL_INVALID', 'the cursor is of another instant than the search');
  }
  return { system: systemInstant, valid: validInstant, offset: cursor?.offset ?? 0 };
}

/** The cursor for the next page, as of now: later writes move none of its rows. */
function nextSearchCursor(
  { limit, ranking }: SearchQuery,
  searchPage: SearchCursor,
  { rowCount, estimatedTotalHits }: Answer,
): string | null {
  const isRanked = ranking !== null && ranking.by !== 'words';
  const nextOffset = searchPage.offset + rowCount;
  if (isRanked || limit === 0 || rowCount < limit || estimatedTotalHits <= nextOffset) return null;
  return searchCursor({ ...searchPage, offset: nextOffset });
}

function withQueryNumber(error: unknown, queryOrdinal: number): unknown {
  if (!(error instanceof ServiceError) || error.code === 'REL_INTERNAL') return error;
  return new ServiceError(error.code, `queries[${queryOrdinal}]: ${error.message}`, error.facts);
}

/** By batch: `system_from` of each row, which identifies its version. */
function answerVersionsOf({ batches }: Answer): readonly BigInt64Array[] {
  return batches.map(({ columns, selection, first, count }) => {
    const vector = columns.at(-1)!;
    const isTold = vector.kind === 'i64' && vector.nulls === null;
    if (!isTold)
      throw new ServiceError('REL_MASKED_COLUMN', 'column "system_from" is masked: rows can’t be told apart to be fused');
    return BigInt64Array.from({ length: count }, (_, i) => vector.values[selection === null ? first + i : selection[i]!]!);
  });
}

function withoutVersionColumn(answer: Answer): Answer {
  const batches = answer.batches.map((batch) => ({ ...batch, columns: batch.columns.slice(0, -1) }));
  return { ...answer, columns: answer.columns.slice(0, -1), batches };
}

/** Source: specification, "Search", shape C: the sum of 1 / (K + rank) over the answers that a row is in, ranks from 1. */
function fuseAnswers(
  answers: readonly { readonly answer: Answer; readonly versions: readonly BigInt64Array[] }[],
  { constant, limit }: NonNullable<SearchRequest['fuse']>,
): Fused {
  const fusedByVersion = new Map<
    bigint,
    { score: number; readonly answer: Answer; readonly batch: OutputBatch; readonly rowIndex: number }
  >();
  for (const { answer, versions } of answers) {
    let fusedRank = 0;
    for (const [b, batch] of answer.batches.entries()) {
      versions[b]!.forEach((version, rowIndex) => {
        const rankShare = 1 / (constant + ++fusedRank);
        const knownFused = fusedByVersion.get(version);
        if (knownFused) knownFused.score += rankShare;
        else fusedByVersion.set(version, { score: rankShare, answer, batch, rowIndex });
      });
    }
  }
  const rankedVersions = [...fusedByVersion]
    .sort(([a, { score: x }], [b, { score: y }]) => y - x || (a < b ? -1 : 1))
    .slice(0, limit);
  return {
    constant,
    rows: rankedVersions.map(([, { score, answer, batch, rowIndex }]): FusedRow => {
      const rowColumns = answer.columns.flatMap(({ name }, i) => (name === '_score' ? [] : [i]));
      const fusedRow = batch.selection === null ? batch.first + rowIndex : batch.selection[rowIndex]!;
      const fusedCells = rowColumns.map((i) =>
        singleCellVector(answer.columns[i]!.type, cellAt(batch.columns[i]!, answer.columns[i]!.type, fusedRow)),
      );
      return {
        columns: [...rowColumns.map((i) => answer.columns[i]!), { name: '_rrf_score', type: 'number' }],
        batches: [{ columns: [...fusedCells, singleCellVector('number', score)], selection: null, first: 0, count: 1 }],
      };
    }),
  };
}

/** A column of one cell. */
function singleCellVector(type: ColumnType, cell: Cell): Vector {
  const cellBuilder = new VectorBuilder(type, 1);
  cellBuilder.append(cell);
  return cellBuilder.build();
}

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
  const types = [...new Set(queries.map(({ type }) => type))].join(',');
  invocation.describe({ template: name, objectType: types });
  const rows = queries.reduce((sum, { limit }) => sum + limit, 0);
  if (queries.length > 1 && rows > rowsTogether) {
    throw new ServiceError('REL_RESULT_CAP', `several searches yield at most ${rowsTogether} rows together: lower their limits`);
  }
  const session = planner.querySeries(invocation, { template: name, literals: [] });
  const snapshot = session.snapshot();
  const answers: { readonly answer: Answer; readonly versions: readonly BigInt64Array[] }[] = [];
  for (const [i, query] of queries.entries()) {
    try {
      const cursor = query.cursor === null ? null : readSearchCursor(query.cursor);
      const page = pageOf(request, cursor, snapshot.instant);
      const { question } = searchStatement(query, snapshot, { offset: page.offset, withVersion: fuse !== null });
      const searchAnswer = await session.query({
        parsed: question,
        time: { system: page.system, valid: page.valid },
        typo: query.typo ?? 'configured',
        ...(query.consistency && { consistency: query.consistency }),
        queriesOnly: true,
        ...(signal && { signal }),
      });
      const versions = fuse ? versionsOf(searchAnswer) : [];
      const answer = fuse ? withoutLast(searchAnswer) : searchAnswer;
      answers.push({
        answer: { ...answer, facets: answer.facets ?? noFacets, nextCursor: nextOf(query, page, answer) },
        versions,
      });
    } catch (error) {
      throw queries.length > 1 ? withNumber(error, i) : error;
    }
  }
  return {
    answers: answers.map(({ answer }) => answer),
    fused: fuse && fuseAnswers(answers, fuse),
    asOfSystem: snapshot.instant,
    overtaken: () => session.overtaken(),
  };
}

/** All answers of a request are held until the last is made. */
const rowsTogether = 100_000;

const noFacets: NonNullable<Answer['facets']> = { counts: new Map(), stats: new Map() };

/** Without instants it reads current rows; with a system instant alone, valid time is the same instant. */
function pageOf({ asOf, asOfSystem }: SearchRequest, cursor: SearchCursor | null, now: bigint): SearchCursor {
  const system = asOfSystem ?? cursor?.system ?? now;
  const valid = asOf ?? cursor?.valid ?? asOfSystem ?? now;
  if (cursor && (cursor.system !== system || cursor.valid !== valid)) {
    throw new ServiceError('REL_INVALID', 'the cursor is of another instant than the search');
  }
  return { system, valid, offset: cursor?.offset ?? 0 };
}

/** The cursor for the next page, as of now: later writes move none of its rows. */
function nextOf({ limit, ranking }: SearchQuery, page: SearchCursor, { rowCount, estimatedTotalHits }: Answer): string | null {
  const isRanked = ranking !== null && ranking.by !== 'words';
  const offset = page.offset + rowCount;
  if (isRanked || limit === 0 || rowCount < limit || estimatedTotalHits <= offset) return null;
  return searchCursor({ ...page, offset });
}

function withNumber(error: unknown, query: number): unknown {
  if (!(error instanceof ServiceError) || error.code === 'REL_INTERNAL') return error;
  return new ServiceError(error.code, `queries[${query}]: ${error.message}`, error.facts);
}

/** By batch: `system_from` of each row, which identifies its version. */
function versionsOf({ batches }: Answer): readonly BigInt64Array[] {
  return batches.map(({ columns, selection, first, count }) => {
    const vector = columns.at(-1)!;
    const isTold = vector.kind === 'i64' && vector.nulls === null;
    if (!isTold)
      throw new ServiceError('REL_MASKED_COLUMN', 'column "system_from" is masked: rows can’t be told apart to be fused');
    return BigInt64Array.from({ length: count }, (_, i) => vector.values[selection === null ? first + i : selection[i]!]!);
  });
}

function withoutLast(answer: Answer): Answer {
  const batches = answer.batches.map((batch) => ({ ...batch, columns: batch.columns.slice(0, -1) }));
  return { ...answer, columns: answer.columns.slice(0, -1), batches };
}

/** Source: specification, "Search", shape C: the sum of 1 / (K + rank) over the answers that a row is in, ranks from 1. */
function fuseAnswers(
  answers: readonly { readonly answer: Answer; readonly versions: readonly BigInt64Array[] }[],
  { constant, limit }: NonNullable<SearchRequest['fuse']>,
): Fused {
  const rows = new Map<
    bigint,
    { score: number; readonly answer: Answer; readonly batch: OutputBatch; readonly rowIndex: number }
  >();
  for (const { answer, versions } of answers) {
    let rank = 0;
    for (const [b, batch] of answer.batches.entries()) {
      versions[b]!.forEach((version, rowIndex) => {
        const share = 1 / (constant + ++rank);
        const known = rows.get(version);
        if (known) known.score += share;
        else rows.set(version, { score: share, answer, batch, rowIndex });
      });
    }
  }
  const ranked = [...rows].sort(([a, { score: x }], [b, { score: y }]) => y - x || (a < b ? -1 : 1)).slice(0, limit);
  return {
    constant,
    rows: ranked.map(([, { score, answer, batch, rowIndex }]): FusedRow => {
      const rowColumns = answer.columns.flatMap(({ name }, i) => (name === '_score' ? [] : [i]));
      const row = batch.selection === null ? batch.first + rowIndex : batch.selection[rowIndex]!;
      const cells = rowColumns.map((i) => only(answer.columns[i]!.type, cellAt(batch.columns[i]!, answer.columns[i]!.type, row)));
      return {
        columns: [...rowColumns.map((i) => answer.columns[i]!), { name: '_rrf_score', type: 'number' }],
        batches: [{ columns: [...cells, only('number', score)], selection: null, first: 0, count: 1 }],
      };
    }),
  };
}

/** A column of one cell. */
function only(type: ColumnType, cell: Cell): Vector {
  const builder = new VectorBuilder(type, 1);
  builder.append(cell);
  return builder.build();
}

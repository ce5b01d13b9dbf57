/** POST /search and /multi-search. Source: specification, "Search". */
import { z } from 'zod';
import { moreRows, writeRowGroups } from '../../../planner/formats/json-rows.ts';
import type { Answer } from '../../../planner/planner-contract.ts';
import { search, type SearchAnswer } from '../../../planner/search/search.ts';
import type { SearchRequest } from '../../../planner/languages/search-request.ts';
import { searchBody, searchBodyOf, searchOf, severalBody, severalOf } from '../search-body.ts';
import { sendPieces } from '../streamed-reply.ts';
import { envelopePieces } from '../result-envelope.ts';
import type { FastifyReply, FastifyRequest, HttpContext } from '../context.ts';
import { invoke, signalOf } from '../invoke.ts';
import { validator } from '../problem.ts';
import { route, type Route } from '../route.ts';
import { nanoseconds } from '../schemas.ts';
import { answerReply } from './query.ts';

const searchConfig = { access: 'token', inTransaction: true, action: 'search', bucket: 'read' } as const;
const searchTags = ['search'];

const searchHitsReply = answerReply.extend({ count: z.int().describe('rows in this answer') }).meta({ id: 'SearchReply' });
const searchRows = z.array(z.record(z.string(), z.unknown()));
const batchSearchReply = z
  .object({
    results: z.array(searchHitsReply).describe('by query'),
    as_of_system: nanoseconds.describe('the one instant that all of them are true of, nanoseconds UTC'),
    processing_time_ms: z.number(),
    fused: z
      .object({
        rank_constant: z.number(),
        rows: searchRows.describe('with _rrf_score, best first'),
        data: searchRows.describe('the same'),
      })
      .optional(),
  })
  .meta({ id: 'BatchSearchReply' });

export const searchRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: '/search',
    ...searchConfig,
    summary: 'Search by words, by columns, or in batches',
    tags: searchTags,
    body: searchBody,
    replies: { 200: z.union([searchHitsReply, batchSearchReply]) },
    example: { body: { query: 'a text', type: 'a type' } },
    // The keys of a body choose its shape, whose schema then reports errors.
    framework: { validatorCompiler: () => (searchFields: unknown) => validator(searchBodyOf(searchFields))(searchFields) },
    handle: ({ body: searchFields, request: searchHttpRequest, reply: searchReply, context: httpContext }) =>
      answerSearch(httpContext, searchHttpRequest, searchReply, searchOf(searchFields)),
  }),

  route({
    method: 'POST',
    path: '/multi-search',
    ...searchConfig,
    summary: 'Several searches by words of one snapshot',
    tags: searchTags,
    body: severalBody,
    replies: { 200: batchSearchReply.omit({ fused: true }) },
    example: { body: { queries: [{ query: 'a text', type: 'a type' }] } },
    handle: ({ body: searchFields, request: searchHttpRequest, reply: searchReply, context: httpContext }) =>
      answerSearch(httpContext, searchHttpRequest, searchReply, severalOf(searchFields)),
  }),
];

async function answerSearch(
  httpContext: HttpContext,
  searchHttpRequest: FastifyRequest,
  searchReply: FastifyReply,
  searchRequest: SearchRequest,
): Promise<FastifyReply> {
  const { purpose: searchPurpose } = searchHttpRequest.body as { readonly purpose?: string };
  const searchBegunMs = httpContext.clock.monotonicMs();
  const searched = await invoke(httpContext, searchHttpRequest, 'search', searchPurpose, (searchInvocation) =>
    search(httpContext.planner, searchInvocation, searchRequest, signalOf(searchHttpRequest.raw.socket)),
  );
  const searchMs = Math.round((httpContext.clock.monotonicMs() - searchBegunMs) * 1000) / 1000;
  const searchPieces =
    searchRequest.name === 'search' ? searchHitPieces(searched.answers[0]!) : batchSearchPieces(searched, searchMs);
  return sendPieces(
    httpContext,
    searchHttpRequest,
    searchReply,
    { 'content-type': 'application/json; charset=utf-8' },
    searchPieces,
    searched,
  );
}

function* searchHitPieces(answer: Answer): Generator<Uint8Array, void> {
  yield Buffer.from('{"rows":');
  yield* moreRows(answer, { after: 0 });
  yield Buffer.from(`,"count":${answer.rowCount}`);
  for (const envelopePiece of envelopePieces(answer)) yield Buffer.from(envelopePiece);
  yield Buffer.from('}');
}

function* batchSearchPieces(
  { answers: hitsAnswers, fused: fusedHits, asOfSystem }: SearchAnswer,
  searchMs: number,
): Generator<Uint8Array, void> {
  for (const [i, hitsAnswer] of hitsAnswers.entries()) {
    yield Buffer.from(i === 0 ? '{"results":[' : ',');
    yield* searchHitPieces(hitsAnswer);
  }
  yield Buffer.from(`],"as_of_system":${asOfSystem},"processing_time_ms":${searchMs}`);
  if (fusedHits !== null) {
    const fusedTexts = Buffer.concat([...fusedRowGroups(fusedHits.rows)]);
    yield Buffer.from(`,"fused":{"rank_constant":${fusedHits.constant},"rows":[`);
    yield fusedTexts;
    yield Buffer.from('],"data":[');
    yield fusedTexts;
    yield Buffer.from(']}');
  }
  yield Buffer.from('}');
}

/** Rows of several types, each with its own columns. */
function* fusedRowGroups(fusedRows: NonNullable<SearchAnswer['fused']>['rows']): Generator<Uint8Array, void> {
  for (const [i, fusedRow] of fusedRows.entries()) {
    if (i > 0) yield Buffer.from(',');
    const [fusedRowList] = writeRowGroups(fusedRow, 1);
    yield fusedRowList!.subarray(1, -1);
  }
}

/** POST /search and /multi-search. Source: specification, "Search". */
import { z } from 'zod';
import { moreRows, writeRowGroups } from '../../../planner/formats/json-rows.ts';
import type { Answer } from '../../../planner/planner-contract.ts';
import { search, type SearchAnswer } from '../../../planner/search/search.ts';
import type { SearchRequest } from '../../../planner/languages/search-request.ts';
import { searchBody, searchBodyOf, searchOf, severalBody, severalOf } from '../../schemas/search-body.ts';
import { sendPieces } from '../streamed-reply.ts';
import { envelopePieces } from '../result-envelope.ts';
import type { FastifyReply, FastifyRequest, HttpContext } from '../context.ts';
import { invoke, signalOf } from '../invoke.ts';
import { validator } from '../problem.ts';
import { route, type Route } from '../route.ts';
import { nanoseconds } from '../schemas.ts';
import { answerReply } from './query.ts';

const config = { access: 'token', inTransaction: true, action: 'search', bucket: 'read' } as const;
const tags = ['search'];

const hitsReply = answerReply.extend({ count: z.int().describe('rows in this answer') }).meta({ id: 'SearchReply' });
const rows = z.array(z.record(z.string(), z.unknown()));
const batchReply = z
  .object({
    results: z.array(hitsReply).describe('by query'),
    as_of_system: nanoseconds.describe('the one instant that all of them are true of, nanoseconds UTC'),
    processing_time_ms: z.number(),
    fused: z
      .object({ rank_constant: z.number(), rows: rows.describe('with _rrf_score, best first'), data: rows.describe('the same') })
      .optional(),
  })
  .meta({ id: 'BatchSearchReply' });

export const searchRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: '/search',
    ...config,
    summary: 'Search by words, by columns, or in batches',
    tags,
    body: searchBody,
    replies: { 200: z.union([hitsReply, batchReply]) },
    example: { body: { query: 'a text', type: 'a type' } },
    // The keys of a body choose its shape, whose schema then reports errors.
    framework: { validatorCompiler: () => (body: unknown) => validator(searchBodyOf(body))(body) },
    handle: ({ body, request, reply, context }) => answer(context, request, reply, searchOf(body)),
  }),

  route({
    method: 'POST',
    path: '/multi-search',
    ...config,
    summary: 'Several searches by words of one snapshot',
    tags,
    body: severalBody,
    replies: { 200: batchReply.omit({ fused: true }) },
    example: { body: { queries: [{ query: 'a text', type: 'a type' }] } },
    handle: ({ body, request, reply, context }) => answer(context, request, reply, severalOf(body)),
  }),
];

async function answer(
  context: HttpContext,
  request: FastifyRequest,
  reply: FastifyReply,
  searchRequest: SearchRequest,
): Promise<FastifyReply> {
  const { purpose } = request.body as { readonly purpose?: string };
  const begunMs = context.clock.monotonicMs();
  const searched = await invoke(context, request, 'search', purpose, (invocation) =>
    search(context.planner, invocation, searchRequest, signalOf(request.raw.socket)),
  );
  const ms = Math.round((context.clock.monotonicMs() - begunMs) * 1000) / 1000;
  const pieces = searchRequest.name === 'search' ? hits(searched.answers[0]!) : batch(searched, ms);
  return sendPieces(context, request, reply, { 'content-type': 'application/json; charset=utf-8' }, pieces, searched);
}

function* hits(answer: Answer): Generator<Uint8Array, void> {
  yield Buffer.from('{"rows":');
  yield* moreRows(answer, { after: 0 });
  yield Buffer.from(`,"count":${answer.rowCount}`);
  for (const piece of envelopePieces(answer)) yield Buffer.from(piece);
  yield Buffer.from('}');
}

function* batch({ answers, fused, asOfSystem }: SearchAnswer, ms: number): Generator<Uint8Array, void> {
  for (const [i, each] of answers.entries()) {
    yield Buffer.from(i === 0 ? '{"results":[' : ',');
    yield* hits(each);
  }
  yield Buffer.from(`],"as_of_system":${asOfSystem},"processing_time_ms":${ms}`);
  if (fused !== null) {
    const texts = Buffer.concat([...rowGroups(fused.rows)]);
    yield Buffer.from(`,"fused":{"rank_constant":${fused.constant},"rows":[`);
    yield texts;
    yield Buffer.from('],"data":[');
    yield texts;
    yield Buffer.from(']}');
  }
  yield Buffer.from('}');
}

/** Rows of several types, each with its own columns. */
function* rowGroups(fused: NonNullable<SearchAnswer['fused']>['rows']): Generator<Uint8Array, void> {
  for (const [i, row] of fused.entries()) {
    if (i > 0) yield Buffer.from(',');
    const [list] = writeRowGroups(row, 1);
    yield list!.subarray(1, -1);
  }
}

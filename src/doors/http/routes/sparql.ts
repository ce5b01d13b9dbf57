/** GET and POST /sparql. Source: specification, "SPARQL". The parser is large, and loaded with the first request. */
import { isUtf8 } from 'node:buffer';
import { z } from 'zod';
import { ServiceError } from '../../../errors.ts';
import { moreRows } from '../../../planner/formats/json-rows.ts';
import { sparqlResults, sparqlResultsType } from '../../../planner/formats/sparql-results.ts';
import type { Answer } from '../../../planner/planner-contract.ts';
import type { SparqlQuery } from '../../../planner/languages/sparql.ts';
import { sendPieces } from '../streamed-reply.ts';
import { envelopeHeaders, envelopeMembers } from '../result-envelope.ts';
import type { FastifyReply, FastifyRequest, HttpContext } from '../context.ts';
import { preferredType } from '../request-headers.ts';
import { askParsed } from '../parsed-query.ts';
import { route, type Route } from '../route.ts';
import { nanoseconds } from '../schemas.ts';
import { stated } from '../../schemas/request-terms.ts';

const config = { access: 'token', action: 'query', bucket: 'read' } as const;
const bytesMax = 1 << 18;
const queryType = 'application/sparql-query';
const formType = 'application/x-www-form-urlencoded';
const pattern = 'SELECT ?s ?o { ?s <says> ?o }';

const parameters = z.object({
  query: z.string().optional().describe('SELECT over triple patterns, with or without LIMIT'),
  ...stated,
  'default-graph-uri': z.string().optional().describe('refused: there is one graph'),
  'named-graph-uri': z.string().optional().describe('refused'),
});

const reply200 = z
  .object({
    sparql: z.string(),
    sql: z.string().describe('the same question in SQL, about now'),
    rows: z.int().describe('how many'),
    columns: z.array(z.string()).describe('variables'),
    data: z.array(z.record(z.string(), z.unknown())),
    row_count: z.int(),
    cost_units: z.number(),
    processing_time_ms: z.number(),
    elapsed_ms: z.number(),
    estimatedTotalHits: z.int(),
    as_of_system: nanoseconds,
  })
  .meta({ id: 'SparqlReply' });

const asking = {
  ...config,
  summary: 'Ask in SPARQL',
  description: `With Accept: ${sparqlResultsType} the answer is SPARQL 1.1 Query Results JSON.`,
  tags: ['query'],
  query: parameters,
  replies: { 200: reply200 },
} as const;

export const sparqlRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/sparql',
    ...asking,
    example: { query: { query: pattern } },
    handle: ({ query, request, reply, context }) => answer(context, request, reply, query),
  }),
  route({
    method: 'POST',
    path: '/sparql',
    ...asking,
    bodyBytesMax: bytesMax,
    reads: queryOf,
    consumes: [queryType, formType],
    example: { body: pattern, headers: { 'content-type': queryType } },
    handle: ({ query, body, request, reply, context }) =>
      answer(context, request, reply, together(query, parameters.parse(body ?? {}))),
  }),
];

/** The query itself, or the form that browsers send. */
function queryOf(body: Buffer, { headers }: FastifyRequest): Record<string, string> {
  if (!isUtf8(body)) throw new ServiceError('REL_INVALID', 'the body is not UTF-8');
  const text = body.toString();
  const type = (headers['content-type'] ?? '').split(';')[0]!.trim().toLowerCase();
  if (type === queryType) return { query: text };
  if (type !== formType) throw new ServiceError('REL_INVALID', `POST /sparql takes ${queryType}, or query= as ${formType}`);
  const form = new URLSearchParams(text);
  if (form.has('update')) throw new ServiceError('REL_READ_ONLY', 'updates are not supported: write by POST /ingest');
  for (const name of new Set(form.keys())) {
    if (form.getAll(name).length > 1) throw new ServiceError('REL_INVALID', `the form has ${name} more than once`);
  }
  return Object.fromEntries(form);
}

type Parameters = z.output<typeof parameters>;

/** Joins the parameters of the URL and the body; refuses one that they state differently. */
function together(url: Parameters, body: Parameters): Parameters {
  for (const name of Object.keys(body) as (keyof Parameters)[]) {
    if (url[name] !== undefined && body[name] !== undefined && url[name] !== body[name]) {
      throw new ServiceError('REL_INVALID', `the URL and the body give different values for ${name}`);
    }
  }
  return { ...url, ...body };
}

async function answer(
  context: HttpContext,
  request: FastifyRequest,
  reply: FastifyReply,
  sparqlParameters: Parameters,
): Promise<FastifyReply> {
  const { query, 'default-graph-uri': graph, 'named-graph-uri': named } = sparqlParameters;
  if (query === undefined || query.trim() === '') {
    throw new ServiceError('REL_INVALID', `the query is missing: ?query= of GET, or the body of POST as ${queryType}`);
  }
  if (graph !== undefined || named !== undefined) {
    throw new ServiceError('REL_INVALID', 'there is one graph: leave default-graph-uri and named-graph-uri out');
  }
  const { readSparql } = await import('../../../planner/languages/sparql.ts');
  const read = readSparql(query);
  const answer = await askParsed(context, request, read.question, sparqlParameters);
  if (preferredType(request, [sparqlResultsType, 'application/json']) === sparqlResultsType) {
    const headers = { 'content-type': `${sparqlResultsType}; charset=utf-8`, ...envelopeHeaders(answer) };
    return sendPieces(context, request, reply, headers, sparqlResults(answer, read.resources), answer);
  }
  const headers = { 'content-type': 'application/json; charset=utf-8' };
  return sendPieces(context, request, reply, headers, envelope(query, read, answer), answer);
}

function* envelope(query: string, { sql }: SparqlQuery, answer: Answer): Generator<Uint8Array, void> {
  const said = `{"sparql":${JSON.stringify(query)},"sql":${JSON.stringify(sql)},"rows":${answer.rowCount}`;
  yield Buffer.from(`${said}${envelopeMembers(answer)},"data":`);
  yield* moreRows(answer, { after: 0 });
  yield Buffer.from('}');
}

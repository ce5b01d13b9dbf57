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
import { stated } from '../request-terms.ts';

const sparqlConfig = { access: 'token', action: 'query', bucket: 'read' } as const;
const sparqlBytesMax = 1 << 18;
const sparqlQueryType = 'application/sparql-query';
const sparqlFormType = 'application/x-www-form-urlencoded';
const sparqlExample = 'SELECT ?s ?o { ?s <says> ?o }';

const sparqlParameters = z.object({
  query: z.string().optional().describe('SELECT over triple patterns, with or without LIMIT'),
  ...stated,
  'default-graph-uri': z.string().optional().describe('refused: there is one graph'),
  'named-graph-uri': z.string().optional().describe('refused'),
});

const sparqlReply = z
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

const sparqlAsking = {
  ...sparqlConfig,
  summary: 'Ask in SPARQL',
  description: `With Accept: ${sparqlResultsType} the answer is SPARQL 1.1 Query Results JSON.`,
  tags: ['query'],
  query: sparqlParameters,
  replies: { 200: sparqlReply },
} as const;

export const sparqlRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/sparql',
    ...sparqlAsking,
    example: { query: { query: sparqlExample } },
    handle: ({ query: urlFields, request: sparqlRequest, reply: sparqlHttpReply, context: httpContext }) =>
      answerSparql(httpContext, sparqlRequest, sparqlHttpReply, urlFields),
  }),
  route({
    method: 'POST',
    path: '/sparql',
    ...sparqlAsking,
    bodyBytesMax: sparqlBytesMax,
    reads: readSparqlBody,
    consumes: [sparqlQueryType, sparqlFormType],
    example: { body: sparqlExample, headers: { 'content-type': sparqlQueryType } },
    handle: ({ query: urlFields, body: formFields, request: sparqlRequest, reply: sparqlHttpReply, context: httpContext }) =>
      answerSparql(
        httpContext,
        sparqlRequest,
        sparqlHttpReply,
        mergeSparqlParameters(urlFields, sparqlParameters.parse(formFields ?? {})),
      ),
  }),
];

/** The query itself, or the form that browsers send. */
function readSparqlBody(sparqlBytes: Buffer, { headers: sparqlHeaders }: FastifyRequest): Record<string, string> {
  if (!isUtf8(sparqlBytes)) throw new ServiceError('REL_INVALID', 'the body is not UTF-8');
  const sparqlText = sparqlBytes.toString();
  const contentType = (sparqlHeaders['content-type'] ?? '').split(';')[0]!.trim().toLowerCase();
  if (contentType === sparqlQueryType) return { query: sparqlText };
  if (contentType !== sparqlFormType)
    throw new ServiceError('REL_INVALID', `POST /sparql takes ${sparqlQueryType}, or query= as ${sparqlFormType}`);
  const sparqlForm = new URLSearchParams(sparqlText);
  if (sparqlForm.has('update')) throw new ServiceError('REL_READ_ONLY', 'updates are not supported: write by POST /ingest');
  for (const formField of new Set(sparqlForm.keys())) {
    if (sparqlForm.getAll(formField).length > 1)
      throw new ServiceError('REL_INVALID', `the form has ${formField} more than once`);
  }
  return Object.fromEntries(sparqlForm);
}

type SparqlFields = z.output<typeof sparqlParameters>;

/** Joins the parameters of the URL and the body; refuses one that they state differently. */
function mergeSparqlParameters(urlFields: SparqlFields, bodyFields: SparqlFields): SparqlFields {
  for (const sparqlField of Object.keys(bodyFields) as (keyof SparqlFields)[]) {
    if (
      urlFields[sparqlField] !== undefined &&
      bodyFields[sparqlField] !== undefined &&
      urlFields[sparqlField] !== bodyFields[sparqlField]
    ) {
      throw new ServiceError('REL_INVALID', `the URL and the body give different values for ${sparqlField}`);
    }
  }
  return { ...urlFields, ...bodyFields };
}

async function answerSparql(
  httpContext: HttpContext,
  sparqlRequest: FastifyRequest,
  sparqlHttpReply: FastifyReply,
  sparqlParameters: SparqlFields,
): Promise<FastifyReply> {
  const { query: sparqlText, 'default-graph-uri': defaultGraph, 'named-graph-uri': namedGraph } = sparqlParameters;
  if (sparqlText === undefined || sparqlText.trim() === '') {
    throw new ServiceError('REL_INVALID', `the query is missing: ?query= of GET, or the body of POST as ${sparqlQueryType}`);
  }
  if (defaultGraph !== undefined || namedGraph !== undefined) {
    throw new ServiceError('REL_INVALID', 'there is one graph: leave default-graph-uri and named-graph-uri out');
  }
  const { readSparql } = await import('../../../planner/languages/sparql.ts');
  const sparqlQuery = readSparql(sparqlText);
  const answer = await askParsed(httpContext, sparqlRequest, sparqlQuery.question, sparqlParameters);
  if (preferredType(sparqlRequest, [sparqlResultsType, 'application/json']) === sparqlResultsType) {
    const sparqlHeaders = { 'content-type': `${sparqlResultsType}; charset=utf-8`, ...envelopeHeaders(answer) };
    return sendPieces(
      httpContext,
      sparqlRequest,
      sparqlHttpReply,
      sparqlHeaders,
      sparqlResults(answer, sparqlQuery.resources),
      answer,
    );
  }
  const headers = { 'content-type': 'application/json; charset=utf-8' };
  return sendPieces(
    httpContext,
    sparqlRequest,
    sparqlHttpReply,
    headers,
    sparqlEnvelope(sparqlText, sparqlQuery, answer),
    answer,
  );
}

function* sparqlEnvelope(sparqlText: string, { sql: sparqlSql }: SparqlQuery, answer: Answer): Generator<Uint8Array, void> {
  const envelopeStart = `{"sparql":${JSON.stringify(sparqlText)},"sql":${JSON.stringify(sparqlSql)},"rows":${answer.rowCount}`;
  yield Buffer.from(`${envelopeStart}${envelopeMembers(answer)},"data":`);
  yield* moreRows(answer, { after: 0 });
  yield Buffer.from('}');
}

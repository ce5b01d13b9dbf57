/** POST /graphql. Source: specification, "GraphQL". The parser is large, and loaded with the first request. */
import { z } from 'zod';
import { ServiceError } from '../../../errors.ts';
import { moreRows } from '../../../planner/formats/json-rows.ts';
import { loadReading, loadSchemas } from '../../../planner/languages/graphql-library.ts';
import { record } from '../../schemas/schema-check.ts';
import type { Answer } from '../../../planner/planner-contract.ts';
import { eitherSpelling } from '../../schemas/member-spelling.ts';
import { sendPieces } from '../streamed-reply.ts';
import { envelopeMembers } from '../result-envelope.ts';
import type { FastifyReply, FastifyRequest, HttpContext } from '../context.ts';
import { headerText, preferredType } from '../request-headers.ts';
import { invoke } from '../invoke.ts';
import { askParsed } from '../parsed-query.ts';
import { headersOf, refusedWith } from '../error-reply.ts';
import { route, type Route } from '../route.ts';
import { stated } from '../../schemas/request-terms.ts';

const path = '/graphql';
const standardType = 'application/graphql-response+json';
const plainType = 'application/json';
const config = { access: 'token', action: 'query', bucket: 'read' } as const;
const bytesMax = 1 << 20;
/** Source: specification, "Common request headers". */
const purposeByDefault = 'analytics';

const graphqlBody = eitherSpelling({
  query: z.string().min(1).describe('one document: a root field, which is a type, or questions about the schema'),
  variables: record(z.unknown()).nullish().describe('values of $names in limit and where; an object is a whole filter'),
  operationName: z.string().nullish().describe('the name of the query in the document'),
  extensions: z.unknown().optional().describe('ignored'),
  ...stated,
}).meta({ id: 'Graphql' });

type GraphqlBody = z.infer<typeof graphqlBody>;

const failure = z.object({ message: z.string(), locations: z.array(z.unknown()).optional(), extensions: z.unknown() });
const graphqlReply = z
  .object({
    data: z
      .unknown()
      .describe(`the array of rows; an object where the schema was asked about, or ${standardType} accepted; null beside errors`),
    errors: z.array(failure),
    extensions: z.unknown().optional().describe('what the envelope of /query says beside its rows'),
  })
  .meta({ id: 'GraphqlReply' });

export const graphqlRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path,
    ...config,
    inTransaction: true,
    bodyBytesMax: bytesMax,
    summary: 'Ask in GraphQL',
    tags: ['query'],
    body: graphqlBody,
    replies: { 200: graphqlReply, 400: graphqlReply, 500: graphqlReply },
    example: { body: { query: 'a document' } },
    handle: async ({ body, request, reply, context }) => {
      try {
        return await answer(context, request, reply, body);
      } catch (error) {
        return refuse(context, request, reply, error);
      }
    },
  }),
];

async function answer(
  context: HttpContext,
  request: FastifyRequest,
  reply: FastifyReply,
  body: GraphqlBody,
): Promise<FastifyReply> {
  const { readGraphql } = await loadReading(context.yieldTurn);
  const { query, operationName = null, variables } = body;
  const given = variables ?? {};
  const purpose = body.purpose ?? headerText(request, 'x-service-purpose') ?? purposeByDefault;
  const form = formOf(request);
  const read = readGraphql({ query, operationName, variables: given }, context.settings.SERVICE_MAX_RESULT_ROWS);
  if (read.kind === 'rows') {
    const answer = await askParsed(context, request, read.question, { ...body, purpose });
    return sendPieces(context, request, reply, form.headers, rowPieces(answer, read.type, form), answer);
  }
  const { introspect, schemaOf } = await loadSchemas(context.yieldTurn);
  const introspectionReply = introspect({ ...read, variables: given });
  const types = await invoke(context, request, 'inspect', purpose, async (invocation) => {
    const { catalog } = invocation.snapshot();
    invocation.describe({ template: '{ __schema }', rowCount: catalog.types().length });
    return catalog.types();
  });
  return sendPieces(
    context,
    request,
    reply,
    form.headers,
    schemaPieces(introspectionReply(schemaOf(types)), form),
    nothingErased,
  );
}

/** Rows as the specification has them, and as clients expect them that ask for the media type of GraphQL over HTTP. */
interface Form {
  readonly headers: Readonly<Record<string, string>>;
  /** `data` is an object, its one member the array of rows under the name of the root field. */
  readonly isStandard: boolean;
  /** The member that stands for an empty list of errors. */
  readonly noErrors: string;
}

function formOf(request: FastifyRequest): Form {
  const isStandard = preferredType(request, [standardType, plainType]) === standardType;
  const headers = { 'content-type': `${isStandard ? standardType : plainType}; charset=utf-8` };
  return { headers, isStandard, noErrors: isStandard ? '' : ',"errors":[]' };
}

const nothingErased = { overtaken: (): boolean => false };
const textAtOnce = 16_384;

function* rowPieces(answer: Answer, type: string, { isStandard, noErrors }: Form): Generator<Uint8Array, void> {
  yield Buffer.from(isStandard ? `{"data":{${JSON.stringify(type)}:` : '{"data":');
  yield* moreRows(answer, { after: 0 });
  yield Buffer.from(`${isStandard ? '}' : ''}${noErrors},"extensions":{${envelopeMembers(answer).slice(1)}}}`);
}

function* schemaPieces(texts: Iterable<string>, { noErrors }: Form): Generator<Uint8Array, void> {
  let text = '{"data":';
  let steps = 0;
  for (const each of texts) {
    text += each;
    if (++steps % 512 !== 0 && text.length < textAtOnce) continue;
    yield Buffer.from(text);
    text = '';
  }
  yield Buffer.from(`${text}${noErrors}}`);
}

/**
 * Source: specification, "GraphQL": 400 or 500. Refusals of the gate and errors that may be retried keep their own status:
 * clients and proxies rely on it.
 */
async function refuse(context: HttpContext, request: FastifyRequest, reply: FastifyReply, raw: unknown): Promise<FastifyReply> {
  const error = await refusedWith(context, request, { route: path, access: config.access, action: config.action }, raw);
  const { code, message, facts } = error;
  const { line, column, extras } = facts;
  const failed = {
    message: code === 'REL_INTERNAL' ? 'internal error; the correlation id finds it in the log' : message,
    ...(line === undefined ? {} : { locations: [{ line, column }] }),
    extensions: { code, correlation_id: request.id, ...extras },
  };
  for (const [name, value] of [...headersOf(error), ...Object.entries(formOf(request).headers)]) reply.header(name, value);
  return reply.code(statusOf(error)).send({ data: null, errors: [failed] });
}

const kept: ReadonlySet<number> = new Set([401, 402, 403, 408, 429, 503]);

function statusOf({ status }: ServiceError): number {
  if (kept.has(status)) return status;
  return status < 500 || status === 501 ? 400 : 500;
}

/** POST /graphql. Source: specification, "GraphQL". The parser is large, and loaded with the first request. */
import { z } from 'zod';
import { ServiceError } from '../../../errors.ts';
import { moreRows } from '../../../planner/formats/json-rows.ts';
import { loadReading, loadSchemas } from '../../../planner/languages/graphql-library.ts';
import { record } from '../../shared/schema-check.ts';
import type { Answer } from '../../../planner/planner-contract.ts';
import { eitherSpelling } from '../../verbs/member-spelling.ts';
import { sendPieces } from '../streamed-reply.ts';
import { envelopeMembers } from '../result-envelope.ts';
import type { FastifyReply, FastifyRequest, HttpContext } from '../context.ts';
import { headerText, preferredType } from '../request-headers.ts';
import { invoke } from '../invoke.ts';
import { askParsed } from '../parsed-query.ts';
import { headersOf, refusedWith } from '../error-reply.ts';
import { route, type Route } from '../route.ts';
import { stated } from '../request-terms.ts';

const graphqlPath = '/graphql';
const graphqlStandardType = 'application/graphql-response+json';
const plainJsonType = 'application/json';
const graphqlConfig = { access: 'token', action: 'query', bucket: 'read' } as const;
const graphqlBytesMax = 1 << 20;
/** Source: specification, "Common request headers". */
const graphqlPurpose = 'analytics';

const graphqlBody = eitherSpelling({
  query: z.string().min(1).describe('one document: a root field, which is a type, or questions about the schema'),
  variables: record(z.unknown()).nullish().describe('values of $names in limit and where; an object is a whole filter'),
  operationName: z.string().nullish().describe('the name of the query in the document'),
  extensions: z.unknown().optional().describe('ignored'),
  ...stated,
}).meta({ id: 'Graphql' });

type GraphqlBody = z.infer<typeof graphqlBody>;

const graphqlError = z.object({ message: z.string(), locations: z.array(z.unknown()).optional(), extensions: z.unknown() });
const graphqlReply = z
  .object({
    data: z
      .unknown()
      .describe(
        `the array of rows; an object where the schema was asked about, or ${graphqlStandardType} accepted; null beside errors`,
      ),
    errors: z.array(graphqlError),
    extensions: z.unknown().optional().describe('what the envelope of /query says beside its rows'),
  })
  .meta({ id: 'GraphqlReply' });

export const graphqlRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: graphqlPath,
    ...graphqlConfig,
    inTransaction: true,
    bodyBytesMax: graphqlBytesMax,
    summary: 'Ask in GraphQL',
    tags: ['query'],
    body: graphqlBody,
    replies: { 200: graphqlReply, 400: graphqlReply, 500: graphqlReply },
    example: { body: { query: 'a document' } },
    handle: async ({ body: graphqlFields, request: graphqlRequest, reply: graphqlHttpReply, context: httpContext }) => {
      try {
        return await answerGraphql(httpContext, graphqlRequest, graphqlHttpReply, graphqlFields);
      } catch (graphqlFailure) {
        return refuseGraphql(httpContext, graphqlRequest, graphqlHttpReply, graphqlFailure);
      }
    },
  }),
];

async function answerGraphql(
  httpContext: HttpContext,
  graphqlRequest: FastifyRequest,
  graphqlHttpReply: FastifyReply,
  graphqlFields: GraphqlBody,
): Promise<FastifyReply> {
  const { readGraphql } = await loadReading(httpContext.yieldTurn);
  const { query: graphqlText, operationName: graphqlOperation = null, variables: statedVariables } = graphqlFields;
  const graphqlVariables = statedVariables ?? {};
  const graphqlPurposeStated = graphqlFields.purpose ?? headerText(graphqlRequest, 'x-service-purpose') ?? graphqlPurpose;
  const graphqlForm = graphqlReplyForm(graphqlRequest);
  const graphqlRead = readGraphql(
    { query: graphqlText, operationName: graphqlOperation, variables: graphqlVariables },
    httpContext.settings.SERVICE_MAX_RESULT_ROWS,
  );
  if (graphqlRead.kind === 'rows') {
    const answer = await askParsed(httpContext, graphqlRequest, graphqlRead.question, {
      ...graphqlFields,
      purpose: graphqlPurposeStated,
    });
    return sendPieces(
      httpContext,
      graphqlRequest,
      graphqlHttpReply,
      graphqlForm.headers,
      graphqlRowPieces(answer, graphqlRead.type, graphqlForm),
      answer,
    );
  }
  const { introspect, schemaOf } = await loadSchemas(httpContext.yieldTurn);
  const introspectionReply = introspect({ ...graphqlRead, variables: graphqlVariables });
  const catalogTypes = await invoke(httpContext, graphqlRequest, 'inspect', graphqlPurposeStated, async (schemaInvocation) => {
    const { catalog } = schemaInvocation.snapshot();
    schemaInvocation.describe({ template: '{ __schema }', rowCount: catalog.types().length });
    return catalog.types();
  });
  return sendPieces(
    httpContext,
    graphqlRequest,
    graphqlHttpReply,
    graphqlForm.headers,
    graphqlSchemaPieces(introspectionReply(schemaOf(catalogTypes)), graphqlForm),
    nothingErased,
  );
}

/** Rows as the specification has them, and as clients expect them that ask for the media type of GraphQL over HTTP. */
interface GraphqlReplyForm {
  readonly headers: Readonly<Record<string, string>>;
  /** `data` is an object, its one member the array of rows under the name of the root field. */
  readonly isStandard: boolean;
  /** The member that stands for an empty list of errors. */
  readonly noErrors: string;
}

function graphqlReplyForm(graphqlRequest: FastifyRequest): GraphqlReplyForm {
  const isStandardType = preferredType(graphqlRequest, [graphqlStandardType, plainJsonType]) === graphqlStandardType;
  const formHeaders = { 'content-type': `${isStandardType ? graphqlStandardType : plainJsonType}; charset=utf-8` };
  return { headers: formHeaders, isStandard: isStandardType, noErrors: isStandardType ? '' : ',"errors":[]' };
}

const nothingErased = { overtaken: (): boolean => false };
const graphqlTextAtOnce = 16_384;

function* graphqlRowPieces(
  answer: Answer,
  rootField: string,
  { isStandard: isStandardType, noErrors: noErrorsText }: GraphqlReplyForm,
): Generator<Uint8Array, void> {
  yield Buffer.from(isStandardType ? `{"data":{${JSON.stringify(rootField)}:` : '{"data":');
  yield* moreRows(answer, { after: 0 });
  yield Buffer.from(`${isStandardType ? '}' : ''}${noErrorsText},"extensions":{${envelopeMembers(answer).slice(1)}}}`);
}

function* graphqlSchemaPieces(
  schemaTexts: Iterable<string>,
  { noErrors: noErrorsText }: GraphqlReplyForm,
): Generator<Uint8Array, void> {
  let schemaText = '{"data":';
  let textCount = 0;
  for (const schemaPart of schemaTexts) {
    schemaText += schemaPart;
    if (++textCount % 512 !== 0 && schemaText.length < graphqlTextAtOnce) continue;
    yield Buffer.from(schemaText);
    schemaText = '';
  }
  yield Buffer.from(`${schemaText}${noErrorsText}}`);
}

/**
 * Source: specification, "GraphQL": 400 or 500. Refusals of the gate and errors that may be retried keep their own status:
 * clients and proxies rely on it.
 */
async function refuseGraphql(
  httpContext: HttpContext,
  graphqlRequest: FastifyRequest,
  graphqlHttpReply: FastifyReply,
  thrownError: unknown,
): Promise<FastifyReply> {
  const graphqlRefusal = await refusedWith(
    httpContext,
    graphqlRequest,
    { route: graphqlPath, access: graphqlConfig.access, action: graphqlConfig.action },
    thrownError,
  );
  const { code: refusalCode, message: refusalMessage, facts: refusalFacts } = graphqlRefusal;
  const { line: errorLine, column: errorColumn, extras: errorExtras } = refusalFacts;
  const graphqlErrorItem = {
    message: refusalCode === 'REL_INTERNAL' ? 'internal error; the correlation id finds it in the log' : refusalMessage,
    ...(errorLine === undefined ? {} : { locations: [{ line: errorLine, column: errorColumn }] }),
    extensions: { code: refusalCode, correlation_id: graphqlRequest.id, ...errorExtras },
  };
  for (const [headerName, headerValue] of [
    ...headersOf(graphqlRefusal),
    ...Object.entries(graphqlReplyForm(graphqlRequest).headers),
  ])
    graphqlHttpReply.header(headerName, headerValue);
  return graphqlHttpReply.code(graphqlStatus(graphqlRefusal)).send({ data: null, errors: [graphqlErrorItem] });
}

const keptGraphqlStatuses: ReadonlySet<number> = new Set([401, 402, 403, 408, 429, 503]);

function graphqlStatus({ status: errorStatus }: ServiceError): number {
  if (keptGraphqlStatuses.has(errorStatus)) return errorStatus;
  return errorStatus < 500 || errorStatus === 501 ? 400 : 500;
}

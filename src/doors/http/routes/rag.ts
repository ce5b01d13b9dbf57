/** POST /rag/ingest and GET /rag/ingest/:task_id: chunks that were cut elsewhere, stored as a task. Source: specification, "Ingest". */
import { z } from 'zod';
import { eitherSpelling } from '../../verbs/member-spelling.ts';
import type { IngestReply } from '../../shared/ingest-stream.ts';
import type { IngestTasks } from '../ingest-tasks.ts';
import { ragIngest } from '../../verbs/documents/document-tools.ts';
import type { stored } from '../../verbs/documents/store-document.ts';
import { VerbCall } from '../../verbs/verb-call.ts';
import type { FastifyRequest, HttpContext } from '../context.ts';
import { headerText, statedOpener } from '../request-headers.ts';
import { taskReply, taskShown } from './tasks.ts';
import { checkCaller } from '../../shared/stream-lease.ts';
import { reply, route, type Route } from '../route.ts';
import { reasons } from '../request-terms.ts';

const ragUrl = '/rag/ingest';
const ragConfig = { access: 'token', bucket: 'write' } as const;
const ragChunkType = 'DocumentChunk';

const ragBody = eitherSpelling({ ...ragIngest.input.shape, ...reasons });
const ragAcceptedReply = z
  .object({ task_id: z.string(), status_url: z.string(), source_id: z.string(), chunks: z.int() })
  .meta({ id: 'RagAccepted', description: 'ask status_url what becomes of it' });

export const ragRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: ragUrl,
    ...ragConfig,
    action: 'ingest',
    summary: 'Store a document that was cut into chunks before',
    description:
      'One DocumentSource and its DocumentChunks, all or none. The same source_id again is a new version of the document.',
    tags: ['ingest'],
    body: ragBody,
    replies: { 202: ragAcceptedReply },
    purposeIn: 'body',
    example: { body: { chunks: [{ content: 'a text' }], purpose: 'a purpose' }, headers: { 'content-type': 'application/json' } },
    run: async (ragInvocation, { body: ragRequest, request: ragHttpRequest, context: httpContext }) => {
      const {
        purpose: statedRagPurpose,
        branch: _,
        break_glass: __,
        access_scope_ref: ___,
        ...ragDocument
      } = ragRequest as RagDocument & RagTerms;
      const ragPurpose = statedRagPurpose ?? headerText(ragHttpRequest, 'x-service-purpose');
      const ragSourceId = ragDocument.source_id ?? httpContext.ids.next();
      ragInvocation.describe({ objectType: ragChunkType, rowCount: 0 });
      checkCaller(httpContext, ragInvocation.caller);
      const ragInput = { ...ragDocument, source_id: ragSourceId };
      const ragTask = acceptRagTask(httpContext, ragHttpRequest, {
        caller: ragInvocation.caller,
        purpose: ragPurpose,
        input: ragInput,
      });
      const ragTaskUrl = `${ragUrl}/${ragTask.id}`;
      const taskReply = {
        task_id: ragTask.id,
        status_url: ragTaskUrl,
        source_id: ragSourceId,
        chunks: ragDocument.chunks.length,
      };
      return reply(202, taskReply, { location: ragTaskUrl });
    },
  }),
  route({
    method: 'GET',
    path: `${ragUrl}/:task_id`,
    ...ragConfig,
    action: 'inspect',
    bucket: 'read',
    summary: 'Status of such a task; kept until the next start',
    tags: ['ingest'],
    params: z.object({ task_id: z.string() }),
    replies: { 200: taskReply },
    example: { params: { task_id: 'a task' } },
    run: async ({ caller }, { params: ragTaskParams, context: httpContext }) =>
      taskShown(httpContext, httpContext.tasks.find(ragTaskParams.task_id, caller), ragUrl),
  }),
];

/** Terms and body in the form of `ragIngest`. */
type RagTerms = { readonly branch?: string; readonly break_glass?: string; readonly access_scope_ref?: string };
type RagDocument = { readonly purpose?: string; readonly source_id?: string; readonly chunks: readonly unknown[] };

interface AcceptedRag {
  readonly caller: Parameters<IngestTasks['accept']>[0]['caller'];
  readonly purpose: string | null;
  readonly input: RagDocument;
}

function acceptRagTask(
  httpContext: HttpContext,
  ragHttpRequest: FastifyRequest,
  { caller: ragCaller, purpose: ragPurpose, input: ragInput }: AcceptedRag,
) {
  return httpContext.tasks.accept({
    id: httpContext.ids.next(),
    caller: ragCaller,
    purpose: ragPurpose,
    breakGlass: statedOpener(ragHttpRequest, 'breakGlass'),
    accessScopeRef: statedOpener(ragHttpRequest, 'accessScopeRef'),
    bytes: Number(ragHttpRequest.headers['content-length'] ?? 0),
    type: ragChunkType,
    run: async (ragInvocation, _progress, ragWork): Promise<IngestReply> => {
      const { chunks: _, ...ragArguments } = ragInput;
      const verbCall = new VerbCall(httpContext, ragInvocation, {
        verb: ragIngest.name,
        purpose: ragPurpose,
        signal: ragWork.signal,
        arguments: ragArguments,
      });
      const storedAnswer = (await ragIngest.run(verbCall, ragInput)) as z.output<typeof stored>;
      await verbCall.end();
      ragInvocation.describe({ rowCount: storedAnswer.chunks });
      ragWork.progress(storedAnswer.chunks, storedAnswer.chunks);
      httpContext.metrics.countRows(storedAnswer.chunks);
      return {
        type: ragChunkType,
        accepted: storedAnswer.chunks,
        rejected: 0,
        errors: [],
        system_from: storedAnswer.system_from,
        system_from_last: storedAnswer.system_from,
        ids: storedAnswer.chunk_ids.slice(0, 1_000),
        truncated: storedAnswer.chunks > 1_000,
        durability: 'synced',
        ...(storedAnswer.notices && { notices: storedAnswer.notices }),
      };
    },
  });
}

/** POST /rag/ingest and GET /rag/ingest/:task_id: chunks that were cut elsewhere, stored as a task. Source: specification, "Ingest". */
import { z } from 'zod';
import { eitherSpelling } from '../../schemas/member-spelling.ts';
import type { IngestReply } from '../../ingest/ingest-stream.ts';
import type { IngestTasks } from '../../ingest/ingest-tasks.ts';
import { ragIngest } from '../../verbs/documents/document-tools.ts';
import type { stored } from '../../verbs/documents/store-document.ts';
import { VerbCall } from '../../verbs/verb-call.ts';
import type { FastifyRequest, HttpContext } from '../context.ts';
import { headerText, statedOpener } from '../request-headers.ts';
import { taskReply, taskShown } from './tasks.ts';
import { checkCaller } from '../../shared/stream-lease.ts';
import { reply, route, type Route } from '../route.ts';
import { reasons } from '../../schemas/request-terms.ts';

const url = '/rag/ingest';
const config = { access: 'token', bucket: 'write' } as const;
const type = 'DocumentChunk';

const body = eitherSpelling({ ...ragIngest.input.shape, ...reasons });
const accepted = z
  .object({ task_id: z.string(), status_url: z.string(), source_id: z.string(), chunks: z.int() })
  .meta({ id: 'RagAccepted', description: 'ask status_url what becomes of it' });

export const ragRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: url,
    ...config,
    action: 'ingest',
    summary: 'Store a document that was cut into chunks before',
    description:
      'One DocumentSource and its DocumentChunks, all or none. The same source_id again is a new version of the document.',
    tags: ['ingest'],
    body,
    replies: { 202: accepted },
    purposeIn: 'body',
    example: { body: { chunks: [{ content: 'a text' }], purpose: 'a purpose' }, headers: { 'content-type': 'application/json' } },
    run: async (invocation, { body: sent, request, context }) => {
      const { purpose: said, branch: _, break_glass: __, access_scope_ref: ___, ...given } = sent as RagBody & RagTerms;
      const purpose = said ?? headerText(request, 'x-service-purpose');
      const sourceId = given.source_id ?? context.ids.next();
      invocation.describe({ objectType: type, rowCount: 0 });
      checkCaller(context, invocation.caller);
      const input = { ...given, source_id: sourceId };
      const task = accept(context, request, { caller: invocation.caller, purpose, input });
      const location = `${url}/${task.id}`;
      const taskReply = { task_id: task.id, status_url: location, source_id: sourceId, chunks: given.chunks.length };
      return reply(202, taskReply, { location });
    },
  }),
  route({
    method: 'GET',
    path: `${url}/:task_id`,
    ...config,
    action: 'inspect',
    bucket: 'read',
    summary: 'Status of such a task; kept until the next start',
    tags: ['ingest'],
    params: z.object({ task_id: z.string() }),
    replies: { 200: taskReply },
    example: { params: { task_id: 'a task' } },
    run: async ({ caller }, { params, context }) => taskShown(context, context.tasks.find(params.task_id, caller), url),
  }),
];

/** Terms and body in the form of `ragIngest`. */
type RagTerms = { readonly branch?: string; readonly break_glass?: string; readonly access_scope_ref?: string };
type RagBody = { readonly purpose?: string; readonly source_id?: string; readonly chunks: readonly unknown[] };

interface Accepted {
  readonly caller: Parameters<IngestTasks['accept']>[0]['caller'];
  readonly purpose: string | null;
  readonly input: RagBody;
}

function accept(context: HttpContext, request: FastifyRequest, { caller, purpose, input }: Accepted) {
  return context.tasks.accept({
    id: context.ids.next(),
    caller,
    purpose,
    breakGlass: statedOpener(request, 'breakGlass'),
    accessScopeRef: statedOpener(request, 'accessScopeRef'),
    bytes: Number(request.headers['content-length'] ?? 0),
    type,
    run: async (invocation, _progress, work): Promise<IngestReply> => {
      const { chunks: _, ...kept } = input;
      const verbCall = new VerbCall(context, invocation, {
        verb: ragIngest.name,
        purpose,
        signal: work.signal,
        arguments: kept,
      });
      const storedAnswer = (await ragIngest.run(verbCall, input)) as z.output<typeof stored>;
      await verbCall.end();
      invocation.describe({ rowCount: storedAnswer.chunks });
      work.progress(storedAnswer.chunks, storedAnswer.chunks);
      context.metrics.countRows(storedAnswer.chunks);
      return {
        type,
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

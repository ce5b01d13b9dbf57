/**
 * POST /ingest, /ingest/auto, /ingest/bulk: rows in any of four body forms, taken as they stream in. Source:
 * specification, "Ingest".
 */
import type { Readable } from 'node:stream';
import { z } from 'zod';
import { ServiceError } from '../../../errors.ts';
import { readIngest } from '../../../planner/formats/ingest-reader.ts';
import { batchSizes, Ingest, listedMax } from '../../ingest-stream.ts';
import type { App, FastifyRequest, HttpContext } from '../context.ts';
import { headerText, wantsSync } from '../headers.ts';
import { invoke } from '../invoke.ts';
import { flag, nanoseconds, problems } from '../schemas.ts';

const ingestQuery = z.object({
  object_type: z.string().describe('type of the rows'),
  purpose: z.string().optional(),
  atomic: flag.describe('all rows or none; the body limit holds'),
  columns: z.string().optional().describe('CSV without a header: its column names, separated by commas'),
  null_text: z.string().optional().describe('CSV: unquoted text that means NULL'),
});

const ingestReply = z
  .object({
    type: z.string(),
    accepted: z.int(),
    rejected: z.int(),
    errors: z.array(z.object({ index: z.int(), code: z.string(), detail: z.string() })).describe(`the first ${listedMax.errors}`),
    system_from: nanoseconds.nullable().describe('of the first row written; null when none was'),
    system_from_last: nanoseconds.nullable(),
    ids: z.array(z.string()).describe(`_pk of the first ${listedMax.ids} accepted rows`),
    truncated: z.boolean().describe('ids or errors are not complete'),
    durability: z.enum(['synced', 'buffered']),
  })
  .meta({ id: 'IngestReply' });

interface Plan {
  readonly url: string;
  readonly summary: string;
  readonly size: keyof typeof batchSizes;
  readonly createType: boolean;
}

const routes: readonly Plan[] = [
  { url: '/ingest', summary: 'Write rows of a registered type', size: 'stream', createType: false },
  { url: '/ingest/auto', summary: 'Write rows; the type is made, open, when it is unknown', size: 'stream', createType: true },
  { url: '/ingest/bulk', summary: 'Write many rows: the same in larger batches', size: 'bulk', createType: false },
];

export async function registerIngest(app: App, context: HttpContext): Promise<void> {
  await app.register((scope, _options, done) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', (_request, payload, parsed) => parsed(null, payload));
    for (const plan of routes) registerRoute(scope as App, context, plan);
    done();
  });

  app.route({
    method: 'GET',
    url: '/ingest/tasks/:id',
    config: { access: 'token', action: 'inspect', bucket: 'read' },
    schema: { summary: 'Status of an ingest task', tags: ['ingest'], params: z.object({ id: z.string() }), response: problems },
    handler: (request) =>
      invoke(context, request, 'inspect', undefined, async () => {
        throw new ServiceError('REL_NOT_FOUND', 'no such task: every ingest is answered when it is done');
      }),
  });
}

function registerRoute(app: App, context: HttpContext, plan: Plan): void {
  app.route({
    method: 'POST',
    url: plan.url,
    config: { access: 'token', action: 'ingest', bucket: 'write' },
    schema: {
      summary: plan.summary,
      description: 'The body is NDJSON, a JSON array, {"rows": […]} or CSV, told apart by its first byte.',
      tags: ['ingest'],
      consumes: ['application/x-ndjson', 'application/json', 'text/csv'],
      querystring: ingestQuery,
      response: { 200: ingestReply, ...problems },
    },
    handler: async (request) => {
      refuseWhatIsLater(request);
      const { object_type: type, purpose, atomic, columns, null_text: nullText } = request.query;
      const sync = wantsSync(request);
      const reply = await invoke(context, request, 'ingest', purpose, async (invocation) => {
        invocation.describe({ objectType: type, rowCount: 0 });
        const ingest = new Ingest(invocation, { type, atomic, sync, createType: plan.createType, source: 'http' });
        const options = {
          definition: ingest.definition(),
          contentType: headerText(request, 'content-type') ?? '',
          ...(columns === undefined ? {} : { columns: columns.split(',') }),
          ...(nullText === undefined ? {} : { nullText }),
          ...(atomic ? { batchRows: Infinity, batchBytes: Infinity, limitBytes: context.bodyLimitBytes } : batchSizes[plan.size]),
        };
        const source = context.bodies.stream((request.body as Readable | undefined) ?? request.raw);
        return ingest.run(readIngest(source, options));
      });
      context.metrics.ingested(reply.accepted);
      return reply;
    },
  });
}

/** Asked for and not there yet: an answer as if it had been done would be wrong. */
function refuseWhatIsLater(request: FastifyRequest): void {
  if (request.headers['idempotency-key'] !== undefined) {
    throw new ServiceError('REL_NOT_IMPLEMENTED', 'this version does not keep Idempotency-Key replies');
  }
  const encoding = request.headers['content-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
    throw new ServiceError('REL_NOT_IMPLEMENTED', 'this version does not read compressed bodies');
  }
}

/**
 * POST /ingest, /ingest/auto, /ingest/bulk: rows in any of four body forms, taken as they stream in. Source:
 * specification, "Ingest". What must hold: batches are submitted in the order of the body, a few at once; every row is
 * accepted, rejected by index, or (in an atomic batch) none is; an error on the way says what had been accepted.
 */
import type { Readable } from 'node:stream';
import { z } from 'zod';
import { type ErrorCode, ServiceError } from '../../../errors.ts';
import type { Invocation } from '../../../governance/gate-contract.ts';
import type { TypeDefinition } from '../../../log/entry.ts';
import { readIngest, type IngestBatch } from '../../../planner/formats/ingest-reader.ts';
import type { Outcome } from '../../../projections/command.ts';
import type { App, FastifyRequest, HttpContext } from '../context.ts';
import { headerText, statedPurpose, wantsSync } from '../headers.ts';
import { invoke } from '../invoke.ts';
import { flag, nanoseconds, problems } from '../schemas.ts';

/** Batches that may wait for their acknowledgement while the next is being read. */
const inFlightMax = 4;
const idsMax = 1_000;
const errorsMax = 1_000;

const sizes = {
  stream: { batchRows: 4_096, batchBytes: 1 << 20 },
  bulk: { batchRows: 65_536, batchBytes: 1 << 23 },
} as const;

const ingestQuery = z.object({
  object_type: z.string().describe('type of the rows'),
  purpose: z.string().optional(),
  atomic: flag.describe('all rows or none; the body limit holds'),
});

const ingestReply = z
  .object({
    type: z.string(),
    accepted: z.int(),
    rejected: z.int(),
    errors: z.array(z.object({ index: z.int(), code: z.string(), detail: z.string() })).describe(`the first ${errorsMax}`),
    system_from: nanoseconds.nullable().describe('of the first row written; null when none was'),
    system_from_last: nanoseconds.nullable(),
    ids: z.array(z.string()).describe(`_pk of the first ${idsMax} accepted rows`),
    truncated: z.boolean().describe('ids or errors are not complete'),
    durability: z.enum(['synced', 'buffered']),
  })
  .meta({ id: 'IngestReply' });

interface Plan {
  readonly url: string;
  readonly summary: string;
  readonly size: keyof typeof sizes;
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
      invoke(context, request, 'inspect', null, async () => {
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
      const { object_type: type, purpose, atomic } = request.query;
      const sync = wantsSync(request);
      const reply = await invoke(context, request, 'ingest', statedPurpose(request, purpose), async (invocation) => {
        invocation.describe({ objectType: type, rowCount: 0 });
        const ingest = new Ingest(invocation, { type, atomic, sync, createType: plan.createType });
        const options = {
          definition: ingest.definition(),
          contentType: headerText(request, 'content-type') ?? '',
          ...(atomic ? { batchRows: Infinity, batchBytes: Infinity, limitBytes: context.bodyLimitBytes } : sizes[plan.size]),
        };
        const source = context.bodies.stream((request.body as Readable | undefined) ?? request.raw);
        return ingest.run(readIngest(source, options));
      });
      context.metrics.ingested(reply.accepted);
      return reply;
    },
  });
}

interface IngestRequest {
  readonly type: string;
  readonly atomic: boolean;
  readonly sync: boolean;
  readonly createType: boolean;
}

type Reply =
  z.infer<typeof ingestReply> extends infer Shape
    ? { [K in keyof Shape]: K extends 'system_from' | 'system_from_last' ? bigint | null : Shape[K] }
    : never;

class Ingest {
  readonly #invocation: Invocation;
  readonly #request: IngestRequest;
  readonly #ids: string[] = [];
  readonly #errors: { index: number; code: string; detail: string }[] = [];
  #accepted = 0;
  #rejected = 0;
  #systemFrom: bigint | null = null;
  #systemFromLast: bigint | null = null;
  #truncated = false;
  #durability: 'synced' | 'buffered' = 'synced';

  constructor(invocation: Invocation, request: IngestRequest) {
    this.#invocation = invocation;
    this.#request = request;
  }

  /** Of the type as it stands; null when it is to be made. Throws REL_UNKNOWN_TYPE before any byte of the body is read. */
  definition(): TypeDefinition | null {
    const { type, createType } = this.#request;
    const definition = this.#invocation.snapshot().catalog.type(type);
    if (definition === undefined && !createType) {
      throw new ServiceError('REL_UNKNOWN_TYPE', `the type ${JSON.stringify(type.slice(0, 128))} is not registered`);
    }
    return definition ?? null;
  }

  async run(batches: AsyncIterable<IngestBatch>): Promise<Reply> {
    try {
      if (this.#request.atomic) await this.#writeAtOnce(batches);
      else await this.#writeStreaming(batches);
    } catch (error) {
      throw this.#explained(error);
    }
    return this.#reply();
  }

  async #writeAtOnce(batches: AsyncIterable<IngestBatch>): Promise<void> {
    const read: IngestBatch[] = [];
    for await (const batch of batches) {
      const first = batch.rejections[0];
      if (first !== undefined) throw new ServiceError(first.code as ErrorCode, `row ${first.index}: ${first.detail}`);
      read.push(batch);
    }
    // Without a bound on its size a batch is the body.
    for (const batch of read) this.#take(batch, await this.#submit(batch));
  }

  async #writeStreaming(batches: AsyncIterable<IngestBatch>): Promise<void> {
    const inFlight: Promise<void>[] = [];
    let failed: { readonly error: unknown } | null = null;
    try {
      for await (const batch of batches) {
        this.#reject(batch.rejections);
        if (batch.rows.length === 0) continue;
        const written = this.#submit(batch).then(
          (outcome) => this.#take(batch, outcome),
          (error: unknown) => {
            failed ??= { error };
          },
        );
        inFlight.push(written);
        if (inFlight.length >= inFlightMax) await inFlight.shift();
        if (failed !== null) break;
      }
    } finally {
      await Promise.all(inFlight);
    }
    if (failed !== null) throw (failed as { readonly error: unknown }).error;
  }

  #submit(batch: IngestBatch): Promise<Outcome> {
    const { type, atomic, createType, sync } = this.#request;
    const provenance = { source: 'http', method: 'ingest', confidence: 1, derivedFrom: null };
    return this.#invocation.submit({ kind: 'put-rows', type, rows: batch.rows, atomic, createType, provenance }, { sync });
  }

  #take(batch: IngestBatch, outcome: Outcome): void {
    this.#accepted += outcome.accepted;
    this.#reject(
      outcome.errors.map((error) => ({ ...error, index: batch.indexes?.[error.index] ?? batch.firstIndex + error.index })),
    );
    this.#rejected += outcome.rejected - outcome.errors.length;
    if (outcome.idsTruncated) this.#truncated = true;
    for (const id of outcome.ids) {
      if (this.#ids.length < idsMax) this.#ids.push(id);
      else this.#truncated = true;
    }
    if (outcome.accepted > 0) {
      this.#systemFrom ??= outcome.systemFrom;
      this.#systemFromLast = outcome.systemFromLast;
    }
    if (outcome.durability === 'buffered') this.#durability = 'buffered';
  }

  #reject(rejections: IngestBatch['rejections']): void {
    this.#rejected += rejections.length;
    for (const rejection of rejections) {
      if (this.#errors.length < errorsMax) this.#errors.push({ ...rejection });
      else this.#truncated = true;
    }
  }

  #reply(): Reply {
    this.#invocation.describe({ rowCount: this.#accepted });
    return {
      type: this.#request.type,
      accepted: this.#accepted,
      rejected: this.#rejected,
      errors: this.#errors.sort((a, b) => a.index - b.index),
      system_from: this.#systemFrom,
      system_from_last: this.#systemFromLast,
      ids: this.#ids,
      truncated: this.#truncated,
      durability: this.#durability,
    };
  }

  /** Batches before an error are written and stay: its problem record says so. */
  #explained(error: unknown): unknown {
    if (!(error instanceof ServiceError) || this.#accepted === 0) return error;
    const { type, accepted, rejected, system_from, system_from_last, durability } = this.#reply();
    const extras = { type_name: type, accepted, rejected, system_from, system_from_last, durability };
    return new ServiceError(error.code, error.message, { ...error.facts, extras });
  }
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

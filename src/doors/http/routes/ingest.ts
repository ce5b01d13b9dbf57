/**
 * POST /ingest, /ingest/auto, /ingest/bulk: rows in any of five body forms, taken as they stream in. Source:
 * specification, "Ingest".
 */
import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';
import { z } from 'zod';
import { ServiceError } from '../../../errors.ts';
import type { Invocation } from '../../../governance/gate-contract.ts';
import { canonicalJson } from '../../../log/values/canonical-json.ts';
import type { Provenance } from '../../../log/entries/entry.ts';
import type { IngestOptions } from '../../../planner/formats/ingest-batch.ts';
import { readIngest } from '../../../planner/formats/ingest-reader.ts';
import { readSmallBody } from '../../../planner/formats/small-body.ts';
import type { WriteCondition } from '../../../projections/command.ts';
import { BodyDigest } from '../../ingest/body-digest.ts';
import { batchSizes, Ingest, type IngestReply } from '../../ingest/ingest-stream.ts';
import { statedCondition } from '../write-conditions.ts';
import { checkEncoded, type Encoding, encodingOf, decodeInTurns } from '../../shared/content-encoding.ts';
import type { HttpContext, GateRequest } from '../context.ts';
import { exactJson } from '../../shared/write-exact-json.ts';
import { headerText, statedOpener, transactionHeader, wantsSync } from '../request-headers.ts';
import { invoke } from '../invoke.ts';
import { checkCaller, leasedPieces } from '../../shared/stream-lease.ts';
import type { FastPathRoute } from '../fast-path.ts';
import { route, type Route } from '../route.ts';
import { flag } from '../schemas.ts';
import { ragRoutes } from './rag.ts';
import { ingestReply, statusUrl, taskRoutes } from './tasks.ts';

const ingestQuery = z.object({
  object_type: z.string().describe('type of the rows'),
  purpose: z.string().optional(),
  atomic: flag.describe('all rows or none; the body limit holds'),
  patch: flag.describe('cells that a row does not send keep their value; of CSV every column is sent'),
  replace: flag.describe('nothing of the key comes after the row: what its bounds leave uncovered later on ends'),
  when: z
    .string()
    .optional()
    .describe('absent, present, or an instant: rows that stand otherwise, or were written since, are rejected with REL_CONFLICT'),
  async: flag.describe('answer 202 once the body is received; the body limit holds'),
  columns: z.string().optional().describe('CSV without a header: its column names, separated by commas'),
  null_text: z.string().optional().describe('CSV: unquoted text that means NULL'),
  source: z.string().optional().describe('provenance of rows without a `_provenance` of their own; http by default'),
  method: z.string().optional().describe('ingest by default'),
  confidence: z
    .string()
    .regex(/^(?:[0-9]+(?:[.][0-9]+)?|[.][0-9]+)$/)
    .optional()
    .describe('0 to 1; 1 by default'),
  derived_from: z.string().optional().describe('16 or 64 hex digits: the row that these were derived from'),
});

type IngestQuery = z.output<typeof ingestQuery>;

const acceptedReply = z
  .object({ task_id: z.string(), status_url: z.string() })
  .meta({ id: 'IngestAccepted', description: 'the body is received; ask status_url what becomes of it' });

interface Plan {
  readonly url: string;
  readonly summary: string;
  readonly size: keyof typeof batchSizes;
  readonly createType: boolean;
}

const plans = [
  { url: '/ingest', summary: 'Write rows of a registered type', size: 'stream', createType: false },
  { url: '/ingest/auto', summary: 'Write rows; the type is made, open, when it is unknown', size: 'stream', createType: true },
  {
    url: '/ingest/bulk',
    summary: 'Write many rows: the same, in larger batches under an Idempotency-Key',
    size: 'bulk',
    createType: false,
  },
] as const satisfies readonly Plan[];

const rowsRoute = (plan: Plan): Route =>
  route({
    method: 'POST',
    path: plan.url,
    access: 'token',
    inTransaction: true,
    action: 'ingest',
    bucket: 'write',
    summary: plan.summary,
    description:
      'The body is NDJSON, a JSON array, {"rows": […]}, CSV or an Arrow IPC stream, told apart by how it begins, whatever its Content-Type; ' +
      'gzip and deflate are read. ' +
      'With an Idempotency-Key the same request again gets the same reply and has no further effect.',
    tags: ['ingest'],
    consumes: ['application/x-ndjson', 'application/json', 'text/csv', 'application/vnd.apache.arrow.stream'],
    query: ingestQuery,
    replies: { 200: ingestReply, 202: acceptedReply },
    reads: 'stream',
    example: { query: { object_type: 'a type' }, body: { id: 'a new row', secret: 'a text' } },
    handle: async ({ query, body: sent, request, reply, context }) => {
      const ingestHead = ingestHeadOf(request, query, plan);
      const source = (sent as Readable | undefined) ?? request.raw;
      const { purpose } = query;
      const { tasks } = context;
      if (query.async) {
        if (request.headers[transactionHeader] !== undefined)
          throw new ServiceError('REL_INVALID', 'async=true cannot be used in a transaction, which may have ended by then');
        const task = await invoke(context, request, 'ingest', purpose, async (invocation) => {
          invocation.describe({ objectType: ingestHead.type, rowCount: 0 });
          const contentLength = request.headers['content-length'];
          tasks.checkRoom(Number(contentLength ?? 0));
          // Errors that can be found now must not come after the promise.
          ingestOf(invocation, ingestHead, null).definition();
          const body = await collect(context, source, contentLength);
          await checkEncoded(context.bodies.pieces(body), ingestHead.encoding, context.bodyLimitBytes);
          const { caller } = invocation;
          checkCaller(context, caller);
          return tasks.accept({
            id: context.ids.next(),
            caller,
            purpose: purpose ?? headerText(request, 'x-service-purpose'),
            breakGlass: statedOpener(request, 'breakGlass'),
            accessScopeRef: statedOpener(request, 'accessScopeRef'),
            bytes: body.length,
            type: ingestHead.type,
            run: async (later, progress, work) => {
              const pieces = untilAborted(context.bodies.pieces(body), work.signal);
              const { ingested } = await write(context, later, ingestHead, pieces, (ingest) => {
                progress(ingest);
                ingest.onTaken = (rows) => work.progress(rows, null);
              });
              context.metrics.countRows(ingested.accepted);
              return ingested;
            },
          });
        });
        const url = statusUrl(task);
        return reply.code(202).header('location', url).send({ task_id: task.id, status_url: url });
      }
      const { ingested, replayed } = await invoke(context, request, 'ingest', purpose, (invocation) =>
        write(context, invocation, ingestHead, leasedPieces(context, invocation.caller, context.bodies.stream(source))),
      );
      if (replayed) reply.header('idempotency-replayed', 'true');
      else context.metrics.countRows(ingested.accepted);
      return ingested;
    },
  });

export const ingestRoutes: readonly Route[] = [...plans.map(rowsRoute), ...taskRoutes, ...ragRoutes];

const plainTarget = /^\/ingest\?object_type=([A-Za-z0-9._-]+)$/;

/** A few rows of a type, from clients that commit each event by itself. */
export function plainIngest(context: HttpContext): FastPathRoute {
  const [plan] = plans;
  return {
    url: plan.url,
    action: 'ingest',
    bucket: 'write',
    takes: (target) => plainTarget.test(target),
    bodyOf: (bytes) => bytes,
    answer: async (request) => {
      const object_type = plainTarget.exec(request.raw.url!)![1]!;
      const query = { object_type, atomic: false, patch: false, replace: false, async: false };
      const ingestHead = ingestHeadOf(request, query, plan);
      const body = request.body as Buffer;
      const ingested = await invoke(context, request, 'ingest', undefined, (invocation) =>
        writeSmall(context, invocation, ingestHead, body),
      );
      context.metrics.countRows(ingested.accepted);
      const text = replyText(ingested);
      return { contentType: 'application/json; charset=utf-8', latin1: latin1Of(text) };
    },
  };
}

/** A batch that is all of the body is written in the turn in which it came; any other body goes the way of all bodies. */
async function writeSmall(
  context: HttpContext,
  invocation: Invocation,
  ingestHead: IngestHead,
  body: Buffer,
): Promise<IngestReply> {
  invocation.describe({ objectType: ingestHead.type, rowCount: 0 });
  const ingest = ingestOf(invocation, ingestHead, null);
  const batch = readSmallBody(body, ingest.definition());
  if (batch !== null) return await ingest.runOne(batch);
  return (await write(context, invocation, ingestHead, context.bodies.pieces(body))).ingested;
}

/** The same text as `exactJson` would write. */
export function replyText(reply: IngestReply): string {
  if (reply.ids.length !== 1 || reply.errors.length > 0 || reply.notices !== undefined) return exactJson(reply);
  const { type, accepted, rejected, system_from: first, system_from_last: last, ids, truncated, durability } = reply;
  return (
    `{"type":${JSON.stringify(type)},"accepted":${accepted},"rejected":${rejected},"errors":[],"system_from":${first},` +
    `"system_from_last":${last},"ids":[${JSON.stringify(ids[0])}],"truncated":${truncated},"durability":"${durability}"}`
  );
}

/** UTF-8, each byte as one character. */
function latin1Of(text: string): string {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0x7f) return Buffer.from(text).toString('latin1');
  return text;
}

/** One request, read from its head. */
interface IngestHead {
  readonly plan: Plan;
  readonly type: string;
  readonly atomic: boolean;
  readonly sync: boolean;
  readonly patch: boolean;
  readonly replace: boolean;
  readonly when: WriteCondition | null;
  readonly provenance: Provenance;
  readonly encoding: Encoding;
  readonly contentType: string;
  readonly reader: Pick<IngestOptions, 'columns' | 'nullText'>;
  readonly idempotencyKey: string | null;
}

function ingestHeadOf(request: GateRequest, query: IngestQuery, plan: Plan): IngestHead {
  const { columns, null_text: nullText, patch, replace } = query;
  if (patch && replace) throw new ServiceError('REL_INVALID', 'a write patches rows or replaces them, not both');
  return {
    plan,
    type: query.object_type,
    atomic: query.atomic,
    sync: wantsSync(request),
    patch,
    replace,
    when: statedCondition(request, query.when),
    provenance: {
      source: query.source ?? 'http',
      method: query.method ?? 'ingest',
      confidence: query.confidence === undefined ? 1 : Number(query.confidence),
      derivedFrom: query.derived_from ?? null,
    },
    encoding: encodingOf(request),
    contentType: headerText(request, 'content-type') ?? '',
    reader: {
      ...(columns === undefined ? {} : { columns: columns.split(',') }),
      ...(nullText === undefined ? {} : { nullText }),
    },
    idempotencyKey: idempotencyKey(request),
  };
}

const keyText = /^[\x21-\x7e]{1,255}$/;

function idempotencyKey(request: GateRequest): string | null {
  const key = headerText(request, 'idempotency-key');
  if (key !== null && !keyText.test(key)) {
    throw new ServiceError('REL_INVALID', 'an Idempotency-Key has 1 to 255 visible ASCII characters');
  }
  return key;
}

async function write(
  context: HttpContext,
  invocation: Invocation,
  ingestHead: IngestHead,
  source: AsyncIterable<Uint8Array>,
  progress?: (ingest: Ingest) => void,
): Promise<{ readonly ingested: IngestReply; readonly replayed: boolean }> {
  const { type, atomic, plan, reader, encoding } = ingestHead;
  invocation.describe({ objectType: type, rowCount: 0 });
  const digest = ingestHead.idempotencyKey === null ? null : new BodyDigest(preface(invocation, ingestHead));
  const ingest = ingestOf(invocation, ingestHead, digest, progress !== undefined);
  progress?.(ingest);
  const definition = ingest.definition();
  const body = decodeInTurns(context, source, encoding);
  // Rows that are decided one by one, with edges maybe, take a turn longer than such that pass through.
  const isSlow = ingestHead.patch || (definition?.graphTriggers.length ?? 0) > 0;
  const ingested = await ingest.run(
    readIngest(digest === null ? body : digest.pass(body), {
      ...reader,
      definition,
      tracksSent: ingestHead.patch,
      yieldTurn: context.yieldTurn,
      ...(atomic
        ? { batchRows: Infinity, batchBytes: Infinity, limitBytes: context.bodyLimitBytes }
        : digest === null
          ? { ...batchSizes.stream, batchRows: () => batchSizes[isSlow || context.isCrowded() ? 'crowded' : 'stream'].batchRows }
          : batchSizes[plan.size]),
    }),
  );
  return { ingested, replayed: ingest.replayed };
}

function ingestOf(invocation: Invocation, ingestHead: IngestHead, body: BodyDigest | null, waits = false): Ingest {
  const { type, atomic, sync, patch, replace, when, plan, provenance, idempotencyKey: key } = ingestHead;
  const request = { type, atomic, sync, patch, replace, when, createType: plan.createType, provenance, waits };
  if (key === null || body === null) return new Ingest(invocation, request);
  // Keys are scoped by principal and organisation: no caller can meet another's.
  const { principal, path } = invocation.caller;
  const scoped = createHash('sha256')
    .update(canonicalJson([principal, path, key]), 'utf8')
    .digest('hex');
  return new Ingest(invocation, { ...request, once: { key: scoped, body } });
}

/** Everything except the body that identifies a request (idempotency). */
function preface(invocation: Invocation, ingestHead: IngestHead): string {
  const { plan, type, atomic, patch, replace, when, provenance, encoding, contentType, reader } = ingestHead;
  return canonicalJson({
    // Members that earlier releases did not have are left out of the digest when absent.
    ...(patch && { patch }),
    ...(replace && { replace }),
    ...(when !== null && { when: typeof when === 'string' ? when : String(when.unchangedSince) }),
    url: plan.url,
    branch: invocation.caller.branch,
    // A name that was deleted and taken again is another branch, without the rows of the first.
    branch_id: invocation.snapshot().branchId,
    type,
    atomic,
    encoding,
    provenance: { ...provenance },
    content_type: contentType,
    columns: reader.columns ?? null,
    null_text: reader.nullText ?? null,
  });
}

/** Stops at the signal; earlier rows stay. */
async function* untilAborted(pieces: AsyncIterable<Uint8Array>, signal: AbortSignal): AsyncGenerator<Uint8Array, void> {
  for await (const piece of pieces) {
    signal.throwIfAborted();
    yield piece;
  }
}

function collect(context: HttpContext, source: Readable, contentLength: string | undefined): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    context.bodies.collect(source, contentLength, (error, body) => (error ? reject(error) : resolve(body ?? new Uint8Array(0))));
  });
}

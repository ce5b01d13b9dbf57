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
import { BodyDigest } from '../body-digest.ts';
import { batchSizes, Ingest, type IngestReply } from '../../shared/ingest-stream.ts';
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

interface IngestPlan {
  readonly url: string;
  readonly summary: string;
  readonly size: keyof typeof batchSizes;
  readonly createType: boolean;
}

const ingestPlans = [
  { url: '/ingest', summary: 'Write rows of a registered type', size: 'stream', createType: false },
  { url: '/ingest/auto', summary: 'Write rows; the type is made, open, when it is unknown', size: 'stream', createType: true },
  {
    url: '/ingest/bulk',
    summary: 'Write many rows: the same, in larger batches under an Idempotency-Key',
    size: 'bulk',
    createType: false,
  },
] as const satisfies readonly IngestPlan[];

const ingestRoute = (ingestPlan: IngestPlan): Route =>
  route({
    method: 'POST',
    path: ingestPlan.url,
    access: 'token',
    inTransaction: true,
    action: 'ingest',
    bucket: 'write',
    summary: ingestPlan.summary,
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
    handle: async ({
      query: ingestParameters,
      body: sentBody,
      request: ingestHttpRequest,
      reply: ingestHttpReply,
      context: httpContext,
    }) => {
      const ingestHead = ingestHeadOf(ingestHttpRequest, ingestParameters, ingestPlan);
      const bodySource = (sentBody as Readable | undefined) ?? ingestHttpRequest.raw;
      const { purpose: ingestPurpose } = ingestParameters;
      const { tasks: ingestTasks } = httpContext;
      if (ingestParameters.async) {
        if (ingestHttpRequest.headers[transactionHeader] !== undefined)
          throw new ServiceError('REL_INVALID', 'async=true cannot be used in a transaction, which may have ended by then');
        const ingestTask = await invoke(httpContext, ingestHttpRequest, 'ingest', ingestPurpose, async (ingestInvocation) => {
          ingestInvocation.describe({ objectType: ingestHead.type, rowCount: 0 });
          const contentLength = ingestHttpRequest.headers['content-length'];
          ingestTasks.checkRoom(Number(contentLength ?? 0));
          // Errors that can be found now must not come after the promise.
          ingestFor(ingestInvocation, ingestHead, null).definition();
          const collectedBody = await collectIngestBody(httpContext, bodySource, contentLength);
          await checkEncoded(httpContext.bodies.pieces(collectedBody), ingestHead.encoding, httpContext.bodyLimitBytes);
          const { caller: ingestCaller } = ingestInvocation;
          checkCaller(httpContext, ingestCaller);
          return ingestTasks.accept({
            id: httpContext.ids.next(),
            caller: ingestCaller,
            purpose: ingestPurpose ?? headerText(ingestHttpRequest, 'x-service-purpose'),
            breakGlass: statedOpener(ingestHttpRequest, 'breakGlass'),
            accessScopeRef: statedOpener(ingestHttpRequest, 'accessScopeRef'),
            bytes: collectedBody.length,
            type: ingestHead.type,
            run: async (taskInvocation, reportIngest, taskWork) => {
              const bodyPieces = piecesUntilAborted(httpContext.bodies.pieces(collectedBody), taskWork.signal);
              const { ingested: taskIngested } = await writeIngest(
                httpContext,
                taskInvocation,
                ingestHead,
                bodyPieces,
                (taskIngest) => {
                  reportIngest(taskIngest);
                  taskIngest.onTaken = (takenRowCount) => taskWork.progress(takenRowCount, null);
                },
              );
              httpContext.metrics.countRows(taskIngested.accepted);
              return taskIngested;
            },
          });
        });
        const taskUrl = statusUrl(ingestTask);
        return ingestHttpReply.code(202).header('location', taskUrl).send({ task_id: ingestTask.id, status_url: taskUrl });
      }
      const { ingested: ingestedReply, replayed: isReplayed } = await invoke(
        httpContext,
        ingestHttpRequest,
        'ingest',
        ingestPurpose,
        (ingestInvocation) =>
          writeIngest(
            httpContext,
            ingestInvocation,
            ingestHead,
            leasedPieces(httpContext, ingestInvocation.caller, httpContext.bodies.stream(bodySource)),
          ),
      );
      if (isReplayed) ingestHttpReply.header('idempotency-replayed', 'true');
      else httpContext.metrics.countRows(ingestedReply.accepted);
      return ingestedReply;
    },
  });

export const ingestRoutes: readonly Route[] = [...ingestPlans.map(ingestRoute), ...taskRoutes, ...ragRoutes];

const plainIngestTarget = /^\/ingest\?object_type=([A-Za-z0-9._-]+)$/;

/** A few rows of a type, from clients that commit each event by itself. */
export function plainIngest(httpContext: HttpContext): FastPathRoute {
  const [plainPlan] = ingestPlans;
  return {
    url: plainPlan.url,
    action: 'ingest',
    bucket: 'write',
    takes: (requestTarget) => plainIngestTarget.test(requestTarget),
    bodyOf: (ingestBytes) => ingestBytes,
    answer: async (plainRequest) => {
      const targetType = plainIngestTarget.exec(plainRequest.raw.url!)![1]!;
      const plainIngestQuery = { object_type: targetType, atomic: false, patch: false, replace: false, async: false };
      const ingestHead = ingestHeadOf(plainRequest, plainIngestQuery, plainPlan);
      const ingestBody = plainRequest.body as Buffer;
      const ingestedReply = await invoke(httpContext, plainRequest, 'ingest', undefined, (plainInvocation) =>
        writeSmallIngest(httpContext, plainInvocation, ingestHead, ingestBody),
      );
      httpContext.metrics.countRows(ingestedReply.accepted);
      const ingestReplyText = replyText(ingestedReply);
      return { contentType: 'application/json; charset=utf-8', latin1: replyLatin1(ingestReplyText) };
    },
  };
}

/** A batch that is all of the body is written in the turn in which it came; any other body goes the way of all bodies. */
async function writeSmallIngest(
  httpContext: HttpContext,
  smallInvocation: Invocation,
  ingestHead: IngestHead,
  ingestBody: Buffer,
): Promise<IngestReply> {
  smallInvocation.describe({ objectType: ingestHead.type, rowCount: 0 });
  const smallIngest = ingestFor(smallInvocation, ingestHead, null);
  const smallBatch = readSmallBody(ingestBody, smallIngest.definition());
  if (smallBatch !== null) return await smallIngest.runOne(smallBatch);
  return (await writeIngest(httpContext, smallInvocation, ingestHead, httpContext.bodies.pieces(ingestBody))).ingested;
}

/** The same text as `exactJson` would write. */
export function replyText(ingestReplyFields: IngestReply): string {
  if (ingestReplyFields.ids.length !== 1 || ingestReplyFields.errors.length > 0 || ingestReplyFields.notices !== undefined)
    return exactJson(ingestReplyFields);
  const {
    type: ingestedType,
    accepted: acceptedCount,
    rejected: rejectedCount,
    system_from: firstSystemFrom,
    system_from_last: lastSystemFrom,
    ids: ingestedIds,
    truncated: isTruncated,
    durability: ingestDurability,
  } = ingestReplyFields;
  return (
    `{"type":${JSON.stringify(ingestedType)},"accepted":${acceptedCount},"rejected":${rejectedCount},"errors":[],"system_from":${firstSystemFrom},` +
    `"system_from_last":${lastSystemFrom},"ids":[${JSON.stringify(ingestedIds[0])}],"truncated":${isTruncated},"durability":"${ingestDurability}"}`
  );
}

/** UTF-8, each byte as one character. */
function replyLatin1(ingestReplyText: string): string {
  for (let i = 0; i < ingestReplyText.length; i++)
    if (ingestReplyText.charCodeAt(i) > 0x7f) return Buffer.from(ingestReplyText).toString('latin1');
  return ingestReplyText;
}

/** One request, read from its head. */
interface IngestHead {
  readonly plan: IngestPlan;
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

function ingestHeadOf(request: GateRequest, query: IngestQuery, plan: IngestPlan): IngestHead {
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
    idempotencyKey: statedIdempotencyKey(request),
  };
}

const idempotencyKeyPattern = /^[\x21-\x7e]{1,255}$/;

function statedIdempotencyKey(request: GateRequest): string | null {
  const idempotencyHeader = headerText(request, 'idempotency-key');
  if (idempotencyHeader !== null && !idempotencyKeyPattern.test(idempotencyHeader)) {
    throw new ServiceError('REL_INVALID', 'an Idempotency-Key has 1 to 255 visible ASCII characters');
  }
  return idempotencyHeader;
}

async function writeIngest(
  httpContext: HttpContext,
  ingestInvocation: Invocation,
  ingestHead: IngestHead,
  bodySource: AsyncIterable<Uint8Array>,
  reportIngest?: (startedIngest: Ingest) => void,
): Promise<{ readonly ingested: IngestReply; readonly replayed: boolean }> {
  const { type: ingestedType, atomic: isAtomic, plan: ingestPlan, reader: csvOptions, encoding: bodyEncoding } = ingestHead;
  ingestInvocation.describe({ objectType: ingestedType, rowCount: 0 });
  const bodyDigest = ingestHead.idempotencyKey === null ? null : new BodyDigest(idempotencyPreface(ingestInvocation, ingestHead));
  const startedIngest = ingestFor(ingestInvocation, ingestHead, bodyDigest, reportIngest !== undefined);
  reportIngest?.(startedIngest);
  const typeDefinition = startedIngest.definition();
  const decodedBody = decodeInTurns(httpContext, bodySource, bodyEncoding);
  // Rows that are decided one by one, with edges maybe, take a turn longer than such that pass through.
  const isSlowIngest = ingestHead.patch || (typeDefinition?.graphTriggers.length ?? 0) > 0;
  const ingestedReply = await startedIngest.run(
    readIngest(bodyDigest === null ? decodedBody : bodyDigest.pass(decodedBody), {
      ...csvOptions,
      definition: typeDefinition,
      tracksSent: ingestHead.patch,
      yieldTurn: httpContext.yieldTurn,
      ...(isAtomic
        ? { batchRows: Infinity, batchBytes: Infinity, limitBytes: httpContext.bodyLimitBytes }
        : bodyDigest === null
          ? {
              ...batchSizes.stream,
              batchRows: () => batchSizes[isSlowIngest || httpContext.isCrowded() ? 'crowded' : 'stream'].batchRows,
            }
          : batchSizes[ingestPlan.size]),
    }),
  );
  return { ingested: ingestedReply, replayed: startedIngest.replayed };
}

function ingestFor(
  ingestInvocation: Invocation,
  ingestHead: IngestHead,
  bodyDigest: BodyDigest | null,
  waitsForRoom = false,
): Ingest {
  const {
    type,
    atomic,
    sync,
    patch,
    replace,
    when,
    plan: ingestPlan,
    provenance,
    idempotencyKey: idempotencyHeader,
  } = ingestHead;
  const ingestRequest = {
    type,
    atomic,
    sync,
    patch,
    replace,
    when,
    createType: ingestPlan.createType,
    provenance,
    waits: waitsForRoom,
  };
  if (idempotencyHeader === null || bodyDigest === null) return new Ingest(ingestInvocation, ingestRequest);
  // Keys are scoped by principal and organisation: no caller can meet another's.
  const { principal: callerPrincipal, path: callerPath } = ingestInvocation.caller;
  const scopedKey = createHash('sha256')
    .update(canonicalJson([callerPrincipal, callerPath, idempotencyHeader]), 'utf8')
    .digest('hex');
  return new Ingest(ingestInvocation, { ...ingestRequest, once: { key: scopedKey, body: bodyDigest } });
}

/** Everything except the body that identifies a request (idempotency). */
function idempotencyPreface(ingestInvocation: Invocation, ingestHead: IngestHead): string {
  const {
    plan: ingestPlan,
    type,
    atomic,
    patch,
    replace,
    when,
    provenance,
    encoding,
    contentType,
    reader: csvOptions,
  } = ingestHead;
  return canonicalJson({
    // Members that earlier releases did not have are left out of the digest when absent.
    ...(patch && { patch }),
    ...(replace && { replace }),
    ...(when !== null && { when: typeof when === 'string' ? when : String(when.unchangedSince) }),
    url: ingestPlan.url,
    branch: ingestInvocation.caller.branch,
    // A name that was deleted and taken again is another branch, without the rows of the first.
    branch_id: ingestInvocation.snapshot().branchId,
    type,
    atomic,
    encoding,
    provenance: { ...provenance },
    content_type: contentType,
    columns: csvOptions.columns ?? null,
    null_text: csvOptions.nullText ?? null,
  });
}

/** Stops at the signal; earlier rows stay. */
async function* piecesUntilAborted(
  bodyPieces: AsyncIterable<Uint8Array>,
  taskSignal: AbortSignal,
): AsyncGenerator<Uint8Array, void> {
  for await (const bodyPiece of bodyPieces) {
    taskSignal.throwIfAborted();
    yield bodyPiece;
  }
}

function collectIngestBody(
  httpContext: HttpContext,
  bodySource: Readable,
  contentLength: string | undefined,
): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    httpContext.bodies.collect(bodySource, contentLength, (bodyError, ingestBody) =>
      bodyError ? reject(bodyError) : resolve(ingestBody ?? new Uint8Array(0)),
    );
  });
}

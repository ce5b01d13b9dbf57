/** PATCH /types/:name/:id: some cells of one row; those that are not sent keep their value. */
import type { Readable } from 'node:stream';
import { z } from 'zod';
import { assert, type ErrorCode, ServiceError } from '../../../errors.ts';
import type { Invocation } from '../../../governance/gate-contract.ts';
import type { NamedColumn } from '../../../log/values/columns.ts';
import { cellAt, VectorBuilder } from '../../../log/values/vector-builder.ts';
import { readIngest } from '../../../planner/formats/ingest-reader.ts';
import type { PutRows } from '../../../projections/command.ts';
import { entityTag, statedCondition } from '../write-conditions.ts';
import { encodingOf, decodeInTurns } from '../../shared/content-encoding.ts';
import { reply, route, type Route } from '../route.ts';
import { wantsSync } from '../request-headers.ts';
import { checkCaller } from '../../shared/stream-lease.ts';
import { nanoseconds } from '../schemas.ts';
import { definitionOf } from '../../shared/type-body.ts';

const patchedRowReply = z.object({
  type: z.string(),
  id: z.string(),
  system_from: nanoseconds,
  durability: z.enum(['synced', 'buffered']),
});

const patchQuery = z.object({
  when: z
    .string()
    .optional()
    .describe('present, the default, or an instant: the row was not written since. If-Match says the same; else 409'),
  purpose: z.string().optional(),
});

export const patchRowRoutes: readonly Route[] = [
  route({
    method: 'PATCH',
    path: '/types/:name/:id',
    access: 'token',
    inTransaction: true,
    action: 'ingest',
    bucket: 'write',
    summary: 'Change some cells of a row',
    description:
      'The body is one JSON object: cells that it has are written, null included, all others keep their value, also where the caller ' +
      'may not see it. valid_from and valid_to bound what is changed. The ETag of the reply is what If-Match takes.',
    tags: ['schema'],
    consumes: ['application/json', 'application/merge-patch+json'],
    params: z.object({ name: z.string(), id: z.string() }),
    query: patchQuery,
    replies: { 200: patchedRowReply },
    reads: 'stream',
    purposeIn: 'query',
    example: { params: { name: 'a type', id: 'a row' }, body: { secret: 'a text' } },
    run: async (
      patchInvocation,
      {
        params: { name: patchedType, id: patchedRowId },
        query: { when: whenParameter },
        body: sentBody,
        request: patchRequest,
        context: httpContext,
      },
    ) => {
      const patchCondition = statedCondition(patchRequest, whenParameter);
      if (patchCondition === 'absent')
        throw new ServiceError('REL_INVALID', 'PATCH changes existing rows: write new ones with POST /ingest');
      const patchSource = (sentBody as Readable | undefined) ?? patchRequest.raw;
      patchInvocation.describe({ objectType: patchedType, rowCount: 0 });
      const patchBody = decodeInTurns(httpContext, httpContext.bodies.stream(patchSource), encodingOf(patchRequest));
      const patchCommand = await readPatch(patchInvocation, {
        name: patchedType,
        id: patchedRowId,
        body: patchBody,
        limitBytes: httpContext.bodyLimitBytes,
      });
      checkCaller(httpContext, patchInvocation.caller);
      const patchOutcome = await patchInvocation.submit(
        { ...patchCommand, when: patchCondition ?? 'present' },
        { sync: wantsSync(patchRequest) },
      );
      const [refusedPatch] = patchOutcome.errors;
      if (refusedPatch !== undefined) {
        // Without a stated condition a missing row is REL_NOT_FOUND, as for a read.
        if (refusedPatch.code === 'REL_CONFLICT' && patchCondition === null)
          throw new ServiceError('REL_NOT_FOUND', 'no such row');
        throw new ServiceError(refusedPatch.code as ErrorCode, refusedPatch.detail);
      }
      patchInvocation.describe({ rowCount: 1 });
      httpContext.metrics.countRows(1);
      const { systemFrom: patchSystemFrom, durability: patchDurability } = patchOutcome;
      return reply(
        200,
        { type: patchedType, id: patchedRowId, system_from: patchSystemFrom, durability: patchDurability },
        { etag: entityTag(patchSystemFrom) },
      );
    },
  }),
];

interface PatchedRow {
  readonly name: string;
  readonly id: string;
  readonly body: AsyncIterable<Uint8Array>;
  readonly limitBytes: number;
}

async function readPatch(
  patchInvocation: Invocation,
  { name: patchedType, id: patchedRowId, body: patchBody, limitBytes }: PatchedRow,
): Promise<PutRows> {
  const patchDefinition = definitionOf(patchInvocation, patchedType);
  const ingestOptions = { definition: patchDefinition, batchRows: 2, batchBytes: Infinity, limitBytes, tracksSent: true };
  for await (const { rows: patchRows, rejections: patchRejections, sent: sentCells } of readIngest(
    bodyAsArray(patchBody),
    ingestOptions,
  )) {
    const [refusedPatch] = patchRejections;
    if (refusedPatch !== undefined) throw new ServiceError(refusedPatch.code as ErrorCode, refusedPatch.detail);
    if (patchRows.length !== 1) break;
    assert(sentCells, 'the reader was asked which cells were sent');
    return {
      kind: 'put-rows',
      type: patchedType,
      rows: {
        length: 1,
        columns: [
          ...patchRows.columns.filter((patchColumn) => patchColumn.name !== '_pk'),
          patchKeyColumn(patchedRowId, patchRows.columns),
        ],
      },
      atomic: false,
      createType: false,
      provenance: { source: 'http', method: 'patch', confidence: 1, derivedFrom: null },
      patch: sentCells,
    };
  }
  throw new ServiceError('REL_INVALID', 'the body is one JSON object with the cells to change');
}

/** Puts brackets around the body: without them a member named rows would make it a list of rows. */
async function* bodyAsArray(objectBody: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  yield Buffer.from('[');
  yield* objectBody;
  yield Buffer.from(']');
}

function patchKeyColumn(pathRowId: string, patchColumns: readonly NamedColumn[]): NamedColumn {
  const bodyKeyColumn = patchColumns.find((patchColumn) => patchColumn.name === '_pk');
  const bodyKey = bodyKeyColumn === undefined ? null : cellAt(bodyKeyColumn.vector, bodyKeyColumn.type, 0);
  if (bodyKey !== null && bodyKey !== pathRowId)
    throw new ServiceError('REL_INVALID', '_pk differs from the row that the path names');
  const keyBuilder = new VectorBuilder('string', 1);
  keyBuilder.appendString(pathRowId);
  return { name: '_pk', type: 'string', vector: keyBuilder.build() };
}

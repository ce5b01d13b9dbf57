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
import { definitionOf } from '../../schemas/type-body.ts';

const rowReply = z.object({
  type: z.string(),
  id: z.string(),
  system_from: nanoseconds,
  durability: z.enum(['synced', 'buffered']),
});

const query = z.object({
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
    query,
    replies: { 200: rowReply },
    reads: 'stream',
    purposeIn: 'query',
    example: { params: { name: 'a type', id: 'a row' }, body: { secret: 'a text' } },
    run: async (invocation, { params: { name, id }, query: { when }, body: sent, request, context }) => {
      const stated = statedCondition(request, when);
      if (stated === 'absent')
        throw new ServiceError('REL_INVALID', 'PATCH changes existing rows: write new ones with POST /ingest');
      const source = (sent as Readable | undefined) ?? request.raw;
      invocation.describe({ objectType: name, rowCount: 0 });
      const body = decodeInTurns(context, context.bodies.stream(source), encodingOf(request));
      const command = await patchOf(invocation, { name, id, body, limitBytes: context.bodyLimitBytes });
      checkCaller(context, invocation.caller);
      const outcome = await invocation.submit({ ...command, when: stated ?? 'present' }, { sync: wantsSync(request) });
      const [refused] = outcome.errors;
      if (refused !== undefined) {
        // Without a stated condition a missing row is REL_NOT_FOUND, as for a read.
        if (refused.code === 'REL_CONFLICT' && stated === null) throw new ServiceError('REL_NOT_FOUND', 'no such row');
        throw new ServiceError(refused.code as ErrorCode, refused.detail);
      }
      invocation.describe({ rowCount: 1 });
      context.metrics.countRows(1);
      const { systemFrom, durability } = outcome;
      return reply(200, { type: name, id, system_from: systemFrom, durability }, { etag: entityTag(systemFrom) });
    },
  }),
];

interface Patched {
  readonly name: string;
  readonly id: string;
  readonly body: AsyncIterable<Uint8Array>;
  readonly limitBytes: number;
}

async function patchOf(invocation: Invocation, { name, id, body, limitBytes }: Patched): Promise<PutRows> {
  const definition = definitionOf(invocation, name);
  const options = { definition, batchRows: 2, batchBytes: Infinity, limitBytes, tracksSent: true };
  for await (const { rows, rejections, sent } of readIngest(asArray(body), options)) {
    const [refused] = rejections;
    if (refused !== undefined) throw new ServiceError(refused.code as ErrorCode, refused.detail);
    if (rows.length !== 1) break;
    assert(sent, 'the reader was asked which cells were sent');
    return {
      kind: 'put-rows',
      type: name,
      rows: { length: 1, columns: [...rows.columns.filter((column) => column.name !== '_pk'), keyColumn(id, rows.columns)] },
      atomic: false,
      createType: false,
      provenance: { source: 'http', method: 'patch', confidence: 1, derivedFrom: null },
      patch: sent,
    };
  }
  throw new ServiceError('REL_INVALID', 'the body is one JSON object with the cells to change');
}

/** Puts brackets around the body: without them a member named rows would make it a list of rows. */
async function* asArray(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  yield Buffer.from('[');
  yield* body;
  yield Buffer.from(']');
}

function keyColumn(id: string, columns: readonly NamedColumn[]): NamedColumn {
  const own = columns.find((column) => column.name === '_pk');
  const key = own === undefined ? null : cellAt(own.vector, own.type, 0);
  if (key !== null && key !== id) throw new ServiceError('REL_INVALID', '_pk differs from the row that the path names');
  const builder = new VectorBuilder('string', 1);
  builder.appendString(id);
  return { name: '_pk', type: 'string', vector: builder.build() };
}

/** POST /tx, /tx/:id/commit and /tx/:id/rollback. Requests that name it in X-Service-Transaction read and write in it. */
import { z } from 'zod';
import { wantsSync } from '../request-headers.ts';
import { callerOf, invoke, signalOf } from '../invoke.ts';
import { reply, route, type Route } from '../route.ts';
import { nanoseconds } from '../schemas.ts';

const begunTransaction = z
  .object({
    id: z.string().describe('goes into X-Service-Transaction; only who began it may use it'),
    basis: nanoseconds.describe('the instant that it reads, beside what it writes itself'),
    idle_ms: z.int().describe('without a request for so long it ends, and nothing of it is written'),
  })
  .meta({ id: 'BegunTransaction' });

const committedTransaction = z
  .object({
    id: z.string(),
    system_from: nanoseconds.nullable().describe('of the first row that was written; null where nothing was to be written'),
    system_from_last: nanoseconds.nullable(),
    rows: z.int().describe('rows that were written'),
    durability: z.enum(['synced', 'buffered']).nullable(),
  })
  .meta({ id: 'CommittedTransaction' });

const transactionParams = z.object({ id: z.string() });

export const transactionRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: '/tx',
    access: 'token',
    action: 'inspect',
    bucket: 'write',
    summary: 'Begin a transaction on a branch',
    description:
      'It reads the branch as it stands now, and what it writes itself; system times of that are provisional. Nobody else sees ' +
      'anything of it before the commit. Its requests come one after the other.',
    tags: ['transactions'],
    query: z.object({
      after: z
        .string()
        .optional()
        .describe(
          'the transaction of this client that ended last: where it met a conflict, this one waits for those who write the same rows',
        ),
    }),
    replies: { 201: begunTransaction },
    run: async (
      transactionInvocation,
      { query: { after: endedBefore }, request: transactionRequest, context: { gate: httpGate } },
    ) => {
      transactionInvocation.describe({ template: 'BEGIN' });
      transactionInvocation.checkInspects();
      const begunByRequest = httpGate.begin(transactionInvocation.caller, endedBefore);
      try {
        await begunByRequest.waits(signalOf(transactionRequest.raw.socket));
        const { instant: transactionInstant } = begunByRequest.fix();
        return reply(201, { id: begunByRequest.id, basis: transactionInstant, idle_ms: begunByRequest.idleMs });
      } catch (beginError) {
        begunByRequest.end();
        throw beginError;
      }
    },
  }),
  route({
    method: 'POST',
    path: '/tx/:id/commit',
    access: 'token',
    action: 'ingest',
    bucket: 'write',
    summary: 'Write all that a transaction holds, or nothing of it',
    description:
      'REL_CONFLICT where a row that it wrote or locked was written by another since it began: run it again from its beginning. ' +
      'X-Service-Durability: sync waits for the disk. Whatever the answer is, the transaction is over.',
    tags: ['transactions'],
    params: transactionParams,
    replies: { 200: committedTransaction },
    example: { params: { id: 'a transaction' } },
    handle: async ({ params: { id: transactionId }, request: commitRequest, context: httpContext }) => {
      const openTransaction = httpContext.gate.transaction(transactionId, callerOf(commitRequest));
      const isSyncCommit = wantsSync(commitRequest);
      const commitOutcome = await invoke(
        httpContext,
        commitRequest,
        openTransaction.isEmpty ? 'query' : 'ingest',
        undefined,
        (commitInvocation) => commitInvocation.commit({ sync: isSyncCommit }),
        { transaction: openTransaction },
      );
      return {
        id: transactionId,
        system_from: commitOutcome?.systemFrom ?? null,
        system_from_last: commitOutcome?.systemFromLast ?? null,
        rows: commitOutcome?.accepted ?? 0,
        durability: commitOutcome?.durability ?? null,
      };
    },
  }),
  route({
    method: 'POST',
    path: '/tx/:id/rollback',
    access: 'token',
    action: 'inspect',
    bucket: 'write',
    summary: 'End a transaction of which nothing is to be written',
    tags: ['transactions'],
    params: transactionParams,
    replies: { 200: transactionParams },
    example: { params: { id: 'a transaction' } },
    run: async (transactionInvocation, { params: { id: transactionId }, context: { gate: httpGate } }) => {
      transactionInvocation.describe({ template: 'ROLLBACK' });
      transactionInvocation.checkInspects();
      httpGate.transaction(transactionId, transactionInvocation.caller).end();
      return { id: transactionId };
    },
  }),
];

/** GET /tx, and the same below /admin: transactions that are open. A caller sees its own, an administrator those of the tenant, and who runs the store all of them. */
import { z } from 'zod';
import { route, type Route } from '../route.ts';
import { nanoseconds } from '../schemas.ts';

const openTransaction = z
  .object({
    principal: z.string(),
    organization: z.string().nullable(),
    branch: z.string(),
    door: z.string(),
    basis: nanoseconds.nullable().describe('the instant that it reads; null before its first statement'),
    rows: z.int().describe('what waits for its commit'),
    bytes: z.int(),
    pinned_bytes: z.int().describe('memory that goes when it ends'),
    open_ms: z.int(),
    idle_ms: z.int().describe('since its last statement began'),
  })
  .meta({ id: 'OpenTransaction' });

const openRoutesFor = (transactionAccess: 'token' | 'admin'): readonly Route[] => [
  route({
    method: 'GET',
    path: transactionAccess === 'admin' ? '/admin/tx' : '/tx',
    access: transactionAccess,
    action: 'inspect',
    bucket: 'read',
    summary: 'Transactions that are open, the oldest first',
    tags: ['system'],
    replies: { 200: z.object({ transactions: z.array(openTransaction) }) },
    run: async (inspectInvocation, { context: { gate: httpGate, clock } }) => {
      const nowMs = clock.monotonicMs();
      const openTransactions = [...httpGate.transactions(inspectInvocation.caller)].sort(
        (earlier, later) => earlier.openedMs - later.openedMs,
      );
      inspectInvocation.describe({ rowCount: openTransactions.length });
      const transactionViews = openTransactions.map(
        ({
          caller: transactionCaller,
          basis: transactionBasis,
          rows: waitingRows,
          bytes: waitingBytes,
          pinnedBytes,
          openedMs: transactionOpenedMs,
          usedMs: transactionUsedMs,
        }) => ({
          principal: transactionCaller.principal,
          organization: transactionCaller.path,
          branch: transactionCaller.branch,
          door: transactionCaller.door,
          basis: transactionBasis?.instant ?? null,
          rows: waitingRows,
          bytes: waitingBytes,
          pinned_bytes: pinnedBytes,
          open_ms: Math.round(nowMs - transactionOpenedMs),
          idle_ms: Math.round(nowMs - transactionUsedMs),
        }),
      );
      return { transactions: transactionViews };
    },
  }),
];

export const openTransactionRoutes = openRoutesFor('token');
export const adminOpenTransactionRoutes = openRoutesFor('admin');

/** GET /tx, and the same below /admin: transactions that are open. A caller sees its own, an administrator those of the tenant, and who runs the store all of them. */
import { z } from 'zod';
import { route, type Route } from '../route.ts';
import { nanoseconds } from '../schemas.ts';

const transaction = z
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

const routesOf = (access: 'token' | 'admin'): readonly Route[] => [
  route({
    method: 'GET',
    path: access === 'admin' ? '/admin/tx' : '/tx',
    access,
    action: 'inspect',
    bucket: 'read',
    summary: 'Transactions that are open, the oldest first',
    tags: ['system'],
    replies: { 200: z.object({ transactions: z.array(transaction) }) },
    run: async (invocation, { context: { gate, clock } }) => {
      const nowMs = clock.monotonicMs();
      const open = [...gate.transactions(invocation.caller)].sort((a, b) => a.openedMs - b.openedMs);
      invocation.describe({ rowCount: open.length });
      const transactions = open.map(({ caller, basis, rows, bytes, pinnedBytes, openedMs, usedMs }) => ({
        principal: caller.principal,
        organization: caller.path,
        branch: caller.branch,
        door: caller.door,
        basis: basis?.instant ?? null,
        rows,
        bytes,
        pinned_bytes: pinnedBytes,
        open_ms: Math.round(nowMs - openedMs),
        idle_ms: Math.round(nowMs - usedMs),
      }));
      return { transactions };
    },
  }),
];

export const openTransactionRoutes = routesOf('token');
export const adminOpenTransactionRoutes = routesOf('admin');

/**
 * forget: how long a memory is kept. Source: specification, "Agent memory (HTTP)" and "States and transitions". It stays as it
 * is until its time is over; a legal hold keeps it until the hold is taken back.
 */
import { z } from 'zod';
import { ServiceError } from '../../../errors.ts';
import type { VerbCall } from '../verb-call.ts';
import { verb } from '../verb.ts';
import { itemId, memoryType } from './memory-items.ts';

const retainDayNs = 86_400_000_000_000n;
const retainDaysMax = 36_500;

interface ForgottenMemory {
  /** Whether a schedule will remove it for good later. */
  readonly scheduled: boolean;
  readonly policy: string;
}

export const forget = verb({
  name: 'forget',
  description: 'Forget a memory: after so many days, never (-1: legal hold), or, without retain_days, for good and at once.',
  input: z.object({
    id: itemId,
    retain_days: z
      .int()
      .min(-1)
      .max(retainDaysMax)
      .optional()
      .describe('days until it is removed for good; -1: legal hold; absent: removed for good now'),
    type: memoryType,
  }),
  output: z.object({ scheduled: z.boolean(), policy: z.string() }),
  action: 'remove',
  units: 1,
  purpose: 'required',
  bucket: 'memory',
  http: [{ method: 'DELETE', url: '/memory/forget/:id' }],
  tool: { title: 'Forget', readOnly: false, destructive: true },
  example: { id: 'a memory', retain_days: 30 },
  run: async (verbCall, { id: memoryId, retain_days: retainedDays, type: memoryTypeName }) => {
    verbCall.invocation.describe({ objectType: memoryTypeName });
    const forgottenMemory = await forgetMemory(verbCall, memoryTypeName, memoryId, retainedDays ?? null);
    verbCall.note({ result: forgottenMemory });
    return forgottenMemory;
  },
});

/** The last request counts: it replaces an earlier schedule or hold. */
async function forgetMemory(
  { invocation, parts: verbDependencies }: VerbCall,
  memoryTypeName: string,
  memoryKey: string,
  retainedDays: number | null,
): Promise<ForgottenMemory> {
  const earlierRetentions = invocation.retentionOf(memoryTypeName, memoryKey);
  if (retainedDays === null) {
    const { errors: removalErrors, accepted: removedCount } = await invocation.submit(
      { kind: 'remove-rows', type: memoryTypeName, keys: [memoryKey] },
      { sync: true },
    );
    const [refusedRemoval] = removalErrors;
    if (refusedRemoval?.code === 'REL_CONFLICT') throw new ServiceError('REL_CONFLICT', refusedRemoval.detail);
    if (removedCount === 0) throw new ServiceError('REL_NOT_FOUND', 'no such row');
    return { scheduled: false, policy: 'removed' };
  }
  const retentionId = verbDependencies.ids.next();
  const retainUntil = verbDependencies.clock.now() + BigInt(Math.max(0, retainedDays)) * retainDayNs;
  const retentionCommand =
    retainedDays === -1
      ? ({ kind: 'hold-row', id: retentionId, type: memoryTypeName, key: memoryKey } as const)
      : ({ kind: 'schedule-retention', id: retentionId, type: memoryTypeName, key: memoryKey, until: retainUntil } as const);
  await invocation.submit(retentionCommand, { sync: true });
  // Released last: a row under hold is never without one before the next is on disk.
  for (const earlierRetention of earlierRetentions)
    await invocation.submit({ kind: 'release-retention', id: earlierRetention.id }, { sync: true });
  return retainedDays === -1
    ? { scheduled: false, policy: 'legal_hold' }
    : { scheduled: true, policy: `retain_days=${retainedDays}` };
}

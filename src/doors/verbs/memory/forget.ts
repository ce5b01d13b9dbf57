/**
 * forget: how long a memory is kept. Source: specification, "Agent memory (HTTP)" and "States and transitions". It stays as it
 * is until its time is over; a legal hold keeps it until the hold is taken back.
 */
import { z } from 'zod';
import { ServiceError } from '../../../errors.ts';
import type { VerbCall } from '../verb-call.ts';
import { verb } from '../verb.ts';
import { itemId, memoryType } from './memory-items.ts';

const dayNs = 86_400_000_000_000n;
const daysMax = 36_500;

interface Forgotten {
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
      .max(daysMax)
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
  run: async (verbCall, { id, retain_days: retainDays, type }) => {
    verbCall.invocation.describe({ objectType: type });
    const forgotten = await forgetItem(verbCall, type, id, retainDays ?? null);
    verbCall.note({ result: forgotten });
    return forgotten;
  },
});

/** The last request counts: it replaces an earlier schedule or hold. */
async function forgetItem(
  { invocation, parts }: VerbCall,
  type: string,
  key: string,
  retainDays: number | null,
): Promise<Forgotten> {
  const before = invocation.retentionOf(type, key);
  if (retainDays === null) {
    const { errors, accepted } = await invocation.submit({ kind: 'remove-rows', type, keys: [key] }, { sync: true });
    const [refused] = errors;
    if (refused?.code === 'REL_CONFLICT') throw new ServiceError('REL_CONFLICT', refused.detail);
    if (accepted === 0) throw new ServiceError('REL_NOT_FOUND', 'no such row');
    return { scheduled: false, policy: 'removed' };
  }
  const id = parts.ids.next();
  const until = parts.clock.now() + BigInt(Math.max(0, retainDays)) * dayNs;
  const command =
    retainDays === -1
      ? ({ kind: 'hold-row', id, type, key } as const)
      : ({ kind: 'schedule-retention', id, type, key, until } as const);
  await invocation.submit(command, { sync: true });
  // Released last: a row under hold is never without one before the next is on disk.
  for (const kept of before) await invocation.submit({ kind: 'release-retention', id: kept.id }, { sync: true });
  return retainDays === -1
    ? { scheduled: false, policy: 'legal_hold' }
    : { scheduled: true, policy: `retain_days=${retainDays}` };
}

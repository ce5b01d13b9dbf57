/**
 * DELETE /memory/forget/:id: how long a memory is kept. Source: specification, "Agent memory (HTTP)" and "States and
 * transitions". It stays as it is until its time is over; a legal hold keeps it until the hold is taken back.
 */
import { z } from 'zod';
import { ServiceError } from '../../../errors.ts';
import type { Invocation } from '../../../governance/gate-contract.ts';
import type { App, HttpContext } from '../context.ts';
import { invoke } from '../invoke.ts';
import { problems } from '../schemas.ts';

const type = 'MemoryItem';
const dayNs = 86_400_000_000_000n;
const daysMax = 36_500;

const days = z.coerce.number().int().min(-1).max(daysMax);

const asked = {
  retain_days: days.optional().describe('days until it is removed for good; -1: legal hold; absent: removed for good now'),
  purpose: z.string().optional(),
};

/** The envelope of memory and tool replies. Source: specification, "Result envelopes". */
const envelope = z
  .object({ isError: z.boolean(), content: z.array(z.object({ type: z.literal('text'), text: z.string() })) })
  .meta({ id: 'MemoryReply', description: 'text holds a JSON string; of forget {scheduled, policy}' });

interface Forgotten {
  /** It is removed for good by itself, later. */
  readonly scheduled: boolean;
  readonly policy: string;
}

export function registerForget(app: App, context: HttpContext): void {
  app.route({
    method: 'DELETE',
    url: '/memory/forget/:id',
    config: { access: 'token', action: 'remove', bucket: 'memory' },
    schema: {
      summary: 'Forget a memory: after so many days, never (legal hold), or now',
      tags: ['memory'],
      params: z.object({ id: z.string() }),
      querystring: z.object(asked),
      body: z.object(asked).nullish(),
      response: { 200: envelope, ...problems },
    },
    handler: (request) => {
      const { id } = request.params;
      const { retain_days: retainDays, purpose } = { ...request.query, ...request.body };
      return invoke(
        context,
        request,
        'remove',
        purpose,
        async (invocation) => {
          invocation.describe({ objectType: type });
          const forgotten = await forget(invocation, context, id, retainDays ?? null);
          return { isError: false, content: [{ type: 'text', text: JSON.stringify(forgotten) }] };
        },
        { purposeRequired: true },
      );
    },
  });
}

/** What was said last counts: it takes the place of an earlier schedule or hold. */
async function forget(invocation: Invocation, context: HttpContext, key: string, retainDays: number | null): Promise<Forgotten> {
  const before = invocation.kept(type, key);
  if (retainDays === null) {
    const { errors, accepted } = await invocation.submit({ kind: 'remove-rows', type, keys: [key] }, { sync: true });
    const [refused] = errors;
    if (refused?.code === 'REL_CONFLICT') throw new ServiceError('REL_CONFLICT', refused.detail);
    if (accepted === 0) throw new ServiceError('REL_NOT_FOUND', 'no such row');
    return { scheduled: false, policy: 'removed' };
  }
  const id = context.ids.next();
  const until = context.clock.now() + BigInt(Math.max(0, retainDays)) * dayNs;
  const command =
    retainDays === -1
      ? ({ kind: 'hold-row', id, type, key } as const)
      : ({ kind: 'schedule-retention', id, type, key, until } as const);
  await invocation.submit(command, { sync: true });
  // Only then: a row under hold is never without one before what follows is on disk.
  for (const kept of before) await invocation.submit({ kind: 'release-retention', id: kept.id }, { sync: true });
  return retainDays === -1
    ? { scheduled: false, policy: 'legal_hold' }
    : { scheduled: true, policy: `retain_days=${retainDays}` };
}

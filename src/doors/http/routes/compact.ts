/** Compaction on request: files of mostly superseded rows in less room. No answer changes by it. */
import { z } from 'zod';
import type { JobWork } from '../../../governance/jobs/job-runner.ts';
import { route, type Route } from '../route.ts';

const reply = z.object({ segments: z.int(), bytes_before: z.int(), bytes_after: z.int() });

/** POST /admin/compact. */
export const compactRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: '/admin/compact',
    access: 'admin',
    action: 'administer',
    summary: 'Rewrite files of superseded rows',
    tags: ['system'],
    replies: { 200: reply },
    run: async ({ caller }, { context }) => {
      const run = ({ signal, progress }: JobWork) => context.system.compact({ signal, onProgress: progress });
      const job = { kind: 'compaction', unit: 'segments', onDrain: 'cancel', run } as const;
      const resultOf = (done: Awaited<ReturnType<typeof run>>) => ({ segments: done.segments });
      const { segments, bytesBefore, bytesAfter } = await context.jobs.start({ ...job, resultOf }, caller).ended;
      return { segments, bytes_before: bytesBefore, bytes_after: bytesAfter };
    },
  }),
];

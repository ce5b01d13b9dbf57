/** Compaction on request: files of mostly superseded rows in less room. No answer changes by it. */
import { z } from 'zod';
import type { JobWork } from '../../../governance/jobs/job-runner.ts';
import type { App, HttpContext } from '../context.ts';
import { invoke } from '../invoke.ts';
import { problems } from '../schemas.ts';

const reply = z.object({ segments: z.int(), bytes_before: z.int(), bytes_after: z.int() });

/** POST /admin/compact. */
export function registerCompact(app: App, context: HttpContext): void {
  app.route({
    method: 'POST',
    url: '/admin/compact',
    config: { access: 'admin', action: 'administer' },
    schema: { summary: 'Rewrite files of superseded rows', tags: ['system'], response: { 200: reply, ...problems } },
    handler: (request) =>
      invoke(context, request, 'administer', undefined, async ({ caller }) => {
        const run = ({ signal, progress }: JobWork) => context.system.compact({ signal, onProgress: progress });
        const job = { kind: 'compaction', unit: 'segments', onDrain: 'cancel', run } as const;
        const { segments, bytesBefore, bytesAfter } = await context.jobs.start(job, caller).ended;
        return { segments, bytes_before: bytesBefore, bytes_after: bytesAfter };
      }),
  });
}

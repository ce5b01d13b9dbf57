/** Compaction on request: files of mostly superseded rows in less room. No answer changes by it. */
import { z } from 'zod';
import type { JobWork } from '../../../governance/jobs/job-runner.ts';
import { route, type Route } from '../route.ts';

const compactionReply = z.object({ segments: z.int(), bytes_before: z.int(), bytes_after: z.int() });

/** POST /admin/compact. */
export const compactRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: '/admin/compact',
    access: 'admin',
    action: 'administer',
    summary: 'Rewrite files of superseded rows',
    tags: ['system'],
    replies: { 200: compactionReply },
    run: async ({ caller }, { context: httpContext }) => {
      const compactStore = ({ signal: compactionSignal, progress: compactionProgress }: JobWork) =>
        httpContext.system.compact({ signal: compactionSignal, onProgress: compactionProgress });
      const compactionJob = { kind: 'compaction', unit: 'segments', onDrain: 'cancel', run: compactStore } as const;
      const compactionResult = (compaction: Awaited<ReturnType<typeof compactStore>>) => ({ segments: compaction.segments });
      const {
        segments: compactedSegments,
        bytesBefore: bytesBeforeCompaction,
        bytesAfter: bytesAfterCompaction,
      } = await httpContext.jobs.start({ ...compactionJob, resultOf: compactionResult }, caller).ended;
      return { segments: compactedSegments, bytes_before: bytesBeforeCompaction, bytes_after: bytesAfterCompaction };
    },
  }),
];

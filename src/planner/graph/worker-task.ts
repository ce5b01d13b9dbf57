/** Runs a part of a statement in a worker, while the statement waits for it. */
import type { SteppedJob } from '../../log/threads/stepping-job.ts';
import type { WorkerKeeper } from '../../log/threads/worker-keeper.ts';
import type { Execution } from '../operators/operator.ts';
import type { Steps } from './stepped-sort.ts';

export interface Waiting {
  readonly workers: WorkerKeeper;
  readonly wait: Execution['wait'];
  /** Aborted once the statement is given up. */
  readonly signal: AbortSignal;
  readonly onProgress?: (done: number) => void;
}

/** After each step the caller awaits `wait.until`. */
export function* besideLoop<Request, Reply>(
  workerJob: SteppedJob<Request, Reply>,
  request: Request,
  workerWaiting: Waiting,
): Steps<Reply> {
  const { workers, wait, signal, onProgress } = workerWaiting;
  let workerEnd: { readonly reply: Reply } | { readonly error: unknown } | null = null;
  wait.until = workers.run(workerJob, request, 'query', signal, onProgress).then(
    (reply) => void (workerEnd = { reply }),
    (error: unknown) => void (workerEnd = { error }),
  );
  for (;;) {
    yield;
    const endedWorker = workerEnd as { readonly reply: Reply } | { readonly error: unknown } | null;
    if (endedWorker === null) continue;
    if ('error' in endedWorker) throw endedWorker.error;
    return endedWorker.reply;
  }
}

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
export function* besideLoop<Request, Reply>(job: SteppedJob<Request, Reply>, request: Request, waiting: Waiting): Steps<Reply> {
  const { workers, wait, signal, onProgress } = waiting;
  let over: { readonly reply: Reply } | { readonly error: unknown } | null = null;
  wait.until = workers.run(job, request, 'query', signal, onProgress).then(
    (reply) => void (over = { reply }),
    (error: unknown) => void (over = { error }),
  );
  for (;;) {
    yield;
    const ended = over as { readonly reply: Reply } | { readonly error: unknown } | null;
    if (ended === null) continue;
    if ('error' in ended) throw ended.error;
    return ended.reply;
  }
}

/**
 * Upkeep beside a store that runs, each in a thread of its own: copying a log and reading the copy back, rebuilding and digesting
 * projections take the turn for as long as they take. It shares no file that is written with the store. A task's own modules are
 * loaded in its thread and not before, since some take longer than a copy.
 */
import type { BackgroundCopy, BackgroundDigest } from './store-backups.ts';
import { systemClock, systemRandom } from '../clock.ts';
import { ServiceError } from '../errors.ts';
import type { CopyRequest, OnCopied } from '../log/backup/backup-copy.ts';
import { nodeDisk } from '../log/disk/node-disk.ts';
import { type Job, spareCores, threadWorker } from '../log/threads/workers.ts';
import type { BackgroundRestore, RestoreRequest } from './store-restores.ts';
import type { SavedStateRequest } from './saved-digests.ts';

/** How far it has come, from time to time. */
interface Progress {
  readonly bytes: number;
  readonly bytesTotal: number;
}

type Task =
  | { readonly kind: 'copy'; readonly request: CopyRequest }
  | { readonly kind: 'restore'; readonly request: RestoreRequest }
  | { readonly kind: 'digest'; readonly request: SavedStateRequest };

interface Start {
  readonly task: Task;
  /** 1 once the task is to end: shared memory, as a task at work takes no messages. */
  readonly aborted: Int32Array;
}

/** Bytes copied between two reports of progress. */
const PROGRESS_BYTES = 8 << 20;

/** On the disk of the machine. Once the signal aborts, the copy ends as it is. */
export const copyInThread: BackgroundCopy = (request, signal, onProgress) =>
  inThread({ kind: 'copy', request }, signal, onProgress);

/** On the disk of the machine. Once the signal aborts, the restore ends and clears what it has made. */
export const restoreInThread: BackgroundRestore = (request, signal, onProgress) =>
  inThread({ kind: 'restore', request }, signal, onProgress);

/** On the disk of the machine. It only reads: once the signal aborts, it ends wherever it is. */
export const digestInThread: BackgroundDigest = (request, signal) => inThread({ kind: 'digest', request }, signal);

async function inThread<T>(task: Task, signal: AbortSignal, onProgress?: OnCopied): Promise<T> {
  const aborted = new Int32Array(new SharedArrayBuffer(4));
  const worker = threadWorker(upkeepJob, { task, aborted });
  const abort = (): void => {
    Atomics.store(aborted, 0, 1);
    if (task.kind === 'digest') void worker.end();
  };
  signal.addEventListener('abort', abort);
  if (signal.aborted) abort();
  try {
    for (;;) {
      const report = await worker.ask(null);
      if ('result' in report) return report.result as T;
      onProgress?.(report.bytes, report.bytesTotal);
    }
  } finally {
    signal.removeEventListener('abort', abort);
    await worker.end();
  }
}

/** The job of such a thread. Each request is answered by the next progress, or by the result. */
export const upkeepJob: Job<Start, null, Progress | { readonly result: unknown }> = {
  module: import.meta.url,
  name: 'upkeepJob',
  begin: ({ task, aborted }) => {
    let latest: Progress | null = null;
    let wake = (): void => undefined;
    const ended = runTask(task, {
      // A look at the memory comes between any two slices of work.
      yieldTurn: async () => {
        if (Atomics.load(aborted, 0) === 1) throw new ServiceError('REL_UNAVAILABLE', 'the store is draining');
        await new Promise((resolve) => setImmediate(resolve));
      },
      onProgress: everySoOften((progress) => {
        latest = progress;
        wake();
      }),
    });
    // It is looked at with the next request.
    ended.catch(() => undefined);
    return async () => {
      if (latest === null) await Promise.race([ended, new Promise<void>((resolve) => (wake = resolve))]);
      const report = latest ?? { result: await ended };
      latest = null;
      return report;
    };
  },
};

/** Passes on the progress of every so many bytes, and the end. */
function everySoOften(report: (progress: Progress) => void): OnCopied {
  let reported = 0;
  return (bytes, bytesTotal) => {
    if (bytes - reported < PROGRESS_BYTES && bytes !== bytesTotal) return;
    reported = bytes;
    report({ bytes, bytesTotal });
  };
}

interface Pace {
  readonly yieldTurn: () => Promise<void>;
  readonly onProgress: OnCopied;
}

async function runTask(task: Task, pace: Pace): Promise<unknown> {
  if (task.kind === 'restore') return await restoreBackup(task.request, pace);
  if (task.kind === 'copy') return await copyLog(task.request, pace);
  const { digestsOfSaved } = await import('./saved-digests.ts');
  return await digestsOfSaved(task.request, nodeDisk);
}

async function copyLog(request: CopyRequest, pace: Pace): Promise<unknown> {
  const { copyLog } = await import('../log/backup/backup-copy.ts');
  return await copyLog(request, { disk: nodeDisk, ...pace });
}

async function restoreBackup(request: RestoreRequest, pace: Pace): Promise<unknown> {
  const [{ restoreStore }, { OPEN_BESIDE_BYTES_MIN }] = await Promise.all([
    import('./store-restores.ts'),
    import('../log/files/frame-opener.ts'),
  ]);
  return await restoreStore({
    ...request,
    disk: nodeDisk,
    clock: systemClock,
    random: systemRandom,
    say: () => undefined,
    ...pace,
    ...(spareCores() > 0 && { openBeside: { startWorker: threadWorker, bytesMin: OPEN_BESIDE_BYTES_MIN, windowBytes: 1 << 20 } }),
  });
}

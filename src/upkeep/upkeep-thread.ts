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
interface UpkeepProgress {
  readonly bytes: number;
  readonly bytesTotal: number;
}

type UpkeepTask =
  | { readonly kind: 'copy'; readonly request: CopyRequest }
  | { readonly kind: 'restore'; readonly request: RestoreRequest }
  | { readonly kind: 'digest'; readonly request: SavedStateRequest };

interface UpkeepStart {
  readonly task: UpkeepTask;
  /** 1 once the task is to end: shared memory, as a task at work takes no messages. */
  readonly aborted: Int32Array;
}

/** Bytes copied between two reports of progress. */
const UPKEEP_PROGRESS_BYTES = 8 << 20;

/** On the disk of the machine. Once the signal aborts, the copy ends as it is. */
export const copyInThread: BackgroundCopy = (request, signal, onProgress) =>
  runInThread({ kind: 'copy', request }, signal, onProgress);

/** On the disk of the machine. Once the signal aborts, the restore ends and clears what it has made. */
export const restoreInThread: BackgroundRestore = (request, signal, onProgress) =>
  runInThread({ kind: 'restore', request }, signal, onProgress);

/** On the disk of the machine. It only reads: once the signal aborts, it ends wherever it is. */
export const digestInThread: BackgroundDigest = (request, signal) => runInThread({ kind: 'digest', request }, signal);

async function runInThread<T>(upkeepTask: UpkeepTask, abortSignal: AbortSignal, onProgress?: OnCopied): Promise<T> {
  const abortFlag = new Int32Array(new SharedArrayBuffer(4));
  const upkeepWorker = threadWorker(upkeepJob, { task: upkeepTask, aborted: abortFlag });
  const abortUpkeep = (): void => {
    Atomics.store(abortFlag, 0, 1);
    if (upkeepTask.kind === 'digest') void upkeepWorker.end();
  };
  abortSignal.addEventListener('abort', abortUpkeep);
  if (abortSignal.aborted) abortUpkeep();
  try {
    for (;;) {
      const threadReport = await upkeepWorker.ask(null);
      if ('result' in threadReport) return threadReport.result as T;
      onProgress?.(threadReport.bytes, threadReport.bytesTotal);
    }
  } finally {
    abortSignal.removeEventListener('abort', abortUpkeep);
    await upkeepWorker.end();
  }
}

/** The job of such a thread. Each request is answered by the next progress, or by the result. */
export const upkeepJob: Job<UpkeepStart, null, UpkeepProgress | { readonly result: unknown }> = {
  module: import.meta.url,
  name: 'upkeepJob',
  begin: ({ task, aborted }) => {
    let latestProgress: UpkeepProgress | null = null;
    let wakeReport = (): void => undefined;
    const taskEnded = runUpkeepTask(task, {
      // A look at the memory comes between any two slices of work.
      yieldTurn: async () => {
        if (Atomics.load(aborted, 0) === 1) throw new ServiceError('REL_UNAVAILABLE', 'the store is draining');
        await new Promise((resolve) => setImmediate(resolve));
      },
      onProgress: reportEverySoOften((progress) => {
        latestProgress = progress;
        wakeReport();
      }),
    });
    // It is looked at with the next request.
    taskEnded.catch(() => undefined);
    return async () => {
      if (latestProgress === null) await Promise.race([taskEnded, new Promise<void>((resolve) => (wakeReport = resolve))]);
      const threadReport = latestProgress ?? { result: await taskEnded };
      latestProgress = null;
      return threadReport;
    };
  },
};

/** Passes on the progress of every so many bytes, and the end. */
function reportEverySoOften(reportProgress: (progress: UpkeepProgress) => void): OnCopied {
  let reportedBytes = 0;
  return (doneBytes, totalBytes) => {
    if (doneBytes - reportedBytes < UPKEEP_PROGRESS_BYTES && doneBytes !== totalBytes) return;
    reportedBytes = doneBytes;
    reportProgress({ bytes: doneBytes, bytesTotal: totalBytes });
  };
}

interface UpkeepPace {
  readonly yieldTurn: () => Promise<void>;
  readonly onProgress: OnCopied;
}

async function runUpkeepTask(upkeepTask: UpkeepTask, upkeepPace: UpkeepPace): Promise<unknown> {
  if (upkeepTask.kind === 'restore') return await restoreStoreInTask(upkeepTask.request, upkeepPace);
  if (upkeepTask.kind === 'copy') return await copyLogInTask(upkeepTask.request, upkeepPace);
  const { digestsOfSaved } = await import('./saved-digests.ts');
  return await digestsOfSaved(upkeepTask.request, nodeDisk);
}

async function copyLogInTask(copyRequest: CopyRequest, upkeepPace: UpkeepPace): Promise<unknown> {
  const { copyLog } = await import('../log/backup/backup-copy.ts');
  return await copyLog(copyRequest, { disk: nodeDisk, ...upkeepPace });
}

async function restoreStoreInTask(restoreRequest: RestoreRequest, upkeepPace: UpkeepPace): Promise<unknown> {
  const [{ restoreStore }, { OPEN_BESIDE_BYTES_MIN }] = await Promise.all([
    import('./store-restores.ts'),
    import('../log/files/frame-opener.ts'),
  ]);
  return await restoreStore({
    ...restoreRequest,
    disk: nodeDisk,
    clock: systemClock,
    random: systemRandom,
    say: () => undefined,
    ...upkeepPace,
    ...(spareCores() > 0 && { openBeside: { startWorker: threadWorker, bytesMin: OPEN_BESIDE_BYTES_MIN, windowBytes: 1 << 20 } }),
  });
}

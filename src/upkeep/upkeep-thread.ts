/**
 * Upkeep beside a store that runs, each in a thread of its own: copying a log and reading the copy back, rebuilding and digesting
 * projections take the turn for as long as they take. It shares no file that is written and no memory with the store. This file is
 * also what the thread starts with: a task's own modules are loaded in it and not before, since some take longer than a copy.
 */
import { isMainThread, parentPort, workerData } from 'node:worker_threads';
import type { BackgroundCopy, BackgroundDigest } from './backups.ts';
import { systemClock, systemRandom } from '../clock.ts';
import { type ErrorCode, ServiceError } from '../errors.ts';
import type { CopyRequest, OnCopied } from '../log/backup/backup-copy.ts';
import { nodeDisk } from '../log/disk/node-disk.ts';
import { newThread, spareCores, threadWorker } from '../log/threads/workers.ts';
import type { BackgroundRestore, RestoreRequest } from './restores.ts';
import type { SavedStateRequest } from './saved-digests.ts';

type Ending =
  | { readonly result: unknown }
  | { readonly code: ErrorCode; readonly message: string; readonly extras: Readonly<Record<string, unknown>> | undefined }
  | { readonly failed: unknown };

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
  readonly starts: typeof startMark;
  readonly task: Task;
}

const startMark = 'annals upkeep';

/** Bytes copied between two progress messages. */
const PROGRESS_BYTES = 8 << 20;

/** On the disk of the machine. Once the signal aborts, the copy ends as it is. */
export const copyInThread: BackgroundCopy = (request, signal, onProgress) =>
  inThread({ kind: 'copy', request }, signal, (thread) => thread.postMessage('abort'), onProgress);

/** On the disk of the machine. Once the signal aborts, the restore ends and clears what it has made. */
export const restoreInThread: BackgroundRestore = (request, signal, onProgress) =>
  inThread({ kind: 'restore', request }, signal, (thread) => thread.postMessage('abort'), onProgress);

/** On the disk of the machine. It only reads: once the signal aborts, it ends wherever it is. */
export const digestInThread: BackgroundDigest = (request, signal) =>
  inThread({ kind: 'digest', request }, signal, (thread) => void thread.terminate());

type Thread = ReturnType<typeof newThread>;

function inThread<T>(task: Task, signal: AbortSignal, abort: (thread: Thread) => void, onProgress?: OnCopied): Promise<T> {
  return new Promise((resolve, reject) => {
    const thread = newThread(import.meta.url, { starts: startMark, task } satisfies Start);
    const abortThread = (): void => abort(thread);
    signal.addEventListener('abort', abortThread);
    const end = (settle: () => void): void => {
      signal.removeEventListener('abort', abortThread);
      settle();
    };
    thread.on('message', (ending: Ending | Progress) => {
      if ('bytes' in ending) return onProgress?.(ending.bytes, ending.bytesTotal);
      end(() => {
        if ('result' in ending) resolve(ending.result as T);
        else if ('code' in ending)
          reject(new ServiceError(ending.code, ending.message, ending.extras === undefined ? {} : { extras: ending.extras }));
        else reject(ending.failed);
      });
    });
    thread.on('error', (cause) => end(() => reject(cause)));
    thread.on('exit', () => end(() => reject(new ServiceError('REL_STORAGE', `the ${task.kind} has ended before it was done`))));
    if (signal.aborted) abortThread();
  });
}

async function serve({ task }: Start): Promise<void> {
  const port = parentPort!;
  let aborted = false;
  port.on('message', () => {
    aborted = true;
  });
  // A look at the port comes between any two slices of work.
  const yieldTurn = async (): Promise<void> => {
    if (aborted) throw new ServiceError('REL_UNAVAILABLE', 'the store is draining');
    await new Promise((resolve) => setImmediate(resolve));
  };
  const ending: Ending = await runTask(task, yieldTurn).then(
    (result) => ({ result }),
    (error: unknown) =>
      error instanceof ServiceError
        ? { code: error.code, message: error.message, extras: error.facts.extras }
        : { failed: error },
  );
  port.postMessage(ending);
  port.close();
}

async function runTask(task: Task, yieldTurn: () => Promise<void>): Promise<unknown> {
  if (task.kind === 'restore') return await restoreBackup(task.request, yieldTurn);
  if (task.kind === 'copy') return await copyLog(task.request, yieldTurn);
  const { digestsOfSaved } = await import('./saved-digests.ts');
  return await digestsOfSaved(task.request, nodeDisk);
}

async function copyLog(request: CopyRequest, yieldTurn: () => Promise<void>): Promise<unknown> {
  const { copyLog } = await import('../log/backup/backup-copy.ts');
  return await copyLog(request, { disk: nodeDisk, yieldTurn, onProgress: progressTold() });
}

/** Now and then. */
function progressTold(): OnCopied {
  let told = 0;
  return (bytes, bytesTotal) => {
    if (bytes - told < PROGRESS_BYTES && bytes !== bytesTotal) return;
    told = bytes;
    parentPort!.postMessage({ bytes, bytesTotal } satisfies Progress);
  };
}

async function restoreBackup(request: RestoreRequest, yieldTurn: () => Promise<void>): Promise<unknown> {
  const [{ restoreStore }, { OPEN_BESIDE_BYTES_MIN }] = await Promise.all([
    import('./restores.ts'),
    import('../log/files/frame-opener.ts'),
  ]);
  return await restoreStore({
    ...request,
    disk: nodeDisk,
    clock: systemClock,
    random: systemRandom,
    say: () => undefined,
    yieldTurn,
    onProgress: progressTold(),
    ...(spareCores() > 0 && { openBeside: { startWorker: threadWorker, bytesMin: OPEN_BESIDE_BYTES_MIN, windowBytes: 1 << 20 } }),
  });
}

if (!isMainThread && (workerData as Start | null)?.starts === startMark) await serve(workerData as Start);

/**
 * Upkeep beside a store that runs, each in a thread of its own: rebuilding and digesting projections takes the turn for as long as
 * it takes. It shares no file that is written and no memory with the store. This file is also what the thread starts with.
 */
import { isMainThread, parentPort, workerData } from 'node:worker_threads';
import type { DigestBeside } from './backups.ts';
import { systemClock, systemRandom } from './clock.ts';
import { type ErrorCode, ServiceError } from './errors.ts';
import { OPEN_BESIDE_BYTES_MIN } from './log/frame-opener.ts';
import { nodeDisk } from './log/node-disk.ts';
import { newThread, spareCores, threadWorker } from './log/workers.ts';
import { type RestoreBeside, type RestoreRequest, restoreStore } from './restores.ts';
import { digestsOfSaved, type SavedStateRequest } from './saved-digests.ts';

type Ending =
  | { readonly result: unknown }
  | { readonly code: ErrorCode; readonly message: string; readonly extras: Readonly<Record<string, unknown>> | undefined }
  | { readonly failed: unknown };

type Task =
  | { readonly kind: 'restore'; readonly request: RestoreRequest }
  | { readonly kind: 'digest'; readonly request: SavedStateRequest };

interface Start {
  readonly starts: typeof startMark;
  readonly task: Task;
}

const startMark = 'annals upkeep';

/** On the disk of the machine. Once the signal aborts, the restore ends and clears what it has made. */
export const restoreInThread: RestoreBeside = (request, signal) =>
  inThread({ kind: 'restore', request }, signal, (thread) => thread.postMessage('abort'));

/** On the disk of the machine. It only reads: once the signal aborts, it ends wherever it is. */
export const digestInThread: DigestBeside = (request, signal) =>
  inThread({ kind: 'digest', request }, signal, (thread) => void thread.terminate());

type Thread = ReturnType<typeof newThread>;

function inThread<T>(task: Task, signal: AbortSignal, abort: (thread: Thread) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    const thread = newThread(import.meta.url, { starts: startMark, task } satisfies Start);
    const aborted = (): void => abort(thread);
    signal.addEventListener('abort', aborted);
    const end = (settle: () => void): void => {
      signal.removeEventListener('abort', aborted);
      settle();
    };
    thread.on('message', (ending: Ending) =>
      end(() => {
        if ('result' in ending) resolve(ending.result as T);
        else if ('code' in ending)
          reject(new ServiceError(ending.code, ending.message, ending.extras === undefined ? {} : { extras: ending.extras }));
        else reject(ending.failed);
      }),
    );
    thread.on('error', (cause) => end(() => reject(cause)));
    thread.on('exit', () => end(() => reject(new ServiceError('REL_STORAGE', `the ${task.kind} has ended before it was done`))));
    if (signal.aborted) aborted();
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
  const ending: Ending = await (task.kind === 'digest'
    ? digestsOfSaved(task.request, nodeDisk)
    : restored(task.request, yieldTurn)
  ).then(
    (result) => ({ result }),
    (error: unknown) =>
      error instanceof ServiceError
        ? { code: error.code, message: error.message, extras: error.facts.extras }
        : { failed: error },
  );
  port.postMessage(ending);
  port.close();
}

function restored(request: RestoreRequest, yieldTurn: () => Promise<void>): ReturnType<typeof restoreStore> {
  return restoreStore({
    ...request,
    disk: nodeDisk,
    clock: systemClock,
    random: systemRandom,
    say: () => undefined,
    yieldTurn,
    ...(spareCores() > 0 && { openBeside: { startWorker: threadWorker, bytesMin: OPEN_BESIDE_BYTES_MIN, windowBytes: 1 << 20 } }),
  });
}

if (!isMainThread && (workerData as Start | null)?.starts === startMark) await serve(workerData as Start);

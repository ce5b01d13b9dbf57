/**
 * A restore beside a store that runs, in a thread of its own: rebuilding and digesting projections takes the turn for as long as
 * it takes. It shares no file that is written and no memory with the store. This file is also what the thread starts with.
 */
import { isMainThread, parentPort, workerData } from 'node:worker_threads';
import { type RestoreBeside, type RestoreRequest, restoreStore } from './backups.ts';
import { systemClock, systemRandom } from './clock.ts';
import { type ErrorCode, ServiceError } from './errors.ts';
import type { RestoreReport } from './doors/http/system-desk.ts';
import { nodeDisk } from './log/node-disk.ts';
import { newThread, spareCores, threadWorker } from './log/workers.ts';

type Ending =
  | { readonly report: RestoreReport }
  | { readonly code: ErrorCode; readonly message: string; readonly extras: Readonly<Record<string, unknown>> | undefined }
  | { readonly failed: unknown };

interface Start {
  readonly starts: typeof startMark;
  readonly request: RestoreRequest;
}

const startMark = 'annals restore';

/** On the disk of the machine. Once the signal aborts, the restore ends and clears what it has made. */
export const restoreInThread: RestoreBeside = (request, signal) =>
  new Promise((resolve, reject) => {
    const thread = newThread(import.meta.url, { starts: startMark, request } satisfies Start);
    const abort = (): void => thread.postMessage('abort');
    signal.addEventListener('abort', abort);
    const end = (settle: () => void): void => {
      signal.removeEventListener('abort', abort);
      settle();
    };
    thread.on('message', (ending: Ending) =>
      end(() => {
        if ('report' in ending) resolve(ending.report);
        else if ('code' in ending)
          reject(new ServiceError(ending.code, ending.message, ending.extras === undefined ? {} : { extras: ending.extras }));
        else reject(ending.failed);
      }),
    );
    thread.on('error', (cause) => end(() => reject(cause)));
    thread.on('exit', () => end(() => reject(new ServiceError('REL_STORAGE', 'the restore has ended before it was done'))));
  });

async function serve({ request }: Start): Promise<void> {
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
  const ending: Ending = await restoreStore({
    ...request,
    disk: nodeDisk,
    clock: systemClock,
    random: systemRandom,
    say: () => undefined,
    yieldTurn,
    ...(spareCores() > 0 && { startWorker: threadWorker }),
  }).then(
    (report) => ({ report }),
    (error: unknown) =>
      error instanceof ServiceError
        ? { code: error.code, message: error.message, extras: error.facts.extras }
        : { failed: error },
  );
  port.postMessage(ending);
  port.close();
}

if (!isMainThread && (workerData as Start | null)?.starts === startMark) await serve(workerData as Start);

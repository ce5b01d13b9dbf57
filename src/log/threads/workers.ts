/**
 * Work beside the event loop: a job runs in a thread of its own, or in its twin, in the calling turn. Both give the same bytes; a
 * machine with one core, the simulation and most tests run the twin.
 *
 * - A job is a function of its start data and of its earlier requests; it never reads a clock, a disk or an entropy source. Only
 *   upkeep, which has no twin, is given files of its own (`upkeep/upkeep-thread.ts`).
 *   Replies come in the order of the requests.
 * - Requests and replies are small messages. Bulk lies in shared memory that both sides know from the beginning.
 * - A request that throws is refused alone; a thread that ends refuses all waiting and later requests.
 * - A thread ends with its process, and keeps it alive only while a caller waits for a reply.
 *
 * A thread starts with this file too.
 */
import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';
import { pathToFileURL } from 'node:url';
import { isMainThread, parentPort, Worker as Thread, workerData } from 'node:worker_threads';
import { type ErrorCode, type ErrorDetails, ServiceError } from '../../errors.ts';

export interface Job<Data, Request, Reply> {
  /** `import.meta.url` of the file that exports the job, and the name that it is exported under. */
  readonly module: string;
  readonly name: string;
  /** Called once, before the first request. A reply may take its time: requests wait for each other. */
  begin(data: Data): (request: Request) => Reply | Promise<Reply>;
}

export interface Worker<Request, Reply> {
  ask(request: Request): Promise<Reply>;
  /** Refuses what waits. */
  end(): Promise<void>;
}

export type StartWorker = <Data, Request, Reply>(job: Job<Data, Request, Reply>, data: Data) => Worker<Request, Reply>;

/** Cores that the event loop leaves free: how many threads can be of use. */
export function spareCores(): number {
  return availableParallelism() - 1;
}

/** Runs a job in the calling turn. */
export const inlineWorker: StartWorker = (workerJob, jobData) => {
  const answerInline = workerJob.begin(jobData);
  let isInlineEnded = false;
  return {
    // Async: an error of the job becomes a rejection here as in a thread.
    ask: async (request) => {
      if (isInlineEnded) throw workerEndedError();
      return answerInline(request);
    },
    end: async () => {
      isInlineEnded = true;
    },
  };
};

/** Runs a job in a thread of its own. */
export const threadWorker: StartWorker = (workerJob, jobData) => new ThreadWorker(workerJob, jobData);

/** Workers that wait for their first request. */
export interface StartedAhead {
  /** Gives each of them to the first who starts its job. */
  readonly startWorker: StartWorker;
  /** Ends the threads that were not taken. */
  end(): Promise<void>;
}

/** Starts workers of jobs that are about to be needed: a thread takes some 50 ms to answer, beside whatever comes before. */
export function startedAhead(startWorker: StartWorker, workerJobs: readonly Job<null, never, unknown>[]): StartedAhead {
  const readyWorkers = new Map<unknown, Worker<never, unknown>>(
    workerJobs.map((workerJob) => [workerJob, startWorker(workerJob, null)]),
  );
  return {
    startWorker: <Data, Request, Reply>(job: Job<Data, Request, Reply>, data: Data) => {
      const worker = readyWorkers.get(job);
      readyWorkers.delete(job);
      return worker ? (worker as unknown as Worker<Request, Reply>) : startWorker(job, data);
    },
    end: async () => {
      for (const worker of readyWorkers.values()) await worker.end();
      readyWorkers.clear();
    },
  };
}

interface ThreadStart {
  readonly starts: typeof threadStartMark;
  readonly module: string;
  readonly name: string;
  readonly data: unknown;
}

type WorkerAnswer =
  | { readonly reply: unknown }
  | { readonly code: ErrorCode; readonly message: string; readonly facts: ErrorDetails }
  | { readonly failed: unknown };

interface PendingRequest<Reply> {
  readonly resolve: (reply: Reply) => void;
  readonly reject: (cause: unknown) => void;
}

const threadStartMark = 'annals job';

class ThreadWorker<Data, Request, Reply> implements Worker<Request, Reply> {
  readonly #workerThread: Thread;
  readonly #pendingRequests: PendingRequest<Reply>[] = [];
  #endedCause: ServiceError | null = null;

  constructor({ module: jobModule, name: jobName }: Job<Data, Request, Reply>, jobData: Data) {
    const threadStart: ThreadStart = { starts: threadStartMark, module: jobModule, name: jobName, data: jobData };
    this.#workerThread = startThread(import.meta.url, threadStart);
    this.#workerThread.unref();
    this.#workerThread.on('message', (workerAnswer: WorkerAnswer) => this.#onWorkerAnswer(workerAnswer));
    this.#workerThread.on('error', (cause) => this.#endThread(workerEndedError(cause)));
    this.#workerThread.on('exit', () => this.#endThread(workerEndedError()));
  }

  ask(workerRequest: Request): Promise<Reply> {
    return new Promise((resolve, reject) => {
      if (this.#endedCause) return reject(this.#endedCause);
      this.#workerThread.postMessage(workerRequest);
      if (this.#pendingRequests.push({ resolve, reject }) === 1) this.#workerThread.ref();
    });
  }

  async end(): Promise<void> {
    this.#endThread(workerEndedError());
    await this.#workerThread.terminate();
  }

  #onWorkerAnswer(workerAnswer: WorkerAnswer): void {
    const oldestRequest = this.#pendingRequests.shift();
    if (this.#pendingRequests.length === 0) this.#workerThread.unref();
    if ('reply' in workerAnswer) oldestRequest?.resolve(workerAnswer.reply as Reply);
    else
      oldestRequest?.reject(
        'code' in workerAnswer
          ? new ServiceError(workerAnswer.code, workerAnswer.message, workerAnswer.facts)
          : workerAnswer.failed,
      );
  }

  #endThread(error: ServiceError): void {
    this.#endedCause ??= error;
    this.#workerThread.unref();
    for (const { reject } of this.#pendingRequests.splice(0)) reject(this.#endedCause);
  }
}

/** A thread that starts with a file; sources that were not compiled by way of the loader that runs them here as well. */
function startThread(moduleUrl: string, threadData: unknown): Thread {
  if (moduleUrl.endsWith('.js')) return new Thread(new URL(moduleUrl), { workerData: threadData });
  const tsxLoader = new URL('./esm/api/index.mjs', pathToFileURL(createRequire(moduleUrl).resolve('tsx'))).href;
  const loaderScript = `import(${JSON.stringify(tsxLoader)}).then(({ register }) => (register(), import(${JSON.stringify(moduleUrl)})))`;
  return new Thread(loaderScript, { eval: true, workerData: threadData, execArgv: [] });
}

function workerEndedError(cause?: unknown): ServiceError {
  return new ServiceError('REL_INTERNAL', 'a worker has ended', { cause });
}

async function serveThread({ module, name: jobName, data: jobData }: ThreadStart): Promise<void> {
  const workerPort = parentPort!;
  const jobModule = (await import(module)) as Record<string, Job<unknown, unknown, unknown>>;
  const answerJob = jobModule[jobName]!.begin(jobData);
  let earlierAnswer = Promise.resolve();
  workerPort.on('message', (portMessage: unknown) => {
    earlierAnswer = earlierAnswer.then(async () => workerPort.postMessage(await answerRequest(portMessage)));
  });

  async function answerRequest(workerRequest: unknown): Promise<WorkerAnswer> {
    try {
      return { reply: await answerJob(workerRequest) };
    } catch (jobFailure) {
      // A message keeps no classes: the fields by which callers distinguish errors are sent as such.
      if (!(jobFailure instanceof ServiceError)) return { failed: jobFailure };
      const { cause: _, ...facts } = jobFailure.facts;
      return { code: jobFailure.code, message: jobFailure.message, facts };
    }
  }
}

// Not awaited: a job's module may import this one, and would wait for its end.
if (!isMainThread && (workerData as ThreadStart | null)?.starts === threadStartMark) void serveThread(workerData as ThreadStart);

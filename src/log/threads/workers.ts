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
export const inlineWorker: StartWorker = (job, data) => {
  const answer = job.begin(data);
  let ended = false;
  return {
    // Async: an error of the job becomes a rejection here as in a thread.
    ask: async (request) => {
      if (ended) throw endedError();
      return answer(request);
    },
    end: async () => {
      ended = true;
    },
  };
};

/** Runs a job in a thread of its own. */
export const threadWorker: StartWorker = (job, data) => new ThreadWorker(job, data);

/** Workers that wait for their first request. */
export interface StartedAhead {
  /** Gives each of them to the first who starts its job. */
  readonly startWorker: StartWorker;
  /** Ends the threads that were not taken. */
  end(): Promise<void>;
}

/** Starts workers of jobs that are about to be needed: a thread takes some 50 ms to answer, beside whatever comes before. */
export function startedAhead(startWorker: StartWorker, jobs: readonly Job<null, never, unknown>[]): StartedAhead {
  const ready = new Map<unknown, Worker<never, unknown>>(jobs.map((job) => [job, startWorker(job, null)]));
  return {
    startWorker: <Data, Request, Reply>(job: Job<Data, Request, Reply>, data: Data) => {
      const worker = ready.get(job);
      ready.delete(job);
      return worker ? (worker as unknown as Worker<Request, Reply>) : startWorker(job, data);
    },
    end: async () => {
      for (const worker of ready.values()) await worker.end();
      ready.clear();
    },
  };
}

interface Start {
  readonly starts: typeof startMark;
  readonly module: string;
  readonly name: string;
  readonly data: unknown;
}

type Answer =
  | { readonly reply: unknown }
  | { readonly code: ErrorCode; readonly message: string; readonly facts: ErrorDetails }
  | { readonly failed: unknown };

interface Waiting<Reply> {
  readonly resolve: (reply: Reply) => void;
  readonly reject: (cause: unknown) => void;
}

const startMark = 'annals job';

class ThreadWorker<Data, Request, Reply> implements Worker<Request, Reply> {
  readonly #thread: Thread;
  readonly #waiting: Waiting<Reply>[] = [];
  #ended: ServiceError | null = null;

  constructor({ module, name }: Job<Data, Request, Reply>, data: Data) {
    const start: Start = { starts: startMark, module, name, data };
    this.#thread = newThread(import.meta.url, start);
    this.#thread.unref();
    this.#thread.on('message', (answer: Answer) => this.#onAnswer(answer));
    this.#thread.on('error', (cause) => this.#end(endedError(cause)));
    this.#thread.on('exit', () => this.#end(endedError()));
  }

  ask(request: Request): Promise<Reply> {
    return new Promise((resolve, reject) => {
      if (this.#ended) return reject(this.#ended);
      this.#thread.postMessage(request);
      if (this.#waiting.push({ resolve, reject }) === 1) this.#thread.ref();
    });
  }

  async end(): Promise<void> {
    this.#end(endedError());
    await this.#thread.terminate();
  }

  #onAnswer(answer: Answer): void {
    const first = this.#waiting.shift();
    if (this.#waiting.length === 0) this.#thread.unref();
    if ('reply' in answer) first?.resolve(answer.reply as Reply);
    else first?.reject('code' in answer ? new ServiceError(answer.code, answer.message, answer.facts) : answer.failed);
  }

  #end(error: ServiceError): void {
    this.#ended ??= error;
    this.#thread.unref();
    for (const { reject } of this.#waiting.splice(0)) reject(this.#ended);
  }
}

/** A thread that starts with a file; sources that were not compiled by way of the loader that runs them here as well. */
function newThread(here: string, data: unknown): Thread {
  if (here.endsWith('.js')) return new Thread(new URL(here), { workerData: data });
  const loader = new URL('./esm/api/index.mjs', pathToFileURL(createRequire(here).resolve('tsx'))).href;
  const text = `import(${JSON.stringify(loader)}).then(({ register }) => (register(), import(${JSON.stringify(here)})))`;
  return new Thread(text, { eval: true, workerData: data, execArgv: [] });
}

function endedError(cause?: unknown): ServiceError {
  return new ServiceError('REL_INTERNAL', 'a worker has ended', { cause });
}

async function serve({ module, name, data }: Start): Promise<void> {
  const port = parentPort!;
  const jobModule = (await import(module)) as Record<string, Job<unknown, unknown, unknown>>;
  const answer = jobModule[name]!.begin(data);
  let before = Promise.resolve();
  port.on('message', (request: unknown) => {
    before = before.then(async () => port.postMessage(await answerRequest(request)));
  });

  async function answerRequest(request: unknown): Promise<Answer> {
    try {
      return { reply: await answer(request) };
    } catch (cause) {
      // A message keeps no classes: the fields by which callers distinguish errors are sent as such.
      if (!(cause instanceof ServiceError)) return { failed: cause };
      const { cause: _, ...facts } = cause.facts;
      return { code: cause.code, message: cause.message, facts };
    }
  }
}

// Not awaited: a job's module may import this one, and would wait for its end.
if (!isMainThread && (workerData as Start | null)?.starts === startMark) void serve(workerData as Start);

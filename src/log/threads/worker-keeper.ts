/**
 * All long work beside the event loop, in at most so many threads as the machine has cores to spare. Work goes in steps of some
 * milliseconds: between two of them it reports progress, more urgent work goes first, and cancelled work ends. Without a spare
 * core, and in tests, the same steps run in turns of the event loop.
 */
import { ServiceError } from '../../errors.ts';
import { type StepRequest, type SteppedJob, type Stepped, steppingJob } from './stepping-job.ts';
import { spareCores, type StartWorker, threadWorker, inlineWorker, type Worker } from './workers.ts';

/** By urgency: a caller waits for the answer; a caller will soon; no caller does. */
export type WorkKind = 'query' | 'index' | 'upkeep';

export interface WorkerKeeper {
  /** Rejects with what the job throws, and with REL_CANCELLED once the signal is aborted or the keeper has ended. */
  run<Request, Reply>(
    job: SteppedJob<Request, Reply>,
    request: Request,
    kind: WorkKind,
    signal: AbortSignal,
    onProgress?: (done: number, of: number) => void,
  ): Promise<Reply>;
  /** Gives up all work. */
  end(): Promise<void>;
}

export interface WorkerKeeperOptions {
  readonly startWorker: StartWorker;
  readonly threads: number;
  /** Before each step, where steps are the event loop's own. */
  readonly yieldTurn: () => Promise<void>;
}

/** Threads where there are cores for them, turns where there are none. */
export function workerKeeper(yieldTurn: () => Promise<void>, startWorker?: StartWorker): WorkerKeeper {
  const threads = startWorker ? 1 : Math.max(1, spareCores());
  return new Keeper({ threads, startWorker: startWorker ?? (spareCores() > 0 ? threadWorker : inlineWorker), yieldTurn });
}

const urgency: Readonly<Record<WorkKind, number>> = { query: 0, index: 1, upkeep: 2 };

interface Task {
  readonly number: number;
  readonly job: SteppedJob<never, unknown>;
  readonly request: unknown;
  readonly urgency: number;
  readonly onProgress: (done: number, of: number) => void;
  readonly resolve: (reply: unknown) => void;
  readonly reject: (cause: unknown) => void;
  /** The thread that it was begun in. */
  lane: Lane | null;
  over: boolean;
}

interface Lane {
  worker: Worker<StepRequest, Stepped> | null;
  busy: boolean;
}

class Keeper implements WorkerKeeper {
  readonly #options: WorkerKeeperOptions;
  readonly #lanes: readonly Lane[];
  /** The most urgent first, then the oldest. */
  #tasks: Task[] = [];
  #count = 0;
  #ended = false;

  constructor(options: WorkerKeeperOptions) {
    this.#options = options;
    this.#lanes = Array.from({ length: options.threads }, () => ({ worker: null, busy: false }));
  }

  run<Request, Reply>(
    job: SteppedJob<Request, Reply>,
    request: Request,
    kind: WorkKind,
    signal: AbortSignal,
    onProgress: (done: number, of: number) => void = () => undefined,
  ): Promise<Reply> {
    return new Promise((resolve, reject) => {
      if (this.#ended || signal.aborted) return reject(cancelledError());
      const abort = (): void => this.#close(task, () => reject(cancelledError()));
      const task: Task = {
        number: ++this.#count,
        job: job as SteppedJob<never, unknown>,
        request,
        urgency: urgency[kind],
        onProgress,
        resolve: (reply) => {
          signal.removeEventListener('abort', abort);
          resolve(reply as Reply);
        },
        reject: (cause) => {
          signal.removeEventListener('abort', abort);
          reject(cause);
        },
        lane: null,
        over: false,
      };
      signal.addEventListener('abort', abort, { once: true });
      const at = this.#tasks.findIndex((other) => other.urgency > task.urgency);
      this.#tasks.splice(at < 0 ? this.#tasks.length : at, 0, task);
      this.#pump();
    });
  }

  async end(): Promise<void> {
    this.#ended = true;
    for (const task of this.#tasks.slice()) this.#close(task, () => task.reject(cancelledError()));
    for (const lane of this.#lanes) await lane.worker?.end();
  }

  #close(task: Task, tell: () => void): void {
    if (task.over) return;
    this.#endTask(task);
    // The thread may have ended meanwhile: then there is nothing to let go of.
    void task.lane?.worker?.ask({ task: task.number, ask: 'drop' }).catch(() => undefined);
    tell();
  }

  #pump(): void {
    for (const lane of this.#lanes) if (!lane.busy && this.#next(lane)) void this.#work(lane);
  }

  #next(lane: Lane): Task | undefined {
    return this.#tasks.find((task) => task.lane === lane || task.lane === null);
  }

  /** A step of the most urgent at a time, for as long as there is any. */
  async #work(lane: Lane): Promise<void> {
    lane.busy = true;
    for (let task = this.#next(lane); task; task = this.#next(lane)) {
      try {
        await this.#step(lane, task);
      } catch (error) {
        if (task.over) continue;
        this.#endTask(task);
        task.reject(error);
      }
    }
    lane.busy = false;
  }

  async #step(lane: Lane, task: Task): Promise<void> {
    const { number, job, request } = task;
    if (this.#options.startWorker === inlineWorker) await this.#options.yieldTurn();
    if (task.over) return;
    const worker = (lane.worker ??= this.#options.startWorker(steppingJob, null));
    if (task.lane === null) {
      task.lane = lane;
      await worker.ask({ task: number, module: job.module, name: job.name, request });
      if (task.over) return;
    }
    const stepped = await worker.ask({ task: number, ask: 'step' });
    if (task.over || stepped === null) return;
    if ('progress' in stepped) return task.onProgress(stepped.progress.done, stepped.progress.of);
    this.#endTask(task);
    task.resolve(stepped.reply);
  }

  #endTask(task: Task): void {
    task.over = true;
    this.#tasks = this.#tasks.filter((other) => other !== task);
  }
}

function cancelledError(): ServiceError {
  return new ServiceError('REL_CANCELLED', 'the work was cancelled before it was done');
}

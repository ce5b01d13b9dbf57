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
  const threadCount = startWorker ? 1 : Math.max(1, spareCores());
  return new ThreadKeeper({
    threads: threadCount,
    startWorker: startWorker ?? (spareCores() > 0 ? threadWorker : inlineWorker),
    yieldTurn,
  });
}

const urgencyOfWork: Readonly<Record<WorkKind, number>> = { query: 0, index: 1, upkeep: 2 };

interface WorkTask {
  readonly number: number;
  readonly job: SteppedJob<never, unknown>;
  readonly request: unknown;
  readonly urgency: number;
  readonly onProgress: (done: number, of: number) => void;
  readonly resolve: (reply: unknown) => void;
  readonly reject: (cause: unknown) => void;
  /** The thread that it was begun in. */
  lane: WorkerLane | null;
  over: boolean;
}

interface WorkerLane {
  worker: Worker<StepRequest, Stepped> | null;
  busy: boolean;
}

class ThreadKeeper implements WorkerKeeper {
  readonly #keeperOptions: WorkerKeeperOptions;
  readonly #workerLanes: readonly WorkerLane[];
  /** The most urgent first, then the oldest. */
  #workTasks: WorkTask[] = [];
  #taskCount = 0;
  #isKeeperEnded = false;

  constructor(keeperOptions: WorkerKeeperOptions) {
    this.#keeperOptions = keeperOptions;
    this.#workerLanes = Array.from({ length: keeperOptions.threads }, () => ({ worker: null, busy: false }));
  }

  run<Request, Reply>(
    steppedJob: SteppedJob<Request, Reply>,
    jobRequest: Request,
    workKind: WorkKind,
    abortSignal: AbortSignal,
    onProgress: (done: number, of: number) => void = () => undefined,
  ): Promise<Reply> {
    return new Promise((resolve, reject) => {
      if (this.#isKeeperEnded || abortSignal.aborted) return reject(workCancelledError());
      const abortTask = (): void => this.#closeTask(workTask, () => reject(workCancelledError()));
      const workTask: WorkTask = {
        number: ++this.#taskCount,
        job: steppedJob as SteppedJob<never, unknown>,
        request: jobRequest,
        urgency: urgencyOfWork[workKind],
        onProgress,
        resolve: (reply) => {
          abortSignal.removeEventListener('abort', abortTask);
          resolve(reply as Reply);
        },
        reject: (cause) => {
          abortSignal.removeEventListener('abort', abortTask);
          reject(cause);
        },
        lane: null,
        over: false,
      };
      abortSignal.addEventListener('abort', abortTask, { once: true });
      const queueIndex = this.#workTasks.findIndex((otherTask) => otherTask.urgency > workTask.urgency);
      this.#workTasks.splice(queueIndex < 0 ? this.#workTasks.length : queueIndex, 0, workTask);
      this.#startIdleLanes();
    });
  }

  async end(): Promise<void> {
    this.#isKeeperEnded = true;
    for (const openTask of this.#workTasks.slice()) this.#closeTask(openTask, () => openTask.reject(workCancelledError()));
    for (const workerLane of this.#workerLanes) await workerLane.worker?.end();
  }

  #closeTask(workTask: WorkTask, tellOutcome: () => void): void {
    if (workTask.over) return;
    this.#endTask(workTask);
    // The thread may have ended meanwhile: then there is nothing to let go of.
    void workTask.lane?.worker?.ask({ task: workTask.number, ask: 'drop' }).catch(() => undefined);
    tellOutcome();
  }

  #startIdleLanes(): void {
    for (const workerLane of this.#workerLanes)
      if (!workerLane.busy && this.#nextTask(workerLane)) void this.#workOffTasks(workerLane);
  }

  #nextTask(workerLane: WorkerLane): WorkTask | undefined {
    return this.#workTasks.find((waitingTask) => waitingTask.lane === workerLane || waitingTask.lane === null);
  }

  /** A step of the most urgent at a time, for as long as there is any. */
  async #workOffTasks(workerLane: WorkerLane): Promise<void> {
    workerLane.busy = true;
    for (let workTask = this.#nextTask(workerLane); workTask; workTask = this.#nextTask(workerLane)) {
      try {
        await this.#stepTask(workerLane, workTask);
      } catch (stepError) {
        if (workTask.over) continue;
        this.#endTask(workTask);
        workTask.reject(stepError);
      }
    }
    workerLane.busy = false;
  }

  async #stepTask(workerLane: WorkerLane, task: WorkTask): Promise<void> {
    const { number, job, request } = task;
    if (this.#keeperOptions.startWorker === inlineWorker) await this.#keeperOptions.yieldTurn();
    if (task.over) return;
    const laneWorker = (workerLane.worker ??= this.#keeperOptions.startWorker(steppingJob, null));
    if (task.lane === null) {
      task.lane = workerLane;
      await laneWorker.ask({ task: number, module: job.module, name: job.name, request });
      if (task.over) return;
    }
    const steppedTask = await laneWorker.ask({ task: number, ask: 'step' });
    if (task.over || steppedTask === null) return;
    if ('progress' in steppedTask) return task.onProgress(steppedTask.progress.done, steppedTask.progress.of);
    this.#endTask(task);
    task.resolve(steppedTask.reply);
  }

  #endTask(task: WorkTask): void {
    task.over = true;
    this.#workTasks = this.#workTasks.filter((other) => other !== task);
  }
}

function workCancelledError(): ServiceError {
  return new ServiceError('REL_CANCELLED', 'the work was cancelled before it was done');
}

/**
 * Ingests that reply before they are done. A task enters the gate when it is accepted and waits for its turn in there, so a drain
 * waits for every task that was promised. Replies are kept in memory: a restart forgets them, never their rows, nor that a task ended.
 */
import { ServiceError } from '../../errors.ts';
import { sees, type Caller } from '../../governance/caller.ts';
import type { GateContract, Invocation } from '../../governance/gate-contract.ts';
import type { JobLane, JobRunner, JobView, JobWork } from '../../governance/jobs/job-runner.ts';
import type { Ingest, IngestReply } from './ingest-stream.ts';

/** Shared by all doors. */
const lane: JobLane = { runningMax: 2 };
const waitingMax = 64;
const waitingBytesMax = 256 * 1024 * 1024;
/** Ended tasks that can still be asked for. */
const endedMax = 2_000;

export interface IngestTask {
  readonly id: string;
  readonly path: string | null;
  /** State and times. */
  readonly job: JobView;
  /** Counts as it runs. */
  progress: Pick<Ingest, 'accepted' | 'rejected'> | null;
  reply: IngestReply | null;
  failure: unknown;
}

export interface TaskRequest {
  readonly id: string;
  readonly caller: Caller;
  readonly purpose: string | null;
  /** The terms that the request stated to open guarded types. */
  readonly breakGlass: string | null;
  readonly accessScopeRef: string | null;
  /** Size of the body that is held for it. */
  readonly bytes: number;
  /** Type of the rows. */
  readonly type: string;
  /** `progress` receives the ingest as soon as it exists. */
  readonly run: (invocation: Invocation, progress: (ingest: Ingest) => void, work: JobWork) => Promise<IngestReply>;
}

export class IngestTasks {
  readonly #gate: GateContract;
  readonly #jobs: JobRunner;
  readonly #tasks = new Map<string, IngestTask>();
  readonly #ended: string[] = [];
  #heldBytes = 0;

  constructor(gate: GateContract, jobs: JobRunner) {
    this.#gate = gate;
    this.#jobs = jobs;
  }

  /** Throws REL_QUEUE_FULL when a body of this size can't be held. */
  checkRoom(bytes: number): void {
    if (this.#jobs.waiting(lane) >= waitingMax || this.#heldBytes + bytes > waitingBytesMax) {
      throw new ServiceError('REL_QUEUE_FULL', 'too many ingest tasks are waiting', { retryAfterSecs: 1 });
    }
  }

  accept(request: TaskRequest): IngestTask {
    const { id, caller, purpose, breakGlass, accessScopeRef, bytes, type } = request;
    this.checkRoom(bytes);
    let task: IngestTask | null = null;
    const asking = { action: 'ingest', purpose, breakGlass, accessScopeRef, correlationId: id } as const;
    const done = this.#gate.invoke(caller, asking, (invocation) => {
      const run = (work: JobWork): Promise<IngestReply> => {
        const setProgress = (ingest: Ingest): void => void (task!.progress = ingest);
        return request.run(invocation, setProgress, work);
      };
      const { view, ended } = this.#jobs.start(
        {
          id,
          kind: 'ingest',
          about: type,
          unit: 'rows',
          lane,
          onDrain: 'wait',
          run,
          resultOf: ({ accepted, rejected }) => ({ accepted, rejected }),
        },
        caller,
      );
      task = { id, path: caller.path, job: view, progress: null, reply: null, failure: null };
      return ended;
    });
    // A draining gate throws in this turn: no task is accepted that a drain would not wait for.
    const accepted = task as IngestTask | null;
    if (accepted === null) {
      done.catch(() => undefined);
      throw new ServiceError('REL_UNAVAILABLE', 'the service is draining');
    }
    this.#tasks.set(id, accepted);
    this.#heldBytes += bytes;
    done
      .then(
        (reply) => {
          accepted.reply = reply;
        },
        (error: unknown) => {
          accepted.failure = error;
        },
      )
      .finally(() => this.#end(accepted, bytes));
    return accepted;
  }

  /** REL_NOT_FOUND for a missing task and for one outside of the caller's path. */
  find(id: string, caller: Caller): IngestTask {
    const task = this.#tasks.get(id);
    if (task === undefined || !sees(caller.path, task.path)) throw new ServiceError('REL_NOT_FOUND', 'no such task');
    return task;
  }

  /** Drops the ids of written rows and the errors of the others. */
  forget(): void {
    for (const task of this.#tasks.values()) {
      if (task.reply !== null) task.reply = { ...task.reply, ids: [], errors: [], truncated: true };
    }
  }

  #end(task: IngestTask, bytes: number): void {
    this.#heldBytes -= bytes;
    this.#ended.push(task.id);
    if (this.#ended.length > endedMax) this.#tasks.delete(this.#ended.shift()!);
  }
}

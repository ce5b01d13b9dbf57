/**
 * Ingests that reply before they are done. A task enters the gate when it is accepted and waits for its turn in there, so a drain
 * waits for every task that was promised. Replies are kept in memory: a restart forgets them, never their rows, nor that a task ended.
 */
import { ServiceError } from '../../errors.ts';
import { sees, type Caller } from '../../governance/caller.ts';
import type { GateContract, Invocation } from '../../governance/gate-contract.ts';
import type { JobLane, JobRunner, JobView, JobWork } from '../../governance/jobs/job-runner.ts';
import type { Ingest, IngestReply } from '../shared/ingest-stream.ts';

/** Shared by all doors. */
const ingestJobLane: JobLane = { runningMax: 2 };
const waitingTasksMax = 64;
const waitingTaskBytesMax = 256 * 1024 * 1024;
/** Ended tasks that can still be asked for. */
const endedTasksMax = 2_000;

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
  readonly #taskGate: GateContract;
  readonly #taskJobs: JobRunner;
  readonly #taskById = new Map<string, IngestTask>();
  readonly #endedTaskIds: string[] = [];
  #waitingTaskBytes = 0;

  constructor(taskGate: GateContract, taskJobs: JobRunner) {
    this.#taskGate = taskGate;
    this.#taskJobs = taskJobs;
  }

  /** Throws REL_QUEUE_FULL when a body of this size can't be held. */
  checkRoom(taskBytes: number): void {
    if (this.#taskJobs.waiting(ingestJobLane) >= waitingTasksMax || this.#waitingTaskBytes + taskBytes > waitingTaskBytesMax) {
      throw new ServiceError('REL_QUEUE_FULL', 'too many ingest tasks are waiting', { retryAfterSecs: 1 });
    }
  }

  accept(taskRequest: TaskRequest): IngestTask {
    const {
      id: taskId,
      caller: taskCaller,
      purpose: taskPurpose,
      breakGlass,
      accessScopeRef,
      bytes: taskBytes,
      type: ingestedType,
    } = taskRequest;
    this.checkRoom(taskBytes);
    let startedTask: IngestTask | null = null;
    const taskInvocation = { action: 'ingest', purpose: taskPurpose, breakGlass, accessScopeRef, correlationId: taskId } as const;
    const taskDone = this.#taskGate.invoke(taskCaller, taskInvocation, (ingestInvocation) => {
      const runTask = (taskWork: JobWork): Promise<IngestReply> => {
        const setTaskProgress = (taskIngest: Ingest): void => void (startedTask!.progress = taskIngest);
        return taskRequest.run(ingestInvocation, setTaskProgress, taskWork);
      };
      const { view: jobView, ended: jobEnded } = this.#taskJobs.start(
        {
          id: taskId,
          kind: 'ingest',
          about: ingestedType,
          unit: 'rows',
          lane: ingestJobLane,
          onDrain: 'wait',
          run: runTask,
          resultOf: ({ accepted: acceptedRows, rejected: rejectedRows }) => ({ accepted: acceptedRows, rejected: rejectedRows }),
        },
        taskCaller,
      );
      startedTask = { id: taskId, path: taskCaller.path, job: jobView, progress: null, reply: null, failure: null };
      return jobEnded;
    });
    // A draining gate throws in this turn: no task is accepted that a drain would not wait for.
    const acceptedTask = startedTask as IngestTask | null;
    if (acceptedTask === null) {
      taskDone.catch(() => undefined);
      throw new ServiceError('REL_UNAVAILABLE', 'the service is draining');
    }
    this.#taskById.set(taskId, acceptedTask);
    this.#waitingTaskBytes += taskBytes;
    taskDone
      .then(
        (taskReply) => {
          acceptedTask.reply = taskReply;
        },
        (taskError: unknown) => {
          acceptedTask.failure = taskError;
        },
      )
      .finally(() => this.#endTask(acceptedTask, taskBytes));
    return acceptedTask;
  }

  /** REL_NOT_FOUND for a missing task and for one outside of the caller's path. */
  find(taskId: string, taskCaller: Caller): IngestTask {
    const foundTask = this.#taskById.get(taskId);
    if (foundTask === undefined || !sees(taskCaller.path, foundTask.path))
      throw new ServiceError('REL_NOT_FOUND', 'no such task');
    return foundTask;
  }

  /** Drops the ids of written rows and the errors of the others. */
  forget(): void {
    for (const forgottenTask of this.#taskById.values()) {
      if (forgottenTask.reply !== null) forgottenTask.reply = { ...forgottenTask.reply, ids: [], errors: [], truncated: true };
    }
  }

  #endTask(endedTask: IngestTask, taskBytes: number): void {
    this.#waitingTaskBytes -= taskBytes;
    this.#endedTaskIds.push(endedTask.id);
    if (this.#endedTaskIds.length > endedTasksMax) this.#taskById.delete(this.#endedTaskIds.shift()!);
  }
}

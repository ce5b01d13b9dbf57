/**
 * Ingests that are answered before they are done. A task enters the gate when it is accepted and waits for its turn in
 * there, so a drain waits for every task that was promised. Kept in memory: a restart forgets them, never their rows.
 */
import { ServiceError } from '../errors.ts';
import { sees, type Caller } from '../governance/caller.ts';
import type { GateContract, Invocation } from '../governance/gate-contract.ts';
import type { Ingest, IngestReply } from './ingest-stream.ts';

const runningMax = 2;
const waitingMax = 64;
const waitingBytesMax = 256 * 1024 * 1024;
/** Ended tasks that can still be asked for. */
const endedMax = 2_000;

export interface IngestTask {
  readonly id: string;
  readonly path: string | null;
  state: 'queued' | 'running' | 'done' | 'failed';
  /** Counts as it runs. */
  progress: Pick<Ingest, 'accepted' | 'rejected'> | null;
  readonly queuedAt: bigint;
  startedAt: bigint | null;
  finishedAt: bigint | null;
  reply: IngestReply | null;
  failure: unknown;
}

export interface TaskRequest {
  readonly id: string;
  readonly caller: Caller;
  readonly purpose: string | null;
  /** What the request stated to open what a guard closes. */
  readonly breakGlass: string | null;
  readonly accessScopeRef: string | null;
  /** Size of the body that is held for it. */
  readonly bytes: number;
  /** `progress` is told the ingest as soon as it exists. */
  readonly run: (invocation: Invocation, progress: (ingest: Ingest) => void) => Promise<IngestReply>;
}

export class IngestTasks {
  readonly #gate: GateContract;
  readonly #now: () => bigint;
  readonly #tasks = new Map<string, IngestTask>();
  readonly #ended: string[] = [];
  readonly #turns: (() => void)[] = [];
  #running = 0;
  #heldBytes = 0;

  constructor(gate: GateContract, now: () => bigint) {
    this.#gate = gate;
    this.#now = now;
  }

  /** Throws REL_QUEUE_FULL when a body of this size can't be held. */
  checkRoom(bytes: number): void {
    if (this.#turns.length >= waitingMax || this.#heldBytes + bytes > waitingBytesMax) {
      throw new ServiceError('REL_QUEUE_FULL', 'too many ingest tasks are waiting', { retryAfterSecs: 1 });
    }
  }

  accept(request: TaskRequest): IngestTask {
    const { id, caller, purpose, breakGlass, accessScopeRef, bytes } = request;
    this.checkRoom(bytes);
    const task: IngestTask = {
      id,
      path: caller.path,
      state: 'queued',
      progress: null,
      queuedAt: this.#now(),
      startedAt: null,
      finishedAt: null,
      reply: null,
      failure: null,
    };
    this.#tasks.set(id, task);
    this.#heldBytes += bytes;
    let entered = false;
    const asking = { action: 'ingest', purpose, breakGlass, accessScopeRef, correlationId: id } as const;
    const done = this.#gate.invoke(caller, asking, (invocation) => {
      entered = true;
      return this.#inTurn(task, () => request.run(invocation, (ingest) => (task.progress = ingest)));
    });
    done
      .then(
        (reply) => {
          task.state = 'done';
          task.reply = reply;
        },
        (error: unknown) => {
          task.state = 'failed';
          task.failure = error;
        },
      )
      .finally(() => this.#end(task, bytes));
    // A gate that lets nobody in any more says so in this turn: nothing is promised that a drain would not wait for.
    if (!entered) throw new ServiceError('REL_UNAVAILABLE', 'the service is draining');
    return task;
  }

  /** REL_NOT_FOUND for what does not exist and for what the caller's path does not cover. */
  find(id: string, caller: Caller): IngestTask {
    const task = this.#tasks.get(id);
    if (task === undefined || !sees(caller.path, task.path)) throw new ServiceError('REL_NOT_FOUND', 'no such task');
    return task;
  }

  /** A task no longer tells which rows were written, nor what was wrong with the others. */
  forget(): void {
    for (const task of this.#tasks.values()) {
      if (task.reply !== null) task.reply = { ...task.reply, ids: [], errors: [], truncated: true };
    }
  }

  async #inTurn(task: IngestTask, run: () => Promise<IngestReply>): Promise<IngestReply> {
    if (this.#running >= runningMax) await new Promise<void>((resolve) => this.#turns.push(resolve));
    else this.#running++;
    try {
      task.state = 'running';
      task.startedAt = this.#now();
      return await run();
    } finally {
      // The turn passes on without being given back, so that nobody comes in between.
      const next = this.#turns.shift();
      if (next === undefined) this.#running--;
      else next();
    }
  }

  #end(task: IngestTask, bytes: number): void {
    task.finishedAt = this.#now();
    this.#heldBytes -= bytes;
    this.#ended.push(task.id);
    if (this.#ended.length > endedMax) this.#tasks.delete(this.#ended.shift()!);
  }
}

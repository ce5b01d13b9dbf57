/**
 * Lists a statement over a graph as a job once it takes longer than a moment: with the edges that it has looked at, and a way to
 * cancel it. The caller still waits for the answer, and ends the work by going away.
 */
import type { Clock } from '../../clock.ts';
import { ServiceError } from '../../errors.ts';
import type { Caller } from '../../governance/caller.ts';
import type { JobRunner } from '../../governance/jobs/job-runner.ts';
import { type LogicalPlan, nodesOf } from '../logical-plan.ts';

/** Work that ends within this time is not listed as a job. */
const jobStartMs = 100;

/** Null where the plan reads no graph, or no jobs are listed. */
export function longWorkOf(statementPlan: LogicalPlan, caller: Caller, jobs: JobRunner | null, clock: Clock): LongWork | null {
  if (jobs === null) return null;
  let isLongPlan = longPlans.get(statementPlan);
  if (isLongPlan === undefined) {
    isLongPlan = nodesOf(statementPlan).some((node) => node.kind === 'function' && node.graph !== undefined);
    longPlans.set(statementPlan, isLongPlan);
  }
  return isLongPlan ? new LongWork(jobs, { caller, about: statementPlan.objectTypes[0] ?? '', clock }) : null;
}

/** Whether a plan asks of a graph: looked for once. */
const longPlans = new WeakMap<LogicalPlan, boolean>();

export class LongWork {
  readonly #jobRunner: JobRunner;
  readonly #jobSubject: { readonly caller: Caller; readonly about: string; readonly clock: Clock };
  readonly #startedMs: number;
  readonly #jobAbort = new AbortController();
  #reportProgress: ((done: number, total: number | null) => void) | null = null;
  #endJob: ((error: unknown) => void) | null = null;
  #jobEnded: Promise<void> | null = null;

  constructor(jobRunner: JobRunner, jobSubject: { readonly caller: Caller; readonly about: string; readonly clock: Clock }) {
    this.#jobRunner = jobRunner;
    this.#jobSubject = jobSubject;
    this.#startedMs = jobSubject.clock.monotonicMs();
  }

  /** Aborted when the job is cancelled or the caller is gone. */
  signal(callerSignal: AbortSignal | undefined): AbortSignal {
    const jobSignal = this.#jobAbort.signal;
    return callerSignal === undefined ? jobSignal : AbortSignal.any([callerSignal, jobSignal]);
  }

  /** Reports the number of edges read so far. */
  tick(edges: number): void {
    if (this.#jobEnded === null && this.#jobSubject.clock.monotonicMs() - this.#startedMs > jobStartMs) this.#beginJob();
    this.#reportProgress?.(edges, null);
  }

  /** Ends the job and returns the error that it ended with, if any: for a cancelled job, the cancellation. */
  async finish(error: unknown = null): Promise<unknown> {
    this.#endJob?.(error);
    try {
      await this.#jobEnded;
      return error;
    } catch (jobError) {
      return jobError;
    }
  }

  #beginJob(): void {
    const { caller, about } = this.#jobSubject;
    const runJob = async (jobWork: {
      readonly signal: AbortSignal;
      progress(done: number, total: number | null): void;
    }): Promise<void> => {
      this.#reportProgress = (done, total) => jobWork.progress(done, total);
      jobWork.signal.addEventListener('abort', () => this.#jobAbort.abort(), { once: true });
      const endError = await new Promise<unknown>((resolve) => (this.#endJob = resolve));
      if (endError !== null) throw endError;
    };
    try {
      const { ended } = this.#jobRunner.start({ kind: 'graph', about, unit: 'edges', onDrain: 'wait', run: runJob }, caller);
      this.#jobEnded = ended;
      ended.catch(() => undefined);
    } catch (jobError) {
      // A draining store takes no more jobs, but earlier statements are still answered.
      if (!(jobError instanceof ServiceError)) throw jobError;
      this.#jobEnded = Promise.resolve();
    }
  }
}

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
const momentMs = 100;

/** Null where the plan reads no graph, or no jobs are listed. */
export function longWorkOf(plan: LogicalPlan, caller: Caller, jobs: JobRunner | null, clock: Clock): LongWork | null {
  if (jobs === null) return null;
  let asks = known.get(plan);
  if (asks === undefined) {
    asks = nodesOf(plan).some((node) => node.kind === 'function' && node.graph !== undefined);
    known.set(plan, asks);
  }
  return asks ? new LongWork(jobs, { caller, about: plan.objectTypes[0] ?? '', clock }) : null;
}

/** Whether a plan asks of a graph: looked for once. */
const known = new WeakMap<LogicalPlan, boolean>();

export class LongWork {
  readonly #jobs: JobRunner;
  readonly #of: { readonly caller: Caller; readonly about: string; readonly clock: Clock };
  readonly #startedMs: number;
  readonly #ending = new AbortController();
  #progress: ((done: number, total: number | null) => void) | null = null;
  #end: ((error: unknown) => void) | null = null;
  #ended: Promise<void> | null = null;

  constructor(jobs: JobRunner, of: { readonly caller: Caller; readonly about: string; readonly clock: Clock }) {
    this.#jobs = jobs;
    this.#of = of;
    this.#startedMs = of.clock.monotonicMs();
  }

  /** Aborted when the job is cancelled or the caller is gone. */
  signal(callerSignal: AbortSignal | undefined): AbortSignal {
    const own = this.#ending.signal;
    return callerSignal === undefined ? own : AbortSignal.any([callerSignal, own]);
  }

  /** Reports the number of edges read so far. */
  tick(edges: number): void {
    if (this.#ended === null && this.#of.clock.monotonicMs() - this.#startedMs > momentMs) this.#begin();
    this.#progress?.(edges, null);
  }

  /** Ends the job and returns the error that it ended with, if any: for a cancelled job, the cancellation. */
  async finish(error: unknown = null): Promise<unknown> {
    this.#end?.(error);
    try {
      await this.#ended;
      return error;
    } catch (jobError) {
      return jobError;
    }
  }

  #begin(): void {
    const { caller, about } = this.#of;
    const run = async (work: {
      readonly signal: AbortSignal;
      progress(done: number, total: number | null): void;
    }): Promise<void> => {
      this.#progress = (done, total) => work.progress(done, total);
      work.signal.addEventListener('abort', () => this.#ending.abort(), { once: true });
      const error = await new Promise<unknown>((resolve) => (this.#end = resolve));
      if (error !== null) throw error;
    };
    try {
      const { ended } = this.#jobs.start({ kind: 'graph', about, unit: 'edges', onDrain: 'wait', run }, caller);
      this.#ended = ended;
      ended.catch(() => undefined);
    } catch (error) {
      // A draining store takes no more jobs, but earlier statements are still answered.
      if (!(error instanceof ServiceError)) throw error;
      this.#ended = Promise.resolve();
    }
  }
}

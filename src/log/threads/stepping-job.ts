/**
 * Work in steps, and the job of a keeper thread (`worker-keeper.ts`) that runs them. A file by itself: a thread starts with it.
 */
import { assert } from '../../errors.ts';
import type { Job } from './workers.ts';

/** How far work is, in whatever it counts. */
export interface Progress {
  readonly done: number;
  readonly of: number;
}

/** A function of its request alone: it reads no clock, disk or entropy. Bulk travels in shared memory, both ways. */
export interface SteppedJob<Request, Reply> {
  /** `import.meta.url` of the file that exports the job, and the name that it is exported under. */
  readonly module: string;
  readonly name: string;
  /** Some milliseconds of work from one step to the next. */
  steps(request: Request): Generator<Progress, Reply>;
}

/** Work to its end, without a rest. */
export function finishSteps<T>(jobSteps: Generator<unknown, T>): T {
  for (;;) {
    const jobStep = jobSteps.next();
    if (jobStep.done === true) return jobStep.value;
  }
}

export type StepRequest =
  | { readonly task: number; readonly module: string; readonly name: string; readonly request: unknown }
  | { readonly task: number; readonly ask: 'step' | 'drop' };

export type Stepped = { readonly progress: Progress } | { readonly reply: unknown } | null;

/** The job of a keeper thread: several tasks, advanced one step at a time. */
export const steppingJob: Job<null, StepRequest, Stepped> = {
  module: import.meta.url,
  name: 'steppingJob',
  begin: () => {
    const runningJobs = new Map<number, Generator<Progress, unknown>>();
    return async (stepRequest) => {
      if ('module' in stepRequest) {
        const jobModule = (await import(stepRequest.module)) as Record<string, SteppedJob<unknown, unknown>>;
        runningJobs.set(stepRequest.task, jobModule[stepRequest.name]!.steps(stepRequest.request));
        return null;
      }
      if (stepRequest.ask === 'drop') {
        runningJobs.get(stepRequest.task)?.return(null);
        runningJobs.delete(stepRequest.task);
        return null;
      }
      const jobSteps = runningJobs.get(stepRequest.task);
      assert(jobSteps, 'work that goes on was begun');
      try {
        const jobStep = jobSteps.next();
        if (jobStep.done !== true) return { progress: jobStep.value };
        runningJobs.delete(stepRequest.task);
        return { reply: jobStep.value };
      } catch (error) {
        runningJobs.delete(stepRequest.task);
        throw error;
      }
    };
  },
};

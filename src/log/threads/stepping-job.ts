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
export function finishSteps<T>(steps: Generator<unknown, T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
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
    const running = new Map<number, Generator<Progress, unknown>>();
    return async (asked) => {
      if ('module' in asked) {
        const jobModule = (await import(asked.module)) as Record<string, SteppedJob<unknown, unknown>>;
        running.set(asked.task, jobModule[asked.name]!.steps(asked.request));
        return null;
      }
      if (asked.ask === 'drop') {
        running.get(asked.task)?.return(null);
        running.delete(asked.task);
        return null;
      }
      const steps = running.get(asked.task);
      assert(steps, 'work that goes on was begun');
      try {
        const step = steps.next();
        if (step.done !== true) return { progress: step.value };
        running.delete(asked.task);
        return { reply: step.value };
      } catch (error) {
        running.delete(asked.task);
        throw error;
      }
    };
  },
};

/** Runs long work to its end in one go: steps are for event loops. `count` is how often it would have let others run. */
export function finishSteps<T>(steps: Generator<undefined, T, void>): T {
  return countSteps(steps).value;
}

export function countSteps<T>(steps: Generator<undefined, T, void>): { readonly value: T; readonly count: number } {
  for (let count = 0; ; count++) {
    const step = steps.next();
    if (step.done) return { value: step.value, count };
  }
}

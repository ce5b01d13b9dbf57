/** Each `next` does so much of the work as a turn may. */
export type Steps<T> = Generator<undefined, T, undefined>;

export function allAtOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const { done: isDone, value: finalValue } = steps.next();
    if (isDone === true) return finalValue;
  }
}

export async function inTurns<T>(steps: Steps<T>, yieldTurn: () => Promise<void>): Promise<T> {
  for (;;) {
    const { done: isDone, value: finalValue } = steps.next();
    if (isDone === true) return finalValue;
    await yieldTurn();
  }
}

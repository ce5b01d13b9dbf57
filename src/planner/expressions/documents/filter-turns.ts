/** Goes through many documents in turns, so that other requests run between them. */
import { turnMost, work } from '../expression-cost.ts';
import type { Steps } from '../resumable-steps.ts';

export type YieldTurn = () => Promise<void>;

/** Nanoseconds of an item and of a comparison, besides the work that they count themselves. */
const documentTurnCost = 1_000;
const sortComparisonCost = 100;

/** Each has the work of a row. */
export async function eachInTurns<T>(
  turnItems: Iterable<T>,
  yieldTurn: YieldTurn,
  runDocument: (turnItem: T) => void,
): Promise<void> {
  let turnWork = 0;
  for (const turnItem of turnItems) {
    work.done = 0;
    runDocument(turnItem);
    turnWork += work.done + documentTurnCost;
    if (turnWork <= turnMost) continue;
    turnWork = 0;
    await yieldTurn();
  }
}

/** The same for items that may be long by themselves: their own steps count short ones. */
export async function eachInSteps<T>(
  items: Iterable<T>,
  yieldTurn: YieldTurn,
  runDocumentSteps: (item: T) => Steps<void>,
): Promise<void> {
  let turnWork = 0;
  for (const item of items) {
    work.done = 0;
    for (const steps = runDocumentSteps(item); steps.next().done !== true; work.done = turnWork = 0) await yieldTurn();
    turnWork += work.done + documentTurnCost;
    if (turnWork <= turnMost) continue;
    turnWork = 0;
    await yieldTurn();
  }
}

/** A merge sort: stable. */
export async function sortedInTurns<T>(
  items: readonly T[],
  compareDocuments: (a: T, b: T) => number,
  yieldTurn: YieldTurn,
): Promise<T[]> {
  const { length } = items;
  let mergeSource = [...items];
  let mergeTarget = [...items];
  work.done = 0;
  for (let mergeWidth = 1; mergeWidth < length; mergeWidth *= 2) {
    for (let mergeStart = 0; mergeStart < length; mergeStart += 2 * mergeWidth) {
      const mergeMiddle = Math.min(mergeStart + mergeWidth, length);
      const mergeEnd = Math.min(mergeStart + 2 * mergeWidth, length);
      for (let mergeIndex = mergeStart, leftIndex = mergeStart, rightIndex = mergeMiddle; mergeIndex < mergeEnd; mergeIndex++) {
        const takesLeft =
          leftIndex < mergeMiddle &&
          (rightIndex >= mergeEnd || compareDocuments(mergeSource[leftIndex]!, mergeSource[rightIndex]!) <= 0);
        mergeTarget[mergeIndex] = takesLeft ? mergeSource[leftIndex++]! : mergeSource[rightIndex++]!;
        work.done += sortComparisonCost;
        if (work.done <= turnMost) continue;
        await yieldTurn();
        work.done = 0;
      }
    }
    [mergeSource, mergeTarget] = [mergeTarget, mergeSource];
  }
  return mergeSource;
}

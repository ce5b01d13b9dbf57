/** Goes through many documents in turns, so that other requests run between them. */
import { turnMost, work } from '../expression-cost.ts';
import type { Steps } from '../resumable-steps.ts';

export type YieldTurn = () => Promise<void>;

/** Nanoseconds of an item and of a comparison, besides the work that they count themselves. */
const itemCost = 1_000;
const comparisonCost = 100;

/** Each has the work of a row. */
export async function eachInTurns<T>(items: Iterable<T>, yieldTurn: YieldTurn, run: (item: T) => void): Promise<void> {
  let done = 0;
  for (const item of items) {
    work.done = 0;
    run(item);
    done += work.done + itemCost;
    if (done <= turnMost) continue;
    done = 0;
    await yieldTurn();
  }
}

/** The same for items that may be long by themselves: their own steps count short ones. */
export async function eachInSteps<T>(items: Iterable<T>, yieldTurn: YieldTurn, run: (item: T) => Steps<void>): Promise<void> {
  let done = 0;
  for (const item of items) {
    work.done = 0;
    for (const steps = run(item); steps.next().done !== true; work.done = done = 0) await yieldTurn();
    done += work.done + itemCost;
    if (done <= turnMost) continue;
    done = 0;
    await yieldTurn();
  }
}

/** A merge sort: stable. */
export async function sortedInTurns<T>(items: readonly T[], order: (a: T, b: T) => number, yieldTurn: YieldTurn): Promise<T[]> {
  const { length } = items;
  let from = [...items];
  let into = [...items];
  work.done = 0;
  for (let width = 1; width < length; width *= 2) {
    for (let start = 0; start < length; start += 2 * width) {
      const middle = Math.min(start + width, length);
      const end = Math.min(start + 2 * width, length);
      for (let at = start, left = start, right = middle; at < end; at++) {
        const isLeft = left < middle && (right >= end || order(from[left]!, from[right]!) <= 0);
        into[at] = isLeft ? from[left++]! : from[right++]!;
        work.done += comparisonCost;
        if (work.done <= turnMost) continue;
        await yieldTurn();
        work.done = 0;
      }
    }
    [from, into] = [into, from];
  }
  return from;
}

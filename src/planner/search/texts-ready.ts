/**
 * For EXPLAIN: whether the texts of all rows that a search may see are indexed by now. That is asked of the rows that the gate lets
 * out, and told in a word: how many stretches there are would tell of rows that it does not.
 */
import type { ScanRequest } from '../../projections/access-paths.ts';
import type { SearchNode } from '../logical-plan.ts';
import type { Execution } from '../operators/operator.ts';

/** No row is there to be indexed, all of them are, or some are not. */
export type TextsReady = 'none' | 'all' | 'some';

/** A stretch a step. Nothing is begun to be indexed for it. */
export function* textsReady({ input, matches }: SearchNode, { snapshot, time }: Execution): Generator<undefined, TextsReady> {
  const columns = [...new Set(matches.flatMap((match) => match.columns))].map((column) => input.columns[column]!.name);
  const request: ScanRequest = { type: input.type, columns, time, indexed: columns, builtOnly: 'look' };
  const blocks = snapshot.rows.scan(request);
  let found: TextsReady = 'none';
  try {
    for (let step = blocks.next(); step.done !== true; step = blocks.next()) {
      if (step.value.count > 0) {
        if (step.value.indexed?.isComing) return 'some';
        found = 'all';
      }
      yield;
    }
  } finally {
    blocks.return?.();
  }
  return found;
}

/**
 * For EXPLAIN: whether the texts of all rows that a search may see are indexed by now. Only rows that pass the gate count, and
 * the answer is one word: a number of blocks would reveal hidden rows.
 */
import type { ScanRequest } from '../../projections/access-paths.ts';
import type { SearchNode } from '../logical-plan.ts';
import type { Execution } from '../operators/operator.ts';

/** No row is there to be indexed, all of them are, or some are not. */
export type TextsReady = 'none' | 'all' | 'some';

/** One block a step. It starts no indexing. */
export function* textsReady({ input, matches }: SearchNode, { snapshot, time }: Execution): Generator<undefined, TextsReady> {
  const columns = [...new Set(matches.flatMap((match) => match.columns))].map((column) => input.columns[column]!.name);
  const indexedRequest: ScanRequest = { type: input.type, columns, time, indexed: columns, builtOnly: 'look' };
  const indexedBlocks = snapshot.rows.scan(indexedRequest);
  let readiness: TextsReady = 'none';
  try {
    for (let blockStep = indexedBlocks.next(); blockStep.done !== true; blockStep = indexedBlocks.next()) {
      if (blockStep.value.count > 0) {
        if (blockStep.value.texts?.isComing) return 'some';
        readiness = 'all';
      }
      yield;
    }
  } finally {
    indexedBlocks.return?.();
  }
  return readiness;
}

/**
 * Which rows SIMILAR and ORDER BY a distance look at: all that are visible, or those that graphs say may be the nearest. Which of the two follows from the
 * statement, the basis, the grant and the consistency that was asked for; a graph that is not there yet is begun, and what it would have
 * said is found by a look at all of its rows.
 */
import type { Near } from '../../projections/access-paths.ts';
import { vectorIn } from '../expressions/functions/vectors.ts';
import type { Opening } from '../functions/table-function.ts';
import type { ProjectNode, ScanNode } from '../logical-plan.ts';
import { type Execution, firstRows } from '../operators/operator.ts';
import { mostRanked } from '../operators/ranked-rows.ts';

export async function prepareSimilar({
  node,
  values,
  execution,
}: Omit<Opening, 'input' | 'edges' | 'prepared'>): Promise<Near | null> {
  const { consistency, kernels, snapshot, time, vectorExactRows } = execution;
  const scan = node.input;
  // A condition leaves too few of what a graph finds.
  if (consistency === 'exact' || !node.limit || scan?.kind !== 'scan') return null;
  const vector = values.vector('VECTOR', kernels);
  if (vector === undefined) return null;
  if (consistency === 'strong' && snapshot.rows.estimate({ type: scan.type, columns: [], time }).rows <= vectorExactRows)
    return null;
  return near(scan, node.reads[2]!, vector, mostRanked(node, execution), execution);
}

/** What graphs rank by the cosine is fetched beyond what is asked for, where it is ranked anew by another distance. */
const overFetched = 4;

/** The same for ORDER BY a distance: exact, unless less was asked for. */
export async function prepareNearest({ input, nearest }: ProjectNode, execution: Execution): Promise<Near | null> {
  if (execution.consistency !== 'eventual' || nearest === undefined || input.kind !== 'scan') return null;
  const { column, distance, limit, offset, to } = nearest;
  const vector = vectorIn(execution.kernels.constant(to));
  if (vector === null || distance.name === '<#>') return null;
  const count = firstRows(limit, offset, execution) * (distance.name === '<=>' ? 1 : overFetched);
  return near(input, column, vector, count, execution);
}

async function near(
  scan: ScanNode,
  number: number,
  vector: Float32Array,
  count: number,
  { counters, notices, pinned, snapshot, time }: Execution,
): Promise<Near | null> {
  if (pinned !== null || scan.keys || scan.zones.length > 0 || count === 0) return null;
  const { type } = scan;
  const column = scan.columns[number];
  if (column?.type !== 'vector' || vector.every((component) => component === 0)) return null;
  if (snapshot.catalog.type(type)?.properties[column.name]?.dims !== vector.length) return null;
  const found = await snapshot.rows.near?.({ type, column: column.name, time, vector, count });
  if (!found) return null;
  counters.byGraph += found.byGraph;
  if (found.missing > 0)
    notices.push(
      `${found.missing} of ${found.missing + found.byGraph} graphs of vectors are being made: their rows are looked at one by one`,
    );
  return found;
}

/**
 * Which rows SIMILAR looks at: all that are visible, or those that graphs say may be the nearest. Which of the two follows from the
 * statement, the basis, the grant and the consistency that was asked for; a graph that is not there yet is begun, and what it would have
 * said is found by a look at all of its rows.
 */
import type { Near } from '../../projections/access-paths.ts';
import type { Opening } from '../functions/table-function.ts';
import { mostRanked } from '../operators/ranked-rows.ts';

export async function prepareSimilar({
  node,
  values,
  execution,
}: Omit<Opening, 'input' | 'edges' | 'prepared'>): Promise<Near | null> {
  const { consistency, counters, kernels, notices, pinned, snapshot, time, vectorExactRows } = execution;
  const scan = node.input;
  // A condition leaves too few of what a graph finds.
  if (consistency === 'exact' || pinned !== null || !node.limit || scan?.kind !== 'scan' || scan.keys || scan.zones.length > 0)
    return null;
  const vector = values.vector('VECTOR', kernels);
  const column = scan.columns[node.reads[2]!];
  if (vector === undefined || column?.type !== 'vector' || vector.every((component) => component === 0)) return null;
  if (snapshot.catalog.type(scan.type)?.properties[column.name]?.dims !== vector.length) return null;
  const { type } = scan;
  if (consistency === 'strong' && snapshot.rows.estimate({ type, columns: [], time }).rows <= vectorExactRows) return null;
  const near = await snapshot.rows.near?.({ type, column: column.name, time, vector, count: mostRanked(node, execution) });
  if (!near) return null;
  counters.byGraph += near.byGraph;
  if (near.missing > 0)
    notices.push(
      `${near.missing} of ${near.missing + near.byGraph} graphs of vectors are being made: their rows are looked at one by one`,
    );
  return near;
}

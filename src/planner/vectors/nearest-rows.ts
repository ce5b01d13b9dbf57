/**
 * The rows that SIMILAR inspects: all visible ones, or those that graphs report as nearest. The choice follows from the
 * statement, the basis, the grant and the consistency; a missing graph is begun, and a scan of all its rows takes its place
 * meanwhile.
 */
import type { Near, NearRequest } from '../../projections/access-paths.ts';
import { vectorIn } from '../expressions/functions/vectors.ts';
import type { Opening } from '../calls/table-function.ts';
import type { ProjectNode, ScanNode } from '../logical-plan.ts';
import { type Execution, firstRows } from '../operators/operator.ts';
import { mostRanked } from '../operators/ranked-rows.ts';

type NearestRequest = Omit<Opening, 'input' | 'edges' | 'prepared'>;

/** The way in which the nearest rows are found, and the reason. */
export interface Way {
  /** Null: all rows are looked at. */
  readonly graphs: Pick<NearRequest, 'type' | 'column' | 'vector'> | null;
  readonly why: string;
}

export function wayOf({ node, values, execution }: NearestRequest): Way {
  const { consistency, kernels, snapshot, time } = execution;
  const { vectorExactRows } = execution.limits;
  const scan = node.input;
  const vector = values.vector('VECTOR', kernels);
  if (vector === undefined) return exact('a seed is compared in all of its columns');
  if (!node.limit) return exact('there is no LIMIT');
  // A condition leaves too few of the rows that a graph finds.
  if (scan?.kind !== 'scan') return exact('there is a condition');
  const way = graphsOf(scan, node.reads[2]!, vector, execution);
  if (way.graphs === null || consistency === 'eventual') return way;
  const isFew = snapshot.rows.estimate({ type: scan.type, columns: [], time }).rows <= vectorExactRows;
  return isFew
    ? exact(`at most ${vectorExactRows} rows are visible`)
    : { ...way, why: `more than ${vectorExactRows} rows are visible` };
}

export async function prepareSimilar(request: NearestRequest): Promise<Near | null> {
  const { node, execution } = request;
  return near(wayOf(request), mostRanked(node, execution), execution);
}

/** Factor of rows fetched from graphs, which rank by the cosine, before they are ranked again by another distance. */
const overFetched = 4;

/** The same decision for ORDER BY a distance: exact, unless the statement accepts less. */
export function wayToNearest({ input, nearest }: ProjectNode, execution: Execution): Way {
  if (execution.consistency !== 'eventual') return exact('the answer has to be strong');
  if (nearest === undefined || input.kind !== 'scan') return exact('there is a condition');
  const vector = vectorIn(execution.kernels.constant(nearest.to));
  if (vector === null) return exact('there is no vector to be near to');
  if (nearest.distance.name === '<#>') return exact('graphs go by directions, and inner products by lengths too');
  return graphsOf(input, nearest.column, vector, execution);
}

export async function prepareNearest(node: ProjectNode, execution: Execution): Promise<Near | null> {
  if (!node.nearest) return null;
  const { distance, limit, offset } = node.nearest;
  const count = firstRows(limit, offset, execution) * (distance.name === '<=>' ? 1 : overFetched);
  return near(wayToNearest(node, execution), count, execution);
}

function exact(why: string): Way {
  return { graphs: null, why };
}

/** Whether graphs serve the search, where an approximate answer is allowed. */
function graphsOf(scan: ScanNode, number: number, vector: Float32Array, { consistency, pinned, snapshot, time }: Execution): Way {
  if (consistency === 'exact') return exact('the answer has to be the same for ever');
  if (pinned !== null) return exact('it goes on with an earlier answer');
  if (scan.keys || scan.zones.length > 0) return exact('there is a condition');
  const { type } = scan;
  const column = scan.columns[number];
  const isFitting = column?.type === 'vector' && snapshot.catalog.type(type)?.properties[column.name]?.dims === vector.length;
  if (!isFitting || vector.every((component) => component === 0))
    return exact('the vector has no direction among those of the column');
  if (!snapshot.rows.canBeNear?.({ type, column: column.name, time }))
    return exact('a policy, a mask or another tenant says which rows are shown');
  return { graphs: { type, column: column.name, vector }, why: 'the answer may be eventual' };
}

async function near({ graphs }: Way, count: number, { counters, notices, snapshot, time }: Execution): Promise<Near | null> {
  if (count === 0) return null;
  const nearest = graphs && (await snapshot.rows.near?.({ ...graphs, time, count }));
  if (!nearest) return null;
  counters.byGraph += nearest.byGraph;
  if (nearest.missing > 0)
    notices.push(
      `${nearest.missing} of ${nearest.missing + nearest.byGraph} graphs of vectors are being made: their rows are looked at one by one`,
    );
  return nearest;
}

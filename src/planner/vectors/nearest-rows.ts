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
  const scannedInput = node.input;
  const similarVector = values.vector('VECTOR', kernels);
  if (similarVector === undefined) return exactWay('a seed is compared in all of its columns');
  if (!node.limit) return exactWay('there is no LIMIT');
  // A condition leaves too few of the rows that a graph finds.
  if (scannedInput?.kind !== 'scan') return exactWay('there is a condition');
  const graphWay = neighbourGraphsOf(scannedInput, node.reads[2]!, similarVector, execution);
  if (graphWay.graphs === null || consistency === 'eventual') return graphWay;
  const areRowsFew = snapshot.rows.estimate({ type: scannedInput.type, columns: [], time }).rows <= vectorExactRows;
  return areRowsFew
    ? exactWay(`at most ${vectorExactRows} rows are visible`)
    : { ...graphWay, why: `more than ${vectorExactRows} rows are visible` };
}

export async function prepareSimilar(request: NearestRequest): Promise<Near | null> {
  const { node, execution } = request;
  return nearestByGraph(wayOf(request), mostRanked(node, execution), execution);
}

/** Factor of rows fetched from graphs, which rank by the cosine, before they are ranked again by another distance. */
const overFetchFactor = 4;

/** The same decision for ORDER BY a distance: exact, unless the statement accepts less. */
export function wayToNearest({ input, nearest }: ProjectNode, execution: Execution): Way {
  if (execution.consistency !== 'eventual') return exactWay('the answer has to be strong');
  if (nearest === undefined || input.kind !== 'scan') return exactWay('there is a condition');
  const nearestVector = vectorIn(execution.kernels.constant(nearest.to));
  if (nearestVector === null) return exactWay('there is no vector to be near to');
  if (nearest.distance.name === '<#>') return exactWay('graphs go by directions, and inner products by lengths too');
  return neighbourGraphsOf(input, nearest.column, nearestVector, execution);
}

export async function prepareNearest(node: ProjectNode, execution: Execution): Promise<Near | null> {
  if (!node.nearest) return null;
  const { distance, limit, offset } = node.nearest;
  const nearestCount = firstRows(limit, offset, execution) * (distance.name === '<=>' ? 1 : overFetchFactor);
  return nearestByGraph(wayToNearest(node, execution), nearestCount, execution);
}

function exactWay(exactReason: string): Way {
  return { graphs: null, why: exactReason };
}

/** Whether graphs serve the search, where an approximate answer is allowed. */
function neighbourGraphsOf(
  scan: ScanNode,
  columnOrdinal: number,
  nearestVector: Float32Array,
  { consistency, pinned, snapshot, time }: Execution,
): Way {
  if (consistency === 'exact') return exactWay('the answer has to be the same for ever');
  if (pinned !== null) return exactWay('it goes on with an earlier answer');
  if (scan.keys || scan.zones.length > 0) return exactWay('there is a condition');
  const { type } = scan;
  const vectorColumn = scan.columns[columnOrdinal];
  const isVectorFitting =
    vectorColumn?.type === 'vector' && snapshot.catalog.type(type)?.properties[vectorColumn.name]?.dims === nearestVector.length;
  if (!isVectorFitting || nearestVector.every((vectorComponent) => vectorComponent === 0))
    return exactWay('the vector has no direction among those of the column');
  if (!snapshot.rows.canBeNear?.({ type, column: vectorColumn.name, time }))
    return exactWay('a policy, a mask or another tenant says which rows are shown');
  return { graphs: { type, column: vectorColumn.name, vector: nearestVector }, why: 'the answer may be eventual' };
}

async function nearestByGraph(
  { graphs: neighbourGraphs }: Way,
  nearestCount: number,
  { counters, notices, snapshot, time }: Execution,
): Promise<Near | null> {
  if (nearestCount === 0) return null;
  const nearest = neighbourGraphs && (await snapshot.rows.near?.({ ...neighbourGraphs, time, count: nearestCount }));
  if (!nearest) return null;
  counters.byGraph += nearest.byGraph;
  if (nearest.missing > 0)
    notices.push(
      `${nearest.missing} of ${nearest.missing + nearest.byGraph} graphs of vectors are being made: their rows are looked at one by one`,
    );
  return nearest;
}

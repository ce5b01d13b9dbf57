/**
 * Which rows SIMILAR looks at: all that are visible, or those that graphs say may be the nearest. Which of the two follows from the
 * statement, the basis, the grant and the consistency that was asked for; a graph that is not there yet is begun, and what it would have
 * said is found by a look at all of its rows.
 */
import type { Near, NearRequest } from '../../projections/access-paths.ts';
import type { Opening } from '../functions/table-function.ts';
import { mostRanked } from '../operators/ranked-rows.ts';

type Asked = Omit<Opening, 'input' | 'edges' | 'prepared'>;

/** How SIMILAR finds what is nearest, and why so. */
export interface Way {
  /** Null: all rows are looked at. */
  readonly graphs: Pick<NearRequest, 'type' | 'column' | 'vector'> | null;
  readonly why: string;
}

export function wayOf({ node, values, execution }: Asked): Way {
  const { consistency, kernels, pinned, snapshot, time, vectorExactRows } = execution;
  const scan = node.input;
  const exact = (why: string): Way => ({ graphs: null, why });
  const vector = values.vector('VECTOR', kernels);
  if (vector === undefined) return exact('a seed is compared in all of its columns');
  if (consistency === 'exact') return exact('the answer has to be the same for ever');
  if (pinned !== null) return exact('it goes on with an earlier answer');
  if (!node.limit) return exact('there is no LIMIT');
  // A condition leaves too few of what a graph finds.
  if (scan?.kind !== 'scan' || scan.keys || scan.zones.length > 0) return exact('there is a condition');
  const column = scan.columns[node.reads[2]!];
  const isFitting =
    column?.type === 'vector' && snapshot.catalog.type(scan.type)?.properties[column.name]?.dims === vector.length;
  if (!isFitting || vector.every((component) => component === 0))
    return exact('the vector has no direction among those of the column');
  const { type } = scan;
  if (!snapshot.rows.canBeNear?.({ type, column: column.name, time })) {
    return exact('a policy, a mask or another tenant says which rows are shown');
  }
  const graphs = { type, column: column.name, vector };
  if (consistency === 'eventual') return { graphs, why: 'the answer may be eventual' };
  const isFew = snapshot.rows.estimate({ type, columns: [], time }).rows <= vectorExactRows;
  return isFew
    ? exact(`at most ${vectorExactRows} rows are visible`)
    : { graphs, why: `more than ${vectorExactRows} rows are visible` };
}

export async function prepareSimilar(asked: Asked): Promise<Near | null> {
  const { node, execution } = asked;
  const { counters, notices, snapshot, time } = execution;
  const { graphs } = wayOf(asked);
  const near = graphs && (await snapshot.rows.near?.({ ...graphs, time, count: mostRanked(node, execution) }));
  if (!near) return null;
  counters.byGraph += near.byGraph;
  if (near.missing > 0)
    notices.push(
      `${near.missing} of ${near.missing + near.byGraph} graphs of vectors are being made: their rows are looked at one by one`,
    );
  return near;
}

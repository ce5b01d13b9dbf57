/** The error of graph functions whose whole result is too large. */
import { ServiceError } from '../../errors.ts';

export function tooMany(graphRowsMax: number): ServiceError {
  return new ServiceError(
    'REL_RESULT_CAP',
    `the answer has more than ${graphRowsMax} rows: ask for less of the graph, or give it a LIMIT`,
  );
}

/** Looks at an edge that take as long as scanning a row. */
export const looksOfScan = 50;

/** Looks at edges that cost as much as a query. */
export const looksOfUnit = 50_000_000;

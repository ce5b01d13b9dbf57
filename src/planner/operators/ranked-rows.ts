/**
 * The common part of functions that rank the rows of a type: the limit on rows, and the fetching of the chosen rows, one by one.
 * A version is found by its system_from, which no other has.
 */
import { assert, ServiceError } from '../../errors.ts';
import type { Vector } from '../../log/values/columns.ts';
import type { RowBlock } from '../../projections/access-paths.ts';
import type { FunctionNode } from '../logical-plan.ts';
import type { RankedRow } from './best-rows.ts';
import { RowSink } from './column-sink.ts';
import { type Batch, emptyBatch, type Execution } from './operator.ts';

/** Rows fetched between two looks at the clock. */
const rankedFetchesPerStep = 8;
const rankedOutputRows = 1_024;

/** Refuses columns that the caller may not read of the rows to fetch, even if there are none. */
export function checkFetched(node: FunctionNode, { snapshot, time }: Execution): void {
  if (node.type === null) return;
  snapshot.rows.estimate({ type: node.type, columns: storedColumnNames(node), time, keys: [] });
}

function storedColumnNames({ columns, own }: FunctionNode): readonly string[] {
  return [...columns.flatMap(({ name }, i) => (own[i]! < 0 ? [name] : [])), 'system_from'];
}

/** How many rows a call may yield: its LIMIT, else as many as may be asked for, and one more to tell that there are too many. */
export function mostRanked({ limit, name }: FunctionNode, execution: Execution): number {
  const vectorRowsMax = execution.limits.vectorRowsMax;
  const rowsWanted = limit ? execution.rowLimit(limit) : vectorRowsMax + 1;
  if (limit && rowsWanted > vectorRowsMax) {
    throw new ServiceError('REL_VECTOR_BUDGET', `${name} yields at most ${vectorRowsMax} rows: LIMIT asks for ${rowsWanted}`);
  }
  return rowsWanted;
}

/** Without a LIMIT all rows were asked for. */
export function checkRanked({ limit, name }: FunctionNode, rowCount: number, { limits: { vectorRowsMax } }: Execution): void {
  if (limit || rowCount <= vectorRowsMax) return;
  throw new ServiceError(
    'REL_VECTOR_BUDGET',
    `${name} yields at most ${vectorRowsMax} rows, and more are alike: give it a LIMIT`,
  );
}

/** The rows as the node has them, in this order. `ownColumn` gives the function's own columns of some of them. */
export function* rankedRows<R extends RankedRow>(
  node: FunctionNode,
  execution: Execution,
  bestRanked: readonly R[],
  ownColumn: (rows: readonly R[], column: number) => Vector,
): Generator<Batch, void> {
  const { columns, own: ownColumnNumbers } = node;
  const storedNames = storedColumnNames(node);
  for (let first = 0; first < bestRanked.length; first += rankedOutputRows) {
    const rankedPiece = bestRanked.slice(first, first + rankedOutputRows);
    const storedSink = new RowSink(columns.flatMap(({ type }, i) => (ownColumnNumbers[i]! < 0 ? [type] : [])));
    const fetchedRows: R[] = [];
    let heldBytes = 0;
    for (const [i, rankedRow] of rankedPiece.entries()) {
      if (fetchRanked(node, execution, storedNames, rankedRow.systemFrom, storedSink)) fetchedRows.push(rankedRow);
      if (i % rankedFetchesPerStep === rankedFetchesPerStep - 1) {
        heldBytes = execution.memory.change(heldBytes, storedSink.bytes);
        yield emptyBatch;
      }
    }
    const storedVectors = storedSink.vectors();
    let nextStored = 0;
    const rankedOutput = ownColumnNumbers.map((number) =>
      number < 0 ? storedVectors[nextStored++]! : ownColumn(fetchedRows, number),
    );
    yield { columns: rankedOutput, selection: null, first: 0, count: fetchedRows.length };
    execution.memory.change(heldBytes, 0);
  }
}

/** The last column is system_from. False for a version that was removed for good since it was ranked. */
function fetchRanked(
  { type }: FunctionNode,
  execution: Execution,
  columns: readonly string[],
  systemFrom: bigint,
  storedSink: RowSink,
): boolean {
  assert(type !== null, 'rows of a type are fetched');
  const version = fetchVersion(execution, type, columns, systemFrom);
  if (version === null) return false;
  storedSink.append({ columns: version.columns, selection: null, first: version.row, count: 1 });
  return true;
}

/** A version by its system_from, which is among the columns; null where it was removed for good. Good until the next turn. */
export function fetchVersion(
  { snapshot, time }: Pick<Execution, 'snapshot' | 'time'>,
  type: string,
  columns: readonly string[],
  systemFrom: bigint,
): { readonly columns: readonly Vector[]; readonly row: number } | null {
  const instantColumn = columns.indexOf('system_from');
  const versionBlocks = snapshot.rows.scan({
    type,
    columns,
    time,
    after: systemFrom - 1n,
    zones: [{ column: 'system_from', op: '<=', value: systemFrom }],
    blockRows: 1,
  });
  try {
    for (let blockStep = versionBlocks.next(); blockStep.done !== true; blockStep = versionBlocks.next()) {
      const versionBlock: RowBlock = blockStep.value;
      if (versionBlock.count === 0) continue;
      const systemFromVector = versionBlock.columns[instantColumn]!;
      assert(systemFromVector.kind === 'i64', 'system times are i64');
      const versionRow = versionBlock.selection === null ? versionBlock.first : versionBlock.selection[0]!;
      return systemFromVector.values[versionRow] === systemFrom ? { columns: versionBlock.columns, row: versionRow } : null;
    }
    return null;
  } finally {
    versionBlocks.return?.();
  }
}

/** Scores as a column. */
export function scoreColumn(rows: readonly RankedRow[]): Vector {
  return { kind: 'f64', values: Float64Array.from(rows, ({ score }) => score), nulls: null };
}

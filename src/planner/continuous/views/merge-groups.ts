/** Groups of new versions merged into known ones: counts and sums add up, the least and the greatest are compared. */
import type { Cell } from '../../../log/values/value.ts';
import { compareText } from '../../../log/values/value.ts';
import { cellAt, VectorBuilder } from '../../../log/values/vector-builder.ts';
import type { Answer, OutputBatch, OutputColumn } from '../../planner-contract.ts';
import type { GroupColumn } from './view-definition.ts';

type GroupRows = Pick<Answer, 'columns' | 'batches'>;

/**
 * Null where adding would not give what asking again gives: sums of doubles depend on the order of every addend, and a
 * sum beyond 64 bits is an error that the question itself must meet. New groups follow the known ones, as they appeared.
 */
export function mergeGroups(
  knownGroups: GroupRows,
  addedGroups: GroupRows,
  groupColumns: readonly GroupColumn[],
): readonly OutputBatch[] | null {
  const { columns } = knownGroups;
  if (columns.some(({ type }, i) => groupColumns[i] === 'add' && type !== 'integer')) return null;
  if (columns.some(({ type }, i) => groupColumns[i] !== 'key' && !mergeableTypes.has(type))) return null;
  const mergedGroups = new Map<string, Cell[]>();
  for (const groupRows of [knownGroups, addedGroups]) {
    for (const groupCells of groupRowsOf(groupRows)) {
      const groupKey = groupKeyOf(groupCells, groupColumns);
      const mergedGroup = mergedGroups.get(groupKey);
      if (mergedGroup === undefined) mergedGroups.set(groupKey, groupCells);
      else if (!mergeGroup(mergedGroup, groupCells, groupColumns)) return null;
    }
  }
  return [mergedBatch(columns, [...mergedGroups.values()])];
}

const mergeableTypes: ReadonlySet<string> = new Set(['integer', 'number', 'timestamp', 'string', 'boolean']);

function mergeGroup(mergedGroup: Cell[], addedCells: readonly Cell[], groupColumns: readonly GroupColumn[]): boolean {
  for (let i = 0; i < groupColumns.length; i++) {
    const groupColumn = groupColumns[i]!;
    const [mergedCell, addedCell] = [mergedGroup[i]!, addedCells[i]!];
    if (groupColumn === 'key' || addedCell === null) continue;
    if (mergedCell === null) mergedGroup[i] = addedCell;
    else if (groupColumn === 'add') {
      const mergedSum = (mergedCell as bigint) + (addedCell as bigint);
      if (BigInt.asIntN(64, mergedSum) !== mergedSum) return false;
      mergedGroup[i] = mergedSum;
    } else {
      const cellOrder =
        typeof mergedCell === 'string'
          ? compareText(mergedCell, addedCell as string)
          : mergedCell < addedCell
            ? -1
            : mergedCell > addedCell
              ? 1
              : 0;
      if (groupColumn === 'least' ? cellOrder > 0 : cellOrder < 0) mergedGroup[i] = addedCell;
    }
  }
  return true;
}

function groupKeyOf(groupCells: readonly Cell[], groupColumns: readonly GroupColumn[]): string {
  let groupKey = '';
  for (let i = 0; i < groupColumns.length; i++) {
    if (groupColumns[i] !== 'key') continue;
    const keyCell = groupCells[i]!;
    // Minus zero is the group of zero.
    const keyText = keyCell === null ? '' : String(keyCell);
    groupKey += `${typeof keyCell}${keyText.length}:${keyText}`;
  }
  return groupKey;
}

function* groupRowsOf({ columns, batches }: GroupRows): Generator<Cell[], void> {
  for (const batch of batches) {
    for (let i = 0; i < batch.count; i++) {
      const groupRow = batch.selection === null ? batch.first + i : batch.selection[i]!;
      yield columns.map(({ type }, column) => cellAt(batch.columns[column]!, type, groupRow));
    }
  }
}

function mergedBatch(columns: readonly OutputColumn[], groupRows: readonly (readonly Cell[])[]): OutputBatch {
  const mergedVectors = columns.map(({ type }, i) => {
    const groupColumnBuilder = new VectorBuilder(type, Math.max(1, groupRows.length));
    for (const groupRow of groupRows) groupColumnBuilder.append(groupRow[i]!);
    return groupColumnBuilder.build();
  });
  return { columns: mergedVectors, selection: null, first: 0, count: groupRows.length };
}

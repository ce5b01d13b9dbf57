/** Groups of new versions merged into known ones: counts and sums add up, the least and the greatest are compared. */
import type { Cell } from '../../../log/values/value.ts';
import { compareText } from '../../../log/values/value.ts';
import { cellAt, VectorBuilder } from '../../../log/values/vector-builder.ts';
import type { Answer, OutputBatch, OutputColumn } from '../../planner-contract.ts';
import type { GroupColumn } from './view-definition.ts';

type Rows = Pick<Answer, 'columns' | 'batches'>;

/**
 * Null where adding would not give what asking again gives: sums of doubles depend on the order of every addend, and a
 * sum beyond 64 bits is an error that the question itself must meet. New groups follow the known ones, as they appeared.
 */
export function mergeGroups(known: Rows, added: Rows, kinds: readonly GroupColumn[]): readonly OutputBatch[] | null {
  const { columns } = known;
  if (columns.some(({ type }, i) => kinds[i] === 'add' && type !== 'integer')) return null;
  if (columns.some(({ type }, i) => kinds[i] !== 'key' && !comparable.has(type))) return null;
  const groups = new Map<string, Cell[]>();
  for (const rows of [known, added]) {
    for (const cells of rowsOf(rows)) {
      const key = keyOf(cells, kinds);
      const group = groups.get(key);
      if (group === undefined) groups.set(key, cells);
      else if (!merge(group, cells, kinds)) return null;
    }
  }
  return [batchOf(columns, [...groups.values()])];
}

const comparable: ReadonlySet<string> = new Set(['integer', 'number', 'timestamp', 'string', 'boolean']);

function merge(group: Cell[], cells: readonly Cell[], kinds: readonly GroupColumn[]): boolean {
  for (let i = 0; i < kinds.length; i++) {
    const kind = kinds[i]!;
    const [a, b] = [group[i]!, cells[i]!];
    if (kind === 'key' || b === null) continue;
    if (a === null) group[i] = b;
    else if (kind === 'add') {
      const sum = (a as bigint) + (b as bigint);
      if (BigInt.asIntN(64, sum) !== sum) return false;
      group[i] = sum;
    } else {
      const order = typeof a === 'string' ? compareText(a, b as string) : a < b ? -1 : a > b ? 1 : 0;
      if (kind === 'least' ? order > 0 : order < 0) group[i] = b;
    }
  }
  return true;
}

function keyOf(cells: readonly Cell[], kinds: readonly GroupColumn[]): string {
  let key = '';
  for (let i = 0; i < kinds.length; i++) {
    if (kinds[i] !== 'key') continue;
    const cell = cells[i]!;
    // Minus zero is the group of zero.
    const text = cell === null ? '' : String(cell);
    key += `${typeof cell}${text.length}:${text}`;
  }
  return key;
}

function* rowsOf({ columns, batches }: Rows): Generator<Cell[], void> {
  for (const batch of batches) {
    for (let i = 0; i < batch.count; i++) {
      const row = batch.selection === null ? batch.first + i : batch.selection[i]!;
      yield columns.map(({ type }, column) => cellAt(batch.columns[column]!, type, row));
    }
  }
}

function batchOf(columns: readonly OutputColumn[], rows: readonly (readonly Cell[])[]): OutputBatch {
  const vectors = columns.map(({ type }, i) => {
    const builder = new VectorBuilder(type, Math.max(1, rows.length));
    for (const row of rows) builder.append(row[i]!);
    return builder.build();
  });
  return { columns: vectors, selection: null, first: 0, count: rows.length };
}

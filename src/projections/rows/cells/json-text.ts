/** A cell as JSON text: how a value reads once its column has become `json`, and how a scalar reads as text. */
import type { Cell, ColumnType } from '../../../log/values/value.ts';

export function jsonText(cell: Exclude<Cell, null>, cellType: ColumnType): string {
  if (cellType === 'json' && typeof cell === 'string') return cell;
  if (typeof cell === 'bigint') return cell.toString();
  if (cell instanceof Float32Array) return JSON.stringify([...cell]);
  return JSON.stringify(cell);
}

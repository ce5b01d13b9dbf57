/** Nodes that a cell names. A node is a text: every visible row of the tenant whose `id`, else `_pk`, is that text. Pure. */
import type { Cell, ColumnType } from '../../../log/values/value.ts';
import { keyText } from '../checks/fit-column.ts';

/** None for NULL and the empty text, several for a list; null where a cell names none and says something else. */
export function nodesOf(cell: Cell, type: ColumnType): readonly string[] | null {
  if (cell === null) return [];
  if (type === 'vector') return null;
  if (type !== 'json') return given([keyText(cell)]);
  const value: unknown = JSON.parse(String(cell));
  const items: readonly unknown[] = Array.isArray(value) ? value : [value];
  const texts: string[] = [];
  for (const item of items) {
    if (item === null) continue;
    if (typeof item === 'object' || (typeof item === 'number' && !Number.isSafeInteger(item))) return null;
    texts.push(String(item as string | number | boolean));
  }
  return given(texts);
}

function given(texts: readonly string[]): readonly string[] {
  return [...new Set(texts)].filter((text) => text !== '');
}

/** Whether two products gave the same answer: rows in any order, sums of doubles apart in their last digits at most. */

export type Cells = readonly (string | number | null)[];

export function sameRows(what: string, ours: readonly Cells[], theirs: readonly Cells[]): void {
  const [a, b] = [ours, theirs].map((rows) => rows.toSorted(byTexts));
  const same =
    a!.length === b!.length &&
    a!.every((row, r) => row.length === b![r]!.length && row.every((cell, c) => near(cell, b![r]![c]!)));
  if (same) return;
  throw new Error(`${what}: answers differ\n${JSON.stringify(a!.slice(0, 3))}\n${JSON.stringify(b!.slice(0, 3))}`);
}

/** Cells of a JSON reply, each row in the order of its columns. */
export function replyRows(text: string): Cells[] {
  const { rows, columns } = JSON.parse(text) as { rows: Record<string, string | number | null>[]; columns: string[] };
  return rows.map((row) => columns.map((column) => row[column]!));
}

function near(a: string | number | null, b: string | number | null): boolean {
  if (typeof a !== 'number' || typeof b !== 'number') return a === b;
  return Math.abs(a - b) <= 1e-9 * Math.max(1, Math.abs(a));
}

/** Grouping keys are texts or whole numbers and come first, so that rounding changes no order. */
function byTexts(a: Cells, b: Cells): number {
  for (let i = 0; i < a.length; i++) {
    const [left, right] = [String(a[i]), String(b[i])];
    if (left !== right) return left < right ? -1 : 1;
  }
  return 0;
}

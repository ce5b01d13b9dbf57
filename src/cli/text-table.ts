/** Rows as an aligned text table for a terminal. Instants of row fields are shown as ISO-8601. */
import { formatInstant } from '../log/values/timestamp.ts';
import { systemColumns } from '../log/values/value.ts';

const widest = 48;

export function renderTable(columns: readonly string[], rows: readonly Readonly<Record<string, unknown>>[]): string {
  const cells = rows.map((row) => columns.map((column) => show(column, row[column])));
  const widths = columns.map((column, i) =>
    Math.min(
      widest,
      cells.reduce((width, line) => Math.max(width, line[i]!.length), column.length),
    ),
  );
  const line = (texts: readonly string[]): string =>
    texts
      .map((text, i) => (text.length > widths[i]! ? `${text.slice(0, widths[i]! - 1)}…` : text.padEnd(widths[i]!)))
      .join('  ')
      .trimEnd();
  return [line(columns), line(widths.map((width) => '-'.repeat(width))), ...cells.map(line), ''].join('\n');
}

function show(column: string, value: unknown): string {
  if (value === null || value === undefined) return '';
  const instant = (systemColumns as Readonly<Record<string, string>>)[column] === 'timestamp';
  if (instant && (typeof value === 'bigint' || typeof value === 'number')) return formatInstant(BigInt(value));
  if (typeof value === 'string') return value;
  if (typeof value === 'bigint') return value.toString();
  return JSON.stringify(value);
}

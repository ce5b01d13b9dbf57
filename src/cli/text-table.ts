/** Rows as an aligned text table for a terminal. Instants of row fields are shown as ISO-8601. */
import { formatInstant } from '../log/values/timestamp.ts';
import { systemColumns } from '../log/values/value.ts';

const columnWidthMax = 48;

export function renderTable(columnNames: readonly string[], tableRows: readonly Readonly<Record<string, unknown>>[]): string {
  const tableCells = tableRows.map((tableRow) => columnNames.map((tableColumn) => cellText(tableColumn, tableRow[tableColumn])));
  const columnWidths = columnNames.map((tableColumn, i) =>
    Math.min(
      columnWidthMax,
      tableCells.reduce((columnWidth, tableLine) => Math.max(columnWidth, tableLine[i]!.length), tableColumn.length),
    ),
  );
  const line = (lineTexts: readonly string[]): string =>
    lineTexts
      .map((lineCell, i) =>
        lineCell.length > columnWidths[i]! ? `${lineCell.slice(0, columnWidths[i]! - 1)}…` : lineCell.padEnd(columnWidths[i]!),
      )
      .join('  ')
      .trimEnd();
  return [line(columnNames), line(columnWidths.map((columnWidth) => '-'.repeat(columnWidth))), ...tableCells.map(line), ''].join(
    '\n',
  );
}

function cellText(columnName: string, cellValue: unknown): string {
  if (cellValue === null || cellValue === undefined) return '';
  const isInstantColumn = (systemColumns as Readonly<Record<string, string>>)[columnName] === 'timestamp';
  if (isInstantColumn && (typeof cellValue === 'bigint' || typeof cellValue === 'number'))
    return formatInstant(BigInt(cellValue));
  if (typeof cellValue === 'string') return cellValue;
  if (typeof cellValue === 'bigint') return cellValue.toString();
  return JSON.stringify(cellValue);
}

/**
 * Lines of a file on which rows begin, counted from 1 as editors do; rows are counted as ingest counts them: from 0, without
 * blank lines and without the header of a CSV. A text in quotes may hold line ends.
 */
import { createReadStream } from 'node:fs';

const [newlineByte, carriageReturnByte, spaceByte, tabByte, quoteByte, bracketByte, braceByte] = [
  0x0a, 0x0d, 0x20, 0x09, 0x22, 0x5b, 0x7b,
];

const jsonRowsWrapper = /^[^"]{0,20}"rows"\s*:\s*\[/;
const byteOrderMark = [0xef, 0xbb, 0xbf];

/** By row; null for a JSON array or `{"rows": […]}`, whose rows have no lines. `hasHeader`: a CSV begins with one. */
export async function linesOf(
  ingestedFile: string,
  soughtRows: readonly number[],
  hasHeader: boolean,
): Promise<Map<number, number> | null> {
  const wantedRows = new Set(soughtRows);
  const lineByRow = new Map<number, number>();
  let fileFormat: 'csv' | 'ndjson' | null = null;
  let [fileRow, fileLine, rowBeganLine, isBlankLine, isQuoted] = [0, 1, 1, true, false];
  for await (const fileChunk of createReadStream(ingestedFile)) {
    if (fileFormat === null && jsonRowsWrapper.test((fileChunk as Buffer).toString('latin1', 0, 1_000))) return null;
    for (const fileByte of fileChunk as Buffer) {
      if (fileFormat === null && isBlankLine && fileByte === bracketByte) return null;
      if (fileByte === quoteByte && fileFormat === 'csv') isQuoted = !isQuoted;
      const isSpace =
        fileByte === spaceByte ||
        fileByte === tabByte ||
        fileByte === carriageReturnByte ||
        (fileFormat === null && byteOrderMark.includes(fileByte));
      if (fileByte === newlineByte) {
        fileLine++;
        if (isQuoted) continue;
        if (!isBlankLine && wantedRows.has(fileRow)) lineByRow.set(fileRow, rowBeganLine);
        if (!isBlankLine) fileRow++;
        [rowBeganLine, isBlankLine] = [fileLine, true];
      } else if (isBlankLine && !isSpace) {
        if (fileFormat === null) {
          fileFormat = fileByte === braceByte ? 'ndjson' : 'csv';
          if (fileFormat === 'csv' && hasHeader) fileRow = -1;
          isQuoted = fileFormat === 'csv' && fileByte === quoteByte;
        }
        isBlankLine = false;
      }
    }
  }
  if (!isBlankLine && wantedRows.has(fileRow)) lineByRow.set(fileRow, rowBeganLine);
  return lineByRow;
}

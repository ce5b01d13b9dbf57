/**
 * Lines of a file on which rows begin, counted from 1 as editors do; rows are counted as ingest counts them: from 0, without
 * blank lines and without the header of a CSV. A text in quotes may hold line ends.
 */
import { createReadStream } from 'node:fs';

const [newline, carriageReturn, space, tab, quote, bracket, brace] = [0x0a, 0x0d, 0x20, 0x09, 0x22, 0x5b, 0x7b];

const wrapper = /^[^"]{0,20}"rows"\s*:\s*\[/;
const byteOrderMark = [0xef, 0xbb, 0xbf];

/** By row; null for a JSON array or `{"rows": […]}`, whose rows have no lines. `header`: a CSV begins with one. */
export async function linesOf(file: string, rows: readonly number[], header: boolean): Promise<Map<number, number> | null> {
  const wanted = new Set(rows);
  const lineByRow = new Map<number, number>();
  let kind: 'csv' | 'ndjson' | null = null;
  let [row, line, began, blank, quoted] = [0, 1, 1, true, false];
  for await (const chunk of createReadStream(file)) {
    if (kind === null && wrapper.test((chunk as Buffer).toString('latin1', 0, 1_000))) return null;
    for (const byte of chunk as Buffer) {
      if (kind === null && blank && byte === bracket) return null;
      if (byte === quote && kind === 'csv') quoted = !quoted;
      const isSpace =
        byte === space || byte === tab || byte === carriageReturn || (kind === null && byteOrderMark.includes(byte));
      if (byte === newline) {
        line++;
        if (quoted) continue;
        if (!blank && wanted.has(row)) lineByRow.set(row, began);
        if (!blank) row++;
        [began, blank] = [line, true];
      } else if (blank && !isSpace) {
        if (kind === null) {
          kind = byte === brace ? 'ndjson' : 'csv';
          if (kind === 'csv' && header) row = -1;
          quoted = kind === 'csv' && byte === quote;
        }
        blank = false;
      }
    }
  }
  if (!blank && wanted.has(row)) lineByRow.set(row, began);
  return lineByRow;
}

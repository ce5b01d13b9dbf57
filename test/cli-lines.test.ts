/** Rows by the lines of their file, as an editor counts them. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { linesOf } from '../src/cli/file-lines.ts';
import { readIngest } from '../src/planner/formats/ingest-reader.ts';

const home = mkdtempSync(join(tmpdir(), 'annals-lines-'));
afterAll(() => rmSync(home, { recursive: true, force: true }));

test.each([
  ['NDJSON, with blank lines', '{"id":"a"}\n\n  \n{"id":\n{"id":"b"}\nzz', true, [4, 6]],
  ['CSV: the header is line 1', 'id,n\na,1\nb,x,y\n', true, [3]],
  ['CSV, with blank lines and line ends within quotes', '\r\nid,n\r\n\r\n"q\r\n""r""",2\r\nc,1,2\r\n\r\nd,1,2', true, [6, 8]],
  ['CSV that begins with a quote', '"i""d",n\n"a\nb,1\n",2\nc,1,2\n', true, [5]],
])('%s', async (_, text, header, lines) => {
  const file = join(home, 'rows');
  writeFileSync(file, text);
  async function* bytes(): AsyncGenerator<Uint8Array> {
    yield Buffer.from(text);
  }
  const refused: number[] = [];
  for await (const batch of readIngest(bytes(), { definition: null, batchRows: 1_000, batchBytes: 1e6 }))
    refused.push(...batch.rejections.map(({ index }) => index));
  const found = await linesOf(file, refused, header);
  expect(refused.map((row) => found?.get(row))).toEqual(lines);
});

test('without a header the first line is the first row; rows of an array have no line', async () => {
  const file = join(home, 'plain');
  writeFileSync(file, 'a,1\nb,2\n');
  expect([...(await linesOf(file, [0, 1], false))!]).toEqual([
    [0, 1],
    [1, 2],
  ]);
  writeFileSync(file, ' [{"id":\n1},{}]');
  expect(await linesOf(file, [1], true)).toBeNull();
  writeFileSync(file, '\ufeff{\n "rows": [\n{},\n5]}');
  expect(await linesOf(file, [1], true)).toBeNull();
  writeFileSync(file, '\ufeff{}\n5\n');
  expect((await linesOf(file, [1], true))?.get(1)).toBe(2);
});

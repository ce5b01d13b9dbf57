/** Searches of a block by an index that covers more than the block shows. */
import { expect, test } from 'vitest';
import { VisibleTexts } from '../../src/governance/text-search/visible-texts.ts';
import { parseTextQuery } from '../../src/governance/text-search/text-query.ts';
import type { Vector } from '../../src/log/values/columns.ts';
import { finishSteps } from '../../src/log/threads/stepping-job.ts';
import { buildTextIndex } from '../../src/projections/rows/indexes/text/text-builder.ts';
import { TextIndex } from '../../src/projections/rows/indexes/text/text-index.ts';

const heap = new TextEncoder().encode('foxfoxfoxfox');
const cells = { rows: 4, offsets: Uint32Array.of(0, 3, 6, 9, 12), heap, codes: null, absent: null };
const index = TextIndex.open(finishSteps(buildTextIndex(cells, 'english')));
const rules = { language: 'english', indexed: 'english', stopWords: new Set<string>(), synonyms: new Map() };
const query = parseTextQuery('fox', { mode: 'ANY', typo: null, rules });

test.each<[string, Vector | undefined, number, number]>([
  ['rows that the block does not show are in no answer', undefined, 9, 0b1010],
  ['nor are those of it that the reader leaves out', undefined, 1, 0b0010],
  ['nor cells that are masked', { kind: 'bool', values: new Uint8Array(4), nulls: Uint8Array.of(0, 1, 0, 0) }, 9, 0b1000],
])('%s', (_, masked, count, bits) => {
  const block = { columns: [], selection: Int32Array.of(1, 3), first: 0, count: 2, scanned: 2, path: 0 };
  const stored = { base: 0, rows: 4, index: () => index };
  const texts = new VisibleTexts(block, { segmentKey: {}, rows: null }, stored, { bits: null, maskedCells: () => masked });
  const search = texts.open(['text'], count)!.search(['text'], [query]);
  expect(search.matching()).toEqual(Int32Array.of(bits));
  const shown = bits.toString(2).replaceAll('0', '').length;
  expect([search.frequency(0), search.figures().rows]).toEqual([shown, shown]);
});

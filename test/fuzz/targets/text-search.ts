/**
 * The query language of MATCH and the tokeniser on any bytes, in one of the modes. What must hold: nothing but REL_INVALID is thrown, what is
 * found by an index of some texts is what each text says by itself, and terms are made of terms.
 */
import { assert, ServiceError } from '../../../src/errors.ts';
import { TextMatcher } from '../../../src/planner/expressions/match-text.ts';
import { Highlighter } from '../../../src/planner/expressions/highlight.ts';
import { matchModes, parseTextQuery, rarestOf, typoPresets } from '../../../src/governance/text-search/text-query.ts';
import { BlockSearch } from '../../../src/governance/text-search/block-search.ts';
import { finishSteps } from '../../../src/log/threads/stepping-job.ts';
import { buildTextIndex, type TextCells } from '../../../src/projections/rows/indexes/text/text-builder.ts';
import { jsonTexts } from '../../../src/projections/rows/indexes/text/json-texts.ts';
import { TextIndex } from '../../../src/projections/rows/indexes/text/text-index.ts';
import { tokensOf } from '../../../src/projections/rows/indexes/text/tokens.ts';

export const name = 'text-search';

const texts = ['The quick brownFox, HTTPServer2', 'knowledge of the 日本語 text', 'ＦＵＬＬ ﬁne é e\u0301 İstanbul', '', 'x'];
const queries = [
  'brown fox',
  '*ledge kno* *er*',
  'a AND b OR NOT c',
  'NOT NOT AND',
  '***',
  '語',
  '日本',
  'éé',
  'İ',
  '\ud800 x',
  'A'.repeat(90),
];

const typo = typoPresets.forgiving;
const synonyms = new Map([
  ['fox', ['text', 'quick']],
  ['kno', ['x']],
]);
const rules = { language: 'english', indexed: 'english', stopWords: new Set(['the', 'a']), synonyms };

export function seeds(): Uint8Array[] {
  const encoder = new TextEncoder();
  return [...texts, ...queries].map((text) => encoder.encode(text));
}

export function run(bytes: Uint8Array): void {
  const text = new TextDecoder().decode(bytes);
  for (const token of tokensOf(text)) assert(token !== '' && !/[\s*]/u.test(token), 'a term is a word');
  const all = [...texts, text.slice(0, 200)];
  const cells = encoded(all);
  const index = TextIndex.open(finishSteps(buildTextIndex(cells, 'english')));
  for (const [row, each] of all.entries()) assert(index.lengths[row] === tokensOf(each).length, 'both ways to terms are one');
  const mode = matchModes[bytes.length % matchModes.length]!;
  let matcher: TextMatcher;
  try {
    matcher = new TextMatcher(text, { mode, typo, rules });
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== 'REL_INVALID') throw error;
    return;
  }
  for (const each of all) {
    const short = each.slice(0, 500);
    const marked = new Highlighter([matcher]).mark(short);
    assert(
      short.includes('<') || marked.replaceAll(/<\/?em>/g, '') === short.normalize('NFKC'),
      'marks add to a text and no more',
    );
  }
  const query = parseTextQuery(text, { mode, typo, rules });
  /** Two texts of each row as strings of JSON, whose members are named by words. */
  const pairs = all.map((each, row) => [all[(row + 1) % all.length]!, each]);
  const jsons = pairs.map(([one, other]) => JSON.stringify({ brown: one, fox: [1, { kno: other }] }, null, bytes.length % 3));
  for (const [row, json] of jsons.entries()) {
    const [texts, shown] = [jsonTexts(json), new Highlighter([matcher]).ofJson(json)];
    assert(texts.join('\0') === pairs[row]!.map((each) => Buffer.from(each).toString()).join('\0'), 'the strings, and no names');
    assert(
      texts.some((each) => shown === new Highlighter([matcher]).mark(each)),
      'one of the strings is shown',
    );
  }
  for (const isJson of [false, true]) {
    const rows = isJson ? jsons : all;
    const own = isJson ? TextIndex.open(finishSteps(buildTextIndex({ ...encoded(rows), isJson }, 'english'))) : index;
    const search = new BlockSearch([{ index: own, shown: null }], [query]);
    const found = search.matching(
      query.shape === 'rarest' ? rarestOf(query.leaves.map((_, leaf) => search.frequency(leaf))) : query.shape,
    );
    if (query.shape === 'rarest') continue;
    for (const [row, each] of rows.entries()) {
      const isFound = ((found[row >>> 5]! >>> (row & 31)) & 1) === 1;
      assert(
        matcher.matches(each, isJson) === isFound,
        `${mode}: index and ${isJson ? 'JSON' : 'text'} agree on row ${row}: ${JSON.stringify([text, each, isFound])}`,
      );
      if (!isJson || (query.shape !== 'phrase' && query.shape !== 'any')) continue;
      assert(
        isFound === pairs[row]!.some((one) => matcher.matches(one, false)),
        `${mode}: one of the strings says it, row ${row}`,
      );
    }
  }
}

function encoded(all: readonly string[]): TextCells {
  const parts = all.map((each) => new TextEncoder().encode(each));
  const offsets = new Uint32Array(all.length + 1);
  for (const [row, part] of parts.entries()) offsets[row + 1] = offsets[row]! + part.length;
  return { rows: all.length, offsets, heap: new Uint8Array(Buffer.concat(parts)), codes: null, absent: null };
}

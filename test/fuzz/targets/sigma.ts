/**
 * Sigma rules on any bytes. What must hold: a document is accepted or refused with a code and a detail; what is accepted can be
 * compiled and judges events.
 */
import { readFileSync } from 'node:fs';
import { assert } from '../../../src/errors.ts';
import { parseSigma, splitDocuments } from '../../../src/planner/continuous/sigma/parse-rules.ts';
import { judge, columnsOf, type Event, placeholders } from '../../planner/continuous/sigma/worlds.ts';

export const name = 'sigma';

const events: readonly Event[] = [
  {
    Image: 'C:\\Windows\\System32\\CERTUTIL.EXE',
    CommandLine: 'certutil -urlcache -f http://1.2.3.4/x',
    EventID: 4625,
    d: { a: ['x', 1] },
  },
  { Image: '', CommandLine: 'a\0b– —', EventID: -1, d: {} },
  { Image: 'straße ΟΔΟΣ 😀' },
];
const rows = columnsOf(events);

export function seeds(): Uint8Array[] {
  const text = readFileSync(new URL('../../../fixtures/sigma/rules.yml', import.meta.url), 'utf8');
  const encoder = new TextEncoder();
  return [...[...splitDocuments(text)].filter((_, i) => i % 3 === 0), correlation].map((each) => encoder.encode(each));
}

export function run(bytes: Uint8Array): void {
  const text = new TextDecoder().decode(bytes);
  for (const document of splitDocuments(text)) {
    const parsed = parseSigma(document, placeholders);
    if (parsed.document === null) {
      assert(parsed.error.detail !== '', 'a refusal says why');
    } else if (parsed.document.kind === 'rule') {
      judge([parsed.document], rows);
    }
  }
}

const correlation = `title: c
correlation:
  type: value_count
  rules: [a, b]
  group-by: [User]
  timespan: 15m
  condition: {gte: 3, field: Computer}
  aliases: {User: {a: SubjectUserName}}
`;

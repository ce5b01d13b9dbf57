/** STYLE_FINGERPRINT: how somebody writes. Source: specification, "SQL dialect", the table of operators. */
import type { Steps } from '../../../graph/stepped-sort.ts';
import type { TableFunction } from '../../../calls/table-function.ts';
import { type DomainCall, domainFunction, type DomainRow } from '../domain-function.ts';
import { deltaOf, type Style, styleLikeness, styleOf, styleWordsMin, trigramLikeness } from './account-signals.ts';
import { textArgument, textRoles, textSubject } from './scored-posts.ts';

export const styleFingerprint: TableFunction = domainFunction({
  name: 'STYLE_FINGERPRINT',
  summary: 'A digest of how a text, a post or the posts of an account are written, or how like another they are.',
  method: 'burrows-delta/1',
  arguments: [
    textArgument,
    { name: 'COMPARE', kind: 'key', summary: 'id of a post or an account, or a text, that it is compared with' },
  ],
  roles: textRoles,
  columns: [
    { name: 'digest', type: 'string' },
    { name: 'delta', type: 'number' },
  ],
  run: fingerprint,
});

function* fingerprint(call: DomainCall): Steps<readonly DomainRow[]> {
  const subject = yield* textSubject(call, call.text('X')!);
  const style = styleOf(subject.texts);
  const { nodeId, type, systemFrom } = subject;
  const compare = call.text('COMPARE');
  const about = { nodeId, type, systemFrom };
  const other = compare === undefined ? null : styleOf((yield* textSubject(call, compare)).texts);
  const short = [style, other].find((each) => each !== null && each.words < styleWordsMin);
  if (short) {
    return [
      { ...about, cells: [null, null], score: null, evidence: { why: `fewer than ${styleWordsMin} words`, words: short.words } },
    ];
  }
  const digest = digestOf(style);
  if (other === null) return [{ ...about, cells: [digest, null], score: null, evidence: { words: style.words } }];
  const delta = deltaOf(style, other);
  const evidence = { words: style.words, other_words: other.words, trigrams: trigramLikeness(style, other) };
  return [{ ...about, cells: [digest, delta], score: styleLikeness(style, other), evidence }];
}

/** One letter for each function word: how often it stands, in steps of ten in a thousand. */
function digestOf({ frequencies }: Style): string {
  return Array.from(frequencies, (perThousand) => Math.min(35, Math.round(perThousand / 10)).toString(36)).join('');
}

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
  run: fingerprintStyle,
});

function* fingerprintStyle(styleCall: DomainCall): Steps<readonly DomainRow[]> {
  const styleSubject = yield* textSubject(styleCall, styleCall.text('X')!);
  const subjectStyle = styleOf(styleSubject.texts);
  const { nodeId, type, systemFrom } = styleSubject;
  const comparedKey = styleCall.text('COMPARE');
  const subjectCells = { nodeId, type, systemFrom };
  const comparedStyle = comparedKey === undefined ? null : styleOf((yield* textSubject(styleCall, comparedKey)).texts);
  const shortStyle = [subjectStyle, comparedStyle].find(
    (comparableStyle) => comparableStyle !== null && comparableStyle.words < styleWordsMin,
  );
  if (shortStyle) {
    return [
      {
        ...subjectCells,
        cells: [null, null],
        score: null,
        evidence: { why: `fewer than ${styleWordsMin} words`, words: shortStyle.words },
      },
    ];
  }
  const subjectDigest = styleDigest(subjectStyle);
  if (comparedStyle === null)
    return [{ ...subjectCells, cells: [subjectDigest, null], score: null, evidence: { words: subjectStyle.words } }];
  const styleDelta = deltaOf(subjectStyle, comparedStyle);
  const styleEvidence = {
    words: subjectStyle.words,
    other_words: comparedStyle.words,
    trigrams: trigramLikeness(subjectStyle, comparedStyle),
  };
  return [
    {
      ...subjectCells,
      cells: [subjectDigest, styleDelta],
      score: styleLikeness(subjectStyle, comparedStyle),
      evidence: styleEvidence,
    },
  ];
}

/** One letter for each function word: how often it stands, in steps of ten in a thousand. */
function styleDigest({ frequencies }: Style): string {
  return Array.from(frequencies, (perThousand) => Math.min(35, Math.round(perThousand / 10)).toString(36)).join('');
}

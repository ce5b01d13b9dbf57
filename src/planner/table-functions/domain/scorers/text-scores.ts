/** SENTIMENT_SCORE, STANCE_SCORE, BIAS_SCORE: what texts say and how. Source: specification, "SQL dialect", the table of operators. */
import type { Steps } from '../../../graph/stepped-sort.ts';
import type { TableFunction } from '../../../calls/table-function.ts';
import { type DomainCall, domainFunction, type DomainRow } from '../domain-function.ts';
import { clausesOf, piecesOf, sentimentOf } from './sentiment.ts';
import { textArgument, textRoles, type TextSubject, textSubject, wordsOf } from './scored-posts.ts';

export const sentimentScore: TableFunction = domainFunction({
  name: 'SENTIMENT_SCORE',
  summary: 'How glad or angry a text, a post or the posts of an account are, from -1 to 1.',
  method: 'vader/2',
  arguments: [textArgument],
  roles: textRoles,
  columns: [{ name: 'texts', type: 'integer' }],
  run: (call) => scoreSubjectTexts(call, (texts) => meanSentiment(call, texts)),
});

export const stanceScore: TableFunction = domainFunction({
  name: 'STANCE_SCORE',
  summary: 'How a text, a post or the posts of an account speak of a target, from -1 to 1.',
  method: 'clauses/2',
  arguments: [
    textArgument,
    { name: 'TARGET', kind: 'text', required: true, summary: 'what is spoken of: only clauses that name it count' },
  ],
  roles: textRoles,
  columns: [{ name: 'texts', type: 'integer' }],
  run: stanceRows,
});

export const biasScore: TableFunction = domainFunction({
  name: 'BIAS_SCORE',
  summary: 'The share of loaded, hedging and factive words in a text, a post or the posts of an account.',
  method: 'word-lists/1',
  arguments: [textArgument],
  roles: textRoles,
  columns: [{ name: 'texts', type: 'integer' }],
  run: (call) => scoreSubjectTexts(call, textBias),
});

interface TextScore {
  readonly score: number | null;
  readonly evidence: DomainRow['evidence'];
}

function* scoreSubjectTexts(
  scoreCall: DomainCall,
  scoreTextOf: (texts: readonly string[]) => Steps<TextScore>,
): Steps<readonly DomainRow[]> {
  const scoredSubject: TextSubject = yield* textSubject(scoreCall, scoreCall.text('X')!);
  scoreCall.look(scoredSubject.texts.reduce((sum, scoredText) => sum + scoredText.length, 0));
  const { score, evidence } = yield* scoreTextOf(scoredSubject.texts);
  const { nodeId, type, texts, systemFrom } = scoredSubject;
  return [{ nodeId, type, cells: [BigInt(texts.length)], score, evidence, systemFrom }];
}

/** The mean of the texts with a known word. */
function* meanSentiment(sentimentCall: DomainCall, sentimentTexts: Iterable<string>): Steps<TextScore> {
  const sentimentWords = new Set<string>();
  let compoundSum = 0;
  let scoredTextCount = 0;
  for (const sentimentText of sentimentTexts) {
    sentimentCall.look(sentimentText.length * sentimentLooksOfLetter);
    const { compound, words: knownWords } = yield* sentimentOf(sentimentText, sentimentWordsShown - sentimentWords.size);
    if (compound === null) continue;
    compoundSum += compound;
    scoredTextCount++;
    for (const knownWord of knownWords) sentimentWords.add(knownWord);
  }
  if (scoredTextCount === 0) return { score: null, evidence: { why: 'no known word' } };
  return { score: compoundSum / scoredTextCount, evidence: { parts: scoredTextCount, words: [...sentimentWords] } };
}

const sentimentWordsShown = 20;
const sentimentLooksOfLetter = 20;

function* stanceRows(stanceCall: DomainCall): Steps<readonly DomainRow[]> {
  const targetWords = wordsOf(stanceCall.text('TARGET')!);
  if (targetWords.length === 0) throw stanceCall.refuse('TARGET', 'has no word');
  return yield* scoreSubjectTexts(stanceCall, function* (texts) {
    const targetClauses: string[] = [];
    for (const text of texts) {
      for (const textPiece of piecesOf(text)) {
        targetClauses.push(...clausesOf(textPiece).filter((targetClause) => namesTarget(wordsOf(targetClause), targetWords)));
        yield;
      }
    }
    if (targetClauses.length === 0) return { score: null, evidence: { why: 'no clause names the target' } };
    const { score, evidence } = yield* meanSentiment(stanceCall, targetClauses);
    return { score, evidence: { clauses: targetClauses.length, ...(evidence as object) } };
  });
}

function namesTarget(clauseWords: readonly string[], targetWords: readonly string[]): boolean {
  return clauseWords.some((_, firstWord) =>
    targetWords.every((word, i) => clauseWords[firstWord + i] === word || clauseWords[firstWord + i] === `${word}'s`),
  );
}

const biasWordKinds = ['loaded', 'hedging', 'factive'] as const;
const biasedWords: Readonly<Record<(typeof biasWordKinds)[number], ReadonlySet<string>>> = {
  loaded: new Set(
    (
      'regime thug thugs radical radicals extremist extremists fanatic fanatics elite elites puppet puppets corrupt outrageous shameful disgraceful ' +
      'traitor traitors treason invasion invaders hordes swarm mob mobs brainwashed propaganda sheeple slaughter butcher butchers tyrant tyranny dictator ' +
      'scandalous explosive bombshell shocking horrific disastrous catastrophic evil wicked vile sinister insidious blatant brazen rampant so-called ' +
      'hysterical lunatic lunatics insane crazy madness heroic glorious patriots patriotic freedom-loving devastating destroyed slammed blasted obliterated ' +
      'cronies henchmen witch-hunt hoax sham crooked woke leftist rightwing leftwing globalist mainstream agenda'
    ).split(' '),
  ),
  hedging: new Set(
    (
      'maybe perhaps possibly probably apparently allegedly reportedly seemingly supposedly presumably likely unlikely might may could would seems seem ' +
      'appears appear suggests suggest somewhat arguably roughly approximately generally usually often sometimes rumored rumoured purported purportedly ' +
      'claims claimed claim assume assumes believed think thinks guess'
    ).split(' '),
  ),
  factive: new Set(
    (
      'obviously clearly undeniably undoubtedly certainly surely everyone everybody nobody always never truth proven proves prove exposed exposes reveal ' +
      'reveals revealed admit admits admitted realize realise realizes know knows known fact facts definitely indisputable unquestionably inevitably ' +
      'naturally evidently confirms confirmed'
    ).split(' '),
  ),
};
const biasScoreWordsMin = 5;

function* textBias(biasTexts: readonly string[]): Steps<TextScore> {
  const biasCounts = { loaded: 0, hedging: 0, factive: 0 };
  let biasWordCount = 0;
  for (const text of biasTexts) {
    for (const textPiece of piecesOf(text)) {
      const tokenTexts = textPiece.toLowerCase().match(/[\p{L}\p{N}]+(?:['’-][\p{L}]+)*/gu) ?? [];
      biasWordCount += tokenTexts.length;
      for (const biasKind of biasWordKinds)
        biasCounts[biasKind] += tokenTexts.filter((word) => biasedWords[biasKind].has(word)).length;
      yield;
    }
  }
  if (biasWordCount < biasScoreWordsMin)
    return { score: null, evidence: { why: `fewer than ${biasScoreWordsMin} words`, words: biasWordCount } };
  const biasedWordCount = biasCounts.loaded + biasCounts.hedging + biasCounts.factive;
  return { score: Math.min(1, biasedWordCount / biasWordCount), evidence: { words: biasWordCount, ...biasCounts } };
}

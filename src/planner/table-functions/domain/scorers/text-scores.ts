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
  run: (call) => scoreTexts(call, (texts) => meanOf(call, texts)),
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
  run: stance,
});

export const biasScore: TableFunction = domainFunction({
  name: 'BIAS_SCORE',
  summary: 'The share of loaded, hedging and factive words in a text, a post or the posts of an account.',
  method: 'word-lists/1',
  arguments: [textArgument],
  roles: textRoles,
  columns: [{ name: 'texts', type: 'integer' }],
  run: (call) => scoreTexts(call, biasOf),
});

interface Scored {
  readonly score: number | null;
  readonly evidence: DomainRow['evidence'];
}

function* scoreTexts(call: DomainCall, scoreOf: (texts: readonly string[]) => Steps<Scored>): Steps<readonly DomainRow[]> {
  const subject: TextSubject = yield* textSubject(call, call.text('X')!);
  call.look(subject.texts.reduce((sum, text) => sum + text.length, 0));
  const { score, evidence } = yield* scoreOf(subject.texts);
  const { nodeId, type, texts, systemFrom } = subject;
  return [{ nodeId, type, cells: [BigInt(texts.length)], score, evidence, systemFrom }];
}

/** The mean of the texts with a known word. */
function* meanOf(call: DomainCall, texts: Iterable<string>): Steps<Scored> {
  const words = new Set<string>();
  let sum = 0;
  let parts = 0;
  for (const text of texts) {
    call.look(text.length * looksOfLetter);
    const { compound, words: known } = yield* sentimentOf(text, wordsShown - words.size);
    if (compound === null) continue;
    sum += compound;
    parts++;
    for (const word of known) words.add(word);
  }
  if (parts === 0) return { score: null, evidence: { why: 'no known word' } };
  return { score: sum / parts, evidence: { parts, words: [...words] } };
}

const wordsShown = 20;
const looksOfLetter = 20;

function* stance(call: DomainCall): Steps<readonly DomainRow[]> {
  const target = wordsOf(call.text('TARGET')!);
  if (target.length === 0) throw call.refuse('TARGET', 'has no word');
  return yield* scoreTexts(call, function* (texts) {
    const clauses: string[] = [];
    for (const text of texts) {
      for (const piece of piecesOf(text)) {
        clauses.push(...clausesOf(piece).filter((clause) => names(wordsOf(clause), target)));
        yield;
      }
    }
    if (clauses.length === 0) return { score: null, evidence: { why: 'no clause names the target' } };
    const { score, evidence } = yield* meanOf(call, clauses);
    return { score, evidence: { clauses: clauses.length, ...(evidence as object) } };
  });
}

function names(words: readonly string[], target: readonly string[]): boolean {
  return words.some((_, first) => target.every((word, i) => words[first + i] === word || words[first + i] === `${word}'s`));
}

const biasKinds = ['loaded', 'hedging', 'factive'] as const;
const biased: Readonly<Record<(typeof biasKinds)[number], ReadonlySet<string>>> = {
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
const biasWordsMin = 5;

function* biasOf(texts: readonly string[]): Steps<Scored> {
  const counts = { loaded: 0, hedging: 0, factive: 0 };
  let words = 0;
  for (const text of texts) {
    for (const piece of piecesOf(text)) {
      const tokenTexts = piece.toLowerCase().match(/[\p{L}\p{N}]+(?:['’-][\p{L}]+)*/gu) ?? [];
      words += tokenTexts.length;
      for (const kind of biasKinds) counts[kind] += tokenTexts.filter((word) => biased[kind].has(word)).length;
      yield;
    }
  }
  if (words < biasWordsMin) return { score: null, evidence: { why: `fewer than ${biasWordsMin} words`, words } };
  const all = counts.loaded + counts.hedging + counts.factive;
  return { score: Math.min(1, all / words), evidence: { words, ...counts } };
}

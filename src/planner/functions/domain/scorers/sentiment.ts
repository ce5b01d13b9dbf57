/**
 * Sentiment by VADER's rules: words with a valence from −4 to 4, which a word before them strengthens, weakens or turns round,
 * capitals and exclamation marks stress, and "but" weighs against what stands before it. The list of words is our own. Pure.
 */

export interface Sentiment {
  /** From −1 to 1; null where no word is known. */
  readonly compound: number | null;
  readonly words: readonly string[];
}

function lexiconOf(lines: Readonly<Record<string, string>>): ReadonlyMap<string, number> {
  return new Map(
    Object.entries(lines).flatMap(([valence, words]) => words.split(' ').map((word) => [word, Number(valence)] as const)),
  );
}

const lexicon = lexiconOf({
  '3.2':
    'love loved loves loving wonderful excellent amazing awesome fantastic perfect brilliant best magnificent superb outstanding masterpiece ecstatic ' +
    'delighted marvelous marvellous triumph glorious exceptional extraordinary flawless phenomenal adore adored 😍 ❤ 🥰',
  '2.6':
    'great beautiful happy happiness happily joy joyful delightful terrific lovely winner win wins won winning victory success successful thrilled excited ' +
    'exciting incredible impressive admire admired hero heroic hilarious charming elegant gorgeous stunning splendid blessed 😊 😀 😃 🎉 👏',
  '1.9':
    'good nice enjoy enjoyed enjoys enjoyable fun funny glad pleased pleasure pleasant pleasing grateful thankful thanks thank praise praised proud positive ' +
    'strong strength smart friendly kind kindness generous honest brave courage celebrate celebrated laugh laughed smile smiled smiling cheerful gentle warm ' +
    'fresh freedom free peace peaceful hope hopeful inspire inspired inspiring improve improved improvement improves benefit benefits beneficial support ' +
    'supported supports supportive trust trusted respect respected reliable safe secure recommend recommended worth worthy helpful help helped helps ' +
    'healthy attractive clever wise talent talented skilled gifted comfortable convenient favorite favourite welcome prefer solid 👍 🙂',
  '1.3':
    'like liked likes fine okay ok well better useful clean clear easy easily interesting interested effective efficient fair calm relaxed promising agree ' +
    'agreed agrees approve approved approves accept accepted care cared cares caring gain gains gained growth grow progress rich reward rewarding ' +
    'satisfied satisfying satisfy solution solved solve entertaining bright cool cute top true loyal ready creative advantage advantages',
  '-1.3':
    'boring bored dull slow weak cheap odd strange unclear confusing confused difficult hard problem problems issue issues mistake mistakes concern concerns ' +
    'concerned worried worry doubt doubts doubtful uncertain unsure tired late delay delayed delays miss missed missing mediocre average bland ' +
    'unfortunately annoying annoyed lack lacks lacking limited oppose opposed opposes reject rejected rejects refuse refused deny denied alone lonely ' +
    'uncomfortable inconvenient noisy crowded overpriced expensive predictable forgettable pointless',
  '-1.9':
    'bad sad sadly unhappy disappointed disappointing disappointment poor poorly fail failed fails failure failing wrong worse angry anger upset upsetting ' +
    'broken break damage damaged hurt hurts pain painful loss lose loses losing lost ugly dirty rude unfair unfortunate fear fears afraid scared scary sick ' +
    'ill illness stupid silly dumb foolish lie lies lied lying liar fake false useless waste wasted wasting regret shame ashamed guilty blame blamed ' +
    'crisis threat threaten threatened dangerous danger risk risky complain complained complaint complaints criticise criticised criticize criticism ' +
    'suffer suffered suffering trouble mess messy nasty unpleasant unreliable unsafe violent war enemy enemies dislike disliked frustrating frustrated crash crashed 🙁 👎 😢',
  '-2.6':
    'terrible awful horrible hate hated hates hatred disgusting dreadful pathetic ridiculous nightmare cruel cruelty brutal corrupt corruption fraud crime ' +
    'criminal criminals disaster disastrous destroy destroyed destruction kill killed kills killing death dead die died dies murder murdered attack attacked ' +
    'attacks abuse abused abusive evil vicious toxic outrage outraged outrageous furious miserable misery tragic tragedy betray betrayed betrayal scam 😡 💔 😠',
  '-3.2':
    'worst horrific terrorist terrorism torture tortured rape genocide massacre atrocious abysmal vile despise despised catastrophe catastrophic loathe 🤮',
});

const boosts = new Map<string, number>([
  ...(
    'absolutely amazingly completely considerably decidedly deeply enormously entirely especially exceptionally extremely fully greatly highly hugely incredibly ' +
    'intensely majorly more most particularly purely quite really remarkably so substantially thoroughly totally tremendously unbelievably utterly very'
  )
    .split(' ')
    .map((word) => [word, 0.293] as const),
  ...'almost barely hardly kinda less little marginally occasionally partly scarcely slightly somewhat sorta'
    .split(' ')
    .map((word) => [word, -0.293] as const),
]);

const negations = new Set(
  (
    "not no never none nobody nothing neither nor nowhere without cannot can't don't doesn't didn't isn't aren't wasn't weren't won't wouldn't shouldn't " +
    "couldn't hasn't haven't hadn't ain't cant dont doesnt didnt isnt wasnt wont wouldnt shouldnt couldnt rarely seldom despite"
  ).split(' '),
);

/** VADER's constants, found in ratings: by how much a word before turns, stresses and ends count. */
const turned = -0.74;
const capitals = 0.733;
const spread = 15;

export function sentimentOf(text: string): Sentiment {
  const written = text.replaceAll('’', "'").match(/[\p{L}\p{N}]+(?:'[\p{L}]+)*|\p{Extended_Pictographic}/gu) ?? [];
  const lower = written.map((word) => word.toLowerCase());
  const isShouted = written.some((word) => isCapital(word)) && written.some((word) => /\p{Ll}/u.test(word));
  const valences = lower.map((word, i) => {
    let valence = lexicon.get(word) ?? 0;
    if (valence === 0) return 0;
    // "no problem" negates its neighbour; a "like" that compares says nothing.
    if (
      word === 'like' &&
      i > 0 &&
      ['is', 'was', 'looks', 'looked', 'feels', 'felt', 'are', 'just', 'sounds'].includes(lower[i - 1]!)
    )
      return 0;
    if (isShouted && isCapital(written[i]!)) valence += Math.sign(valence) * capitals;
    for (let back = 1; back <= 3 && back <= i; back++) {
      const before = lower[i - back]!;
      const boost = boosts.get(before);
      if (boost !== undefined && !lexicon.has(before)) valence += Math.sign(valence) * boost * [1, 0.95, 0.9][back - 1]!;
    }
    const window = lower.slice(Math.max(0, i - 3), i);
    const isNegated = window.some((before, at) => negations.has(before) && !(before === 'not' && window[at + 1] === 'only'));
    return isNegated ? valence * turned : valence;
  });
  const known = lower.filter((_, i) => valences[i] !== 0);
  if (known.length === 0) return { compound: null, words: [] };
  const but = lower.findLastIndex((word) => word === 'but' || word === 'however');
  const weighed = valences.map((valence, i) => (but < 0 || i === but ? valence : valence * (i < but ? 0.5 : 1.5)));
  let sum = weighed.reduce((total, valence) => total + valence, 0);
  const stress = Math.min(4, text.split('!').length - 1) * 0.292 + questionStress(text);
  sum += Math.sign(sum) * stress;
  return { compound: sum / Math.sqrt(sum * sum + spread), words: known };
}

function isCapital(word: string): boolean {
  return word.length > 1 && /\p{Lu}/u.test(word) && word === word.toUpperCase();
}

function questionStress(text: string): number {
  const marks = text.split('?').length - 1;
  return marks < 2 ? 0 : marks < 4 ? marks * 0.18 : 0.96;
}

/** Parts of a text that stand for themselves. */
export function clausesOf(text: string): readonly string[] {
  return text.split(/[.;!?\n]+|,\s|\s(?:but|while|whereas|although|though|however)\s/u).filter((clause) => clause.trim() !== '');
}

/** How words of names sound alike over the ways in which scripts are written in Latin letters, and how far two spellings are apart. */

/** In this order. */
const nameRespellings: readonly (readonly [RegExp, string])[] = [
  [/^(mc|mac)(?=[a-z]{3})/, 'mk'],
  [/tsch|tch|tsh|cz|ch/g, '\u00e7'],
  [/shch|sch|sh|sz/g, '\u0161'],
  [/dzh|dj|zh|gi(?=[aou])|j/g, 'j'],
  [/ph/g, 'f'],
  [/kh/g, 'h'],
  [/gh/g, 'g'],
  [/th/g, 't'],
  [/dh/g, 'd'],
  [/ck|q|c/g, 'k'],
  [/ks/g, 'x'],
  [/ts|tz/g, 'z'],
  [/w/g, 'v'],
  [/ff?$/, 'v'],
  [/^ye/, 'e'],
  [/^yu/, 'u'],
  [/^y(?=[^aeiou])/, 'i'],
  [/(?<![iey])[iey]+[yji]+/g, 'i'],
  [/ie|ee|ea/g, 'i'],
  [/ou|oo|uu/g, 'u'],
  [/ae|oe/g, 'e'],
  [/eo/g, 'o'],
  [/aa/g, 'a'],
  [/y(?![aeou])/g, 'i'],
  [/(?<=[aeiou])h(?![aeiou])/g, ''],
  [/(.)\1+/g, '$1'],
];

export function spellingOf(spelledWord: string): string {
  return nameRespellings.reduce(
    (respelledWord, [respelledFrom, respelledTo]) => respelledWord.replace(respelledFrom, respelledTo),
    spelledWord,
  );
}

export function consonantsOf(spelling: string): string {
  return spelling.replace(/^[aeiou]/, 'a').replaceAll(/(?!^)[aeiouy]/g, '');
}

/** Two letters in each other's place are a slip of the hand, seldom another name. */
const turnedLettersCost = 0.6;

/** Rows of the table of distances, and what each letter of the right word costs: written anew by each call. */
let distanceRows = [0, 1, 2, 3].map(() => new Float64Array(32));

/**
 * Changes from one spelling to another: a vowel costs half, and what ends a word, which often says the gender, costs more. Infinity
 * where it is certain that they are more than `distanceMax`.
 */
export function distanceOf(leftSpelling: string, rightSpelling: string, distanceMax = Infinity): number {
  const distanceWidth = rightSpelling.length + 1;
  if (distanceWidth > distanceRows[0]!.length) distanceRows = distanceRows.map(() => new Float64Array(2 * distanceWidth));
  let [rowBefore, distanceRow, earlierRow] = distanceRows as [Float64Array, Float64Array, Float64Array];
  const letterCosts = distanceRows[3]!;
  distanceRow[0] = 0;
  for (let j = 1; j < distanceWidth; j++) {
    letterCosts[j] = letterCostOf(rightSpelling, j - 1);
    distanceRow[j] = distanceRow[j - 1]! + letterCosts[j]!;
  }
  let leastOfRowBefore = 0;
  for (let i = 1; i <= leftSpelling.length; i++) {
    [earlierRow, rowBefore, distanceRow] = [rowBefore, distanceRow, earlierRow];
    const leftLetter = leftSpelling.charCodeAt(i - 1);
    const leftLetterCost = letterCostOf(leftSpelling, i - 1);
    distanceRow[0] = rowBefore[0]! + leftLetterCost;
    let leastOfRow = distanceRow[0]!;
    for (let j = 1; j < distanceWidth; j++) {
      const rightLetter = rightSpelling.charCodeAt(j - 1);
      const swapCost =
        leftLetter === rightLetter
          ? 0
          : areOneSound(leftLetter, rightLetter)
            ? 0.5
            : Math.max(leftLetterCost, letterCosts[j]!) * letterStrangeness(leftLetter, rightLetter);
      let letterCost = Math.min(
        rowBefore[j]! + leftLetterCost,
        distanceRow[j - 1]! + letterCosts[j]!,
        rowBefore[j - 1]! + swapCost,
      );
      const areLettersTurned =
        i > 1 && j > 1 && leftLetter === rightSpelling.charCodeAt(j - 2) && leftSpelling.charCodeAt(i - 2) === rightLetter;
      if (areLettersTurned) letterCost = Math.min(letterCost, earlierRow[j - 2]! + turnedLettersCost);
      distanceRow[j] = letterCost;
      if (letterCost < leastOfRow) leastOfRow = letterCost;
    }
    // Letters in each other's place go back by two rows.
    if (leastOfRow > distanceMax && leastOfRowBefore > distanceMax) return Infinity;
    leastOfRowBefore = leastOfRow;
  }
  return distanceRow[distanceWidth - 1]!;
}

const oneSoundPairs = letterPairsOf(['ou', 'ei', 'dt', 'gk', 'bp', 'sz', 's\u0161', 'fv']);

/** Consonants that are made in one place or in one way: ears and hands mistake them for each other (Zobel and Dart 1996). */
const nearSoundPairs = letterPairsOf(['bp', 'kgx', 'dt', 'lr', 'mn', 'gj', 'fpv', 'sxzj\u0161\u00e7']);

/** How much more than a missing consonant a strange one in its place says that two are not one word. */
const strangeLetterCost = 1.5;

function letterStrangeness(leftLetter: number, rightLetter: number): number {
  return isVowel(leftLetter) || isVowel(rightLetter) || nearSoundPairs.has(letterPair(leftLetter, rightLetter))
    ? 1
    : strangeLetterCost;
}

function isVowel(letter: number): boolean {
  return vowelLetters.has(letter);
}

const vowelLetters: ReadonlySet<number> = new Set(Array.from('aeiouy', (letter) => letter.charCodeAt(0)));

/** Every two letters of each. */
function letterPairsOf(letterGroups: readonly string[]): ReadonlySet<number> {
  const letterPairs = new Set<number>();
  for (const soundLetters of letterGroups)
    for (const oneLetter of soundLetters)
      for (const otherLetter of soundLetters) letterPairs.add(letterPair(oneLetter.charCodeAt(0), otherLetter.charCodeAt(0)));
  return letterPairs;
}

function areOneSound(leftLetter: number, rightLetter: number): boolean {
  return oneSoundPairs.has(letterPair(leftLetter, rightLetter));
}

function letterPair(leftLetter: number, rightLetter: number): number {
  return leftLetter < rightLetter ? leftLetter * 65_536 + rightLetter : rightLetter * 65_536 + leftLetter;
}

function letterCostOf(word: string, i: number): number {
  if (!isVowel(word.charCodeAt(i))) return 1;
  return i === word.length - 1 ? 1.5 : 0.5;
}

/** Words of consonants that one change may have led to: they have one of these in common. */
export function changesOf(consonants: string): readonly string[] {
  const consonantChanges = [consonants];
  if (consonants.length > 2) {
    for (let i = 0; i < consonants.length; i++) consonantChanges.push(consonants.slice(0, i) + consonants.slice(i + 1));
  }
  return consonantChanges;
}

/** The longest words in which one missing or turned letter weighs too much for an edit distance. */
const slippedWordMax = 6;

/**
 * Whether a slip of the hand within a short word parts two: neighbours in each other's place, or a letter missing that is neither the first nor
 * the last one, since names that go on are other names.
 */
export function slipOf(leftWord: string, rightWord: string): 'turned' | 'missing' | null {
  const [shorterWord, longerWord] = leftWord.length < rightWord.length ? [leftWord, rightWord] : [rightWord, leftWord];
  if (
    longerWord.length > slippedWordMax ||
    longerWord.length < 3 ||
    longerWord.length - shorterWord.length > 1 ||
    shorterWord[0] !== longerWord[0]
  )
    return null;
  let slippedAt = 0;
  while (slippedAt < shorterWord.length && shorterWord[slippedAt] === longerWord[slippedAt]) slippedAt++;
  if (shorterWord.length < longerWord.length)
    return slippedAt < shorterWord.length && shorterWord.slice(slippedAt) === longerWord.slice(slippedAt + 1) ? 'missing' : null;
  const areLettersTurned =
    shorterWord[slippedAt] === longerWord[slippedAt + 1] &&
    shorterWord[slippedAt + 1] === longerWord[slippedAt] &&
    shorterWord.slice(slippedAt + 2) === longerWord.slice(slippedAt + 2);
  return slippedAt < shorterWord.length && areLettersTurned ? 'turned' : null;
}

/** Short words of which one may be a slip of the other have one of these in common. */
export function slipsOf(slippedText: string): readonly string[] {
  if (slippedText.length > slippedWordMax || slippedText.length < 2) return [];
  const wordSlips = [slippedText];
  for (let i = 1; i < slippedText.length; i++) wordSlips.push(slippedText.slice(0, i) + slippedText.slice(i + 1));
  return wordSlips;
}

/** How words of names sound alike over the ways in which scripts are written in Latin letters, and how far two spellings are apart. */

/** In this order. */
const respellings: readonly (readonly [RegExp, string])[] = [
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
  [/[iey]+[yji]+/g, 'i'],
  [/ie|ee|ea/g, 'i'],
  [/ou|oo|uu/g, 'u'],
  [/ae|oe/g, 'e'],
  [/eo/g, 'o'],
  [/aa/g, 'a'],
  [/y(?![aeou])/g, 'i'],
  [/(?<=[aeiou])h(?![aeiou])/g, ''],
  [/(.)\1+/g, '$1'],
];

export function spellingOf(word: string): string {
  return respellings.reduce((text, [from, to]) => text.replace(from, to), word);
}

export function consonantsOf(spelling: string): string {
  return spelling.replace(/^[aeiou]/, 'a').replaceAll(/(?!^)[aeiouy]/g, '');
}

/** Two letters in each other's place are a slip of the hand, seldom another name. */
const turnCost = 0.6;

/** Changes from one spelling to another: a vowel costs half, and what ends a word, which often says the gender, costs more. */
export function distanceOf(left: string, right: string): number {
  const width = right.length + 1;
  let before = new Float64Array(width);
  let row = new Float64Array(width);
  let earlier = new Float64Array(width);
  for (let j = 1; j < width; j++) row[j] = row[j - 1]! + costOf(right, j - 1);
  for (let i = 1; i <= left.length; i++) {
    [earlier, before, row] = [before, row, earlier];
    row[0] = before[0]! + costOf(left, i - 1);
    for (let j = 1; j < width; j++) {
      const isSame = left[i - 1] === right[j - 1];
      const swap = isSame
        ? 0
        : isOneSound(left[i - 1]!, right[j - 1]!)
          ? 0.5
          : Math.max(costOf(left, i - 1), costOf(right, j - 1));
      let cost = Math.min(before[j]! + costOf(left, i - 1), row[j - 1]! + costOf(right, j - 1), before[j - 1]! + swap);
      const isTurned = i > 1 && j > 1 && left[i - 1] === right[j - 2] && left[i - 2] === right[j - 1];
      if (isTurned) cost = Math.min(cost, earlier[j - 2]! + turnCost);
      row[j] = cost;
    }
  }
  return row[width - 1]!;
}

function isOneSound(left: string, right: string): boolean {
  const pair = left < right ? left + right : right + left;
  return (
    pair === 'ou' ||
    pair === 'ei' ||
    pair === 'dt' ||
    pair === 'gk' ||
    pair === 'bp' ||
    pair === 'sz' ||
    pair === 'sš' ||
    pair === 'fv'
  );
}

function costOf(word: string, i: number): number {
  if (!'aeiouy'.includes(word[i]!)) return 1;
  return i === word.length - 1 ? 1.5 : 0.5;
}

/** Words of consonants that one change may have led to: they have one of these in common. */
export function changesOf(consonants: string): readonly string[] {
  const all = [consonants];
  if (consonants.length > 2) {
    for (let i = 0; i < consonants.length; i++) all.push(consonants.slice(0, i) + consonants.slice(i + 1));
  }
  return all;
}

/** The longest words in which a letter that is missing or turned weighs too much to be told by how far they are apart. */
const slippedMax = 6;

/**
 * Whether a slip of the hand within a short word parts two: neighbours in each other's place, or a letter missing that is neither the first nor
 * the last one, since names that go on are other names.
 */
export function slipOf(left: string, right: string): 'turned' | 'missing' | null {
  const [short, long] = left.length < right.length ? [left, right] : [right, left];
  if (long.length > slippedMax || long.length < 3 || long.length - short.length > 1 || short[0] !== long[0]) return null;
  let at = 0;
  while (at < short.length && short[at] === long[at]) at++;
  if (short.length < long.length) return at < short.length && short.slice(at) === long.slice(at + 1) ? 'missing' : null;
  const isTurned = short[at] === long[at + 1] && short[at + 1] === long[at] && short.slice(at + 2) === long.slice(at + 2);
  return at < short.length && isTurned ? 'turned' : null;
}

/** Short words of which one may be a slip of the other have one of these in common. */
export function slipsOf(text: string): readonly string[] {
  if (text.length > slippedMax || text.length < 2) return [];
  const all = [text];
  for (let i = 1; i < text.length; i++) all.push(text.slice(0, i) + text.slice(i + 1));
  return all;
}

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

export function spellingOf(word: string): string {
  return respellings.reduce((text, [from, to]) => text.replace(from, to), word);
}

export function consonantsOf(spelling: string): string {
  return spelling.replace(/^[aeiou]/, 'a').replaceAll(/(?!^)[aeiouy]/g, '');
}

/** Two letters in each other's place are a slip of the hand, seldom another name. */
const turnCost = 0.6;

/** Rows of the table of distances, and what each letter of the right word costs: written anew by each call. */
let rows = [0, 1, 2, 3].map(() => new Float64Array(32));

/**
 * Changes from one spelling to another: a vowel costs half, and what ends a word, which often says the gender, costs more. Infinity
 * where it is certain that they are more than `most`.
 */
export function distanceOf(left: string, right: string, most = Infinity): number {
  const width = right.length + 1;
  if (width > rows[0]!.length) rows = rows.map(() => new Float64Array(2 * width));
  let [before, row, earlier] = rows as [Float64Array, Float64Array, Float64Array];
  const costs = rows[3]!;
  row[0] = 0;
  for (let j = 1; j < width; j++) {
    costs[j] = costOf(right, j - 1);
    row[j] = row[j - 1]! + costs[j]!;
  }
  let leastBefore = 0;
  for (let i = 1; i <= left.length; i++) {
    [earlier, before, row] = [before, row, earlier];
    const letter = left.charCodeAt(i - 1);
    const own = costOf(left, i - 1);
    row[0] = before[0]! + own;
    let least = row[0]!;
    for (let j = 1; j < width; j++) {
      const other = right.charCodeAt(j - 1);
      const swap = letter === other ? 0 : isOneSound(letter, other) ? 0.5 : Math.max(own, costs[j]!) * strangeness(letter, other);
      let cost = Math.min(before[j]! + own, row[j - 1]! + costs[j]!, before[j - 1]! + swap);
      const isTurned = i > 1 && j > 1 && letter === right.charCodeAt(j - 2) && left.charCodeAt(i - 2) === other;
      if (isTurned) cost = Math.min(cost, earlier[j - 2]! + turnCost);
      row[j] = cost;
      if (cost < least) least = cost;
    }
    // Letters in each other's place go back by two rows.
    if (least > most && leastBefore > most) return Infinity;
    leastBefore = least;
  }
  return row[width - 1]!;
}

const pairsOfOneSound = pairsOf(['ou', 'ei', 'dt', 'gk', 'bp', 'sz', 's\u0161', 'fv']);

/** Consonants that are made in one place or in one way: ears and hands mistake them for each other (Zobel and Dart 1996). */
const pairsOfNearSounds = pairsOf(['bp', 'kgx', 'dt', 'lr', 'mn', 'gj', 'fpv', 'sxzj\u0161\u00e7']);

/** How much more than a missing consonant a strange one in its place says that two are not one word. */
const strange = 1.5;

function strangeness(left: number, right: number): number {
  return isVowel(left) || isVowel(right) || pairsOfNearSounds.has(pairIn(left, right)) ? 1 : strange;
}

function isVowel(letter: number): boolean {
  return vowels.has(letter);
}

const vowels: ReadonlySet<number> = new Set(Array.from('aeiouy', (letter) => letter.charCodeAt(0)));

/** Every two letters of each. */
function pairsOf(all: readonly string[]): ReadonlySet<number> {
  const pairs = new Set<number>();
  for (const letters of all)
    for (const one of letters) for (const other of letters) pairs.add(pairIn(one.charCodeAt(0), other.charCodeAt(0)));
  return pairs;
}

function isOneSound(left: number, right: number): boolean {
  return pairsOfOneSound.has(pairIn(left, right));
}

function pairIn(left: number, right: number): number {
  return left < right ? left * 65_536 + right : right * 65_536 + left;
}

function costOf(word: string, i: number): number {
  if (!isVowel(word.charCodeAt(i))) return 1;
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

/** The longest words in which one missing or turned letter weighs too much for an edit distance. */
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

/**
 * Finds the names of a subject in written texts: a query, a recipe, a key. A name is found as a word of its own, as it is, as
 * JSON spells it and as SQL quotes it; not inside a longer word, so that 7 is not in LIMIT 70. Pure.
 */
export type NameTest = Pick<SubjectNames, 'areIn'>;

export class SubjectNames {
  /** Spellings by the first units that they have: a text is gone through once, however many there are. */
  readonly #byBeginning = new Map<string, string[]>();
  readonly #short: readonly string[];

  constructor(names: readonly string[]) {
    const short: string[] = [];
    for (const spelling of new Set(names.flatMap(spellingsOf))) {
      if (spelling.length < BEGINNING) short.push(spelling);
      else {
        const beginning = spelling.slice(0, BEGINNING);
        const known = this.#byBeginning.get(beginning);
        if (known) known.push(spelling);
        else this.#byBeginning.set(beginning, [spelling]);
      }
    }
    this.#short = short.filter((spelling) => spelling !== '');
  }

  areIn(text: string): boolean {
    if (this.#short.some((spelling) => hasWord(text, spelling))) return true;
    for (let at = 0; at + BEGINNING <= text.length; at++) {
      const known = this.#byBeginning.get(text.slice(at, at + BEGINNING));
      if (known?.some((spelling) => text.startsWith(spelling, at) && isWord(text, spelling, at))) return true;
    }
    return false;
  }
}

const BEGINNING = 3;
/** SQL and JSON spell such a name in one way only. */
const plain = /^[^'"\\\p{C}]*$/u;

/** As it is, as SQL quotes it, and as JSON spells both. */
export function spellingsOf(name: string): readonly string[] {
  if (plain.test(name)) return [name];
  const quoted = name.replaceAll("'", "''");
  return [name, quoted, ...[name, quoted].map((each) => JSON.stringify(each).slice(1, -1))];
}

const wordBefore = /[\p{L}\p{N}_]$/u;
const wordAfter = /^[\p{L}\p{N}_]/u;

/** The text repeats the word, not inside a longer one. */
export function hasWord(text: string, word: string): boolean {
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) if (isWord(text, word, at)) return true;
  return false;
}

/** True when the word there is not part of a longer one. */
function isWord(text: string, word: string, at: number): boolean {
  const end = at + word.length;
  const joinedBefore = wordAfter.test(word) && wordBefore.test(text.slice(Math.max(0, at - 2), at));
  const joinedAfter = wordBefore.test(word) && wordAfter.test(text.slice(end, end + 2));
  return !joinedBefore && !joinedAfter;
}

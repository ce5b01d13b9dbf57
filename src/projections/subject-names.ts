/**
 * Finds the names of a subject in written texts: a query, a recipe, a key. A name is found as a word of its own, as it is, as
 * JSON spells it and as SQL quotes it; not inside a longer word, so that 7 is not in LIMIT 70. Pure.
 */
export type NameTest = Pick<SubjectNames, 'areIn'>;

/** Spellings that begin alike. Names of one form have few lengths, and each length takes one look at an offset of a text. */
interface SpellingsOfStart {
  readonly lengths: Set<number>;
  readonly spellings: Set<string>;
}

export class SubjectNames {
  /** Spellings by the first units that they have: a text is gone through once, however many there are. */
  readonly #spellingsByStart = new Map<string, SpellingsOfStart>();
  readonly #shortSpellings: readonly string[];

  constructor(names: readonly string[]) {
    const shortSpellings: string[] = [];
    for (const spelling of new Set(names.flatMap(spellingsOf))) {
      if (spelling.length < SPELLING_START_LENGTH) shortSpellings.push(spelling);
      else {
        const spellingStart = spelling.slice(0, SPELLING_START_LENGTH);
        let spellingsOfStart = this.#spellingsByStart.get(spellingStart);
        if (spellingsOfStart === undefined) {
          spellingsOfStart = { lengths: new Set(), spellings: new Set() };
          this.#spellingsByStart.set(spellingStart, spellingsOfStart);
        }
        spellingsOfStart.lengths.add(spelling.length);
        spellingsOfStart.spellings.add(spelling);
      }
    }
    this.#shortSpellings = shortSpellings.filter((spelling) => spelling !== '');
  }

  areIn(searchedText: string): boolean {
    if (this.#shortSpellings.some((spelling) => hasWord(searchedText, spelling))) return true;
    for (let textOffset = 0; textOffset + SPELLING_START_LENGTH <= searchedText.length; textOffset++) {
      const spellingsOfStart = this.#spellingsByStart.get(searchedText.slice(textOffset, textOffset + SPELLING_START_LENGTH));
      if (spellingsOfStart === undefined) continue;
      for (const spellingLength of spellingsOfStart.lengths) {
        const textPiece = searchedText.slice(textOffset, textOffset + spellingLength);
        if (spellingsOfStart.spellings.has(textPiece) && isWholeWord(searchedText, textPiece, textOffset)) return true;
      }
    }
    return false;
  }
}

const SPELLING_START_LENGTH = 3;
/** SQL and JSON spell such a name in one way only. */
const plainNamePattern = /^[^'"\\\p{C}]*$/u;

/** As it is, as SQL quotes it, and as JSON spells both. */
export function spellingsOf(subjectName: string): readonly string[] {
  if (plainNamePattern.test(subjectName)) return [subjectName];
  const sqlQuotedName = subjectName.replaceAll("'", "''");
  return [
    subjectName,
    sqlQuotedName,
    ...[subjectName, sqlQuotedName].map((nameSpelling) => JSON.stringify(nameSpelling).slice(1, -1)),
  ];
}

const wordBefore = /[\p{L}\p{N}_]$/u;
const wordAfter = /^[\p{L}\p{N}_]/u;

/** The text repeats the word, not inside a longer one. */
export function hasWord(text: string, word: string): boolean {
  for (let wordStart = text.indexOf(word); wordStart >= 0; wordStart = text.indexOf(word, wordStart + 1))
    if (isWholeWord(text, word, wordStart)) return true;
  return false;
}

/** True when the word there is not part of a longer one. */
function isWholeWord(searchedText: string, word: string, wordStart: number): boolean {
  const wordEnd = wordStart + word.length;
  const joinedBefore = wordAfter.test(word) && wordBefore.test(searchedText.slice(Math.max(0, wordStart - 2), wordStart));
  const joinedAfter = wordBefore.test(word) && wordAfter.test(searchedText.slice(wordEnd, wordEnd + 2));
  return !joinedBefore && !joinedAfter;
}

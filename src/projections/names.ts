/**
 * Looks for names of a subject in texts that somebody wrote: a query, a recipe, a key. A name is found as a word of its own, as
 * it is, as JSON spells it and as SQL quotes it; not inside a longer word, so that 7 is not in LIMIT 70. Pure.
 */
export class Names {
  readonly #spellings: readonly string[];

  constructor(names: readonly string[]) {
    this.#spellings = [...new Set(names.flatMap(spellingsOf))].filter((spelling) => spelling !== '');
  }

  areIn(text: string): boolean {
    return this.#spellings.some((spelling) => hasWord(text, spelling));
  }
}

function spellingsOf(name: string): readonly string[] {
  const quoted = name.replaceAll("'", "''");
  return [name, quoted, ...[name, quoted].map((each) => JSON.stringify(each).slice(1, -1))];
}

const wordBefore = /[\p{L}\p{N}_]$/u;
const wordAfter = /^[\p{L}\p{N}_]/u;

function hasWord(text: string, word: string): boolean {
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
    const end = at + word.length;
    const joinedBefore = wordAfter.test(word) && wordBefore.test(text.slice(Math.max(0, at - 2), at));
    const joinedAfter = wordBefore.test(word) && wordAfter.test(text.slice(end, end + 2));
    if (!joinedBefore && !joinedAfter) return true;
  }
  return false;
}

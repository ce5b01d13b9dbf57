/** Which terms pass a test: one by one, and of a whole dictionary without a look at most of it. */
import type { TextIndex } from '../../projections/rows/indexes/text/text-index.ts';
import { termsOfStem } from './other-stems.ts';
import type { Leaf } from './query.ts';

/** Whether one term passes. `stem` is asked for tests on stems only. */
export function passes(leaf: Leaf, term: string, stem: (term: string) => string): boolean {
  switch (leaf.kind) {
    case 'either':
      return leaf.of.some((each) => passes(each, term, stem));
    case 'stem':
      return stem(term) === leaf.text;
    case 'term':
      return leaf.edits === 0 ? term === leaf.text : isNear(leaf.text, term, leaf.edits);
    case 'beginning':
      return term.startsWith(leaf.text) || (leaf.edits > 0 && isNear(leaf.text, term, leaf.edits));
    case 'end':
      return term.endsWith(leaf.text) || (leaf.edits > 0 && isNear(leaf.text, term, leaf.edits));
    case 'part':
      return term.includes(leaf.text) || (leaf.edits > 0 && isNear(leaf.text, term, leaf.edits));
  }
}

/** Numbers of the terms of an index that pass, ascending. */
export function termsOf(index: TextIndex, leaf: Leaf): readonly number[] {
  if (leaf.kind === 'either') return union(leaf.of.map((each) => termsOf(index, each)));
  if (leaf.kind === 'stem')
    return leaf.language === null ? index.ofStem(leaf.text) : termsOfStem(index, leaf.language, leaf.text);
  if (leaf.kind === 'term') {
    if (leaf.edits > 0) return nearTerms(index, leaf.text, leaf.edits);
    const found = index.find(leaf.text);
    return found < 0 ? [] : [found];
  }
  const found =
    leaf.kind === 'beginning' ? numbersFrom(index.beginning(leaf.text)) : index.holding(leaf.text, leaf.kind === 'end');
  if (leaf.edits === 0) return found;
  return union([found, nearTerms(index, leaf.text, leaf.edits)]);
}

/** Whether some terms pass only as they differ from what is written. */
export function isTolerant(leaf: Leaf): boolean {
  return leaf.kind === 'either' ? leaf.of.some(isTolerant) : leaf.kind !== 'stem' && leaf.edits > 0;
}

/** Whether a term passes as it is written. */
export function passesAsWritten(leaf: Leaf, term: string): boolean {
  if (leaf.kind === 'either') return leaf.of.some((each) => passesAsWritten(each, term));
  return leaf.kind === 'stem' || passes({ ...leaf, edits: 0 }, term, same);
}

const same = (term: string): string => term;

function union(found: readonly (readonly number[])[]): number[] {
  return [...new Set(found.flat())].sort((a, b) => a - b);
}

function numbersFrom([first, end]: readonly [number, number]): number[] {
  return Array.from({ length: end - first }, (_, i) => first + i);
}

function codePoints(text: string): number[] {
  return Array.from(text, (char) => char.codePointAt(0)!);
}

function isNear(sought: string, term: string, edits: number): boolean {
  const distances = new Distances(codePoints(sought), edits);
  return distances.reach(codePoints(term), 0) && distances.isWithin;
}

/** Rows of the table of edit distances between a word and a prefix that grows. */
class Distances {
  readonly #sought: readonly number[];
  readonly #edits: number;
  /** By length of the prefix. */
  readonly #rows: Uint8Array[];
  #length = 0;

  constructor(sought: readonly number[], edits: number) {
    this.#sought = sought;
    this.#edits = edits;
    this.#rows = [Uint8Array.from({ length: sought.length + 1 }, (_, i) => Math.min(i, edits + 1))];
  }

  /** The prefix is within the edits of the word. */
  get isWithin(): boolean {
    return this.#rows[this.#length]![this.#sought.length]! <= this.#edits;
  }

  /** Characters after which no longer prefix can be within: valid after `reach` said no. */
  get length(): number {
    return this.#length;
  }

  /** Goes on from the first `kept` characters, which are those of the prefix before; false as soon as nothing can come of it. */
  reach(term: readonly number[], kept: number): boolean {
    const [sought, most] = [this.#sought, this.#edits + 1];
    this.#length = kept;
    while (this.#length < term.length) {
      const before = this.#rows[this.#length]!;
      const row = (this.#rows[this.#length + 1] ??= new Uint8Array(sought.length + 1));
      const char = term[this.#length]!;
      row[0] = Math.min(before[0]! + 1, most);
      let least = row[0];
      for (let i = 1; i <= sought.length; i++) {
        const replaced = before[i - 1]! + (sought[i - 1] === char ? 0 : 1);
        row[i] = Math.min(replaced, before[i]! + 1, row[i - 1]! + 1, most);
        if (row[i]! < least) least = row[i]!;
      }
      this.#length++;
      if (least >= most) return false;
    }
    return true;
  }
}

/**
 * Terms of a sorted dictionary within so many edits: each shares the work on what it has in common with the one before, and
 * what begins in a way that is too far already is passed over as a whole.
 */
function nearTerms(index: TextIndex, sought: string, edits: number): number[] {
  const found: number[] = [];
  const distances = new Distances(codePoints(sought), edits);
  let before: readonly number[] = [];
  for (let number = 0; number < index.terms; ) {
    const term = index.term(number);
    const chars = codePoints(term);
    let kept = 0;
    while (kept < chars.length && kept < before.length && kept < distances.length && chars[kept] === before[kept]) kept++;
    before = chars;
    if (distances.reach(chars, kept)) {
      if (distances.isWithin) found.push(number);
      number++;
      continue;
    }
    number = index.after(String.fromCodePoint(...chars.slice(0, distances.length)), number);
  }
  return found;
}

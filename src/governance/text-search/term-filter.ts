/** Which terms pass a test: one by one, and of a whole dictionary without a look at most of it. */
import type { TextIndex } from '../../projections/rows/indexes/text/text-index.ts';
import { TERM_MAX } from '../../projections/rows/indexes/text/tokens.ts';
import { termsOfStem } from './restemmed-terms.ts';
import type { Leaf } from './text-query.ts';

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
    const termNumber = index.findBytes(bytesOf(leaf));
    return termNumber < 0 ? [] : [termNumber];
  }
  const termNumbers =
    leaf.kind === 'beginning' ? numbersFrom(index.beginning(leaf.text)) : index.holding(leaf.text, leaf.kind === 'end');
  if (leaf.edits === 0) return termNumbers;
  return union([termNumbers, nearTerms(index, leaf.text, leaf.edits)]);
}

const encoder = new TextEncoder();
/** A leaf is sought in many dictionaries. */
const encoded = new WeakMap<Leaf, Uint8Array>();

function bytesOf(leaf: Extract<Leaf, { readonly kind: 'term' }>): Uint8Array {
  let bytes = encoded.get(leaf);
  if (bytes === undefined) encoded.set(leaf, (bytes = encoder.encode(leaf.text)));
  return bytes;
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

function union(termLists: readonly (readonly number[])[]): number[] {
  return [...new Set(termLists.flat())].sort((a, b) => a - b);
}

function numbersFrom([first, end]: readonly [number, number]): number[] {
  return Array.from({ length: end - first }, (_, i) => first + i);
}

function codePoints(text: string): Int32Array {
  return Int32Array.from(text, (char) => char.codePointAt(0)!);
}

function isNear(sought: string, term: string, edits: number): boolean {
  const distances = new Distances(codePoints(sought), edits);
  const chars = codePoints(term);
  return distances.reach(chars, chars.length, 0) && distances.isWithin;
}

/** Rows of the table of edit distances between a word and a prefix that grows. */
class Distances {
  readonly #sought: Int32Array;
  readonly #edits: number;
  /** By length of the prefix. */
  readonly #rows: Uint8Array[];
  #length = 0;

  constructor(sought: Int32Array, edits: number) {
    this.#sought = sought;
    this.#edits = edits;
    this.#rows = [Uint8Array.from({ length: sought.length + 1 }, (_, i) => Math.min(i, edits + 1))];
  }

  /** The prefix is within the edits of the word. */
  get isWithin(): boolean {
    const width = this.#sought.length;
    return Math.abs(width - this.#length) <= this.#edits && this.#rows[this.#length]![width]! <= this.#edits;
  }

  /** Characters after which no longer prefix can be within: valid after `reach` said no. */
  get length(): number {
    return this.#length;
  }

  /** Goes on from the first `kept` characters, which are those of the prefix before; false as soon as nothing can come of it. */
  reach(term: Int32Array, size: number, sharedPrefix: number): boolean {
    const [sought, most] = [this.#sought, this.#edits + 1];
    const width = sought.length;
    let length = sharedPrefix;
    while (length < size) {
      const before = this.#rows[length]!;
      const row = (this.#rows[length + 1] ??= new Uint8Array(width + 1));
      const char = term[length]!;
      length++;
      // Further from the diagonal than there are edits, everything is too far.
      const first = Math.max(1, length - most);
      const last = Math.min(width, length + most);
      let least = (row[first - 1] = first === 1 ? Math.min(length, most) : most);
      for (let i = first; i <= last; i++) {
        let value = before[i - 1]! + (sought[i - 1] === char ? 0 : 1);
        if (before[i]! < value) value = before[i]! + 1;
        if (row[i - 1]! < value) value = row[i - 1]! + 1;
        if (value > most) value = most;
        row[i] = value;
        if (value < least) least = value;
      }
      if (last < width) row[last + 1] = most;
      if (least >= most) {
        this.#length = length;
        return false;
      }
    }
    this.#length = length;
    return true;
  }
}

/** Characters of a term that are looked at: one more than of the longest. In lower case İ is two. */
const charactersMost = TERM_MAX * 2 + 1;
let chars = new Int32Array(charactersMost);
let charsBefore = new Int32Array(charactersMost);

/**
 * Terms of a sorted dictionary within so many edits: each shares the work on the beginning that it has in common with the one
 * before, and terms with a beginning that is too far already are skipped as a whole.
 */
function nearTerms(index: TextIndex, sought: string, edits: number): number[] {
  const termNumbers: number[] = [];
  const distances = new Distances(codePoints(sought), edits);
  let known = 0;
  for (let number = 0; number < index.terms; ) {
    const size = index.characters(number, chars);
    let sharedPrefix = 0;
    while (sharedPrefix < size && sharedPrefix < known && chars[sharedPrefix] === charsBefore[sharedPrefix]) sharedPrefix++;
    const isOpen = distances.reach(chars, size, sharedPrefix);
    known = distances.length;
    if (isOpen && distances.isWithin) termNumbers.push(number);
    number = isOpen ? number + 1 : index.termAfter(number, sizeOf(chars, known));
    [chars, charsBefore] = [charsBefore, chars];
  }
  return termNumbers;
}

/** Bytes of the first so many characters. */
function sizeOf(characters: Int32Array, count: number): number {
  let size = 0;
  for (let i = 0; i < count; i++) {
    const code = characters[i]!;
    size += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  }
  return size;
}

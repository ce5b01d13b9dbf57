/** Finds the terms that pass the test of a searched word: one by one, or in a dictionary without reading most of it. */
import type { TextIndex } from '../../projections/rows/indexes/text/text-index.ts';
import { TERM_MAX } from '../../projections/rows/indexes/text/tokens.ts';
import { termsOfStem } from './restemmed-terms.ts';
import type { Leaf } from './text-query.ts';

/** Whether one term passes. `stem` is asked for tests on stems only. */
export function passes(leaf: Leaf, term: string, stem: (term: string) => string): boolean {
  switch (leaf.kind) {
    case 'either':
      return leaf.of.some((eitherLeaf) => passes(eitherLeaf, term, stem));
    case 'stem':
      return stem(term) === leaf.text;
    case 'term':
      return leaf.edits === 0 ? term === leaf.text : isWithinEdits(leaf.text, term, leaf.edits);
    case 'beginning':
      return term.startsWith(leaf.text) || (leaf.edits > 0 && isWithinEdits(leaf.text, term, leaf.edits));
    case 'end':
      return term.endsWith(leaf.text) || (leaf.edits > 0 && isWithinEdits(leaf.text, term, leaf.edits));
    case 'part':
      return term.includes(leaf.text) || (leaf.edits > 0 && isWithinEdits(leaf.text, term, leaf.edits));
  }
}

/** Numbers of the terms of an index that pass, ascending. */
export function termsOf(index: TextIndex, leaf: Leaf): readonly number[] {
  if (leaf.kind === 'either') return unionOfTerms(leaf.of.map((eitherLeaf) => termsOf(index, eitherLeaf)));
  if (leaf.kind === 'stem')
    return leaf.language === null ? index.ofStem(leaf.text) : termsOfStem(index, leaf.language, leaf.text);
  if (leaf.kind === 'term') {
    if (leaf.edits > 0) return nearTerms(index, leaf.text, leaf.edits);
    const termNumber = index.findBytes(leafBytesOf(leaf));
    return termNumber < 0 ? [] : [termNumber];
  }
  const termNumbers =
    leaf.kind === 'beginning' ? termNumbersFrom(index.beginning(leaf.text)) : index.holding(leaf.text, leaf.kind === 'end');
  if (leaf.edits === 0) return termNumbers;
  return unionOfTerms([termNumbers, nearTerms(index, leaf.text, leaf.edits)]);
}

const leafEncoder = new TextEncoder();
/** A leaf is sought in many dictionaries. */
const encodedLeaves = new WeakMap<Leaf, Uint8Array>();

function leafBytesOf(leaf: Extract<Leaf, { readonly kind: 'term' }>): Uint8Array {
  let leafBytes = encodedLeaves.get(leaf);
  if (leafBytes === undefined) encodedLeaves.set(leaf, (leafBytes = leafEncoder.encode(leaf.text)));
  return leafBytes;
}

/** Whether some terms pass only as they differ from what is written. */
export function isTolerant(leaf: Leaf): boolean {
  return leaf.kind === 'either' ? leaf.of.some(isTolerant) : leaf.kind !== 'stem' && leaf.edits > 0;
}

/** Whether a term passes as it is written. */
export function passesAsWritten(leaf: Leaf, term: string): boolean {
  if (leaf.kind === 'either') return leaf.of.some((each) => passesAsWritten(each, term));
  return leaf.kind === 'stem' || passes({ ...leaf, edits: 0 }, term, asStem);
}

const asStem = (term: string): string => term;

function unionOfTerms(termLists: readonly (readonly number[])[]): number[] {
  return [...new Set(termLists.flat())].sort((a, b) => a - b);
}

function termNumbersFrom([first, end]: readonly [number, number]): number[] {
  return Array.from({ length: end - first }, (_, i) => first + i);
}

function codePointsOf(text: string): Int32Array {
  return Int32Array.from(text, (character) => character.codePointAt(0)!);
}

function isWithinEdits(soughtWord: string, term: string, edits: number): boolean {
  const distances = new EditDistances(codePointsOf(soughtWord), edits);
  const termChars = codePointsOf(term);
  return distances.reach(termChars, termChars.length, 0) && distances.isWithin;
}

/** Rows of the table of edit distances between a word and a prefix that grows. */
class EditDistances {
  readonly #soughtCodes: Int32Array;
  readonly #editsMax: number;
  /** By length of the prefix. */
  readonly #distanceRows: Uint8Array[];
  #termLength = 0;

  constructor(sought: Int32Array, edits: number) {
    this.#soughtCodes = sought;
    this.#editsMax = edits;
    this.#distanceRows = [Uint8Array.from({ length: sought.length + 1 }, (_, i) => Math.min(i, edits + 1))];
  }

  /** The prefix is within the edits of the word. */
  get isWithin(): boolean {
    const width = this.#soughtCodes.length;
    return (
      Math.abs(width - this.#termLength) <= this.#editsMax && this.#distanceRows[this.#termLength]![width]! <= this.#editsMax
    );
  }

  /** Characters after which no longer prefix can be within: valid after `reach` said no. */
  get length(): number {
    return this.#termLength;
  }

  /** Goes on from the first `kept` characters, which are those of the prefix before; false as soon as nothing can come of it. */
  reach(term: Int32Array, termSize: number, sharedPrefix: number): boolean {
    const [sought, distanceMax] = [this.#soughtCodes, this.#editsMax + 1];
    const width = sought.length;
    let length = sharedPrefix;
    while (length < termSize) {
      const previousDistances = this.#distanceRows[length]!;
      const currentDistances = (this.#distanceRows[length + 1] ??= new Uint8Array(width + 1));
      const termChar = term[length]!;
      length++;
      // Further from the diagonal than there are edits, everything is too far.
      const firstColumn = Math.max(1, length - distanceMax);
      const lastColumn = Math.min(width, length + distanceMax);
      let leastDistance = (currentDistances[firstColumn - 1] = firstColumn === 1 ? Math.min(length, distanceMax) : distanceMax);
      for (let i = firstColumn; i <= lastColumn; i++) {
        let editDistance = previousDistances[i - 1]! + (sought[i - 1] === termChar ? 0 : 1);
        if (previousDistances[i]! < editDistance) editDistance = previousDistances[i]! + 1;
        if (currentDistances[i - 1]! < editDistance) editDistance = currentDistances[i - 1]! + 1;
        if (editDistance > distanceMax) editDistance = distanceMax;
        currentDistances[i] = editDistance;
        if (editDistance < leastDistance) leastDistance = editDistance;
      }
      if (lastColumn < width) currentDistances[lastColumn + 1] = distanceMax;
      if (leastDistance >= distanceMax) {
        this.#termLength = length;
        return false;
      }
    }
    this.#termLength = length;
    return true;
  }
}

/** Characters of a term that are looked at: one more than of the longest. In lower case İ is two. */
const termCharactersMax = TERM_MAX * 2 + 1;
let currentChars = new Int32Array(termCharactersMax);
let previousChars = new Int32Array(termCharactersMax);

/**
 * Terms of a sorted dictionary within so many edits: each shares the work on the beginning that it has in common with the one
 * before, and terms with a beginning that is too far already are skipped as a whole.
 */
function nearTerms(index: TextIndex, soughtWord: string, edits: number): number[] {
  const termNumbers: number[] = [];
  const distances = new EditDistances(codePointsOf(soughtWord), edits);
  let knownLength = 0;
  for (let termNumber = 0; termNumber < index.terms; ) {
    const termSize = index.characters(termNumber, currentChars);
    let sharedPrefix = 0;
    while (sharedPrefix < termSize && sharedPrefix < knownLength && currentChars[sharedPrefix] === previousChars[sharedPrefix])
      sharedPrefix++;
    const isOpen = distances.reach(currentChars, termSize, sharedPrefix);
    knownLength = distances.length;
    if (isOpen && distances.isWithin) termNumbers.push(termNumber);
    termNumber = isOpen ? termNumber + 1 : index.termAfter(termNumber, utf8BytesOf(currentChars, knownLength));
    [currentChars, previousChars] = [previousChars, currentChars];
  }
  return termNumbers;
}

/** Bytes of the first so many characters. */
function utf8BytesOf(characters: Int32Array, count: number): number {
  let utf8Bytes = 0;
  for (let i = 0; i < count; i++) {
    const charCode = characters[i]!;
    utf8Bytes += charCode < 0x80 ? 1 : charCode < 0x800 ? 2 : charCode < 0x10000 ? 3 : 4;
  }
  return utf8Bytes;
}

/**
 * What MATCH asks for: the words of its text as tests on terms, and how their rows go together.
 *
 *   default   rows with any of the words; `*word` ends so, `word*` begins so, `*word*` holds it
 *   PHRASE    all words, one after the other
 *   FUZZY     any of the words, or one that differs by an edit; by two where it has 9 characters or more
 *   STEMMED   any word of the same stem
 *   BOOLEAN   AND, OR and NOT between words, from left to right; a space means OR
 *   SUFFIX    a word that ends so; INFIX one that holds it
 */
import { ServiceError } from '../../errors.ts';
import { tokensOf } from '../../projections/rows/indexes/text/tokens.ts';

export const matchModes = ['ANY', 'PHRASE', 'FUZZY', 'STEMMED', 'BOOLEAN', 'SUFFIX', 'INFIX'] as const;
export type MatchMode = (typeof matchModes)[number];

/** A test on terms. `edits`: a term passes too that differs by so many insertions, deletions and replacements of characters. */
export type Leaf =
  | { readonly kind: 'term'; readonly text: string; readonly edits: number }
  | { readonly kind: 'beginning' | 'end' | 'part'; readonly text: string; readonly edits: number }
  | { readonly kind: 'stem'; readonly text: string };

/** Words that must all be there, or must not. */
export interface BooleanStep {
  readonly op: 'or' | 'and';
  readonly negated: boolean;
  /** Numbers of leaves. */
  readonly all: readonly number[];
}

export interface TextQuery {
  readonly leaves: readonly Leaf[];
  /** `boolean`: from the left, beginning with no row. */
  readonly shape: 'any' | 'phrase' | readonly BooleanStep[];
  /** By leaf: whether rows score by it. */
  readonly scores: readonly boolean[];
}

/** `typo_tolerance` of a request. */
export interface TypoTolerance {
  readonly enabled: boolean;
  /** Characters from which on a word may differ. */
  readonly minWordSize: number;
  readonly disableOnWords: readonly string[];
  readonly disableOnAttributes: readonly string[];
}

/** Of one search: what is longer is refused, so that no text of a caller holds others up. */
const queryCharacters = 16_384;
const leavesMax = 256;
const patternsMax = 16;

/** Characters from which on a word may differ by two edits. */
const LONG_WORD = 9;

export interface QueryOptions {
  readonly mode: MatchMode;
  readonly typo: TypoTolerance | null;
  /** Of a term. */
  readonly stem: (term: string) => string;
}

/** Throws REL_INVALID for a text that asks for too much. */
export function parseTextQuery(text: string, options: QueryOptions): TextQuery {
  if (text.length > queryCharacters)
    throw tooMuch(`a text to match has at most ${queryCharacters} characters, this one has ${text.length}`);
  const query = new Parser(options).parse(text);
  if (query.leaves.length > leavesMax)
    throw tooMuch(`a text to match has at most ${leavesMax} words, this one has ${query.leaves.length}`);
  const patterns = query.leaves.filter(({ kind }) => kind === 'end' || kind === 'part').length;
  if (patterns > patternsMax)
    throw tooMuch(`a text to match has at most ${patternsMax} words with a leading *, this one has ${patterns}`);
  return query;
}

function tooMuch(detail: string): ServiceError {
  return new ServiceError('REL_INVALID', detail);
}

class Parser {
  readonly #options: QueryOptions;
  readonly #exact: ReadonlySet<string>;

  constructor(options: QueryOptions) {
    this.#options = options;
    this.#exact = new Set(options.typo?.disableOnWords.flatMap(tokensOf));
  }

  parse(text: string): TextQuery {
    const { mode, stem } = this.#options;
    switch (mode) {
      case 'ANY':
        return any(words(text).flatMap((word) => this.#word(word)));
      case 'FUZZY':
        return any(tokensOf(text).map((token) => this.#term(token)));
      case 'STEMMED':
        return any(tokensOf(text).map((token): Leaf => ({ kind: 'stem', text: stem(token) })));
      case 'SUFFIX':
      case 'INFIX': {
        const kind = mode === 'SUFFIX' ? 'end' : 'part';
        return any(tokensOf(text).map((token): Leaf => ({ kind, text: token, edits: this.#edits(token) })));
      }
      case 'PHRASE': {
        const leaves = tokensOf(text).map((token) => this.#term(token));
        return { leaves, shape: 'phrase', scores: leaves.map(() => true) };
      }
      case 'BOOLEAN':
        return this.#boolean(text);
    }
  }

  #boolean(text: string): TextQuery {
    const leaves: Leaf[] = [];
    const scores: boolean[] = [];
    const steps: BooleanStep[] = [];
    let op: BooleanStep['op'] = 'or';
    let negated = false;
    for (const word of words(text)) {
      if (word === 'AND' || word === 'OR') op = word === 'AND' ? 'and' : 'or';
      else if (word === 'NOT') {
        // `a NOT b` is a without b; a NOT in front begins with all rows.
        if (steps.length > 0 && op === 'or' && !this.#said) op = 'and';
        negated = true;
      } else {
        const found = this.#word(word);
        if (found.length === 0) continue;
        steps.push({ op, negated, all: found.map((leaf) => (scores.push(!negated), leaves.push(leaf) - 1)) });
        [op, negated] = ['or', false];
      }
      this.#said = word === 'OR';
    }
    return { leaves, shape: steps, scores };
  }

  /** The word before was OR. */
  #said = false;

  /** Words of the dialect hold several terms where letters meet digits or capitals. */
  #word(word: string): Leaf[] {
    const [leading, trailing] = [word.startsWith('*'), word.length > 1 && word.endsWith('*')];
    const tokens = tokensOf(word.replace(/^\*+|\*+$/g, ''));
    return tokens.map((text, i): Leaf => {
      const open = [leading && i === 0, trailing && i === tokens.length - 1];
      if (open[0] || open[1]) {
        return { kind: open[0] && open[1] ? 'part' : open[0] ? 'end' : 'beginning', text, edits: this.#edits(text) };
      }
      return this.#term(text);
    });
  }

  #term(text: string): Leaf {
    // What is stored of longer runs are pairs: one character is sought in them.
    if (ideograph.test(text)) return { kind: 'part', text, edits: 0 };
    return { kind: 'term', text, edits: this.#edits(text) };
  }

  #edits(term: string): number {
    const { mode, typo } = this.#options;
    const length = Array.from(term).length;
    const long = length >= LONG_WORD ? 2 : 1;
    if (mode === 'FUZZY') return long;
    if (mode === 'BOOLEAN' || !typo?.enabled || length < typo.minWordSize || this.#exact.has(term)) return 0;
    return long;
  }
}

const ideograph = /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]$/u;

function any(leaves: readonly Leaf[]): TextQuery {
  return { leaves, shape: 'any', scores: leaves.map(() => true) };
}

function words(text: string): string[] {
  return text.split(/\s+/u).filter((word) => word !== '');
}

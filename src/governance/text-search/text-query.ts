/**
 * Parses the text of MATCH: its words as tests on terms, and how their rows are combined.
 *
 *   default   rows with any of the words; `*word` ends so, `word*` begins so, `*word*` holds it
 *   ALL       all of the words, in any column and order
 *   LAST      the last word; the others only rank
 *   FREQUENCY the rarer half of the words, rounded up; the others only rank
 *   PHRASE    all words, one after the other
 *   FUZZY     any of the words, or one that differs by an edit; by two where it has 9 characters or more
 *   STEMMED   any word of the same stem
 *   BOOLEAN   AND, OR and NOT between words, from left to right; a space means OR
 *   SUFFIX    a word that ends so; INFIX one that holds it
 */
import { ServiceError } from '../../errors.ts';
import { stemmer } from '../../projections/rows/indexes/text/stems.ts';
import { tokenSpans, tokensOf } from '../../projections/rows/indexes/text/tokens.ts';
import { withoutTrailing } from '../../log/values/trim-end.ts';

export const matchModes = [
  'ANY',
  'ALL',
  'LAST',
  'FREQUENCY',
  'PHRASE',
  'FUZZY',
  'STEMMED',
  'BOOLEAN',
  'SUFFIX',
  'INFIX',
] as const;
export type MatchMode = (typeof matchModes)[number];

/** A test on terms. `edits`: a term passes too that differs by so many insertions, deletions and replacements of characters. */
export type Leaf =
  /** Any of these: a word and what means the same. */
  | { readonly kind: 'either'; readonly of: readonly Leaf[] }
  | { readonly kind: 'term'; readonly text: string; readonly edits: number }
  | { readonly kind: 'beginning' | 'end' | 'part'; readonly text: string; readonly edits: number }
  /** `language`: the language of the stem, where it is not that of the indexes. */
  | { readonly kind: 'stem'; readonly text: string; readonly language: string | null };

/** A condition on leaves: a leaf by its number, all or any of several conditions, or a negation. `any` of nothing is false. */
export type Condition =
  | number
  | { readonly all: readonly Condition[] }
  | { readonly any: readonly Condition[] }
  | { readonly not: Condition };

export interface TextQuery {
  readonly leaves: readonly Leaf[];
  /** `rarest`: the condition is known once it is known how rare words are. */
  readonly shape: 'any' | 'phrase' | 'rarest' | Condition;
  /** By leaf: whether rows score by it. */
  readonly scores: readonly boolean[];
}

/** `typo_tolerance` of a request. */
export interface TypoTolerance {
  readonly enabled: boolean;
  /** Characters from which on a word may differ by one edit, and by two. */
  readonly minWordSize: number;
  readonly longWordSize: number;
  readonly disableOnWords: readonly string[];
  readonly disableOnAttributes: readonly string[];
}

/** Limits of one search: a longer text is refused, so that no caller's text holds others up. */
const queryCharacters = 16_384;
const leavesMax = 256;
const patternsMax = 16;
const groupsMax = 32;

/** Characters from which on a word may differ by two edits. Source: specification, "Query". */
export const longWord = 9;

const anyWord = { enabled: true, minWordSize: 0, longWordSize: longWord, disableOnWords: [], disableOnAttributes: [] };

/** Values of `SERVICE_SEARCH_PRESET`. */
export const typoPresets = {
  exact: { ...anyWord, enabled: false },
  default: anyWord,
  forgiving: { ...anyWord, minWordSize: 3, longWordSize: 6 },
} as const satisfies Record<string, TypoTolerance>;

export interface QueryOptions {
  readonly mode: MatchMode;
  readonly typo: TypoTolerance | null;
  readonly rules: TextRules;
}

/** The rules by which the text of any search is read. */
export interface TextRules {
  /** The language of the stems; and that of the indexes. */
  readonly language: string;
  readonly indexed: string;
  readonly stopWords: ReadonlySet<string>;
  readonly synonyms: ReadonlyMap<string, readonly string[]>;
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
  readonly #stem: (term: string) => string;
  readonly #exact: ReadonlySet<string>;

  constructor(options: QueryOptions) {
    this.#options = options;
    this.#stem = stemmer(options.rules.language);
    this.#exact = new Set(options.typo?.disableOnWords.flatMap(tokensOf));
  }

  parse(text: string): TextQuery {
    const { mode } = this.#options;
    switch (mode) {
      case 'ANY':
        return any(this.#words(text).flatMap(leavesIn));
      case 'ALL':
      case 'LAST':
        return strict(mode, this.#words(text));
      case 'FREQUENCY': {
        const leaves = this.#words(text).flatMap(({ parts }) => parts);
        return leaves.length === 0 ? any(leaves) : { ...any(leaves), shape: 'rarest' };
      }
      case 'FUZZY':
        return any(this.#withoutStopWords(this.#termsOf(text, (term) => this.#term(term))).flatMap(leavesIn));
      case 'STEMMED':
        return any(this.#withoutStopWords(this.#termsOf(text, (term) => this.#stemLeaf(term))).flatMap(leavesIn));
      case 'SUFFIX':
      case 'INFIX': {
        const kind = mode === 'SUFFIX' ? 'end' : 'part';
        return any(this.#termsOf(text, (term) => ({ kind, text: term, edits: this.#edits(term) })).flatMap(leavesIn));
      }
      case 'PHRASE': {
        const leaves = tokensOf(text).map((token) => this.#term(token));
        return { leaves, shape: 'phrase', scores: leaves.map(() => true) };
      }
      case 'BOOLEAN':
        return this.#boolean(text);
    }
  }

  #words(text: string): readonly Word[] {
    return this.#withoutStopWords(words(text).flatMap((word) => this.#word(word)));
  }

  /** Each run of letters by itself, with its parts. */
  #termsOf(text: string, leafOf: (term: string) => Leaf): Word[] {
    const wordRuns: { parts: Leaf[]; whole: Leaf | null; readonly until: number }[] = [];
    for (const { term, ordinal, width } of tokenSpans(text).spans) {
      const last = wordRuns.at(-1);
      if (width > 1) wordRuns.push({ parts: [], whole: leafOf(term), until: ordinal + width });
      else if (last && ordinal < last.until) last.parts.push(leafOf(term));
      else wordRuns.push({ parts: [leafOf(term)], whole: null, until: ordinal });
    }
    return wordRuns;
  }

  /** Without stop words, unless there are no others. */
  #withoutStopWords(all: readonly Word[]): readonly Word[] {
    const { stopWords } = this.#options.rules;
    if (stopWords.size === 0) return all;
    const isKept = (leaf: Leaf): boolean => !stopWords.has(this.#wordOf.get(leaf) ?? '');
    const searchedWords = all.flatMap(({ parts, whole }): Word[] => {
      const own = { parts: parts.filter(isKept), whole: whole && isKept(whole) ? whole : null };
      return own.parts.length > 0 || own.whole ? [own] : [];
    });
    return searchedWords.length > 0 ? searchedWords : all;
  }

  /** Leaves that are whole words, as they were written. */
  readonly #wordOf = new Map<Leaf, string>();

  /** AND, OR and NOT go from the left; a parenthesis counts as one word. */
  #boolean(text: string): TextQuery {
    const leaves: Leaf[] = [];
    const scores: boolean[] = [];
    const pieces = [...text.matchAll(/[()]|[^\s()]+/gu)].map(([piece]) => piece);
    let at = 0;
    const group = (depth: number, isNegated: boolean): Condition | null => {
      if (depth > groupsMax) throw tooMuch(`a text to match has at most ${groupsMax} parentheses around each other`);
      let wordCondition: Condition | null = null;
      let op: 'or' | 'and' = 'or';
      let [negated, said] = [false, false];
      for (; at < pieces.length && pieces[at] !== ')'; at++) {
        const piece = pieces[at]!;
        if (piece === 'AND' || piece === 'OR') op = piece === 'AND' ? 'and' : 'or';
        else if (piece === 'NOT') {
          // `a NOT b` is a without b; a NOT in front begins with all rows.
          if (wordCondition !== null && op === 'or' && !said) op = 'and';
          negated = true;
        } else {
          const isInside = negated !== isNegated;
          const own = piece === '(' ? (at++, group(depth + 1, isInside)) : this.#conditionFor(piece, leaves, scores, !isInside);
          if (piece === '(' && pieces[at] !== ')')
            throw new ServiceError('REL_INVALID', 'a parenthesis of the text to match is not closed');
          if (own !== null) {
            const next: Condition = negated ? { not: own } : own;
            wordCondition =
              wordCondition === null
                ? op === 'and'
                  ? { any: [] }
                  : next
                : op === 'and'
                  ? { all: [wordCondition, next] }
                  : { any: [wordCondition, next] };
            [op, negated] = ['or', false];
          }
        }
        said = piece === 'OR';
      }
      return wordCondition;
    };
    const rootCondition = group(0, false);
    if (at < pieces.length) throw new ServiceError('REL_INVALID', 'a parenthesis of the text to match was never opened');
    return { leaves, shape: rootCondition ?? { any: [] }, scores };
  }

  /** All parts of a word, or the word. */
  #conditionFor(piece: string, leaves: Leaf[], scores: boolean[], isScoring: boolean): Condition | null {
    const add = (leaf: Leaf): number => (scores.push(isScoring), leaves.push(leaf) - 1);
    const each = this.#word(piece).map((word) => conditionOf(word, add));
    return each.length === 0 ? null : each.length === 1 ? each[0]! : { all: each };
  }

  /** Words of the dialect hold several terms where letters meet digits or capitals. */
  #word(word: string): Word[] {
    const [leading, trailing] = [word.startsWith('*'), word.length > 1 && word.endsWith('*')];
    const plain = withoutTrailing(word, '*').replace(/^\*+/, '');
    const { spans } = tokenSpans(plain);
    const [begin, end] = [spans[0]?.start, spans.at(-1)?.end];
    let at = 0;
    // A whole word comes before its parts, and stands as they do.
    return this.#termsOf(plain, (term) => {
      const span = spans[at++]!;
      const open = [leading && span.start === begin, trailing && span.end === end];
      if (!open[0] && !open[1]) return this.#term(term);
      return { kind: open[0] && open[1] ? 'part' : open[0] ? 'end' : 'beginning', text: term, edits: this.#edits(term) };
    });
  }

  #term(text: string): Leaf {
    // Longer runs of ideographs are stored as pairs: a single character is sought within them.
    if (ideograph.test(text)) return { kind: 'part', text, edits: 0 };
    return this.#withSynonyms(text, (term, isOwn) => ({ kind: 'term', text: term, edits: isOwn ? this.#edits(term) : 0 }));
  }

  #stemLeaf(text: string): Leaf {
    const { language, indexed } = this.#options.rules;
    const other = language === indexed ? null : language;
    return this.#withSynonyms(text, (term) => ({ kind: 'stem', text: this.#stem(term), language: other }));
  }

  #withSynonyms(text: string, leafOf: (term: string, isOwn: boolean) => Leaf): Leaf {
    const own = leafOf(text, true);
    const others = (this.#options.rules.synonyms.get(text) ?? []).map((term) => leafOf(term, false));
    const leaf: Leaf = others.length === 0 ? own : { kind: 'either', of: [own, ...others] };
    this.#wordOf.set(leaf, text);
    return leaf;
  }

  #edits(term: string): number {
    const { mode, typo } = this.#options;
    const length = Array.from(term).length;
    if (mode === 'FUZZY') return length >= longWord ? 2 : 1;
    if (mode === 'BOOLEAN' || !typo?.enabled || length < typo.minWordSize || this.#exact.has(term)) return 0;
    return length >= typo.longWordSize ? 2 : 1;
  }
}

const ideograph = /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]$/u;

function any(leaves: readonly Leaf[]): TextQuery {
  return { leaves, shape: 'any', scores: leaves.map(() => true) };
}

/** A word as it is sought: by its parts, and by itself where capitals part it. */
interface Word {
  readonly parts: readonly Leaf[];
  readonly whole: Leaf | null;
}

function leavesIn({ parts, whole }: Word): readonly Leaf[] {
  return whole ? [...parts, whole] : parts;
}

function conditionOf({ parts, whole }: Word, add: (leaf: Leaf) => number): Condition {
  const all = parts.map(add);
  const own: Condition = all.length === 1 ? all[0]! : { all };
  return whole === null ? own : all.length === 0 ? add(whole) : { any: [own, add(whole)] };
}

/** All of them rank, and some have to be there. */
function strict(mode: 'ALL' | 'LAST', all: readonly Word[]): TextQuery {
  const leaves: Leaf[] = [];
  const add = (leaf: Leaf): number => leaves.push(leaf) - 1;
  const each = all.map((word) => conditionOf(word, add));
  if (each.length === 0) return any(leaves);
  const last = all.at(-1)!;
  const ends = { parts: last.parts.slice(-1), whole: last.whole };
  const shape: Condition = mode === 'ALL' ? { all: each } : conditionOf(ends, (leaf) => leaves.lastIndexOf(leaf));
  return { ...any(leaves), shape };
}

/** Resolves `rarest` by how many rows hold each leaf; ties go to the first. */
export function rarestOf(frequencies: readonly number[]): Condition {
  const rising = [...frequencies.keys()].sort((a, b) => frequencies[a]! - frequencies[b]! || a - b);
  return { all: rising.slice(0, Math.ceil(frequencies.length / 2)) };
}

function words(text: string): string[] {
  return text.split(/\s+/u).filter((word) => word !== '');
}

/**
 * What MATCH asks for: the words of its text as tests on terms, and how their rows go together.
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
import { tokensOf } from '../../projections/rows/indexes/text/tokens.ts';

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
  /** `language`: whose stem, where it is not that of the indexes. */
  | { readonly kind: 'stem'; readonly text: string; readonly language: string | null };

/** Words that must all be there, or must not. */
export interface BooleanStep {
  readonly op: 'or' | 'and';
  readonly negated: boolean;
  /** Numbers of leaves. */
  readonly all: readonly number[];
}

export interface TextQuery {
  readonly leaves: readonly Leaf[];
  /** Steps go from the left, beginning with no row; `rarest`: what they are is known once it is known how rare words are. */
  readonly shape: 'any' | 'phrase' | 'rarest' | readonly BooleanStep[];
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

/** Limits of one search: what is longer is refused, so that no text of a caller holds others up. */
const queryCharacters = 16_384;
const leavesMax = 256;
const patternsMax = 16;

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

/** What a text is read by, whatever it seeks. */
export interface TextRules {
  /** Whose stems; and those of the indexes. */
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
        return any(this.#words(text));
      case 'ALL':
      case 'LAST':
      case 'FREQUENCY':
        return strict(mode, this.#words(text));
      case 'FUZZY':
        return any(this.#kept(tokensOf(text).map((token) => this.#term(token))));
      case 'STEMMED':
        return any(this.#kept(tokensOf(text).map((token) => this.#stemmed(token))));
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

  #words(text: string): readonly Leaf[] {
    return this.#kept(words(text).flatMap((word) => this.#word(word)));
  }

  /** Without stop words, unless there are no others. */
  #kept(leaves: readonly Leaf[]): readonly Leaf[] {
    const { stopWords } = this.#options.rules;
    if (stopWords.size === 0) return leaves;
    const kept = leaves.filter((leaf) => !stopWords.has(this.#wordOf.get(leaf) ?? ''));
    return kept.length > 0 ? kept : leaves;
  }

  /** Leaves that are whole words, as they were written. */
  readonly #wordOf = new Map<Leaf, string>();

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
    return this.#withSynonyms(text, (term, isOwn) => ({ kind: 'term', text: term, edits: isOwn ? this.#edits(term) : 0 }));
  }

  #stemmed(text: string): Leaf {
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

/** All of them rank, and some have to be there. */
function strict(mode: 'ALL' | 'LAST' | 'FREQUENCY', leaves: readonly Leaf[]): TextQuery {
  const query = any(leaves);
  if (leaves.length === 0) return query;
  if (mode === 'FREQUENCY') return { ...query, shape: 'rarest' };
  return { ...query, shape: required(mode === 'ALL' ? [...leaves.keys()] : [leaves.length - 1]) };
}

/** Rows with all of these leaves. */
function required(all: readonly number[]): readonly BooleanStep[] {
  return [{ op: 'or', negated: false, all }];
}

/** What `rarest` comes to, by how many rows hold each leaf: of those that are as rare as each other the first. */
export function rarestOf(frequencies: readonly number[]): readonly BooleanStep[] {
  const rising = [...frequencies.keys()].sort((a, b) => frequencies[a]! - frequencies[b]! || a - b);
  return required(rising.slice(0, Math.ceil(frequencies.length / 2)));
}

function words(text: string): string[] {
  return text.split(/\s+/u).filter((word) => word !== '');
}

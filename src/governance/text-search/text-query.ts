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

/** A condition on leaves: a leaf by its number, all or any of several conditions, or a negation. `anyQuery` of nothing is false. */
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
const queryLeavesMax = 256;
const queryPatternsMax = 16;
const queryGroupsMax = 32;

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
    throw tooLongQueryError(`a text to match has at most ${queryCharacters} characters, this one has ${text.length}`);
  const textQuery = new TextQueryParser(options).parse(text);
  if (textQuery.leaves.length > queryLeavesMax)
    throw tooLongQueryError(`a text to match has at most ${queryLeavesMax} words, this one has ${textQuery.leaves.length}`);
  const patternCount = textQuery.leaves.filter(({ kind }) => kind === 'end' || kind === 'part').length;
  if (patternCount > queryPatternsMax)
    throw tooLongQueryError(
      `a text to match has at most ${queryPatternsMax} words with a leading *, this one has ${patternCount}`,
    );
  return textQuery;
}

function tooLongQueryError(detail: string): ServiceError {
  return new ServiceError('REL_INVALID', detail);
}

class TextQueryParser {
  readonly #queryOptions: QueryOptions;
  readonly #stemTerm: (term: string) => string;
  readonly #exactWords: ReadonlySet<string>;

  constructor(options: QueryOptions) {
    this.#queryOptions = options;
    this.#stemTerm = stemmer(options.rules.language);
    this.#exactWords = new Set(options.typo?.disableOnWords.flatMap(tokensOf));
  }

  parse(text: string): TextQuery {
    const { mode } = this.#queryOptions;
    switch (mode) {
      case 'ANY':
        return anyQuery(this.#queryWords(text).flatMap(leavesOfWord));
      case 'ALL':
      case 'LAST':
        return strictQuery(mode, this.#queryWords(text));
      case 'FREQUENCY': {
        const queryLeaves = this.#queryWords(text).flatMap(({ parts }) => parts);
        return queryLeaves.length === 0 ? anyQuery(queryLeaves) : { ...anyQuery(queryLeaves), shape: 'rarest' };
      }
      case 'FUZZY':
        return anyQuery(this.#withoutStopWords(this.#wordsOfTerms(text, (term) => this.#termLeaf(term))).flatMap(leavesOfWord));
      case 'STEMMED':
        return anyQuery(this.#withoutStopWords(this.#wordsOfTerms(text, (term) => this.#stemLeaf(term))).flatMap(leavesOfWord));
      case 'SUFFIX':
      case 'INFIX': {
        const leafKind = mode === 'SUFFIX' ? 'end' : 'part';
        return anyQuery(
          this.#wordsOfTerms(text, (term) => ({ kind: leafKind, text: term, edits: this.#editsFor(term) })).flatMap(leavesOfWord),
        );
      }
      case 'PHRASE': {
        const queryLeaves = tokensOf(text).map((queryToken) => this.#termLeaf(queryToken));
        return { leaves: queryLeaves, shape: 'phrase', scores: queryLeaves.map(() => true) };
      }
      case 'BOOLEAN':
        return this.#parseBoolean(text);
    }
  }

  #queryWords(text: string): readonly QueryWord[] {
    return this.#withoutStopWords(splitWords(text).flatMap((word) => this.#parseWord(word)));
  }

  /** Each run of letters by itself, with its parts. */
  #wordsOfTerms(text: string, leafOf: (term: string) => Leaf): QueryWord[] {
    const wordRuns: { parts: Leaf[]; whole: Leaf | null; readonly until: number }[] = [];
    for (const { term, ordinal, width } of tokenSpans(text).spans) {
      const lastWord = wordRuns.at(-1);
      if (width > 1) wordRuns.push({ parts: [], whole: leafOf(term), until: ordinal + width });
      else if (lastWord && ordinal < lastWord.until) lastWord.parts.push(leafOf(term));
      else wordRuns.push({ parts: [leafOf(term)], whole: null, until: ordinal });
    }
    return wordRuns;
  }

  /** Without stop words, unless there are no others. */
  #withoutStopWords(queryWords: readonly QueryWord[]): readonly QueryWord[] {
    const { stopWords } = this.#queryOptions.rules;
    if (stopWords.size === 0) return queryWords;
    const isKept = (leaf: Leaf): boolean => !stopWords.has(this.#wordOfLeaf.get(leaf) ?? '');
    const searchedWords = queryWords.flatMap(({ parts, whole }): QueryWord[] => {
      const keptWord = { parts: parts.filter(isKept), whole: whole && isKept(whole) ? whole : null };
      return keptWord.parts.length > 0 || keptWord.whole ? [keptWord] : [];
    });
    return searchedWords.length > 0 ? searchedWords : queryWords;
  }

  /** Leaves that are whole words, as they were written. */
  readonly #wordOfLeaf = new Map<Leaf, string>();

  /** AND, OR and NOT go from the left; a parenthesis counts as one word. */
  #parseBoolean(text: string): TextQuery {
    const leaves: Leaf[] = [];
    const scores: boolean[] = [];
    const booleanPieces = [...text.matchAll(/[()]|[^\s()]+/gu)].map(([piece]) => piece);
    let pieceAt = 0;
    const parseGroup = (depth: number, isNegated: boolean): Condition | null => {
      if (depth > queryGroupsMax)
        throw tooLongQueryError(`a text to match has at most ${queryGroupsMax} parentheses around each other`);
      let wordCondition: Condition | null = null;
      let booleanOp: 'or' | 'and' = 'or';
      let [isNotPending, isOrSaid] = [false, false];
      for (; pieceAt < booleanPieces.length && booleanPieces[pieceAt] !== ')'; pieceAt++) {
        const booleanPiece = booleanPieces[pieceAt]!;
        if (booleanPiece === 'AND' || booleanPiece === 'OR') booleanOp = booleanPiece === 'AND' ? 'and' : 'or';
        else if (booleanPiece === 'NOT') {
          // `a NOT b` is a without b; a NOT in front begins with all rows.
          if (wordCondition !== null && booleanOp === 'or' && !isOrSaid) booleanOp = 'and';
          isNotPending = true;
        } else {
          const isInside = isNotPending !== isNegated;
          const pieceCondition =
            booleanPiece === '('
              ? (pieceAt++, parseGroup(depth + 1, isInside))
              : this.#conditionFor(booleanPiece, leaves, scores, !isInside);
          if (booleanPiece === '(' && booleanPieces[pieceAt] !== ')')
            throw new ServiceError('REL_INVALID', 'a parenthesis of the text to match is not closed');
          if (pieceCondition !== null) {
            const nextCondition: Condition = isNotPending ? { not: pieceCondition } : pieceCondition;
            wordCondition =
              wordCondition === null
                ? booleanOp === 'and'
                  ? { any: [] }
                  : nextCondition
                : booleanOp === 'and'
                  ? { all: [wordCondition, nextCondition] }
                  : { any: [wordCondition, nextCondition] };
            [booleanOp, isNotPending] = ['or', false];
          }
        }
        isOrSaid = booleanPiece === 'OR';
      }
      return wordCondition;
    };
    const rootCondition = parseGroup(0, false);
    if (pieceAt < booleanPieces.length)
      throw new ServiceError('REL_INVALID', 'a parenthesis of the text to match was never opened');
    return { leaves, shape: rootCondition ?? { any: [] }, scores };
  }

  /** All parts of a word, or the word. */
  #conditionFor(booleanPiece: string, leaves: Leaf[], scores: boolean[], isScoring: boolean): Condition | null {
    const addLeaf = (leaf: Leaf): number => (scores.push(isScoring), leaves.push(leaf) - 1);
    const wordConditions = this.#parseWord(booleanPiece).map((word) => conditionOfWord(word, addLeaf));
    return wordConditions.length === 0 ? null : wordConditions.length === 1 ? wordConditions[0]! : { all: wordConditions };
  }

  /** Words of the dialect hold several terms where letters meet digits or capitals. */
  #parseWord(word: string): QueryWord[] {
    const [hasLeadingStar, hasTrailingStar] = [word.startsWith('*'), word.length > 1 && word.endsWith('*')];
    const plainWord = withoutTrailing(word, '*').replace(/^\*+/, '');
    const { spans } = tokenSpans(plainWord);
    const [firstStart, lastEnd] = [spans[0]?.start, spans.at(-1)?.end];
    let spanOrdinal = 0;
    // A whole word comes before its parts, and stands as they do.
    return this.#wordsOfTerms(plainWord, (term) => {
      const tokenSpan = spans[spanOrdinal++]!;
      const openEnds = [hasLeadingStar && tokenSpan.start === firstStart, hasTrailingStar && tokenSpan.end === lastEnd];
      if (!openEnds[0] && !openEnds[1]) return this.#termLeaf(term);
      return {
        kind: openEnds[0] && openEnds[1] ? 'part' : openEnds[0] ? 'end' : 'beginning',
        text: term,
        edits: this.#editsFor(term),
      };
    });
  }

  #termLeaf(text: string): Leaf {
    // Longer runs of ideographs are stored as pairs: a single character is sought within them.
    if (ideographPattern.test(text)) return { kind: 'part', text, edits: 0 };
    return this.#leafWithSynonyms(text, (term, isOwn) => ({ kind: 'term', text: term, edits: isOwn ? this.#editsFor(term) : 0 }));
  }

  #stemLeaf(text: string): Leaf {
    const { language, indexed } = this.#queryOptions.rules;
    const otherLanguage = language === indexed ? null : language;
    return this.#leafWithSynonyms(text, (term) => ({ kind: 'stem', text: this.#stemTerm(term), language: otherLanguage }));
  }

  #leafWithSynonyms(text: string, leafOf: (term: string, isOwn: boolean) => Leaf): Leaf {
    const ownLeaf = leafOf(text, true);
    const synonymLeaves = (this.#queryOptions.rules.synonyms.get(text) ?? []).map((term) => leafOf(term, false));
    const termLeaf: Leaf = synonymLeaves.length === 0 ? ownLeaf : { kind: 'either', of: [ownLeaf, ...synonymLeaves] };
    this.#wordOfLeaf.set(termLeaf, text);
    return termLeaf;
  }

  #editsFor(term: string): number {
    const { mode, typo } = this.#queryOptions;
    const termLength = Array.from(term).length;
    if (mode === 'FUZZY') return termLength >= longWord ? 2 : 1;
    if (mode === 'BOOLEAN' || !typo?.enabled || termLength < typo.minWordSize || this.#exactWords.has(term)) return 0;
    return termLength >= typo.longWordSize ? 2 : 1;
  }
}

const ideographPattern = /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]$/u;

function anyQuery(leaves: readonly Leaf[]): TextQuery {
  return { leaves, shape: 'any', scores: leaves.map(() => true) };
}

/** A word as it is sought: by its parts, and by itself where capitals part it. */
interface QueryWord {
  readonly parts: readonly Leaf[];
  readonly whole: Leaf | null;
}

function leavesOfWord({ parts, whole }: QueryWord): readonly Leaf[] {
  return whole ? [...parts, whole] : parts;
}

function conditionOfWord({ parts, whole }: QueryWord, addLeaf: (leaf: Leaf) => number): Condition {
  const partLeaves = parts.map(addLeaf);
  const partsCondition: Condition = partLeaves.length === 1 ? partLeaves[0]! : { all: partLeaves };
  return whole === null ? partsCondition : partLeaves.length === 0 ? addLeaf(whole) : { any: [partsCondition, addLeaf(whole)] };
}

/** All of them rank, and some have to be there. */
function strictQuery(mode: 'ALL' | 'LAST', strictWords: readonly QueryWord[]): TextQuery {
  const leaves: Leaf[] = [];
  const addLeaf = (leaf: Leaf): number => leaves.push(leaf) - 1;
  const wordConditions = strictWords.map((word) => conditionOfWord(word, addLeaf));
  if (wordConditions.length === 0) return anyQuery(leaves);
  const lastWord = strictWords.at(-1)!;
  const lastParts = { parts: lastWord.parts.slice(-1), whole: lastWord.whole };
  const strictShape: Condition =
    mode === 'ALL' ? { all: wordConditions } : conditionOfWord(lastParts, (leaf) => leaves.lastIndexOf(leaf));
  return { ...anyQuery(leaves), shape: strictShape };
}

/** Resolves `rarest` by how many rows hold each leaf; ties go to the first. */
export function rarestOf(frequencies: readonly number[]): Condition {
  const risingFrequencies = [...frequencies.keys()].sort((a, b) => frequencies[a]! - frequencies[b]! || a - b);
  return { all: risingFrequencies.slice(0, Math.ceil(frequencies.length / 2)) };
}

function splitWords(text: string): string[] {
  return text.split(/\s+/u).filter((word) => word !== '');
}

/**
 * The rules by which the texts of one execution are searched: the tenant's configuration as of the basis, and the request's
 * options.
 */
import type { TypeDefinition } from '../../log/entries/entry.ts';
import { splitTypeName } from '../../projections/access-paths.ts';
import type { SearchConfig } from '../../projections/tenants/search-config.ts';
import { TextMatcher } from './match-text.ts';
import { Highlighter } from './highlight.ts';
import { longWord, type MatchMode, type TextRules, type TypoTolerance } from '../../governance/text-search/text-query.ts';

/** Matchers of one execution. */
const cachedMatchersMax = 64;

export class SearchRules {
  readonly #searchConfig: SearchConfig;
  readonly #indexedLanguage: string;
  readonly #typoTolerance: TypoTolerance | null;
  readonly #highlightersByQuery = new Map<string, Highlighter>();
  readonly #matchersByQuery = new Map<string, TextMatcher>();

  /** `typo` of a request; `configured` with the default for tenants without a setting. */
  constructor(
    searchConfig: SearchConfig,
    indexedLanguage: string,
    typo: TypoTolerance | { readonly otherwise: TypoTolerance } | null,
  ) {
    this.#searchConfig = searchConfig;
    this.#indexedLanguage = indexedLanguage;
    if (typo === null || !('otherwise' in typo)) this.#typoTolerance = typo;
    else this.#typoTolerance = searchConfig.typo ? { ...searchConfig.typo, longWordSize: longWord } : typo.otherwise;
  }

  /** How far words may differ that are sought in a column. */
  typo(column: string): TypoTolerance | null {
    return this.#typoTolerance?.disableOnAttributes.includes(column) ? null : this.#typoTolerance;
  }

  /** Rules for a type, whose texts may be in a language of their own; undefined: for any. */
  rulesFor(type: TypeDefinition | undefined): TextRules {
    const { language, stopWords, synonyms } = this.#searchConfig;
    const typeLanguage = type?.language === undefined ? undefined : stemmerLanguage(type.language);
    return { language: typeLanguage ?? language ?? this.#indexedLanguage, indexed: this.#indexedLanguage, stopWords, synonyms };
  }

  /** The weight of a column's words; undefined where none is configured. */
  weight(type: string, column: string): number | undefined {
    return this.#searchConfig.fieldWeights.get(splitTypeName(type)?.type ?? type)?.get(column);
  }

  /** Marks the words in texts, or in those of JSON, that these seek. */
  highlighter(searchQueries: readonly string[], modes: readonly MatchMode[], column: string): Highlighter {
    const highlighterKey = `${column}\0${searchQueries.join('\0')}`;
    let highlighter = this.#highlightersByQuery.get(highlighterKey);
    if (!highlighter) {
      highlighter = new Highlighter(searchQueries.map((query, i) => this.matcher(query, modes[i]!, column)));
      if (this.#highlightersByQuery.size < cachedMatchersMax) this.#highlightersByQuery.set(highlighterKey, highlighter);
    }
    return highlighter;
  }

  /** Tells texts by themselves. The same matcher for the same words. */
  matcher(searchText: string, mode: MatchMode, column: string): TextMatcher {
    const matcherKey = `${mode}\0${column}\0${searchText}`;
    let textMatcher = this.#matchersByQuery.get(matcherKey);
    if (textMatcher) return textMatcher;
    textMatcher = new TextMatcher(searchText, { mode, typo: this.typo(column), rules: this.rulesFor(undefined) });
    if (this.#matchersByQuery.size < cachedMatchersMax) this.#matchersByQuery.set(matcherKey, textMatcher);
    return textMatcher;
  }
}

/** The language of a BCP 47 tag; undefined for one whose words have no stems here. */
function stemmerLanguage(languageTag: string): string | undefined {
  return stemmerLanguages.get(languageTag.split('-', 1)[0]!.toLowerCase());
}

const stemmerLanguages: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ar: 'arabic',
    ca: 'catalan',
    cs: 'czech',
    da: 'danish',
    de: 'german',
    en: 'english',
    es: 'spanish',
    eu: 'basque',
    fi: 'finnish',
    fr: 'french',
    ga: 'irish',
    hu: 'hungarian',
    hy: 'armenian',
    it: 'italian',
    nb: 'norwegian',
    nl: 'dutch',
    nn: 'norwegian',
    no: 'norwegian',
    pt: 'portuguese',
    ro: 'romanian',
    ru: 'russian',
    sl: 'slovene',
    sv: 'swedish',
    ta: 'tamil',
    tr: 'turkish',
  }),
);

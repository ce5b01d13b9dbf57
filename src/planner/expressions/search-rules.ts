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
const matchersMost = 64;

export class SearchRules {
  readonly #config: SearchConfig;
  readonly #indexed: string;
  readonly #typo: TypoTolerance | null;
  readonly #highlighters = new Map<string, Highlighter>();
  readonly #matchers = new Map<string, TextMatcher>();

  /** `typo` of a request; `configured` with the default for tenants without a setting. */
  constructor(config: SearchConfig, indexed: string, typo: TypoTolerance | { readonly otherwise: TypoTolerance } | null) {
    this.#config = config;
    this.#indexed = indexed;
    if (typo === null || !('otherwise' in typo)) this.#typo = typo;
    else this.#typo = config.typo ? { ...config.typo, longWordSize: longWord } : typo.otherwise;
  }

  /** How far words may differ that are sought in a column. */
  typo(column: string): TypoTolerance | null {
    return this.#typo?.disableOnAttributes.includes(column) ? null : this.#typo;
  }

  /** Rules for a type, whose texts may be in a language of their own; undefined: for any. */
  rulesFor(type: TypeDefinition | undefined): TextRules {
    const { language, stopWords, synonyms } = this.#config;
    const own = type?.language === undefined ? undefined : languageOf(type.language);
    return { language: own ?? language ?? this.#indexed, indexed: this.#indexed, stopWords, synonyms };
  }

  /** The weight of a column's words; undefined where none is configured. */
  weight(type: string, column: string): number | undefined {
    return this.#config.fieldWeights.get(splitTypeName(type)?.type ?? type)?.get(column);
  }

  /** Marks the words in texts, or in those of JSON, that these seek. */
  highlighter(queries: readonly string[], modes: readonly MatchMode[], column: string): Highlighter {
    const key = `${column}\0${queries.join('\0')}`;
    let highlighter = this.#highlighters.get(key);
    if (!highlighter) {
      highlighter = new Highlighter(queries.map((query, i) => this.matcher(query, modes[i]!, column)));
      if (this.#highlighters.size < matchersMost) this.#highlighters.set(key, highlighter);
    }
    return highlighter;
  }

  /** Tells texts by themselves. The same matcher for the same words. */
  matcher(text: string, mode: MatchMode, column: string): TextMatcher {
    const key = `${mode}\0${column}\0${text}`;
    let matcher = this.#matchers.get(key);
    if (matcher) return matcher;
    matcher = new TextMatcher(text, { mode, typo: this.typo(column), rules: this.rulesFor(undefined) });
    if (this.#matchers.size < matchersMost) this.#matchers.set(key, matcher);
    return matcher;
  }
}

/** The language of a BCP 47 tag; undefined for one whose words have no stems here. */
function languageOf(tag: string): string | undefined {
  return stems.get(tag.split('-', 1)[0]!.toLowerCase());
}

const stems: ReadonlyMap<string, string> = new Map(
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

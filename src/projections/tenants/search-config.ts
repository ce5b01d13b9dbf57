/**
 * Defaults of a tenant's searches, set by its administrator. The JSON is stored as sent; earlier releases took any, so reading
 * skips invalid members, while setting refuses them.
 */
import { textLanguages } from '../../config.ts';
import { ServiceError } from '../../errors.ts';
import type { Json } from '../../log/values/canonical-json.ts';
import { tokensOf } from '../rows/indexes/text/tokens.ts';

export interface SearchConfig {
  /** Language of the stems; null: the store's setting. */
  readonly language: string | null;
  /** Terms that are not searched for where others are. */
  readonly stopWords: ReadonlySet<string>;
  /** By term: those that mean the same. */
  readonly synonyms: ReadonlyMap<string, readonly string[]>;
  /** By type and column: the weight of words there. */
  readonly fieldWeights: ReadonlyMap<string, ReadonlyMap<string, number>>;
  /** null: the store's preset. */
  readonly typo: TypoConfig | null;
}

export interface TypoConfig {
  readonly enabled: boolean;
  readonly minWordSize: number;
  readonly disableOnWords: readonly string[];
  readonly disableOnAttributes: readonly string[];
}

export const noSearchConfig: SearchConfig = {
  language: null,
  stopWords: new Set(),
  synonyms: new Map(),
  fieldWeights: new Map(),
  typo: null,
};

type Members = Readonly<Record<string, Json>>;

/** Throws REL_UNPROCESSABLE for what no search could go by. */
export function checkSearchConfig(search: Members): void {
  read(search, (text) => {
    throw new ServiceError('REL_UNPROCESSABLE', `config: ${text}`);
  });
}

export function searchConfigOf(search: Members): SearchConfig {
  return read(search, () => undefined);
}

/** Called with what is wrong with a member; where it returns, the member counts for nothing. */
type Wrong = (text: string) => undefined;

const weightMost = 1e6;
const wordSizeMost = 1_000;

function read(search: Members, wrong: Wrong): SearchConfig {
  checkMembers(search, ['language', 'stop_words', 'synonyms', 'field_weights', 'typo_tolerance'], '', wrong);
  const { language, stop_words: stopWords, synonyms, field_weights: weights, typo_tolerance: typo } = search;
  return {
    language: language === undefined ? null : (languageOf(language, wrong) ?? null),
    stopWords: new Set(textsOf(stopWords, 'stop_words', wrong).flatMap(tokensOf)),
    synonyms: synonymsOf(synonyms, wrong),
    fieldWeights: weightsOf(weights, wrong),
    typo: typo === undefined ? null : (typoOf(typo, wrong) ?? null),
  };
}

function checkMembers(object: Members, names: readonly string[], within: string, wrong: Wrong): void {
  const unknown = Object.keys(object).find((name) => !names.includes(name));
  if (unknown !== undefined) wrong(`${within}${JSON.stringify(unknown.slice(0, 64))} is none of ${names.join(', ')}`);
}

function languageOf(value: Json, wrong: Wrong): string | undefined {
  if (typeof value === 'string' && textLanguages.includes(value)) return value;
  return wrong(`language is one of ${textLanguages.join(', ')}`);
}

function textsOf(value: Json | undefined, name: string, wrong: Wrong): readonly string[] {
  if (value === undefined) return [];
  if (Array.isArray(value) && value.every((each) => typeof each === 'string')) return value;
  return wrong(`${name} is a list of texts`) ?? [];
}

function synonymsOf(value: Json | undefined, wrong: Wrong): SearchConfig['synonyms'] {
  const synonyms = new Map<string, string[]>();
  if (value === undefined) return synonyms;
  if (!Array.isArray(value)) return wrong('synonyms is a list of lists of words') ?? synonyms;
  for (const group of value) {
    const terms = [...new Set(textsOf(group, 'a group of synonyms', wrong).map((word) => termOf(word, wrong)))];
    if (terms.length < 2) wrong('a group of synonyms has two words or more');
    for (const term of terms) {
      const others = terms.filter((other) => other !== term && other !== '');
      if (term !== '') synonyms.set(term, [...new Set([...(synonyms.get(term) ?? []), ...others])]);
    }
  }
  return synonyms;
}

function termOf(word: string, wrong: Wrong): string {
  const [term, ...others] = tokensOf(word);
  if (term !== undefined && others.length === 0) return term;
  return (
    wrong(`a synonym is one word: ${JSON.stringify(word.slice(0, 64))} is ${others.length + 1 - +(term === undefined)}`) ?? ''
  );
}

function weightsOf(value: Json | undefined, wrong: Wrong): SearchConfig['fieldWeights'] {
  const weights = new Map<string, ReadonlyMap<string, number>>();
  if (value === undefined) return weights;
  if (!isObject(value)) return wrong('field_weights is {type: {column: number}}') ?? weights;
  for (const [type, columns] of Object.entries(value)) {
    if (!isObject(columns)) wrong(`field_weights of ${JSON.stringify(type.slice(0, 64))} is {column: number}`);
    const own = new Map<string, number>();
    for (const [column, weight] of Object.entries(isObject(columns) ? columns : {})) {
      if (typeof weight === 'number' && weight >= 0 && weight <= weightMost) own.set(column, weight);
      else wrong(`field_weights: what a column weighs is a number from 0 to ${weightMost}`);
    }
    weights.set(type, own);
  }
  return weights;
}

function typoOf(value: Json, wrong: Wrong): TypoConfig | undefined {
  if (!isObject(value)) return wrong('typo_tolerance is an object');
  checkMembers(value, ['enabled', 'min_word_size', 'disable_on_words', 'disable_on_attributes'], 'typo_tolerance: ', wrong);
  const { enabled = true, min_word_size: size = 0, disable_on_words: words, disable_on_attributes: attributes } = value;
  const isSize = typeof size === 'number' && Number.isInteger(size) && size >= 0 && size <= wordSizeMost;
  if (typeof enabled !== 'boolean') return wrong('typo_tolerance: enabled is true or false');
  if (!isSize) return wrong(`typo_tolerance: min_word_size is a whole number from 0 to ${wordSizeMost}`);
  return {
    enabled,
    minWordSize: size,
    disableOnWords: textsOf(words, 'disable_on_words', wrong),
    disableOnAttributes: textsOf(attributes, 'disable_on_attributes', wrong),
  };
}

function isObject(value: Json): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

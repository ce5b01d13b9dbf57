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

type SearchSettings = Readonly<Record<string, Json>>;

/** Throws REL_UNPROCESSABLE for what no search could go by. */
export function checkSearchConfig(search: SearchSettings): void {
  readSearchConfig(search, (settingProblem) => {
    throw new ServiceError('REL_UNPROCESSABLE', `config: ${settingProblem}`);
  });
}

export function searchConfigOf(search: SearchSettings): SearchConfig {
  return readSearchConfig(search, () => undefined);
}

/** Called with what is wrong with a member; where it returns, the member counts for nothing. */
type RefuseSetting = (text: string) => undefined;

const fieldWeightMax = 1e6;
const minWordSizeMax = 1_000;

function readSearchConfig(searchSettings: SearchSettings, refuseSetting: RefuseSetting): SearchConfig {
  checkSettingNames(searchSettings, ['language', 'stop_words', 'synonyms', 'field_weights', 'typo_tolerance'], '', refuseSetting);
  const {
    language,
    stop_words: stopWords,
    synonyms,
    field_weights: fieldWeights,
    typo_tolerance: typoTolerance,
  } = searchSettings;
  return {
    language: language === undefined ? null : (searchLanguageOf(language, refuseSetting) ?? null),
    stopWords: new Set(settingTextsOf(stopWords, 'stop_words', refuseSetting).flatMap(tokensOf)),
    synonyms: synonymsOf(synonyms, refuseSetting),
    fieldWeights: fieldWeightsOf(fieldWeights, refuseSetting),
    typo: typoTolerance === undefined ? null : (typoConfigOf(typoTolerance, refuseSetting) ?? null),
  };
}

function checkSettingNames(
  settings: SearchSettings,
  settingNames: readonly string[],
  settingPrefix: string,
  refuseSetting: RefuseSetting,
): void {
  const unknownSetting = Object.keys(settings).find((settingName) => !settingNames.includes(settingName));
  if (unknownSetting !== undefined)
    refuseSetting(`${settingPrefix}${JSON.stringify(unknownSetting.slice(0, 64))} is none of ${settingNames.join(', ')}`);
}

function searchLanguageOf(languageSetting: Json, refuseSetting: RefuseSetting): string | undefined {
  if (typeof languageSetting === 'string' && textLanguages.includes(languageSetting)) return languageSetting;
  return refuseSetting(`language is one of ${textLanguages.join(', ')}`);
}

function settingTextsOf(textsSetting: Json | undefined, settingName: string, refuseSetting: RefuseSetting): readonly string[] {
  if (textsSetting === undefined) return [];
  if (Array.isArray(textsSetting) && textsSetting.every((listedText) => typeof listedText === 'string')) return textsSetting;
  return refuseSetting(`${settingName} is a list of texts`) ?? [];
}

function synonymsOf(synonymsSetting: Json | undefined, refuseSetting: RefuseSetting): SearchConfig['synonyms'] {
  const synonyms = new Map<string, string[]>();
  if (synonymsSetting === undefined) return synonyms;
  if (!Array.isArray(synonymsSetting)) return refuseSetting('synonyms is a list of lists of words') ?? synonyms;
  for (const synonymGroup of synonymsSetting) {
    const synonymTerms = [
      ...new Set(
        settingTextsOf(synonymGroup, 'a group of synonyms', refuseSetting).map((synonymWord) =>
          synonymTermOf(synonymWord, refuseSetting),
        ),
      ),
    ];
    if (synonymTerms.length < 2) refuseSetting('a group of synonyms has two words or more');
    for (const synonymTerm of synonymTerms) {
      const otherSynonyms = synonymTerms.filter((otherTerm) => otherTerm !== synonymTerm && otherTerm !== '');
      if (synonymTerm !== '') synonyms.set(synonymTerm, [...new Set([...(synonyms.get(synonymTerm) ?? []), ...otherSynonyms])]);
    }
  }
  return synonyms;
}

function synonymTermOf(synonymWord: string, refuseSetting: RefuseSetting): string {
  const [synonymTerm, ...furtherTerms] = tokensOf(synonymWord);
  if (synonymTerm !== undefined && furtherTerms.length === 0) return synonymTerm;
  return (
    refuseSetting(
      `a synonym is one word: ${JSON.stringify(synonymWord.slice(0, 64))} is ${furtherTerms.length + 1 - +(synonymTerm === undefined)}`,
    ) ?? ''
  );
}

function fieldWeightsOf(weightsSetting: Json | undefined, refuseSetting: RefuseSetting): SearchConfig['fieldWeights'] {
  const weights = new Map<string, ReadonlyMap<string, number>>();
  if (weightsSetting === undefined) return weights;
  if (!isSettingObject(weightsSetting)) return refuseSetting('field_weights is {type: {column: number}}') ?? weights;
  for (const [type, columnWeights] of Object.entries(weightsSetting)) {
    if (!isSettingObject(columnWeights))
      refuseSetting(`field_weights of ${JSON.stringify(type.slice(0, 64))} is {column: number}`);
    const typeWeights = new Map<string, number>();
    for (const [column, columnWeight] of Object.entries(isSettingObject(columnWeights) ? columnWeights : {})) {
      if (typeof columnWeight === 'number' && columnWeight >= 0 && columnWeight <= fieldWeightMax)
        typeWeights.set(column, columnWeight);
      else refuseSetting(`field_weights: what a column weighs is a number from 0 to ${fieldWeightMax}`);
    }
    weights.set(type, typeWeights);
  }
  return weights;
}

function typoConfigOf(typoSetting: Json, refuseSetting: RefuseSetting): TypoConfig | undefined {
  if (!isSettingObject(typoSetting)) return refuseSetting('typo_tolerance is an object');
  checkSettingNames(
    typoSetting,
    ['enabled', 'min_word_size', 'disable_on_words', 'disable_on_attributes'],
    'typo_tolerance: ',
    refuseSetting,
  );
  const {
    enabled = true,
    min_word_size: minWordSize = 0,
    disable_on_words: disabledWords,
    disable_on_attributes: disabledAttributes,
  } = typoSetting;
  const isWordSize =
    typeof minWordSize === 'number' && Number.isInteger(minWordSize) && minWordSize >= 0 && minWordSize <= minWordSizeMax;
  if (typeof enabled !== 'boolean') return refuseSetting('typo_tolerance: enabled is true or false');
  if (!isWordSize) return refuseSetting(`typo_tolerance: min_word_size is a whole number from 0 to ${minWordSizeMax}`);
  return {
    enabled,
    minWordSize: minWordSize,
    disableOnWords: settingTextsOf(disabledWords, 'disable_on_words', refuseSetting),
    disableOnAttributes: settingTextsOf(disabledAttributes, 'disable_on_attributes', refuseSetting),
  };
}

function isSettingObject(settingValue: Json): settingValue is SearchSettings {
  return typeof settingValue === 'object' && settingValue !== null && !Array.isArray(settingValue);
}

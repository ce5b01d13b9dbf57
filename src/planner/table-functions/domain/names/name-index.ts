/**
 * Finds names that are alike in a list without looking at each. Two words can only match where they share a key, so a name that
 * shares too few with the one that is asked about cannot reach the threshold: the answer is that of comparing with every name.
 */
import type { Steps } from '../../../graph/stepped-sort.ts';
import { TextMap } from '../text-map.ts';
import { changesOf, slipsOf } from './name-sounds.ts';
import { featuresOf, type NameFeatures, type NameWord } from './name-features.ts';
import { bareOf, joinsOf, matchNames, type NameMatch } from './name-score.ts';

/** Names compared in one turn: some microseconds each. */
const namesComparedAtOnce = 256;

export interface NameHit {
  /** The number that the name was added under. */
  readonly owner: number;
  readonly name: string;
  readonly match: NameMatch;
}

export class NameIndex {
  readonly #indexedNames: {
    readonly owner: number;
    readonly name: string;
    readonly features: NameFeatures;
    readonly weight: number;
    readonly small: number;
  }[] = [];
  /** By key, places of words that have it. */
  readonly #placesByKey = new TextMap<number[]>();
  /** By name, zero but while names are looked for: how many of the words asked about may match one of its, and which of its. */
  #sharedWordCounts = new Uint8Array(0);
  #sharedWordMasks = new Int32Array(0);
  /** The last word asked about that did. */
  #lastAskingWord = new Uint8Array(0);
  #nameIndexBytes = 0;

  /** About as many as it holds on to. */
  get bytes(): number {
    return this.#nameIndexBytes;
  }

  get size(): number {
    return this.#indexedNames.length;
  }

  /** One owner may have several names. */
  add(owner: number, name: string): void {
    const nameFeatures = featuresOf(name);
    const nameNumber =
      this.#indexedNames.push({
        owner,
        name,
        features: nameFeatures,
        weight: nameWeightOf(nameFeatures.words),
        small: smallWordWeight(nameFeatures.words),
      }) - 1;
    this.#nameIndexBytes += 200 + 2 * name.length + 240 * nameFeatures.words.length;
    nameFeatures.words.forEach((nameWord, i) => this.#postKeys(nameWordKeys(nameWord), postingOf(nameNumber, i)));
    for (const joinedNames of joinsOf(nameFeatures.words))
      this.#postKeys(joinedNameKeys(joinedNames), postingOf(nameNumber, joinedWordBit));
  }

  #postKeys(nameKeys: readonly string[], nameIndex: number): void {
    for (const nameKey of new Set(nameKeys)) {
      const postings = this.#placesByKey.get(nameKey);
      if (postings === undefined) this.#placesByKey.set(nameKey, [nameIndex]);
      else if (postings.at(-1) !== nameIndex) postings.push(nameIndex);
      else continue;
      this.#nameIndexBytes += 24;
    }
  }

  /** Finds every name that scores at least `matchThreshold`, the owner's best one each. `countLooks` counts the names as they are compared. */
  *find(name: string, matchThreshold: number, countLooks: (count: number) => void): Steps<NameHit[]> {
    const askedFeatures = featuresOf(name);
    const bestHits = new Map<number, NameHit>();
    let comparedNames = 0;
    for (const nameNumber of this.#reachableNames(askedFeatures, matchThreshold)) {
      if (++comparedNames % namesComparedAtOnce === 0) {
        countLooks(namesComparedAtOnce);
        yield;
      }
      const { owner, name: knownName, features } = this.#indexedNames[nameNumber]!;
      const nameMatch = matchNames(askedFeatures, features);
      if (nameMatch.score < matchThreshold - 1e-9) continue;
      const earlierHit = bestHits.get(owner);
      if (earlierHit === undefined || nameMatch.score > earlierHit.match.score)
        bestHits.set(owner, { owner, name: knownName, match: nameMatch });
    }
    countLooks(comparedNames % namesComparedAtOnce);
    return [...bestHits.values()];
  }

  /** Numbers of the names whose words share enough keys. */
  #reachableNames(askedFeatures: NameFeatures, matchThreshold: number): readonly number[] {
    if (this.#sharedWordCounts.length < this.size) {
      this.#sharedWordCounts = new Uint8Array(this.size);
      this.#sharedWordMasks = new Int32Array(this.size);
      this.#lastAskingWord = new Uint8Array(this.size);
    }
    const [sharedCounts, wordMasks, lastAsking] = [this.#sharedWordCounts, this.#sharedWordMasks, this.#lastAskingWord];
    const candidates: number[] = [];
    let askingWord = 0;
    const share = (nameKeys: readonly string[], joinMask: number): void => {
      askingWord++;
      for (const nameKey of nameKeys) {
        for (const nameIndex of this.#placesByKey.get(nameKey) ?? []) {
          const nameNumber = nameIndex >>> nameWordBits;
          wordMasks[nameNumber]! |= joinMask | (1 << (nameIndex & (nameWordSlots - 1)));
          if (lastAsking[nameNumber] === askingWord) continue;
          lastAsking[nameNumber] = askingWord;
          if (sharedCounts[nameNumber]!++ === 0) candidates.push(nameNumber);
        }
      }
    };
    for (const askedWord of askedFeatures.words) share(nameWordKeys(askedWord), 0);
    for (const askedJoin of joinsOf(askedFeatures.words)) share(joinedNameKeys(askedJoin), 1 << joinedAskedBit);
    const askedWeight = nameWeightOf(askedFeatures.words);
    const askedSmallWeight = smallWordWeight(askedFeatures.words);
    const reachingNames = candidates.filter((nameNumber) => {
      const { features, weight: otherWeight, small: otherSmallWeight } = this.#indexedNames[nameNumber]!;
      const areWordsJoined = (wordMasks[nameNumber]! & joinedWordMask) !== 0;
      // Each word matches one of the other name.
      const mostSharedWeight =
        (areWordsJoined ? sharedCounts[nameNumber]! : Math.min(sharedCounts[nameNumber]!, wordBitCount(wordMasks[nameNumber]!))) +
        askedSmallWeight +
        otherSmallWeight;
      // Words that become one weigh less than they do alone: that one is compared whatever it shares.
      const isOpenName = areWordsJoined || features.words.length > askedFeatures.words.length;
      return (
        mostSharedWeight >=
        matchThreshold *
          (isOpenName ? Math.max(1, Math.min(askedWeight, otherWeight)) : askedWeight + otherWeight - mostSharedWeight)
      );
    });
    for (const number of candidates) sharedCounts[number] = wordMasks[number] = lastAsking[number] = 0;
    return reachingNames;
  }
}

/** A place is the number of a name with that of its word; what words make together is one more. */
const nameWordBits = 5;
const nameWordSlots = 1 << nameWordBits;
const joinedWordBit = 24;
const joinedAskedBit = 25;
const joinedWordMask = (1 << joinedWordBit) | (1 << joinedAskedBit);

function postingOf(name: number, word: number): number {
  return (name << nameWordBits) | word;
}

function wordBitCount(wordMask: number): number {
  let bitsSet = 0;
  for (let bitsLeft = wordMask; bitsLeft !== 0; bitsLeft &= bitsLeft - 1) bitsSet++;
  return bitsSet;
}

function nameWeightOf(words: readonly NameWord[]): number {
  return words.reduce((sum, { weight }) => sum + weight, 0);
}

/** The most that initials and particles, which have no key, can match. */
function smallWordWeight(words: readonly NameWord[]): number {
  return words.reduce((sum, { kind, weight }) => sum + (kind === 'initial' ? 1 : kind === 'particle' ? weight : 0), 0);
}

/** Two words that match, other than by an initial or as particles, have one in common. */
function nameWordKeys({ kind, text, spelling, consonants, groups }: NameWord): readonly string[] {
  if (kind === 'initial' || kind === 'particle') return [];
  if (kind === 'number') return [text];
  const bareConsonants = bareOf(consonants);
  return [
    text,
    `s ${spelling}`,
    ...groups.map(({ family }) => `g ${family}`),
    ...changesOf(consonants).map((changedText) => `c ${changedText}`),
    ...(bareConsonants.length > 1 ? [`b ${bareConsonants}`] : []),
    ...slipsOf(text).map((changedText) => `t ${changedText}`),
  ];
}

/** Words that are joined match by their letters or their spelling alone. */
function joinedNameKeys({ text, spelling }: NameWord): readonly string[] {
  return [text, `s ${spelling}`];
}

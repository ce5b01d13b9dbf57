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
const comparedAtOnce = 256;

export interface NameHit {
  /** The number that the name was added under. */
  readonly owner: number;
  readonly name: string;
  readonly match: NameMatch;
}

export class NameIndex {
  readonly #names: {
    readonly owner: number;
    readonly name: string;
    readonly features: NameFeatures;
    readonly weight: number;
    readonly small: number;
  }[] = [];
  /** By key, places of words that have it. */
  readonly #byKey = new TextMap<number[]>();
  /** By name, zero but while names are looked for: how many of the words asked about may match one of its, and which of its. */
  #shared = new Uint8Array(0);
  #words = new Int32Array(0);
  /** The last word asked about that did. */
  #last = new Uint8Array(0);
  #bytes = 0;

  /** About as many as it holds on to. */
  get bytes(): number {
    return this.#bytes;
  }

  get size(): number {
    return this.#names.length;
  }

  /** One owner may have several names. */
  add(owner: number, name: string): void {
    const features = featuresOf(name);
    const number =
      this.#names.push({ owner, name, features, weight: weightOf(features.words), small: weightOfSmall(features.words) }) - 1;
    this.#bytes += 200 + 2 * name.length + 240 * features.words.length;
    features.words.forEach((word, i) => this.#post(keysOf(word), postingOf(number, i)));
    for (const join of joinsOf(features.words)) this.#post(joinKeysOf(join), postingOf(number, joinedWord));
  }

  #post(keys: readonly string[], nameIndex: number): void {
    for (const key of new Set(keys)) {
      const postings = this.#byKey.get(key);
      if (postings === undefined) this.#byKey.set(key, [nameIndex]);
      else if (postings.at(-1) !== nameIndex) postings.push(nameIndex);
      else continue;
      this.#bytes += 24;
    }
  }

  /** Finds every name that scores at least `threshold`, the owner's best one each. `look` counts the names as they are compared. */
  *find(name: string, threshold: number, look: (count: number) => void): Steps<NameHit[]> {
    const asked = featuresOf(name);
    const best = new Map<number, NameHit>();
    let compared = 0;
    for (const number of this.#mayReach(asked, threshold)) {
      if (++compared % comparedAtOnce === 0) {
        look(comparedAtOnce);
        yield;
      }
      const { owner, name: known, features } = this.#names[number]!;
      const match = matchNames(asked, features);
      if (match.score < threshold - 1e-9) continue;
      const before = best.get(owner);
      if (before === undefined || match.score > before.match.score) best.set(owner, { owner, name: known, match });
    }
    look(compared % comparedAtOnce);
    return [...best.values()];
  }

  /** Numbers of the names whose words share enough keys. */
  #mayReach(asked: NameFeatures, threshold: number): readonly number[] {
    if (this.#shared.length < this.size) {
      this.#shared = new Uint8Array(this.size);
      this.#words = new Int32Array(this.size);
      this.#last = new Uint8Array(this.size);
    }
    const [shared, words, last] = [this.#shared, this.#words, this.#last];
    const candidates: number[] = [];
    let asking = 0;
    const share = (keys: readonly string[], joins: number): void => {
      asking++;
      for (const key of keys) {
        for (const nameIndex of this.#byKey.get(key) ?? []) {
          const number = nameIndex >>> wordBits;
          words[number]! |= joins | (1 << (nameIndex & (wordsOfName - 1)));
          if (last[number] === asking) continue;
          last[number] = asking;
          if (shared[number]!++ === 0) candidates.push(number);
        }
      }
    };
    for (const word of asked.words) share(keysOf(word), 0);
    for (const join of joinsOf(asked.words)) share(joinKeysOf(join), 1 << joinedAsked);
    const weight = weightOf(asked.words);
    const small = weightOfSmall(asked.words);
    const reaching = candidates.filter((number) => {
      const { features, weight: other, small: otherSmall } = this.#names[number]!;
      const isJoined = (words[number]! & joinedWords) !== 0;
      // Each word matches one of the other name.
      const most = (isJoined ? shared[number]! : Math.min(shared[number]!, bitCount(words[number]!))) + small + otherSmall;
      // Words that become one weigh less than they do alone: that one is compared whatever it shares.
      const isOpen = isJoined || features.words.length > asked.words.length;
      return most >= threshold * (isOpen ? Math.max(1, Math.min(weight, other)) : weight + other - most);
    });
    for (const number of candidates) shared[number] = words[number] = last[number] = 0;
    return reaching;
  }
}

/** A place is the number of a name with that of its word; what words make together is one more. */
const wordBits = 5;
const wordsOfName = 1 << wordBits;
const joinedWord = 24;
const joinedAsked = 25;
const joinedWords = (1 << joinedWord) | (1 << joinedAsked);

function postingOf(name: number, word: number): number {
  return (name << wordBits) | word;
}

function bitCount(bits: number): number {
  let count = 0;
  for (let rest = bits; rest !== 0; rest &= rest - 1) count++;
  return count;
}

function weightOf(words: readonly NameWord[]): number {
  return words.reduce((sum, { weight }) => sum + weight, 0);
}

/** The most that initials and particles, which have no key, can match. */
function weightOfSmall(words: readonly NameWord[]): number {
  return words.reduce((sum, { kind, weight }) => sum + (kind === 'initial' ? 1 : kind === 'particle' ? weight : 0), 0);
}

/** Two words that match, other than by an initial or as particles, have one in common. */
function keysOf({ kind, text, spelling, consonants, groups }: NameWord): readonly string[] {
  if (kind === 'initial' || kind === 'particle') return [];
  if (kind === 'number') return [text];
  const bare = bareOf(consonants);
  return [
    text,
    `s ${spelling}`,
    ...groups.map(({ family }) => `g ${family}`),
    ...changesOf(consonants).map((each) => `c ${each}`),
    ...(bare.length > 1 ? [`b ${bare}`] : []),
    ...slipsOf(text).map((each) => `t ${each}`),
  ];
}

/** Words that are joined match by their letters or their spelling alone. */
function joinKeysOf({ text, spelling }: NameWord): readonly string[] {
  return [text, `s ${spelling}`];
}

/**
 * Finds names that are alike in a list without looking at each. Two words can only match where they share a key, so a name that
 * shares too few with the one that is asked about cannot reach the threshold: the answer is that of comparing with every name.
 */
import type { Steps } from '../../../graph/steps.ts';
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
  readonly #byKey = new TextMap<number[]>();
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
    for (const key of new Set([...features.words.flatMap(keysOf), ...joinsOf(features.words).flatMap(joinKeysOf)])) {
      const numbers = this.#byKey.get(key);
      if (numbers === undefined) this.#byKey.set(key, [number]);
      else numbers.push(number);
      this.#bytes += 24;
    }
  }

  /** Finds every name that scores at least `threshold`, the owner's best one each. `look` counts the names as they are compared. */
  *find(name: string, threshold: number, look: (count: number) => void): Steps<NameHit[]> {
    const asked = featuresOf(name);
    const weight = weightOf(asked.words);
    const small = weightOfSmall(asked.words);
    // By name: how many of the words may match one of its, the last of them that did, and whether words that are joined may.
    const shared = new Uint8Array(this.size);
    const last = new Uint8Array(this.size);
    const isJoined = new Uint8Array(this.size);
    const found: number[] = [];
    let asking = 0;
    const share = (keys: readonly string[], joins: boolean): void => {
      asking++;
      for (const key of keys) {
        for (const number of this.#byKey.get(key) ?? []) {
          if (last[number] === asking) continue;
          last[number] = asking;
          if (joins) isJoined[number] = 1;
          if (shared[number]!++ === 0) found.push(number);
        }
      }
    };
    for (const word of asked.words) share(keysOf(word), false);
    for (const join of joinsOf(asked.words)) share(joinKeysOf(join), true);
    const best = new Map<number, NameHit>();
    let compared = 0;
    yield;
    for (const number of found) {
      const { owner, name: known, features, weight: other, small: otherSmall } = this.#names[number]!;
      const most = shared[number]! + small + otherSmall;
      // Words that become one weigh less than they do alone: that one is compared whatever it shares.
      const isOpen = isJoined[number] === 1 || features.words.length > asked.words.length;
      if (!isOpen && most < threshold * (weight + other - most)) continue;
      if (isOpen && most < threshold * Math.max(1, Math.min(weight, other))) continue;
      if (++compared % comparedAtOnce === 0) {
        look(comparedAtOnce);
        yield;
      }
      const match = matchNames(asked, features);
      if (match.score < threshold - 1e-9) continue;
      const before = best.get(owner);
      if (before === undefined || match.score > before.match.score) best.set(owner, { owner, name: known, match });
    }
    look(compared % comparedAtOnce);
    return [...best.values()];
  }
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

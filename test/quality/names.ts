/** How well names are told apart: labelled pairs of both halves, and a list of 20,000 names that are asked for as people write them. */
import { readFileSync } from 'node:fs';
import { finishSteps } from '../finish-steps.ts';
import { featuresOf } from '../../src/planner/table-functions/domain/names/name-features.ts';
import * as fuzzball from 'fuzzball';
import { NameIndex } from '../../src/planner/table-functions/domain/names/name-index.ts';
import { matchNames, plainJaccard } from '../../src/planner/table-functions/domain/names/name-score.ts';
import { TestRandom } from '../harness.ts';

const threshold = 0.75;
/** Questions of the list that fuzzball is asked, too: it compares each of 20,000 names. */
const askedBeside = 100;

export interface PairFigures {
  readonly pairs: number;
  readonly precision: number;
  readonly recall: number;
  readonly f1: number;
  /** Of textbook Jaccard at the same threshold. */
  readonly plainF1: number;
}

/** Lines with even numbers were tuned on, those with odd ones held out. */
export function pairFigures(half: 0 | 1): PairFigures {
  const same = pairsOf('same', half);
  const different = pairsOf('different', half);
  const figures = (scoreOf: (left: string, right: string) => number): Omit<PairFigures, 'pairs' | 'plainF1'> => {
    const isHit = ([left, right]: readonly [string, string]): boolean => scoreOf(left, right) >= threshold - 1e-9;
    const hits = same.filter(isHit).length;
    const wrong = different.filter(isHit).length;
    return {
      precision: hits / Math.max(1, hits + wrong),
      recall: hits / same.length,
      f1: (2 * hits) / (hits + wrong + same.length),
    };
  };
  const own = figures((left, right) => matchNames(featuresOf(left), featuresOf(right)).score);
  return { pairs: same.length + different.length, ...own, plainF1: figures(plainJaccard).f1 };
}

function pairsOf(file: string, half: 0 | 1): readonly (readonly [string, string])[] {
  const text = readFileSync(new URL(`../../fixtures/names/${file}.txt`, import.meta.url), 'utf8');
  const lines = text.trim().split('\n');
  return lines.flatMap((line, i) => {
    if (i % 2 !== half) return [];
    const names = line.split(' | ');
    return names.flatMap((left, j) => names.slice(j + 1).map((right) => [left, right] as const));
  });
}

export interface ListFigures {
  readonly names: number;
  readonly recallAt1: number;
  /** Other names that reach the threshold, a question. */
  readonly others: number;
  /** The share of `askedBeside` questions whose name reaches the threshold, other names a question, and those that token_set_ratio finds with as many. */
  readonly reached: number;
  readonly othersAtReached: number;
  readonly fuzzballOthers: number;
  readonly p50Ms: number;
  readonly p95Ms: number;
}

export function listFigures(seed: number, now: () => number): ListFigures {
  const bytes = new TestRandom(seed).fill(new Uint8Array(400_000));
  let next = 0;
  const chance = (sides: number): number => (bytes[next++ % bytes.length]! * 256 + bytes[next++ % bytes.length]!) % sides;
  const pick = (words: readonly string[]): string => words[chance(words.length)]!;
  const surname = (): string => Array.from({ length: 2 + chance(2) }, () => pick(syllables)).join('');
  const names = Array.from({ length: 20_000 }, () =>
    chance(4) === 0
      ? `${surname()} ${surname()} ${pick(forms)}`
      : `${pick(given)} ${chance(3) === 0 ? `${pick(given)} ` : ''}${surname()}`,
  );
  const index = new NameIndex();
  names.forEach((name, i) => index.add(i, name));
  const times: number[] = [];
  const beside = { reached: 0, others: 0, bests: [] as number[], ratios: [] as Uint32Array[] };
  let found = 0;
  let others = 0;
  const asked = 1_000;
  for (let i = 0; i < asked; i++) {
    const wanted = chance(names.length);
    const name = perturbed(names[wanted]!, chance);
    const begun = now();
    const hits = finishSteps(index.find(name, threshold, () => undefined));
    times.push(now() - begun);
    const best = Math.max(...hits.map(({ match }) => match.score));
    if (hits.some(({ owner, match }) => names[owner] === names[wanted] && match.score === best)) found++;
    const wrong = hits.filter(({ owner }) => names[owner] !== names[wanted]).length;
    others += wrong;
    if (i >= askedBeside) continue;
    if (hits.some(({ owner }) => names[owner] === names[wanted])) beside.reached++;
    beside.others += wrong;
    // How many others have each ratio of 0 to 100.
    const ratios = new Uint32Array(101);
    for (const other of names) if (other !== names[wanted]) ratios[ratioOf(name, other)]!++;
    beside.bests.push(ratioOf(name, names[wanted]!));
    beside.ratios.push(ratios);
  }
  // The least ratio at which it reaches as many.
  const least = beside.bests.sort((a, b) => b - a)[Math.max(0, beside.reached - 1)]!;
  const fuzzballOthers = beside.ratios.reduce((sum, ratios) => sum + ratios.subarray(least).reduce((a, b) => a + b, 0), 0);
  times.sort((a, b) => a - b);
  const quantile = (share: number): number => times[Math.floor(share * times.length)]!;
  const share = (count: number): number => count / askedBeside;
  const figures = {
    reached: share(beside.reached),
    othersAtReached: share(beside.others),
    fuzzballOthers: share(fuzzballOthers),
  };
  return {
    names: names.length,
    recallAt1: found / asked,
    others: others / asked,
    ...figures,
    p50Ms: quantile(0.5),
    p95Ms: quantile(0.95),
  };
}

/** The names of the list are lower-case words: only the one that is asked about has to be brought to that. */
function ratioOf(name: string, other: string): number {
  return fuzzball.token_set_ratio(name.toLowerCase(), other.toLowerCase(), { full_process: false });
}

/** Another order, a letter that is missing or turned in a word of three letters or more, capitals, or another way to write a sound. */
function perturbed(name: string, chance: (sides: number) => number): string {
  const words = name.split(' ');
  const long = words.map((word, i) => (word.length > 2 ? i : -1)).filter((i) => i >= 0);
  const way = chance(5);
  if (way === 0) return words.toReversed().join(' ');
  if (way === 1) return name.toUpperCase();
  if (way === 2) return name.replace('sk', 'sc').replace('v', 'w').replace('f', 'ph');
  const place = long[chance(Math.max(1, long.length))];
  if (place === undefined) return name;
  const word = words[place]!;
  const at = 1 + chance(word.length - 2);
  words[place] =
    way === 3 ? word.slice(0, at) + word.slice(at + 1) : word.slice(0, at) + word[at + 1]! + word[at]! + word.slice(at + 2);
  return words.join(' ');
}

const given =
  'james john robert michael william david richard joseph thomas charles maria anna elena olga natalia ivan sergei dmitri mohammed ahmed ali hassan hussein omar yusuf ibrahim khalid wei ming jing hong juan carlos jose luis pedro pierre jean michel hans peter klaus giovanni marco luca'.split(
    ' ',
  );
const syllables = 'ka ro mi ta len vor ber gin son ski dov mar pel quin zar hol fen bra tul dor nek vin sha lom gar eth'.split(
  ' ',
);
const forms = ['Ltd', 'LLC', 'GmbH', 'SA', 'Trading', 'Shipping Co'];

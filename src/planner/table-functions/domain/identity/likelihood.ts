/**
 * How likely two rows are one thing, after Fellegi and Sunter: each group of columns that both have speaks for it or against it, in bits;
 * what is rare speaks louder. Weights are built in, or trained (`trained-weights.ts`). Pure.
 */
import { type Collection, type Entity, type Feature, longText } from './compared-rows.ts';
import { likenessOf, type Word } from './word-similarity.ts';

export interface Likelihood {
  /** 0 to 1: a half is as likely as not. */
  readonly score: number;
  /** By group, bits that speak for the two being one, or against it. */
  readonly bits: Readonly<Record<string, number>>;
}

interface Weight {
  /** Bits of agreement, at most. */
  readonly most: number;
  /** Bits against, where nothing agrees. */
  readonly against: number;
  /** Likeness up to which a group says nothing but against, and from which on nothing but for. */
  readonly unlike: number;
  readonly alike: number;
}

const subsetShare = 0.5;

const weights = {
  name: { most: 17, against: 10, unlike: 0.3, alike: 0.85 },
  title: { most: 18, against: 10, unlike: 0.45, alike: 0.9 },
  /** A title that has a number of the other's: praise beside it says little. */
  coded: { most: 18, against: 10, unlike: 0.15, alike: 0.6 },
  text: { most: 8, against: 2.5, unlike: 0.25, alike: 0.85 },
  description: { most: 7, against: 1, unlike: 0.1, alike: 0.7 },
} satisfies Readonly<Record<string, Weight>>;

/** Where somebody lives and what kind of thing it is hang together, and others share all of it: together they say no more than this. */
const contextMost = 12;
/** Bits by which two rows have to be more likely one than two. */
const marginBits = 5;

/** Kinds of which one value is of one thing. */
const sole = new Set('iban imei mac card vin imo mmsi lei isin mrz wallet id email'.split(' '));

/** Rows that are less likely one than this are not linked. */
const linkScoreMin = 0.5;
/** Bits below which the score is less than that, and a little for sums that are rounded. */
const linkBitsMin = -1e-6;

/** How a group is weighed, by its place in its collection. */
interface Weighing {
  /** Places of groups of words, those that say most first: to compare words takes long. */
  readonly words: readonly number[];
  readonly areContext: readonly boolean[];
  /** Bits of agreement, at most. */
  readonly most: readonly number[];
}

const weighings = new WeakMap<Collection, Weighing>();

function weighingOf(collection: Collection): Weighing {
  const known = weighings.get(collection);
  if (known !== undefined) return known;
  const { groups } = collection;
  const most = groups.map((group) => (isTitle(group.name) ? weights.coded.most : weightOf(group).most));
  const words = groups.flatMap(({ comparison }, i) => (comparison === 'name' || comparison === 'text' ? [i] : []));
  words.sort((a, b) => most[b]! - most[a]!);
  const weighing = { words, areContext: groups.map(isContext), most };
  weighings.set(collection, weighing);
  return weighing;
}

/** Changes that training makes to the bits of the groups of a collection, by their places; built-in weights need none. */
export interface Trained {
  /** Bits against are multiplied by it. */
  readonly against: readonly number[];
  /** Bits that are added where a group speaks for two rows: below zero, as far as it does not always agree. */
  readonly agreement: readonly number[];
}

function trainedBits(bits: number, i: number, trained: Trained | null): number {
  if (trained === null) return bits;
  return bits < 0 ? bits * trained.against[i]! : bits === 0 ? 0 : Math.max(0, bits + trained.agreement[i]!);
}

/**
 * `a` and `b` are rows of these collections; null where they are not to be linked, which mostly shows before all is compared.
 * `trained` is of both.
 */
export function likelihoodOf(
  a: Entity,
  of: Collection,
  b: Entity,
  other: Collection,
  trained: Trained | null = null,
): Likelihood | null {
  const { groups } = of;
  const { words, areContext, most } = weighingOf(of);
  const before = bitsBefore(of, other);
  const evidence: (number | null)[] = [];
  // Bits if all words that are not compared yet agree.
  let plain = before;
  let context = 0;
  for (let i = 0; i < groups.length; i++) {
    const j = groupIndexIn(other, of, i);
    const [left, right] = [a.features[i], j < 0 ? null : b.features[j]];
    evidence.push(null);
    if (!left || !right) continue;
    const isOpen = left.kind === 'words' && right.kind === 'words';
    const bits = isOpen
      ? most[i]!
      : trainedBits(
          valuesSpeak(groups[i]!, left, right, (text) => rarityOf(of, i, other, j, text)),
          i,
          trained,
        );
    if (!isOpen) evidence[i] = bits;
    if (areContext[i] && bits > 0) context += bits;
    else plain += bits;
  }
  if (plain + Math.min(contextMost, context) < linkBitsMin) return null;
  for (const i of words) {
    const j = groupIndexIn(other, of, i);
    const [left, right] = [a.features[i], j < 0 ? null : b.features[j]];
    if (left?.kind !== 'words' || right?.kind !== 'words') continue;
    const rarity = (text: string): number => rarityOf(of, i, other, j, text);
    const bits = trainedBits(wordsSpeak(groups[i]!, left.words, right.words, rarity), i, trained);
    evidence[i] = bits;
    if (areContext[i]) context -= most[i]!;
    else plain -= most[i]!;
    if (areContext[i] && bits > 0) context += bits;
    else plain += bits;
    if (plain + Math.min(contextMost, context) < linkBitsMin) return null;
  }
  return inTheirOrder(groups, evidence, areContext, before);
}

function bitsBefore(of: Collection, other: Collection): number {
  return -Math.max(of.priorBits, other.priorBits) - marginBits;
}

/** Bits that each group says of two rows of a collection by built-in weights; null where one of them has none. */
export function bitsOf(a: Entity, b: Entity, of: Collection): readonly (number | null)[] {
  return of.groups.map((group, i) => {
    const [left, right] = [a.features[i], b.features[i]];
    if (!left || !right) return null;
    const rarity = (text: string): number => of.bits(i, text);
    return left.kind === 'words' && right.kind === 'words'
      ? wordsSpeak(group, left.words, right.words, rarity)
      : valuesSpeak(group, left, right, rarity);
  });
}

/** The chance, 0 to 1, that two rows with these bits are one. */
export function chanceOf(evidence: readonly (number | null)[], of: Collection, trained: Trained): number {
  const { areContext } = weighingOf(of);
  let sum = bitsBefore(of, of);
  let context = 0;
  for (const [i, each] of evidence.entries()) {
    const bits = each === null ? 0 : trainedBits(each, i, trained);
    if (bits > 0 && areContext[i]) context += bits;
    else sum += bits;
  }
  return 1 / (1 + 2 ** -(sum + Math.min(contextMost, context)));
}

/** Bits against of a group where nothing agrees, as they are built in; 0: it never speaks against. */
export function againstBits(group: Collection['groups'][number]): number {
  if (group.comparison === 'date') return group.name === 'birth' ? 8 : 3;
  if (group.comparison === 'identifier') return 1.5;
  if (group.comparison === 'number') return 2.5;
  return group.comparison === 'reference' ? 0 : weightOf(group).against;
}

/** Sums run in the order of the groups, so that they are rounded in one way. */
function inTheirOrder(
  groups: Collection['groups'],
  evidence: readonly (number | null)[],
  areContext: readonly boolean[],
  before: number,
): Likelihood | null {
  const bits: Record<string, number> = {};
  let sum = before;
  let context = 0;
  for (const [i, each] of evidence.entries()) {
    if (each === null) continue;
    bits[groups[i]!.name] = Math.round(each * 100) / 100;
    if (each > 0 && areContext[i]) context += each;
    else sum += each;
  }
  sum += Math.min(contextMost, context);
  const score = 1 / (1 + 2 ** -sum);
  return score < linkScoreMin ? null : { score, bits };
}

/** The place in another collection of a group of this one; below zero where it has none such. */
function groupIndexIn(other: Collection, of: Collection, i: number): number {
  return other === of ? i : other.groups.findIndex(({ name }) => name === of.groups[i]!.name);
}

function rarityOf(of: Collection, i: number, other: Collection, j: number, text: string): number {
  const rarity = of.bits(i, text);
  return of === other ? rarity : Math.min(rarity, other.bits(j, text));
}

function wordsSpeak(
  group: Collection['groups'][number],
  left: readonly Word[],
  right: readonly Word[],
  rarity: (text: string) => number,
): number {
  const { likeness, shared, codes } = compareWords(left, right, rarity);
  const { most, against, unlike, alike } = codes === 'same' && isTitle(group.name) ? weights.coded : weightOf(group);
  // Two models of a series have all but a number in common.
  if (codes === 'other' && isTitle(group.name)) return -against;
  const share = Math.min(1, Math.max(0, (likeness - unlike) / (alike - unlike)));
  return share * Math.min(most, shared) - (1 - share) * against;
}

function valuesSpeak(
  group: Collection['groups'][number],
  left: Feature,
  right: Feature,
  rarity: (text: string) => number,
): number {
  if (left.kind === 'number' && right.kind === 'number') {
    return ofNumbers(left.value, right.value, () => rarity(String(left.value)));
  }
  if (left.kind !== 'value' || right.kind !== 'value') return 0;
  const rare = (): number => rarity(left.text);
  if (group.comparison === 'date') return ofDates(left.text, right.text, rare, group.name === 'birth');
  if (group.comparison === 'reference') return ofReferences(left.text, right.text, rare);
  return ofIdentifiers(left.text, right.text, rare);
}

/** Texts other than titles, numbers, and references that many rows may share. */
function isContext({ comparison, name }: Collection['groups'][number]): boolean {
  return comparison === 'number' || (comparison === 'text' && !isTitle(name));
}

function isTitle(name: string): boolean {
  return name === 'name' || name === 'title';
}

function weightOf({ comparison, name, length }: Collection['groups'][number]): Weight {
  if (comparison === 'name') return weights.name;
  if (length > longText) return weights.description;
  return isTitle(name) ? weights.title : weights.text;
}

/** `shared` in bits. */
export function compareWords(
  left: readonly Word[],
  right: readonly Word[],
  rarity: (text: string) => number,
): { readonly likeness: number; readonly shared: number; readonly codes: 'same' | 'other' | null } {
  const isTaken = new Uint8Array(right.length);
  const open: Word[] = [];
  let shared = 0;
  let leftOnly = 0;
  let hasCode = false;
  let hasLeftCode = false;
  for (const word of left) {
    const at = wordIndexIn(word.text, right, isTaken);
    if (at < 0) open.push(word);
    else {
      isTaken[at] = 1;
      shared += rarity(word.text) * word.weight;
      hasCode ||= isCode(word);
    }
  }
  for (const word of open) {
    let best = 0;
    let at = -1;
    for (let j = 0; j < right.length; j++) {
      if (isTaken[j] === 1) continue;
      const likeness = likenessOf(word, right[j]!);
      if (likeness > best) [best, at] = [likeness, j];
    }
    const own = rarity(word.text) * word.weight;
    if (at < 0) {
      leftOnly += own * newness(word, right, isTaken);
      hasLeftCode ||= isCode(word);
      continue;
    }
    isTaken[at] = 1;
    const worth = Math.min(own, rarity(right[at]!.text) * right[at]!.weight);
    shared += worth * best;
    leftOnly += worth * (1 - best);
  }
  let rightOnly = 0;
  let hasRightCode = false;
  for (let j = 0; j < right.length; j++) {
    if (isTaken[j] === 1) continue;
    const word = right[j]!;
    rightOnly += rarity(word.text) * word.weight * newness(word, left, null);
    hasRightCode ||= isCode(word);
  }
  const apart = leftOnly === 0 || rightOnly === 0 ? (leftOnly + rightOnly) * subsetShare : leftOnly + rightOnly;
  return {
    likeness: shared === 0 ? 0 : shared / (shared + apart),
    shared,
    codes: hasLeftCode && hasRightCode ? 'other' : hasCode ? 'same' : null,
  };
}

function wordIndexIn(text: string, words: readonly Word[], isTaken: Uint8Array): number {
  for (let j = 0; j < words.length; j++) if (isTaken[j] === 0 && words[j]!.text === text) return j;
  return -1;
}

/**
 * How much of a word none of the others says: of one that is repeated with a slip of the hand, little. Only those that are `isTaken`
 * count where the word is known to be like none of the rest.
 */
function newness(word: Word, others: readonly Word[], isTaken: Uint8Array | null): number {
  if (word.kind === 'initial' || word.text.length < 3) return 1;
  let most = 0;
  for (let j = 0; j < others.length; j++) {
    if (isTaken?.[j] === 0 || others[j]!.kind === 'initial') continue;
    most = Math.max(most, likenessOf(word, others[j]!));
  }
  return 1 - most;
}

function isCode({ text, hasDigit }: Word): boolean {
  return hasDigit && text.length > 2;
}

function ofNumbers(a: number, b: number, rarity: () => number): number {
  if (a === b) return Math.min(5, rarity());
  const isYear = Number.isInteger(a) && Number.isInteger(b) && Math.min(a, b) > 1500 && Math.max(a, b) < 2100;
  if (isYear) return Math.abs(a - b) === 1 ? -10.5 : -12;
  const far = Math.abs(a - b) / Math.max(Math.abs(a), Math.abs(b));
  return far < 0.05 ? 1.5 : far < 0.25 ? 0 : far < 0.5 ? -1 : -2.5;
}

function ofDates(a: string, b: string, rarity: () => number, isBirth: boolean): number {
  if (a === b) return Math.min(12, rarity());
  const against = isBirth ? -8 : -3;
  const isSameYear = a.slice(0, 4) === b.slice(0, 4);
  if (!isDay.test(a) || !isDay.test(b)) return isSameYear ? 0 : against;
  if (isSameYear && a.slice(5, 7) === b.slice(8) && a.slice(8) === b.slice(5, 7)) return 5;
  let same = 0;
  for (let i = 0; i < a.length; i++) if (a[i] === b[i]) same++;
  // One digit is another, or two are in each other's place.
  const isSlip = same >= 9 || (same === 8 && sortLetters(a) === sortLetters(b));
  if (isSlip) return 4;
  return isSameYear ? against / 3 : against;
}

const isDay = /^\d{4}-\d{2}-\d{2}$/;

function ofReferences(a: string, b: string, rarity: () => number): number {
  if (a === b) return Math.min(13, rarity());
  return isOneSlip(a, b) ? 2 : 0;
}

/** A number that one slip of the hand parts from the other may be the same. */
function isOneSlip(a: string, b: string): boolean {
  if (a.length !== b.length || a.length < 6) return false;
  let changed = 0;
  for (let i = 0; i < a.length && changed < 3; i++) if (a[i] !== b[i]) changed++;
  return changed === 1 || (changed === 2 && sortLetters(a) === sortLetters(b));
}

function ofIdentifiers(a: string, b: string, rarity: () => number): number {
  // A kind stands before each value.
  const kind = a.slice(0, a.indexOf(' '));
  const isSole = sole.has(kind);
  if (a === b) return Math.min(isSole ? 20 : 13, rarity() + (isSole ? 6 : 0));
  if (!b.startsWith(`${kind} `)) return 0;
  if (isOneSlip(a, b)) return 2;
  return isSole && kind !== 'email' ? -5 : -1.5;
}

function sortLetters(text: string): string {
  return text.split('').sort().join('');
}

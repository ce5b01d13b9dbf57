/**
 * How likely two rows are one thing, after Fellegi and Sunter: each group of columns that both have speaks for it or against it, in bits;
 * what is rare speaks louder. Weights are built in. Pure.
 */
import { type Collection, type Entity, type Feature, longText } from './collection.ts';
import { likenessOf, type Word } from './words.ts';

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

/** `a` and `b` are rows of these collections. */
export function likelihoodOf(a: Entity, of: Collection, b: Entity, other: Collection): Likelihood {
  const bits: Record<string, number> = {};
  let sum = -Math.max(of.priorBits, other.priorBits) - marginBits;
  let context = 0;
  for (const [i, group] of of.groups.entries()) {
    const j = other === of ? i : other.groups.findIndex(({ name }) => name === group.name);
    const [left, right] = [a.features[i], j < 0 ? null : b.features[j]];
    if (!left || !right) continue;
    const rarity = (text: string): number => Math.min(of.bits(i, text), other.bits(j, text));
    const said = speaks(group, left, right, rarity);
    bits[group.name] = Math.round(said * 100) / 100;
    if (said > 0 && isContext(group)) context += said;
    else sum += said;
  }
  sum += Math.min(contextMost, context);
  return { score: 1 / (1 + 2 ** -sum), bits };
}

function speaks(group: Collection['groups'][number], left: Feature, right: Feature, rarity: (text: string) => number): number {
  if (left.kind === 'words' && right.kind === 'words') {
    const { likeness, shared, codes } = compareWords(left.words, right.words, rarity);
    const { most, against, unlike, alike } = codes === 'same' && isTitle(group.name) ? weights.coded : weightOf(group);
    // Two models of a series have all but a number in common.
    if (codes === 'other' && isTitle(group.name)) return -against;
    const share = Math.min(1, Math.max(0, (likeness - unlike) / (alike - unlike)));
    return share * Math.min(most, shared) - (1 - share) * against;
  }
  if (left.kind === 'number' && right.kind === 'number') return ofNumbers(left.value, right.value, rarity(String(left.value)));
  if (left.kind !== 'value' || right.kind !== 'value') return 0;
  if (group.comparison === 'date') return ofDates(left.text, right.text, rarity(left.text), group.name === 'birth');
  if (group.comparison === 'reference') return ofReferences(left.text, right.text, rarity(left.text));
  return ofIdentifiers(left.text, right.text, rarity(left.text));
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
    const at = right.findIndex((each, j) => isTaken[j] === 0 && each.text === word.text);
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
    right.forEach((each, j) => {
      if (isTaken[j] === 1) return;
      const likeness = likenessOf(word, each);
      if (likeness > best) [best, at] = [likeness, j];
    });
    const own = rarity(word.text) * word.weight;
    if (at < 0) {
      leftOnly += own * newness(word, right);
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
  right.forEach((word, j) => {
    if (isTaken[j] === 1) return;
    rightOnly += rarity(word.text) * word.weight * newness(word, left);
    hasRightCode ||= isCode(word);
  });
  const apart = leftOnly === 0 || rightOnly === 0 ? (leftOnly + rightOnly) * subsetShare : leftOnly + rightOnly;
  return {
    likeness: shared === 0 ? 0 : shared / (shared + apart),
    shared,
    codes: hasLeftCode && hasRightCode ? 'other' : hasCode ? 'same' : null,
  };
}

/** How much of a word none of the others says: of one that is repeated with a slip of the hand, little. */
function newness(word: Word, others: readonly Word[]): number {
  if (word.kind === 'initial' || word.text.length < 3) return 1;
  let most = 0;
  for (const other of others) if (other.kind !== 'initial') most = Math.max(most, likenessOf(word, other));
  return 1 - most;
}

function isCode({ text }: Word): boolean {
  return text.length > 2 && /\d/.test(text);
}

function ofNumbers(a: number, b: number, rarity: number): number {
  if (a === b) return Math.min(5, rarity);
  const isYear = Number.isInteger(a) && Number.isInteger(b) && Math.min(a, b) > 1500 && Math.max(a, b) < 2100;
  if (isYear) return Math.abs(a - b) === 1 ? -10.5 : -12;
  const far = Math.abs(a - b) / Math.max(Math.abs(a), Math.abs(b));
  return far < 0.05 ? 1.5 : far < 0.25 ? 0 : far < 0.5 ? -1 : -2.5;
}

function ofDates(a: string, b: string, rarity: number, isBirth: boolean): number {
  if (a === b) return Math.min(12, rarity);
  const against = isBirth ? -8 : -3;
  const [left, right] = [/^(\d{4})-(\d{2})-(\d{2})$/.exec(a), /^(\d{4})-(\d{2})-(\d{2})$/.exec(b)];
  if (!left || !right) return a.slice(0, 4) === b.slice(0, 4) ? 0 : against;
  const [, y, m, d] = left;
  const [, y2, m2, d2] = right;
  if (y === y2 && m === d2 && d === m2) return 5;
  let same = 0;
  for (let i = 0; i < a.length; i++) if (a[i] === b[i]) same++;
  // One digit is another, or two are in each other's place.
  const isSlip = same >= 9 || (same === 8 && sortLetters(a) === sortLetters(b));
  if (isSlip) return 4;
  return y === y2 ? against / 3 : against;
}

function ofReferences(a: string, b: string, rarity: number): number {
  if (a === b) return Math.min(13, rarity);
  return isOneSlip(a, b) ? 2 : 0;
}

/** A number that one slip of the hand parts from the other may be the same. */
function isOneSlip(a: string, b: string): boolean {
  if (a.length !== b.length || a.length < 6) return false;
  let changed = 0;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) changed++;
  return changed === 1 || (changed === 2 && sortLetters(a) === sortLetters(b));
}

function ofIdentifiers(a: string, b: string, rarity: number): number {
  const [kind = ''] = a.split(' ', 1);
  const isSole = sole.has(kind);
  if (a === b) return Math.min(isSole ? 20 : 13, rarity + (isSole ? 6 : 0));
  if (!b.startsWith(`${kind} `)) return 0;
  if (isOneSlip(a, b)) return 2;
  return isSole && kind !== 'email' ? -5 : -1.5;
}

function sortLetters(text: string): string {
  return text.split('').sort().join('');
}

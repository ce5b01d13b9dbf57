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

interface GroupWeight {
  /** Bits of agreement, at most. */
  readonly most: number;
  /** Bits against, where nothing agrees. */
  readonly against: number;
  /** Likeness up to which a group says nothing but against, and from which on nothing but for. */
  readonly unlike: number;
  readonly alike: number;
}

const nameSubsetShare = 0.5;

const groupWeights = {
  name: { most: 17, against: 10, unlike: 0.3, alike: 0.85 },
  title: { most: 18, against: 10, unlike: 0.45, alike: 0.9 },
  /** A title that has a number of the other's: praise beside it says little. */
  coded: { most: 18, against: 10, unlike: 0.15, alike: 0.6 },
  text: { most: 8, against: 2.5, unlike: 0.25, alike: 0.85 },
  description: { most: 7, against: 1, unlike: 0.1, alike: 0.7 },
} satisfies Readonly<Record<string, GroupWeight>>;

/** Where somebody lives and what kind of thing it is hang together, and others share all of it: together they say no more than this. */
const contextBitsMax = 12;
/** Bits by which two rows have to be more likely one than two. */
const linkMarginBits = 5;

/** Kinds of which one value is of one thing. */
const soleIdentifiers = new Set('iban imei mac card vin imo mmsi lei isin mrz wallet id email'.split(' '));

/** Rows that are less likely one than this are not linked. */
const linkedScoreMin = 0.5;
/** Bits below which the score is less than that, and a little for sums that are rounded. */
const linkedBitsMin = -1e-6;

/** How a group is weighed, by its place in its collection. */
interface GroupWeighing {
  /** Places of groups of words, those that say most first: to compare words takes long. */
  readonly words: readonly number[];
  readonly areContext: readonly boolean[];
  /** Bits of agreement, at most. */
  readonly most: readonly number[];
}

const knownWeighings = new WeakMap<Collection, GroupWeighing>();

function groupWeighingOf(collection: Collection): GroupWeighing {
  const knownWeighing = knownWeighings.get(collection);
  if (knownWeighing !== undefined) return knownWeighing;
  const { groups } = collection;
  const mostBits = groups.map((group) => (isTitleGroup(group.name) ? groupWeights.coded.most : groupWeightOf(group).most));
  const wordGroups = groups.flatMap(({ comparison }, i) => (comparison === 'name' || comparison === 'text' ? [i] : []));
  wordGroups.sort((a, b) => mostBits[b]! - mostBits[a]!);
  const weighing = { words: wordGroups, areContext: groups.map(isContextGroup), most: mostBits };
  knownWeighings.set(collection, weighing);
  return weighing;
}

/** Changes that training makes to the bits of the groups of a collection, by their places; built-in weights need none. */
export interface Trained {
  /** Bits against are multiplied by it. */
  readonly against: readonly number[];
  /** Bits that are added where a group speaks for two rows: below zero, as far as it does not always agree. */
  readonly agreement: readonly number[];
}

function bitsAfterTraining(untrainedBits: number, i: number, trained: Trained | null): number {
  if (trained === null) return untrainedBits;
  return untrainedBits < 0
    ? untrainedBits * trained.against[i]!
    : untrainedBits === 0
      ? 0
      : Math.max(0, untrainedBits + trained.agreement[i]!);
}

/**
 * `leftEntity` and `rightEntity` are rows of these collections; null where they are not to be linked, which mostly shows before all is compared.
 * `trained` is of both.
 */
export function likelihoodOf(
  leftEntity: Entity,
  leftCollection: Collection,
  rightEntity: Entity,
  rightCollection: Collection,
  trained: Trained | null = null,
): Likelihood | null {
  const { groups } = leftCollection;
  const { words: wordGroups, areContext, most: mostBits } = groupWeighingOf(leftCollection);
  const priorBits = priorLinkBits(leftCollection, rightCollection);
  const evidence: (number | null)[] = [];
  // Bits if all words that are not compared yet agree.
  let plainBits = priorBits;
  let contextBits = 0;
  for (let i = 0; i < groups.length; i++) {
    const otherGroup = groupIndexIn(rightCollection, leftCollection, i);
    const [leftFeature, rightFeature] = [leftEntity.features[i], otherGroup < 0 ? null : rightEntity.features[otherGroup]];
    evidence.push(null);
    if (!leftFeature || !rightFeature) continue;
    const areBothWords = leftFeature.kind === 'words' && rightFeature.kind === 'words';
    const comparedBits = areBothWords
      ? mostBits[i]!
      : bitsAfterTraining(
          bitsOfValues(groups[i]!, leftFeature, rightFeature, (text) =>
            textRarityBits(leftCollection, i, rightCollection, otherGroup, text),
          ),
          i,
          trained,
        );
    if (!areBothWords) evidence[i] = comparedBits;
    if (areContext[i] && comparedBits > 0) contextBits += comparedBits;
    else plainBits += comparedBits;
  }
  if (plainBits + Math.min(contextBitsMax, contextBits) < linkedBitsMin) return null;
  for (const i of wordGroups) {
    const otherGroup = groupIndexIn(rightCollection, leftCollection, i);
    const [leftFeature, rightFeature] = [leftEntity.features[i], otherGroup < 0 ? null : rightEntity.features[otherGroup]];
    if (leftFeature?.kind !== 'words' || rightFeature?.kind !== 'words') continue;
    const textRarity = (text: string): number => textRarityBits(leftCollection, i, rightCollection, otherGroup, text);
    const comparedBits = bitsAfterTraining(
      bitsOfWords(groups[i]!, leftFeature.words, rightFeature.words, textRarity),
      i,
      trained,
    );
    evidence[i] = comparedBits;
    if (areContext[i]) contextBits -= mostBits[i]!;
    else plainBits -= mostBits[i]!;
    if (areContext[i] && comparedBits > 0) contextBits += comparedBits;
    else plainBits += comparedBits;
    if (plainBits + Math.min(contextBitsMax, contextBits) < linkedBitsMin) return null;
  }
  return likelihoodInOrder(groups, evidence, areContext, priorBits);
}

function priorLinkBits(leftCollection: Collection, rightCollection: Collection): number {
  return -Math.max(leftCollection.priorBits, rightCollection.priorBits) - linkMarginBits;
}

/** Bits that each group says of two rows of a collection by built-in weights; null where one of them has none. */
export function bitsOf(leftEntity: Entity, rightEntity: Entity, comparedCollection: Collection): readonly (number | null)[] {
  return comparedCollection.groups.map((group, i) => {
    const [leftFeature, rightFeature] = [leftEntity.features[i], rightEntity.features[i]];
    if (!leftFeature || !rightFeature) return null;
    const textRarity = (text: string): number => comparedCollection.bits(i, text);
    return leftFeature.kind === 'words' && rightFeature.kind === 'words'
      ? bitsOfWords(group, leftFeature.words, rightFeature.words, textRarity)
      : bitsOfValues(group, leftFeature, rightFeature, textRarity);
  });
}

/** The chance, 0 to 1, that two rows with these bits are one. */
export function chanceOf(evidence: readonly (number | null)[], pairCollection: Collection, trained: Trained): number {
  const { areContext } = groupWeighingOf(pairCollection);
  let plainBits = priorLinkBits(pairCollection, pairCollection);
  let contextBits = 0;
  for (const [i, groupBits] of evidence.entries()) {
    const trainedGroupBits = groupBits === null ? 0 : bitsAfterTraining(groupBits, i, trained);
    if (trainedGroupBits > 0 && areContext[i]) contextBits += trainedGroupBits;
    else plainBits += trainedGroupBits;
  }
  return 1 / (1 + 2 ** -(plainBits + Math.min(contextBitsMax, contextBits)));
}

/** Bits against of a group where nothing agrees, as they are built in; 0: it never speaks against. */
export function againstBits(group: Collection['groups'][number]): number {
  if (group.comparison === 'date') return group.name === 'birth' ? 8 : 3;
  if (group.comparison === 'identifier') return 1.5;
  if (group.comparison === 'number') return 2.5;
  return group.comparison === 'reference' ? 0 : groupWeightOf(group).against;
}

/** Sums run in the order of the groups, so that they are rounded in one way. */
function likelihoodInOrder(
  groups: Collection['groups'],
  evidence: readonly (number | null)[],
  areContext: readonly boolean[],
  priorBits: number,
): Likelihood | null {
  const bitsByGroup: Record<string, number> = {};
  let plainBits = priorBits;
  let contextBits = 0;
  for (const [i, groupBits] of evidence.entries()) {
    if (groupBits === null) continue;
    bitsByGroup[groups[i]!.name] = Math.round(groupBits * 100) / 100;
    if (groupBits > 0 && areContext[i]) contextBits += groupBits;
    else plainBits += groupBits;
  }
  plainBits += Math.min(contextBitsMax, contextBits);
  const linkScore = 1 / (1 + 2 ** -plainBits);
  return linkScore < linkedScoreMin ? null : { score: linkScore, bits: bitsByGroup };
}

/** The place in another collection of a group of this one; below zero where it has none such. */
function groupIndexIn(other: Collection, of: Collection, i: number): number {
  return other === of ? i : other.groups.findIndex(({ name }) => name === of.groups[i]!.name);
}

function textRarityBits(leftCollection: Collection, i: number, rightCollection: Collection, j: number, text: string): number {
  const leftRarity = leftCollection.bits(i, text);
  return leftCollection === rightCollection ? leftRarity : Math.min(leftRarity, rightCollection.bits(j, text));
}

function bitsOfWords(
  group: Collection['groups'][number],
  leftWords: readonly Word[],
  rightWords: readonly Word[],
  rarity: (text: string) => number,
): number {
  const { likeness: wordLikeness, shared: sharedBits, codes: wordCodes } = compareWords(leftWords, rightWords, rarity);
  const {
    most: mostBits,
    against,
    unlike,
    alike,
  } = wordCodes === 'same' && isTitleGroup(group.name) ? groupWeights.coded : groupWeightOf(group);
  // Two models of a series have all but a number in common.
  if (wordCodes === 'other' && isTitleGroup(group.name)) return -against;
  const likenessShare = Math.min(1, Math.max(0, (wordLikeness - unlike) / (alike - unlike)));
  return likenessShare * Math.min(mostBits, sharedBits) - (1 - likenessShare) * against;
}

function bitsOfValues(
  group: Collection['groups'][number],
  leftFeature: Feature,
  rightFeature: Feature,
  rarity: (text: string) => number,
): number {
  if (leftFeature.kind === 'number' && rightFeature.kind === 'number') {
    return bitsOfNumbers(leftFeature.value, rightFeature.value, () => rarity(String(leftFeature.value)));
  }
  if (leftFeature.kind !== 'value' || rightFeature.kind !== 'value') return 0;
  const leftRarity = (): number => rarity(leftFeature.text);
  if (group.comparison === 'date') return bitsOfDates(leftFeature.text, rightFeature.text, leftRarity, group.name === 'birth');
  if (group.comparison === 'reference') return bitsOfReferences(leftFeature.text, rightFeature.text, leftRarity);
  return bitsOfIdentifiers(leftFeature.text, rightFeature.text, leftRarity);
}

/** Texts other than titles, numbers, and references that many rows may share. */
function isContextGroup({ comparison, name }: Collection['groups'][number]): boolean {
  return comparison === 'number' || (comparison === 'text' && !isTitleGroup(name));
}

function isTitleGroup(name: string): boolean {
  return name === 'name' || name === 'title';
}

function groupWeightOf({ comparison, name: groupName, length }: Collection['groups'][number]): GroupWeight {
  if (comparison === 'name') return groupWeights.name;
  if (length > longText) return groupWeights.description;
  return isTitleGroup(groupName) ? groupWeights.title : groupWeights.text;
}

/** `sharedBits` in bits. */
export function compareWords(
  leftWords: readonly Word[],
  rightWords: readonly Word[],
  wordRarity: (text: string) => number,
): { readonly likeness: number; readonly shared: number; readonly codes: 'same' | 'other' | null } {
  const isRightTaken = new Uint8Array(rightWords.length);
  const unmatchedWords: Word[] = [];
  let sharedBits = 0;
  let leftOnlyBits = 0;
  let hasSharedCode = false;
  let hasLeftCode = false;
  for (const comparedWord of leftWords) {
    const rightWordAt = wordIndexIn(comparedWord.text, rightWords, isRightTaken);
    if (rightWordAt < 0) unmatchedWords.push(comparedWord);
    else {
      isRightTaken[rightWordAt] = 1;
      sharedBits += wordRarity(comparedWord.text) * comparedWord.weight;
      hasSharedCode ||= isCodeWord(comparedWord);
    }
  }
  for (const word of unmatchedWords) {
    let bestLikeness = 0;
    let rightWordAt = -1;
    for (let j = 0; j < rightWords.length; j++) {
      if (isRightTaken[j] === 1) continue;
      const wordLikeness = likenessOf(word, rightWords[j]!);
      if (wordLikeness > bestLikeness) [bestLikeness, rightWordAt] = [wordLikeness, j];
    }
    const ownBits = wordRarity(word.text) * word.weight;
    if (rightWordAt < 0) {
      leftOnlyBits += ownBits * wordNewness(word, rightWords, isRightTaken);
      hasLeftCode ||= isCodeWord(word);
      continue;
    }
    isRightTaken[rightWordAt] = 1;
    const sharedWorth = Math.min(ownBits, wordRarity(rightWords[rightWordAt]!.text) * rightWords[rightWordAt]!.weight);
    sharedBits += sharedWorth * bestLikeness;
    leftOnlyBits += sharedWorth * (1 - bestLikeness);
  }
  let rightOnlyBits = 0;
  let hasRightCode = false;
  for (let j = 0; j < rightWords.length; j++) {
    if (isRightTaken[j] === 1) continue;
    const word = rightWords[j]!;
    rightOnlyBits += wordRarity(word.text) * word.weight * wordNewness(word, leftWords, null);
    hasRightCode ||= isCodeWord(word);
  }
  const apartBits =
    leftOnlyBits === 0 || rightOnlyBits === 0 ? (leftOnlyBits + rightOnlyBits) * nameSubsetShare : leftOnlyBits + rightOnlyBits;
  return {
    likeness: sharedBits === 0 ? 0 : sharedBits / (sharedBits + apartBits),
    shared: sharedBits,
    codes: hasLeftCode && hasRightCode ? 'other' : hasSharedCode ? 'same' : null,
  };
}

function wordIndexIn(text: string, words: readonly Word[], isTaken: Uint8Array): number {
  for (let j = 0; j < words.length; j++) if (isTaken[j] === 0 && words[j]!.text === text) return j;
  return -1;
}

/**
 * How much of a word none of the others says: of one that is repeated with a slip of the hand, little. Only those that are `isOtherTaken`
 * count where the word is known to be like none of the rest.
 */
function wordNewness(newWord: Word, otherWords: readonly Word[], isOtherTaken: Uint8Array | null): number {
  if (newWord.kind === 'initial' || newWord.text.length < 3) return 1;
  let mostLikeness = 0;
  for (let j = 0; j < otherWords.length; j++) {
    if (isOtherTaken?.[j] === 0 || otherWords[j]!.kind === 'initial') continue;
    mostLikeness = Math.max(mostLikeness, likenessOf(newWord, otherWords[j]!));
  }
  return 1 - mostLikeness;
}

function isCodeWord({ text, hasDigit }: Word): boolean {
  return hasDigit && text.length > 2;
}

function bitsOfNumbers(leftNumber: number, rightNumber: number, numberRarity: () => number): number {
  if (leftNumber === rightNumber) return Math.min(5, numberRarity());
  const areYears =
    Number.isInteger(leftNumber) &&
    Number.isInteger(rightNumber) &&
    Math.min(leftNumber, rightNumber) > 1500 &&
    Math.max(leftNumber, rightNumber) < 2100;
  if (areYears) return Math.abs(leftNumber - rightNumber) === 1 ? -10.5 : -12;
  const relativeDistance = Math.abs(leftNumber - rightNumber) / Math.max(Math.abs(leftNumber), Math.abs(rightNumber));
  return relativeDistance < 0.05 ? 1.5 : relativeDistance < 0.25 ? 0 : relativeDistance < 0.5 ? -1 : -2.5;
}

function bitsOfDates(leftDate: string, rightDate: string, dateRarity: () => number, isBirth: boolean): number {
  if (leftDate === rightDate) return Math.min(12, dateRarity());
  const againstDateBits = isBirth ? -8 : -3;
  const haveSameYear = leftDate.slice(0, 4) === rightDate.slice(0, 4);
  if (!isoDayPattern.test(leftDate) || !isoDayPattern.test(rightDate)) return haveSameYear ? 0 : againstDateBits;
  if (haveSameYear && leftDate.slice(5, 7) === rightDate.slice(8) && leftDate.slice(8) === rightDate.slice(5, 7)) return 5;
  let sameDigits = 0;
  for (let i = 0; i < leftDate.length; i++) if (leftDate[i] === rightDate[i]) sameDigits++;
  // One digit is another, or two are in each other's place.
  const isDateSlip = sameDigits >= 9 || (sameDigits === 8 && sortedLetters(leftDate) === sortedLetters(rightDate));
  if (isDateSlip) return 4;
  return haveSameYear ? againstDateBits / 3 : againstDateBits;
}

const isoDayPattern = /^\d{4}-\d{2}-\d{2}$/;

function bitsOfReferences(leftReference: string, rightReference: string, referenceRarity: () => number): number {
  if (leftReference === rightReference) return Math.min(13, referenceRarity());
  return differByOneSlip(leftReference, rightReference) ? 2 : 0;
}

/** A number that one slip of the hand parts from the other may be the same. */
function differByOneSlip(leftText: string, rightText: string): boolean {
  if (leftText.length !== rightText.length || leftText.length < 6) return false;
  let changedLetterCount = 0;
  for (let i = 0; i < leftText.length && changedLetterCount < 3; i++) if (leftText[i] !== rightText[i]) changedLetterCount++;
  return changedLetterCount === 1 || (changedLetterCount === 2 && sortedLetters(leftText) === sortedLetters(rightText));
}

function bitsOfIdentifiers(leftIdentifier: string, rightIdentifier: string, identifierRarity: () => number): number {
  // A kind stands before each value.
  const identifierKind = leftIdentifier.slice(0, leftIdentifier.indexOf(' '));
  const isSoleIdentifier = soleIdentifiers.has(identifierKind);
  if (leftIdentifier === rightIdentifier)
    return Math.min(isSoleIdentifier ? 20 : 13, identifierRarity() + (isSoleIdentifier ? 6 : 0));
  if (!rightIdentifier.startsWith(`${identifierKind} `)) return 0;
  if (differByOneSlip(leftIdentifier, rightIdentifier)) return 2;
  return isSoleIdentifier && identifierKind !== 'email' ? -5 : -1.5;
}

function sortedLetters(text: string): string {
  return text.split('').sort().join('');
}

/**
 * Rows of one type as they are compared: their words, identifiers, dates and numbers, how rare each is among the visible rows, and the
 * keys by which rows that may be one thing are found without looking at every pair.
 */
import { canonicalIdentifier, identifiersIn } from '../../../../projections/entity-resolution/identifiers.ts';
import type { Steps } from '../../../graph/stepped-sort.ts';
import type { DomainCall } from '../domain-function.ts';
import type { RoleBatch } from '../role-rows.ts';
import { TextMap } from '../text-map.ts';
import type { ComparedColumn } from './compared-columns.ts';
import { textWord, type Word, wordsOfName, wordsOfText } from './word-similarity.ts';

/** The cells of a group of columns of one row; absent where all are NULL. */
export type Feature =
  | { readonly kind: 'words'; readonly words: readonly Word[] }
  | { readonly kind: 'value'; readonly text: string }
  | { readonly kind: 'number'; readonly value: number };

export interface Entity {
  readonly type: string;
  readonly nodeId: string;
  readonly systemFrom: bigint | null;
  /** By place of the group in its collection. */
  readonly features: readonly (Feature | null)[];
}

export interface Group {
  readonly name: string;
  readonly comparison: ComparedColumn['comparison'];
  /** Words of a cell on average. */
  readonly length: number;
}

/** The average number of words from which a column holds descriptions. */
export const longText = 9;
/** Names of more words on average are titles: of goods, of works. */
const averageNameWordsMax = 4.5;
/** Rows that share a key, at most: what more rows share tells nothing. */
const comparedBlockMax = 60;
/** A few rows say little of how frequent a word is: this many more are assumed, a thousandth of which have it. */
const assumedIdentityRows = 100;
const assumedTextShare = 0.001;
/** Least bits of shared keys, relative to those that single one row out: below, a pair is not compared. */
const sharedBlockBitsMin = 0.4;
const identitiesAtOnce = 64;
const looksPerIdentity = 400;

export class Collection {
  readonly type: string;
  readonly entities: Entity[] = [];
  #columnGroups: Group[] = [];
  /** By group, how many rows have a word or value. */
  #textCounts: TextMap<number>[] = [];
  /** By group, what was worked out of the counts once all rows were there. */
  #textBits: TextMap<number>[] = [];
  readonly #blocksByKey = new TextMap<number[]>();
  readonly #entityByNode = new TextMap<number>();
  /** By row, bits of shared keys: zero but while rows are looked for. */
  #evidenceBits: Uint32Array | null = null;
  #collectionBytes = 0;

  private constructor(type: string) {
    this.type = type;
  }

  static *read(
    identityCall: DomainCall,
    type: string,
    columns: readonly ComparedColumn[],
  ): Steps<{ value: Collection; bytes: number }> {
    const collection = new Collection(type);
    const comparedRows: { nodeId: string; systemFrom: bigint | null; cells: (string | null)[] }[] = [];
    yield* identityCall.rowsOf(
      type,
      columns.map(({ column }) => column),
      (comparedBatch) => {
        for (let comparedRow = 0; comparedRow < comparedBatch.count; comparedRow++) {
          const entityNodeId = comparedBatch.nodeId(comparedRow);
          if (entityNodeId === null) continue;
          comparedRows.push({
            nodeId: entityNodeId,
            systemFrom: comparedBatch.systemFrom(comparedRow),
            cells: columns.map((comparedColumn) => comparedCellOf(comparedBatch, comparedColumn, comparedRow)),
          });
        }
        identityCall.hold(comparedRows.length * (96 + 48 * columns.length));
      },
    );
    // A cell that is read tells what its column is: a name of many words is a title.
    const columnGroups = new Map<
      string,
      { columns: number[]; comparison: ComparedColumn['comparison']; words: number; cells: number }
    >();
    columns.forEach(({ group, comparison }, i) => {
      const knownGroup = columnGroups.get(group);
      if (knownGroup !== undefined) knownGroup.columns.push(i);
      else columnGroups.set(group, { columns: [i], comparison, words: 0, cells: 0 });
    });
    for (const group of columnGroups.values()) {
      if (group.comparison !== 'name' && group.comparison !== 'text') continue;
      for (let i = 0; i < comparedRows.length; i += Math.ceil(comparedRows.length / 1_000)) {
        const groupTexts = group.columns.flatMap((column) => comparedRows[i]!.cells[column] ?? []);
        if (groupTexts.length === 0) continue;
        group.words += groupTexts.join(' ').split(/\s+/).length;
        group.cells++;
      }
    }
    collection.#columnGroups = [...columnGroups].map(([name, { comparison, words: internedWords, cells }]): Group => {
      const groupLength = cells === 0 ? 0 : internedWords / cells;
      return {
        name,
        comparison: comparison === 'name' && groupLength > averageNameWordsMax ? 'text' : comparison,
        length: groupLength,
      };
    });
    collection.#textCounts = collection.#columnGroups.map(() => new TextMap());
    collection.#textBits = collection.#columnGroups.map(() => new TextMap());
    const groupParts = [...columnGroups.values()];
    const words = new TextMap<Word>();
    for (const [entityOrdinal, { nodeId, systemFrom, cells }] of comparedRows.entries()) {
      const entityFeatures = collection.#columnGroups.map((group, i) => {
        const groupColumns = groupParts[i]!.columns;
        return identityFeatureOf(
          group,
          groupColumns.flatMap((column) => cells[column] ?? []),
          groupColumns.map((column) => columns[column]!),
          words,
        );
      });
      collection.#addEntity({ type, nodeId, systemFrom, features: entityFeatures });
      if (entityOrdinal % identitiesAtOnce !== identitiesAtOnce - 1) continue;
      identityCall.look(identitiesAtOnce * looksPerIdentity);
      identityCall.hold(collection.#collectionBytes);
      yield;
    }
    yield* collection.#blockEntities(identityCall);
    return { value: collection, bytes: collection.#collectionBytes };
  }

  get groups(): readonly Group[] {
    return this.#columnGroups;
  }

  get size(): number {
    return this.entities.length;
  }

  find(nodeId: string): Entity | undefined {
    const entityOrdinal = this.#entityByNode.get(nodeId);
    return entityOrdinal === undefined ? undefined : this.entities[entityOrdinal];
  }

  /** The place of a row of it, in the order in which they were read. */
  numberOf({ nodeId }: Entity): number {
    return this.#entityByNode.get(nodeId)!;
  }

  /**
   * Rows that share keys which few enough rows have here and in the collection that the keys are of; those alone whose shared keys
   * together say enough for a look. The same whichever of two rows is asked about.
   */
  withKeys(blockKeys: Iterable<string>, ownCollection: Collection): readonly Entity[] {
    const collectionSize = Math.max(this.size, ownCollection.size) + assumedIdentityRows;
    const sharedEntities: number[] = [];
    this.#evidenceBits ??= new Uint32Array(this.size);
    for (const blockKey of blockKeys) {
      const keyBlock = this.#blocksByKey.get(blockKey);
      if (
        keyBlock === undefined ||
        keyBlock.length > comparedBlockMax ||
        (ownCollection !== this && ownCollection.#isCommonBlock(blockKey))
      )
        continue;
      const blockLength =
        ownCollection === this
          ? keyBlock.length
          : Math.max(keyBlock.length, ownCollection.#blocksByKey.get(blockKey)?.length ?? 0);
      // Whole numbers: their sum is the same in any order.
      const evidenceBits = Math.round(64 * Math.log2(collectionSize / blockLength));
      for (const entityOrdinal of keyBlock) {
        if (this.#evidenceBits[entityOrdinal] === 0) sharedEntities.push(entityOrdinal);
        this.#evidenceBits[entityOrdinal]! += evidenceBits;
      }
    }
    const leastSharedBits = 64 * sharedBlockBitsMin * Math.log2(collectionSize);
    const entities: Entity[] = [];
    for (const at of sharedEntities) {
      if (this.#evidenceBits[at]! >= leastSharedBits) entities.push(this.entities[at]!);
      this.#evidenceBits[at] = 0;
    }
    return entities;
  }

  /** Rows that have an identifier or a word, however many others have it. */
  having(blockKey: string): readonly Entity[] {
    return (this.#blocksByKey.get(blockKey) ?? []).map((entityOrdinal) => this.entities[entityOrdinal]!);
  }

  #isCommonBlock(key: string): boolean {
    return (this.#blocksByKey.get(key)?.length ?? 0) > comparedBlockMax;
  }

  /** How much the same word or value in a group says, in bits: the rarer, the more. */
  bits(group: number, featureText: string): number {
    const knownBits = this.#textBits[group]!.get(featureText);
    if (knownBits !== undefined) return knownBits;
    // The row itself is none of the others that may have it.
    const otherTextCount = Math.max(0, (this.#textCounts[group]!.get(featureText) ?? 0) - 1);
    const textBits = Math.log2((this.size + assumedIdentityRows) / (otherTextCount + assumedIdentityRows * assumedTextShare));
    if (this.#textCounts[group]!.get(featureText) !== undefined) this.#textBits[group]!.set(featureText, textBits);
    return textBits;
  }

  /** Bits that speak against any two rows being one. */
  get priorBits(): number {
    return Math.log2(this.size + assumedIdentityRows);
  }

  /** Rows that may be one thing share a key. */
  keysOf({ features }: Entity): Set<string> {
    const columnGroups = this.#columnGroups;
    const blockKeys = new Set<string>();
    const nameWords: Word[] = [];
    features.forEach((entityFeature, i) => {
      const { name, comparison } = columnGroups[i]!;
      if (entityFeature === null) return;
      if (comparison === 'identifier') blockKeys.add(`i ${(entityFeature as { text: string }).text}`);
      if (comparison === 'reference') blockKeys.add(`r ${name} ${(entityFeature as { text: string }).text}`);
      if (comparison === 'date') blockKeys.add(`d ${(entityFeature as { text: string }).text.slice(0, 10)}`);
      if (entityFeature.kind !== 'words') return;
      if (comparison === 'name')
        nameWords.push(...entityFeature.words.filter(({ kind }) => kind === 'word' || kind === 'common'));
      for (const { text } of entityFeature.words) blockKeys.add(`w ${name} ${text}`);
    });
    const firstNameWords = nameWords.slice(0, 5);
    for (const [i, oneName] of firstNameWords.entries()) {
      if (firstNameWords.length === 1) blockKeys.add(`n ${oneName.spelling}`);
      for (const otherName of firstNameWords.slice(i + 1))
        blockKeys.add(`n ${[oneName.spelling, otherName.spelling].sort().join(' ')}`);
    }
    features.forEach((entityFeature, i) => {
      const { name, comparison, length } = columnGroups[i]!;
      if (entityFeature?.kind !== 'words' || comparison !== 'text' || length > 4) return;
      for (const one of firstNameWords)
        for (const { text } of entityFeature.words.slice(0, 3)) blockKeys.add(`m ${name} ${text} ${one.spelling}`);
    });
    return blockKeys;
  }

  #addEntity(entity: Entity): void {
    this.#entityByNode.set(entity.nodeId, this.entities.push(entity) - 1);
    this.#collectionBytes += 200 + 2 * entity.nodeId.length;
    entity.features.forEach((entityFeature, i) => {
      if (entityFeature === null) return;
      this.#collectionBytes += 64 + (entityFeature.kind === 'words' ? 16 * entityFeature.words.length : 32);
      const groupCounts = this.#textCounts[i]!;
      for (const featureText of textsOf(entityFeature)) {
        const textCount = groupCounts.get(featureText) ?? 0;
        if (textCount === 0) this.#collectionBytes += 280;
        groupCounts.set(featureText, textCount + 1);
      }
    });
  }

  *#blockEntities(call: DomainCall): Steps<void> {
    for (const [entityOrdinal, entity] of this.entities.entries()) {
      for (const blockKey of this.keysOf(entity)) {
        const keyBlock = this.#blocksByKey.get(blockKey);
        if (keyBlock === undefined) this.#blocksByKey.set(blockKey, [entityOrdinal]);
        else if (keyBlock.length <= comparedBlockMax) keyBlock.push(entityOrdinal);
        this.#collectionBytes += keyBlock === undefined ? 120 : 8;
      }
      if (entityOrdinal % identitiesAtOnce !== identitiesAtOnce - 1) continue;
      call.look(identitiesAtOnce * looksPerIdentity);
      call.hold(this.#collectionBytes);
      yield;
    }
  }
}

function comparedCellOf(comparedBatch: RoleBatch, { column, comparison }: ComparedColumn, row: number): string | null {
  if (comparison === 'number') {
    const comparedNumber = comparedBatch.number(column, row);
    return comparedNumber === null ? null : String(comparedNumber);
  }
  if (comparison === 'name') {
    const comparedTexts = comparedBatch.list(column, row);
    return comparedTexts.length === 0 ? comparedBatch.text(column, row) : comparedTexts.join(' ');
  }
  const comparedText = comparedBatch.text(column, row);
  return comparedText === null || comparedText.trim() === '' ? null : comparedText;
}

/** `columns` are those that the texts are of, as far as they are not NULL. */
function identityFeatureOf(
  { comparison }: Group,
  comparedTexts: readonly string[],
  columns: readonly ComparedColumn[],
  internedWords: TextMap<Word>,
): Feature | null {
  if (comparedTexts.length === 0) return null;
  const [firstText] = comparedTexts as readonly [string];
  if (comparison === 'identifier') return { kind: 'value', text: identifierFeature(firstText, columns[0]!.kind) };
  if (comparison === 'reference') return { kind: 'value', text: bareReference(firstText) };
  if (comparison === 'date') return { kind: 'value', text: comparedDate(firstText) };
  if (comparison === 'number') return { kind: 'number', value: Number(firstText) };
  const joinedText = comparedTexts.join(' ');
  const nameWords =
    comparison === 'name'
      ? wordsOfName(joinedText).map((word) => internWord(internedWords, word))
      : wordsOfText(joinedText).map((each) => internedWords.get(each) ?? internWord(internedWords, textWord(each)));
  return nameWords.length === 0 ? null : { kind: 'words', words: nameWords };
}

/** A value that is none of the kind is compared by its letters and digits: a phone number without a country code, say. */
function identifierFeature(identifierText: string, kind: ComparedColumn['kind']): string {
  const identifierForm = kind === null ? identifiersIn(identifierText)[0] : [kind, canonicalIdentifier(kind, identifierText)];
  if (identifierForm?.[1]) return `${identifierForm[0]} ${identifierForm[1]}`;
  return `- ${bareReference(identifierText)}`;
}

function bareReference(referenceText: string): string {
  return referenceText.toLowerCase().replaceAll(/[^\p{L}\p{N}]/gu, '');
}

/** `1970-01-31` of every way in which digits are written; else the text. */
function comparedDate(dateText: string): string {
  const isoDate = /^(\d{4})[-/.]?(\d{2})[-/.]?(\d{2})/.exec(dateText);
  if (isoDate) return `${isoDate[1]}-${isoDate[2]}-${isoDate[3]}`;
  const dayFirstDate = /^(\d{1,2})[-/.](\d{1,2})[-/.](\d{4})/.exec(dateText);
  if (dayFirstDate) return `${dayFirstDate[3]}-${dayFirstDate[2]!.padStart(2, '0')}-${dayFirstDate[1]!.padStart(2, '0')}`;
  return dateText.trim().toLowerCase();
}

function internWord(internedWords: TextMap<Word>, word: Word): Word {
  const wordKey = word.kind === 'word' || word.kind === 'number' ? word.text : `${word.kind} ${word.text}`;
  const knownWord = internedWords.get(wordKey);
  if (knownWord !== undefined) return knownWord;
  internedWords.set(wordKey, word);
  return word;
}

export function textsOf(feature: Feature): readonly string[] {
  if (feature.kind === 'words') return feature.words.map(({ text }) => text);
  return [feature.kind === 'value' ? feature.text : String(feature.value)];
}

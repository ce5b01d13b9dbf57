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
const nameWordsMax = 4.5;
/** Rows that share a key, at most: what more rows share tells nothing. */
const blockMax = 60;
/** A few rows say little of how frequent a word is: this many more are assumed, a thousandth of which have it. */
const assumedRows = 100;
const assumedShare = 0.001;
/** Least bits of shared keys, relative to those that single one row out: below, a pair is not compared. */
const sharedBitsMin = 0.4;
const entitiesAtOnce = 64;
const looksPerEntity = 400;

export class Collection {
  readonly type: string;
  readonly entities: Entity[] = [];
  #groups: Group[] = [];
  /** By group, how many rows have a word or value. */
  #counts: TextMap<number>[] = [];
  /** By group, what was worked out of the counts once all rows were there. */
  #bits: TextMap<number>[] = [];
  readonly #blocks = new TextMap<number[]>();
  readonly #byNode = new TextMap<number>();
  /** By row, bits of shared keys: zero but while rows are looked for. */
  #evidenceBits: Uint32Array | null = null;
  #bytes = 0;

  private constructor(type: string) {
    this.type = type;
  }

  static *read(call: DomainCall, type: string, columns: readonly ComparedColumn[]): Steps<{ value: Collection; bytes: number }> {
    const collection = new Collection(type);
    const rows: { nodeId: string; systemFrom: bigint | null; cells: (string | null)[] }[] = [];
    yield* call.rowsOf(
      type,
      columns.map(({ column }) => column),
      (batch) => {
        for (let row = 0; row < batch.count; row++) {
          const nodeId = batch.nodeId(row);
          if (nodeId === null) continue;
          rows.push({ nodeId, systemFrom: batch.systemFrom(row), cells: columns.map((each) => cellOf(batch, each, row)) });
        }
        call.hold(rows.length * (96 + 48 * columns.length));
      },
    );
    // A cell that is read tells what its column is: a name of many words is a title.
    const groups = new Map<
      string,
      { columns: number[]; comparison: ComparedColumn['comparison']; words: number; cells: number }
    >();
    columns.forEach(({ group, comparison }, i) => {
      const known = groups.get(group);
      if (known !== undefined) known.columns.push(i);
      else groups.set(group, { columns: [i], comparison, words: 0, cells: 0 });
    });
    for (const group of groups.values()) {
      if (group.comparison !== 'name' && group.comparison !== 'text') continue;
      for (let i = 0; i < rows.length; i += Math.ceil(rows.length / 1_000)) {
        const texts = group.columns.flatMap((column) => rows[i]!.cells[column] ?? []);
        if (texts.length === 0) continue;
        group.words += texts.join(' ').split(/\s+/).length;
        group.cells++;
      }
    }
    collection.#groups = [...groups].map(([name, { comparison, words, cells }]): Group => {
      const length = cells === 0 ? 0 : words / cells;
      return { name, comparison: comparison === 'name' && length > nameWordsMax ? 'text' : comparison, length };
    });
    collection.#counts = collection.#groups.map(() => new TextMap());
    collection.#bits = collection.#groups.map(() => new TextMap());
    const parts = [...groups.values()];
    const words = new TextMap<Word>();
    for (const [at, { nodeId, systemFrom, cells }] of rows.entries()) {
      const features = collection.#groups.map((group, i) => {
        const of = parts[i]!.columns;
        return featureOf(
          group,
          of.flatMap((column) => cells[column] ?? []),
          of.map((column) => columns[column]!),
          words,
        );
      });
      collection.#add({ type, nodeId, systemFrom, features });
      if (at % entitiesAtOnce !== entitiesAtOnce - 1) continue;
      call.look(entitiesAtOnce * looksPerEntity);
      call.hold(collection.#bytes);
      yield;
    }
    yield* collection.#block(call);
    return { value: collection, bytes: collection.#bytes };
  }

  get groups(): readonly Group[] {
    return this.#groups;
  }

  get size(): number {
    return this.entities.length;
  }

  find(nodeId: string): Entity | undefined {
    const at = this.#byNode.get(nodeId);
    return at === undefined ? undefined : this.entities[at];
  }

  /** The place of a row of it, in the order in which they were read. */
  numberOf({ nodeId }: Entity): number {
    return this.#byNode.get(nodeId)!;
  }

  /**
   * Rows that share keys which few enough rows have here and in the collection that the keys are of; those alone whose shared keys
   * together say enough for a look. The same whichever of two rows is asked about.
   */
  withKeys(keys: Iterable<string>, own: Collection): readonly Entity[] {
    const size = Math.max(this.size, own.size) + assumedRows;
    const shared: number[] = [];
    this.#evidenceBits ??= new Uint32Array(this.size);
    for (const key of keys) {
      const block = this.#blocks.get(key);
      if (block === undefined || block.length > blockMax || (own !== this && own.#isCommon(key))) continue;
      const length = own === this ? block.length : Math.max(block.length, own.#blocks.get(key)?.length ?? 0);
      // Whole numbers: their sum is the same in any order.
      const evidenceBits = Math.round(64 * Math.log2(size / length));
      for (const at of block) {
        if (this.#evidenceBits[at] === 0) shared.push(at);
        this.#evidenceBits[at]! += evidenceBits;
      }
    }
    const least = 64 * sharedBitsMin * Math.log2(size);
    const entities: Entity[] = [];
    for (const at of shared) {
      if (this.#evidenceBits[at]! >= least) entities.push(this.entities[at]!);
      this.#evidenceBits[at] = 0;
    }
    return entities;
  }

  /** Rows that have an identifier or a word, however many others have it. */
  having(key: string): readonly Entity[] {
    return (this.#blocks.get(key) ?? []).map((at) => this.entities[at]!);
  }

  #isCommon(key: string): boolean {
    return (this.#blocks.get(key)?.length ?? 0) > blockMax;
  }

  /** How much the same word or value in a group says, in bits: the rarer, the more. */
  bits(group: number, text: string): number {
    const known = this.#bits[group]!.get(text);
    if (known !== undefined) return known;
    // The row itself is none of the others that may have it.
    const others = Math.max(0, (this.#counts[group]!.get(text) ?? 0) - 1);
    const bits = Math.log2((this.size + assumedRows) / (others + assumedRows * assumedShare));
    if (this.#counts[group]!.get(text) !== undefined) this.#bits[group]!.set(text, bits);
    return bits;
  }

  /** Bits that speak against any two rows being one. */
  get priorBits(): number {
    return Math.log2(this.size + assumedRows);
  }

  /** Rows that may be one thing share a key. */
  keysOf({ features }: Entity): Set<string> {
    const groups = this.#groups;
    const keys = new Set<string>();
    const names: Word[] = [];
    features.forEach((feature, i) => {
      const { name, comparison } = groups[i]!;
      if (feature === null) return;
      if (comparison === 'identifier') keys.add(`i ${(feature as { text: string }).text}`);
      if (comparison === 'reference') keys.add(`r ${name} ${(feature as { text: string }).text}`);
      if (comparison === 'date') keys.add(`d ${(feature as { text: string }).text.slice(0, 10)}`);
      if (feature.kind !== 'words') return;
      if (comparison === 'name') names.push(...feature.words.filter(({ kind }) => kind === 'word' || kind === 'common'));
      for (const { text } of feature.words) keys.add(`w ${name} ${text}`);
    });
    const some = names.slice(0, 5);
    for (const [i, one] of some.entries()) {
      if (some.length === 1) keys.add(`n ${one.spelling}`);
      for (const other of some.slice(i + 1)) keys.add(`n ${[one.spelling, other.spelling].sort().join(' ')}`);
    }
    features.forEach((feature, i) => {
      const { name, comparison, length } = groups[i]!;
      if (feature?.kind !== 'words' || comparison !== 'text' || length > 4) return;
      for (const one of some) for (const { text } of feature.words.slice(0, 3)) keys.add(`m ${name} ${text} ${one.spelling}`);
    });
    return keys;
  }

  #add(entity: Entity): void {
    this.#byNode.set(entity.nodeId, this.entities.push(entity) - 1);
    this.#bytes += 200 + 2 * entity.nodeId.length;
    entity.features.forEach((feature, i) => {
      if (feature === null) return;
      this.#bytes += 64 + (feature.kind === 'words' ? 16 * feature.words.length : 32);
      const counts = this.#counts[i]!;
      for (const text of textsOf(feature)) {
        const count = counts.get(text) ?? 0;
        if (count === 0) this.#bytes += 280;
        counts.set(text, count + 1);
      }
    });
  }

  *#block(call: DomainCall): Steps<void> {
    for (const [at, entity] of this.entities.entries()) {
      for (const key of this.keysOf(entity)) {
        const block = this.#blocks.get(key);
        if (block === undefined) this.#blocks.set(key, [at]);
        else if (block.length <= blockMax) block.push(at);
        this.#bytes += block === undefined ? 120 : 8;
      }
      if (at % entitiesAtOnce !== entitiesAtOnce - 1) continue;
      call.look(entitiesAtOnce * looksPerEntity);
      call.hold(this.#bytes);
      yield;
    }
  }
}

function cellOf(batch: RoleBatch, { column, comparison }: ComparedColumn, row: number): string | null {
  if (comparison === 'number') {
    const value = batch.number(column, row);
    return value === null ? null : String(value);
  }
  if (comparison === 'name') {
    const texts = batch.list(column, row);
    return texts.length === 0 ? batch.text(column, row) : texts.join(' ');
  }
  const text = batch.text(column, row);
  return text === null || text.trim() === '' ? null : text;
}

/** `columns` are those that the texts are of, as far as they are not NULL. */
function featureOf(
  { comparison }: Group,
  texts: readonly string[],
  columns: readonly ComparedColumn[],
  words: TextMap<Word>,
): Feature | null {
  if (texts.length === 0) return null;
  const [text] = texts as readonly [string];
  if (comparison === 'identifier') return { kind: 'value', text: identifierOf(text, columns[0]!.kind) };
  if (comparison === 'reference') return { kind: 'value', text: bareOf(text) };
  if (comparison === 'date') return { kind: 'value', text: dateOf(text) };
  if (comparison === 'number') return { kind: 'number', value: Number(text) };
  const together = texts.join(' ');
  const nameWords =
    comparison === 'name'
      ? wordsOfName(together).map((word) => intern(words, word))
      : wordsOfText(together).map((each) => words.get(each) ?? intern(words, textWord(each)));
  return nameWords.length === 0 ? null : { kind: 'words', words: nameWords };
}

/** A value that is none of the kind is compared by its letters and digits: a phone number without a country code, say. */
function identifierOf(text: string, kind: ComparedColumn['kind']): string {
  const form = kind === null ? identifiersIn(text)[0] : [kind, canonicalIdentifier(kind, text)];
  if (form?.[1]) return `${form[0]} ${form[1]}`;
  return `- ${bareOf(text)}`;
}

function bareOf(text: string): string {
  return text.toLowerCase().replaceAll(/[^\p{L}\p{N}]/gu, '');
}

/** `1970-01-31` of every way in which digits are written; else the text. */
function dateOf(text: string): string {
  const iso = /^(\d{4})[-/.]?(\d{2})[-/.]?(\d{2})/.exec(text);
  if (iso) return `${iso[1]}-${iso[2]}-${iso[3]}`;
  const turned = /^(\d{1,2})[-/.](\d{1,2})[-/.](\d{4})/.exec(text);
  if (turned) return `${turned[3]}-${turned[2]!.padStart(2, '0')}-${turned[1]!.padStart(2, '0')}`;
  return text.trim().toLowerCase();
}

function intern(words: TextMap<Word>, word: Word): Word {
  const key = word.kind === 'word' || word.kind === 'number' ? word.text : `${word.kind} ${word.text}`;
  const known = words.get(key);
  if (known !== undefined) return known;
  words.set(key, word);
  return word;
}

export function textsOf(feature: Feature): readonly string[] {
  if (feature.kind === 'words') return feature.words.map(({ text }) => text);
  return [feature.kind === 'value' ? feature.text : String(feature.value)];
}

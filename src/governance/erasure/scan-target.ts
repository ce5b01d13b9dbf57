/**
 * The target of a scan. The request names the subject; a start that continues an erasure has its commitment alone, and tests each
 * text against that: slower, and as sure for whole texts. Pure.
 */
import { endOfQuoted } from '../../log/values/quoted-text.ts';
import type { TextVector } from '../../projections/rows/erasure/stored-texts.ts';
import { SubjectNames } from '../../projections/subject-names.ts';
import { commitmentTest } from './erasure-receipt.ts';

export interface ScanTarget {
  readonly method: 'text rescan' | 'blind-index rescan';
  /** Cells that are tested within a turn. */
  readonly cellsPerTurn: number;
  /** The text is the subject. */
  is(text: string): boolean;
  /** The text repeats the subject among others. */
  isIn(text: string): boolean;
  /** The same as `is`, of the rows of a column, a vector of it after the other; in JSON, of any text that stands in it. */
  column(of: 'string' | 'json'): (vector: TextVector) => (row: number) => boolean;
}

export class TextTarget implements ScanTarget {
  readonly method = 'text rescan';
  readonly cellsPerTurn = Infinity;
  readonly #subjectText: string;
  readonly #subjectBytes: Uint8Array;
  readonly #subjectNames: SubjectNames;

  constructor(text: string) {
    this.#subjectText = text;
    this.#subjectBytes = Buffer.from(text, 'utf8');
    this.#subjectNames = new SubjectNames([text]);
  }

  is(text: string): boolean {
    return text === this.#subjectText;
  }

  isIn(text: string): boolean {
    return this.#subjectNames.areIn(text);
  }

  column(of: 'string' | 'json'): (vector: TextVector) => (row: number) => boolean {
    if (of === 'string') return (vector) => this.#subjectReader(vector);
    const subjectJson = JSON.stringify(this.#subjectText);
    return cellTestReader(
      (json) => json.includes(subjectJson) || (json.includes('\\') && jsonStringsIn(json).includes(this.#subjectText)),
    );
  }

  #subjectReader(vector: TextVector): (row: number) => boolean {
    const { nulls } = vector;
    if (vector.kind === 'dict') {
      const subjectCode = vector.dictionary.codeOf(this.#subjectText);
      return subjectCode < 0 ? () => false : (row) => vector.values[row] === subjectCode && nulls?.[row] !== 1;
    }
    const { offsets, heap } = vector;
    const subjectBytes = this.#subjectBytes;
    return (row) => {
      const cellStart = offsets[row]!;
      if (offsets[row + 1]! - cellStart !== subjectBytes.length || nulls?.[row] === 1) return false;
      for (let i = 0; i < subjectBytes.length; i++) if (heap[cellStart + i] !== subjectBytes[i]) return false;
      return true;
    };
  }
}

const cellDecoder = new TextDecoder('utf-8', { ignoreBOM: true });
/** Texts of a column whose test is remembered: of those that say the same again and again, few are different. */
const MATCHED_TEXTS_MAX = 131_072;

export class CommitmentTarget implements ScanTarget {
  readonly method = 'blind-index rescan';
  readonly cellsPerTurn = 1_024;
  readonly #matchesCommitment: (text: string) => boolean;

  constructor(hmacKey: Uint8Array, tenant: string | null, commitment: string) {
    this.#matchesCommitment = commitmentTest(hmacKey, tenant, commitment);
  }

  is(text: string): boolean {
    return this.#matchesCommitment(text);
  }

  /** As a quoted text, or as a word. */
  isIn(text: string): boolean {
    const singleQuoted = Array.from(text.matchAll(/'[^']*'(?:'[^']*')*/g), ([quoted]) =>
      quoted.slice(1, -1).replaceAll("''", "'"),
    );
    // One that never ends has no last quote.
    const doubleQuoted = Array.from(quotedTexts(text)).flatMap((quoted) => [quoted.slice(1, -1), quoted.slice(1)]);
    return [...new Set([text, ...singleQuoted, ...doubleQuoted, ...text.split(/[\s,;:()'"]+/)])].some(
      (subjectCandidate) => subjectCandidate !== '' && this.is(subjectCandidate),
    );
  }

  column(of: 'string' | 'json'): (vector: TextVector) => (row: number) => boolean {
    const matchesByText = new Map<string, boolean>();
    const matchesSubject = (text: string): boolean => {
      let isTarget = matchesByText.get(text);
      if (isTarget !== undefined) return isTarget;
      isTarget = this.is(text);
      if (matchesByText.size < MATCHED_TEXTS_MAX) matchesByText.set(text, isTarget);
      return isTarget;
    };
    return cellTestReader(of === 'string' ? matchesSubject : (json) => jsonStringsIn(json).some(matchesSubject));
  }
}

/** Tests texts of a vector; of one that is coded each text once. */
function cellTestReader(matchesSubject: (text: string) => boolean): (vector: TextVector) => (row: number) => boolean {
  return (vector) => {
    const { nulls } = vector;
    if (vector.kind === 'text') {
      const { heap, offsets } = vector;
      return (row) => nulls?.[row] !== 1 && matchesSubject(cellDecoder.decode(heap.subarray(offsets[row]!, offsets[row + 1]!)));
    }
    const matchesByCode = new Map<number, boolean>();
    return (row) => {
      if (nulls?.[row] === 1) return false;
      const code = vector.values[row]!;
      const isTarget = matchesByCode.get(code) ?? matchesSubject(vector.dictionary.text(code));
      matchesByCode.set(code, isTarget);
      return isTarget;
    };
  };
}

/** Texts that stand in a JSON text, names of members among them. */
function jsonStringsIn(json: string): readonly string[] {
  return Array.from(quotedTexts(json), (quoted) => JSON.parse(quoted) as string);
}

/** With their quotes. */
function* quotedTexts(text: string): Generator<string, void> {
  for (let quoteStart = text.indexOf('"'), quoteEnd = 0; quoteStart >= 0; quoteStart = text.indexOf('"', quoteEnd)) {
    quoteEnd = endOfQuoted(text, quoteStart) ?? text.length;
    yield text.slice(quoteStart, quoteEnd);
  }
}

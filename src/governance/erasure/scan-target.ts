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
  readonly #text: string;
  readonly #bytes: Uint8Array;
  readonly #names: SubjectNames;

  constructor(text: string) {
    this.#text = text;
    this.#bytes = Buffer.from(text, 'utf8');
    this.#names = new SubjectNames([text]);
  }

  is(text: string): boolean {
    return text === this.#text;
  }

  isIn(text: string): boolean {
    return this.#names.areIn(text);
  }

  column(of: 'string' | 'json'): (vector: TextVector) => (row: number) => boolean {
    if (of === 'string') return (vector) => this.#reader(vector);
    const spelled = JSON.stringify(this.#text);
    return readerOf((json) => json.includes(spelled) || (json.includes('\\') && textsIn(json).includes(this.#text)));
  }

  #reader(vector: TextVector): (row: number) => boolean {
    const { nulls } = vector;
    if (vector.kind === 'dict') {
      const code = vector.dictionary.codeOf(this.#text);
      return code < 0 ? () => false : (row) => vector.values[row] === code && nulls?.[row] !== 1;
    }
    const { offsets, heap } = vector;
    const bytes = this.#bytes;
    return (row) => {
      const from = offsets[row]!;
      if (offsets[row + 1]! - from !== bytes.length || nulls?.[row] === 1) return false;
      for (let i = 0; i < bytes.length; i++) if (heap[from + i] !== bytes[i]) return false;
      return true;
    };
  }
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
/** Texts of a column whose test is remembered: of those that say the same again and again, few are different. */
const KNOWN_MAX = 131_072;

export class CommitmentTarget implements ScanTarget {
  readonly method = 'blind-index rescan';
  readonly cellsPerTurn = 1_024;
  readonly #commits: (text: string) => boolean;

  constructor(hmacKey: Uint8Array, tenant: string | null, commitment: string) {
    this.#commits = commitmentTest(hmacKey, tenant, commitment);
  }

  is(text: string): boolean {
    return this.#commits(text);
  }

  /** As a quoted text, or as a word. */
  isIn(text: string): boolean {
    const single = Array.from(text.matchAll(/'[^']*'(?:'[^']*')*/g), ([quoted]) => quoted.slice(1, -1).replaceAll("''", "'"));
    // One that never ends has no last quote.
    const double = Array.from(quotedTexts(text)).flatMap((quoted) => [quoted.slice(1, -1), quoted.slice(1)]);
    return [...new Set([text, ...single, ...double, ...text.split(/[\s,;:()'"]+/)])].some((part) => part !== '' && this.is(part));
  }

  column(of: 'string' | 'json'): (vector: TextVector) => (row: number) => boolean {
    const known = new Map<string, boolean>();
    const says = (text: string): boolean => {
      let isTarget = known.get(text);
      if (isTarget !== undefined) return isTarget;
      isTarget = this.is(text);
      if (known.size < KNOWN_MAX) known.set(text, isTarget);
      return isTarget;
    };
    return readerOf(of === 'string' ? says : (json) => textsIn(json).some(says));
  }
}

/** Tests texts of a vector; of one that is coded each text once. */
function readerOf(test: (text: string) => boolean): (vector: TextVector) => (row: number) => boolean {
  return (vector) => {
    const { nulls } = vector;
    if (vector.kind === 'text') {
      const { heap, offsets } = vector;
      return (row) => nulls?.[row] !== 1 && test(decoder.decode(heap.subarray(offsets[row]!, offsets[row + 1]!)));
    }
    const known = new Map<number, boolean>();
    return (row) => {
      if (nulls?.[row] === 1) return false;
      const code = vector.values[row]!;
      const isTarget = known.get(code) ?? test(vector.dictionary.text(code));
      known.set(code, isTarget);
      return isTarget;
    };
  };
}

/** Texts that stand in a JSON text, names of members among them. */
function textsIn(json: string): readonly string[] {
  return Array.from(quotedTexts(json), (quoted) => JSON.parse(quoted) as string);
}

/** With their quotes. */
function* quotedTexts(text: string): Generator<string, void> {
  for (let start = text.indexOf('"'), end = 0; start >= 0; start = text.indexOf('"', end)) {
    end = endOfQuoted(text, start) ?? text.length;
    yield text.slice(start, end);
  }
}

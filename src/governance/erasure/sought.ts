/**
 * What a scan looks for. Who erases names the subject; a start that goes on with an erasure knows its commitment alone, and asks
 * of each text whether it would have led to that: slower, and as sure for whole texts. Pure.
 */
import type { Vector } from '../../log/columns.ts';
import { Names } from '../../projections/names.ts';
import { commitmentOf, saltOf } from './receipt.ts';

export interface Sought {
  readonly method: 'text rescan' | 'blind-index rescan';
  /** Each test takes microseconds: a block of rows is too much for one turn. */
  readonly isSlow: boolean;
  /** The text is the subject. */
  is(text: string): boolean;
  /** The text repeats the subject among others. */
  isIn(text: string): boolean;
  /** The same as `is`, of the rows of a column. */
  reader(vector: Extract<Vector, { kind: 'text' | 'dict' }>): (row: number) => boolean;
}

export class SoughtText implements Sought {
  readonly method = 'text rescan';
  readonly isSlow = false;
  readonly #text: string;
  readonly #bytes: Uint8Array;
  readonly #names: Names;

  constructor(text: string) {
    this.#text = text;
    this.#bytes = Buffer.from(text, 'utf8');
    this.#names = new Names([text]);
  }

  is(text: string): boolean {
    return text === this.#text;
  }

  isIn(text: string): boolean {
    return this.#names.areIn(text);
  }

  reader(vector: Extract<Vector, { kind: 'text' | 'dict' }>): (row: number) => boolean {
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

export class SoughtCommitment implements Sought {
  readonly method = 'blind-index rescan';
  readonly isSlow = true;
  readonly #hmacKey: Uint8Array;
  readonly #tenant: string | null;
  readonly #commitment: string;

  constructor(hmacKey: Uint8Array, tenant: string | null, commitment: string) {
    this.#hmacKey = hmacKey;
    this.#tenant = tenant;
    this.#commitment = commitment;
  }

  is(text: string): boolean {
    return commitmentOf(saltOf(this.#hmacKey, this.#tenant, text), text) === this.#commitment;
  }

  /** As a quoted text, or as a word. */
  isIn(text: string): boolean {
    const quoted = [...text.matchAll(/'((?:[^']|'')*)'|"((?:[^"\\]|\\.)*)"/g)].map(([, single, double]) =>
      single === undefined ? (double ?? '') : single.replaceAll("''", "'"),
    );
    return [...new Set([text, ...quoted, ...text.split(/[\s,;:()'"]+/)])].some((part) => part !== '' && this.is(part));
  }

  reader(vector: Extract<Vector, { kind: 'text' | 'dict' }>): (row: number) => boolean {
    const { nulls } = vector;
    if (vector.kind === 'dict') {
      const known = new Map<number, boolean>();
      return (row) => {
        if (nulls?.[row] === 1) return false;
        const code = vector.values[row]!;
        let found = known.get(code);
        if (found === undefined) known.set(code, (found = this.is(vector.dictionary.text(code))));
        return found;
      };
    }
    const { offsets, heap } = vector;
    // Memory that threads share is copied before it is read as text.
    return (row) => nulls?.[row] !== 1 && this.is(decoder.decode(heap.slice(offsets[row]!, offsets[row + 1]!)));
  }
}

/**
 * Identifiers of a column of a sealed segment: which rows hold which, by the hash of the one form in which two writings of the same
 * are equal. It holds no value. Two identifiers of one hash are told apart by the reader, who compares cells.
 */
import { createRequire } from 'node:module';
import type { Progress, SteppedJob } from '../../../log/threads/stepping-job.ts';
import { canonicalIdentifier, identifierForm, type IdentifierKind, identifiersIn } from '../../entity-resolution/identifiers.ts';
import { hashBytes } from '../cells/byte-hash.ts';
import type { TextCells } from './text/text-builder.ts';

/** Rises with every change of what the bytes are, and of the forms of identifiers. */
export const IDENTIFIER_RUN_FORMAT = 1;

const require = createRequire(import.meta.url);
let metadata: { readonly version: string } | undefined;
/** Which numbers are phone numbers depends on what their library knows. */
export function formsVersion(): string {
  return (metadata ??= require('libphonenumber-js/package.json') as { readonly version: string }).version;
}

const HEADER_BYTES = 8;
const ENTRY_BYTES = 6;
/** Cells between two steps: to bring one to its form takes up to 25 µs. */
const STEP_CELLS = 512;
const ROW_BITS = 65_536;

/** Numbers of rows and of entries, as words; by entry its hash, rising, and behind all of them its row. */
export class IdentifierRun {
  readonly rows: number;
  readonly bytes: Uint8Array;
  readonly #hashes: Uint32Array;
  readonly #rows: Uint16Array;

  constructor(bytes: Uint8Array) {
    const [rows = 0, entries = 0] = new Uint32Array(bytes.buffer, bytes.byteOffset, 2);
    this.rows = rows;
    this.bytes = bytes;
    this.#hashes = new Uint32Array(bytes.buffer, bytes.byteOffset + HEADER_BYTES, entries);
    this.#rows = new Uint16Array(bytes.buffer, bytes.byteOffset + HEADER_BYTES + 4 * entries, entries);
  }

  /** Adds the rows that may hold one of these identifiers. */
  find(forms: readonly string[], into: Set<number>): void {
    for (const form of forms) {
      const hash = hashOf(form);
      let at = this.#firstOf(hash);
      for (; this.#hashes[at] === hash; at++) into.add(this.#rows[at]!);
    }
  }

  #firstOf(hash: number): number {
    let [low, high] = [0, this.#hashes.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#hashes[middle]! < hash) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** Bytes that a run of so many rows usually takes at most. */
export function identifierRunBytes(rows: number): number {
  return HEADER_BYTES + ENTRY_BYTES * rows;
}

interface RunRequest {
  readonly cells: TextCells;
  readonly kind: string | null;
}

export const identifierRunJob: SteppedJob<RunRequest, Uint8Array> = {
  module: import.meta.url,
  name: 'identifierRunJob',
  steps: identifierRunSteps,
};

const encoder = new TextEncoder();
const decoder = new TextDecoder();

function hashOf(form: string): number {
  const bytes = encoder.encode(form);
  return hashBytes(bytes, 0, bytes.length, 0) >>> 0;
}

function* identifierRunSteps({ cells, kind }: RunRequest): Generator<Progress, Uint8Array> {
  const { rows, offsets, heap, codes, absent } = cells;
  /** By code, hashes of a text that several rows have. */
  const known = new Map<number, readonly number[]>();
  const entries: number[] = [];
  for (let row = 0; row < rows; row++) {
    if (row % STEP_CELLS === STEP_CELLS - 1) yield { done: row, of: rows };
    if (absent?.[row] === 1) continue;
    const text = codes === null ? row : codes[row]!;
    let hashes = known.get(text);
    if (hashes === undefined) {
      hashes = hashesIn(decoder.decode(heap.slice(offsets[text], offsets[text + 1])), kind as IdentifierKind | null);
      if (codes !== null) known.set(text, hashes);
    }
    for (const hash of hashes) entries.push(hash * ROW_BITS + row);
  }
  return writeRun(rows, Float64Array.from(entries).sort());
}

function hashesIn(cell: string, kind: IdentifierKind | null): readonly number[] {
  if (kind === null) return identifiersIn(cell).map(([each, form]) => hashOf(identifierForm(each, form)));
  const form = canonicalIdentifier(kind, cell);
  return form === null ? [] : [hashOf(identifierForm(kind, form))];
}

/** An entry is its hash and its row in one number. */
function writeRun(rows: number, entries: Float64Array): Uint8Array {
  const { length } = entries;
  const { buffer } = new Uint8Array(new SharedArrayBuffer(HEADER_BYTES + ENTRY_BYTES * length));
  new Uint32Array(buffer, 0, 2).set([rows, length]);
  const hashes = new Uint32Array(buffer, HEADER_BYTES, length);
  const rowsOf = new Uint16Array(buffer, HEADER_BYTES + 4 * length, length);
  for (let at = 0; at < length; at++) {
    hashes[at] = Math.floor(entries[at]! / ROW_BITS);
    rowsOf[at] = entries[at]! % ROW_BITS;
  }
  return new Uint8Array(buffer);
}

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
let phoneMetadata: { readonly version: string } | undefined;
/** Which numbers are phone numbers depends on what their library knows. */
export function formsVersion(): string {
  return (phoneMetadata ??= require('libphonenumber-js/package.json') as { readonly version: string }).version;
}

const IDENTIFIER_HEADER_BYTES = 8;
const IDENTIFIER_ENTRY_BYTES = 6;
/** Cells between two steps: to bring one to its form takes up to 25 µs. */
const IDENTIFIER_STEP_CELLS = 512;
const ROW_BITS = 65_536;

/** Numbers of rows and of entries, as words; by entry its hash, rising, and behind all of them its row. */
export class IdentifierRun {
  readonly rows: number;
  readonly bytes: Uint8Array;
  readonly #formHashes: Uint32Array;
  readonly #identifierRows: Uint16Array;

  constructor(identifierRun: Uint8Array) {
    const [rows = 0, identifierCount = 0] = new Uint32Array(identifierRun.buffer, identifierRun.byteOffset, 2);
    this.rows = rows;
    this.bytes = identifierRun;
    this.#formHashes = new Uint32Array(identifierRun.buffer, identifierRun.byteOffset + IDENTIFIER_HEADER_BYTES, identifierCount);
    this.#identifierRows = new Uint16Array(
      identifierRun.buffer,
      identifierRun.byteOffset + IDENTIFIER_HEADER_BYTES + 4 * identifierCount,
      identifierCount,
    );
  }

  /** Adds the rows that may hold one of these identifiers. */
  find(wantedForms: readonly string[], candidateRows: Set<number>): void {
    for (const wantedForm of wantedForms) {
      const formHash = formHashOf(wantedForm);
      let entryIndex = this.#firstEntryOf(formHash);
      for (; this.#formHashes[entryIndex] === formHash; entryIndex++) candidateRows.add(this.#identifierRows[entryIndex]!);
    }
  }

  #firstEntryOf(formHash: number): number {
    let [low, high] = [0, this.#formHashes.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#formHashes[middle]! < formHash) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** Bytes that a run of so many rows usually takes at most. */
export function identifierRunBytes(rows: number): number {
  return IDENTIFIER_HEADER_BYTES + IDENTIFIER_ENTRY_BYTES * rows;
}

interface IdentifierRunRequest {
  readonly cells: TextCells;
  readonly kind: string | null;
}

export const identifierRunJob: SteppedJob<IdentifierRunRequest, Uint8Array> = {
  module: import.meta.url,
  name: 'identifierRunJob',
  steps: identifierRunSteps,
};

const formEncoder = new TextEncoder();
const cellDecoder = new TextDecoder();

function formHashOf(hashedForm: string): number {
  const formBytes = formEncoder.encode(hashedForm);
  return hashBytes(formBytes, 0, formBytes.length, 0) >>> 0;
}

function* identifierRunSteps({ cells, kind }: IdentifierRunRequest): Generator<Progress, Uint8Array> {
  const { rows, offsets, heap, codes, absent } = cells;
  /** By code, hashes of a text that several rows have. */
  const hashesByText = new Map<number, readonly number[]>();
  const identifierEntries: number[] = [];
  for (let row = 0; row < rows; row++) {
    if (row % IDENTIFIER_STEP_CELLS === IDENTIFIER_STEP_CELLS - 1) yield { done: row, of: rows };
    if (absent?.[row] === 1) continue;
    const textId = codes === null ? row : codes[row]!;
    let formHashes = hashesByText.get(textId);
    if (formHashes === undefined) {
      formHashes = formHashesIn(
        cellDecoder.decode(heap.slice(offsets[textId], offsets[textId + 1])),
        kind as IdentifierKind | null,
      );
      if (codes !== null) hashesByText.set(textId, formHashes);
    }
    for (const formHash of formHashes) identifierEntries.push(formHash * ROW_BITS + row);
  }
  return writeIdentifierRun(rows, Float64Array.from(identifierEntries).sort());
}

function formHashesIn(identifierCell: string, kind: IdentifierKind | null): readonly number[] {
  if (kind === null)
    return identifiersIn(identifierCell).map(([identifierKind, canonicalForm]) =>
      formHashOf(identifierForm(identifierKind, canonicalForm)),
    );
  const form = canonicalIdentifier(kind, identifierCell);
  return form === null ? [] : [formHashOf(identifierForm(kind, form))];
}

/** An entry is its hash and its row in one number. */
function writeIdentifierRun(rows: number, identifierEntries: Float64Array): Uint8Array {
  const { length } = identifierEntries;
  const { buffer } = new Uint8Array(new SharedArrayBuffer(IDENTIFIER_HEADER_BYTES + IDENTIFIER_ENTRY_BYTES * length));
  new Uint32Array(buffer, 0, 2).set([rows, length]);
  const formHashes = new Uint32Array(buffer, IDENTIFIER_HEADER_BYTES, length);
  const entryRows = new Uint16Array(buffer, IDENTIFIER_HEADER_BYTES + 4 * length, length);
  for (let entryIndex = 0; entryIndex < length; entryIndex++) {
    formHashes[entryIndex] = Math.floor(identifierEntries[entryIndex]! / ROW_BITS);
    entryRows[entryIndex] = identifierEntries[entryIndex]! % ROW_BITS;
  }
  return new Uint8Array(buffer);
}

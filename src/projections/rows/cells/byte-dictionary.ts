/**
 * Distinct strings as UTF-8 in one heap, found by their bytes: coding a column makes no JavaScript string. It counts the cells
 * that hold each of them, so that a string is wiped with its last cell, without a look at the other ones.
 */
import type { Dictionary } from '../../../log/values/columns.ts';
import { alone, no } from './column-extents.ts';

/** Longer texts are looked up by a sample of their bytes, and compared whole. */
const hugeTextBytes = 64 << 10;
const hugeTextSteps = 4_096;

/** A call that compares, or copies, all of them is worth it from here on. */
const longTextBytes = 256;

const dictionaryEncoder = new TextEncoder();
const dictionaryDecoder = new TextDecoder('utf-8', { ignoreBOM: true });

export interface SavedDictionary {
  readonly offsets: Uint32Array;
  readonly heap: Uint8Array;
  /** Cells of each code. */
  readonly cells: Int32Array;
}

/** A text column's cells. */
export interface Cells {
  readonly heap: Uint8Array;
  readonly offsets: Uint32Array;
  readonly nulls: Uint8Array | null;
}

export class ByteDictionary implements Dictionary {
  #codeCount = 0;
  #dictionaryOffsets: Uint32Array = new Uint32Array(17);
  #cellCounts: Int32Array = new Int32Array(16);
  #dictionaryHeap: Uint8Array = new Uint8Array(256);
  #dictionaryView = viewOf(this.#dictionaryHeap);
  /** Open addressing, interleaved: [code + 1, hash]. A restored dictionary fills it on the first search for a string. */
  #codeSlots: Int32Array = new Int32Array(64);
  #slotMask = 31;
  /** Decoded on first use. */
  #decodedTexts: (string | undefined)[] = [];

  get size(): number {
    return this.#codeCount;
  }

  text(textCode: number): string {
    return (this.#decodedTexts[textCode] ??= dictionaryDecoder.decode(
      this.#dictionaryHeap.subarray(this.#dictionaryOffsets[textCode]!, this.#dictionaryOffsets[textCode + 1]!),
    ));
  }

  codeOf(wantedText: string): number {
    const encodedText = dictionaryEncoder.encode(wantedText);
    const textView = viewOf(encodedText);
    this.#ensureCodeSlots();
    const codeSlot = this.#findCodeSlot(textView, 0, encodedText.length, textHashOf(textView, 0, encodedText.length));
    return this.#codeSlots[codeSlot * 2]! - 1;
  }

  /** Code of source[start..end), added when new. Cells that come to hold it are to be counted. */
  encode(textHeap: Uint8Array, start: number, end: number): number {
    this.#ensureCodeSlots();
    return this.#encodeText(textHeap, viewOf(textHeap), start, end);
  }

  /** One more cell holds the code. */
  count(code: number): void {
    this.#cellCounts[code]!++;
  }

  /** Codes of cells from .. to - 1 of a text column, counted, into target[at ...]; 0 for NULL. */
  encodeCells(cells: Cells, firstCell: number, cellsEnd: number, codeTarget: Int32Array, targetOffset: number): void {
    const { heap, offsets, nulls } = cells;
    const heapView = viewOf(heap);
    this.#ensureCodeSlots();
    for (let i = firstCell; i < cellsEnd; i++) {
      if (nulls !== null && nulls[i] === 1) {
        codeTarget[targetOffset + i - firstCell] = 0;
        continue;
      }
      const cellCode = this.#encodeText(heap, heapView, offsets[i]!, offsets[i + 1]!);
      codeTarget[targetOffset + i - firstCell] = cellCode;
      this.#cellCounts[cellCode]!++;
    }
  }

  /** A cell no longer holds the code. With its last one the string is wiped; the code is not given again. */
  release(releasedCode: number): void {
    if (--this.#cellCounts[releasedCode]! > 0) return;
    this.#dictionaryHeap.fill(0, this.#dictionaryOffsets[releasedCode]!, this.#dictionaryOffsets[releasedCode + 1]!);
    this.#decodedTexts[releasedCode] = undefined;
  }

  /** UTF-8 of a code, in place: never to be written to. */
  bytesOf(textCode: number): Uint8Array {
    return this.#dictionaryHeap.subarray(this.#dictionaryOffsets[textCode]!, this.#dictionaryOffsets[textCode + 1]!);
  }

  get utf8(): { readonly offsets: Uint32Array; readonly heap: Uint8Array } {
    return { offsets: this.#dictionaryOffsets, heap: this.#dictionaryHeap };
  }

  /** The same as copies of their own, just as long. */
  copy(): { readonly offsets: Uint32Array; readonly heap: Uint8Array } {
    return {
      offsets: this.#dictionaryOffsets.slice(0, this.#codeCount + 1),
      heap: this.#dictionaryHeap.slice(0, this.byteLength),
    };
  }

  /** Offsets of the first `length` cells in a heap that holds them one after the other; a cell of NULL holds nothing. Its bytes. */
  measure(codes: Int32Array, nulls: Uint8Array | null, length: number, offsets: Uint32Array): number {
    const dictionaryOffsets = this.#dictionaryOffsets;
    let measuredBytes = 0;
    offsets[0] = 0;
    for (let row = 0; row < length; row++) {
      if (nulls === null || nulls[row] !== 1) {
        const cellCode = codes[row]!;
        measuredBytes += dictionaryOffsets[cellCode + 1]! - dictionaryOffsets[cellCode]!;
      }
      offsets[row + 1] = measuredBytes;
    }
    return measuredBytes;
  }

  /** Fills such a heap. */
  spell(codes: Int32Array, length: number, offsets: Uint32Array, heap: Uint8Array): void {
    const dictionaryHeap = this.#dictionaryHeap;
    for (let row = 0; row < length; row++) {
      const spelledEnd = offsets[row + 1]!;
      let dictionaryOffset = this.#dictionaryOffsets[codes[row]!]!;
      for (let spelledByte = offsets[row]!; spelledByte < spelledEnd; spelledByte++)
        heap[spelledByte] = dictionaryHeap[dictionaryOffset++]!;
    }
  }

  get byteLength(): number {
    return this.#dictionaryOffsets[this.#codeCount]!;
  }

  savedState(): SavedDictionary {
    return { ...this.copy(), cells: this.#cellCounts.slice(0, this.#codeCount) };
  }

  static fromSaved({ offsets, heap, cells }: SavedDictionary): ByteDictionary {
    const dictionary = new ByteDictionary();
    dictionary.#codeCount = offsets.length - 1;
    [dictionary.#dictionaryOffsets, dictionary.#dictionaryHeap, dictionary.#cellCounts] = [
      alone(offsets),
      alone(heap),
      alone(cells),
    ];
    dictionary.#dictionaryView = viewOf(dictionary.#dictionaryHeap);
    dictionary.#codeSlots = no.i32;
    return dictionary;
  }

  /** Strings of a restored one can be found from here on. */
  #ensureCodeSlots(): void {
    if (this.#codeSlots.length > 0) return;
    this.#slotMask = 31;
    while (this.#codeCount * 2 > this.#slotMask) this.#slotMask = this.#slotMask * 2 + 1;
    const codeSlots = (this.#codeSlots = new Int32Array((this.#slotMask + 1) * 2));
    for (let code = 0; code < this.#codeCount; code++) {
      // Entered even when it looks known: forgotten strings are alike, and each keeps its code.
      const textHash = textHashOf(this.#dictionaryView, this.#dictionaryOffsets[code]!, this.#dictionaryOffsets[code + 1]!);
      let codeSlot = textHash & this.#slotMask;
      while (codeSlots[codeSlot * 2] !== 0) codeSlot = (codeSlot + 1) & this.#slotMask;
      codeSlots[codeSlot * 2] = code + 1;
      codeSlots[codeSlot * 2 + 1] = textHash;
    }
  }

  /** For cells that are stored as texts from here on. */
  releaseCells(codes: Int32Array, nulls: Uint8Array | null): void {
    for (let row = 0; row < codes.length; row++) if (nulls?.[row] !== 1) this.release(codes[row]!);
  }

  #encodeText(textHeap: Uint8Array, textView: DataView, start: number, end: number): number {
    const textHash = textHashOf(textView, start, end);
    const codeSlot = this.#findCodeSlot(textView, start, end, textHash);
    const storedCode = this.#codeSlots[codeSlot * 2]!;
    return storedCode !== 0 ? storedCode - 1 : this.#addText(textHeap, start, end, textHash, codeSlot);
  }

  /** The slot that holds these bytes, or the free one where they belong. */
  #findCodeSlot(textView: DataView, start: number, end: number, textHash: number): number {
    const codeSlots = this.#codeSlots;
    const dictionaryOffsets = this.#dictionaryOffsets;
    const textBytes = end - start;
    let codeSlot = textHash & this.#slotMask;
    for (;;) {
      const slotCode = codeSlots[codeSlot * 2]! - 1;
      if (slotCode < 0) return codeSlot;
      if (codeSlots[codeSlot * 2 + 1] === textHash) {
        const dictionaryOffset = dictionaryOffsets[slotCode]!;
        if (
          dictionaryOffsets[slotCode + 1]! - dictionaryOffset === textBytes &&
          isSameText(this.#dictionaryView, dictionaryOffset, textView, start, textBytes)
        )
          return codeSlot;
      }
      codeSlot = (codeSlot + 1) & this.#slotMask;
    }
  }

  #addText(textHeap: Uint8Array, start: number, end: number, textHash: number, codeSlot: number): number {
    const newCode = this.#codeCount;
    const dictionaryOffset = this.#dictionaryOffsets[newCode]!;
    const textBytes = end - start;
    if (newCode + 2 > this.#dictionaryOffsets.length) {
      const grownOffsets = new Uint32Array(this.#dictionaryOffsets.length * 2);
      grownOffsets.set(this.#dictionaryOffsets);
      this.#dictionaryOffsets = grownOffsets;
      const grownCellCounts = new Int32Array(grownOffsets.length);
      grownCellCounts.set(this.#cellCounts);
      this.#cellCounts = grownCellCounts;
    }
    if (dictionaryOffset + textBytes > this.#dictionaryHeap.length) {
      const grownHeap = new Uint8Array(Math.max(this.#dictionaryHeap.length * 2, dictionaryOffset + textBytes));
      grownHeap.set(this.#dictionaryHeap);
      this.#dictionaryHeap = grownHeap;
      this.#dictionaryView = viewOf(grownHeap);
    }
    if (textBytes <= longTextBytes)
      for (let i = 0; i < textBytes; i++) this.#dictionaryHeap[dictionaryOffset + i] = textHeap[start + i]!;
    else this.#dictionaryHeap.set(textHeap.subarray(start, end), dictionaryOffset);
    this.#dictionaryOffsets[newCode + 1] = dictionaryOffset + textBytes;
    this.#codeCount++;
    this.#codeSlots[codeSlot * 2] = newCode + 1;
    this.#codeSlots[codeSlot * 2 + 1] = textHash;
    if (this.#codeCount * 2 > this.#slotMask) this.#growCodeSlots();
    return newCode;
  }

  #growCodeSlots(): void {
    const oldSlots = this.#codeSlots;
    const grownSlotMask = this.#slotMask * 2 + 1;
    const grownSlots = new Int32Array((grownSlotMask + 1) * 2);
    for (let i = 0; i < oldSlots.length; i += 2) {
      if (oldSlots[i] === 0) continue;
      let codeSlot = oldSlots[i + 1]! & grownSlotMask;
      while (grownSlots[codeSlot * 2] !== 0) codeSlot = (codeSlot + 1) & grownSlotMask;
      grownSlots[codeSlot * 2] = oldSlots[i]!;
      grownSlots[codeSlot * 2 + 1] = oldSlots[i + 1]!;
    }
    this.#codeSlots = grownSlots;
    this.#slotMask = grownSlotMask;
  }
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function textBytesIn(view: DataView, start: number, size: number): Uint8Array {
  return new Uint8Array(view.buffer, view.byteOffset + start, size);
}

/**
 * Four bytes a step, each step mixed down to the low bits; the last four may overlap those before them. Of a huge text only so many
 * steps, from its beginning to its end. For this process only.
 */
function textHashOf(textView: DataView, start: number, end: number): number {
  let dictionaryHash = start - end;
  if (end - start > hugeTextBytes) {
    const hashStep = Math.floor((end - start) / hugeTextSteps);
    for (let hashedOffset = start; hashedOffset < end - 4; hashedOffset += hashStep)
      dictionaryHash = mixHash(dictionaryHash ^ textView.getInt32(hashedOffset, true));
    dictionaryHash ^= textView.getInt32(end - 4, true);
  } else if (end - start < 4) {
    for (let hashedOffset = start; hashedOffset < end; hashedOffset++)
      dictionaryHash = Math.imul(dictionaryHash, 31) + textView.getUint8(hashedOffset);
  } else {
    for (let hashedOffset = start; hashedOffset < end - 4; hashedOffset += 4)
      dictionaryHash = mixHash(dictionaryHash ^ textView.getInt32(hashedOffset, true));
    dictionaryHash ^= textView.getInt32(end - 4, true);
  }
  return mixHash(mixHash(dictionaryHash));
}

function mixHash(hashWord: number): number {
  const hashProduct = Math.imul(hashWord, 0x9e3779b1);
  return hashProduct ^ (hashProduct >>> 15);
}

function isSameText(a: DataView, aStart: number, b: DataView, bStart: number, size: number): boolean {
  if (size < 4) {
    for (let i = 0; i < size; i++) if (a.getUint8(aStart + i) !== b.getUint8(bStart + i)) return false;
    return true;
  }
  if (size > longTextBytes) return Buffer.compare(textBytesIn(a, aStart, size), textBytesIn(b, bStart, size)) === 0;
  for (let i = 0; i < size - 4; i += 4) if (a.getInt32(aStart + i, true) !== b.getInt32(bStart + i, true)) return false;
  return a.getInt32(aStart + size - 4, true) === b.getInt32(bStart + size - 4, true);
}

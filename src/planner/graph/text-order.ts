/**
 * Texts in the order of their bytes, as most keys are: most keys share a prefix and differ behind it. Eight bytes behind what all
 * begin with are ordered digit by digit, and only texts that have these in common too are compared.
 */
import { byWords, edgesAtOnce, roomFor } from './edge-order.ts';
import { sortInSteps, type Steps } from './stepped-sort.ts';

/** Texts by code, as bytes. */
export interface Names {
  readonly size: number;
  readonly offsets: Uint32Array;
  readonly heap: Uint8Array;
}

/** Sorts codes by their texts. */
export function* inTextOrder(nameCodes: Int32Array, names: Names): Steps<Int32Array> {
  const nameCount = nameCodes.length;
  if (nameCount === 0) return nameCodes;
  let commonPrefix = nameBytesOf(names, nameCodes[0]!);
  for (let firstName = 0; firstName < nameCount; firstName += edgesAtOnce) {
    commonPrefix = commonPrefixBytes(names, nameCodes, firstName, Math.min(nameCount, firstName + edgesAtOnce), commonPrefix);
    yield;
  }
  const nameRecords = roomFor(nameCount, 3);
  for (let first = 0; first < nameCount; first += edgesAtOnce) {
    spellNameWords(names, nameCodes, nameRecords.words, commonPrefix, first, Math.min(nameCount, first + edgesAtOnce));
    yield;
  }
  const { words: sortedNameWords } = yield* byWords(nameRecords, nameCount, [1, 0], 32);
  const nameOrder = new Int32Array(nameCount);
  const compareNames = nameComparison(names);
  for (let first = 0, alikeEnd = 1; first < nameCount; first = alikeEnd++) {
    while (
      alikeEnd < nameCount &&
      sortedNameWords[3 * alikeEnd] === sortedNameWords[3 * first] &&
      sortedNameWords[3 * alikeEnd + 1] === sortedNameWords[3 * first + 1]
    )
      alikeEnd++;
    for (let nameOrdinal = first; nameOrdinal < alikeEnd; nameOrdinal++)
      nameOrder[nameOrdinal] = sortedNameWords[3 * nameOrdinal + 2]!;
    if (alikeEnd - first > 1) nameOrder.set(yield* sortInSteps(nameOrder.slice(first, alikeEnd), compareNames), first);
    if (first >>> 14 !== alikeEnd >>> 14) yield;
  }
  return nameOrder;
}

function nameBytesOf({ offsets }: Names, nameCode: number): number {
  return offsets[nameCode + 1]! - offsets[nameCode]!;
}

/** The length of the prefix that these share with the first text, `commonPrefixMax` bytes at most. */
function commonPrefixBytes(
  { offsets, heap }: Names,
  nameCodes: Int32Array,
  first: number,
  end: number,
  commonPrefixMax: number,
): number {
  const firstNameStart = offsets[nameCodes[0]!]!;
  let commonPrefix = commonPrefixMax;
  for (let i = first; i < end; i++) {
    const nameStart = offsets[nameCodes[i]!]!;
    const comparedBytes = Math.min(commonPrefix, offsets[nameCodes[i]! + 1]! - nameStart);
    let comparedByte = 0;
    while (comparedByte < comparedBytes && heap[nameStart + comparedByte] === heap[firstNameStart + comparedByte]) comparedByte++;
    commonPrefix = comparedByte;
  }
  return commonPrefix;
}

/** Two words of the bytes behind the first ones, and the code. */
function spellNameWords(
  { offsets, heap }: Names,
  nameCodes: Int32Array,
  nameWords: Int32Array,
  commonPrefix: number,
  first: number,
  last: number,
): void {
  for (let i = first; i < last; i++) {
    const nameCode = nameCodes[i]!;
    const nameEnd = offsets[nameCode + 1]!;
    const nameStart = offsets[nameCode]! + commonPrefix;
    for (let nameWord = 0; nameWord < 2; nameWord++) {
      let nameWordBytes = 0;
      for (let nameByteAt = nameStart + 4 * nameWord, k = 0; k < 4; k++, nameByteAt++)
        nameWordBytes = (nameWordBytes << 8) | (nameByteAt < nameEnd ? heap[nameByteAt]! : 0);
      nameWords[3 * i + nameWord] = nameWordBytes;
    }
    nameWords[3 * i + 2] = nameCode;
  }
}

function nameComparison({ offsets, heap }: Names): (a: number, b: number) => number {
  return (a, b) => {
    let [oneNameAt, otherNameAt] = [offsets[a]!, offsets[b]!];
    const [oneNameSize, otherNameSize] = [offsets[a + 1]! - oneNameAt, offsets[b + 1]! - otherNameAt];
    for (
      const comparedEnd = oneNameAt + Math.min(oneNameSize, otherNameSize);
      oneNameAt < comparedEnd;
      oneNameAt++, otherNameAt++
    ) {
      const byteDifference = heap[oneNameAt]! - heap[otherNameAt]!;
      if (byteDifference !== 0) return byteDifference;
    }
    return oneNameSize - otherNameSize;
  };
}

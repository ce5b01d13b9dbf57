/**
 * LIKE over UTF-8: `%` stands for any run of characters, the empty one included, `_` for exactly one code point; every
 * other character stands for itself, case and all. Neither the dialect nor the standard has an escape character unless
 * ESCAPE names it, and the dialect has no ESCAPE; in the wide dialect a backslash is one, as in Postgres.
 *
 * The pattern is cut at `%` into segments, the first bound to the start, the last to the end, those between taken at
 * their first occurrence. Segments without `_` are searched by Horspool, which passes over most of a text, and by
 * Knuth-Morris-Pratt where that one compares too much; others by Shift-And over code points, whose state is one bit per code
 * point of the segment, so the length of those in between is limited: the time is linear in the text whatever the pattern.
 */
import { ServiceError } from '../../errors.ts';
import { type Cost, work } from './expression-cost.ts';

const wildSegmentMax = 64;
const anyCharacter = -1;

interface LikeSegment {
  /** Bytes of the segment, `anyCharacter` for `_`. */
  readonly codes: Int16Array;
  /** Tables for a search without `_`; null where the segment has one, or is not searched. */
  readonly steps: LikeSteps | null;
  /** Masks for a search with `_`; null where there is none, or the segment is too long for them. */
  readonly codePoints: CodePointMasks | null;
}

/** How a search goes on in a segment that is bytes alone. */
interface LikeSteps {
  /** Longest border of each prefix. */
  readonly borders: Int32Array;
  /** By the byte at the end of the window: the shift of the search, 255 at most. */
  readonly skips: Uint8Array;
}

/** At which code points of a segment a code point may stand: bit i of 64, in two words. */
interface CodePointMasks {
  readonly ascii: Int32Array;
  readonly others: ReadonlyMap<number, readonly [low: number, high: number]>;
  /** Bits of `_`, for code points that the segment does not contain. */
  readonly anywhere: readonly [low: number, high: number];
  readonly lastLow: number;
  readonly lastHigh: number;
}

/** Nanoseconds. */
const likeByteCost = 6;
const likePatternCost: Cost = { call: 2_000, character: 50 };

export class LikePattern {
  readonly #likeSegments: readonly LikeSegment[];

  constructor(pattern: string, escapes = false) {
    work.done += likePatternCost.call + pattern.length * likePatternCost.character;
    const patternPieces = likePieces(pattern, escapes);
    // The first and the last are bound to the ends of the text: no search, no tables.
    this.#likeSegments = patternPieces.map((patternPiece, i) => likeSegment(patternPiece, i > 0 && i < patternPieces.length - 1));
    for (const { codes, steps } of this.#likeSegments.slice(1, -1)) {
      if (steps !== null || codes.length <= wildSegmentMax) continue;
      throw new ServiceError('REL_INVALID', `a LIKE pattern with _ has at most ${wildSegmentMax} bytes between two %`);
    }
  }

  /** Whether the text in bytes[from .. to] matches. The bytes are well-formed UTF-8. */
  matches(textBytes: Uint8Array, textStart: number, textEnd: number): boolean {
    work.done += (textEnd - textStart) * likeByteCost;
    const likeSegments = this.#likeSegments;
    const firstSegment = likeSegments[0]!;
    const firstSegmentEnd = matchSegmentAt(firstSegment.codes, textBytes, textStart, textEnd);
    if (firstSegmentEnd < 0) return false;
    if (likeSegments.length === 1) return firstSegmentEnd === textEnd;
    const lastSegmentStart = matchSegmentBack(likeSegments[likeSegments.length - 1]!.codes, textBytes, firstSegmentEnd, textEnd);
    if (lastSegmentStart < 0) return false;
    let segmentEnd = firstSegmentEnd;
    for (let segmentIndex = 1; segmentIndex < likeSegments.length - 1; segmentIndex++) {
      const { codes, steps, codePoints } = likeSegments[segmentIndex]!;
      if (codes.length === 0) continue;
      segmentEnd = steps
        ? searchSegment(codes, steps, textBytes, segmentEnd, lastSegmentStart)
        : searchWildSegment(codePoints!, textBytes, segmentEnd, lastSegmentStart);
      if (segmentEnd < 0) return false;
    }
    return true;
  }
}

/** Matches single values; to match a column, keep a `LikePattern` instead. */
export function likeMatches(pattern: string, text: string, escapes = false): boolean {
  if (pattern !== lastPatternText || escapes !== lastEscapes) {
    lastPattern = new LikePattern(pattern, escapes);
    lastPatternText = pattern;
    lastEscapes = escapes;
  }
  return likeText(lastPattern, text);
}

export function likeText(pattern: LikePattern, text: string): boolean {
  const likeTextBytes = likeEncoder.encode(text);
  return pattern.matches(likeTextBytes, 0, likeTextBytes.length);
}

const likeEncoder = new TextEncoder();
let lastPatternText = '';
let lastEscapes = false;
let lastPattern = new LikePattern('');

/** Characters between two `%`; null is any one. */
type LikePiece = readonly (string | null)[];

function likePieces(pattern: string, escapes: boolean): LikePiece[] {
  const patternPieces: (string | null)[][] = [[]];
  const patternCharacters = Array.from(pattern);
  for (let i = 0; i < patternCharacters.length; i++) {
    const patternCharacter = patternCharacters[i]!;
    if (escapes && patternCharacter === '\\' && i + 1 < patternCharacters.length)
      patternPieces.at(-1)!.push(patternCharacters[++i]!);
    else if (patternCharacter === '%') patternPieces.push([]);
    else patternPieces.at(-1)!.push(patternCharacter === '_' ? null : patternCharacter);
  }
  return patternPieces;
}

function likeSegment(piece: LikePiece, isSearched: boolean): LikeSegment {
  const isWild = piece.includes(null);
  const segmentCodes = new Int16Array(likeEncoder.encode(piece.map((pieceCharacter) => pieceCharacter ?? '_').join('')));
  if (isWild) {
    let codeIndex = 0;
    for (const pieceCharacter of piece) {
      if (pieceCharacter === null) segmentCodes[codeIndex] = anyCharacter;
      codeIndex += pieceCharacter === null ? 1 : Buffer.byteLength(pieceCharacter);
    }
  }
  return {
    codes: segmentCodes,
    steps: isSearched && !isWild ? { borders: segmentBorders(segmentCodes), skips: segmentSkips(segmentCodes) } : null,
    codePoints: isSearched && isWild && segmentCodes.length <= wildSegmentMax ? masksOf(piece) : null,
  };
}

function masksOf(piece: LikePiece): CodePointMasks {
  const points = piece.map((character) => character?.codePointAt(0) ?? anyCharacter);
  const bits = (hasPoint: (point: number) => boolean): [number, number] => {
    const pointWords: [number, number] = [0, 0];
    points.forEach((point, i) => {
      if (hasPoint(point)) pointWords[i >>> 5]! |= 1 << (i & 31);
    });
    return pointWords;
  };
  const anywhere = bits((point) => point === anyCharacter);
  const ascii = new Int32Array(256);
  const others = new Map<number, [number, number]>();
  for (let point = 0; point < 128; point++) ascii.set(anywhere, 2 * point);
  for (const point of new Set(points)) {
    const words = bits((each) => each === point || each === anyCharacter);
    if (point >= 128) others.set(point, words);
    else if (point >= 0) ascii.set(words, 2 * point);
  }
  const last = points.length - 1;
  return { ascii, others, anywhere, lastLow: last < 32 ? 1 << last : 0, lastHigh: last < 32 ? 0 : 1 << (last - 32) };
}

function segmentBorders(segmentCodes: Int16Array): Int32Array {
  const borderLengths = new Int32Array(segmentCodes.length);
  let borderLength = 0;
  for (let i = 1; i < segmentCodes.length; i++) {
    while (borderLength > 0 && segmentCodes[i] !== segmentCodes[borderLength]) borderLength = borderLengths[borderLength - 1]!;
    if (segmentCodes[i] === segmentCodes[borderLength]) borderLength++;
    borderLengths[i] = borderLength;
  }
  return borderLengths;
}

function segmentSkips(segmentCodes: Int16Array): Uint8Array {
  const { length } = segmentCodes;
  const skips = new Uint8Array(256).fill(Math.min(Math.max(1, length), 255));
  for (let i = Math.max(0, length - 256); i < length - 1; i++) skips[segmentCodes[i]!] = length - 1 - i;
  return skips;
}

/** The end of the segment's match that starts exactly at `textStart`, or -1. */
function matchSegmentAt(segmentCodes: Int16Array, textBytes: Uint8Array, textStart: number, textEnd: number): number {
  let textOffset = textStart;
  for (let i = 0; i < segmentCodes.length; i++) {
    if (textOffset >= textEnd) return -1;
    const segmentCode = segmentCodes[i]!;
    if (segmentCode === anyCharacter) {
      textOffset++;
      while (textOffset < textEnd && isContinuationByte(textBytes[textOffset]!)) textOffset++;
    } else if (textBytes[textOffset++] !== segmentCode) return -1;
  }
  return textOffset;
}

/** The start of the segment's match that ends exactly at `textEnd`, or -1. */
function matchSegmentBack(segmentCodes: Int16Array, textBytes: Uint8Array, textStart: number, textEnd: number): number {
  let textOffset = textEnd;
  for (let i = segmentCodes.length - 1; i >= 0; i--) {
    if (textOffset <= textStart) return -1;
    const segmentCode = segmentCodes[i]!;
    textOffset--;
    if (segmentCode === anyCharacter) {
      while (textOffset > textStart && isContinuationByte(textBytes[textOffset]!)) textOffset--;
    } else if (textBytes[textOffset] !== segmentCode) return -1;
  }
  return textOffset;
}

/** The end of the first occurrence in bytes[from .. to], or -1. */
function searchSegment(
  segmentCodes: Int16Array,
  { borders, skips }: LikeSteps,
  textBytes: Uint8Array,
  textStart: number,
  textEnd: number,
): number {
  const lastCodeIndex = segmentCodes.length - 1;
  const lastCode = segmentCodes[lastCodeIndex]!;
  // Bytes that may be compared in vain: beyond them the search that looks at each byte once goes on.
  let comparisonsLeft = textEnd - textStart;
  for (let textOffset = textStart + lastCodeIndex; textOffset < textEnd; ) {
    const textByte = textBytes[textOffset]!;
    if (textByte === lastCode) {
      let matchedBack = 1;
      while (matchedBack <= lastCodeIndex && textBytes[textOffset - matchedBack] === segmentCodes[lastCodeIndex - matchedBack])
        matchedBack++;
      if (matchedBack > lastCodeIndex) return textOffset + 1;
      comparisonsLeft -= matchedBack;
      if (comparisonsLeft < 0) return searchSegmentEach(segmentCodes, borders, textBytes, textOffset - lastCodeIndex, textEnd);
    }
    textOffset += skips[textByte]!;
  }
  return -1;
}

function searchSegmentEach(
  segmentCodes: Int16Array,
  borders: Int32Array,
  textBytes: Uint8Array,
  from: number,
  to: number,
): number {
  const codeCount = segmentCodes.length;
  let matchedCodes = 0;
  for (let textOffset = from; textOffset < to; textOffset++) {
    const textByte = textBytes[textOffset]!;
    while (matchedCodes > 0 && textByte !== segmentCodes[matchedCodes]) matchedCodes = borders[matchedCodes - 1]!;
    if (textByte === segmentCodes[matchedCodes]) matchedCodes++;
    if (matchedCodes === codeCount) return textOffset + 1;
  }
  return -1;
}

/** The end of the first occurrence in bytes[from .. to], or -1: all occurrences are equally long, so the first to end is it. */
function searchWildSegment(codePoints: CodePointMasks, textBytes: Uint8Array, from: number, to: number): number {
  const { ascii, others, anywhere, lastLow, lastHigh } = codePoints;
  let lowMask = 0;
  let highMask = 0;
  for (let textOffset = from; textOffset < to; ) {
    const leadByte = textBytes[textOffset]!;
    const utf8Size = leadByte < 0x80 ? 1 : leadByte < 0xe0 ? 2 : leadByte < 0xf0 ? 3 : 4;
    highMask = (highMask << 1) | (lowMask >>> 31);
    lowMask = (lowMask << 1) | 1;
    if (utf8Size === 1) {
      lowMask &= ascii[2 * leadByte]!;
      highMask &= ascii[2 * leadByte + 1]!;
    } else {
      const [lowPointMask, highPointMask] = others.get(utf8CodePoint(textBytes, textOffset, utf8Size)) ?? anywhere;
      lowMask &= lowPointMask;
      highMask &= highPointMask;
    }
    textOffset += utf8Size;
    if ((lowMask & lastLow) !== 0 || (highMask & lastHigh) !== 0) return textOffset;
  }
  return -1;
}

function utf8CodePoint(bytes: Uint8Array, at: number, utf8Size: number): number {
  let codePoint = bytes[at]! & (0x7f >> utf8Size);
  for (let i = 1; i < utf8Size; i++) codePoint = (codePoint << 6) | (bytes[at + i]! & 0x3f);
  return codePoint;
}

function isContinuationByte(byte: number): boolean {
  return (byte & 0xc0) === 0x80;
}

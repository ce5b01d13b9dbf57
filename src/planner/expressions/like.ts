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

interface Segment {
  /** Bytes of the segment, `anyCharacter` for `_`. */
  readonly codes: Int16Array;
  /** Tables for a search without `_`; null where the segment has one, or is not searched. */
  readonly steps: Steps | null;
  /** Masks for a search with `_`; null where there is none, or the segment is too long for them. */
  readonly codePoints: CodePointMasks | null;
}

/** How a search goes on in a segment that is bytes alone. */
interface Steps {
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
const byteCost = 6;
const patternCost: Cost = { call: 2_000, character: 50 };

export class LikePattern {
  readonly #segments: readonly Segment[];

  constructor(pattern: string, escapes = false) {
    work.done += patternCost.call + pattern.length * patternCost.character;
    const pieces = piecesOf(pattern, escapes);
    // The first and the last are bound to the ends of the text: no search, no tables.
    this.#segments = pieces.map((piece, i) => segmentOf(piece, i > 0 && i < pieces.length - 1));
    for (const { codes, steps } of this.#segments.slice(1, -1)) {
      if (steps !== null || codes.length <= wildSegmentMax) continue;
      throw new ServiceError('REL_INVALID', `a LIKE pattern with _ has at most ${wildSegmentMax} bytes between two %`);
    }
  }

  /** Whether the text in bytes[from .. to] matches. The bytes are well-formed UTF-8. */
  matches(bytes: Uint8Array, from: number, to: number): boolean {
    work.done += (to - from) * byteCost;
    const segments = this.#segments;
    const first = segments[0]!;
    const start = matchAt(first.codes, bytes, from, to);
    if (start < 0) return false;
    if (segments.length === 1) return start === to;
    const end = matchBackFrom(segments[segments.length - 1]!.codes, bytes, start, to);
    if (end < 0) return false;
    let at = start;
    for (let index = 1; index < segments.length - 1; index++) {
      const { codes, steps, codePoints } = segments[index]!;
      if (codes.length === 0) continue;
      at = steps ? search(codes, steps, bytes, at, end) : searchWild(codePoints!, bytes, at, end);
      if (at < 0) return false;
    }
    return true;
  }
}

/** Matches single values; to match a column, keep a `LikePattern` instead. */
export function likeMatches(pattern: string, text: string, escapes = false): boolean {
  if (pattern !== lastText || escapes !== lastEscapes) {
    lastPattern = new LikePattern(pattern, escapes);
    lastText = pattern;
    lastEscapes = escapes;
  }
  return likeText(lastPattern, text);
}

export function likeText(pattern: LikePattern, text: string): boolean {
  const bytes = encoder.encode(text);
  return pattern.matches(bytes, 0, bytes.length);
}

const encoder = new TextEncoder();
let lastText = '';
let lastEscapes = false;
let lastPattern = new LikePattern('');

/** Characters between two `%`; null is any one. */
type Piece = readonly (string | null)[];

function piecesOf(pattern: string, escapes: boolean): Piece[] {
  const pieces: (string | null)[][] = [[]];
  const characters = Array.from(pattern);
  for (let i = 0; i < characters.length; i++) {
    const character = characters[i]!;
    if (escapes && character === '\\' && i + 1 < characters.length) pieces.at(-1)!.push(characters[++i]!);
    else if (character === '%') pieces.push([]);
    else pieces.at(-1)!.push(character === '_' ? null : character);
  }
  return pieces;
}

function segmentOf(piece: Piece, isSearched: boolean): Segment {
  const wild = piece.includes(null);
  const codes = new Int16Array(encoder.encode(piece.map((each) => each ?? '_').join('')));
  if (wild) {
    let at = 0;
    for (const each of piece) {
      if (each === null) codes[at] = anyCharacter;
      at += each === null ? 1 : Buffer.byteLength(each);
    }
  }
  return {
    codes,
    steps: isSearched && !wild ? { borders: bordersOf(codes), skips: skipsOf(codes) } : null,
    codePoints: isSearched && wild && codes.length <= wildSegmentMax ? masksOf(piece) : null,
  };
}

function masksOf(piece: Piece): CodePointMasks {
  const points = piece.map((character) => character?.codePointAt(0) ?? anyCharacter);
  const bits = (of: (point: number) => boolean): [number, number] => {
    const words: [number, number] = [0, 0];
    points.forEach((point, i) => {
      if (of(point)) words[i >>> 5]! |= 1 << (i & 31);
    });
    return words;
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

function bordersOf(codes: Int16Array): Int32Array {
  const borders = new Int32Array(codes.length);
  let border = 0;
  for (let i = 1; i < codes.length; i++) {
    while (border > 0 && codes[i] !== codes[border]) border = borders[border - 1]!;
    if (codes[i] === codes[border]) border++;
    borders[i] = border;
  }
  return borders;
}

function skipsOf(codes: Int16Array): Uint8Array {
  const { length } = codes;
  const skips = new Uint8Array(256).fill(Math.min(Math.max(1, length), 255));
  for (let i = Math.max(0, length - 256); i < length - 1; i++) skips[codes[i]!] = length - 1 - i;
  return skips;
}

/** The end of the segment's match that starts exactly at `from`, or -1. */
function matchAt(codes: Int16Array, bytes: Uint8Array, from: number, to: number): number {
  let at = from;
  for (let i = 0; i < codes.length; i++) {
    if (at >= to) return -1;
    const code = codes[i]!;
    if (code === anyCharacter) {
      at++;
      while (at < to && isContinuation(bytes[at]!)) at++;
    } else if (bytes[at++] !== code) return -1;
  }
  return at;
}

/** The start of the segment's match that ends exactly at `to`, or -1. */
function matchBackFrom(codes: Int16Array, bytes: Uint8Array, from: number, to: number): number {
  let at = to;
  for (let i = codes.length - 1; i >= 0; i--) {
    if (at <= from) return -1;
    const code = codes[i]!;
    at--;
    if (code === anyCharacter) {
      while (at > from && isContinuation(bytes[at]!)) at--;
    } else if (bytes[at] !== code) return -1;
  }
  return at;
}

/** The end of the first occurrence in bytes[from .. to], or -1. */
function search(codes: Int16Array, { borders, skips }: Steps, bytes: Uint8Array, from: number, to: number): number {
  const last = codes.length - 1;
  const ending = codes[last]!;
  // Bytes that may be compared in vain: beyond them the search that looks at each byte once goes on.
  let patience = to - from;
  for (let at = from + last; at < to; ) {
    const byte = bytes[at]!;
    if (byte === ending) {
      let before = 1;
      while (before <= last && bytes[at - before] === codes[last - before]) before++;
      if (before > last) return at + 1;
      patience -= before;
      if (patience < 0) return searchEach(codes, borders, bytes, at - last, to);
    }
    at += skips[byte]!;
  }
  return -1;
}

function searchEach(codes: Int16Array, borders: Int32Array, bytes: Uint8Array, from: number, to: number): number {
  const last = codes.length;
  let matched = 0;
  for (let at = from; at < to; at++) {
    const byte = bytes[at]!;
    while (matched > 0 && byte !== codes[matched]) matched = borders[matched - 1]!;
    if (byte === codes[matched]) matched++;
    if (matched === last) return at + 1;
  }
  return -1;
}

/** The end of the first occurrence in bytes[from .. to], or -1: all occurrences are equally long, so the first to end is it. */
function searchWild(codePoints: CodePointMasks, bytes: Uint8Array, from: number, to: number): number {
  const { ascii, others, anywhere, lastLow, lastHigh } = codePoints;
  let low = 0;
  let high = 0;
  for (let at = from; at < to; ) {
    const byte = bytes[at]!;
    const size = byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
    high = (high << 1) | (low >>> 31);
    low = (low << 1) | 1;
    if (size === 1) {
      low &= ascii[2 * byte]!;
      high &= ascii[2 * byte + 1]!;
    } else {
      const [lowHere, highHere] = others.get(codePointAt(bytes, at, size)) ?? anywhere;
      low &= lowHere;
      high &= highHere;
    }
    at += size;
    if ((low & lastLow) !== 0 || (high & lastHigh) !== 0) return at;
  }
  return -1;
}

function codePointAt(bytes: Uint8Array, at: number, size: number): number {
  let point = bytes[at]! & (0x7f >> size);
  for (let i = 1; i < size; i++) point = (point << 6) | (bytes[at + i]! & 0x3f);
  return point;
}

function isContinuation(byte: number): boolean {
  return (byte & 0xc0) === 0x80;
}

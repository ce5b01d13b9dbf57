/**
 * Messages of clients of the key-value door: commands, each an array of bulk strings, or a line of words.
 *
 *   *<n>\r\n  then n times  $<length>\r\n<bytes>\r\n
 *   word "quoted \x41" 'quoted'\r\n
 */
import { ServiceError } from '../../errors.ts';
import type { Codec, Decoded } from '../shared/codec.ts';

/** Name of the command first; empty for an empty line. */
export type Words = readonly Buffer[];

/** An inline command and the head of an array are lines, and a line is at most so long. */
const lineBytesMax = 65_536;
/** A command names 65,536 keys at most, so none takes as many words: an array of more is refused by its head. */
const wordsMax = 131_072;
/** `$0\r\n\r\n` */
const wordBytesMin = 6;
/** Words that are read, or handed on, in one turn. */
const wordsInTurn = 8_192;

/** A line of which so many bytes hold no line feed, or an array that is read up to `at`. */
type DecodeState = { readonly seen: number } | ArrayState;

interface ArrayState {
  /** Offset of the next word's head; once none is left, of the end. */
  readonly at: number;
  readonly left: number;
  /** Begin and end of each word, in turn: the words are cut out once all of them are there. */
  readonly bounds: number[];
  readonly words: Buffer[];
}

const start: DecodeState = { seen: 0 };

export const respCodec: Codec<DecodeState, Words> = {
  start,
  cost: { part: 150, byte: 0 },
  partsInTurn: wordsInTurn,
  decode,
};

const cr = 0x0d;
const lf = 0x0a;
const star = 0x2a;
const dollar = 0x24;

function decode(state: DecodeState, bytes: Buffer): Decoded<DecodeState, Words> {
  if ('words' in state) return decodeArray(state, bytes);
  if (bytes[0] !== star) return decodeLine(state.seen, bytes);
  const head = numberAt(bytes, 1, 'invalid multibulk length');
  if (head === null) return { needs: bytes.length + 1 };
  if (head.value > wordsMax) throw protocolError('invalid multibulk length');
  return decodeArray({ at: head.end, left: Math.max(0, head.value), bounds: [], words: [] }, bytes);
}

/** `from` is the state's owner's no longer: its lists are filled on. */
function decodeArray(from: ArrayState, bytes: Buffer): Decoded<DecodeState, Words> {
  const { bounds, words } = from;
  let { at, left } = from;
  const later = (needs: number): Decoded<DecodeState, Words> => ({ needs, state: { at, left, bounds, words } });
  for (let turn = 0; left > 0; left--) {
    // The remaining words need at least this many bytes: a client that sends them one by one is not decoded again for each.
    const least = at + left * wordBytesMin;
    if (bytes.length < least) return later(least);
    if (turn++ === wordsInTurn) return later(at);
    if (bytes[at] !== dollar) throw protocolError(`expected '$', got '${printable(bytes[at]!)}'`);
    const length = numberAt(bytes, at + 1, 'invalid bulk length');
    if (length === null) return later(bytes.length + 1);
    if (length.value < 0) throw protocolError('invalid bulk length');
    const end = length.end + length.value;
    const enough = end + 2 + (left - 1) * wordBytesMin;
    if (bytes.length < enough) return later(enough);
    if (bytes[end] !== cr || bytes[end + 1] !== lf) throw protocolError('a bulk string ends by CRLF');
    bounds.push(length.end, end);
    at = end + 2;
  }
  for (let turn = 0; words.length * 2 < bounds.length; turn++) {
    if (turn === wordsInTurn) return later(at);
    const first = words.length * 2;
    words.push(bytes.subarray(bounds[first], bounds[first + 1]));
  }
  return { message: words, taken: at, state: start };
}

/** A number and CRLF; null: more bytes are needed. */
function numberAt(bytes: Buffer, start: number, what: string): { readonly value: number; readonly end: number } | null {
  let at = start;
  let value = 0;
  const isNegative = bytes[at] === 0x2d;
  if (isNegative) at++;
  const first = at;
  for (; at < bytes.length; at++) {
    const digit = bytes[at]! - 0x30;
    if (digit < 0 || digit > 9) break;
    // A longer number is never taken: stop reading digits.
    if (at - first === 10) throw protocolError(what);
    value = value * 10 + digit;
  }
  if (at === bytes.length) return null;
  if (at === first || bytes[at] !== cr) throw protocolError(what);
  if (at + 1 === bytes.length) return null;
  if (bytes[at + 1] !== lf) throw protocolError(what);
  return { value: isNegative ? -value : value, end: at + 2 };
}

function decodeLine(seen: number, bytes: Buffer): Decoded<DecodeState, Words> {
  const end = bytes.indexOf(lf, seen);
  if (end > lineBytesMax || (end < 0 && bytes.length > lineBytesMax)) throw protocolError('too big inline request');
  if (end < 0) return { needs: bytes.length + 1, state: { seen: bytes.length } };
  const line = bytes.subarray(0, end > 0 && bytes[end - 1] === cr ? end - 1 : end);
  return { message: wordsOf(line), taken: end + 1, state: start };
}

const isSpace = (byte: number): boolean => byte === 0x20 || (byte >= 0x09 && byte <= 0x0d);
const escapes: Readonly<Record<string, number>> = { n: 10, r: 13, t: 9, b: 8, a: 7 };

/** Words of a line as redis-cli writes them: quotes may hold spaces, double ones escapes, too. */
function wordsOf(line: Buffer): Buffer[] {
  const words: Buffer[] = [];
  let at = 0;
  for (;;) {
    while (at < line.length && isSpace(line[at]!)) at++;
    if (at === line.length) return words;
    const word: number[] = [];
    let quote = 0;
    for (; at < line.length; at++) {
      const byte = line[at]!;
      if (quote === 0) {
        if (isSpace(byte)) break;
        if (byte === 0x22 || byte === 0x27) quote = byte;
        else word.push(byte);
      } else if (byte === quote) {
        if (at + 1 < line.length && !isSpace(line[at + 1]!)) throw protocolError('unbalanced quotes in request');
        quote = 0;
      } else if (byte === 0x5c && quote === 0x22 && at + 1 < line.length) {
        const hex = /^x([0-9a-fA-F]{2})/.exec(line.toString('latin1', at + 1, at + 4))?.[1];
        const letter = String.fromCharCode(line[at + 1]!);
        word.push(hex === undefined ? (escapes[letter] ?? line[at + 1]!) : Number.parseInt(hex, 16));
        at += hex === undefined ? 1 : 3;
      } else if (byte === 0x5c && quote === 0x27 && line[at + 1] === 0x27) {
        word.push(0x27);
        at++;
      } else word.push(byte);
    }
    if (quote !== 0) throw protocolError('unbalanced quotes in request');
    words.push(Buffer.from(word));
  }
}

const printable = (byte: number): string => (byte > 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '?');
const protocolError = (what: string): ServiceError => new ServiceError('REL_INVALID', `Protocol error: ${what}`);

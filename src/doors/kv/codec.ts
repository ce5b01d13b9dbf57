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
const inlineBytesMax = 65_536;
/** A command names 65,536 keys at most, so none takes as many words: an array of more is refused by its head. */
const respWordsMax = 131_072;
/** `$0\r\n\r\n` */
const respWordBytesMin = 6;
/** Words that are read, or handed on, in one turn. */
const wordsInTurn = 8_192;

/** A line of which so many bytes hold no line feed, or an array that is read up to `at`. */
type DecodeState = { readonly seen: number } | RespArrayState;

interface RespArrayState {
  /** Offset of the next word's head; once none is left, of the end. */
  readonly at: number;
  readonly left: number;
  /** Begin and end of each word, in turn: the words are cut out once all of them are there. */
  readonly bounds: number[];
  readonly words: Buffer[];
}

const startState: DecodeState = { seen: 0 };

export const respCodec: Codec<DecodeState, Words> = {
  start: startState,
  cost: { part: 150, byte: 0 },
  partsInTurn: wordsInTurn,
  decode: decodeResp,
};

const carriageReturn = 0x0d;
const lineFeed = 0x0a;
const arrayMark = 0x2a;
const bulkMark = 0x24;

function decodeResp(respState: DecodeState, respBytes: Buffer): Decoded<DecodeState, Words> {
  if ('words' in respState) return decodeRespArray(respState, respBytes);
  if (respBytes[0] !== arrayMark) return decodeInlineLine(respState.seen, respBytes);
  const arrayHead = respNumberAt(respBytes, 1, 'invalid multibulk length');
  if (arrayHead === null) return { needs: respBytes.length + 1 };
  if (arrayHead.value > respWordsMax) throw protocolError('invalid multibulk length');
  return decodeRespArray({ at: arrayHead.end, left: Math.max(0, arrayHead.value), bounds: [], words: [] }, respBytes);
}

/** `arrayState` is the state's owner's no longer: its lists are filled on. */
function decodeRespArray(arrayState: RespArrayState, respBytes: Buffer): Decoded<DecodeState, Words> {
  const { bounds: wordBounds, words: respWords } = arrayState;
  let { at: bulkOffset, left: wordsLeft } = arrayState;
  const needsMore = (bytesNeeded: number): Decoded<DecodeState, Words> => ({
    needs: bytesNeeded,
    state: { at: bulkOffset, left: wordsLeft, bounds: wordBounds, words: respWords },
  });
  for (let turnWords = 0; wordsLeft > 0; wordsLeft--) {
    // The remaining words need at least this many bytes: a client that sends them one by one is not decoded again for each.
    const leastBytes = bulkOffset + wordsLeft * respWordBytesMin;
    if (respBytes.length < leastBytes) return needsMore(leastBytes);
    if (turnWords++ === wordsInTurn) return needsMore(bulkOffset);
    if (respBytes[bulkOffset] !== bulkMark) throw protocolError(`expected '$', got '${printableByte(respBytes[bulkOffset]!)}'`);
    const bulkLength = respNumberAt(respBytes, bulkOffset + 1, 'invalid bulk length');
    if (bulkLength === null) return needsMore(respBytes.length + 1);
    if (bulkLength.value < 0) throw protocolError('invalid bulk length');
    const bulkEnd = bulkLength.end + bulkLength.value;
    const neededBytes = bulkEnd + 2 + (wordsLeft - 1) * respWordBytesMin;
    if (respBytes.length < neededBytes) return needsMore(neededBytes);
    if (respBytes[bulkEnd] !== carriageReturn || respBytes[bulkEnd + 1] !== lineFeed)
      throw protocolError('a bulk string ends by CRLF');
    wordBounds.push(bulkLength.end, bulkEnd);
    bulkOffset = bulkEnd + 2;
  }
  for (let turn = 0; respWords.length * 2 < wordBounds.length; turn++) {
    if (turn === wordsInTurn) return needsMore(bulkOffset);
    const boundIndex = respWords.length * 2;
    respWords.push(respBytes.subarray(wordBounds[boundIndex], wordBounds[boundIndex + 1]));
  }
  return { message: respWords, taken: bulkOffset, state: startState };
}

/** A number and CRLF; null: more bytes are needed. */
function respNumberAt(
  respBytes: Buffer,
  numberStart: number,
  respProblem: string,
): { readonly value: number; readonly end: number } | null {
  let digitOffset = numberStart;
  let respNumber = 0;
  const isNegative = respBytes[digitOffset] === 0x2d;
  if (isNegative) digitOffset++;
  const firstDigit = digitOffset;
  for (; digitOffset < respBytes.length; digitOffset++) {
    const respDigit = respBytes[digitOffset]! - 0x30;
    if (respDigit < 0 || respDigit > 9) break;
    // A longer number is never taken: stop reading digits.
    if (digitOffset - firstDigit === 10) throw protocolError(respProblem);
    respNumber = respNumber * 10 + respDigit;
  }
  if (digitOffset === respBytes.length) return null;
  if (digitOffset === firstDigit || respBytes[digitOffset] !== carriageReturn) throw protocolError(respProblem);
  if (digitOffset + 1 === respBytes.length) return null;
  if (respBytes[digitOffset + 1] !== lineFeed) throw protocolError(respProblem);
  return { value: isNegative ? -respNumber : respNumber, end: digitOffset + 2 };
}

function decodeInlineLine(seenBytes: number, respBytes: Buffer): Decoded<DecodeState, Words> {
  const lineEnd = respBytes.indexOf(lineFeed, seenBytes);
  if (lineEnd > inlineBytesMax || (lineEnd < 0 && respBytes.length > inlineBytesMax))
    throw protocolError('too big inline request');
  if (lineEnd < 0) return { needs: respBytes.length + 1, state: { seen: respBytes.length } };
  const inlineLine = respBytes.subarray(0, lineEnd > 0 && respBytes[lineEnd - 1] === carriageReturn ? lineEnd - 1 : lineEnd);
  return { message: inlineWordsOf(inlineLine), taken: lineEnd + 1, state: startState };
}

const isInlineSpace = (inlineByte: number): boolean => inlineByte === 0x20 || (inlineByte >= 0x09 && inlineByte <= 0x0d);
const inlineEscapes: Readonly<Record<string, number>> = { n: 10, r: 13, t: 9, b: 8, a: 7 };

/** Words of a line as redis-cli writes them: quotes may hold spaces, double ones escapes, too. */
function inlineWordsOf(inlineLine: Buffer): Buffer[] {
  const inlineWords: Buffer[] = [];
  let inlineOffset = 0;
  for (;;) {
    while (inlineOffset < inlineLine.length && isInlineSpace(inlineLine[inlineOffset]!)) inlineOffset++;
    if (inlineOffset === inlineLine.length) return inlineWords;
    const inlineWord: number[] = [];
    let inlineQuote = 0;
    for (; inlineOffset < inlineLine.length; inlineOffset++) {
      const inlineByte = inlineLine[inlineOffset]!;
      if (inlineQuote === 0) {
        if (isInlineSpace(inlineByte)) break;
        if (inlineByte === 0x22 || inlineByte === 0x27) inlineQuote = inlineByte;
        else inlineWord.push(inlineByte);
      } else if (inlineByte === inlineQuote) {
        if (inlineOffset + 1 < inlineLine.length && !isInlineSpace(inlineLine[inlineOffset + 1]!))
          throw protocolError('unbalanced quotes in request');
        inlineQuote = 0;
      } else if (inlineByte === 0x5c && inlineQuote === 0x22 && inlineOffset + 1 < inlineLine.length) {
        const hexEscape = /^x([0-9a-fA-F]{2})/.exec(inlineLine.toString('latin1', inlineOffset + 1, inlineOffset + 4))?.[1];
        const escapedLetter = String.fromCharCode(inlineLine[inlineOffset + 1]!);
        inlineWord.push(
          hexEscape === undefined
            ? (inlineEscapes[escapedLetter] ?? inlineLine[inlineOffset + 1]!)
            : Number.parseInt(hexEscape, 16),
        );
        inlineOffset += hexEscape === undefined ? 1 : 3;
      } else if (inlineByte === 0x5c && inlineQuote === 0x27 && inlineLine[inlineOffset + 1] === 0x27) {
        inlineWord.push(0x27);
        inlineOffset++;
      } else inlineWord.push(inlineByte);
    }
    if (inlineQuote !== 0) throw protocolError('unbalanced quotes in request');
    inlineWords.push(Buffer.from(inlineWord));
  }
}

const printableByte = (respByte: number): string => (respByte > 0x20 && respByte < 0x7f ? String.fromCharCode(respByte) : '?');
const protocolError = (respProblem: string): ServiceError => new ServiceError('REL_INVALID', `Protocol error: ${respProblem}`);

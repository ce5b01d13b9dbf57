/**
 * The texts of a JSON value: its strings, at any depth and in the order in which they are written. Names of members are none, nor are
 * numbers and words of JSON itself. Each is a text by itself: no phrase runs from one into the next.
 */
import { type TokenSpan, tokenSpans } from './tokens.ts';

const [quote, backslash, colon] = [0x22, 0x5c, 0x3a];
const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** Each as bytes of a heap, from one offset to another. */
export function* jsonTextSpans(
  heap: Uint8Array,
  start: number,
  end: number,
): Generator<readonly [heap: Uint8Array, start: number, end: number], void> {
  for (let at = start; at < end; at++) {
    if (heap[at] !== quote) continue;
    const from = at + 1;
    let isEscaped = false;
    for (at = from; at < end && heap[at] !== quote; at++) {
      if (heap[at] !== backslash) continue;
      isEscaped = true;
      at++;
    }
    if (at >= end) return;
    let next = at + 1;
    while (next < end && isSpace(heap[next]!)) next++;
    // A string before a colon is the name of a member.
    if (next < end && heap[next] === colon) continue;
    if (isEscaped) {
      const text = encoder.encode(JSON.parse(decoder.decode(heap.slice(from - 1, at + 1))) as string);
      yield [text, 0, text.length];
    } else yield [heap, from, at];
  }
}

export function jsonTexts(json: string): string[] {
  const heap = encoder.encode(json);
  return [...jsonTextSpans(heap, 0, heap.length)].map(([own, from, to]) => decoder.decode(own.subarray(from, to)));
}

/** Terms of all of them: between those of two texts an ordinal is left free. */
export function jsonTokenSpans(json: string): readonly TokenSpan[] {
  const all: TokenSpan[] = [];
  let first = 0;
  for (const text of jsonTexts(json)) {
    const { spans } = tokenSpans(text);
    for (const span of spans) all.push({ ...span, ordinal: first + span.ordinal });
    if (spans.length > 0) first = all.at(-1)!.ordinal + 2;
  }
  return all;
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

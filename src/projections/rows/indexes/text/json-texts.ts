/**
 * The texts of a JSON value: its strings, at any depth and in the order in which they are written. Names of members are none, nor are
 * numbers and words of JSON itself. Each is a text by itself: no phrase runs from one into the next.
 */
import { type TokenSpan, tokenSpans } from './tokens.ts';

const [jsonQuote, jsonBackslash, jsonColon] = [0x22, 0x5c, 0x3a];
const jsonEncoder = new TextEncoder();
const jsonDecoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** Each as bytes of a heap, from one offset to another. */
export function* jsonTextSpans(
  jsonHeap: Uint8Array,
  jsonStart: number,
  jsonEnd: number,
): Generator<readonly [heap: Uint8Array, start: number, end: number], void> {
  for (let jsonOffset = jsonStart; jsonOffset < jsonEnd; jsonOffset++) {
    if (jsonHeap[jsonOffset] !== jsonQuote) continue;
    const jsonTextStart = jsonOffset + 1;
    let isEscaped = false;
    for (jsonOffset = jsonTextStart; jsonOffset < jsonEnd && jsonHeap[jsonOffset] !== jsonQuote; jsonOffset++) {
      if (jsonHeap[jsonOffset] !== jsonBackslash) continue;
      isEscaped = true;
      jsonOffset++;
    }
    if (jsonOffset >= jsonEnd) return;
    let afterQuote = jsonOffset + 1;
    while (afterQuote < jsonEnd && isJsonSpace(jsonHeap[afterQuote]!)) afterQuote++;
    // A string before a colon is the name of a member.
    if (afterQuote < jsonEnd && jsonHeap[afterQuote] === jsonColon) continue;
    if (isEscaped) {
      const unescapedText = jsonEncoder.encode(
        JSON.parse(jsonDecoder.decode(jsonHeap.slice(jsonTextStart - 1, jsonOffset + 1))) as string,
      );
      yield [unescapedText, 0, unescapedText.length];
    } else yield [jsonHeap, jsonTextStart, jsonOffset];
  }
}

export function jsonTexts(json: string): string[] {
  const jsonHeap = jsonEncoder.encode(json);
  return [...jsonTextSpans(jsonHeap, 0, jsonHeap.length)].map(([spanHeap, spanStart, spanEnd]) =>
    jsonDecoder.decode(spanHeap.subarray(spanStart, spanEnd)),
  );
}

/** Terms of all of them: between those of two texts an ordinal is left free. */
export function jsonTokenSpans(json: string): readonly TokenSpan[] {
  const jsonSpans: TokenSpan[] = [];
  let firstPlace = 0;
  for (const jsonText of jsonTexts(json)) {
    const { spans } = tokenSpans(jsonText);
    for (const tokenSpan of spans) jsonSpans.push({ ...tokenSpan, ordinal: firstPlace + tokenSpan.ordinal });
    if (spans.length > 0) firstPlace = jsonSpans.at(-1)!.ordinal + 2;
  }
  return jsonSpans;
}

function isJsonSpace(jsonByte: number): boolean {
  return jsonByte === 0x20 || jsonByte === 0x0a || jsonByte === 0x0d || jsonByte === 0x09;
}

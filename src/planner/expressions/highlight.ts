/** Marks the sought words in a text: between <em> and </em>; the rest of the text stays as it is. */
import { jsonTexts } from '../../projections/rows/indexes/text/json-texts.ts';
import { type TokenSpan, tokenSpans } from '../../projections/rows/indexes/text/tokens.ts';
import type { TextMatcher } from './match-text.ts';

/** UTF-16 units of a text that are shown, and how many of them before the first word that is marked. */
const excerptLengthMax = 512;
const excerptLead = 64;
const ellipsis = '…';

export class Highlighter {
  readonly #highlightMatchers: readonly TextMatcher[];

  constructor(matchers: readonly TextMatcher[]) {
    this.#highlightMatchers = matchers;
  }

  /** Shows the first string of JSON that a word is marked in, else the first of all. */
  ofJson(json: string): string {
    const searchedTexts = jsonTexts(json);
    return this.mark(
      searchedTexts.find((text) => this.#highlightRuns(tokenSpans(text).spans).length > 0) ?? searchedTexts[0] ?? '',
    );
  }

  /** A longer text is cut to the part around the first word that is sought, else to its beginning. */
  mark(raw: string): string {
    const { text, spans } = tokenSpans(raw);
    const markedRuns = this.#highlightRuns(spans);
    const [excerptStart, excerptEnd] = excerptRange(text, markedRuns[0]?.[0] ?? 0);
    let highlighted = excerptStart > 0 ? ellipsis : '';
    let markedEnd = excerptStart;
    for (const [runStart, runEnd] of markedRuns) {
      if (runStart < excerptStart || runEnd > excerptEnd) continue;
      highlighted += `${text.slice(markedEnd, runStart)}<em>${text.slice(runStart, runEnd)}</em>`;
      markedEnd = runEnd;
    }
    return `${highlighted}${text.slice(markedEnd, excerptEnd)}${excerptEnd < text.length ? ellipsis : ''}`;
  }

  #highlightRuns(spans: readonly TokenSpan[]): readonly (readonly [number, number])[] {
    const markedSpans = new Set<TokenSpan>();
    for (const matcher of this.#highlightMatchers)
      for (const tokenSpan of soughtSpans(matcher, spans)) markedSpans.add(tokenSpan);
    return mergeSpans(spans.filter((span) => markedSpans.has(span)));
  }
}

function soughtSpans(matcher: TextMatcher, spans: readonly TokenSpan[]): readonly TokenSpan[] {
  const { scores, shape } = matcher.query;
  if (shape === 'phrase') return matcher.phrases(spans).flat();
  return spans.filter(({ term }) => matcher.leavesOf(term).some((queryLeaf) => scores[queryLeaf]));
}

/** Joins overlapping pairs of characters, so that each character is marked once. */
function mergeSpans(spans: readonly TokenSpan[]): readonly (readonly [number, number])[] {
  const mergedRuns: [number, number][] = [];
  for (const { start: spanStart, end: spanEnd } of spans) {
    const lastRun = mergedRuns.at(-1);
    if (lastRun && spanStart < lastRun[1]) lastRun[1] = Math.max(lastRun[1], spanEnd);
    else mergedRuns.push([spanStart, spanEnd]);
  }
  return mergedRuns;
}

function excerptRange(text: string, firstRunStart: number): readonly [number, number] {
  if (text.length <= excerptLengthMax) return [0, text.length];
  const excerptStart = firstRunStart <= excerptLead ? 0 : wholeCharacter(text, firstRunStart - excerptLead);
  return [excerptStart, wholeCharacter(text, Math.min(text.length, excerptStart + excerptLengthMax))];
}

/** Not within a character of two units. */
function wholeCharacter(text: string, textOffset: number): number {
  const codeUnit = text.charCodeAt(textOffset);
  return codeUnit >= 0xdc00 && codeUnit <= 0xdfff ? textOffset + 1 : textOffset;
}

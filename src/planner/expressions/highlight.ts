/** Marks the sought words in a text: between <em> and </em>; the rest of the text stays as it is. */
import { jsonTexts } from '../../projections/rows/indexes/text/json-texts.ts';
import { type TokenSpan, tokenSpans } from '../../projections/rows/indexes/text/tokens.ts';
import type { TextMatcher } from './match-text.ts';

/** UTF-16 units of a text that are shown, and how many of them before the first word that is marked. */
const shownMost = 512;
const shownBefore = 64;
const cut = '…';

export class Highlighter {
  readonly #matchers: readonly TextMatcher[];

  constructor(matchers: readonly TextMatcher[]) {
    this.#matchers = matchers;
  }

  /** Shows the first string of JSON that a word is marked in, else the first of all. */
  ofJson(json: string): string {
    const texts = jsonTexts(json);
    return this.mark(texts.find((text) => this.#runsIn(tokenSpans(text).spans).length > 0) ?? texts[0] ?? '');
  }

  /** A longer text is cut to the part around the first word that is sought, else to its beginning. */
  mark(raw: string): string {
    const { text, spans } = tokenSpans(raw);
    const runs = this.#runsIn(spans);
    const [from, to] = windowOf(text, runs[0]?.[0] ?? 0);
    let shown = from > 0 ? cut : '';
    let at = from;
    for (const [start, end] of runs) {
      if (start < from || end > to) continue;
      shown += `${text.slice(at, start)}<em>${text.slice(start, end)}</em>`;
      at = end;
    }
    return `${shown}${text.slice(at, to)}${to < text.length ? cut : ''}`;
  }

  #runsIn(spans: readonly TokenSpan[]): readonly (readonly [number, number])[] {
    const marked = new Set<TokenSpan>();
    for (const matcher of this.#matchers) for (const span of soughtIn(matcher, spans)) marked.add(span);
    return mergeSpans(spans.filter((span) => marked.has(span)));
  }
}

function soughtIn(matcher: TextMatcher, spans: readonly TokenSpan[]): readonly TokenSpan[] {
  const { scores, shape } = matcher.query;
  if (shape === 'phrase') return matcher.phrases(spans).flat();
  return spans.filter(({ term }) => matcher.leavesOf(term).some((leaf) => scores[leaf]));
}

/** Joins overlapping pairs of characters, so that each character is marked once. */
function mergeSpans(spans: readonly TokenSpan[]): readonly (readonly [number, number])[] {
  const runs: [number, number][] = [];
  for (const { start, end } of spans) {
    const last = runs.at(-1);
    if (last && start < last[1]) last[1] = Math.max(last[1], end);
    else runs.push([start, end]);
  }
  return runs;
}

function windowOf(text: string, first: number): readonly [number, number] {
  if (text.length <= shownMost) return [0, text.length];
  const from = first <= shownBefore ? 0 : whole(text, first - shownBefore);
  return [from, whole(text, Math.min(text.length, from + shownMost))];
}

/** Not within a character of two units. */
function whole(text: string, at: number): number {
  const unit = text.charCodeAt(at);
  return unit >= 0xdc00 && unit <= 0xdfff ? at + 1 : at;
}

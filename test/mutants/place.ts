/** Where a mutant's mistake goes. White space may differ, so that no formatting and no move within a symbol loses it. */
import type { Mutant } from './mutant.ts';

export interface Place {
  readonly from: number;
  readonly to: number;
}

/** Null where the pattern is not there, or not there once. */
export function placeOf(source: string, { find, in: symbol }: Pick<Mutant, 'find' | 'in'>): Place | null {
  const region = symbol === undefined ? { from: 0, to: source.length } : regionOf(source, symbol);
  if (region === null) return null;
  const text = source.slice(region.from, region.to);
  const literal = text.split(find);
  if (literal.length === 2) return { from: region.from + literal[0]!.length, to: region.from + literal[0]!.length + find.length };
  const words = find
    .trim()
    .split(/\s+/)
    .map((word) => word.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  const [hit, second] = text.matchAll(new RegExp(words.join('\\s+'), 'g'));
  if (!hit || second) return null;
  return { from: region.from + hit.index, to: region.from + hit.index + hit[0].length };
}

/** From the line that declares a symbol to the end of what is indented below it; `Class.member` for one of several of a name. */
function regionOf(source: string, symbol: string): Place | null {
  let region: Place = { from: 0, to: source.length };
  for (const name of symbol.split('.')) {
    const inner = declared(source.slice(region.from, region.to), name);
    if (inner === null) return null;
    region = { from: region.from + inner.from, to: region.from + inner.to };
  }
  return region;
}

const modifiers = String.raw`(?:(?:export|default|abstract|async|static|private|readonly|get|set|function|class|interface|type|const|let)\s+)*`;

function declared(text: string, name: string): Place | null {
  const word = name.replaceAll('$', '\\$');
  // At the left margin, or a member: what is indented further is a call.
  const opening = new RegExp(String.raw`^( {0,2})${modifiers}(?:function)?[* ]*${word}(?=[\s(<:=?])[^\n]*$`, 'gm');
  const found = [...text.matchAll(opening)].filter(
    ([line, indent]) => !(indent === '  ' && /;\s*$/.test(line) && !/=/.test(line)),
  );
  if (found.length !== 1) return null;
  const [line, indent] = found[0]!;
  const from = found[0]!.index;
  // A declaration of more than one line ends with the first one that is indented as little and closes it.
  if (/;\s*$/.test(line)) return { from, to: from + line.length };
  const closing = new RegExp(String.raw`\n${indent}[}\])][^\n]*(?<![{(])(?=\n|$)`, 'g');
  closing.lastIndex = from;
  const end = closing.exec(text);
  return end && { from, to: end.index + end[0].length };
}

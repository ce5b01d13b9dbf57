/** Patterns of KEYS, SCAN and PSUBSCRIBE: `*`, `?`, `[a-c]`, `[^a]`, and a backslash before a literal character. */

type Part =
  | { readonly kind: 'star' }
  | { readonly kind: 'any' }
  | { readonly kind: 'one'; readonly code: number }
  | { readonly kind: 'set'; readonly negated: boolean; readonly ranges: readonly (readonly [number, number])[] };

/** In steps of at most the one length times the other: only the last star is ever gone back to. */
export function globOf(pattern: string): (text: string) => boolean {
  const parts = partsOf(Array.from(pattern, (char) => char.codePointAt(0)!));
  return (text) =>
    matches(
      parts,
      Array.from(text, (char) => char.codePointAt(0)!),
    );
}

function matches(parts: readonly Part[], text: readonly number[]): boolean {
  let part = 0;
  let at = 0;
  let star = -1;
  let from = 0;
  while (at < text.length) {
    const next = parts[part];
    if (next?.kind === 'star') {
      star = part++;
      from = at;
    } else if (next !== undefined && takes(next, text[at]!)) {
      part++;
      at++;
    } else if (star >= 0) {
      part = star + 1;
      at = ++from;
    } else return false;
  }
  while (parts[part]?.kind === 'star') part++;
  return part === parts.length;
}

function takes(part: Part, code: number): boolean {
  switch (part.kind) {
    case 'star':
    case 'any':
      return true;
    case 'one':
      return part.code === code;
    case 'set':
      return part.ranges.some(([low, high]) => low <= code && code <= high) !== part.negated;
  }
}

const sign = (char: string): number => char.codePointAt(0)!;
const signs = {
  star: sign('*'),
  any: sign('?'),
  open: sign('['),
  close: sign(']'),
  not: sign('^'),
  to: sign('-'),
  escape: sign('\\'),
};

function partsOf(codes: readonly number[]): Part[] {
  const parts: Part[] = [];
  for (let at = 0; at < codes.length; at++) {
    const code = codes[at]!;
    if (code === signs.star) {
      if (parts.at(-1)?.kind !== 'star') parts.push({ kind: 'star' });
    } else if (code === signs.any) parts.push({ kind: 'any' });
    else if (code === signs.open) {
      const set = setOf(codes, at + 1);
      parts.push(set.part);
      at = set.end;
    } else if (code === signs.escape && at + 1 < codes.length) parts.push({ kind: 'one', code: codes[++at]! });
    else parts.push({ kind: 'one', code });
  }
  return parts;
}

/** A set that nothing closes goes to the end of the pattern. */
function setOf(codes: readonly number[], start: number): { readonly part: Part; readonly end: number } {
  let at = start;
  const negated = codes[at] === signs.not;
  if (negated) at++;
  const ranges: [number, number][] = [];
  for (; at < codes.length && codes[at] !== signs.close; at++) {
    if (codes[at] === signs.escape && at + 1 < codes.length) at++;
    const low = codes[at]!;
    if (codes[at + 1] === signs.to && at + 2 < codes.length && codes[at + 2] !== signs.close) {
      at += 2;
      if (codes[at] === signs.escape && at + 1 < codes.length) at++;
      const high = codes[at]!;
      ranges.push(low <= high ? [low, high] : [high, low]);
    } else ranges.push([low, low]);
  }
  return { part: { kind: 'set', negated, ranges }, end: at };
}

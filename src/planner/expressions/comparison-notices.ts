/** Comparisons that hold of no row and are no error either. The caller is warned, because an empty answer does not say why. */
import type { Literal, Location } from '../syntax/statement.ts';

/**
 * A literal in a slot beside a value that it can't equal. `quoted`: it stands beside json in the double quotes of a JSON string.
 * Or a pattern is answered by the types of edges that it names, which the specification leaves aside.
 */
export type Caveat = { readonly kind: 'null' | 'quoted'; readonly slot: number } | { readonly kind: 'typed-edges' };

/** A list may have a hundred thousand: nobody reads more than these. */
const noticesMax = 100;

/** A notice for each comparison that, with the literals of this run, can hold for no row. */
export function caveatsOf(
  caveats: readonly Caveat[],
  literals: readonly Literal[],
  locationOf: (slot: number) => Location,
): string[] {
  const notices: string[] = [];
  for (const caveat of caveats) {
    if (notices.length === noticesMax) break;
    const noticeSentence = caveatSentence(caveat, literals, locationOf);
    if (noticeSentence !== null) notices.push(noticeSentence);
  }
  return notices;
}

function caveatSentence(
  caveat: Caveat,
  literals: readonly Literal[],
  locationOf: (literalSlot: number) => Location,
): string | null {
  if (caveat.kind === 'typed-edges') return 'only relationships of the types that the pattern names are gone along';
  const { kind: caveatKind, slot: literalSlot } = caveat;
  if (caveatKind === 'quoted' && !isQuoted(literals[literalSlot])) return null;
  const { line, column } = locationOf(literalSlot);
  if (caveatKind === 'null') return `${line}:${column}: a comparison with NULL holds for no row; write IS NULL or IS NOT NULL`;
  return `${line}:${column}: json is compared by its value; write the text without its double quotes`;
}

function isQuoted(literal: Literal | undefined): boolean {
  return typeof literal === 'string' && /^"(?:[^"\\]|\\.)*"$/s.test(literal);
}

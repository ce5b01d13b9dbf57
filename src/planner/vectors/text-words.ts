/** Words of a text, to compare texts by the words that they share: letters and digits, with case and form folded. */
export function* wordsIn(text: string): Generator<string, void> {
  for (const [word] of text
    .normalize('NFKC')
    .toLowerCase()
    .matchAll(/[\p{L}\p{M}\p{N}]+/gu))
    yield word;
}

/** The share of the words of either that both have. */
export function sharedWords(a: ReadonlySet<string>, b: ReadonlySet<string>): number {
  if (a.size === 0 || b.size === 0) return 0;
  let both = 0;
  for (const word of b) if (a.has(word)) both++;
  return both / (a.size + b.size - both);
}

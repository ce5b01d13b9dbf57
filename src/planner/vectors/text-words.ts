/** Words of a text, to compare texts by the words that they share: letters and digits, with case and form folded. */
export function* wordsIn(text: string): Generator<string, void> {
  for (const [word] of text
    .normalize('NFKC')
    .toLowerCase()
    .matchAll(/[\p{L}\p{M}\p{N}]+/gu))
    yield word;
}

/** The share of the words of either that both have. */
export function sharedWords(oneWords: ReadonlySet<string>, otherWords: ReadonlySet<string>): number {
  if (oneWords.size === 0 || otherWords.size === 0) return 0;
  let sharedCount = 0;
  for (const word of otherWords) if (oneWords.has(word)) sharedCount++;
  return sharedCount / (oneWords.size + otherWords.size - sharedCount);
}

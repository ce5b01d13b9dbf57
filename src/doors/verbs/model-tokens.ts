/** The number of a model's tokens in a text. The encoder takes 70 MB and a moment to load, so it loads on first use. */

/** A change of it may count otherwise: recalls are recorded with it. */
export const tokenizerName = 'gpt-tokenizer/4.0.0/o200k_base';

let tokenCounterLoading: Promise<(text: string) => number> | null = null;

export function tokenCounter(): Promise<(countedText: string) => number> {
  tokenCounterLoading ??= import('gpt-tokenizer').then(({ countTokens: countModelTokens }) => {
    // A text may hold what looks like a control token of some model: here it is text.
    const plainTokenOptions = { allowedSpecial: new Set<string>(), disallowedSpecial: new Set<string>() };
    return (countedText) => countModelTokens(countedText, plainTokenOptions);
  });
  return tokenCounterLoading;
}

/**
 * Texts in quotes, with backslashes, found by a loop. An expression like `"(?:[^"\\]|\\[^])*"` keeps a note for each letter, and
 * fails as if calls were nested too deep from some twelve million letters on; a row may have more.
 */

const backslashCode = 0x5c;

/** Where the text ends that begins with the quote at `quoteOffset`: behind its last quote; null where it never ends. */
export function endOfQuoted(quotedText: string, quoteOffset: number): number | null {
  const quoteCode = quotedText.charCodeAt(quoteOffset);
  for (let characterIndex = quoteOffset + 1; characterIndex < quotedText.length; characterIndex++) {
    const charCode = quotedText.charCodeAt(characterIndex);
    if (charCode === quoteCode) return characterIndex + 1;
    if (charCode === backslashCode) characterIndex++;
  }
  return null;
}

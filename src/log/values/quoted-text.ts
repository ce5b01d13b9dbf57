/**
 * Texts in quotes, with backslashes, found by a loop. An expression like `"(?:[^"\\]|\\[^])*"` keeps a note for each letter, and
 * fails as if calls were nested too deep from some twelve million letters on; a row may have more.
 */

const backslash = 0x5c;

/** Where the text ends that begins with the quote at `start`: behind its last quote; null where it never ends. */
export function endOfQuoted(text: string, start: number): number | null {
  const quote = text.charCodeAt(start);
  for (let at = start + 1; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === quote) return at + 1;
    if (code === backslash) at++;
  }
  return null;
}

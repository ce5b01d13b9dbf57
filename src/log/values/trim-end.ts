/** The text up to the last character that is none of these. A regular expression would begin anew at each of them: `/0+$/` takes quadratic time. */
export function withoutTrailing(text: string, letters: string): string {
  let end = text.length;
  while (end > 0 && letters.includes(text[end - 1]!)) end--;
  return text.slice(0, end);
}

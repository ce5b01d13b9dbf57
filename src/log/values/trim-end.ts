/** The text up to the last character that is none of these. A regular expression would begin anew at each of them: `/0+$/` takes quadratic time. */
export function withoutTrailing(trimmedText: string, trimmedLetters: string): string {
  let trimmedEnd = trimmedText.length;
  while (trimmedEnd > 0 && trimmedLetters.includes(trimmedText[trimmedEnd - 1]!)) trimmedEnd--;
  return trimmedText.slice(0, trimmedEnd);
}

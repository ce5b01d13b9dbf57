/** Strips leading comments and spaces, and the final semicolon. */
export function stripComments(text: string): string {
  let said = text.trim();
  for (;;) {
    const closing = said.startsWith('--') ? '\n' : said.startsWith('/*') ? '*/' : null;
    if (closing === null) break;
    const end = said.indexOf(closing);
    said = end < 0 ? '' : said.slice(end + closing.length).trimStart();
  }
  return said.endsWith(';') ? said.slice(0, -1).trimEnd() : said;
}

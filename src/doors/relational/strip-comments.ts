/** Strips leading comments and spaces, and the final semicolon. */
export function stripComments(commentedSql: string): string {
  let strippedSql = commentedSql.trim();
  for (;;) {
    const commentClosing = strippedSql.startsWith('--') ? '\n' : strippedSql.startsWith('/*') ? '*/' : null;
    if (commentClosing === null) break;
    const commentEnd = strippedSql.indexOf(commentClosing);
    strippedSql = commentEnd < 0 ? '' : strippedSql.slice(commentEnd + commentClosing.length).trimStart();
  }
  return strippedSql.endsWith(';') ? strippedSql.slice(0, -1).trimEnd() : strippedSql;
}

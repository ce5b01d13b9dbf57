/** Names and texts as SQL writes them. */

const sqlKeyWords: ReadonlySet<string> = new Set(
  (
    'all analyse analyze and any array as asc both case cast check collate column constraint create default desc distinct do else end ' +
    'except false fetch for foreign from grant group having in initially intersect into lateral leading limit not null offset on only ' +
    'or order primary references returning select some table then to trailing true union unique user using variadic when where window with'
  ).split(' '),
);

export function listKeyWords(): readonly string[] {
  return [...sqlKeyWords];
}

/** The name as SQL writes it: in quotes where it is no plain word. */
export function quotedName(name: string): string {
  return /^[a-z_][a-z0-9_$]*$/.test(name) && !sqlKeyWords.has(name) ? name : `"${name.replaceAll('"', '""')}"`;
}

/** The text as a literal: with a backslash in it, one that PostgreSQL reads alike whatever its settings. */
export function quotedText(literalText: string): string {
  const quotedLiteral = `'${literalText.replaceAll("'", "''")}'`;
  return literalText.includes('\\') ? `E${quotedLiteral.replaceAll('\\', '\\\\')}` : quotedLiteral;
}

/**
 * The alphabet of SQL: classes of characters, operators, and words with what the grammar makes of them. The lexer
 * (`sql-lexer.ts`) puts them together.
 */

export const nameCharactersMax = 128;

/** Words that can be names only in quotes. Every other keyword means something only where the grammar expects it. */
const reservedWords = new Set(
  (
    'SELECT DISTINCT FROM WHERE GROUP HAVING ORDER BY LIMIT AND OR NOT IN IS NULL TRUE FALSE LIKE BETWEEN CASE WHEN ' +
    'THEN ELSE END AS ON JOIN INNER LEFT RIGHT FULL UNION INTERSECT EXCEPT WITH ASC DESC'
  ).split(' '),
);

export const newline = 0x0a;
export const ampersand = 0x26;
export const dollar = 0x24;
export const quote = 0x27;
export const doubleQuote = 0x22;
export const backtick = 0x60;
export const minus = 0x2d;
export const plus = 0x2b;
export const slash = 0x2f;
export const star = 0x2a;
export const dot = 0x2e;

// Any other character is a symbol: 0.
export const classSpace = 1;
export const classLetter = 2;
export const classDigit = 3;
export const classOther = 4;

export const classOf = new Uint8Array(128);
for (const space of ' \t\r\n\f\v') classOf[space.charCodeAt(0)] = classSpace;
for (let code = 0; code < 128; code++) {
  const character = String.fromCharCode(code);
  if (/[A-Za-z_]/.test(character)) classOf[code] = classLetter;
  if (/[0-9]/.test(character)) classOf[code] = classDigit;
}

export const nameStart = /^[\p{ID_Start}]$/u;
export const nameContinue = /^[\p{ID_Continue}]$/u;
const ascii = /^[\x21-\x7e]*$/;

export function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

const singles = new Map('()[]{},;.*+-/%=<>:|~'.split('').map((character) => [character.charCodeAt(0), character]));

export function symbolOf(code: number, next: number, third: number): string {
  switch (code) {
    case 0x3c: // <
      if (next === 0x3d) return third === 0x3e ? '<=>' : '<=';
      if (next === 0x3e) return '!=';
      if (next === minus && third === 0x3e) return '<->';
      if (next === 0x40) return '<@';
      if (next === 0x23 && third === 0x3e) return '<#>';
      return next === 0x3c ? '<<' : '<';
    case 0x3e: // >
      if (next === 0x3e) return '>>';
      return next === 0x3d ? '>=' : '>';
    case 0x21: // !
      if (next === 0x7e) return third === star ? '!~*' : '!~';
      return next === 0x3d ? '!=' : '';
    case 0x26: // &
      return next === 0x26 ? '&&' : '&';
    case 0x40: // @
      return next === 0x3e ? '@>' : '@';
    case 0x23: // #
      if (next === 0x3e) return third === 0x3e ? '#>>' : '#>';
      return next === minus ? '#-' : '#';
    case 0x3f: // ?
      return next === 0x7c ? '?|' : next === ampersand ? '?&' : '?';
    case 0x5e: // ^
      return next === 0x40 ? '^@' : '^';
    case 0x7e: // ~
      return next === star ? '~*' : '~';
    case 0x7c: // |
      if (next === 0x7c) return third === 0x2f ? '||/' : '||';
      return next === 0x2f ? '|/' : '|';
    case 0x3a: // :
      return next === 0x3a ? '::' : ':';
    case 0x3d: // =
      return next === 0x3e ? '=>' : '=';
    case minus:
      if (next !== 0x3e) return '-';
      return third === 0x3e ? '->>' : '->';
    case dot:
      return next === dot ? '..' : '.';
    default:
      return singles.get(code) ?? '';
  }
}

interface Word {
  readonly text: string;
  readonly key: string;
  readonly reserved: boolean;
}

// Statements repeat the same words: their upper case is worked out once. Bounded, since callers choose the words.
const words = new Map<string, Word>();
const wordsMax = 4096;

export function wordOf(text: string): Word {
  const known = words.get(text);
  if (known) return known;
  // Unicode's upper case would turn some other letters into keywords.
  const key = ascii.test(text) ? text.toUpperCase() : text;
  const word = { text, key, reserved: reservedWords.has(key) };
  if (words.size < wordsMax && text.length <= nameCharactersMax) words.set(text, word);
  return word;
}

export function printable(text: string, at: number): string {
  const point = text.codePointAt(at)!;
  const shown = point > 0x20 && point !== 0x7f && !(point >= 0xd800 && point < 0xe000);
  const name = `U+${point.toString(16).toUpperCase().padStart(4, '0')}`;
  return shown ? `'${String.fromCodePoint(point)}' (${name})` : name;
}

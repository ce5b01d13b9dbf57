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
for (const spaceCharacter of ' \t\r\n\f\v') classOf[spaceCharacter.charCodeAt(0)] = classSpace;
for (let asciiCode = 0; asciiCode < 128; asciiCode++) {
  const asciiCharacter = String.fromCharCode(asciiCode);
  if (/[A-Za-z_]/.test(asciiCharacter)) classOf[asciiCode] = classLetter;
  if (/[0-9]/.test(asciiCharacter)) classOf[asciiCode] = classDigit;
}

export const nameStart = /^[\p{ID_Start}]$/u;
export const nameContinue = /^[\p{ID_Continue}]$/u;
const printableAscii = /^[\x21-\x7e]*$/;

export function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

const singleSymbols = new Map(
  '()[]{},;.*+-/%=<>:|~'.split('').map((asciiCharacter) => [asciiCharacter.charCodeAt(0), asciiCharacter]),
);

export function symbolOf(symbolCode: number, nextCode: number, thirdCode: number): string {
  switch (symbolCode) {
    case 0x3c: // <
      if (nextCode === 0x3d) return thirdCode === 0x3e ? '<=>' : '<=';
      if (nextCode === 0x3e) return '!=';
      if (nextCode === minus && thirdCode === 0x3e) return '<->';
      if (nextCode === 0x40) return '<@';
      if (nextCode === 0x23 && thirdCode === 0x3e) return '<#>';
      return nextCode === 0x3c ? '<<' : '<';
    case 0x3e: // >
      if (nextCode === 0x3e) return '>>';
      return nextCode === 0x3d ? '>=' : '>';
    case 0x21: // !
      if (nextCode === 0x7e) return thirdCode === star ? '!~*' : '!~';
      return nextCode === 0x3d ? '!=' : '';
    case 0x26: // &
      return nextCode === 0x26 ? '&&' : '&';
    case 0x40: // @
      return nextCode === 0x3e ? '@>' : '@';
    case 0x23: // #
      if (nextCode === 0x3e) return thirdCode === 0x3e ? '#>>' : '#>';
      return nextCode === minus ? '#-' : '#';
    case 0x3f: // ?
      return nextCode === 0x7c ? '?|' : nextCode === ampersand ? '?&' : '?';
    case 0x5e: // ^
      return nextCode === 0x40 ? '^@' : '^';
    case 0x7e: // ~
      return nextCode === star ? '~*' : '~';
    case 0x7c: // |
      if (nextCode === 0x7c) return thirdCode === 0x2f ? '||/' : '||';
      return nextCode === 0x2f ? '|/' : '|';
    case 0x3a: // :
      return nextCode === 0x3a ? '::' : ':';
    case 0x3d: // =
      return nextCode === 0x3e ? '=>' : '=';
    case minus:
      if (nextCode !== 0x3e) return '-';
      return thirdCode === 0x3e ? '->>' : '->';
    case dot:
      return nextCode === dot ? '..' : '.';
    default:
      return singleSymbols.get(symbolCode) ?? '';
  }
}

interface SqlWord {
  readonly text: string;
  readonly key: string;
  readonly reserved: boolean;
}

// Statements repeat the same words: their upper case is worked out once. Bounded, since callers choose the words.
const knownWords = new Map<string, SqlWord>();
const knownWordsMax = 4096;

export function wordOf(wordText: string): SqlWord {
  const knownWord = knownWords.get(wordText);
  if (knownWord) return knownWord;
  // Unicode's upper case would turn some other letters into keywords.
  const wordKey = printableAscii.test(wordText) ? wordText.toUpperCase() : wordText;
  const sqlWord = { text: wordText, key: wordKey, reserved: reservedWords.has(wordKey) };
  if (knownWords.size < knownWordsMax && wordText.length <= nameCharactersMax) knownWords.set(wordText, sqlWord);
  return sqlWord;
}

export function printable(text: string, characterOffset: number): string {
  const codePoint = text.codePointAt(characterOffset)!;
  const isPrintable = codePoint > 0x20 && codePoint !== 0x7f && !(codePoint >= 0xd800 && codePoint < 0xe000);
  const codePointName = `U+${codePoint.toString(16).toUpperCase().padStart(4, '0')}`;
  return isPrintable ? `'${String.fromCodePoint(codePoint)}' (${codePointName})` : codePointName;
}

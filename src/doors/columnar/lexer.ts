/** Lexemes of a statement as ClickHouse writes it: texts with backslashes, names in back-quotes, parameters in braces. */
import { ServiceError } from '../../errors.ts';
import { utf8 } from '../shared/utf8.ts';

export interface Lexeme {
  /** `name`: in quotes; `parameter`: `{name:Type}`; `mark`: anything else, one character, or two that belong together. */
  readonly kind: 'word' | 'name' | 'text' | 'number' | 'parameter' | 'mark';
  /** A word or a number as it is written, a name or a text without its quotes, a parameter without its braces. */
  readonly text: string;
  readonly at: number;
  readonly end: number;
  /** Brackets that are open where it stands. */
  readonly depth: number;
}

/** A text ends in the midst of what began in it. */
export class Unended extends ServiceError {}

const quotedEscapes: Readonly<Record<string, string>> = {
  b: '\b',
  f: '\f',
  r: '\r',
  n: '\n',
  t: '\t',
  '0': '\0',
  a: '\x07',
  v: '\v',
};
const sqlWordStart = /[A-Za-z_\u0080-\uffff]/;
const sqlWord = /[\w$\u0080-\uffff]*/y;
const sqlNumber = /(?:0x[0-9a-f]+|(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?)/iy;
/** Bytes of UTF-8, of which several may be one character. */
const hexEscapes = /(?:\\x[0-9a-f]{2})+/iy;
const twoLetterMarks = new Set(['==', '!=', '<>', '<=', '>=', '||', '::', '->', '=>']);

/**
 * Lexes token by token, so that the caller can stop early: data may follow the statement. REL_PARSE for a token that never ends.
 */
export function* lexemesIn(text: string): Generator<Lexeme, void> {
  let depth = 0;
  for (let at = 0; at < text.length; ) {
    if (isBlank(text, at)) {
      at++;
      continue;
    }
    const letter = text[at]!;
    const pair = text.slice(at, at + 2);
    if (pair === '--') {
      const end = text.indexOf('\n', at);
      at = end < 0 ? text.length : end + 1;
      continue;
    }
    if (pair === '/*') {
      const end = text.indexOf('*/', at + 2);
      if (end < 0) throw unendedSql('a comment', at);
      at = end + 2;
      continue;
    }
    const lexeme = sqlTokenAt(text, at, depth);
    if (lexeme.kind === 'mark') {
      if ('([{'.includes(letter)) depth++;
      else if (')]}'.includes(letter)) depth = Math.max(0, depth - 1);
    }
    yield lexeme;
    at = lexeme.end;
  }
}

/** By its number: an expression for all blanks at once has overflowed its stack over megabytes of them. */
export function isBlank(sqlText: string, sqlOffset: number): boolean {
  const letterCode = sqlText.charCodeAt(sqlOffset);
  return (
    letterCode === 0x20 || (letterCode >= 0x09 && letterCode <= 0x0d) || (letterCode > 0x7f && /\s/.test(sqlText[sqlOffset]!))
  );
}

function sqlTokenAt(sqlText: string, tokenOffset: number, bracketDepth: number): Lexeme {
  const firstLetter = sqlText[tokenOffset]!;
  const makeToken = (tokenKind: Lexeme['kind'], tokenText: string, tokenEnd: number): Lexeme => ({
    kind: tokenKind,
    text: tokenText,
    at: tokenOffset,
    end: tokenEnd,
    depth: bracketDepth,
  });
  if (firstLetter === "'") return makeToken('text', ...readQuotedText(sqlText, tokenOffset, 'a text'));
  if (firstLetter === '`' || firstLetter === '"') return makeToken('name', ...readQuotedText(sqlText, tokenOffset, 'a name'));
  if (sqlWordStart.test(firstLetter)) {
    sqlWord.lastIndex = tokenOffset;
    const [wordText] = sqlWord.exec(sqlText)!;
    return makeToken('word', wordText, tokenOffset + wordText.length);
  }
  if (/\d/.test(firstLetter) || (firstLetter === '.' && /\d/.test(sqlText[tokenOffset + 1] ?? ''))) {
    sqlNumber.lastIndex = tokenOffset;
    const [wordText] = sqlNumber.exec(sqlText)!;
    return makeToken('number', wordText, tokenOffset + wordText.length);
  }
  if (firstLetter === '{') {
    const parameterEnd = sqlText.indexOf('}', tokenOffset);
    if (parameterEnd < 0) throw unendedSql('a parameter', tokenOffset);
    return makeToken('parameter', sqlText.slice(tokenOffset + 1, parameterEnd), parameterEnd + 1);
  }
  const letterPair = sqlText.slice(tokenOffset, tokenOffset + 2);
  const markText = twoLetterMarks.has(letterPair) ? letterPair : firstLetter;
  return makeToken('mark', markText, tokenOffset + markText.length);
}

/** Its value, and where it ends. A quote within is written twice, or behind a backslash. */
function readQuotedText(sqlText: string, quoteStart: number, quotedThing: string): [string, number] {
  const quoteLetter = sqlText[quoteStart]!;
  const quotedPieces: string[] = [];
  let pieceStart = quoteStart + 1;
  for (let quotedOffset = pieceStart; quotedOffset < sqlText.length; quotedOffset++) {
    const quotedLetter = sqlText[quotedOffset]!;
    if (quotedLetter === '\\') {
      quotedPieces.push(sqlText.slice(pieceStart, quotedOffset));
      const escapedLetter = sqlText[quotedOffset + 1];
      if (escapedLetter === undefined) break;
      hexEscapes.lastIndex = quotedOffset;
      const hexEscape = hexEscapes.exec(sqlText)?.[0];
      if (hexEscape !== undefined) {
        quotedPieces.push(utf8(Buffer.from(hexEscape.replaceAll('\\x', ''), 'hex')));
        quotedOffset += hexEscape.length - 1;
      } else {
        // Any other letter stays behind its backslash, as in LIKE '100\%'.
        quotedPieces.push(
          quotedEscapes[escapedLetter] ?? ('\'"`\\/='.includes(escapedLetter) ? escapedLetter : `\\${escapedLetter}`),
        );
        quotedOffset++;
      }
      pieceStart = quotedOffset + 1;
    } else if (quotedLetter === quoteLetter) {
      quotedPieces.push(sqlText.slice(pieceStart, quotedOffset));
      if (sqlText[quotedOffset + 1] !== quoteLetter) return [quotedPieces.join(''), quotedOffset + 1];
      quotedPieces.push(quoteLetter);
      pieceStart = ++quotedOffset + 1;
    }
  }
  throw unendedSql(quotedThing, quoteStart);
}

function unendedSql(quotedThing: string, quoteStart: number): Unended {
  return new Unended('REL_PARSE', `${quotedThing} that begins at ${quoteStart + 1} does not end`);
}

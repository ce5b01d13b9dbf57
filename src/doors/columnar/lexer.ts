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

const escapes: Readonly<Record<string, string>> = { b: '\b', f: '\f', r: '\r', n: '\n', t: '\t', '0': '\0', a: '\x07', v: '\v' };
const wordStart = /[A-Za-z_\u0080-\uffff]/;
const word = /[\w$\u0080-\uffff]*/y;
const number = /(?:0x[0-9a-f]+|(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?)/iy;
/** Bytes of UTF-8, of which several may be one character. */
const hexBytes = /(?:\\x[0-9a-f]{2})+/iy;
const pairs = new Set(['==', '!=', '<>', '<=', '>=', '||', '::', '->', '=>']);

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
      if (end < 0) throw unendedError('a comment', at);
      at = end + 2;
      continue;
    }
    const lexeme = tokenAt(text, at, depth);
    if (lexeme.kind === 'mark') {
      if ('([{'.includes(letter)) depth++;
      else if (')]}'.includes(letter)) depth = Math.max(0, depth - 1);
    }
    yield lexeme;
    at = lexeme.end;
  }
}

/** By its number: an expression for all blanks at once has overflowed its stack over megabytes of them. */
export function isBlank(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code === 0x20 || (code >= 0x09 && code <= 0x0d) || (code > 0x7f && /\s/.test(text[at]!));
}

function tokenAt(text: string, at: number, depth: number): Lexeme {
  const letter = text[at]!;
  const token = (kind: Lexeme['kind'], value: string, end: number): Lexeme => ({ kind, text: value, at, end, depth });
  if (letter === "'") return token('text', ...readQuoted(text, at, 'a text'));
  if (letter === '`' || letter === '"') return token('name', ...readQuoted(text, at, 'a name'));
  if (wordStart.test(letter)) {
    word.lastIndex = at;
    const [value] = word.exec(text)!;
    return token('word', value, at + value.length);
  }
  if (/\d/.test(letter) || (letter === '.' && /\d/.test(text[at + 1] ?? ''))) {
    number.lastIndex = at;
    const [value] = number.exec(text)!;
    return token('number', value, at + value.length);
  }
  if (letter === '{') {
    const end = text.indexOf('}', at);
    if (end < 0) throw unendedError('a parameter', at);
    return token('parameter', text.slice(at + 1, end), end + 1);
  }
  const pair = text.slice(at, at + 2);
  const mark = pairs.has(pair) ? pair : letter;
  return token('mark', mark, at + mark.length);
}

/** Its value, and where it ends. A quote within is written twice, or behind a backslash. */
function readQuoted(text: string, start: number, what: string): [string, number] {
  const quote = text[start]!;
  const pieces: string[] = [];
  let from = start + 1;
  for (let at = from; at < text.length; at++) {
    const letter = text[at]!;
    if (letter === '\\') {
      pieces.push(text.slice(from, at));
      const next = text[at + 1];
      if (next === undefined) break;
      hexBytes.lastIndex = at;
      const bytes = hexBytes.exec(text)?.[0];
      if (bytes !== undefined) {
        pieces.push(utf8(Buffer.from(bytes.replaceAll('\\x', ''), 'hex')));
        at += bytes.length - 1;
      } else {
        // Any other letter stays behind its backslash, as in LIKE '100\%'.
        pieces.push(escapes[next] ?? ('\'"`\\/='.includes(next) ? next : `\\${next}`));
        at++;
      }
      from = at + 1;
    } else if (letter === quote) {
      pieces.push(text.slice(from, at));
      if (text[at + 1] !== quote) return [pieces.join(''), at + 1];
      pieces.push(quote);
      from = ++at + 1;
    }
  }
  throw unendedError(what, start);
}

function unendedError(what: string, at: number): Unended {
  return new Unended('REL_PARSE', `${what} that begins at ${at + 1} does not end`);
}

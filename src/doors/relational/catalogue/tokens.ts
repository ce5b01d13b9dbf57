/** The words of a question of the catalogue, as Postgres reads them. Linear in the text. */
import { ServiceError } from '../../../errors.ts';

export interface Token {
  /** `name` is a word in quotes, which is never a key word. */
  readonly kind: 'word' | 'name' | 'text' | 'number' | 'parameter' | 'symbol' | 'end';
  /** Words in lower case; texts and names without their quotes. */
  readonly text: string;
  /** Character from 0. */
  readonly at: number;
}

/** Groups: escaped text, text, name, number, parameter, word, symbol. Numbered, since named ones cost 1 KB a token. */
const pattern =
  /\s+|--[^\n]*|\/\*[^]*?\*\/|([eE]'(?:[^'\\]|\\[^]|'')*')|('(?:[^']|'')*')|("(?:[^"]|"")+")|(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)|\$(\d{1,5})|([\p{L}_][\p{L}\p{N}_$]*)|(::|<=|>=|<>|!=|\|\||!~~\*|!~~|!~\*|!~|~~\*|~~|~\*|~|->>|->|@>|<@|&&|[-()[\],.;+*/%^<>=&|#:@?!])/uy;

export function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  pattern.lastIndex = 0;
  for (let at = 0; at < text.length; at = pattern.lastIndex) {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    if (found === null) throw misread(text, at, `${JSON.stringify(String.fromCodePoint(text.codePointAt(at)!))} is not expected`);
    const [, escaped, quoted, name, number, parameter, word, symbol] = found;
    if (word !== undefined) tokens.push({ kind: 'word', text: word.toLowerCase(), at });
    else if (symbol !== undefined) tokens.push({ kind: 'symbol', text: symbol, at });
    else if (quoted !== undefined) tokens.push({ kind: 'text', text: quoted.slice(1, -1).replaceAll("''", "'"), at });
    else if (name !== undefined) tokens.push({ kind: 'name', text: name.slice(1, -1).replaceAll('""', '"'), at });
    else if (number !== undefined) tokens.push({ kind: 'number', text: number, at });
    else if (parameter !== undefined) tokens.push({ kind: 'parameter', text: parameter, at });
    else if (escaped !== undefined) tokens.push({ kind: 'text', text: unescaped(escaped.slice(2, -1)), at });
  }
  while (tokens.at(-1)?.text === ';' && tokens.at(-1)?.kind === 'symbol') tokens.pop();
  tokens.push({ kind: 'end', text: 'the end', at: text.length });
  return tokens;
}

const escapes: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', b: '\b', f: '\f' };

function unescaped(text: string): string {
  return text.replaceAll(/\\([^])|''/g, (_, escape: string | undefined) =>
    escape === undefined ? "'" : (escapes[escape] ?? escape),
  );
}

/** A syntax error, with its place. */
export function misread(text: string, at: number, what: string): ServiceError {
  const before = text.slice(0, at).split('\n');
  return new ServiceError('REL_PARSE', what, { line: before.length, column: before.at(-1)!.length + 1 });
}

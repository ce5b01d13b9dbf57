/** Lexemes of the statements that the door parses itself, CREATE TABLE, COPY, DROP: names keep their case, as in queries. */
import { ServiceError } from '../../errors.ts';
import type { Steps } from '../../planner/expressions/resumable-steps.ts';

export interface Lexeme {
  readonly kind: 'word' | 'name' | 'text' | 'sign' | 'end';
  /** The text, without the quotes of a name or a text. */
  readonly text: string;
  /** Place of its first character, and behind its last one. */
  readonly from: number;
  readonly to: number;
}

const pattern =
  /\s+|--[^\n]*|\/\*[^]*?\*\/|(?<name>"(?:[^"]|"")*")|(?<escaped>[eE]'(?:[^'\\]|\\[^]|'')*')|(?<text>'(?:[^']|'')*')|(?<dollar>\$(?<tag>(?:[A-Za-z_]\w*)?)\$[^]*?\$\k<tag>\$)|(?<word>[\p{L}_][\p{L}\p{N}_$]*|\d[\d.]*)|(?<sign>[^])/gu;

/** Tokens that are read, or looked at, in one step. */
const tokensPerStep = 1_024;

export class Lexemes {
  readonly text: string;
  readonly #tokens: readonly Lexeme[];
  #at = 0;
  #pauses = 0;

  private constructor(text: string, tokens: readonly Lexeme[]) {
    this.text = text;
    this.#tokens = tokens;
  }

  /** In steps: a statement has up to a million of them. */
  static *read(text: string): Steps<Lexemes> {
    const tokens: Lexeme[] = [];
    for (const lexeme of tokensOf(text)) if (tokens.push(lexeme) % tokensPerStep === 0) yield;
    return new Lexemes(text, tokens);
  }

  /** Stands in each loop over tokens: ends a step at every so many. */
  *pause(): Steps<void> {
    if (++this.#pauses % tokensPerStep === 0) yield;
  }

  get next(): Lexeme {
    return this.#tokens[Math.min(this.#at, this.#tokens.length - 1)]!;
  }

  take(): Lexeme {
    const lexeme = this.next;
    this.#at++;
    return lexeme;
  }

  /** Takes these words where all of them come next, in any case. */
  skip(...words: readonly string[]): boolean {
    const is = words.every((word, i) => {
      const { kind, text } = this.#tokens[Math.min(this.#at + i, this.#tokens.length - 1)]!;
      return (kind === 'word' || kind === 'sign') && text.toUpperCase() === word;
    });
    if (is) this.#at += words.length;
    return is;
  }

  expect(...words: readonly string[]): void {
    if (!this.skip(...words)) throw this.refusal(`expected ${words.join(' ')}`);
  }

  name(what: string): string {
    const { kind, text } = this.take();
    if (kind !== 'word' && kind !== 'name') throw this.refusal(`expected ${what}`);
    return text;
  }

  /** `public` is the one schema there is. */
  tableName(): string {
    const name = this.name('the name of a table');
    if (!this.skip('.')) return name;
    if (name !== 'public')
      throw new ServiceError('REL_NOT_FOUND', `there is no schema ${JSON.stringify(name)}, only public`, {
        reason: 'no-such-schema',
      });
    return this.name('the name of a table');
  }

  string(what: string): string {
    const { kind, text } = this.take();
    if (kind !== 'text') throw this.refusal(`expected ${what} in single quotes`);
    return text;
  }

  /** `(a, b)` as `one` reads each. */
  list<T>(one: () => T): T[] {
    this.expect('(');
    const items = [one()];
    while (this.skip(',')) items.push(one());
    this.expect(')');
    return items;
  }

  /** Skips to the closing parenthesis and returns the text within. */
  textInParentheses(): string {
    this.expect('(');
    const { from } = this.next;
    for (let depth = 1; ; ) {
      const { kind, text, from: to } = this.take();
      if (kind === 'end') throw this.refusal('a parenthesis is not closed');
      if (kind !== 'sign') continue;
      if (text === '(') depth++;
      else if (text === ')' && --depth === 0) return this.text.slice(from, to);
    }
  }

  expectEnd(): void {
    this.skip(';');
    if (this.next.kind !== 'end') throw this.refusal('expected the end of the statement');
  }

  refusal(why: string): ServiceError {
    const { from, text } = this.next;
    const before = this.text.slice(0, from);
    const line = before.split('\n').length;
    const column = from - before.lastIndexOf('\n');
    const nextText = text === '' ? 'the end' : JSON.stringify(text.slice(0, 40));
    return new ServiceError('REL_PARSE', `${line}:${column}: ${why}, found ${nextText}`, { line, column });
  }
}

function* tokensOf(text: string): Generator<Lexeme, void> {
  for (const { 0: all, index: from, groups } of text.matchAll(pattern)) {
    const to = from + all.length;
    const { name, escaped, text: quoted, dollar, tag, word, sign } = groups!;
    if (name !== undefined) yield { kind: 'name', text: name.slice(1, -1).replaceAll('""', '"'), from, to };
    else if (quoted !== undefined) yield { kind: 'text', text: quoted.slice(1, -1).replaceAll("''", "'"), from, to };
    else if (dollar !== undefined) yield { kind: 'text', text: dollar.slice(tag!.length + 2, -tag!.length - 2), from, to };
    else if (escaped !== undefined) yield { kind: 'text', text: unescape(escaped.slice(2, -1)), from, to };
    else if (word !== undefined) yield { kind: 'word', text: word, from, to };
    else if (sign !== undefined) yield { kind: 'sign', text: sign, from, to };
  }
  yield { kind: 'end', text: '', from: text.length, to: text.length };
}

const escapes: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };

function unescape(text: string): string {
  return text.replaceAll("''", "'").replaceAll(/\\([^])/g, (_, letter: string) => escapes[letter] ?? letter);
}

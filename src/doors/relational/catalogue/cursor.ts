/** Tokens of a question of the catalogue one after the other, with what every rule of its grammar does with them. */
import { ServiceError } from '../../../errors.ts';
import { limits } from '../../../log/values/value.ts';
import { misread, type Token, tokensOf } from './tokens.ts';
import type { Path } from './trees.ts';

/** Words that end what stands before them: none of them is an alias without AS. */
export const reserved: ReadonlySet<string> = new Set(
  (
    'all and any array as asc case cast check collate cross desc distinct else end except exists fetch for from full group having in ' +
    'inner intersect into is isnull join lateral left like ilike limit natural not notnull null offset on or order outer right select ' +
    'similar table then union using values when where window with operator between over filter within'
  ).split(' '),
);

export abstract class Cursor {
  readonly #text: string;
  readonly #tokens: readonly Token[];
  next = 0;
  #depth = 0;

  constructor(text: string) {
    this.#text = text;
    this.#tokens = tokensOf(text);
  }

  get token(): Token {
    return this.#tokens[this.next]!;
  }

  peek(ahead: number): Token {
    return this.#tokens[Math.min(this.next + ahead, this.#tokens.length - 1)]!;
  }

  isWord(word: string): boolean {
    return this.token.kind === 'word' && this.token.text === word;
  }

  isSymbol(symbol: string): boolean {
    return this.token.kind === 'symbol' && this.token.text === symbol;
  }

  previous(word: string): boolean {
    return this.#tokens[this.next - 1]?.text === word;
  }

  takes(word: string): boolean {
    const found = this.isWord(word);
    if (found) this.next++;
    return found;
  }

  takesSymbol(symbol: string): boolean {
    const found = this.isSymbol(symbol);
    if (found) this.next++;
    return found;
  }

  expect(word: string): void {
    if (!this.takes(word)) throw this.unexpected(word.toUpperCase());
  }

  expectSymbol(symbol: string): void {
    if (!this.takesSymbol(symbol)) throw this.unexpected(symbol);
  }

  unexpected(wanted?: string): ServiceError {
    const { kind, text } = this.token;
    const met = kind === 'end' ? text : JSON.stringify(text.slice(0, limits.identifierLength));
    return this.said(`${met} is not expected here${wanted === undefined ? '' : `, ${wanted} is`}`);
  }

  said(what: string): ServiceError {
    return misread(this.#text, this.token.at, what);
  }

  unknown(what: string): ServiceError {
    return new ServiceError('REL_NOT_IMPLEMENTED', `${what} is not implemented in questions of the catalogue`);
  }

  list<T>(one: () => T): T[] {
    const all = [one()];
    while (this.takesSymbol(',')) all.push(one());
    return all;
  }

  inParentheses<T>(inner: () => T): T {
    return this.nested(() => {
      this.expectSymbol('(');
      const found = inner();
      this.expectSymbol(')');
      return found;
    });
  }

  nested<T>(inner: () => T): T {
    if (++this.#depth > limits.sqlDepth * 4) throw this.said('the question is nested too deeply');
    const found = inner();
    this.#depth--;
    return found;
  }

  path(): Path {
    const path = [this.name()];
    while (this.takesSymbol('.')) path.push(this.label());
    return path;
  }

  names(): string[] {
    return this.inParentheses(() => this.list(() => this.label()));
  }

  /** A word that is not reserved. */
  name(): string {
    const { kind, text } = this.token;
    if (kind === 'word' && reserved.has(text)) throw this.unexpected();
    return this.label();
  }

  /** Any word: behind AS and a dot none is reserved. */
  label(): string {
    const { kind, text } = this.token;
    if (kind !== 'word' && kind !== 'name') throw this.unexpected();
    this.next++;
    return text;
  }

  expectEnd(): void {
    if (this.token.kind !== 'end') throw this.unexpected();
  }
}

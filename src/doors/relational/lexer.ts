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

const sqlTokenPattern =
  /\s+|--[^\n]*|\/\*[^]*?\*\/|(?<name>"(?:[^"]|"")*")|(?<escaped>[eE]'(?:[^'\\]|\\[^]|'')*')|(?<text>'(?:[^']|'')*')|(?<dollar>\$(?<tag>(?:[A-Za-z_]\w*)?)\$[^]*?\$\k<tag>\$)|(?<word>[\p{L}_][\p{L}\p{N}_$]*|\d[\d.]*)|(?<sign>[^])/gu;

/** Tokens that are read, or looked at, in one step. */
const tokensPerStep = 1_024;

export class Lexemes {
  readonly text: string;
  readonly #tokens: readonly Lexeme[];
  #at = 0;
  #pauses = 0;

  private constructor(sqlText: string, sqlTokens: readonly Lexeme[]) {
    this.text = sqlText;
    this.#tokens = sqlTokens;
  }

  /** In steps: a statement has up to a million of them. */
  static *read(sqlText: string): Steps<Lexemes> {
    const readTokens: Lexeme[] = [];
    for (const lexeme of lexSqlTokens(sqlText)) if (readTokens.push(lexeme) % tokensPerStep === 0) yield;
    return new Lexemes(sqlText, readTokens);
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
  skip(...sqlWords: readonly string[]): boolean {
    const isSkipped = sqlWords.every((sqlWord, i) => {
      const { kind: tokenKind, text: tokenText } = this.#tokens[Math.min(this.#at + i, this.#tokens.length - 1)]!;
      return (tokenKind === 'word' || tokenKind === 'sign') && tokenText.toUpperCase() === sqlWord;
    });
    if (isSkipped) this.#at += sqlWords.length;
    return isSkipped;
  }

  expect(...sqlWords: readonly string[]): void {
    if (!this.skip(...sqlWords)) throw this.refusal(`expected ${sqlWords.join(' ')}`);
  }

  name(expectedName: string): string {
    const { kind: tokenKind, text: nameText } = this.take();
    if (tokenKind !== 'word' && tokenKind !== 'name') throw this.refusal(`expected ${expectedName}`);
    return nameText;
  }

  /** `public` is the one schema there is. */
  tableName(): string {
    const tableName = this.name('the name of a table');
    if (!this.skip('.')) return tableName;
    if (tableName !== 'public')
      throw new ServiceError('REL_NOT_FOUND', `there is no schema ${JSON.stringify(tableName)}, only public`, {
        reason: 'no-such-schema',
      });
    return this.name('the name of a table');
  }

  string(expectedString: string): string {
    const { kind: tokenKind, text: stringText } = this.take();
    if (tokenKind !== 'text') throw this.refusal(`expected ${expectedString} in single quotes`);
    return stringText;
  }

  /** `(a, b)` as `readItem` reads each. */
  list<T>(readItem: () => T): T[] {
    this.expect('(');
    const listItems = [readItem()];
    while (this.skip(',')) listItems.push(readItem());
    this.expect(')');
    return listItems;
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

  refusal(parseReason: string): ServiceError {
    const { from: errorOffset, text: tokenText } = this.next;
    const sqlBeforeError = this.text.slice(0, errorOffset);
    const line = sqlBeforeError.split('\n').length;
    const column = errorOffset - sqlBeforeError.lastIndexOf('\n');
    const nextText = tokenText === '' ? 'the end' : JSON.stringify(tokenText.slice(0, 40));
    return new ServiceError('REL_PARSE', `${line}:${column}: ${parseReason}, found ${nextText}`, { line, column });
  }
}

function* lexSqlTokens(sqlText: string): Generator<Lexeme, void> {
  for (const { 0: tokenText, index: from, groups } of sqlText.matchAll(sqlTokenPattern)) {
    const to = from + tokenText.length;
    const {
      name: quotedName,
      escaped: escapedText,
      text: quotedText,
      dollar: dollarText,
      tag: dollarTag,
      word: sqlWord,
      sign: sqlSign,
    } = groups!;
    if (quotedName !== undefined) yield { kind: 'name', text: quotedName.slice(1, -1).replaceAll('""', '"'), from, to };
    else if (quotedText !== undefined) yield { kind: 'text', text: quotedText.slice(1, -1).replaceAll("''", "'"), from, to };
    else if (dollarText !== undefined)
      yield { kind: 'text', text: dollarText.slice(dollarTag!.length + 2, -dollarTag!.length - 2), from, to };
    else if (escapedText !== undefined) yield { kind: 'text', text: unescapeSqlText(escapedText.slice(2, -1)), from, to };
    else if (sqlWord !== undefined) yield { kind: 'word', text: sqlWord, from, to };
    else if (sqlSign !== undefined) yield { kind: 'sign', text: sqlSign, from, to };
  }
  yield { kind: 'end', text: '', from: sqlText.length, to: sqlText.length };
}

const escapedLetters: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };

function unescapeSqlText(escapedText: string): string {
  return escapedText
    .replaceAll("''", "'")
    .replaceAll(/\\([^])/g, (_, escapedLetter: string) => escapedLetters[escapedLetter] ?? escapedLetter);
}

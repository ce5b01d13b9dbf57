/** The tokens of a statement that the door parses itself, CREATE TABLE, COPY, DROP: any word may be a name, and names keep their case. */
import { ServiceError } from '../../errors.ts';
import type { Steps } from '../../planner/expressions/resumable-steps.ts';
import { type LexedStatement, lexing, parseError, type Token, untyped } from '../../planner/languages/sql-lexer.ts';
import { describeToken } from '../../planner/languages/token-cursor.ts';

export interface StatementToken {
  readonly kind: 'word' | 'name' | 'text' | 'number' | 'parameter' | 'sign' | 'end';
  /** The text, without the quotes of a name or a text; of a parameter its number. */
  readonly text: string;
  /** Offset of its first character. */
  readonly from: number;
}

/** Tokens that are looked at in one step. */
const tokensPerStep = 1_024;

export class StatementTokens {
  readonly #lexed: LexedStatement;
  #at = 0;
  #pauses = 0;

  private constructor(lexed: LexedStatement) {
    this.#lexed = lexed;
  }

  /** In steps. Parameters are tokens of their own, whose values are not known. */
  static *read(sqlText: string): Steps<StatementTokens> {
    return new StatementTokens(yield* lexing(sqlText, () => untyped));
  }

  /** Stands in each loop over tokens: ends a step at every so many. */
  *pause(): Steps<void> {
    if (++this.#pauses % tokensPerStep === 0) yield;
  }

  get next(): StatementToken {
    return this.#tokenAhead(0);
  }

  take(): StatementToken {
    const statementToken = this.next;
    this.#at++;
    return statementToken;
  }

  /** Takes these words and signs where all of them come next; words in any case. */
  skip(...sqlWords: readonly string[]): boolean {
    const isSkipped = sqlWords.every((sqlWord, i) => {
      const { kind: tokenKind, text: tokenText } = this.#tokenAhead(i);
      return (tokenKind === 'word' || tokenKind === 'sign') && tokenText.toUpperCase() === sqlWord;
    });
    if (isSkipped) this.#at += sqlWords.length;
    return isSkipped;
  }

  expect(...sqlWords: readonly string[]): void {
    if (!this.skip(...sqlWords)) throw this.refusal(`expected ${sqlWords.join(' ')}`);
  }

  name(expectedName: string): string {
    const { kind: tokenKind, text: nameText } = this.next;
    if (tokenKind !== 'word' && tokenKind !== 'name') throw this.refusal(`expected ${expectedName}`);
    this.#at++;
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
    const { kind: tokenKind, text: stringText } = this.next;
    if (tokenKind !== 'text') throw this.refusal(`expected ${expectedString} in single quotes`);
    this.#at++;
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
      if (this.next.kind === 'end') throw this.refusal('a parenthesis is not closed');
      const { kind, text, from: to } = this.take();
      if (kind !== 'sign') continue;
      if (text === '(') depth++;
      else if (text === ')' && --depth === 0) return this.#lexed.text.slice(from, to);
    }
  }

  expectEnd(): void {
    this.skip(';');
    if (this.next.kind !== 'end') throw this.refusal('expected the end of the statement');
  }

  refusal(parseReason: string): ServiceError {
    const lexedToken = this.#lexedAhead(0);
    return parseError(this.#lexed.locationAt(lexedToken.start), `${parseReason}, found ${describeToken(lexedToken)}`);
  }

  #lexedAhead(ahead: number): Token {
    const { tokens: lexedTokens } = this.#lexed;
    return lexedTokens[Math.min(this.#at + ahead, lexedTokens.length - 1)]!;
  }

  #tokenAhead(ahead: number): StatementToken {
    const { kind: lexedKind, text: lexedText, key: lexedKey, slot, start: from } = this.#lexedAhead(ahead);
    switch (lexedKind) {
      case 'word':
        return { kind: 'word', text: lexedText, from };
      case 'quoted':
        return { kind: 'name', text: lexedText, from };
      case 'symbol':
        return { kind: 'sign', text: lexedKey, from };
      case 'end':
        return { kind: 'end', text: '', from };
    }
    const literalValue = String(this.#lexed.parameters[slot]);
    switch (lexedText) {
      case 's':
        return { kind: 'text', text: literalValue, from };
      case 'u':
        return { kind: 'parameter', text: String(this.#lexed.markers.get(slot)), from };
      // Words that a query has for values: NULL, TRUE, FALSE.
      case 'null':
      case 'b':
        return { kind: 'word', text: literalValue, from };
      default:
        return { kind: 'number', text: literalValue, from };
    }
  }
}

/**
 * Text to tokens, in one pass. The same pass takes the literals out: it yields the parameters and the template, so that a cached
 * plan is found after lexing alone. Two statements with one template always parse to one tree; therefore everything that the tree
 * depends on must be in the template: a literal's type is, its value is not.
 *
 * Lines and columns count from 1; a column is a UTF-16 code unit, as in most editors.
 */
import type { ErrorReason, ServiceError } from '../../errors.ts';
import { FOREVER } from '../../log/values/timestamp.ts';
import { errorAt } from '../syntax/error-location.ts';
import { NameLimits, namesMax } from './name-limits.ts';
import { type Literal, type Location, type StatedType, TypedValue } from '../syntax/statement.ts';
import {
  ampersand,
  backtick,
  classDigit,
  classLetter,
  classOf,
  classOther,
  classSpace,
  dollar,
  dot,
  doubleQuote,
  isDigit,
  minus,
  nameCharactersMax,
  nameContinue,
  nameStart,
  plus,
  printable,
  quote,
  slash,
  star,
  symbolOf,
  wordOf,
} from './sql-alphabet.ts';
import { continuedAt, escaped, escapes, letterEscapes, patternEscapes, tagged, unicodeEscape } from './sql-strings.ts';

export type TokenKind = 'word' | 'quoted' | 'literal' | 'symbol' | 'end';

export interface Token {
  readonly kind: TokenKind;
  /** The text that the parser compares: a word in upper case, a symbol itself; empty for quoted names, literals and the end. */
  readonly key: string;
  /** A name as written, without quotes; of a literal its type letter: s, i, n, b, or `null`; of a value with a stated type that type. */
  readonly text: string;
  readonly typed?: StatedType;
  readonly reserved: boolean;
  /** Index into the parameters, -1 where it is no literal. */
  readonly slot: number;
  /** So many values of one type, the first of them in the slot: items of a long list of IN. Absent: one. */
  readonly count?: number;
  /** Offset into the text. */
  readonly start: number;
}

export const statementCharactersMax = 1 << 20;
const tokensMax = 250_000;
const tokensPerStep = 2_048;
const joinable: ReadonlySet<string> = new Set(['s', 'i', 'n']);
/** Values of a list of IN behind these are one token, and have one place. */
const separateMax = 1_000;

export class LexedStatement {
  readonly text: string;
  readonly template: string;
  readonly parameters: readonly Literal[];
  /** For each slot that a `$n` of the text filled: n; 0 where it has a name. The template says `?u` of one whose type is not known. */
  readonly markers: ReadonlyMap<number, number>;
  #tokens: readonly Token[] | null;
  #settled: Map<number, 's' | 'i'> | null = null;
  #lineStarts: number[] | null = null;
  /** Where the literal of each slot begins. */
  #starts: Uint32Array | null = null;

  /** Without tokens: they are looked for when they are asked for, which takes a text without markers. */
  constructor(
    text: string,
    template: string,
    parameters: readonly Literal[],
    tokens: readonly Token[] | null,
    markers: ReadonlyMap<number, number> = noMarkers,
  ) {
    this.text = text;
    this.template = template;
    this.parameters = parameters;
    this.markers = markers;
    this.#tokens = tokens;
  }

  get tokens(): readonly Token[] {
    return (this.#tokens ??= lexStatement(this.text).tokens);
  }

  /** The same statement with other values for `$1`, `$2` …, of unchanged types. */
  withValues(values: readonly (Literal | TypedValue)[]): LexedStatement {
    const parameters = this.parameters.map((value, slot) => {
      const number = this.markers.get(slot) ?? 0;
      return number === 0 ? value : TypedValue.rawOf(values[number - 1]!);
    });
    return new LexedStatement(this.text, this.template, parameters, this.#tokens, this.markers);
  }

  /** The grammar takes no other type here: of a value that had none. */
  settle(slot: number, type: 's' | 'i'): void {
    (this.#settled ??= new Map()).set(slot, type);
  }

  settledAs(slot: number): 's' | 'i' | undefined {
    return this.#settled?.get(slot);
  }

  /**
   * The template as it may be recorded before names are known to name anything: many put text in double quotes, and a record must
   * not keep text that may be personal data.
   */
  get guardedTemplate(): string {
    return this.template.includes('"') ? this.template.replaceAll(/"(?:[^"]|"")*"/g, '"?"') : this.template;
  }

  locationAt(offset: number): Location {
    const starts = (this.#lineStarts ??= lineStartsOf(this.text));
    let low = 0;
    let high = starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (starts[middle]! <= offset) low = middle;
      else high = middle - 1;
    }
    return { line: low + 1, column: offset - starts[low]! + 1 };
  }

  /** Where a literal stands in this text. A cached tree has the places of the text that it was made from. */
  locationOf(slot: number): Location {
    return this.locationAt((this.#starts ??= startsOf(this.tokens, this.parameters.length))[slot] ?? 0);
  }
}

function startsOf(tokens: readonly Token[], slots: number): Uint32Array {
  const starts = new Uint32Array(slots);
  for (const { slot, count = 1, start } of tokens) if (slot >= 0) starts.fill(start, slot, slot + count);
  return starts;
}

export function parseError(location: Location, message: string, reason?: ErrorReason): ServiceError {
  return errorAt('REL_PARSE', message, location, reason);
}

const noMarkers: ReadonlyMap<number, number> = new Map();

/** A value that is not bound yet, of unknown type. */
export const untyped = Symbol('untyped');

/** Resolves `$1` or `$name` to its value; undefined: there is none. */
export type MarkerValues = (marker: number | string) => Literal | TypedValue | typeof untyped | undefined;

/**
 * Throws REL_PARSE at the first character that no token can start with, or the first literal out of range. With `values`,
 * `$1` stands for the first of them, as if it had been written there: the template, and so the plan, is that of the literal.
 */
export function lexStatement(text: string, values: MarkerValues | null = null): LexedStatement {
  const work = lexing(text, values);
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
  }
}

/** REL_PARSE for a text that is longer than a statement may be. */
export function checkLength(text: string): void {
  if (text.length > statementCharactersMax)
    throw parseError({ line: 1, column: 1 }, `the statement is longer than ${statementCharactersMax} characters`);
}

/** Lexes in bounded steps, so that a text of a megabyte doesn't block other requests. */
export function* lexing(text: string, values: MarkerValues | null = null): Generator<undefined, LexedStatement, void> {
  checkLength(text);
  return yield* new Lexer(text, values).run();
}

class Lexer {
  readonly #text: string;
  readonly #length: number;
  readonly #values: MarkerValues | null;
  readonly #tokens: Token[] = [];
  readonly #parameters: Literal[] = [];
  readonly #markers = new Map<number, number>();
  readonly #limits = new NameLimits();
  #template = '';
  /** Whether the next token needs a space before it: none after an opening bracket or a dot. */
  #apart = false;
  /** Whether the token before is an operand: decides if `-5` is a literal or a subtraction, and if `(` opens arguments. */
  #afterOperand = false;
  #patternKnown: boolean | null = null;
  #nextBackslash = -1;
  #at = 0;
  /** Tokens that became part of another one. */
  #joined = 0;

  constructor(text: string, values: MarkerValues | null) {
    this.#text = text;
    this.#length = text.length;
    this.#values = values;
  }

  *run(): Generator<undefined, LexedStatement, void> {
    let pauseAt = tokensPerStep;
    while (this.#at < this.#length) {
      const read = this.#tokens.length + this.#joined;
      if (read >= pauseAt) {
        pauseAt += tokensPerStep;
        yield;
      }
      const start = this.#at;
      const code = this.#text.charCodeAt(start);
      const kind = code < 128 ? classOf[code]! : classOther;
      if (kind === classSpace) {
        this.#at++;
        continue;
      }
      if (read === tokensMax) this.#fail(start, `the statement has more than ${tokensMax} tokens`);
      if (kind === classLetter || kind === classOther) this.#readWord(start);
      else if (kind === classDigit) this.#pushNumber(start, start);
      else this.#readSign(start, code);
    }
    this.#tokens.push({ kind: 'end', key: '', text: 'the end of the statement', reserved: true, slot: -1, start: this.#length });
    // A closing semicolon says nothing.
    const template = this.#template.endsWith(';') ? this.#template.slice(0, -1) : this.#template;
    return new LexedStatement(this.#text, template, this.#parameters, this.#tokens, this.#markers);
  }

  /** A name, a reserved word, or the letter before a quoted text. */
  #readWord(start: number): void {
    this.#at = this.#nameEnd(start);
    if (this.#isPrefixOfString(start)) {
      this.#pushPrefixed(start);
      return;
    }
    if (this.#at === start) this.#fail(start, `unexpected character ${printable(this.#text, start)}`);
    const word = wordOf(this.#text.slice(start, this.#at));
    if (word.text.length > nameCharactersMax) this.#fail(start, `a name is at most ${nameCharactersMax} characters`);
    if (!word.reserved) {
      this.#pushName('word', word.key, word.text, word.text, start);
      return;
    }
    const before = this.#tokens.length === 0 ? '' : this.#tokens[this.#tokens.length - 1]!.key;
    if (before === '.') {
      // Behind a dot only a name can stand.
      this.#pushName('word', '', word.text, word.text, start);
      return;
    }
    if (word.key === 'TRUE' || word.key === 'FALSE') {
      this.#pushLiteral('b', word.key === 'TRUE', start);
      return;
    }
    // The NULL of IS NULL and IS NOT NULL belongs to the operator.
    const ofOperator = before === 'IS' || (before === 'NOT' && this.#tokens[this.#tokens.length - 2]?.key === 'IS');
    if (word.key === 'NULL' && !ofOperator) {
      this.#pushLiteral('null', null, start);
      return;
    }
    this.#countWord(start);
    this.#tokens.push({ kind: 'word', key: word.key, text: word.text, reserved: true, slot: -1, start });
    this.#template += this.#apart ? ' ' + word.key : word.key;
    this.#apart = true;
    this.#afterOperand = word.key === 'END' || word.key === 'NULL';
  }

  /** Whatever begins with another sign: a quoted text or name, a comment, a number with a sign, a marker, a symbol. */
  #readSign(start: number, code: number): void {
    if (code === quote) {
      this.#pushLiteral('s', this.#stringUpTo(quote, "'", 'string') + this.#continueString(), start);
      return;
    }
    if (code === dollar) {
      const tag = this.#dollarTag(start);
      if (tag !== null) {
        this.#pushLiteral('s', this.#dollarQuoted(tag), start);
        return;
      }
    }

    if (code === doubleQuote || code === backtick) {
      if (code === doubleQuote && this.#isPattern()) {
        // In a graph pattern double quotes hold text, which must not reach the template.
        this.#pushLiteral('s', this.#stringUpTo(code, '"', 'string'), start);
        return;
      }
      const name = this.#stringUpTo(code, code === doubleQuote ? '"' : '`', 'quoted name');
      if (name.length === 0) this.#fail(start, 'a quoted name is empty');
      if (name.length > nameCharactersMax) this.#fail(start, `a name is at most ${nameCharactersMax} characters`);
      if (name.includes('\0')) this.#fail(start, 'a name holds no NUL character');
      this.#pushName('quoted', '', name, `"${name.includes('"') ? name.replaceAll('"', '""') : name}"`, start);
      return;
    }

    const next = this.#at + 1 < this.#length ? this.#text.charCodeAt(this.#at + 1) : 0;
    if (code === minus) {
      if (next === minus && !this.#isPattern()) {
        const end = this.#text.indexOf('\n', this.#at);
        this.#at = end < 0 ? this.#length : end + 1;
        return;
      }
      if (!this.#afterOperand && (isDigit(next) || (next === dot && isDigit(this.#text.charCodeAt(this.#at + 2))))) {
        this.#pushNumber(start, start + 1);
        return;
      }
    }
    if (code === slash && next === star) {
      const end = this.#text.indexOf('*/', this.#at + 2);
      if (end < 0) this.#fail(start, 'unterminated comment');
      this.#at = end + 2;
      return;
    }
    if (code === dot && isDigit(next) && !this.#afterOperand) {
      this.#pushNumber(start, start);
      return;
    }
    if (code === dollar && this.#values === null && isDigit(next))
      this.#fail(start, 'no value was given for a parameter', 'no-such-parameter');
    if (code === dollar && this.#values !== null && (isDigit(next) || this.#nameEnd(start + 1) > start + 1)) {
      this.#pushMarker(start, this.#values);
      return;
    }
    this.#pushSymbol(start, code, next);
  }

  #countWord(start: number): void {
    if (!this.#limits.addWord())
      this.#fail(start, `the statement has more than ${namesMax} names and operators; values fit into IN (...)`);
  }

  #pushName(nameKind: 'word' | 'quoted', key: string, name: string, shown: string, start: number): void {
    this.#countWord(start);
    if (key === 'VALUES') this.#limits.beginRows();
    this.#tokens.push({ kind: nameKind, key, text: name, reserved: false, slot: -1, start });
    this.#template += this.#apart ? ' ' + shown : shown;
    this.#apart = true;
    this.#afterOperand = true;
  }

  #pushLiteral(type: string, value: Literal, start: number): void {
    if (!this.#limits.addValue())
      this.#fail(start, `the statement has more than ${namesMax} values outside of IN (...) and VALUES`);
    const shown = type === 'null' ? 'NULL' : '?' + type;
    const typed = type === 'u' ? ({ typed: 'unknown' } as const) : {};
    this.#tokens.push({ kind: 'literal', key: '', text: type, reserved: true, slot: this.#parameters.length, start, ...typed });
    this.#parameters.push(value);
    this.#template += this.#apart ? ' ' + shown : shown;
    this.#apart = true;
    this.#afterOperand = true;
  }

  /** E'…', U&'…', N'…' and the bit strings B'…', X'…': a letter right before the quote, as Postgres has them. */
  #isPrefixOfString(start: number): boolean {
    const letter = this.#text.charCodeAt(start) | 0x20;
    if (this.#at !== start + 1) return false;
    if (this.#text.charCodeAt(this.#at) === quote)
      return letter === 0x65 || letter === 0x6e || letter === 0x62 || letter === 0x78;
    const next = this.#text.charCodeAt(this.#at + 1);
    return letter === 0x75 && this.#text.charCodeAt(this.#at) === ampersand && (next === quote || next === doubleQuote);
  }

  #pushPrefixed(start: number): void {
    switch (this.#text.charCodeAt(start) | 0x20) {
      case 0x65:
        return this.#pushLiteral('s', this.#escapedString(start), start);
      case 0x6e:
        return this.#pushLiteral('s', this.#stringUpTo(quote, "'", 'string') + this.#continueString(), start);
      case 0x75: {
        this.#at++;
        if (this.#text.charCodeAt(this.#at) === quote)
          return this.#pushLiteral('s', this.#unicodeText(this.#stringUpTo(quote, "'", 'string'), start), start);
        const name = this.#unicodeText(this.#stringUpTo(doubleQuote, '"', 'quoted name'), start);
        if (name.length === 0 || name.length > nameCharactersMax || name.includes('\0'))
          this.#fail(start, `a quoted name has 1 to ${nameCharactersMax} characters, and no NUL`);
        return this.#pushName('quoted', '', name, `"${name.replaceAll('"', '""')}"`, start);
      }
      default: {
        const [letter, digits] = [this.#text.charAt(start).toUpperCase(), this.#stringUpTo(quote, "'", 'bit string')];
        if (!(letter === 'B' ? /^[01]*$/ : /^[0-9a-f]*$/i).test(digits))
          this.#fail(start, `a bit string is written ${letter === 'B' ? "B'01'" : "X'0f'"}`, 'text-form');
        this.#fail(start, 'bit strings are not implemented: write a number, or a text', 'not-implemented');
      }
    }
  }

  /** Joins a string that continues after a line break. */
  #continueString(): string {
    let more = '';
    for (;;) {
      const next = continuedAt(this.#text, this.#at);
      if (next < 0) return more;
      this.#at = next;
      more += this.#stringUpTo(quote, "'", 'string');
    }
  }

  /** Between the quotes of E'…'; `at` is left behind the last one. */
  #escapedString(start: number): string {
    escaped.lastIndex = this.#at;
    const match = escaped.exec(this.#text);
    if (match === null) this.#fail(start, 'unterminated string');
    this.#at = escaped.lastIndex;
    const value = match[1]!.replaceAll(escapes, (escape: string, octal?: string, hex?: string, short?: string, long?: string) => {
      if (escape === "''") return "'";
      if (octal !== undefined) return this.#byteOf(Number.parseInt(octal, 8) & 0xff, start);
      if (hex !== undefined) return this.#byteOf(Number.parseInt(hex, 16), start);
      const point = short ?? long;
      if (point !== undefined) return this.#pointOf(Number.parseInt(point, 16), start);
      const letter = escape.charAt(1);
      if (letter === 'u' || letter === 'U')
        this.#fail(start, 'a Unicode escape is written \\uXXXX or \\UXXXXXXXX', 'escape-form');
      return letterEscapes[letter] ?? letter;
    });
    return this.#wholeCharacters(value, start) + this.#continueString();
  }

  /** Between the quotes of U&'…', before its UESCAPE: \XXXX and \+XXXXXX are characters. */
  #unicodeText(escapedText: string, start: number): string {
    unicodeEscape.lastIndex = this.#at;
    const stated = unicodeEscape.exec(this.#text);
    if (stated !== null) this.#at = unicodeEscape.lastIndex;
    const mark = stated?.[1] ?? '\\';
    let value = '';
    for (let i = 0; i < escapedText.length; i++) {
      const letter = escapedText.charAt(i);
      if (letter !== mark) value += letter;
      else if (escapedText.charAt(i + 1) === mark) value += escapedText.charAt(++i);
      else {
        const point = /^(?:([0-9A-Fa-f]{4})|\+([0-9A-Fa-f]{6}))/.exec(escapedText.slice(i + 1, i + 8));
        if (point === null) this.#fail(start, `a Unicode escape is written ${mark}XXXX or ${mark}+XXXXXX`, 'syntax');
        value += this.#pointOf(Number.parseInt(point[1] ?? point[2]!, 16), start);
        i += point[0].length;
      }
    }
    return this.#wholeCharacters(value, start);
  }

  #byteOf(byte: number, start: number): string {
    if (byte === 0 || byte > 0x7f)
      this.#fail(start, 'an escaped byte is no character of UTF-8 by itself: write \\uXXXX', 'not-utf8');
    return String.fromCharCode(byte);
  }

  #pointOf(point: number, start: number): string {
    if (point === 0 || point > 0x10_ffff) this.#fail(start, 'there is no such character', 'syntax');
    return String.fromCodePoint(point);
  }

  /** Two escapes may make one character; half of one is none. */
  #wholeCharacters(value: string, start: number): string {
    return !value.isWellFormed() ? this.#fail(start, 'a string holds half of a surrogate pair', 'syntax') : value;
  }

  /** `$tag$` or `$$` where a text begins with it. */
  #dollarTag(start: number): string | null {
    tagged.lastIndex = start;
    return tagged.exec(this.#text)?.[0] ?? null;
  }

  #dollarQuoted(tag: string): string {
    const start = this.#at;
    const end = this.#text.indexOf(tag, start + tag.length);
    if (end < 0) this.#fail(start, 'unterminated string');
    this.#at = end + tag.length;
    return this.#wholeCharacters(this.#text.slice(start + tag.length, end), start);
  }

  #pushMarker(start: number, valueOf: MarkerValues): void {
    this.#at = start + 1;
    while (isDigit(this.#text.charCodeAt(this.#at))) this.#at++;
    const byNumber = this.#at > start + 1;
    if (!byNumber) this.#at = this.#nameEnd(this.#at);
    const marker = this.#text.slice(start + 1, this.#at);
    const number = byNumber ? Number(marker) : 0;
    const value = valueOf(byNumber ? number : marker);
    if (value === undefined)
      this.#fail(start, `no value was given for ${this.#text.slice(start, this.#at)}`, 'no-such-parameter');
    this.#markers.set(this.#parameters.length, number);
    if (value === untyped) this.#pushLiteral('u', null, start);
    else if (value instanceof TypedValue) this.#pushTyped(value, start);
    else
      this.#pushLiteral(
        letterOf(value, (message) => this.#fail(start, message)),
        value,
        start,
      );
  }

  #pushTyped({ type, value }: TypedValue, start: number): void {
    if (!this.#limits.addValue())
      this.#fail(start, `the statement has more than ${namesMax} values outside of IN (...) and VALUES`);
    letterOf(value, (message) => this.#fail(start, message));
    const isNull = value === null;
    const slot = this.#parameters.length;
    this.#tokens.push({ kind: 'literal', key: '', text: type, reserved: true, slot, start, typed: { type, isNull } });
    this.#parameters.push(value);
    this.#template += `${this.#apart ? ' ' : ''}?${isNull ? '0' : ''}${type}`;
    this.#apart = true;
    this.#afterOperand = true;
  }

  #pushNumber(start: number, digits: number): void {
    let end = digits;
    let whole = true;
    while (isDigit(this.#text.charCodeAt(end))) end++;
    // `1..5` is a range of a graph pattern, not two numbers.
    if (this.#text.charCodeAt(end) === dot && this.#text.charCodeAt(end + 1) !== dot) {
      whole = false;
      end++;
      while (isDigit(this.#text.charCodeAt(end))) end++;
    }
    const e = this.#text.charCodeAt(end) | 0x20;
    if (e === 0x65) {
      const sign = this.#text.charCodeAt(end + 1);
      const exponent = sign === minus || sign === plus ? end + 2 : end + 1;
      if (isDigit(this.#text.charCodeAt(exponent))) {
        whole = false;
        end = exponent;
        while (isDigit(this.#text.charCodeAt(end))) end++;
      }
    }
    if (end < this.#length && this.#nameEnd(end) > end) this.#fail(start, 'a number is followed by a letter');
    this.#at = end;
    const numberText = this.#text.slice(start, end);
    if (whole) {
      if (numberText.length > 15) {
        // Leading zeros aside, 20 characters hold every i64: longer text is refused before it costs a conversion.
        if (end - digits > 1000) this.#fail(start, 'the integer does not fit 64 bits');
        const value = BigInt(numberText);
        if (value > FOREVER || value < -FOREVER - 1n) this.#fail(start, 'the integer does not fit 64 bits', 'out-of-range');
        this.#pushLiteral('i', value, start);
      } else {
        this.#pushLiteral('i', BigInt(Number(numberText)), start);
      }
      return;
    }
    const value = Number(numberText);
    if (!Number.isFinite(value)) this.#fail(start, 'the number is too large', 'out-of-range');
    this.#pushLiteral('n', value, start);
  }

  /** Text between quotes, a doubled quote standing for one; a pattern's has escapes, too. Leaves `at` behind the closing quote. */
  #stringUpTo(code: number, mark: string, tokenKind: string): string {
    const start = this.#at;
    let from = this.#at + 1;
    let value = '';
    const hasEscapes = tokenKind === 'string' && this.#isPattern();
    for (;;) {
      const end = this.#text.indexOf(mark, from);
      if (end < 0) this.#fail(start, `unterminated ${tokenKind}`);
      if (hasEscapes && this.#nextBackslash < from) {
        const backslash = this.#text.indexOf('\\', from);
        this.#nextBackslash = backslash < 0 ? this.#length : backslash;
      }
      if (hasEscapes && this.#nextBackslash < end) {
        const { characters, behind } = this.#escapeAt(this.#nextBackslash);
        value += this.#text.slice(from, this.#nextBackslash) + characters;
        from = behind;
        continue;
      }
      value += this.#text.slice(from, end);
      if (this.#text.charCodeAt(end + 1) !== code) {
        this.#at = end + 1;
        break;
      }
      value += mark;
      from = end + 2;
    }
    // Half a character has no UTF-8 form: it would silently become another one where it is compared or stored.
    if (!value.isWellFormed()) this.#fail(start, `a ${tokenKind} holds half of a surrogate pair`);
    return value;
  }

  /** Source: openCypher, "EscapedChar". */
  #escapeAt(backslash: number): { readonly characters: string; readonly behind: number } {
    const letter = this.#text.charAt(backslash + 1);
    const characters = patternEscapes.get(letter);
    if (characters !== undefined) return { characters, behind: backslash + 2 };
    const digits = letter === 'u' ? 4 : 8;
    const hex = this.#text.slice(backslash + 2, backslash + 2 + digits);
    const isPoint = (letter === 'u' || letter === 'U') && hex.length === digits && /^[\da-f]+$/i.test(hex);
    const point = isPoint ? Number.parseInt(hex, 16) : -1;
    if (point < 0 || point > 0x10ffff) {
      this.#fail(backslash, 'a string of a pattern has the escapes \\\\ \\\' \\" \\b \\f \\n \\r \\t \\uXXXX and \\UXXXXXXXX');
    }
    const one = digits === 4 ? String.fromCharCode(point) : String.fromCodePoint(point);
    return { characters: one, behind: backslash + 2 + digits };
  }

  #pushSymbol(start: number, code: number, next: number): void {
    const third = this.#at + 2 < this.#length ? this.#text.charCodeAt(this.#at + 2) : 0;
    const symbol = symbolOf(code, next, third);
    if (symbol === '') this.#fail(start, `unexpected character ${printable(this.#text, start)}`);
    this.#at += symbol.length;
    if (symbol !== ',' && symbol !== '(' && symbol !== ')') this.#countWord(start);
    if (symbol === '(') this.#limits.openBracket(this.#tokens.at(-1)?.key === 'IN');
    else if (symbol === ')') this.#limits.closeBracket();
    else if (symbol === ',' && this.#limits.listed >= 0) this.#countListed();
    this.#tokens.push({ kind: 'symbol', key: symbol, text: symbol, reserved: true, slot: -1, start });
    const tight = symbol === '.' || symbol === ',' || symbol === ')' || symbol === ']' || symbol === ';';
    const call = symbol === '(' && this.#afterOperand;
    this.#template += this.#apart && !tight && !call ? ' ' + symbol : symbol;
    this.#apart = symbol !== '(' && symbol !== '.' && symbol !== '[';
    this.#afterOperand = symbol === ')' || symbol === ']' || symbol === '}';
  }

  /** A value of a list is read whole. Behind many it joins the one before it: a hundred thousand must not be as many tokens, nodes and parameters. */
  #countListed(): void {
    const value = this.#tokens.at(-1)!;
    const between = this.#tokens.at(-2)!.key;
    const isAlone = value.kind === 'literal' && (between === ',' || between === '(');
    const listed = isAlone ? this.#limits.listed + 1 : -1;
    this.#limits.listed = listed;
    if (listed <= separateMax || !joinable.has(value.text) || value.typed) return;
    const last = this.#tokens.length - 3;
    const before = this.#tokens[last]!;
    const { count = 1 } = before;
    if (before.text !== value.text || before.slot + count !== value.slot) return;
    this.#tokens.length = last;
    this.#tokens.push({
      kind: 'literal',
      key: '',
      text: before.text,
      reserved: true,
      slot: before.slot,
      start: before.start,
      count: count + 1,
    });
    this.#joined += 2;
  }

  /** End of the name that starts here; `from` itself where none does. */
  #nameEnd(from: number): number {
    let end = from;
    for (;;) {
      const code = this.#text.charCodeAt(end);
      if (code < 128) {
        const kind = classOf[code]!;
        if (kind !== classLetter && (kind !== classDigit || end === from)) return end;
        end++;
      } else {
        // Past the end the code is NaN.
        if (!(code >= 128)) return end;
        const point = this.#text.codePointAt(end)!;
        const character = String.fromCodePoint(point);
        if (!(end === from ? nameStart : nameContinue).test(character)) return end;
        end += character.length;
      }
    }
  }

  /** Statements in the graph-pattern language share this lexer; their first words tell. */
  #isPattern(): boolean {
    if (this.#patternKnown !== null) return this.#patternKnown;
    let first = 0;
    while (first < this.#tokens.length) {
      const { key, kind } = this.#tokens[first]!;
      if (key !== 'EXPLAIN' && key !== 'ANALYZE' && key !== 'POLICY' && key !== 'PURPOSE' && kind !== 'literal') break;
      first++;
    }
    // Undecided while nothing but prefixes was read, or while what may be the deciding bracket is still to come.
    if (first === this.#tokens.length) return false;
    const word = this.#tokens[first]!.key;
    if (word === 'UNWIND' || word === 'RETURN') return (this.#patternKnown = true);
    const second = this.#tokens[first + 1]?.key;
    if (second === undefined) return false;
    this.#patternKnown =
      (word === 'OPTIONAL' && second === 'MATCH') ||
      // MATCH p = (a)-[]->(b)
      (word === 'MATCH' && this.#tokens[first + 1]!.kind !== 'symbol') ||
      ((word === 'MATCH' || word === 'CREATE' || word === 'MERGE') && second === '(');
    return this.#patternKnown;
  }

  #fail(offset: number, message: string, reason?: ErrorReason): never {
    throw parseError(new LexedStatement(this.#text, '', [], []).locationAt(offset), message, reason);
  }
}

/** Type of a value, as templates have it. Refuses values that no literal could have. */
export function letterOf(value: Literal, refuse: (message: string) => never): string {
  if (value === null) return 'null';
  switch (typeof value) {
    case 'string':
      return !value.isWellFormed() ? refuse('a string holds half of a surrogate pair') : 's';
    case 'bigint':
      return value > FOREVER || value < -FOREVER - 1n ? refuse('the integer does not fit 64 bits') : 'i';
    case 'number':
      return Number.isFinite(value) ? 'n' : refuse('the number is too large');
    default:
      return 'b';
  }
}

function lineStartsOf(text: string): number[] {
  const starts = [0];
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return starts;
}

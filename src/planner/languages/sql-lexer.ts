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
const statementTokensMax = 250_000;
const tokensPerStep = 2_048;
const joinableLiterals: ReadonlySet<string> = new Set(['s', 'i', 'n']);
/** Values of a list of IN behind these are one token, and have one place. */
const separateMax = 1_000;

export class LexedStatement {
  readonly text: string;
  readonly template: string;
  readonly parameters: readonly Literal[];
  /** For each slot that a `$n` of the text filled: n; 0 where it has a name. The template says `?u` of one whose type is not known. */
  readonly markers: ReadonlyMap<number, number>;
  #lexedTokens: readonly Token[] | null;
  #settledTypes: Map<number, 's' | 'i'> | null = null;
  #lineOffsets: number[] | null = null;
  /** Where the literal of each slot begins. */
  #literalOffsets: Uint32Array | null = null;

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
    this.#lexedTokens = tokens;
  }

  get tokens(): readonly Token[] {
    return (this.#lexedTokens ??= lexStatement(this.text).tokens);
  }

  /** The same statement with other values for `$1`, `$2` …, of unchanged types. */
  withValues(values: readonly (Literal | TypedValue)[]): LexedStatement {
    const parameters = this.parameters.map((templateLiteral, slot) => {
      const markerNumber = this.markers.get(slot) ?? 0;
      return markerNumber === 0 ? templateLiteral : TypedValue.rawOf(values[markerNumber - 1]!);
    });
    return new LexedStatement(this.text, this.template, parameters, this.#lexedTokens, this.markers);
  }

  /** The grammar takes no other type here: of a value that had none. */
  settle(slot: number, type: 's' | 'i'): void {
    (this.#settledTypes ??= new Map()).set(slot, type);
  }

  settledAs(slot: number): 's' | 'i' | undefined {
    return this.#settledTypes?.get(slot);
  }

  /**
   * The template as it may be recorded before names are known to name anything: many put text in double quotes, and a record must
   * not keep text that may be personal data.
   */
  get guardedTemplate(): string {
    return this.template.includes('"') ? this.template.replaceAll(/"(?:[^"]|"")*"/g, '"?"') : this.template;
  }

  locationAt(offset: number): Location {
    const starts = (this.#lineOffsets ??= lineStartOffsets(this.text));
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
    return this.locationAt((this.#literalOffsets ??= literalStarts(this.tokens, this.parameters.length))[slot] ?? 0);
  }
}

function literalStarts(tokens: readonly Token[], slotCount: number): Uint32Array {
  const slotStarts = new Uint32Array(slotCount);
  for (const { slot, count = 1, start } of tokens) if (slot >= 0) slotStarts.fill(start, slot, slot + count);
  return slotStarts;
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
  const lexerWork = lexing(text, values);
  for (;;) {
    const lexerStep = lexerWork.next();
    if (lexerStep.done) return lexerStep.value;
  }
}

/** REL_PARSE for a text that is longer than a statement may be. */
export function checkLength(statementText: string): void {
  if (statementText.length > statementCharactersMax)
    throw parseError({ line: 1, column: 1 }, `the statement is longer than ${statementCharactersMax} characters`);
}

/** Lexes in bounded steps, so that a text of a megabyte doesn't block other requests. */
export function* lexing(
  statementText: string,
  markerValues: MarkerValues | null = null,
): Generator<undefined, LexedStatement, void> {
  checkLength(statementText);
  return yield* new Lexer(statementText, markerValues).run();
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
      if (read === statementTokensMax) this.#fail(start, `the statement has more than ${statementTokensMax} tokens`);
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

  /** A token that begins with another sign: a quoted text or name, a comment, a number with a sign, a marker, a symbol. */
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

  #countWord(wordStart: number): void {
    if (!this.#limits.addWord())
      this.#fail(wordStart, `the statement has more than ${namesMax} names and operators; values fit into IN (...)`);
  }

  #pushName(nameKind: 'word' | 'quoted', nameKey: string, name: string, templateName: string, nameOffset: number): void {
    this.#countWord(nameOffset);
    if (nameKey === 'VALUES') this.#limits.beginRows();
    this.#tokens.push({ kind: nameKind, key: nameKey, text: name, reserved: false, slot: -1, start: nameOffset });
    this.#template += this.#apart ? ' ' + templateName : templateName;
    this.#apart = true;
    this.#afterOperand = true;
  }

  #pushLiteral(type: string, literalValue: Literal, literalStart: number): void {
    if (!this.#limits.addValue())
      this.#fail(literalStart, `the statement has more than ${namesMax} values outside of IN (...) and VALUES`);
    const literalMark = type === 'null' ? 'NULL' : '?' + type;
    const typed = type === 'u' ? ({ typed: 'unknown' } as const) : {};
    this.#tokens.push({
      kind: 'literal',
      key: '',
      text: type,
      reserved: true,
      slot: this.#parameters.length,
      start: literalStart,
      ...typed,
    });
    this.#parameters.push(literalValue);
    this.#template += this.#apart ? ' ' + literalMark : literalMark;
    this.#apart = true;
    this.#afterOperand = true;
  }

  /** E'…', U&'…', N'…' and the bit strings B'…', X'…': a letter right before the quote, as Postgres has them. */
  #isPrefixOfString(prefixStart: number): boolean {
    const prefixLetter = this.#text.charCodeAt(prefixStart) | 0x20;
    if (this.#at !== prefixStart + 1) return false;
    if (this.#text.charCodeAt(this.#at) === quote)
      return prefixLetter === 0x65 || prefixLetter === 0x6e || prefixLetter === 0x62 || prefixLetter === 0x78;
    const codeBehindPrefix = this.#text.charCodeAt(this.#at + 1);
    return (
      prefixLetter === 0x75 &&
      this.#text.charCodeAt(this.#at) === ampersand &&
      (codeBehindPrefix === quote || codeBehindPrefix === doubleQuote)
    );
  }

  #pushPrefixed(prefixStart: number): void {
    switch (this.#text.charCodeAt(prefixStart) | 0x20) {
      case 0x65:
        return this.#pushLiteral('s', this.#escapedString(prefixStart), prefixStart);
      case 0x6e:
        return this.#pushLiteral('s', this.#stringUpTo(quote, "'", 'string') + this.#continueString(), prefixStart);
      case 0x75: {
        this.#at++;
        if (this.#text.charCodeAt(this.#at) === quote)
          return this.#pushLiteral('s', this.#unicodeText(this.#stringUpTo(quote, "'", 'string'), prefixStart), prefixStart);
        const unicodeName = this.#unicodeText(this.#stringUpTo(doubleQuote, '"', 'quoted name'), prefixStart);
        if (unicodeName.length === 0 || unicodeName.length > nameCharactersMax || unicodeName.includes('\0'))
          this.#fail(prefixStart, `a quoted name has 1 to ${nameCharactersMax} characters, and no NUL`);
        return this.#pushName('quoted', '', unicodeName, `"${unicodeName.replaceAll('"', '""')}"`, prefixStart);
      }
      default: {
        const [bitStringLetter, bitStringDigits] = [
          this.#text.charAt(prefixStart).toUpperCase(),
          this.#stringUpTo(quote, "'", 'bit string'),
        ];
        if (!(bitStringLetter === 'B' ? /^[01]*$/ : /^[0-9a-f]*$/i).test(bitStringDigits))
          this.#fail(prefixStart, `a bit string is written ${bitStringLetter === 'B' ? "B'01'" : "X'0f'"}`, 'text-form');
        this.#fail(prefixStart, 'bit strings are not implemented: write a number, or a text', 'not-implemented');
      }
    }
  }

  /** Joins a string that continues after a line break. */
  #continueString(): string {
    let continuedText = '';
    for (;;) {
      const continuedStart = continuedAt(this.#text, this.#at);
      if (continuedStart < 0) return continuedText;
      this.#at = continuedStart;
      continuedText += this.#stringUpTo(quote, "'", 'string');
    }
  }

  /** Between the quotes of E'…'; `at` is left behind the last one. */
  #escapedString(stringStart: number): string {
    escaped.lastIndex = this.#at;
    const escapedMatch = escaped.exec(this.#text);
    if (escapedMatch === null) this.#fail(stringStart, 'unterminated string');
    this.#at = escaped.lastIndex;
    const unescapedText = escapedMatch[1]!.replaceAll(
      escapes,
      (escape: string, octal?: string, hex?: string, short?: string, long?: string) => {
        if (escape === "''") return "'";
        if (octal !== undefined) return this.#byteOf(Number.parseInt(octal, 8) & 0xff, stringStart);
        if (hex !== undefined) return this.#byteOf(Number.parseInt(hex, 16), stringStart);
        const escapedPoint = short ?? long;
        if (escapedPoint !== undefined) return this.#pointOf(Number.parseInt(escapedPoint, 16), stringStart);
        const escapeLetter = escape.charAt(1);
        if (escapeLetter === 'u' || escapeLetter === 'U')
          this.#fail(stringStart, 'a Unicode escape is written \\uXXXX or \\UXXXXXXXX', 'escape-form');
        return letterEscapes[escapeLetter] ?? escapeLetter;
      },
    );
    return this.#wholeCharacters(unescapedText, stringStart) + this.#continueString();
  }

  /** Between the quotes of U&'…', before its UESCAPE: \XXXX and \+XXXXXX are characters. */
  #unicodeText(escapedText: string, stringStart: number): string {
    unicodeEscape.lastIndex = this.#at;
    const statedEscape = unicodeEscape.exec(this.#text);
    if (statedEscape !== null) this.#at = unicodeEscape.lastIndex;
    const escapeMark = statedEscape?.[1] ?? '\\';
    let unicodeValue = '';
    for (let i = 0; i < escapedText.length; i++) {
      const writtenLetter = escapedText.charAt(i);
      if (writtenLetter !== escapeMark) unicodeValue += writtenLetter;
      else if (escapedText.charAt(i + 1) === escapeMark) unicodeValue += escapedText.charAt(++i);
      else {
        const escapedPoint = /^(?:([0-9A-Fa-f]{4})|\+([0-9A-Fa-f]{6}))/.exec(escapedText.slice(i + 1, i + 8));
        if (escapedPoint === null)
          this.#fail(stringStart, `a Unicode escape is written ${escapeMark}XXXX or ${escapeMark}+XXXXXX`, 'syntax');
        unicodeValue += this.#pointOf(Number.parseInt(escapedPoint[1] ?? escapedPoint[2]!, 16), stringStart);
        i += escapedPoint[0].length;
      }
    }
    return this.#wholeCharacters(unicodeValue, stringStart);
  }

  #byteOf(escapedByte: number, start: number): string {
    if (escapedByte === 0 || escapedByte > 0x7f)
      this.#fail(start, 'an escaped byte is no character of UTF-8 by itself: write \\uXXXX', 'not-utf8');
    return String.fromCharCode(escapedByte);
  }

  #pointOf(codePoint: number, start: number): string {
    if (codePoint === 0 || codePoint > 0x10_ffff) this.#fail(start, 'there is no such character', 'syntax');
    return String.fromCodePoint(codePoint);
  }

  /** Two escapes may make one character; half of one is none. */
  #wholeCharacters(stringValue: string, start: number): string {
    return !stringValue.isWellFormed() ? this.#fail(start, 'a string holds half of a surrogate pair', 'syntax') : stringValue;
  }

  /** `$tag$` or `$$` where a text begins with it. */
  #dollarTag(start: number): string | null {
    tagged.lastIndex = start;
    return tagged.exec(this.#text)?.[0] ?? null;
  }

  #dollarQuoted(dollarTagText: string): string {
    const tagStart = this.#at;
    const closingTag = this.#text.indexOf(dollarTagText, tagStart + dollarTagText.length);
    if (closingTag < 0) this.#fail(tagStart, 'unterminated string');
    this.#at = closingTag + dollarTagText.length;
    return this.#wholeCharacters(this.#text.slice(tagStart + dollarTagText.length, closingTag), tagStart);
  }

  #pushMarker(markerStart: number, valueOfMarker: MarkerValues): void {
    this.#at = markerStart + 1;
    while (isDigit(this.#text.charCodeAt(this.#at))) this.#at++;
    const isNumbered = this.#at > markerStart + 1;
    if (!isNumbered) this.#at = this.#nameEnd(this.#at);
    const markerText = this.#text.slice(markerStart + 1, this.#at);
    const markerNumber = isNumbered ? Number(markerText) : 0;
    const markerValue = valueOfMarker(isNumbered ? markerNumber : markerText);
    if (markerValue === undefined)
      this.#fail(markerStart, `no value was given for ${this.#text.slice(markerStart, this.#at)}`, 'no-such-parameter');
    this.#markers.set(this.#parameters.length, markerNumber);
    if (markerValue === untyped) this.#pushLiteral('u', null, markerStart);
    else if (markerValue instanceof TypedValue) this.#pushTyped(markerValue, markerStart);
    else
      this.#pushLiteral(
        letterOf(markerValue, (message) => this.#fail(markerStart, message)),
        markerValue,
        markerStart,
      );
  }

  #pushTyped({ type, value }: TypedValue, typedStart: number): void {
    if (!this.#limits.addValue())
      this.#fail(typedStart, `the statement has more than ${namesMax} values outside of IN (...) and VALUES`);
    letterOf(value, (message) => this.#fail(typedStart, message));
    const isNull = value === null;
    const typedSlot = this.#parameters.length;
    this.#tokens.push({
      kind: 'literal',
      key: '',
      text: type,
      reserved: true,
      slot: typedSlot,
      start: typedStart,
      typed: { type, isNull },
    });
    this.#parameters.push(value);
    this.#template += `${this.#apart ? ' ' : ''}?${isNull ? '0' : ''}${type}`;
    this.#apart = true;
    this.#afterOperand = true;
  }

  #pushNumber(numberStart: number, digitsStart: number): void {
    let numberEnd = digitsStart;
    let isWhole = true;
    while (isDigit(this.#text.charCodeAt(numberEnd))) numberEnd++;
    // `1..5` is a range of a graph pattern, not two numbers.
    if (this.#text.charCodeAt(numberEnd) === dot && this.#text.charCodeAt(numberEnd + 1) !== dot) {
      isWhole = false;
      numberEnd++;
      while (isDigit(this.#text.charCodeAt(numberEnd))) numberEnd++;
    }
    const exponentLetter = this.#text.charCodeAt(numberEnd) | 0x20;
    if (exponentLetter === 0x65) {
      const exponentSign = this.#text.charCodeAt(numberEnd + 1);
      const exponentDigits = exponentSign === minus || exponentSign === plus ? numberEnd + 2 : numberEnd + 1;
      if (isDigit(this.#text.charCodeAt(exponentDigits))) {
        isWhole = false;
        numberEnd = exponentDigits;
        while (isDigit(this.#text.charCodeAt(numberEnd))) numberEnd++;
      }
    }
    if (numberEnd < this.#length && this.#nameEnd(numberEnd) > numberEnd)
      this.#fail(numberStart, 'a number is followed by a letter');
    this.#at = numberEnd;
    const numberText = this.#text.slice(numberStart, numberEnd);
    if (isWhole) {
      if (numberText.length > 15) {
        // Leading zeros aside, 20 characters hold every i64: longer text is refused before it costs a conversion.
        if (numberEnd - digitsStart > 1000) this.#fail(numberStart, 'the integer does not fit 64 bits');
        const numberValue = BigInt(numberText);
        if (numberValue > FOREVER || numberValue < -FOREVER - 1n)
          this.#fail(numberStart, 'the integer does not fit 64 bits', 'out-of-range');
        this.#pushLiteral('i', numberValue, numberStart);
      } else {
        this.#pushLiteral('i', BigInt(Number(numberText)), numberStart);
      }
      return;
    }
    const value = Number(numberText);
    if (!Number.isFinite(value)) this.#fail(numberStart, 'the number is too large', 'out-of-range');
    this.#pushLiteral('n', value, numberStart);
  }

  /** Text between quotes, a doubled quote standing for one; a pattern's has escapes, too. Leaves `at` behind the closing quote. */
  #stringUpTo(quoteCode: number, quoteMark: string, tokenKind: string): string {
    const stringStart = this.#at;
    let pieceStart = this.#at + 1;
    let stringValue = '';
    const hasEscapes = tokenKind === 'string' && this.#isPattern();
    for (;;) {
      const quoteOffset = this.#text.indexOf(quoteMark, pieceStart);
      if (quoteOffset < 0) this.#fail(stringStart, `unterminated ${tokenKind}`);
      if (hasEscapes && this.#nextBackslash < pieceStart) {
        const backslash = this.#text.indexOf('\\', pieceStart);
        this.#nextBackslash = backslash < 0 ? this.#length : backslash;
      }
      if (hasEscapes && this.#nextBackslash < quoteOffset) {
        const { characters, behind } = this.#escapeAt(this.#nextBackslash);
        stringValue += this.#text.slice(pieceStart, this.#nextBackslash) + characters;
        pieceStart = behind;
        continue;
      }
      stringValue += this.#text.slice(pieceStart, quoteOffset);
      if (this.#text.charCodeAt(quoteOffset + 1) !== quoteCode) {
        this.#at = quoteOffset + 1;
        break;
      }
      stringValue += quoteMark;
      pieceStart = quoteOffset + 2;
    }
    // Half a character has no UTF-8 form: it would silently become another one where it is compared or stored.
    if (!stringValue.isWellFormed()) this.#fail(stringStart, `a ${tokenKind} holds half of a surrogate pair`);
    return stringValue;
  }

  /** Source: openCypher, "EscapedChar". */
  #escapeAt(backslash: number): { readonly characters: string; readonly behind: number } {
    const escapeLetter = this.#text.charAt(backslash + 1);
    const characters = patternEscapes.get(escapeLetter);
    if (characters !== undefined) return { characters, behind: backslash + 2 };
    const hexDigits = escapeLetter === 'u' ? 4 : 8;
    const hexText = this.#text.slice(backslash + 2, backslash + 2 + hexDigits);
    const isPoint = (escapeLetter === 'u' || escapeLetter === 'U') && hexText.length === hexDigits && /^[\da-f]+$/i.test(hexText);
    const hexPoint = isPoint ? Number.parseInt(hexText, 16) : -1;
    if (hexPoint < 0 || hexPoint > 0x10ffff) {
      this.#fail(backslash, 'a string of a pattern has the escapes \\\\ \\\' \\" \\b \\f \\n \\r \\t \\uXXXX and \\UXXXXXXXX');
    }
    const escapedCharacter = hexDigits === 4 ? String.fromCharCode(hexPoint) : String.fromCodePoint(hexPoint);
    return { characters: escapedCharacter, behind: backslash + 2 + hexDigits };
  }

  #pushSymbol(symbolStart: number, symbolCode: number, secondCode: number): void {
    const thirdCode = this.#at + 2 < this.#length ? this.#text.charCodeAt(this.#at + 2) : 0;
    const sqlSymbol = symbolOf(symbolCode, secondCode, thirdCode);
    if (sqlSymbol === '') this.#fail(symbolStart, `unexpected character ${printable(this.#text, symbolStart)}`);
    this.#at += sqlSymbol.length;
    if (sqlSymbol !== ',' && sqlSymbol !== '(' && sqlSymbol !== ')') this.#countWord(symbolStart);
    if (sqlSymbol === '(') this.#limits.openBracket(this.#tokens.at(-1)?.key === 'IN');
    else if (sqlSymbol === ')') this.#limits.closeBracket();
    else if (sqlSymbol === ',' && this.#limits.listed >= 0) this.#countListed();
    this.#tokens.push({ kind: 'symbol', key: sqlSymbol, text: sqlSymbol, reserved: true, slot: -1, start: symbolStart });
    const isTight = sqlSymbol === '.' || sqlSymbol === ',' || sqlSymbol === ')' || sqlSymbol === ']' || sqlSymbol === ';';
    const opensCall = sqlSymbol === '(' && this.#afterOperand;
    this.#template += this.#apart && !isTight && !opensCall ? ' ' + sqlSymbol : sqlSymbol;
    this.#apart = sqlSymbol !== '(' && sqlSymbol !== '.' && sqlSymbol !== '[';
    this.#afterOperand = sqlSymbol === ')' || sqlSymbol === ']' || sqlSymbol === '}';
  }

  /** A value of a list is read whole. Behind many it joins the one before it: a hundred thousand must not be as many tokens, nodes and parameters. */
  #countListed(): void {
    const listedToken = this.#tokens.at(-1)!;
    const separatorKey = this.#tokens.at(-2)!.key;
    const isAlone = listedToken.kind === 'literal' && (separatorKey === ',' || separatorKey === '(');
    const listed = isAlone ? this.#limits.listed + 1 : -1;
    this.#limits.listed = listed;
    if (listed <= separateMax || !joinableLiterals.has(listedToken.text) || listedToken.typed) return;
    const previousLiteral = this.#tokens.length - 3;
    const earlierLiteral = this.#tokens[previousLiteral]!;
    const { count = 1 } = earlierLiteral;
    if (earlierLiteral.text !== listedToken.text || earlierLiteral.slot + count !== listedToken.slot) return;
    this.#tokens.length = previousLiteral;
    this.#tokens.push({
      kind: 'literal',
      key: '',
      text: earlierLiteral.text,
      reserved: true,
      slot: earlierLiteral.slot,
      start: earlierLiteral.start,
      count: count + 1,
    });
    this.#joined += 2;
  }

  /** End of the name that starts here; `nameFrom` itself where none does. */
  #nameEnd(nameFrom: number): number {
    let nameEndOffset = nameFrom;
    for (;;) {
      const nameCharCode = this.#text.charCodeAt(nameEndOffset);
      if (nameCharCode < 128) {
        const nameCharClass = classOf[nameCharCode]!;
        if (nameCharClass !== classLetter && (nameCharClass !== classDigit || nameEndOffset === nameFrom)) return nameEndOffset;
        nameEndOffset++;
      } else {
        // Past the end the code is NaN.
        if (!(nameCharCode >= 128)) return nameEndOffset;
        const nameCodePoint = this.#text.codePointAt(nameEndOffset)!;
        const nameCharacter = String.fromCodePoint(nameCodePoint);
        if (!(nameEndOffset === nameFrom ? nameStart : nameContinue).test(nameCharacter)) return nameEndOffset;
        nameEndOffset += nameCharacter.length;
      }
    }
  }

  /** Statements in the graph-pattern language share this lexer; their first words tell. */
  #isPattern(): boolean {
    if (this.#patternKnown !== null) return this.#patternKnown;
    let firstVerb = 0;
    while (firstVerb < this.#tokens.length) {
      const { key, kind } = this.#tokens[firstVerb]!;
      if (key !== 'EXPLAIN' && key !== 'ANALYZE' && key !== 'POLICY' && key !== 'PURPOSE' && kind !== 'literal') break;
      firstVerb++;
    }
    // Undecided while nothing but prefixes was read, or while what may be the deciding bracket is still to come.
    if (firstVerb === this.#tokens.length) return false;
    const firstVerbKey = this.#tokens[firstVerb]!.key;
    if (firstVerbKey === 'UNWIND' || firstVerbKey === 'RETURN') return (this.#patternKnown = true);
    const secondVerbKey = this.#tokens[firstVerb + 1]?.key;
    if (secondVerbKey === undefined) return false;
    this.#patternKnown =
      (firstVerbKey === 'OPTIONAL' && secondVerbKey === 'MATCH') ||
      // MATCH p = (a)-[]->(b)
      (firstVerbKey === 'MATCH' && this.#tokens[firstVerb + 1]!.kind !== 'symbol') ||
      ((firstVerbKey === 'MATCH' || firstVerbKey === 'CREATE' || firstVerbKey === 'MERGE') && secondVerbKey === '(');
    return this.#patternKnown;
  }

  #fail(offset: number, message: string, reason?: ErrorReason): never {
    throw parseError(new LexedStatement(this.#text, '', [], []).locationAt(offset), message, reason);
  }
}

/** Type of a value, as templates have it. Refuses values that no literal could have. */
export function letterOf(literalValue: Literal, refuseLiteral: (message: string) => never): string {
  if (literalValue === null) return 'null';
  switch (typeof literalValue) {
    case 'string':
      return !literalValue.isWellFormed() ? refuseLiteral('a string holds half of a surrogate pair') : 's';
    case 'bigint':
      return literalValue > FOREVER || literalValue < -FOREVER - 1n ? refuseLiteral('the integer does not fit 64 bits') : 'i';
    case 'number':
      return Number.isFinite(literalValue) ? 'n' : refuseLiteral('the number is too large');
    default:
      return 'b';
  }
}

function lineStartOffsets(text: string): number[] {
  const lineStarts = [0];
  for (let newlineOffset = text.indexOf('\n'); newlineOffset >= 0; newlineOffset = text.indexOf('\n', newlineOffset + 1))
    lineStarts.push(newlineOffset + 1);
  return lineStarts;
}

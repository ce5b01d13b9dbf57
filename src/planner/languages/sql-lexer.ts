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
  newline,
  plus,
  printable,
  quote,
  slash,
  star,
  symbolOf,
  wordOf,
} from './sql-alphabet.ts';

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
/**
 * Names and operators of one statement, and values of it. Values in lists of IN and rows of VALUES are not counted: a list of them
 * is bound and tested as one set, and rows are rows.
 */
const namesMax = 16_384;
const tokensPerStep = 2_048;
const joinable: ReadonlySet<string> = new Set(['s', 'i', 'n']);
/** Values of a list of IN behind these are one token, and have one place. */
const placedMax = 1_000;

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

  placeAt(offset: number): Location {
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
    return this.placeAt((this.#starts ??= startsOf(this.tokens, this.parameters.length))[slot] ?? 0);
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
  const tokens: Token[] = [];
  const parameters: Literal[] = [];
  const markers = new Map<number, number>();
  let template = '';
  // Whether the next token needs a space before it: none after an opening bracket or a dot.
  let apart = false;
  // Whether the token before is an operand: decides if `-5` is a literal or a subtraction, and if `(` opens arguments.
  let afterOperand = false;
  let patternKnown: boolean | null = null;
  let nextBackslash = -1;
  let at = 0;
  let words = 0;
  // Values outside of lists.
  let lone = 0;
  // Brackets that are open here, and that were where VALUES began; -1 outside of VALUES.
  let depth = 0;
  let rowsAt = -1;
  // Values behind `IN (` that nothing but commas parts; -1 elsewhere.
  let listed = -1;
  // Tokens that became part of another one.
  let joined = 0;
  let pauseAt = tokensPerStep;
  const length = text.length;

  while (at < length) {
    if (tokens.length + joined >= pauseAt) {
      pauseAt += tokensPerStep;
      yield;
    }
    const code = text.charCodeAt(at);
    const kind = code < 128 ? classOf[code]! : classOther;
    if (kind === classSpace) {
      at++;
      continue;
    }
    const start = at;
    if (tokens.length + joined === tokensMax) fail(start, `the statement has more than ${tokensMax} tokens`);

    if (kind === classLetter || kind === classOther) {
      at = nameEnd(start);
      if (isPrefixOfString(start)) {
        pushPrefixed(start);
        continue;
      }
      if (at === start) fail(start, `unexpected character ${printable(text, start)}`);
      const word = wordOf(text.slice(start, at));
      if (word.text.length > nameCharactersMax) fail(start, `a name is at most ${nameCharactersMax} characters`);
      if (!word.reserved) {
        pushName('word', word.key, word.text, word.text, start);
        continue;
      }
      const before = tokens.length === 0 ? '' : tokens[tokens.length - 1]!.key;
      if (before === '.') {
        // Behind a dot only a name can stand.
        pushName('word', '', word.text, word.text, start);
        continue;
      }
      if (word.key === 'TRUE' || word.key === 'FALSE') {
        pushLiteral('b', word.key === 'TRUE', start);
        continue;
      }
      // The NULL of IS NULL and IS NOT NULL belongs to the operator.
      const ofOperator = before === 'IS' || (before === 'NOT' && tokens[tokens.length - 2]?.key === 'IS');
      if (word.key === 'NULL' && !ofOperator) {
        pushLiteral('null', null, start);
        continue;
      }
      countWord(start);
      tokens.push({ kind: 'word', key: word.key, text: word.text, reserved: true, slot: -1, start });
      template += apart ? ' ' + word.key : word.key;
      apart = true;
      afterOperand = word.key === 'END' || word.key === 'NULL';
      continue;
    }

    if (kind === classDigit) {
      pushNumber(start, start);
      continue;
    }

    if (code === quote) {
      pushLiteral('s', stringUpTo(quote, "'", 'string') + continueString(), start);
      continue;
    }
    if (code === dollar) {
      const tag = dollarTag(start);
      if (tag !== null) {
        pushLiteral('s', dollarQuoted(tag), start);
        continue;
      }
    }

    if (code === doubleQuote || code === backtick) {
      if (code === doubleQuote && isPattern()) {
        // In a graph pattern double quotes hold text, which must not reach the template.
        pushLiteral('s', stringUpTo(code, '"', 'string'), start);
        continue;
      }
      const name = stringUpTo(code, code === doubleQuote ? '"' : '`', 'quoted name');
      if (name.length === 0) fail(start, 'a quoted name is empty');
      if (name.length > nameCharactersMax) fail(start, `a name is at most ${nameCharactersMax} characters`);
      if (name.includes('\0')) fail(start, 'a name holds no NUL character');
      pushName('quoted', '', name, `"${name.includes('"') ? name.replaceAll('"', '""') : name}"`, start);
      continue;
    }

    const next = at + 1 < length ? text.charCodeAt(at + 1) : 0;
    if (code === minus) {
      if (next === minus && !isPattern()) {
        const end = text.indexOf('\n', at);
        at = end < 0 ? length : end + 1;
        continue;
      }
      if (!afterOperand && (isDigit(next) || (next === dot && isDigit(text.charCodeAt(at + 2))))) {
        pushNumber(start, start + 1);
        continue;
      }
    }
    if (code === slash && next === star) {
      const end = text.indexOf('*/', at + 2);
      if (end < 0) fail(start, 'unterminated comment');
      at = end + 2;
      continue;
    }
    if (code === dot && isDigit(next) && !afterOperand) {
      pushNumber(start, start);
      continue;
    }
    if (code === dollar && values === null && isDigit(next))
      fail(start, 'no value was given for a parameter', 'no-such-parameter');
    if (code === dollar && values !== null && (isDigit(next) || nameEnd(start + 1) > start + 1)) {
      pushMarker(start, values);
      continue;
    }
    pushSymbol(start, code, next);
  }
  tokens.push({ kind: 'end', key: '', text: 'the end of the statement', reserved: true, slot: -1, start: length });
  // A closing semicolon says nothing.
  if (template.endsWith(';')) template = template.slice(0, -1);
  return new LexedStatement(text, template, parameters, tokens, markers);

  function countValue(start: number): void {
    if (listed >= 0 || (rowsAt >= 0 && depth === rowsAt + 1) || ++lone <= namesMax) return;
    fail(start, `the statement has more than ${namesMax} values outside of IN (...) and VALUES`);
  }

  function countWord(start: number): void {
    if (depth <= rowsAt) rowsAt = -1;
    if (++words > namesMax) fail(start, `the statement has more than ${namesMax} names and operators; values fit into IN (...)`);
  }

  function pushName(nameKind: 'word' | 'quoted', key: string, name: string, shown: string, start: number): void {
    countWord(start);
    if (key === 'VALUES') rowsAt = depth;
    tokens.push({ kind: nameKind, key, text: name, reserved: false, slot: -1, start });
    template += apart ? ' ' + shown : shown;
    apart = true;
    afterOperand = true;
  }

  function pushLiteral(type: string, value: Literal, start: number): void {
    countValue(start);
    const shown = type === 'null' ? 'NULL' : '?' + type;
    const typed = type === 'u' ? ({ typed: 'unknown' } as const) : {};
    tokens.push({ kind: 'literal', key: '', text: type, reserved: true, slot: parameters.length, start, ...typed });
    parameters.push(value);
    template += apart ? ' ' + shown : shown;
    apart = true;
    afterOperand = true;
  }

  /** E'…', U&'…', N'…' and the bit strings B'…', X'…': a letter right before the quote, as Postgres has them. */
  function isPrefixOfString(start: number): boolean {
    const letter = text.charCodeAt(start) | 0x20;
    if (at !== start + 1) return false;
    if (text.charCodeAt(at) === quote) return letter === 0x65 || letter === 0x6e || letter === 0x62 || letter === 0x78;
    const next = text.charCodeAt(at + 1);
    return letter === 0x75 && text.charCodeAt(at) === ampersand && (next === quote || next === doubleQuote);
  }

  function pushPrefixed(start: number): void {
    switch (text.charCodeAt(start) | 0x20) {
      case 0x65:
        return pushLiteral('s', escapedString(start), start);
      case 0x6e:
        return pushLiteral('s', stringUpTo(quote, "'", 'string') + continueString(), start);
      case 0x75: {
        at++;
        if (text.charCodeAt(at) === quote) return pushLiteral('s', unicodeText(stringUpTo(quote, "'", 'string'), start), start);
        const name = unicodeText(stringUpTo(doubleQuote, '"', 'quoted name'), start);
        if (name.length === 0 || name.length > nameCharactersMax || name.includes('\0'))
          fail(start, `a quoted name has 1 to ${nameCharactersMax} characters, and no NUL`);
        return pushName('quoted', '', name, `"${name.replaceAll('"', '""')}"`, start);
      }
      default: {
        const [letter, digits] = [text.charAt(start).toUpperCase(), stringUpTo(quote, "'", 'bit string')];
        if (!(letter === 'B' ? /^[01]*$/ : /^[0-9a-f]*$/i).test(digits))
          fail(start, `a bit string is written ${letter === 'B' ? "B'01'" : "X'0f'"}`, 'text-form');
        fail(start, 'bit strings are not implemented: write a number, or a text', 'not-implemented');
      }
    }
  }

  /** Joins a string that continues after a line break. */
  function continueString(): string {
    let more = '';
    for (;;) {
      const next = continuedAt(text, at);
      if (next < 0) return more;
      at = next;
      more += stringUpTo(quote, "'", 'string');
    }
  }

  /** Between the quotes of E'…'; `at` is left behind the last one. */
  function escapedString(start: number): string {
    escaped.lastIndex = at;
    const match = escaped.exec(text);
    if (match === null) fail(start, 'unterminated string');
    at = escaped.lastIndex;
    const value = match[1]!.replaceAll(
      escapes,
      (written: string, octal?: string, hex?: string, short?: string, long?: string) => {
        if (written === "''") return "'";
        if (octal !== undefined) return byteOf(Number.parseInt(octal, 8) & 0xff, start);
        if (hex !== undefined) return byteOf(Number.parseInt(hex, 16), start);
        const point = short ?? long;
        if (point !== undefined) return pointOf(Number.parseInt(point, 16), start);
        const letter = written.charAt(1);
        if (letter === 'u' || letter === 'U') fail(start, 'a Unicode escape is written \\uXXXX or \\UXXXXXXXX', 'escape-form');
        return letterEscapes[letter] ?? letter;
      },
    );
    return wholeCharacters(value, start) + continueString();
  }

  /** Between the quotes of U&'…', before its UESCAPE: \XXXX and \+XXXXXX are characters. */
  function unicodeText(written: string, start: number): string {
    unicodeEscape.lastIndex = at;
    const stated = unicodeEscape.exec(text);
    if (stated !== null) at = unicodeEscape.lastIndex;
    const mark = stated?.[1] ?? '\\';
    let value = '';
    for (let i = 0; i < written.length; i++) {
      const letter = written.charAt(i);
      if (letter !== mark) value += letter;
      else if (written.charAt(i + 1) === mark) value += written.charAt(++i);
      else {
        const point = /^(?:([0-9A-Fa-f]{4})|\+([0-9A-Fa-f]{6}))/.exec(written.slice(i + 1, i + 8));
        if (point === null) fail(start, `a Unicode escape is written ${mark}XXXX or ${mark}+XXXXXX`, 'syntax');
        value += pointOf(Number.parseInt(point[1] ?? point[2]!, 16), start);
        i += point[0].length;
      }
    }
    return wholeCharacters(value, start);
  }

  function byteOf(byte: number, start: number): string {
    if (byte === 0 || byte > 0x7f) fail(start, 'an escaped byte is no character of UTF-8 by itself: write \\uXXXX', 'not-utf8');
    return String.fromCharCode(byte);
  }

  function pointOf(point: number, start: number): string {
    if (point === 0 || point > 0x10_ffff) fail(start, 'there is no such character', 'syntax');
    return String.fromCodePoint(point);
  }

  /** Two escapes may make one character; half of one is none. */
  function wholeCharacters(value: string, start: number): string {
    return !value.isWellFormed() ? fail(start, 'a string holds half of a surrogate pair', 'syntax') : value;
  }

  /** `$tag$` or `$$` where a text begins with it. */
  function dollarTag(start: number): string | null {
    tagged.lastIndex = start;
    return tagged.exec(text)?.[0] ?? null;
  }

  function dollarQuoted(tag: string): string {
    const start = at;
    const end = text.indexOf(tag, start + tag.length);
    if (end < 0) fail(start, 'unterminated string');
    at = end + tag.length;
    return wholeCharacters(text.slice(start + tag.length, end), start);
  }

  function pushMarker(start: number, valueOf: MarkerValues): void {
    at = start + 1;
    while (isDigit(text.charCodeAt(at))) at++;
    const byNumber = at > start + 1;
    if (!byNumber) at = nameEnd(at);
    const marker = text.slice(start + 1, at);
    const number = byNumber ? Number(marker) : 0;
    const value = valueOf(byNumber ? number : marker);
    if (value === undefined) fail(start, `no value was given for ${text.slice(start, at)}`, 'no-such-parameter');
    markers.set(parameters.length, number);
    if (value === untyped) pushLiteral('u', null, start);
    else if (value instanceof TypedValue) pushTyped(value, start);
    else
      pushLiteral(
        letterOf(value, (message) => fail(start, message)),
        value,
        start,
      );
  }

  function pushTyped({ type, value }: TypedValue, start: number): void {
    countValue(start);
    letterOf(value, (message) => fail(start, message));
    const isNull = value === null;
    const slot = parameters.length;
    tokens.push({ kind: 'literal', key: '', text: type, reserved: true, slot, start, typed: { type, isNull } });
    parameters.push(value);
    template += `${apart ? ' ' : ''}?${isNull ? '0' : ''}${type}`;
    apart = true;
    afterOperand = true;
  }

  function pushNumber(start: number, digits: number): void {
    let end = digits;
    let whole = true;
    while (isDigit(text.charCodeAt(end))) end++;
    // `1..5` is a range of a graph pattern, not two numbers.
    if (text.charCodeAt(end) === dot && text.charCodeAt(end + 1) !== dot) {
      whole = false;
      end++;
      while (isDigit(text.charCodeAt(end))) end++;
    }
    const e = text.charCodeAt(end) | 0x20;
    if (e === 0x65) {
      const sign = text.charCodeAt(end + 1);
      const exponent = sign === minus || sign === plus ? end + 2 : end + 1;
      if (isDigit(text.charCodeAt(exponent))) {
        whole = false;
        end = exponent;
        while (isDigit(text.charCodeAt(end))) end++;
      }
    }
    if (end < length && nameEnd(end) > end) fail(start, 'a number is followed by a letter');
    at = end;
    const written = text.slice(start, end);
    if (whole) {
      if (written.length > 15) {
        // Leading zeros aside, 20 characters hold every i64: longer text is refused before it costs a conversion.
        if (end - digits > 1000) fail(start, 'the integer does not fit 64 bits');
        const value = BigInt(written);
        if (value > FOREVER || value < -FOREVER - 1n) fail(start, 'the integer does not fit 64 bits', 'out-of-range');
        pushLiteral('i', value, start);
      } else {
        pushLiteral('i', BigInt(Number(written)), start);
      }
      return;
    }
    const value = Number(written);
    if (!Number.isFinite(value)) fail(start, 'the number is too large', 'out-of-range');
    pushLiteral('n', value, start);
  }

  /** Text between quotes, a doubled quote standing for one; a pattern's has escapes, too. Leaves `at` behind the closing quote. */
  function stringUpTo(code: number, mark: string, what: string): string {
    const start = at;
    let from = at + 1;
    let value = '';
    const hasEscapes = what === 'string' && isPattern();
    for (;;) {
      const end = text.indexOf(mark, from);
      if (end < 0) fail(start, `unterminated ${what}`);
      if (hasEscapes && nextBackslash < from) {
        const backslash = text.indexOf('\\', from);
        nextBackslash = backslash < 0 ? length : backslash;
      }
      if (hasEscapes && nextBackslash < end) {
        const { characters, behind } = escapeAt(nextBackslash);
        value += text.slice(from, nextBackslash) + characters;
        from = behind;
        continue;
      }
      value += text.slice(from, end);
      if (text.charCodeAt(end + 1) !== code) {
        at = end + 1;
        break;
      }
      value += mark;
      from = end + 2;
    }
    // Half a character has no UTF-8 form: it would silently become another one where it is compared or stored.
    if (!value.isWellFormed()) fail(start, `a ${what} holds half of a surrogate pair`);
    return value;
  }

  /** Source: openCypher, "EscapedChar". */
  function escapeAt(backslash: number): { readonly characters: string; readonly behind: number } {
    const letter = text.charAt(backslash + 1);
    const characters = patternEscapes.get(letter);
    if (characters !== undefined) return { characters, behind: backslash + 2 };
    const digits = letter === 'u' ? 4 : 8;
    const hex = text.slice(backslash + 2, backslash + 2 + digits);
    const isPoint = (letter === 'u' || letter === 'U') && hex.length === digits && /^[\da-f]+$/i.test(hex);
    const point = isPoint ? Number.parseInt(hex, 16) : -1;
    if (point < 0 || point > 0x10ffff) {
      fail(backslash, 'a string of a pattern has the escapes \\\\ \\\' \\" \\b \\f \\n \\r \\t \\uXXXX and \\UXXXXXXXX');
    }
    const one = digits === 4 ? String.fromCharCode(point) : String.fromCodePoint(point);
    return { characters: one, behind: backslash + 2 + digits };
  }

  function pushSymbol(start: number, code: number, next: number): void {
    const third = at + 2 < length ? text.charCodeAt(at + 2) : 0;
    const symbol = symbolOf(code, next, third);
    if (symbol === '') fail(start, `unexpected character ${printable(text, start)}`);
    at += symbol.length;
    if (symbol !== ',' && symbol !== '(' && symbol !== ')') countWord(start);
    if (symbol === '(') depth++;
    else if (symbol === ')') depth--;
    if (symbol === '(') listed = tokens.at(-1)?.key === 'IN' ? 0 : -1;
    else if (symbol === ',' && listed >= 0) countListed();
    tokens.push({ kind: 'symbol', key: symbol, text: symbol, reserved: true, slot: -1, start });
    const tight = symbol === '.' || symbol === ',' || symbol === ')' || symbol === ']' || symbol === ';';
    const call = symbol === '(' && afterOperand;
    template += apart && !tight && !call ? ' ' + symbol : symbol;
    apart = symbol !== '(' && symbol !== '.' && symbol !== '[';
    afterOperand = symbol === ')' || symbol === ']' || symbol === '}';
  }

  /** A value of a list is read whole. Behind many it joins the one before it: a hundred thousand must not be as many tokens, nodes and parameters. */
  function countListed(): void {
    const value = tokens.at(-1)!;
    const between = tokens.at(-2)!.key;
    const isAlone = value.kind === 'literal' && (between === ',' || between === '(');
    listed = isAlone ? listed + 1 : -1;
    if (listed <= placedMax || !joinable.has(value.text) || value.typed) return;
    const last = tokens.length - 3;
    const before = tokens[last]!;
    const { count = 1 } = before;
    if (before.text !== value.text || before.slot + count !== value.slot) return;
    tokens.length = last;
    tokens.push({
      kind: 'literal',
      key: '',
      text: before.text,
      reserved: true,
      slot: before.slot,
      start: before.start,
      count: count + 1,
    });
    joined += 2;
  }

  /** End of the name that starts here; `from` itself where none does. */
  function nameEnd(from: number): number {
    let end = from;
    for (;;) {
      const code = text.charCodeAt(end);
      if (code < 128) {
        const kind = classOf[code]!;
        if (kind !== classLetter && (kind !== classDigit || end === from)) return end;
        end++;
      } else {
        // Past the end the code is NaN.
        if (!(code >= 128)) return end;
        const point = text.codePointAt(end)!;
        const character = String.fromCodePoint(point);
        if (!(end === from ? nameStart : nameContinue).test(character)) return end;
        end += character.length;
      }
    }
  }

  /** Statements in the graph-pattern language share this lexer; their first words tell. */
  function isPattern(): boolean {
    if (patternKnown !== null) return patternKnown;
    let first = 0;
    while (first < tokens.length) {
      const { key, kind } = tokens[first]!;
      if (key !== 'EXPLAIN' && key !== 'ANALYZE' && key !== 'POLICY' && key !== 'PURPOSE' && kind !== 'literal') break;
      first++;
    }
    // Undecided while nothing but prefixes was read, or while what may be the deciding bracket is still to come.
    if (first === tokens.length) return false;
    const word = tokens[first]!.key;
    if (word === 'UNWIND' || word === 'RETURN') return (patternKnown = true);
    const second = tokens[first + 1]?.key;
    if (second === undefined) return false;
    patternKnown =
      (word === 'OPTIONAL' && second === 'MATCH') ||
      // MATCH p = (a)-[]->(b)
      (word === 'MATCH' && tokens[first + 1]!.kind !== 'symbol') ||
      ((word === 'MATCH' || word === 'CREATE' || word === 'MERGE') && second === '(');
    return patternKnown;
  }

  function fail(offset: number, message: string, reason?: ErrorReason): never {
    throw parseError(new LexedStatement(text, '', [], []).placeAt(offset), message, reason);
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

/** Where the next part of a text opens, behind a line break with spaces and comments of a line around it; -1 where none does. */
function continuedAt(text: string, from: number): number {
  let broken = false;
  for (let at = from; ; at++) {
    const code = text.charCodeAt(at);
    if (code === minus && text.charCodeAt(at + 1) === minus) {
      at = text.indexOf('\n', at);
      if (at < 0) return -1;
      broken = true;
    } else if (code === newline) broken = true;
    else if (!(code < 128) || classOf[code] !== classSpace) return broken && code === quote ? at : -1;
  }
}

const escaped = /'((?:[^'\\]|\\[^]|'')*)'/y;
const escapes = /''|\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|[^])/g;
const letterEscapes: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };
const unicodeEscape = /\s+UESCAPE\s+'([^'"+\s0-9A-Fa-f])'/iy;
const tagged = /\$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$/y;

const patternEscapes: ReadonlyMap<string, string> = new Map([
  ['\\', '\\'],
  ["'", "'"],
  ['"', '"'],
  ['b', '\b'],
  ['f', '\f'],
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
]);

function lineStartsOf(text: string): number[] {
  const starts = [0];
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return starts;
}

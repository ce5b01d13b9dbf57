/**
 * JSON as jsonb has it: members by name, of two by one name the last, in the order of the lengths of their names in bytes; numbers
 * keep all of their digits. What is made here is written as PostgreSQL writes jsonb.
 */
import { withoutTrailing } from '../../../log/values/trim-end.ts';
import { spend } from '../expression-cost.ts';
import { elements, member } from './json.ts';
import { checkLength, invalid, outOfRange } from './scalar-function.ts';

/** A number by its digits: no double holds them all. */
export class JsonNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

export type Json = null | boolean | string | JsonNumber | Json[] | Map<string, Json>;

/** Nanoseconds that a character takes to be read. */
const readCost = 20;
const levelsMax = 1_000;

/** Throws REL_INVALID for text that is no JSON. */
export function readJson(text: string): Json {
  spend(text.length * readCost);
  const reader = new Reader(text);
  const value = reader.value(0);
  if (!reader.isAtEnd()) throw noJson();
  return value;
}

const noJson = (): Error => invalid('this text is no JSON', 'text-form');

const space = /[ \t\n\r]*/y;
/** Without escapes; control characters must have one. */
const plainString = /"([ !#-[\]-\u{10ffff}]*)"/uy;
const anyString = /"(?:[ !#-[\]-\u{10ffff}]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/uy;
const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const word = /true|false|null/y;

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  isAtEnd(): boolean {
    this.#match(space);
    return this.#at === this.#text.length;
  }

  value(level: number): Json {
    if (level > levelsMax) throw invalid(`JSON of more than ${levelsMax} levels is not taken apart`);
    this.#match(space);
    switch (this.#text[this.#at]) {
      case '{':
        return this.#object(level);
      case '[':
        return this.#list(level);
      case '"':
        return this.#string();
      case 't':
      case 'f':
      case 'n': {
        const match = this.#match(word);
        if (match === null) throw noJson();
        return match[0] === 'null' ? null : match[0] === 'true';
      }
      default: {
        const match = this.#match(number);
        if (match === null) throw noJson();
        return new JsonNumber(decimalText(match[0]));
      }
    }
  }

  #object(level: number): Json {
    this.#at++;
    const members = new Map<string, Json>();
    if (this.#takes('}')) return members;
    do {
      this.#match(space);
      const name = this.#string();
      if (!this.#takes(':')) throw noJson();
      members.set(name, this.value(level + 1));
    } while (this.#takes(','));
    if (!this.#takes('}')) throw noJson();
    return members;
  }

  #list(level: number): Json {
    this.#at++;
    const list: Json[] = [];
    if (this.#takes(']')) return list;
    do list.push(this.value(level + 1));
    while (this.#takes(','));
    if (!this.#takes(']')) throw noJson();
    return list;
  }

  #string(): string {
    const plain = this.#match(plainString);
    if (plain !== null) return plain[1]!;
    const match = this.#match(anyString);
    if (match === null) throw noJson();
    const value = JSON.parse(match[0]) as string;
    if (value.includes('\0')) throw invalid('no text has the character 0', 'text-form');
    return value;
  }

  #takes(sign: string): boolean {
    this.#match(space);
    if (this.#text[this.#at] !== sign) return false;
    this.#at++;
    return true;
  }

  #match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#text);
    if (match !== null) this.#at = pattern.lastIndex;
    return match;
  }
}

const digitsMax = 1_000;

/** Without an exponent, and no minus before zero. */
function decimalText(text: string): string {
  const [mantissa = '', exponent] = text.toLowerCase().split('e');
  const [, minus = '', whole = '', fraction = ''] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(mantissa)!;
  let shown = mantissa.slice(minus.length);
  if (exponent !== undefined) {
    const exponentDigits = Number(exponent);
    if (Math.abs(exponentDigits) > digitsMax) throw outOfRange(`a number of JSON has an exponent of at most ${digitsMax}`);
    const point = whole.length + exponentDigits;
    const digits = `${'0'.repeat(Math.max(0, 1 - point))}${whole}${fraction}`;
    const at = Math.max(1, point);
    const behind = digits.slice(at);
    shown = `${digits
      .slice(0, at)
      .padEnd(at, '0')
      .replace(/^0+(?=\d)/, '')}${behind === '' ? '' : `.${behind}`}`;
  }
  return minus === '' || /^[0.]*$/.test(shown) ? shown : `-${shown}`;
}

/** As PostgreSQL writes jsonb: a space behind each comma and colon. */
export function jsonText(value: Json): string {
  return checkLength(textOf(value));
}

function textOf(value: Json): string {
  if (value instanceof JsonNumber) return value.text;
  if (Array.isArray(value)) return `[${value.map(textOf).join(', ')}]`;
  if (value instanceof Map) {
    const members = inOrder(value).map(([name, each]) => `${JSON.stringify(name)}: ${textOf(each)}`);
    return `{${members.join(', ')}}`;
  }
  return JSON.stringify(value);
}

/** Members in the order of jsonb. */
export function inOrder(members: ReadonlyMap<string, Json>): [string, Json][] {
  if (members.size < 2) return [...members];
  return Array.from(members, (each) => ({ each, bytes: Buffer.from(each[0]) }))
    .sort((a, b) => a.bytes.length - b.bytes.length || Buffer.compare(a.bytes, b.bytes))
    .map(({ each }) => each);
}

/** The text with a line for each member and element. */
export function prettyJson(value: Json): string {
  return checkLength(pretty(value, ''));
}

function pretty(value: Json, before: string): string {
  const inner = `${before}    `;
  if (Array.isArray(value)) return lines('[', ']', value, before, (each) => pretty(each, inner));
  if (!(value instanceof Map)) return textOf(value);
  return lines('{', '}', inOrder(value), before, ([name, each]) => `${JSON.stringify(name)}: ${pretty(each, inner)}`);
}

function lines<T>(opens: string, closes: string, parts: readonly T[], before: string, shown: (part: T) => string): string {
  spend(parts.length * before.length);
  return `${opens}\n${parts.map((part) => `${before}    ${shown(part)}`).join(',\n')}${parts.length > 0 ? '\n' : ''}${before}${closes}`;
}

export function isSameJson(a: Json, b: Json): boolean {
  if (a instanceof JsonNumber && b instanceof JsonNumber) return valueOf(a) === valueOf(b);
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((each, i) => isSameJson(each, b[i]!));
  if (a instanceof Map && b instanceof Map)
    return a.size === b.size && [...a].every(([name, each]) => b.has(name) && isSameJson(each, b.get(name)!));
  return a === b;
}

/** 1.50 and 1.5 are one value. */
const valueOf = ({ text }: JsonNumber): string => (text.includes('.') ? withoutTrailing(withoutTrailing(text, '0'), '.') : text);

/** `a @> b`: all of b stands in a. An array holds a scalar of its own, but only at the top. */
export function containsJson(a: Json, b: Json): boolean {
  if (Array.isArray(a) && !Array.isArray(b)) return !(b instanceof Map) && hasElement(a, b);
  return holds(a, b);
}

function holds(a: Json, b: Json): boolean {
  if (Array.isArray(a)) return Array.isArray(b) && b.every((each) => hasElement(a, each));
  if (a instanceof Map) return b instanceof Map && [...b].every(([name, each]) => a.has(name) && holds(a.get(name)!, each));
  return isSameJson(a, b);
}

const compareCost = 30;

function hasElement(list: readonly Json[], wanted: Json): boolean {
  spend(list.length * compareCost);
  return list.some((each) => holds(each, wanted));
}

/** Elements of an array of json, members of an object: the rows that functions of sets make of them. */
export function rowsOfList(given: string): string[] {
  spend(given.length * 5);
  if (!given.trimStart().startsWith('[')) throw invalid('elements of something that is no array of json');
  return [...elements(given)];
}

export function membersOf(given: string): [string, string][] {
  const value = readJson(given);
  if (!(value instanceof Map)) throw invalid('members of something that is no object of json');
  return [...value.keys()].map((name) => [name, member(given, name)!]);
}

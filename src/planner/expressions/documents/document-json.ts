/**
 * Documents as they are stored: JSON, and canonical Extended JSON where JSON alone loses the type. Whole numbers of 32 bits and fractions
 * stand bare; all else that is no text, list or object of JSON is an object of one `$` member. Members keep their order, and numbers
 * their digits. Reading and writing are steps, since a document may be long.
 */
import { ServiceError } from '../../../errors.ts';
import { allAtOnce, type Steps } from '../resumable-steps.ts';
import { doubleValue, isInt32 } from './document-numbers.ts';
import { asSpecial, Decimal, Double, isList, isObject, Special, type Stored, type StoredObject } from './document-values.ts';

const valuesPerStep = 4_000;

const invalid = (): ServiceError => new ServiceError('REL_INVALID', 'this is no JSON');

/** Counts the work of a step; true: it did enough. */
export class Pace {
  #left = valuesPerStep;

  spend(values = 1): boolean {
    this.#left -= values;
    if (this.#left > 0) return false;
    this.#left = valuesPerStep;
    return true;
  }
}

type Open = { readonly list: Stored[] } | { readonly map: Map<string, Stored>; name: string };

/** Most levels of a stored document. Other doors may write deeper documents than the document door does. */
const levelsMax = 1_000;
const number = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/y;
const space = /[ \t\n\r]*/y;

const char = {
  quote: 34,
  comma: 44,
  colon: 58,
  listOpens: 91,
  listCloses: 93,
  objectOpens: 123,
  objectCloses: 125,
} as const;

class Reader {
  readonly #text: string;
  #at = 0;
  /** The first backslash at or behind the current position. */
  #escape = -1;

  constructor(text: string) {
    this.#text = text;
  }

  /** Next character that is no space; it is not taken. */
  peek(): number {
    let code = this.#text.charCodeAt(this.#at);
    if (code > 32) return code;
    space.lastIndex = this.#at;
    space.test(this.#text);
    this.#at = space.lastIndex;
    code = this.#text.charCodeAt(this.#at);
    return code;
  }

  take(code: number): boolean {
    if (this.peek() !== code) return false;
    this.#at++;
    return true;
  }

  string(): string {
    if (!this.take(char.quote)) throw invalid();
    const start = this.#at;
    let end = this.#text.indexOf('"', start);
    let isPlain = true;
    for (let escape = this.#escapeFrom(start); escape < end; escape = this.#escapeFrom(escape + 2)) {
      isPlain = false;
      if (escape + 1 === end) end = this.#text.indexOf('"', end + 1);
    }
    if (end < 0) throw invalid();
    this.#at = end + 1;
    if (isPlain) return this.#text.slice(start, end);
    try {
      return JSON.parse(this.#text.slice(start - 1, end + 1)) as string;
    } catch {
      throw invalid();
    }
  }

  /** Place of the first backslash from there on; the text is searched for each once. */
  #escapeFrom(start: number): number {
    if (this.#escape >= start) return this.#escape;
    const escapeStart = this.#text.indexOf('\\', start);
    this.#escape = escapeStart < 0 ? Number.POSITIVE_INFINITY : escapeStart;
    return this.#escape;
  }

  name(): string {
    const name = this.string();
    if (!this.take(char.colon)) throw invalid();
    return name;
  }

  /** A value that holds no others. */
  scalar(): Stored {
    const code = this.peek();
    if (code === char.quote) return this.string();
    for (const [word, value] of words) {
      if (this.#text.startsWith(word, this.#at)) {
        this.#at += word.length;
        return value;
      }
    }
    number.lastIndex = this.#at;
    const match = number.exec(this.#text);
    if (match === null) throw invalid();
    const [text, fraction, power] = match;
    this.#at += text.length;
    if (fraction !== undefined || power !== undefined) return doubleValue(Number(text));
    const value = Number(text);
    if (isInt32(value)) return value;
    if (Object.is(value, -0)) return value;
    const whole = BigInt(text);
    return whole === BigInt.asIntN(64, whole) ? whole : doubleValue(value);
  }
}

const words: readonly (readonly [string, Stored])[] = [
  ['null', null],
  ['true', true],
  ['false', false],
];

export function* readSteps(text: string): Steps<Stored> {
  const reader = new Reader(text);
  const pace = new Pace();
  const open: Open[] = [];
  for (;;) {
    if (pace.spend()) yield;
    let value: Stored;
    const code = reader.peek();
    if (code === char.objectOpens && reader.take(code)) {
      if (open.length === levelsMax) throw invalid();
      if (!reader.take(char.objectCloses)) {
        open.push({ map: new Map(), name: reader.name() });
        continue;
      }
      value = new Map();
    } else if (code === char.listOpens && reader.take(code)) {
      if (open.length === levelsMax) throw invalid();
      if (!reader.take(char.listCloses)) {
        open.push({ list: [] });
        continue;
      }
      value = [];
    } else value = reader.scalar();
    for (;;) {
      const around = open.at(-1);
      if (around === undefined) {
        if (!Number.isNaN(reader.peek())) throw invalid();
        return value;
      }
      if ('list' in around) {
        around.list.push(value);
        if (reader.take(char.comma)) break;
        if (!reader.take(char.listCloses)) throw invalid();
        value = around.list;
      } else {
        around.map.set(around.name, value);
        if (reader.take(char.comma)) {
          around.name = reader.name();
          break;
        }
        if (!reader.take(char.objectCloses)) throw invalid();
        value = unwrap(around.map);
      }
      open.pop();
    }
  }
}

/** Throws a ServiceError for text that is not JSON. */
export const readText = (text: string): Stored => allAtOnce(readSteps(text));

/** Reads an Extended JSON wrapper as the value that it encodes. Objects that only resemble a wrapper stay objects. */
function unwrap(object: StoredObject): Stored {
  if (object.size > 2) return object;
  const [[name, inner] = ['', null], second] = object;
  if (!name.startsWith('$')) return object;
  if (second === undefined) return (Object.hasOwn(readers, name) ? readers[name]!(inner) : null) ?? object;
  if (name === '$code' && typeof inner === 'string' && second[0] === '$scope' && isObject(second[1]))
    return new Special('$scope', { code: inner, scope: second[1] });
  return object;
}

const isText = (inner: Stored | undefined): inner is string => typeof inner === 'string';
const wholeOf = (inner: Stored | undefined): bigint | null =>
  isText(inner) && /^-?\d{1,19}$/.test(inner) ? BigInt(inner) : null;
const fitting = (value: bigint | null, bits: number): bigint | null =>
  value !== null && value === BigInt.asIntN(bits, value) ? value : null;
const countOf = (inner: Stored | undefined): bigint | null => {
  const isWhole = typeof inner === 'bigint' || (typeof inner === 'number' && isInt32(inner));
  return isWhole && inner >= 0 && inner <= 0xffff_ffff ? BigInt(inner) : null;
};
const one = <N extends '$minKey' | '$maxKey'>(name: N, inner: Stored): Special | null =>
  inner === 1 ? new Special(name, 1) : null;

/** Readers of wrappers, by name; null: the object only resembles one. */
const readers: Readonly<Record<string, (inner: Stored) => Stored | null>> = {
  $numberInt: (inner) => {
    const value = fitting(wholeOf(inner), 32);
    return value === null ? null : Number(value);
  },
  $numberLong: (inner) => fitting(wholeOf(inner), 64),
  $numberDouble: (inner) =>
    isText(inner) && (inner === 'NaN' || !Number.isNaN(Number(inner))) ? doubleValue(Number(inner)) : null,
  $numberDecimal: (inner) => (isText(inner) ? Decimal.parse(inner) : null),
  $oid: (inner) => (isText(inner) && /^[0-9a-f]{24}$/.test(inner) ? new Special('$oid', inner) : null),
  $date: (inner) => {
    if (isText(inner)) return Number.isNaN(Date.parse(inner)) ? null : new Special('$date', BigInt(Date.parse(inner)));
    // A $numberLong within is read before its wrapper.
    return typeof inner === 'bigint' ? new Special('$date', inner) : null;
  },
  $timestamp: (inner) => {
    if (!isObject(inner)) return null;
    const [t, i] = [countOf(inner.get('t')), countOf(inner.get('i'))];
    return t === null || i === null || inner.size !== 2 ? null : new Special('$timestamp', (t << 32n) | i);
  },
  $binary: (inner) => {
    if (!isObject(inner)) return null;
    const [base64, subType] = [inner.get('base64'), inner.get('subType')];
    if (!isText(base64) || !isText(subType) || !/^[0-9a-f]{1,2}$/i.test(subType)) return null;
    return new Special('$binary', { bytes: Buffer.from(base64, 'base64'), type: Number.parseInt(subType, 16) });
  },
  $regularExpression: (inner) => {
    if (!isObject(inner)) return null;
    const [pattern, options] = [inner.get('pattern'), inner.get('options')];
    return isText(pattern) && isText(options) ? new Special('$regularExpression', { pattern, options }) : null;
  },
  $code: (inner) => (isText(inner) ? new Special('$code', inner) : null),
  $dbPointer: (inner) => {
    if (!isObject(inner)) return null;
    const oid = asSpecial(inner.get('$id'), '$oid');
    const ref = inner.get('$ref');
    return isText(ref) && oid !== null && inner.size === 2 ? new Special('$dbPointer', { ref, oid }) : null;
  },
  $symbol: (inner) => (isText(inner) ? new Special('$symbol', inner) : null),
  $undefined: (inner) => (inner === true ? new Special('$undefined', true) : null),
  $minKey: (inner) => one('$minKey', inner),
  $maxKey: (inner) => one('$maxKey', inner),
};

/** Names that stand for values of other types, and can't be those of members. */
export const wrapperNames: ReadonlySet<string> = new Set(Object.keys(readers));

function numberText(value: number): string {
  if (isInt32(value)) return String(value);
  if (Number.isFinite(value) && !Number.isInteger(value)) return String(value);
  return `{"$numberDouble":"${Object.is(value, -0) ? '-0.0' : wholeText(value)}"}`;
}

const wholeText = (value: number): string => (Number.isInteger(value) && !/e/.test(String(value)) ? `${value}.0` : String(value));

/** Characters of a text that are written as quickly as a value is. */
const charactersPerValue = 256;
/** A longer text is written in pieces. */
const pieceCharacters = charactersPerValue * valuesPerStep;

function* longTextSteps(text: string): Steps<string> {
  let jsonText = '"';
  for (let at = 0, end = 0; at < text.length; at = end) {
    if (at > 0) yield;
    end = Math.min(at + pieceCharacters, text.length);
    // No character is cut in two.
    if (end < text.length && (text.charCodeAt(end - 1) & 0xfc00) === 0xd800) end--;
    jsonText += JSON.stringify(text.slice(at, end)).slice(1, -1);
  }
  return `${jsonText}"`;
}

/** The text of a value that holds no others; undefined: it does. */
function scalarText(value: Stored): string | undefined {
  if (value === null) return 'null';
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'number') return numberText(value);
  if (typeof value === 'boolean') return String(value);
  if (typeof value === 'bigint') return `{"$numberLong":"${value}"}`;
  if (value instanceof Double) return `{"$numberDouble":"${wholeText(value.value)}"}`;
  if (value instanceof Decimal) return `{"$numberDecimal":"${value.text}"}`;
  if (value instanceof Special) return value.is('$scope') ? undefined : specialText(value);
  return undefined;
}

function specialText(value: Special): string {
  if (value.is('$date')) return `{"$date":{"$numberLong":"${value.inner}"}}`;
  if (value.is('$timestamp')) return `{"$timestamp":{"t":${value.inner >> 32n},"i":${value.inner & 0xffff_ffffn}}}`;
  if (value.is('$binary')) {
    const base64 = Buffer.from(value.inner.bytes).toString('base64');
    return `{"$binary":{"base64":"${base64}","subType":"${value.inner.type.toString(16).padStart(2, '0')}"}}`;
  }
  if (value.is('$dbPointer'))
    return `{"$dbPointer":{"$ref":${JSON.stringify(value.inner.ref)},"$id":{"$oid":"${value.inner.oid}"}}}`;
  if (value.is('$regularExpression')) {
    const { pattern, options } = value.inner;
    return `{"$regularExpression":{"pattern":${JSON.stringify(pattern)},"options":${JSON.stringify(options)}}}`;
  }
  return `{"${value.name}":${JSON.stringify(value.inner)}}`;
}

export function* textSteps(root: Stored): Steps<string> {
  const pace = new Pace();
  const open: { readonly members: Iterator<readonly [string | null, Stored]>; readonly end: string; isFirst: boolean }[] = [];
  const pieces = new TextPieces();
  let text = '';
  let value = root;
  for (;;) {
    const isLong = typeof value === 'string' && value.length > pieceCharacters;
    const scalar = isLong ? yield* longTextSteps(value as string) : scalarText(value);
    if (pace.spend(1 + (scalar?.length ?? 0) / charactersPerValue)) yield;
    if (scalar !== undefined) text += scalar;
    else if (isList(value)) {
      text += '[';
      open.push({ members: elements(value), end: ']', isFirst: true });
    } else if (isObject(value)) {
      const [first] = value.keys();
      // A stored object of this shape would be read as a wrapped value.
      if (first !== undefined && wrapperNames.has(first)) throw new ServiceError('REL_INVALID', `unknown operator: ${first}`);
      text += '{';
      open.push({ members: value.entries(), end: '}', isFirst: true });
    } else {
      const { code, scope } = asSpecial(value, '$scope')!;
      text += `{"$code":${JSON.stringify(code)}`;
      open.push({ members: [['$scope', scope] as const].values(), end: '}', isFirst: false });
    }
    for (;;) {
      if (text.length > pieceCharacters) {
        pieces.add(text);
        text = '';
      }
      const around = open.at(-1);
      if (around === undefined) return pieces.join(text);
      const next = around.members.next();
      if (next.done !== true) {
        const [name, member] = next.value;
        if (!around.isFirst) text += ',';
        around.isFirst = false;
        if (name !== null) text += `${JSON.stringify(name)}:`;
        value = member;
        break;
      }
      text += around.end;
      open.pop();
    }
  }
}

/**
 * Collects a long text from pieces. V8 keeps a concatenation as a tree until a character is read, and then flattens it in one go;
 * joining here flattens each piece by itself.
 */
class TextPieces {
  readonly #pieces: string[] = [];

  add(piece: string): void {
    piece.charCodeAt(0);
    this.#pieces.push(piece);
  }

  join(last: string): string {
    if (this.#pieces.length === 0) return last;
    this.add(last);
    return this.#pieces.join('');
  }
}

function* elements(list: readonly Stored[]): Generator<readonly [null, Stored], undefined, undefined> {
  for (const each of list) yield [null, each];
  return undefined;
}

export const textOf = (value: Stored): string => allAtOnce(textSteps(value));

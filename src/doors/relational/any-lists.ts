/**
 * `= ANY($1)` and `<> ALL($1)` as clients of Postgres send lists: each element becomes a parameter of its own, behind IN. No value
 * is pasted into the text, and lists of many lengths make few texts: a list is filled up to a power of two with its last element.
 */
import { ServiceError } from '../../errors.ts';
import { endOfQuoted } from '../../log/values/quoted-text.ts';
import { allAtOnce, type Steps } from '../../planner/expressions/resumable-steps.ts';
import { typeNamed, wireOf } from '../../planner/system-catalogue/catalogue-types.ts';
import { utf8 } from '../shared/utf8.ts';
import type { BoundParameter } from './parameters.ts';
import { Lexemes } from './lexer.ts';

export interface Spread {
  /** The parameter's number, from 1. */
  readonly parameter: number;
  /** The offsets of `= ANY($1)` in the text. */
  readonly from: number;
  readonly to: number;
  readonly negated: boolean;
  /** The array type of a cast; 0: there is none that lists can have. */
  readonly stated: number;
}

const elementsMax = 16_384;
const writtenMax = 131_072;
const elementsPerStep = 4_096;

/** The element type of each array type. */
const elementOids: Readonly<Record<number, number>> = {
  1000: 16,
  1003: 19,
  1005: 21,
  1007: 23,
  1009: 25,
  1015: 1043,
  1016: 20,
  1021: 700,
  1022: 701,
  1028: 26,
  1115: 1114,
  1182: 1082,
  1185: 1184,
  1231: 1700,
  2951: 2950,
};

export function* spreadsIn(text: string): Steps<readonly Spread[]> {
  if (!/\b(ANY|ALL|SOME)\s*\(\s*\$/i.test(text)) return [];
  const lexemes = yield* Lexemes.read(text);
  const spreads: Spread[] = [];
  while (lexemes.next.kind !== 'end') {
    yield* lexemes.pause();
    const { from } = lexemes.next;
    const negated = lexemes.skip('<', '>') || lexemes.skip('!', '=');
    if (!negated && !lexemes.skip('=')) {
      lexemes.take();
      continue;
    }
    if (!(negated ? lexemes.skip('ALL') : lexemes.skip('ANY') || lexemes.skip('SOME')) || !lexemes.skip('(', '$')) continue;
    const parameter = Number(lexemes.take().text);
    let stated = 0;
    if (lexemes.skip(':', ':')) {
      const type = typeNamed(lexemes.name('a type').toLowerCase());
      const { array } = type === null ? { array: 0 } : wireOf(type);
      stated = elementOids[array] === undefined ? 0 : array;
      lexemes.expect('[', ']');
    }
    const { to } = lexemes.next;
    lexemes.expect(')');
    spreads.push({ parameter, from, to, negated, stated });
  }
  return spreads;
}

/** Rewrites lists given as texts, `= ANY('{a,b}')`, to `ARRAY['a', 'b']`. */
export function* withListsWritten(text: string): Steps<string> {
  if (!/\b(ANY|ALL|SOME)\s*\(\s*'\{/i.test(text)) return text;
  const lexemes = yield* Lexemes.read(text);
  let written = '';
  let at = 0;
  while (lexemes.next.kind !== 'end') {
    yield* lexemes.pause();
    if (!(lexemes.skip('ANY', '(') || lexemes.skip('ALL', '(') || lexemes.skip('SOME', '('))) {
      lexemes.take();
      continue;
    }
    const list = lexemes.next;
    if (list.kind !== 'text' || !/^\s*\{/.test(list.text)) continue;
    lexemes.take();
    let { to } = list;
    let type = '';
    if (lexemes.skip(':', ':')) {
      type = lexemes.name('a type').toLowerCase();
      lexemes.expect('[');
      to = lexemes.next.to;
      lexemes.expect(']');
    }
    // Names of catalogue objects are looked up in the catalogue.
    if (type.startsWith('reg')) continue;
    const isNumber = /^(int|float|numeric|double|real|bigint|smallint)/.test(type);
    const items = (yield* textElements(list.text, checkWritten)).map((item) =>
      item === null
        ? 'NULL'
        : isNumber && numeral.test(item.toString())
          ? item.toString()
          : `'${item.toString().replaceAll("'", "''")}'`,
    );
    written += `${text.slice(at, list.from)}ARRAY[${items.join(', ')}]`;
    at = to;
  }
  return written + text.slice(at);
}

/** A list in the text of a statement is as long as one of literals may be. */
function checkWritten(elements: number): void {
  if (elements > writtenMax) throw new ServiceError('REL_TOO_LARGE', `a list in a statement has at most ${writtenMax} elements`);
}

const numeral = /^-?\d+(\.\d+)?$/;

/** The text for lists of these lengths; elements behind the first of each are numbered behind `parameters`. */
function spreadText(text: string, spreads: readonly Spread[], lengths: ReadonlyMap<number, number>, parameters: number): string {
  const firsts = new Map<number, number>();
  let next = parameters;
  for (const [parameter, length] of lengths) {
    firsts.set(parameter, next + 1);
    next += Math.max(0, length - 1);
  }
  let spread = '';
  let at = 0;
  for (const { parameter, from, to, negated } of spreads) {
    const length = lengths.get(parameter)!;
    const more = Array.from({ length: Math.max(0, length - 1) }, (_, i) => `, $${firsts.get(parameter)! + i}`);
    // NULL takes any type, so the list takes that of the operand before it.
    const list = length === 0 ? `SELECT NULL WHERE $${parameter} IS NULL AND FALSE` : `$${parameter}${more.join('')}`;
    spread += `${text.slice(at, from)} ${negated ? 'NOT IN' : 'IN'} (${list})`;
    at = to;
  }
  return spread + text.slice(at);
}

/** The text for a description: a list has one element. */
export function spreadOnce(text: string, spreads: readonly Spread[], oids: readonly number[]): { text: string; oids: number[] } {
  const lists = new Set(spreads.map(({ parameter }) => parameter));
  const elements = oids.map((oid, i) => (lists.has(i + 1) ? elementOid(oid) : oid));
  return { text: spreadText(text, spreads, new Map([...lists].map((each) => [each, 1])), 0), oids: elements };
}

export function spreadBound(
  text: string,
  spreads: readonly Spread[],
  bound: BoundParameter,
): { text: string; bound: BoundParameter } {
  const { values, formats, oids, types } = bound;
  const format = (i: number): number => (formats.length > 1 ? formats[i]! : (formats[0] ?? 0));
  const all = values.map((value, i) => ({ value, format: format(i), oid: oids[i] ?? 0, type: types?.[i] ?? null }));
  const lengths = new Map<number, number>();
  for (const parameter of new Set(spreads.map((each) => each.parameter))) {
    const given = all[parameter - 1];
    if (given === undefined) throw new ServiceError('REL_INVALID', `no value is bound to $${parameter}`);
    // Whether a cell is one of an unknown list is unknown: of no list it would be none, and behind <> ALL every one.
    const { elements, oid } =
      given.value === null ? { elements: [null], oid: elementOid(given.oid) } : elementsOf(given.value, { ...given, parameter });
    const length = elements.length === 0 ? 0 : 2 ** Math.ceil(Math.log2(elements.length));
    lengths.set(parameter, length);
    const last = elements.at(-1) ?? null;
    all[parameter - 1] = { ...given, value: elements[0] ?? null, oid };
    for (let i = 1; i < length; i++) all.push({ ...given, value: i < elements.length ? elements[i]! : last, oid });
  }
  return {
    text: spreadText(text, spreads, lengths, values.length),
    bound: {
      values: all.map(({ value }) => value),
      formats: all.length > 1 ? all.map((each) => each.format) : [all[0]?.format ?? 0],
      oids: all.map(({ oid }) => oid),
      types: types === null || all.some(({ type }) => type === null) ? null : all.map(({ type }) => type!),
    },
  };
}

/** 0 where the client leaves the type open. */
function elementOid(oid: number): number {
  if (oid === 0 || oid === 705) return 0;
  const element = elementOids[oid];
  if (element === undefined)
    throw new ServiceError('REL_TYPE_MISMATCH', `a list behind ANY is an array, not the type of number ${oid}`);
  return element;
}

interface Elements {
  readonly elements: readonly (Buffer | null)[];
  readonly oid: number;
}

/** Counted while they are read: of a list that is too long, no more is read. */
function elementsOf(
  bytes: Buffer,
  { format, oid, parameter }: { readonly format: number; readonly oid: number; readonly parameter: number },
): Elements {
  const count = (elements: number): void => {
    if (elements > elementsMax)
      throw new ServiceError('REL_TOO_LARGE', `$${parameter} has more elements than a list has at most: ${elementsMax}`);
  };
  if (format === 1) return binaryElements(bytes, count);
  return { elements: allAtOnce(textElements(utf8(bytes), count)), oid: elementOid(oid) };
}

/** Dimensions, whether there are NULLs, type of the elements, length and first index of each dimension; then each with its length. */
function binaryElements(bytes: Buffer, counted: (elements: number) => void): Elements {
  const malformedList = (): ServiceError => new ServiceError('REL_INVALID', 'the list of ANY must be an array of one dimension');
  if (bytes.length < 12) throw malformedList();
  const dimensions = bytes.readInt32BE(0);
  const oid = bytes.readUInt32BE(8);
  if (dimensions === 0) return { elements: [], oid };
  if (dimensions !== 1 || bytes.length < 20) throw malformedList();
  const count = bytes.readInt32BE(12);
  counted(count);
  const elements: (Buffer | null)[] = [];
  let at = 20;
  for (let i = 0; i < count; i++) {
    if (at + 4 > bytes.length) throw malformedList();
    const size = bytes.readInt32BE(at);
    at += 4;
    if (size >= 0 && at + size > bytes.length) throw malformedList();
    elements.push(size < 0 ? null : bytes.subarray(at, at + size));
    at += Math.max(0, size);
  }
  return { elements, oid };
}

/** `{a,"b, c",NULL}` */
function* textElements(text: string, counted: (elements: number) => void): Steps<(Buffer | null)[]> {
  const body = /^\s*\{([^]*)\}\s*$/.exec(text)?.[1];
  if (body === undefined) throw new ServiceError('REL_TYPE_MISMATCH', "a list behind ANY is written '{a,b}'");
  if (body.trim() === '') return [];
  const elements: (Buffer | null)[] = [];
  for (let at = 0; ; at++) {
    counted(elements.length + 1);
    if (elements.length % elementsPerStep === elementsPerStep - 1) yield;
    const start = behindAll(blanks, body, at);
    const quoted = body[start] === '"' ? endOfQuoted(body, start) : null;
    if (quoted === null) {
      const end = behindAll(plainText, body, start);
      const plain = body.slice(start, end).trim();
      elements.push(/^null$/i.test(plain) ? null : Buffer.from(plain));
      at = end;
    } else {
      elements.push(Buffer.from(body.slice(start + 1, quoted - 1).replaceAll(/\\([^])/g, '$1')));
      at = behindAll(blanks, body, quoted);
    }
    if (at === body.length) return elements;
    if (body[at] !== ',') throw new ServiceError('REL_TYPE_MISMATCH', "a list behind ANY is written '{a,b}'");
  }
}

const blanks = /\s*/y;
const plainText = /[^,{}"]*/y;

function behindAll(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return at + pattern.exec(text)![0].length;
}

/** Functions of text. Characters are code points, counted from 1. */
import type { Cell } from '../../../log/values/value.ts';
import { cellText } from './casts.ts';
import { lengthOf, plain, unitAfter, unitsOf } from '../code-points.ts';
import { type Cost, spend } from '../expression-cost.ts';
import { firstMatch } from './patterns.ts';
import {
  checkLength,
  integer,
  invalid,
  linear,
  type ScalarFunction,
  type Signature,
  text,
  textMax,
  tooLong,
} from './scalar-function.ts';

/** The characters from .. to-1 that the text has. */
function part(of: string, from: number, to: number): string {
  if (plain.test(of)) return of.slice(from, to);
  const start = unitAfter(of, 0, from);
  return of.slice(start, unitAfter(of, start, to - from));
}

/** A count that no text reaches is as good as any other that none reaches. */
function count(cell: Cell | undefined): number {
  const value = integer(cell);
  return value > BigInt(2 * textMax) ? 2 * textMax : value < BigInt(-2 * textMax) ? -2 * textMax : Number(value);
}

/** The characters from .. from+length-1 that the text has. */
export function substring(of: Cell, from: Cell, length?: Cell): string {
  const start = count(from) - 1;
  const end = length === undefined ? text(of).length : start + count(length);
  return end <= 0 ? '' : part(text(of), Math.max(0, start), end);
}

function trim(of: string, set: string, ends: 'both' | 'start' | 'end'): string {
  const dropped = new Set(Array.from(set, (char) => char.codePointAt(0)));
  let from = 0;
  let to = of.length;
  if (ends !== 'end') {
    for (let point = of.codePointAt(from); from < to && dropped.has(point); point = of.codePointAt(from)) from += unitsOf(point!);
  }
  if (ends !== 'start') {
    for (let point = pointBefore(of, to); to > from && dropped.has(point); point = pointBefore(of, to)) to -= unitsOf(point!);
  }
  return of.slice(from, to);
}

function pointBefore(of: string, at: number): number | undefined {
  return of.codePointAt((of.charCodeAt(at - 1) & 0xfc00) === 0xdc00 ? at - 2 : at - 1);
}

/** Nanoseconds: characters are looked up one by one. */
const perTrimmed: Cost = { call: 200, character: 15 };

function trimming(name: string, ends: 'both' | 'start' | 'end', also: readonly string[], example: readonly [string, string]) {
  const where = ends === 'both' ? 'both ends' : `the ${ends}`;
  return {
    name,
    also,
    group: 'text',
    usage: name === 'TRIM' ? 'TRIM([[LEADING|TRAILING|BOTH] [characters] FROM] x)' : `${name}(x[, characters])`,
    summary: `The text without the spaces, or characters of the given set, at ${where}.`,
    examples: [example],
    signatures: [
      {
        takes: ['string', 'string'],
        cost: perTrimmed,
        optional: 1,
        yields: 'string',
        evaluate: (of, set = ' ') => trim(text(of), text(set), ends),
      },
    ],
  } as const satisfies ScalarFunction;
}

function pad(of: Cell, width: Cell, fill: string, atStart: boolean): string {
  const wanted = count(width);
  if (wanted > textMax) throw tooLong();
  const length = lengthOf(text(of));
  if (wanted <= length || fill === '') return part(text(of), 0, Math.max(0, Math.min(wanted, length)));
  const missing = wanted - length;
  const each = lengthOf(fill);
  const padding = fill.repeat(Math.floor(missing / each)) + part(fill, 0, missing % each);
  return atStart ? padding + text(of) : text(of) + padding;
}

function split(of: string, separator: string, which: bigint): string {
  if (which === 0n) throw invalid('SPLIT_PART counts from 1, or from -1 backwards');
  if (separator === '') return which === 1n || which === -1n ? of : '';
  const partCount = count(which < 0n ? -which : which);
  if (which > 0n) return nthPart(of, separator, partCount);
  // Overlapping separators are split from the start, as for a positive index.
  let parts = 1;
  for (let at = of.indexOf(separator); at >= 0; at = of.indexOf(separator, at + separator.length)) {
    spend(pieceCost);
    parts++;
  }
  return partCount > parts ? '' : nthPart(of, separator, parts - partCount + 1);
}

/** Counted from 1. */
function nthPart(of: string, separator: string, index: number): string {
  let from = 0;
  for (let left = index, at = of.indexOf(separator); ; at = of.indexOf(separator, from)) {
    spend(pieceCost);
    if (--left === 0) return at < 0 ? of.slice(from) : of.slice(from, at);
    if (at < 0) return '';
    from = at + separator.length;
  }
}

/** Nanoseconds that each occurrence of a part takes. */
const pieceCost = 40;

/** The position of `sought`, 0 where it does not occur. */
function position(sought: Cell, of: Cell): bigint {
  const at = text(of).indexOf(text(sought));
  return at < 0 ? 0n : BigInt(lengthOf(text(of).slice(0, at)) + 1);
}

function replaceText(of: string, sought: string, replacement: string): string {
  if (sought === '') return of;
  let size = of.length;
  for (let at = of.indexOf(sought); at >= 0; at = of.indexOf(sought, at + sought.length)) {
    spend(2 * pieceCost);
    size += replacement.length - sought.length;
  }
  if (size > textMax) throw tooLong();
  return of.split(sought).join(replacement);
}

function reverse(of: string): string {
  const units = new Uint16Array(of.length);
  const last = of.length - 1;
  for (let at = 0; at <= last; at++) {
    const unit = of.charCodeAt(at);
    if ((unit & 0xfc00) === 0xd800) {
      // Both halves of a character stay in their order.
      units[last - at - 1] = unit;
      units[last - at] = of.charCodeAt(at + 1);
      at++;
    } else units[last - at] = unit;
  }
  return Buffer.from(units.buffer).toString('utf16le');
}

const concatenation: Signature = {
  takes: ['any', 'any'],
  cost: linear,
  yields: 'string',
  evaluate: (left, right) => checkLength(cellText(left!) + cellText(right!)),
  raises: true,
};

export const textFunctions: readonly ScalarFunction[] = [
  {
    name: 'LOWER',
    group: 'text',
    usage: 'LOWER(x)',
    summary: 'The text in lower case, whatever the language.',
    examples: [["LOWER('ÄBC')", 'äbc']],
    signatures: [
      { takes: ['string'], cost: { call: 100, character: 12 }, yields: 'string', evaluate: (of) => text(of).toLowerCase() },
    ],
  },
  {
    name: 'UPPER',
    group: 'text',
    usage: 'UPPER(x)',
    summary: 'The text in upper case, whatever the language.',
    examples: [["UPPER('äbc')", 'ÄBC']],
    signatures: [
      { takes: ['string'], cost: { call: 100, character: 12 }, yields: 'string', evaluate: (of) => text(of).toUpperCase() },
    ],
  },
  {
    name: 'LENGTH',
    also: ['CHAR_LENGTH', 'CHARACTER_LENGTH'],
    group: 'text',
    usage: 'LENGTH(x)',
    summary: 'How many characters the text has.',
    examples: [["LENGTH('Zoë')", '3']],
    signatures: [
      { takes: ['string'], cost: linear, yields: 'integer', evaluate: (of) => BigInt(lengthOf(text(of))), small: true },
    ],
  },
  trimming('TRIM', 'both', ['BTRIM'], ["TRIM('  a b ')", 'a b']),
  trimming('LTRIM', 'start', [], ["LTRIM('007', '0')", '7']),
  trimming('RTRIM', 'end', [], ["RTRIM('a!!', '!')", 'a']),
  {
    name: 'SUBSTRING',
    also: ['SUBSTR'],
    group: 'text',
    usage: "SUBSTRING(x, from[, length]) or SUBSTRING(x [FROM from] [FOR length]) or SUBSTRING(x FROM 'pattern')",
    summary:
      'So many characters from a place on; places before the first count and are empty, a negative length is none. By a regular expression its first match, or of that the first group.',
    examples: [
      ["SUBSTRING('Alfred', 2, 3)", 'lfr'],
      ["SUBSTRING('Alfred' FROM 0 FOR 2)", 'A'],
      ["SUBSTRING('Alfred' FROM 'f(.)e')", 'r'],
    ],
    signatures: [
      {
        takes: ['string', 'integer', 'integer'],
        cost: linear,
        optional: 1,
        yields: 'string',
        evaluate: substring as Signature['evaluate'],
      },
      {
        takes: ['string', 'string'],
        cost: linear,
        yields: 'string',
        evaluate: (of, pattern) => firstMatch(text(of), text(pattern)),
        raises: true,
      },
    ],
  },
  {
    name: 'LEFT',
    group: 'text',
    usage: 'LEFT(x, n)',
    summary: 'The first n characters; with a negative n all but so many of the last.',
    examples: [
      ["LEFT('Alfred', 2)", 'Al'],
      ["LEFT('Alfred', -2)", 'Alfr'],
    ],
    signatures: [
      {
        takes: ['string', 'integer'],
        cost: linear,
        yields: 'string',
        evaluate: (of, n) => {
          return part(text(of), 0, count(n) < 0 ? Math.max(0, lengthOf(text(of)) + count(n)) : count(n));
        },
      },
    ],
  },
  {
    name: 'RIGHT',
    group: 'text',
    usage: 'RIGHT(x, n)',
    summary: 'The last n characters; with a negative n all but so many of the first.',
    examples: [
      ["RIGHT('Alfred', 2)", 'ed'],
      ["RIGHT('Alfred', -2)", 'fred'],
    ],
    signatures: [
      {
        takes: ['string', 'integer'],
        cost: linear,
        yields: 'string',
        evaluate: (of, n) => {
          const length = lengthOf(text(of));
          return part(text(of), count(n) < 0 ? -count(n) : Math.max(0, length - count(n)), length);
        },
      },
    ],
  },
  {
    name: 'LPAD',
    group: 'text',
    usage: 'LPAD(x, length[, fill])',
    summary: 'The text filled up at the start to a length, by spaces or the given fill; a longer one is cut.',
    examples: [["LPAD('7', 3, '0')", '007']],
    signatures: [
      {
        takes: ['string', 'integer', 'string'],
        cost: linear,
        optional: 1,
        yields: 'string',
        evaluate: (of, width, fill = ' ') => pad(of!, width!, text(fill), true),
        raises: true,
      },
    ],
  },
  {
    name: 'RPAD',
    group: 'text',
    usage: 'RPAD(x, length[, fill])',
    summary: 'The text filled up at the end to a length, by spaces or the given fill; a longer one is cut.',
    examples: [["RPAD('7', 3, 'ab')", '7ab']],
    signatures: [
      {
        takes: ['string', 'integer', 'string'],
        cost: linear,
        optional: 1,
        yields: 'string',
        evaluate: (of, width, fill = ' ') => pad(of!, width!, text(fill), false),
        raises: true,
      },
    ],
  },
  {
    name: 'REPLACE',
    group: 'text',
    usage: 'REPLACE(x, part, by)',
    summary: 'The text with every occurrence of a part replaced.',
    examples: [["REPLACE('a-b-c', '-', '/')", 'a/b/c']],
    signatures: [
      {
        takes: ['string', 'string', 'string'],
        cost: linear,
        yields: 'string',
        evaluate: (of, part, replacement) => replaceText(text(of), text(part), text(replacement)),
        raises: true,
      },
    ],
  },
  {
    name: 'POSITION',
    group: 'text',
    usage: 'POSITION(part IN x)',
    summary: 'Where a part first begins, 0 where it does not occur.',
    examples: [["POSITION('f' IN 'Alfred')", '3']],
    signatures: [
      { takes: ['string', 'string'], cost: linear, yields: 'integer', evaluate: position as Signature['evaluate'], small: true },
    ],
  },
  {
    name: 'STRPOS',
    group: 'text',
    usage: 'STRPOS(x, part)',
    summary: 'The same as POSITION(part IN x).',
    examples: [["STRPOS('Alfred', 'x')", '0']],
    signatures: [
      { takes: ['string', 'string'], cost: linear, yields: 'integer', evaluate: (of, part) => position(part!, of!), small: true },
    ],
  },
  {
    name: 'SPLIT_PART',
    group: 'text',
    usage: 'SPLIT_PART(x, by, n)',
    summary:
      'The n-th of the parts between occurrences of a separator; negative n count from the end, what is not there is empty.',
    examples: [
      ["SPLIT_PART('a,b,c', ',', 2)", 'b'],
      ["SPLIT_PART('a,b,c', ',', -1)", 'c'],
    ],
    signatures: [
      {
        takes: ['string', 'string', 'integer'],
        cost: linear,
        yields: 'string',
        evaluate: (of, separator, n) => split(text(of), text(separator), integer(n)),
        raises: true,
      },
    ],
  },
  {
    name: 'STARTS_WITH',
    also: ['^@'],
    group: 'text',
    usage: 'STARTS_WITH(x, part)',
    summary: 'Whether the text begins with a part.',
    examples: [["STARTS_WITH('Alfred', 'Al')", 'true']],
    signatures: [
      { takes: ['string', 'string'], cost: linear, yields: 'boolean', evaluate: (of, part) => text(of).startsWith(text(part)) },
    ],
  },
  {
    name: 'ENDS_WITH',
    group: 'text',
    usage: 'ENDS_WITH(x, part)',
    summary: 'Whether the text ends with a part.',
    examples: [["ENDS_WITH('Alfred', 'red')", 'true']],
    signatures: [
      { takes: ['string', 'string'], cost: linear, yields: 'boolean', evaluate: (of, part) => text(of).endsWith(text(part)) },
    ],
  },
  {
    name: 'CONTAINS',
    group: 'text',
    usage: 'CONTAINS(x, part)',
    summary: 'Whether a part stands in the text.',
    examples: [["CONTAINS('Alfred', 'fr')", 'true']],
    signatures: [
      { takes: ['string', 'string'], cost: linear, yields: 'boolean', evaluate: (of, part) => text(of).includes(text(part)) },
    ],
  },
  {
    name: 'REVERSE',
    group: 'text',
    usage: 'REVERSE(x)',
    summary: 'The characters from the last to the first.',
    examples: [["REVERSE('abc')", 'cba']],
    signatures: [
      { takes: ['string'], cost: linear, yields: 'string', evaluate: (of) => reverse(checkLength(text(of))), raises: true },
    ],
  },
  {
    name: 'CONCAT',
    group: 'text',
    usage: 'CONCAT(x, ...)',
    summary: 'The values as texts, one after the other; NULL is an empty text.',
    examples: [["CONCAT('a', NULL, 1)", 'a1']],
    signatures: [
      {
        takes: ['any'],
        cost: linear,
        repeats: true,
        yields: 'string',
        evaluate: (...cells) => checkLength(cells.map((cell) => (cell === null ? '' : cellText(cell))).join('')),
        raises: true,
        takesNull: true,
      },
    ],
  },
  {
    name: '||',
    group: 'text',
    usage: 'x || y',
    summary: 'Both as texts, one after the other; NULL where either is NULL.',
    examples: [
      ["'a' || 'b'", 'ab'],
      ["'n' || 1", 'n1'],
    ],
    signatures: [
      { ...concatenation, takes: ['string', 'any'], cost: linear },
      { ...concatenation, takes: ['any', 'string'], cost: linear },
    ],
  },
];

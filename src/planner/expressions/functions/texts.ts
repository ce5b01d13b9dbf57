/** Functions of text. Characters are code points, counted from 1. */
import type { Cell } from '../../../log/value.ts';
import { written } from './casts.ts';
import { bounded, integer, invalid, type ScalarFunction, type Signature, text, textMax } from './scalar-function.ts';

/** Half of a surrogate pair never stands alone in stored text, so only texts without any have one unit a character. */
const plain = /^[^\ud800-\udfff]*$/;

function characters(of: string): readonly string[] | string {
  return plain.test(of) ? of : Array.from(of);
}

function joined(of: readonly string[] | string, from: number, to: number): string {
  return typeof of === 'string' ? of.slice(from, to) : of.slice(from, to).join('');
}

/** A count that no text reaches is as good as any other that none reaches. */
function count(cell: Cell | undefined): number {
  const value = integer(cell);
  return value > BigInt(2 * textMax) ? 2 * textMax : value < BigInt(-2 * textMax) ? -2 * textMax : Number(value);
}

/** Those of the places from .. from+length-1 that the text has. */
export function substring(of: Cell, from: Cell, length?: Cell): string {
  const all = characters(text(of));
  const start = count(from) - 1;
  const end = length === undefined ? all.length : start + count(length);
  return end <= 0 ? '' : joined(all, Math.max(0, start), Math.max(0, end));
}

function trimmed(of: string, set: string, ends: 'both' | 'start' | 'end'): string {
  const all = characters(of);
  const dropped = new Set(Array.from(set));
  let from = 0;
  let to = all.length;
  if (ends !== 'end') while (from < to && dropped.has(all[from]!)) from++;
  if (ends !== 'start') while (to > from && dropped.has(all[to - 1]!)) to--;
  return joined(all, from, to);
}

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
        optional: 1,
        yields: 'string',
        evaluate: (of, set = ' ') => trimmed(text(of), text(set), ends),
      },
    ],
  } as const satisfies ScalarFunction;
}

function padded(of: Cell, width: Cell, fill: string, atStart: boolean): string {
  const wanted = count(width);
  if (wanted > textMax) throw invalid(`a function yields texts of at most ${textMax} characters`);
  const all = characters(text(of));
  if (wanted <= all.length || fill === '') return joined(all, 0, Math.max(0, Math.min(wanted, all.length)));
  const missing = wanted - all.length;
  const pieces = characters(fill);
  const padding = joined(characters(fill.repeat(Math.ceil(missing / pieces.length))), 0, missing);
  return atStart ? padding + text(of) : text(of) + padding;
}

function split(of: string, by: string, which: bigint): string {
  if (which === 0n) throw invalid('SPLIT_PART counts from 1, or from -1 backwards');
  const parts = by === '' ? [of] : of.split(by);
  const place = which > 0n ? which - 1n : BigInt(parts.length) + which;
  return place >= 0n && place < BigInt(parts.length) ? parts[Number(place)]! : '';
}

/** Where `part` begins, 0 where it is not there. */
function position(part: Cell, of: Cell): bigint {
  const at = text(of).indexOf(text(part));
  return at < 0 ? 0n : BigInt(characters(text(of).slice(0, at)).length + 1);
}

function replaced(of: string, part: string, by: string): string {
  if (part === '') return of;
  const pieces = of.split(part);
  if (of.length + (pieces.length - 1) * (by.length - part.length) > textMax) return bounded(' '.repeat(textMax + 1));
  return pieces.join(by);
}

const concatenation: Signature = {
  takes: ['any', 'any'],
  yields: 'string',
  evaluate: (left, right) => bounded(written(left!) + written(right!)),
  raises: true,
};

export const textFunctions: readonly ScalarFunction[] = [
  {
    name: 'LOWER',
    group: 'text',
    usage: 'LOWER(x)',
    summary: 'The text in lower case, whatever the language.',
    examples: [["LOWER('ÄBC')", 'äbc']],
    signatures: [{ takes: ['string'], yields: 'string', evaluate: (of) => text(of).toLowerCase() }],
  },
  {
    name: 'UPPER',
    group: 'text',
    usage: 'UPPER(x)',
    summary: 'The text in upper case, whatever the language.',
    examples: [["UPPER('äbc')", 'ÄBC']],
    signatures: [{ takes: ['string'], yields: 'string', evaluate: (of) => text(of).toUpperCase() }],
  },
  {
    name: 'LENGTH',
    also: ['CHAR_LENGTH', 'CHARACTER_LENGTH'],
    group: 'text',
    usage: 'LENGTH(x)',
    summary: 'How many characters the text has.',
    examples: [["LENGTH('Zoë')", '3']],
    signatures: [{ takes: ['string'], yields: 'integer', evaluate: (of) => BigInt(characters(text(of)).length), small: true }],
  },
  trimming('TRIM', 'both', ['BTRIM'], ["TRIM('  a b ')", 'a b']),
  trimming('LTRIM', 'start', [], ["LTRIM('007', '0')", '7']),
  trimming('RTRIM', 'end', [], ["RTRIM('a!!', '!')", 'a']),
  {
    name: 'SUBSTRING',
    also: ['SUBSTR'],
    group: 'text',
    usage: 'SUBSTRING(x, from[, length]) or SUBSTRING(x FROM from [FOR length])',
    summary: 'So many characters from a place on; places before the first count and are empty, a negative length is none.',
    examples: [
      ["SUBSTRING('Alfred', 2, 3)", 'lfr'],
      ["SUBSTRING('Alfred' FROM 0 FOR 2)", 'A'],
    ],
    signatures: [
      { takes: ['string', 'integer', 'integer'], optional: 1, yields: 'string', evaluate: substring as Signature['evaluate'] },
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
        yields: 'string',
        evaluate: (of, n) => {
          const all = characters(text(of));
          return joined(all, 0, count(n) < 0 ? Math.max(0, all.length + count(n)) : count(n));
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
        yields: 'string',
        evaluate: (of, n) => {
          const all = characters(text(of));
          return joined(all, count(n) < 0 ? -count(n) : Math.max(0, all.length - count(n)), all.length);
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
        optional: 1,
        yields: 'string',
        evaluate: (of, width, fill = ' ') => padded(of!, width!, text(fill), true),
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
        optional: 1,
        yields: 'string',
        evaluate: (of, width, fill = ' ') => padded(of!, width!, text(fill), false),
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
        yields: 'string',
        evaluate: (of, part, by) => replaced(text(of), text(part), text(by)),
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
    signatures: [{ takes: ['string', 'string'], yields: 'integer', evaluate: position as Signature['evaluate'], small: true }],
  },
  {
    name: 'STRPOS',
    group: 'text',
    usage: 'STRPOS(x, part)',
    summary: 'The same as POSITION(part IN x).',
    examples: [["STRPOS('Alfred', 'x')", '0']],
    signatures: [{ takes: ['string', 'string'], yields: 'integer', evaluate: (of, part) => position(part!, of!), small: true }],
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
        yields: 'string',
        evaluate: (of, by, n) => split(text(of), text(by), integer(n)),
        raises: true,
      },
    ],
  },
  {
    name: 'STARTS_WITH',
    group: 'text',
    usage: 'STARTS_WITH(x, part)',
    summary: 'Whether the text begins with a part.',
    examples: [["STARTS_WITH('Alfred', 'Al')", 'true']],
    signatures: [{ takes: ['string', 'string'], yields: 'boolean', evaluate: (of, part) => text(of).startsWith(text(part)) }],
  },
  {
    name: 'ENDS_WITH',
    group: 'text',
    usage: 'ENDS_WITH(x, part)',
    summary: 'Whether the text ends with a part.',
    examples: [["ENDS_WITH('Alfred', 'red')", 'true']],
    signatures: [{ takes: ['string', 'string'], yields: 'boolean', evaluate: (of, part) => text(of).endsWith(text(part)) }],
  },
  {
    name: 'CONTAINS',
    group: 'text',
    usage: 'CONTAINS(x, part)',
    summary: 'Whether a part stands in the text.',
    examples: [["CONTAINS('Alfred', 'fr')", 'true']],
    signatures: [{ takes: ['string', 'string'], yields: 'boolean', evaluate: (of, part) => text(of).includes(text(part)) }],
  },
  {
    name: 'REVERSE',
    group: 'text',
    usage: 'REVERSE(x)',
    summary: 'The characters from the last to the first.',
    examples: [["REVERSE('abc')", 'cba']],
    signatures: [{ takes: ['string'], yields: 'string', evaluate: (of) => Array.from(text(of)).reverse().join('') }],
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
        repeats: true,
        yields: 'string',
        evaluate: (...cells) => bounded(cells.map((cell) => (cell === null ? '' : written(cell))).join('')),
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
      { ...concatenation, takes: ['string', 'any'] },
      { ...concatenation, takes: ['any', 'string'] },
    ],
  },
];

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
function characterRange(characterText: string, from: number, to: number): string {
  if (plain.test(characterText)) return characterText.slice(from, to);
  const rangeStart = unitAfter(characterText, 0, from);
  return characterText.slice(rangeStart, unitAfter(characterText, rangeStart, to - from));
}

/** A count that no text reaches is as good as any other that none reaches. */
function characterCount(cell: Cell | undefined): number {
  const characterNumber = integer(cell);
  return characterNumber > BigInt(2 * textMax)
    ? 2 * textMax
    : characterNumber < BigInt(-2 * textMax)
      ? -2 * textMax
      : Number(characterNumber);
}

/** The characters from .. from+length-1 that the text has. */
export function substring(textCell: Cell, from: Cell, length?: Cell): string {
  const substringStart = characterCount(from) - 1;
  const substringEnd = length === undefined ? text(textCell).length : substringStart + characterCount(length);
  return substringEnd <= 0 ? '' : characterRange(text(textCell), Math.max(0, substringStart), substringEnd);
}

function trimCharacters(trimmedSource: string, trimSet: string, trimEnds: 'both' | 'start' | 'end'): string {
  const droppedPoints = new Set(Array.from(trimSet, (trimCharacter) => trimCharacter.codePointAt(0)));
  let keptStart = 0;
  let keptEnd = trimmedSource.length;
  if (trimEnds !== 'end') {
    for (
      let edgePoint = trimmedSource.codePointAt(keptStart);
      keptStart < keptEnd && droppedPoints.has(edgePoint);
      edgePoint = trimmedSource.codePointAt(keptStart)
    )
      keptStart += unitsOf(edgePoint!);
  }
  if (trimEnds !== 'start') {
    for (
      let edgePoint = codePointBefore(trimmedSource, keptEnd);
      keptEnd > keptStart && droppedPoints.has(edgePoint);
      edgePoint = codePointBefore(trimmedSource, keptEnd)
    )
      keptEnd -= unitsOf(edgePoint!);
  }
  return trimmedSource.slice(keptStart, keptEnd);
}

function codePointBefore(of: string, unitOffset: number): number | undefined {
  return of.codePointAt((of.charCodeAt(unitOffset - 1) & 0xfc00) === 0xdc00 ? unitOffset - 2 : unitOffset - 1);
}

/** Nanoseconds: characters are looked up one by one. */
const trimCost: Cost = { call: 200, character: 15 };

function trimFunction(
  name: string,
  trimEnds: 'both' | 'start' | 'end',
  also: readonly string[],
  example: readonly [string, string],
) {
  const trimmedEnds = trimEnds === 'both' ? 'both ends' : `the ${trimEnds}`;
  return {
    name,
    also,
    group: 'text',
    usage: name === 'TRIM' ? 'TRIM([[LEADING|TRAILING|BOTH] [characters] FROM] x)' : `${name}(x[, characters])`,
    summary: `The text without the spaces, or characters of the given set, at ${trimmedEnds}.`,
    examples: [example],
    signatures: [
      {
        takes: ['string', 'string'],
        cost: trimCost,
        optional: 1,
        yields: 'string',
        evaluate: (of, set = ' ') => trimCharacters(text(of), text(set), trimEnds),
      },
    ],
  } as const satisfies ScalarFunction;
}

function padText(paddedCell: Cell, width: Cell, padFill: string, atStart: boolean): string {
  const paddedWidth = characterCount(width);
  if (paddedWidth > textMax) throw tooLong();
  const textLength = lengthOf(text(paddedCell));
  if (paddedWidth <= textLength || padFill === '')
    return characterRange(text(paddedCell), 0, Math.max(0, Math.min(paddedWidth, textLength)));
  const missingCharacters = paddedWidth - textLength;
  const fillLength = lengthOf(padFill);
  const padding =
    padFill.repeat(Math.floor(missingCharacters / fillLength)) + characterRange(padFill, 0, missingCharacters % fillLength);
  return atStart ? padding + text(paddedCell) : text(paddedCell) + padding;
}

function splitPart(splitSource: string, separator: string, partNumber: bigint): string {
  if (partNumber === 0n) throw invalid('SPLIT_PART counts from 1, or from -1 backwards');
  if (separator === '') return partNumber === 1n || partNumber === -1n ? splitSource : '';
  const partCount = characterCount(partNumber < 0n ? -partNumber : partNumber);
  if (partNumber > 0n) return nthSplitPart(splitSource, separator, partCount);
  // Overlapping separators are split from the start, as for a positive index.
  let splitPartCount = 1;
  for (
    let separatorOffset = splitSource.indexOf(separator);
    separatorOffset >= 0;
    separatorOffset = splitSource.indexOf(separator, separatorOffset + separator.length)
  ) {
    spend(splitPieceCost);
    splitPartCount++;
  }
  return partCount > splitPartCount ? '' : nthSplitPart(splitSource, separator, splitPartCount - partCount + 1);
}

/** Counted from 1. */
function nthSplitPart(splitSource: string, separator: string, index: number): string {
  let partStart = 0;
  for (
    let partsLeft = index, separatorOffset = splitSource.indexOf(separator);
    ;
    separatorOffset = splitSource.indexOf(separator, partStart)
  ) {
    spend(splitPieceCost);
    if (--partsLeft === 0)
      return separatorOffset < 0 ? splitSource.slice(partStart) : splitSource.slice(partStart, separatorOffset);
    if (separatorOffset < 0) return '';
    partStart = separatorOffset + separator.length;
  }
}

/** Nanoseconds that each occurrence of a part takes. */
const splitPieceCost = 40;

/** The position of `soughtCell`, 0 where it does not occur. */
function characterPosition(soughtCell: Cell, textCell: Cell): bigint {
  const soughtOffset = text(textCell).indexOf(text(soughtCell));
  return soughtOffset < 0 ? 0n : BigInt(lengthOf(text(textCell).slice(0, soughtOffset)) + 1);
}

function replaceOccurrences(replacedSource: string, soughtText: string, replacement: string): string {
  if (soughtText === '') return replacedSource;
  let replacedLength = replacedSource.length;
  for (
    let soughtOffset = replacedSource.indexOf(soughtText);
    soughtOffset >= 0;
    soughtOffset = replacedSource.indexOf(soughtText, soughtOffset + soughtText.length)
  ) {
    spend(2 * splitPieceCost);
    replacedLength += replacement.length - soughtText.length;
  }
  if (replacedLength > textMax) throw tooLong();
  return replacedSource.split(soughtText).join(replacement);
}

function reverseCharacters(reversedSource: string): string {
  const reversedUnits = new Uint16Array(reversedSource.length);
  const lastUnitIndex = reversedSource.length - 1;
  for (let unitIndex = 0; unitIndex <= lastUnitIndex; unitIndex++) {
    const codeUnit = reversedSource.charCodeAt(unitIndex);
    if ((codeUnit & 0xfc00) === 0xd800) {
      // Both halves of a character stay in their order.
      reversedUnits[lastUnitIndex - unitIndex - 1] = codeUnit;
      reversedUnits[lastUnitIndex - unitIndex] = reversedSource.charCodeAt(unitIndex + 1);
      unitIndex++;
    } else reversedUnits[lastUnitIndex - unitIndex] = codeUnit;
  }
  return Buffer.from(reversedUnits.buffer).toString('utf16le');
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
      {
        takes: ['string'],
        cost: { call: 100, character: 12 },
        yields: 'string',
        evaluate: (textCell) => text(textCell).toLowerCase(),
      },
    ],
  },
  {
    name: 'UPPER',
    group: 'text',
    usage: 'UPPER(x)',
    summary: 'The text in upper case, whatever the language.',
    examples: [["UPPER('äbc')", 'ÄBC']],
    signatures: [
      {
        takes: ['string'],
        cost: { call: 100, character: 12 },
        yields: 'string',
        evaluate: (textCell) => text(textCell).toUpperCase(),
      },
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
      {
        takes: ['string'],
        cost: linear,
        yields: 'integer',
        evaluate: (textCell) => BigInt(lengthOf(text(textCell))),
        small: true,
      },
    ],
  },
  trimFunction('TRIM', 'both', ['BTRIM'], ["TRIM('  a b ')", 'a b']),
  trimFunction('LTRIM', 'start', [], ["LTRIM('007', '0')", '7']),
  trimFunction('RTRIM', 'end', [], ["RTRIM('a!!', '!')", 'a']),
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
        evaluate: (textCell, pattern) => firstMatch(text(textCell), text(pattern)),
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
        evaluate: (textCell, n) => {
          return characterRange(
            text(textCell),
            0,
            characterCount(n) < 0 ? Math.max(0, lengthOf(text(textCell)) + characterCount(n)) : characterCount(n),
          );
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
        evaluate: (textCell, n) => {
          const characterLength = lengthOf(text(textCell));
          return characterRange(
            text(textCell),
            characterCount(n) < 0 ? -characterCount(n) : Math.max(0, characterLength - characterCount(n)),
            characterLength,
          );
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
        evaluate: (textCell, width, fillCell = ' ') => padText(textCell!, width!, text(fillCell), true),
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
        evaluate: (textCell, width, fillCell = ' ') => padText(textCell!, width!, text(fillCell), false),
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
        evaluate: (textCell, soughtCell, replacement) => replaceOccurrences(text(textCell), text(soughtCell), text(replacement)),
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
      {
        takes: ['string', 'string'],
        cost: linear,
        yields: 'integer',
        evaluate: characterPosition as Signature['evaluate'],
        small: true,
      },
    ],
  },
  {
    name: 'STRPOS',
    group: 'text',
    usage: 'STRPOS(x, part)',
    summary: 'The same as POSITION(part IN x).',
    examples: [["STRPOS('Alfred', 'x')", '0']],
    signatures: [
      {
        takes: ['string', 'string'],
        cost: linear,
        yields: 'integer',
        evaluate: (textCell, soughtCell) => characterPosition(soughtCell!, textCell!),
        small: true,
      },
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
        evaluate: (textCell, separator, n) => splitPart(text(textCell), text(separator), integer(n)),
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
      {
        takes: ['string', 'string'],
        cost: linear,
        yields: 'boolean',
        evaluate: (textCell, soughtCell) => text(textCell).startsWith(text(soughtCell)),
      },
    ],
  },
  {
    name: 'ENDS_WITH',
    group: 'text',
    usage: 'ENDS_WITH(x, part)',
    summary: 'Whether the text ends with a part.',
    examples: [["ENDS_WITH('Alfred', 'red')", 'true']],
    signatures: [
      {
        takes: ['string', 'string'],
        cost: linear,
        yields: 'boolean',
        evaluate: (textCell, soughtCell) => text(textCell).endsWith(text(soughtCell)),
      },
    ],
  },
  {
    name: 'CONTAINS',
    group: 'text',
    usage: 'CONTAINS(x, part)',
    summary: 'Whether a part stands in the text.',
    examples: [["CONTAINS('Alfred', 'fr')", 'true']],
    signatures: [
      {
        takes: ['string', 'string'],
        cost: linear,
        yields: 'boolean',
        evaluate: (textCell, soughtCell) => text(textCell).includes(text(soughtCell)),
      },
    ],
  },
  {
    name: 'REVERSE',
    group: 'text',
    usage: 'REVERSE(x)',
    summary: 'The characters from the last to the first.',
    examples: [["REVERSE('abc')", 'cba']],
    signatures: [
      {
        takes: ['string'],
        cost: linear,
        yields: 'string',
        evaluate: (textCell) => reverseCharacters(checkLength(text(textCell))),
        raises: true,
      },
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

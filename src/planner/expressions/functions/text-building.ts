/** Functions that make texts of other values, or values of texts: PostgreSQL's, which its clients send. */
import { createHash } from 'node:crypto';
import type { Cell } from '../../../log/values/value.ts';
import { lengthOf } from '../code-points.ts';
import { quotedName, quotedText } from '../quoted-name.ts';
import { type Cost, spend } from '../expression-cost.ts';
import { checkLength, integer, invalid, linear, quick, type ScalarFunction, text, textMax, tooLong } from './scalar-function.ts';
import { formatText } from './text-format.ts';
import { substring } from './texts.ts';

/** Nanoseconds: characters are looked up one by one. */
const lookUpCost: Cost = { call: 200, character: 30 };
const caseCost: Cost = { call: 200, character: 40 };
const hashCost: Cost = { call: 2_000, character: 6 };

function repeatText(repeatedText: string, repetitions: bigint): string {
  if (repetitions <= 0n || repeatedText === '') return '';
  if (repetitions > BigInt(Math.floor(textMax / repeatedText.length))) throw tooLong();
  return repeatedText.repeat(Number(repetitions));
}

/** The first of two characters that are alike in `fromCharacters` counts; those without a partner in `toCharacters` go. */
function translateCharacters(translatedSource: string, fromCharacters: string, toCharacters: string): string {
  const targetCharacters = Array.from(toCharacters);
  const characterPartners = new Map<string, string>();
  let characterIndex = 0;
  for (const character of fromCharacters) {
    if (!characterPartners.has(character)) characterPartners.set(character, targetCharacters[characterIndex] ?? '');
    characterIndex++;
  }
  let builtText = '';
  for (const character of translatedSource) builtText += characterPartners.get(character) ?? character;
  return builtText;
}

function codePointText(codePoint: bigint): string {
  if (codePoint === 0n) throw invalid('no text has the character 0', 'program-limit');
  if (codePoint < 0n) throw invalid('CHR takes a number above zero');
  if (codePoint > 0x10ffffn || (codePoint >= 0xd800n && codePoint < 0xe000n))
    throw invalid('CHR takes the number of a character', 'program-limit');
  return String.fromCodePoint(Number(codePoint));
}

const wordPattern = /[\p{L}\p{N}]+/gu;

function capitalizeWords(capitalizedSource: string): string {
  return capitalizedSource.toLowerCase().replaceAll(wordPattern, (word) => {
    const [firstCharacter = ''] = word;
    return firstCharacter.toUpperCase() + word.slice(firstCharacter.length);
  });
}

function overlayText(overlaidText: Cell, inserted: Cell, overlayFrom: Cell, count: Cell | undefined): string {
  const overlayStart = integer(overlayFrom!);
  if (overlayStart <= 0n) throw invalid('OVERLAY begins at a place from 1 on', 'length');
  const replacedCount = count === undefined ? BigInt(lengthOf(text(inserted!))) : integer(count);
  return checkLength(
    substring(overlaidText, 1n, overlayStart - 1n) + text(inserted!) + substring(overlaidText, overlayStart + replacedCount),
  );
}

function joinTexts(separator: Cell | undefined, joinedValues: readonly Cell[]): string | null {
  if (separator === null) return null;
  const presentTexts = joinedValues.filter((joinedValue) => joinedValue !== null) as string[];
  let joinedLength = 0;
  for (const value of presentTexts) joinedLength += value.length + text(separator).length;
  if (joinedLength > textMax + text(separator).length) throw tooLong();
  spend(joinedValues.length * 20);
  return presentTexts.join(text(separator));
}

/** A boolean as PostgreSQL's output functions write it, which CONCAT, CONCAT_WS and FORMAT call. */
export const shortBoolean: ScalarFunction = {
  name: '#SHORT',
  group: 'text',
  usage: '',
  summary: '',
  examples: [],
  signatures: [{ takes: ['boolean'], cost: quick, yields: 'string', evaluate: (value) => (value === true ? 't' : 'f') }],
};

export const textBuildingFunctions: readonly ScalarFunction[] = [
  {
    name: 'CONCAT_WS',
    group: 'text',
    usage: "CONCAT_WS('between', x, ...)",
    summary: 'The values that are not NULL as texts, with a text between them.',
    examples: [["CONCAT_WS(', ', 'a', NULL, 1)", 'a, 1']],
    signatures: [
      {
        takes: ['string', 'any'],
        cost: linear,
        repeats: true,
        yields: 'string',
        evaluate: (separatorCell, ...values) => joinTexts(separatorCell, values),
        raises: true,
        takesNull: true,
      },
    ],
  },
  {
    name: 'FORMAT',
    group: 'text',
    usage: "FORMAT('%s %I %L', x, ...)",
    summary:
      'The text with values in its places: %s as they are, %I as names, %L as literals; %2$s takes the second, %-10s and %*s have a width.',
    examples: [
      ["FORMAT('%s of %I', 1, 'My type')", '1 of "My type"'],
      ["FORMAT('|%-4s|%2$3s|', 'a', 'b')", '|a   |  b|'],
    ],
    signatures: [
      {
        takes: ['string', 'any'],
        cost: caseCost,
        optional: 1,
        repeats: true,
        yields: 'string',
        evaluate: (pattern, ...values) => (pattern === null ? null : formatText(text(pattern), values as (string | null)[])),
        raises: true,
        takesNull: true,
      },
    ],
  },
  {
    name: 'REPEAT',
    group: 'text',
    usage: 'REPEAT(x, n)',
    summary: 'The text n times, one after the other.',
    examples: [["REPEAT('ab', 3)", 'ababab']],
    signatures: [
      {
        takes: ['string', 'integer'],
        cost: linear,
        yields: 'string',
        evaluate: (textCell, times) => repeatText(text(textCell), integer(times)),
        raises: true,
      },
    ],
  },
  {
    name: 'TRANSLATE',
    group: 'text',
    usage: "TRANSLATE(x, 'from', 'to')",
    summary: 'Each character of the first set becomes its partner in the second; one without a partner goes.',
    examples: [["TRANSLATE('12345', '143', 'ax')", 'a2x5']],
    signatures: [
      {
        takes: ['string', 'string', 'string'],
        cost: lookUpCost,
        yields: 'string',
        evaluate: (textCell, from, to) => translateCharacters(text(textCell), text(from), text(to)),
      },
    ],
  },
  {
    name: 'INITCAP',
    group: 'text',
    usage: 'INITCAP(x)',
    summary: 'Each word with a capital, all else in lower case.',
    examples: [["INITCAP('zoë MEIER-lang')", 'Zoë Meier-Lang']],
    signatures: [
      { takes: ['string'], cost: caseCost, yields: 'string', evaluate: (textCell) => capitalizeWords(text(textCell)) },
    ],
  },
  {
    name: 'OVERLAY',
    group: 'text',
    usage: 'OVERLAY(x PLACING y FROM start [FOR length])',
    summary: 'The text with so many of its characters, as many as y has by default, replaced by y.',
    examples: [["OVERLAY('Txxxxas' PLACING 'hom' FROM 2 FOR 4)", 'Thomas']],
    signatures: [
      {
        takes: ['string', 'string', 'integer', 'integer'],
        cost: linear,
        optional: 1,
        yields: 'string',
        evaluate: (textCell, inserted, from, count) => overlayText(textCell!, inserted!, from!, count),
        raises: true,
      },
    ],
  },
  {
    name: 'ASCII',
    group: 'text',
    usage: 'ASCII(x)',
    summary: 'The number of the first character, 0 of an empty text.',
    examples: [["ASCII('€')", '8364']],
    signatures: [
      {
        takes: ['string'],
        cost: linear,
        yields: 'integer',
        evaluate: (textCell) => BigInt(text(textCell).codePointAt(0) ?? 0),
        small: true,
      },
    ],
  },
  {
    name: 'CHR',
    group: 'text',
    usage: 'CHR(n)',
    summary: 'The character of a number.',
    examples: [['CHR(8364)', '€']],
    signatures: [
      {
        takes: ['integer'],
        cost: quick,
        yields: 'string',
        evaluate: (codePointCell) => codePointText(integer(codePointCell)),
        raises: true,
      },
    ],
  },
  {
    name: 'OCTET_LENGTH',
    group: 'text',
    usage: 'OCTET_LENGTH(x)',
    summary: 'How many bytes the text has in UTF-8.',
    examples: [["OCTET_LENGTH('Zoë')", '4']],
    signatures: [
      {
        takes: ['string'],
        cost: linear,
        yields: 'integer',
        evaluate: (textCell) => BigInt(Buffer.byteLength(text(textCell))),
        small: true,
      },
    ],
  },
  {
    name: 'BIT_LENGTH',
    group: 'text',
    usage: 'BIT_LENGTH(x)',
    summary: 'How many bits the text has in UTF-8.',
    examples: [["BIT_LENGTH('Zoë')", '32']],
    signatures: [
      {
        takes: ['string'],
        cost: linear,
        yields: 'integer',
        evaluate: (textCell) => BigInt(8 * Buffer.byteLength(text(textCell))),
        small: true,
      },
    ],
  },
  {
    name: 'MD5',
    group: 'text',
    usage: 'MD5(x)',
    summary: 'The MD5 hash of the text in UTF-8, in hexadecimal digits. It proves nothing: texts of one hash can be made.',
    examples: [["MD5('abc')", '900150983cd24fb0d6963f7d28e17f72']],
    signatures: [
      {
        takes: ['string'],
        cost: hashCost,
        yields: 'string',
        evaluate: (textCell) => createHash('md5').update(text(textCell)).digest('hex'),
      },
    ],
  },
  {
    name: 'TO_HEX',
    group: 'text',
    usage: 'TO_HEX(n)',
    summary: 'The integer in hexadecimal digits; a negative one as the 64 bits that it has.',
    examples: [['TO_HEX(255)', 'ff']],
    signatures: [
      { takes: ['integer'], cost: quick, yields: 'string', evaluate: (n) => BigInt.asUintN(64, integer(n)).toString(16) },
    ],
  },
  {
    name: 'QUOTE_IDENT',
    group: 'text',
    usage: 'QUOTE_IDENT(x)',
    summary: 'The text as a name of SQL, in quotes where it needs them.',
    examples: [["QUOTE_IDENT('My type')", '"My type"']],
    signatures: [{ takes: ['string'], cost: linear, yields: 'string', evaluate: (textCell) => quotedName(text(textCell)) }],
  },
  {
    name: 'QUOTE_LITERAL',
    group: 'text',
    usage: 'QUOTE_LITERAL(x)',
    summary: 'The value as a literal of SQL.',
    examples: [["QUOTE_LITERAL('O''Reilly')", "'O''Reilly'"]],
    signatures: [
      {
        takes: ['any'],
        cost: linear,
        yields: 'string',
        evaluate: (textCell) => checkLength(quotedText(text(textCell))),
        raises: true,
      },
    ],
  },
  {
    name: 'QUOTE_NULLABLE',
    group: 'text',
    usage: 'QUOTE_NULLABLE(x)',
    summary: 'The value as a literal of SQL, of NULL the word.',
    examples: [['QUOTE_NULLABLE(NULL)', 'NULL']],
    signatures: [
      {
        takes: ['any'],
        cost: linear,
        yields: 'string',
        evaluate: (textCell) => (textCell === null ? 'NULL' : checkLength(quotedText(text(textCell)))),
        raises: true,
        takesNull: true,
      },
    ],
  },
];

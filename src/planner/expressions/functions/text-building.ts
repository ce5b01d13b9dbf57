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
const perLookUp: Cost = { call: 200, character: 30 };
const perCase: Cost = { call: 200, character: 40 };
const perHashed: Cost = { call: 2_000, character: 6 };

function repeat(of: string, times: bigint): string {
  if (times <= 0n || of === '') return '';
  if (times > BigInt(Math.floor(textMax / of.length))) throw tooLong();
  return of.repeat(Number(times));
}

/** The first of two characters that are alike in `from` counts; those without a partner in `to` go. */
function translate(of: string, from: string, to: string): string {
  const targets = Array.from(to);
  const partners = new Map<string, string>();
  let at = 0;
  for (const character of from) {
    if (!partners.has(character)) partners.set(character, targets[at] ?? '');
    at++;
  }
  let builtText = '';
  for (const character of of) builtText += partners.get(character) ?? character;
  return builtText;
}

function characterOf(point: bigint): string {
  if (point === 0n) throw invalid('no text has the character 0', 'program-limit');
  if (point < 0n) throw invalid('CHR takes a number above zero');
  if (point > 0x10ffffn || (point >= 0xd800n && point < 0xe000n))
    throw invalid('CHR takes the number of a character', 'program-limit');
  return String.fromCodePoint(Number(point));
}

const wordForm = /[\p{L}\p{N}]+/gu;

function capitalise(of: string): string {
  return of.toLowerCase().replaceAll(wordForm, (word) => {
    const [first = ''] = word;
    return first.toUpperCase() + word.slice(first.length);
  });
}

function overlay(of: Cell, inserted: Cell, from: Cell, count: Cell | undefined): string {
  const start = integer(from!);
  if (start <= 0n) throw invalid('OVERLAY begins at a place from 1 on', 'length');
  const taken = count === undefined ? BigInt(lengthOf(text(inserted!))) : integer(count);
  return checkLength(substring(of, 1n, start - 1n) + text(inserted!) + substring(of, start + taken));
}

function joinTexts(between: Cell | undefined, values: readonly Cell[]): string | null {
  if (between === null) return null;
  const present = values.filter((value) => value !== null) as string[];
  let size = 0;
  for (const value of present) size += value.length + text(between).length;
  if (size > textMax + text(between).length) throw tooLong();
  spend(values.length * 20);
  return present.join(text(between));
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
        evaluate: (between, ...values) => joinTexts(between, values),
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
        cost: perCase,
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
        evaluate: (of, times) => repeat(text(of), integer(times)),
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
        cost: perLookUp,
        yields: 'string',
        evaluate: (of, from, to) => translate(text(of), text(from), text(to)),
      },
    ],
  },
  {
    name: 'INITCAP',
    group: 'text',
    usage: 'INITCAP(x)',
    summary: 'Each word with a capital, all else in lower case.',
    examples: [["INITCAP('zoë MEIER-lang')", 'Zoë Meier-Lang']],
    signatures: [{ takes: ['string'], cost: perCase, yields: 'string', evaluate: (of) => capitalise(text(of)) }],
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
        evaluate: (of, inserted, from, count) => overlay(of!, inserted!, from!, count),
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
      { takes: ['string'], cost: linear, yields: 'integer', evaluate: (of) => BigInt(text(of).codePointAt(0) ?? 0), small: true },
    ],
  },
  {
    name: 'CHR',
    group: 'text',
    usage: 'CHR(n)',
    summary: 'The character of a number.',
    examples: [['CHR(8364)', '€']],
    signatures: [
      { takes: ['integer'], cost: quick, yields: 'string', evaluate: (point) => characterOf(integer(point)), raises: true },
    ],
  },
  {
    name: 'OCTET_LENGTH',
    group: 'text',
    usage: 'OCTET_LENGTH(x)',
    summary: 'How many bytes the text has in UTF-8.',
    examples: [["OCTET_LENGTH('Zoë')", '4']],
    signatures: [
      { takes: ['string'], cost: linear, yields: 'integer', evaluate: (of) => BigInt(Buffer.byteLength(text(of))), small: true },
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
        evaluate: (of) => BigInt(8 * Buffer.byteLength(text(of))),
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
        cost: perHashed,
        yields: 'string',
        evaluate: (of) => createHash('md5').update(text(of)).digest('hex'),
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
    signatures: [{ takes: ['string'], cost: linear, yields: 'string', evaluate: (of) => quotedName(text(of)) }],
  },
  {
    name: 'QUOTE_LITERAL',
    group: 'text',
    usage: 'QUOTE_LITERAL(x)',
    summary: 'The value as a literal of SQL.',
    examples: [["QUOTE_LITERAL('O''Reilly')", "'O''Reilly'"]],
    signatures: [
      { takes: ['any'], cost: linear, yields: 'string', evaluate: (of) => checkLength(quotedText(text(of))), raises: true },
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
        evaluate: (of) => (of === null ? 'NULL' : checkLength(quotedText(text(of)))),
        raises: true,
        takesNull: true,
      },
    ],
  },
];

/**
 * Paths into JSON. The result is a piece of the text as it was given: integers keep all of their digits, objects the order of
 * their keys. A path that leads nowhere is NULL.
 */
import type { Cell } from '../../../log/values/value.ts';
import { type Cost } from '../expression-cost.ts';
import { invalid, type ScalarFunction, type Signature, text } from './scalar-function.ts';

/** Nanoseconds. */
const jsonCost: Cost = { call: 300, character: 5 };

const quoteCode = 0x22;
const backslashCode = 0x5c;

/** Kinds of the characters of JSON, by their codes; all others are part of a number, or of true, false and null. */
const jsonCharKinds = { plain: 0, space: 1, between: 2, opening: 3, closing: 4, quote: 5 } as const;
const jsonKindsByCode = new Uint8Array(128);
for (const [kind, kindSigns] of [
  [jsonCharKinds.space, ' \n\t\r'],
  [jsonCharKinds.between, ',:'],
  [jsonCharKinds.opening, '[{'],
  [jsonCharKinds.closing, ']}'],
  [jsonCharKinds.quote, '"'],
] as const)
  for (const kindSign of kindSigns) jsonKindsByCode[kindSign.charCodeAt(0)] = kind;

/** `plain` at the end of the text, too. */
function jsonCharKind(json: string, charOffset: number): number {
  return jsonKindsByCode[json.charCodeAt(charOffset)] ?? jsonCharKinds.plain;
}

/** The place behind the value that begins at `valueStart`. Stored JSON is well-formed. */
function valueEnd(json: string, valueStart: number): number {
  let jsonOffset = valueStart;
  let jsonDepth = 0;
  for (;;) {
    switch (jsonCharKind(json, jsonOffset)) {
      case jsonCharKinds.quote:
        jsonOffset = stringEnd(json, jsonOffset);
        break;
      case jsonCharKinds.opening:
        jsonDepth++;
        jsonOffset++;
        break;
      case jsonCharKinds.closing:
        jsonDepth--;
        jsonOffset++;
        break;
      case jsonCharKinds.between:
        jsonOffset++;
        break;
      case jsonCharKinds.space:
        jsonOffset++;
        continue;
      default:
        while (jsonOffset < json.length && jsonCharKind(json, jsonOffset) === jsonCharKinds.plain) jsonOffset++;
    }
    if (jsonDepth === 0 || jsonOffset >= json.length) return jsonOffset;
  }
}

function stringEnd(json: string, quoteOffset: number): number {
  let stringOffset = quoteOffset + 1;
  for (
    let charCode = json.charCodeAt(stringOffset);
    stringOffset < json.length && charCode !== quoteCode;
    charCode = json.charCodeAt(stringOffset)
  ) {
    stringOffset += charCode === backslashCode ? 2 : 1;
  }
  return stringOffset + 1;
}

function skipJsonSpace(json: string, spaceStart: number): number {
  let jsonOffset = spaceStart;
  while (jsonCharKind(json, jsonOffset) === jsonCharKinds.space) jsonOffset++;
  return jsonOffset;
}

/** Members of an object, in their order, each with where its value stands; none of anything else. Two may have one name. */
export function* members(json: string): Generator<{ readonly name: string; readonly from: number; readonly to: number }, void> {
  let memberOffset = skipJsonSpace(json, 0);
  if (json[memberOffset] !== '{') return;
  memberOffset = skipJsonSpace(json, memberOffset + 1);
  while (json[memberOffset] === '"') {
    const keyEnd = stringEnd(json, memberOffset);
    const keyText = json.slice(memberOffset + 1, keyEnd - 1);
    const memberName = keyText.includes('\\') ? (JSON.parse(`"${keyText}"`) as string) : keyText;
    const from = skipJsonSpace(json, skipJsonSpace(json, keyEnd) + 1);
    const to = valueEnd(json, from);
    yield { name: memberName, from, to };
    memberOffset = skipJsonSpace(json, to);
    if (json[memberOffset] !== ',') return;
    memberOffset = skipJsonSpace(json, memberOffset + 1);
  }
}

/** The value of a member; of two by one name the last, as in PostgreSQL's jsonb. */
export function member(json: string, name: string): string | null {
  let memberText: string | null = null;
  for (const jsonMember of members(json)) if (jsonMember.name === name) memberText = json.slice(jsonMember.from, jsonMember.to);
  return memberText;
}

/** Texts of the elements of an array, in their order; none of anything else. */
export function* elements(json: string): Generator<string, void> {
  let elementOffset = skipJsonSpace(json, 0);
  if (json[elementOffset] !== '[') return;
  elementOffset = skipJsonSpace(json, elementOffset + 1);
  while (elementOffset < json.length && json[elementOffset] !== ']') {
    const elementEnd = valueEnd(json, elementOffset);
    yield json.slice(elementOffset, elementEnd);
    elementOffset = skipJsonSpace(json, elementEnd);
    if (json[elementOffset] === ',') elementOffset = skipJsonSpace(json, elementOffset + 1);
  }
}

/** Elements count from 0, negative ones from the end. */
export function element(json: string, index: bigint): string | null {
  let elementOffset = skipJsonSpace(json, 0);
  if (json[elementOffset] !== '[') return null;
  const wantedIndex = Number(index);
  // An element takes a character at least.
  if (Math.abs(wantedIndex) > json.length) return null;
  let elementCount = 0;
  /** Offsets of the last elements, as many as the index counts from the end. */
  const lastElementOffsets: number[] = [];
  elementOffset = skipJsonSpace(json, elementOffset + 1);
  while (elementOffset < json.length && json[elementOffset] !== ']') {
    const elementEnd = valueEnd(json, elementOffset);
    if (elementCount === wantedIndex) return json.slice(elementOffset, elementEnd);
    if (wantedIndex < 0) lastElementOffsets[elementCount % -wantedIndex] = elementOffset;
    elementCount++;
    elementOffset = skipJsonSpace(json, elementEnd);
    if (json[elementOffset] === ',') elementOffset = skipJsonSpace(json, elementOffset + 1);
  }
  if (wantedIndex >= 0 || elementCount < -wantedIndex) return null;
  const elementStart = lastElementOffsets[elementCount % -wantedIndex]!;
  return json.slice(elementStart, valueEnd(json, elementStart));
}

export function asText(json: string | null): string | null {
  if (json === null || json === 'null') return null;
  return json.startsWith('"') ? (JSON.parse(json) as string) : json;
}

function jsonMemberOrElement(json: Cell, memberKey: Cell): string | null {
  return typeof memberKey === 'bigint' ? element(text(json), memberKey) : member(text(json), text(memberKey));
}

/** `$.a.b[0]` and `$."a b"`. */
function extractPath(json: string, jsonPath: string): string | null {
  if (!/^\$(\.[\p{L}\p{N}_-]+|\."[^"]*"|\[-?\d{1,9}\])*$/u.test(jsonPath))
    throw invalid("a JSON path is written '$.name.name[0]'");
  let elementText: string | null = json;
  for (const [pathStep] of jsonPath.slice(1).matchAll(/\.[\p{L}\p{N}_-]+|\."[^"]*"|\[-?\d+\]/gu)) {
    if (elementText === null) return null;
    elementText = pathStep.startsWith('[')
      ? element(elementText, BigInt(pathStep.slice(1, -1)))
      : member(elementText, pathStep.startsWith('."') ? pathStep.slice(2, -1) : pathStep.slice(1));
  }
  return elementText;
}

/**
 * Json beside a text: a JSON string by its characters, JSON null as NULL, anything else as it is written. Comparisons apply it
 * implicitly.
 */
export const jsonAsText: Signature = {
  takes: ['json'],
  cost: jsonCost,
  yields: 'string',
  evaluate: (json) => asText(text(json).trim()),
};

export const jsonFunctions: readonly ScalarFunction[] = [
  {
    name: '->',
    group: 'json',
    usage: "j -> 'name' or j -> n",
    summary: 'The member by a name, or the element by a number from 0 (from the end where negative), as json.',
    examples: [
      [`CAST('{"a": [1, 2]}' AS JSON) -> 'a'`, '[1, 2]'],
      ["CAST('[1, 2]' AS JSON) -> -1", '2'],
    ],
    signatures: [
      { takes: ['json', 'string'], cost: jsonCost, yields: 'json', evaluate: (json, key) => jsonMemberOrElement(json!, key!) },
      { takes: ['json', 'integer'], cost: jsonCost, yields: 'json', evaluate: (json, key) => jsonMemberOrElement(json!, key!) },
    ],
  },
  {
    name: '->>',
    group: 'json',
    usage: "j ->> 'name' or j ->> n",
    summary: 'The same as text; null of JSON is NULL.',
    examples: [[`CAST('{"a": "x"}' AS JSON) ->> 'a'`, 'x']],
    signatures: [
      {
        takes: ['json', 'string'],
        cost: jsonCost,
        yields: 'string',
        evaluate: (json, key) => asText(jsonMemberOrElement(json!, key!)),
      },
      {
        takes: ['json', 'integer'],
        cost: jsonCost,
        yields: 'string',
        evaluate: (json, key) => asText(jsonMemberOrElement(json!, key!)),
      },
    ],
  },
  {
    name: 'JSON_EXTRACT',
    group: 'json',
    usage: "JSON_EXTRACT(j, '$.name[0]')",
    summary: 'What a path leads to, as json.',
    examples: [[`JSON_EXTRACT(CAST('{"a": [{"b": 7}]}' AS JSON), '$.a[0].b')`, '7']],
    signatures: [
      {
        takes: ['json', 'string'],
        cost: jsonCost,
        yields: 'json',
        evaluate: (json, path) => extractPath(text(json), text(path)),
        raises: true,
      },
    ],
  },
];

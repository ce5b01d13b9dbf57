/**
 * Paths into JSON. The result is a piece of the text as it was given: integers keep all of their digits, objects the order of
 * their keys. A path that leads nowhere is NULL.
 */
import type { Cell } from '../../../log/values/value.ts';
import { type Cost } from '../expression-cost.ts';
import { invalid, type ScalarFunction, type Signature, text } from './scalar-function.ts';

/** Nanoseconds. */
const perJson: Cost = { call: 300, character: 5 };

const quote = 0x22;
const backslash = 0x5c;

/** Kinds of the characters of JSON, by their codes; all others are part of a number, or of true, false and null. */
const kinds = { plain: 0, space: 1, between: 2, opening: 3, closing: 4, quote: 5 } as const;
const kindsByCode = new Uint8Array(128);
for (const [kind, signs] of [
  [kinds.space, ' \n\t\r'],
  [kinds.between, ',:'],
  [kinds.opening, '[{'],
  [kinds.closing, ']}'],
  [kinds.quote, '"'],
] as const)
  for (const sign of signs) kindsByCode[sign.charCodeAt(0)] = kind;

/** `plain` at the end of the text, too. */
function kindAt(json: string, at: number): number {
  return kindsByCode[json.charCodeAt(at)] ?? kinds.plain;
}

/** The place behind the value that begins at `from`. Stored JSON is well-formed. */
function valueEnd(json: string, from: number): number {
  let at = from;
  let depth = 0;
  for (;;) {
    switch (kindAt(json, at)) {
      case kinds.quote:
        at = stringEnd(json, at);
        break;
      case kinds.opening:
        depth++;
        at++;
        break;
      case kinds.closing:
        depth--;
        at++;
        break;
      case kinds.between:
        at++;
        break;
      case kinds.space:
        at++;
        continue;
      default:
        while (at < json.length && kindAt(json, at) === kinds.plain) at++;
    }
    if (depth === 0 || at >= json.length) return at;
  }
}

function stringEnd(json: string, from: number): number {
  let at = from + 1;
  for (let code = json.charCodeAt(at); at < json.length && code !== quote; code = json.charCodeAt(at)) {
    at += code === backslash ? 2 : 1;
  }
  return at + 1;
}

function afterSpace(json: string, from: number): number {
  let at = from;
  while (kindAt(json, at) === kinds.space) at++;
  return at;
}

/** Members of an object, in their order, each with where its value stands; none of anything else. Two may have one name. */
export function* members(json: string): Generator<{ readonly name: string; readonly from: number; readonly to: number }, void> {
  let at = afterSpace(json, 0);
  if (json[at] !== '{') return;
  at = afterSpace(json, at + 1);
  while (json[at] === '"') {
    const keyEnd = stringEnd(json, at);
    const keyText = json.slice(at + 1, keyEnd - 1);
    const name = keyText.includes('\\') ? (JSON.parse(`"${keyText}"`) as string) : keyText;
    const from = afterSpace(json, afterSpace(json, keyEnd) + 1);
    const to = valueEnd(json, from);
    yield { name, from, to };
    at = afterSpace(json, to);
    if (json[at] !== ',') return;
    at = afterSpace(json, at + 1);
  }
}

/** The value of a member; of two by one name the last, as in PostgreSQL's jsonb. */
export function member(json: string, name: string): string | null {
  let memberText: string | null = null;
  for (const each of members(json)) if (each.name === name) memberText = json.slice(each.from, each.to);
  return memberText;
}

/** Texts of the elements of an array, in their order; none of anything else. */
export function* elements(json: string): Generator<string, void> {
  let at = afterSpace(json, 0);
  if (json[at] !== '[') return;
  at = afterSpace(json, at + 1);
  while (at < json.length && json[at] !== ']') {
    const end = valueEnd(json, at);
    yield json.slice(at, end);
    at = afterSpace(json, end);
    if (json[at] === ',') at = afterSpace(json, at + 1);
  }
}

/** Elements count from 0, negative ones from the end. */
export function element(json: string, index: bigint): string | null {
  let at = afterSpace(json, 0);
  if (json[at] !== '[') return null;
  const wanted = Number(index);
  // An element takes a character at least.
  if (Math.abs(wanted) > json.length) return null;
  let count = 0;
  /** Offsets of the last elements, as many as the index counts from the end. */
  const last: number[] = [];
  at = afterSpace(json, at + 1);
  while (at < json.length && json[at] !== ']') {
    const end = valueEnd(json, at);
    if (count === wanted) return json.slice(at, end);
    if (wanted < 0) last[count % -wanted] = at;
    count++;
    at = afterSpace(json, end);
    if (json[at] === ',') at = afterSpace(json, at + 1);
  }
  if (wanted >= 0 || count < -wanted) return null;
  const start = last[count % -wanted]!;
  return json.slice(start, valueEnd(json, start));
}

export function asText(json: string | null): string | null {
  if (json === null || json === 'null') return null;
  return json.startsWith('"') ? (JSON.parse(json) as string) : json;
}

function step(json: Cell, key: Cell): string | null {
  return typeof key === 'bigint' ? element(text(json), key) : member(text(json), text(key));
}

/** `$.a.b[0]` and `$."a b"`. */
function extractPath(json: string, path: string): string | null {
  if (!/^\$(\.[\p{L}\p{N}_-]+|\."[^"]*"|\[-?\d{1,9}\])*$/u.test(path)) throw invalid("a JSON path is written '$.name.name[0]'");
  let elementText: string | null = json;
  for (const [part] of path.slice(1).matchAll(/\.[\p{L}\p{N}_-]+|\."[^"]*"|\[-?\d+\]/gu)) {
    if (elementText === null) return null;
    elementText = part.startsWith('[')
      ? element(elementText, BigInt(part.slice(1, -1)))
      : member(elementText, part.startsWith('."') ? part.slice(2, -1) : part.slice(1));
  }
  return elementText;
}

/**
 * Json beside a text: a JSON string by its characters, JSON null as NULL, anything else as it is written. Comparisons apply it
 * implicitly.
 */
export const jsonAsText: Signature = {
  takes: ['json'],
  cost: perJson,
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
      { takes: ['json', 'string'], cost: perJson, yields: 'json', evaluate: (json, key) => step(json!, key!) },
      { takes: ['json', 'integer'], cost: perJson, yields: 'json', evaluate: (json, key) => step(json!, key!) },
    ],
  },
  {
    name: '->>',
    group: 'json',
    usage: "j ->> 'name' or j ->> n",
    summary: 'The same as text; null of JSON is NULL.',
    examples: [[`CAST('{"a": "x"}' AS JSON) ->> 'a'`, 'x']],
    signatures: [
      { takes: ['json', 'string'], cost: perJson, yields: 'string', evaluate: (json, key) => asText(step(json!, key!)) },
      { takes: ['json', 'integer'], cost: perJson, yields: 'string', evaluate: (json, key) => asText(step(json!, key!)) },
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
        cost: perJson,
        yields: 'json',
        evaluate: (json, path) => extractPath(text(json), text(path)),
        raises: true,
      },
    ],
  },
];

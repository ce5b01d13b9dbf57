/**
 * Functions and operators of PostgreSQL's json and jsonb, which are one type here. What they make is written as jsonb is; a part of
 * a stored value stays as it was written.
 */
import { formatInstant } from '../../log/values/timestamp.ts';
import type { Cell, ColumnType } from '../../log/values/value.ts';
import { cellText } from '../expressions/functions/casts.ts';
import type { CatalogueCall } from '../expressions/functions/catalogue.ts';
import { asText, element, member } from '../expressions/functions/json.ts';
import { containsJson, type Json, JsonNumber, jsonText, prettyJson, readJson } from '../expressions/functions/json-trees.ts';
import { checkLength, type Evaluator, invalid, type Signature, text } from '../expressions/functions/scalar-function.ts';
import { type Cost, spend } from '../expressions/expression-cost.ts';
import type { SeenCatalogue } from './seen-catalogue.ts';
import { elementOf, elementsOf, isReference, type Names, textOf } from './catalogue-types.ts';
import { withoutTrailing } from '../../log/values/trim-end.ts';

/** Reading counts its own work; this is that of writing. */
const cost: Cost = { call: 1_000, character: 20 };

const json = (cell: Cell | undefined): Json => readJson(text(cell));
const writeJson = (value: Json): string => jsonText(value);

/** The elements of an array of texts. */
let lastArray = { given: '{}', parts: [] as readonly (string | null)[] };
function parts(cell: Cell | undefined): readonly (string | null)[] {
  const given = text(cell);
  // The same path stands in row after row.
  if (lastArray.given !== given) lastArray = { given, parts: elementsOf(given, '_text') };
  return lastArray.parts;
}

const subscript = /^\s*[+-]?\d{1,9}\s*$/;

/** The value to which a path leads, as it is written. */
function textAt(given: Cell | undefined, path: readonly (string | null)[]): string | null {
  let pathText: string | null = text(given);
  for (const part of path) {
    if (pathText === null || part === null) return null;
    spend(pathText.length * 5);
    pathText = pathText.trimStart().startsWith('[')
      ? subscript.test(part)
        ? element(pathText, BigInt(part))
        : null
      : member(pathText, part);
  }
  return pathText;
}

function concatenate(a: Json, b: Json): Json {
  if (a instanceof Map && b instanceof Map) return new Map([...a, ...b]);
  const list = (value: Json): Json[] => (Array.isArray(value) ? value : [value]);
  return [...list(a), ...list(b)];
}

function hasKey(value: Json, key: string): boolean {
  if (value instanceof Map) return value.has(key);
  return Array.isArray(value) ? value.includes(key) : value === key;
}

function without(value: Json, keys: readonly (string | null)[]): Json {
  const removedKeys = new Set<Json>(keys.filter((key) => key !== null));
  if (value instanceof Map) return new Map([...value].filter(([name]) => !removedKeys.has(name)));
  if (Array.isArray(value)) return value.filter((each) => typeof each !== 'string' || !removedKeys.has(each));
  throw invalid('nothing can be deleted from a scalar of json');
}

/** The place that a number means in a list, from its end where negative; it may lie outside. */
const subscriptIn = (list: readonly Json[], n: number): number => (n < 0 ? list.length + n : n);

function withoutElement(value: Json, n: number): Json {
  if (!Array.isArray(value))
    throw invalid(value instanceof Map ? 'an object has no places' : 'nothing can be deleted from a scalar of json');
  const removedIndex = subscriptIn(value, n);
  return value.filter((_, i) => i !== removedIndex);
}

type Change = 'set' | 'create' | 'before' | 'after' | 'delete';

/** The value with a change where the path leads; itself where the path leads nowhere. */
function changeAt(value: Json, path: readonly (string | null)[], change: Change, inserted: Json, depth = 0): Json {
  const key = path[depth];
  if (key === undefined) return value;
  if (key === null) throw invalid(`part ${depth + 1} of a path is NULL`, 'null-value');
  const isLast = depth === path.length - 1;
  if (value instanceof Map) return inObject(value, key, isLast, path, change, inserted, depth);
  if (!Array.isArray(value)) return value;
  if (!subscript.test(key))
    throw invalid(`part ${depth + 1} of a path is no whole number: ${JSON.stringify(key.slice(0, 100))}`, 'text-form');
  const n = subscriptIn(value, Number(key));
  const isThere = n >= 0 && n < value.length;
  if (!isLast)
    return isThere ? value.map((each, i) => (i === n ? changeAt(each, path, change, inserted, depth + 1) : each)) : value;
  switch (change) {
    case 'delete':
      return value.filter((_, i) => i !== n);
    case 'set':
      return isThere ? value.map((each, i) => (i === n ? inserted : each)) : value;
    case 'create':
      if (isThere) return value.map((each, i) => (i === n ? inserted : each));
      return n < 0 ? [inserted, ...value] : [...value, inserted];
    default: {
      const where = Math.max(0, Math.min(value.length, n)) + (change === 'after' && isThere ? 1 : 0);
      return [...value.slice(0, where), inserted, ...value.slice(where)];
    }
  }
}

function inObject(
  value: Map<string, Json>,
  key: string,
  isLast: boolean,
  path: readonly (string | null)[],
  change: Change,
  inserted: Json,
  depth: number,
): Json {
  const member = value.get(key);
  const copy = new Map(value);
  if (isLast) {
    if (change === 'delete') copy.delete(key);
    else if (change === 'before' || change === 'after') {
      if (member !== undefined) throw invalid('a member by that name is there: jsonb_set() replaces it');
      copy.set(key, inserted);
    } else if (member !== undefined || change === 'create') copy.set(key, inserted);
  } else if (member !== undefined) copy.set(key, changeAt(member, path, change, inserted, depth + 1));
  return copy;
}

function change(kind: Change, given: Cell | undefined, path: Cell | undefined, inserted: Json): string {
  const value = json(given);
  if (!(value instanceof Map) && !Array.isArray(value)) throw invalid('a scalar of json has no path in it');
  // Where nothing is, nothing is looked for: the path may be no path.
  const isEmpty = (value instanceof Map ? value.size : value.length) === 0;
  if (isEmpty && (kind === 'delete' || kind === 'set')) return writeJson(value);
  return writeJson(changeAt(value, parts(path), kind, inserted));
}

function typeOfJson(value: Json): string {
  if (value === null) return 'null';
  if (value instanceof JsonNumber) return 'number';
  if (Array.isArray(value)) return 'array';
  return value instanceof Map ? 'object' : typeof value;
}

function withoutNulls(value: Json): Json {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (!(value instanceof Map)) return value;
  return new Map([...value].flatMap(([name, each]) => (each === null ? [] : [[name, withoutNulls(each)] as const])));
}

function count(given: Cell | undefined): bigint {
  const list = json(given);
  if (!Array.isArray(list)) throw invalid('the length of something that is no array of json');
  return BigInt(list.length);
}

const set: Evaluator = (value, path, inserted, creates = true) =>
  change(creates === true ? 'create' : 'set', value, path, json(inserted));
const insert: Evaluator = (value, path, inserted, after = false) =>
  change(after === true ? 'after' : 'before', value, path, json(inserted));
const kindOf: Evaluator = (value) => typeOfJson(json(value));
const stripNulls: Evaluator = (value) => writeJson(withoutNulls(json(value)));

/** `bool?` may be left out. */
const table: Readonly<Record<string, Evaluator>> = {
  '#>(json, _text) json': (value, path) => textAt(value, parts(path)),
  '#>>(json, _text) text': (value, path) => asText(textAt(value, parts(path))?.trim() ?? null),
  '@>(json, json) bool': (a, b) => containsJson(json(a), json(b)),
  '<@(json, json) bool': (a, b) => containsJson(json(b), json(a)),
  '?(json, text) bool': (value, key) => hasKey(json(value), text(key)),
  '?|(json, _text) bool': (given, keys) => {
    const value = json(given);
    return parts(keys).some((key) => key !== null && hasKey(value, key));
  },
  '?&(json, _text) bool': (given, keys) => {
    const value = json(given);
    return parts(keys).every((key) => key === null || hasKey(value, key));
  },
  '||(json, json) json': (a, b) => writeJson(concatenate(json(a), json(b))),
  '-(json, text) json': (value, key) => writeJson(without(json(value), [text(key)])),
  '-(json, int8) json': (value, n) => writeJson(withoutElement(json(value), Number(n))),
  '-(json, _text) json': (value, keys) => writeJson(without(json(value), parts(keys))),
  '#-(json, _text) json': (value, path) => change('delete', value, path, null),
  'jsonb_set(json, _text, json, bool?) json': set,
  'jsonb_insert(json, _text, json, bool?) json': insert,
  'jsonb_typeof(json) text': kindOf,
  'json_typeof(json) text': kindOf,
  'jsonb_array_length(json) int8': count,
  'json_array_length(json) int8': count,
  'jsonb_strip_nulls(json) json': stripNulls,
  'json_strip_nulls(json) json': stripNulls,
  'jsonb_pretty(json) text': (value) => prettyJson(json(value)),
};

interface JsonCall {
  readonly takes: readonly string[];
  readonly call: CatalogueCall;
}

const byName = new Map<string, JsonCall[]>();
for (const [usage, evaluate] of Object.entries(table)) {
  const [, name, given, yields] = /^([^(]+)\(([^)]+)\) (\w+)$/.exec(usage)!;
  const wires = given!.split(', ');
  const all = wires.map((wire) => wire.replace('?', ''));
  for (let n = wires.filter((wire) => !wire.endsWith('?')).length; n <= all.length; n++) {
    const takes = all.slice(0, n);
    const type = typeOf(yields!);
    const signature: Signature = { takes: takes.map(typeOf), yields: type, cost, raises: true, evaluate };
    byName.set(name!, [...(byName.get(name!) ?? []), { takes, call: { signature, type, wire: yields! } }]);
  }
}

function typeOf(wire: string): ColumnType {
  if (wire === 'bool') return 'boolean';
  if (/^(int|oid|reg)/.test(wire) && wire !== 'interval') return 'integer';
  if (wire.startsWith('float')) return 'number';
  if (wire === 'timestamptz' || wire === 'timestamp' || wire === 'date') return 'timestamp';
  return wire === 'json' || wire === 'jsonb' ? 'json' : 'string';
}

const texts: ReadonlySet<string> = new Set('text varchar bpchar name'.split(' '));

/** How well a type fits: 0 not at all. */
function fit(given: string, wanted: string): number {
  if (given === wanted || (wanted === 'json' && given === 'jsonb')) return 2;
  if (given === 'unknown') return wanted === 'text' ? 1.5 : 1;
  if (wanted === 'text') return texts.has(given) ? 2 : 0;
  if (wanted === '_text') return given === '_varchar' || given === '_name' ? 2 : 0;
  return wanted === 'int8' && /^int[24]$/.test(given) ? 2 : 0;
}

/** The function or operator for such types; null: there is none. */
export function jsonCall(name: string, given: readonly string[]): CatalogueCall | null {
  const built = builders.get(name);
  if (built) return built.takes === null || built.takes === given.length ? builtCall(built.make, given) : null;
  if (/_extract_path(_text)?$/.test(name)) return pathCall(name, given);
  const isOperator = /^\W/.test(name);
  let best: { readonly call: CatalogueCall; readonly fits: number } | null = null;
  for (const { takes, call } of byName.get(name) ?? []) {
    if (takes.length !== given.length || (isOperator && !given.some((wire) => wire.startsWith('json')))) continue;
    const each = given.map((wire, i) => fit(wire, takes[i]!));
    const fits = each.includes(0) ? 0 : each.reduce((a, b) => a + b, 0);
    if (fits > (best?.fits ?? 0)) best = { call, fits };
  }
  return best?.call ?? null;
}

function pathCall(name: string, given: readonly string[]): CatalogueCall | null {
  const [value = '', ...path] = given;
  if (!/^jsonb?_extract_path/.test(name) || fit(value, 'json') === 0 || path.some((wire) => fit(wire, 'text') === 0)) return null;
  const isText = name.endsWith('_text');
  const type = isText ? 'string' : 'json';
  const evaluate: Evaluator = (cell, ...names) => {
    const pathText = textAt(cell, names as string[]);
    return isText ? asText(pathText?.trim() ?? null) : pathText;
  };
  return {
    signature: { takes: ['json', ...path.map((): ColumnType => 'string')], yields: type, cost, raises: true, evaluate },
    type,
    wire: isText ? 'text' : 'json',
  };
}

type Build = (given: readonly string[], names: Names) => Evaluator;

/** A cell as the json that PostgreSQL makes of its type. */
export function jsonOfCell(cell: Cell, wire: string, names: Names): string {
  if (cell === null) return 'null';
  if (wire === 'json' || wire === 'jsonb') return text(cell);
  if (wire === 'timestamptz' || wire === 'timestamp' || wire === 'date') return JSON.stringify(instantText(cell as bigint, wire));
  if (isReference(wire)) return JSON.stringify(textOf(Number(cell), wire, names));
  if (typeof cell !== 'string') return cellText(cell);
  const own = elementOf(wire);
  if (own === null) return wire === 'numeric' ? cell : JSON.stringify(cell);
  const shown = elementsOf(cell, wire).map((each) => {
    if (each === null) return 'null';
    if (own === 'bool') return String(each === 't');
    return /^(int|float|numeric|oid)/.test(own) || own.startsWith('json') ? each : JSON.stringify(each);
  });
  return `[${shown.join(',')}]`;
}

/** As ISO 8601 has it, in whole microseconds. */
function instantText(instant: bigint, wire: string): string {
  const [day, clock = ''] = formatInstant(instant).replace('Z', '').split('T');
  if (wire === 'date') return day!;
  const [seconds, fraction = ''] = clock.split('.');
  const digits = withoutTrailing(fraction.slice(0, 6), '0');
  return `${day!}T${seconds!}${digits === '' ? '' : `.${digits}`}${wire === 'timestamptz' ? '+00:00' : ''}`;
}

/** Names and their values in turn. */
function pairs(function_: string, given: readonly string[], cells: readonly Cell[], names: Names): [string, string][] {
  if (cells.length % 2 === 1) throw invalid(`${function_}() takes names and values in turn`);
  const entries: [string, string][] = [];
  for (let i = 0; i < cells.length; i += 2) {
    const name = cells[i]!;
    if (name === null) throw invalid(`argument ${i + 1} of ${function_}() is a name: it is not NULL`);
    const shown = jsonOfCell(name, given[i]!, names);
    entries.push([
      shown.startsWith('"') ? (JSON.parse(shown) as string) : shown,
      jsonOfCell(cells[i + 1]!, given[i + 1]!, names),
    ]);
  }
  return entries;
}

const builders: ReadonlyMap<string, { readonly takes: number | null; readonly make: Build }> = new Map<
  string,
  { readonly takes: number | null; readonly make: Build }
>([
  [
    'jsonb_build_object',
    {
      takes: null,
      make:
        (given, names) =>
        (...cells) =>
          writeJson(new Map(pairs('jsonb_build_object', given, cells, names).map(([name, value]) => [name, readJson(value)]))),
    },
  ],
  [
    'json_build_object',
    {
      takes: null,
      make:
        (given, names) =>
        (...cells) => {
          const members = pairs('json_build_object', given, cells, names);
          return checkLength(`{${members.map(([name, value]) => `${JSON.stringify(name)} : ${value}`).join(', ')}}`);
        },
    },
  ],
  [
    // The columns of a row, each with its name.
    '_row_to_json',
    {
      takes: null,
      make:
        (given, names) =>
        (...cells) => {
          const members = pairs('row_to_json', given, cells, names);
          return checkLength(`{${members.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(',')}}`);
        },
    },
  ],
  [
    'jsonb_build_array',
    {
      takes: null,
      make:
        (given, names) =>
        (...cells) =>
          writeJson(cells.map((cell, i) => readJson(jsonOfCell(cell, given[i]!, names)))),
    },
  ],
  [
    'json_build_array',
    {
      takes: null,
      make:
        (given, names) =>
        (...cells) =>
          checkLength(`[${cells.map((cell, i) => jsonOfCell(cell, given[i]!, names)).join(', ')}]`),
    },
  ],
  ['to_json', { takes: 1, make: ([wire], names) => orNull((cell) => checkLength(jsonOfCell(cell, wire!, names))) }],
  ['to_jsonb', { takes: 1, make: ([wire], names) => orNull((cell) => writeJson(readJson(jsonOfCell(cell, wire!, names)))) }],
  ['array_to_json', { takes: 1, make: ([wire], names) => orNull((cell) => checkLength(jsonOfCell(cell, wire!, names))) }],
]);

const orNull =
  (make: (cell: Cell) => Cell): Evaluator =>
  (cell) =>
    cell === null ? null : make(cell!);

function builtCall(make: Build, given: readonly string[]): CatalogueCall | null {
  const signature: Signature = {
    takes: given.map(typeOf),
    yields: 'json',
    cost,
    raises: true,
    takesNull: true,
    evaluate: () => {
      throw invalid('a function of the catalogue is asked within one');
    },
    inCatalogue: (catalogue) => make(given, (catalogue as SeenCatalogue).names),
  };
  return { signature, type: 'json', wire: 'json' };
}

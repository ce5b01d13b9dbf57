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
const jsonCost: Cost = { call: 1_000, character: 20 };

const readJsonCell = (jsonCell: Cell | undefined): Json => readJson(text(jsonCell));
const writeJson = (writtenJson: Json): string => jsonText(writtenJson);

/** The elements of an array of texts. */
let lastPathArray = { given: '{}', parts: [] as readonly (string | null)[] };
function pathParts(pathCell: Cell | undefined): readonly (string | null)[] {
  const pathText = text(pathCell);
  // The same path stands in row after row.
  if (lastPathArray.given !== pathText) lastPathArray = { given: pathText, parts: elementsOf(pathText, '_text') };
  return lastPathArray.parts;
}

const subscript = /^\s*[+-]?\d{1,9}\s*$/;

/** The value to which a path leads, as it is written. */
function jsonTextAt(jsonCell: Cell | undefined, jsonPath: readonly (string | null)[]): string | null {
  let pathText: string | null = text(jsonCell);
  for (const pathPart of jsonPath) {
    if (pathText === null || pathPart === null) return null;
    spend(pathText.length * 5);
    pathText = pathText.trimStart().startsWith('[')
      ? subscript.test(pathPart)
        ? element(pathText, BigInt(pathPart))
        : null
      : member(pathText, pathPart);
  }
  return pathText;
}

function concatenateJson(leftJson: Json, rightJson: Json): Json {
  if (leftJson instanceof Map && rightJson instanceof Map) return new Map([...leftJson, ...rightJson]);
  const jsonElements = (jsonOperand: Json): Json[] => (Array.isArray(jsonOperand) ? jsonOperand : [jsonOperand]);
  return [...jsonElements(leftJson), ...jsonElements(rightJson)];
}

function hasJsonKey(jsonValue: Json, jsonKey: string): boolean {
  if (jsonValue instanceof Map) return jsonValue.has(jsonKey);
  return Array.isArray(jsonValue) ? jsonValue.includes(jsonKey) : jsonValue === jsonKey;
}

function withoutJsonKeys(jsonValue: Json, deletedKeys: readonly (string | null)[]): Json {
  const removedKeys = new Set<Json>(deletedKeys.filter((key) => key !== null));
  if (jsonValue instanceof Map) return new Map([...jsonValue].filter(([name]) => !removedKeys.has(name)));
  if (Array.isArray(jsonValue))
    return jsonValue.filter((jsonElement) => typeof jsonElement !== 'string' || !removedKeys.has(jsonElement));
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

type JsonChange = 'set' | 'create' | 'before' | 'after' | 'delete';

/** The value with a change where the path leads; itself where the path leads nowhere. */
function changeJsonAt(
  jsonValue: Json,
  jsonPath: readonly (string | null)[],
  change: JsonChange,
  inserted: Json,
  pathDepth = 0,
): Json {
  const pathKey = jsonPath[pathDepth];
  if (pathKey === undefined) return jsonValue;
  if (pathKey === null) throw invalid(`part ${pathDepth + 1} of a path is NULL`, 'null-value');
  const isLastPart = pathDepth === jsonPath.length - 1;
  if (jsonValue instanceof Map) return changeJsonMember(jsonValue, pathKey, isLastPart, jsonPath, change, inserted, pathDepth);
  if (!Array.isArray(jsonValue)) return jsonValue;
  if (!subscript.test(pathKey))
    throw invalid(`part ${pathDepth + 1} of a path is no whole number: ${JSON.stringify(pathKey.slice(0, 100))}`, 'text-form');
  const jsonIndex = subscriptIn(jsonValue, Number(pathKey));
  const isElementThere = jsonIndex >= 0 && jsonIndex < jsonValue.length;
  if (!isLastPart)
    return isElementThere
      ? jsonValue.map((jsonElement, i) =>
          i === jsonIndex ? changeJsonAt(jsonElement, jsonPath, change, inserted, pathDepth + 1) : jsonElement,
        )
      : jsonValue;
  switch (change) {
    case 'delete':
      return jsonValue.filter((_, i) => i !== jsonIndex);
    case 'set':
      return isElementThere ? jsonValue.map((jsonElement, i) => (i === jsonIndex ? inserted : jsonElement)) : jsonValue;
    case 'create':
      if (isElementThere) return jsonValue.map((jsonElement, i) => (i === jsonIndex ? inserted : jsonElement));
      return jsonIndex < 0 ? [inserted, ...jsonValue] : [...jsonValue, inserted];
    default: {
      const insertedAt = Math.max(0, Math.min(jsonValue.length, jsonIndex)) + (change === 'after' && isElementThere ? 1 : 0);
      return [...jsonValue.slice(0, insertedAt), inserted, ...jsonValue.slice(insertedAt)];
    }
  }
}

function changeJsonMember(
  jsonObject: Map<string, Json>,
  memberKey: string,
  isLastPart: boolean,
  jsonPath: readonly (string | null)[],
  change: JsonChange,
  inserted: Json,
  pathDepth: number,
): Json {
  const member = jsonObject.get(memberKey);
  const changedObject = new Map(jsonObject);
  if (isLastPart) {
    if (change === 'delete') changedObject.delete(memberKey);
    else if (change === 'before' || change === 'after') {
      if (member !== undefined) throw invalid('a member by that name is there: jsonb_set() replaces it');
      changedObject.set(memberKey, inserted);
    } else if (member !== undefined || change === 'create') changedObject.set(memberKey, inserted);
  } else if (member !== undefined) changedObject.set(memberKey, changeJsonAt(member, jsonPath, change, inserted, pathDepth + 1));
  return changedObject;
}

function changeJson(jsonChange: JsonChange, jsonCell: Cell | undefined, pathCell: Cell | undefined, inserted: Json): string {
  const changedJson = readJsonCell(jsonCell);
  if (!(changedJson instanceof Map) && !Array.isArray(changedJson)) throw invalid('a scalar of json has no path in it');
  // Where nothing is, nothing is looked for: the path may be no path.
  const isEmptyJson = (changedJson instanceof Map ? changedJson.size : changedJson.length) === 0;
  if (isEmptyJson && (jsonChange === 'delete' || jsonChange === 'set')) return writeJson(changedJson);
  return writeJson(changeJsonAt(changedJson, pathParts(pathCell), jsonChange, inserted));
}

function jsonTypeName(jsonValue: Json): string {
  if (jsonValue === null) return 'null';
  if (jsonValue instanceof JsonNumber) return 'number';
  if (Array.isArray(jsonValue)) return 'array';
  return jsonValue instanceof Map ? 'object' : typeof jsonValue;
}

function withoutJsonNulls(jsonValue: Json): Json {
  if (Array.isArray(jsonValue)) return jsonValue.map(withoutJsonNulls);
  if (!(jsonValue instanceof Map)) return jsonValue;
  return new Map(
    [...jsonValue].flatMap(([name, jsonMember]) => (jsonMember === null ? [] : [[name, withoutJsonNulls(jsonMember)] as const])),
  );
}

function jsonArrayLength(jsonCell: Cell | undefined): bigint {
  const jsonArray = readJsonCell(jsonCell);
  if (!Array.isArray(jsonArray)) throw invalid('the length of something that is no array of json');
  return BigInt(jsonArray.length);
}

const jsonbSet: Evaluator = (jsonCell, pathCell, inserted, createsMember = true) =>
  changeJson(createsMember === true ? 'create' : 'set', jsonCell, pathCell, readJsonCell(inserted));
const jsonbInsert: Evaluator = (jsonCell, pathCell, inserted, insertsAfter = false) =>
  changeJson(insertsAfter === true ? 'after' : 'before', jsonCell, pathCell, readJsonCell(inserted));
const jsonKindOf: Evaluator = (jsonCell) => jsonTypeName(readJsonCell(jsonCell));
const jsonStripNulls: Evaluator = (jsonCell) => writeJson(withoutJsonNulls(readJsonCell(jsonCell)));

/** `bool?` may be left out. */
const jsonCallTable: Readonly<Record<string, Evaluator>> = {
  '#>(json, _text) json': (value, path) => jsonTextAt(value, pathParts(path)),
  '#>>(json, _text) text': (value, path) => asText(jsonTextAt(value, pathParts(path))?.trim() ?? null),
  '@>(json, json) bool': (a, b) => containsJson(readJsonCell(a), readJsonCell(b)),
  '<@(json, json) bool': (a, b) => containsJson(readJsonCell(b), readJsonCell(a)),
  '?(json, text) bool': (value, key) => hasJsonKey(readJsonCell(value), text(key)),
  '?|(json, _text) bool': (given, keys) => {
    const value = readJsonCell(given);
    return pathParts(keys).some((key) => key !== null && hasJsonKey(value, key));
  },
  '?&(json, _text) bool': (given, keys) => {
    const value = readJsonCell(given);
    return pathParts(keys).every((key) => key === null || hasJsonKey(value, key));
  },
  '||(json, json) json': (a, b) => writeJson(concatenateJson(readJsonCell(a), readJsonCell(b))),
  '-(json, text) json': (value, key) => writeJson(withoutJsonKeys(readJsonCell(value), [text(key)])),
  '-(json, int8) json': (value, n) => writeJson(withoutElement(readJsonCell(value), Number(n))),
  '-(json, _text) json': (value, keys) => writeJson(withoutJsonKeys(readJsonCell(value), pathParts(keys))),
  '#-(json, _text) json': (value, path) => changeJson('delete', value, path, null),
  'jsonb_set(json, _text, json, bool?) json': jsonbSet,
  'jsonb_insert(json, _text, json, bool?) json': jsonbInsert,
  'jsonb_typeof(json) text': jsonKindOf,
  'json_typeof(json) text': jsonKindOf,
  'jsonb_array_length(json) int8': jsonArrayLength,
  'json_array_length(json) int8': jsonArrayLength,
  'jsonb_strip_nulls(json) json': jsonStripNulls,
  'json_strip_nulls(json) json': jsonStripNulls,
  'jsonb_pretty(json) text': (value) => prettyJson(readJsonCell(value)),
};

interface JsonCallForm {
  readonly takes: readonly string[];
  readonly call: CatalogueCall;
}

const jsonCallsByName = new Map<string, JsonCallForm[]>();
for (const [jsonCallUsage, evaluate] of Object.entries(jsonCallTable)) {
  const [, name, parameterList, yieldedWire] = /^([^(]+)\(([^)]+)\) (\w+)$/.exec(jsonCallUsage)!;
  const wireForms = parameterList!.split(', ');
  const parameterWires = wireForms.map((wire) => wire.replace('?', ''));
  for (
    let takenCount = wireForms.filter((wire) => !wire.endsWith('?')).length;
    takenCount <= parameterWires.length;
    takenCount++
  ) {
    const takenWires = parameterWires.slice(0, takenCount);
    const type = jsonCellType(yieldedWire!);
    const signature: Signature = { takes: takenWires.map(jsonCellType), yields: type, cost: jsonCost, raises: true, evaluate };
    jsonCallsByName.set(name!, [
      ...(jsonCallsByName.get(name!) ?? []),
      { takes: takenWires, call: { signature, type, wire: yieldedWire! } },
    ]);
  }
}

function jsonCellType(wire: string): ColumnType {
  if (wire === 'bool') return 'boolean';
  if (/^(int|oid|reg)/.test(wire) && wire !== 'interval') return 'integer';
  if (wire.startsWith('float')) return 'number';
  if (wire === 'timestamptz' || wire === 'timestamp' || wire === 'date') return 'timestamp';
  return wire === 'json' || wire === 'jsonb' ? 'json' : 'string';
}

const jsonTextTypes: ReadonlySet<string> = new Set('text varchar bpchar name'.split(' '));

/** How well a type fits: 0 not at all. */
function jsonTypeFit(givenWire: string, wantedWire: string): number {
  if (givenWire === wantedWire || (wantedWire === 'json' && givenWire === 'jsonb')) return 2;
  if (givenWire === 'unknown') return wantedWire === 'text' ? 1.5 : 1;
  if (wantedWire === 'text') return jsonTextTypes.has(givenWire) ? 2 : 0;
  if (wantedWire === '_text') return givenWire === '_varchar' || givenWire === '_name' ? 2 : 0;
  return wantedWire === 'int8' && /^int[24]$/.test(givenWire) ? 2 : 0;
}

/** The function or operator for such types; null: there is none. */
export function jsonCall(name: string, givenWires: readonly string[]): CatalogueCall | null {
  const jsonBuilder = jsonBuilders.get(name);
  if (jsonBuilder)
    return jsonBuilder.takes === null || jsonBuilder.takes === givenWires.length
      ? builtJsonCall(jsonBuilder.make, givenWires)
      : null;
  if (/_extract_path(_text)?$/.test(name)) return extractPathCall(name, givenWires);
  const isJsonOperator = /^\W/.test(name);
  let bestCall: { readonly call: CatalogueCall; readonly fits: number } | null = null;
  for (const { takes, call } of jsonCallsByName.get(name) ?? []) {
    if (takes.length !== givenWires.length || (isJsonOperator && !givenWires.some((wire) => wire.startsWith('json')))) continue;
    const wireFits = givenWires.map((wire, i) => jsonTypeFit(wire, takes[i]!));
    const fitSum = wireFits.includes(0) ? 0 : wireFits.reduce((a, b) => a + b, 0);
    if (fitSum > (bestCall?.fits ?? 0)) bestCall = { call, fits: fitSum };
  }
  return bestCall?.call ?? null;
}

function extractPathCall(name: string, givenWires: readonly string[]): CatalogueCall | null {
  const [valueWire = '', ...pathWires] = givenWires;
  if (
    !/^jsonb?_extract_path/.test(name) ||
    jsonTypeFit(valueWire, 'json') === 0 ||
    pathWires.some((wire) => jsonTypeFit(wire, 'text') === 0)
  )
    return null;
  const yieldsText = name.endsWith('_text');
  const pathCallType = yieldsText ? 'string' : 'json';
  const evaluate: Evaluator = (jsonCell, ...pathNames) => {
    const pathText = jsonTextAt(jsonCell, pathNames as string[]);
    return yieldsText ? asText(pathText?.trim() ?? null) : pathText;
  };
  return {
    signature: {
      takes: ['json', ...pathWires.map((): ColumnType => 'string')],
      yields: pathCallType,
      cost: jsonCost,
      raises: true,
      evaluate,
    },
    type: pathCallType,
    wire: yieldsText ? 'text' : 'json',
  };
}

type JsonBuild = (parameterList: readonly string[], names: Names) => Evaluator;

/** A cell as the json that PostgreSQL makes of its type. */
export function jsonOfCell(cell: Cell, cellWire: string, names: Names): string {
  if (cell === null) return 'null';
  if (cellWire === 'json' || cellWire === 'jsonb') return text(cell);
  if (cellWire === 'timestamptz' || cellWire === 'timestamp' || cellWire === 'date')
    return JSON.stringify(jsonInstantText(cell as bigint, cellWire));
  if (isReference(cellWire)) return JSON.stringify(textOf(Number(cell), cellWire, names));
  if (typeof cell !== 'string') return cellText(cell);
  const elementWire = elementOf(cellWire);
  if (elementWire === null) return cellWire === 'numeric' ? cell : JSON.stringify(cell);
  const elementJsons = elementsOf(cell, cellWire).map((elementText) => {
    if (elementText === null) return 'null';
    if (elementWire === 'bool') return String(elementText === 't');
    return /^(int|float|numeric|oid)/.test(elementWire) || elementWire.startsWith('json')
      ? elementText
      : JSON.stringify(elementText);
  });
  return `[${elementJsons.join(',')}]`;
}

/** As ISO 8601 has it, in whole microseconds. */
function jsonInstantText(instant: bigint, instantWire: string): string {
  const [dayText, clockText = ''] = formatInstant(instant).replace('Z', '').split('T');
  if (instantWire === 'date') return dayText!;
  const [secondsText, fractionText = ''] = clockText.split('.');
  const fractionDigits = withoutTrailing(fractionText.slice(0, 6), '0');
  return `${dayText!}T${secondsText!}${fractionDigits === '' ? '' : `.${fractionDigits}`}${instantWire === 'timestamptz' ? '+00:00' : ''}`;
}

/** Names and their values in turn. */
function namedJsonPairs(
  function_: string,
  pairWires: readonly string[],
  pairCells: readonly Cell[],
  names: Names,
): [string, string][] {
  if (pairCells.length % 2 === 1) throw invalid(`${function_}() takes names and values in turn`);
  const entries: [string, string][] = [];
  for (let i = 0; i < pairCells.length; i += 2) {
    const nameCell = pairCells[i]!;
    if (nameCell === null) throw invalid(`argument ${i + 1} of ${function_}() is a name: it is not NULL`);
    const nameJson = jsonOfCell(nameCell, pairWires[i]!, names);
    entries.push([
      nameJson.startsWith('"') ? (JSON.parse(nameJson) as string) : nameJson,
      jsonOfCell(pairCells[i + 1]!, pairWires[i + 1]!, names),
    ]);
  }
  return entries;
}

const jsonBuilders: ReadonlyMap<string, { readonly takes: number | null; readonly make: JsonBuild }> = new Map<
  string,
  { readonly takes: number | null; readonly make: JsonBuild }
>([
  [
    'jsonb_build_object',
    {
      takes: null,
      make:
        (given, names) =>
        (...cells) =>
          writeJson(
            new Map(namedJsonPairs('jsonb_build_object', given, cells, names).map(([name, value]) => [name, readJson(value)])),
          ),
    },
  ],
  [
    'json_build_object',
    {
      takes: null,
      make:
        (given, names) =>
        (...cells) => {
          const members = namedJsonPairs('json_build_object', given, cells, names);
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
          const members = namedJsonPairs('row_to_json', given, cells, names);
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
  ['to_json', { takes: 1, make: ([wire], names) => jsonOrNull((cell) => checkLength(jsonOfCell(cell, wire!, names))) }],
  ['to_jsonb', { takes: 1, make: ([wire], names) => jsonOrNull((cell) => writeJson(readJson(jsonOfCell(cell, wire!, names)))) }],
  ['array_to_json', { takes: 1, make: ([wire], names) => jsonOrNull((cell) => checkLength(jsonOfCell(cell, wire!, names))) }],
]);

const jsonOrNull =
  (jsonOfNonNull: (jsonCell: Cell) => Cell): Evaluator =>
  (jsonCell) =>
    jsonCell === null ? null : jsonOfNonNull(jsonCell!);

function builtJsonCall(buildJson: JsonBuild, givenWires: readonly string[]): CatalogueCall | null {
  const builtSignature: Signature = {
    takes: givenWires.map(jsonCellType),
    yields: 'json',
    cost: jsonCost,
    raises: true,
    takesNull: true,
    evaluate: () => {
      throw invalid('a function of the catalogue is asked within one');
    },
    inCatalogue: (catalogue) => buildJson(givenWires, (catalogue as SeenCatalogue).names),
  };
  return { signature: builtSignature, type: 'json', wire: 'json' };
}

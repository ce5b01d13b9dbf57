/**
 * Values of graph patterns that are no cells: nodes, relationships, paths, lists and maps, all of them json. No text can write
 * the names of these functions: `pattern-query.ts` and the binder do. The type of a json value is known only at run time, so the
 * plan allows it beside any other type; a value that does not fit is NULL.
 */
import { type Cell, I64_MAX, I64_MIN } from '../../../log/values/value.ts';
import { type Cost, spend, work } from '../expression-cost.ts';
import { instantOf, cellText } from './casts.ts';
import { asText, element, elements, member, members } from './json.ts';
import { checkLength, type Evaluator, invalid, linear, type ScalarFunction, type Signature, text } from './scalar-function.ts';

const graphJsonCost: Cost = { call: 300, character: 8 };

function hiddenFunction(name: string, usage: string, ...signatures: readonly Signature[]): ScalarFunction {
  return { name, group: 'json', usage, summary: '', examples: [], signatures };
}

function graphSignature(
  takes: Signature['takes'],
  yields: Signature['yields'],
  evaluate: Evaluator,
  more: Partial<Signature> = {},
): Signature {
  return { takes, cost: graphJsonCost, yields, evaluate, ...more };
}

/** The names of an entity's properties come as one text of json, the same for every row. */
let lastPropertyNames = { text: '[]', names: [] as readonly string[] };

function propertyNames(namesJson: string): readonly string[] {
  if (lastPropertyNames.text !== namesJson)
    lastPropertyNames = {
      text: namesJson,
      names: (JSON.parse(namesJson) as string[]).map((propertyName) => JSON.stringify(propertyName)),
    };
  return lastPropertyNames.names;
}

function propertiesObject(namesJson: string, propertyCells: readonly Cell[], keepsNull: boolean): string {
  const propertyKeys = propertyNames(namesJson);
  let jsonText = '';
  for (let i = 0; i < propertyKeys.length; i++) {
    const propertyCell = propertyCells[i]!;
    if (propertyCell !== null || keepsNull)
      jsonText += `${jsonText === '' ? '' : ','}${propertyKeys[i]}:${propertyCell === null ? 'null' : text(propertyCell)}`;
  }
  return `{${jsonText}}`;
}

const graphEntity =
  (entityLead: (type: string) => string): Evaluator =>
  (type, namesJson, entityKey, systemFrom, ...cells) => {
    if (entityKey === null || systemFrom === null) return null;
    const properties = propertiesObject(text(namesJson), cells, false);
    const elementId = JSON.stringify(`${text(type)}/${text(entityKey)}`);
    return `{${entityLead(JSON.stringify(type))},"element_id":${elementId},"system_from":${String(systemFrom)},"properties":${properties}}`;
  };

/** Type, names of the properties, key, system_from; then each property as json. */
const entityTakes: Signature['takes'] = ['string', 'string', 'string', 'timestamp', 'json'];
const entityShape = { repeats: true, optional: 1, takesNull: true } as const;

const pathPart =
  (pathPartName: string): Evaluator =>
  (json) =>
    member(text(json), pathPartName);
const jsonNumber = (json: string): string | null => (/^-?\d/.test(json) ? json : null);

function jsonWholeNumber(json: string | null): bigint | null {
  if (json === null || !/^-?\d{1,19}$/.test(json)) return null;
  const wholeValue = BigInt(json);
  return wholeValue > I64_MAX || wholeValue < I64_MIN ? null : wholeValue;
}

const isPlainText = (json: string): boolean => json.startsWith('"');

function instantInJson(json: string): bigint | null {
  try {
    return isPlainText(json) ? instantOf(asText(json)!) : jsonWholeNumber(json);
  } catch {
    return null;
  }
}

function elementCount(json: string): bigint {
  let nodeCount = 0n;
  for (const _ of elements(json)) nodeCount++;
  return nodeCount;
}

/** Whether two values are equal, wherever JSON writes one of them in another way. NULL where one is null. */
function sameJson(leftJson: string, rightJson: string): boolean | null {
  if (leftJson === 'null' || rightJson === 'null') return null;
  if (leftJson === rightJson) return true;
  if (jsonNumber(leftJson) !== null && jsonNumber(rightJson) !== null) {
    const [leftWhole, rightWhole] = [jsonWholeNumber(leftJson), jsonWholeNumber(rightJson)];
    return leftWhole !== null && rightWhole !== null ? leftWhole === rightWhole : Number(leftJson) === Number(rightJson);
  }
  return isPlainText(leftJson) && isPlainText(rightJson) && asText(leftJson) === asText(rightJson);
}

function isInList(soughtJson: string, list: string): boolean | null {
  let isUnknown = false;
  for (const listElement of elements(list)) {
    spend(graphJsonCost.call);
    const isSameJson = sameJson(soughtJson, listElement);
    if (isSameJson === true) return true;
    isUnknown ||= isSameJson === null;
  }
  return isUnknown ? null : false;
}

/** Counts characters of Unicode, as texts are measured elsewhere. */
function codePointCount(given: string): number {
  let matchCount = 0;
  for (const _ of given) matchCount++;
  return matchCount;
}

function appendLists(left: string, right: string): string {
  const listParts = [left, right].map((listPart) =>
    listPart.trimStart().startsWith('[') ? listPart.trim().slice(1, -1).trim() : listPart.trim(),
  );
  return checkLength(`[${listParts.filter((listPart) => listPart !== '').join(',')}]`);
}

function truncateToInt64(value: number): bigint | null {
  const truncatedNumber = Math.trunc(value);
  return truncatedNumber >= -(2 ** 63) && truncatedNumber < 2 ** 63 ? BigInt(truncatedNumber) : null;
}

const numeralPattern = /^\s*[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?\s*$/i;

function integerInText(integerText: string): bigint | null {
  return /^\s*[+-]?\d{1,19}\s*$/.test(integerText)
    ? jsonWholeNumber(integerText.trim().replace(/^\+/, ''))
    : numeralPattern.test(integerText)
      ? truncateToInt64(Number(integerText))
      : null;
}

function floatInText(floatText: string): number | null {
  const floatValue = numeralPattern.test(floatText) ? Number(floatText) : Number.NaN;
  return Number.isFinite(floatValue) ? floatValue : null;
}

const convertJsonText =
  (convertString: (jsonString: string) => Cell): Evaluator =>
  (json) => {
    const jsonString = asText(text(json).trim());
    return jsonString === null ? null : convertString(jsonString);
  };

const sameCell: Evaluator = (cell) => cell!;
const quoteText: Evaluator = (given) => JSON.stringify(given);
const numberAsJson: Evaluator = (given) => cellText(given!);

/** A property of json, and what UNWIND yields: of any type. */
const memberValue: Signature = graphSignature(['json', 'string'], 'json', (json, name) => memberOfEntity(text(json), text(name)));
const elementValue: Signature = graphSignature(['json', 'integer'], 'json', (json, index) =>
  element(text(json), index as bigint),
);
const anyValue: Signature = graphSignature(['json'], 'json', (json) => (json === 'null' ? null : json!));

const headValue: Signature = graphSignature(['json'], 'json', (json) => element(text(json), 0n));
const lastValue: Signature = graphSignature(['json'], 'json', (json) => element(text(json), -1n));

/** Signatures whose result type is known only at run time. */
export const anyTyped: ReadonlySet<Signature> = new Set([memberValue, elementValue, anyValue, headValue, lastValue]);

/** An entity's properties are reached as if they were its own. */
function memberOfEntity(json: string, name: string): string | null {
  const entityProperties = member(json, 'element_id') === null ? null : member(json, 'properties');
  const memberText = member(entityProperties ?? json, name);
  return memberText === 'null' ? null : memberText;
}

/** Reads json as the type of the value beside it; NULL where it has no such value. */
export const fitted: Readonly<Record<'integer' | 'number' | 'boolean' | 'timestamp', Signature>> = {
  integer: graphSignature(['json'], 'integer', (json) => jsonWholeNumber(text(json).trim())),
  number: graphSignature(['json'], 'number', (json) => (jsonNumber(text(json).trim()) === null ? null : Number(json))),
  boolean: graphSignature(['json'], 'boolean', (json) =>
    /^(true|false)$/.test(text(json).trim()) ? text(json).trim() === 'true' : null,
  ),
  timestamp: graphSignature(['json'], 'timestamp', (json) => instantInJson(text(json).trim())),
};

export const graphValueFunctions: readonly ScalarFunction[] = [
  hiddenFunction(
    '#NODE',
    '',
    graphSignature(
      entityTakes,
      'json',
      graphEntity((type) => `"labels":[${type}]`),
      entityShape,
    ),
  ),
  hiddenFunction(
    '#EDGE',
    '',
    graphSignature(
      entityTakes,
      'json',
      graphEntity((type) => `"type":${type}`),
      entityShape,
    ),
  ),
  hiddenFunction(
    '#MAP',
    '{name: value}',
    graphSignature(['string', 'json'], 'json', (names, ...cells) => checkLength(propertiesObject(text(names), cells, true)), {
      repeats: true,
      optional: 1,
      takesNull: true,
      raises: true,
    }),
  ),
  hiddenFunction(
    '#LIST',
    '[x, …]',
    graphSignature(['json'], 'json', (...cells) => checkLength(`[${cells.map((cell) => cell ?? 'null').join(',')}]`), {
      repeats: true,
      optional: 1,
      takesNull: true,
      raises: true,
    }),
  ),
  /** A cell as json. */
  hiddenFunction(
    '#JSON',
    'x',
    graphSignature(['json'], 'json', sameCell),
    graphSignature(['string'], 'json', quoteText),
    graphSignature(['integer'], 'json', numberAsJson),
    graphSignature(['number'], 'json', numberAsJson),
    graphSignature(['boolean'], 'json', numberAsJson),
    graphSignature(['timestamp'], 'json', (instant) => JSON.stringify(cellText(instant!, 'timestamp'))),
  ),
  /** The same for a property of an entity: an instant is its nanoseconds, a vector comes as its text. */
  hiddenFunction(
    '#PROPERTY',
    '',
    graphSignature(['timestamp'], 'json', numberAsJson),
    graphSignature(['string'], 'json', sameCell),
  ),
  hiddenFunction('#ANY', '', anyValue),
  hiddenFunction('#MEMBER', 'x.name', memberValue),
  hiddenFunction('#ELEMENT', 'x[n]', memberValue, elementValue),
  hiddenFunction(
    '#IN',
    'x IN list',
    graphSignature(['json', 'json'], 'boolean', (value, list) => isInList(text(value).trim(), text(list))),
  ),
  hiddenFunction(
    '#APPEND',
    'list + list',
    graphSignature(['json', 'json'], 'json', (left, right) => appendLists(text(left), text(right)), { raises: true }),
  ),
  hiddenFunction('#LABELS', 'labels(node)', graphSignature(['json'], 'json', pathPart('labels'))),
  hiddenFunction(
    '#TYPE',
    'type(relationship)',
    graphSignature(['json'], 'string', (json) => asText(member(text(json), 'type'))),
  ),
  hiddenFunction(
    '#ID',
    'id(entity)',
    graphSignature(['json'], 'integer', (json) => jsonWholeNumber(member(text(json), 'system_from'))),
  ),
  hiddenFunction(
    '#ELEMENTID',
    'elementId(entity)',
    graphSignature(['json'], 'string', (json) => asText(member(text(json), 'element_id'))),
  ),
  hiddenFunction(
    '#PROPERTIES',
    'properties(entity)',
    graphSignature(['json'], 'json', (json) => member(text(json), 'properties') ?? json!),
  ),
  hiddenFunction(
    '#KEYS',
    'keys(entity)',
    graphSignature(['json'], 'json', (json) => {
      const names = members(member(text(json), 'properties') ?? text(json));
      return `[${[...names].map(({ name }) => JSON.stringify(name)).join(',')}]`;
    }),
  ),
  hiddenFunction('#NODES', 'nodes(path)', graphSignature(['json'], 'json', pathPart('nodes'))),
  hiddenFunction('#RELATIONSHIPS', 'relationships(path)', graphSignature(['json'], 'json', pathPart('relationships'))),
  hiddenFunction(
    '#STARTNODE',
    'startNode(relationship)',
    graphSignature(['json'], 'string', (json) => asText(member(text(json), 'start'))),
  ),
  hiddenFunction(
    '#ENDNODE',
    'endNode(relationship)',
    graphSignature(['json'], 'string', (json) => asText(member(text(json), 'end'))),
  ),
  hiddenFunction(
    '#LENGTH',
    'length(path)',
    graphSignature(['json'], 'integer', (json) => {
      const relationships = member(text(json), 'relationships');
      return relationships === null ? null : elementCount(relationships);
    }),
  ),
  hiddenFunction(
    '#SIZE',
    'size(list)',
    graphSignature(['json'], 'integer', (json) => {
      const given = text(json).trim();
      return given.startsWith('[') ? elementCount(given) : isPlainText(given) ? BigInt(codePointCount(asText(given)!)) : null;
    }),
    { ...graphSignature(['string'], 'integer', (given) => BigInt(codePointCount(text(given)))), cost: linear },
  ),
  hiddenFunction(
    '#HEAD',
    'head(list)',
    graphSignature(['json'], 'json', (json) => element(text(json), 0n)),
  ),
  hiddenFunction(
    '#LAST',
    'last(list)',
    graphSignature(['json'], 'json', (json) => element(text(json), -1n)),
  ),
  hiddenFunction(
    '#TOSTRING',
    'toString(x)',
    graphSignature(['string'], 'string', sameCell),
    graphSignature(['integer'], 'string', numberAsJson),
    graphSignature(['number'], 'string', numberAsJson),
    graphSignature(['boolean'], 'string', numberAsJson),
    graphSignature(['timestamp'], 'string', (instant) => cellText(instant!, 'timestamp')),
    graphSignature(['json'], 'string', convertJsonText(sameCell)),
  ),
  hiddenFunction(
    '#TOINTEGER',
    'toInteger(x)',
    graphSignature(['integer'], 'integer', sameCell),
    graphSignature(['number'], 'integer', (value) => truncateToInt64(value as number)),
    graphSignature(['string'], 'integer', (given) => integerInText(text(given))),
    graphSignature(['json'], 'integer', convertJsonText(integerInText)),
  ),
  hiddenFunction(
    '#TOFLOAT',
    'toFloat(x)',
    graphSignature(['number'], 'number', (value) => Number(value)),
    graphSignature(['string'], 'number', (given) => floatInText(text(given))),
    graphSignature(['json'], 'number', convertJsonText(floatInText)),
  ),
  /** NULL where it is none. */
  hiddenFunction('#NUMBER', 'x', fitted.number),
  hiddenFunction(
    '#TOBOOLEAN',
    'toBoolean(x)',
    graphSignature(['boolean'], 'boolean', sameCell),
    graphSignature(['string'], 'boolean', (given) => truthOfText(text(given))),
    graphSignature(['json'], 'boolean', convertJsonText(truthOfText)),
  ),
  hiddenFunction(
    '#RANGE',
    'range(first, last, step)',
    graphSignature(['integer', 'integer', 'integer'], 'json', (...cells) => integerRange(cells as readonly bigint[]), {
      optional: 1,
      raises: true,
    }),
  ),
];

function truthOfText(given: string): boolean | null {
  const truthWord = given.trim().toLowerCase();
  return truthWord === 'true' ? true : truthWord === 'false' ? false : null;
}

const rangeMax = 100_000n;

function integerRange([rangeFirst, rangeLast, rangeStep = 1n]: readonly bigint[]): string {
  if (rangeStep === 0n) throw invalid('a range has a step that is not 0');
  if ((rangeLast! - rangeFirst!) / rangeStep >= rangeMax) throw invalid(`a range has at most ${rangeMax} numbers`);
  const rangeNumbers: bigint[] = [];
  for (
    let rangeNumber = rangeFirst!;
    rangeStep > 0n ? rangeNumber <= rangeLast! : rangeNumber >= rangeLast!;
    rangeNumber += rangeStep
  )
    rangeNumbers.push(rangeNumber);
  work.done += rangeNumbers.length * 100;
  return `[${rangeNumbers.join(',')}]`;
}

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

const perJson: Cost = { call: 300, character: 8 };

function hiddenFunction(name: string, usage: string, ...signatures: readonly Signature[]): ScalarFunction {
  return { name, group: 'json', usage, summary: '', examples: [], signatures };
}

function signature(
  takes: Signature['takes'],
  yields: Signature['yields'],
  evaluate: Evaluator,
  more: Partial<Signature> = {},
): Signature {
  return { takes, cost: perJson, yields, evaluate, ...more };
}

/** The names of an entity's properties come as one text of json, the same for every row. */
let lastNames = { text: '[]', names: [] as readonly string[] };

function namesOf(given: string): readonly string[] {
  if (lastNames.text !== given)
    lastNames = { text: given, names: (JSON.parse(given) as string[]).map((name) => JSON.stringify(name)) };
  return lastNames.names;
}

function object(given: string, cells: readonly Cell[], keepsNull: boolean): string {
  const names = namesOf(given);
  let jsonText = '';
  for (let i = 0; i < names.length; i++) {
    const cell = cells[i]!;
    if (cell !== null || keepsNull) jsonText += `${jsonText === '' ? '' : ','}${names[i]}:${cell === null ? 'null' : text(cell)}`;
  }
  return `{${jsonText}}`;
}

const entity =
  (open: (type: string) => string): Evaluator =>
  (type, names, key, systemFrom, ...cells) => {
    if (key === null || systemFrom === null) return null;
    const properties = object(text(names), cells, false);
    const id = JSON.stringify(`${text(type)}/${text(key)}`);
    return `{${open(JSON.stringify(type))},"element_id":${id},"system_from":${String(systemFrom)},"properties":${properties}}`;
  };

/** Type, names of the properties, key, system_from; then each property as json. */
const entityTakes: Signature['takes'] = ['string', 'string', 'string', 'timestamp', 'json'];
const entityShape = { repeats: true, optional: 1, takesNull: true } as const;

const part =
  (name: string): Evaluator =>
  (json) =>
    member(text(json), name);
const number = (json: string): string | null => (/^-?\d/.test(json) ? json : null);

function whole(json: string | null): bigint | null {
  if (json === null || !/^-?\d{1,19}$/.test(json)) return null;
  const value = BigInt(json);
  return value > I64_MAX || value < I64_MIN ? null : value;
}

const isPlainText = (json: string): boolean => json.startsWith('"');

function instantIn(json: string): bigint | null {
  try {
    return isPlainText(json) ? instantOf(asText(json)!) : whole(json);
  } catch {
    return null;
  }
}

function count(json: string): bigint {
  let nodeCount = 0n;
  for (const _ of elements(json)) nodeCount++;
  return nodeCount;
}

/** Whether two values are equal, wherever JSON writes one of them in another way. NULL where one is null. */
function sameJson(one: string, other: string): boolean | null {
  if (one === 'null' || other === 'null') return null;
  if (one === other) return true;
  if (number(one) !== null && number(other) !== null) {
    const [a, b] = [whole(one), whole(other)];
    return a !== null && b !== null ? a === b : Number(one) === Number(other);
  }
  return isPlainText(one) && isPlainText(other) && asText(one) === asText(other);
}

function isIn(value: string, list: string): boolean | null {
  let unknown = false;
  for (const each of elements(list)) {
    spend(perJson.call);
    const same = sameJson(value, each);
    if (same === true) return true;
    unknown ||= same === null;
  }
  return unknown ? null : false;
}

/** Counts characters of Unicode, as texts are measured elsewhere. */
function characters(given: string): number {
  let matchCount = 0;
  for (const _ of given) matchCount++;
  return matchCount;
}

function append(left: string, right: string): string {
  const parts = [left, right].map((each) => (each.trimStart().startsWith('[') ? each.trim().slice(1, -1).trim() : each.trim()));
  return checkLength(`[${parts.filter((each) => each !== '').join(',')}]`);
}

function truncateToInt64(value: number): bigint | null {
  const cut = Math.trunc(value);
  return cut >= -(2 ** 63) && cut < 2 ** 63 ? BigInt(cut) : null;
}

const numeral = /^\s*[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?\s*$/i;

function integerIn(given: string): bigint | null {
  return /^\s*[+-]?\d{1,19}\s*$/.test(given)
    ? whole(given.trim().replace(/^\+/, ''))
    : numeral.test(given)
      ? truncateToInt64(Number(given))
      : null;
}

function floatIn(given: string): number | null {
  const value = numeral.test(given) ? Number(given) : Number.NaN;
  return Number.isFinite(value) ? value : null;
}

const ofText =
  (convert: (given: string) => Cell): Evaluator =>
  (json) => {
    const given = asText(text(json).trim());
    return given === null ? null : convert(given);
  };

const same: Evaluator = (cell) => cell!;
const quote: Evaluator = (given) => JSON.stringify(given);
const digits: Evaluator = (given) => cellText(given!);

/** A property of json, and what UNWIND yields: of any type. */
const memberValue: Signature = signature(['json', 'string'], 'json', (json, name) => memberOf(text(json), text(name)));
const elementValue: Signature = signature(['json', 'integer'], 'json', (json, index) => element(text(json), index as bigint));
const anyValue: Signature = signature(['json'], 'json', (json) => (json === 'null' ? null : json!));

const headValue: Signature = signature(['json'], 'json', (json) => element(text(json), 0n));
const lastValue: Signature = signature(['json'], 'json', (json) => element(text(json), -1n));

/** Signatures whose result type is known only at run time. */
export const anyTyped: ReadonlySet<Signature> = new Set([memberValue, elementValue, anyValue, headValue, lastValue]);

/** An entity's properties are reached as if they were its own. */
function memberOf(json: string, name: string): string | null {
  const properties = member(json, 'element_id') === null ? null : member(json, 'properties');
  const memberText = member(properties ?? json, name);
  return memberText === 'null' ? null : memberText;
}

/** Reads json as the type of the value beside it; NULL where it has no such value. */
export const fitted: Readonly<Record<'integer' | 'number' | 'boolean' | 'timestamp', Signature>> = {
  integer: signature(['json'], 'integer', (json) => whole(text(json).trim())),
  number: signature(['json'], 'number', (json) => (number(text(json).trim()) === null ? null : Number(json))),
  boolean: signature(['json'], 'boolean', (json) =>
    /^(true|false)$/.test(text(json).trim()) ? text(json).trim() === 'true' : null,
  ),
  timestamp: signature(['json'], 'timestamp', (json) => instantIn(text(json).trim())),
};

export const graphValueFunctions: readonly ScalarFunction[] = [
  hiddenFunction(
    '#NODE',
    '',
    signature(
      entityTakes,
      'json',
      entity((type) => `"labels":[${type}]`),
      entityShape,
    ),
  ),
  hiddenFunction(
    '#EDGE',
    '',
    signature(
      entityTakes,
      'json',
      entity((type) => `"type":${type}`),
      entityShape,
    ),
  ),
  hiddenFunction(
    '#MAP',
    '{name: value}',
    signature(['string', 'json'], 'json', (names, ...cells) => checkLength(object(text(names), cells, true)), {
      repeats: true,
      optional: 1,
      takesNull: true,
      raises: true,
    }),
  ),
  hiddenFunction(
    '#LIST',
    '[x, …]',
    signature(['json'], 'json', (...cells) => checkLength(`[${cells.map((cell) => cell ?? 'null').join(',')}]`), {
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
    signature(['json'], 'json', same),
    signature(['string'], 'json', quote),
    signature(['integer'], 'json', digits),
    signature(['number'], 'json', digits),
    signature(['boolean'], 'json', digits),
    signature(['timestamp'], 'json', (instant) => JSON.stringify(cellText(instant!, 'timestamp'))),
  ),
  /** The same for a property of an entity: an instant is its nanoseconds, a vector comes as its text. */
  hiddenFunction('#PROPERTY', '', signature(['timestamp'], 'json', digits), signature(['string'], 'json', same)),
  hiddenFunction('#ANY', '', anyValue),
  hiddenFunction('#MEMBER', 'x.name', memberValue),
  hiddenFunction('#ELEMENT', 'x[n]', memberValue, elementValue),
  hiddenFunction(
    '#IN',
    'x IN list',
    signature(['json', 'json'], 'boolean', (value, list) => isIn(text(value).trim(), text(list))),
  ),
  hiddenFunction(
    '#APPEND',
    'list + list',
    signature(['json', 'json'], 'json', (left, right) => append(text(left), text(right)), { raises: true }),
  ),
  hiddenFunction('#LABELS', 'labels(node)', signature(['json'], 'json', part('labels'))),
  hiddenFunction(
    '#TYPE',
    'type(relationship)',
    signature(['json'], 'string', (json) => asText(member(text(json), 'type'))),
  ),
  hiddenFunction(
    '#ID',
    'id(entity)',
    signature(['json'], 'integer', (json) => whole(member(text(json), 'system_from'))),
  ),
  hiddenFunction(
    '#ELEMENTID',
    'elementId(entity)',
    signature(['json'], 'string', (json) => asText(member(text(json), 'element_id'))),
  ),
  hiddenFunction(
    '#PROPERTIES',
    'properties(entity)',
    signature(['json'], 'json', (json) => member(text(json), 'properties') ?? json!),
  ),
  hiddenFunction(
    '#KEYS',
    'keys(entity)',
    signature(['json'], 'json', (json) => {
      const names = members(member(text(json), 'properties') ?? text(json));
      return `[${[...names].map(({ name }) => JSON.stringify(name)).join(',')}]`;
    }),
  ),
  hiddenFunction('#NODES', 'nodes(path)', signature(['json'], 'json', part('nodes'))),
  hiddenFunction('#RELATIONSHIPS', 'relationships(path)', signature(['json'], 'json', part('relationships'))),
  hiddenFunction(
    '#STARTNODE',
    'startNode(relationship)',
    signature(['json'], 'string', (json) => asText(member(text(json), 'start'))),
  ),
  hiddenFunction(
    '#ENDNODE',
    'endNode(relationship)',
    signature(['json'], 'string', (json) => asText(member(text(json), 'end'))),
  ),
  hiddenFunction(
    '#LENGTH',
    'length(path)',
    signature(['json'], 'integer', (json) => {
      const relationships = member(text(json), 'relationships');
      return relationships === null ? null : count(relationships);
    }),
  ),
  hiddenFunction(
    '#SIZE',
    'size(list)',
    signature(['json'], 'integer', (json) => {
      const given = text(json).trim();
      return given.startsWith('[') ? count(given) : isPlainText(given) ? BigInt(characters(asText(given)!)) : null;
    }),
    { ...signature(['string'], 'integer', (given) => BigInt(characters(text(given)))), cost: linear },
  ),
  hiddenFunction(
    '#HEAD',
    'head(list)',
    signature(['json'], 'json', (json) => element(text(json), 0n)),
  ),
  hiddenFunction(
    '#LAST',
    'last(list)',
    signature(['json'], 'json', (json) => element(text(json), -1n)),
  ),
  hiddenFunction(
    '#TOSTRING',
    'toString(x)',
    signature(['string'], 'string', same),
    signature(['integer'], 'string', digits),
    signature(['number'], 'string', digits),
    signature(['boolean'], 'string', digits),
    signature(['timestamp'], 'string', (instant) => cellText(instant!, 'timestamp')),
    signature(['json'], 'string', ofText(same)),
  ),
  hiddenFunction(
    '#TOINTEGER',
    'toInteger(x)',
    signature(['integer'], 'integer', same),
    signature(['number'], 'integer', (value) => truncateToInt64(value as number)),
    signature(['string'], 'integer', (given) => integerIn(text(given))),
    signature(['json'], 'integer', ofText(integerIn)),
  ),
  hiddenFunction(
    '#TOFLOAT',
    'toFloat(x)',
    signature(['number'], 'number', (value) => Number(value)),
    signature(['string'], 'number', (given) => floatIn(text(given))),
    signature(['json'], 'number', ofText(floatIn)),
  ),
  /** NULL where it is none. */
  hiddenFunction('#NUMBER', 'x', fitted.number),
  hiddenFunction(
    '#TOBOOLEAN',
    'toBoolean(x)',
    signature(['boolean'], 'boolean', same),
    signature(['string'], 'boolean', (given) => truthOf(text(given))),
    signature(['json'], 'boolean', ofText(truthOf)),
  ),
  hiddenFunction(
    '#RANGE',
    'range(first, last, step)',
    signature(['integer', 'integer', 'integer'], 'json', (...cells) => range(cells as readonly bigint[]), {
      optional: 1,
      raises: true,
    }),
  ),
];

function truthOf(given: string): boolean | null {
  const word = given.trim().toLowerCase();
  return word === 'true' ? true : word === 'false' ? false : null;
}

const rangeMax = 100_000n;

function range([first, last, step = 1n]: readonly bigint[]): string {
  if (step === 0n) throw invalid('a range has a step that is not 0');
  if ((last! - first!) / step >= rangeMax) throw invalid(`a range has at most ${rangeMax} numbers`);
  const numbers: bigint[] = [];
  for (let each = first!; step > 0n ? each <= last! : each >= last!; each += step) numbers.push(each);
  work.done += numbers.length * 100;
  return `[${numbers.join(',')}]`;
}

/** What an update makes of a document: $set, $inc, $setOnInsert, or another document in its place. Pure. */
import { compare, isList, isObject, kindOf, numberOf, type Stored, type StoredObject } from '../../planner/documents/values.ts';
import { doubleValue } from './bson.ts';
import { DocumentRefusal, refusals } from './errors.ts';

export type Update = (document: StoredObject, isInsert: boolean) => StoredObject;

const unbuilt: ReadonlySet<string> = new Set(
  '$push $pull $pullAll $pop $addToSet $unset $rename $min $max $mul $bit $currentDate'.split(' '),
);

export function updateOf(given: Stored | undefined): Update {
  if (isList(given)) throw refusals.notSupported('an update that is a pipeline');
  if (!isObject(given)) throw refusals.wrongType('update.updates.u', 'an object');
  const names = Object.keys(given);
  if (!names.some((name) => name.startsWith('$'))) {
    checkNames(given);
    return (document) => replaced(document, given);
  }
  const steps = Object.entries(given).map(
    ([operator, fields]): { on: 'all' | 'insert'; apply: (into: StoredObject) => StoredObject } => {
      if (operator !== '$set' && operator !== '$inc' && operator !== '$setOnInsert') {
        if (unbuilt.has(operator)) throw refusals.notSupported(`the update operator ${operator}`);
        throw new DocumentRefusal(9, `Unknown modifier: ${operator}. Expected a valid update modifier or pipeline-style update`);
      }
      if (!isObject(fields))
        throw new DocumentRefusal(9, `Modifiers operate on fields but we found another type for ${operator}`);
      checkNames(Object.values(fields));
      const paths = Object.entries(fields).map(([name, value]) => ({ path: pathOf(name), value }));
      const write = operator === '$inc' ? added : (_old: Stored | undefined, value: Stored): Stored => value;
      return {
        on: operator === '$setOnInsert' ? 'insert' : 'all',
        apply: (into) => paths.reduce((document, { path, value }) => withValue(document, path, (old) => write(old, value)), into),
      };
    },
  );
  checkApart(Object.values(given).flatMap((fields) => Object.keys(fields as StoredObject)));
  return (document, isInsert) => {
    const made = steps.reduce((into, { on, apply }) => (on === 'all' || isInsert ? apply(into) : into), document);
    if (!isInsert) checkSameId(document, made);
    return made;
  };
}

function replaced(document: StoredObject, by: StoredObject): StoredObject {
  const { _id: old } = document;
  const made = old === undefined ? by : { _id: old, ...by };
  checkSameId(document, made);
  return made;
}

function checkSameId({ _id: before }: StoredObject, { _id: after }: StoredObject): void {
  if (before !== undefined && compare(before, after) !== 0)
    throw new DocumentRefusal(66, "Performing an update on the path '_id' would modify the immutable field '_id'");
}

/** Two of them must not be about one field, or about a field and one in it. */
function checkApart(names: readonly string[]): void {
  const sorted = [...names].sort();
  for (let i = 1; i < sorted.length; i++) {
    const [one, two] = [sorted[i - 1]!, sorted[i]!];
    if (two === one || two.startsWith(`${one}.`))
      throw new DocumentRefusal(40, `Updating the path '${two}' would create a conflict at '${one}'`);
  }
}

function pathOf(name: string): readonly string[] {
  const path = name.split('.');
  if (path.includes('')) throw new DocumentRefusal(9, `The update path '${name}' contains an empty field name`);
  const operator = path.find((part) => part.startsWith('$'));
  if (operator !== undefined) throw refusals.notSupported(`the place ${operator} in the path of an update`);
  return path;
}

const indexMax = 10_000;

function withValue(into: Stored | undefined, path: readonly string[], write: (old: Stored | undefined) => Stored): StoredObject {
  return placed(into ?? {}, path, 0, write) as StoredObject;
}

function placed(
  value: Stored | undefined,
  path: readonly string[],
  at: number,
  write: (old: Stored | undefined) => Stored,
): Stored {
  if (at === path.length) return write(value);
  const name = path[at]!;
  if (isList(value)) {
    if (!/^\d{1,9}$/.test(name)) throw cannotCreate(name, value);
    const index = Number(name);
    if (index > indexMax) throw new DocumentRefusal(2, `an element beyond number ${indexMax} can't be made`);
    const made = [...value];
    while (made.length < index) made.push(null);
    made[index] = placed(value[index], path, at + 1, write);
    return made;
  }
  if (value !== undefined && !isObject(value)) throw cannotCreate(name, value);
  const made: Record<string, Stored> = { ...value };
  const inner = placed(value !== undefined && Object.hasOwn(value, name) ? value[name] : undefined, path, at + 1, write);
  Object.defineProperty(made, name, { value: inner, enumerable: true, configurable: true, writable: true });
  return made;
}

const cannotCreate = (name: string, value: Stored): DocumentRefusal =>
  new DocumentRefusal(2, `Cannot create field '${name}' in element of type ${kindOf(value)}`);

/** Whole numbers stay whole for as long as they fit 64 bits. */
function added(old: Stored | undefined, by: Stored): Stored {
  if (kindOf(by) !== 'number') throw new DocumentRefusal(14, 'Cannot increment with non-numeric argument');
  if (old === undefined) return by;
  if (kindOf(old) !== 'number') throw new DocumentRefusal(14, `Cannot apply $inc to a value of non-numeric type ${kindOf(old)}`);
  if (isDecimal(old) || isDecimal(by)) throw refusals.notSupported('$inc of decimals');
  if (!isWhole(old) || !isWhole(by)) return doubleValue(Number(numberOf(old)) + Number(numberOf(by)));
  const sum = BigInt(numberOf(old)) + BigInt(numberOf(by));
  if (sum !== BigInt.asIntN(64, sum)) throw new DocumentRefusal(2, 'Failed to apply $inc: the sum does not fit 64 bits');
  const isShort = typeof old === 'number' && typeof by === 'number' && sum === BigInt.asIntN(32, sum);
  return isShort ? Number(sum) : { $numberLong: String(sum) };
}

const isDecimal = (value: Stored): boolean => isWrapped(value, '$numberDecimal');
const isWrapped = (value: Stored, name: string): boolean =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, name);
const isWhole = (value: Stored): boolean =>
  (typeof value === 'number' && Number.isInteger(value)) || isWrapped(value, '$numberLong') || isWrapped(value, '$numberInt');

const referenceNames: ReadonlySet<string> = new Set(['$ref', '$id', '$db']);

/** Names of stored fields don't begin with $: they would be taken for operators, or for values of other types. */
export function checkNames(value: Stored): void {
  if (isList(value)) {
    for (const each of value) checkNames(each);
    return;
  }
  if (!isObject(value)) return;
  for (const [name, inner] of Object.entries(value)) {
    if (name.startsWith('$') && !referenceNames.has(name))
      throw new DocumentRefusal(52, `The dollar ($) prefixed field '${name}' is not allowed in the context of what is stored`);
    checkNames(inner);
  }
}

/** The fields that a filter says the value of: what an upsert begins with. */
export function seedOf(filter: Stored): StoredObject {
  let seed: StoredObject = {};
  const take = (each: Stored): void => {
    if (!isObject(each)) return;
    for (const [name, condition] of Object.entries(each)) {
      if (name === '$and' && isList(condition)) for (const part of condition) take(part);
      if (name.startsWith('$')) continue;
      const value =
        isObject(condition) && Object.keys(condition).some((key) => key.startsWith('$')) ? condition['$eq'] : condition;
      if (value === undefined || kindOf(value) === 'regex') continue;
      checkNames(value);
      seed = withValue(seed, pathOf(name), () => value);
    }
  };
  take(filter);
  return seed;
}

/** What is done with documents once they are found: sorted, cut, projected, grouped. Pure. */
import { compileFilter } from '../../planner/documents/filter.ts';
import {
  compare,
  identityOf,
  isList,
  isObject,
  kindOf,
  numberOf,
  type Stored,
  type StoredObject,
  valuesAt,
} from '../../planner/documents/values.ts';
import { doubleValue } from './bson.ts';
import { DocumentRefusal, refusals } from './errors.ts';

export type Stage = (documents: readonly StoredObject[]) => readonly StoredObject[];

export function count(value: Stored | undefined, name: string, least = 0): number {
  const number = value !== undefined && kindOf(value) === 'number' ? Number(numberOf(value)) : Number.NaN;
  if (!Number.isInteger(number)) throw refusals.wrongType(name, 'a whole number');
  if (number < least) throw new DocumentRefusal(2, `BSON field '${name}' value must be >= ${least}, actual value '${number}'`);
  return number;
}

/** An empty list comes before all that is there. */
const emptyList: readonly Stored[] = [{ $minKey: 1 }];

/** Least element of a list where the order rises, greatest where it falls: by it a document has its place. */
function keyAt(document: StoredObject, path: readonly string[], direction: number): Stored | undefined {
  let found: Stored | undefined;
  let isFirst = true;
  for (const value of valuesAt(document, path)) {
    for (const each of isList(value) ? (value.length > 0 ? value : emptyList) : [value]) {
      if (isFirst || compare(each, found) * direction < 0) found = each;
      isFirst = false;
    }
  }
  return found;
}

export function sortOf(given: Stored | undefined): Stage {
  if (given === undefined) return (documents) => documents;
  if (!isObject(given)) throw refusals.wrongType('sort', 'an object');
  const keys = Object.entries(given).map(([name, direction]) => {
    if (isObject(direction)) throw refusals.notSupported('a sort by $meta');
    const sign = kindOf(direction) === 'number' ? Number(numberOf(direction)) : 0;
    if (sign !== 1 && sign !== -1)
      throw new DocumentRefusal(2, `$sort key ordering must be 1 (for ascending) or -1 (for descending)`);
    return { path: name.split('.'), sign };
  });
  if (keys.length === 0) return (documents) => documents;
  return (documents) => {
    const keyed = documents.map((document) => ({ document, keys: keys.map(({ path, sign }) => keyAt(document, path, sign)) }));
    keyed.sort((a, b) => {
      for (const [i, { sign }] of keys.entries()) {
        const order = compare(a.keys[i], b.keys[i]) * sign;
        if (order !== 0) return order;
      }
      return 0;
    });
    return keyed.map(({ document }) => document);
  };
}

interface Tree {
  readonly leaf: boolean;
  readonly inner: Map<string, Tree>;
}

/** Fields that are kept, or left out. */
export function projectionOf(given: Stored | undefined): (document: StoredObject) => StoredObject {
  if (given === undefined) return (document) => document;
  if (!isObject(given)) throw refusals.wrongType('projection', 'an object');
  const fields = Object.entries(given).map(([name, value]) => {
    if (isObject(value) || typeof value === 'string' || isList(value))
      throw refusals.notSupported('an expression in a projection');
    if (name.includes('$')) throw refusals.notSupported('$ in a projection');
    return { name, keeps: value !== false && value !== null && !(kindOf(value) === 'number' && Number(numberOf(value)) === 0) };
  });
  if (fields.length === 0) return (document) => document;
  const others = fields.filter(({ name }) => name !== '_id');
  const keeps = others.length > 0 ? others[0]!.keeps : fields[0]!.keeps;
  const wrong = others.find((field) => field.keeps !== keeps);
  if (wrong)
    throw new DocumentRefusal(
      2,
      `Cannot do ${wrong.keeps ? 'inclusion' : 'exclusion'} on field ${wrong.name} in the other kind of projection`,
    );
  const id = fields.find(({ name }) => name === '_id');
  const tree: Tree = { leaf: false, inner: new Map() };
  for (const { name } of others) plant(tree, name.split('.'));
  if (keeps ? (id?.keeps ?? true) : id?.keeps === false) plant(tree, ['_id']);
  return (document) => (keeps ? kept(document, tree) : without(document, tree));
}

function plant(tree: Tree, path: readonly string[]): void {
  let at = tree;
  for (const [i, name] of path.entries()) {
    let next = at.inner.get(name);
    if (next === undefined) at.inner.set(name, (next = { leaf: i === path.length - 1, inner: new Map() }));
    at = next;
  }
}

function kept(object: StoredObject, tree: Tree): StoredObject {
  const entries = Object.entries(object).flatMap(([name, value]): [string, Stored][] => {
    const branch = tree.inner.get(name);
    if (branch === undefined) return [];
    if (branch.leaf) return [[name, value]];
    if (isList(value)) return [[name, value.filter(isObject).map((each) => kept(each, branch))]];
    return isObject(value) ? [[name, kept(value, branch)]] : [];
  });
  return Object.fromEntries(entries);
}

function without(object: StoredObject, tree: Tree): StoredObject {
  const entries = Object.entries(object).flatMap(([name, value]): [string, Stored][] => {
    const branch = tree.inner.get(name);
    if (branch === undefined) return [[name, value]];
    if (branch.leaf) return [];
    const inner = (each: Stored): Stored => (isObject(each) ? without(each, branch) : each);
    return [[name, isList(value) ? value.map(inner) : inner(value)]];
  });
  return Object.fromEntries(entries);
}

/** Stages of an aggregation behind the $match that it may begin with. */
export function stageOf(given: Stored): Stage {
  if (!isObject(given) || Object.keys(given).length !== 1)
    throw new DocumentRefusal(40_324, 'A pipeline stage specification object must contain exactly one field.');
  const [name, value] = Object.entries(given)[0]!;
  switch (name) {
    case '$match': {
      const filter = compileFilter(value);
      return (documents) => documents.filter(filter);
    }
    case '$sort':
      return sortOf(value);
    case '$skip': {
      const skipped = count(value, '$skip');
      return (documents) => documents.slice(skipped);
    }
    case '$limit': {
      const most = count(value, '$limit', 1);
      return (documents) => documents.slice(0, most);
    }
    case '$project': {
      if (isObject(value) && Object.keys(value).length === 0)
        throw new DocumentRefusal(2, 'Invalid $project :: caused by :: projection specification must have at least one field');
      const project = projectionOf(value);
      return (documents) => documents.map(project);
    }
    case '$count':
      if (typeof value !== 'string' || value === '' || /[$.]/.test(value))
        throw new DocumentRefusal(2, 'the count field must be a non-empty string without $ and .');
      return (documents) => (documents.length === 0 ? [] : [{ [value]: documents.length }]);
    case '$group':
      return groupOf(value);
  }
  if (knownStages.has(name)) throw refusals.notSupported(`the stage ${name}`);
  throw new DocumentRefusal(40_324, `Unrecognized pipeline stage name: '${name}'`);
}

const knownStages: ReadonlySet<string> = new Set(
  (
    '$addFields $set $unset $unwind $lookup $facet $out $merge $sample $bucket $bucketAuto $changeStream $collStats $indexStats ' +
    '$graphLookup $geoNear $redact $replaceRoot $replaceWith $sortByCount $unionWith $densify $fill $setWindowFields $search $documents'
  ).split(' '),
);

/** A value of a document, a literal, or an object of both: what $group takes. */
type Of = (document: StoredObject) => Stored | undefined;

function expressionOf(given: Stored): Of {
  if (typeof given === 'string' && given.startsWith('$')) {
    if (given.startsWith('$$')) throw refusals.notSupported(`the variable ${given}`);
    const path = given.slice(1).split('.');
    return (document) => valueOf(document, path, 0);
  }
  if (!isObject(given)) return () => given;
  const entries = Object.entries(given);
  const literal = given['$literal'];
  if (entries.length === 1 && literal !== undefined) return () => literal;
  const operator = entries.find(([name]) => name.startsWith('$'));
  if (operator) throw refusals.notSupported(`the expression ${operator[0]}`);
  const members = entries.map(([name, value]) => [name, expressionOf(value)] as const);
  return (document) =>
    Object.fromEntries(
      members.flatMap(([name, of]): [string, Stored][] => {
        const value = of(document);
        return value === undefined ? [] : [[name, value]];
      }),
    );
}

/** Where a list lies on the path, the values of its elements as a list. */
function valueOf(value: Stored | undefined, path: readonly string[], at: number): Stored | undefined {
  if (at === path.length) return value;
  if (isList(value)) return value.flatMap((each) => valueOf(each, path, at) ?? []);
  return isObject(value) && Object.hasOwn(value, path[at]!) ? valueOf(value[path[at]!], path, at + 1) : undefined;
}

type Accumulate = (values: readonly (Stored | undefined)[]) => Stored;

const accumulators: Readonly<Record<string, Accumulate>> = {
  $sum: (values) => total(numbersOf(values)),
  $avg: (values) => {
    const numbers = numbersOf(values);
    return numbers.length === 0
      ? null
      : doubleValue(numbers.reduce<number>((sum, each) => sum + Number(numberOf(each)), 0) / numbers.length);
  },
  $min: (values) => extreme(values, -1),
  $max: (values) => extreme(values, 1),
  $first: (values) => values[0] ?? null,
  $last: (values) => values.at(-1) ?? null,
  $push: (values) => values.filter((value) => value !== undefined),
  $addToSet: (values) => distinct(values),
  $count: (values) => values.length,
};

function numbersOf(values: readonly (Stored | undefined)[]): Stored[] {
  return values.filter((value): value is Stored => value !== undefined && kindOf(value) === 'number');
}

function total(numbers: readonly Stored[]): Stored {
  const values = numbers.map((each) => ({ value: numberOf(each), bare: typeof each === 'number' }));
  const whole = values.every(({ value, bare }) => typeof value === 'bigint' || (bare && Number.isInteger(value)));
  if (!whole) return doubleValue(values.reduce((sum, { value }) => sum + Number(value), 0));
  const sum = values.reduce((all, { value }) => all + BigInt(value), 0n);
  if (sum !== BigInt.asIntN(64, sum)) return doubleValue(Number(sum));
  return values.every(({ bare }) => bare) && sum === BigInt.asIntN(32, sum) ? Number(sum) : { $numberLong: String(sum) };
}

function extreme(values: readonly (Stored | undefined)[], sign: number): Stored {
  let found: Stored = null;
  for (const value of values)
    if (value !== undefined && value !== null && (found === null || compare(value, found) * sign > 0)) found = value;
  return found;
}

/** Each once, in the order in which they first came. */
export function distinct(values: readonly (Stored | undefined)[]): Stored[] {
  const found = new Map<string, Stored>();
  for (const value of values) {
    if (value === undefined) continue;
    const identity = identityOf(value);
    if (!found.has(identity)) found.set(identity, value);
  }
  return [...found.values()];
}

function groupOf(given: Stored): Stage {
  if (!isObject(given) || !Object.hasOwn(given, '_id')) throw new DocumentRefusal(2, 'a group specification must include an _id');
  const { _id: by, ...fields } = given;
  const key = expressionOf(by!);
  const accumulated = Object.entries(fields).map(([name, value]) => {
    const entries = isObject(value) ? Object.entries(value) : [];
    if (entries.length !== 1) throw new DocumentRefusal(2, `The field '${name}' must be an accumulator object`);
    const [operator, argument] = entries[0]!;
    const accumulate = Object.hasOwn(accumulators, operator) ? accumulators[operator]! : undefined;
    if (accumulate === undefined) throw refusals.notSupported(`the accumulator ${operator}`);
    return { name, accumulate, of: operator === '$count' ? (): Stored => 1 : expressionOf(argument) };
  });
  return (documents) => {
    const groups = new Map<string, { readonly id: Stored; readonly members: StoredObject[] }>();
    for (const document of documents) {
      const id = key(document) ?? null;
      const identity = identityOf(id);
      const group = groups.get(identity);
      if (group === undefined) groups.set(identity, { id, members: [document] });
      else group.members.push(document);
    }
    return [...groups.values()].map(({ id, members }) => ({
      _id: id,
      ...Object.fromEntries(accumulated.map(({ name, accumulate, of }) => [name, accumulate(members.map(of))])),
    }));
  };
}

/** Update operators: applies $set, $inc, $mul, $setOnInsert or a replacement to one document. In steps; pure. */
import { compareText } from '../../log/values/value.ts';
import { combine, doubleValue, isNumeric, type Numeric } from '../../planner/expressions/documents/document-numbers.ts';
import { isOperators } from '../../planner/expressions/documents/document-filter.ts';
import type { Steps } from '../../planner/expressions/resumable-steps.ts';
import { Pace } from '../../planner/expressions/documents/document-json.ts';
import {
  compare,
  depthMax,
  isIndex,
  isList,
  isObject,
  kindOf,
  type Stored,
  type StoredObject,
} from '../../planner/expressions/documents/document-values.ts';
import { work } from '../../planner/expressions/expression-cost.ts';
import { DocumentRefusal, mongoRefusals } from './errors.ts';

export type DocumentUpdate = (bsonDocument: StoredObject, isInsert: boolean) => Steps<StoredObject>;

/** undefined: the place stays as it is. */
type Write = (old: Stored | undefined, isInsert: boolean) => Stored | undefined;

const operators: Readonly<Record<string, (bsonValue: Stored) => Write>> = {
  $set: (bsonValue) => () => bsonValue,
  $setOnInsert: (bsonValue) => (_old, isInsert) => (isInsert ? bsonValue : undefined),
  $inc: (by) => arithmetic('add', by),
  $mul: (by) => arithmetic('multiply', by),
};

const unbuilt: ReadonlySet<string> = new Set(
  '$push $pull $pullAll $pop $addToSet $unset $rename $min $max $bit $currentDate'.split(' '),
);

/** Whether an update is a replacement document. */
export function isReplacement(updateDocument: Stored | undefined): boolean {
  if (!isObject(updateDocument)) return false;
  const [first] = updateDocument.keys();
  return first === undefined || !first.startsWith('$');
}

interface Step {
  readonly name: string;
  readonly path: readonly string[];
  readonly write: Write;
}

export function* updateOf(updateDocument: Stored | undefined): Steps<DocumentUpdate> {
  if (isList(updateDocument)) throw mongoRefusals.notSupported('an update that is a pipeline');
  if (!isObject(updateDocument)) throw mongoRefusals.wrongType('update.updates.u', 'an object');
  if (isReplacement(updateDocument)) {
    yield* nameSteps(updateDocument);
    return (bsonDocument) => replace(bsonDocument, updateDocument);
  }
  const pace = new Pace();
  const steps: Step[] = [];
  for (const [operator, fields] of updateDocument) {
    const operatorSteps = Object.hasOwn(operators, operator) ? operators[operator]! : undefined;
    if (operatorSteps === undefined) {
      if (unbuilt.has(operator)) throw mongoRefusals.notSupported(`the update operator ${operator}`);
      throw new DocumentRefusal(
        9,
        `Unknown modifier: ${operator}. Expected a valid update modifier or pipeline-style update specified as an array`,
      );
    }
    if (!isObject(fields))
      throw new DocumentRefusal(
        9,
        `Modifiers operate on fields but we found type ${kindOf(fields)} instead. For example: {$mod: {<field>: ...}} not {${operator}: …}`,
      );
    for (const [name, bsonValue] of fields) {
      yield* nameSteps(bsonValue);
      const path = pathOf(name);
      steps.push({ name, path, write: operatorSteps(bsonValue) });
      if (steps.length > stepsMax) throw new DocumentRefusal(2, `an update is of at most ${stepsMax} fields`);
      if (pace.spend(path.length + 1)) yield;
    }
  }
  yield* checkApart(
    steps,
    (one, two) => new DocumentRefusal(40, `Updating the path '${two}' would create a conflict at '${one}'`),
  );
  // New members come in the order of their names, not in that of the update.
  steps.sort((a, b) => comparePaths(a.path, b.path));
  return function* (bsonDocument, isInsert) {
    const updatedDocument = yield* apply(steps, bsonDocument, isInsert);
    checkSameId(bsonDocument, updatedDocument);
    return updatedDocument;
  };
}

function comparePaths(a: readonly string[], b: readonly string[]): number {
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const [one, two] = [a[i]!, b[i]!];
    if (one === two) continue;
    if (isIndex(one) && isIndex(two)) return Number(one) - Number(two);
    return compareText(one, two);
  }
  return a.length - b.length;
}

/** The document with `_id` before all other members. */
export function* withId(id: Stored, bsonDocument: StoredObject): Steps<StoredObject> {
  const [first] = bsonDocument.keys();
  if (first === '_id') return bsonDocument;
  const bsonMembers = new Map<string, Stored>([['_id', bsonDocument.get('_id') ?? id]]);
  const pace = new Pace();
  for (const [name, bsonValue] of bsonDocument) {
    if (pace.spend()) yield;
    if (name !== '_id') bsonMembers.set(name, bsonValue);
  }
  return bsonMembers;
}

function* replace(bsonDocument: StoredObject, by: StoredObject): Steps<StoredObject> {
  const old = bsonDocument.get('_id');
  if (old === undefined) return by;
  const replacement = yield* withId(old, by);
  checkSameId(bsonDocument, replacement);
  return replacement;
}

function checkSameId(before: StoredObject, after: StoredObject): void {
  const id = before.get('_id');
  if (id !== undefined && compare(id, after.get('_id')) !== 0)
    throw new DocumentRefusal(66, "Performing an update on the path '_id' would modify the immutable field '_id'");
}

/** Two of them must not be about one field, or about a field and one in it. */
function* checkApart(
  fields: readonly Pick<Step, 'name' | 'path'>[],
  refusal: (one: string, two: string) => DocumentRefusal,
): Steps<void> {
  const root: Named = { name: null, inner: new Map() };
  const pace = new Pace();
  for (const { name, path } of fields) {
    if (pace.spend(path.length + 1)) yield;
    let at = root;
    for (const part of path) {
      if (at.name !== null) throw refusal(at.name, name);
      let next = at.inner.get(part);
      if (next === undefined) at.inner.set(part, (next = { name: null, inner: new Map() }));
      at = next;
    }
    if (at.name !== null) throw refusal(name, name);
    for (let [within] = at.inner.values(); within !== undefined; [within] = within.inner.values())
      if (within.name !== null) throw refusal(name, within.name);
    at.name = name;
  }
}

interface Named {
  /** The field that ends here. */
  name: string | null;
  readonly inner: Map<string, Named>;
}

function pathOf(name: string): readonly string[] {
  if (name === '') throw new DocumentRefusal(56, 'An empty update path is not valid.');
  const path = name.split('.');
  if (path.includes(''))
    throw new DocumentRefusal(56, `The update path '${name}' contains an empty field name, which is not allowed.`);
  if (path.length > depthMax) throw new DocumentRefusal(15, `the path of an update has at most ${depthMax} levels`);
  const operator = path.find((part) => part.startsWith('$'));
  if (operator === undefined) return path;
  if (/^\$(\[.*\])?$/.test(operator)) throw mongoRefusals.notSupported(`the place ${operator} in the path of an update`);
  throw new DocumentRefusal(
    52,
    `The dollar ($) prefixed field '${operator}' in '${name}' is not allowed in the context of an update`,
  );
}

const stepsMax = 20_000;
const indexMax = 10_000;
/** Nanoseconds of a step of a path. */
const stepCost = 200;

/** Objects and lists are copied once, however many steps write into them. */
function* apply(
  steps: readonly Pick<Step, 'path' | 'write'>[],
  bsonDocument: StoredObject,
  isInsert: boolean,
): Steps<StoredObject> {
  const own = new Set<Stored>();
  const pace = new Pace();
  let updatedValue: Stored | undefined = bsonDocument;
  for (const { path, write } of steps) {
    work.done += path.length * stepCost;
    if (pace.spend(path.length)) yield;
    updatedValue = placeAtPath(updatedValue, path, 0, { own, write: (old) => write(old, isInsert) });
  }
  return updatedValue as StoredObject;
}

interface Placing {
  /** Objects and lists that were copied by this update. */
  readonly own: Set<Stored>;
  readonly write: (old: Stored | undefined) => Stored | undefined;
}

function placeAtPath(bsonValue: Stored | undefined, path: readonly string[], at: number, placing: Placing): Stored | undefined {
  if (at === path.length) return placing.write(bsonValue);
  const { own } = placing;
  const name = path[at]!;
  if (isList(bsonValue)) {
    if (!isIndex(name)) throw cannotCreate(path, at, bsonValue);
    const index = Number(name);
    if (index > indexMax) throw new DocumentRefusal(2, `an element beyond number ${indexMax} can't be made`);
    const inner = placeAtPath(bsonValue[index], path, at + 1, placing);
    if (inner === undefined) return bsonValue;
    const updatedList = own.has(bsonValue) ? (bsonValue as Stored[]) : [...bsonValue];
    while (updatedList.length < index) updatedList.push(null);
    updatedList[index] = inner;
    own.add(updatedList);
    return updatedList;
  }
  if (bsonValue !== undefined && !isObject(bsonValue)) throw cannotCreate(path, at, bsonValue);
  const inner = placeAtPath(bsonValue?.get(name), path, at + 1, placing);
  if (inner === undefined) return bsonValue;
  const updatedMembers = bsonValue !== undefined && own.has(bsonValue) ? (bsonValue as Map<string, Stored>) : new Map(bsonValue);
  updatedMembers.set(name, inner);
  own.add(updatedMembers);
  return updatedMembers;
}

function cannotCreate(path: readonly string[], at: number, bsonValue: Stored): DocumentRefusal {
  const pathName = at === 0 ? 'the document' : `'${path[at - 1]}'`;
  return new DocumentRefusal(28, `Cannot create field '${path[at]}' in element ${pathName} of type ${kindOf(bsonValue)}`);
}

/** Whole numbers stay whole for as long as they fit 64 bits. */
function arithmetic(operation: 'add' | 'multiply', by: Stored): Write {
  const [name, verb] = operation === 'add' ? ['$inc', 'increment'] : ['$mul', 'multiply'];
  if (!isNumeric(by)) throw new DocumentRefusal(14, `Cannot ${verb} with non-numeric argument`);
  return (old) => {
    if (old === undefined) return operation === 'add' ? by : zeroLike(by);
    if (!isNumeric(old)) throw new DocumentRefusal(14, `Cannot apply ${name} to a value of non-numeric type ${kindOf(old)}`);
    const result = combine(operation, old, by);
    if (result === null) throw new DocumentRefusal(2, `Failed to apply ${name}: the result does not fit 64 bits`);
    return result;
  };
}

/** A missing number counts as 0 of the same type. */
const zeroLike = (by: Numeric): Numeric => combine('multiply', by, 0) ?? doubleValue(0);

const referenceNames: ReadonlySet<string> = new Set(['$ref', '$id', '$db']);

/** Names of stored fields don't begin with $: they would be taken for operators, or for values of other types. */
export function* nameSteps(bsonValue: Stored, pace = new Pace()): Steps<void> {
  if (isList(bsonValue)) {
    for (const each of bsonValue) {
      if (pace.spend()) yield;
      if (typeof each === 'object') yield* nameSteps(each, pace);
    }
    return;
  }
  if (!isObject(bsonValue)) return;
  for (const [name, inner] of bsonValue) {
    if (pace.spend()) yield;
    if (name.startsWith('$') && !referenceNames.has(name))
      throw new DocumentRefusal(52, `The dollar ($) prefixed field '${name}' is not allowed in the context of what is stored`);
    if (typeof inner === 'object') yield* nameSteps(inner, pace);
  }
}

/** The fields that a filter says the value of: what an upsert begins with. */
export function* seedOf(filter: Stored): Steps<StoredObject> {
  const fields: Step[] = [];
  const take = function* (each: Stored): Steps<void> {
    if (!isObject(each)) return;
    for (const [name, condition] of each) {
      if (isList(condition) && (name === '$and' || (name === '$or' && condition.length === 1)))
        for (const part of condition) yield* take(part);
      if (name.startsWith('$')) continue;
      const value = isOperators(condition) ? onlyValue(condition) : condition;
      if (value === undefined || kindOf(value) === 'regex') continue;
      yield* nameSteps(value);
      fields.push({ name, path: pathOf(name), write: () => value });
    }
  };
  yield* take(filter);
  yield* checkApart(fields, (one, two) => {
    const why = one === two ? `path '${one}' is matched twice` : `both paths '${two}' and '${one}' are matched`;
    return new DocumentRefusal(54, `cannot infer query fields to set, ${why}`);
  });
  return yield* apply(fields, new Map(), true);
}

function onlyValue(condition: StoredObject): Stored | undefined {
  const all = condition.get('$all');
  if (condition.has('$eq')) return condition.get('$eq');
  return isList(all) && all.length === 1 && !isOperators(all[0]) ? all[0] : undefined;
}

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
type UpdateWrite = (old: Stored | undefined, isInsert: boolean) => Stored | undefined;

const updateOperators: Readonly<Record<string, (bsonValue: Stored) => UpdateWrite>> = {
  $set: (bsonValue) => () => bsonValue,
  $setOnInsert: (bsonValue) => (_old, isInsert) => (isInsert ? bsonValue : undefined),
  $inc: (incrementBy) => arithmeticWrite('add', incrementBy),
  $mul: (multiplyBy) => arithmeticWrite('multiply', multiplyBy),
};

const unbuiltOperators: ReadonlySet<string> = new Set(
  '$push $pull $pullAll $pop $addToSet $unset $rename $min $max $bit $currentDate'.split(' '),
);

/** Whether an update is a replacement document. */
export function isReplacement(updateDocument: Stored | undefined): boolean {
  if (!isObject(updateDocument)) return false;
  const [firstMember] = updateDocument.keys();
  return firstMember === undefined || !firstMember.startsWith('$');
}

interface UpdateStep {
  readonly name: string;
  readonly path: readonly string[];
  readonly write: UpdateWrite;
}

export function* updateOf(updateDocument: Stored | undefined): Steps<DocumentUpdate> {
  if (isList(updateDocument)) throw mongoRefusals.notSupported('an update that is a pipeline');
  if (!isObject(updateDocument)) throw mongoRefusals.wrongType('update.updates.u', 'an object');
  if (isReplacement(updateDocument)) {
    yield* nameSteps(updateDocument);
    return (bsonDocument) => replaceDocument(bsonDocument, updateDocument);
  }
  const updatePace = new Pace();
  const updateSteps: UpdateStep[] = [];
  for (const [updateOperator, operatorFields] of updateDocument) {
    const operatorSteps = Object.hasOwn(updateOperators, updateOperator) ? updateOperators[updateOperator]! : undefined;
    if (operatorSteps === undefined) {
      if (unbuiltOperators.has(updateOperator)) throw mongoRefusals.notSupported(`the update operator ${updateOperator}`);
      throw new DocumentRefusal(
        9,
        `Unknown modifier: ${updateOperator}. Expected a valid update modifier or pipeline-style update specified as an array`,
      );
    }
    if (!isObject(operatorFields))
      throw new DocumentRefusal(
        9,
        `Modifiers operate on fields but we found type ${kindOf(operatorFields)} instead. For example: {$mod: {<field>: ...}} not {${updateOperator}: …}`,
      );
    for (const [updatedField, bsonValue] of operatorFields) {
      yield* nameSteps(bsonValue);
      const updatePath = updatePathOf(updatedField);
      updateSteps.push({ name: updatedField, path: updatePath, write: operatorSteps(bsonValue) });
      if (updateSteps.length > updateStepsMax) throw new DocumentRefusal(2, `an update is of at most ${updateStepsMax} fields`);
      if (updatePace.spend(updatePath.length + 1)) yield;
    }
  }
  yield* checkPathsApart(
    updateSteps,
    (firstPath, secondPath) =>
      new DocumentRefusal(40, `Updating the path '${secondPath}' would create a conflict at '${firstPath}'`),
  );
  // New members come in the order of their names, not in that of the update.
  updateSteps.sort((a, b) => comparePaths(a.path, b.path));
  return function* (bsonDocument, isInsert) {
    const updatedDocument = yield* applyUpdateSteps(updateSteps, bsonDocument, isInsert);
    checkSameId(bsonDocument, updatedDocument);
    return updatedDocument;
  };
}

function comparePaths(a: readonly string[], b: readonly string[]): number {
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const [firstField, secondField] = [a[i]!, b[i]!];
    if (firstField === secondField) continue;
    if (isIndex(firstField) && isIndex(secondField)) return Number(firstField) - Number(secondField);
    return compareText(firstField, secondField);
  }
  return a.length - b.length;
}

/** The document with `_id` before all other members. */
export function* withId(documentId: Stored, bsonDocument: StoredObject): Steps<StoredObject> {
  const [firstMember] = bsonDocument.keys();
  if (firstMember === '_id') return bsonDocument;
  const bsonMembers = new Map<string, Stored>([['_id', bsonDocument.get('_id') ?? documentId]]);
  const idPace = new Pace();
  for (const [memberName, bsonValue] of bsonDocument) {
    if (idPace.spend()) yield;
    if (memberName !== '_id') bsonMembers.set(memberName, bsonValue);
  }
  return bsonMembers;
}

function* replaceDocument(bsonDocument: StoredObject, by: StoredObject): Steps<StoredObject> {
  const oldId = bsonDocument.get('_id');
  if (oldId === undefined) return by;
  const replacement = yield* withId(oldId, by);
  checkSameId(bsonDocument, replacement);
  return replacement;
}

function checkSameId(documentBefore: StoredObject, documentAfter: StoredObject): void {
  const documentId = documentBefore.get('_id');
  if (documentId !== undefined && compare(documentId, documentAfter.get('_id')) !== 0)
    throw new DocumentRefusal(66, "Performing an update on the path '_id' would modify the immutable field '_id'");
}

/** Two of them must not be about one field, or about a field and one in it. */
function* checkPathsApart(
  updatedFields: readonly Pick<UpdateStep, 'name' | 'path'>[],
  pathConflict: (one: string, two: string) => DocumentRefusal,
): Steps<void> {
  const rootPathNode: UpdatePathNode = { name: null, inner: new Map() };
  const pathPace = new Pace();
  for (const { name: updatedField, path: updatePath } of updatedFields) {
    if (pathPace.spend(updatePath.length + 1)) yield;
    let pathNode = rootPathNode;
    for (const pathField of updatePath) {
      if (pathNode.name !== null) throw pathConflict(pathNode.name, updatedField);
      let nextPathNode = pathNode.inner.get(pathField);
      if (nextPathNode === undefined) pathNode.inner.set(pathField, (nextPathNode = { name: null, inner: new Map() }));
      pathNode = nextPathNode;
    }
    if (pathNode.name !== null) throw pathConflict(updatedField, updatedField);
    for (
      let [innerPathNode] = pathNode.inner.values();
      innerPathNode !== undefined;
      [innerPathNode] = innerPathNode.inner.values()
    )
      if (innerPathNode.name !== null) throw pathConflict(updatedField, innerPathNode.name);
    pathNode.name = updatedField;
  }
}

interface UpdatePathNode {
  /** The field that ends here. */
  name: string | null;
  readonly inner: Map<string, UpdatePathNode>;
}

function updatePathOf(updatedField: string): readonly string[] {
  if (updatedField === '') throw new DocumentRefusal(56, 'An empty update path is not valid.');
  const updatePath = updatedField.split('.');
  if (updatePath.includes(''))
    throw new DocumentRefusal(56, `The update path '${updatedField}' contains an empty field name, which is not allowed.`);
  if (updatePath.length > depthMax) throw new DocumentRefusal(15, `the path of an update has at most ${depthMax} levels`);
  const dollarField = updatePath.find((pathField) => pathField.startsWith('$'));
  if (dollarField === undefined) return updatePath;
  if (/^\$(\[.*\])?$/.test(dollarField)) throw mongoRefusals.notSupported(`the place ${dollarField} in the path of an update`);
  throw new DocumentRefusal(
    52,
    `The dollar ($) prefixed field '${dollarField}' in '${updatedField}' is not allowed in the context of an update`,
  );
}

const updateStepsMax = 20_000;
const listIndexMax = 10_000;
/** Nanoseconds of a step of a path. */
const updateStepCost = 200;

/** Objects and lists are copied once, however many steps write into them. */
function* applyUpdateSteps(
  updateSteps: readonly Pick<UpdateStep, 'path' | 'write'>[],
  bsonDocument: StoredObject,
  isInsert: boolean,
): Steps<StoredObject> {
  const copiedContainers = new Set<Stored>();
  const updatePace = new Pace();
  let updatedValue: Stored | undefined = bsonDocument;
  for (const { path: updatePath, write: writeField } of updateSteps) {
    work.done += updatePath.length * updateStepCost;
    if (updatePace.spend(updatePath.length)) yield;
    updatedValue = placeAtPath(updatedValue, updatePath, 0, { own: copiedContainers, write: (old) => writeField(old, isInsert) });
  }
  return updatedValue as StoredObject;
}

interface PathWrite {
  /** Objects and lists that were copied by this update. */
  readonly own: Set<Stored>;
  readonly write: (old: Stored | undefined) => Stored | undefined;
}

function placeAtPath(bsonValue: Stored | undefined, path: readonly string[], at: number, placing: PathWrite): Stored | undefined {
  if (at === path.length) return placing.write(bsonValue);
  const { own } = placing;
  const name = path[at]!;
  if (isList(bsonValue)) {
    if (!isIndex(name)) throw cannotCreate(path, at, bsonValue);
    const index = Number(name);
    if (index > listIndexMax) throw new DocumentRefusal(2, `an element beyond number ${listIndexMax} can't be made`);
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

function cannotCreate(updatePath: readonly string[], pathDepth: number, bsonValue: Stored): DocumentRefusal {
  const pathName = pathDepth === 0 ? 'the document' : `'${updatePath[pathDepth - 1]}'`;
  return new DocumentRefusal(
    28,
    `Cannot create field '${updatePath[pathDepth]}' in element ${pathName} of type ${kindOf(bsonValue)}`,
  );
}

/** Whole numbers stay whole for as long as they fit 64 bits. */
function arithmeticWrite(operation: 'add' | 'multiply', operand: Stored): UpdateWrite {
  const [operatorName, operatorVerb] = operation === 'add' ? ['$inc', 'increment'] : ['$mul', 'multiply'];
  if (!isNumeric(operand)) throw new DocumentRefusal(14, `Cannot ${operatorVerb} with non-numeric argument`);
  return (oldNumber) => {
    if (oldNumber === undefined) return operation === 'add' ? operand : zeroLike(operand);
    if (!isNumeric(oldNumber))
      throw new DocumentRefusal(14, `Cannot apply ${operatorName} to a value of non-numeric type ${kindOf(oldNumber)}`);
    const arithmeticResult = combine(operation, oldNumber, operand);
    if (arithmeticResult === null)
      throw new DocumentRefusal(2, `Failed to apply ${operatorName}: the result does not fit 64 bits`);
    return arithmeticResult;
  };
}

/** A missing number counts as 0 of the same type. */
const zeroLike = (operand: Numeric): Numeric => combine('multiply', operand, 0) ?? doubleValue(0);

const dbRefNames: ReadonlySet<string> = new Set(['$ref', '$id', '$db']);

/** Names of stored fields don't begin with $: they would be taken for operators, or for values of other types. */
export function* nameSteps(bsonValue: Stored, namePace = new Pace()): Steps<void> {
  if (isList(bsonValue)) {
    for (const listElement of bsonValue) {
      if (namePace.spend()) yield;
      if (typeof listElement === 'object') yield* nameSteps(listElement, namePace);
    }
    return;
  }
  if (!isObject(bsonValue)) return;
  for (const [memberName, memberValue] of bsonValue) {
    if (namePace.spend()) yield;
    if (memberName.startsWith('$') && !dbRefNames.has(memberName))
      throw new DocumentRefusal(
        52,
        `The dollar ($) prefixed field '${memberName}' is not allowed in the context of what is stored`,
      );
    if (typeof memberValue === 'object') yield* nameSteps(memberValue, namePace);
  }
}

/** The fields that a filter says the value of: what an upsert begins with. */
export function* seedOf(upsertFilter: Stored): Steps<StoredObject> {
  const seedSteps: UpdateStep[] = [];
  const take = function* (filterPart: Stored): Steps<void> {
    if (!isObject(filterPart)) return;
    for (const [filterField, fieldCondition] of filterPart) {
      if (isList(fieldCondition) && (filterField === '$and' || (filterField === '$or' && fieldCondition.length === 1)))
        for (const branchFilter of fieldCondition) yield* take(branchFilter);
      if (filterField.startsWith('$')) continue;
      const seedValue = isOperators(fieldCondition) ? onlyValue(fieldCondition) : fieldCondition;
      if (seedValue === undefined || kindOf(seedValue) === 'regex') continue;
      yield* nameSteps(seedValue);
      seedSteps.push({ name: filterField, path: updatePathOf(filterField), write: () => seedValue });
    }
  };
  yield* take(upsertFilter);
  yield* checkPathsApart(seedSteps, (firstPath, secondPath) => {
    const conflictReason =
      firstPath === secondPath
        ? `path '${firstPath}' is matched twice`
        : `both paths '${secondPath}' and '${firstPath}' are matched`;
    return new DocumentRefusal(54, `cannot infer query fields to set, ${conflictReason}`);
  });
  return yield* applyUpdateSteps(seedSteps, new Map(), true);
}

function onlyValue(fieldCondition: StoredObject): Stored | undefined {
  const allValues = fieldCondition.get('$all');
  if (fieldCondition.has('$eq')) return fieldCondition.get('$eq');
  return isList(allValues) && allValues.length === 1 && !isOperators(allValues[0]) ? allValues[0] : undefined;
}

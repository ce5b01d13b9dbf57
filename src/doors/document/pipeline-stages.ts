/** Stages of an aggregation pipeline: $sort, $skip, $limit, $project, $group, $count. Pure. */
import { compileFilter } from '../../planner/expressions/documents/document-filter.ts';
import { isNumeric, Sum, toWhole } from '../../planner/expressions/documents/document-numbers.ts';
import type { Steps } from '../../planner/expressions/resumable-steps.ts';
import { Pace } from '../../planner/expressions/documents/document-json.ts';
import { eachInSteps, eachInTurns, sortedInTurns, type YieldTurn } from '../../planner/expressions/documents/filter-turns.ts';
import {
  compare,
  identityOf,
  isList,
  isObject,
  kindOf,
  Special,
  type Stored,
  type StoredObject,
  valuesAt,
} from '../../planner/expressions/documents/document-values.ts';
import { spend } from '../../planner/expressions/expression-cost.ts';
import { DocumentRefusal, mongoRefusals } from './errors.ts';

type StageDocuments = readonly StoredObject[];
export type PipelineStage = (documents: StageDocuments, yieldTurn: YieldTurn) => StageDocuments | Promise<StageDocuments>;

/** Nanoseconds of a member, an element or a value that is looked at. */
const stageValueCost = 100;

/** A whole number of at least so much; `wrongCount` says what else it is. */
function stageCountIn(
  bsonValue: Stored | undefined,
  leastCount: number,
  wrongCount: (countProblem: string) => DocumentRefusal,
): number {
  const wholeCount = isNumeric(bsonValue) ? toWhole(bsonValue) : null;
  if (wholeCount === null || wholeCount !== BigInt.asIntN(64, wholeCount)) throw wrongCount('Expected a whole number of 64 bits');
  if (wholeCount < leastCount) throw wrongCount(`value must be >= ${leastCount}, actual value '${wholeCount}'`);
  return Number(wholeCount);
}

export function count(bsonValue: Stored | undefined, countField: string): number {
  if (!isNumeric(bsonValue)) throw mongoRefusals.wrongType(countField, 'a whole number');
  return stageCountIn(bsonValue, 0, (countProblem) => new DocumentRefusal(2, `BSON field '${countField}' ${countProblem}`));
}

/** An empty list comes before all that is there. */
const emptySortList: readonly Stored[] = [new Special('$minKey', 1)];

/** Least element of a list where the order rises, greatest where it falls: by it a document has its place. */
function sortKeyAt(bsonDocument: StoredObject, sortPath: readonly string[], sortDirection: number): Stored | undefined {
  let memberValue: Stored | undefined;
  let isFirstKey = true;
  for (const bsonValue of valuesAt(bsonDocument, sortPath)) {
    for (const sortElement of isList(bsonValue) ? (bsonValue.length > 0 ? bsonValue : emptySortList) : [bsonValue]) {
      if (isFirstKey || compare(sortElement, memberValue) * sortDirection < 0) memberValue = sortElement;
      isFirstKey = false;
    }
  }
  return memberValue;
}

/** The path of a field, as sorts, projections and expressions take it. */
function fieldPath(fieldName: string): readonly string[] {
  if (fieldName === '') throw new DocumentRefusal(40_352, 'FieldPath cannot be constructed with empty string');
  if (fieldName.endsWith('.')) throw new DocumentRefusal(40_353, "FieldPath must not end with a '.'.");
  const fieldNames = fieldName.split('.');
  if (fieldNames.includes('')) throw new DocumentRefusal(15_998, 'FieldPath field names may not be empty strings.');
  if (fieldNames.some((fieldNamePart) => fieldNamePart.startsWith('$')))
    throw new DocumentRefusal(
      16_410,
      `FieldPath field names may not start with '$'. Consider using $getField or $setField. Found in '${fieldName}'`,
    );
  return fieldNames;
}

const sortKeysMax = 32;

export function sortOf(stageArgument: Stored | undefined): PipelineStage {
  if (stageArgument === undefined) return (sortedDocuments) => sortedDocuments;
  if (!isObject(stageArgument)) throw mongoRefusals.wrongType('sort', 'an object');
  if (stageArgument.size > sortKeysMax) throw new DocumentRefusal(13_103, `too many compound keys: at most ${sortKeysMax}`);
  const sortKeys = [...stageArgument].map(([sortField, sortDirection]) => {
    if (isObject(sortDirection)) throw mongoRefusals.notSupported('a sort by an expression');
    if (!isNumeric(sortDirection))
      throw new DocumentRefusal(15_974, `Illegal key in $sort specification: ${sortField}: ${kindOf(sortDirection)}`);
    const sortSign = Number(toWhole(sortDirection));
    if (sortSign !== 1 && sortSign !== -1)
      throw new DocumentRefusal(15_975, '$sort key ordering must be 1 (for ascending) or -1 (for descending)');
    return { path: fieldPath(sortField), sign: sortSign };
  });
  if (sortKeys.length === 0) return (sortedDocuments) => sortedDocuments;
  type Keyed = { readonly document: StoredObject; readonly keys: readonly (Stored | undefined)[] };
  const order = (a: Keyed, b: Keyed): number => {
    for (const [i, { sign: keySign }] of sortKeys.entries()) {
      const keyOrder = compare(a.keys[i], b.keys[i]) * keySign;
      if (keyOrder !== 0) return keyOrder;
    }
    return 0;
  };
  return async (sortedDocuments, yieldTurn) => {
    const keyedDocuments: Keyed[] = [];
    await eachInTurns(sortedDocuments, yieldTurn, (bsonDocument) =>
      keyedDocuments.push({
        document: bsonDocument,
        keys: sortKeys.map(({ path: sortPath, sign: sortSign }) => sortKeyAt(bsonDocument, sortPath, sortSign)),
      }),
    );
    return (await sortedInTurns(keyedDocuments, order, yieldTurn)).map(({ document: bsonDocument }) => bsonDocument);
  };
}

interface ProjectedField {
  readonly path: readonly string[];
  readonly keeps: boolean;
}

function* projectedFieldsOf(stageArgument: StoredObject, outerPath = ''): Generator<ProjectedField> {
  for (const [projectedMember, bsonValue] of stageArgument) {
    const projectedName = `${outerPath}${projectedMember}`;
    if (/(^|\.)\$$/.test(projectedName)) throw mongoRefusals.notSupported('$ in a projection');
    const projectedPath = fieldPath(projectedName);
    if (isObject(bsonValue)) {
      if (bsonValue.size === 0)
        throw new DocumentRefusal(
          51_270,
          `An empty sub-projection is not a valid value. Found empty object at path ${projectedName}`,
        );
      const [projectionOperator] = [...bsonValue.keys()].filter((projectedKey) => projectedKey.startsWith('$'));
      if (projectionOperator !== undefined) throw mongoRefusals.notSupported(`${projectionOperator} in a projection`);
      yield* projectedFieldsOf(bsonValue, `${projectedName}.`);
    } else {
      if (typeof bsonValue !== 'boolean' && !isNumeric(bsonValue))
        throw mongoRefusals.notSupported('an expression in a projection');
      yield { path: projectedPath, keeps: typeof bsonValue === 'boolean' ? bsonValue : toWhole(bsonValue) !== 0n };
    }
  }
}

interface ProjectionTree {
  readonly leaf: boolean;
  readonly inner: Map<string, ProjectionTree>;
  /** Some path goes on below its fields. */
  deep: boolean;
}

export type Projection = (bsonDocument: StoredObject) => Steps<StoredObject>;

/** Each document as `projectDocument` makes it. */
export const projectAll =
  (projectOne: Projection): PipelineStage =>
  async (stageDocuments, yieldTurn) => {
    const projectedDocuments: StoredObject[] = [];
    await eachInSteps(stageDocuments, yieldTurn, function* (bsonDocument) {
      projectedDocuments.push(yield* projectOne(bsonDocument));
    });
    return projectedDocuments;
  };

/** Fields that are kept, or left out. */
export function* projectionOf(stageArgument: Stored | undefined): Steps<Projection> {
  if (stageArgument === undefined) return leaveUnchanged;
  if (!isObject(stageArgument)) throw mongoRefusals.wrongType('projection', 'an object');
  const projectionTree: ProjectionTree = { leaf: false, inner: new Map(), deep: false };
  const projectionPace = new Pace();
  /** `_id` alone does not decide whether the projection includes or excludes. */
  let isInclusion: boolean | null = null;
  let idField: ProjectedField | null = null;
  for (const projectedField of projectedFieldsOf(stageArgument)) {
    if (projectionPace.spend(projectedField.path.length + 1)) yield;
    if (projectedField.path.length === 1 && projectedField.path[0] === '_id') {
      idField = projectedField;
      if (projectedField.keeps === isInclusion) plantProjectedPath(projectionTree, projectedField.path);
      continue;
    }
    if (isInclusion === null) {
      isInclusion = projectedField.keeps;
      if (idField?.keeps === isInclusion) plantProjectedPath(projectionTree, idField.path);
    } else if (projectedField.keeps !== isInclusion) throw mixedProjection(projectedField);
    plantProjectedPath(projectionTree, projectedField.path);
  }
  if (isInclusion === null) {
    if (idField === null) return leaveUnchanged;
    isInclusion = idField.keeps;
    plantProjectedPath(projectionTree, idField.path);
  }
  if (isInclusion && idField === null && !projectionTree.inner.has('_id')) plantProjectedPath(projectionTree, ['_id']);
  const keepsNamed = isInclusion;
  return (bsonDocument) => projectDocument(bsonDocument, projectionTree, keepsNamed, new Pace());
}

// oxlint-disable-next-line require-yield -- nothing is made
function* leaveUnchanged(bsonDocument: StoredObject): Steps<StoredObject> {
  return bsonDocument;
}

function mixedProjection({ path: mixedPath, keeps: isInclusion }: ProjectedField): DocumentRefusal {
  const [mixedErrorNumber, fieldKind, projectionKind] = isInclusion
    ? [31_253, 'inclusion', 'exclusion']
    : [31_254, 'exclusion', 'inclusion'];
  return new DocumentRefusal(
    mixedErrorNumber as number,
    `Cannot do ${fieldKind} on field ${mixedPath.join('.')} in ${projectionKind} projection`,
  );
}

function plantProjectedPath(projectionTree: ProjectionTree, projectedPath: readonly string[]): void {
  let treeNode = projectionTree;
  for (const [i, pathField] of projectedPath.entries()) {
    const isLastField = i === projectedPath.length - 1;
    const nextNode = treeNode.inner.get(pathField);
    if (nextNode !== undefined && isLastField) throw new DocumentRefusal(31_250, `Path collision at ${projectedPath.join('.')}`);
    if (nextNode?.leaf)
      throw new DocumentRefusal(
        31_249,
        `Path collision at ${projectedPath.join('.')} remaining portion ${projectedPath.slice(i + 1).join('.')}`,
      );
    const projectionTree: ProjectionTree = nextNode ?? { leaf: isLastField, inner: new Map(), deep: false };
    if (!projectionTree.leaf) treeNode.deep = true;
    treeNode.inner.set(pathField, projectionTree);
    treeNode = projectionTree;
  }
}

function* projectDocument(
  projectedObject: StoredObject,
  projectionTree: ProjectionTree,
  isInclusion: boolean,
  projectionPace: Pace,
): Steps<StoredObject> {
  if (!projectionTree.deep) return pruneDocument(projectedObject, projectionTree, isInclusion);
  const projectedMembers = new Map<string, Stored>();
  spend(projectedObject.size * stageValueCost);
  for (const [fieldName, bsonValue] of projectedObject) {
    const projectionBranch = projectionTree.inner.get(fieldName);
    const innerProjection =
      projectionBranch === undefined || projectionBranch.leaf
        ? undefined
        : yield* projectedElements(bsonValue, projectionBranch, isInclusion, projectionPace);
    if (innerProjection !== undefined) projectedMembers.set(fieldName, innerProjection);
    else if (projectionBranch === undefined ? !isInclusion : projectionBranch.leaf && isInclusion)
      projectedMembers.set(fieldName, bsonValue);
    if (projectionPace.spend()) yield;
  }
  return projectedMembers;
}

/** The same where no path goes below its fields. */
function pruneDocument(
  projectedObject: StoredObject,
  { inner: projectionBranches }: ProjectionTree,
  isInclusion: boolean,
): StoredObject {
  const projectedMembers = new Map<string, Stored>();
  spend(projectedObject.size * stageValueCost);
  for (const [fieldName, bsonValue] of projectedObject)
    if (projectionBranches.has(fieldName) === isInclusion) projectedMembers.set(fieldName, bsonValue);
  return projectedMembers;
}

/** Into each element of a list; undefined: there is nothing within it that could be kept. */
function* projectedElements(bsonValue: Stored, tree: ProjectionTree, keeps: boolean, pace: Pace): Steps<Stored | undefined> {
  if (isObject(bsonValue)) {
    if (pace.spend(bsonValue.size + 1)) yield;
    return yield* projectDocument(bsonValue, tree, keeps, pace);
  }
  if (!isList(bsonValue)) return keeps ? undefined : bsonValue;
  spend(bsonValue.length * stageValueCost);
  const elements: Stored[] = [];
  for (const each of bsonValue) {
    if (pace.spend()) yield;
    const inner = yield* projectedElements(each, tree, keeps, pace);
    if (inner !== undefined) elements.push(inner);
  }
  return elements;
}

/** Stages of an aggregation behind the $match that it may begin with. */
export function* stageOf(stageArgument: Stored): Steps<PipelineStage> {
  if (!isObject(stageArgument) || stageArgument.size !== 1)
    throw new DocumentRefusal(40_323, 'A pipeline stage specification object must contain exactly one field.');
  const [[stageName, bsonValue]] = stageArgument as unknown as readonly [readonly [string, Stored]];
  switch (stageName) {
    case '$match': {
      checkMatch(bsonValue);
      const matchFilter = compileFilter(bsonValue);
      return async (stageDocuments, yieldTurn) => {
        const matchedDocuments: StoredObject[] = [];
        await eachInTurns(stageDocuments, yieldTurn, (bsonDocument) => {
          if (matchFilter(bsonDocument)) matchedDocuments.push(bsonDocument);
        });
        return matchedDocuments;
      };
    }
    case '$sort':
      if (!isObject(bsonValue)) throw new DocumentRefusal(15_973, 'the $sort key specification must be an object');
      if (bsonValue.size === 0) throw new DocumentRefusal(15_976, '$sort stage must have at least one sort key');
      return sortOf(bsonValue);
    case '$skip': {
      const skippedCount = stageCountIn(
        bsonValue,
        0,
        (countProblem) => new DocumentRefusal(5_107_200, `invalid argument to $skip stage: ${countProblem}`),
      );
      return (stageDocuments) => stageDocuments.slice(skippedCount);
    }
    case '$limit': {
      const stageLimit = stageCountIn(
        bsonValue,
        0,
        (countProblem) => new DocumentRefusal(5_107_201, `invalid argument to $limit stage: ${countProblem}`),
      );
      if (stageLimit === 0) throw new DocumentRefusal(15_958, 'the limit must be positive');
      return (stageDocuments) => stageDocuments.slice(0, stageLimit);
    }
    case '$project': {
      if (!isObject(bsonValue)) throw new DocumentRefusal(15_969, '$project specification must be an object');
      if (bsonValue.size === 0)
        throw new DocumentRefusal(
          51_272,
          'Invalid $project :: caused by :: projection specification must have at least one field',
        );
      return projectAll(yield* projectionOf(bsonValue));
    }
    case '$count': {
      if (typeof bsonValue !== 'string') throw new DocumentRefusal(40_156, 'the count field must be a non-empty string');
      if (bsonValue === '') throw new DocumentRefusal(40_157, 'the count field must be a non-empty string');
      if (bsonValue.startsWith('$')) throw new DocumentRefusal(40_158, 'the count field cannot be a $-prefixed path');
      if (bsonValue.includes('.')) throw new DocumentRefusal(40_160, "the count field cannot contain '.'");
      return (stageDocuments) => (stageDocuments.length === 0 ? [] : [new Map([[bsonValue, stageDocuments.length]])]);
    }
    case '$group':
      return yield* groupStageOf(bsonValue);
  }
  if (knownStages.has(stageName)) throw mongoRefusals.notSupported(`the stage ${stageName}`);
  throw new DocumentRefusal(40_324, `Unrecognized pipeline stage name: '${stageName}'`);
}

export function checkMatch(bsonValue: Stored): asserts bsonValue is StoredObject {
  if (!isObject(bsonValue)) throw new DocumentRefusal(15_959, 'the match filter must be an expression in an object');
}

const knownStages: ReadonlySet<string> = new Set(
  (
    '$addFields $set $unset $unwind $lookup $facet $out $merge $sample $bucket $bucketAuto $changeStream $collStats $indexStats ' +
    '$graphLookup $geoNear $redact $replaceRoot $replaceWith $sortByCount $unionWith $densify $fill $setWindowFields $search $documents'
  ).split(' '),
);

/** A value of a document, a literal, or an object or a list of both: what $group takes. */
type StageExpression = (bsonDocument: StoredObject) => Stored | undefined;

function stageExpressionOf(stageArgument: Stored): StageExpression {
  if (typeof stageArgument === 'string' && stageArgument.startsWith('$')) return pathExpressionOf(stageArgument);
  if (isList(stageArgument)) {
    const listExpressions = stageArgument.map(stageExpressionOf);
    return (bsonDocument) => listExpressions.map((memberExpression) => memberExpression(bsonDocument) ?? null);
  }
  if (!isObject(stageArgument)) return () => stageArgument;
  const literalValue = stageArgument.get('$literal');
  if (stageArgument.size === 1 && literalValue !== undefined) return () => literalValue;
  const expressionOperator = [...stageArgument.keys()].find((memberName) => memberName.startsWith('$'));
  if (expressionOperator !== undefined) throw mongoRefusals.notSupported(`the expression ${expressionOperator}`);
  const memberExpressions = [...stageArgument].map(([memberName, bsonValue]) => {
    if (memberName === '' || memberName.includes('.'))
      throw new DocumentRefusal(40_183, `FieldPath field names may not be empty or contain '.': '${memberName}'`);
    return [memberName, stageExpressionOf(bsonValue)] as const;
  });
  return (bsonDocument) => {
    const computedMembers = new Map<string, Stored>();
    for (const [memberName, memberExpression] of memberExpressions) {
      const bsonValue = memberExpression(bsonDocument);
      if (bsonValue !== undefined) computedMembers.set(memberName, bsonValue);
    }
    return computedMembers;
  };
}

function pathExpressionOf(stageArgument: string): StageExpression {
  if (stageArgument === '$') throw new DocumentRefusal(16_872, "'$' by itself is not a valid FieldPath");
  const rootVariable = /^\$\$(?:ROOT|CURRENT)(?:\.|$)/.exec(stageArgument);
  if (rootVariable === null && stageArgument.startsWith('$$')) throw mongoRefusals.notSupported(`the variable ${stageArgument}`);
  const fieldPathText = rootVariable === null ? stageArgument.slice(1) : stageArgument.slice(rootVariable[0].length);
  if (fieldPathText === '' && !stageArgument.endsWith('.')) return (bsonDocument) => bsonDocument;
  const fieldNames = fieldPath(fieldPathText);
  return (bsonDocument) => valueAtFieldPath(bsonDocument, fieldNames, 0);
}

/** The value at a path; where a list lies on it, the values of its elements as a list. */
function valueAtFieldPath(bsonValue: Stored | undefined, fieldNames: readonly string[], fieldDepth: number): Stored | undefined {
  spend(stageValueCost);
  if (fieldDepth === fieldNames.length) return bsonValue;
  if (isList(bsonValue))
    return bsonValue.flatMap((listElement): Stored[] => {
      const innerValue = valueAtFieldPath(listElement, fieldNames, fieldDepth);
      return innerValue === undefined ? [] : [innerValue];
    });
  return isObject(bsonValue) ? valueAtFieldPath(bsonValue.get(fieldNames[fieldDepth]!), fieldNames, fieldDepth + 1) : undefined;
}

/** Takes the values of a group one by one. */
interface GroupAccumulator {
  add(bsonValue: Stored | undefined): void;
  end(): Stored;
}

/** Values that all lists of one command hold together. */
const groupValuesMost = 4_000_000;

/** The values that one stage holds, counted. */
interface HeldGroupValues {
  values: number;
}

const groupAccumulators: Readonly<Record<string, (held: HeldGroupValues) => GroupAccumulator>> = {
  $sum: () => sumAccumulator((groupSum) => groupSum.total()),
  $avg: () => sumAccumulator((groupSum) => groupSum.mean()),
  $min: () => extremeAccumulator(-1),
  $max: () => extremeAccumulator(1),
  $first() {
    let firstValue: Stored | undefined;
    let isFirstValue = true;
    return {
      add(bsonValue) {
        if (isFirstValue) firstValue = bsonValue;
        isFirstValue = false;
      },
      end: () => firstValue ?? null,
    };
  },
  $last() {
    let lastValue: Stored | undefined;
    return { add: (bsonValue) => void (lastValue = bsonValue), end: () => lastValue ?? null };
  },
  $push(heldGroupValues) {
    const pushedValues: Stored[] = [];
    return {
      add(bsonValue) {
        if (bsonValue === undefined) return;
        countHeldValue(heldGroupValues);
        pushedValues.push(bsonValue);
      },
      end: () => pushedValues,
    };
  },
  $addToSet(heldGroupValues) {
    const distinctValues = new Distinct();
    return {
      add(bsonValue) {
        if (distinctValues.add(bsonValue)) countHeldValue(heldGroupValues);
      },
      end: () => distinctValues.all(),
    };
  },
  $count() {
    let groupCount = 0;
    return { add: () => void groupCount++, end: () => groupCount };
  },
};

function countHeldValue(heldGroupValues: HeldGroupValues): void {
  if (++heldGroupValues.values > groupValuesMost)
    throw new DocumentRefusal(
      292,
      `the lists of a $group hold at most ${groupValuesMost} values: ask for fewer`,
      'REL_MEMORY_CAP',
    );
}

const unbuiltAccumulators: ReadonlySet<string> = new Set(
  '$accumulator $bottom $bottomN $firstN $lastN $maxN $mergeObjects $minN $stdDevPop $stdDevSamp $top $topN'.split(' '),
);

function sumAccumulator(endSum: (groupSum: Sum) => Stored): GroupAccumulator {
  const groupSum = new Sum();
  return {
    add(bsonValue) {
      if (isNumeric(bsonValue)) groupSum.add(bsonValue);
    },
    end: () => endSum(groupSum),
  };
}

function extremeAccumulator(extremeSign: number): GroupAccumulator {
  let bestValue: Stored = null;
  return {
    add(bsonValue) {
      if (
        bsonValue !== undefined &&
        kindOf(bsonValue) !== 'null' &&
        (bestValue === null || compare(bsonValue, bestValue) * extremeSign > 0)
      )
        bestValue = bsonValue;
    },
    end: () => bestValue,
  };
}

/** Each once, in the order in which they first came. */
export class Distinct {
  readonly #valuesByIdentity = new Map<string, Stored>();

  /** Whether it was not there. */
  add(bsonValue: Stored | undefined): boolean {
    if (bsonValue === undefined) return false;
    const valueIdentity = identityOf(bsonValue);
    if (this.#valuesByIdentity.has(valueIdentity)) return false;
    this.#valuesByIdentity.set(valueIdentity, bsonValue);
    return true;
  }

  all(): Stored[] {
    return [...this.#valuesByIdentity.values()];
  }
}

function groupAccumulatorOf(
  groupField: string,
  stageArgument: Stored,
): { readonly begin: (held: HeldGroupValues) => GroupAccumulator; readonly valueIn: StageExpression } {
  if (groupField.includes('.')) throw new DocumentRefusal(40_235, `The field name '${groupField}' cannot contain '.'`);
  if (groupField.startsWith('$')) throw new DocumentRefusal(40_236, `The field name '${groupField}' cannot be an operator name`);
  if (
    !isObject(stageArgument) ||
    ![...stageArgument.keys()].every((accumulatorKey) => accumulatorKey.startsWith('$')) ||
    stageArgument.size === 0
  )
    throw new DocumentRefusal(40_234, `The field '${groupField}' must be an accumulator object`);
  if (stageArgument.size > 1) throw new DocumentRefusal(40_238, `The field '${groupField}' must specify one accumulator`);
  const [[accumulatorName, accumulatorArgument]] = stageArgument as unknown as readonly [readonly [string, Stored]];
  const beginAccumulator = Object.hasOwn(groupAccumulators, accumulatorName) ? groupAccumulators[accumulatorName]! : undefined;
  if (beginAccumulator === undefined) {
    if (unbuiltAccumulators.has(accumulatorName)) throw mongoRefusals.notSupported(`the accumulator ${accumulatorName}`);
    throw new DocumentRefusal(15_952, `unknown group operator '${accumulatorName}'`);
  }
  if (isList(accumulatorArgument) && accumulatorArgument.length !== 1)
    throw new DocumentRefusal(40_237, `The ${accumulatorName} accumulator is a unary operator`);
  if (accumulatorName !== '$count')
    return {
      begin: beginAccumulator,
      valueIn: stageExpressionOf(isList(accumulatorArgument) ? accumulatorArgument[0]! : accumulatorArgument),
    };
  if (!isObject(accumulatorArgument) || accumulatorArgument.size > 0)
    throw new DocumentRefusal(9, '$count takes no arguments, i.e. $count:{}');
  return { begin: beginAccumulator, valueIn: () => 1 };
}

function* groupStageOf(stageArgument: Stored): Steps<PipelineStage> {
  if (!isObject(stageArgument)) throw new DocumentRefusal(15_947, "a group's fields must be specified in an object");
  const groupIdExpression = stageArgument.get('_id');
  if (groupIdExpression === undefined) throw new DocumentRefusal(15_955, 'a group specification must include an _id');
  const groupKeyOf = stageExpressionOf(groupIdExpression);
  const groupFields: (ReturnType<typeof groupAccumulatorOf> & { readonly name: string })[] = [];
  const groupPace = new Pace();
  for (const [groupField, bsonValue] of stageArgument) {
    if (groupField !== '_id') groupFields.push({ name: groupField, ...groupAccumulatorOf(groupField, bsonValue) });
    if (groupPace.spend(4)) yield;
  }
  return async (groupedDocuments, yieldTurn) => {
    const groupsByIdentity = new Map<string, { readonly id: Stored; readonly accumulators: readonly GroupAccumulator[] }>();
    const heldGroupValues: HeldGroupValues = { values: 0 };
    await eachInTurns(groupedDocuments, yieldTurn, (bsonDocument) => {
      const groupId = groupKeyOf(bsonDocument) ?? null;
      const groupIdentity = identityOf(groupId);
      let documentGroup = groupsByIdentity.get(groupIdentity);
      if (documentGroup === undefined)
        groupsByIdentity.set(
          groupIdentity,
          (documentGroup = {
            id: groupId,
            accumulators: groupFields.map(({ begin: beginAccumulator }) => beginAccumulator(heldGroupValues)),
          }),
        );
      spend(groupFields.length * stageValueCost);
      for (const [i, { valueIn }] of groupFields.entries()) documentGroup.accumulators[i]!.add(valueIn(bsonDocument));
    });
    const groupDocuments: StoredObject[] = [];
    await eachInTurns(groupsByIdentity.values(), yieldTurn, (documentGroup) => {
      spend(groupFields.length * stageValueCost);
      groupDocuments.push(
        new Map([
          ['_id', documentGroup.id],
          ...groupFields.map(({ name }, i) => [name, documentGroup.accumulators[i]!.end()] as const),
        ]),
      );
    });
    return groupDocuments;
  };
}

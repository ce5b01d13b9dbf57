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

type Documents = readonly StoredObject[];
export type PipelineStage = (documents: Documents, yieldTurn: YieldTurn) => Documents | Promise<Documents>;

/** Nanoseconds of a member, an element or a value that is looked at. */
const valueCost = 100;

/** A whole number of at least so much; `wrong` says what else it is. */
function countIn(bsonValue: Stored | undefined, least: number, wrong: (why: string) => DocumentRefusal): number {
  const whole = isNumeric(bsonValue) ? toWhole(bsonValue) : null;
  if (whole === null || whole !== BigInt.asIntN(64, whole)) throw wrong('Expected a whole number of 64 bits');
  if (whole < least) throw wrong(`value must be >= ${least}, actual value '${whole}'`);
  return Number(whole);
}

export function count(bsonValue: Stored | undefined, name: string): number {
  if (!isNumeric(bsonValue)) throw mongoRefusals.wrongType(name, 'a whole number');
  return countIn(bsonValue, 0, (why) => new DocumentRefusal(2, `BSON field '${name}' ${why}`));
}

/** An empty list comes before all that is there. */
const emptyList: readonly Stored[] = [new Special('$minKey', 1)];

/** Least element of a list where the order rises, greatest where it falls: by it a document has its place. */
function keyAt(bsonDocument: StoredObject, path: readonly string[], direction: number): Stored | undefined {
  let memberValue: Stored | undefined;
  let isFirst = true;
  for (const bsonValue of valuesAt(bsonDocument, path)) {
    for (const each of isList(bsonValue) ? (bsonValue.length > 0 ? bsonValue : emptyList) : [bsonValue]) {
      if (isFirst || compare(each, memberValue) * direction < 0) memberValue = each;
      isFirst = false;
    }
  }
  return memberValue;
}

/** The path of a field, as sorts, projections and expressions take it. */
function fieldPath(name: string): readonly string[] {
  if (name === '') throw new DocumentRefusal(40_352, 'FieldPath cannot be constructed with empty string');
  if (name.endsWith('.')) throw new DocumentRefusal(40_353, "FieldPath must not end with a '.'.");
  const path = name.split('.');
  if (path.includes('')) throw new DocumentRefusal(15_998, 'FieldPath field names may not be empty strings.');
  if (path.some((part) => part.startsWith('$')))
    throw new DocumentRefusal(
      16_410,
      `FieldPath field names may not start with '$'. Consider using $getField or $setField. Found in '${name}'`,
    );
  return path;
}

const sortKeysMax = 32;

export function sortOf(stageArgument: Stored | undefined): PipelineStage {
  if (stageArgument === undefined) return (documents) => documents;
  if (!isObject(stageArgument)) throw mongoRefusals.wrongType('sort', 'an object');
  if (stageArgument.size > sortKeysMax) throw new DocumentRefusal(13_103, `too many compound keys: at most ${sortKeysMax}`);
  const keys = [...stageArgument].map(([name, direction]) => {
    if (isObject(direction)) throw mongoRefusals.notSupported('a sort by an expression');
    if (!isNumeric(direction))
      throw new DocumentRefusal(15_974, `Illegal key in $sort specification: ${name}: ${kindOf(direction)}`);
    const sign = Number(toWhole(direction));
    if (sign !== 1 && sign !== -1)
      throw new DocumentRefusal(15_975, '$sort key ordering must be 1 (for ascending) or -1 (for descending)');
    return { path: fieldPath(name), sign };
  });
  if (keys.length === 0) return (documents) => documents;
  type Keyed = { readonly document: StoredObject; readonly keys: readonly (Stored | undefined)[] };
  const order = (a: Keyed, b: Keyed): number => {
    for (const [i, { sign }] of keys.entries()) {
      const one = compare(a.keys[i], b.keys[i]) * sign;
      if (one !== 0) return one;
    }
    return 0;
  };
  return async (documents, yieldTurn) => {
    const keyed: Keyed[] = [];
    await eachInTurns(documents, yieldTurn, (bsonDocument) =>
      keyed.push({ document: bsonDocument, keys: keys.map(({ path, sign }) => keyAt(bsonDocument, path, sign)) }),
    );
    return (await sortedInTurns(keyed, order, yieldTurn)).map(({ document: bsonDocument }) => bsonDocument);
  };
}

interface Field {
  readonly path: readonly string[];
  readonly keeps: boolean;
}

function* fieldsOf(stageArgument: StoredObject, before = ''): Generator<Field> {
  for (const [member, bsonValue] of stageArgument) {
    const name = `${before}${member}`;
    if (/(^|\.)\$$/.test(name)) throw mongoRefusals.notSupported('$ in a projection');
    const path = fieldPath(name);
    if (isObject(bsonValue)) {
      if (bsonValue.size === 0)
        throw new DocumentRefusal(51_270, `An empty sub-projection is not a valid value. Found empty object at path ${name}`);
      const [operator] = [...bsonValue.keys()].filter((each) => each.startsWith('$'));
      if (operator !== undefined) throw mongoRefusals.notSupported(`${operator} in a projection`);
      yield* fieldsOf(bsonValue, `${name}.`);
    } else {
      if (typeof bsonValue !== 'boolean' && !isNumeric(bsonValue))
        throw mongoRefusals.notSupported('an expression in a projection');
      yield { path, keeps: typeof bsonValue === 'boolean' ? bsonValue : toWhole(bsonValue) !== 0n };
    }
  }
}

interface Tree {
  readonly leaf: boolean;
  readonly inner: Map<string, Tree>;
  /** Some path goes on below its fields. */
  deep: boolean;
}

export type Projection = (bsonDocument: StoredObject) => Steps<StoredObject>;

/** Each document as `project` makes it. */
export const projectAll =
  (project: Projection): PipelineStage =>
  async (documents, yieldTurn) => {
    const projectedDocuments: StoredObject[] = [];
    await eachInSteps(documents, yieldTurn, function* (bsonDocument) {
      projectedDocuments.push(yield* project(bsonDocument));
    });
    return projectedDocuments;
  };

/** Fields that are kept, or left out. */
export function* projectionOf(stageArgument: Stored | undefined): Steps<Projection> {
  if (stageArgument === undefined) return leaveUnchanged;
  if (!isObject(stageArgument)) throw mongoRefusals.wrongType('projection', 'an object');
  const tree: Tree = { leaf: false, inner: new Map(), deep: false };
  const pace = new Pace();
  /** `_id` alone does not decide whether the projection includes or excludes. */
  let keeps: boolean | null = null;
  let id: Field | null = null;
  for (const field of fieldsOf(stageArgument)) {
    if (pace.spend(field.path.length + 1)) yield;
    if (field.path.length === 1 && field.path[0] === '_id') {
      id = field;
      if (field.keeps === keeps) plant(tree, field.path);
      continue;
    }
    if (keeps === null) {
      keeps = field.keeps;
      if (id?.keeps === keeps) plant(tree, id.path);
    } else if (field.keeps !== keeps) throw mixedProjection(field);
    plant(tree, field.path);
  }
  if (keeps === null) {
    if (id === null) return leaveUnchanged;
    keeps = id.keeps;
    plant(tree, id.path);
  }
  if (keeps && id === null && !tree.inner.has('_id')) plant(tree, ['_id']);
  const kept = keeps;
  return (bsonDocument) => project(bsonDocument, tree, kept, new Pace());
}

// oxlint-disable-next-line require-yield -- nothing is made
function* leaveUnchanged(bsonDocument: StoredObject): Steps<StoredObject> {
  return bsonDocument;
}

function mixedProjection({ path, keeps }: Field): DocumentRefusal {
  const [number, kind, around] = keeps ? [31_253, 'inclusion', 'exclusion'] : [31_254, 'exclusion', 'inclusion'];
  return new DocumentRefusal(number as number, `Cannot do ${kind} on field ${path.join('.')} in ${around} projection`);
}

function plant(tree: Tree, path: readonly string[]): void {
  let at = tree;
  for (const [i, name] of path.entries()) {
    const isLast = i === path.length - 1;
    const next = at.inner.get(name);
    if (next !== undefined && isLast) throw new DocumentRefusal(31_250, `Path collision at ${path.join('.')}`);
    if (next?.leaf)
      throw new DocumentRefusal(31_249, `Path collision at ${path.join('.')} remaining portion ${path.slice(i + 1).join('.')}`);
    const projectionTree: Tree = next ?? { leaf: isLast, inner: new Map(), deep: false };
    if (!projectionTree.leaf) at.deep = true;
    at.inner.set(name, projectionTree);
    at = projectionTree;
  }
}

function* project(object: StoredObject, tree: Tree, keeps: boolean, pace: Pace): Steps<StoredObject> {
  if (!tree.deep) return prune(object, tree, keeps);
  const projectedMembers = new Map<string, Stored>();
  spend(object.size * valueCost);
  for (const [name, bsonValue] of object) {
    const branch = tree.inner.get(name);
    const inner = branch === undefined || branch.leaf ? undefined : yield* projectedElements(bsonValue, branch, keeps, pace);
    if (inner !== undefined) projectedMembers.set(name, inner);
    else if (branch === undefined ? !keeps : branch.leaf && keeps) projectedMembers.set(name, bsonValue);
    if (pace.spend()) yield;
  }
  return projectedMembers;
}

/** The same where no path goes below its fields. */
function prune(object: StoredObject, { inner }: Tree, keeps: boolean): StoredObject {
  const projectedMembers = new Map<string, Stored>();
  spend(object.size * valueCost);
  for (const [name, bsonValue] of object) if (inner.has(name) === keeps) projectedMembers.set(name, bsonValue);
  return projectedMembers;
}

/** Into each element of a list; undefined: there is nothing within it that could be kept. */
function* projectedElements(bsonValue: Stored, tree: Tree, keeps: boolean, pace: Pace): Steps<Stored | undefined> {
  if (isObject(bsonValue)) {
    if (pace.spend(bsonValue.size + 1)) yield;
    return yield* project(bsonValue, tree, keeps, pace);
  }
  if (!isList(bsonValue)) return keeps ? undefined : bsonValue;
  spend(bsonValue.length * valueCost);
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
  const [[name, bsonValue]] = stageArgument as unknown as readonly [readonly [string, Stored]];
  switch (name) {
    case '$match': {
      checkMatch(bsonValue);
      const filter = compileFilter(bsonValue);
      return async (documents, yieldTurn) => {
        const fitting: StoredObject[] = [];
        await eachInTurns(documents, yieldTurn, (bsonDocument) => {
          if (filter(bsonDocument)) fitting.push(bsonDocument);
        });
        return fitting;
      };
    }
    case '$sort':
      if (!isObject(bsonValue)) throw new DocumentRefusal(15_973, 'the $sort key specification must be an object');
      if (bsonValue.size === 0) throw new DocumentRefusal(15_976, '$sort stage must have at least one sort key');
      return sortOf(bsonValue);
    case '$skip': {
      const skipped = countIn(bsonValue, 0, (why) => new DocumentRefusal(5_107_200, `invalid argument to $skip stage: ${why}`));
      return (documents) => documents.slice(skipped);
    }
    case '$limit': {
      const most = countIn(bsonValue, 0, (why) => new DocumentRefusal(5_107_201, `invalid argument to $limit stage: ${why}`));
      if (most === 0) throw new DocumentRefusal(15_958, 'the limit must be positive');
      return (documents) => documents.slice(0, most);
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
      return (documents) => (documents.length === 0 ? [] : [new Map([[bsonValue, documents.length]])]);
    }
    case '$group':
      return yield* groupOf(bsonValue);
  }
  if (knownStages.has(name)) throw mongoRefusals.notSupported(`the stage ${name}`);
  throw new DocumentRefusal(40_324, `Unrecognized pipeline stage name: '${name}'`);
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
type Of = (bsonDocument: StoredObject) => Stored | undefined;

function expressionOf(stageArgument: Stored): Of {
  if (typeof stageArgument === 'string' && stageArgument.startsWith('$')) return pathOf(stageArgument);
  if (isList(stageArgument)) {
    const elements = stageArgument.map(expressionOf);
    return (bsonDocument) => elements.map((of) => of(bsonDocument) ?? null);
  }
  if (!isObject(stageArgument)) return () => stageArgument;
  const literal = stageArgument.get('$literal');
  if (stageArgument.size === 1 && literal !== undefined) return () => literal;
  const operator = [...stageArgument.keys()].find((name) => name.startsWith('$'));
  if (operator !== undefined) throw mongoRefusals.notSupported(`the expression ${operator}`);
  const members = [...stageArgument].map(([name, bsonValue]) => {
    if (name === '' || name.includes('.'))
      throw new DocumentRefusal(40_183, `FieldPath field names may not be empty or contain '.': '${name}'`);
    return [name, expressionOf(bsonValue)] as const;
  });
  return (bsonDocument) => {
    const computedMembers = new Map<string, Stored>();
    for (const [name, of] of members) {
      const bsonValue = of(bsonDocument);
      if (bsonValue !== undefined) computedMembers.set(name, bsonValue);
    }
    return computedMembers;
  };
}

function pathOf(stageArgument: string): Of {
  if (stageArgument === '$') throw new DocumentRefusal(16_872, "'$' by itself is not a valid FieldPath");
  const root = /^\$\$(?:ROOT|CURRENT)(?:\.|$)/.exec(stageArgument);
  if (root === null && stageArgument.startsWith('$$')) throw mongoRefusals.notSupported(`the variable ${stageArgument}`);
  const path = root === null ? stageArgument.slice(1) : stageArgument.slice(root[0].length);
  if (path === '' && !stageArgument.endsWith('.')) return (bsonDocument) => bsonDocument;
  const parts = fieldPath(path);
  return (bsonDocument) => valueOf(bsonDocument, parts, 0);
}

/** The value at a path; where a list lies on it, the values of its elements as a list. */
function valueOf(bsonValue: Stored | undefined, path: readonly string[], at: number): Stored | undefined {
  spend(valueCost);
  if (at === path.length) return bsonValue;
  if (isList(bsonValue))
    return bsonValue.flatMap((each): Stored[] => {
      const inner = valueOf(each, path, at);
      return inner === undefined ? [] : [inner];
    });
  return isObject(bsonValue) ? valueOf(bsonValue.get(path[at]!), path, at + 1) : undefined;
}

/** Takes the values of a group one by one. */
interface Accumulator {
  add(bsonValue: Stored | undefined): void;
  end(): Stored;
}

/** Values that all lists of one command hold together. */
const heldMost = 4_000_000;

/** The values that one stage holds, counted. */
interface Held {
  values: number;
}

const accumulators: Readonly<Record<string, (held: Held) => Accumulator>> = {
  $sum: () => sumAccumulator((sum) => sum.total()),
  $avg: () => sumAccumulator((sum) => sum.mean()),
  $min: () => extreme(-1),
  $max: () => extreme(1),
  $first() {
    let first: Stored | undefined;
    let isFirst = true;
    return {
      add(bsonValue) {
        if (isFirst) first = bsonValue;
        isFirst = false;
      },
      end: () => first ?? null,
    };
  },
  $last() {
    let last: Stored | undefined;
    return { add: (bsonValue) => void (last = bsonValue), end: () => last ?? null };
  },
  $push(held) {
    const values: Stored[] = [];
    return {
      add(bsonValue) {
        if (bsonValue === undefined) return;
        hold(held);
        values.push(bsonValue);
      },
      end: () => values,
    };
  },
  $addToSet(held) {
    const values = new Distinct();
    return {
      add(bsonValue) {
        if (values.add(bsonValue)) hold(held);
      },
      end: () => values.all(),
    };
  },
  $count() {
    let count = 0;
    return { add: () => void count++, end: () => count };
  },
};

function hold(held: Held): void {
  if (++held.values > heldMost)
    throw new DocumentRefusal(292, `the lists of a $group hold at most ${heldMost} values: ask for fewer`, 'REL_MEMORY_CAP');
}

const unbuiltAccumulators: ReadonlySet<string> = new Set(
  '$accumulator $bottom $bottomN $firstN $lastN $maxN $mergeObjects $minN $stdDevPop $stdDevSamp $top $topN'.split(' '),
);

function sumAccumulator(end: (sum: Sum) => Stored): Accumulator {
  const sum = new Sum();
  return {
    add(bsonValue) {
      if (isNumeric(bsonValue)) sum.add(bsonValue);
    },
    end: () => end(sum),
  };
}

function extreme(sign: number): Accumulator {
  let bestValue: Stored = null;
  return {
    add(bsonValue) {
      if (
        bsonValue !== undefined &&
        kindOf(bsonValue) !== 'null' &&
        (bestValue === null || compare(bsonValue, bestValue) * sign > 0)
      )
        bestValue = bsonValue;
    },
    end: () => bestValue,
  };
}

/** Each once, in the order in which they first came. */
export class Distinct {
  readonly #values = new Map<string, Stored>();

  /** Whether it was not there. */
  add(bsonValue: Stored | undefined): boolean {
    if (bsonValue === undefined) return false;
    const identity = identityOf(bsonValue);
    if (this.#values.has(identity)) return false;
    this.#values.set(identity, bsonValue);
    return true;
  }

  all(): Stored[] {
    return [...this.#values.values()];
  }
}

function accumulatorOf(
  name: string,
  stageArgument: Stored,
): { readonly begin: (held: Held) => Accumulator; readonly valueIn: Of } {
  if (name.includes('.')) throw new DocumentRefusal(40_235, `The field name '${name}' cannot contain '.'`);
  if (name.startsWith('$')) throw new DocumentRefusal(40_236, `The field name '${name}' cannot be an operator name`);
  if (!isObject(stageArgument) || ![...stageArgument.keys()].every((each) => each.startsWith('$')) || stageArgument.size === 0)
    throw new DocumentRefusal(40_234, `The field '${name}' must be an accumulator object`);
  if (stageArgument.size > 1) throw new DocumentRefusal(40_238, `The field '${name}' must specify one accumulator`);
  const [[operator, argument]] = stageArgument as unknown as readonly [readonly [string, Stored]];
  const begin = Object.hasOwn(accumulators, operator) ? accumulators[operator]! : undefined;
  if (begin === undefined) {
    if (unbuiltAccumulators.has(operator)) throw mongoRefusals.notSupported(`the accumulator ${operator}`);
    throw new DocumentRefusal(15_952, `unknown group operator '${operator}'`);
  }
  if (isList(argument) && argument.length !== 1)
    throw new DocumentRefusal(40_237, `The ${operator} accumulator is a unary operator`);
  if (operator !== '$count') return { begin, valueIn: expressionOf(isList(argument) ? argument[0]! : argument) };
  if (!isObject(argument) || argument.size > 0) throw new DocumentRefusal(9, '$count takes no arguments, i.e. $count:{}');
  return { begin, valueIn: () => 1 };
}

function* groupOf(stageArgument: Stored): Steps<PipelineStage> {
  if (!isObject(stageArgument)) throw new DocumentRefusal(15_947, "a group's fields must be specified in an object");
  const by = stageArgument.get('_id');
  if (by === undefined) throw new DocumentRefusal(15_955, 'a group specification must include an _id');
  const key = expressionOf(by);
  const accumulated: (ReturnType<typeof accumulatorOf> & { readonly name: string })[] = [];
  const pace = new Pace();
  for (const [name, bsonValue] of stageArgument) {
    if (name !== '_id') accumulated.push({ name, ...accumulatorOf(name, bsonValue) });
    if (pace.spend(4)) yield;
  }
  return async (documents, yieldTurn) => {
    const groups = new Map<string, { readonly id: Stored; readonly accumulators: readonly Accumulator[] }>();
    const held: Held = { values: 0 };
    await eachInTurns(documents, yieldTurn, (bsonDocument) => {
      const id = key(bsonDocument) ?? null;
      const identity = identityOf(id);
      let group = groups.get(identity);
      if (group === undefined) groups.set(identity, (group = { id, accumulators: accumulated.map(({ begin }) => begin(held)) }));
      spend(accumulated.length * valueCost);
      for (const [i, { valueIn }] of accumulated.entries()) group.accumulators[i]!.add(valueIn(bsonDocument));
    });
    const groupDocuments: StoredObject[] = [];
    await eachInTurns(groups.values(), yieldTurn, (group) => {
      spend(accumulated.length * valueCost);
      groupDocuments.push(
        new Map([['_id', group.id], ...accumulated.map(({ name }, i) => [name, group.accumulators[i]!.end()] as const)]),
      );
    });
    return groupDocuments;
  };
}

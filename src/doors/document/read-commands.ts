/** Commands that read: find and its batches, count, distinct, aggregate. */
import { compileFilter } from '../../planner/expressions/documents/document-filter.ts';
import { isNumeric, toWhole } from '../../planner/expressions/documents/document-numbers.ts';
import { inTurns } from '../../planner/expressions/resumable-steps.ts';
import { Pace } from '../../planner/expressions/documents/document-json.ts';
import { eachInSteps } from '../../planner/expressions/documents/filter-turns.ts';
import {
  isList,
  isObject,
  type Stored,
  type StoredObject,
  valuesAt,
} from '../../planner/expressions/documents/document-values.ts';
import { spend } from '../../planner/expressions/expression-cost.ts';
import type { Answer } from '../../planner/planner-contract.ts';
import { type Encoded, listSteps, type WritableObject } from './bson.ts';
import {
  collectionName,
  type DocumentCommandContext,
  type DocumentCommandRow,
  namedMost,
  namespaceOf,
  ofDocuments,
  ofFew,
} from './command.ts';
import { batchOf, encodeAll, ownerOf } from './cursors.ts';
import { findDocuments, isById, type DocumentReading, type DocumentQuery } from './document-rows.ts';
import { DocumentRefusal, mongoRefusals } from './errors.ts';
import {
  checkMatch,
  count as countOf,
  Distinct,
  projectAll,
  projectionOf,
  sortOf,
  type PipelineStage,
  stageOf,
} from './pipeline-stages.ts';

/** The size of a first batch where the command names none. */
const firstBatch = 101;

async function find(context: DocumentCommandContext): Promise<WritableObject> {
  const { place: namespace } = context;
  for (const name of ['tailable', 'awaitData', 'oplogReplay', 'returnKey', 'showRecordId'])
    if (context.flag(name) === true) throw mongoRefusals.notSupported(`find with ${name}`);
  for (const name of ['collation', 'min', 'max', 'let'])
    if ((context.object(name)?.size ?? 0) > 0) throw mongoRefusals.notSupported(`find with ${name}`);
  const filter = context.object('filter') ?? new Map();
  const sort = context.object('sort');
  const project = await inTurns(projectionOf(context.object('projection')), context.connectionCaller.parts.yieldTurn);
  const skip = context.number('skip') ?? 0;
  const given = context.number('limit') ?? 0;
  if (skip < 0) throw new DocumentRefusal(2, `BSON field 'skip' value must be >= 0, actual value '${skip}'`);
  // A negative one is that many, in one batch.
  const limit = given === 0 ? Number.POSITIVE_INFINITY : Math.abs(given);
  const isSorted = sort !== undefined && sort.size > 0;
  const inOrder = sortOf(sort);
  const most = isSorted || limit === Number.POSITIVE_INFINITY ? undefined : skip + limit;
  const { result, answers } = await context.read(
    (reading) => {
      const cut: PipelineStage = (documents) => documents.slice(skip, skip + limit);
      return foundThrough([inOrder, cut, projectAll(project)], reading, { ...namespace, filter, time: context.time, most });
    },
    isById(filter) ? { keysRead: idsOf(filter) } : {},
  );
  const size = context.number('batchSize') ?? firstBatch;
  return cursorReply(
    context,
    result,
    answers,
    given < 0 || context.flag('singleBatch') === true ? Number.POSITIVE_INFINITY : size,
  );
}

/** Must finish within the turn in which the answer was checked for erased rows: encodes while reading. */
async function foundThrough(
  stages: readonly PipelineStage[],
  reading: DocumentReading,
  wanted: DocumentQuery,
): Promise<readonly Encoded[]> {
  let documents: readonly StoredObject[] = (await findDocuments(reading, wanted)).map(
    ({ document: bsonDocument }) => bsonDocument,
  );
  for (const stage of stages) documents = await stage(documents, reading.yieldTurn);
  return encodeAll(documents, reading.yieldTurn);
}

const idsOf = (filter: StoredObject): number => {
  const id = filter.get('_id');
  const several = isObject(id) ? id.get('$in') : undefined;
  return isList(several) ? several.length : 1;
};

function cursorReply(
  context: DocumentCommandContext,
  documents: readonly Encoded[],
  answers: readonly Answer[],
  size: number,
): WritableObject {
  if (size < 0) throw new DocumentRefusal(2, `BSON field 'batchSize' value must be >= 0, actual value '${size}'`);
  const { batch, rest } = batchOf(documents, size);
  const id = context.cursors.keep({
    namespace: context.namespace,
    rest,
    terms: context.terms,
    answers,
    of: ownerOf(context.connectionCaller.caller),
  });
  return { cursor: { firstBatch: batch, id, ns: context.namespace }, ok: 1 };
}

async function getMore(context: DocumentCommandContext): Promise<WritableObject> {
  const id = wholeIn(context.subject, 'getMore');
  const namespace = namespaceOf({ database: context.database, collection: collectionName(context.command.get('collection')) });
  const { cursors, connectionCaller: asker } = context;
  const open = cursors.take(id, namespace, asker.caller);
  const size = context.number('batchSize') ?? 0;
  const { batch, rest } = batchOf(open.rest, size === 0 ? Number.POSITIVE_INFINITY : size);
  await asker.ask({ terms: open.terms, continues: true }, ({ invocation, keep }) => {
    invocation.describe({ template: `getMore ${namespace}`, rowCount: batch.length });
    // Whether the caller may still read is asked anew, as of any question.
    invocation.snapshot();
    keep({ overtaken: () => open.answers.some((answer) => answer.overtaken()) });
  });
  const next = cursors.keep({ ...open, rest });
  return { cursor: { nextBatch: batch, id: next, ns: namespace }, ok: 1 };
}

function wholeIn(bsonValue: Stored | undefined, name: string): bigint {
  const whole = isNumeric(bsonValue) ? toWhole(bsonValue) : null;
  if (whole === null) throw mongoRefusals.wrongType(name, 'a whole number');
  return whole;
}

async function killCursors(context: DocumentCommandContext): Promise<WritableObject> {
  const { command, cursors, connectionCaller: asker } = context;
  const ids = command.get('cursors');
  if (!isList(ids) || ids.length > namedMost)
    throw mongoRefusals.wrongType('killCursors.cursors', `a list of at most ${namedMost}`);
  const killed: Stored[] = [];
  const missing: Stored[] = [];
  for (const id of ids) (cursors.kill(wholeIn(id, 'cursors'), asker.caller) ? killed : missing).push(id);
  return { cursorsKilled: killed, cursorsNotFound: missing, cursorsAlive: [], cursorsUnknown: [], ok: 1 };
}

async function count(context: DocumentCommandContext): Promise<WritableObject> {
  const filter = context.object('query') ?? new Map();
  const skip = context.number('skip') ?? 0;
  const limit = Math.abs(context.number('limit') ?? 0) || Number.POSITIVE_INFINITY;
  const { result } = await context.read((reading) => findDocuments(reading, { ...context.place, filter, time: context.time }));
  return { n: Math.max(0, Math.min(result.length - skip, limit)), ok: 1 };
}

async function distinct(context: DocumentCommandContext): Promise<WritableObject> {
  const key = context.command.get('key');
  if (typeof key !== 'string') throw mongoRefusals.wrongType('distinct.key', 'a string');
  const filter = context.object('query') ?? new Map();
  const path = key.split('.');
  const { result } = await context.read(async (reading) => {
    const matchedDocuments = await findDocuments(reading, { ...context.place, filter, time: context.time });
    const values = new Distinct();
    // A list counts each of its values once.
    const pace = new Pace();
    await eachInSteps(matchedDocuments, reading.yieldTurn, function* ({ document: bsonDocument }) {
      for (const bsonValue of valuesAt(bsonDocument, path)) {
        for (const each of isList(bsonValue) ? bsonValue : [bsonValue]) {
          values.add(each);
          if (pace.spend(isObject(each) ? each.size : 1)) yield;
        }
      }
    });
    return inTurns(listSteps(values.all()), reading.yieldTurn);
  });
  return { values: result, ok: 1 };
}

const stagesMax = 1_000;
/** Nanoseconds in which any stage is read. */
const stageCost = 1_000_000;

async function aggregate(context: DocumentCommandContext): Promise<WritableObject> {
  if (context.flag('explain') === true) throw mongoRefusals.notSupported('aggregate with explain');
  if (typeof context.subject !== 'string') throw mongoRefusals.notSupported('an aggregation over a whole database');
  const pipeline = context.objects('pipeline');
  const [first] = pipeline;
  const match = first?.size === 1 ? first.get('$match') : undefined;
  if (match !== undefined) checkMatch(match);
  const filter: StoredObject = match ?? new Map();
  compileFilter(filter);
  if (pipeline.length > stagesMax)
    throw new DocumentRefusal(7_749_501, `Pipeline length must be no longer than ${stagesMax} stages`);
  const stages: PipelineStage[] = [];
  await eachInSteps(pipeline.slice(match === undefined ? 0 : 1), context.connectionCaller.parts.yieldTurn, function* (given) {
    spend(stageCost);
    stages.push(yield* stageOf(given));
  });
  const { result, answers } = await context.read((reading) =>
    foundThrough(stages, reading, { ...context.place, filter, time: context.time }),
  );
  const size = context.object('cursor')?.get('batchSize');
  return cursorReply(context, result, answers, size === undefined ? firstBatch : countOf(size, 'cursor.batchSize'));
}

const findMembers =
  'filter projection sort skip limit batchSize singleBatch tailable awaitData oplogReplay returnKey showRecordId collation min max let';

export const readCommands: Readonly<Record<string, DocumentCommandRow>> = {
  find: { cost: ofDocuments, takes: findMembers.split(' '), run: find },
  getMore: { cost: ofFew, takes: ['collection', 'batchSize'], run: getMore },
  killCursors: { cost: ofFew, takes: ['cursors'], run: killCursors },
  count: { cost: ofDocuments, takes: ['query', 'limit', 'skip', 'fields'], run: count },
  distinct: { cost: ofDocuments, takes: ['key', 'query'], run: distinct },
  aggregate: { cost: ofDocuments, takes: ['pipeline', 'cursor', 'explain'], run: aggregate },
};

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
const defaultFirstBatch = 101;

async function findCommand(mongoContext: DocumentCommandContext): Promise<WritableObject> {
  const { place: namespace } = mongoContext;
  for (const unsupportedOption of ['tailable', 'awaitData', 'oplogReplay', 'returnKey', 'showRecordId'])
    if (mongoContext.flag(unsupportedOption) === true) throw mongoRefusals.notSupported(`find with ${unsupportedOption}`);
  for (const name of ['collation', 'min', 'max', 'let'])
    if ((mongoContext.object(name)?.size ?? 0) > 0) throw mongoRefusals.notSupported(`find with ${name}`);
  const findFilter = mongoContext.object('filter') ?? new Map();
  const findSort = mongoContext.object('sort');
  const findProjection = await inTurns(
    projectionOf(mongoContext.object('projection')),
    mongoContext.connectionCaller.parts.yieldTurn,
  );
  const findSkip = mongoContext.number('skip') ?? 0;
  const statedLimit = mongoContext.number('limit') ?? 0;
  if (findSkip < 0) throw new DocumentRefusal(2, `BSON field 'skip' value must be >= 0, actual value '${findSkip}'`);
  // A negative one is that many, in one batch.
  const findLimit = statedLimit === 0 ? Number.POSITIVE_INFINITY : Math.abs(statedLimit);
  const isSorted = findSort !== undefined && findSort.size > 0;
  const sortStage = sortOf(findSort);
  const documentsMax = isSorted || findLimit === Number.POSITIVE_INFINITY ? undefined : findSkip + findLimit;
  const { result: encodedDocuments, answers: findAnswers } = await mongoContext.read(
    (reading) => {
      const limitStage: PipelineStage = (documents) => documents.slice(findSkip, findSkip + findLimit);
      return runStages([sortStage, limitStage, projectAll(findProjection)], reading, {
        ...namespace,
        filter: findFilter,
        time: mongoContext.time,
        most: documentsMax,
      });
    },
    isById(findFilter) ? { keysRead: idCountOf(findFilter) } : {},
  );
  const batchSize = mongoContext.number('batchSize') ?? defaultFirstBatch;
  return cursorReply(
    mongoContext,
    encodedDocuments,
    findAnswers,
    statedLimit < 0 || mongoContext.flag('singleBatch') === true ? Number.POSITIVE_INFINITY : batchSize,
  );
}

/** Must finish within the turn in which the answer was checked for erased rows: encodes while reading. */
async function runStages(
  pipelineStages: readonly PipelineStage[],
  documentReading: DocumentReading,
  wantedDocuments: DocumentQuery,
): Promise<readonly Encoded[]> {
  let stageDocuments: readonly StoredObject[] = (await findDocuments(documentReading, wantedDocuments)).map(
    ({ document: bsonDocument }) => bsonDocument,
  );
  for (const pipelineStage of pipelineStages) stageDocuments = await pipelineStage(stageDocuments, documentReading.yieldTurn);
  return encodeAll(stageDocuments, documentReading.yieldTurn);
}

const idCountOf = (findFilter: StoredObject): number => {
  const idCondition = findFilter.get('_id');
  const inIds = isObject(idCondition) ? idCondition.get('$in') : undefined;
  return isList(inIds) ? inIds.length : 1;
};

function cursorReply(
  mongoContext: DocumentCommandContext,
  encodedDocuments: readonly Encoded[],
  cursorAnswers: readonly Answer[],
  batchSize: number,
): WritableObject {
  if (batchSize < 0) throw new DocumentRefusal(2, `BSON field 'batchSize' value must be >= 0, actual value '${batchSize}'`);
  const { batch: firstBatchDocuments, rest: laterDocuments } = batchOf(encodedDocuments, batchSize);
  const cursorId = mongoContext.cursors.keep({
    namespace: mongoContext.namespace,
    rest: laterDocuments,
    terms: mongoContext.terms,
    answers: cursorAnswers,
    of: ownerOf(mongoContext.connectionCaller.caller),
  });
  return { cursor: { firstBatch: firstBatchDocuments, id: cursorId, ns: mongoContext.namespace }, ok: 1 };
}

async function getMoreCommand(mongoContext: DocumentCommandContext): Promise<WritableObject> {
  const cursorId = wholeNumberIn(mongoContext.subject, 'getMore');
  const cursorNamespace = namespaceOf({
    database: mongoContext.database,
    collection: collectionName(mongoContext.command.get('collection')),
  });
  const { cursors, connectionCaller: asker } = mongoContext;
  const openCursor = cursors.take(cursorId, cursorNamespace, asker.caller);
  const batchSize = mongoContext.number('batchSize') ?? 0;
  const { batch: nextBatchDocuments, rest: laterDocuments } = batchOf(
    openCursor.rest,
    batchSize === 0 ? Number.POSITIVE_INFINITY : batchSize,
  );
  await asker.ask({ terms: openCursor.terms, continues: true }, ({ invocation, keep: keepAnswer }) => {
    invocation.describe({ template: `getMore ${cursorNamespace}`, rowCount: nextBatchDocuments.length });
    // Whether the caller may still read is asked anew, as of any question.
    invocation.snapshot();
    keepAnswer({ overtaken: () => openCursor.answers.some((answer) => answer.overtaken()) });
  });
  const nextCursorId = cursors.keep({ ...openCursor, rest: laterDocuments });
  return { cursor: { nextBatch: nextBatchDocuments, id: nextCursorId, ns: cursorNamespace }, ok: 1 };
}

function wholeNumberIn(bsonValue: Stored | undefined, memberName: string): bigint {
  const wholeNumber = isNumeric(bsonValue) ? toWhole(bsonValue) : null;
  if (wholeNumber === null) throw mongoRefusals.wrongType(memberName, 'a whole number');
  return wholeNumber;
}

async function killCursors(mongoContext: DocumentCommandContext): Promise<WritableObject> {
  const { command, cursors, connectionCaller: asker } = mongoContext;
  const cursorIds = command.get('cursors');
  if (!isList(cursorIds) || cursorIds.length > namedMost)
    throw mongoRefusals.wrongType('killCursors.cursors', `a list of at most ${namedMost}`);
  const killedCursors: Stored[] = [];
  const missingCursors: Stored[] = [];
  for (const cursorId of cursorIds)
    (cursors.kill(wholeNumberIn(cursorId, 'cursors'), asker.caller) ? killedCursors : missingCursors).push(cursorId);
  return { cursorsKilled: killedCursors, cursorsNotFound: missingCursors, cursorsAlive: [], cursorsUnknown: [], ok: 1 };
}

async function countCommand(mongoContext: DocumentCommandContext): Promise<WritableObject> {
  const countFilter = mongoContext.object('query') ?? new Map();
  const countSkip = mongoContext.number('skip') ?? 0;
  const countLimit = Math.abs(mongoContext.number('limit') ?? 0) || Number.POSITIVE_INFINITY;
  const { result: countedDocuments } = await mongoContext.read((reading) =>
    findDocuments(reading, { ...mongoContext.place, filter: countFilter, time: mongoContext.time }),
  );
  return { n: Math.max(0, Math.min(countedDocuments.length - countSkip, countLimit)), ok: 1 };
}

async function distinctCommand(mongoContext: DocumentCommandContext): Promise<WritableObject> {
  const distinctKey = mongoContext.command.get('key');
  if (typeof distinctKey !== 'string') throw mongoRefusals.wrongType('distinct.key', 'a string');
  const distinctFilter = mongoContext.object('query') ?? new Map();
  const distinctPath = distinctKey.split('.');
  const { result: encodedValues } = await mongoContext.read(async (reading) => {
    const matchedDocuments = await findDocuments(reading, {
      ...mongoContext.place,
      filter: distinctFilter,
      time: mongoContext.time,
    });
    const distinctValues = new Distinct();
    // A list counts each of its values once.
    const distinctPace = new Pace();
    await eachInSteps(matchedDocuments, reading.yieldTurn, function* ({ document: bsonDocument }) {
      for (const bsonValue of valuesAt(bsonDocument, distinctPath)) {
        for (const distinctElement of isList(bsonValue) ? bsonValue : [bsonValue]) {
          distinctValues.add(distinctElement);
          if (distinctPace.spend(isObject(distinctElement) ? distinctElement.size : 1)) yield;
        }
      }
    });
    return inTurns(listSteps(distinctValues.all()), reading.yieldTurn);
  });
  return { values: encodedValues, ok: 1 };
}

const pipelineStagesMax = 1_000;
/** Nanoseconds in which any stage is read. */
const pipelineStageCost = 1_000_000;

async function aggregateCommand(mongoContext: DocumentCommandContext): Promise<WritableObject> {
  if (mongoContext.flag('explain') === true) throw mongoRefusals.notSupported('aggregate with explain');
  if (typeof mongoContext.subject !== 'string') throw mongoRefusals.notSupported('an aggregation over a whole database');
  const pipelineStages = mongoContext.objects('pipeline');
  const [firstStage] = pipelineStages;
  const matchStage = firstStage?.size === 1 ? firstStage.get('$match') : undefined;
  if (matchStage !== undefined) checkMatch(matchStage);
  const matchFilter: StoredObject = matchStage ?? new Map();
  compileFilter(matchFilter);
  if (pipelineStages.length > pipelineStagesMax)
    throw new DocumentRefusal(7_749_501, `Pipeline length must be no longer than ${pipelineStagesMax} stages`);
  const laterStages: PipelineStage[] = [];
  await eachInSteps(
    pipelineStages.slice(matchStage === undefined ? 0 : 1),
    mongoContext.connectionCaller.parts.yieldTurn,
    function* (stageDocument) {
      spend(pipelineStageCost);
      laterStages.push(yield* stageOf(stageDocument));
    },
  );
  const { result: encodedDocuments, answers: pipelineAnswers } = await mongoContext.read((reading) =>
    runStages(laterStages, reading, { ...mongoContext.place, filter: matchFilter, time: mongoContext.time }),
  );
  const batchSize = mongoContext.object('cursor')?.get('batchSize');
  return cursorReply(
    mongoContext,
    encodedDocuments,
    pipelineAnswers,
    batchSize === undefined ? defaultFirstBatch : countOf(batchSize, 'cursor.batchSize'),
  );
}

const findMembers =
  'filter projection sort skip limit batchSize singleBatch tailable awaitData oplogReplay returnKey showRecordId collation min max let';

export const readCommands: Readonly<Record<string, DocumentCommandRow>> = {
  find: { cost: ofDocuments, takes: findMembers.split(' '), run: findCommand },
  getMore: { cost: ofFew, takes: ['collection', 'batchSize'], run: getMoreCommand },
  killCursors: { cost: ofFew, takes: ['cursors'], run: killCursors },
  count: { cost: ofDocuments, takes: ['query', 'limit', 'skip', 'fields'], run: countCommand },
  distinct: { cost: ofDocuments, takes: ['key', 'query'], run: distinctCommand },
  aggregate: { cost: ofDocuments, takes: ['pipeline', 'cursor', 'explain'], run: aggregateCommand },
};

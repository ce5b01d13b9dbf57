/** Commands that write: insert, update, delete, findAndModify. A document changed meanwhile is read again, never overwritten. */
import { ServiceError } from '../../errors.ts';
import { inTurns, type Steps } from '../../planner/expressions/resumable-steps.ts';
import { textOf, textSteps } from '../../planner/expressions/documents/document-json.ts';
import { isNumeric, toWhole } from '../../planner/expressions/documents/document-numbers.ts';
import { eachInSteps } from '../../planner/expressions/documents/filter-turns.ts';
import {
  documentOf,
  isObject,
  Special,
  type Stored,
  type StoredObject,
} from '../../planner/expressions/documents/document-values.ts';
import { work } from '../../planner/expressions/expression-cost.ts';
import { batchRowsMax, type Command } from '../../projections/command.ts';
import { longBytes } from '../shared/codec.ts';
import type { WritableObject } from './bson.ts';
import { encodeAll } from './cursors.ts';
import { type DocumentCommandContext, type DocumentCommandRow, doorName, flagOf, namespaceOf, ofDocuments } from './command.ts';
import {
  entryType,
  findDocuments,
  type MatchedDocument,
  idsIn,
  isById,
  keyOf,
  type Namespace,
  presentKeys,
  putCommand,
  type DocumentReading,
  type Written,
} from './document-rows.ts';
import { DocumentRefusal, numberOfError, mongoRefusals } from './errors.ts';
import { projectionOf, sortOf, type PipelineStage } from './pipeline-stages.ts';
import { isReplacement, nameSteps, seedOf, type DocumentUpdate, updateOf, withId } from './update-operators.ts';

/** An _id for a document without one: seconds, then random bytes. */
function newObjectId({ connectionCaller: asker }: DocumentCommandContext): Stored {
  const objectIdBytes = Buffer.from(asker.parts.random.fill(new Uint8Array(12)));
  objectIdBytes.writeUInt32BE(Number(asker.parts.clock.now() / 1_000_000_000n) >>> 0, 0);
  return new Special('$oid', objectIdBytes.toString('hex'));
}

/** The document with its _id, which comes first. */
function* assignId(
  mongoContext: DocumentCommandContext,
  bsonDocument: StoredObject,
): Steps<{ readonly id: Stored; readonly document: StoredObject }> {
  const documentId = bsonDocument.get('_id');
  const id = documentId === undefined ? newObjectId(mongoContext) : documentId;
  return { id, document: yield* withId(id, bsonDocument) };
}

type WriteError = { readonly index: number; readonly code: number; readonly errmsg: string } & WritableObject;

function duplicateKeyError(namespace: Namespace, duplicateId: Stored): DocumentRefusal {
  const duplicateDetail = `E11000 duplicate key error collection: ${namespaceOf(namespace)} index: _id_ dup key: { _id: ${textOf(duplicateId)} }`;
  const duplicateMembers = { keyPattern: documentOf({ _id: 1 }), keyValue: documentOf({ _id: duplicateId }) };
  return new DocumentRefusal(11_000, duplicateDetail, 'REL_CONFLICT', duplicateMembers);
}

const writeError = (statementIndex: number, statementError: ServiceError): WriteError => ({
  index: statementIndex,
  code: numberOfError(statementError),
  errmsg: statementError.message,
  ...(statementError instanceof DocumentRefusal && statementError.members),
});

async function insertCommand(mongoContext: DocumentCommandContext): Promise<WritableObject> {
  const { place: insertNamespace } = mongoContext;
  const { yieldTurn } = mongoContext.connectionCaller.parts;
  const isOrdered = mongoContext.flag('ordered') !== false;
  const insertedDocuments = mongoContext.objects('documents');
  checkWriteBatch(insertedDocuments, 'documents');
  const documentRows: { key: string; id: Stored; text: string }[] = [];
  await eachInSteps(insertedDocuments, yieldTurn, function* (insertedDocument) {
    yield* nameSteps(insertedDocument);
    const { id: documentId, document: bsonDocument } = yield* assignId(mongoContext, insertedDocument);
    const documentText = yield* textSteps(bsonDocument);
    documentRows.push({ key: keyOf(insertNamespace, documentId), id: documentId, text: documentText });
    work.done += documentText.length * writtenCharacterCost;
  });
  if (documentRows.reduce((textLength, { text: documentText }) => textLength + documentText.length, 0) > longBytes)
    await yieldTurn();
  return mongoContext.write(documentRows.length, 'ingest', ({ invocation }) =>
    mongoContext.retryConflicts(invocation, mongoContext.namespace, async () => {
      const { planner } = mongoContext.connectionCaller.parts;
      const takenKeys = await presentKeys(planner, invocation, [
        ...new Set(documentRows.map(({ key: documentKey }) => documentKey)),
      ]);
      const insertErrors: WriteError[] = [];
      const writtenRows: typeof documentRows = [];
      for (const [documentIndex, documentRow] of documentRows.entries()) {
        if (takenKeys.has(documentRow.key)) {
          insertErrors.push(writeError(documentIndex, duplicateKeyError(insertNamespace, documentRow.id)));
          if (isOrdered) break;
        } else {
          takenKeys.add(documentRow.key);
          writtenRows.push(documentRow);
        }
      }
      const insertTerms = { when: 'absent', door: doorName, changes: false } as const;
      const insertCommands: Command[] =
        writtenRows.length === 0 ? [] : [await putCommand(insertNamespace, writtenRows, insertTerms, yieldTurn)];
      return {
        commands: insertCommands,
        result: { n: writtenRows.length, ...(insertErrors.length > 0 && { writeErrors: insertErrors }), ok: 1 } as WritableObject,
      };
    }),
  );
}

function checkWriteBatch({ length: batchLength }: readonly StoredObject[], batchNoun: 'documents' | 'statements'): void {
  if (batchLength === 0 || batchLength > batchRowsMax)
    throw new DocumentRefusal(2, `a batch has 1 to ${batchRowsMax} ${batchNoun}`);
}

/** Nanoseconds of a character of a document that is written anew. */
const writtenCharacterCost = 20;

interface DocumentChange {
  readonly filter: StoredObject;
  readonly multi: boolean;
  readonly upsert: boolean;
  readonly update: DocumentUpdate;
  /** Which of several is meant. */
  readonly inOrder?: PipelineStage;
}

interface DocumentChangeResult {
  readonly matched: readonly MatchedDocument[];
  readonly writtenDocuments: readonly StoredObject[];
  readonly modified: number;
  readonly upserted: StoredObject | null;
}

/** Documents of the caller's own path alone: those below it can be read, not written. */
async function ownDocuments(
  mongoContext: DocumentCommandContext,
  documentReading: DocumentReading,
  { filter: ownFilter, multi: isMulti, inOrder: sortStage }: Pick<DocumentChange, 'filter' | 'multi' | 'inOrder'>,
) {
  const matchedDocuments = (
    await findDocuments(documentReading, { ...mongoContext.place, filter: ownFilter, time: 'current' })
  ).filter(({ own: isOwnDocument }) => isOwnDocument);
  if (isMulti || matchedDocuments.length < 2) return matchedDocuments;
  if (sortStage === undefined) return matchedDocuments.slice(0, 1);
  const foundByDocument = new Map(matchedDocuments.map((foundDocument) => [foundDocument.document, foundDocument]));
  const [firstDocument] = await sortStage([...foundByDocument.keys()], documentReading.yieldTurn);
  return [foundByDocument.get(firstDocument!)!];
}

/** Writers of one document wait for each other, and for no other writers. */
function conflictLineOf(namespace: Namespace, { filter: conflictFilter }: Pick<DocumentChange, 'filter'>): string {
  const [soleId, ...otherIds] = idsIn(conflictFilter) ?? [];
  return soleId === undefined || otherIds.length > 0 ? namespaceOf(namespace) : keyOf(namespace, soleId);
}

/** Each statement of a command has as long as a question. */
const withTimedTurns = (documentReading: DocumentReading): DocumentReading => ({
  ...documentReading,
  yieldTurn: documentReading.planner.turns(documentReading.signal),
});

function changeDocuments(
  mongoContext: DocumentCommandContext,
  statementReading: DocumentReading,
  wantedChange: DocumentChange,
): Promise<DocumentChangeResult> {
  const { place: namespace } = mongoContext;
  const timedReading = withTimedTurns(statementReading);
  const { invocation } = timedReading;
  return mongoContext.retryConflicts<DocumentChangeResult>(invocation, conflictLineOf(namespace, wantedChange), async () => {
    const changeInstant = invocation.snapshot().instant;
    const matchedDocuments = await ownDocuments(mongoContext, timedReading, wantedChange);
    if (matchedDocuments.length === 0 && wantedChange.upsert) {
      const { id: upsertedId, document: upserted } = await inTurns(
        upsertSteps(mongoContext, wantedChange),
        timedReading.yieldTurn,
      );
      const documentKey = keyOf(namespace, upsertedId);
      // A document with this _id exists, but does not match the filter.
      if ((await presentKeys(timedReading.planner, invocation, [documentKey])).size > 0)
        throw duplicateKeyError(namespace, upsertedId);
      const written = [{ key: documentKey, text: await inTurns(textSteps(upserted), timedReading.yieldTurn) }];
      const upsertPut = await putCommand(
        namespace,
        written,
        { when: 'absent', door: doorName, changes: false },
        timedReading.yieldTurn,
      );
      return { commands: [upsertPut], result: { matched: matchedDocuments, writtenDocuments: [], modified: 0, upserted } };
    }
    const writtenDocuments: StoredObject[] = [];
    const written: Written[] = [];
    let writtenBytes = 0;
    await eachInSteps(matchedDocuments, timedReading.yieldTurn, function* ({ key: documentKey, document: bsonDocument }) {
      const updatedDocument = yield* wantedChange.update(bsonDocument, false);
      writtenDocuments.push(updatedDocument);
      if (updatedDocument === bsonDocument) return;
      const updatedText = yield* textSteps(updatedDocument);
      work.done += 2 * updatedText.length * writtenCharacterCost;
      if ((yield* textSteps(bsonDocument)) === updatedText) return;
      written.push({ key: documentKey, text: updatedText });
      writtenBytes += updatedText.length;
      checkWrittenCount(written.length);
      if (writtenBytes > statementBytesMax) throw statementTooLarge();
    });
    const updateTerms = { when: { unchangedSince: changeInstant }, door: doorName, changes: true };
    const updateCommands =
      written.length === 0 ? [] : [await putCommand(namespace, written, updateTerms, timedReading.yieldTurn)];
    return {
      commands: updateCommands,
      result: { matched: matchedDocuments, writtenDocuments, modified: written.length, upserted: null },
    };
  });
}

function* upsertSteps(
  mongoContext: DocumentCommandContext,
  { filter: upsertFilter, update: upsertUpdate }: DocumentChange,
): ReturnType<typeof assignId> {
  const writtenDocuments = yield* upsertUpdate(yield* seedOf(upsertFilter), true);
  yield* nameSteps(writtenDocuments);
  return yield* assignId(mongoContext, writtenDocuments);
}

/** Most bytes appended to the log at once: as many as one message brings. */
const statementBytesMax = 16 << 20;

const statementTooLarge = (): DocumentRefusal =>
  new DocumentRefusal(
    2,
    `one statement writes at most ${statementBytesMax >> 20} MiB of documents: narrow its filter`,
    'REL_UNPROCESSABLE',
  );

function checkWrittenCount(writtenCount: number): void {
  if (writtenCount > batchRowsMax)
    throw new DocumentRefusal(
      2,
      `one statement writes at most ${batchRowsMax} documents: narrow its filter`,
      'REL_UNPROCESSABLE',
    );
}

function deleteDocuments(
  mongoContext: DocumentCommandContext,
  statementReading: DocumentReading,
  wantedChange: Pick<DocumentChange, 'filter' | 'multi' | 'inOrder'>,
): Promise<readonly MatchedDocument[]> {
  const timedReading = withTimedTurns(statementReading);
  const { invocation } = timedReading;
  return mongoContext.retryConflicts(invocation, conflictLineOf(mongoContext.place, wantedChange), async () => {
    const deleteInstant = invocation.snapshot().instant;
    const matchedDocuments = await ownDocuments(mongoContext, timedReading, wantedChange);
    checkWrittenCount(matchedDocuments.length);
    const deleteRowsCommand: Command = {
      kind: 'delete-rows',
      type: entryType,
      keys: matchedDocuments.map(({ key: documentKey }) => documentKey),
      when: { unchangedSince: deleteInstant },
      ...(!isById(wantedChange.filter) && wantedChange.filter.size > 0 && { computedFrom: ['document'] }),
    };
    return { commands: matchedDocuments.length === 0 ? [] : [deleteRowsCommand], result: matchedDocuments };
  });
}

/** How many keys these read by; null where one of them has to look for its documents. */
function statementKeyCount(writeStatements: readonly StoredObject[]): number | null {
  return writeStatements.every((writeStatement) => {
    const statementFilter = writeStatement.get('q');
    return isObject(statementFilter) && isById(statementFilter);
  })
    ? writeStatements.length
    : null;
}

const updateMembers: ReadonlySet<string> = new Set([
  'q',
  'u',
  'multi',
  'upsert',
  'hint',
  'collation',
  'arrayFilters',
  'c',
  'sort',
]);
const deleteMembers: ReadonlySet<string> = new Set(['q', 'limit', 'hint', 'collation']);

function checkStatementMembers(writeStatement: StoredObject, knownMembers: ReadonlySet<string>, commandName: string): void {
  for (const [memberName, bsonValue] of writeStatement) {
    if (!knownMembers.has(memberName)) throw mongoRefusals.unknownField(commandName, memberName);
    if ((memberName === 'collation' || memberName === 'arrayFilters' || memberName === 'c') && bsonValue !== null)
      throw mongoRefusals.notSupported(`${commandName} with ${memberName}`);
  }
}

function statementFilterIn(writeStatement: StoredObject, commandName: string): StoredObject {
  const statementFilter = writeStatement.get('q');
  if (statementFilter === undefined) throw mongoRefusals.missing(`${commandName}.q`);
  if (!isObject(statementFilter)) throw mongoRefusals.wrongType(`${commandName}.q`, 'an object');
  return statementFilter;
}

/** Runs statement after statement; an error is of its statement, and ends an ordered command. */
async function runStatements(
  mongoContext: DocumentCommandContext,
  writeStatements: readonly StoredObject[],
  runStatement: (writeStatement: StoredObject, statementIndex: number) => Promise<void>,
): Promise<WriteError[]> {
  const writeErrors: WriteError[] = [];
  const isOrdered = mongoContext.flag('ordered') !== false;
  for (const [statementIndex, writeStatement] of writeStatements.entries()) {
    try {
      await runStatement(writeStatement, statementIndex);
    } catch (statementError) {
      // Errors that concern the caller end the command; others are reported for their statement.
      if (!(statementError instanceof ServiceError) || !statementErrorKinds.has(statementError.kind)) throw statementError;
      writeErrors.push(writeError(statementIndex, statementError));
      if (isOrdered) break;
    }
  }
  return writeErrors;
}

const statementErrorKinds: ReadonlySet<ServiceError['kind']> = new Set(['invalid', 'conflict', 'unprocessable', 'unimplemented']);

async function updateCommand(mongoContext: DocumentCommandContext): Promise<WritableObject> {
  const updateStatements = mongoContext.objects('updates');
  checkWriteBatch(updateStatements, 'statements');
  return mongoContext.write(statementKeyCount(updateStatements), 'ingest', async (documentReading) => {
    let matchedCount = 0;
    let modifiedCount = 0;
    const upserted: WritableObject[] = [];
    const updateErrors = await runStatements(mongoContext, updateStatements, async (updateStatement, statementIndex) => {
      checkStatementMembers(updateStatement, updateMembers, 'update.updates');
      const statedUpdate = updateStatement.get('u');
      if (statedUpdate === undefined) throw mongoRefusals.missing('update.updates.u');
      const isMulti = flagOf(updateStatement.get('multi'), 'update.updates.multi') === true;
      if (isMulti && isReplacement(statedUpdate))
        throw new DocumentRefusal(9, 'multi update is not supported for replacement-style update');
      const changeResult = await changeDocuments(mongoContext, documentReading, {
        filter: statementFilterIn(updateStatement, 'update.updates'),
        multi: isMulti,
        upsert: flagOf(updateStatement.get('upsert'), 'update.updates.upsert') === true,
        update: await inTurns(updateOf(statedUpdate), mongoContext.connectionCaller.parts.yieldTurn),
        inOrder: sortOf(updateStatement.get('sort')),
      });
      matchedCount += changeResult.matched.length + (changeResult.upserted === null ? 0 : 1);
      modifiedCount += changeResult.modified;
      if (changeResult.upserted !== null) upserted.push({ index: statementIndex, _id: changeResult.upserted.get('_id')! });
    });
    return {
      n: matchedCount,
      nModified: modifiedCount,
      ...(upserted.length > 0 && { upserted }),
      ...(updateErrors.length > 0 && { writeErrors: updateErrors }),
      ok: 1,
    };
  });
}

async function deleteCommand(mongoContext: DocumentCommandContext): Promise<WritableObject> {
  const deleteStatements = mongoContext.objects('deletes');
  checkWriteBatch(deleteStatements, 'statements');
  return mongoContext.write(statementKeyCount(deleteStatements), 'delete', async (documentReading) => {
    let deletedCount = 0;
    const deleteErrors = await runStatements(mongoContext, deleteStatements, async (deleteStatement) => {
      checkStatementMembers(deleteStatement, deleteMembers, 'delete.deletes');
      const statedLimit = deleteStatement.get('limit');
      if (statedLimit === undefined) throw mongoRefusals.missing('delete.deletes.limit');
      const deleteLimit = isNumeric(statedLimit) ? toWhole(statedLimit) : null;
      if (deleteLimit !== 0n && deleteLimit !== 1n)
        throw new DocumentRefusal(9, 'The limit field in delete objects must be 0 or 1');
      deletedCount += (
        await deleteDocuments(mongoContext, documentReading, {
          filter: statementFilterIn(deleteStatement, 'delete.deletes'),
          multi: deleteLimit === 0n,
        })
      ).length;
    });
    return { n: deletedCount, ...(deleteErrors.length > 0 && { writeErrors: deleteErrors }), ok: 1 };
  });
}

async function findAndModifyCommand(mongoContext: DocumentCommandContext): Promise<WritableObject> {
  const { command } = mongoContext;
  for (const unsupportedOption of ['collation', 'arrayFilters', 'let'])
    if (command.has(unsupportedOption)) throw mongoRefusals.notSupported(`findAndModify with ${unsupportedOption}`);
  const modifyFilter = mongoContext.object('query') ?? new Map();
  const modifySort = sortOf(mongoContext.object('sort'));
  const { yieldTurn } = mongoContext.connectionCaller.parts;
  const modifyProjection = await inTurns(projectionOf(mongoContext.object('fields')), yieldTurn);
  const statedUpdate = command.get('update');
  const returnsNew = mongoContext.flag('new') === true;
  const isUpsert = mongoContext.flag('upsert') === true;
  if (mongoContext.flag('remove') === true) {
    if (statedUpdate !== undefined) throw new DocumentRefusal(9, 'Cannot specify both an update and remove=true');
    if (isUpsert) throw new DocumentRefusal(9, 'Cannot specify both upsert=true and remove=true');
    if (returnsNew)
      throw new DocumentRefusal(9, "Cannot specify both new=true and remove=true; 'remove' always returns the deleted document");
    return mongoContext.write(isById(modifyFilter) ? 1 : null, 'delete', async (modifyReading) => {
      const [deletedDocument] = await deleteDocuments(mongoContext, modifyReading, {
        filter: modifyFilter,
        multi: false,
        inOrder: modifySort,
      });
      const [encodedDocument = null] = deletedDocument
        ? await encodeAll(
            [await inTurns(modifyProjection(deletedDocument.document), modifyReading.yieldTurn)],
            modifyReading.yieldTurn,
          )
        : [];
      return { lastErrorObject: { n: deletedDocument ? 1 : 0 }, value: encodedDocument, ok: 1 };
    });
  }
  if (statedUpdate === undefined) throw new DocumentRefusal(9, 'Either an update or remove=true must be specified');
  const modifyUpdate = await inTurns(updateOf(statedUpdate), yieldTurn);
  return mongoContext.write(isById(modifyFilter) ? 1 : null, 'ingest', async (modifyReading) => {
    const {
      matched: matchedDocuments,
      writtenDocuments: changedDocuments,
      upserted,
    } = await changeDocuments(mongoContext, modifyReading, {
      filter: modifyFilter,
      multi: false,
      upsert: isUpsert,
      update: modifyUpdate,
      inOrder: modifySort,
    });
    const documentBefore = matchedDocuments[0]?.document ?? null;
    const returnedDocument = returnsNew ? (upserted ?? changedDocuments[0] ?? null) : documentBefore;
    const [encodedDocument = null] =
      returnedDocument === null
        ? []
        : await encodeAll([await inTurns(modifyProjection(returnedDocument), modifyReading.yieldTurn)], modifyReading.yieldTurn);
    return {
      lastErrorObject: {
        n: documentBefore === null && upserted === null ? 0 : 1,
        updatedExisting: documentBefore !== null,
        ...(upserted !== null && { upserted: upserted.get('_id')! }),
      },
      value: encodedDocument,
      ok: 1,
    };
  });
}

const modifyMembers = 'query sort remove update new upsert fields collation arrayFilters let';

export const writeCommands: Readonly<Record<string, DocumentCommandRow>> = {
  insert: { cost: ofDocuments, takes: ['documents', 'ordered'], run: insertCommand },
  update: { cost: ofDocuments, takes: ['updates', 'ordered', 'let'], run: updateCommand },
  delete: { cost: ofDocuments, takes: ['deletes', 'ordered', 'let'], run: deleteCommand },
  findAndModify: { cost: ofDocuments, takes: modifyMembers.split(' '), run: findAndModifyCommand },
};

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
function newId({ connectionCaller: asker }: DocumentCommandContext): Stored {
  const bytes = Buffer.from(asker.parts.random.fill(new Uint8Array(12)));
  bytes.writeUInt32BE(Number(asker.parts.clock.now() / 1_000_000_000n) >>> 0, 0);
  return new Special('$oid', bytes.toString('hex'));
}

/** The document with its _id, which comes first. */
function* assignId(
  context: DocumentCommandContext,
  bsonDocument: StoredObject,
): Steps<{ readonly id: Stored; readonly document: StoredObject }> {
  const documentId = bsonDocument.get('_id');
  const id = documentId === undefined ? newId(context) : documentId;
  return { id, document: yield* withId(id, bsonDocument) };
}

type WriteError = { readonly index: number; readonly code: number; readonly errmsg: string } & WritableObject;

function duplicate(namespace: Namespace, id: Stored): DocumentRefusal {
  const detail = `E11000 duplicate key error collection: ${namespaceOf(namespace)} index: _id_ dup key: { _id: ${textOf(id)} }`;
  const members = { keyPattern: documentOf({ _id: 1 }), keyValue: documentOf({ _id: id }) };
  return new DocumentRefusal(11_000, detail, 'REL_CONFLICT', members);
}

const writeError = (index: number, error: ServiceError): WriteError => ({
  index,
  code: numberOfError(error),
  errmsg: error.message,
  ...(error instanceof DocumentRefusal && error.members),
});

async function insert(context: DocumentCommandContext): Promise<WritableObject> {
  const { place } = context;
  const { yieldTurn } = context.connectionCaller.parts;
  const ordered = context.flag('ordered') !== false;
  const documents = context.objects('documents');
  checkBatch(documents, 'documents');
  const rows: { key: string; id: Stored; text: string }[] = [];
  await eachInSteps(documents, yieldTurn, function* (given) {
    yield* nameSteps(given);
    const { id, document: bsonDocument } = yield* assignId(context, given);
    const text = yield* textSteps(bsonDocument);
    rows.push({ key: keyOf(place, id), id, text });
    work.done += text.length * characterCost;
  });
  if (rows.reduce((sum, { text }) => sum + text.length, 0) > longBytes) await yieldTurn();
  return context.write(rows.length, 'ingest', ({ invocation }) =>
    context.retryConflicts(invocation, context.namespace, async () => {
      const { planner } = context.connectionCaller.parts;
      const taken = await presentKeys(planner, invocation, [...new Set(rows.map(({ key }) => key))]);
      const errors: WriteError[] = [];
      const written: typeof rows = [];
      for (const [index, row] of rows.entries()) {
        if (taken.has(row.key)) {
          errors.push(writeError(index, duplicate(place, row.id)));
          if (ordered) break;
        } else {
          taken.add(row.key);
          written.push(row);
        }
      }
      const terms = { when: 'absent', door: doorName, changes: false } as const;
      const commands: Command[] = written.length === 0 ? [] : [await putCommand(place, written, terms, yieldTurn)];
      return {
        commands,
        result: { n: written.length, ...(errors.length > 0 && { writeErrors: errors }), ok: 1 } as WritableObject,
      };
    }),
  );
}

function checkBatch({ length }: readonly StoredObject[], what: 'documents' | 'statements'): void {
  if (length === 0 || length > batchRowsMax) throw new DocumentRefusal(2, `a batch has 1 to ${batchRowsMax} ${what}`);
}

/** Nanoseconds of a character of a document that is written anew. */
const characterCost = 20;

interface Change {
  readonly filter: StoredObject;
  readonly multi: boolean;
  readonly upsert: boolean;
  readonly update: DocumentUpdate;
  /** Which of several is meant. */
  readonly inOrder?: PipelineStage;
}

interface Changed {
  readonly matched: readonly MatchedDocument[];
  readonly writtenDocuments: readonly StoredObject[];
  readonly modified: number;
  readonly upserted: StoredObject | null;
}

/** Documents of the caller's own path alone: those below it can be read, not written. */
async function ownDocuments(
  context: DocumentCommandContext,
  reading: DocumentReading,
  { filter, multi, inOrder }: Pick<Change, 'filter' | 'multi' | 'inOrder'>,
) {
  const matchedDocuments = (await findDocuments(reading, { ...context.place, filter, time: 'current' })).filter(({ own }) => own);
  if (multi || matchedDocuments.length < 2) return matchedDocuments;
  if (inOrder === undefined) return matchedDocuments.slice(0, 1);
  const byDocument = new Map(matchedDocuments.map((each) => [each.document, each]));
  const [first] = await inOrder([...byDocument.keys()], reading.yieldTurn);
  return [byDocument.get(first!)!];
}

/** Writers of one document wait for each other, and for no other writers. */
function lineOf(namespace: Namespace, { filter }: Pick<Change, 'filter'>): string {
  const [only, ...others] = idsIn(filter) ?? [];
  return only === undefined || others.length > 0 ? namespaceOf(namespace) : keyOf(namespace, only);
}

/** Each statement of a command has as long as a question. */
const inTime = (reading: DocumentReading): DocumentReading => ({ ...reading, yieldTurn: reading.planner.turns(reading.signal) });

function change(context: DocumentCommandContext, given: DocumentReading, wantedChange: Change): Promise<Changed> {
  const { place: namespace } = context;
  const reading = inTime(given);
  const { invocation } = reading;
  return context.retryConflicts<Changed>(invocation, lineOf(namespace, wantedChange), async () => {
    const since = invocation.snapshot().instant;
    const matched = await ownDocuments(context, reading, wantedChange);
    if (matched.length === 0 && wantedChange.upsert) {
      const { id, document: upserted } = await inTurns(upsertSteps(context, wantedChange), reading.yieldTurn);
      const key = keyOf(namespace, id);
      // A document with this _id exists, but does not match the filter.
      if ((await presentKeys(reading.planner, invocation, [key])).size > 0) throw duplicate(namespace, id);
      const written = [{ key, text: await inTurns(textSteps(upserted), reading.yieldTurn) }];
      const put = await putCommand(namespace, written, { when: 'absent', door: doorName, changes: false }, reading.yieldTurn);
      return { commands: [put], result: { matched, writtenDocuments: [], modified: 0, upserted } };
    }
    const writtenDocuments: StoredObject[] = [];
    const written: Written[] = [];
    let bytes = 0;
    await eachInSteps(matched, reading.yieldTurn, function* ({ key, document: bsonDocument }) {
      const updated = yield* wantedChange.update(bsonDocument, false);
      writtenDocuments.push(updated);
      if (updated === bsonDocument) return;
      const text = yield* textSteps(updated);
      work.done += 2 * text.length * characterCost;
      if ((yield* textSteps(bsonDocument)) === text) return;
      written.push({ key, text });
      bytes += text.length;
      checkCount(written.length);
      if (bytes > writtenBytesMax) throw tooMuchWritten();
    });
    const terms = { when: { unchangedSince: since }, door: doorName, changes: true };
    const commands = written.length === 0 ? [] : [await putCommand(namespace, written, terms, reading.yieldTurn)];
    return { commands, result: { matched, writtenDocuments, modified: written.length, upserted: null } };
  });
}

function* upsertSteps(context: DocumentCommandContext, { filter, update }: Change): ReturnType<typeof assignId> {
  const writtenDocuments = yield* update(yield* seedOf(filter), true);
  yield* nameSteps(writtenDocuments);
  return yield* assignId(context, writtenDocuments);
}

/** Most bytes appended to the log at once: as many as one message brings. */
const writtenBytesMax = 16 << 20;

const tooMuchWritten = (): DocumentRefusal =>
  new DocumentRefusal(
    2,
    `one statement writes at most ${writtenBytesMax >> 20} MiB of documents: narrow its filter`,
    'REL_UNPROCESSABLE',
  );

function checkCount(count: number): void {
  if (count > batchRowsMax)
    throw new DocumentRefusal(
      2,
      `one statement writes at most ${batchRowsMax} documents: narrow its filter`,
      'REL_UNPROCESSABLE',
    );
}

function end(
  context: DocumentCommandContext,
  given: DocumentReading,
  wantedChange: Pick<Change, 'filter' | 'multi' | 'inOrder'>,
): Promise<readonly MatchedDocument[]> {
  const reading = inTime(given);
  const { invocation } = reading;
  return context.retryConflicts(invocation, lineOf(context.place, wantedChange), async () => {
    const since = invocation.snapshot().instant;
    const matched = await ownDocuments(context, reading, wantedChange);
    checkCount(matched.length);
    const command: Command = {
      kind: 'delete-rows',
      type: entryType,
      keys: matched.map(({ key }) => key),
      when: { unchangedSince: since },
      ...(!isById(wantedChange.filter) && wantedChange.filter.size > 0 && { computedFrom: ['document'] }),
    };
    return { commands: matched.length === 0 ? [] : [command], result: matched };
  });
}

/** How many keys these read by; null where one of them has to look for its documents. */
function keysOf(statements: readonly StoredObject[]): number | null {
  return statements.every((statement) => {
    const filter = statement.get('q');
    return isObject(filter) && isById(filter);
  })
    ? statements.length
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

function checkMembers(statement: StoredObject, known: ReadonlySet<string>, command: string): void {
  for (const [name, bsonValue] of statement) {
    if (!known.has(name)) throw mongoRefusals.unknownField(command, name);
    if ((name === 'collation' || name === 'arrayFilters' || name === 'c') && bsonValue !== null)
      throw mongoRefusals.notSupported(`${command} with ${name}`);
  }
}

function filterIn(statement: StoredObject, command: string): StoredObject {
  const q = statement.get('q');
  if (q === undefined) throw mongoRefusals.missing(`${command}.q`);
  if (!isObject(q)) throw mongoRefusals.wrongType(`${command}.q`, 'an object');
  return q;
}

/** Runs statement after statement; an error is of its statement, and ends an ordered command. */
async function each(
  context: DocumentCommandContext,
  statements: readonly StoredObject[],
  run: (statement: StoredObject, index: number) => Promise<void>,
): Promise<WriteError[]> {
  const errors: WriteError[] = [];
  const ordered = context.flag('ordered') !== false;
  for (const [index, statement] of statements.entries()) {
    try {
      await run(statement, index);
    } catch (error) {
      // Errors that concern the caller end the command; others are reported for their statement.
      if (!(error instanceof ServiceError) || !ofStatement.has(error.kind)) throw error;
      errors.push(writeError(index, error));
      if (ordered) break;
    }
  }
  return errors;
}

const ofStatement: ReadonlySet<ServiceError['kind']> = new Set(['invalid', 'conflict', 'unprocessable', 'unimplemented']);

async function update(context: DocumentCommandContext): Promise<WritableObject> {
  const statements = context.objects('updates');
  checkBatch(statements, 'statements');
  return context.write(keysOf(statements), 'ingest', async (reading) => {
    let n = 0;
    let nModified = 0;
    const upserted: WritableObject[] = [];
    const errors = await each(context, statements, async (statement, index) => {
      checkMembers(statement, updateMembers, 'update.updates');
      const by = statement.get('u');
      if (by === undefined) throw mongoRefusals.missing('update.updates.u');
      const multi = flagOf(statement.get('multi'), 'update.updates.multi') === true;
      if (multi && isReplacement(by)) throw new DocumentRefusal(9, 'multi update is not supported for replacement-style update');
      const done = await change(context, reading, {
        filter: filterIn(statement, 'update.updates'),
        multi,
        upsert: flagOf(statement.get('upsert'), 'update.updates.upsert') === true,
        update: await inTurns(updateOf(by), context.connectionCaller.parts.yieldTurn),
        inOrder: sortOf(statement.get('sort')),
      });
      n += done.matched.length + (done.upserted === null ? 0 : 1);
      nModified += done.modified;
      if (done.upserted !== null) upserted.push({ index, _id: done.upserted.get('_id')! });
    });
    return {
      n,
      nModified,
      ...(upserted.length > 0 && { upserted }),
      ...(errors.length > 0 && { writeErrors: errors }),
      ok: 1,
    };
  });
}

async function remove(context: DocumentCommandContext): Promise<WritableObject> {
  const statements = context.objects('deletes');
  checkBatch(statements, 'statements');
  return context.write(keysOf(statements), 'delete', async (reading) => {
    let n = 0;
    const errors = await each(context, statements, async (statement) => {
      checkMembers(statement, deleteMembers, 'delete.deletes');
      const given = statement.get('limit');
      if (given === undefined) throw mongoRefusals.missing('delete.deletes.limit');
      const limit = isNumeric(given) ? toWhole(given) : null;
      if (limit !== 0n && limit !== 1n) throw new DocumentRefusal(9, 'The limit field in delete objects must be 0 or 1');
      n += (await end(context, reading, { filter: filterIn(statement, 'delete.deletes'), multi: limit === 0n })).length;
    });
    return { n, ...(errors.length > 0 && { writeErrors: errors }), ok: 1 };
  });
}

async function findAndModify(context: DocumentCommandContext): Promise<WritableObject> {
  const { command } = context;
  for (const name of ['collation', 'arrayFilters', 'let'])
    if (command.has(name)) throw mongoRefusals.notSupported(`findAndModify with ${name}`);
  const filter = context.object('query') ?? new Map();
  const inOrder = sortOf(context.object('sort'));
  const { yieldTurn } = context.connectionCaller.parts;
  const project = await inTurns(projectionOf(context.object('fields')), yieldTurn);
  const by = command.get('update');
  const isNew = context.flag('new') === true;
  const upsert = context.flag('upsert') === true;
  if (context.flag('remove') === true) {
    if (by !== undefined) throw new DocumentRefusal(9, 'Cannot specify both an update and remove=true');
    if (upsert) throw new DocumentRefusal(9, 'Cannot specify both upsert=true and remove=true');
    if (isNew)
      throw new DocumentRefusal(9, "Cannot specify both new=true and remove=true; 'remove' always returns the deleted document");
    return context.write(isById(filter) ? 1 : null, 'delete', async (reading) => {
      const [ended] = await end(context, reading, { filter, multi: false, inOrder });
      const [value = null] = ended
        ? await encodeAll([await inTurns(project(ended.document), reading.yieldTurn)], reading.yieldTurn)
        : [];
      return { lastErrorObject: { n: ended ? 1 : 0 }, value, ok: 1 };
    });
  }
  if (by === undefined) throw new DocumentRefusal(9, 'Either an update or remove=true must be specified');
  const update = await inTurns(updateOf(by), yieldTurn);
  return context.write(isById(filter) ? 1 : null, 'ingest', async (reading) => {
    const {
      matched,
      writtenDocuments: made,
      upserted,
    } = await change(context, reading, { filter, multi: false, upsert, update, inOrder });
    const before = matched[0]?.document ?? null;
    const returnedDocument = isNew ? (upserted ?? made[0] ?? null) : before;
    const [value = null] =
      returnedDocument === null
        ? []
        : await encodeAll([await inTurns(project(returnedDocument), reading.yieldTurn)], reading.yieldTurn);
    return {
      lastErrorObject: {
        n: before === null && upserted === null ? 0 : 1,
        updatedExisting: before !== null,
        ...(upserted !== null && { upserted: upserted.get('_id')! }),
      },
      value,
      ok: 1,
    };
  });
}

const modifyMembers = 'query sort remove update new upsert fields collation arrayFilters let';

export const writeCommands: Readonly<Record<string, DocumentCommandRow>> = {
  insert: { cost: ofDocuments, takes: ['documents', 'ordered'], run: insert },
  update: { cost: ofDocuments, takes: ['updates', 'ordered', 'let'], run: update },
  delete: { cost: ofDocuments, takes: ['deletes', 'ordered', 'let'], run: remove },
  findAndModify: { cost: ofDocuments, takes: modifyMembers.split(' '), run: findAndModify },
};

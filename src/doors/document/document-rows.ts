/** Documents as rows of DocumentEntry: reads them by key or by filter, and writes them by commands of the gate. */
import { type ErrorCode, ServiceError } from '../../errors.ts';
import type { Invocation } from '../../governance/gate-contract.ts';
import type { NamedColumn } from '../../log/values/columns.ts';
import { type Cell, type ColumnType, limits, systemColumns } from '../../log/values/value.ts';
import { cellAt, VectorBuilder } from '../../log/values/vector-builder.ts';
import { compileFilter, type Filter, isOperators } from '../../planner/expressions/documents/document-filter.ts';
import { inTurns } from '../../planner/expressions/resumable-steps.ts';
import { readSteps, readText, textOf } from '../../planner/expressions/documents/document-json.ts';
import { eachInTurns, type YieldTurn } from '../../planner/expressions/documents/filter-turns.ts';
import {
  compareNumbers,
  doubleValue,
  isNumeric,
  numberIdentity,
  toNumber,
  toWhole,
} from '../../planner/expressions/documents/document-numbers.ts';
import {
  asSpecial,
  Decimal,
  isList,
  isObject,
  kindOf,
  Special,
  type Stored,
  type StoredObject,
} from '../../planner/expressions/documents/document-values.ts';
import { work } from '../../planner/expressions/expression-cost.ts';
import type { Answer, PlannerDoor } from '../../planner/planner-contract.ts';
import type { DefaultTime } from '../../planner/syntax/statement.ts';
import type { Outcome, PutRows, WriteCondition } from '../../projections/command.ts';
import type { Terms } from '../shared/session-terms.ts';
import { quote } from '../verbs/verb-rows.ts';
import { DocumentRefusal } from './errors.ts';

export const entryType = 'DocumentEntry';
/** Collections of this database are the types, their documents the rows; read only. */
export const typesDatabase = 'types';
/** Texts of documents that one command may hold at once. */
const documentTextBytesMax = 64 << 20;

export interface Namespace {
  readonly database: string;
  readonly collection: string;
}

export interface MatchedDocument {
  readonly key: string;
  readonly document: StoredObject;
  /** Whether it is of the caller's own path: others are read, and not written. */
  readonly own: boolean;
}

export interface DocumentQuery extends Namespace {
  readonly filter: StoredObject;
  readonly time: DefaultTime;
  /** Any so many documents are enough. */
  readonly most?: number | undefined;
}

export interface DocumentReading {
  readonly planner: Pick<PlannerDoor, 'lookUpMany' | 'turns' | 'query'>;
  readonly invocation: Invocation;
  readonly terms: Terms;
  readonly signal: AbortSignal;
  /** Lets others have their turn; throws once it has taken as long as a question may, or the caller went away. */
  readonly yieldTurn: () => Promise<void>;
  keep(answer: Answer): void;
}

/** Texts stand as they are, unless they look like another value; all else as it is stored. Equal numbers are one key. */
export function keyOf({ database: namespaceDatabase, collection: namespaceCollection }: Namespace, documentId: Stored): string {
  const documentKey = `${namespaceDatabase}.${namespaceCollection}/${documentIdText(documentId)}`;
  if (Buffer.byteLength(documentKey) > limits.keyBytes)
    throw new DocumentRefusal(2, `an _id and the name of its collection have at most ${limits.keyBytes} bytes together`);
  return documentKey;
}

function documentIdText(documentId: Stored): string {
  if (typeof documentId === 'string') return looksLikeOtherType.test(documentId) ? JSON.stringify(documentId) : documentId;
  if (isUnusableId(documentId)) throw new DocumentRefusal(53, `The '_id' value cannot be of type ${kindOf(documentId)}`);
  return isNumeric(documentId) ? numberIdentity(documentId) : textOf(normalizedId(documentId));
}

const isUnusableId = (documentId: Stored): boolean =>
  isList(documentId) || kindOf(documentId) === 'regex' || asSpecial(documentId, '$undefined') !== null;

/** Equal values as one: their numbers of one type. */
function normalizedId(bsonValue: Stored): Stored {
  if (isList(bsonValue)) return bsonValue.map(normalizedId);
  if (isObject(bsonValue))
    return new Map([...bsonValue].map(([idFieldName, idFieldValue]) => [idFieldName, normalizedId(idFieldValue)]));
  if (!isNumeric(bsonValue)) return bsonValue;
  const wholeNumber = toWhole(bsonValue);
  if (wholeNumber !== null && wholeNumber === BigInt.asIntN(32, wholeNumber)) return Number(wholeNumber);
  if (wholeNumber !== null && wholeNumber === BigInt.asIntN(64, wholeNumber)) return wholeNumber;
  const nearestDouble = doubleValue(toNumber(bsonValue));
  return compareNumbers(nearestDouble, bsonValue) === 0 ? nearestDouble : Decimal.parse(numberIdentity(bsonValue))!;
}

const looksLikeOtherType = /^$|^["{[]|^-?\d[\d.eE+-]*$|^(null|true|false|NaN|-?Infinity)$/;

function documentIdOf({ database: namespaceDatabase, collection: namespaceCollection }: Namespace, documentKey: string): Stored {
  const documentIdTail = documentKey.slice(`${namespaceDatabase}.${namespaceCollection}/`.length);
  if (!looksLikeOtherType.test(documentIdTail)) return documentIdTail;
  try {
    return readText(documentIdTail);
  } catch {
    return documentIdTail;
  }
}

/** The _ids to which a filter restricts documents; null: it names none. */
export function idsIn(documentFilter: StoredObject): readonly Stored[] | null {
  const idCondition = documentFilter.get('_id');
  if (idCondition === undefined) return null;
  const soleId = isOperators(idCondition) ? idCondition.get('$eq') : idCondition;
  if (soleId !== undefined) return isUnusableId(soleId) ? null : [soleId];
  const inIds = (idCondition as StoredObject).get('$in');
  return !isList(inIds) || inIds.some(isUnusableId) ? null : inIds;
}

export function isById(documentFilter: StoredObject): boolean {
  return documentFilter.size === 1 && idsIn(documentFilter) !== null;
}

const documentColumns = ['_pk', 'document', 'namespace_path'] as const;

export async function findDocuments(reading: DocumentReading, documentQuery: DocumentQuery): Promise<MatchedDocument[]> {
  const fits = compileFilter(documentQuery.filter);
  if (documentQuery.database === typesDatabase) return findTypeRows(reading, documentQuery, fits);
  const { planner, invocation } = reading;
  const ids = idsIn(documentQuery.filter);
  if (ids !== null) {
    const keys = [...new Set(ids.map((id) => keyOf(documentQuery, id)))];
    const answer = await planner.lookUpMany(
      invocation,
      { type: entryType, keys, columns: documentColumns, time: documentQuery.time },
      reading.signal,
    );
    reading.keep(answer);
    const matchedDocuments = await parseDocuments(reading, answer, documentQuery);
    return fittingDocuments(reading, onePerDocumentKey(matchedDocuments), fits);
  }
  const parameters: (string | bigint)[] = [documentQuery.database, documentQuery.collection];
  let sql = 'SELECT _pk, document, namespace_path FROM DocumentEntry WHERE database = $1 AND collection = $2';
  if (documentQuery.filter.size > 0) {
    parameters.push(textOf(documentQuery.filter));
    sql += ` AND DOCUMENT_MATCHES(document, $${parameters.length})`;
  }
  if (documentQuery.most !== undefined) {
    parameters.push(BigInt(documentQuery.most));
    sql += ` LIMIT $${parameters.length}`;
  }
  const answer = await askDocuments(reading, { sql, parameters, time: documentQuery.time });
  return onePerDocumentKey(await parseDocuments(reading, answer, documentQuery));
}

async function askDocuments(
  documentReading: DocumentReading,
  {
    sql: documentsSql,
    parameters: documentsParameters,
    time: readTime,
  }: { sql: string; parameters: readonly (string | bigint)[]; time: DefaultTime },
): Promise<Answer> {
  const documentsAnswer = await documentReading.planner.query(documentReading.invocation, {
    sql: documentsSql,
    ...(documentsParameters.length > 0 && { parameters: documentsParameters }),
    time: readTime,
    dialect: 'wide',
    purpose: documentReading.terms.purpose,
    signal: documentReading.signal,
  });
  documentReading.keep(documentsAnswer);
  return documentsAnswer;
}

async function fittingDocuments(
  { yieldTurn }: DocumentReading,
  matchedDocuments: readonly MatchedDocument[],
  fitsFilter: Filter,
): Promise<MatchedDocument[]> {
  const fittingFound: MatchedDocument[] = [];
  await eachInTurns(matchedDocuments, yieldTurn, (foundDocument) => {
    if (fitsFilter(foundDocument.document)) fittingFound.push(foundDocument);
  });
  return fittingFound;
}

/** Where several organisations have one key: the caller's own row, else the one that was written last. */
function onePerDocumentKey(matchedDocuments: readonly MatchedDocument[]): MatchedDocument[] {
  const foundByKey = new Map<string, MatchedDocument>();
  for (const foundDocument of matchedDocuments)
    if (foundByKey.get(foundDocument.key)?.own !== true || foundDocument.own) foundByKey.set(foundDocument.key, foundDocument);
  return foundByKey.size === matchedDocuments.length ? [...matchedDocuments] : [...foundByKey.values()];
}

/** Texts of so many characters are read in one turn: full of short members, they take 40 ns a character. */
const documentTextPerTurn = 64 << 10;

async function parseDocuments(
  { invocation, yieldTurn }: DocumentReading,
  documentsAnswer: Answer,
  namespace: Namespace,
): Promise<MatchedDocument[]> {
  const { path: callerPath } = invocation.caller;
  const matchedDocuments: MatchedDocument[] = [];
  let heldTextBytes = 0;
  let turnTextLeft = documentTextPerTurn;
  for (const { columns: documentVectors, selection, first, count: batchRowCount } of documentsAnswer.batches) {
    for (let i = 0; i < batchRowCount; i++) {
      const documentRow = selection === null ? first + i : selection[i]!;
      const documentKey = cellAt(documentVectors[0]!, 'string', documentRow) as string;
      const documentText = cellAt(documentVectors[1]!, 'json', documentRow) as string | null;
      heldTextBytes += documentText?.length ?? 0;
      if (heldTextBytes > documentTextBytesMax) throw documentsTooLarge();
      turnTextLeft -= (documentText?.length ?? 0) + 64;
      if (turnTextLeft <= 0) {
        await yieldTurn();
        turnTextLeft = documentTextPerTurn;
      }
      const storedDocument = parseStoredDocument(documentText, { namespace, key: documentKey, yieldTurn });
      const bsonDocument = storedDocument instanceof Promise ? await storedDocument : storedDocument;
      matchedDocuments.push({
        key: documentKey,
        document: bsonDocument,
        own: cellAt(documentVectors[2]!, 'string', documentRow) === callerPath,
      });
    }
  }
  return matchedDocuments;
}

const documentsTooLarge = (): DocumentRefusal =>
  new DocumentRefusal(
    292,
    `a command holds at most ${documentTextBytesMax >> 20} MiB of documents: ask for fewer`,
    'REL_MEMORY_CAP',
  );

/** A masked document is shown as its mask has it. */
function parseStoredDocument(
  documentText: string | null,
  {
    namespace,
    key: documentKey,
    yieldTurn,
  }: { readonly namespace: Namespace; readonly key: string } & Pick<DocumentReading, 'yieldTurn'>,
): Promise<StoredObject> | StoredObject {
  const withId = (bsonValue: Stored | undefined): StoredObject => {
    if (!isObject(bsonValue))
      return new Map([
        ['_id', documentIdOf(namespace, documentKey)],
        ...(bsonValue === undefined ? [] : [['document', bsonValue] as const]),
      ]);
    return bsonValue.has('_id') ? bsonValue : new Map([['_id', documentIdOf(namespace, documentKey)], ...bsonValue]);
  };
  if (documentText === null) return withId(undefined);
  if (documentText.length > documentTextPerTurn)
    return inTurns(readSteps(documentText), yieldTurn).then(withId, () => withId(documentText));
  try {
    return withId(readText(documentText));
  } catch {
    return withId(documentText);
  }
}

/** Nanoseconds in which a cell becomes a value. */
const typeCellCost = 200;

function* answerRowsIn({ batches }: Answer): Generator<readonly [Answer['batches'][number]['columns'], number]> {
  for (const { columns: answerVectors, selection, first, count: batchRowCount } of batches)
    for (let i = 0; i < batchRowCount; i++) yield [answerVectors, selection === null ? first + i : selection[i]!];
}

/** Rows of a type: `_id` is the key, and all columns that the caller sees. */
async function findTypeRows(
  documentReading: DocumentReading,
  { collection: typeName, filter: typeFilter, time, most: rowsMax }: DocumentQuery,
  fitsFilter: Filter,
): Promise<MatchedDocument[]> {
  const { planner, invocation } = documentReading;
  const wantedIds = idsIn(typeFilter);
  let typeAnswer: Answer;
  if (wantedIds !== null) {
    const wantedKeys = [...new Set(wantedIds.filter((wantedId) => typeof wantedId === 'string'))];
    typeAnswer = await planner.lookUpMany(
      invocation,
      { type: typeName, keys: wantedKeys, columns: null, time },
      documentReading.signal,
    );
    documentReading.keep(typeAnswer);
  } else {
    const isUnfiltered = rowsMax !== undefined && typeFilter.size === 0;
    const typeSql = `SELECT * FROM ${quote(typeName)}${isUnfiltered ? ' LIMIT $1' : ''}`;
    typeAnswer = await askDocuments(documentReading, { sql: typeSql, parameters: isUnfiltered ? [BigInt(rowsMax)] : [], time });
  }
  const matchedDocuments: MatchedDocument[] = [];
  const typeColumns = typeAnswer.columns.map(({ name: columnName }) => columnName);
  await eachInTurns(answerRowsIn(typeAnswer), documentReading.yieldTurn, ([typeVectors, typeRow]) => {
    const typeCells = typeAnswer.columns.map(({ name: columnName, type: columnType }, columnIndex): [string, Stored] => [
      columnName,
      storedCellValue(cellAt(typeVectors[columnIndex]!, columnType, typeRow), columnType, columnName),
    ]);
    const typeRowKey = typeCells[typeColumns.indexOf('_pk')]![1] as string;
    const visibleCells = typeCells.filter(([columnName, bsonValue]) => bsonValue !== null && columnName !== '_pk');
    const bsonDocument: StoredObject = new Map([['_id', typeRowKey], ...visibleCells]);
    const isOwnRow = typeCells[typeColumns.indexOf('namespace_path')]![1] === invocation.caller.path;
    if (fitsFilter(bsonDocument))
      matchedDocuments.push({ key: `${typeRowKey}\0${matchedDocuments.length}`, document: bsonDocument, own: isOwnRow });
    work.done += typeCells.length * typeCellCost;
  });
  return wantedIds === null
    ? matchedDocuments
    : onePerDocumentKey(matchedDocuments.map((foundRow) => ({ ...foundRow, key: foundRow.document.get('_id') as string })));
}

/** The instants of the system are nanoseconds; others are dates, which have milliseconds. */
function storedCellValue(typeCell: Cell, columnType: ColumnType, columnName: string): Stored {
  if (typeCell === null || typeof typeCell === 'boolean') return typeCell;
  if (typeof typeCell === 'number') return doubleValue(typeCell);
  if (typeCell instanceof Float32Array) return Array.from(typeCell, doubleValue);
  if (typeof typeCell === 'bigint') {
    if (columnType === 'timestamp' && !Object.hasOwn(systemColumns, columnName))
      return new Special('$date', typeCell / 1_000_000n);
    return columnType === 'integer' && typeCell === BigInt.asIntN(32, typeCell) ? Number(typeCell) : typeCell;
  }
  if (columnType !== 'json') return typeCell;
  try {
    return readText(typeCell);
  } catch {
    return typeCell;
  }
}

/** Names of the collections of a database, or of all databases. */
export async function namesIn(
  documentReading: DocumentReading,
  namedDatabase: string | null,
  time: DefaultTime,
): Promise<string[]> {
  if (namedDatabase === typesDatabase) {
    const typesSnapshot = documentReading.invocation.snapshot();
    return typesSnapshot.catalog
      .types()
      .flatMap(({ name: offeredType }) => (typesSnapshot.offers(offeredType) ? [offeredType] : []));
  }
  const namesAnswer = await askDocuments(documentReading, {
    sql:
      namedDatabase === null
        ? 'SELECT DISTINCT database AS name FROM DocumentEntry WHERE database IS NOT NULL ORDER BY name'
        : 'SELECT DISTINCT collection AS name FROM DocumentEntry WHERE database = $1 AND collection IS NOT NULL ORDER BY name',
    parameters: namedDatabase === null ? [] : [namedDatabase],
    time,
  });
  return namesAnswer.batches.flatMap(({ columns: nameVectors, selection, first, count: batchRowCount }) =>
    Array.from(
      { length: batchRowCount },
      (_, i) => cellAt(nameVectors[0]!, 'string', selection === null ? first + i : selection[i]!) as string,
    ),
  );
}

const documentOwnerColumns = ['_pk', 'namespace_path'] as const;

/** Keys of these that the caller's path holds already. */
export async function presentKeys(
  planner: Pick<PlannerDoor, 'lookUpMany'>,
  invocation: Invocation,
  documentKeys: readonly string[],
): Promise<Set<string>> {
  const { batches } = await planner.lookUpMany(invocation, {
    type: entryType,
    keys: documentKeys,
    columns: documentOwnerColumns,
  });
  const presentDocumentKeys = new Set<string>();
  for (const { columns: ownerVectors, count: ownerCount } of batches)
    for (let i = 0; i < ownerCount; i++)
      if (cellAt(ownerVectors[1]!, 'string', i) === invocation.caller.path)
        presentDocumentKeys.add(cellAt(ownerVectors[0]!, 'string', i) as string);
  return presentDocumentKeys;
}

export interface Written {
  readonly key: string;
  /** The document, as JSON. */
  readonly text: string;
}

export interface WriteTerms {
  readonly when: WriteCondition;
  readonly door: string;
  /** The write depends on documents that were read. */
  readonly changes: boolean;
}

/** Nanoseconds in which a character becomes one of a column. */
const documentCharacterCost = 2;

/** Writes all documents or none. Other cells of their rows stay. */
export async function putCommand(
  namespace: Namespace,
  writtenDocuments: readonly Written[],
  { when, door: doorName, changes: isUpdate }: WriteTerms,
  yieldTurn: YieldTurn,
): Promise<PutRows> {
  const column = async (
    columnName: string,
    columnType: ColumnType,
    cellText: (writtenDocument: Written) => string,
  ): Promise<NamedColumn> => {
    const columnBuilder = new VectorBuilder(columnType, writtenDocuments.length);
    await eachInTurns(writtenDocuments, yieldTurn, (writtenDocument) => {
      const cellContent = cellText(writtenDocument);
      columnBuilder.appendString(cellContent);
      work.done += cellContent.length * documentCharacterCost;
    });
    return { name: columnName, type: columnType, vector: columnBuilder.build() };
  };
  const putColumns = [await column('_pk', 'string', ({ key }) => key), await column('document', 'json', ({ text }) => text)];
  if (!isUpdate)
    putColumns.push(
      await column('database', 'string', () => namespace.database),
      await column('collection', 'string', () => namespace.collection),
    );
  return {
    kind: 'put-rows',
    type: entryType,
    rows: { length: writtenDocuments.length, columns: putColumns },
    atomic: true,
    createType: false,
    provenance: { source: doorName, method: isUpdate ? 'update' : 'insert', confidence: 1, derivedFrom: null },
    idsMax: 0,
    when,
    ...(isUpdate && { patch: new Map(), computedFrom: ['document'] }),
  };
}

export function refuseFirst({ errors: rowErrors }: Pick<Outcome, 'errors'>): void {
  const [refusedRow] = rowErrors;
  if (refusedRow !== undefined) throw new ServiceError(refusedRow.code as ErrorCode, refusedRow.detail);
}

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
const heldBytesMax = 64 << 20;

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
export function keyOf({ database, collection }: Namespace, id: Stored): string {
  const key = `${database}.${collection}/${idText(id)}`;
  if (Buffer.byteLength(key) > limits.keyBytes)
    throw new DocumentRefusal(2, `an _id and the name of its collection have at most ${limits.keyBytes} bytes together`);
  return key;
}

function idText(id: Stored): string {
  if (typeof id === 'string') return looksOther.test(id) ? JSON.stringify(id) : id;
  if (isNoId(id)) throw new DocumentRefusal(53, `The '_id' value cannot be of type ${kindOf(id)}`);
  return isNumeric(id) ? numberIdentity(id) : textOf(alike(id));
}

const isNoId = (id: Stored): boolean => isList(id) || kindOf(id) === 'regex' || asSpecial(id, '$undefined') !== null;

/** Equal values as one: their numbers of one type. */
function alike(bsonValue: Stored): Stored {
  if (isList(bsonValue)) return bsonValue.map(alike);
  if (isObject(bsonValue)) return new Map([...bsonValue].map(([name, inner]) => [name, alike(inner)]));
  if (!isNumeric(bsonValue)) return bsonValue;
  const whole = toWhole(bsonValue);
  if (whole !== null && whole === BigInt.asIntN(32, whole)) return Number(whole);
  if (whole !== null && whole === BigInt.asIntN(64, whole)) return whole;
  const nearest = doubleValue(toNumber(bsonValue));
  return compareNumbers(nearest, bsonValue) === 0 ? nearest : Decimal.parse(numberIdentity(bsonValue))!;
}

const looksOther = /^$|^["{[]|^-?\d[\d.eE+-]*$|^(null|true|false|NaN|-?Infinity)$/;

function idOf({ database, collection }: Namespace, key: string): Stored {
  const text = key.slice(`${database}.${collection}/`.length);
  if (!looksOther.test(text)) return text;
  try {
    return readText(text);
  } catch {
    return text;
  }
}

/** The _ids to which a filter restricts documents; null: it names none. */
export function idsIn(filter: StoredObject): readonly Stored[] | null {
  const id = filter.get('_id');
  if (id === undefined) return null;
  const one = isOperators(id) ? id.get('$eq') : id;
  if (one !== undefined) return isNoId(one) ? null : [one];
  const several = (id as StoredObject).get('$in');
  return !isList(several) || several.some(isNoId) ? null : several;
}

export function isById(filter: StoredObject): boolean {
  return filter.size === 1 && idsIn(filter) !== null;
}

const columns = ['_pk', 'document', 'namespace_path'] as const;

export async function findDocuments(reading: DocumentReading, documentQuery: DocumentQuery): Promise<MatchedDocument[]> {
  const fits = compileFilter(documentQuery.filter);
  if (documentQuery.database === typesDatabase) return rowsOfType(reading, documentQuery, fits);
  const { planner, invocation } = reading;
  const ids = idsIn(documentQuery.filter);
  if (ids !== null) {
    const keys = [...new Set(ids.map((id) => keyOf(documentQuery, id)))];
    const answer = await planner.lookUpMany(
      invocation,
      { type: entryType, keys, columns, time: documentQuery.time },
      reading.signal,
    );
    reading.keep(answer);
    const matchedDocuments = await documentsOf(reading, answer, documentQuery);
    return fitting(reading, oneOfEach(matchedDocuments), fits);
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
  const answer = await ask(reading, { sql, parameters, time: documentQuery.time });
  return oneOfEach(await documentsOf(reading, answer, documentQuery));
}

async function ask(
  reading: DocumentReading,
  { sql, parameters, time }: { sql: string; parameters: readonly (string | bigint)[]; time: DefaultTime },
): Promise<Answer> {
  const answer = await reading.planner.query(reading.invocation, {
    sql,
    ...(parameters.length > 0 && { parameters }),
    time,
    dialect: 'wide',
    purpose: reading.terms.purpose,
    signal: reading.signal,
  });
  reading.keep(answer);
  return answer;
}

async function fitting(
  { yieldTurn }: DocumentReading,
  matchedDocuments: readonly MatchedDocument[],
  fits: Filter,
): Promise<MatchedDocument[]> {
  const those: MatchedDocument[] = [];
  await eachInTurns(matchedDocuments, yieldTurn, (each) => {
    if (fits(each.document)) those.push(each);
  });
  return those;
}

/** Where several organisations have one key: the caller's own row, else the one that was written last. */
function oneOfEach(matchedDocuments: readonly MatchedDocument[]): MatchedDocument[] {
  const byKey = new Map<string, MatchedDocument>();
  for (const each of matchedDocuments) if (byKey.get(each.key)?.own !== true || each.own) byKey.set(each.key, each);
  return byKey.size === matchedDocuments.length ? [...matchedDocuments] : [...byKey.values()];
}

/** Texts of so many characters are read in one turn: full of short members, they take 40 ns a character. */
const textPerTurn = 64 << 10;

async function documentsOf(
  { invocation, yieldTurn }: DocumentReading,
  answer: Answer,
  namespace: Namespace,
): Promise<MatchedDocument[]> {
  const { path } = invocation.caller;
  const matchedDocuments: MatchedDocument[] = [];
  let held = 0;
  let turn = textPerTurn;
  for (const { columns: vectors, selection, first, count } of answer.batches) {
    for (let i = 0; i < count; i++) {
      const at = selection === null ? first + i : selection[i]!;
      const key = cellAt(vectors[0]!, 'string', at) as string;
      const text = cellAt(vectors[1]!, 'json', at) as string | null;
      held += text?.length ?? 0;
      if (held > heldBytesMax) throw tooMuch();
      turn -= (text?.length ?? 0) + 64;
      if (turn <= 0) {
        await yieldTurn();
        turn = textPerTurn;
      }
      const read = parseStored(text, { namespace, key, yieldTurn });
      const bsonDocument = read instanceof Promise ? await read : read;
      matchedDocuments.push({ key, document: bsonDocument, own: cellAt(vectors[2]!, 'string', at) === path });
    }
  }
  return matchedDocuments;
}

const tooMuch = (): DocumentRefusal =>
  new DocumentRefusal(292, `a command holds at most ${heldBytesMax >> 20} MiB of documents: ask for fewer`, 'REL_MEMORY_CAP');

/** A masked document is shown as its mask has it. */
function parseStored(
  text: string | null,
  { namespace, key, yieldTurn }: { readonly namespace: Namespace; readonly key: string } & Pick<DocumentReading, 'yieldTurn'>,
): Promise<StoredObject> | StoredObject {
  const withId = (bsonValue: Stored | undefined): StoredObject => {
    if (!isObject(bsonValue))
      return new Map([['_id', idOf(namespace, key)], ...(bsonValue === undefined ? [] : [['document', bsonValue] as const])]);
    return bsonValue.has('_id') ? bsonValue : new Map([['_id', idOf(namespace, key)], ...bsonValue]);
  };
  if (text === null) return withId(undefined);
  if (text.length > textPerTurn) return inTurns(readSteps(text), yieldTurn).then(withId, () => withId(text));
  try {
    return withId(readText(text));
  } catch {
    return withId(text);
  }
}

/** Nanoseconds in which a cell becomes a value. */
const cellCost = 200;

function* placesIn({ batches }: Answer): Generator<readonly [Answer['batches'][number]['columns'], number]> {
  for (const { columns: vectors, selection, first, count } of batches)
    for (let i = 0; i < count; i++) yield [vectors, selection === null ? first + i : selection[i]!];
}

/** Rows of a type: `_id` is the key, and all columns that the caller sees. */
async function rowsOfType(
  reading: DocumentReading,
  { collection: type, filter, time, most }: DocumentQuery,
  fits: Filter,
): Promise<MatchedDocument[]> {
  const { planner, invocation } = reading;
  const ids = idsIn(filter);
  let answer: Answer;
  if (ids !== null) {
    const keys = [...new Set(ids.filter((id) => typeof id === 'string'))];
    answer = await planner.lookUpMany(invocation, { type, keys, columns: null, time }, reading.signal);
    reading.keep(answer);
  } else {
    const isOpen = most !== undefined && filter.size === 0;
    const sql = `SELECT * FROM ${quote(type)}${isOpen ? ' LIMIT $1' : ''}`;
    answer = await ask(reading, { sql, parameters: isOpen ? [BigInt(most)] : [], time });
  }
  const matchedDocuments: MatchedDocument[] = [];
  const names = answer.columns.map(({ name }) => name);
  await eachInTurns(placesIn(answer), reading.yieldTurn, ([vectors, at]) => {
    const cells = answer.columns.map(({ name, type: of }, n): [string, Stored] => [
      name,
      storedCell(cellAt(vectors[n]!, of, at), of, name),
    ]);
    const key = cells[names.indexOf('_pk')]![1] as string;
    const visibleCells = cells.filter(([name, bsonValue]) => bsonValue !== null && name !== '_pk');
    const bsonDocument: StoredObject = new Map([['_id', key], ...visibleCells]);
    const own = cells[names.indexOf('namespace_path')]![1] === invocation.caller.path;
    if (fits(bsonDocument)) matchedDocuments.push({ key: `${key}\0${matchedDocuments.length}`, document: bsonDocument, own });
    work.done += cells.length * cellCost;
  });
  return ids === null
    ? matchedDocuments
    : oneOfEach(matchedDocuments.map((each) => ({ ...each, key: each.document.get('_id') as string })));
}

/** The instants of the system are nanoseconds; others are dates, which have milliseconds. */
function storedCell(cell: Cell, type: ColumnType, name: string): Stored {
  if (cell === null || typeof cell === 'boolean') return cell;
  if (typeof cell === 'number') return doubleValue(cell);
  if (cell instanceof Float32Array) return Array.from(cell, doubleValue);
  if (typeof cell === 'bigint') {
    if (type === 'timestamp' && !Object.hasOwn(systemColumns, name)) return new Special('$date', cell / 1_000_000n);
    return type === 'integer' && cell === BigInt.asIntN(32, cell) ? Number(cell) : cell;
  }
  if (type !== 'json') return cell;
  try {
    return readText(cell);
  } catch {
    return cell;
  }
}

/** Names of the collections of a database, or of all databases. */
export async function namesIn(reading: DocumentReading, database: string | null, time: DefaultTime): Promise<string[]> {
  if (database === typesDatabase) {
    const snapshot = reading.invocation.snapshot();
    return snapshot.catalog.types().flatMap(({ name }) => (snapshot.offers(name) ? [name] : []));
  }
  const answer = await ask(reading, {
    sql:
      database === null
        ? 'SELECT DISTINCT database AS name FROM DocumentEntry WHERE database IS NOT NULL ORDER BY name'
        : 'SELECT DISTINCT collection AS name FROM DocumentEntry WHERE database = $1 AND collection IS NOT NULL ORDER BY name',
    parameters: database === null ? [] : [database],
    time,
  });
  return answer.batches.flatMap(({ columns: vectors, selection, first, count }) =>
    Array.from(
      { length: count },
      (_, i) => cellAt(vectors[0]!, 'string', selection === null ? first + i : selection[i]!) as string,
    ),
  );
}

const ownerColumns = ['_pk', 'namespace_path'] as const;

/** Keys of these that the caller's path holds already. */
export async function presentKeys(
  planner: Pick<PlannerDoor, 'lookUpMany'>,
  invocation: Invocation,
  keys: readonly string[],
): Promise<Set<string>> {
  const { batches } = await planner.lookUpMany(invocation, { type: entryType, keys, columns: ownerColumns });
  const present = new Set<string>();
  for (const { columns: vectors, count } of batches)
    for (let i = 0; i < count; i++)
      if (cellAt(vectors[1]!, 'string', i) === invocation.caller.path) present.add(cellAt(vectors[0]!, 'string', i) as string);
  return present;
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
const characterCost = 2;

/** Writes all documents or none. Other cells of their rows stay. */
export async function putCommand(
  namespace: Namespace,
  written: readonly Written[],
  { when, door, changes }: WriteTerms,
  yieldTurn: YieldTurn,
): Promise<PutRows> {
  const column = async (name: string, type: ColumnType, cell: (each: Written) => string): Promise<NamedColumn> => {
    const builder = new VectorBuilder(type, written.length);
    await eachInTurns(written, yieldTurn, (each) => {
      const text = cell(each);
      builder.appendString(text);
      work.done += text.length * characterCost;
    });
    return { name, type, vector: builder.build() };
  };
  const placed = [await column('_pk', 'string', ({ key }) => key), await column('document', 'json', ({ text }) => text)];
  if (!changes)
    placed.push(
      await column('database', 'string', () => namespace.database),
      await column('collection', 'string', () => namespace.collection),
    );
  return {
    kind: 'put-rows',
    type: entryType,
    rows: { length: written.length, columns: placed },
    atomic: true,
    createType: false,
    provenance: { source: door, method: changes ? 'update' : 'insert', confidence: 1, derivedFrom: null },
    idsMax: 0,
    when,
    ...(changes && { patch: new Map(), computedFrom: ['document'] }),
  };
}

export function refuseFirst({ errors }: Pick<Outcome, 'errors'>): void {
  const [refused] = errors;
  if (refused !== undefined) throw new ServiceError(refused.code as ErrorCode, refused.detail);
}

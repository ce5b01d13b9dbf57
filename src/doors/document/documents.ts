/** Documents as rows of DocumentEntry: found by key or by filter in the governed snapshot, written as commands of the gate. */
import { type ErrorCode, ServiceError } from '../../errors.ts';
import type { Invocation } from '../../governance/gate-contract.ts';
import type { NamedColumn } from '../../log/columns.ts';
import { type Cell, type ColumnType, limits, systemColumns } from '../../log/value.ts';
import { cellAt, VectorBuilder } from '../../log/vector-builder.ts';
import { compileFilter } from '../../planner/documents/filter.ts';
import { isList, isObject, kindOf, numberOf, type Stored, type StoredObject } from '../../planner/documents/values.ts';
import type { Answer, PlannerDoor } from '../../planner/planner-contract.ts';
import type { DefaultTime } from '../../planner/statement.ts';
import type { Outcome, PutRows, WriteCondition } from '../../projections/command.ts';
import type { Terms } from '../frame/session-terms.ts';
import { quoted } from '../verbs/rows.ts';
import { doubleValue } from './bson.ts';
import { DocumentRefusal } from './errors.ts';

export const entryType = 'DocumentEntry';
/** Collections of this database are the types, their documents the rows; read only. */
export const typesDatabase = 'types';
/** Texts of documents that one command may hold at once. */
const heldBytesMax = 64 << 20;

export interface Place {
  readonly database: string;
  readonly collection: string;
}

export interface Found {
  readonly key: string;
  readonly document: StoredObject;
  /** Whether it is of the caller's own path: others are read, and not written. */
  readonly own: boolean;
}

export interface Wanted extends Place {
  readonly filter: StoredObject;
  readonly time: DefaultTime;
  /** So many are enough, in whatever order. */
  readonly most?: number | undefined;
}

export interface Reading {
  readonly planner: Pick<PlannerDoor, 'lookUp' | 'query'>;
  readonly invocation: Invocation;
  readonly terms: Terms;
  readonly signal: AbortSignal;
  /** Lets others have their turn. */
  readonly yieldTurn: () => Promise<void>;
  keep(answer: Answer): void;
}

/** Texts stand as they are, unless they look like another value; all else as it is stored. Equal numbers are one key. */
export function keyOf({ database, collection }: Place, id: Stored): string {
  const key = `${database}.${collection}/${idText(id)}`;
  if (Buffer.byteLength(key) > limits.keyBytes)
    throw new DocumentRefusal(2, `an _id and the name of its collection have at most ${limits.keyBytes} bytes together`);
  return key;
}

function idText(id: Stored): string {
  if (typeof id === 'string') return looksOther.test(id) ? JSON.stringify(id) : id;
  if (isList(id) || kindOf(id) === 'regex') throw new DocumentRefusal(2, `The '_id' value cannot be of type ${kindOf(id)}`);
  if (kindOf(id) !== 'number') return JSON.stringify(id);
  const number = numberOf(id);
  if (typeof number === 'number' && !Number.isInteger(number)) return String(number);
  return String(BigInt(number));
}

const looksOther = /^$|^["{[]|^-?\d[\d.eE+-]*$|^(null|true|false|NaN|-?Infinity)$/;

function idOf({ database, collection }: Place, key: string): Stored {
  const text = key.slice(`${database}.${collection}/`.length);
  if (!looksOther.test(text)) return text;
  try {
    return JSON.parse(text) as Stored;
  } catch {
    return text;
  }
}

/** Keys of what a filter can mean, where it says so by `_id`; null: it does not. */
function idsIn(filter: StoredObject): readonly Stored[] | null {
  const id = filter['_id'];
  if (id === undefined) return null;
  if (!isObject(id)) return kindOf(id) === 'regex' || isList(id) ? null : [id];
  const names = Object.keys(id);
  if (!names.some((name) => name.startsWith('$'))) return [id];
  const one = id['$eq'];
  if (one !== undefined) return kindOf(one) === 'regex' || isList(one) ? null : [one];
  const several = id['$in'];
  if (!isList(several) || several.some((each) => isList(each) || kindOf(each) === 'regex')) return null;
  return several;
}

export function isById(filter: StoredObject): boolean {
  return Object.keys(filter).length === 1 && idsIn(filter) !== null;
}

const columns = ['_pk', 'document', 'namespace_path'] as const;

export async function find(reading: Reading, wanted: Wanted): Promise<Found[]> {
  if (wanted.database === typesDatabase) return rowsOfType(reading, wanted);
  const { planner, invocation } = reading;
  const ids = idsIn(wanted.filter);
  if (ids !== null) {
    const keys = [...new Set(ids.map((id) => keyOf(wanted, id)))];
    const answer = planner.lookUp(invocation, { type: entryType, keys, columns, time: wanted.time });
    reading.keep(answer);
    const filter = compileFilter(wanted.filter);
    const found = await documentsOf(reading, answer, wanted);
    return oneOfEach(found).filter(({ document }) => filter(document));
  }
  compileFilter(wanted.filter);
  const parameters: (string | bigint)[] = [wanted.database, wanted.collection];
  let sql = 'SELECT _pk, document, namespace_path FROM DocumentEntry WHERE database = $1 AND collection = $2';
  if (Object.keys(wanted.filter).length > 0) {
    parameters.push(JSON.stringify(wanted.filter));
    sql += ` AND DOCUMENT_MATCHES(document, $${parameters.length})`;
  }
  if (wanted.most !== undefined) {
    parameters.push(BigInt(wanted.most));
    sql += ` LIMIT $${parameters.length}`;
  }
  const answer = await ask(reading, { sql, parameters, time: wanted.time });
  return oneOfEach(await documentsOf(reading, answer, wanted));
}

async function ask(
  reading: Reading,
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

/** Where several organisations have one of a key: the caller's own, else the one that was written last. */
function oneOfEach(found: readonly Found[]): Found[] {
  const byKey = new Map<string, Found>();
  for (const each of found) if (byKey.get(each.key)?.own !== true || each.own) byKey.set(each.key, each);
  return byKey.size === found.length ? [...found] : [...byKey.values()];
}

/** So many documents are read, or go through what is done with them, in one turn. */
export const documentsPerTurn = 2_000;

async function documentsOf({ invocation, yieldTurn }: Reading, answer: Answer, place: Place): Promise<Found[]> {
  const { path } = invocation.caller;
  const found: Found[] = [];
  let held = 0;
  for (const { columns: vectors, selection, first, count } of answer.batches) {
    for (let i = 0; i < count; i++) {
      const at = selection === null ? first + i : selection[i]!;
      if (found.length % documentsPerTurn === documentsPerTurn - 1) await yieldTurn();
      const key = cellAt(vectors[0]!, 'string', at) as string;
      const text = cellAt(vectors[1]!, 'json', at) as string | null;
      held += text?.length ?? 0;
      if (held > heldBytesMax) throw tooMuch();
      found.push({ key, document: parsed(text, place, key), own: cellAt(vectors[2]!, 'string', at) === path });
    }
  }
  return found;
}

const tooMuch = (): DocumentRefusal =>
  new DocumentRefusal(292, `a command holds at most ${heldBytesMax >> 20} MiB of documents: ask for fewer`, 'REL_MEMORY_CAP');

/** A masked document is shown as its mask has it. */
function parsed(text: string | null, place: Place, key: string): StoredObject {
  const id = (): Stored => idOf(place, key);
  if (text === null) return { _id: id() };
  let value: Stored;
  try {
    value = JSON.parse(text) as Stored;
  } catch {
    return { _id: id(), document: text };
  }
  if (!isObject(value)) return { _id: id(), document: value };
  return Object.hasOwn(value, '_id') ? value : { _id: id(), ...value };
}

/** Rows of a type: `_id` is the key, and all columns that the caller sees. */
async function rowsOfType(reading: Reading, { collection: type, filter, time, most }: Wanted): Promise<Found[]> {
  const { planner, invocation } = reading;
  const ids = idsIn(filter);
  let answer: Answer;
  if (ids !== null) {
    const keys = [...new Set(ids.filter((id) => typeof id === 'string'))];
    answer = planner.lookUp(invocation, { type, keys, columns: null, time });
    reading.keep(answer);
  } else {
    const isOpen = most !== undefined && Object.keys(filter).length === 0;
    const sql = `SELECT * FROM ${quoted(type)}${isOpen ? ' LIMIT $1' : ''}`;
    answer = await ask(reading, { sql, parameters: isOpen ? [BigInt(most)] : [], time });
  }
  const fits = compileFilter(filter);
  const found: Found[] = [];
  const names = answer.columns.map(({ name }) => name);
  for (const { columns: vectors, selection, first, count } of answer.batches) {
    for (let i = 0; i < count; i++) {
      const at = selection === null ? first + i : selection[i]!;
      const cells = answer.columns.map(({ name, type: of }, n): [string, Stored] => [
        name,
        storedCell(cellAt(vectors[n]!, of, at), of, name),
      ]);
      const key = cells[names.indexOf('_pk')]![1] as string;
      const document = { _id: key, ...Object.fromEntries(cells.filter(([name, value]) => value !== null && name !== '_pk')) };
      const own = cells[names.indexOf('namespace_path')]![1] === invocation.caller.path;
      if (fits(document)) found.push({ key: `${key}\0${found.length}`, document, own });
    }
  }
  return ids === null ? found : oneOfEach(found.map((each) => ({ ...each, key: each.document['_id'] as string })));
}

/** The instants of the system are nanoseconds; others are dates, which have milliseconds. */
function storedCell(cell: Cell, type: ColumnType, name: string): Stored {
  if (cell === null || typeof cell === 'boolean') return cell;
  if (typeof cell === 'number') return doubleValue(cell);
  if (cell instanceof Float32Array) return [...cell].map(doubleValue);
  if (typeof cell === 'bigint') {
    if (type === 'timestamp' && !Object.hasOwn(systemColumns, name)) return { $date: { $numberLong: String(cell / 1_000_000n) } };
    return type === 'integer' && cell === BigInt.asIntN(32, cell) ? Number(cell) : { $numberLong: String(cell) };
  }
  if (type !== 'json') return cell;
  try {
    return JSON.parse(cell) as Stored;
  } catch {
    return cell;
  }
}

/** Names of the collections of a database, or of all databases. */
export async function namesIn(reading: Reading, database: string | null, time: DefaultTime): Promise<string[]> {
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
export function presentKeys(planner: Pick<PlannerDoor, 'lookUp'>, invocation: Invocation, keys: readonly string[]): Set<string> {
  const { batches } = planner.lookUp(invocation, { type: entryType, keys, columns: ownerColumns });
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
  /** What was there decided what is written. */
  readonly changes: boolean;
}

/** All or nothing. What a row holds beside its document stays. */
export function putCommand(place: Place, written: readonly Written[], { when, door, changes }: WriteTerms): PutRows {
  const of = (name: string, type: ColumnType, cell: (each: Written) => string): NamedColumn => {
    const builder = new VectorBuilder(type, written.length);
    for (const each of written) builder.appendString(cell(each));
    return { name, type, vector: builder.build() };
  };
  const made = [of('_pk', 'string', ({ key }) => key), of('document', 'json', ({ text }) => text)];
  const placed = changes
    ? made
    : [...made, of('database', 'string', () => place.database), of('collection', 'string', () => place.collection)];
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

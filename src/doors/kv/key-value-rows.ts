/**
 * Redis keys and values as rows of KvEntry. `value` holds UTF-8, `value_base64` any other bytes. A key expires at its row's `valid_to`,
 * so nothing has to happen then.
 */
import { isUtf8 } from 'node:buffer';
import { type ErrorCode, ServiceError } from '../../errors.ts';
import type { Invocation } from '../../governance/gate-contract.ts';
import type { NamedColumn, Vector } from '../../log/values/columns.ts';
import { FOREVER } from '../../log/values/timestamp.ts';
import { type Cell, type ColumnType, limits, systemColumns } from '../../log/values/value.ts';
import { cellAt, VectorBuilder } from '../../log/values/vector-builder.ts';
import type { Answer, PlannerDoor } from '../../planner/planner-contract.ts';
import type { DefaultTime } from '../../planner/syntax/statement.ts';
import type { Outcome, PutRows, WriteCondition } from '../../projections/command.ts';
import { respRefusals } from './errors.ts';

export const entryType = 'KvEntry';

export interface Entry {
  readonly value: Buffer | string;
  /** Nanoseconds; FOREVER: it does not expire. */
  readonly expires: bigint;
  /** The row's other cells, for a writer that replaces it. */
  readonly others: readonly { readonly name: string; readonly type: ColumnType; readonly cell: Cell }[];
}

export interface Put {
  readonly key: string;
  readonly value: Buffer | string;
  readonly expires?: bigint;
  readonly others?: Entry['others'];
}

const valueColumns = ['_pk', 'value', 'value_base64', 'namespace_path', 'valid_to', 'system_from'] as const;
const columnIndex = { key: 0, value: 1, base64: 2, path: 3, validTo: 4, systemFrom: 5 } as const;

type KvPlanner = Pick<PlannerDoor, 'lookUp' | 'lookUpMany'>;

export function keyOf(respWord: Buffer): string {
  if (respWord.length === 0 || respWord.length > limits.keyBytes || !isUtf8(respWord)) throw respRefusals.keyText();
  return respWord.toString();
}

interface ReadEntries {
  readonly entries: ReadonlyMap<string, Entry>;
  readonly answer: Answer;
}

/** By key. Where several organisations have a key, the caller's own entry, else the one that was written last. */
export function readEntries(
  planner: KvPlanner,
  invocation: Invocation,
  redisKeys: readonly string[],
  readTime: DefaultTime,
): ReadEntries {
  const entriesAnswer = planner.lookUp(invocation, { type: entryType, keys: redisKeys, columns: valueColumns, time: readTime });
  const entryReader = new EntryReader(invocation);
  for (const { columns: entryColumns, count: entryCount } of entriesAnswer.batches)
    for (let entryRow = 0; entryRow < entryCount; entryRow++) entryReader.add(entryColumns, entryRow);
  return { entries: entryReader.entries, answer: entriesAnswer };
}

/** Reads any number of keys, in turns. */
export async function readManyEntries(
  planner: KvPlanner,
  invocation: Invocation,
  redisKeys: readonly string[],
  {
    time,
    signal,
    yieldTurn,
  }: { readonly time: DefaultTime; readonly signal: AbortSignal; readonly yieldTurn: () => Promise<void> },
): Promise<ReadEntries> {
  const lookUpRequest = { type: entryType, keys: [...new Set(redisKeys)], columns: valueColumns, time };
  const entriesAnswer = await planner.lookUpMany(invocation, lookUpRequest, signal);
  const entryReader = new EntryReader(invocation);
  const wordPace = new WordPace(yieldTurn);
  let heldValueBytes = 0;
  for (const { columns: entryColumns, count: entryCount } of entriesAnswer.batches) {
    for (let entryRow = 0; entryRow < entryCount; entryRow++) {
      const valueBytes = entryReader.add(entryColumns, entryRow);
      heldValueBytes += valueBytes;
      if (heldValueBytes > readValuesBytesMax) throw valuesTooLarge();
      const dueTurn = wordPace.did(valueBytes);
      if (dueTurn !== null) await dueTurn;
    }
  }
  return { entries: entryReader.entries, answer: entriesAnswer };
}

/** Values that one command may hold at once. */
const readValuesBytesMax = 64 << 20;
const valuesTooLarge = (): ServiceError =>
  new ServiceError('REL_MEMORY_CAP', `a command reads at most ${readValuesBytesMax >> 20} MiB of values: name fewer keys`);

/** Words, rows and replies that are worked on in one turn. */
export const rowsInTurn = 2_048;
const valueBytesInTurn = 1 << 20;

/** Counts the work on words, rows and replies. */
export class WordPace {
  readonly #yieldAfterWords: () => Promise<void>;
  #wordCount = 0;
  #valueBytes = 0;

  constructor(yieldTurn: () => Promise<void>) {
    this.#yieldAfterWords = yieldTurn;
  }

  /** Counts one more item and its bytes; a promise where others have a turn first. */
  did(valueBytes: number): Promise<void> | null {
    this.#valueBytes += valueBytes;
    if (++this.#wordCount < rowsInTurn && this.#valueBytes < valueBytesInTurn) return null;
    this.#wordCount = this.#valueBytes = 0;
    return this.#yieldAfterWords();
  }
}

class EntryReader {
  readonly entries = new Map<string, Entry>();
  /** By key: whether the chosen row is the caller's own. */
  readonly #ownEntryByKey = new Map<string, boolean>();
  readonly #readInvocation: Invocation;

  constructor(invocation: Invocation) {
    this.#readInvocation = invocation;
  }

  /** Length of its value. */
  add(entryColumns: Answer['batches'][number]['columns'], entryRow: number): number {
    const { path: callerPath } = this.#readInvocation.caller;
    const entryCell = (at: number, columnType: ColumnType): Cell => cellAt(entryColumns[at]!, columnType, entryRow);
    const redisKey = entryCell(columnIndex.key, 'string') as string;
    const isOwnEntry = entryCell(columnIndex.path, 'string') === callerPath;
    // Rows come in the order in which they were written.
    if (this.#ownEntryByKey.get(redisKey) === true && !isOwnEntry) return 0;
    const entryText =
      longValueText(entryColumns[columnIndex.value]!, entryRow) ?? (entryCell(columnIndex.value, 'string') as string | null);
    const entryValue = entryValueOf(this.#readInvocation, entryText, entryCell(columnIndex.base64, 'string') as string | null);
    this.#ownEntryByKey.set(redisKey, isOwnEntry);
    if (entryValue === null) this.entries.delete(redisKey);
    else
      this.entries.set(redisKey, {
        value: entryValue,
        expires: entryCell(columnIndex.validTo, 'timestamp') as bigint,
        others: [],
      });
    return entryValue?.length ?? 0;
  }
}

/** The bytes of a long text: to make a string of them and bytes again would take longer than all else. */
function longValueText(valueVector: Vector, entryRow: number): Buffer | null {
  if ((valueVector.kind !== 'text' && valueVector.kind !== 'dict') || valueVector.nulls?.[entryRow] === 1) return null;
  if (valueVector.kind === 'dict') {
    const dictionaryBytes = valueVector.dictionary.bytesOf?.(valueVector.values[entryRow]!);
    // Copied, since they are moved by the next text that is added.
    return dictionaryBytes === undefined || dictionaryBytes.length <= longTextBytes ? null : Buffer.from(dictionaryBytes);
  }
  const [textStart, textEnd] = [valueVector.offsets[entryRow]!, valueVector.offsets[entryRow + 1]!];
  if (textEnd - textStart <= longTextBytes) return null;
  return Buffer.from(valueVector.heap.buffer, valueVector.heap.byteOffset + textStart, textEnd - textStart);
}

const longTextBytes = 4_096;

const pathColumns = ['_pk', 'namespace_path'] as const;

/** The keys that the caller's own path holds now. */
export async function ownKeys(
  planner: KvPlanner,
  invocation: Invocation,
  redisKeys: readonly string[],
  { signal, yieldTurn }: { readonly signal: AbortSignal; readonly yieldTurn: () => Promise<void> },
): Promise<string[]> {
  const { batches } = await planner.lookUpMany(invocation, { type: entryType, keys: redisKeys, columns: pathColumns }, signal);
  const wordPace = new WordPace(yieldTurn);
  const ownEntryKeys: string[] = [];
  for (const { columns: entryColumns, count: entryCount } of batches) {
    for (let entryRow = 0; entryRow < entryCount; entryRow++) {
      if (cellAt(entryColumns[1]!, 'string', entryRow) === invocation.caller.path)
        ownEntryKeys.push(cellAt(entryColumns[0]!, 'string', entryRow) as string);
      const dueTurn = wordPace.did(0);
      if (dueTurn !== null) await dueTurn;
    }
  }
  return ownEntryKeys;
}

/** The caller's own row with all that it holds, to be written anew. */
export function readOwn(planner: KvPlanner, invocation: Invocation, redisKey: string): { entry: Entry | null; instant: bigint } {
  const ownAnswer = planner.lookUp(invocation, { type: entryType, keys: [redisKey], columns: null });
  const columnIndex = (columnName: string): number => ownAnswer.columns.findIndex((column) => column.name === columnName);
  for (const { columns: entryColumns, count: entryCount } of ownAnswer.batches) {
    for (let entryRow = 0; entryRow < entryCount; entryRow++) {
      const entryCell = (cellColumn: string): Cell => {
        const cellIndex = columnIndex(cellColumn);
        return cellAt(entryColumns[cellIndex]!, ownAnswer.columns[cellIndex]!.type, entryRow);
      };
      if (entryCell('namespace_path') !== invocation.caller.path) continue;
      const entryText = longValueText(entryColumns[columnIndex('value')]!, entryRow) ?? (entryCell('value') as string | null);
      const entryValue = entryValueOf(invocation, entryText, entryCell('value_base64') as string | null);
      if (entryValue === null) throw new ServiceError('REL_MASKED_COLUMN', 'the value is masked: nothing can be written from it');
      const otherCells = ownAnswer.columns.flatMap(({ name, type }) => {
        const isOtherColumn = !Object.hasOwn(systemColumns, name) && name !== 'value' && name !== 'value_base64';
        const otherCell = isOtherColumn ? entryCell(name) : null;
        return otherCell === null ? [] : [{ name, type, cell: otherCell }];
      });
      return {
        entry: { value: entryValue, expires: entryCell('valid_to') as bigint, others: otherCells },
        instant: ownAnswer.asOfSystem,
      };
    }
  }
  return { entry: null, instant: ownAnswer.asOfSystem };
}

/** The value; null: it is masked for the caller. */
function entryValueOf(
  invocation: Invocation,
  textValue: Buffer | string | null,
  base64Value: string | null,
): Buffer | string | null {
  if (textValue !== null) return textValue;
  if (base64Value !== null) return Buffer.from(base64Value, 'base64');
  const maskedColumns = invocation.snapshot().masksOf(entryType);
  if (maskedColumns.has('value') || maskedColumns.has('value_base64')) return null;
  throw respRefusals.wrongType();
}

export interface PutTerms {
  readonly when?: WriteCondition;
  /** The written value depends on the one that was read. */
  readonly fromValue?: boolean;
}

/** Writes all keys or none. A value with an expiry leaves no earlier value to come back after it. */
export function putCommand(entryPuts: readonly Put[], doorName: string, { when, fromValue = false }: PutTerms = {}): PutRows {
  const putColumns = new Map<string, { readonly type: ColumnType; readonly cells: (Cell | Buffer)[] }>();
  const setCell = (cellRow: number, cellColumn: string, type: ColumnType, putCell: Cell | Buffer): void => {
    let putColumn = putColumns.get(cellColumn);
    if (putColumn === undefined)
      putColumns.set(cellColumn, (putColumn = { type, cells: Array<Cell | Buffer>(entryPuts.length).fill(null) }));
    putColumn.cells[cellRow] = putCell;
  };
  for (const [putRow, { key: redisKey, value: entryValue, expires = FOREVER, others = [] }] of entryPuts.entries()) {
    setCell(putRow, '_pk', 'string', redisKey);
    if (typeof entryValue === 'string') setCell(putRow, 'value', 'string', entryValue);
    else if (isUtf8(entryValue)) setCell(putRow, 'value', 'string', entryValue);
    else setCell(putRow, 'value_base64', 'string', entryValue.toString('base64'));
    if (expires !== FOREVER) setCell(putRow, 'valid_to', 'timestamp', expires);
    for (const { name, type, cell } of others) setCell(putRow, name, type, cell);
  }
  const builtColumns = [...putColumns].map(([name, { type, cells }]): NamedColumn => {
    const columnBuilder = new VectorBuilder(type, entryPuts.length);
    for (const cell of cells)
      if (Buffer.isBuffer(cell)) columnBuilder.appendText(cell, 0, cell.length);
      else columnBuilder.append(cell);
    return { name, type, vector: columnBuilder.build() };
  });
  const expires = putColumns.has('valid_to');
  const computedFrom = fromValue ? builtColumns.flatMap(({ name }) => (Object.hasOwn(systemColumns, name) ? [] : [name])) : [];
  return {
    kind: 'put-rows',
    type: entryType,
    rows: { length: entryPuts.length, columns: builtColumns },
    atomic: true,
    createType: false,
    provenance: { source: doorName, method: 'set', confidence: 1, derivedFrom: null },
    idsMax: 0,
    ...(expires && { replace: true }),
    ...(when !== undefined && { when }),
    ...(computedFrom.length > 0 && { computedFrom }),
  };
}

export function refuseFirst({ errors: rowErrors }: Pick<Outcome, 'errors'>): void {
  const [refusedRow] = rowErrors;
  if (refusedRow !== undefined) throw new ServiceError(refusedRow.code as ErrorCode, refusedRow.detail);
}

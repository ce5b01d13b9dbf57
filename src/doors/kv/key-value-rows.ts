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

type Planner = Pick<PlannerDoor, 'lookUp' | 'lookUpMany'>;

export function keyOf(respWord: Buffer): string {
  if (respWord.length === 0 || respWord.length > limits.keyBytes || !isUtf8(respWord)) throw respRefusals.keyText();
  return respWord.toString();
}

interface Entries {
  readonly entries: ReadonlyMap<string, Entry>;
  readonly answer: Answer;
}

/** By key. Where several organisations have a key, the caller's own entry, else the one that was written last. */
export function readEntries(planner: Planner, invocation: Invocation, redisKeys: readonly string[], time: DefaultTime): Entries {
  const answer = planner.lookUp(invocation, { type: entryType, keys: redisKeys, columns: valueColumns, time });
  const read = new EntryReader(invocation);
  for (const { columns, count } of answer.batches) for (let row = 0; row < count; row++) read.add(columns, row);
  return { entries: read.entries, answer };
}

/** Reads any number of keys, in turns. */
export async function readManyEntries(
  planner: Planner,
  invocation: Invocation,
  redisKeys: readonly string[],
  {
    time,
    signal,
    yieldTurn,
  }: { readonly time: DefaultTime; readonly signal: AbortSignal; readonly yieldTurn: () => Promise<void> },
): Promise<Entries> {
  const request = { type: entryType, keys: [...new Set(redisKeys)], columns: valueColumns, time };
  const answer = await planner.lookUpMany(invocation, request, signal);
  const read = new EntryReader(invocation);
  const pace = new WordPace(yieldTurn);
  let held = 0;
  for (const { columns, count } of answer.batches) {
    for (let row = 0; row < count; row++) {
      const bytes = read.add(columns, row);
      held += bytes;
      if (held > heldBytesMax) throw tooMuch();
      const due = pace.did(bytes);
      if (due !== null) await due;
    }
  }
  return { entries: read.entries, answer };
}

/** Values that one command may hold at once. */
const heldBytesMax = 64 << 20;
const tooMuch = (): ServiceError =>
  new ServiceError('REL_MEMORY_CAP', `a command reads at most ${heldBytesMax >> 20} MiB of values: name fewer keys`);

/** Words, rows and replies that are worked on in one turn. */
export const rowsInTurn = 2_048;
const bytesInTurn = 1 << 20;

/** Counts the work on words, rows and replies. */
export class WordPace {
  readonly #yieldTurn: () => Promise<void>;
  #count = 0;
  #bytes = 0;

  constructor(yieldTurn: () => Promise<void>) {
    this.#yieldTurn = yieldTurn;
  }

  /** Counts one more item and its bytes; a promise where others have a turn first. */
  did(bytes: number): Promise<void> | null {
    this.#bytes += bytes;
    if (++this.#count < rowsInTurn && this.#bytes < bytesInTurn) return null;
    this.#count = this.#bytes = 0;
    return this.#yieldTurn();
  }
}

class EntryReader {
  readonly entries = new Map<string, Entry>();
  /** By key: whether the chosen row is the caller's own. */
  readonly #chosen = new Map<string, boolean>();
  readonly #invocation: Invocation;

  constructor(invocation: Invocation) {
    this.#invocation = invocation;
  }

  /** Length of its value. */
  add(columns: Answer['batches'][number]['columns'], row: number): number {
    const { path } = this.#invocation.caller;
    const cell = (at: number, type: ColumnType): Cell => cellAt(columns[at]!, type, row);
    const redisKey = cell(columnIndex.key, 'string') as string;
    const own = cell(columnIndex.path, 'string') === path;
    // Rows come in the order in which they were written.
    if (this.#chosen.get(redisKey) === true && !own) return 0;
    const text = longText(columns[columnIndex.value]!, row) ?? (cell(columnIndex.value, 'string') as string | null);
    const value = valueOf(this.#invocation, text, cell(columnIndex.base64, 'string') as string | null);
    this.#chosen.set(redisKey, own);
    if (value === null) this.entries.delete(redisKey);
    else this.entries.set(redisKey, { value, expires: cell(columnIndex.validTo, 'timestamp') as bigint, others: [] });
    return value?.length ?? 0;
  }
}

/** The bytes of a long text: to make a string of them and bytes again would take longer than all else. */
function longText(vector: Vector, row: number): Buffer | null {
  if ((vector.kind !== 'text' && vector.kind !== 'dict') || vector.nulls?.[row] === 1) return null;
  if (vector.kind === 'dict') {
    const bytes = vector.dictionary.bytesOf?.(vector.values[row]!);
    // Copied, since they are moved by the next text that is added.
    return bytes === undefined || bytes.length <= longTextBytes ? null : Buffer.from(bytes);
  }
  const [start, end] = [vector.offsets[row]!, vector.offsets[row + 1]!];
  if (end - start <= longTextBytes) return null;
  return Buffer.from(vector.heap.buffer, vector.heap.byteOffset + start, end - start);
}

const longTextBytes = 4_096;

const pathColumns = ['_pk', 'namespace_path'] as const;

/** The keys that the caller's own path holds now. */
export async function ownKeys(
  planner: Planner,
  invocation: Invocation,
  redisKeys: readonly string[],
  { signal, yieldTurn }: { readonly signal: AbortSignal; readonly yieldTurn: () => Promise<void> },
): Promise<string[]> {
  const { batches } = await planner.lookUpMany(invocation, { type: entryType, keys: redisKeys, columns: pathColumns }, signal);
  const pace = new WordPace(yieldTurn);
  const own: string[] = [];
  for (const { columns, count } of batches) {
    for (let row = 0; row < count; row++) {
      if (cellAt(columns[1]!, 'string', row) === invocation.caller.path) own.push(cellAt(columns[0]!, 'string', row) as string);
      const due = pace.did(0);
      if (due !== null) await due;
    }
  }
  return own;
}

/** The caller's own row with all that it holds, to be written anew. */
export function readOwn(planner: Planner, invocation: Invocation, redisKey: string): { entry: Entry | null; instant: bigint } {
  const answer = planner.lookUp(invocation, { type: entryType, keys: [redisKey], columns: null });
  const columnIndex = (name: string): number => answer.columns.findIndex((column) => column.name === name);
  for (const { columns, count } of answer.batches) {
    for (let row = 0; row < count; row++) {
      const cell = (name: string): Cell => {
        const number = columnIndex(name);
        return cellAt(columns[number]!, answer.columns[number]!.type, row);
      };
      if (cell('namespace_path') !== invocation.caller.path) continue;
      const text = longText(columns[columnIndex('value')]!, row) ?? (cell('value') as string | null);
      const value = valueOf(invocation, text, cell('value_base64') as string | null);
      if (value === null) throw new ServiceError('REL_MASKED_COLUMN', 'the value is masked: nothing can be written from it');
      const others = answer.columns.flatMap(({ name, type }) => {
        const isOwn = !Object.hasOwn(systemColumns, name) && name !== 'value' && name !== 'value_base64';
        const held = isOwn ? cell(name) : null;
        return held === null ? [] : [{ name, type, cell: held }];
      });
      return { entry: { value, expires: cell('valid_to') as bigint, others }, instant: answer.asOfSystem };
    }
  }
  return { entry: null, instant: answer.asOfSystem };
}

/** The value; null: it is masked for the caller. */
function valueOf(invocation: Invocation, value: Buffer | string | null, base64: string | null): Buffer | string | null {
  if (value !== null) return value;
  if (base64 !== null) return Buffer.from(base64, 'base64');
  const masked = invocation.snapshot().masksOf(entryType);
  if (masked.has('value') || masked.has('value_base64')) return null;
  throw respRefusals.wrongType();
}

export interface PutTerms {
  readonly when?: WriteCondition;
  /** The written value depends on the one that was read. */
  readonly fromValue?: boolean;
}

/** Writes all keys or none. A value with an expiry leaves no earlier value to come back after it. */
export function putCommand(puts: readonly Put[], door: string, { when, fromValue = false }: PutTerms = {}): PutRows {
  const names = new Map<string, { readonly type: ColumnType; readonly cells: (Cell | Buffer)[] }>();
  const set = (row: number, name: string, type: ColumnType, cell: Cell | Buffer): void => {
    let column = names.get(name);
    if (column === undefined) names.set(name, (column = { type, cells: Array<Cell | Buffer>(puts.length).fill(null) }));
    column.cells[row] = cell;
  };
  for (const [row, { key: redisKey, value, expires = FOREVER, others = [] }] of puts.entries()) {
    set(row, '_pk', 'string', redisKey);
    if (typeof value === 'string') set(row, 'value', 'string', value);
    else if (isUtf8(value)) set(row, 'value', 'string', value);
    else set(row, 'value_base64', 'string', value.toString('base64'));
    if (expires !== FOREVER) set(row, 'valid_to', 'timestamp', expires);
    for (const { name, type, cell } of others) set(row, name, type, cell);
  }
  const columns = [...names].map(([name, { type, cells }]): NamedColumn => {
    const builder = new VectorBuilder(type, puts.length);
    for (const cell of cells)
      if (Buffer.isBuffer(cell)) builder.appendText(cell, 0, cell.length);
      else builder.append(cell);
    return { name, type, vector: builder.build() };
  });
  const expires = names.has('valid_to');
  const computedFrom = fromValue ? columns.flatMap(({ name }) => (Object.hasOwn(systemColumns, name) ? [] : [name])) : [];
  return {
    kind: 'put-rows',
    type: entryType,
    rows: { length: puts.length, columns },
    atomic: true,
    createType: false,
    provenance: { source: door, method: 'set', confidence: 1, derivedFrom: null },
    idsMax: 0,
    ...(expires && { replace: true }),
    ...(when !== undefined && { when }),
    ...(computedFrom.length > 0 && { computedFrom }),
  };
}

export function refuseFirst({ errors }: Pick<Outcome, 'errors'>): void {
  const [refused] = errors;
  if (refused !== undefined) throw new ServiceError(refused.code as ErrorCode, refused.detail);
}

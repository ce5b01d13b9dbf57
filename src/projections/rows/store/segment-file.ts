/**
 * A sealed segment as a derived file: the part of it that never changes. The head of the file is read when it is opened; keys and
 * columns are chunks of their own, read on demand.
 *
 *   head      rows, positions, bounds, codes, shapes of all columns, how their texts begin; columns as they were before they
 *             were widened
 *   hashes    i32 a row: of key and path, so that the key index is made again without a look at any key
 *   keys      offsets, then UTF-8
 *   c <name>  values (text: offsets, then heap), then a byte a row where some are NULL
 */
import { deserialize, serialize } from 'node:v8';
import { assert, unreachable } from '../../../errors.ts';
import {
  DerivedFile,
  DerivedFileError,
  DerivedFileWriter,
  type DerivedHome,
  type DerivedReader,
} from '../../../log/blobs/derived-file.ts';
import type { ColumnType } from '../../../log/values/value.ts';
import { hashBytes } from '../cells/byte-hash.ts';
import type { SavedVector } from '../segments/column-cells.ts';
import { addBeginnings, noBeginnings } from '../cells/text-beginnings.ts';
import type { BytesFor, RestingColumns, SavedColumn, FixedSegmentState } from '../segments/segment-state.ts';

/** Layout of a vector's bytes. */
interface Shape {
  readonly kind: SavedVector['kind'];
  readonly rows: number;
  readonly dims: number;
  readonly heap: number;
  readonly nulls: boolean;
}

interface Head extends Omit<FixedSegmentState, 'keys' | 'columns'> {
  readonly format: number;
  readonly keyShape: Shape;
  readonly columnShapes: readonly { readonly name: string; readonly type: ColumnType; readonly shape: Shape }[];
  /** How texts of the keys (`null`) and of columns begin; files of earlier versions don’t say. */
  readonly beginnings?: readonly (readonly [name: string | null, bits: Uint8Array])[];
  /** Name under which this was first written; files of earlier versions don't say. */
  readonly contents?: string;
}

const FORMAT = 1;
const HASHED_ROWS = 16_384;

export async function writeSegmentFile(home: DerivedHome, name: string, parts: FixedSegmentState): Promise<DerivedFile> {
  const { keys, columns, ...rest } = parts;
  const { length } = parts;
  const beginnings: [string | null, Uint8Array][] = [];
  for (const [name, vector] of [[null, keys] as const, ...columns.map((each) => [each.name, each.vector] as const)]) {
    if (vector.kind === 'text') beginnings.push([name, await beginningsOf(vector, length, home.yieldTurn)]);
  }
  const head: Head = {
    ...rest,
    beginnings,
    contents: name,
    format: FORMAT,
    keyShape: shapeOf(keys, length),
    columnShapes: columns.map((column) => ({
      name: column.name,
      type: column.type,
      shape: shapeOf(column.vector, length),
    })),
  };
  const headBytes = serialize(head);
  const hashes = await hashesOf(parts, home.yieldTurn);
  const writer = await DerivedFileWriter.create(home, name);
  try {
    await writer.chunk('head', [headBytes]);
    await writer.chunk('hashes', [hashes]);
    await writer.chunk('keys', arraysOf(keys, length));
    for (const column of columns) await writer.chunk(`c ${column.name}`, arraysOf(column.vector, length));
    return await writer.finish();
  } catch (error) {
    await writer.abandon();
    throw error;
  }
}

/** The same chunks in less room. */
export async function rewriteSegmentFile(home: DerivedHome, name: string, from: DerivedFile): Promise<DerivedFile> {
  const writer = await DerivedFileWriter.create(home, name);
  try {
    for (const chunk of from.chunks()) await writer.chunk(chunk, [await from.read(chunk)], 'dense');
    return await writer.finish();
  } catch (error) {
    await writer.abandon();
    throw error;
  }
}

export class SegmentFile implements RestingColumns {
  readonly file: DerivedFile;
  readonly #head: Head;
  readonly names: readonly string[];

  constructor(file: DerivedFile) {
    this.file = file;
    this.#head = deserialize(file.readNow('head')) as Head;
    if (this.#head.format !== FORMAT) throw new DerivedFileError(file.name, 'it has another format');
    this.names = this.#head.columnShapes.map(({ name }) => name);
  }

  static async open(home: DerivedReader, name: string): Promise<SegmentFile> {
    const file = await DerivedFile.open(home, name);
    if (!file) throw new DerivedFileError(name, 'it is missing');
    return new SegmentFile(file);
  }

  get name(): string {
    return this.file.name;
  }

  /** Stands for what it says: a file that was packed anew has that of the one it was made from. */
  get contents(): string {
    return this.#head.contents ?? this.name;
  }

  parts(): Omit<FixedSegmentState, 'keys' | 'columns'> {
    return this.#head;
  }

  hashes(): Int32Array {
    const bytes = this.file.readNow('hashes');
    return new Int32Array(bytes.buffer, 0, this.#head.length);
  }

  keys(): SavedVector {
    return vectorOf(this.#head.keyShape, this.file.readNow('keys'));
  }

  column(name: string): Pick<SavedColumn, 'type' | 'vector'> {
    const { type, shape } = this.#shapeOf(name);
    return { type, vector: vectorOf(shape, this.file.readNow(`c ${name}`)) };
  }

  glance(name: string | null, bytes: BytesFor): SavedVector {
    const [shape, chunk] = name === null ? [this.#head.keyShape, 'keys'] : [this.#shapeOf(name).shape, `c ${name}`];
    return vectorOf(shape, this.file.readNow(chunk, bytes));
  }

  beginnings(name: string | null): Uint8Array | null {
    return this.#head.beginnings?.find(([each]) => each === name)?.[1] ?? null;
  }

  /** Keys (`null`) or a column, read beside the turn. */
  async load(name: string | null): Promise<Pick<SavedColumn, 'type' | 'vector'>> {
    if (name === null) return { type: 'string', vector: vectorOf(this.#head.keyShape, await this.file.read('keys')) };
    const { type, shape } = this.#shapeOf(name);
    return { type, vector: vectorOf(shape, await this.file.read(`c ${name}`)) };
  }

  typeOf(name: string): ColumnType | null {
    return this.#find(name)?.type ?? null;
  }

  isCoded(name: string): boolean {
    return this.#find(name)?.shape.kind === 'dict';
  }

  #find(name: string): Head['columnShapes'][number] | undefined {
    return this.#head.columnShapes.find((column) => column.name === name);
  }

  #shapeOf(name: string): Head['columnShapes'][number] {
    const savedColumn = this.#find(name);
    assert(savedColumn, 'a segment rests with all of its columns');
    return savedColumn;
  }
}

function shapeOf(vector: SavedVector, rows: number): Shape {
  const dims = vector.kind === 'vec' ? vector.dims : 0;
  const heap = vector.kind === 'text' ? vector.offsets[rows]! : 0;
  return { kind: vector.kind, rows, dims, heap, nulls: vector.kind !== 'null' && vector.nulls !== null };
}

/** Arrays of a vector in the order in which a file has them. */
function arraysOf(vector: SavedVector, rows: number): ArrayBufferView[] {
  if (vector.kind === 'null') return [];
  const nulls = vector.nulls ? [vector.nulls.subarray(0, rows)] : [];
  switch (vector.kind) {
    case 'text':
      return [vector.offsets.subarray(0, rows + 1), vector.heap.subarray(0, vector.offsets[rows]!), ...nulls];
    case 'vec':
      return [vector.values.subarray(0, rows * vector.dims), ...nulls];
    case 'i32':
    case 'dict':
    case 'f64':
    case 'i64':
    case 'bool':
      return [vector.values.subarray(0, rows), ...nulls];
    default:
      return unreachable(vector);
  }
}

/** A vector over the bytes of its chunk. */
function vectorOf({ kind, rows, dims, heap, nulls }: Shape, { buffer, length }: Uint8Array<ArrayBuffer>): SavedVector {
  const nullsAt = (at: number): Uint8Array | null => (nulls ? new Uint8Array(buffer, at, rows) : null);
  switch (kind) {
    case 'null':
      return { kind };
    case 'i32':
    case 'dict':
      return { kind, values: new Int32Array(buffer, 0, rows), nulls: nullsAt(rows * 4) };
    case 'f64':
      return { kind, values: new Float64Array(buffer, 0, rows), nulls: nullsAt(rows * 8) };
    case 'i64':
      return { kind, values: new BigInt64Array(buffer, 0, rows), nulls: nullsAt(rows * 8) };
    case 'bool':
      return { kind, values: new Uint8Array(buffer, 0, rows), nulls: nullsAt(rows) };
    case 'vec':
      return { kind, values: new Float32Array(buffer, 0, rows * dims), dims, nulls: nullsAt(rows * dims * 4) };
    case 'text': {
      const heapAt = (rows + 1) * 4;
      assert(heapAt + heap <= length, 'a chunk of text has its heap');
      return {
        kind,
        offsets: new Uint32Array(buffer, 0, rows + 1),
        heap: new Uint8Array(buffer, heapAt, heap),
        nulls: nullsAt(heapAt + heap),
      };
    }
    default:
      return unreachable(kind);
  }
}

/** A stretch of rows in a turn, here and below: others wait for each. */
async function beginningsOf(
  vector: Extract<SavedVector, { kind: 'text' }>,
  length: number,
  yieldTurn: () => Promise<void>,
): Promise<Uint8Array> {
  const bits = noBeginnings();
  for (let from = 0; from < length; from += HASHED_ROWS) {
    if (from > 0) await yieldTurn();
    addBeginnings(vector, from, Math.min(length, from + HASHED_ROWS), bits);
  }
  return bits;
}

async function hashesOf({ keys, paths, length }: FixedSegmentState, yieldTurn: () => Promise<void>): Promise<Int32Array> {
  assert(keys.kind === 'text', 'keys are text');
  const { offsets, heap } = keys;
  const hashes = new Int32Array(length);
  for (let from = 0; from < length; from += HASHED_ROWS) {
    if (from > 0) await yieldTurn();
    for (let row = from; row < Math.min(length, from + HASHED_ROWS); row++) {
      const path = paths.values && row < paths.values.length ? paths.values[row]! : paths.constant;
      hashes[row] = hashBytes(heap, offsets[row]!, offsets[row + 1]!, path);
    }
  }
  return hashes;
}

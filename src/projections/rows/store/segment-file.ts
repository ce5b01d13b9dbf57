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
interface ColumnShape {
  readonly kind: SavedVector['kind'];
  readonly rows: number;
  readonly dims: number;
  readonly heap: number;
  readonly nulls: boolean;
}

interface SegmentHead extends Omit<FixedSegmentState, 'keys' | 'columns'> {
  readonly format: number;
  readonly keyShape: ColumnShape;
  readonly columnShapes: readonly { readonly name: string; readonly type: ColumnType; readonly shape: ColumnShape }[];
  /** How texts of the keys (`null`) and of columns begin; files of earlier versions don’t say. */
  readonly beginnings?: readonly (readonly [name: string | null, bits: Uint8Array])[];
  /** Name under which this was first written; files of earlier versions don't say. */
  readonly contents?: string;
}

const SEGMENT_FILE_FORMAT = 1;
const HASHED_ROWS = 16_384;

export async function writeSegmentFile(
  segmentHome: DerivedHome,
  name: string,
  fixedParts: FixedSegmentState,
): Promise<DerivedFile> {
  const { keys, columns, ...fixedState } = fixedParts;
  const { length } = fixedParts;
  const columnBeginnings: [string | null, Uint8Array][] = [];
  for (const [name, savedVector] of [
    [null, keys] as const,
    ...columns.map((cellColumn) => [cellColumn.name, cellColumn.vector] as const),
  ]) {
    if (savedVector.kind === 'text')
      columnBeginnings.push([name, await textBeginningsOf(savedVector, length, segmentHome.yieldTurn)]);
  }
  const segmentHead: SegmentHead = {
    ...fixedState,
    beginnings: columnBeginnings,
    contents: name,
    format: SEGMENT_FILE_FORMAT,
    keyShape: columnShapeOf(keys, length),
    columnShapes: columns.map((savedColumn) => ({
      name: savedColumn.name,
      type: savedColumn.type,
      shape: columnShapeOf(savedColumn.vector, length),
    })),
  };
  const segmentHeadBytes = serialize(segmentHead);
  const keyHashes = await keyHashesOf(fixedParts, segmentHome.yieldTurn);
  const segmentWriter = await DerivedFileWriter.create(segmentHome, name);
  try {
    await segmentWriter.chunk('head', [segmentHeadBytes]);
    await segmentWriter.chunk('hashes', [keyHashes]);
    await segmentWriter.chunk('keys', columnArraysOf(keys, length));
    for (const savedColumn of columns)
      await segmentWriter.chunk(`c ${savedColumn.name}`, columnArraysOf(savedColumn.vector, length));
    return await segmentWriter.finish();
  } catch (error) {
    await segmentWriter.abandon();
    throw error;
  }
}

/** The same chunks in less room. */
export async function rewriteSegmentFile(home: DerivedHome, name: string, sparseFile: DerivedFile): Promise<DerivedFile> {
  const segmentWriter = await DerivedFileWriter.create(home, name);
  try {
    for (const segmentChunk of sparseFile.chunks())
      await segmentWriter.chunk(segmentChunk, [await sparseFile.read(segmentChunk)], 'dense');
    return await segmentWriter.finish();
  } catch (error) {
    await segmentWriter.abandon();
    throw error;
  }
}

export class SegmentFile implements RestingColumns {
  readonly file: DerivedFile;
  readonly #segmentHead: SegmentHead;
  readonly names: readonly string[];

  constructor(derivedFile: DerivedFile) {
    this.file = derivedFile;
    this.#segmentHead = deserialize(derivedFile.readNow('head')) as SegmentHead;
    if (this.#segmentHead.format !== SEGMENT_FILE_FORMAT) throw new DerivedFileError(derivedFile.name, 'it has another format');
    this.names = this.#segmentHead.columnShapes.map(({ name }) => name);
  }

  static async open(home: DerivedReader, name: string): Promise<SegmentFile> {
    const derivedFile = await DerivedFile.open(home, name);
    if (!derivedFile) throw new DerivedFileError(name, 'it is missing');
    return new SegmentFile(derivedFile);
  }

  get name(): string {
    return this.file.name;
  }

  /** Stands for what it says: a file that was packed anew has that of the one it was made from. */
  get contents(): string {
    return this.#segmentHead.contents ?? this.name;
  }

  parts(): Omit<FixedSegmentState, 'keys' | 'columns'> {
    return this.#segmentHead;
  }

  hashes(): Int32Array {
    const hashChunk = this.file.readNow('hashes');
    return new Int32Array(hashChunk.buffer, 0, this.#segmentHead.length);
  }

  keys(): SavedVector {
    return savedVectorOf(this.#segmentHead.keyShape, this.file.readNow('keys'));
  }

  column(name: string): Pick<SavedColumn, 'type' | 'vector'> {
    const { type, shape: columnShape } = this.#columnShapeOf(name);
    return { type, vector: savedVectorOf(columnShape, this.file.readNow(`c ${name}`)) };
  }

  glance(name: string | null, bytes: BytesFor): SavedVector {
    const [columnShape, columnChunk] =
      name === null ? [this.#segmentHead.keyShape, 'keys'] : [this.#columnShapeOf(name).shape, `c ${name}`];
    return savedVectorOf(columnShape, this.file.readNow(columnChunk, bytes));
  }

  beginnings(name: string | null): Uint8Array | null {
    return this.#segmentHead.beginnings?.find(([beginningsColumn]) => beginningsColumn === name)?.[1] ?? null;
  }

  /** Keys (`null`) or a column, read beside the turn. */
  async load(name: string | null): Promise<Pick<SavedColumn, 'type' | 'vector'>> {
    if (name === null) return { type: 'string', vector: savedVectorOf(this.#segmentHead.keyShape, await this.file.read('keys')) };
    const { type, shape: columnShape } = this.#columnShapeOf(name);
    return { type, vector: savedVectorOf(columnShape, await this.file.read(`c ${name}`)) };
  }

  typeOf(name: string): ColumnType | null {
    return this.#findColumnShape(name)?.type ?? null;
  }

  isCoded(name: string): boolean {
    return this.#findColumnShape(name)?.shape.kind === 'dict';
  }

  #findColumnShape(name: string): SegmentHead['columnShapes'][number] | undefined {
    return this.#segmentHead.columnShapes.find((shapedColumn) => shapedColumn.name === name);
  }

  #columnShapeOf(name: string): SegmentHead['columnShapes'][number] {
    const savedColumn = this.#findColumnShape(name);
    assert(savedColumn, 'a segment rests with all of its columns');
    return savedColumn;
  }
}

function columnShapeOf(savedVector: SavedVector, rows: number): ColumnShape {
  const vectorDims = savedVector.kind === 'vec' ? savedVector.dims : 0;
  const textHeapBytes = savedVector.kind === 'text' ? savedVector.offsets[rows]! : 0;
  return {
    kind: savedVector.kind,
    rows,
    dims: vectorDims,
    heap: textHeapBytes,
    nulls: savedVector.kind !== 'null' && savedVector.nulls !== null,
  };
}

/** Arrays of a vector in the order in which a file has them. */
function columnArraysOf(savedVector: SavedVector, rows: number): ArrayBufferView[] {
  if (savedVector.kind === 'null') return [];
  const nullArrays = savedVector.nulls ? [savedVector.nulls.subarray(0, rows)] : [];
  switch (savedVector.kind) {
    case 'text':
      return [savedVector.offsets.subarray(0, rows + 1), savedVector.heap.subarray(0, savedVector.offsets[rows]!), ...nullArrays];
    case 'vec':
      return [savedVector.values.subarray(0, rows * savedVector.dims), ...nullArrays];
    case 'i32':
    case 'dict':
    case 'f64':
    case 'i64':
    case 'bool':
      return [savedVector.values.subarray(0, rows), ...nullArrays];
    default:
      return unreachable(savedVector);
  }
}

/** A vector over the bytes of its chunk. */
function savedVectorOf({ kind, rows, dims, heap, nulls }: ColumnShape, { buffer, length }: Uint8Array<ArrayBuffer>): SavedVector {
  const nullsFrom = (at: number): Uint8Array | null => (nulls ? new Uint8Array(buffer, at, rows) : null);
  switch (kind) {
    case 'null':
      return { kind };
    case 'i32':
    case 'dict':
      return { kind, values: new Int32Array(buffer, 0, rows), nulls: nullsFrom(rows * 4) };
    case 'f64':
      return { kind, values: new Float64Array(buffer, 0, rows), nulls: nullsFrom(rows * 8) };
    case 'i64':
      return { kind, values: new BigInt64Array(buffer, 0, rows), nulls: nullsFrom(rows * 8) };
    case 'bool':
      return { kind, values: new Uint8Array(buffer, 0, rows), nulls: nullsFrom(rows) };
    case 'vec':
      return { kind, values: new Float32Array(buffer, 0, rows * dims), dims, nulls: nullsFrom(rows * dims * 4) };
    case 'text': {
      const textHeapOffset = (rows + 1) * 4;
      assert(textHeapOffset + heap <= length, 'a chunk of text has its heap');
      return {
        kind,
        offsets: new Uint32Array(buffer, 0, rows + 1),
        heap: new Uint8Array(buffer, textHeapOffset, heap),
        nulls: nullsFrom(textHeapOffset + heap),
      };
    }
    default:
      return unreachable(kind);
  }
}

/** A range of rows in a turn, here and below: others wait for each. */
async function textBeginningsOf(
  textVector: Extract<SavedVector, { kind: 'text' }>,
  length: number,
  yieldTurn: () => Promise<void>,
): Promise<Uint8Array> {
  const beginningBits = noBeginnings();
  for (let hashedFrom = 0; hashedFrom < length; hashedFrom += HASHED_ROWS) {
    if (hashedFrom > 0) await yieldTurn();
    addBeginnings(textVector, hashedFrom, Math.min(length, hashedFrom + HASHED_ROWS), beginningBits);
  }
  return beginningBits;
}

async function keyHashesOf({ keys, paths, length }: FixedSegmentState, yieldTurn: () => Promise<void>): Promise<Int32Array> {
  assert(keys.kind === 'text', 'keys are text');
  const { offsets, heap } = keys;
  const keyHashes = new Int32Array(length);
  for (let hashedFrom = 0; hashedFrom < length; hashedFrom += HASHED_ROWS) {
    if (hashedFrom > 0) await yieldTurn();
    for (let row = hashedFrom; row < Math.min(length, hashedFrom + HASHED_ROWS); row++) {
      const pathCode = paths.values && row < paths.values.length ? paths.values[row]! : paths.constant;
      keyHashes[row] = hashBytes(heap, offsets[row]!, offsets[row + 1]!, pathCode);
    }
  }
  return keyHashes;
}

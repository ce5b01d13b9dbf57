/** Messages of Arrow IPC: schemas, dictionaries and record batches, read out of their metadata. Source: Arrow's Message.fbs and Schema.fbs. */
import { ServiceError } from '../../errors.ts';
import { limits } from '../../log/values/value.ts';
import { FlatTable, malformedError } from './flat-table.ts';

/** How cells of a column lie in their buffers. Widths are bits; `list` of width 0 has `size` numbers a cell. */
export type ArrowType =
  | { readonly kind: 'null' | 'bool' }
  | { readonly kind: 'int'; readonly bits: number; readonly isSigned: boolean }
  | { readonly kind: 'float'; readonly bits: number }
  | { readonly kind: 'decimal'; readonly bits: number; readonly scale: number }
  | { readonly kind: 'instant'; readonly bits: number; readonly unitNs: bigint }
  | { readonly kind: 'text'; readonly offsets: 32 | 64 | 'views' }
  | { readonly kind: 'list'; readonly offsets: 0 | 32 | 64; readonly size: number; readonly item: ArrowType };

export interface ArrowField {
  readonly name: string;
  readonly type: ArrowType;
  /** Cells are numbers of such a type, of values of the dictionary of this id. */
  readonly dictionary: { readonly id: bigint; readonly index: ArrowType } | null;
  /** `json` and `timestamp`, where the sender says that its texts and integers are such. */
  readonly meaning: 'json' | 'timestamp' | null;
}

/** Lengths and offsets as they were sent, not yet checked against the body. */
export interface ArrowBatch {
  readonly length: bigint;
  /** Rows of each column and list, and how many are NULL. */
  readonly nodes: BigInt64Array;
  /** Offset in the body and size of each buffer, in bytes. */
  readonly buffers: BigInt64Array;
  /** How many buffers each column of views lies in. */
  readonly viewBuffers: BigInt64Array;
}

export type ArrowMessage =
  | { readonly kind: 'schema'; readonly fields: readonly ArrowField[] }
  | { readonly kind: 'dictionary'; readonly id: bigint; readonly isDelta: boolean; readonly batch: ArrowBatch }
  | { readonly kind: 'batch'; readonly batch: ArrowBatch };

/** Metadata of one message. Throws REL_PARSE where it is malformed, REL_TYPE_MISMATCH for columns of types that none here has. */
export function parseArrowMessage(metadata: Uint8Array): ArrowMessage {
  const message = FlatTable.root(metadata);
  const version = message.short(0);
  if (version !== 3 && version !== 4) throw malformedError(`its version is ${version}, not V4 or V5`);
  const header = message.table(2);
  if (header === null) throw malformedError('it has no header');
  switch (message.byte(1)) {
    case 1:
      return { kind: 'schema', fields: schemaOf(header) };
    case 2: {
      const data = header.table(1);
      if (data === null) throw malformedError('a dictionary has no values');
      return { kind: 'dictionary', id: header.long(0), isDelta: header.byte(2) !== 0, batch: batchOf(data) };
    }
    case 3:
      return { kind: 'batch', batch: batchOf(header) };
    default:
      throw malformedError('it is neither a schema, a dictionary nor a record batch');
  }
}

/** Bytes of the body behind the metadata. Throws REL_PARSE where that is no number of bytes. */
export function parseMessageSize(metadata: Uint8Array): number {
  const size = FlatTable.root(metadata).long(3);
  if (size < 0n || size > BigInt(Number.MAX_SAFE_INTEGER)) throw malformedError('its body has a negative length');
  return Number(size);
}

function schemaOf(schema: FlatTable): ArrowField[] {
  if (schema.short(0) !== 0) throw malformedError('its numbers are big-endian');
  const fields = schema.tables(1);
  // Beside properties a row has its key, its bounds and where it comes from.
  const most = limits.columnsPerType + 8;
  if (fields.length > most) throw new ServiceError('REL_INVALID', `rows have at most ${most} columns, not ${fields.length}`);
  return fields.map(fieldOf);
}

function fieldOf(field: FlatTable): ArrowField {
  const name = field.text(0) ?? '';
  const refuse = (problem: string): never => {
    throw new ServiceError('REL_TYPE_MISMATCH', `column ${JSON.stringify(name.slice(0, 128))}: ${problem}`);
  };
  const type = typeOf(field, refuse);
  const encoding = field.table(4);
  let dictionary: ArrowField['dictionary'] = null;
  if (encoding !== null) {
    const index = encoding.table(1);
    dictionary = { id: encoding.long(0), index: index === null ? { kind: 'int', bits: 32, isSigned: true } : intOf(index) };
    if (type.kind === 'list' || type.kind === 'null') refuse('dictionaries of lists and of nulls are not supported');
  }
  return { name, type, dictionary, meaning: meaningOf(field) };
}

function meaningOf(field: FlatTable): ArrowField['meaning'] {
  for (const entry of field.tables(6)) {
    const key = entry.text(0);
    const value = key === 'annals.type' || key === 'ARROW:extension:name' ? entry.text(1) : null;
    if (value === 'arrow.json' || value === 'json') return 'json';
    if (value === 'timestamp') return value;
  }
  return null;
}

/** Types that are not supported, by the number of the union `Type`. */
const unread: Readonly<Record<number, string>> = {
  4: 'Binary',
  9: 'Time',
  11: 'Interval',
  13: 'Struct',
  14: 'Union',
  15: 'FixedSizeBinary',
  17: 'Map',
  18: 'Duration',
  19: 'LargeBinary',
  22: 'RunEndEncoded',
  23: 'BinaryView',
  25: 'ListView',
  26: 'LargeListView',
};

const unitsNs = [1_000_000_000n, 1_000_000n, 1_000n, 1n];

function typeOf(field: FlatTable, refuse: (problem: string) => never): ArrowType {
  const number = field.byte(2);
  const type = field.table(3);
  if (type === null) throw malformedError('a column has no type');
  switch (number) {
    case 1:
      return { kind: 'null' };
    case 2:
      return intOf(type);
    case 3:
      return floatOf(type);
    case 5:
      return { kind: 'text', offsets: 32 };
    case 6:
      return { kind: 'bool' };
    case 7:
      return decimalOf(type);
    case 8:
      return type.short(0, 1) === 0
        ? { kind: 'instant', bits: 32, unitNs: 86_400_000_000_000n }
        : { kind: 'instant', bits: 64, unitNs: 1_000_000n };
    case 10: {
      const unitNs = unitsNs[type.short(0)];
      if (unitNs === undefined) throw malformedError('a timestamp has an unknown unit');
      return { kind: 'instant', bits: 64, unitNs };
    }
    case 12:
    case 16:
    case 21:
      return listOf(field, number === 16 ? 0 : number === 12 ? 32 : 64, number === 16 ? type.int(0) : 0, refuse);
    case 20:
      return { kind: 'text', offsets: 64 };
    case 24:
      return { kind: 'text', offsets: 'views' };
    default:
      return refuse(`Arrow’s type ${unread[number] ?? number} is not supported`);
  }
}

function intOf(type: FlatTable): ArrowType {
  const bits = type.int(0);
  if (![8, 16, 32, 64].includes(bits)) throw malformedError(`an integer has ${bits} bits`);
  return { kind: 'int', bits, isSigned: type.byte(1) !== 0 };
}

function floatOf(type: FlatTable): ArrowType {
  const bits = [16, 32, 64][type.short(0)];
  if (bits === undefined) throw malformedError('a floating-point number has an unknown width');
  return { kind: 'float', bits };
}

/** Digits that 256 bits hold. */
const scaleMax = 76;

function decimalOf(type: FlatTable): ArrowType {
  const [scale, bits] = [type.int(1), type.int(2, 128)];
  if (![32, 64, 128, 256].includes(bits) || Math.abs(scale) > scaleMax)
    throw malformedError('a decimal has an unknown width or scale');
  return { kind: 'decimal', bits, scale };
}

function listOf(field: FlatTable, offsets: 0 | 32 | 64, size: number, refuse: (problem: string) => never): ArrowType {
  const [item, ...more] = field.tables(5);
  if (item === undefined || more.length > 0) throw malformedError('a list has one type of items');
  if (item.byte(2) !== 3 || item.table(4) !== null)
    return refuse('only lists of floating-point numbers are supported, as vectors');
  if (offsets === 0 && (size < 1 || size > limits.vectorDims))
    return refuse(`a vector has 1 to ${limits.vectorDims} dimensions, not ${size}`);
  const width = item.table(3);
  if (width === null) throw malformedError('a list has one type of items');
  return { kind: 'list', offsets, size, item: floatOf(width) };
}

function batchOf(batch: FlatTable): ArrowBatch {
  const compression = batch.table(3);
  if (compression !== null) {
    const codec = compression.byte(0) === 0 ? 'LZ4' : 'ZSTD';
    throw new ServiceError('REL_NOT_IMPLEMENTED', `record batches in ${codec} are not supported: write them uncompressed`);
  }
  return { length: batch.long(0), nodes: batch.longs(1, 2), buffers: batch.longs(2, 2), viewBuffers: batch.longs(4) };
}

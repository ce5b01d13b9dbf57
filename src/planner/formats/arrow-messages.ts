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
  const messageTable = FlatTable.root(metadata);
  const messageVersion = messageTable.short(0);
  if (messageVersion !== 3 && messageVersion !== 4) throw malformedError(`its version is ${messageVersion}, not V4 or V5`);
  const messageHeader = messageTable.table(2);
  if (messageHeader === null) throw malformedError('it has no header');
  switch (messageTable.byte(1)) {
    case 1:
      return { kind: 'schema', fields: schemaFields(messageHeader) };
    case 2: {
      const dictionaryBatch = messageHeader.table(1);
      if (dictionaryBatch === null) throw malformedError('a dictionary has no values');
      return {
        kind: 'dictionary',
        id: messageHeader.long(0),
        isDelta: messageHeader.byte(2) !== 0,
        batch: arrowBatchOf(dictionaryBatch),
      };
    }
    case 3:
      return { kind: 'batch', batch: arrowBatchOf(messageHeader) };
    default:
      throw malformedError('it is neither a schema, a dictionary nor a record batch');
  }
}

/** Bytes of the body behind the metadata. Throws REL_PARSE where that is no number of bytes. */
export function parseMessageSize(metadata: Uint8Array): number {
  const messageBodySize = FlatTable.root(metadata).long(3);
  if (messageBodySize < 0n || messageBodySize > BigInt(Number.MAX_SAFE_INTEGER))
    throw malformedError('its body has a negative length');
  return Number(messageBodySize);
}

function schemaFields(schemaTable: FlatTable): ArrowField[] {
  if (schemaTable.short(0) !== 0) throw malformedError('its numbers are big-endian');
  const fieldTables = schemaTable.tables(1);
  // Beside properties a row has its key, its bounds and where it comes from.
  const columnsMax = limits.columnsPerType + 8;
  if (fieldTables.length > columnsMax)
    throw new ServiceError('REL_INVALID', `rows have at most ${columnsMax} columns, not ${fieldTables.length}`);
  return fieldTables.map(arrowFieldOf);
}

function arrowFieldOf(fieldTable: FlatTable): ArrowField {
  const name = fieldTable.text(0) ?? '';
  const refuseField = (problem: string): never => {
    throw new ServiceError('REL_TYPE_MISMATCH', `column ${JSON.stringify(name.slice(0, 128))}: ${problem}`);
  };
  const fieldType = arrowTypeOf(fieldTable, refuseField);
  const dictionaryEncoding = fieldTable.table(4);
  let dictionary: ArrowField['dictionary'] = null;
  if (dictionaryEncoding !== null) {
    const dictionaryIndex = dictionaryEncoding.table(1);
    dictionary = {
      id: dictionaryEncoding.long(0),
      index: dictionaryIndex === null ? { kind: 'int', bits: 32, isSigned: true } : arrowInt(dictionaryIndex),
    };
    if (fieldType.kind === 'list' || fieldType.kind === 'null')
      refuseField('dictionaries of lists and of nulls are not supported');
  }
  return { name, type: fieldType, dictionary, meaning: fieldMeaning(fieldTable) };
}

function fieldMeaning(fieldTable: FlatTable): ArrowField['meaning'] {
  for (const metadataEntry of fieldTable.tables(6)) {
    const metadataKey = metadataEntry.text(0);
    const metadataValue = metadataKey === 'annals.type' || metadataKey === 'ARROW:extension:name' ? metadataEntry.text(1) : null;
    if (metadataValue === 'arrow.json' || metadataValue === 'json') return 'json';
    if (metadataValue === 'timestamp') return metadataValue;
  }
  return null;
}

/** Types that are not supported, by the number of the union `Type`. */
const unsupportedTypes: Readonly<Record<number, string>> = {
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

const timestampUnitsNs = [1_000_000_000n, 1_000_000n, 1_000n, 1n];

function arrowTypeOf(fieldTable: FlatTable, refuseField: (problem: string) => never): ArrowType {
  const typeNumber = fieldTable.byte(2);
  const typeTable = fieldTable.table(3);
  if (typeTable === null) throw malformedError('a column has no type');
  switch (typeNumber) {
    case 1:
      return { kind: 'null' };
    case 2:
      return arrowInt(typeTable);
    case 3:
      return arrowFloat(typeTable);
    case 5:
      return { kind: 'text', offsets: 32 };
    case 6:
      return { kind: 'bool' };
    case 7:
      return arrowDecimal(typeTable);
    case 8:
      return typeTable.short(0, 1) === 0
        ? { kind: 'instant', bits: 32, unitNs: 86_400_000_000_000n }
        : { kind: 'instant', bits: 64, unitNs: 1_000_000n };
    case 10: {
      const unitNs = timestampUnitsNs[typeTable.short(0)];
      if (unitNs === undefined) throw malformedError('a timestamp has an unknown unit');
      return { kind: 'instant', bits: 64, unitNs };
    }
    case 12:
    case 16:
    case 21:
      return arrowList(
        fieldTable,
        typeNumber === 16 ? 0 : typeNumber === 12 ? 32 : 64,
        typeNumber === 16 ? typeTable.int(0) : 0,
        refuseField,
      );
    case 20:
      return { kind: 'text', offsets: 64 };
    case 24:
      return { kind: 'text', offsets: 'views' };
    default:
      return refuseField(`Arrow’s type ${unsupportedTypes[typeNumber] ?? typeNumber} is not supported`);
  }
}

function arrowInt(intTable: FlatTable): ArrowType {
  const intBits = intTable.int(0);
  if (![8, 16, 32, 64].includes(intBits)) throw malformedError(`an integer has ${intBits} bits`);
  return { kind: 'int', bits: intBits, isSigned: intTable.byte(1) !== 0 };
}

function arrowFloat(floatTable: FlatTable): ArrowType {
  const floatBits = [16, 32, 64][floatTable.short(0)];
  if (floatBits === undefined) throw malformedError('a floating-point number has an unknown width');
  return { kind: 'float', bits: floatBits };
}

/** Digits that 256 bits hold. */
const decimalScaleMax = 76;

function arrowDecimal(decimalTable: FlatTable): ArrowType {
  const [scale, bits] = [decimalTable.int(1), decimalTable.int(2, 128)];
  if (![32, 64, 128, 256].includes(bits) || Math.abs(scale) > decimalScaleMax)
    throw malformedError('a decimal has an unknown width or scale');
  return { kind: 'decimal', bits, scale };
}

function arrowList(
  fieldTable: FlatTable,
  offsets: 0 | 32 | 64,
  listSize: number,
  refuseField: (problem: string) => never,
): ArrowType {
  const [itemTable, ...moreItems] = fieldTable.tables(5);
  if (itemTable === undefined || moreItems.length > 0) throw malformedError('a list has one type of items');
  if (itemTable.byte(2) !== 3 || itemTable.table(4) !== null)
    return refuseField('only lists of floating-point numbers are supported, as vectors');
  if (offsets === 0 && (listSize < 1 || listSize > limits.vectorDims))
    return refuseField(`a vector has 1 to ${limits.vectorDims} dimensions, not ${listSize}`);
  const floatTable = itemTable.table(3);
  if (floatTable === null) throw malformedError('a list has one type of items');
  return { kind: 'list', offsets, size: listSize, item: arrowFloat(floatTable) };
}

function arrowBatchOf(batchTable: FlatTable): ArrowBatch {
  const batchCompression = batchTable.table(3);
  if (batchCompression !== null) {
    const compressionCodec = batchCompression.byte(0) === 0 ? 'LZ4' : 'ZSTD';
    throw new ServiceError(
      'REL_NOT_IMPLEMENTED',
      `record batches in ${compressionCodec} are not supported: write them uncompressed`,
    );
  }
  return {
    length: batchTable.long(0),
    nodes: batchTable.longs(1, 2),
    buffers: batchTable.longs(2, 2),
    viewBuffers: batchTable.longs(4),
  };
}

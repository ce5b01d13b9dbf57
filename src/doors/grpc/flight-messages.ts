/** Messages of Arrow Flight and Flight SQL. Source: Flight.proto and FlightSql.proto of Apache Arrow. */
import { isUtf8 } from 'node:buffer';
import { ServiceError } from '../../errors.ts';
import { parseMessageSize } from '../../planner/formats/arrow-messages.ts';
import { bytesField, type Fields, lengthPrefix, ProtobufMessage, protobufMessage, textField, varintField } from './protobuf.ts';

/** The source that a client wants to read, or the target that it wants to write. */
export type FlightCommand =
  | { readonly kind: 'sql'; readonly sql: string }
  | { readonly kind: 'type'; readonly type: string }
  /** Rows for a table, by Flight SQL, with options for a missing and for an existing table. */
  | { readonly kind: 'ingest'; readonly type: string; readonly ifAbsent?: 'fail'; readonly ifPresent?: 'fail' }
  | { readonly kind: 'prepared'; readonly handle: Uint8Array }
  | CatalogueRequest;

/** `LIKE` patterns where they are called so; null: not narrowed. */
export type CatalogueRequest =
  | { readonly kind: 'sql-info'; readonly info: readonly number[] }
  | { readonly kind: 'catalogs' | 'table-types' }
  | { readonly kind: 'schemas'; readonly catalog: string | null; readonly pattern: string | null }
  | {
      readonly kind: 'tables';
      readonly catalog: string | null;
      readonly schemaPattern: string | null;
      readonly pattern: string | null;
      readonly types: readonly string[];
      readonly withSchemas: boolean;
    }
  | { readonly kind: 'primary-keys'; readonly catalog: string | null; readonly schema: string | null; readonly table: string };

const flightSqlPrefix = 'type.googleapis.com/arrow.flight.protocol.sql.';
const commandBytesMax = 1 << 20;

/** The message of that name in an `Any`; null where it is another. */
export function unpack(anyBytes: Uint8Array, sqlMessageName: string): ProtobufMessage | null {
  const unpackedAny = unpackAnyMessage(anyBytes);
  return unpackedAny?.name === sqlMessageName ? unpackedAny.message : null;
}

export function pack(sqlMessageName: string, packedMessage: Uint8Array): Buffer {
  return protobufMessage(textField(1, flightSqlPrefix + sqlMessageName), bytesField(2, packedMessage));
}

/** Unpacks an Any; null: it is no message of Flight SQL. */
function unpackAnyMessage(anyBytes: Uint8Array): { readonly name: string; readonly message: ProtobufMessage } | null {
  const flightSqlPrefixBytes = Buffer.from(flightSqlPrefix);
  // The first field is the name: its number, its length, and how all of them begin.
  if (anyBytes[0] !== 0x0a || Buffer.compare(anyBytes.subarray(2, 2 + flightSqlPrefixBytes.length), flightSqlPrefixBytes) !== 0)
    return null;
  const anyMessage = new ProtobufMessage(anyBytes);
  const anyTypeName = anyMessage.text(1);
  // The last of several fields of one number counts.
  if (!anyTypeName?.startsWith(flightSqlPrefix)) return null;
  return {
    name: anyTypeName.slice(flightSqlPrefix.length),
    message: new ProtobufMessage(anyMessage.bytes(2) ?? new Uint8Array(0)),
  };
}

/** Throws REL_INVALID for a descriptor that says nothing, REL_NOT_IMPLEMENTED for a command that there is not. */
export function flightCommandOf(descriptor: Uint8Array): FlightCommand {
  const read = new ProtobufMessage(descriptor);
  const path = read.texts(3);
  if (read.number(1) === 1n) {
    if (path.length !== 1)
      throw new ServiceError('REL_INVALID', 'the path of a descriptor is the name of a type, and nothing else');
    return { kind: 'type', type: path[0]! };
  }
  const command = read.bytes(2) ?? new Uint8Array(0);
  if (command.length > commandBytesMax) throw new ServiceError('REL_TOO_LARGE', `a command has at most ${commandBytesMax} bytes`);
  const packed = unpackAnyMessage(command);
  if (packed !== null) return flightSqlCommand(packed.name, packed.message);
  if (command.length === 0 || !isUtf8(command))
    throw new ServiceError('REL_INVALID', 'a descriptor has a path, or a command: SQL, or a message of Flight SQL in an Any');
  return { kind: 'sql', sql: Buffer.from(command).toString('utf8') };
}

function flightSqlCommand(commandName: string, flightMessage: ProtobufMessage): FlightCommand {
  switch (commandName) {
    case 'CommandStatementQuery':
      return { kind: 'sql', sql: flightMessage.text(1) ?? '' };
    case 'CommandPreparedStatementQuery':
      return { kind: 'prepared', handle: flightMessage.bytes(1) ?? new Uint8Array(0) };
    case 'CommandStatementIngest':
      return ingestCommandOf(flightMessage);
    case 'CommandGetSqlInfo':
      return { kind: 'sql-info', info: flightMessage.numbers(1).map(Number) };
    case 'CommandGetCatalogs':
      return { kind: 'catalogs' };
    case 'CommandGetDbSchemas':
      return { kind: 'schemas', catalog: flightMessage.text(1), pattern: flightMessage.text(2) };
    case 'CommandGetTables':
      return {
        kind: 'tables',
        catalog: flightMessage.text(1),
        schemaPattern: flightMessage.text(2),
        pattern: flightMessage.text(3),
        types: flightMessage.texts(4),
        withSchemas: flightMessage.number(5) !== 0n,
      };
    case 'CommandGetTableTypes':
      return { kind: 'table-types' };
    case 'CommandGetPrimaryKeys':
      return {
        kind: 'primary-keys',
        catalog: flightMessage.text(1),
        schema: flightMessage.text(2),
        table: flightMessage.text(3) ?? '',
      };
    default:
      throw new ServiceError('REL_NOT_IMPLEMENTED', `${commandName.slice(0, 100)} of Flight SQL is not implemented`);
  }
}

function ingestCommandOf(flightMessage: ProtobufMessage): FlightCommand {
  const ingestOptions = new ProtobufMessage(flightMessage.bytes(1) ?? new Uint8Array(0));
  const [ifAbsent, ifPresent] = [ingestOptions.number(1), ingestOptions.number(2)];
  if (ifPresent === 3n) throw new ServiceError('REL_NOT_IMPLEMENTED', 'replacing a table is not implemented: its history stays');
  return {
    kind: 'ingest',
    type: flightMessage.text(2) ?? '',
    ...(ifAbsent === 2n && { ifAbsent: 'fail' }),
    ...(ifPresent === 1n && { ifPresent: 'fail' }),
  };
}

/** `flightSchema`: an encapsulated message of Arrow IPC. The number of rows is unknown until they are read. */
export function flightInfo(flightSchema: Uint8Array, flightDescriptor: Uint8Array, flightTicket: Uint8Array): Buffer {
  const flightEndpoint = bytesField(1, bytesField(1, flightTicket));
  return protobufMessage(
    bytesField(1, flightSchema),
    bytesField(2, flightDescriptor),
    bytesField(3, flightEndpoint),
    varintField(4, -1),
    varintField(5, -1),
  );
}

export const pathDescriptor = (typeName: string): Buffer => protobufMessage(varintField(1, 1), textField(3, typeName));

/** A received message of a stream of rows. */
export interface FlightData {
  /** Null except for the first message. */
  readonly descriptor: Uint8Array | null;
  /** Metadata of an Arrow message; null where there is none. */
  readonly header: Uint8Array | null;
  /** Begins at a multiple of eight in its memory. */
  readonly body: Uint8Array;
}

export function flightDataOf(flightDataBytes: Uint8Array): FlightData {
  const flightData = new ProtobufMessage(flightDataBytes);
  const flightHeader = flightData.bytes(2);
  return {
    descriptor: flightData.bytes(1),
    header: flightHeader === null || flightHeader.length === 0 ? null : flightHeader,
    body: Uint8Array.from(flightData.bytes(dataBodyField) ?? []),
  };
}

const dataBodyField = 1_000;
const continuationBytes = 8;

/** A message that is not joined: who sends it copies the pieces to where they leave from. */
export class MessagePieces {
  readonly byteLength: number;
  readonly #messagePieces: Fields;

  constructor(messagePieces: Fields) {
    this.#messagePieces = messagePieces;
    this.byteLength = messagePieces.reduce((byteSum, { length }) => byteSum + length, 0);
  }

  copy(sendBuffer: Uint8Array, sendOffset: number): void {
    let pieceOffset = sendOffset;
    for (const messagePiece of this.#messagePieces) {
      sendBuffer.set(messagePiece, pieceOffset);
      pieceOffset += messagePiece.length;
    }
  }

  toBuffer(): Buffer {
    return protobufMessage(...this.#messagePieces);
  }
}

/** Pieces of a stream of Arrow IPC as messages `FlightData`. */
export function* flightDataFrom(ipcPieces: Iterable<Uint8Array>): Generator<MessagePieces, void> {
  const heldBytes = new HeldIpcBytes();
  let ipcHeader: Buffer | null = null;
  let neededBytes = continuationBytes;
  for (const ipcPiece of ipcPieces) {
    heldBytes.push(ipcPiece);
    while (heldBytes.length >= neededBytes) {
      if (ipcHeader === null) {
        const continuationMark = Buffer.concat(heldBytes.peek(continuationBytes));
        const headerBytes = continuationMark.readUInt32LE(4);
        // The end of the stream.
        if (headerBytes === 0) return;
        neededBytes = continuationBytes + headerBytes;
        if (heldBytes.length < neededBytes) break;
        heldBytes.take(continuationBytes);
        ipcHeader = Buffer.concat(heldBytes.take(headerBytes));
        neededBytes = parseMessageSize(ipcHeader);
      } else {
        const ipcBody = heldBytes.take(neededBytes);
        const bodyPieces = neededBytes === 0 ? [] : [lengthPrefix(dataBodyField, neededBytes), ...ipcBody];
        yield new MessagePieces([bytesField(2, ipcHeader), ...bodyPieces]);
        ipcHeader = null;
        neededBytes = continuationBytes;
      }
    }
  }
}

/** Pieces of bytes, taken by their number. */
class HeldIpcBytes {
  #ipcPieces: Uint8Array[] = [];
  length = 0;

  push(ipcPiece: Uint8Array): void {
    if (ipcPiece.length > 0) this.#ipcPieces.push(ipcPiece);
    this.length += ipcPiece.length;
  }

  peek(peekedBytes: number): Uint8Array[] {
    const [ipcPieces, heldLength] = [[...this.#ipcPieces], this.length];
    const fieldBytes = this.take(peekedBytes);
    this.#ipcPieces = ipcPieces;
    this.length = heldLength;
    return fieldBytes;
  }

  take(takenBytes: number): Uint8Array[] {
    const takenPieces: Uint8Array[] = [];
    for (let bytesLeft = takenBytes; bytesLeft > 0; ) {
      const ipcPiece = this.#ipcPieces[0]!;
      takenPieces.push(ipcPiece.subarray(0, bytesLeft));
      if (ipcPiece.length <= bytesLeft) this.#ipcPieces.shift();
      else this.#ipcPieces[0] = ipcPiece.subarray(bytesLeft);
      bytesLeft -= Math.min(bytesLeft, ipcPiece.length);
    }
    this.length -= takenBytes;
    return takenPieces;
  }
}

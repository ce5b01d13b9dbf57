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

const sqlPrefix = 'type.googleapis.com/arrow.flight.protocol.sql.';
const maxCommandBytes = 1 << 20;

/** The message of that name in an `Any`; null where it is another. */
export function unpack(bytes: Uint8Array, name: string): ProtobufMessage | null {
  const packed = unpackAny(bytes);
  return packed?.name === name ? packed.message : null;
}

export function pack(name: string, packed: Uint8Array): Buffer {
  return protobufMessage(textField(1, sqlPrefix + name), bytesField(2, packed));
}

/** Unpacks an Any; null: it is no message of Flight SQL. */
function unpackAny(bytes: Uint8Array): { readonly name: string; readonly message: ProtobufMessage } | null {
  const prefix = Buffer.from(sqlPrefix);
  // The first field is the name: its number, its length, and how all of them begin.
  if (bytes[0] !== 0x0a || Buffer.compare(bytes.subarray(2, 2 + prefix.length), prefix) !== 0) return null;
  const any = new ProtobufMessage(bytes);
  const name = any.text(1);
  // The last of several fields of one number counts.
  if (!name?.startsWith(sqlPrefix)) return null;
  return { name: name.slice(sqlPrefix.length), message: new ProtobufMessage(any.bytes(2) ?? new Uint8Array(0)) };
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
  if (command.length > maxCommandBytes) throw new ServiceError('REL_TOO_LARGE', `a command has at most ${maxCommandBytes} bytes`);
  const packed = unpackAny(command);
  if (packed !== null) return sqlCommand(packed.name, packed.message);
  if (command.length === 0 || !isUtf8(command))
    throw new ServiceError('REL_INVALID', 'a descriptor has a path, or a command: SQL, or a message of Flight SQL in an Any');
  return { kind: 'sql', sql: Buffer.from(command).toString('utf8') };
}

function sqlCommand(name: string, flightMessage: ProtobufMessage): FlightCommand {
  switch (name) {
    case 'CommandStatementQuery':
      return { kind: 'sql', sql: flightMessage.text(1) ?? '' };
    case 'CommandPreparedStatementQuery':
      return { kind: 'prepared', handle: flightMessage.bytes(1) ?? new Uint8Array(0) };
    case 'CommandStatementIngest':
      return ingestOf(flightMessage);
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
      throw new ServiceError('REL_NOT_IMPLEMENTED', `${name.slice(0, 100)} of Flight SQL is not implemented`);
  }
}

function ingestOf(flightMessage: ProtobufMessage): FlightCommand {
  const options = new ProtobufMessage(flightMessage.bytes(1) ?? new Uint8Array(0));
  const [ifAbsent, ifPresent] = [options.number(1), options.number(2)];
  if (ifPresent === 3n) throw new ServiceError('REL_NOT_IMPLEMENTED', 'replacing a table is not implemented: its history stays');
  return {
    kind: 'ingest',
    type: flightMessage.text(2) ?? '',
    ...(ifAbsent === 2n && { ifAbsent: 'fail' }),
    ...(ifPresent === 1n && { ifPresent: 'fail' }),
  };
}

/** `schema`: an encapsulated message of Arrow IPC. The number of rows is unknown until they are read. */
export function flightInfo(schema: Uint8Array, descriptor: Uint8Array, ticket: Uint8Array): Buffer {
  const endpoint = bytesField(1, bytesField(1, ticket));
  return protobufMessage(
    bytesField(1, schema),
    bytesField(2, descriptor),
    bytesField(3, endpoint),
    varintField(4, -1),
    varintField(5, -1),
  );
}

export const pathDescriptor = (name: string): Buffer => protobufMessage(varintField(1, 1), textField(3, name));

/** A received message of a stream of rows. */
export interface FlightData {
  /** Null except for the first message. */
  readonly descriptor: Uint8Array | null;
  /** Metadata of an Arrow message; null where there is none. */
  readonly header: Uint8Array | null;
  /** Begins at a multiple of eight in its memory. */
  readonly body: Uint8Array;
}

export function flightDataOf(bytes: Uint8Array): FlightData {
  const read = new ProtobufMessage(bytes);
  const header = read.bytes(2);
  return {
    descriptor: read.bytes(1),
    header: header === null || header.length === 0 ? null : header,
    body: Uint8Array.from(read.bytes(bodyField) ?? []),
  };
}

const bodyField = 1_000;
const markBytes = 8;

/** A message that is not joined: who sends it copies the pieces to where they leave from. */
export class MessagePieces {
  readonly byteLength: number;
  readonly #pieces: Fields;

  constructor(pieces: Fields) {
    this.#pieces = pieces;
    this.byteLength = pieces.reduce((sum, { length }) => sum + length, 0);
  }

  copy(target: Uint8Array, start: number): void {
    let at = start;
    for (const piece of this.#pieces) {
      target.set(piece, at);
      at += piece.length;
    }
  }

  toBuffer(): Buffer {
    return protobufMessage(...this.#pieces);
  }
}

/** Pieces of a stream of Arrow IPC as messages `FlightData`. */
export function* flightDataFrom(pieces: Iterable<Uint8Array>): Generator<MessagePieces, void> {
  const held = new HeldBytes();
  let header: Buffer | null = null;
  let needed = markBytes;
  for (const piece of pieces) {
    held.push(piece);
    while (held.length >= needed) {
      if (header === null) {
        const mark = Buffer.concat(held.peek(markBytes));
        const size = mark.readUInt32LE(4);
        // The end of the stream.
        if (size === 0) return;
        needed = markBytes + size;
        if (held.length < needed) break;
        held.take(markBytes);
        header = Buffer.concat(held.take(size));
        needed = parseMessageSize(header);
      } else {
        const body = held.take(needed);
        const last = needed === 0 ? [] : [lengthPrefix(bodyField, needed), ...body];
        yield new MessagePieces([bytesField(2, header), ...last]);
        header = null;
        needed = markBytes;
      }
    }
  }
}

/** Pieces of bytes, taken by their number. */
class HeldBytes {
  #pieces: Uint8Array[] = [];
  length = 0;

  push(piece: Uint8Array): void {
    if (piece.length > 0) this.#pieces.push(piece);
    this.length += piece.length;
  }

  peek(size: number): Uint8Array[] {
    const [pieces, length] = [[...this.#pieces], this.length];
    const fieldBytes = this.take(size);
    this.#pieces = pieces;
    this.length = length;
    return fieldBytes;
  }

  take(size: number): Uint8Array[] {
    const takenPieces: Uint8Array[] = [];
    for (let left = size; left > 0; ) {
      const piece = this.#pieces[0]!;
      takenPieces.push(piece.subarray(0, left));
      if (piece.length <= left) this.#pieces.shift();
      else this.#pieces[0] = piece.subarray(left);
      left -= Math.min(left, piece.length);
    }
    this.length -= size;
    return takenPieces;
  }
}

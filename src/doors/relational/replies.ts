/** Replies of a server of the Postgres protocol, in one growing buffer: type [1], length [4], body. */
import { ByteWriter } from '../../planner/formats/byte-writer.ts';
import type { WireType } from '../../planner/system-catalogue/postgres-column-types.ts';

export interface Field {
  readonly name: string;
  readonly type: WireType;
  /** 0 text, 1 binary. */
  readonly format: number;
  /** Numbers of the table and of its column that it shows as it is; absent: it is made of others. */
  readonly origin?: FieldOrigin | undefined;
}

export interface FieldOrigin {
  readonly table: number;
  readonly column: number;
}

export interface ErrorFields {
  readonly sqlstate: string;
  readonly message: string;
  /** Code of this store. */
  readonly code: string;
  /** Character of the statement, from 1. */
  readonly position?: number | undefined;
  /** The constraint that a row breaks, and where it stands. */
  readonly broken?: BrokenConstraint | undefined;
}

export interface BrokenConstraint {
  readonly detail?: string;
  readonly table: string;
  readonly column?: string;
  readonly constraint?: string;
}

export type TransactionStatus = 'I' | 'T' | 'E';

/** Row descriptions by their list of fields, which statements share. */
const described = new WeakMap<readonly Field[], Uint8Array>();

export class PostgresReplies {
  readonly writer = new ByteWriter(512);
  #start = 0;

  get length(): number {
    return this.writer.length;
  }

  take(): Buffer {
    return this.writer.take();
  }

  /** Drops the bytes written since the buffer had this length. */
  cut(length: number): void {
    this.writer.length = length;
  }

  begin(type: string): void {
    this.writer.byte(type.charCodeAt(0));
    this.#start = this.writer.length;
    this.int32(0);
  }

  end(): void {
    this.writer.view.setInt32(this.#start, this.writer.length - this.#start);
  }

  int16(value: number): void {
    const { writer } = this;
    writer.reserve(2);
    writer.view.setInt16(writer.length, value);
    writer.length += 2;
  }

  int32(value: number): void {
    const { writer } = this;
    writer.reserve(4);
    writer.view.setInt32(writer.length, value);
    writer.length += 4;
  }

  text(text: string): void {
    this.writer.string(text);
    this.writer.byte(0);
  }

  /** A message whose body is empty. */
  bare(type: string): void {
    this.begin(type);
    this.end();
  }

  authentication(kind: number, body: Uint8Array = nothing): void {
    this.begin('R');
    this.int32(kind);
    this.writer.copy(body, 0, body.length);
    this.end();
  }

  parameter(name: string, value: string): void {
    this.begin('S');
    this.text(name);
    this.text(value);
    this.end();
  }

  backendKey(process: number, secret: number): void {
    this.begin('K');
    this.int32(process);
    this.int32(secret);
    this.end();
  }

  ready(status: TransactionStatus): void {
    this.begin('Z');
    this.writer.byte(status.charCodeAt(0));
    this.end();
  }

  complete(tag: string): void {
    this.begin('C');
    this.text(tag);
    this.end();
  }

  fields(fields: readonly Field[]): void {
    const known = described.get(fields);
    if (known !== undefined) return this.writer.copy(known, 0, known.length);
    const from = this.writer.length;
    this.begin('T');
    this.int16(fields.length);
    for (const { name, type, format, origin } of fields) {
      this.text(name.replaceAll('\0', ''));
      this.int32(origin?.table ?? 0);
      this.int16(origin?.column ?? 0);
      this.int32(type.oid);
      this.int16(type.size);
      this.int32(-1);
      this.int16(format);
    }
    this.end();
    described.set(fields, Buffer.from(this.writer.bytes.subarray(from, this.writer.length)));
  }

  /** `G`: rows are expected, `H`: they follow. */
  copyBegins(type: 'G' | 'H', isBinary: boolean, columns: number): void {
    this.begin(type);
    this.writer.byte(isBinary ? 1 : 0);
    this.int16(columns);
    for (let i = 0; i < columns; i++) this.int16(isBinary ? 1 : 0);
    this.end();
  }

  parameterTypes(oids: readonly number[]): void {
    this.begin('t');
    this.int16(oids.length);
    for (const oid of oids) this.int32(oid);
    this.end();
  }

  /** A row of texts; null for NULL. */
  row(cells: readonly (string | null)[]): void {
    this.begin('D');
    this.int16(cells.length);
    for (const cell of cells) {
      if (cell === null) {
        this.int32(-1);
        continue;
      }
      this.int32(Buffer.byteLength(cell));
      this.writer.string(cell);
    }
    this.end();
  }

  error(fields: ErrorFields, severity: 'ERROR' | 'FATAL' = 'ERROR'): void {
    this.#report('E', severity, fields);
  }

  notice(message: string, sqlstate = '00000', severity: 'NOTICE' | 'WARNING' = 'NOTICE'): void {
    this.#report('N', severity, { sqlstate, message, code: '' });
  }

  /** Names the options of a newer protocol that this server does not support. */
  negotiate(unknown: readonly string[]): void {
    this.begin('v');
    this.int32(0);
    this.int32(unknown.length);
    for (const name of unknown) this.text(name);
    this.end();
  }

  #report(type: 'E' | 'N', severity: string, { sqlstate, message, code, position, broken }: ErrorFields): void {
    this.begin(type);
    const members: Record<string, string> = { S: severity, V: severity, C: sqlstate, M: message };
    if (broken !== undefined) {
      const { detail, table, column, constraint } = broken;
      if (detail !== undefined) members['D'] = detail;
      Object.assign(members, { s: 'public', t: table });
      if (column !== undefined) members['c'] = column;
      if (constraint !== undefined) members['n'] = constraint;
    }
    if (position !== undefined) members['P'] = String(position);
    if (code !== '') members['R'] = code;
    for (const [name, value] of Object.entries(members)) {
      this.writer.byte(name.charCodeAt(0));
      this.text(value.replaceAll('\0', ''));
    }
    this.writer.byte(0);
    this.end();
  }
}

const nothing = new Uint8Array(0);

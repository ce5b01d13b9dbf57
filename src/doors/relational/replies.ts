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
const rowDescriptions = new WeakMap<readonly Field[], Uint8Array>();

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
  cut(keptLength: number): void {
    this.writer.length = keptLength;
  }

  begin(messageLetter: string): void {
    this.writer.byte(messageLetter.charCodeAt(0));
    this.#start = this.writer.length;
    this.int32(0);
  }

  end(): void {
    this.writer.view.setInt32(this.#start, this.writer.length - this.#start);
  }

  int16(int16Value: number): void {
    const { writer } = this;
    writer.reserve(2);
    writer.view.setInt16(writer.length, int16Value);
    writer.length += 2;
  }

  int32(int32Value: number): void {
    const { writer } = this;
    writer.reserve(4);
    writer.view.setInt32(writer.length, int32Value);
    writer.length += 4;
  }

  text(messageText: string): void {
    this.writer.string(messageText);
    this.writer.byte(0);
  }

  /** A message whose body is empty. */
  bare(messageLetter: string): void {
    this.begin(messageLetter);
    this.end();
  }

  authentication(authenticationCode: number, authenticationBody: Uint8Array = noBody): void {
    this.begin('R');
    this.int32(authenticationCode);
    this.writer.copy(authenticationBody, 0, authenticationBody.length);
    this.end();
  }

  parameter(parameterName: string, parameterValue: string): void {
    this.begin('S');
    this.text(parameterName);
    this.text(parameterValue);
    this.end();
  }

  backendKey(backendProcess: number, backendSecret: number): void {
    this.begin('K');
    this.int32(backendProcess);
    this.int32(backendSecret);
    this.end();
  }

  ready(transactionStatus: TransactionStatus): void {
    this.begin('Z');
    this.writer.byte(transactionStatus.charCodeAt(0));
    this.end();
  }

  complete(commandTag: string): void {
    this.begin('C');
    this.text(commandTag);
    this.end();
  }

  fields(rowFields: readonly Field[]): void {
    const rowDescription = rowDescriptions.get(rowFields);
    if (rowDescription !== undefined) return this.writer.copy(rowDescription, 0, rowDescription.length);
    const descriptionStart = this.writer.length;
    this.begin('T');
    this.int16(rowFields.length);
    for (const { name: fieldName, type: fieldType, format: fieldFormat, origin: fieldOrigin } of rowFields) {
      this.text(fieldName.replaceAll('\0', ''));
      this.int32(fieldOrigin?.table ?? 0);
      this.int16(fieldOrigin?.column ?? 0);
      this.int32(fieldType.oid);
      this.int16(fieldType.size);
      this.int32(-1);
      this.int16(fieldFormat);
    }
    this.end();
    rowDescriptions.set(rowFields, Buffer.from(this.writer.bytes.subarray(descriptionStart, this.writer.length)));
  }

  /** `G`: rows are expected, `H`: they follow. */
  copyBegins(copyLetter: 'G' | 'H', isBinaryCopy: boolean, copyColumnCount: number): void {
    this.begin(copyLetter);
    this.writer.byte(isBinaryCopy ? 1 : 0);
    this.int16(copyColumnCount);
    for (let i = 0; i < copyColumnCount; i++) this.int16(isBinaryCopy ? 1 : 0);
    this.end();
  }

  parameterTypes(parameterOids: readonly number[]): void {
    this.begin('t');
    this.int16(parameterOids.length);
    for (const parameterOid of parameterOids) this.int32(parameterOid);
    this.end();
  }

  /** A row of texts; null for NULL. */
  row(rowCells: readonly (string | null)[]): void {
    this.begin('D');
    this.int16(rowCells.length);
    for (const rowCell of rowCells) {
      if (rowCell === null) {
        this.int32(-1);
        continue;
      }
      this.int32(Buffer.byteLength(rowCell));
      this.writer.string(rowCell);
    }
    this.end();
  }

  error(errorFields: ErrorFields, errorSeverity: 'ERROR' | 'FATAL' = 'ERROR'): void {
    this.#report('E', errorSeverity, errorFields);
  }

  notice(noticeMessage: string, sqlstate = '00000', noticeSeverity: 'NOTICE' | 'WARNING' = 'NOTICE'): void {
    this.#report('N', noticeSeverity, { sqlstate, message: noticeMessage, code: '' });
  }

  /** Names the options of a newer protocol that this server does not support. */
  negotiate(unknownParameters: readonly string[]): void {
    this.begin('v');
    this.int32(0);
    this.int32(unknownParameters.length);
    for (const unknownParameter of unknownParameters) this.text(unknownParameter);
    this.end();
  }

  #report(
    reportLetter: 'E' | 'N',
    reportSeverity: string,
    { sqlstate, message: reportMessage, code: errorCode, position: errorPosition, broken: brokenConstraint }: ErrorFields,
  ): void {
    this.begin(reportLetter);
    const reportFields: Record<string, string> = { S: reportSeverity, V: reportSeverity, C: sqlstate, M: reportMessage };
    if (brokenConstraint !== undefined) {
      const { detail: brokenDetail, table: brokenTable, column: brokenColumn, constraint } = brokenConstraint;
      if (brokenDetail !== undefined) reportFields['D'] = brokenDetail;
      Object.assign(reportFields, { s: 'public', t: brokenTable });
      if (brokenColumn !== undefined) reportFields['c'] = brokenColumn;
      if (constraint !== undefined) reportFields['n'] = constraint;
    }
    if (errorPosition !== undefined) reportFields['P'] = String(errorPosition);
    if (errorCode !== '') reportFields['R'] = errorCode;
    for (const [fieldLetter, fieldValue] of Object.entries(reportFields)) {
      this.writer.byte(fieldLetter.charCodeAt(0));
      this.text(fieldValue.replaceAll('\0', ''));
    }
    this.writer.byte(0);
    this.end();
  }
}

const noBody = new Uint8Array(0);

/** ErrorResponse fields of a failure: SQLSTATE, severity, constraint and position. */
import { type ErrorCode, ServiceError } from '../../errors.ts';
import { errorCodesOf, sqlstateOfReason } from '../error-codes.ts';
import type { BrokenConstraint, ErrorFields } from './replies.ts';

/** An error of the protocol itself, with a state that no error of the store has. */
export class ProtocolRefusal extends ServiceError {
  readonly sqlstate: string;

  constructor(sqlstate: string, code: ErrorCode, detail: string) {
    super(code, detail);
    this.sqlstate = sqlstate;
  }
}

/** `failedSql`: the statement that it is about. */
export function errorFields(serviceError: ServiceError, failedSql?: string): ErrorFields {
  const { code, message, facts } = serviceError;
  const sqlstate =
    serviceError instanceof ProtocolRefusal
      ? serviceError.sqlstate
      : facts.reason === undefined
        ? errorCodesOf(code, facts.stale).sqlstate
        : sqlstateOfReason[facts.reason];
  return {
    sqlstate,
    message,
    code,
    position: failedSql === undefined ? undefined : errorPosition(serviceError, failedSql),
    broken: brokenConstraint(serviceError),
  };
}

/** The broken constraint in the words of Postgres: clients find the column or the key by them. */
function brokenConstraint({ code, facts: { refused: refusedRow, stale } }: ServiceError): BrokenConstraint | undefined {
  if (refusedRow === undefined || stale) return undefined;
  const { type: refusedTable, column: refusedColumn, key: refusedKey } = refusedRow;
  if (refusedColumn !== undefined) return { table: refusedTable, column: refusedColumn };
  if (code !== 'REL_CONFLICT' || refusedKey === undefined) return undefined;
  return {
    table: refusedTable,
    constraint: `${refusedTable}_pkey`,
    detail: `Key (${refusedKey.name})=(${refusedKey.text}) already exists.`,
  };
}

/** Character from 1, as Postgres counts: by code points. */
function errorPosition({ facts: { line: errorLine, column: errorColumn } }: ServiceError, failedSql: string): number | undefined {
  if (errorLine === undefined || errorColumn === undefined) return undefined;
  let lineStart = 0;
  for (let i = 1; i < errorLine; i++) lineStart = failedSql.indexOf('\n', lineStart) + 1;
  let characterPosition = 1;
  for (let characterOffset = 0; characterOffset < lineStart + errorColumn - 1; characterPosition++)
    characterOffset += failedSql.codePointAt(characterOffset)! > 0xffff ? 2 : 1;
  return characterPosition;
}

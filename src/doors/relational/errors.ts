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

/** `text`: the statement that it is about. */
export function errorFields(error: ServiceError, text?: string): ErrorFields {
  const { code, message, facts } = error;
  const sqlstate =
    error instanceof ProtocolRefusal
      ? error.sqlstate
      : facts.reason === undefined
        ? errorCodesOf(code, facts.stale).sqlstate
        : sqlstateOfReason[facts.reason];
  return { sqlstate, message, code, position: text === undefined ? undefined : positionOf(error, text), broken: brokenBy(error) };
}

/** The broken constraint in the words of Postgres: clients find the column or the key by them. */
function brokenBy({ code, facts: { refused, stale } }: ServiceError): BrokenConstraint | undefined {
  if (refused === undefined || stale) return undefined;
  const { type, column, key } = refused;
  if (column !== undefined) return { table: type, column };
  if (code !== 'REL_CONFLICT' || key === undefined) return undefined;
  return { table: type, constraint: `${type}_pkey`, detail: `Key (${key.name})=(${key.text}) already exists.` };
}

/** Character from 1, as Postgres counts: by code points. */
function positionOf({ facts: { line, column } }: ServiceError, text: string): number | undefined {
  if (line === undefined || column === undefined) return undefined;
  let start = 0;
  for (let i = 1; i < line; i++) start = text.indexOf('\n', start) + 1;
  let position = 1;
  for (let at = 0; at < start + column - 1; position++) at += text.codePointAt(at)! > 0xffff ? 2 : 1;
  return position;
}

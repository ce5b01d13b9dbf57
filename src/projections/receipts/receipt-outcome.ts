/** The outcome that a receipt keeps, as JSON: every part of the reply to the request. i64 as strings. */
import { ServiceError } from '../../errors.ts';
import type { Outcome, RowRejection } from '../command.ts';

type ReceiptFields = Pick<
  Outcome,
  'accepted' | 'rejected' | 'errors' | 'ids' | 'idsTruncated' | 'systemFrom' | 'systemFromLast' | 'changed'
>;

interface ReceiptText extends Omit<ReceiptFields, 'ids' | 'systemFrom' | 'systemFromLast'> {
  readonly last: boolean;
  /** How many: they are in the rows alone, where the seals of subjects cover them. */
  readonly ids: readonly string[] | number;
  readonly systemFrom: string;
  readonly systemFromLast: string;
}

/** `hidesKeys`: rows may be a subject's, so their keys are written nowhere else. */
export function outcomeText(receiptFields: ReceiptFields, last: boolean, hidesKeys: boolean): string {
  const { accepted, rejected, errors, ids, idsTruncated, systemFrom, systemFromLast, changed } = receiptFields;
  const receiptText: ReceiptText = {
    last,
    accepted,
    rejected,
    errors: errors.map(({ index, code, detail }): RowRejection => ({ index, code, detail })),
    ids: hidesKeys ? ids.length : ids,
    idsTruncated,
    systemFrom: systemFrom.toString(),
    systemFromLast: systemFromLast.toString(),
    changed,
  };
  return JSON.stringify(receiptText);
}

/** A number of keys where rows have to be asked for them. */
export type Receipted = Omit<ReceiptFields, 'ids'> & { readonly ids: readonly string[] | number };

/** Throws REL_STORAGE for what no receipt holds. */
export function readOutcome(receiptText: string): Receipted {
  try {
    const { last: _last, systemFrom, systemFromLast, ...receiptFields } = JSON.parse(receiptText) as ReceiptText;
    return { ...receiptFields, systemFrom: BigInt(systemFrom), systemFromLast: BigInt(systemFromLast) };
  } catch (cause) {
    throw new ServiceError('REL_STORAGE', 'the outcome in a receipt is malformed', { cause });
  }
}

/** Total: an outcome that is not JSON ends nothing. */
export function isLast(receiptText: string): boolean {
  try {
    return (JSON.parse(receiptText) as Partial<ReceiptText> | null)?.last === true;
  } catch {
    return false;
  }
}

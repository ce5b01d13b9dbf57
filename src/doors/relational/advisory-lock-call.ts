/** `SELECT pg_advisory_lock(1)` and its like: one call by itself, of numbers or parameters. Source: PostgreSQL, "Advisory Lock Functions". */
import { ServiceError } from '../../errors.ts';
import type { LockMode, LockName } from './advisory-locks.ts';

export interface AdvisoryLockCall {
  readonly name: string;
  readonly act: 'take' | 'try' | 'free' | 'free-all';
  readonly mode: LockMode;
  readonly ofTransaction: boolean;
  /** One number of 64 bits, or two of 32; a parameter has its number from 1. */
  readonly arguments: readonly (bigint | { readonly parameter: number })[];
  /** The name of its column. */
  readonly column: string;
}

const advisoryCall =
  /^\s*SELECT\s+(?:pg_catalog\.)?(pg_(?:try_)?advisory_(?:xact_)?lock(?:_shared)?|pg_advisory_unlock(?:_shared|_all)?)\s*\(([^()]*)\)/i;
const advisoryColumnName = /^(?:\s+AS)?\s+("[^"]+"|[a-z_]\w*)$/i;
const advisoryArgument = /^\s*(?:([+-]?\d{1,19})|\$(\d{1,5}))\s*(?:::\s*(?:bigint|int8|integer|int4|int)\s*)?$/i;

/** Parses a call of an advisory lock; null where the text is none. */
export function advisoryLockCallIn(text: string): AdvisoryLockCall | null {
  const callMatch = advisoryCall.exec(text);
  if (callMatch === null) return null;
  const rest = text.slice(callMatch[0].length).trimEnd().replace(/;$/, '').trimEnd();
  const column = rest === '' ? undefined : advisoryColumnName.exec(rest)?.[1];
  if (rest !== '' && column === undefined) return null;
  const name = callMatch[1]!.toLowerCase();
  const written = callMatch[2]!.trim() === '' ? [] : callMatch[2]!.split(',');
  const isAll = name.endsWith('_all');
  const lockArguments = written.map((each) => {
    const [, number, parameter] = advisoryArgument.exec(each) ?? [];
    if (number !== undefined) return BigInt(number);
    if (parameter !== undefined) return { parameter: Number(parameter) };
    throw new ServiceError('REL_NOT_IMPLEMENTED', `${name} takes numbers and parameters`);
  });
  if (isAll ? lockArguments.length > 0 : lockArguments.length !== 1 && lockArguments.length !== 2)
    throw new ServiceError('REL_PARSE', `no ${name} takes ${lockArguments.length} arguments`, { reason: 'no-such-function' });
  return {
    name,
    act: isAll ? 'free-all' : name.includes('unlock') ? 'free' : name.includes('try') ? 'try' : 'take',
    mode: name.endsWith('_shared') ? 'shared' : 'exclusive',
    ofTransaction: name.includes('_xact_'),
    arguments: lockArguments,
    column: column === undefined ? name : column.startsWith('"') ? column.slice(1, -1) : column,
  };
}

/** Keys of one number and of two are apart, and each tenant has its own. */
export function lockKey(tenant: string | null, lockNumbers: readonly bigint[]): LockName {
  const lockNumberBits = lockNumbers.length === 1 ? 64 : 32;
  for (const lockNumber of lockNumbers)
    if (BigInt.asIntN(lockNumberBits, lockNumber) !== lockNumber)
      throw new ServiceError(
        'REL_INVALID',
        `an advisory lock of ${lockNumbers.length} numbers takes them of ${lockNumberBits} bits`,
        {
          reason: 'out-of-range',
        },
      );
  return { tenant, key: lockNumbers.join(' ') };
}

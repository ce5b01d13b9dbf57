/** The condition under which a request writes rows: by `?when=`, or by the conditional headers of HTTP. */
import { ServiceError } from '../../errors.ts';
import { I64_MAX } from '../../log/values/value.ts';
import type { WriteCondition } from '../../projections/command.ts';
import { toInstant } from '../schemas/instants.ts';
import type { GateRequest } from './context.ts';
import { headerText } from './request-headers.ts';

/** The condition of a request; null where it states none. Contradictory conditions are refused, not ranked. */
export function statedCondition(request: GateRequest, when: string | undefined): WriteCondition | null {
  const stated: WriteCondition[] = [];
  if (when !== undefined) stated.push(when === 'absent' || when === 'present' ? when : { unchangedSince: toInstant(when) });
  const match = headerText(request, 'if-match');
  if (match !== null) stated.push(match === '*' ? 'present' : { unchangedSince: parseTag(match) });
  const noneMatch = headerText(request, 'if-none-match');
  if (noneMatch !== null && noneMatch !== '*') {
    throw new ServiceError('REL_INVALID', 'a write takes only If-None-Match: *, which inserts new rows');
  }
  if (noneMatch !== null) stated.push('absent');
  const texts = new Set(stated.map((each) => (typeof each === 'string' ? each : each.unchangedSince)));
  if (texts.size > 1) throw new ServiceError('REL_INVALID', 'the request has contradictory conditions');
  return stated[0] ?? null;
}

/** The entity tag that a later If-Match takes. */
export function entityTag(systemFrom: bigint): string {
  return `"${systemFrom}"`;
}

const tag = /^"(\d{1,19})"$/;

function parseTag(text: string): bigint {
  const digits = tag.exec(text)?.[1];
  if (digits === undefined) {
    throw new ServiceError('REL_INVALID', 'If-Match takes * or the system_from of the row as it was read, in double quotes');
  }
  return nanosecondsOf(digits);
}

function nanosecondsOf(digits: string): bigint {
  const value = BigInt(digits);
  if (value > I64_MAX) throw new ServiceError('REL_INVALID', `an instant is at most ${I64_MAX} nanoseconds`);
  return value;
}

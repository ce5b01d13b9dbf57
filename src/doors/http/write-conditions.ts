/** The condition under which a request writes rows: by `?when=`, or by the conditional headers of HTTP. */
import { ServiceError } from '../../errors.ts';
import { I64_MAX } from '../../log/values/value.ts';
import type { WriteCondition } from '../../projections/command.ts';
import { toInstant } from '../shared/instants.ts';
import type { GateRequest } from './context.ts';
import { headerText } from './request-headers.ts';

/** The condition of a request; null where it states none. Contradictory conditions are refused, not ranked. */
export function statedCondition(gateRequest: GateRequest, whenParameter: string | undefined): WriteCondition | null {
  const statedConditions: WriteCondition[] = [];
  if (whenParameter !== undefined)
    statedConditions.push(
      whenParameter === 'absent' || whenParameter === 'present' ? whenParameter : { unchangedSince: toInstant(whenParameter) },
    );
  const ifMatch = headerText(gateRequest, 'if-match');
  if (ifMatch !== null) statedConditions.push(ifMatch === '*' ? 'present' : { unchangedSince: parseEntityTag(ifMatch) });
  const ifNoneMatch = headerText(gateRequest, 'if-none-match');
  if (ifNoneMatch !== null && ifNoneMatch !== '*') {
    throw new ServiceError('REL_INVALID', 'a write takes only If-None-Match: *, which inserts new rows');
  }
  if (ifNoneMatch !== null) statedConditions.push('absent');
  const conditionTexts = new Set(
    statedConditions.map((writeCondition) =>
      typeof writeCondition === 'string' ? writeCondition : writeCondition.unchangedSince,
    ),
  );
  if (conditionTexts.size > 1) throw new ServiceError('REL_INVALID', 'the request has contradictory conditions');
  return statedConditions[0] ?? null;
}

/** The entity tag that a later If-Match takes. */
export function entityTag(rowSystemFrom: bigint): string {
  return `"${rowSystemFrom}"`;
}

const entityTagPattern = /^"(\d{1,19})"$/;

function parseEntityTag(tagText: string): bigint {
  const tagDigits = entityTagPattern.exec(tagText)?.[1];
  if (tagDigits === undefined) {
    throw new ServiceError('REL_INVALID', 'If-Match takes * or the system_from of the row as it was read, in double quotes');
  }
  return tagNanoseconds(tagDigits);
}

function tagNanoseconds(tagDigits: string): bigint {
  const tagInstant = BigInt(tagDigits);
  if (tagInstant > I64_MAX) throw new ServiceError('REL_INVALID', `an instant is at most ${I64_MAX} nanoseconds`);
  return tagInstant;
}

/** The refusal to join what a judgement keeps apart. */
import { ServiceError } from '../../errors.ts';
import type { Judgement } from '../access-paths.ts';

/** REL_CONFLICT with the judgement. */
export function conflictWith({ a, b, judgement, reason }: Judgement): ServiceError {
  const why = reason === null ? '' : `: ${reason}`;
  const detail = `${JSON.stringify(a.key)} of ${a.type} and ${JSON.stringify(b.key)} of ${b.type} were judged to be two${why}`;
  const [left, right] = [a, b].map(({ type, key }) => ({ type, key }));
  return new ServiceError('REL_CONFLICT', detail, { extras: { judgement, a: left, b: right, reason } });
}

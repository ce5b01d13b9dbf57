/** The refusal to join what a judgement keeps apart. */
import { ServiceError } from '../../errors.ts';
import type { Judgement } from '../access-paths.ts';

/** REL_CONFLICT with the judgement. */
export function conflictWith({ a, b, judgement, reason }: Judgement): ServiceError {
  const judgedReason = reason === null ? '' : `: ${reason}`;
  const conflictDetail = `${JSON.stringify(a.key)} of ${a.type} and ${JSON.stringify(b.key)} of ${b.type} were judged to be two${judgedReason}`;
  const [judgedA, judgedB] = [a, b].map(({ type, key }) => ({ type, key }));
  return new ServiceError('REL_CONFLICT', conflictDetail, { extras: { judgement, a: judgedA, b: judgedB, reason } });
}

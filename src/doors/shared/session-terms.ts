/**
 * The terms of a session: purpose, branch, instants and durability, which a client of a wire protocol states beside its commands. One
 * parser for all of them, while each protocol carries names and values in its own way.
 */
import { ServiceError } from '../../errors.ts';
import { checkText } from '../../log/values/value.ts';
import type { DefaultTime } from '../../planner/syntax/statement.ts';
import { timeOf } from './instants.ts';

/** The terms of a request; null: not stated. */
export interface Terms {
  readonly purpose: string | null;
  readonly branch: string | null;
  readonly break_glass: string | null;
  readonly access_scope_ref: string | null;
  readonly as_of: string | null;
  readonly as_of_system: string | null;
  /** `sync`: written to the disk before it is acknowledged. */
  readonly durability: string | null;
}

export const noTerms: Terms = {
  purpose: null,
  branch: null,
  break_glass: null,
  access_scope_ref: null,
  as_of: null,
  as_of_system: null,
  durability: null,
};

const termLengthMax = 1_024;

/** `sessionTerms` with one of them stated otherwise; '' takes it back. REL_NOT_FOUND for a name that is none, REL_INVALID for a value. */
export function withTerm(sessionTerms: Terms, termName: string, termValue: string): Terms {
  if (!Object.hasOwn(noTerms, termName)) {
    throw new ServiceError('REL_NOT_FOUND', `there is no term ${JSON.stringify(termName)}; there are ${termNames}`);
  }
  checkText(termValue, termName);
  if (termValue.length > termLengthMax)
    throw new ServiceError('REL_INVALID', `${termName} has at most ${termLengthMax} characters`);
  if (termName === 'durability' && termValue !== '' && termValue !== 'sync' && termValue !== 'buffered')
    throw new ServiceError('REL_INVALID', 'durability is sync or buffered');
  const statedTerms = { ...sessionTerms, [termName]: termValue === '' ? null : termValue };
  timeOfTerms(statedTerms);
  return statedTerms;
}

export const termNames = Object.keys(noTerms).join(', ');

export function timeOfTerms({ as_of, as_of_system }: Pick<Terms, 'as_of' | 'as_of_system'>): DefaultTime {
  return timeOf({ as_of: as_of ?? undefined, as_of_system: as_of_system ?? undefined });
}

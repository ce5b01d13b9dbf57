import { ServiceError } from '../../errors.ts';

export function secondRow(): ServiceError {
  return new ServiceError('REL_INVALID', 'a subquery used as a value yields more than one row', {
    reason: 'several-rows',
  });
}

/**
 * Checks the terms of a sharing agreement, so that none is silently without effect: a mask on a column that no type has would
 * hide nothing, and a condition that can't be decided would share nothing.
 */
import { didYouMean, ServiceError } from '../../errors.ts';
import type { AgreementTerms, TypeDefinition } from '../../log/entries/entry.ts';
import { systemColumns } from '../../log/values/value.ts';
import { readAgreementCondition } from '../authorization/agreement-policy.ts';
import { readPolicies } from '../authorization/cedar/policies.ts';
import { isClassified } from '../authorization/egress.ts';
import { covers } from '../caller.ts';

/** Actions allowed on shared rows: they are never written to. */
export const sharedActions: readonly string[] = ['read', 'search', 'export', 'replay'];

/** Throws what refuses the terms that `tenant` offers. */
export function checkAgreementTerms(
  tenant: string,
  terms: AgreementTerms,
  typeOf: (name: string) => TypeDefinition | undefined,
): void {
  const { assigner, types, where, columns, permission, masking, onwardSharing, aggregateMinGroup } = terms;
  if (!covers(tenant, assigner)) throw invalidTermsError('the assigner is a path of the tenant that shares');
  if (onwardSharing) throw new ServiceError('REL_NOT_IMPLEMENTED', 'onward_sharing is not implemented');
  if (aggregateMinGroup !== null) throw new ServiceError('REL_NOT_IMPLEMENTED', 'aggregate_min_group is not implemented');
  const unknownPermission = permission.find((action) => !sharedActions.includes(action));
  if (unknownPermission !== undefined) {
    throw invalidTermsError(
      `${JSON.stringify(unknownPermission)} is nothing that can be shared; there are ${sharedActions.join(', ')}`,
    );
  }
  // A size of its own is nothing that an agreement has a place for.
  const bucketColumn = Object.entries(masking).find(([, kind]) => kind === 'bucket')?.[0];
  if (bucketColumn !== undefined)
    throw invalidTermsError(`the mask of ${JSON.stringify(bucketColumn)} has no size: an agreement can't say bucket`);
  const unmaskableColumn = Object.keys(masking).find(
    (column) => Object.hasOwn(systemColumns, column) && column !== '_pk' && column !== 'id',
  );
  if (unmaskableColumn !== undefined)
    throw invalidTermsError(
      `${unmaskableColumn} is no cell of a row that could be masked: when it was written, and whose it is, shows`,
    );
  const sharedTypes = types.map((name) => definitionOf(name, typeOf));
  for (const column of [...(columns ?? []), ...Object.keys(masking)]) checkSharedColumn(column, sharedTypes);
  if (where !== null) checkSharedCondition(where, types, typeOf);
}

function definitionOf(name: string, typeOf: (name: string) => TypeDefinition | undefined): TypeDefinition {
  if (isClassified(name)) throw new ServiceError('REL_HUMINT', `${name} is a classified type`);
  const definition = typeOf(name);
  if (definition === undefined) throw new ServiceError('REL_UNKNOWN_TYPE', `the type ${JSON.stringify(name)} is not registered`);
  return definition;
}

function checkSharedColumn(column: string, sharedTypes: readonly TypeDefinition[]): void {
  if (Object.hasOwn(systemColumns, column) || sharedTypes.some(({ properties }) => Object.hasOwn(properties, column))) return;
  const columnGuess = didYouMean(
    column,
    sharedTypes.flatMap(({ properties }) => Object.keys(properties)),
  );
  throw new ServiceError('REL_UNKNOWN_COLUMN', `none of the shared types has a column ${JSON.stringify(column)}${columnGuess}`);
}

function checkSharedCondition(
  where: string,
  types: readonly string[],
  typeOf: (name: string) => TypeDefinition | undefined,
): void {
  readAgreementCondition(where);
  // Once more under each type: conditions on columns that can't be decided are refused with their place.
  for (const type of types) {
    const agreementScope = `permit(principal, action, resource in Type::${JSON.stringify(type)})`;
    readPolicies(`of the agreement on ${type}`, `${agreementScope} when {\n${where}\n};`, (name) => [typeOf(name) ?? []].flat());
  }
}

const invalidTermsError = (why: string): ServiceError => new ServiceError('REL_INVALID', why);

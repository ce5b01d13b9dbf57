/** Chooses the rules that a caller may know of, and those by which its rows are fused. */
import { parseKeep, type Keep, type RuleRecord } from '../../projections/rules/rule.ts';
import { sees } from '../caller.ts';
import type { GovernedSnapshot } from '../gate-contract.ts';
import type { Beginning } from '../tenancy/earlier-tenant.ts';

/** Rules of the caller's path and below it, and `enrich` rules of the paths above it, which apply to the caller's rows too. */
export function visibleRules(rules: readonly RuleRecord[], path: string | null, beginning: Beginning): readonly RuleRecord[] {
  const registeredSince = beginning?.position ?? 0;
  return rules.filter(
    ({ owner, definition, registered }) =>
      registered >= registeredSince && (sees(path, owner) || (definition.kind === 'enrich' && sees(owner, path))),
  );
}

/** An `enrich` rule as the functions that fuse rows apply it. */
export interface EnrichRule {
  readonly id: string;
  readonly name: string;
  readonly field: string;
  readonly keep: Keep;
}

/** Rules for rows of a type at the caller's path and above it, in the order of registration. */
export function enrichRules(
  { rules, caller }: Pick<GovernedSnapshot, 'rules' | 'caller'>,
  objectType: string,
): readonly EnrichRule[] {
  return rules().flatMap(({ id, definition, owner }) =>
    definition.kind === 'enrich' && definition.object_type === objectType && sees(owner, caller.path)
      ? [{ id, name: definition.name, field: definition.field, keep: parseKeep(definition.keep)! }]
      : [],
  );
}

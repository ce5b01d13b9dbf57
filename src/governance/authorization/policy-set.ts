/**
 * The installed policies: read once when the set changes, asked by every invocation. An empty set means that none are
 * installed, and that the rules of `access-rules.ts` decide alone.
 */
import { LRUCache } from 'lru-cache';
import type { Action } from '../gate-contract.ts';
import { CallerPolicies } from './cedar/decision.ts';
import { askerKey, type Asker } from './cedar/entities.ts';
import { cedarActions, policyDigest, readPolicies, type CedarAction, type Policy, type TypeLookup } from './cedar/policies.ts';

/** Callers whose policies are kept folded. */
const rememberedCallers = 1024;

export class PolicySet {
  /** Stands in every entry's context from the first installation on. */
  readonly digest: string;
  readonly policies: readonly Policy[];
  readonly #policiesByAction: ReadonlyMap<CedarAction, readonly Policy[]>;
  readonly #policiesByAsker = new LRUCache<string, CallerPolicies>({ max: rememberedCallers });

  /** Texts by id. Throws REL_INVALID, or REL_NOT_IMPLEMENTED, with the place of what is refused. */
  constructor(policyTexts: ReadonlyMap<string, string>, types?: TypeLookup) {
    this.digest = policyDigest(policyTexts);
    this.policies = [...policyTexts].flatMap(([id, text]) => readPolicies(id, text, types));
    this.#policiesByAction = new Map(
      cedarActions.map((action) => [action, this.policies.filter(({ actions }) => actions === null || actions.has(action))]),
    );
  }

  get isEmpty(): boolean {
    return this.policies.length === 0;
  }

  callerPolicies(asker: Asker): CallerPolicies {
    const key = askerKey(asker);
    let caller = this.#policiesByAsker.get(key);
    if (caller === undefined) {
      caller = new CallerPolicies(this.#policiesByAction, asker);
      this.#policiesByAsker.set(key, caller);
    }
    return caller;
  }
}

/** Names of the gate's actions in policies, and their resources: rows of a type, or something else. */
export const cedarActionOf: Readonly<
  Record<Action, { readonly action: CedarAction; readonly about: 'rows' | 'type' | 'branch' | 'store' | 'audit' | 'state' }>
> = {
  query: { action: 'read', about: 'rows' },
  search: { action: 'search', about: 'rows' },
  watch: { action: 'read', about: 'rows' },
  export: { action: 'export', about: 'rows' },
  replay: { action: 'replay', about: 'rows' },
  ingest: { action: 'write', about: 'rows' },
  delete: { action: 'delete', about: 'rows' },
  remove: { action: 'erase', about: 'rows' },
  erase: { action: 'erase', about: 'rows' },
  schema: { action: 'administer', about: 'type' },
  fork: { action: 'fork', about: 'branch' },
  administer: { action: 'administer', about: 'store' },
  audit: { action: 'read', about: 'audit' },
  inspect: { action: 'read', about: 'state' },
};

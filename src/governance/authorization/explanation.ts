/**
 * Explains what a caller sees of a type: from the decision, the guards and the grant of its reads, so that the explanation is no
 * second implementation. Refuses nothing.
 */
import { ServiceError } from '../../errors.ts';
import type { TypeDefinition } from '../../log/entries/entry.ts';
import type { Caller } from '../caller.ts';
import type { PolicyExplanation } from '../gate-contract.ts';
import type { CallerPolicies } from './cedar/decision.ts';
import type { TypeGrant } from './grant.ts';
import type { Guards } from './guards.ts';
import type { Decision } from './access-rules.ts';

export interface ExplainedRead {
  readonly caller: Caller;
  /** Decision about reading the type, or about reading at all where no type is asked about. */
  readonly decision: Decision;
  readonly guards: Guards;
  /** null: no type is asked about, or none of this name is registered. */
  readonly type: TypeDefinition | null;
  readonly grant: TypeGrant | null;
  /** null: none was installed. */
  readonly policies: CallerPolicies | null;
  readonly policyDigest: string;
  readonly position: number;
  /** Nanoseconds. */
  readonly now: bigint;
}

export function explainRead(explainedRead: ExplainedRead): PolicyExplanation {
  const { caller, decision, type, grant, policies, policyDigest, position, now } = explainedRead;
  const guardRefusal = type === null ? null : guardRefusalOf(explainedRead.guards, type.name);
  const policyExplanation = type === null || policies === null ? null : policies.explain(type, now);
  const sharingAgreements = (grant?.lanes ?? []).flatMap(({ agreement }) => (agreement === null ? [] : [agreement]));
  const ownDecision = caller.sharedFrom !== null || !decision.allowed ? 'deny' : (policyExplanation?.decision ?? 'allow');
  const openDecision = ownDecision === 'deny' && sharingAgreements.length > 0 && !isForbidden(decision) ? 'by row' : ownDecision;
  const explainedVerdict = guardRefusal === null ? openDecision : 'deny';
  const ruleTexts = decision.because.map((rule) => `${rule.id}: ${rule.says}`);
  const determiningPolicies =
    policyExplanation?.determining ?? decision.because.map(({ id, effect }) => ({ id, effect, left: 'true' }));
  const agreementLanes = sharingAgreements.map((id) => `agreement ${id}`);
  const permitReasons = determiningPolicies
    .filter(({ effect }) => effect === 'permit')
    .map(({ id }) => `${policyExplanation ? 'policy' : 'rule'} ${id}`);
  return {
    decision: explainedVerdict,
    because: guardRefusal === null ? ruleTexts : [guardRefusal, ...ruleTexts],
    scope: rowScopeOf(caller),
    determining: determiningPolicies,
    residual: policyExplanation?.residual ?? null,
    masks: policyExplanation?.masks ?? ownLaneMasks(grant),
    policyDigest,
    position,
    satisfiedPath: explainedVerdict === 'deny' ? [] : [...(ownDecision === 'deny' ? [] : permitReasons), ...agreementLanes],
  };
}

/** By a rule that holds whatever is installed or shared. */
function isForbidden({ allowed, because, installed }: Decision): boolean {
  return !allowed && because.length > 0 && installed !== true;
}

/** The guard that closes the type to this caller; null when none does. */
function guardRefusalOf(guards: Guards, type: string): string | null {
  try {
    guards.check(type, []);
    return null;
  } catch (error) {
    if (error instanceof ServiceError) return `${error.code}: ${error.message}`;
    throw error;
  }
}

function rowScopeOf({ path, sharedFrom }: Caller): string {
  if (sharedFrom !== null) return `rows of ${sharedFrom} and below, as they are shared`;
  return path === null ? 'rows without a tenant' : `rows of ${path} and below`;
}

/** While no policy is installed: the masks that the type itself declares. */
function ownLaneMasks(grant: TypeGrant | null): PolicyExplanation['masks'] {
  const ownLane = grant?.lanes.find(({ agreement }) => agreement === null);
  return [...(ownLane?.masks ?? [])].map(([column, { kind, because }]) => ({ column, kind, when: null, because }));
}

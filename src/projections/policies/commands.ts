/** Installing and deleting policies: a command and the set to a `policy` entry. Pure. That a text means something was seen to before. */
import { ServiceError } from '../../errors.ts';
import type { PolicyBody } from '../../log/entries/entry.ts';
import type { NextPosition } from '../../log/log-store.ts';
import { checkIdentifier, checkText } from '../../log/values/value.ts';
import type { DeletePolicy, PutPolicy } from '../command.ts';
import { type DecideContext, type Decision, decideOne } from '../decision.ts';
import { type Policies, policyDigest } from './projection.ts';

const policyTextMax = 65_536;
const policiesMax = 1_000;

/** The same text again is a no-op. */
export function decidePutPolicy(command: PutPolicy, { current }: Policies, context: DecideContext, next: NextPosition): Decision {
  const { id: policyId, text: policyText } = command;
  checkIdentifier(policyId, 'the id of a policy');
  checkText(policyText, 'the text of a policy');
  if (policyText.length === 0 || policyText.length > policyTextMax) {
    throw new ServiceError('REL_INVALID', `the text of a policy has 1 to ${policyTextMax} characters`);
  }
  const existingPolicy = current.policies.find((installedPolicy) => installedPolicy.id === policyId);
  if (existingPolicy?.text === policyText) return decideOne('put-policy', policyId, [], next);
  if (!existingPolicy && current.policies.length >= policiesMax) {
    throw new ServiceError('REL_CONFLICT', `${policiesMax} policies are installed`);
  }
  const newPolicyDigest = policyDigest([...current.policies, { id: policyId, text: policyText }]);
  return decidePolicyChange(
    'put-policy',
    { kind: 'policy', change: 'installed', id: policyId, text: policyText, digest: newPolicyDigest },
    context,
    next,
  );
}

export function decideDeletePolicy(
  command: DeletePolicy,
  { current }: Policies,
  context: DecideContext,
  next: NextPosition,
): Decision {
  const { id: policyId } = command;
  const remainingPolicies = current.policies.filter((policy) => policy.id !== policyId);
  if (remainingPolicies.length === current.policies.length) throw new ServiceError('REL_NOT_FOUND', 'no such policy');
  const newPolicyDigest = policyDigest(remainingPolicies);
  return decidePolicyChange(
    'delete-policy',
    { kind: 'policy', change: 'deleted', id: policyId, text: '', digest: newPolicyDigest },
    context,
    next,
  );
}

function decidePolicyChange(
  policyCommand: 'put-policy' | 'delete-policy',
  policyBody: PolicyBody,
  context: DecideContext,
  next: NextPosition,
): Decision {
  return decideOne(policyCommand, policyBody.id, [{ context: context.entry, body: policyBody }], next);
}

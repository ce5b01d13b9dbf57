/** Installing and deleting policies: a command and the set to a `policy` entry. Pure. That a text means something was seen to before. */
import { ServiceError } from '../../errors.ts';
import type { PolicyBody } from '../../log/entries/entry.ts';
import type { NextPosition } from '../../log/log-store.ts';
import { checkIdentifier, checkText } from '../../log/values/value.ts';
import type { DeletePolicy, PutPolicy } from '../command.ts';
import { type DecideContext, type Decision, decideOne } from '../decision.ts';
import { type Policies, policyDigest } from './projection.ts';

const textMax = 65_536;
const policiesMax = 1_000;

/** The same text again is a no-op. */
export function decidePutPolicy(command: PutPolicy, { current }: Policies, context: DecideContext, next: NextPosition): Decision {
  const { id, text } = command;
  checkIdentifier(id, 'the id of a policy');
  checkText(text, 'the text of a policy');
  if (text.length === 0 || text.length > textMax) {
    throw new ServiceError('REL_INVALID', `the text of a policy has 1 to ${textMax} characters`);
  }
  const existing = current.policies.find((policy) => policy.id === id);
  if (existing?.text === text) return decideOne('put-policy', id, [], next);
  if (!existing && current.policies.length >= policiesMax) {
    throw new ServiceError('REL_CONFLICT', `${policiesMax} policies are installed`);
  }
  const digest = policyDigest([...current.policies, { id, text }]);
  return decide('put-policy', { kind: 'policy', change: 'installed', id, text, digest }, context, next);
}

export function decideDeletePolicy(
  command: DeletePolicy,
  { current }: Policies,
  context: DecideContext,
  next: NextPosition,
): Decision {
  const { id } = command;
  const left = current.policies.filter((policy) => policy.id !== id);
  if (left.length === current.policies.length) throw new ServiceError('REL_NOT_FOUND', 'no such policy');
  const digest = policyDigest(left);
  return decide('delete-policy', { kind: 'policy', change: 'deleted', id, text: '', digest }, context, next);
}

function decide(kind: 'put-policy' | 'delete-policy', body: PolicyBody, context: DecideContext, next: NextPosition): Decision {
  return decideOne(kind, body.id, [{ context: context.entry, body }], next);
}

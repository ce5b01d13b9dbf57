/**
 * The policy set: Cedar texts by id, now and below any position. Governance interprets them. The set is main's: a branch can't
 * keep a policy that was withdrawn.
 */
import { createHash } from 'node:crypto';
import { deserialize, serialize } from 'node:v8';
import { assert } from '../../errors.ts';
import { canonicalJson } from '../../log/values/canonical-json.ts';
import type { CommittedEntry, PolicyBody } from '../../log/entries/entry.ts';
import { compareText } from '../../log/values/value.ts';
import { CanonicalHash } from '../canonical-hash.ts';
import type { CheckpointReader, CheckpointWriter, Projection } from '../projection.ts';

export interface InstalledPolicy {
  readonly id: string;
  /** Cedar. */
  readonly text: string;
  /** Position of the entry that made it what it is, and the nanosecond of that position. */
  readonly position: number;
  readonly time: bigint;
}

/** Immutable: holders may compare it by identity. */
export interface PolicySet {
  /** How many changes made it: rises with each. */
  readonly epoch: number;
  /** Lower-case hex SHA-256 over the RFC 8785 JSON of {id: text}; empty while none is installed. */
  readonly digest: string;
  /** By id, in codepoint order. */
  readonly policies: readonly InstalledPolicy[];
}

interface PolicyChange extends Pick<PolicyBody, 'change' | 'id' | 'text' | 'digest'> {
  readonly position: number;
  readonly time: bigint;
}

const noPolicies: PolicySet = { epoch: 0, digest: '', policies: [] };

export class Policies implements Projection {
  readonly name = 'policies';
  readonly formatVersion = 1;
  /** In the order of the log. */
  #policyChanges: PolicyChange[] = [];
  #currentPolicySet: PolicySet = noPolicies;

  get current(): PolicySet {
    return this.#currentPolicySet;
  }

  /** The set that entries below this position left. */
  setAt(position: number): PolicySet {
    let policySet = noPolicies;
    for (const policyChange of this.#policyChanges) {
      if (policyChange.position >= position) return policySet;
      policySet = applyPolicyChange(policySet, policyChange);
    }
    return this.#currentPolicySet;
  }

  apply(policyEntry: CommittedEntry): void {
    if (policyEntry.body.kind !== 'policy') return;
    const { change, id, text, digest } = policyEntry.body;
    this.#addPolicyChange({ change, id, text, digest, position: policyEntry.position, time: policyEntry.time });
  }

  async checkpoint(policyCheckpoint: CheckpointWriter): Promise<void> {
    policyCheckpoint.section('policies', serialize(this.#policyChanges));
  }

  async restore(policyCheckpoint: CheckpointReader): Promise<void> {
    const policyBytes = policyCheckpoint.section('policies');
    assert(policyBytes, 'a checkpoint of policies has them');
    this.reset();
    for (const policyChange of deserialize(policyBytes) as PolicyChange[]) this.#addPolicyChange(policyChange);
  }

  reset(): void {
    this.#policyChanges = [];
    this.#currentPolicySet = noPolicies;
  }

  digest(): string {
    const policiesHash = new CanonicalHash();
    policiesHash.value(this.#policyChanges);
    return policiesHash.hex();
  }

  #addPolicyChange(policyChange: PolicyChange): void {
    this.#policyChanges.push(policyChange);
    this.#currentPolicySet = applyPolicyChange(this.#currentPolicySet, policyChange);
  }
}

/** Digest of a set with these policies, in any order. */
export function policyDigest(policies: Iterable<{ readonly id: string; readonly text: string }>): string {
  // fromEntries defines own properties: `__proto__` is an id like any other.
  const policyTexts = Object.fromEntries(Array.from(policies, ({ id, text }): [string, string] => [id, text]));
  if (Object.keys(policyTexts).length === 0) return '';
  return createHash('sha256').update(canonicalJson(policyTexts)).digest('hex');
}

/** The set as it would be with another text of this id, or without it (null): the next change of the log would make it. */
export function withPolicy(policySet: PolicySet, id: string, text: string | null): PolicySet {
  const otherPolicies = policySet.policies.filter((policy) => policy.id !== id);
  const newPolicyDigest = policyDigest(text === null ? otherPolicies : [...otherPolicies, { id, text }]);
  const change = text === null ? 'deleted' : 'installed';
  return applyPolicyChange(policySet, {
    change,
    id,
    text: text ?? '',
    digest: newPolicyDigest,
    position: Number.MAX_SAFE_INTEGER,
    time: 0n,
  });
}

function applyPolicyChange(
  { epoch, policies }: PolicySet,
  { change, id, text, digest, position, time }: PolicyChange,
): PolicySet {
  const otherPolicies = policies.filter((policy) => policy.id !== id);
  const changedPolicies = change === 'installed' ? [...otherPolicies, { id, text, position, time }] : otherPolicies;
  return { epoch: epoch + 1, digest, policies: changedPolicies.sort((a, b) => compareText(a.id, b.id)) };
}

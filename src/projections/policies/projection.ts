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

interface Change extends Pick<PolicyBody, 'change' | 'id' | 'text' | 'digest'> {
  readonly position: number;
  readonly time: bigint;
}

const none: PolicySet = { epoch: 0, digest: '', policies: [] };

export class Policies implements Projection {
  readonly name = 'policies';
  readonly formatVersion = 1;
  /** In the order of the log. */
  #changes: Change[] = [];
  #current: PolicySet = none;

  get current(): PolicySet {
    return this.#current;
  }

  /** The set that entries below this position left. */
  setAt(position: number): PolicySet {
    let set = none;
    for (const change of this.#changes) {
      if (change.position >= position) return set;
      set = applyChange(set, change);
    }
    return this.#current;
  }

  apply(entry: CommittedEntry): void {
    if (entry.body.kind !== 'policy') return;
    const { change, id, text, digest } = entry.body;
    this.#add({ change, id, text, digest, position: entry.position, time: entry.time });
  }

  async checkpoint(target: CheckpointWriter): Promise<void> {
    target.section('policies', serialize(this.#changes));
  }

  async restore(source: CheckpointReader): Promise<void> {
    const bytes = source.section('policies');
    assert(bytes, 'a checkpoint of policies has them');
    this.reset();
    for (const change of deserialize(bytes) as Change[]) this.#add(change);
  }

  reset(): void {
    this.#changes = [];
    this.#current = none;
  }

  digest(): string {
    const hash = new CanonicalHash();
    hash.value(this.#changes);
    return hash.hex();
  }

  #add(change: Change): void {
    this.#changes.push(change);
    this.#current = applyChange(this.#current, change);
  }
}

/** Digest of a set with these policies, in any order. */
export function policyDigest(policies: Iterable<{ readonly id: string; readonly text: string }>): string {
  // fromEntries defines own properties: `__proto__` is an id like any other.
  const texts = Object.fromEntries(Array.from(policies, ({ id, text }): [string, string] => [id, text]));
  if (Object.keys(texts).length === 0) return '';
  return createHash('sha256').update(canonicalJson(texts)).digest('hex');
}

/** The set as it would be with another text of this id, or without it (null): the next change of the log would make it. */
export function withPolicy(set: PolicySet, id: string, text: string | null): PolicySet {
  const others = set.policies.filter((policy) => policy.id !== id);
  const digest = policyDigest(text === null ? others : [...others, { id, text }]);
  const change = text === null ? 'deleted' : 'installed';
  return applyChange(set, { change, id, text: text ?? '', digest, position: Number.MAX_SAFE_INTEGER, time: 0n });
}

function applyChange({ epoch, policies }: PolicySet, { change, id, text, digest, position, time }: Change): PolicySet {
  const others = policies.filter((policy) => policy.id !== id);
  const put = change === 'installed' ? [...others, { id, text, position, time }] : others;
  return { epoch: epoch + 1, digest, policies: put.sort((a, b) => compareText(a.id, b.id)) };
}

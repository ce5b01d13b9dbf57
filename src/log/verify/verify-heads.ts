/**
 * Signed heads that a log must live up to: the stored one, those that somebody kept elsewhere, and its own seals. Each commits to the
 * root of the tree at one size, and is signed in the name that the first entry gave the log.
 */
import { equalBytes } from '../bytes/sha256.ts';
import { openCheckpoint } from '../tree/checkpoint-note.ts';
import type { Frontier } from '../tree/merkle-tree.ts';
import { messageOf, type VerifyFindings } from './verify-findings.ts';

/** A stored signed head. */
export interface CheckedHead {
  readonly size: number;
  readonly signature: 'verified' | 'not checked' | 'bad';
}

interface ExpectedRoot {
  readonly size: number;
  readonly root: Uint8Array;
  readonly location: string;
}

export class ExpectedHeads {
  readonly #findings: VerifyFindings;
  /** Undefined: signatures are not checked. */
  readonly #publicKeys: readonly Uint8Array[] | undefined;
  readonly #roots: ExpectedRoot[] = [];
  readonly #origins: { readonly origin: string; readonly location: string }[] = [];
  #origin: string | null = null;

  constructor(findings: VerifyFindings, publicKeys: readonly Uint8Array[] | undefined) {
    this.#findings = findings;
    this.#publicKeys = publicKeys;
  }

  /** Reads a signed head and remembers the root that the log must have at its size. */
  expect(note: string, location: string): CheckedHead | null {
    const match = /^([^\n]+)\n(0|[1-9]\d{0,15})\n([A-Za-z0-9+/]{43}=)\n\n— /.exec(note);
    if (!match) {
      this.#findings.add(location, null, 'not a signed tree head');
      return null;
    }
    const size = Number(match[2]);
    this.#roots.push({ size, root: Buffer.from(match[3]!, 'base64'), location });
    this.#origins.push({ origin: match[1]!, location });
    if (!this.#publicKeys) {
      this.#findings.note(`${location}: the signature was not checked: no public key was given`);
      return { size, signature: 'not checked' };
    }
    try {
      openCheckpoint(note, match[1]!, this.#publicKeys);
      return { size, signature: 'verified' };
    } catch (error) {
      this.#findings.add(location, null, messageOf(error));
      return { size, signature: 'bad' };
    }
  }

  /** Most leaves that any signed head says were there. */
  claimedLeaves(): number {
    return this.#roots.reduce((most, { size }) => Math.max(most, size), 0);
  }

  /** Compares the tree as it stands with every head that commits to `leaves`; `tree` is null behind a gap. */
  compareRoots(leaves: number, tree: Frontier | null): void {
    for (let i = this.#roots.length - 1; i >= 0; i--) {
      const { size, root, location } = this.#roots[i]!;
      if (size !== leaves) continue;
      this.#roots.splice(i, 1);
      if (!tree) this.#findings.add(location, null, `can't be compared: leaves before ${size} are missing`);
      else if (!equalBytes(root, tree.root())) this.#findings.add(location, null, `commits to another root over ${size} leaves`);
    }
  }

  /** Forgets heads below a leaf: the leaves that they commit to are missing. */
  skipTo(leaf: number): void {
    const skipped = this.#roots.filter(({ size }) => size < leaf);
    for (const root of skipped) this.#roots.splice(this.#roots.indexOf(root), 1);
  }

  /** Reports heads that commit to more leaves than the log has. */
  reportMissing(leaves: number): void {
    for (const { size, location } of this.#roots)
      this.#findings.add(location, null, `commits to ${size} leaves; the log has ${leaves}`);
  }

  /** Every head of this log is signed in the name that its first entry gave it. */
  checkOrigin(origin: string): void {
    this.#origin = origin;
    for (const head of this.#origins) {
      if (head.origin !== origin) this.#findings.add(head.location, null, `is a head of ${head.origin}; this log is ${origin}`);
    }
  }

  /** A seal signs the tree of all leaves before it. */
  checkSeal(
    seal: { readonly treeSize: number; readonly checkpoint: string },
    publicKeys: readonly Uint8Array[],
    { leaf, tree }: { readonly leaf: number; readonly tree: Frontier | null },
    location: string,
  ): void {
    const { treeSize, checkpoint: note } = seal;
    const head = openCheckpointOf(note, this.#origin ?? note.slice(0, note.indexOf('\n')), publicKeys);
    if (typeof head === 'string') return this.#findings.add(location, leaf, head);
    if (treeSize !== leaf || head.size !== leaf) {
      this.#findings.add(location, leaf, `seals ${head.size} leaves where ${leaf} come before it`);
    } else if (tree && !equalBytes(head.root, tree.root())) {
      this.#findings.add(location, leaf, 'seals another root than its leaves give');
    }
  }
}

function openCheckpointOf(
  note: string,
  origin: string,
  publicKeys: readonly Uint8Array[],
): { size: number; root: Uint8Array } | string {
  try {
    return openCheckpoint(note, origin, publicKeys);
  } catch (error) {
    return messageOf(error);
  }
}

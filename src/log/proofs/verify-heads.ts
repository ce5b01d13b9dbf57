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
  readonly #verifyFindings: VerifyFindings;
  /** Undefined: signatures are not checked. */
  readonly #verifyPublicKeys: readonly Uint8Array[] | undefined;
  readonly #expectedRoots: ExpectedRoot[] = [];
  readonly #expectedOrigins: { readonly origin: string; readonly location: string }[] = [];
  #logOrigin: string | null = null;

  constructor(verifyFindings: VerifyFindings, publicKeys: readonly Uint8Array[] | undefined) {
    this.#verifyFindings = verifyFindings;
    this.#verifyPublicKeys = publicKeys;
  }

  /** Reads a signed head and remembers the root that the log must have at its size. */
  expect(headNote: string, headLocation: string): CheckedHead | null {
    const headMatch = /^([^\n]+)\n(0|[1-9]\d{0,15})\n([A-Za-z0-9+/]{43}=)\n\n— /.exec(headNote);
    if (!headMatch) {
      this.#verifyFindings.add(headLocation, null, 'not a signed tree head');
      return null;
    }
    const headSize = Number(headMatch[2]);
    this.#expectedRoots.push({ size: headSize, root: Buffer.from(headMatch[3]!, 'base64'), location: headLocation });
    this.#expectedOrigins.push({ origin: headMatch[1]!, location: headLocation });
    if (!this.#verifyPublicKeys) {
      this.#verifyFindings.note(`${headLocation}: the signature was not checked: no public key was given`);
      return { size: headSize, signature: 'not checked' };
    }
    try {
      openCheckpoint(headNote, headMatch[1]!, this.#verifyPublicKeys);
      return { size: headSize, signature: 'verified' };
    } catch (error) {
      this.#verifyFindings.add(headLocation, null, messageOf(error));
      return { size: headSize, signature: 'bad' };
    }
  }

  /** Most leaves that any signed head says were there. */
  claimedLeaves(): number {
    return this.#expectedRoots.reduce((claimedMax, { size }) => Math.max(claimedMax, size), 0);
  }

  /** Compares the tree as it stands with every head that commits to `leaves`; `tree` is null behind a gap. */
  compareRoots(leaves: number, tree: Frontier | null): void {
    for (let i = this.#expectedRoots.length - 1; i >= 0; i--) {
      const { size, root, location } = this.#expectedRoots[i]!;
      if (size !== leaves) continue;
      this.#expectedRoots.splice(i, 1);
      if (!tree) this.#verifyFindings.add(location, null, `can't be compared: leaves before ${size} are missing`);
      else if (!equalBytes(root, tree.root()))
        this.#verifyFindings.add(location, null, `commits to another root over ${size} leaves`);
    }
  }

  /** Forgets heads below a leaf: the leaves that they commit to are missing. */
  skipTo(leaf: number): void {
    const skippedRoots = this.#expectedRoots.filter(({ size }) => size < leaf);
    for (const skippedRoot of skippedRoots) this.#expectedRoots.splice(this.#expectedRoots.indexOf(skippedRoot), 1);
  }

  /** Reports heads that commit to more leaves than the log has. */
  reportMissing(leaves: number): void {
    for (const { size, location } of this.#expectedRoots)
      this.#verifyFindings.add(location, null, `commits to ${size} leaves; the log has ${leaves}`);
  }

  /** Every head of this log is signed in the name that its first entry gave it. */
  checkOrigin(origin: string): void {
    this.#logOrigin = origin;
    for (const expectedOrigin of this.#expectedOrigins) {
      if (expectedOrigin.origin !== origin)
        this.#verifyFindings.add(expectedOrigin.location, null, `is a head of ${expectedOrigin.origin}; this log is ${origin}`);
    }
  }

  /** A seal signs the tree of all leaves before it. */
  checkSeal(
    sealBody: { readonly treeSize: number; readonly checkpoint: string },
    publicKeys: readonly Uint8Array[],
    { leaf, tree }: { readonly leaf: number; readonly tree: Frontier | null },
    sealLocation: string,
  ): void {
    const { treeSize, checkpoint: sealNote } = sealBody;
    const sealedHead = openCheckpointOf(sealNote, this.#logOrigin ?? sealNote.slice(0, sealNote.indexOf('\n')), publicKeys);
    if (typeof sealedHead === 'string') return this.#verifyFindings.add(sealLocation, leaf, sealedHead);
    if (treeSize !== leaf || sealedHead.size !== leaf) {
      this.#verifyFindings.add(sealLocation, leaf, `seals ${sealedHead.size} leaves where ${leaf} come before it`);
    } else if (tree && !equalBytes(sealedHead.root, tree.root())) {
      this.#verifyFindings.add(sealLocation, leaf, 'seals another root than its leaves give');
    }
  }
}

function openCheckpointOf(
  sealNote: string,
  origin: string,
  publicKeys: readonly Uint8Array[],
): { size: number; root: Uint8Array } | string {
  try {
    return openCheckpoint(sealNote, origin, publicKeys);
  } catch (error) {
    return messageOf(error);
  }
}

/**
 * The hash chain of entries, followed one leaf at a time. Every reader of the log checks it, the writer's own recovery included.
 */
import { malformedError } from '../bytes/byte-stream.ts';
import { openCheckpoint } from '../tree/checkpoint-note.ts';
import { decodeEntry, decodeLeaf, entryOfChecked, leafHashOf, noPreviousHash } from '../entries/entry-codec.ts';
import type { CommittedEntry, SealBody } from '../entries/entry.ts';
import type { Keyring } from '../keys/keys.ts';
import type { FrameEntry } from './log-file.ts';
import { Frontier, type NodeSink } from '../tree/merkle-tree.ts';
import { equalBytes, hexOf } from '../bytes/sha256.ts';

export interface ChainOptions {
  readonly keyring: Keyring;
  readonly origin: string;
  /** Recompute the rows root of every entry as well. */
  readonly rows: boolean;
  /** Keeps the tree's nodes. */
  readonly nodes?: NodeSink;
  /** Where to begin, in place of the first leaf. */
  readonly start?: ChainStart;
}

/** A place within a log that is known to be in order up to there. */
export interface ChainStart {
  readonly tree: Frontier;
  readonly position: number;
  readonly lastInstant: bigint;
  readonly previousHash: Uint8Array;
  readonly sealed: number;
  readonly seals: number;
}

/**
 * Follows a log from its first leaf. Each entry must be the next leaf, at the next position, later than all before it,
 * linked to the leaf before, and its payload what its leaf commits to; each seal must be signed and name the root that
 * the leaves before it give.
 */
export class HashChain {
  readonly tree: Frontier;
  #chainPosition = 0;
  #lastEntryInstant: bigint | null = null;
  #previousLeafHash: Uint8Array = noPreviousHash;
  #sealedLeaves = 0;
  #sealCount = 0;
  readonly #chainOptions: ChainOptions;

  constructor(chainOptions: ChainOptions) {
    this.#chainOptions = chainOptions;
    const { start: chainStart } = chainOptions;
    this.tree = chainStart?.tree ?? new Frontier(0, [], chainOptions.nodes ?? null);
    if (!chainStart) return;
    this.#chainPosition = chainStart.position;
    this.#lastEntryInstant = chainStart.lastInstant;
    this.#previousLeafHash = chainStart.previousHash;
    this.#sealedLeaves = chainStart.sealed;
    this.#sealCount = chainStart.seals;
  }

  /** Entries so far: the number of the next leaf. */
  get leaves(): number {
    return this.tree.size;
  }

  get position(): number {
    return this.#chainPosition;
  }

  /** Last instant that an entry covers; null before the first. */
  get lastInstant(): bigint | null {
    return this.#lastEntryInstant;
  }

  get previousHash(): Uint8Array {
    return this.#previousLeafHash;
  }

  /** Leaves up to and including the last seal. */
  get sealed(): number {
    return this.#sealedLeaves;
  }

  get seals(): number {
    return this.#sealCount;
  }

  /**
   * Throws REL_STORAGE with what does not hold; the chain then must not be used further. `openedBody` is the body, where it was
   * opened and found in order before.
   */
  follow(storedEntry: FrameEntry, openedBody: Uint8Array | null = null): CommittedEntry {
    const leafFields = decodeLeaf(storedEntry.leaf);
    if (leafFields.leaf !== this.leaves) throw malformedError(`leaf ${leafFields.leaf} where ${this.leaves} belongs`);
    if (leafFields.position !== this.#chainPosition)
      throw malformedError(`position ${leafFields.position} where ${this.#chainPosition} belongs`);
    if (!equalBytes(leafFields.previousHash, this.#previousLeafHash))
      throw malformedError('a leaf that does not link to the one before it');
    if (this.#lastEntryInstant !== null && leafFields.time <= this.#lastEntryInstant)
      throw malformedError('time that does not rise');
    const chainedEntry = openedBody
      ? entryOfChecked(leafFields, openedBody)
      : decodeEntry(leafFields, storedEntry.payload, this.#chainOptions.keyring, {
          redacted: storedEntry.redacted,
          rows: this.#chainOptions.rows,
        });
    if (chainedEntry.body.kind === 'seal') this.#checkSealEntry(chainedEntry.body);
    this.#previousLeafHash = leafHashOf(storedEntry.leaf);
    this.tree.append(this.#previousLeafHash);
    this.#chainPosition += chainedEntry.positions;
    this.#lastEntryInstant = lastInstantOf(chainedEntry);
    if (chainedEntry.body.kind === 'seal') {
      this.#sealedLeaves = this.leaves;
      this.#sealCount++;
    }
    return chainedEntry;
  }

  #checkSealEntry(sealBody: SealBody): void {
    const sealedHead = openCheckpoint(sealBody.checkpoint, this.#chainOptions.origin, this.#chainOptions.keyring.publicKeys);
    if (sealBody.treeSize !== this.leaves || sealedHead.size !== this.leaves) throw malformedError('a seal of another size');
    const chainRoot = this.tree.root();
    if (!equalBytes(sealedHead.root, chainRoot)) throw malformedError(`a seal of another root than ${hexOf(chainRoot)}`);
  }
}

/** Row i has time + i; an entry that takes no position still takes one instant. */
export function lastInstantOf(timedEntry: Pick<CommittedEntry, 'time' | 'positions'>): bigint {
  return timedEntry.time + BigInt(Math.max(1, timedEntry.positions) - 1);
}

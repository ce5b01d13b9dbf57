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
  #position = 0;
  #lastInstant: bigint | null = null;
  #previousHash: Uint8Array = noPreviousHash;
  #sealed = 0;
  #seals = 0;
  readonly #options: ChainOptions;

  constructor(options: ChainOptions) {
    this.#options = options;
    const { start } = options;
    this.tree = start?.tree ?? new Frontier(0, [], options.nodes ?? null);
    if (!start) return;
    this.#position = start.position;
    this.#lastInstant = start.lastInstant;
    this.#previousHash = start.previousHash;
    this.#sealed = start.sealed;
    this.#seals = start.seals;
  }

  /** Entries so far: the number of the next leaf. */
  get leaves(): number {
    return this.tree.size;
  }

  get position(): number {
    return this.#position;
  }

  /** Last instant that an entry covers; null before the first. */
  get lastInstant(): bigint | null {
    return this.#lastInstant;
  }

  get previousHash(): Uint8Array {
    return this.#previousHash;
  }

  /** Leaves up to and including the last seal. */
  get sealed(): number {
    return this.#sealed;
  }

  get seals(): number {
    return this.#seals;
  }

  /**
   * Throws REL_STORAGE with what does not hold; the chain then must not be used further. `opened` is the body, where it was
   * opened and found in order before.
   */
  follow(stored: FrameEntry, opened: Uint8Array | null = null): CommittedEntry {
    const facts = decodeLeaf(stored.leaf);
    if (facts.leaf !== this.leaves) throw malformedError(`leaf ${facts.leaf} where ${this.leaves} belongs`);
    if (facts.position !== this.#position) throw malformedError(`position ${facts.position} where ${this.#position} belongs`);
    if (!equalBytes(facts.previousHash, this.#previousHash))
      throw malformedError('a leaf that does not link to the one before it');
    if (this.#lastInstant !== null && facts.time <= this.#lastInstant) throw malformedError('time that does not rise');
    const entry = opened
      ? entryOfChecked(facts, opened)
      : decodeEntry(facts, stored.payload, this.#options.keyring, { redacted: stored.redacted, rows: this.#options.rows });
    if (entry.body.kind === 'seal') this.#checkSeal(entry.body);
    this.#previousHash = leafHashOf(stored.leaf);
    this.tree.append(this.#previousHash);
    this.#position += entry.positions;
    this.#lastInstant = lastInstantOf(entry);
    if (entry.body.kind === 'seal') {
      this.#sealed = this.leaves;
      this.#seals++;
    }
    return entry;
  }

  #checkSeal(body: SealBody): void {
    const head = openCheckpoint(body.checkpoint, this.#options.origin, this.#options.keyring.publicKeys);
    if (body.treeSize !== this.leaves || head.size !== this.leaves) throw malformedError('a seal of another size');
    const root = this.tree.root();
    if (!equalBytes(head.root, root)) throw malformedError(`a seal of another root than ${hexOf(root)}`);
  }
}

/** Row i has time + i; an entry that takes no position still takes one instant. */
export function lastInstantOf(entry: Pick<CommittedEntry, 'time' | 'positions'>): bigint {
  return entry.time + BigInt(Math.max(1, entry.positions) - 1);
}

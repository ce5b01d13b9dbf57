/**
 * How far a verification has walked the log, and what comes next by what it has seen. A null means that a gap before leaves nothing to
 * compare with.
 */
import { equalBytes } from '../bytes/sha256.ts';
import { type LeafFields, noPreviousHash } from '../entries/entry-codec.ts';
import { Frontier } from '../tree/merkle-tree.ts';
import type { VerifyFindings } from './verify-findings.ts';

/** Kinds that take a leaf and no position. */
const kindsWithoutPosition: ReadonlySet<string> = new Set(['access', 'seal', 'receipt', 'redaction']);

export class LogWalk {
  readonly #verifyFindings: VerifyFindings;
  #walkedLeaves = 0;
  #walkedPosition: number | null = 0;
  #lastWalkedInstant: bigint | null = null;
  #previousLeafHash: Uint8Array | null = noPreviousHash;
  #walkedTree: Frontier | null = new Frontier();
  #claimedDurable = 0;

  constructor(findings: VerifyFindings) {
    this.#verifyFindings = findings;
  }

  get leaf(): number {
    return this.#walkedLeaves;
  }

  get position(): number | null {
    return this.#walkedPosition;
  }

  get tree(): Frontier | null {
    return this.#walkedTree;
  }

  /** Leaves that frames so far claim to be durable. */
  checkDurability(frameHeader: { readonly firstLeaf: number; readonly durableThrough: number }, location: string): void {
    const { firstLeaf, durableThrough } = frameHeader;
    if (durableThrough > firstLeaf) this.#verifyFindings.add(location, firstLeaf, 'claims leaves durable that were not written');
    if (durableThrough < this.#claimedDurable)
      this.#verifyFindings.add(location, firstLeaf, 'knows less to be durable than a frame before it');
    this.#claimedDurable = Math.max(this.#claimedDurable, durableThrough);
  }

  /** Each leaf links to the one before it and knows its own number. */
  checkLink(leafFields: LeafFields, location: string): void {
    const expectedHash = this.#previousLeafHash;
    if (expectedHash && !equalBytes(leafFields.previousHash, expectedHash))
      this.#verifyFindings.add(location, this.#walkedLeaves, 'does not link to the leaf before it');
    if (leafFields.leaf !== this.#walkedLeaves)
      this.#verifyFindings.add(location, this.#walkedLeaves, `says that it is leaf ${leafFields.leaf}`);
  }

  /** Positions are dense, times rise, and each kind covers as many positions as it may. */
  checkOrder({ kind, position, positions, time }: LeafFields, location: string): void {
    const reportMisplaced = (what: string): void => this.#verifyFindings.add(location, this.#walkedLeaves, what);
    if (this.#walkedPosition !== null && position !== this.#walkedPosition)
      reportMisplaced(`covers position ${position} where ${this.#walkedPosition} comes next`);
    if (this.#lastWalkedInstant !== null && time <= this.#lastWalkedInstant) reportMisplaced('its time does not rise');
    const hasRightPositions = kind === 'rows' ? positions > 0 : positions === (kindsWithoutPosition.has(kind) ? 0 : 1);
    if (!hasRightPositions) reportMisplaced(`a ${kind} entry that covers ${positions} positions`);
    if ((kind === 'genesis') !== (this.#walkedLeaves === 0)) reportMisplaced('the first entry, and no other, is the genesis');
    this.#walkedPosition = position + positions;
    this.#lastWalkedInstant = time + BigInt(Math.max(0, positions - 1));
  }

  append(leafHash: Uint8Array): void {
    this.#previousLeafHash = leafHash;
    this.#walkedTree?.append(leafHash);
    this.#walkedLeaves++;
  }

  /** Continues at a later leaf. The leaves between are unknown, so nothing can be compared across them. */
  skipTo(leaf: number): void {
    this.#walkedLeaves = leaf;
    this.#walkedPosition = null;
    this.#lastWalkedInstant = null;
    this.#previousLeafHash = null;
    this.#walkedTree = null;
  }
}

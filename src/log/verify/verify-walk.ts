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
  readonly #findings: VerifyFindings;
  #leaf = 0;
  #position: number | null = 0;
  #lastInstant: bigint | null = null;
  #previousHash: Uint8Array | null = noPreviousHash;
  #tree: Frontier | null = new Frontier();
  #durableThrough = 0;

  constructor(findings: VerifyFindings) {
    this.#findings = findings;
  }

  get leaf(): number {
    return this.#leaf;
  }

  get position(): number | null {
    return this.#position;
  }

  get tree(): Frontier | null {
    return this.#tree;
  }

  /** Leaves that frames so far claim to be durable. */
  checkDurability(header: { readonly firstLeaf: number; readonly durableThrough: number }, location: string): void {
    const { firstLeaf, durableThrough } = header;
    if (durableThrough > firstLeaf) this.#findings.add(location, firstLeaf, 'claims leaves durable that were not written');
    if (durableThrough < this.#durableThrough)
      this.#findings.add(location, firstLeaf, 'knows less to be durable than a frame before it');
    this.#durableThrough = Math.max(this.#durableThrough, durableThrough);
  }

  /** Each leaf links to the one before it and knows its own number. */
  checkLink(leaf: LeafFields, location: string): void {
    const linked = this.#previousHash;
    if (linked && !equalBytes(leaf.previousHash, linked))
      this.#findings.add(location, this.#leaf, 'does not link to the leaf before it');
    if (leaf.leaf !== this.#leaf) this.#findings.add(location, this.#leaf, `says that it is leaf ${leaf.leaf}`);
  }

  /** Positions are dense, times rise, and each kind covers as many positions as it may. */
  checkOrder({ kind, position, positions, time }: LeafFields, location: string): void {
    const report = (what: string): void => this.#findings.add(location, this.#leaf, what);
    if (this.#position !== null && position !== this.#position)
      report(`covers position ${position} where ${this.#position} comes next`);
    if (this.#lastInstant !== null && time <= this.#lastInstant) report('its time does not rise');
    const fits = kind === 'rows' ? positions > 0 : positions === (kindsWithoutPosition.has(kind) ? 0 : 1);
    if (!fits) report(`a ${kind} entry that covers ${positions} positions`);
    if ((kind === 'genesis') !== (this.#leaf === 0)) report('the first entry, and no other, is the genesis');
    this.#position = position + positions;
    this.#lastInstant = time + BigInt(Math.max(0, positions - 1));
  }

  append(hash: Uint8Array): void {
    this.#previousHash = hash;
    this.#tree?.append(hash);
    this.#leaf++;
  }

  /** Continues at a later leaf. The leaves between are unknown, so nothing can be compared across them. */
  skipTo(leaf: number): void {
    this.#leaf = leaf;
    this.#position = null;
    this.#lastInstant = null;
    this.#previousHash = null;
    this.#tree = null;
  }
}

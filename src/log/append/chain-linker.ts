/** Links placed entries into the chain and the tree, in order: an entry whose body is still being sealed holds up those behind it. */
import type { PlacedEntry } from '../entries/entry-codec.ts';
import type { HashChain } from '../files/hash-chain.ts';
import type { Frontier, TreeHead } from '../tree/merkle-tree.ts';

export class ChainLinker {
  readonly #onLinked: () => void;
  /** The tree over the linked entries. */
  readonly #tree: Frontier;
  /** Entries that are placed and not linked: the first one's body is not sealed yet. */
  #unlinked: PlacedEntry[] = [];
  #previousHash: Uint8Array;

  constructor({ tree, previousHash }: Pick<HashChain, 'tree' | 'previousHash'>, onLinked: () => void) {
    this.#tree = tree;
    this.#previousHash = previousHash;
    this.#onLinked = onLinked;
  }

  get lastLeafHash(): Uint8Array {
    return this.#previousHash;
  }

  get isBehind(): boolean {
    return this.#unlinked.length > 0;
  }

  /** `linkReady` comes next. */
  add(entry: PlacedEntry): void {
    this.#unlinked.push(entry);
  }

  linkReady(): void {
    const unlinked = this.#unlinked;
    let count = 0;
    for (; count < unlinked.length && unlinked[count]!.ready; count++) this.#link(unlinked[count]!);
    if (count === 0) return;
    if (count === unlinked.length) this.#unlinked = [];
    else unlinked.splice(0, count);
    this.#onLinked();
  }

  /** Links all placed entries, in this turn: seals here the bodies that are still being sealed. */
  linkNow(): void {
    if (this.#unlinked.length === 0) return;
    for (const entry of this.#unlinked) this.#link(entry);
    this.#unlinked = [];
    this.#onLinked();
  }

  head(): TreeHead {
    this.linkNow();
    return { size: this.#tree.size, root: this.#tree.root() };
  }

  #link(entry: PlacedEntry): void {
    entry.link(this.#previousHash);
    this.#previousHash = entry.leafHash;
    this.#tree.append(entry.leafHash);
  }
}

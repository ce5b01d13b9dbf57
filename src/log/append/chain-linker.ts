/** Links placed entries into the chain and the tree, in order: an entry whose body is still being sealed holds up those behind it. */
import type { PlacedEntry } from '../entries/entry-codec.ts';
import type { HashChain } from '../files/hash-chain.ts';
import type { Frontier, TreeHead } from '../tree/merkle-tree.ts';

export class ChainLinker {
  readonly #onEntriesLinked: () => void;
  /** The tree over the linked entries. */
  readonly #leafFrontier: Frontier;
  /** Entries that are placed and not linked: the first one's body is not sealed yet. */
  #unlinkedEntries: PlacedEntry[] = [];
  #previousLeafHash: Uint8Array;

  constructor(
    { tree: leafFrontier, previousHash: previousLeafHash }: Pick<HashChain, 'tree' | 'previousHash'>,
    onEntriesLinked: () => void,
  ) {
    this.#leafFrontier = leafFrontier;
    this.#previousLeafHash = previousLeafHash;
    this.#onEntriesLinked = onEntriesLinked;
  }

  get lastLeafHash(): Uint8Array {
    return this.#previousLeafHash;
  }

  get isBehind(): boolean {
    return this.#unlinkedEntries.length > 0;
  }

  /** `linkReady` comes next. */
  add(placedEntry: PlacedEntry): void {
    this.#unlinkedEntries.push(placedEntry);
  }

  linkReady(): void {
    const unlinkedEntries = this.#unlinkedEntries;
    let linkedCount = 0;
    for (; linkedCount < unlinkedEntries.length && unlinkedEntries[linkedCount]!.ready; linkedCount++)
      this.#linkEntry(unlinkedEntries[linkedCount]!);
    if (linkedCount === 0) return;
    if (linkedCount === unlinkedEntries.length) this.#unlinkedEntries = [];
    else unlinkedEntries.splice(0, linkedCount);
    this.#onEntriesLinked();
  }

  /** Links all placed entries, in this turn: seals here the bodies that are still being sealed. */
  linkNow(): void {
    if (this.#unlinkedEntries.length === 0) return;
    for (const unlinkedEntry of this.#unlinkedEntries) this.#linkEntry(unlinkedEntry);
    this.#unlinkedEntries = [];
    this.#onEntriesLinked();
  }

  head(): TreeHead {
    this.linkNow();
    return { size: this.#leafFrontier.size, root: this.#leafFrontier.root() };
  }

  #linkEntry(placedEntry: PlacedEntry): void {
    placedEntry.link(this.#previousLeafHash);
    this.#previousLeafHash = placedEntry.leafHash;
    this.#leafFrontier.append(placedEntry.leafHash);
  }
}

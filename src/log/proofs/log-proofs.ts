/** Proofs over a local log: paths from the nodes in memory, leaves from the frame that holds them. */
import { assert } from '../../errors.ts';
import { verifierKey } from '../tree/checkpoint-note.ts';
import { rowKeysOf } from '../entries/body-codec.ts';
import { decodeEntryWithSecrets, decodeLeaf, leafSpan, openPayload } from '../entries/entry-codec.ts';
import type { Keyring } from '../keys/keys.ts';
import type { FrameEntry } from '../files/log-file.ts';
import type { EntryLocator } from '../files/log-reader.ts';
import type { LogProofs, SignedHead, StoredEntry } from '../log-store.ts';
import type { TreeHead } from '../tree/merkle-tree.ts';
import type { TreeStore } from '../tree/tree-store.ts';

export interface LogProofsDependencies {
  readonly nodes: TreeStore;
  readonly origin: string;
  readonly keyring: Keyring;
  readonly durable: () => number;
  /** The newest stored head, made anew where it covers too little. */
  readonly head: (leaves: number) => Promise<SignedHead>;
  readonly sign: (head: TreeHead) => SignedHead;
  /** Hashes all that is placed, within the turn. */
  readonly linkNow: () => void;
  /** See `readStoredEntries`. */
  readonly read: (locator: EntryLocator) => Promise<readonly FrameEntry[]>;
}

export class LocalProofs implements LogProofs {
  readonly key: string;
  readonly #proofSources: LogProofsDependencies;

  constructor(proofSources: LogProofsDependencies) {
    this.key = verifierKey(proofSources.origin, proofSources.keyring.signer.publicKey);
    this.#proofSources = proofSources;
  }

  get durable(): number {
    return this.#proofSources.durable();
  }

  root(treeSize: number): Uint8Array {
    return this.#proofSources.nodes.root(treeSize);
  }

  leafHash(leafIndex: number): Uint8Array {
    if (leafIndex >= this.#proofSources.nodes.size) this.#proofSources.linkNow();
    return this.#proofSources.nodes.node(0, leafIndex);
  }

  inclusion(leafIndex: number, treeSize: number): readonly Uint8Array[] {
    return this.#proofSources.nodes.inclusion(leafIndex, treeSize);
  }

  consistency(firstTreeSize: number, secondTreeSize: number): readonly Uint8Array[] {
    return this.#proofSources.nodes.consistency(firstTreeSize, secondTreeSize);
  }

  tile(tileLevel: number, tileIndex: number, tileWidth: number, treeSize: number): Uint8Array | null {
    return this.#proofSources.nodes.tile(tileLevel, tileIndex, tileWidth, treeSize);
  }

  head(leaves: number): Promise<SignedHead> {
    return this.#proofSources.head(leaves);
  }

  async headAt(treeSize: number): Promise<SignedHead> {
    const newestHead = await this.#proofSources.head(treeSize);
    assert(treeSize <= newestHead.size, 'an earlier head lies below a stored one');
    return treeSize === newestHead.size ? newestHead : this.#proofSources.sign({ size: treeSize, root: this.root(treeSize) });
  }

  async entry(locator: EntryLocator): Promise<StoredEntry | undefined> {
    const [frameEntry] = await this.#proofSources.read(locator);
    return frameEntry && this.#provableEntry(frameEntry);
  }

  async *entries(provenPositions: readonly number[]): AsyncGenerator<StoredEntry> {
    for (let nextPosition = 0; nextPosition < provenPositions.length; ) {
      const frameEntries = await this.#proofSources.read({ position: provenPositions[nextPosition]! });
      if (frameEntries.length === 0) return;
      for (const frameEntry of frameEntries) {
        const { position, positions: entryPositions } = leafSpan(frameEntry.leaf);
        const firstInEntry = nextPosition;
        while (nextPosition < provenPositions.length && provenPositions[nextPosition]! < position + entryPositions)
          nextPosition++;
        if (nextPosition > firstInEntry) yield this.#provableEntry(frameEntry);
      }
    }
  }

  #provableEntry({ leaf: leafBytes, payload: entryPayload, redacted }: FrameEntry): StoredEntry {
    const { keyring } = this.#proofSources;
    const leafFields = decodeLeaf(leafBytes);
    return {
      facts: leafFields,
      leaf: leafBytes,
      open: () => decodeEntryWithSecrets(leafFields, entryPayload, keyring, { redacted, rows: false }),
      rowKeys: () => (leafFields.kind === 'rows' ? rowKeysOf(openPayload(entryPayload, keyring)) : null),
    };
  }
}

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
  readonly #parts: LogProofsDependencies;

  constructor(parts: LogProofsDependencies) {
    this.key = verifierKey(parts.origin, parts.keyring.signer.publicKey);
    this.#parts = parts;
  }

  get durable(): number {
    return this.#parts.durable();
  }

  root(size: number): Uint8Array {
    return this.#parts.nodes.root(size);
  }

  leafHash(leaf: number): Uint8Array {
    if (leaf >= this.#parts.nodes.size) this.#parts.linkNow();
    return this.#parts.nodes.node(0, leaf);
  }

  inclusion(leaf: number, size: number): readonly Uint8Array[] {
    return this.#parts.nodes.inclusion(leaf, size);
  }

  consistency(first: number, second: number): readonly Uint8Array[] {
    return this.#parts.nodes.consistency(first, second);
  }

  tile(level: number, index: number, width: number, size: number): Uint8Array | null {
    return this.#parts.nodes.tile(level, index, width, size);
  }

  head(leaves: number): Promise<SignedHead> {
    return this.#parts.head(leaves);
  }

  async headAt(size: number): Promise<SignedHead> {
    const newest = await this.#parts.head(size);
    assert(size <= newest.size, 'an earlier head lies below a stored one');
    return size === newest.size ? newest : this.#parts.sign({ size, root: this.root(size) });
  }

  async entry(locator: EntryLocator): Promise<StoredEntry | undefined> {
    const [stored] = await this.#parts.read(locator);
    return stored && this.#storedEntry(stored);
  }

  async *entries(positions: readonly number[]): AsyncGenerator<StoredEntry> {
    for (let next = 0; next < positions.length; ) {
      const together = await this.#parts.read({ position: positions[next]! });
      if (together.length === 0) return;
      for (const stored of together) {
        const { position, positions: count } = leafSpan(stored.leaf);
        const before = next;
        while (next < positions.length && positions[next]! < position + count) next++;
        if (next > before) yield this.#storedEntry(stored);
      }
    }
  }

  #storedEntry({ leaf, payload, redacted }: FrameEntry): StoredEntry {
    const { keyring } = this.#parts;
    const facts = decodeLeaf(leaf);
    return {
      facts,
      leaf,
      open: () => decodeEntryWithSecrets(facts, payload, keyring, { redacted, rows: false }),
      rowKeys: () => (facts.kind === 'rows' ? rowKeysOf(openPayload(payload, keyring)) : null),
    };
  }
}

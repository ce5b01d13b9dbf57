/**
 * Entries of open kinds: where they are, and of which tenant. Nothing else in this release knows of them; an erasure has to find
 * them all, since their content may repeat a subject. Vectors hold no text that could be searched.
 */
import { deserialize, serialize } from 'node:v8';
import { assert } from '../../errors.ts';
import { isEmbedded } from '../../log/entries/embedded-vectors.ts';
import { type CommittedEntry, isOpen, type OpenKind } from '../../log/entries/entry.ts';
import { CanonicalHash } from '../canonical-hash.ts';
import type { CheckpointReader, CheckpointWriter, Projection } from '../projection.ts';

export interface OpenEntry {
  readonly kind: OpenKind;
  readonly leaf: number;
  readonly position: number;
  readonly path: string | null;
}

export class OpenEntries implements Projection {
  readonly name = 'open-entries';
  readonly formatVersion = 1;
  /** In order of leaves. */
  #entries: OpenEntry[] = [];

  all(): Iterable<OpenEntry> {
    return this.#entries;
  }

  apply({ body, leaf, position, context: { path } }: CommittedEntry): void {
    if (isOpen(body) && !isEmbedded(body.content)) this.#entries.push({ kind: body.kind, leaf, position, path });
  }

  async checkpoint(target: CheckpointWriter): Promise<void> {
    target.section('open-entries', serialize(this.#entries));
  }

  async restore(source: CheckpointReader): Promise<void> {
    const bytes = source.section('open-entries');
    assert(bytes, 'a checkpoint of open entries has where they are');
    this.#entries = deserialize(bytes) as OpenEntry[];
  }

  reset(): void {
    this.#entries = [];
  }

  digest(): string {
    const hash = new CanonicalHash();
    // Leaves are storage locations; the state is the content of the entries.
    for (const { kind, position, path } of this.#entries) hash.value({ kind, position, path });
    return hash.hex();
  }
}

/**
 * Entries of open kinds: where they are, and of which tenant. An erasure has to find those whose content may repeat a subject. Vectors
 * hold no text that could be searched, and of runs, of which a store may have very many, few do.
 */
import { deserialize, serialize } from 'node:v8';
import { assert } from '../../errors.ts';
import { isEmbedded } from '../../log/entries/embedded-vectors.ts';
import { type CommittedEntry, isOpen, type OpenKind } from '../../log/entries/entry.ts';
import { CanonicalHash } from '../canonical-hash.ts';
import { isCountsAlone } from '../jobs/codec.ts';
import type { CheckpointReader, CheckpointWriter, Projection } from '../projection.ts';

export interface OpenEntry {
  readonly kind: OpenKind;
  readonly leaf: number;
  readonly position: number;
  readonly path: string | null;
  /** Its content is counts, codes and ids alone. Absent in what an earlier release saved. */
  readonly isCounts?: true;
}

export class OpenEntries implements Projection {
  readonly name = 'open-entries';
  readonly formatVersion = 1;
  /** In order of leaves. */
  #openEntries: OpenEntry[] = [];

  /** Those in which a text may be that somebody wrote. */
  *searchable(): Iterable<OpenEntry> {
    for (const entry of this.#openEntries) if (entry.isCounts !== true) yield entry;
  }

  apply({ body, leaf, position, context: { path } }: CommittedEntry): void {
    if (!isOpen(body) || isEmbedded(body.content)) return;
    const { kind } = body;
    this.#openEntries.push(isCountsAlone(body) ? { kind, leaf, position, path, isCounts: true } : { kind, leaf, position, path });
  }

  async checkpoint(openEntryCheckpoint: CheckpointWriter): Promise<void> {
    openEntryCheckpoint.section('open-entries', serialize(this.#openEntries));
  }

  async restore(openEntryCheckpoint: CheckpointReader): Promise<void> {
    const openEntryBytes = openEntryCheckpoint.section('open-entries');
    assert(openEntryBytes, 'a checkpoint of open entries has where they are');
    this.#openEntries = deserialize(openEntryBytes) as OpenEntry[];
  }

  reset(): void {
    this.#openEntries = [];
  }

  digest(): string {
    const openEntriesHash = new CanonicalHash();
    // Leaves are storage locations; the state is the content of the entries.
    for (const { kind, position, path } of this.#openEntries) openEntriesHash.value({ kind, position, path });
    return openEntriesHash.hex();
  }
}

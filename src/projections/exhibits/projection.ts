/**
 * Exhibits and their chains of links: seals and where each link's entry is. Recipes stay in the log and are read from there, so
 * memory grows with links, not with their texts. An id is a tenant's: two tenants, and callers without one, may each have an
 * exhibit of the same id.
 */
import { deserialize, serialize } from 'node:v8';
import { assert } from '../../errors.ts';
import type { CommittedEntry } from '../../log/entries/entry.ts';
import { TenantNames } from '../../log/values/tenant-names.ts';
import { compareText, tenantOf } from '../../log/values/value.ts';
import type { ExhibitLink, ExhibitView } from '../access-paths.ts';
import { CanonicalHash } from '../canonical-hash.ts';
import type { CheckpointReader, CheckpointWriter, Projection } from '../projection.ts';
import { type RemovedFrom, Removals } from './removals.ts';

interface Exhibit extends ExhibitView {
  readonly links: ExhibitLink[];
}

export class Exhibits implements Projection {
  readonly name = 'exhibits';
  readonly formatVersion = 1;
  readonly removals = new Removals();
  /** In the order in which they were opened. */
  readonly #knownExhibits: Exhibit[] = [];
  readonly #exhibitsById = new TenantNames<Exhibit>();

  /** The exhibit of a tenant, or of callers without one; the newest where an earlier tenant had the id too. */
  exhibit(id: string, tenant: string | null): ExhibitView | undefined {
    return this.#exhibitsById.own(id, tenant);
  }

  all(): Iterable<ExhibitView> {
    return this.#knownExhibits;
  }

  apply(exhibitEntry: CommittedEntry): void {
    const { body, context } = exhibitEntry;
    if (body.kind === 'removal') {
      const leastRemoved = body.positions[0];
      if (leastRemoved !== undefined)
        this.removals.add(body.type, context.path, { position: exhibitEntry.position, least: leastRemoved });
      return;
    }
    if (body.kind === 'erasure') {
      for (const { type, paths, positions } of body.versions) {
        for (const path of paths) this.removals.add(type, path, { position: exhibitEntry.position, least: positions[0]! });
      }
      return;
    }
    if (body.kind !== 'exhibit') return;
    const exhibitLink: ExhibitLink = {
      link: body.link,
      act: body.act,
      principal: context.principal,
      path: context.path,
      time: exhibitEntry.time,
      leaf: exhibitEntry.leaf,
      resultHash: body.resultHash,
      previousSeal: body.previousSeal,
      seal: body.seal,
    };
    if (body.link === 0) return this.#addExhibit({ id: body.exhibit, path: context.path, links: [exhibitLink] });
    // In logs of earlier releases ids were everybody's.
    const exhibit =
      this.#exhibitsById.own(body.exhibit, tenantOf(context.path)) ?? this.#knownExhibits.find(({ id }) => id === body.exhibit);
    assert(exhibit?.links.length === body.link, 'links of an exhibit are dense from 0');
    exhibit.links.push(exhibitLink);
  }

  async checkpoint(exhibitCheckpoint: CheckpointWriter): Promise<void> {
    exhibitCheckpoint.section('exhibits', serialize(this.#knownExhibits));
    exhibitCheckpoint.section('removals', serialize(this.removals.list()));
  }

  async restore(exhibitCheckpoint: CheckpointReader): Promise<void> {
    const exhibitBytes = exhibitCheckpoint.section('exhibits');
    const removalBytes = exhibitCheckpoint.section('removals');
    assert(exhibitBytes && removalBytes, 'a checkpoint of exhibits has exhibits and removals');
    this.reset();
    for (const exhibit of deserialize(exhibitBytes) as Exhibit[]) this.#addExhibit(exhibit);
    for (const { type, path, removals: removalsOfPath } of deserialize(removalBytes) as RemovedFrom[]) {
      for (const removal of removalsOfPath) this.removals.add(type, path, removal);
    }
  }

  reset(): void {
    this.#knownExhibits.length = 0;
    this.#exhibitsById.clear();
    this.removals.clear();
  }

  digest(): string {
    const exhibitsHash = new CanonicalHash();
    // Leaves are storage locations; the state is the content of the links.
    const sortedExhibits = [...this.#knownExhibits].sort((a, b) => compareText(a.id, b.id));
    for (const { id, path, links } of sortedExhibits)
      exhibitsHash.value({ id, path, links: links.map((link) => ({ ...link, leaf: null })) });
    exhibitsHash.value(this.removals.list());
    return exhibitsHash.hex();
  }

  #addExhibit(exhibit: Exhibit): void {
    this.#knownExhibits.push(exhibit);
    this.#exhibitsById.set(exhibit.id, tenantOf(exhibit.path), exhibit);
  }
}

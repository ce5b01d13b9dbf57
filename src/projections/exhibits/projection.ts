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
  readonly #exhibits: Exhibit[] = [];
  readonly #named = new TenantNames<Exhibit>();

  /** The exhibit of a tenant, or of callers without one; the newest where an earlier tenant had the id too. */
  exhibit(id: string, tenant: string | null): ExhibitView | undefined {
    return this.#named.own(id, tenant);
  }

  all(): Iterable<ExhibitView> {
    return this.#exhibits;
  }

  apply(entry: CommittedEntry): void {
    const { body, context } = entry;
    if (body.kind === 'removal') {
      const least = body.positions[0];
      if (least !== undefined) this.removals.add(body.type, context.path, { position: entry.position, least });
      return;
    }
    if (body.kind === 'erasure') {
      for (const { type, paths, positions } of body.versions) {
        for (const path of paths) this.removals.add(type, path, { position: entry.position, least: positions[0]! });
      }
      return;
    }
    if (body.kind !== 'exhibit') return;
    const link: ExhibitLink = {
      link: body.link,
      act: body.act,
      principal: context.principal,
      path: context.path,
      time: entry.time,
      leaf: entry.leaf,
      resultHash: body.resultHash,
      previousSeal: body.previousSeal,
      seal: body.seal,
    };
    if (body.link === 0) return this.#add({ id: body.exhibit, path: context.path, links: [link] });
    // In logs of earlier releases ids were everybody's.
    const exhibit = this.#named.own(body.exhibit, tenantOf(context.path)) ?? this.#exhibits.find(({ id }) => id === body.exhibit);
    assert(exhibit?.links.length === body.link, 'links of an exhibit are dense from 0');
    exhibit.links.push(link);
  }

  async checkpoint(target: CheckpointWriter): Promise<void> {
    target.section('exhibits', serialize(this.#exhibits));
    target.section('removals', serialize(this.removals.list()));
  }

  async restore(source: CheckpointReader): Promise<void> {
    const exhibits = source.section('exhibits');
    const removals = source.section('removals');
    assert(exhibits && removals, 'a checkpoint of exhibits has exhibits and removals');
    this.reset();
    for (const exhibit of deserialize(exhibits) as Exhibit[]) this.#add(exhibit);
    for (const { type, path, removals: known } of deserialize(removals) as RemovedFrom[]) {
      for (const removal of known) this.removals.add(type, path, removal);
    }
  }

  reset(): void {
    this.#exhibits.length = 0;
    this.#named.clear();
    this.removals.clear();
  }

  digest(): string {
    const hash = new CanonicalHash();
    // Leaves are storage locations; the state is the content of the links.
    const exhibits = [...this.#exhibits].sort((a, b) => compareText(a.id, b.id));
    for (const { id, path, links } of exhibits) hash.value({ id, path, links: links.map((link) => ({ ...link, leaf: null })) });
    hash.value(this.removals.list());
    return hash.hex();
  }

  #add(exhibit: Exhibit): void {
    this.#exhibits.push(exhibit);
    this.#named.set(exhibit.id, tenantOf(exhibit.path), exhibit);
  }
}

/**
 * Exhibits as one caller may use them. A caller knows an exhibit if its path covers the exhibit's; re-deriving a link needs the
 * replay right and a path that covers the recipe's. A past read is repeated under the scope of then, never under a wider one, and
 * leaves as seals only.
 */
import { tenantOf } from '../../log/values/value.ts';
import { assert, ServiceError } from '../../errors.ts';
import type { LogStore, SignedHead } from '../../log/log-store.ts';
import type { AccessPaths, ExhibitLink, ExhibitView } from '../../projections/access-paths.ts';
import type { Exhibits } from '../../projections/exhibits/projection.ts';
import { sees, type Caller } from '../caller.ts';
import type { ExhibitDesk, GovernedSnapshot, LinkEntry, PinnedGrant } from '../gate-contract.ts';
import type { Beginning } from '../tenancy/earlier-tenant.ts';

export interface ExhibitDeskDependencies {
  readonly caller: Caller;
  readonly beginning: Beginning;
  readonly exhibits: Pick<Exhibits, 'exhibit' | 'removals'>;
  readonly log: Pick<LogStore, 'read' | 'proofs'>;
  /** Whether rows of a type may be replayed; null: any rows at all. */
  readonly mayReplay: (type: string | null) => boolean;
  /** Projections at an instant that a snapshot had. */
  readonly snapshotOf: (instant: bigint, branch: string, path: string | null) => AccessPaths;
  readonly govern: (paths: AccessPaths, grant: PinnedGrant, action: 'query' | 'search') => GovernedSnapshot;
  /** Digest of the policy set that entries below a position left. */
  readonly policyDigestAt: (position: number) => string;
  /** A recipe as the log has it; null: erased. */
  readonly openRecipe: (stored: string) => string | null;
}

export class GovernedExhibits implements ExhibitDesk {
  readonly #exhibitParts: ExhibitDeskDependencies;

  constructor(parts: ExhibitDeskDependencies) {
    this.#exhibitParts = parts;
  }

  exhibit(id: string): ExhibitView {
    const { exhibits, caller, beginning } = this.#exhibitParts;
    const exhibit = exhibits.exhibit(id, tenantOf(caller.path));
    const isKnownExhibit =
      exhibit !== undefined &&
      sees(caller.path, exhibit.path) &&
      (beginning === null || exhibit.links[0]!.time >= beginning.time);
    // One answer for what does not exist and for what is not the caller's to know.
    if (!isKnownExhibit) throw new ServiceError('REL_NOT_FOUND', 'no such exhibit');
    return exhibit;
  }

  mayReplay(link: ExhibitLink): boolean {
    return sees(this.#exhibitParts.caller.path, link.path) && this.#exhibitParts.mayReplay(null);
  }

  checkReplay(types: Iterable<string>): void {
    for (const type of types) if (!this.#exhibitParts.mayReplay(type)) throw replayRefusal();
  }

  async entry(exhibit: ExhibitView, link: ExhibitLink): Promise<LinkEntry> {
    if (!this.mayReplay(link)) throw replayRefusal();
    for await (const { body: linkBody } of this.#exhibitParts.log.read(link.leaf)) {
      assert(
        linkBody.kind === 'exhibit' && linkBody.exhibit === exhibit.id && linkBody.link === link.link,
        'a link lies where it was put',
      );
      const { resultHash: _, recipe, ...linkFacts } = linkBody;
      return { ...linkFacts, recipe: this.#exhibitParts.openRecipe(recipe) };
    }
    throw new ServiceError('REL_STORAGE', 'the log has no entry of the link');
  }

  policyDigest({ position }: GovernedSnapshot): string {
    return this.#exhibitParts.policyDigestAt(position);
  }

  pin(grant: PinnedGrant, action: 'query' | 'search' = 'query'): GovernedSnapshot {
    if (!sees(this.#exhibitParts.caller.path, grant.path) || !this.#exhibitParts.mayReplay(null)) throw replayRefusal();
    return this.#exhibitParts.govern(this.#exhibitParts.snapshotOf(grant.instant, grant.branch, grant.path), grant, action);
  }

  rowsErasedSince(snapshot: GovernedSnapshot, types: ReadonlySet<string>): boolean {
    return this.#exhibitParts.exhibits.removals.since(snapshot.position, types, (path) => sees(snapshot.caller.path, path));
  }

  head(link: ExhibitLink): Promise<SignedHead> {
    return this.#exhibitParts.log.proofs.head(link.leaf + 1);
  }
}

const replayRefusal = (): ServiceError =>
  new ServiceError('REL_ACL', 'replay is denied: the recipe ran under a path that yours does not cover, or no rule permits it');

/** The room's front: every projection of the store, fed in order, read through snapshots, asked to decide commands. */
import type { CommittedEntry, EntryContext } from '../log/entry.ts';
import type { Basis, NextPlace } from '../log/log-store.ts';
import type { AccessPaths } from './access-paths.ts';
import { Catalog } from './catalog/projection.ts';
import type { Command } from './command.ts';
import { decide } from './decide.ts';
import type { Decision } from './decision.ts';
import { Directory } from './directory/projection.ts';
import type { Projection } from './projection.ts';
import { Projector } from './projector.ts';
import { Rows } from './rows/projection.ts';
import { takeSnapshot } from './snapshot.ts';
import type { Timeline } from '../log/timeline.ts';
import { Temporal } from './temporal/projection.ts';

export interface ProjectionsOptions {
  /** UUIDv7 text for a row that brings no key. */
  newKey(): string;
  readonly tokensMax: number;
  /** Further projections, after the ones of this room: they see each entry last. */
  readonly more?: readonly Projection[];
}

export class Projections {
  readonly #temporal = new Temporal();
  readonly timeline: Timeline = this.#temporal.timeline;
  readonly catalog = new Catalog();
  readonly directory = new Directory();
  readonly rows = new Rows(this.timeline);
  readonly projector: Projector;
  readonly #options: ProjectionsOptions;

  constructor(options: ProjectionsOptions) {
    this.#options = options;
    // Rows turn positions into times, so the timeline stands before them.
    this.projector = new Projector([this.#temporal, this.catalog, this.directory, this.rows, ...(options.more ?? [])]);
  }

  apply(entry: CommittedEntry): void {
    this.projector.apply(entry);
  }

  /** Throws REL_NOT_FOUND for an unknown branch. */
  snapshot(basis: Basis, branch: string): AccessPaths {
    return takeSnapshot(this.catalog, this.rows, basis, branch);
  }

  /** Pure: nothing changes until the drafts are appended at `next` and applied. Throws what refuses the command. */
  decide(command: Command, context: EntryContext, next: NextPlace): Decision {
    const { newKey, tokensMax } = this.#options;
    return decide(command, this, { entry: context, newKey, tokensMax }, next);
  }

  digests(): Readonly<Record<string, string>> {
    return this.projector.digests();
  }
}

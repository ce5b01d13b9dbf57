/** What holds texts beside log and projections: caches, tables that were loaded, replies that can still be asked for. */
import type { ResidualHit } from './receipt.ts';
import type { Sought } from './sought.ts';

export interface TextStore {
  /** Lets go of all that may have come from rows that are gone: what is still asked for is made anew. */
  forget?(): void;
  /** Where the text is held still. Of the tenant: others’ are not looked at. */
  search?(sought: Sought, tenant: string | null): readonly ResidualHit[];
}

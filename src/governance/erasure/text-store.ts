/**
 * Contract of stores that hold texts beside log and projections: caches, loaded lookup tables, replies that can still be
 * fetched. An erasure searches them.
 */
import type { ResidualHit } from './erasure-receipt.ts';
import type { ScanTarget } from './scan-target.ts';

export interface TextStore {
  /** Lets go of everything that may come from removed rows of the tenant: it is made anew on the next request. */
  forget?(tenant: string | null): void;
  /** Where the text is held still. Of the tenant: others’ are not looked at. */
  search?(sought: ScanTarget, tenant: string | null): readonly ResidualHit[];
}

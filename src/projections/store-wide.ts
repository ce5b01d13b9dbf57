/** Projections of the whole store: each has one state, which no branch forks. Their entries count whatever branch they were made on. */
import type { Timeline } from '../log/values/timeline.ts';
import { Erasures } from './erasures/projection.ts';
import { Exhibits } from './exhibits/projection.ts';
import { OpenEntries } from './open-entries/projection.ts';
import { Policies } from './policies/projection.ts';
import { RecallCounts } from './recalls/projection.ts';
import { Receipts } from './receipts/projection.ts';
import { Temporal } from './temporal/projection.ts';
import { Tenants } from './tenants/projection.ts';
import { Tokens } from './tokens/projection.ts';

export class StoreWideProjections {
  protected readonly temporal = new Temporal();
  readonly timeline: Timeline = this.temporal.timeline;
  readonly directory = new Tokens();
  readonly erasures = new Erasures();
  readonly exhibits = new Exhibits();
  readonly openEntries = new OpenEntries();
  readonly policies = new Policies();
  readonly recalls = new RecallCounts();
  readonly receipts = new Receipts();
  readonly tenants = new Tenants();
}

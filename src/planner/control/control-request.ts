/** The request that the handler of a control statement gets. */
import type { Clock } from '../../clock.ts';
import type { SubjectErasure } from '../../governance/erasure/subject-erasure.ts';
import type { Invocation } from '../../governance/gate-contract.ts';
import type { Answer, QueryOptions, QueryRequest } from '../planner-contract.ts';
import type { LookupTables } from '../continuous/views/lookup-tables.ts';
import type { MaterializedViews } from '../continuous/views/materialized-views.ts';
import type { StandingQueries } from '../continuous/watch/watch.ts';
import type { Literal, Location, ControlStatement } from '../syntax/statement.ts';

export interface ContinuousServices {
  readonly watch: StandingQueries;
  readonly lookups: LookupTables;
  readonly views: MaterializedViews;
  /** null: subjects can't be erased here. */
  readonly erasures: Pick<SubjectErasure, 'erase'> | null;
}

export interface ControlRequest {
  readonly statement: ControlStatement;
  readonly literals: readonly Literal[];
  readonly invocation: Invocation;
  readonly request: QueryOptions;
  /** The text as it was given, for definitions that store it. REL_INVALID where the statement did not come as text. */
  readonly text: () => string;
  readonly clock: Clock;
  /** Monotonic milliseconds at which the statement began. */
  readonly startedMs: number;
  readonly locationOf: (slot: number) => Location;
  /** Services for standing queries and other state that outlives a statement; null where the planner has none. */
  readonly continuous: ContinuousServices | null;
  /** Runs a query, as the planner does. */
  readonly query: (invocation: Invocation, request: QueryRequest) => Promise<Answer>;
  /** Version of this program, as recipes name it. */
  readonly engine: string;
  readonly yieldTurn: () => Promise<void>;
}

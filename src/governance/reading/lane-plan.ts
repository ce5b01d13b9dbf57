/** The storage request of a scan under lanes, made once for a grant and the columns that a plan reads. */
import type { ColumnType } from '../../log/values/value.ts';
import { pathColumn, shownOf, type TimeBounds, type ZonePredicate } from '../../projections/access-paths.ts';
import type { CellMask, Lane, TypeGrant } from '../authorization/grant.ts';

/** One column of the reader. */
export interface LaneColumn {
  readonly name: string;
  /** Number among the columns that storage is asked for. */
  readonly source: number;
  /** Read as it is shown: its type decides the shown form. */
  readonly shown: boolean;
  readonly type: ColumnType;
  /** By lane; null where the lane shows its cells. */
  readonly masks: readonly (CellMask | null)[];
}

export interface LanePlan {
  /** Columns requested from storage; the path is the last of them. */
  readonly columns: readonly string[];
  readonly own: readonly LaneColumn[];
  /** Some column is read as it is shown. */
  readonly shown: boolean;
  /** Masks of the key by lane. */
  readonly keys: readonly (CellMask | null)[];
}

const plans = new WeakMap<TypeGrant, WeakMap<readonly string[], LanePlan>>();

/** Scans of one plan name the same columns. */
export function lanePlan(grant: TypeGrant, columns: readonly string[], typeOf: (column: string) => ColumnType): LanePlan {
  let known = plans.get(grant);
  if (known === undefined) plans.set(grant, (known = new WeakMap()));
  let plan = known.get(columns);
  if (plan === undefined) known.set(columns, (plan = makePlan(grant, columns, typeOf)));
  return plan;
}

function makePlan({ lanes }: TypeGrant, columns: readonly string[], typeOf: (column: string) => ColumnType): LanePlan {
  const names = columns.map((column) => shownOf(column) ?? column);
  const sources = [...new Set(names)];
  const own = columns.map((column, i): LaneColumn => {
    const name = names[i]!;
    const masks = lanes.map((lane) => lane.masks.get(name) ?? null);
    return { name, source: sources.indexOf(name), shown: shownOf(column) !== null, type: typeOf(name), masks };
  });
  const keys = lanes.map((lane) => lane.masks.get('_pk') ?? null);
  return { columns: [...sources, pathColumn], own, shown: own.some(({ shown }) => shown), keys };
}

/** How a lane lets a request read its past. */
export type LaneHistory =
  /** None of the history, or all that the request reads. */
  | 'nothing'
  | 'all'
  /** Versions that end, in system time, after this instant; `open`: those that have not ended. */
  | { readonly after: bigint }
  | 'open';

const wholes = new WeakMap<TypeGrant, readonly LaneHistory[] | null>();

/** Histories that the lanes of a grant may read. `instant` is that of the snapshot. */
export function historiesOf(grant: TypeGrant, time: TimeBounds, instant: bigint): readonly LaneHistory[] {
  let whole = wholes.get(grant);
  if (whole === undefined) {
    whole = grant.lanes.every(({ history }) => history === 'full') ? grant.lanes.map(() => 'all' as const) : null;
    wholes.set(grant, whole);
  }
  return whole ?? grant.lanes.map((lane) => historyOf(lane, time, instant));
}

function historyOf({ history }: Lane, time: TimeBounds, instant: bigint): LaneHistory {
  if (history === 'full') return 'all';
  const { system } = time;
  if (history === 'current_only') return system !== 'all' && system >= instant ? 'all' : 'open';
  const { from } = history;
  if (system === 'all') return { after: from };
  // A read at an instant ends after it.
  return system < from ? 'nothing' : 'all';
}

/** Never searches by a masked column: pruning would reveal its values. */
export function visibleZones(zones: readonly ZonePredicate[], { masked }: TypeGrant): readonly ZonePredicate[] {
  return zones.filter(({ column }) => !masked.has(column));
}

/**
 * The storage request of a scan under lanes, made once for a grant and the columns that a plan reads. Without policies, masks and
 * agreements there is one lane, which shows every cell of one's own organisation.
 */
import type { TypeDefinition } from '../../log/entries/entry.ts';
import type { ColumnType } from '../../log/values/value.ts';
import { pathColumn, shownOf, type TimeBounds, type ZonePredicate } from '../../projections/access-paths.ts';
import { typesOf } from '../authorization/cedar/compile.ts';
import type { CellMask, Lane, TypeGrant } from '../authorization/grant.ts';
import { openGrant } from '../authorization/grants.ts';

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
  /** Every row of one's own organisation, and every cell, in columns as storage is asked for them. */
  readonly open: boolean;
  /** Bits of rows may tell what a lane lets through, where no path is of two. */
  readonly bitwise: boolean;
  /** Cells of other columns, or the past of a row, decide about it. */
  readonly further: true | undefined;
  /** Masks of the key by lane. */
  readonly keys: readonly (CellMask | null)[];
}

const plansByGrant = new WeakMap<TypeGrant, WeakMap<readonly string[], LanePlan>>();

/** Scans of one plan name the same columns. */
export function lanePlan(grant: TypeGrant, columns: readonly string[], type: TypeDefinition): LanePlan {
  let plansByColumns = plansByGrant.get(grant);
  if (plansByColumns === undefined) plansByGrant.set(grant, (plansByColumns = new WeakMap()));
  let scanPlan = plansByColumns.get(columns);
  if (scanPlan === undefined) plansByColumns.set(columns, (scanPlan = makeLanePlan(grant, columns, typesOf(type))));
  return scanPlan;
}

function makeLanePlan(grant: TypeGrant, columns: readonly string[], typeOf: (column: string) => ColumnType): LanePlan {
  const { lanes } = grant;
  const shownNames = columns.map((column) => shownOf(column) ?? column);
  const sourceColumns = [...new Set(shownNames)];
  const laneColumns = columns.map((column, i): LaneColumn => {
    const name = shownNames[i]!;
    const masks = lanes.map((lane) => lane.masks.get(name) ?? null);
    return { name, source: sourceColumns.indexOf(name), shown: shownOf(column) !== null, type: typeOf(name), masks };
  });
  const keyMasks = lanes.map((lane) => lane.masks.get('_pk') ?? null);
  const masks = [...laneColumns.flatMap((column) => column.masks), ...keyMasks];
  const isPastShown = lanes.every(isPastWhole);
  const readsFurther =
    !isPastShown || lanes.some(({ rows }) => rows !== null) || masks.some((mask) => mask !== null && mask.when !== null);
  return {
    columns: [...sourceColumns, pathColumn],
    own: laneColumns,
    open: grant === openGrant && sourceColumns.length === columns.length,
    bitwise: isPastShown && laneColumns.every(({ shown }) => !shown),
    further: readsFurther ? true : undefined,
    keys: keyMasks,
  };
}

/** How a lane lets a request read its past. */
export type LaneHistory =
  /** None of the history, or all that the request reads. */
  | 'nothing'
  | 'all'
  /** Versions that end, in system time, after this instant; `open`: those that have not ended. */
  | { readonly after: bigint }
  | 'open';

/** Histories that the lanes of a grant may read; null: all of them. `instant` is that of the snapshot. */
export function historiesOf({ lanes }: TypeGrant, time: TimeBounds, instant: bigint): readonly LaneHistory[] | null {
  return lanes.every(isPastWhole) ? null : lanes.map((lane) => laneHistoryOf(lane, time, instant));
}

const isPastWhole = ({ history }: Lane): boolean => history === 'full';

function laneHistoryOf({ history }: Lane, time: TimeBounds, instant: bigint): LaneHistory {
  if (history === 'full') return 'all';
  const { system } = time;
  if (history === 'current_only') return system !== 'all' && system >= instant ? 'all' : 'open';
  const { from: sharedFrom } = history;
  if (system === 'all') return { after: sharedFrom };
  // A read at an instant ends after it.
  return system < sharedFrom ? 'nothing' : 'all';
}

/** Never searches by a masked column: pruning would reveal its values. */
export function visibleZones(zones: readonly ZonePredicate[], { masked }: TypeGrant): readonly ZonePredicate[] {
  return zones.filter(({ column }) => !masked.has(column));
}

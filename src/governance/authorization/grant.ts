/**
 * The view of one invocation, per type: the contract between policies, the gate and the planner. Pure types.
 */
import type { Vector } from '../../log/values/columns.ts';
import type { MaskKind, TypeDefinition } from '../../log/entries/entry.ts';

/** A predicate over columns of one type; null cells are Cedar's absent attributes. */
export interface RowCondition {
  /** Ascending; `_pk`, `tenant_id` and other system columns may be among them. */
  readonly columns: readonly string[];
  /** Canonical text: equal keys, equal predicates. Constants of caller and context are folded in. */
  readonly key: string;
  /**
   * Writes 1 for the rows that pass and 0 for the others to out[0 .. count). `columns` in the order of the condition's own; rows
   * as `RowBlock` has them. An error in a forbid denies, in a permit it is ignored.
   */
  test(columns: readonly Vector[], selection: Int32Array | null, first: number, count: number, out: Uint8Array): void;
}

export interface CellMask {
  readonly kind: MaskKind;
  /** Size of a bucket. */
  readonly size?: number;
  /** null: in every row. */
  readonly when: RowCondition | null;
  /** Policies that mask it. */
  readonly because: string;
}

/** One reason why rows are visible: the caller's own organisation, or one sharing agreement. */
export interface Lane {
  /** null: the caller's own organisation. */
  readonly agreement: string | null;
  covers(path: string | null): boolean;
  /** null: all rows of these paths. */
  readonly rows: RowCondition | null | 'none';
  /** The strictest of each column: redact > null > hash > bucket > last4 = year. Columns that are not shared are among them. */
  readonly masks: ReadonlyMap<string, CellMask>;
  /** Columns that an agreement shares; null: all. Any other reads as NULL and is masked for aggregates. */
  readonly columns: ReadonlySet<string> | null;
  readonly history: 'full' | 'current_only' | { readonly from: bigint };
}

export interface TypeGrant {
  readonly allowed: boolean;
  readonly lanes: readonly Lane[];
  readonly masked: ReadonlyMap<string, MaskKind>;
  readonly because: readonly string[];
}

/** Everything that one invocation may see. */
export interface Grant {
  readonly key: string;
  /** Rows of the caller's own tenant. */
  grantFor(type: TypeDefinition): TypeGrant;
  /** Tenants whose rows agreements share, in codepoint order. */
  readonly sharing: readonly SharingTenant[];
}

/** Types that another tenant shares, under names and definitions of its own. */
export interface SharingTenant {
  readonly tenant: string;
  readonly types: ReadonlySet<string>;
  grantFor(type: TypeDefinition): TypeGrant;
}

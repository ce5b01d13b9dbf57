/** What doors hold of the planner: a question in, governed columns out. */
import type { Vector } from '../log/columns.ts';
import type { ColumnType } from '../log/value.ts';
import type { Invocation } from '../governance/gate-contract.ts';

export interface QuestionRequest {
  readonly sql: string;
  /** Purpose from the door (body field, header); a PURPOSE clause must agree with it or stand alone. */
  readonly purpose?: string | null;
  readonly signal?: AbortSignal;
  /** Refuses what is not a question (control statements) with REL_INVALID. */
  readonly questionsOnly?: boolean;
  /** Takes rows while they are read, where nothing but the rows is wanted of them. */
  readonly rows?: RowTaker;
}

/** Where rows go as they come, in their order: what was taken is in no batch of the answer. */
export interface RowTaker {
  /** Rows taken so far, and bytes held for them. */
  readonly rows: number;
  readonly bytes: number;
  /** Reads all of the batch, which is valid until this returns; or false: these rows, and all after them, stay columns. */
  take(columns: readonly OutputColumn[], batch: OutputBatch): boolean;
  /** What was taken is of no answer; all rows come once more. */
  restart(): void;
}

export interface OutputColumn {
  readonly name: string;
  readonly type: ColumnType;
}

/** Rows of an answer, in order, as columns. `selection` null means 0 .. count-1. */
export interface OutputBatch {
  readonly columns: readonly Vector[];
  readonly selection: Int32Array | null;
  readonly first: number;
  readonly count: number;
}

export interface ProvenanceEntry {
  readonly source: string;
  readonly method: string;
  readonly confidence: number;
  readonly recordedAt: bigint;
  readonly derivedFrom: string | null;
}

export interface Facets {
  /** Values as text, most frequent first, then by codepoint; NULL is not counted. */
  readonly counts: ReadonlyMap<string, ReadonlyMap<string, number>>;
  readonly stats: ReadonlyMap<string, FacetStats>;
}

/** min, max and sum of an integer column are exact. */
export interface FacetStats {
  readonly min: bigint | number;
  readonly max: bigint | number;
  readonly sum: bigint | number;
  readonly avg: number;
  readonly count: number;
}

export interface Answer {
  readonly columns: readonly OutputColumn[];
  /** But for the rows that the question's `rows` took. */
  readonly batches: readonly OutputBatch[];
  /** Those that were taken among them. */
  readonly rowCount: number;
  readonly costUnits: number;
  /** Size of the matching set before LIMIT: accurate up to 100,000, a lower bound otherwise. */
  readonly estimatedTotalHits: number;
  /** ns; the clock instant of the snapshot. */
  readonly asOfSystem: bigint;
  /** Decimal system_from cursor of the last row when LIMIT cut the answer and paging applies. */
  readonly cursor: string | null;
  /** Opaque, pins the basis. */
  readonly nextCursor: string | null;
  readonly provenance: readonly ProvenanceEntry[] | null;
  /** FACETS: attribute to value to count over the matching set, and figures of the numeric ones. */
  readonly facets: Facets | null;
  /** What the asker has to know of the rows: sentences, none where this is absent. */
  readonly notices?: readonly string[];
  /** Plan of EXPLAIN and EXPLAIN ANALYZE, one operator a line, children indented by two spaces. */
  readonly plan: string | null;
  readonly actualRows: number | null;
  readonly processingTimeMs: number;
  /** Rows that it may hold were erased since it was made: what has not left of it must not. */
  overtaken(): boolean;
}

export interface PlannerContract {
  /** Parses, binds, plans and runs. Statement template, literals, type and row count go to the invocation's record. */
  query(invocation: Invocation, request: QuestionRequest): Promise<Answer>;
}

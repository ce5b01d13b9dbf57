/** The planner as doors see it: a statement in, governed columns out. */
import type { Again } from '../governance/jobs/job-runner.ts';
import type { Vector } from '../log/values/columns.ts';
import type { ColumnType } from '../log/values/value.ts';
import type { GovernedSnapshot, Invocation } from '../governance/gate-contract.ts';
import type { TypoTolerance } from '../governance/text-search/text-query.ts';
import type { Parsed as ParsedSigma } from './continuous/sigma/parse-rules.ts';
import type { ClientSession as CatalogueSession } from './system-catalogue/client-session.ts';
import type {
  DefaultTime,
  Dialect,
  OutputEntity,
  Literal,
  ParameterType,
  ParsedQuery,
  Location,
  TypedValue,
} from './syntax/statement.ts';
import type { WriteStatement } from './syntax/write-statement.ts';

export type QueryRequest = QueryOptions & (QueryText | QueryTree);

export type Parameters = readonly (Literal | TypedValue)[] | ReadonlyMap<string, Literal | TypedValue>;

export interface QueryText {
  readonly sql: string;
  /** Values of `$1`, `$2` … in the text, or of `$name`: they are never part of it. */
  readonly parameters?: Parameters | undefined;
  readonly parsed?: never;
}

export interface QueryTree {
  readonly parsed: ParsedQuery;
  readonly sql?: never;
  readonly parameters?: never;
}

export interface QueryOptions {
  /** `all` where this is absent. */
  readonly time?: DefaultTime;
  /** Nothing that was written after this instant is seen; absent: the instant at which it is asked. */
  readonly basis?: bigint;
  /** `spec` where this is absent. */
  readonly dialect?: Dialect;
  /** Purpose from the door (body field, header); a PURPOSE clause must agree with it or stand alone. */
  readonly purpose?: string | null;
  readonly signal?: AbortSignal | undefined;
  /** How far words of MATCH may differ from the sought ones: `configured`: as configured for searches; absent: not at all. */
  readonly typo?: TypoTolerance | 'configured';
  /** An answer may be short of the nearest vectors, and of rows that are not indexed yet, where `eventual`; where `exact`, of nothing. */
  readonly consistency?: Consistency;
  /** The session that catalogue relations describe; absent: a neutral one. */
  readonly session?: CatalogueSession | undefined;
  /** Refuses statements other than queries (control statements) with REL_INVALID. */
  readonly queriesOnly?: boolean;
  /** Gives others a turn after slices that are short, since nobody waits for the answer; it runs until its signal ends it. */
  readonly inBackground?: boolean;
  /** Takes rows while they are read, where nothing but the rows is wanted of them. */
  readonly rows?: RowTaker;
}

export type Consistency = 'strong' | 'eventual' | 'exact';

/** Receives rows as they come, in their order: those taken are in no batch of the answer. */
export interface RowTaker {
  /** Rows taken so far, and bytes held for them. */
  readonly rows: number;
  readonly bytes: number;
  /** Reads all of the batch, which is valid until this returns; or false: these rows, and all after them, stay columns. */
  take(columns: readonly OutputColumn[], batch: OutputBatch): boolean;
  /** Discards the rows taken so far; all rows come again. */
  restart(): void;
}

export interface OutputColumn {
  readonly name: string;
  readonly type: ColumnType;
  /** The column of a type that it shows as it is, where a wire protocol asks. */
  readonly origin?: { readonly type: string; readonly column: string };
  /** The type of Postgres that it is shown as, where a wire protocol asks and it is not that of its cells. */
  readonly shownAs?: string;
  /** The column's name for a wire protocol, if it differs. */
  readonly label?: string;
  /** The entities in its json values. */
  readonly entity?: OutputEntity;
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
  /** All rows, those taken by a receiver included. */
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
  /** Sentences about the rows for the caller; absent: none. */
  readonly notices?: readonly string[];
  /** Some rows may be missing: nearer rows, or rows not indexed yet; or scores started from an earlier answer. */
  readonly isApproximate?: boolean | undefined;
  /** Plan of EXPLAIN and EXPLAIN ANALYZE, one operator a line, children indented by two spaces. */
  readonly plan: string | null;
  readonly actualRows: number | null;
  /** The measurements of EXPLAIN ANALYZE, in the order of the plan's lines. */
  readonly operators?: readonly OperatorFigures[];
  readonly processingTimeMs: number;
  /** Whether rows in the answer were erased since: the rest of it must not be sent. */
  overtaken(): boolean;
}

/** The figures of one operator, over the rows that the caller sees. */
export interface OperatorFigures {
  /** `answer`, `set 1` and the like for a query that runs before it, `facets`. */
  readonly part: string;
  /** Below the first of its part. */
  readonly depth: number;
  /** The word that its line begins with, and the line. */
  readonly operator: string;
  readonly line: string;
  readonly state: 'read' | 'stopped early' | 'not read' | 'within the line above';
  /** null: not disclosed. */
  readonly rowsIn: number | null;
  readonly rowsOut: number | null;
  readonly rowsExpected: number;
  /** Its own, without that of its inputs; null where it did not run by itself. */
  readonly timeMs: number | null;
  /** Bytes of the cells that it held, at most; null where it holds none. */
  readonly memoryBytes: number | null;
  /** The index by which it finds rows; null: none. */
  readonly index: string | null;
}

/** The result of a statement that may have written. */
export interface Executed {
  /** Rows of a question, or of RETURNING: without columns where nothing is returned. */
  readonly answer: Answer;
  /** Null: it was a question. */
  readonly written: Written | null;
}

export interface Written {
  readonly verb: 'insert' | 'update' | 'delete' | 'merge';
  /** Rows that were put, that were changed, and that were ended. */
  readonly inserted: number;
  readonly updated: number;
  readonly deleted: number;
  /** Rows of an INSERT that left the existing row as it is. */
  readonly kept: number;
  /** Graph elements written: new nodes and relationships, and cells sent. */
  readonly graph?: { readonly nodes: number; readonly relationships: number; readonly properties: number };
  /** ns, of the first and the last version that was written; 0 where none was. */
  readonly systemFrom: bigint;
  readonly systemFromLast: bigint;
  readonly durability: 'synced' | 'buffered';
}

/** A write that another language has parsed, or built. */
export interface ParsedWrite {
  /** The language, as in `ParsedQuery`. */
  readonly language: string;
  readonly template: string;
  readonly statement: WriteStatement;
  readonly parameters: readonly Literal[];
  locationOf(slot: number): Location;
}

export type ExecuteRequest = ExecuteOptions & ((QueryText & { readonly write?: never }) | { readonly write: ParsedWrite });

export interface ExecuteOptions extends Pick<QueryOptions, 'dialect' | 'purpose' | 'signal' | 'session'> {
  /** Fsynced before it is acknowledged, even where the settings don't require it. */
  readonly sync?: boolean;
  /** The default time of a query without AS OF; `current` where this is absent. */
  readonly time?: DefaultTime;
  /** CREATE and MERGE of patterns, and CALL … .write, run too: for the graph doors; `scores`: CALL … .write alone. */
  readonly graph?: true | 'scores' | undefined;
  /** CALL … .write goes on as this work on record, which was cut off. */
  readonly as?: Again | undefined;
}

export interface PlannerContract {
  /** Parses, binds, plans and runs. Statement template, literals, type and row count go to the invocation's record. */
  query(invocation: Invocation, request: QueryRequest): Promise<Answer>;
}

/** The planner for doors that do more than run one statement. */
export interface PlannerDoor extends PlannerContract {
  /**
   * The columns and parameters of a query, without running it; with `writes`, those of RETURNING. REL_INVALID for other
   * statements.
   */
  describe(invocation: Invocation, request: DescribeRequest): Promise<Description>;
  /**
   * Rows under these keys, in the order of system_from; where several organisations have one of a key that the caller may see, all of
   * them. Within one turn. REL_UNKNOWN_TYPE and REL_UNKNOWN_COLUMN as of a question.
   */
  lookUp(invocation: Invocation, request: KeyLookUp): Answer;
  /** The same of as many keys as there are, in turns and on one snapshot, in the order of system_from of some of them at a time. */
  lookUpMany(invocation: Invocation, request: KeyLookUp, signal?: AbortSignal): Promise<Answer>;
  /**
   * Gives other work turns while a door works on rows by itself: REL_CANCELLED once the caller went away, REL_TIMEOUT beyond the
   * time limit of a query.
   */
  turns(signal?: AbortSignal): () => Promise<void>;
  /**
   * Runs a statement that may write: INSERT, UPDATE and DELETE, all of it or nothing; anything else is asked as a question about what
   * holds now; with `graph`, CREATE, MERGE and CALL … .write run as well. The invocation is one of `query`; what is written is judged and recorded as `ingest` or `delete`. REL_CONFLICT where
   * a row that it would change was written since it was read: the statement may be run again.
   */
  execute(invocation: Invocation, request: ExecuteRequest): Promise<Executed>;
  /**
   * Reads documents of Sigma rules, one after the other in turns: each is accepted or refused with a place and a reason.
   * Placeholders are the caller's lookup tables; correlations refer to documents of this call, or to the caller's rules.
   */
  readSigma(snapshot: GovernedSnapshot, documents: readonly string[], signal?: AbortSignal): Promise<readonly ParsedSigma[]>;
  /**
   * Several questions on one snapshot, in one invocation, with one access record. Without a `verb` one question is recorded
   * as itself; what has one is recorded by its words, and lists its questions below.
   */
  querySeries(invocation: Invocation, verb?: SeriesVerb): QuerySeries;
}

/** Rows by their keys: no statement, the same gate and the same record. */
export interface KeyLookUp {
  /** The type's name, as the caller sees it. */
  readonly type: string;
  /** `_pk` of rows, each once. */
  readonly keys: readonly string[];
  /** Columns of the type or of every type; null: all of them. A masked one is as it is shown. */
  readonly columns: readonly string[] | null;
  /** `current` where this is absent. */
  readonly time?: DefaultTime;
}

export type DescribeRequest = Pick<QueryOptions, 'time' | 'dialect' | 'purpose'> & {
  /** INSERT, UPDATE and DELETE are described too; they are refused as REL_READ_ONLY otherwise. */
  readonly writes?: true;
} & (
    | (Omit<QueryText, 'parameters'> & {
        /** Types of `$1`, `$2` …, as far as they are stated: null, and those behind the last, are inferred. */
        readonly parameterTypes?: readonly (ParameterType | null)[];
      })
    | QueryTree
  );

export interface Description {
  readonly columns: readonly OutputColumn[];
  /** Types of `$1`, `$2` …, or of the slots of a parsed statement; text where nothing tells the type. */
  readonly parameters: readonly ParameterType[];
}

/** The name and arguments of an operation, for the access record of a session. */
export interface SeriesVerb {
  readonly template: string;
  readonly literals: readonly string[];
}

export interface QuerySeries {
  /**
   * Answers one more question on the snapshot that the first one took. A later one may state no other purpose than that
   * was taken for, and is a question: REL_INVALID otherwise.
   */
  query(request: QueryRequest): Promise<Answer>;
  /** The snapshot of the session, for callers that must inspect it before they can build a query. Taken once. */
  snapshot(): GovernedSnapshot;
  /** Whether rows in any of the answers were erased since: the rest of them must not be sent. */
  overtaken(): boolean;
}

/**
 * The syntax tree that every language produces. Literals are slots into a parameter list, so that statements which
 * differ only in literals share one template, one tree and one compiled plan. Nodes are frozen; `kind` tells them apart.
 */
import type { ColumnType } from '../../log/values/value.ts';
import type { AggregateName } from '../aggregate-functions.ts';

/** The location where a node starts in its text: 1-based. */
export interface Location {
  readonly line: number;
  readonly column: number;
}

/** A literal of the statement. Integers are exact: one beyond i64 is REL_PARSE; a literal with `.` or an exponent is a number. */
export type Literal = string | bigint | number | boolean | null;

/** Types that a parameter may state. A date is an instant that begins a day. */
export type ParameterType = ColumnType | 'date';

/** The stated type of a value; `unknown`: the value comes later, and its type was not stated. */
export type StatedType = { readonly type: ParameterType; readonly isNull: boolean } | 'unknown';

/** A value for `$1` whose type is stated apart, since no literal of a text has it: an instant, a date, json, a vector, a typed NULL. */
export class TypedValue {
  readonly type: ParameterType;
  readonly value: Literal;

  constructor(type: ParameterType, value: Literal) {
    this.type = type;
    this.value = value;
  }

  static rawOf(value: Literal | TypedValue): Literal {
    return value instanceof TypedValue ? value.value : value;
  }
}

/**
 * A parsed text. `template` is the key of the plan cache and of the audit: comments dropped, whitespace normalised,
 * reserved words in upper case, each literal as `?s` `?i` `?n` `?b` by its type (text, integer, number, boolean; NULL
 * stays a word). Two texts with one template have one tree; their places and parameter values may differ.
 */
export interface ParsedStatement {
  readonly template: string;
  readonly statement: Statement;
  readonly parameters: readonly Literal[];
}

/** A statement that a language other than SQL has parsed. Its template names the language's own words, and no value. */
export interface ParsedQuery extends ParsedStatement {
  /** Statements of two languages never share a tree or a plan, even if their templates are equal. */
  readonly language: string;
  /** The location of a parameter in the given text: errors about its value point there. */
  locationOf(slot: number): Location;
}

/** Which statements are understood: those of the specification alone, or all that this store knows. `graph`: the latter, where a node alone is one value. */
export type Dialect = 'spec' | 'wide' | 'graph';

/**
 * The default time of a query without AS OF: every version, the current and valid ones, or an instant of either axis in
 * nanoseconds; an axis that is not named covers every version. An AS OF in the statement takes precedence.
 */
export type DefaultTime = 'all' | 'current' | { readonly valid?: bigint | 'now'; readonly system?: bigint | 'now' };

export type ControlStatement = Extract<Statement, { kind: 'control' }>;

export type Statement =
  | { readonly kind: 'query'; readonly purpose: Slot | null; readonly query: Query; readonly withProvenance: boolean }
  | {
      readonly kind: 'explain';
      readonly mode: 'plan' | 'analyze' | 'policy';
      readonly asJson?: true;
      readonly statement: Statement;
    }
  /**
   * Parsed as a whole, executed by a capability that may be missing: then it has a typed error. Never cached by template: `names`
   * may hold literals (a branch name in quotes).
   */
  | {
      readonly kind: 'control';
      readonly what: ControlWhat;
      readonly location: Location;
      readonly purpose: Slot | null;
      /** Literals by position. */
      readonly arguments: readonly Slot[];
      /** Literals by name: `SEQ => 2`, `{dampingFactor: 0.85}`, `REFRESH EVERY 5 MINUTES`. */
      readonly options: readonly { readonly name: string; readonly value: Slot }[];
      readonly query: Query | null;
      readonly names: readonly string[];
    }
  /** A write: /query refuses it with REL_READ_ONLY. */
  | { readonly kind: 'write'; readonly verb: string; readonly location: Location }
  /** Recognised and not implemented: 501 (ALTER TABLE). */
  | { readonly kind: 'unimplemented'; readonly verb: string; readonly instead: string; readonly location: Location };

export type ControlWhat =
  | 'branch'
  | 'register-lookup'
  | 'drop-lookup'
  | 'create-view'
  | 'replace-view'
  | 'drop-view'
  | 'create-materialized-view'
  | 'drop-materialized-view'
  | 'watch'
  | 'erase-subject'
  | 'fuse-identities'
  | 'split-identities'
  | 'explain-replay';

/** Index into `ParsedStatement.parameters`. */
export interface Slot {
  readonly slot: number;
  readonly location: Location;
}

/** A number of rows: a literal, or an expression over no columns. */
export type RowCount = Slot | { readonly expression: Expression; readonly location: Location };

/**
 * A query with its set operations, CTEs and outermost ordering. A statement has one AS OF for every table, subquery and
 * arm in it: wherever it was written, it stands on the outermost query; inner ones have null.
 */
export interface Query {
  readonly with: readonly CommonTable[];
  readonly body: QueryBody;
  readonly asOf: AsOf | null;
  readonly orderBy: readonly OrderItem[];
  readonly limit: RowCount | null;
  readonly offset: RowCount | null;
  readonly after: Slot | null;
  readonly facets: readonly ColumnRef[];
  /** Rows of these tables, of all where none is named, are to stand until the transaction commits. */
  readonly lock?: RowLock;
  /** Reads current rows at one instant, now or that of AS OF, as functions do. */
  readonly oneInstant?: true;
  /** The entities in each column's values; absent where there are none. */
  readonly entities?: readonly (EntityShape | null)[];
  readonly location: Location;
}

/**
 * FOR UPDATE and its weaker forms, which mean the same here: no statement waits, and COMMIT is refused where another wrote a row.
 */
export interface RowLock {
  /** The tables, by their names in the statement; empty: all of them. */
  readonly tables: readonly string[];
  readonly location: Location;
}

export interface CommonTable {
  readonly name: string;
  readonly columns: readonly string[];
  readonly recursive: boolean;
  readonly query: Query;
}

export type QueryBody =
  | Select
  | {
      readonly kind: 'set-operation';
      readonly op: SetOperation;
      readonly left: QueryBody;
      readonly right: QueryBody;
      readonly location: Location;
    };

export interface Select {
  readonly kind: 'select';
  readonly distinct: boolean;
  /** DISTINCT ON: of the rows that are alike in these the first one. */
  readonly distinctOn?: readonly Expression[];
  readonly projection: readonly ProjectionItem[];
  readonly from: Source;
  readonly where: Expression | null;
  readonly groupBy: readonly Expression[];
  /** Several groupings, each by the expressions of GROUP BY of these places; absent: one, by all of them. */
  readonly groupingSets?: { readonly distinct: boolean; readonly sets: readonly (readonly number[])[] };
  readonly window: GroupWindow | null;
  readonly having: Expression | null;
  readonly rankBy: readonly Expression[];
  readonly compute: readonly { readonly label: string; readonly expression: Expression }[];
  readonly location: Location;
}

export type ProjectionItem =
  | {
      readonly kind: 'star';
      readonly table: string | null;
      /** Columns of these names are not among its columns; absent: all are. */
      readonly without?: readonly string[];
      readonly location: Location;
    }
  | { readonly kind: 'expression'; readonly expression: Expression; readonly alias: string | null; readonly location: Location };

export type Source =
  | { readonly kind: 'table'; readonly name: string; readonly alias: string | null; readonly location: Location }
  | {
      readonly kind: 'subquery';
      readonly query: Query;
      readonly alias: string | null;
      /** Names of its columns, where the alias gives them: t(a, b). */
      readonly columns: readonly string[];
      /** The subquery may name columns of the sources before it. */
      readonly lateral?: true;
      /** A function whose rows are single values: its alias by itself is the value. */
      readonly isValue?: true;
      readonly location: Location;
    }
  /** Rows that are written out. A SELECT without FROM has one row without columns. */
  | { readonly kind: 'values'; readonly rows: readonly (readonly Expression[])[]; readonly location: Location }
  | {
      readonly kind: 'join';
      readonly type: 'inner' | 'left' | 'right' | 'full';
      readonly left: Source;
      readonly right: Source;
      /** Null: a cross join. */
      readonly on: Expression | null;
      /** USING (a, b); `natural` is USING of the names that both sides have. */
      readonly using: readonly string[] | 'natural' | null;
      readonly location: Location;
    }
  /** Rows that are there before the question is asked, by the name under which they are given; no text can say it. */
  | { readonly kind: 'given'; readonly rows: string; readonly tables: readonly GivenTable[]; readonly location: Location }
  /** `name(arg, NAME => value, …)` and the keyword forms that translate to it. */
  | {
      readonly kind: 'function';
      readonly name: string;
      readonly arguments: readonly FunctionArgument[];
      /** The condition on the edges that it follows: the binder takes it from WHERE. */
      readonly edges?: Expression;
      readonly alias: string | null;
      readonly location: Location;
    }
  /** Rows of these types, or of every type, as the nodes or edges of a graph pattern: columns of `pattern-columns.ts`, then properties. */
  | {
      readonly kind: 'graph-rows';
      readonly of: 'nodes' | 'edges';
      /** Empty: every type whose rows are such. */
      readonly types: readonly string[];
      /** NULL in types that lack one. */
      readonly properties: readonly string[];
      readonly alias: string;
      readonly location: Location;
    }
  /** For each row of the input, walks along edges from a node that it names: its columns, then those of `pattern-columns.ts`. */
  | {
      readonly kind: 'walk';
      readonly input: Source;
      readonly from: Expression;
      /** Types of edges; empty: every one. */
      readonly types: readonly string[];
      readonly direction: 'out' | 'in' | 'both';
      /** null: one edge. */
      readonly hops: { readonly least: Slot | null; readonly most: Slot } | null;
      /** Trails that it shares no edge with. */
      readonly avoids: readonly ColumnRef[];
      readonly alias: string;
      readonly location: Location;
    }
  /** For each row of the input, the walked elements as json: the input's columns, then one for each wanted entity. */
  | {
      readonly kind: 'entities';
      readonly input: Source;
      readonly wanted: readonly WantedEntity[];
      readonly alias: string;
      readonly location: Location;
    }
  /** For each row of the input, the elements of a list: its columns, then the element. */
  | {
      readonly kind: 'unwind';
      readonly input: Source;
      readonly list: Expression;
      readonly alias: string;
      readonly location: Location;
    };

/** Where in a value entities are, so that protocols that have a form of their own for them can use it. */
export type EntityShape =
  | { readonly kind: 'node' | 'relationship' | 'path' }
  | { readonly kind: 'list'; readonly of: EntityShape }
  | { readonly kind: 'map'; readonly of: ReadonlyMap<string, EntityShape> };

/**
 * A node is `{"labels", "element_id": "Type/_pk", "system_from", "properties"}`; a relationship has `type` in place of labels, and `start`
 * and `end`, element ids, with their `start_system_from` and `end_system_from`; a path is `{"nodes", "relationships"}`, one node more. Instants are nanoseconds. A node that edges name and that
 * has no row has no labels, its name as element id, and no `system_from`.
 */
export interface OutputEntity {
  readonly shape: EntityShape;
  /** Properties whose types json does not tell, by the type of the row. */
  readonly types: ReadonlyMap<string, ReadonlyMap<string, ColumnType>>;
}

/** A node that is known by its name alone, a path of a graph pattern, or the relationships that a walk went along. */
export interface WantedEntity {
  /** The name of its column. */
  readonly name: string;
  readonly as: 'node' | 'path' | 'relationship' | 'relationships';
  /** The parts of one relationship: its json without its ends, and the names of these. */
  readonly edge: { readonly entity: Expression; readonly from: Expression; readonly to: Expression } | null;
  /** Name of the node, or of the first node of a path. */
  readonly start: Expression | null;
  /** Trails of the walks, in the order of the path; `reversed` where a walk went against it. */
  readonly steps: readonly { readonly trail: Expression; readonly reversed: boolean }[];
  /** Nodes of which the row is there: the others are looked for by their names. */
  readonly known: readonly { readonly name: Expression; readonly entity: Expression }[];
  /** Types of the edges that the trails may name; empty: every one. */
  readonly types: readonly string[];
}

/** Columns that stand side by side in given rows under one name. `apart`: they are reached by that name only. */
export interface GivenTable {
  readonly name: string;
  readonly columns: readonly { readonly name: string; readonly type: ColumnType }[];
  readonly apart?: true;
}

export interface FunctionArgument {
  readonly name: string | null;
  readonly value: Expression;
}

export type AsOf =
  /** The instant is a text or nanoseconds, or `now()` with an interval or without. */
  | { readonly axis: 'valid' | 'system'; readonly instant: Expression; readonly location: Location }
  | { readonly axis: 'current'; readonly location: Location };

export interface OrderItem {
  readonly expression: Expression;
  readonly descending: boolean;
  readonly collate: 'codepoint' | 'unicode';
  /** NULLS FIRST; they come last otherwise. */
  readonly nullsFirst: boolean;
}

export interface GroupWindow {
  readonly type: 'tumble' | 'hop' | 'session';
  readonly column: ColumnRef;
  readonly intervals: readonly Interval[];
  readonly location: Location;
}

/** The slot holds `'N <unit>'` text: `intervalNanoseconds` of languages/interval.ts reads it. */
export interface Interval {
  readonly slot: Slot;
  readonly location: Location;
}

export interface ColumnRef {
  readonly kind: 'column';
  readonly table: string | null;
  readonly name: string;
  /** In double quotes, which other languages use for texts. */
  readonly quoted?: boolean;
  readonly location: Location;
}

export type WindowFunction =
  | 'row_number'
  | 'rank'
  | 'dense_rank'
  | 'lag'
  | 'lead'
  | 'first_value'
  | 'last_value'
  | 'nth_value'
  | 'ntile'
  | 'percent_rank'
  | 'cume_dist'
  | AggregateName;

/** Which rows of its partition a window function looks at. */
export interface Frame {
  /** `rows` counts rows, `range` takes the rows that the order does not tell apart together. */
  readonly unit: 'rows' | 'range';
  readonly from: FrameBound;
  readonly to: FrameBound;
  readonly location: Location;
}

export type FrameBound =
  | { readonly kind: 'unbounded' }
  | { readonly kind: 'current' }
  | { readonly kind: 'rows'; readonly count: Slot; readonly following: boolean };

/** Queries in expressions, but for IN. Each may name columns of the queries around it. */
export type Subselect =
  /** Its one column of its one row; NULL where it has no row. */
  | { readonly kind: 'scalar-query'; readonly query: Query; readonly location: Location }
  | { readonly kind: 'exists'; readonly query: Query; readonly location: Location }
  /** operand op ANY (query), operand op ALL (query). */
  | {
      readonly kind: 'quantified';
      readonly op: '=' | '!=' | '<' | '<=' | '>' | '>=';
      readonly all: boolean;
      readonly operand: Expression;
      readonly query: Query;
      readonly location: Location;
    };

export type SetOperation = 'union' | 'union all' | 'intersect' | 'intersect all' | 'except' | 'except all';

export type BinaryOp = '=' | '!=' | '<' | '<=' | '>' | '>=' | '+' | '-' | '*' | '/' | '%' | 'and' | 'or' | 'like';

export type Expression =
  | ColumnRef
  /** `typed`: the type that a parameter states. */
  | {
      readonly kind: 'literal';
      readonly slot: number;
      /** So many values of one type, the first of them in the slot: in a long list of IN alone. Absent: one. */
      readonly count?: number;
      readonly typed?: StatedType;
      readonly location: Location;
    }
  | {
      readonly kind: 'binary';
      readonly op: BinaryOp;
      readonly left: Expression;
      readonly right: Expression;
      readonly location: Location;
    }
  /** A constant of a language other than SQL, in no slot of the statement. */
  | { readonly kind: 'constant'; readonly cell: string | bigint | null; readonly location: Location }
  | { readonly kind: 'not'; readonly operand: Expression; readonly location: Location }
  | { readonly kind: 'negate'; readonly operand: Expression; readonly location: Location }
  | { readonly kind: 'is-null'; readonly operand: Expression; readonly negated: boolean; readonly location: Location }
  | {
      readonly kind: 'in-list';
      readonly operand: Expression;
      readonly items: readonly Expression[];
      readonly negated: boolean;
      readonly location: Location;
    }
  | {
      readonly kind: 'in-query';
      readonly operand: Expression;
      readonly query: Query;
      readonly negated: boolean;
      readonly location: Location;
    }
  | {
      readonly kind: 'between';
      readonly operand: Expression;
      readonly low: Expression;
      readonly high: Expression;
      readonly negated: boolean;
      readonly location: Location;
    }
  /** CASE x WHEN v … has an operand; in CASE WHEN x = v … the operand is null and each `when` is a condition. */
  | {
      readonly kind: 'case';
      readonly operand: Expression | null;
      readonly branches: readonly { readonly when: Expression; readonly then: Expression }[];
      readonly otherwise: Expression | null;
      /** Written as IS TRUE, or IS DISTINCT FROM. */
      readonly isTest?: true;
      readonly location: Location;
    }
  | { readonly kind: 'now'; readonly location: Location }
  /** With a unit, lower case and singular, the slot holds a number: INTERVAL '3' MONTH. */
  | { readonly kind: 'interval'; readonly interval: Interval; readonly unit: string | null; readonly location: Location }
  | {
      readonly kind: 'aggregate';
      readonly function: AggregateName;
      readonly operand: Expression | null;
      /** The separator of STRING_AGG, the share of a percentile, the x of a pair. */
      readonly second: Expression | null;
      readonly distinct: boolean;
      /** FILTER (WHERE …). */
      readonly filter: Expression | null;
      /** The operand stands in WITHIN GROUP (ORDER BY operand DESC). */
      readonly descending?: boolean;
      /** The order in which it meets its rows. */
      readonly orderBy?: readonly OrderItem[];
      readonly location: Location;
    }
  /** A window function; COUNT(*) has no argument. */
  | {
      readonly kind: 'over';
      readonly function: WindowFunction;
      readonly arguments: readonly Expression[];
      readonly partition: readonly Expression[];
      readonly orderBy: readonly OrderItem[];
      readonly frame: Frame | null;
      /** FILTER (WHERE …). */
      readonly filter: Expression | null;
      readonly location: Location;
    }
  | Subselect
  /** Several values side by side: an operand of IN and of comparisons. */
  | { readonly kind: 'row'; readonly items: readonly Expression[]; readonly location: Location }
  /**
   * Scalar functions by name, upper case: those of `expressions/functions/`, operators by their symbol among them; MATCH,
   * SOUNDEX, METAPHONE, COLOGNE, DEGREE, LOOKUP, rank primitives; ARRAY and the vector operators `<=>`, `<->`, `<#>` too.
   * MATCH names its third argument MODE; LOOKUP names TABLE, KEY and FIELD; CAST its second TYPE, EXTRACT its first FIELD.
   */
  | {
      readonly kind: 'call';
      readonly name: string;
      readonly arguments: readonly FunctionArgument[];
      readonly location: Location;
    };

/** Rows that a window function looks at. */
export type Window = Pick<Extract<Expression, { kind: 'over' }>, 'partition' | 'orderBy' | 'frame'>;

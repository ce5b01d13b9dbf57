/**
 * INSERT, UPDATE, DELETE and MERGE as trees. Where they read, they hold queries and expressions of `statement.ts`, over the literals of
 * the statement, and behind these over two more: NULL, and the organisation path of the writer.
 */
import type { Projection } from './pattern-tree.ts';
import type {
  CommonTable,
  EntityShape,
  Expression,
  Location,
  ProjectionItem,
  Query,
  Slot,
  Source,
  StatedType,
} from './statement.ts';

export type WriteStatement = InsertStatement | UpdateStatement | DeleteStatement | MergeStatement;

interface WriteBase {
  readonly purpose: Slot | null;
  readonly with: readonly CommonTable[];
  readonly target: WriteTarget;
  /** Null without RETURNING. */
  readonly returning: readonly ProjectionItem[] | null;
  /** Slot of NULL; the path stands behind it. */
  readonly nullSlot: number;
  readonly location: Location;
}

export interface WriteTarget {
  readonly type: string;
  /** Alias, else the type. */
  readonly name: string;
  readonly location: Location;
}

export interface InsertStatement extends WriteBase {
  readonly kind: 'insert';
  /** Null: the properties of the type, in their order. */
  readonly columns: readonly NamedLocation[] | null;
  readonly source: Query;
  readonly conflict: Conflict | null;
}

export interface UpdateStatement extends WriteBase {
  readonly kind: 'update';
  readonly set: readonly Assignment[];
  readonly from: Source | null;
  readonly where: Expression | null;
  readonly portion: Portion | null;
}

export interface DeleteStatement extends WriteBase {
  readonly kind: 'delete';
  readonly using: Source | null;
  readonly where: Expression | null;
  readonly portion: Portion | null;
}

/** Each row of the source and each row of the target that it meets are written by the first clause that takes them. */
export interface MergeStatement extends WriteBase {
  readonly kind: 'merge';
  readonly source: Source;
  readonly on: Expression;
  readonly clauses: readonly MergeClause[];
  readonly returning: null;
}

export type MergeClause = {
  /** `when`: behind AND; null: every row. */
  readonly when: Expression | null;
  readonly location: Location;
} & (
  | { readonly matched: boolean; readonly do: 'nothing' }
  | { readonly matched: true; readonly do: 'delete' }
  | { readonly matched: true; readonly do: 'update'; readonly set: readonly Assignment[] }
  /** `columns` as in INSERT. */
  | {
      readonly matched: false;
      readonly do: 'insert';
      readonly columns: readonly NamedLocation[] | null;
      readonly values: readonly Expression[];
    }
);

export interface NamedLocation {
  readonly name: string;
  readonly location: Location;
}

/** ON CONFLICT. `key` is the column that it names, if it does. */
export type Conflict =
  | { readonly do: 'nothing'; readonly key: NamedLocation | null }
  | {
      readonly do: 'update';
      readonly key: NamedLocation | null;
      readonly set: readonly Assignment[];
      readonly where: Expression | null;
      readonly location: Location;
    };

export interface Assignment extends NamedLocation {
  readonly value: Expression;
}

/** FOR PORTION OF VALID_TIME: instants, the second beyond the portion; null: it has no end. */
export interface Portion {
  readonly from: Slot;
  readonly to: Slot | null;
  readonly location: Location;
}

/** A write of the graph doors: a pattern to make, or scores of a function as a column of its nodes. */
export type GraphWrite =
  | (GraphWriteBase & {
      readonly kind: 'pattern';
      /**
       * Null: it is made once; else once for each row of the query. Its first columns are what edges call the nodes of these names, then
       * come values that cells are made of, or that are returned.
       */
      readonly matched: { readonly query: Query; readonly names: readonly string[]; readonly values: number } | null;
      readonly method: 'create' | 'merge';
      /** In order: the things that a thing names are matched, or stand before it. */
      readonly things: readonly CreatedElement[];
      readonly returned: ReturnedClause | null;
    })
  | (GraphWriteBase & {
      readonly kind: 'scores';
      /** Has columns nodeId and score. */
      readonly query: Query;
      readonly type: Slot;
      readonly property: Slot;
    });

interface GraphWriteBase {
  readonly purpose: Slot | null;
  /** The slot of NULL, as in `WriteStatement`. */
  readonly nullSlot: number;
  readonly location: Location;
}

/** RETURN after CREATE or MERGE. Terms over matched rows alone are replaced by values, named by `valueName`. */
export interface ReturnedClause {
  readonly clause: Projection;
  /** The entities in the values, by number. */
  readonly shapes: readonly (EntityShape | null)[];
}

export type CreatedElement = CreatedNode | CreatedEdge;

/** A cell is a literal of the statement, or a value of the row that was matched. */
export type CreatedCell = NamedLocation & ({ readonly slot: number; readonly typed?: StatedType } | { readonly value: number });

interface Created {
  /** `create`: a row as it is sent. `merge`: the cells that are sent, of the row of this key. */
  readonly how: 'create' | 'merge';
  readonly name: string;
  readonly type: string;
  readonly cells: readonly CreatedCell[];
  readonly location: Location;
}

export interface CreatedNode extends Created {
  readonly kind: 'node';
}

export interface CreatedEdge extends Created {
  readonly kind: 'edge';
  /** Names of nodes. */
  readonly from: string;
  readonly to: string;
}

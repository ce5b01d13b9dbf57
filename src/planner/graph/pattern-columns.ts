/** Names that no statement can write: of the operators of graph patterns, and of the columns that they yield. */
export const walkName = '#WALK';
export const rowsName = '#ROWS';
export const entitiesName = '#ENTITIES';
export const unwindName = '#UNWIND';

/** Columns that a walk adds to the rows from which it begins. */
export const walkColumns = {
  /** Text of the node that a walk ends at. */
  end: '#end',
  /** system_from of its last edge. */
  edge: '#edge',
  /** system_from of all of them, with commas between. */
  trail: '#trail',
} as const;

/** Columns of the rows of several types, in front of the properties that a pattern reads. */
export const rowColumns = {
  /** Text by which edges name a node; system_from of an edge. */
  name: '#name',
  key: '#key',
  type: '#type',
  /** The row as json; that of an edge without its ends, and the names of these. */
  entity: '#entity',
  from: '#from',
  to: '#to',
} as const;

/** The element of a list. */
export const unwoundColumn = '#value';

/** A call of one column, `id`: the text by which edges name the row. */
export const nodeNameCall = '#NAME';

/** Calls of one column, `_pk`: the row as json. */
export const entityCalls = { nodes: '#NODE', edges: '#EDGE' } as const;

/** The columns that make up one wanted entity, by their index among those behind the rows. */
export interface EntityLayout {
  readonly as: 'node' | 'path' | 'relationship' | 'relationships';
  readonly edge: { readonly entity: number; readonly from: number; readonly to: number } | null;
  readonly start: number | null;
  readonly steps: readonly { readonly trail: number; readonly reversed: boolean }[];
  readonly known: readonly { readonly name: number; readonly entity: number }[];
}

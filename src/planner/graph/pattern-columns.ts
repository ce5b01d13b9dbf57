/** Names that no statement can write: of the operators of graph patterns, and of the columns that they yield. */
export const walkName = '#WALK';
export const rowsName = '#ROWS';

/** What a walk adds to the rows that it begins at. */
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
} as const;

/** A call of one column, `id`: the text by which edges name the row. */
export const nodeNameCall = '#NODE';

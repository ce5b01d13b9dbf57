/** Names that no statement can write: of the operator of graph patterns, and of what it adds to the rows that it begins at. */
export const walkName = '#WALK';

export const walkColumns = {
  /** Text of the node that a walk ends at. */
  end: '#end',
  /** system_from of its last edge. */
  edge: '#edge',
  /** system_from of all of them, with commas between. */
  trail: '#trail',
} as const;

/** Which types have rows that are edges. */
import type { EdgeColumns, TypeDefinition } from '../../log/entries/entry.ts';

export const defaultEnds: EdgeColumns = { from: 'from_id', to: 'to_id' };

/** Columns that name the ends of its rows; null where these are no edges. */
export function endsOf({ edge, properties }: Pick<TypeDefinition, 'edge' | 'properties'>): EdgeColumns | null {
  if (edge !== undefined) return edge;
  const isEdgeEndColumn = (name: string): boolean => Object.hasOwn(properties, name) && properties[name]!.type === 'string';
  return isEdgeEndColumn(defaultEnds.from) && isEdgeEndColumn(defaultEnds.to) ? defaultEnds : null;
}

/** Properties of every link type: both ends, and the version that the edge is of. */
export const edgeColumns = { source: 'from_id', target: 'to_id', derivedFrom: 'derived_from' } as const;

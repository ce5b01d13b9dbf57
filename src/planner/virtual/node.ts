/** Relations by the names that a statement gives them: `pg_catalog.pg_class`, `pg_class`, `information_schema.columns`. */
import { splitTypeName } from '../../projections/access-paths.ts';
import type { VirtualNode } from '../logical-plan.ts';
import { relationColumns } from './columns.ts';
import { relationOids } from './relation-oids.ts';
import { columnType } from './cells.ts';

const nodes: ReadonlyMap<string, VirtualNode> = new Map(
  relationColumns.map(({ schema, name, columns }) => {
    const typed = columns.map((column, place) => ({
      name: column.name,
      type: columnType(column.type),
      wire: column.type,
      place,
    }));
    return [
      `${schema}.${name}`,
      { kind: 'virtual', relation: `${schema}.${name}`, oid: relationOids.get(`${schema}.${name}`)!, columns: typed },
    ];
  }),
);

export function virtualNode(name: string): VirtualNode | undefined {
  const qualified = splitTypeName(name);
  return nodes.get(
    qualified === null ? `pg_catalog.${name.toLowerCase()}` : `${qualified.tenant}.${qualified.type}`.toLowerCase(),
  );
}

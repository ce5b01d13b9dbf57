/** Relations by the names that a statement gives them: `pg_catalog.pg_class`, `pg_class`, `information_schema.columns`. */
import { splitTypeName } from '../../projections/access-paths.ts';
import type { VirtualNode } from '../logical-plan.ts';
import { relationColumns } from './columns.ts';
import { relationOids } from './relation-oids.ts';
import { columnType } from './cells.ts';
import { relations } from './relations.ts';

/** Virtual relations that have some rows to a table, where others have one or few. */
const columnRelations: ReadonlySet<string> = new Set(['pg_catalog.pg_attribute', 'information_schema.columns', 'system.columns']);

/** As of a large catalogue: a small one is read soon whichever way is taken. */
function expectedRows(path: string): number {
  if (columnRelations.has(path)) return 100_000;
  const { maker } = relations.get(path)!;
  return maker?.ofTable || maker?.ofColumns ? 10_000 : maker ? 50 : 1;
}

const nodes: ReadonlyMap<string, VirtualNode> = new Map(
  relationColumns.map(({ schema, name, columns }) => {
    const typed = columns.map((column, place) => ({
      name: column.name,
      type: columnType(column.type),
      wire: column.type,
      place,
    }));
    const path = `${schema}.${name}`;
    const expected = expectedRows(path);
    const by = new Set(Object.keys(relations.get(path)!.maker?.names ?? {}));
    const found = { by, rows: columnRelations.has(path) ? 10 : 1 };
    return [path, { kind: 'virtual', relation: path, oid: relationOids.get(path)!, columns: typed, expected, found }];
  }),
);

export function virtualNode(name: string): VirtualNode | undefined {
  const qualified = splitTypeName(name);
  return nodes.get(
    qualified === null ? `pg_catalog.${name.toLowerCase()}` : `${qualified.tenant}.${qualified.type}`.toLowerCase(),
  );
}

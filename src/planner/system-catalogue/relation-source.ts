/** Relations by the names that a statement gives them: `pg_catalog.pg_class`, `pg_class`, `information_schema.columns`. */
import { splitTypeName } from '../../projections/access-paths.ts';
import type { VirtualNode } from '../logical-plan.ts';
import { type RelationColumns, relationColumns } from './relation-columns.ts';
import { relationOids } from './relation-oids.ts';
import { columnType } from './catalogue-cells.ts';
import { relations } from './relations.ts';

/** Virtual relations that have some rows to a table, where others have one or few. */
const columnRelations: ReadonlySet<string> = new Set(['pg_catalog.pg_attribute', 'information_schema.columns', 'system.columns']);

/** As of a large catalogue: a small one is read soon whichever way is taken. */
function expectedRows(path: string): number {
  if (columnRelations.has(path)) return 100_000;
  const { maker } = relations.get(path)!;
  return maker?.ofTable || maker?.ofColumns ? 10_000 : maker ? 50 : 1;
}

const columnsByPath: ReadonlyMap<string, RelationColumns> = new Map(
  relationColumns.map((each) => [`${each.schema}.${each.name}`, each]),
);
/** Made when they are first asked for: there are many, and a start needs none. */
const nodes = new Map<string, VirtualNode>();

function nodeOf(path: string, { columns }: RelationColumns): VirtualNode {
  const typed = columns.map((column, columnIndex) => ({
    name: column.name,
    type: columnType(column.type),
    wire: column.type,
    relationColumn: columnIndex,
  }));
  const lookUpColumns = new Set(Object.keys(relations.get(path)!.maker?.names ?? {}));
  const lookUp = { by: lookUpColumns, rows: columnRelations.has(path) ? 10 : 1 };
  const expected = expectedRows(path);
  return { kind: 'virtual', relation: path, oid: relationOids.get(path)!, columns: typed, expected, lookUp };
}

export function virtualNode(name: string): VirtualNode | undefined {
  const qualified = splitTypeName(name);
  const path = (qualified === null ? `pg_catalog.${name}` : `${qualified.tenant}.${qualified.type}`).toLowerCase();
  const columns = columnsByPath.get(path);
  if (columns === undefined) return undefined;
  let node = nodes.get(path);
  if (node === undefined) nodes.set(path, (node = nodeOf(path, columns)));
  return node;
}

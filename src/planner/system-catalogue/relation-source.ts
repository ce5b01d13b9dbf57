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
function expectedRelationRows(path: string): number {
  if (columnRelations.has(path)) return 100_000;
  const { maker } = relations.get(path)!;
  return maker?.ofTable || maker?.ofColumns ? 10_000 : maker ? 50 : 1;
}

const columnsByPath: ReadonlyMap<string, RelationColumns> = new Map(
  relationColumns.map((each) => [`${each.schema}.${each.name}`, each]),
);
/** Made when they are first asked for: there are many, and a start needs none. */
const virtualNodes = new Map<string, VirtualNode>();

function virtualNodeOf(relationPath: string, { columns }: RelationColumns): VirtualNode {
  const typedColumns = columns.map((column, columnIndex) => ({
    name: column.name,
    type: columnType(column.type),
    wire: column.type,
    relationColumn: columnIndex,
  }));
  const lookUpColumns = new Set(Object.keys(relations.get(relationPath)!.maker?.names ?? {}));
  const lookUp = { by: lookUpColumns, rows: columnRelations.has(relationPath) ? 10 : 1 };
  const expectedRowCount = expectedRelationRows(relationPath);
  return {
    kind: 'virtual',
    relation: relationPath,
    oid: relationOids.get(relationPath)!,
    columns: typedColumns,
    expected: expectedRowCount,
    lookUp,
  };
}

export function virtualNode(relationName: string): VirtualNode | undefined {
  const qualifiedName = splitTypeName(relationName);
  const relationPath = (
    qualifiedName === null ? `pg_catalog.${relationName}` : `${qualifiedName.tenant}.${qualifiedName.type}`
  ).toLowerCase();
  const relationColumnsFound = columnsByPath.get(relationPath);
  if (relationColumnsFound === undefined) return undefined;
  let relationNode = virtualNodes.get(relationPath);
  if (relationNode === undefined)
    virtualNodes.set(relationPath, (relationNode = virtualNodeOf(relationPath, relationColumnsFound)));
  return relationNode;
}

/** Rows of the catalogue that are looked up by a table's number or name are those that going through all of them finds. */
import { expect, test } from 'vitest';
import type { TypeDefinition } from '../../../src/log/entries/entry.ts';
import type { Cell } from '../../../src/log/values/value.ts';
import { cellAt } from '../../../src/log/values/vector-builder.ts';
import type { VirtualColumn } from '../../../src/planner/logical-plan.ts';
import { type CatalogueContents, CatalogueTables, factsOf } from '../../../src/planner/system-catalogue/catalogue-contents.ts';
import { CatalogueNames } from '../../../src/planner/system-catalogue/object-names.ts';
import { virtualNode } from '../../../src/planner/system-catalogue/relation-source.ts';
import { type PiecesRead, readSelected, RelationRows } from '../../../src/planner/system-catalogue/relation-rows.ts';
import { findRows, mayHave, type Relation, relations, shownRelations } from '../../../src/planner/system-catalogue/relations.ts';

const types = ['Item', 'Owner', 'Item_pkey', 'pg_class'].map((name) => ({
  name,
  primaryKey: name === 'Item' ? 'sku' : null,
  ontologyVersion: 1,
  properties: { sku: { type: 'string' }, of: { type: 'string', references: 'Item' } },
})) as unknown as TypeDefinition[];
const views = [{ name: 'cheap', sql: 'SELECT sku FROM Item', refreshSecs: 0, owner: null, position: 1 }] as never[];
const session = {
  user: 'me',
  database: 'annals',
  process: 1,
  variables: { all: () => [], set: () => undefined, instants: 'timestamptz' },
} as const;

function factsFor(tables: CatalogueTables): CatalogueContents {
  return factsOf({
    session,
    tables: () => tables,
    branches: [],
    offers: () => true,
    viewColumns: () => [{ name: 'sku', type: 'string' }],
    check: () => undefined,
  });
}

const columnsOf = ({ schema, name }: Relation): readonly VirtualColumn[] => virtualNode(`"${schema}"."${name}"`)!.columns;

function rowsOf(pieces: PiecesRead, columns: readonly VirtualColumn[]): Cell[][] {
  return [...pieces].flatMap((piece) =>
    piece === undefined
      ? []
      : Array.from({ length: piece.count }, (_, row) => columns.map(({ type }, i) => cellAt(piece.columns[i]!, type, row))),
  );
}

test('by every column that says which table it is about, and by those that are alike in all rows', () => {
  const facts = factsFor(new CatalogueTables(types, views, 'timestamptz'));
  const names = new CatalogueNames(facts);
  let lookedUp = 0;
  for (const relation of relations.values()) {
    const columns = columnsOf(relation);
    const all = rowsOf(new RelationRows(relation, shownRelations).read(columns, facts, names), columns);
    for (const [i, { name }] of columns.entries()) {
      for (const value of new Set([...all.map((row) => row[i]!), null, 'nothing', 7n])) {
        const sought = typeof value === 'bigint' ? Number(value) : (value as string | null);
        const wanted = value === null ? [] : all.filter((row) => row[i] === value);
        if (!mayHave(relation, name, [sought])) expect(wanted).toEqual([]);
        const found = findRows(relation, facts, name, sought);
        if (found === null) continue;
        lookedUp++;
        const rows = rowsOf(readSelected(relation, found, columns, facts, names), columns);
        expect(new Set(rows), `${relation.name} by ${name} ${String(value)}`).toEqual(new Set(wanted));
      }
    }
  }
  expect(lookedUp).toBeGreaterThan(500);
});

test('no row has another cell where all rows are said to have one', () => {
  const facts = factsFor(new CatalogueTables(types, views, 'timestamptz'));
  for (const { name, maker = {} } of relations.values()) {
    const { base = {}, all, ofTable, ofRelation, ofColumns } = maker;
    const rows = [
      ...(all?.(facts) ?? []),
      ...[...facts.tables].flatMap((table) => [...(ofTable?.(table, facts) ?? [])]),
      ...shownRelations.flatMap((each) => [...(ofRelation?.(each, facts) ?? [])]),
    ];
    for (const column of Object.keys(base)) expect(ofColumns?.cells[column], `${name}.${column}`).toBeUndefined();
    for (const cells of rows) for (const column of Object.keys(base)) expect(cells[column], `${name}.${column}`).toBeUndefined();
  }
});

test('tables are made as rows of them are read, in steps, and once', () => {
  let made = 0;
  const many = Array.from({ length: 10_000 }, (_, i) => ({
    ...types[1]!,
    get name() {
      made++;
      return `Type${i}`;
    },
  }));
  const facts = factsFor(new CatalogueTables(many, [], 'timestamptz'));
  const relation = relations.get('pg_catalog.pg_class')!;
  const rows = new RelationRows(relation, shownRelations);
  const columns = columnsOf(relation).filter(({ name }) => name === 'relname' || name === 'oid');
  const pieces = rows.read(columns, facts, new CatalogueNames(facts));
  while (pieces.next().value === undefined);
  const first = made;
  expect(first).toBeLessThan(many.length);
  let steps = 0;
  for (let before = made, step = pieces.next(); step.done !== true; before = made, step = pieces.next(), steps++)
    expect(made - before).toBeLessThan(3_000);
  expect(steps).toBeGreaterThan(20);
  const all = made;
  expect(all).toBeGreaterThan(first);
  expect(rowsOf(rows.read(columns, facts, new CatalogueNames(facts)), columns)).toHaveLength(20_000 + shownRelations.length);
  expect(made).toBe(all);
});

/** Rows of the catalogue that stay when a type changes are, with those that are made anew, the rows that all types give at once. */
import { expect, test } from 'vitest';
import type { TypeDefinition } from '../../../src/log/entries/entry.ts';
import { compareText } from '../../../src/log/values/value.ts';
import { cellAt } from '../../../src/log/values/vector-builder.ts';
import { SeenTables } from '../../../src/planner/system-catalogue/catalogue-cache.ts';
import { type CatalogueContents, CatalogueTables, factsOf } from '../../../src/planner/system-catalogue/catalogue-contents.ts';
import { CatalogueNames } from '../../../src/planner/system-catalogue/object-names.ts';
import { virtualNode } from '../../../src/planner/system-catalogue/relation-source.ts';
import type { RelationRows } from '../../../src/planner/system-catalogue/relation-rows.ts';
import { type Relation, relations } from '../../../src/planner/system-catalogue/relations.ts';
import { Dice } from '../../fuzz/mutate.ts';
import { seedBase } from '../../runner/seed.ts';

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
    offers: (name) => !name.endsWith('7'),
    viewColumns: () => [{ name: 'sku', type: 'string' }],
    check: () => undefined,
  });
}

function cellsOf(rows: RelationRows, relation: Relation, tables: CatalogueTables): string {
  const { columns } = virtualNode(`"${relation.schema}"."${relation.name}"`)!;
  const facts = factsFor(tables);
  const lines: string[] = [];
  for (const piece of rows.read(columns, facts, new CatalogueNames(facts)))
    for (let row = 0; row < (piece?.count ?? 0); row++)
      lines.push(columns.map(({ type }, i) => String(cellAt(piece!.columns[i]!, type, row))).join('|'));
  return lines.join('\n');
}

test('whatever changed between', () => {
  const dice = new Dice(seedBase);
  const types = new Map<string, TypeDefinition>();
  const define = (): void => {
    const name = `Type${dice.roll(1_500)}`;
    const refers = dice.roll(3) === 0 ? { of: { type: 'string', references: `Type${dice.roll(1_500)}` } } : {};
    const more = dice.roll(4) === 0 ? { n: { type: 'integer' } } : {};
    const primaryKey = dice.roll(2) === 0 ? 'sku' : null;
    types.set(name, {
      name,
      primaryKey,
      ontologyVersion: 1,
      properties: { sku: { type: 'string' }, ...refers, ...more },
    } as never);
  };
  let views: readonly never[] = [];
  for (let i = 0; i < 1_200; i++) define();
  let seen: SeenTables | null = null;
  for (let round = 0; round < 12; round++) {
    for (let i = dice.pick([0, 1, 1, 3, 40]); i > 0; i--) define();
    if (dice.roll(3) === 0) types.delete(dice.pick([...types.keys()]));
    if (dice.roll(4) === 0)
      views = [...views, { name: `view${views.length}`, sql: 'SELECT 1', refreshSecs: dice.roll(2) } as never];
    const sorted = [...types.values()].sort((a, b) => compareText(a.name, b.name));
    const before: SeenTables | null = seen?.tables.isWhole === true ? seen : null;
    seen = new SeenTables(new CatalogueTables(sorted, views, 'timestamptz', before?.tables ?? null), before);
    const anew = new SeenTables(new CatalogueTables(sorted, views, 'timestamptz'));
    for (const relation of relations.values()) {
      const { ofTable, ofColumns } = relation.maker ?? {};
      // Some are not read for a while.
      if ((!ofTable && !ofColumns) || dice.roll(3) === 0) continue;
      const path = `${relation.schema}.${relation.name} in round ${round}`;
      const [kept, made] = [
        cellsOf(seen.rowsOf(relation), relation, seen.tables),
        cellsOf(anew.rowsOf(relation), relation, anew.tables),
      ];
      expect(kept === made, path).toBe(true);
    }
  }
});

test('a type more makes few rows anew', () => {
  let made = 0;
  const type = (name: string): TypeDefinition =>
    ({ name, primaryKey: null, ontologyVersion: 1, properties: { sku: { type: 'string' } } }) as never;
  const types = Array.from({ length: 10_000 }, (_, i) => type(`Type${String(i).padStart(4, '0')}`));
  const relation = relations.get('pg_catalog.pg_class')!;
  const counting: Relation = {
    ...relation,
    maker: { ...relation.maker, ofTable: (...given) => (made++, relation.maker!.ofTable!(...given)) },
  };
  const before = new SeenTables(new CatalogueTables(types, [], 'timestamptz'));
  cellsOf(before.rowsOf(counting), relation, before.tables);
  expect(made).toBe(types.length);
  const more = types.toSpliced(5_000, 0, type('Type4999a'));
  const after = new SeenTables(new CatalogueTables(more, [], 'timestamptz', before.tables), before);
  const rows = cellsOf(after.rowsOf(counting), relation, after.tables);
  expect(made).toBeLessThan(types.length + 2_000);
  const anew = new SeenTables(new CatalogueTables(more, [], 'timestamptz'));
  expect(rows === cellsOf(anew.rowsOf(relation), relation, anew.tables)).toBe(true);
});

/** Rows of the catalogue that are looked up by a table's number or name are those that going through all of them finds. */
import { expect, test } from 'vitest';
import type { GovernedSnapshot } from '../../../src/governance/gate-contract.ts';
import { factsOf } from '../../../src/planner/virtual/catalogue-contents.ts';
import { relations } from '../../../src/planner/virtual/relations.ts';

const types = ['Item', 'Owner', 'Item_pkey', 'pg_class'].map((name) => ({
  name,
  primaryKey: name === 'Item' ? 'sku' : null,
  ontologyVersion: 1,
  properties: { sku: { type: 'string' }, of: { type: 'string', references: 'Item' } },
}));
const snapshot = {
  catalog: { types: () => types, type: (name: string) => types.find((type) => type.name === name) },
  offers: () => true,
  views: [{ name: 'cheap', sql: 'SELECT sku FROM Item' }],
} as unknown as GovernedSnapshot;
const session = {
  user: 'me',
  database: 'annals',
  process: 1,
  variables: { all: () => [], set: () => undefined, instants: 'timestamptz' },
} as const;
const facts = factsOf(session, snapshot, [], () => [{ name: 'sku', type: 'string' }]);

test('by every column that says which table it is about', () => {
  let lookedUp = 0;
  for (const relation of relations.values()) {
    const all = [...relation.cells(facts)];
    for (const { name } of relation.columns) {
      const values = new Set([...all.map((cells) => cells[name] ?? null), null, 'nothing', 7]);
      for (const value of values) {
        const found = relation.findRows(facts, name, value);
        if (found === null) continue;
        lookedUp++;
        const wanted = value === null ? [] : all.filter((cells) => cells[name] === value);
        expect(new Set(found), `${relation.name} by ${name} ${JSON.stringify(value)}`).toEqual(new Set(wanted));
      }
    }
  }
  expect(lookedUp).toBeGreaterThan(500);
});

test('the first tables are there before the others are made', () => {
  let made = 0;
  const many = {
    *[Symbol.iterator]() {
      for (; made < 10_000; made++) yield { ...types[0]!, name: `Type${made}` };
    },
  };
  const lazy = factsOf(
    session,
    { ...snapshot, catalog: { types: () => many, type: () => undefined } } as unknown as GovernedSnapshot,
    [],
    null,
  );
  const rows = relations.get('pg_catalog.pg_class')!.cells(lazy)[Symbol.iterator]();
  for (let i = 0; i < 10; i++) rows.next();
  expect(made).toBeLessThan(10);
});

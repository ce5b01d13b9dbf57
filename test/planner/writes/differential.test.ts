/** Random writes put to the store and to SQLite: `npm run sql:diff -- --writes <statements>` puts more. */
import { expect, test } from 'vitest';
import { seedBase } from '../../runner/seed.ts';
import { writeDifferential } from '../generator/writes.ts';

test('SQLite writes the same', async () => {
  const { statements, refused, rows, forms, mismatches } = await writeDifferential(seedBase + 7, 160, 2);
  expect(mismatches).toEqual([]);
  expect([...forms.keys()].sort()).toEqual(['delete', 'from', 'insert', 'nothing', 'select', 'update', 'upsert', 'using']);
  expect(refused).toBeLessThan(statements / 2);
  expect(rows).toBeGreaterThan(statements);
});

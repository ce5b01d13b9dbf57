/** Every function of the registry does what its entry says, over columns, constants and NULLs alike; the manual shows it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { scalarFunctions } from '../../../src/planner/expressions/functions/all.ts';
import { shownCell, TestStore } from '../../harness.ts';
import { manual } from './manual.ts';

let store: TestStore;

beforeAll(async () => {
  store = await TestStore.open();
  await store.register('One', { id: 'string' }, 'id');
  await store.put('One', [{ id: 'a' }]);
  store.dialect = 'wide';
});
afterAll(async () => {
  await store.close();
});

describe('the registry', () => {
  test('has each name once', () => {
    const names = scalarFunctions.flatMap(({ name, also = [] }) => [name, ...also]);
    expect(new Set(names).size).toBe(names.length);
  });

  test.each(scalarFunctions.flatMap(({ examples }) => examples.map(([sql, result]) => ({ sql, result }))))(
    '$sql is $result',
    async ({ sql, result }) => {
      const answer = await store.answer(`SELECT ${sql} AS x FROM One`);
      const [row] = await store.rows(`SELECT ${sql} AS x FROM One`);
      const cell = row!['x']!;
      expect(cell === null ? 'NULL' : shownCell(cell, answer.columns[0]!.type)).toBe(result);
    },
  );

  test('is what docs/sql.md shows', async () => {
    const path = join(import.meta.dirname, '../../../docs/sql.md');
    const [before] = readFileSync(path, 'utf8').split('<!-- functions: generated -->');
    await expect(`${before!}<!-- functions: generated -->\n\n${manual()}`).toMatchFileSnapshot(path);
  });
});

/** Every function of the registry does what its entry says, over columns, constants and NULLs alike; the manual shows it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { scalarFunctions } from '../../../src/planner/expressions/functions/all.ts';
import { casts } from '../../../src/planner/expressions/functions/casts.ts';
import { extractions, fixedIntervals } from '../../../src/planner/expressions/functions/instants.ts';
import { isCounted } from '../../../src/planner/expressions/functions/scalar-function.ts';
import { rowMost, turnMost, work } from '../../../src/planner/expressions/expression-cost.ts';
import { ServiceError } from '../../../src/errors.ts';
import { shownCell, TestStore } from '../../harness.ts';
import { scalarBombs, scalarsAtLimits } from '../../hostile/scalars.ts';
import { manual } from './manual.ts';

let store: TestStore;

beforeAll(async () => {
  store = await TestStore.open();
  await store.register('One', { id: 'string' }, 'id');
  await store.put('One', [{ id: 'a' }]);
  await store.register('Limits', { n: 'integer', s: 'string', x: 'number', t: 'timestamp' });
  await store.put('Limits', [{ n: 7, s: 's7', x: 0.875, t: '2024-01-01T00:00:00Z' }]);
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

  test('states what each call costs that looks at texts, JSON or vectors', () => {
    const all = [...scalarFunctions, ...casts.values(), ...extractions.values(), ...fixedIntervals.values()];
    const long = new Set(['string', 'json', 'vector', 'same', 'any']);
    const silent = all.flatMap(({ name, signatures }) =>
      signatures.filter((each) => each.takes.some((type) => long.has(type)) && !isCounted(each)).map(() => name),
    );
    // Of a literal, which is short.
    expect(silent.filter((name) => !/^INTERVAL|MONTHS|^DATE_TRUNC$/.test(name))).toEqual([]);
  });

  test('is tried with inputs at their limits, each of which is answered or refused by its name', async () => {
    expect(scalarFunctions.filter(({ name }) => !Object.hasOwn(scalarsAtLimits, name)).map(({ name }) => name)).toEqual([]);
    const tooMuch =
      /too much work for one row|not a single value|at most 1048576 characters|the text is (not a boolean|not JSON|no vector)|no timestamp|UTC ISO-8601|dimensions/;
    const wrong: string[] = [];
    for (const { name, sql } of scalarBombs(1, 'Limits')) {
      try {
        await store.rows(sql);
        // What one row may cost, and what its turn had before.
        if (work.done > rowMost + turnMost) wrong.push(`${name}: ${work.done} ns`);
      } catch (error) {
        if (!(error instanceof ServiceError) || error.code !== 'REL_INVALID' || !tooMuch.test(error.message))
          wrong.push(`${name}: ${String(error)}`);
      }
    }
    expect(wrong).toEqual([]);
  });

  test('is what docs/sql.md shows', async () => {
    const path = join(import.meta.dirname, '../../../docs/sql.md');
    const [before] = readFileSync(path, 'utf8').split('<!-- functions: generated -->');
    await expect(`${before!}<!-- functions: generated -->\n\n${manual()}`).toMatchFileSnapshot(path);
  });
});

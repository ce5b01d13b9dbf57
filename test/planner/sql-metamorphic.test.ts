/**
 * Random statements over random worlds, their answers checked against each other; and rows picked first, for which a
 * predicate is made that is true of them, so that they must come out, through the door too.
 */
import { describe, expect, test } from 'vitest';
import { seedBase } from '../runner/seed.ts';
import { tell } from '../runner/tell.ts';
import { whole } from '../runner/turn.ts';
import { StoreWorld } from '../doors/http/store-world.ts';
import type { InputRow } from '../harness.ts';
import { runOracles } from './generator/oracle-run.ts';
import { oraclesFor } from './generator/oracles.ts';
import { ourExpression } from './generator/render.ts';
import { everyFeature, oneTable, StatementGenerator } from './generator/statements.ts';
import { worldOf } from './generator/world.ts';

const checks = Number(process.env['SQL_ORACLE_CHECKS'] ?? (whole ? 5_000 : 240));
const seed = seedBase + 1;

describe('answers agree with each other', () => {
  test(`${checks} checks`, async () => {
    const report = await runOracles({ seed, checks, features: everyFeature, stopAfter: 3 });
    tell(`${report.checks} checks, seed ${seed} (npm run sqloracle -- --seed ${seed})`);
    expect(report.findings).toEqual([]);
    expect(report.checks).toBe(checks);
    expect(report.capped).toBeLessThan(Math.max(3, checks / 300));
    expect([...report.byOracle.keys()].toSorted()).toEqual(
      oraclesFor(everyFeature)
        .map(({ name }) => name)
        .toSorted(),
    );
    expect(report.shapes.size).toBeGreaterThan(whole ? 150 : 25);
  });

  test('each row comes out through the door once: where a predicate holds, where it does not, or where it is unknown', async () => {
    const store = await StoreWorld.open();
    try {
      const world = worldOf(4_711);
      // Instants of the history are those of the writing: here only values count, and the clock is that of the machine.
      const table = world.tables[0]!;
      const properties = Object.fromEntries(
        table.columns.flatMap(({ name, type, pool }) => (pool === null ? [] : [[name, { type }]])),
      );
      expect((await store.call('POST', '/types', { name: 'P', properties, primary_key: 'k' })).status).toBe(201);
      const rows = world.batches.flatMap((batch) => (batch.kind === 'put' && batch.table === table.name ? batch.rows : []));
      const latest = new Map<string, InputRow>(
        rows.map((row) => [row['k'] as string, { ...row, valid_from: undefined, valid_to: undefined }]),
      );
      expect(latest.size).toBeGreaterThan(3);
      const body = [...latest.values()]
        .map((row) => JSON.stringify(row, (_, value: unknown) => (typeof value === 'bigint' ? `#${value}#` : value)))
        .join('\n')
        .replaceAll(/"#(-?\d+)#"/g, '$1');
      expect((await store.call('POST', '/ingest?object_type=P', body, { 'content-type': 'application/x-ndjson' })).status).toBe(
        200,
      );
      const columns = table.columns.filter(({ pool, type }) => pool !== null && type !== 'timestamp');
      let asked = 0;
      for (let index = 0; index < 120; index++) {
        const generator = new StatementGenerator(world, index, { ...oneTable, storedColumns: false });
        const leaves = columns.map(({ name, type, size, grain }) => ({
          kind: 'column' as const,
          table: null,
          name,
          type,
          size,
          grain,
        }));
        const predicate = generator.predicate({ choices: generator.choices, leaves, subquery: null, distinctSums: false });
        const text = ourExpression(predicate);
        // The clock of the machine moves on between asking and checking.
        if (text.includes('now()')) continue;
        const parts = [text, `NOT ${text}`, `${text} IS NULL`].map((p) => store.rows(`SELECT k FROM P AS OF CURRENT WHERE ${p}`));
        const keys = (await Promise.all(parts)).flat().map((row) => row['k'] as string);
        expect(keys.toSorted(), text).toEqual([...latest.keys()].toSorted());
        asked++;
      }
      expect(asked).toBeGreaterThan(80);
    } finally {
      await store.close();
    }
  });
});

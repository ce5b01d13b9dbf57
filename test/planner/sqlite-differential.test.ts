/**
 * Random statements put to the store and to SQLite over the same stored versions: what both answer must be the same rows.
 * How the two dialects differ, and what is done about it, stands in `generator/render.ts`. A run of
 * `npm test` asks a share that moves with the commit; `npm run sql:diff` asks as many as it is told.
 */
import { describe, expect, test } from 'vitest';
import { seedBase } from '../runner/seed.ts';
import { tell } from '../runner/tell.ts';
import { whole } from '../runner/turn.ts';
import { differential } from './generator/differential.ts';
import { expectedFeatures } from './generator/features.ts';
import { everyFeature, wideFeatures } from './generator/statements.ts';

const statements = Number(process.env['SQL_DIFF_STATEMENTS'] ?? (whole ? 20_000 : 800));
const seed = seedBase + 1;

describe('SQLite answers the same', () => {
  test.each([
    ['of the specified dialect', everyFeature],
    ['of what is written around it', wideFeatures],
  ])(`${statements / 2} random statements %s`, async (_, features) => {
    const expected = expectedFeatures(features);
    const report = await differential({
      seed,
      statements: statements / 2,
      features,
      perWorld: whole ? 500 : 100,
      expected,
      stopAfter: 3,
    });
    tell(`${report.statements} statements, seed ${seed} (npm run sql:diff -- --seed ${seed})`);
    expect(report.mismatches).toEqual([]);
    expect(report.statements).toBeGreaterThanOrEqual(statements / 2);
    expect(expected.filter((feature) => !report.features.has(feature))).toEqual([]);
    expect(report.rowsCompared).toBeGreaterThan(statements / 2);
    expect(report.shapes.size).toBeGreaterThan(whole ? 400 : 80);
  });
});

/**
 * Random statements put to the store and to SQLite. One line of JSON, and before it what differs, made small.
 *
 *   npm run sql:diff -- [--n 500000] [--seed 1]
 *   npm run sql:diff -- --writes 20000 [--seed 1]          INSERT, UPDATE and DELETE instead
 *   npm run sql:diff -- --world <seed> --index <number>    one statement again, as a mismatch names it
 */
import { parseArgs } from 'node:util';
import { again, differential } from './differential.ts';
import { expectedFeatures } from './features.ts';
import { wideFeatures } from './statements.ts';
import { writeDifferential } from './writes.ts';

const { values: options } = parseArgs({
  options: {
    n: { type: 'string', default: '20000' },
    seed: { type: 'string', default: '1' },
    world: { type: 'string' },
    index: { type: 'string' },
    writes: { type: 'string' },
  },
});

if (options.writes !== undefined) {
  const { mismatches, forms, ...figures } = await writeDifferential(Number(options.seed), Number(options.writes));
  for (const { world, index, ours, theirs, why } of mismatches)
    console.error(`${world} ${index}\n  ${ours}\n  ${theirs}\n${why}\n`);
  console.log(JSON.stringify({ ...figures, forms: Object.fromEntries(forms), mismatches: mismatches.length }));
  process.exit(mismatches.length > 0 ? 1 : 0);
}

const started = performance.now();
const seed = Number(options.seed);
const one = options.world !== undefined && options.index !== undefined;
const report = one
  ? await again(Number(options.world), Number(options.index), wideFeatures)
  : await differential({ seed, statements: Number(options.n), features: wideFeatures });

for (const { world, index, what, ours, theirs, answers } of report.mismatches) {
  console.error(`${what}\n  ${ours}\n  ${theirs}\n${answers}\n  npm run sql:diff -- --world ${world} --index ${index}\n`);
}
const missing = one ? [] : expectedFeatures(wideFeatures).filter((feature) => !report.features.has(feature));
console.log(
  JSON.stringify({
    statements: report.statements,
    unanswered: report.unanswered,
    rows: report.rowsCompared,
    planShapes: report.shapes.size,
    features: report.features.size,
    featuresNotUsed: missing,
    mismatches: report.mismatches.length,
    seed,
    seconds: Number(((performance.now() - started) / 1000).toFixed(1)),
  }),
);
process.exitCode = report.mismatches.length > 0 || missing.length > 0 ? 1 : 0;

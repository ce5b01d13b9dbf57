/**
 * Answers checked against each other over random worlds: partitions (TLP), filter against projection (NoREC), passes left out, block sizes, AS OF spelled out, pages while others write, tenants beside each other. One line of
 * JSON, and before it what was found, made small.
 *
 *   npm run sqloracle -- [--n 50000] [--seed 1]
 *   npm run sqloracle -- --world <seed> --index <number>    one check again, as a finding names it
 */
import { parseArgs } from 'node:util';
import { oracleAgain, runOracles } from './oracle-run.ts';
import { oraclesFor } from './oracles.ts';
import { wideFeatures } from './statements.ts';

const { values: options } = parseArgs({
  options: {
    n: { type: 'string', default: '50000' },
    seed: { type: 'string', default: '1' },
    world: { type: 'string' },
    index: { type: 'string' },
  },
});

const started = performance.now();
const seed = Number(options.seed);
const one = options.world !== undefined && options.index !== undefined;
const report = one
  ? await oracleAgain(Number(options.world), Number(options.index), wideFeatures)
  : await runOracles({ seed, checks: Number(options.n), features: wideFeatures });

for (const { oracle, world, index, what, query, predicate, detail } of report.findings) {
  console.error(`${oracle}: ${what}\n  ${query}${predicate === null ? '' : `\n  predicate ${predicate}`}\n${detail}`);
  console.error(`  npm run sqloracle -- --world ${world} --index ${index}\n`);
}
const missing = one
  ? []
  : oraclesFor(wideFeatures)
      .filter(({ name }) => !report.byOracle.has(name))
      .map(({ name }) => name);
console.log(
  JSON.stringify({
    checks: report.checks,
    statements: report.statements,
    planShapes: report.shapes.size,
    byOracle: Object.fromEntries(report.byOracle),
    oraclesNotRun: missing,
    findings: report.findings.length,
    seed,
    seconds: Number(((performance.now() - started) / 1000).toFixed(1)),
  }),
);
process.exitCode = report.findings.length > 0 || missing.length > 0 ? 1 : 0;

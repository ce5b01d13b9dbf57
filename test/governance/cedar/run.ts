/**
 * Compiled policies against the engine's own decisions. One line of JSON, and before it what differs.
 *
 *   npm run policy-differential -- [--n 1000000] [--seed 1]
 *   npm run policy-differential -- --world <seed>    one world again, as a difference names it
 */
import { parseArgs } from 'node:util';
import { differential, runWorld, type Report } from './differential.ts';

const { values: options } = parseArgs({
  options: { n: { type: 'string', default: '20000' }, seed: { type: 'string', default: '1' }, world: { type: 'string' } },
});

const started = performance.now();
const report: Report =
  options.world === undefined
    ? differential({ seed: Number(options.seed), triples: Number(options.n) })
    : { triples: 0, cells: 0, things: 0, refused: 0, differences: [], coverage: new Map() };
if (options.world !== undefined) runWorld(Number(options.world), report);
for (const { seed, what } of report.differences.slice(0, 20))
  console.error(`${what}\n  npm run policy-differential -- --world ${seed}\n`);
const missed = [...report.coverage].filter(([, times]) => times === 0).map(([name]) => name);
console.log(
  JSON.stringify({
    triples: report.triples,
    cells: report.cells,
    things: report.things,
    refused: report.refused,
    differences: report.differences.length,
    missed,
    coverage: Object.fromEntries(report.coverage),
    seconds: Number(((performance.now() - started) / 1000).toFixed(1)),
  }),
);
process.exit(report.differences.length === 0 && missed.length === 0 ? 0 : 1);

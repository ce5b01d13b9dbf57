/** `npm run patterns -- [--n 20000] [--seed 1]`: see `pattern-differential.ts`. One line of JSON, and before it what differs. */
import { parseArgs } from 'node:util';
import { comparePatterns } from './pattern-differential.ts';

const { values: options } = parseArgs({
  options: { n: { type: 'string', default: '20000' }, seed: { type: 'string', default: '1' } },
});
const [patterns, seed] = [Number(options.n), Number(options.seed)];
const { rows, mismatches } = await comparePatterns(seed, patterns);
for (const { pattern, graph, store, model } of mismatches.slice(0, 20)) {
  console.error(`${pattern}\n  over ${graph}\nstore:\n${store}\nmodel:\n${model}\n`);
}
console.log(JSON.stringify({ patterns, rows, seed, mismatches: mismatches.length }));
process.exitCode = mismatches.length > 0 ? 1 : 0;

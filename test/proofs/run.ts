/** `npm run proofs -- [--cases n]`: the verifier against two others, on as many bad proofs as asked and every bit of two good ones. */
import { parseArgs } from 'node:util';
import { noTally, tally } from './agreement.ts';
import { Cases } from './cases.ts';

const { values } = parseArgs({
  options: { cases: { type: 'string', default: '10000' }, seed: { type: 'string', default: '2' } },
});
const cases = await Cases.open();
const sum = noTally();
const count = Number(values.cases);
await tally(cases.good(40, count / 4), sum, true);
await tally(cases.tolerated(), sum, true);
await tally(cases.bad(count, Number(values.seed)), sum, true);
for (const of of ['row', 'branch'] as const) await tally(cases.flips(of), sum, true);
for (const line of sum.wrong.slice(0, 20)) console.log(line);
console.log(
  JSON.stringify({ cases: sum.cases, good: sum.good, python: sum.python, wrong: sum.wrong.length, seed: Number(values.seed) }),
);
process.exitCode = sum.wrong.length === 0 && sum.cases > 0 ? 0 : 1;

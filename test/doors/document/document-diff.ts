/** `npm run documents:diff -- [--n 100000] [--seed 1]`: cases of `differential.ts`; prints what differs (0). */
import { parseArgs } from 'node:util';
import { difference } from './differential.ts';

const { values } = parseArgs({ options: { n: { type: 'string', default: '100000' }, seed: { type: 'string', default: '1' } } });
const cases = Number(values.n);
let different = 0;
for (let i = 0; i < cases && different < 20; i++) {
  const told = await difference(Number(values.seed) * 1_000_003 + i);
  if (told === null) continue;
  different++;
  console.log(told);
}
console.log(JSON.stringify({ suite: 'documents-diff', seed: Number(values.seed), cases, different }));
process.exitCode = different === 0 ? 0 : 1;

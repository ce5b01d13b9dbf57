/**
 * Recorded recalls, replayed from the log alone. Prints "k of n" and its figures as one line of JSON; exits 1 where one differs.
 *
 *   npm run recall-replay -- [--n 10000] [--seed 1]
 */
import { parseArgs } from 'node:util';
import { recallReplay } from './replay.ts';

const { values: options } = parseArgs({
  options: { n: { type: 'string', default: '10000' }, seed: { type: 'string', default: '1' } },
});

const say = (line: string): void => void process.stderr.write(`${line}\n`);
const { differing, ...figures } = await recallReplay(Number(options.n), Number(options.seed), say);
for (const id of differing.slice(0, 20)) say(`DIFFERS ${id}`);
say(`${figures.identical} of ${figures.recalls} recalls give the same list and scores`);
console.log(JSON.stringify(figures));
process.exit(differing.length === 0 && figures.erased.told === figures.erased.asked ? 0 : 1);

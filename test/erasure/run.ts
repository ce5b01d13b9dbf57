/**
 * The erasure scan at size. Prints what it does, the first hits, and its figures as one line of JSON; exits 1 when an erased
 * canary was found anywhere, one of the control was not, no index was on a file to be searched, or the log did not verify after an erasure.
 *
 *   npm run erasure:scan -- [--subjects 500] [--seed 1]
 */
import { parseArgs } from 'node:util';
import { scan } from './rounds.ts';

const { values: options } = parseArgs({
  options: { subjects: { type: 'string', default: '500' }, seed: { type: 'string', default: '1' } },
});

const say = (line: string): void => void process.stderr.write(`${line}\n`);
const { hits, inTheClear, unseen, damage, ...figures } = await scan(Number(options.subjects), {
  seed: Number(options.seed),
  say,
});
for (const { subject, canary, encoding, where } of [...hits, ...inTheClear].slice(0, 20)) {
  say(`HIT subject ${subject}, ${canary} as ${encoding}: ${where}`);
}
for (const { subject, plant } of unseen.slice(0, 20)) say(`UNSEEN subject ${subject}, ${plant}`);
for (const what of damage.slice(0, 20)) say(`DAMAGED ${what}`);
const counts = { hits: hits.length, inTheClear: inTheClear.length, unseen: unseen.length, damage: damage.length };
console.log(JSON.stringify({ ...figures, ...counts }));
const areThere = Math.min(figures.inTexts, figures.inVectors, figures.inGraphs) > 0;
if (!areThere) say('UNSEEN no index of texts, none of vectors, or no graph was on a file');
process.exit(areThere && Object.values(counts).every((count) => count === 0) ? 0 : 1);

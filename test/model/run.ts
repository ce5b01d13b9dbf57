/** `npm run model -- --commands N [--seed S] [--path P]`: as many commands as one likes, and a failure's seed and path to paste. */
import { parseArgs } from 'node:util';
import { checkConformance } from './conformance.ts';

const { values } = parseArgs({
  options: { commands: { type: 'string', default: '100000' }, seed: { type: 'string' }, path: { type: 'string' } },
});
const seed = Number(values.seed ?? Date.now() % 2_147_483_647);
const wanted = Number(values.commands);
let shown = 0;
const result = await checkConformance({
  commands: wanted,
  seed,
  ...(values.path === undefined ? {} : { path: values.path }),
  onRun: (done) => {
    if (done - shown < 5_000) return;
    shown = done;
    process.stderr.write(`${done} of ${wanted} commands\n`);
  },
});
console.log(
  `${result.commands} commands in ${result.histories} histories, seed ${seed}: ${result.failure === null ? 'no difference' : 'DIFFERENT'}`,
);
if (result.failure !== null) console.log(result.failure);
process.exit(result.failure === null ? 0 : 1);

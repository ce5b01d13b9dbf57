/**
 * `npm run model -- --commands N [--seed S] [--path P] [--replay-path R]`: as many commands as one likes, and a
 * failure's seed and paths to paste. `--mistake <rule>` gets a rule of the model wrong: the canary, which must exit with 1.
 */
import { parseArgs } from 'node:util';
import { type Mistake, mistakes } from './bitemporal.ts';
import { checkConformance } from './conformance.ts';

const { values } = parseArgs({
  options: {
    commands: { type: 'string', default: '100000' },
    seed: { type: 'string' },
    path: { type: 'string' },
    'replay-path': { type: 'string' },
    mistake: { type: 'string' },
  },
});
if (values.mistake !== undefined && !mistakes.includes(values.mistake as Mistake)) {
  console.error(`--mistake knows ${mistakes.join(', ')}`);
  process.exit(2);
}
const seed = Number(values.seed ?? Date.now() % 2_147_483_647);
const wanted = Number(values.commands);
let shown = 0;
const result = await checkConformance({
  commands: wanted,
  seed,
  ...(values.path === undefined ? {} : { path: values.path }),
  ...(values['replay-path'] === undefined ? {} : { replayPath: values['replay-path'] }),
  ...(values.mistake === undefined ? {} : { mistake: values.mistake as Mistake }),
  onRun: (done) => {
    if (done - shown < 5_000) return;
    shown = done;
    process.stderr.write(`${done} of ${wanted} commands\n`);
  },
});
console.log(
  `${result.commands} commands in ${result.histories} histories, seed ${seed}: ${result.failure === null ? 'no difference' : 'DIFFERENT'}; ${JSON.stringify(result.derived)}`,
);
for (const counts of [result.ran, result.came]) console.log(listed(counts));
if (result.failure !== null) console.log(result.failure);
process.exit(result.failure === null ? 0 : 1);

/** Most often first. */
function listed(counts: Readonly<Record<string, number>>): string {
  const sorted = Object.entries(counts).toSorted(([, a], [, b]) => b - a);
  return sorted.map(([name, times]) => `${name} ${times}`).join(', ');
}

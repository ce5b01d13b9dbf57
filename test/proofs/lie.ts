/** `npm run lying -- [--steps n] [--seed n]`: clients with one checkpoint each against a server that lies, for as long as asked. */
import { parseArgs } from 'node:util';
import { LyingServer, runLyingServer } from './lying-server.ts';

const { values } = parseArgs({
  options: { steps: { type: 'string', default: '1000000' }, seed: { type: 'string', default: '1' } },
});
const stepsEach = 10_000;
const histories = await LyingServer.histories();
const sum = { steps: 0, believed: 0, refused: 0, clients: 0, convicted: 0 };
for (let seed = Number(values.seed); sum.steps < Number(values.steps); seed++) {
  const run = await runLyingServer(histories, seed, Math.min(stepsEach, Number(values.steps) - sum.steps));
  for (const name of Object.keys(sum) as (keyof typeof sum)[]) sum[name] += run[name];
  if (process.stderr.isTTY) process.stderr.write(`\r${sum.steps} steps `);
}
console.log(JSON.stringify(sum));

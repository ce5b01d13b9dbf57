// Every check, in the order in which failures are cheapest to find. `npm test -- --update` rewrites golden files.
import { spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import './prepare.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const bin = (name) => join(root, 'node_modules/.bin', name);
const update = process.argv.includes('--update');

const steps = [
  ['types', bin('tsc'), ['-p', 'tsconfig.json']],
  ['lint', bin('oxlint'), ['--type-aware', '--deny-warnings']],
  ['format', bin('biome'), ['format']],
  ['tests', bin('vitest'), ['run', ...(update ? ['--update'] : [])]],
];

for (const [name, command, args] of steps) {
  const started = performance.now();
  const env = { ...process.env, ...(update ? { ANNALS_UPDATE: '1' } : {}) };
  const { status, error } = spawnSync(command, args, { cwd: root, env, stdio: ['ignore', 'inherit', 'inherit'] });
  if (error) throw error;
  console.log(`${status === 0 ? 'passed' : 'FAILED'}: ${name} (${((performance.now() - started) / 1000).toFixed(1)} s)`);
  if (status !== 0) process.exit(status ?? 1);
}

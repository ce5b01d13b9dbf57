/**
 * Every check, in the order in which failures are cheapest to find.
 *
 *   npm test
 *   npm test -- --update     rewrites golden files
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import './prepare.mjs';
import { cpuSeconds } from './cpu.mjs';
import { lastRun, slowest } from './durations.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const bin = (name) => join(root, 'node_modules/.bin', name);
const [option] = process.argv.slice(2);
if (option !== undefined && option !== '--update') {
  console.error(`npm test takes --update, not ${option}. To run some files: npx vitest run <files>`);
  process.exit(2);
}

const started = performance.now();
process.once('exit', () => console.log(`${seconds(started)} s, ${cpuSeconds().toFixed(0)} CPU seconds`));

await runAll([
  ['types', bin('tsc'), ['-p', 'tsconfig.json']],
  ['types of the pages', bin('tsc'), ['--noEmit', '-p', 'console']],
  ['lint', bin('oxlint'), ['--type-aware', '--deny-warnings']],
  ['format', bin('biome'), ['format']],
]);
run('tests', bin('vitest'), ['run', ...(option === '--update' ? ['--update'] : [])]);
console.log(`slowest, in CPU seconds (npm run durations prints what grew):`);
console.log(slowest(JSON.parse(readFileSync(lastRun, 'utf8')), 10).join('\n'));

function run(name, command, args) {
  const began = performance.now();
  const env = { ...process.env, TEST_CPU_FILE: lastRun, ...(option === '--update' ? { ANNALS_UPDATE: '1' } : {}) };
  const { status, error } = spawnSync(command, args, { cwd: root, env, stdio: ['ignore', 'inherit', 'inherit'] });
  if (error) throw error;
  console.log(`${status === 0 ? 'passed' : 'FAILED'}: ${name} (${seconds(began)} s)`);
  if (status !== 0) process.exit(status ?? 1);
}

/** Runs commands at the same time and prints their output one after the other. */
async function runAll(commands) {
  const ended = commands.map(async ([name, command, args]) => {
    const began = performance.now();
    const child = spawn(command, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
    const [status] = await once(child, 'close');
    return { status, text: `${output}${status === 0 ? 'passed' : 'FAILED'}: ${name} (${seconds(began)} s)` };
  });
  let failed = false;
  for (const each of ended) {
    const { status, text } = await each;
    console.log(text);
    failed ||= status !== 0;
  }
  if (failed) process.exit(1);
}

function seconds(since) {
  return ((performance.now() - since) / 1000).toFixed(1);
}

/**
 * Every check, in the order in which failures are cheapest to find.
 *
 *   npm test
 *   npm test -- --update                                 rewrites golden files
 *   npm test -- --update-durations [test/a.test.ts …]    runs the tests, or these, and writes what they take to test/durations.json
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import './prepare.mjs';
import { cpuSeconds } from './cpu.mjs';
import { paceFiles, paceOf, slowest, tooSlow, updated, withoutRow } from './durations.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const bin = (name) => join(root, 'node_modules/.bin', name);
const [option, ...files] = process.argv.slice(2);
if (option !== undefined && option !== '--update' && option !== '--update-durations') {
  console.error(`npm test takes --update or --update-durations, not ${option}. To run some files: npx vitest run <files>`);
  process.exit(2);
}
const scratch = mkdtempSync(join(tmpdir(), 'annals-test-'));
const cpuFile = join(scratch, 'cpu.json');
const table = join(root, 'test/durations.json');
const rows = JSON.parse(readFileSync(table, 'utf8'));

const started = performance.now();
process.once('exit', () => {
  rmSync(scratch, { recursive: true, force: true });
  console.log(`${seconds(started)} s, ${cpuSeconds().toFixed(0)} CPU seconds`);
});

if (option === '--update-durations') {
  const { measured, pace } = files.length > 0 ? runSome('tests', files) : runAllTests([]);
  writeFileSync(table, `${JSON.stringify(updated(rows, measured, files.length > 0, pace), null, 2)}\n`);
} else {
  const unlisted = withoutRow(rows, testFiles());
  if (unlisted.length > 0) {
    console.error(unlisted.join('\n'));
    process.exit(1);
  }
  await runAll([
    ['types', bin('tsc'), ['-p', 'tsconfig.json']],
    ['lint', bin('oxlint'), ['--type-aware', '--deny-warnings']],
    ['format', bin('biome'), ['format']],
  ]);
  const { measured, pace } = runAllTests(option === '--update' ? ['--update'] : []);
  console.log(`slowest, in CPU seconds:\n${slowest(measured, 10).join('\n')}`);
  const complaints = stillTooSlow(measured, pace);
  if (complaints.length > 0) {
    console.error(complaints.join('\n'));
    process.exitCode = 1;
  }
}

function testFiles() {
  return readdirSync(join(root, 'test'), { recursive: true })
    .filter((file) => file.endsWith('.test.ts'))
    .map((file) => `test/${file}`);
}

function run(name, command, args) {
  const began = performance.now();
  const env = { ...process.env, TEST_CPU_FILE: cpuFile, ...(option === '--update' ? { ANNALS_UPDATE: '1' } : {}) };
  const { status, error } = spawnSync(command, args, { cwd: root, env, stdio: ['ignore', 'inherit', 'inherit'] });
  if (error) throw error;
  console.log(`${status === 0 ? 'passed' : 'FAILED'}: ${name} (${seconds(began)} s)`);
  if (status !== 0) process.exit(status ?? 1);
}

/** At the same time; what they print comes one after the other. */
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

/** CPU seconds by file, and the pace at which they were taken. */
function runAllTests(args) {
  const measured = runTests('tests', args);
  return { measured, pace: told(paceOf(rows, measured)) };
}

/** The same of these files alone: others, which are not shown, tell the pace. */
function runSome(name, files) {
  const all = runTests(name, [...new Set([...files, ...paceFiles])]);
  const measured = Object.fromEntries(Object.entries(all).filter(([file]) => files.includes(file)));
  return { measured, pace: told(paceOf(rows, all, files)) };
}

function told(pace) {
  console.log(`pace: ${pace.toFixed(2)} times what test/durations.json says`);
  return pace;
}

function runTests(name, args) {
  run(name, bin('vitest'), ['run', ...args]);
  return JSON.parse(readFileSync(cpuFile, 'utf8'));
}

/** A busy machine makes a file slow for once; a mistake makes it slow again, alone. */
function stillTooSlow(measured, pace) {
  return tooSlow(rows, measured, pace).flatMap(({ file }) => {
    const again = runSome(`${file} again`, [file]);
    return tooSlow(rows, again.measured, again.pace).map(({ line }) => line);
  });
}

function seconds(since) {
  return ((performance.now() - since) / 1000).toFixed(1);
}

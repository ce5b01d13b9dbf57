/**
 * Applies each listed mistake to a copy of the tree and runs the tests that must notice it. A mutant that no test
 * notices is a hole in the suite. The unmutated copy runs first: a suite that fails anyway notices nothing, and how long it
 * takes says when tests that go on and on are stopped. Being stopped is no failure: only a mutant that `hangs` is killed so.
 *
 *   npm run mutants -- [--list log] [--only <part of a name>]… [--workers 2] [--json]
 *   npm run mutants -- --check      only whether each has its place in the source
 */
import { spawn } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import type { Mutant } from './mutant.ts';
import { placeOf } from './place.ts';

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const notCopied = new Set(['node_modules', '.git', 'dist', 'coverage']);
/** Tests of a mutant may take so many times what those of the unmutated copy took, and this long in any case. */
const patience = 3;
const leastLimitMs = 180_000;
const sentinelLimitMs = 3_600_000;

interface Outcome {
  readonly name: string;
  readonly result: 'killed' | 'survived' | 'stopped' | 'stale';
  readonly seconds: number;
}

const { values: options } = parseArgs({
  options: {
    list: { type: 'string', multiple: true },
    only: { type: 'string', multiple: true, default: [''] },
    workers: { type: 'string', default: '2' },
    check: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
});

const mutants = (await loadLists(options.list)).filter(({ name }) => options.only.some((part) => name.includes(part)));
if (mutants.length === 0) fail('no mutant of that name or list');
if (options.check) {
  const stale = mutants.filter((mutant) => !placeOf(readFileSync(join(root, mutant.file), 'utf8'), mutant));
  for (const { name, file } of stale) console.error(`stale: ${name} (${file})`);
  console.log(JSON.stringify({ mutants: mutants.length, stale: stale.length }));
  process.exit(stale.length === 0 ? 0 : 1);
}
const workers = Array.from({ length: Math.min(Number(options.workers), mutants.length) }, copyTree);
process.once('exit', () => {
  for (const directory of workers) rmSync(directory, { recursive: true, force: true });
});
process.exit(await run(mutants, workers));

async function run(queue: readonly Mutant[], directories: readonly string[]): Promise<number> {
  const files = [...new Set(queue.flatMap(({ killedBy }) => killedBy))];
  const missing = files.filter((file) => !existsSync(join(root, file)));
  if (missing.length > 0) fail(`no such test file: ${missing.join(', ')}`);
  const sentinel = await runTests(directories[0]!, files, sentinelLimitMs);
  if (sentinel.ended !== 'passed') fail(`the tests fail without any mutant:\n${sentinel.output}`);
  say(`sentinel passed in ${sentinel.seconds.toFixed(1)} s: ${files.join(' ')}`);
  const limitMs = Math.max(leastLimitMs, patience * sentinel.seconds * 1000);

  const outcomes: Outcome[] = [];
  const rest = [...queue];
  await Promise.all(
    directories.map(async (directory) => {
      for (let mutant = rest.shift(); mutant; mutant = rest.shift()) {
        const outcome = await tryMutant(directory, mutant, limitMs);
        outcomes.push(outcome);
        say(`${outcome.result.padEnd(8)} ${outcome.seconds.toFixed(1).padStart(5)} s  ${outcome.name}`);
      }
    }),
  );
  const namesOf = (result: Outcome['result']): string[] =>
    outcomes.filter((outcome) => outcome.result === result).map(({ name }) => name);
  const killed = namesOf('killed').length;
  const seconds = outcomes.map((outcome) => outcome.seconds).sort((a, b) => a - b);
  console.log(
    JSON.stringify({
      mutants: outcomes.length,
      killed,
      survived: namesOf('survived'),
      stopped: namesOf('stopped'),
      stale: namesOf('stale'),
      medianSeconds: Number(seconds[seconds.length >> 1]!.toFixed(1)),
    }),
  );
  return killed === outcomes.length ? 0 : 1;
}

async function tryMutant(directory: string, mutant: Mutant, limitMs: number): Promise<Outcome> {
  const path = join(directory, mutant.file);
  const original = existsSync(path) ? readFileSync(path, 'utf8') : '';
  const place = placeOf(original, mutant);
  if (!place) return { name: mutant.name, result: 'stale', seconds: 0 };
  writeFileSync(path, original.slice(0, place.from) + mutant.replace + original.slice(place.to));
  try {
    const { ended, output, seconds } = await runTests(directory, mutant.killedBy, limitMs);
    if (ended === 'broken') fail(`the tests did not run under "${mutant.name}":\n${output}`);
    return { name: mutant.name, result: resultOf(ended, mutant), seconds };
  } finally {
    writeFileSync(path, original);
  }
}

function resultOf(ended: Exclude<TestRun['ended'], 'broken'>, { hangs }: Mutant): Outcome['result'] {
  if (ended === 'stopped') return hangs === true ? 'killed' : 'stopped';
  return ended === 'passed' ? 'survived' : 'killed';
}

interface TestRun {
  /** `broken`: a runner that could not start has noticed nothing. `stopped`: nor has one that was out of time. */
  readonly ended: 'passed' | 'failed' | 'stopped' | 'broken';
  readonly output: string;
  readonly seconds: number;
}

function runTests(directory: string, files: readonly string[], limitMs: number): Promise<TestRun> {
  const started = performance.now();
  return new Promise((resolve, reject) => {
    const vitest = join(directory, 'node_modules/vitest/vitest.mjs');
    // A test that is out of time by itself would look like one that failed: the limit of the run is always the sooner.
    const limits = [`--testTimeout=${2 * limitMs}`, `--hookTimeout=${2 * limitMs}`];
    const child = spawn(process.execPath, [vitest, 'run', '--bail=1', '--maxWorkers=1', ...limits, ...files], {
      cwd: directory,
      stdio: ['ignore', 'pipe', 'pipe'],
      // What takes turns in `npm test` all has to notice here.
      env: { ...process.env, TEST_WHOLE: '1' },
      // Forks of a mutant that never ends must end with it.
      detached: true,
    });
    let output = '';
    child.stdout.on('data', (chunk) => (output += chunk));
    child.stderr.on('data', (chunk) => (output += chunk));
    let stopped = false;
    const timer = setTimeout(() => {
      stopped = true;
      process.kill(-child.pid!, 'SIGKILL');
    }, limitMs);
    child.once('error', reject);
    child.once('close', (code) => {
      clearTimeout(timer);
      const ran = output.includes('Test Files');
      const ended = stopped ? 'stopped' : !ran ? 'broken' : code === 0 ? 'passed' : 'failed';
      resolve({ ended, output, seconds: (performance.now() - started) / 1000 });
    });
  });
}

function copyTree(): string {
  const directory = mkdtempSync(join(tmpdir(), 'annals-mutants-'));
  for (const name of readdirSync(root)) {
    // A lockfile that looks newer than what is installed would be installed again, into the tree that all copies share.
    if (!notCopied.has(name)) cpSync(join(root, name), join(directory, name), { recursive: true, preserveTimestamps: true });
  }
  symlinkSync(join(root, 'node_modules'), join(directory, 'node_modules'));
  return directory;
}

async function loadLists(only: readonly string[] | undefined): Promise<Mutant[]> {
  const lists = join(dirname(fileURLToPath(import.meta.url)), 'lists');
  const mutants: Mutant[] = [];
  for (const file of readdirSync(lists).sort()) {
    if (only && !only.includes(file.replace(/\.ts$/, ''))) continue;
    const list: { mutants: readonly Mutant[] } = await import(pathToFileURL(join(lists, file)).href);
    mutants.push(...list.mutants);
  }
  const names = new Set(mutants.map(({ name }) => name));
  if (names.size !== mutants.length) fail('two mutants share a name');
  return mutants;
}

function say(line: string): void {
  if (!options.json) console.error(line);
}

function fail(message: string): never {
  console.error(message);
  process.exit(2);
}

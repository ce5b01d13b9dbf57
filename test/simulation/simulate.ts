/**
 * Crash states by the million:
 *
 *   npm run simulate -- --states 1e6 [--seed 1] [--only crash.17.3] [--workers 2] [--json]
 *
 * `--only jobs`: of a store with rules and jobs instead (`jobs-crash.ts`), 1,000 unless `--states` says otherwise.
 *
 * Seeds follow each other until enough states were checked. One line of JSON at the end; on a failure the command that
 * shows it again within seconds, and exit code 1.
 */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { CrashSimulation, type Failure } from './crash.ts';
import { JobsSimulation } from './jobs-crash.ts';
import type { Marks } from './marks.ts';
import { directory, openLocalLog } from './subject.ts';

interface Figures {
  readonly states: number;
  readonly lost: number;
  readonly seeds: number;
  readonly crashPoints: number;
  readonly syncsAfterFailure: number;
  readonly marks: Marks;
  readonly failures: readonly Failure[];
  readonly seconds: number;
}

const { values: options } = parseArgs({
  options: {
    states: { type: 'string' },
    seed: { type: 'string', default: '1' },
    only: { type: 'string' },
    workers: { type: 'string', default: '1' },
    json: { type: 'boolean', default: false },
  },
});

if (options.only === 'jobs') await simulateJobs(Number(options.seed), Number(options.states ?? 1_000));
const states = Number(options.states ?? 50_000);
const workers = Number(options.workers);
const figures =
  workers > 1
    ? merge(await Promise.all(Array.from({ length: workers }, (_, i) => runWorker(i))))
    : await simulate(Number(options.seed), options.only === undefined ? states : Infinity);
console.log(JSON.stringify(figures));
for (const { seed, path, what } of figures.failures.slice(0, 1)) {
  console.error(`seed ${seed}, ${path}: ${what}\nagain: npm run simulate -- --seed ${seed} --only ${path}`);
}
process.exit(figures.failures.length > 0 ? 1 : 0);

async function simulateJobs(firstSeed: number, statesMax: number): Promise<never> {
  const started = performance.now();
  const simulation = new JobsSimulation(statesMax);
  let seed = firstSeed;
  while (!simulation.enough) await simulation.run(seed++, 100);
  const { marks, failures } = simulation;
  const seconds = Math.round((performance.now() - started) / 100) / 10;
  console.log(JSON.stringify({ states: simulation.states, seeds: seed - firstSeed, marks, failures, seconds }));
  process.exit(failures.length > 0 ? 1 : 0);
}

async function simulate(firstSeed: number, statesMax: number): Promise<Figures> {
  const started = performance.now();
  const only = options.only === undefined ? {} : { only: options.only };
  const simulation = new CrashSimulation({ openLog: openLocalLog, directory, ...only });
  let seed = firstSeed;
  let said = started;
  do {
    await simulation.run(seed++, statesMax);
    if (!options.json && performance.now() - said > 10_000) {
      said = performance.now();
      console.error(`${simulation.states} states, ${seed - firstSeed} seeds, ${((said - started) / 1000).toFixed(0)} s`);
    }
  } while (options.only === undefined && simulation.states < statesMax && simulation.failures.length === 0);
  const { states, crashPoints, syncsAfterFailure, marks, failures } = simulation;
  const seconds = Math.round((performance.now() - started) / 100) / 10;
  return { states, lost: failures.length, seeds: seed - firstSeed, crashPoints, syncsAfterFailure, marks, failures, seconds };
}

/** Seeds of different workers are far apart. */
function runWorker(number: number): Promise<Figures> {
  const seed = String(Number(options.seed) + number * 1_000_000);
  const args = [
    ...process.execArgv,
    fileURLToPath(import.meta.url),
    '--states',
    String(Math.ceil(states / workers)),
    '--seed',
    seed,
    '--json',
  ];
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    let output = '';
    child.stdout.on('data', (chunk) => (output += chunk));
    child.once('error', reject);
    child.once('close', () => {
      try {
        resolve(JSON.parse(output) as Figures);
      } catch {
        reject(new Error(`a worker ended without figures: ${output}`));
      }
    });
  });
}

function merge(all: readonly Figures[]): Figures {
  const sum = (pick: (figures: Figures) => number): number => all.reduce((total, figures) => total + pick(figures), 0);
  const names = Object.keys(all[0]!.marks) as (keyof Marks)[];
  return {
    states: sum((f) => f.states),
    lost: sum((f) => f.lost),
    seeds: sum((f) => f.seeds),
    crashPoints: sum((f) => f.crashPoints),
    syncsAfterFailure: sum((f) => f.syncsAfterFailure),
    marks: Object.fromEntries(names.map((name) => [name, sum((f) => f.marks[name])])) as unknown as Marks,
    failures: all.flatMap((f) => f.failures),
    seconds: Math.max(...all.map((f) => f.seconds)),
  };
}

/**
 * `npm run fuzz -- <target> | --all [--n 20000] [--seed 1] [--only i]`: mutated seeds into one target after another.
 * Fails when a target throws anything but a ServiceError, or needs more than 100 ms for an input (`npm test` has no such limit). Prints one JSON line;
 * a failure prints the command that shows it again. `--canary` runs the target that is broken on purpose: it must fail,
 * or the runner sees nothing.
 */
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { ServiceError } from '../../src/errors.ts';
import { running } from '../runner/running.ts';
import { Dice, mutated } from './mutate.ts';

/** One file of `targets/`: bytes that mean something to it, and what must hold for any bytes. */
export interface FuzzTarget {
  readonly name: string;
  seeds(): readonly Uint8Array[];
  run(bytes: Uint8Array): void;
}

export interface FuzzFailure {
  readonly input: number;
  readonly what: string;
  readonly bytesHex: string;
}

export interface FuzzReport {
  readonly target: string;
  readonly inputs: number;
  readonly refused: number;
  readonly slowestMs: number;
  readonly failure: FuzzFailure | null;
}

/** Of CPU time, for one input of the command. */
const inputMsMax = 100;
const targetsFolder = new URL('targets/', import.meta.url);

/** Input i depends on the seed and i alone, so any one can be run by itself. */
export function fuzz(target: FuzzTarget, inputs: number, seed: number, first = 0, msMax = Infinity): FuzzReport {
  const seeds = target.seeds();
  let refused = 0;
  let slowestMs = 0;
  for (let i = first; i < first + inputs; i++) {
    const bytes = i < seeds.length ? seeds[i]! : mutated(seeds, new Dice(seed * 1_000_003 + i));
    const outcome = attempt(target, bytes, msMax);
    slowestMs = Math.max(slowestMs, outcome.ms);
    if (outcome.refused) refused++;
    const what = outcome.wrong ?? (outcome.ms > msMax ? `took ${outcome.ms.toFixed(0)} ms` : null);
    if (what === null) continue;
    const failure = { input: i, what, bytesHex: Buffer.from(bytes).toString('hex').slice(0, 4096) };
    return { target: target.name, inputs: i - first + 1, refused, slowestMs, failure };
  }
  return { target: target.name, inputs, refused, slowestMs, failure: null };
}

export async function loadTarget(name: string): Promise<FuzzTarget> {
  return (await import(running(`test/fuzz/targets/${name}`).href)) as FuzzTarget;
}

/** Every target but the broken one. */
export function targetNames(): string[] {
  const files = readdirSync(targetsFolder).filter((file) => file.endsWith('.ts'));
  return files.map((file) => file.slice(0, -3)).filter((name) => name !== 'canary');
}

interface Outcome {
  readonly ms: number;
  readonly refused: boolean;
  readonly wrong: string | null;
}

/** CPU time, so that a busy machine is no slow parser; the fastest of up to five runs counts, since the first ones compile. */
function attempt(target: FuzzTarget, bytes: Uint8Array, msMax: number): Outcome {
  let ms = Number.POSITIVE_INFINITY;
  let refused = false;
  for (let run = 0; run === 0 || (run < 5 && ms > msMax); run++) {
    const start = process.cpuUsage();
    try {
      target.run(bytes);
    } catch (error) {
      if (!(error instanceof ServiceError))
        return { ms, refused, wrong: error instanceof Error ? (error.stack ?? error.message) : String(error) };
      refused = true;
    }
    const { user, system } = process.cpuUsage(start);
    ms = Math.min(ms, (user + system) / 1000);
  }
  return { ms, refused, wrong: null };
}

const portion = 2_000;

/** In turns of their own: what a turn has looked at by a weak reference is kept until it ends, whatever the collector does. */
async function inPortions(target: FuzzTarget, inputs: number, seed: number, first: number): Promise<FuzzReport> {
  const sum = { target: target.name, inputs: 0, refused: 0, slowestMs: 0, failure: null as FuzzFailure | null };
  while (sum.inputs < inputs && sum.failure === null) {
    const part = fuzz(target, Math.min(portion, inputs - sum.inputs), seed, first + sum.inputs, inputMsMax);
    sum.inputs += part.inputs;
    sum.refused += part.refused;
    sum.slowestMs = Math.max(sum.slowestMs, part.slowestMs);
    sum.failure = part.failure;
    await new Promise((resolve) => setImmediate(resolve));
  }
  return sum;
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      all: { type: 'boolean' },
      canary: { type: 'boolean' },
      n: { type: 'string', default: '20000' },
      seed: { type: 'string', default: '1' },
      only: { type: 'string' },
    },
  });
  const names = values.canary ? ['canary'] : values.all ? targetNames() : positionals;
  if (names.length === 0) throw new Error(`name a target: ${targetNames().join(', ')}, or --all`);
  const [n, seed] = [Number(values.n), Number(values.seed)];
  const only = values.only === undefined ? undefined : Number(values.only);
  const started = performance.now();
  const reports: FuzzReport[] = [];
  for (const name of names) {
    const report = await inPortions(await loadTarget(name), only === undefined ? n : 1, seed, only ?? 0);
    reports.push(report);
    if (names.length > 1) console.error(`${name}: ${report.inputs} inputs, ${report.failure === null ? 'held' : 'failed'}`);
  }
  const seconds = (performance.now() - started) / 1000;
  const failed = reports.filter(({ failure }) => failure !== null);
  for (const { target, failure } of failed) {
    console.error(
      `${target}: ${failure!.what}\nagain: npm run fuzz -- ${target === 'canary' ? '--canary' : target} --seed ${seed} --only ${failure!.input}`,
    );
  }
  const rssMiB = Math.round(process.memoryUsage().rss / 1_048_576);
  console.log(
    JSON.stringify({ suite: 'fuzz', seed, reports, seconds: Number(seconds.toFixed(2)), rssMiB, ok: failed.length === 0 }),
  );
  process.exitCode = failed.length === 0 ? 0 : 1;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();

/**
 * Equal answers at size: a history in a directory of its own, asked in every mode, each in a process of its own. A line of
 * JSON a mode; fails where any answer or digest differs from that of the store which was just loaded.
 *
 *   npm run equal -- [--rows 1000000] [--budget 32] [--only <mode>]
 *   npm run equal -- --only texts  MATCH over every text column, at sizes around a block, an index and a segment; also part of all modes
 *   npm run equal -- --passes      instead: generated questions, each with every set of passes
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { nodeDisk } from '../../../src/log/disk/node-disk.ts';
import { textDifferences } from './texts.ts';
import { differences, type Mode, modes, type Outcome, runMode } from './modes.ts';

const { values: options } = parseArgs({
  options: {
    rows: { type: 'string', default: '1000000' },
    /** MiB; 32 for a million rows. */
    budget: { type: 'string' },
    only: { type: 'string' },
    passes: { type: 'boolean', default: false },
    /** Of the parent: run this mode in this directory, and say how it went. */
    mode: { type: 'string' },
    directory: { type: 'string' },
  },
});

if (options.passes) {
  const vitest = fileURLToPath(new URL('../../../node_modules/vitest/vitest.mjs', import.meta.url));
  const env = { ...process.env, PASS_SUBSETS: 'all' };
  const { status } = spawnSync(process.execPath, [vitest, 'run', 'test/planner/passes/passes.test.ts'], {
    env,
    stdio: 'inherit',
  });
  process.exit(status ?? 1);
}

const rows = Number(options.rows);
const history = { rows, batchRows: Math.min(10_000, Math.ceil(rows / 60)) };
/** Of a small history no column would leave memory, no segment of usual size would be mostly superseded, and none be compacted. */
const budget = options.budget ?? String(Math.ceil(rows / 31_250));
const segmentRows = Math.min(65_536, Math.ceil(rows / 15));

if (options.mode !== undefined) {
  // A store without a door: its clock and its idle threads keep no process, and some of its answers wait for these alone.
  setInterval(() => undefined, 1_000);
  const place = {
    disk: nodeDisk,
    directory: options.directory!,
    history,
    derived: { segmentRows },
    budgetMb: Number(options.budget),
  };
  process.stdout.write(JSON.stringify(await runMode(options.mode as Mode, place)));
  process.exit(0);
}

const textSizes = [1, 511, 512, 513, 2_047, 2_048, 2_049, 8_191, 8_192, 8_193, 9_000, 65_535, 65_536, 65_537, 70_000];
if (options.only === undefined || options.only === 'texts') {
  const { found, asked } = await textDifferences({ sizes: textSizes, segmentRows: 65_536, singlyMax: 2_049 });
  for (const each of found) console.error(each);
  console.log(JSON.stringify({ mode: 'texts', questions: asked, different: found.length }));
  if (found.length > 0) process.exitCode = 1;
  if (options.only === 'texts') process.exit();
}

const directory = options.directory ?? mkdtempSync(join(tmpdir(), 'annals-equal-'));
const chosen = modes.filter((mode) => mode === 'loaded' || options.only === undefined || mode === options.only);
let first: Outcome | null = null;
let failures = 0;
try {
  for (const mode of chosen) {
    const args = [...process.execArgv, fileURLToPath(import.meta.url), '--mode', mode, '--directory', directory];
    const sizes = ['--rows', options.rows, '--budget', budget];
    const text = execFileSync(process.execPath, ['--max-old-space-size=8192', ...args, ...sizes], {
      encoding: 'utf8',
      maxBuffer: 1 << 26,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const outcome = JSON.parse(text) as Outcome;
    first ??= outcome;
    const found = differences(first, outcome, history);
    failures += found.length;
    for (const each of found) console.error(each);
    const { answers, digests, counts, seconds } = outcome;
    const rowsAnswered = answers.reduce((sum, answer) => sum + answer.rows, 0);
    console.log(
      JSON.stringify({
        mode,
        questions: answers.length,
        rowsAnswered,
        digests: Object.keys(digests).length,
        different: found.length,
        ...counts,
        seconds: Number(seconds.toFixed(1)),
      }),
    );
  }
} finally {
  rmSync(`${directory}-restored`, { recursive: true, force: true });
  if (options.directory === undefined) rmSync(directory, { recursive: true, force: true });
}
if (failures > 0) process.exitCode = 1;

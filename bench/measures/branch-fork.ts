/** Forking a branch, fsync included, in a small store and in a large one: the figures must be the same. */
import { fileURLToPath } from 'node:url';
import type { BenchContext } from '../context.ts';
import { quotient } from '../report.ts';
import { mustRun, pinned, program, serverCore } from '../processes.ts';

export async function branchFork({ report, directory, rows, largeRows }: BenchContext): Promise<void> {
  const sizes = [1_000, rows, largeRows];
  const command = [process.execPath, ...program('gate-forks.ts', `${directory}/forks`, ...sizes.map(String))];
  const { stdout } = await mustRun(pinned(serverCore, command), { cwd: fileURLToPath(new URL('../..', import.meta.url)) });
  const found = JSON.parse(stdout.trim().split('\n').at(-1)!) as [number, number[], number[]][];
  for (const [size, forkMs, readMs] of found) {
    const shape = { product: 'annals, in process', unit: 'ms', better: 'smaller' } as const;
    const of = `${size.toLocaleString('en')} rows`;
    report.add({ ...shape, measure: `fork of a branch, ${of}`, samples: forkMs, note: 'gate.submit, fsync included' });
    report.add({ ...shape, measure: `first key read on a new branch, ${of}`, samples: readMs, note: 'plan included' });
  }
  report.figure('branch-fork.flat', quotient(found.at(-1)![1], found[0]![1]));
}

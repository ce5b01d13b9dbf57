/** Durable commits while the data key is rotated ten times a second, beside those of a store that is left alone. */
import { fileURLToPath } from 'node:url';
import type { BenchContext } from '../context.ts';
import { mustRun, pinned, program, serverCore } from '../processes.ts';
import { quotient } from '../report.ts';

const pauseMs = 100;

export async function rotation({ report, directory, repeats, seconds }: BenchContext): Promise<void> {
  const figures = [`${directory}/rotation`, repeats, seconds, pauseMs].map(String);
  const command = [process.execPath, ...program('gate-rotation.ts', ...figures)];
  const { stdout } = await mustRun(pinned(serverCore, command), { cwd: fileURLToPath(new URL('../..', import.meta.url)) });
  const [quiet, rotating, rotationMs] = JSON.parse(stdout.trim().split('\n').at(-1)!) as [number[], number[], number[]];
  const shape = { product: 'annals, in process', unit: 'commits/s', better: 'larger' } as const;
  const of = 'durable commits of 1 row, 16 clients';
  report.add({ ...shape, measure: `${of}, keys left alone`, samples: quiet, note: 'gate.submit' });
  report.add({ ...shape, measure: `${of}, a new data key every ${pauseMs} ms`, samples: rotating, note: 'gate.submit' });
  report.add({
    ...shape,
    measure: 'a new data key, under load',
    unit: 'ms',
    better: 'smaller',
    samples: rotationMs,
    note: 'durable',
  });
  report.figure('rotation.commits', quotient(quiet, rotating));
}

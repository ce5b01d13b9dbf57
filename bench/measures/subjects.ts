/**
 * What it takes to seal rows by subject, and to open them at a replay: rows of 200 bytes, of which 1, 10 and 1,000 in a body of
 * 3,072 are of one subject, beside rows of nobody. On one core, in process, no disk: what comes before the frame.
 */
import { fileURLToPath } from 'node:url';
import type { BenchContext } from '../context.ts';
import { mustRun, pinned, serverCore } from '../processes.ts';
import { summary } from '../report.ts';

const inProcess = fileURLToPath(new URL('../seal-subjects.ts', import.meta.url));

type Samples = Readonly<Record<string, readonly number[]>>;

export async function subjects({ report, repeats }: BenchContext): Promise<void> {
  const command = [process.execPath, '--import', 'tsx', inProcess, String(repeats * 4)];
  const { stdout } = await mustRun(pinned(serverCore, command), { cwd: fileURLToPath(new URL('../..', import.meta.url)) });
  const found = JSON.parse(stdout.trim().split('\n').at(-1)!) as { sealed: Samples; made: Samples; opened: Samples };
  const shape = { product: 'annals, in process', unit: 'rows/s', better: 'larger' } as const;
  for (const each of ['0', '1', '10', '1000']) {
    const of = each === '0' ? ' of nobody' : `, ${each} in a body of one subject`;
    report.add({ ...shape, measure: `sealing rows${of}`, samples: found.sealed[each]!, note: 'rows root and digest included' });
    if (each !== '0') report.add({ ...shape, measure: `sealing rows${of} that is new`, samples: found.made[each]! });
    report.add({ ...shape, measure: `opening rows${of}`, samples: found.opened[each]!, note: 'as a replay does' });
  }
  report.figure('subjects.sealed-1', summary(found.sealed['1']!));
  report.figure('subjects.sealed-10', summary(found.sealed['10']!));
  report.figure('subjects.sealed-1000', summary(found.sealed['1000']!));
}

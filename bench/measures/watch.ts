/** What standing queries cost those who write: latency of a durable commit with none and with a hundred that follow the type. */
import { fileURLToPath } from 'node:url';
import type { BenchContext } from '../context.ts';
import { quotient } from '../report.ts';
import { mustRun, pinned, program, serverCore } from '../processes.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

interface Latency {
  readonly commits: number;
  readonly p50: number;
  readonly p99: number;
  readonly told: number;
}

export async function watch({ report, directory, repeats, seconds }: BenchContext): Promise<void> {
  const p99: number[][] = [];
  for (const subscriptions of [0, 100]) {
    const found: Latency[] = [];
    for (let repeat = 0; repeat < repeats; repeat++) {
      const place = `${directory}/watch-${subscriptions}-${repeat}`;
      const command = [process.execPath, ...program('gate-watch.ts', place, String(seconds), String(subscriptions))];
      const { stdout } = await mustRun(pinned(serverCore, command), { cwd: root });
      found.push(JSON.parse(stdout.trim().split('\n').at(-1)!) as Latency);
    }
    p99.push(found.map((each) => each.p99));
    const told = found.reduce((sum, each) => sum + each.told, 0);
    for (const [name, of] of [
      ['p50', (each: Latency) => each.p50],
      ['p99', (each: Latency) => each.p99],
    ] as const) {
      report.add({
        measure: `commit of 1 row, 8 writers, ${name}`,
        unit: 'ms',
        better: 'smaller',
        product: `annals, ${subscriptions} standing queries`,
        samples: found.map(of),
        note: `gate.submit, fsynced; ${told} events told`,
      });
    }
  }
  report.figure('watch.p99', quotient(p99[1]!, p99[0]!));
}

/** The recorded questions of drivers and tools to a catalogue of 10,000 types: their CPU, and the longest time that others wait for a turn. */
import { fileURLToPath } from 'node:url';
import type { BenchContext } from '../context.ts';
import type { AskedOnce } from '../gate-catalogue.ts';
import { mustRun, pinned, program, serverCore } from '../processes.ts';
import { summary } from '../report.ts';

const types = 10_000;
const repeats = 7;

export async function catalogue({ report }: BenchContext): Promise<void> {
  const command = pinned(serverCore, [process.execPath, ...program('gate-catalogue.ts', String(types), String(repeats))]);
  const { stdout } = await mustRun(command, { cwd: fileURLToPath(new URL('../..', import.meta.url)) });
  const asked = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as AskedOnce);
  const of = (question: string, isCold: boolean): AskedOnce[] =>
    asked.filter((each) => each.question === question && each.isCold === isCold);
  const cpu = (each: readonly AskedOnce[]): number[] => each.map(({ cpuMs }) => cpuMs);
  const questions = [...new Set(asked.map(({ question }) => question))];
  for (const question of questions) {
    const cold = of(question, true);
    const turn = summary(cold.map(({ turnMs }) => turnMs)).median;
    report.add({
      measure: `catalogue of ${types.toLocaleString('en')} types, ${question}`,
      product: 'annals, in process',
      unit: 'ms',
      better: 'smaller',
      samples: cpu(of(question, false)),
      note: `CPU; after a type changed ${summary(cpu(cold)).median.toFixed(1)} ms, in turns of up to ${turn.toFixed(1)} ms`,
    });
  }
  const slowest = (isCold: boolean): readonly AskedOnce[] =>
    questions
      .map((question) => of(question, isCold))
      .reduce((slow, each) => (summary(cpu(each)).median > summary(cpu(slow)).median ? each : slow));
  report.figure('catalogue.slowest', summary(cpu(slowest(false))));
  report.figure('catalogue.changed', summary(cpu(slowest(true))));
  report.figure('catalogue.turn', summary(slowest(true).map(({ turnMs }) => turnMs)));
}

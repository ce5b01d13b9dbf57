/** Which threads of the runtime stand behind the one that answers: a process of its own, as its threads are changed. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const file = join(import.meta.dirname, '../src/cli/helper-threads.ts');

/** How far behind each thread of a process stands that has read files beside its turn before. */
function prioritiesOn(cores: number): number[] {
  const script = `
    import { readdirSync, readFileSync } from 'node:fs';
    import { putHelpersBehind } from ${JSON.stringify(file)};
    putHelpersBehind(${cores});
    const of = (thread) => readFileSync('/proc/self/task/' + thread + '/stat', 'latin1').split(') ').at(-1).split(' ')[16];
    console.log(JSON.stringify(readdirSync('/proc/self/task').map((thread) => Number(of(thread)))));`;
  const args = ['--import', 'tsx', '--input-type=module', '--eval', script];
  const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', cwd: join(import.meta.dirname, '..') });
  expect(stderr.replace(/^npm .*\n/gm, '')).toBe('');
  return JSON.parse(stdout) as number[];
}

test.runIf(process.platform === 'linux')(
  'on one core the helpers, and neither who answers nor what reads and writes files',
  () => {
    const [main, ...others] = prioritiesOn(1);
    expect(others.length).toBeGreaterThan(5);
    expect(others.slice(0, 5).map((each) => each - main!)).toEqual([10, 10, 10, 10, 10]);
    expect(new Set(others.slice(5))).toEqual(new Set([main]));
  },
);

test.runIf(process.platform === 'linux')('on several cores nobody', () => {
  expect(new Set(prioritiesOn(2)).size).toBe(1);
});

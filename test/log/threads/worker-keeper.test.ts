/** Work in steps: the same in threads and in turns, the most urgent first, told of, given up. */
import { describe, expect, test } from 'vitest';
import { workerKeeper } from '../../../src/log/threads/worker-keeper.ts';
import { inlineWorker, type StartWorker, threadWorker } from '../../../src/log/threads/workers.ts';
import { countingJob } from '../worker-jobs.ts';

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const never = new AbortController().signal;

const places: readonly [string, StartWorker][] = [
  ['turns', inlineWorker],
  ['threads', threadWorker],
];

describe.each(places)('in %s', (_, startWorker) => {
  test('gives the reply, and says how far it is', async () => {
    const keeper = workerKeeper(turn, startWorker);
    const told: number[][] = [];
    expect(await keeper.run(countingJob, { to: 3 }, 'index', never, (...of) => told.push(of))).toBe('counted 3');
    expect(told).toEqual([
      [1, 3],
      [2, 3],
      [3, 3],
    ]);
    await keeper.end();
  });

  test('does what is urgent between two steps of what is not', async () => {
    const keeper = workerKeeper(turn, startWorker);
    const ended: string[] = [];
    const run = (name: string, to: number, kind: 'query' | 'index' | 'upkeep'): Promise<unknown> =>
      keeper.run(countingJob, { to }, kind, never).then(() => ended.push(name));
    const upkeep = run('upkeep', 50, 'upkeep');
    await Promise.all([upkeep, run('index', 20, 'index'), run('query', 5, 'query'), run('second query', 5, 'query')]);
    expect(ended).toEqual(['query', 'second query', 'index', 'upkeep']);
    await keeper.end();
  });

  test('ends what was given up, and refuses what comes after its end', async () => {
    const keeper = workerKeeper(turn, startWorker);
    const into = new SharedArrayBuffer(4);
    const giveUp = new AbortController();
    const given = keeper.run(countingJob, { to: 1000, into }, 'index', giveUp.signal, (done) => done === 3 && giveUp.abort());
    await expect(given).rejects.toMatchObject({ code: 'REL_CANCELLED' });
    const other = keeper.run(countingJob, { to: 2 }, 'index', never);
    expect(await other).toBe('counted 2');
    expect(Atomics.load(new Int32Array(into), 0)).toBeLessThan(6);
    const left = expect(keeper.run(countingJob, { to: 1000 }, 'index', never)).rejects.toMatchObject({ code: 'REL_CANCELLED' });
    await keeper.end();
    await left;
    await expect(keeper.run(countingJob, { to: 1 }, 'query', never)).rejects.toMatchObject({ code: 'REL_CANCELLED' });
  });

  test('refuses what throws, alone', async () => {
    const keeper = workerKeeper(turn, startWorker);
    const bad = keeper.run(countingJob, { to: -1 }, 'query', never);
    const good = keeper.run(countingJob, { to: 2 }, 'query', never);
    await expect(bad).rejects.toMatchObject({ code: 'REL_INVALID' });
    expect(await good).toBe('counted 2');
    await keeper.end();
  });
});

/** The worker seam: thread and twin answer alike, in order, and what goes wrong is told to whoever waits. */
import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { inlineWorker, type Job, startedAhead, type StartWorker, threadWorker } from '../../../src/log/threads/workers.ts';
import { sums } from '../worker-jobs.ts';

const starts: readonly [string, StartWorker][] = [
  ['thread', threadWorker],
  ['twin', inlineWorker],
];

describe.each(starts)('a %s', (_, start) => {
  test('answers in order, and shares memory with whoever began it', async () => {
    const shared = new Int32Array(new SharedArrayBuffer(8));
    const worker = start(sums, { shared, from: 10 });
    const replies = await Promise.all([1, 2, 3, 4].map((by) => worker.ask(by)));
    expect(replies).toEqual([11, 13, 16, 20]);
    expect(shared[0]).toBe(20);
    await worker.end();
  });

  test('refuses one request that throws, and goes on', async () => {
    const worker = start(sums, { shared: new Int32Array(new SharedArrayBuffer(8)), from: 0 });
    const asked = await Promise.allSettled([worker.ask(1), worker.ask(-1), worker.ask(2)]);
    expect(asked.map((one) => (one.status === 'fulfilled' ? one.value : String(one.reason)))).toEqual([
      1,
      'RangeError: sums only rise',
      3,
    ]);
    await worker.end();
  });

  test('refuses what comes after its end', async () => {
    const worker = start(sums, { shared: new Int32Array(new SharedArrayBuffer(8)), from: 0 });
    await worker.ask(1);
    await worker.end();
    await expect(worker.ask(1)).rejects.toThrow('a worker has ended');
  });
});

test('a thread that dies refuses all that waits', async () => {
  const worker = threadWorker(sums, { shared: new Int32Array(new SharedArrayBuffer(8)), from: 0 });
  const asked = await Promise.allSettled([worker.ask(1), worker.ask(0), worker.ask(2)]);
  expect(asked.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected']);
  await expect(worker.ask(3)).rejects.toThrow('a worker has ended');
});

test('a thread that can not begin refuses all that waits', async () => {
  const worker = threadWorker({ ...sums, name: 'nowhere' }, { shared: new Int32Array(1), from: 0 });
  await expect(worker.ask(1)).rejects.toThrow('a worker has ended');
});

test('a worker that was started ahead goes to the first who starts its job, and ends where nobody does', async () => {
  const lives: string[] = [];
  const noted: StartWorker = (job, data) => {
    lives.push(`${job.name} starts`);
    const worker = inlineWorker(job, data);
    return {
      ask: (request) => worker.ask(request),
      end: () => {
        lives.push(`${job.name} ends`);
        return worker.end();
      },
    };
  };
  const jobOf = (name: string): Job<null, number, string> => ({ module: '', name, begin: () => (asked) => `${name} ${asked}` });
  const [one, other] = [jobOf('one'), jobOf('other')];
  const ahead = startedAhead(noted, [one, other]);
  expect(lives).toEqual(['one starts', 'other starts']);
  const first = ahead.startWorker(one, null);
  expect(await first.ask(1)).toBe('one 1');
  expect(lives).toHaveLength(2);
  const second = ahead.startWorker(one, null);
  expect(lives.slice(2)).toEqual(['one starts']);
  await ahead.end();
  expect(lives.slice(3)).toEqual(['other ends']);
  expect(await Promise.all([first.ask(2), second.ask(3)])).toEqual(['one 2', 'one 3']);
});

test('a process ends with a thread that nobody waits for', () => {
  const jobs = new URL('../worker-jobs.ts', import.meta.url).href;
  const workers = new URL('../../../src/log/threads/workers.ts', import.meta.url).href;
  const text = `
    const { threadWorker } = await import(${JSON.stringify(workers)});
    const { sums } = await import(${JSON.stringify(jobs)});
    const worker = threadWorker(sums, { shared: new Int32Array(new SharedArrayBuffer(8)), from: 0 });
    console.log(await worker.ask(5));`;
  const { stdout, status } = spawnSync(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', text], {
    encoding: 'utf8',
    timeout: 60_000,
  });
  expect([stdout.trim(), status]).toEqual(['5', 0]);
});

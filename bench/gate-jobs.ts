/**
 * The loop of jobs in this process while many wait, for `measures/jobs.ts`. Arguments: data directory, how many. Prints one line of JSON:
 * `Ticks`, milliseconds.
 */
import { PerformanceObserver } from 'node:perf_hooks';
import { type Clock, systemClock } from '../src/clock.ts';
import type { JobDefinition } from '../src/projections/jobs/job.ts';
import type { Ticks } from './measures/jobs.ts';
import { caller, openDurable } from './durable-store.ts';

const [directory, count] = [process.argv[2]!, Number(process.argv[3])];
const changes = 50;
const idles = 50;

const pauses: { readonly at: number; readonly ms: number }[] = [];
new PerformanceObserver((list) => {
  for (const { startTime: at, duration: ms } of list.getEntries()) pauses.push({ at, ms });
}).observe({ entryTypes: ['gc'] });

/** The store's clock, which goes on by leaps. */
let aheadNs = 0n;
const clock: Clock = { ...systemClock, now: () => systemClock.now() + aheadNs };

let service = await openDurable(directory, { clock });
const zones = ['Europe/Berlin', 'America/New_York', 'Asia/Tokyo', 'UTC'];
const ids: string[] = [];
await Promise.all(
  Array.from({ length: 64 }, async () => {
    while (ids.length < count) {
      const id = service.ids.next();
      await make(id, ids.push(id) - 1);
    }
  }),
);
await service.close();
service = await openDurable(directory, { clock });
const { scheduler } = service.automation;
const first = await longestTurn(() => scheduler.tick());
const changed: number[] = [];
for (let i = 0; i < changes; i++) {
  await submit({ kind: 'change-job', id: ids[i]!, change: 'paused', reason: null });
  changed.push(await longestTurn(() => scheduler.tick()));
}
const idle: number[] = [];
for (let i = 0; i < idles; i++) idle.push(await longestTurn(() => scheduler.tick()));
// The first question of a process is compiled; no store of 10,000 jobs has not answered any. A month later each of them is due.
await scheduler.runNow(service.store.projections.jobs.job(ids[changes]!)!);
aheadNs = 30n * 86_400_000_000_000n;
const due = await longestTurn(() => scheduler.tick());
const found: Ticks = { first, changed, idle, due };
console.log(JSON.stringify(found));
process.exit(0);

/** By an interval, by a clock, and after another. */
function scheduleOf(i: number): Partial<JobDefinition> {
  if (i % 10 === 9) return { after: ids[i - 1]! };
  if (i % 2 === 0) return { interval_secs: 3_600 + i };
  return { cron: `${i % 60} ${i % 24} * * ${i % 7}`, time_zone: zones[i % zones.length]! };
}

function make(id: string, i: number): Promise<unknown> {
  const definition: JobDefinition = {
    interval_secs: null,
    cron: null,
    time_zone: null,
    at: null,
    after: null,
    run_now: false,
    name: `job ${i}`,
    run: { sql: 'SELECT 1 AS one' },
    catch_up: 'one',
    timeout_secs: 60,
    purpose: 'analytics',
    ...scheduleOf(i),
  };
  return submit({ kind: 'put-job', id, definition, owner: { credential: 'none', token: null } });
}

function submit(command: Parameters<Parameters<Parameters<typeof service.gate.invoke>[2]>[0]['submit']>[0]): Promise<unknown> {
  const request = { action: 'query', purpose: 'analytics', correlationId: service.ids.next() } as const;
  return service.gate.invoke(caller, request, (invocation) => invocation.submit(command));
}

/**
 * Until a piece of work is done, and a little longer, for what it has begun: the longest time that nothing else had its turn, where the
 * collector had none either.
 */
async function longestTurn(work: () => Promise<unknown>): Promise<number> {
  let isDone = false;
  const turns: { readonly from: number; readonly to: number }[] = [];
  let from = performance.now();
  const done = work().finally(() => (isDone = true));
  for (let after = 0; after < 20; after += isDone ? 1 : 0) {
    turns.push({ from, to: performance.now() });
    await new Promise((resolve) => setImmediate(resolve));
    from = turns.at(-1)!.to;
  }
  await done;
  // Pauses are told a little later.
  await new Promise((resolve) => setTimeout(resolve, 10));
  const own = turns.filter((turn) => !pauses.some(({ at, ms }) => at < turn.to && at + ms > turn.from));
  return Math.max(0, ...own.map((turn) => turn.to - turn.from));
}

/**
 * A store behind its HTTP door in a process of its own, for whoever forks this file: says where it listens, and when asked
 * how long its event loop was away, how much of that it computed, and how much memory it took since the last time. Asked
 * to, it keeps the loop busy for so many milliseconds: a hold that must be noticed.
 */
import { readFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { StoreWorld } from '../doors/http/store-world.ts';

/** What comes back for `measure`. */
export interface Measured {
  /** By the clock on the wall: what the machine gives to others counts. */
  readonly loopDelayMs: number;
  /** Longest turn of the loop in CPU time of its own thread: what no other process can make longer. */
  readonly holdMs: number;
  readonly rssMb: number;
  /** Heap and buffers after a collection. */
  readonly heldMb: number;
  /** Share of its time that the thread computed since the last measure. */
  readonly busy: number;
}

/** What is sent: a number keeps the loop busy for so many milliseconds. */
export type Order = 'measure' | number;

const settings = JSON.parse(process.argv[2] ?? '{}') as Record<string, string>;
const world = await StoreWorld.open(settings);
const delay = monitorEventLoopDelay({ resolution: 1 });
delay.enable();

let holdMs = 0;
let turnStartedMs = threadMs();
let measuredMs = turnStartedMs;
let measuredAt = performance.now();
function endTurn(): void {
  const now = threadMs();
  holdMs = Math.max(holdMs, now - turnStartedMs);
  turnStartedMs = now;
}
function watch(): void {
  endTurn();
  setTimeout(watch, 1);
}
watch();

process.on('message', (order: Order) => {
  if (typeof order === 'number') {
    const started = threadMs();
    while (threadMs() - started < order);
    return;
  }
  endTurn();
  // A collection is none of the holds that are looked for.
  const loopDelayMs = delay.max / 1e6;
  const busy = (threadMs() - measuredMs) / (performance.now() - measuredAt);
  globalThis.gc!();
  turnStartedMs = measuredMs = threadMs();
  measuredAt = performance.now();
  const { rss, heapUsed, external } = process.memoryUsage();
  const measured: Measured = { loopDelayMs, holdMs, rssMb: rss / 2 ** 20, heldMb: (heapUsed + external) / 2 ** 20, busy };
  process.send!(measured);
  delay.reset();
  holdMs = 0;
});
process.once('disconnect', () => process.exit(0));
const ports = Object.fromEntries(world.others.map(({ name, port }) => [name, port]));
process.send!({ port: world.door.port, token: world.token, ports });

/** CPU time of this thread, in milliseconds. Where the system doesn't tell, that of the process, which is more. */
function threadMs(): number {
  try {
    return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'latin1').split(' ', 1)[0]) / 1e6;
  } catch {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  }
}

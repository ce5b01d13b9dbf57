/**
 * A store behind its HTTP door in a process of its own, for whoever forks this file: says where it listens, and when asked
 * how long its event loop was away, how much of that it computed, and how much memory it took since the last time. Asked
 * to, it keeps the loop busy for so many milliseconds: a hold that must be noticed.
 */
import {
  constants,
  monitorEventLoopDelay,
  type NodeGCPerformanceDetail,
  type PerformanceEntry,
  PerformanceObserver,
} from 'node:perf_hooks';
import { StoreWorld } from '../doors/http/store-world.ts';
import { threadOf } from './thread.ts';

/** What comes back for `measure`. */
export interface Measured {
  /** By the clock on the wall: what the machine gives to others counts. */
  readonly loopDelayMs: number;
  /** Longest turn of the loop in CPU time of its own thread: what no other process can make longer. */
  readonly holdMs: number;
  /** Longest pause of the collector, by the clock on the wall: it is part of a hold. */
  readonly collectMs: number;
  readonly rssMb: number;
  /** Heap and buffers; after a collection where one was asked for. */
  readonly heldMb: number;
  /** Share of its time that the thread computed since the last measure. */
  readonly busy: number;
}

/** What is sent: `look` measures without a collection, a number keeps the loop busy for so many milliseconds. */
export type Order = 'measure' | 'look' | number;

const settings = JSON.parse(process.argv[2] ?? '{}') as Record<string, string>;
const world = await StoreWorld.open(settings);
const delay = monitorEventLoopDelay({ resolution: 1 });
delay.enable();

let holdMs = 0;
let collectMs = 0;
let turnStartedMs = threadMs();
let measuredMs = turnStartedMs;
let measuredAt = performance.now();
const collections = new PerformanceObserver((list) => note(list.getEntries()));
collections.observe({ entryTypes: ['gc'] });
/** Collections, but for those that were asked for. */
function note(entries: readonly PerformanceEntry[]): void {
  for (const { duration, detail } of entries as readonly (PerformanceEntry & { readonly detail?: unknown })[]) {
    const { flags } = detail as NodeGCPerformanceDetail;
    if ((flags & constants.NODE_PERFORMANCE_GC_FLAGS_FORCED) === 0) collectMs = Math.max(collectMs, duration);
  }
}
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
  note(collections.takeRecords());
  // What follows is none of the holds that are looked for.
  const loopDelayMs = delay.max / 1e6;
  const busy = (threadMs() - measuredMs) / (performance.now() - measuredAt);
  if (order === 'measure') {
    globalThis.gc!();
    // Buffers that the first finds dead are freed beside it, and counted until the next waits for that.
    globalThis.gc!();
  }
  turnStartedMs = measuredMs = threadMs();
  measuredAt = performance.now();
  const { rss, heapUsed, external } = process.memoryUsage();
  const measured: Measured = {
    loopDelayMs,
    holdMs,
    collectMs,
    rssMb: rss / 2 ** 20,
    heldMb: (heapUsed + external) / 2 ** 20,
    busy,
  };
  process.send!(measured);
  delay.reset();
  holdMs = collectMs = 0;
});
process.once('disconnect', () => process.exit(0));
const ports = Object.fromEntries(world.others.map(({ name, port }) => [name, port]));
process.send!({ port: world.door.port, token: world.token, ports });

function threadMs(): number {
  return threadOf(process.pid).computedMs;
}

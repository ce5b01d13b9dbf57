/**
 * A store behind its HTTP door in a process of its own, for whoever forks this file: says where it listens, and when asked
 * how long its event loop was away and how much memory it took since the last time.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { StoreWorld } from '../doors/http/store-world.ts';

/** What comes back for `measure`. */
export interface Measured {
  readonly loopDelayMs: number;
  readonly rssMb: number;
}

const settings = JSON.parse(process.argv[2] ?? '{}') as Record<string, string>;
const world = await StoreWorld.open(settings);
const delay = monitorEventLoopDelay({ resolution: 1 });
delay.enable();
process.on('message', () => {
  process.send!({ loopDelayMs: delay.max / 1e6, rssMb: process.memoryUsage.rss() / 2 ** 20 } satisfies Measured);
  delay.reset();
});
process.once('disconnect', () => process.exit(0));
process.send!({ port: world.door.port, token: world.token });

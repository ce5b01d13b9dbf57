/**
 * Durable one-row commits through `gate.submit` in this process while standing queries follow the type, for
 * `measures/watch.ts`: writers who write one row, wait for it and then pause. Arguments: data directory, seconds of each
 * loop, subscriptions. Prints one line of JSON: {commits, p50, p99, told}, milliseconds.
 */
import type { WatchClient } from '../src/planner/continuous/watch/subscription.ts';
import { caller, oneRowBatches, openDurable, putInto } from './durable-store.ts';

const [directory, seconds, subscriptions] = [process.argv[2]!, Number(process.argv[3]), Number(process.argv[4])];
const writers = 8;
const pauseMs = 5;

const service = await openDurable(directory);
const pool = await oneRowBatches(0, 20_000);
let written = 0;

await commit();
let told = 0;
// Each has a connection of its own.
const connections = Array.from({ length: subscriptions }, () => new AbortController());
for (let i = 0; i < subscriptions; i++) {
  // Each commit matches a tenth of the queries.
  const sql = `SELECT * FROM Purchase WHERE quantity % 10 = ${i % 10}`;
  const request = { action: 'watch', purpose: 'analytics', correlationId: service.ids.next() } as const;
  const subscription = await service.gate.invoke(caller, request, (invocation) =>
    service.standing.watch.register(invocation, sql, 'analytics'),
  );
  const client: WatchClient = {
    renew: () => caller,
    write: async (events) => {
      told += events.length;
      return true;
    },
    end: () => undefined,
    gone: connections[i]!.signal,
  };
  void service.standing.watch.follow(service.standing.watch.claim(subscription), client, { resumeAfter: null, keep: false });
}
await pause(500);

told = 0;
const samples: number[] = [];
const until = performance.now() + seconds * 1000;
await Promise.all(
  Array.from({ length: writers }, async () => {
    while (performance.now() < until) {
      const began = performance.now();
      await commit();
      samples.push(performance.now() - began);
      await pause(pauseMs);
    }
  }),
);
await pause(500);
samples.sort((a, b) => a - b);
const at = (share: number): number => samples[Math.min(samples.length - 1, Math.floor(samples.length * share))]!;
console.log(JSON.stringify({ commits: samples.length, p50: at(0.5), p99: at(0.99), told }));
for (const connection of connections) connection.abort();
await service.close();
process.exit(0);

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

async function commit(): Promise<void> {
  const rows = pool[written++ % pool.length]!;
  const request = { action: 'ingest', purpose: 'analytics', correlationId: service.ids.next() } as const;
  await service.gate.invoke(caller, request, (invocation) => invocation.submit(putInto('Purchase', rows)));
}

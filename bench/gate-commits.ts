/**
 * Durable one-row commits through `gate.submit` in this process, for `measures/commits.ts`: a closed loop of 1, 16 and
 * 64 writers. Arguments: data directory, seconds of each loop. Prints one line of JSON: [[writers, commits/s], …].
 */
import { caller, oneRowBatches, openDurable, putInto } from './durable-store.ts';

const [directory, seconds] = [process.argv[2]!, Number(process.argv[3])];
const batchesEach = 20_000;

const service = await openDurable(directory);
const found: [number, number][] = [];
for (const [i, writers] of [1, 16, 64].entries()) {
  const pool = await oneRowBatches(i * batchesEach, batchesEach);
  let commits = 0;
  const began = performance.now();
  const until = began + seconds * 1000;
  await Promise.all(
    Array.from({ length: writers }, async () => {
      while (performance.now() < until) {
        const rows = pool[commits++ % pool.length]!;
        const request = { action: 'ingest', purpose: 'analytics', correlationId: service.ids.next() } as const;
        await service.gate.invoke(caller, request, (invocation) => invocation.submit(putInto('Purchase', rows)));
      }
    }),
  );
  found.push([writers, (commits / (performance.now() - began)) * 1000]);
}
await service.close();
console.log(JSON.stringify(found));
process.exit(0);

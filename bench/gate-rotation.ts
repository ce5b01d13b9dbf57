/**
 * Durable one-row commits through `gate.submit` in this process, for `measures/rotation.ts`: 16 writers, in rounds of which every
 * other one rotates the data key all the while. Arguments: data directory, rounds, seconds of each, milliseconds between two
 * rotations. Prints one line of JSON: [commits/s of quiet rounds, commits/s of the others, ms of each rotation].
 */
import { caller, oneRowBatches, openDurable, putInto } from './durable-store.ts';

const writers = 16;
const batches = 20_000;
const directory = process.argv[2]!;
const [rounds, seconds, pauseMs] = process.argv.slice(3).map(Number) as [number, number, number];

const service = await openDurable(directory);
const pool = await oneRowBatches(0, batches);
let commits = 0;

async function commitUntil(until: number): Promise<void> {
  while (performance.now() < until) {
    const rows = pool[commits++ % batches]!;
    const request = { action: 'ingest', purpose: 'analytics', correlationId: service.ids.next() } as const;
    await service.gate.invoke(caller, request, (invocation) => invocation.submit(putInto('Purchase', rows)));
  }
}

const rotationMs: number[] = [];
async function rotateUntil(until: number): Promise<void> {
  while (performance.now() < until) {
    const began = performance.now();
    await service.store.keyring.rotate();
    rotationMs.push(performance.now() - began);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}

async function round(rotating: boolean): Promise<number> {
  const [before, began] = [commits, performance.now()];
  const until = began + seconds * 1000;
  const work = Array.from({ length: writers }, () => commitUntil(until));
  await Promise.all(rotating ? [...work, rotateUntil(until)] : work);
  return ((commits - before) / (performance.now() - began)) * 1000;
}

const quiet: number[] = [];
const rotating: number[] = [];
await round(false);
for (let i = 0; i < rounds; i++) {
  quiet.push(await round(false));
  rotating.push(await round(true));
}
await service.close();
console.log(JSON.stringify([quiet, rotating, rotationMs]));
process.exit(0);

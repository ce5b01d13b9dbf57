/**
 * Durable one-row commits through `gate.submit` in this process, for `measures/commits.ts`: a closed loop of 1, 16 and
 * 64 writers. Arguments: data directory, seconds of each loop. Prints one line of JSON: [[writers, commits/s], …].
 */
import { systemClock, systemRandom } from '../src/clock.ts';
import { loadSettings } from '../src/config.ts';
import type { Caller } from '../src/governance/caller.ts';
import { nodeDisk } from '../src/log/node-disk.ts';
import { readIngest } from '../src/planner/formats/ingest-reader.ts';
import type { RowBatch } from '../src/log/columns.ts';
import { Service } from '../src/service.ts';
import { raisedLimits } from './annals-server.ts';
import { orderJson } from './workload.ts';

const [directory, seconds] = [process.argv[2]!, Number(process.argv[3])];

const service = await Service.open({
  settings: loadSettings({
    env: { ...raisedLimits, SERVICE_WAL_SYNC: 'always' },
    configPath: undefined,
    overrides: { SERVICE_DATA_DIR: directory },
  }),
  disk: nodeDisk,
  clock: systemClock,
  random: systemRandom,
  version: 'bench',
  say: () => undefined,
});
const caller: Caller = {
  principal: 'bench',
  credential: 'token',
  tokenId: null,
  tenant: null,
  path: null,
  roles: [],
  attributes: {},
  purposes: [],
  door: 'bench',
  branch: 'main',
};
const provenance = { source: 'bench', method: 'ingest', confidence: 1, derivedFrom: null };

let next = 0;
const found: [number, number][] = [];
for (const writers of [1, 16, 64]) {
  // Parsed ahead: what is measured is the gate, not the parser.
  const pool = await batches(20_000);
  let commits = 0;
  const began = performance.now();
  const until = began + seconds * 1000;
  await Promise.all(
    Array.from({ length: writers }, async () => {
      while (performance.now() < until) {
        const rows = pool[commits++ % pool.length]!;
        await service.gate.invoke(
          caller,
          { action: 'ingest', purpose: 'analytics', correlationId: service.ids.next() },
          async (invocation) => {
            const outcome = await invocation.submit({
              kind: 'put-rows',
              type: 'Purchase',
              rows,
              atomic: false,
              createType: true,
              provenance,
            });
            if (outcome.accepted !== 1) throw new Error(JSON.stringify(outcome.errors));
          },
        );
      }
    }),
  );
  found.push([writers, (commits / (performance.now() - began)) * 1000]);
}
await service.close();
console.log(JSON.stringify(found));
process.exit(0);

async function batches(count: number): Promise<RowBatch[]> {
  async function* source(): AsyncGenerator<Uint8Array> {
    for (let i = 0; i < count; i++) yield Buffer.from(orderJson(next++));
  }
  const made: RowBatch[] = [];
  for await (const { rows } of readIngest(source(), { definition: null, batchRows: 1, batchBytes: 1 << 20 })) made.push(rows);
  return made;
}

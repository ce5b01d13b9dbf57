/** What the `gate-*` processes drive: a store on disk in a process of its own, every commit fsynced, without a door. */
import { totalmem } from 'node:os';
import { systemClock, systemRandom } from '../src/clock.ts';
import { loadSettings } from '../src/config.ts';
import { tenantlessCaller } from '../src/governance/caller.ts';
import type { RowBatch } from '../src/log/values/columns.ts';
import { nodeDisk } from '../src/log/disk/node-disk.ts';
import { readIngest } from '../src/planner/formats/ingest-reader.ts';
import type { PutRows } from '../src/projections/command.ts';
import { Service } from '../src/service.ts';
import { raisedLimits } from './annals-server.ts';
import { orderJson } from './workload.ts';

export const caller = tenantlessCaller('bench', 'operator', 'bench');

/** `saved`: a close leaves a checkpoint behind, and the next open starts from it. */
export function openDurable(directory: string, { saved = false, clock = systemClock } = {}): Promise<Service> {
  return Service.open({
    settings: loadSettings({
      env: { ...raisedLimits, SERVICE_WAL_SYNC: 'always' },
      configPath: undefined,
      overrides: { SERVICE_DATA_DIR: directory },
    }),
    disk: nodeDisk,
    clock,
    random: systemRandom,
    version: 'bench',
    say: () => undefined,
    ...(saved && { derived: { machineBytes: totalmem() } }),
  });
}

export function putInto(type: string, rows: RowBatch): PutRows {
  const provenance = { source: 'bench', method: 'ingest', confidence: 1, derivedFrom: null };
  return { kind: 'put-rows', type, rows, atomic: true, createType: true, provenance };
}

/** Orders first .. first+count-1 as batches of one row, parsed ahead: what is measured is the gate, not the parser. */
export async function oneRowBatches(first: number, count: number): Promise<RowBatch[]> {
  async function* source(): AsyncGenerator<Uint8Array> {
    for (let i = first; i < first + count; i++) yield Buffer.from(orderJson(i));
  }
  const made: RowBatch[] = [];
  for await (const { rows } of readIngest(source(), { definition: null, batchRows: 1, batchBytes: 1 << 20 })) made.push(rows);
  return made;
}

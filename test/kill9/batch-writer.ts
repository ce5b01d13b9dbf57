/**
 * Writes batches of several types into a data directory until it is killed, and says on standard output what it is about to write and
 * what was acknowledged, a JSON line each: `tsx batch-writer.ts <data directory> <prefix> <seed>`. No door takes batches by itself.
 */
import { loadSettings } from '../../src/config.ts';
import { systemClock, systemRandom } from '../../src/clock.ts';
import { nodeDisk } from '../../src/log/disk/node-disk.ts';
import { operator } from '../../src/cli/local-store.ts';
import type { PutRows } from '../../src/projections/command.ts';
import { Service } from '../../src/service.ts';
import { batchOf, type PlainRow } from '../projections/store.ts';
import { Seeded } from '../simulation/seeded.ts';

const [directory, prefix, seed] = process.argv.slice(2) as [string, string, string];
const random = new Seeded(Number(seed));
const settings = loadSettings({ env: process.env, overrides: { SERVICE_DATA_DIR: directory } });
const service = await Service.open({
  settings,
  disk: nodeDisk,
  clock: systemClock,
  random: systemRandom,
  version: 'test',
  say: () => undefined,
});

const say = (line: object): void => void process.stdout.write(`${JSON.stringify(line)}\n`);
let written: string[] = [];
say({ ready: true });
for (let request = 0; ; request++) {
  const ids = Array.from({ length: 2 + random.below(4) }, (_, i) => `${prefix}-${request}-${i}`);
  const rows = ids.map((id) => ({ id, round: 0n, owner: `owner ${random.below(3_000)}`, note: 'x' }));
  const half = 1 + random.below(ids.length - 1);
  const steps = [put('Kill', rows.slice(0, half), 'absent'), put('Kill2', rows.slice(half), 'absent')];
  if (written.length > 0) steps.push(patch(random.pick(written), request));
  say({ request, ids });
  await service.gate.invoke(operator(null), { action: 'ingest', purpose: 'test', correlationId: `${request}` }, (invocation) =>
    invocation.submit({ kind: 'batch', steps }),
  );
  say({ acknowledged: request });
  written = ids.slice(0, half);
}

function put(type: string, rows: readonly PlainRow[], when: 'absent'): PutRows {
  const columns = { id: 'string', round: 'integer', owner: 'string', note: 'string' } as const;
  return { ...common(type), rows: batchOf(columns, rows), createType: true, when };
}

function patch(id: string, request: number): PutRows {
  const rows = batchOf({ id: 'string', note: 'string' }, [{ id, note: `batch ${request}` }]);
  return { ...common('Kill'), rows, createType: false, patch: new Map(), when: 'present' };
}

function common(type: string) {
  const provenance = { source: 'kill9', method: 'batch', confidence: 1, derivedFrom: null };
  return { kind: 'put-rows', type, atomic: true, provenance } as const;
}

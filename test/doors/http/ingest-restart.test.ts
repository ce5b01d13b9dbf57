/** A request under an idempotency key that is cut off, and sent again to a store that was closed and opened since. */
import { expect, test } from 'vitest';
import { loadSettings } from '../../../src/config.ts';
import { BodyDigest } from '../../../src/doors/http/body-digest.ts';
import { Ingest, type IngestReply } from '../../../src/doors/shared/ingest-stream.ts';
import { tenantlessCaller } from '../../../src/governance/caller.ts';
import { MemoryDisk } from '../../../src/log/disk/memory-disk.ts';
import { readIngest } from '../../../src/planner/formats/ingest-reader.ts';
import { keptNanoseconds } from '../../../src/projections/receipts/projection.ts';
import { Service } from '../../../src/service.ts';
import { rowsOf, TestClock, TestRandom } from '../../harness.ts';

const clock = new TestClock('2024-01-01');
const disk = new MemoryDisk();
let opened = 0;

const open = (): Promise<Service> =>
  Service.open({
    settings: loadSettings({ env: { SERVICE_IN_MEMORY: 'true' }, workingDirectory: '/nowhere', homeDirectory: '/nowhere' }),
    disk,
    clock,
    random: new TestRandom(++opened),
    version: 'test',
    say: () => undefined,
    sealIdleMs: 0,
  });

const caller = tenantlessCaller('ada', 'operator', 'test');
const body = Buffer.from(Array.from({ length: 50 }, (_, i) => `{"id":"k${i}","n":${i}}\n`).join(''));

/** Sends the body in packets of `packet` bytes; the connection ends after `cut` of them. */
function send(service: Service, packet: number, cut = Infinity): Promise<{ reply: IngestReply; replayed: boolean }> {
  async function* packets(): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < body.length; at += packet) {
      if (at / packet >= cut) throw new Error('the connection is gone');
      yield body.subarray(at, at + packet);
    }
  }
  return service.gate.invoke(caller, { action: 'ingest', purpose: null, correlationId: 'c' }, async (invocation) => {
    const digest = new BodyDigest('what was asked');
    const ingest = new Ingest(invocation, {
      type: 'T',
      atomic: false,
      sync: false,
      createType: true,
      provenance: { source: 's', method: 'm', confidence: 1, derivedFrom: null },
      once: { key: '5'.repeat(64), body: digest },
    });
    const batches = readIngest(digest.pass(packets()), { definition: ingest.definition(), batchRows: 8, batchBytes: 1e6 });
    return { reply: await ingest.run(batches), replayed: ingest.replayed };
  });
}

const count = async (service: Service): Promise<bigint> => {
  const answer = await service.gate.invoke(caller, { action: 'query', purpose: null, correlationId: 'q' }, (invocation) =>
    service.planner.query(invocation, { sql: 'SELECT COUNT(*) AS c FROM T' }),
  );
  return rowsOf(answer)[0]!['c'] as bigint;
};

test('what was written before the cut is not written again, and the reply is that of the whole', async () => {
  let service = await open();
  await expect(send(service, 100, 4)).rejects.toThrow('gone');
  const before = await count(service);
  expect(before).toBeGreaterThan(0n);
  expect(before).toBeLessThan(50n);
  await service.close();

  service = await open();
  // In other packets: batches end where rows end, whatever the network does.
  const whole = await send(service, 37);
  expect(whole.replayed).toBe(false);
  expect(whole.reply).toMatchObject({ accepted: 50, rejected: 0 });
  expect(whole.reply.ids).toEqual(Array.from({ length: 50 }, (_, i) => `k${i}`));
  expect(await count(service)).toBe(50n);
  await service.close();

  service = await open();
  clock.wallNs += keptNanoseconds - 60_000_000_000n;
  const again = await send(service, 1_000);
  expect(again).toEqual({ reply: whole.reply, replayed: true });
  expect(await count(service)).toBe(50n);
  const leaves = service.store.log.status().leaves;
  await send(service, 61);
  // The record of the request, and nothing else.
  expect(service.store.log.status().leaves - leaves).toBeLessThanOrEqual(1);

  // A day later the key is free.
  clock.wallNs += 2n * keptNanoseconds;
  expect((await send(service, 512)).replayed).toBe(false);
  expect(await count(service)).toBe(100n);
  await service.close();
});

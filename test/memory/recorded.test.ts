/**
 * No recall is answered without its record, whatever the disk does: memories are stored and recalled once for every step at which
 * the disk can fail, and what was answered has its ToolCall row, with the ids that it told, and its access record in the log that the
 * next process opens.
 */
import { expect, test } from 'vitest';
import { loadSettings } from '../../src/config.ts';
import { readDocument } from '../../src/doors/rich-text/chunks.ts';
import { callVerb } from '../../src/doors/verbs/call-verb.ts';
import { verbs } from '../../src/doors/verbs/all.ts';
import { rowsOf } from '../../src/doors/verbs/verb-rows.ts';
import type { VerbDependencies } from '../../src/doors/verbs/verb-call.ts';
import { ServiceError } from '../../src/errors.ts';
import { Service } from '../../src/service.ts';
import { analyst, TestClock, TestRandom } from '../harness.ts';
import { FaultyDisk, type Fault } from '../simulation/faulty-disk.ts';

const settings = loadSettings({
  env: { SERVICE_DATA_DIR: '/data', SERVICE_KEK: 'ab'.repeat(32), SERVICE_QUERY_QUOTA: '1000000' },
  workingDirectory: '/nowhere',
  homeDirectory: '/nowhere',
});

function open(disk: FaultyDisk): Promise<Service> {
  const parts = { clock: new TestClock('2024-01-01'), random: new TestRandom(), version: 'test' };
  return Service.open({ settings, disk, ...parts, say: () => undefined, sealIdleMs: 3_600_000 });
}

/** What each recall that was answered told, by its call id. */
async function run(service: Service): Promise<{ readonly answered: Map<string, readonly string[]>; readonly refused: number }> {
  const { planner, clock, ids } = service;
  const { jobs, jobDesk: schedule, workflows } = service.automation;
  const yieldTurn = service.turns.yieldFor('bodies');
  const system = { version: 'test' } as VerbDependencies['system'];
  const metrics = { registry: { metrics: async () => '' } };
  const none = { embedder: null, translator: null, readDocuments: readDocument };
  const parts: VerbDependencies = { planner, clock, ids, jobs, schedule, workflows, yieldTurn, system, metrics, ...none };
  const answered = new Map<string, readonly string[]>();
  let refused = 0;
  let asked = 0;
  const call = async (name: string, input: object): Promise<void> => {
    const verb = verbs.find((each) => each.name === name)!;
    try {
      const { output } = await callVerb(service.gate, parts, {
        verb,
        input,
        caller: analyst,
        purpose: 'test',
        correlationId: `c${asked++}`,
      });
      const told = output as { call_id?: string; memories?: readonly { id: string }[] };
      if (told.call_id !== undefined)
        answered.set(
          told.call_id,
          told.memories!.map(({ id }) => id),
        );
    } catch (error) {
      if (!(error instanceof ServiceError) || error.code !== 'REL_UNAVAILABLE') throw error;
      refused++;
    }
  };
  await call('remember', { content: 'the kettle is blue' });
  await call('recall', { query: 'kettle' });
  await call('remember', { content: 'another kettle' });
  await Promise.all([call('recall', { query: 'kettle' }), call('recall', { query: 'another' })]);
  return { answered, refused };
}

async function recordedIn(
  disk: FaultyDisk,
): Promise<{ readonly calls: Map<string, readonly string[]>; readonly accesses: number }> {
  const service = await open(disk);
  let accesses = 0;
  for await (const { body } of service.store.log.read(0)) {
    if (body.kind === 'access') accesses += body.records.filter(({ recalled }) => recalled !== undefined).length;
  }
  const request = { action: 'query', purpose: 'test', correlationId: 'read' } as const;
  const made = await service.gate.invoke(analyst, request, (invocation) =>
    service.planner.query(invocation, { sql: "SELECT _pk, result FROM ToolCall WHERE name = 'recall'", purpose: 'test' }),
  );
  const calls = rowsOf(made).map(
    ({ _pk, result }) => [String(_pk), (JSON.parse(String(result)) as { ids: string[] }).ids] as const,
  );
  await service.close();
  return { calls: new Map(calls), accesses };
}

test('at every step at which the disk may fail', async () => {
  const healthy = new FaultyDisk();
  const service = await open(healthy);
  const opened = healthy.steps;
  const { answered: all, refused: none } = await run(service);
  expect([all.size, none]).toEqual([3, 0]);
  expect(healthy.steps - opened).toBeGreaterThan(6);
  let refusedInAll = 0;
  for (let failing = opened; failing < healthy.steps; failing++) {
    const fault: Fault = { kind: 'error', code: 'EIO', bytes: 5 };
    const disk = new FaultyDisk({ beforeStep: ({ index }) => (index === failing ? fault : undefined) });
    const { answered, refused } = await run(await open(disk));
    refusedInAll += refused;
    const { calls, accesses } = await recordedIn(FaultyDisk.afterKill(disk.state()));
    for (const [id, told] of answered) expect([failing, id, calls.get(id)]).toEqual([failing, id, told]);
    expect(accesses).toBeGreaterThanOrEqual([...answered.values()].filter((told) => told.length > 0).length);
  }
  expect(refusedInAll).toBeGreaterThan(0);
});

/**
 * Nothing leaves unrecorded, whatever the disk does: a script of reads and writes runs once for every step at which the
 * disk can fail. What was answered has its record in the log that the next process opens; of what was not, at most one.
 */
import { describe, expect, test } from 'vitest';
import { loadSettings } from '../../src/config.ts';
import { ServiceError } from '../../src/errors.ts';
import type { Invocation } from '../../src/governance/gate-contract.ts';
import { Service } from '../../src/service.ts';
import { analyst, TestClock, TestRandom } from '../harness.ts';
import { FaultyDisk, type Fault } from '../simulation/faulty-disk.ts';
import { refusalOf } from './world.ts';

const settings = loadSettings({
  env: { SERVICE_DATA_DIR: '/data', SERVICE_KEK: 'ab'.repeat(32), SERVICE_QUERY_QUOTA: '1000000' },
  workingDirectory: '/nowhere',
  homeDirectory: '/nowhere',
});

function open(disk: FaultyDisk): Promise<Service> {
  const clock = new TestClock('2024-01-01');
  return Service.open({
    settings,
    disk,
    clock,
    random: new TestRandom(),
    version: 'test',
    say: () => undefined,
    sealIdleMs: 3_600_000,
  });
}

const read = async (invocation: Invocation): Promise<bigint> => invocation.snapshot().instant;
const register = (name: string) => (invocation: Invocation) =>
  invocation.submit({ kind: 'register-type', name, properties: null, primaryKey: null, graphTriggers: [] });
const refuse = async (): Promise<never> => {
  throw new ServiceError('REL_PARSE', 'as written');
};

const script: readonly (readonly ['query' | 'schema', (invocation: Invocation) => Promise<unknown>])[] = [
  ['query', read],
  ['schema', register('A')],
  ['query', refuse],
  ['query', read],
  ['schema', register('B')],
  ['schema', register('B')],
  ['query', read],
];

interface Told {
  /** Correlation ids of invocations that got what they asked for, or the refusal that they deserved. */
  readonly answered: string[];
  readonly withheld: string[];
}

/** Two callers at a time, each with the whole script. */
async function run(service: Service): Promise<Told> {
  const told: Told = { answered: [], withheld: [] };
  const caller = async (name: string): Promise<void> => {
    for (const [step, [action, act]] of script.entries()) {
      const correlationId = `${name}-${step}`;
      try {
        await service.gate.invoke<unknown>(analyst, { action, purpose: null, correlationId }, act);
        told.answered.push(correlationId);
      } catch (error) {
        const { code } = await refusalOf(Promise.reject(error));
        expect(['REL_PARSE', 'REL_UNAVAILABLE']).toContain(code);
        (code === 'REL_PARSE' ? told.answered : told.withheld).push(correlationId);
      }
    }
  };
  await Promise.all([caller('ada'), caller('bob')]);
  return told;
}

async function recordsOf(disk: FaultyDisk): Promise<Map<string, number>> {
  const service = await open(disk);
  const counts = new Map<string, number>();
  for await (const { body } of service.store.log.read(0)) {
    if (body.kind !== 'access') continue;
    for (const { correlationId } of body.records) counts.set(correlationId, (counts.get(correlationId) ?? 0) + 1);
  }
  await service.close();
  return counts;
}

async function healthySteps(): Promise<{ opened: number; ran: number }> {
  const disk = new FaultyDisk();
  const service = await open(disk);
  const opened = disk.steps;
  expect((await run(service)).withheld).toEqual([]);
  return { opened, ran: disk.steps };
}

describe.each(['EIO', 'ENOSPC'] as const)('%s at every step', (code) => {
  test.each([0, 7])('of which a write had taken %i bytes', async (bytes) => {
    const { opened, ran } = await healthySteps();
    expect(ran - opened).toBeGreaterThan(8);
    let withheld = 0;
    for (let failing = opened; failing < ran; failing++) {
      const fault: Fault = { kind: 'error', code, bytes };
      const disk = new FaultyDisk({ beforeStep: ({ index }) => (index === failing ? fault : undefined) });
      const service = await open(disk);
      const told = await run(service);
      withheld += told.withheld.length;
      const records = await recordsOf(FaultyDisk.afterKill(disk.state()));
      for (const id of told.answered) expect([failing, id, records.get(id)]).toEqual([failing, id, 1]);
      for (const id of told.withheld) expect(records.get(id) ?? 0).toBeLessThanOrEqual(1);
    }
    expect(withheld).toBeGreaterThan(0);
  });
});

/**
 * One life of a whole store whose derived files matter: small segments, a small budget, checkpoints, compactions, hard
 * deletes, wider types, branches, restarts. Before every disk call it notes what the machine would have left, and up to
 * where writes had been acknowledged by then.
 */
import { ServiceError } from '../../src/errors.ts';
import type { Invocation } from '../../src/governance/gate-contract.ts';
import { ColumnMemory } from '../../src/log/values/column-memory.ts';
import type { Disk } from '../../src/log/disk/disk.ts';
import { Service } from '../../src/service.ts';
import { loadSettings } from '../../src/config.ts';
import { analyst, exactJson, TestClock, TestRandom } from '../harness.ts';
import type { Command, PutRows } from '../../src/projections/command.ts';
import { readIngest } from '../../src/planner/formats/ingest-reader.ts';
import { termsOf } from '../projections/histories.ts';
import { START } from '../projections/store.ts';
import { type DiskState, type Fault, FaultyDisk, type Step } from './faulty-disk.ts';
import { Seeded } from './seeded.ts';

export const dataDirectory = '/data';
export const derivedDirectory = `${dataDirectory}/projections`;

export interface StoredPoint {
  readonly step: Step;
  readonly disk: DiskState;
  /** Positions below this one had been acknowledged. */
  readonly acknowledged: number;
}

export interface StoredLife {
  readonly seed: number;
  readonly points: readonly StoredPoint[];
  readonly steps: readonly Step[];
  /** What was said to the operator. */
  readonly said: readonly string[];
  readonly counts: StoredCounts;
  /** The disk after a clean close. */
  readonly closed: DiskState;
  /** Of all projections at the close. */
  readonly digests: Readonly<Record<string, string>>;
}

export interface StoredCounts {
  checkpoints: number;
  evictions: number;
  compactedSegments: number;
  restarts: number;
  removals: number;
}

export interface StoredOptions {
  /** Without: everything in memory, rebuilt from the log. */
  readonly derived?: boolean;
  readonly budgetBytes?: number;
  readonly segmentRows?: number;
}

/** A service on a disk, as the life and those who examine its crashes open it. */
export async function openStored(
  disk: Disk,
  random: number,
  say: (line: string) => void,
  { derived = true, budgetBytes = 1_500, segmentRows = 6 }: StoredOptions = {},
  clock = new TestClock('2024-06-01'),
): Promise<Service> {
  const env = {
    SERVICE_DATA_DIR: dataDirectory,
    SERVICE_WAL_SYNC: 'always',
    SERVICE_QUERY_QUOTA: '1000000000',
    SERVICE_KEK: '07'.repeat(32),
  };
  return Service.open({
    settings: loadSettings({ env, workingDirectory: '/nowhere', homeDirectory: '/nowhere' }),
    disk,
    clock,
    random: new TestRandom(random),
    version: 'simulated',
    say,
    sealIdleMs: 0,
    ...(derived && {
      derived: {
        machineBytes: 1 << 30,
        budgetBytes,
        // Checkpoints are taken when the life says so.
        checkpointBytes: 1 << 30,
        segmentRows,
        memory: new ColumnMemory({ memoryBytes: 1 << 20, poison: true }),
      },
    }),
  });
}

export const storedTypes = ['Wide', 'Text'] as const;

/** Every cell, under every basis that a short cut could get wrong. */
export const storedQuestions = storedTypes.flatMap((type) => [
  `SELECT * FROM ${type}`,
  `SELECT * FROM ${type} AS OF CURRENT`,
  `SELECT s, COUNT(*) AS n, SUM(n % 1000) AS total, MIN(x) AS low FROM ${type} GROUP BY s ORDER BY s, n`,
]);

export interface StoredLifeOptions {
  /** Replaces the effect of steps. */
  readonly fault?: (step: Step) => Fault | undefined;
  /** Share of the calls on other files before which a point is taken; 1 of those on derived files, 0 for none at all. */
  readonly points?: number;
}

const operations = 44;

export async function liveStored(seed: number, { fault, points: share = 0.15 }: StoredLifeOptions = {}): Promise<StoredLife> {
  const random = new Seeded(seed);
  const taking = new Seeded(seed + 1);
  const governing = new Seeded(seed + 2);
  const forming = new Seeded(seed + 3);
  const clock = new TestClock('2024-01-01');
  const points: StoredPoint[] = [];
  const steps: Step[] = [];
  const said: string[] = [];
  const counts: StoredCounts = { checkpoints: 0, evictions: 0, compactedSegments: 0, restarts: 0, removals: 0 };
  let acknowledged = 0;
  let version = -1;
  const disk: FaultyDisk = new FaultyDisk({
    beforeStep: (step) => {
      steps.push(step);
      const wanted = share > 0 && (step.path.startsWith(derivedDirectory) || taking.chance(share));
      if (wanted && disk.version !== version) {
        version = disk.version;
        points.push({ step, disk: disk.state(), acknowledged });
      }
      return fault?.(step);
    },
  });
  const say = (line: string): void => void said.push(line);
  let service = await openStored(disk, seed * 2 + 1, say, {}, clock);
  const written = async (work: Promise<unknown>): Promise<void> => {
    await work;
    acknowledged = service.store.log.next().position;
  };
  for (const type of storedTypes)
    await written(register(service, type, { s: 'string', n: 'integer', x: 'number', w: 'integer' }));

  let branches = 0;
  for (let i = 0; i < operations; i++) {
    clock.wallNs += BigInt(random.below(5_000)) * 1_000_000_000n;
    const type = random.pick(storedTypes);
    const branch = branches > 0 && random.chance(0.2) ? `b${random.below(branches)}` : 'main';
    const action = random.below(20);
    if (action < 9) {
      const how = forming.pick(hows);
      await written(put(service, type, sentBy(forming, how, rowsOf(random, type, i)), branch, how));
    } else if (action < 11) await written(end(service, 'delete', type, [key(random)], branch));
    else if (action === 11) {
      counts.removals++;
      await written(end(service, 'remove', type, [key(random)], 'main'));
    } else if (action === 12 && branches < 2) await written(fork(service, `b${branches++}`));
    else if (action < 15 && service.store.checkpoints) {
      // As often as not a write is under way: it is in the checkpoint, and not durable when that is taken.
      const under = random.chance(0.5) ? written(put(service, type, rowsOf(random, type, i), branch)) : null;
      counts.checkpoints += Number(await service.store.checkpoints.take());
      await under;
    } else if (action === 15) counts.compactedSegments += (await service.store.columns?.compact())?.segments ?? 0;
    else if (action === 16)
      await written(put(service, type, [{ k: key(random), [`more${i}`]: i % 2 === 0 ? i : `text ${i}` }], branch));
    else if (action === 18 && i > 12) await written(widen(service, type, 'w', 'number'));
    else if (action === 17) {
      counts.restarts++;
      await service.close();
      service = await openStored(disk, seed * 1_000 + i, say, {}, clock);
      acknowledged = Math.max(acknowledged, service.store.log.next().position);
    } else {
      await service.store.columns?.whenIdle();
      service.store.columns?.trim();
      const before = service.store.columns?.residentBytes ?? 0;
      await ask(service, `SELECT * FROM ${type} AS OF CURRENT`);
      // What came into memory had been out of it.
      if ((service.store.columns?.residentBytes ?? 0) > before) counts.evictions++;
    }
    if (governing.chance(0.3)) await written(govern(service, governedCommand(governing, i)));
  }
  const digests = service.store.projections.projector.digests();
  await service.close();
  return { seed, points, steps, said, counts, closed: disk.state(), digests };
}

/** What is main's alone, and restored beside the rows. Refusals are part of it: they must leave nothing. */
function governedCommand(random: Seeded, at: number): Command {
  const id = random.pick(['north', 'south']);
  const terms = termsOf(id, 'east', { validTo: START * 2n });
  return random.pick<Command>([
    { kind: 'put-policy', id, text: `permit(principal, action, resource); // ${at}` },
    { kind: 'delete-policy', id },
    { kind: 'create-tenant', id, name: `${at}`, tier: 'standard', quota: {}, search: {}, members: [], tenantsMax: 0 },
    { kind: 'suspend-tenant', id },
    { kind: 'delete-tenant', id, manner: random.pick(['soft', 'purge', 'tombstone']) },
    { kind: 'purge-tenant', id, cursor: null, keysMax: 100 },
    { kind: 'propose-agreement', id: `${id} ${at}`, terms },
    { kind: 'move-agreement', id: `${id} ${at - 1}`, to: 'accepted', side: 'assignee' },
  ]);
}

async function govern(service: Service, command: Command): Promise<void> {
  const request = { action: 'administer', purpose: 'test', correlationId: 'simulation' } as const;
  try {
    await service.gate.invoke({ ...analyst, credential: 'admin' }, request, (invocation) => invocation.submit(command));
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code === 'REL_STORAGE' || error.code === 'REL_UNAVAILABLE') throw error;
  }
}

export function register(service: Service, name: string, types: Readonly<Record<string, 'string' | 'integer' | 'number'>>) {
  const plain = { required: false, masked: false, indexed: false, subject: false, dims: 0 };
  const properties = Object.fromEntries(
    Object.entries({ k: 'string' as const, ...types }).map(([column, type]) => [column, { ...plain, type }]),
  );
  return invoke(service, 'schema', (invocation) =>
    invocation.submit({ kind: 'register-type', name, properties, primaryKey: 'k', graphTriggers: [] }),
  );
}

/** How rows are written, where not as they are; a batch of them is one append with a second half. */
export type How = 'plain' | 'patch' | 'replace' | 'absent' | 'present' | 'batch';

/** Rows that stand otherwise than asked are refused, one by one, and those of a batch together. */
export function put(service: Service, type: string, rows: readonly object[], branch = 'main', how: How = 'plain') {
  return invoke(
    service,
    'ingest',
    async (invocation) => {
      const definition = invocation.snapshot().catalog.type(type)!;
      const commandOf = async (some: readonly object[]): Promise<PutRows> => {
        const body = Buffer.from(some.map((row) => `${exactJson(row)}\n`).join(''));
        const source = (async function* () {
          yield body;
        })();
        const options = { definition, batchRows: 1e6, batchBytes: 1e9, tracksSent: how === 'patch' };
        for await (const batch of readIngest(source, options)) {
          const provenance = { source: 'simulation', method: 'put', confidence: 1, derivedFrom: null };
          const command = { kind: 'put-rows', type, rows: batch.rows, createType: false, provenance } as const;
          if (how === 'patch') return { ...command, atomic: true, patch: batch.sent! };
          if (how === 'replace') return { ...command, atomic: true, replace: true };
          if (how === 'absent' || how === 'present') return { ...command, atomic: false, when: how };
          return { ...command, atomic: true };
        }
        throw new Error('a body with rows is a batch');
      };
      if (how !== 'batch' || rows.length < 2) {
        await invocation.submit(await commandOf(rows));
        return;
      }
      const steps = await Promise.all([rows.slice(0, 1), rows.slice(1)].map(commandOf));
      await invocation.submit({ kind: 'batch', steps });
    },
    branch,
  );
}

export const hows: readonly How[] = ['plain', 'plain', 'patch', 'patch', 'replace', 'absent', 'present', 'batch', 'batch'];

const kept: ReadonlySet<string> = new Set(['k', 'valid_from', 'valid_to']);

/** Cells that a patch leaves out of some rows. */
export function sentBy(random: Seeded, how: How, rows: readonly object[]): readonly object[] {
  if (how !== 'patch') return rows;
  return rows.map((row) => Object.fromEntries(Object.entries(row).filter(([name]) => kept.has(name) || random.chance(0.6))));
}

/** To what a column has already it changes nothing. */
export function widen(service: Service, name: string, column: string, type: 'number' | 'json', branch = 'main') {
  const properties = { [column]: { type, required: false, masked: false, indexed: false, subject: false, dims: 0 } };
  return invoke(service, 'schema', (invocation) => invocation.submit({ kind: 'evolve-type', name, properties }), branch);
}

export async function ask(service: Service, sql: string, branch = 'main') {
  return invoke(service, 'query', (invocation) => service.planner.query(invocation, { sql }), branch);
}

export function end(service: Service, how: 'delete' | 'remove', type: string, keys: readonly string[], branch: string) {
  return invoke(service, how, (invocation) => invocation.submit({ kind: `${how}-rows`, type, keys }), branch);
}

export function fork(service: Service, name: string) {
  return invoke(service, 'fork', (invocation) =>
    invocation.submit({ kind: 'fork-branch', name, source: 'main', shares: 'everything' }),
  );
}

function invoke<T>(
  service: Service,
  action: Parameters<Service['gate']['invoke']>[1]['action'],
  run: (invocation: Invocation) => Promise<T>,
  branch = 'main',
): Promise<T> {
  return service.gate.invoke({ ...analyst, branch }, { action, purpose: 'test', correlationId: 'simulation' }, run);
}

const key = (random: Seeded): string => `k${random.below(14)}`;

/** Numbers grow with the history: columns that began narrow are widened while older segments rest on files. */
function rowsOf(random: Seeded, type: (typeof storedTypes)[number], at: number): object[] {
  const width = at < 10 ? 100n : at < 20 ? 1n << 40n : 1n << 62n;
  const rows = new Map<string, object>();
  for (let left = 1 + random.below(9); left > 0; left--) {
    const k = key(random);
    const n = random.chance(0.2) ? null : (BigInt(random.bits()) * width) / 4_294_967_296n;
    const x = random.chance(0.3) ? null : random.chance(0.7) ? random.below(50) : random.below(1000) / 7;
    const s = random.chance(0.2)
      ? null
      : type === 'Text'
        ? `${'é'.repeat(random.below(30))}${random.bits()}`
        : random.pick(['', 'a', 'b', 'ü']);
    rows.set(k, { k, s, n, x, w: random.below(100) });
  }
  return [...rows.values()];
}

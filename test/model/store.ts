/**
 * The real stack as the model sees it: service on a disk that can lose power, one caller per organisation path, and
 * answers as plain rows. What a crash left is opened again from one of the disks that it may have left.
 */
import { ServiceError } from '../../src/errors.ts';
import { loadSettings } from '../../src/config.ts';
import { ColumnMemory } from '../../src/log/values/column-memory.ts';
import type { RestoreReport } from '../../src/doors/http/system-contract.ts';
import { ErasureChores } from '../../src/governance/erasure/erasure-chores.ts';
import type { Caller } from '../../src/governance/caller.ts';
import type { Action, Invocation, Transaction } from '../../src/governance/gate-contract.ts';
import { readIngest } from '../../src/planner/formats/ingest-reader.ts';
import type { Answer } from '../../src/planner/planner-contract.ts';
import type { Literal } from '../../src/planner/syntax/statement.ts';
import type { Outcome, PutRows } from '../../src/projections/command.ts';
import { Service } from '../../src/service.ts';
import { rowsOf, TestClock, TestRandom } from '../harness.ts';
import { crashImage } from '../simulation/crash-image.ts';
import { type DiskState, FaultyDisk, type Image } from '../simulation/faulty-disk.ts';
import { Seeded } from '../simulation/seeded.ts';
import type { How, ModelCell, Sent } from './bitemporal.ts';
import type { Columns } from './things.ts';

export type RealRow = Readonly<Record<string, ModelCell>>;

export type Step =
  | { readonly kind: 'put'; readonly rows: readonly Sent[]; readonly how?: How }
  | { readonly kind: 'delete'; readonly keys: readonly string[] };

export type Write =
  | {
      readonly kind: 'put';
      readonly branch: number;
      readonly path: string | null;
      readonly rows: readonly Sent[];
      readonly how?: How;
    }
  /** All of it or none: of what was refused the first row is told, as number -1. */
  | { readonly kind: 'batch'; readonly branch: number; readonly path: string | null; readonly steps: readonly Step[] }
  | End;

export interface End {
  readonly kind: 'delete' | 'remove';
  readonly branch: number;
  readonly path: string | null;
  readonly keys: readonly string[];
}

export const type = 'Fact';
/** Edges of facts, in the histories that have some. */
export const edgeType = 'Named';
const edgeTriggers = [
  { linkType: edgeType, sourceField: 'name', targetField: 'who' },
  { linkType: edgeType, sourceField: 'n', targetField: '_pk' },
];

/** What ERASE SUBJECT answers. */
export interface ErasedRow {
  readonly id: string;
  readonly versions: number;
  readonly certified: boolean;
  /** JSON. */
  readonly receipt: string | null;
  readonly salt: string | null;
}

export interface DerivedCounts {
  checkpoints: number;
  /** Openings that went on from a checkpoint. */
  restored: number;
  /** Openings that refused one. */
  rebuilt: number;
  /** Reads that brought columns back into memory. */
  hydrated: number;
  compactions: number;
}

/** Statements of one caller until it commits. */
export interface RealTransaction {
  write(step: Step): Promise<Outcome>;
  rows(sql: string): Promise<RealRow[]>;
  /** An instant at which nothing of it was written before. */
  now(): bigint;
  savepoint(name: string): void;
  rollbackTo(name: string): boolean;
  release(name: string): boolean;
  /** Null where it wrote nothing. */
  commit(): Promise<Outcome | null>;
  end(): void;
}

export class RealStore {
  readonly clock = new TestClock('2024-01-01');
  #service: Service;
  #disk: FaultyDisk;
  #random = 1;
  #directory = '/data';
  #restores = 0;
  /** Instants handed to readers by this process: no later write may be placed at or before one. */
  readInstant = 0n;
  /** Steps left until the power goes; Infinity: it does not. */
  #stepsLeft = Infinity;
  #lost: DiskState | null = null;
  #powerGone: () => void = () => undefined;

  /** What was said to the operator: a store that goes on from checkpoints has little to say. */
  readonly said: string[] = [];
  readonly counts: DerivedCounts = { checkpoints: 0, restored: 0, rebuilt: 0, hydrated: 0, compactions: 0 };

  private constructor() {
    this.#disk = this.#newDisk();
    this.#service = undefined as unknown as Service;
  }

  /** With subjects `who` says whose a row is; without, it is a cell like others. */
  static async open(hasSubjects: boolean, hasEdges = false): Promise<RealStore> {
    const store = new RealStore();
    await store.#open();
    // Made before it has edges, so that no tenant's types change with a first one.
    if (hasEdges) {
      await store.#invoke(null, 'schema', (invocation) =>
        invocation.submit({
          kind: 'register-type',
          name: edgeType,
          properties: {
            from_id: property('string'),
            to_id: property('string'),
            derived_from: property('string'),
            subject: { ...property('string'), subject: true },
          },
          primaryKey: null,
          graphTriggers: [],
        }),
      );
    }
    await store.#invoke(null, 'schema', (invocation) =>
      invocation.submit({
        kind: 'register-type',
        name: type,
        properties: {
          name: property('string'),
          n: property('integer'),
          x: property('number'),
          who: { ...property('string'), subject: hasSubjects },
        },
        primaryKey: null,
        graphTriggers: hasEdges ? edgeTriggers : [],
      }),
    );
    return store;
  }

  write(write: Write, branch: string, of = type): Promise<Outcome> {
    const { path } = write;
    if (write.kind === 'put') {
      const put = async (invocation: Invocation): Promise<Outcome> => invocation.submit(await putOf(invocation, write, of));
      return this.#invoke(path, 'ingest', put, branch);
    }
    if (write.kind !== 'batch') {
      const command = { kind: `${write.kind}-rows`, type: of, keys: write.keys } as const;
      return this.#invoke(path, write.kind, (invocation) => invocation.submit(command), branch);
    }
    const asked = write.steps;
    const batch = async (invocation: Invocation): Promise<Outcome> => {
      const steps = await Promise.all(
        asked.map(async (step) =>
          step.kind === 'put' ? putOf(invocation, step, of) : ({ kind: 'delete-rows', type: of, keys: step.keys } as const),
        ),
      );
      return invocation.submit({ kind: 'batch', steps });
    };
    return this.#invoke(path, 'ingest', batch, branch).catch(refusedWhole);
  }

  /** What a statement that writes came to, as a batch of one. */
  async execute(path: string | null, branch: string, sql: string, parameters: readonly Literal[]): Promise<Outcome> {
    try {
      const { written } = await this.#invoke(
        path,
        'query',
        (invocation) => this.#service.planner.execute(invocation, { sql, parameters }),
        branch,
      );
      const { systemFrom, systemFromLast } = written!;
      return { ...nothing, rejected: 0, systemFrom, systemFromLast, changed: systemFrom > 0n };
    } catch (error) {
      return refusedWhole(error);
    }
  }

  /** That a reader is given now. */
  async instant(path: string | null, branch: string): Promise<bigint> {
    const { answer } = await this.query(path, 'SELECT 1 AS one', branch);
    return answer.asOfSystem;
  }

  register(path: string | null, name: string, columns: Columns, branch: string): Promise<Outcome> {
    const command = {
      kind: 'register-type',
      name,
      properties: propertiesOf(columns),
      primaryKey: null,
      graphTriggers: [],
    } as const;
    return this.#invoke(path, 'schema', (invocation) => invocation.submit(command), branch);
  }

  evolve(path: string | null, name: string, columns: Columns, branch: string): Promise<Outcome> {
    const command = { kind: 'evolve-type', name, properties: propertiesOf(columns) } as const;
    return this.#invoke(path, 'schema', (invocation) => invocation.submit(command), branch);
  }

  /** What a path means by a name, and how often what it sees was changed. */
  typeOf(path: string | null, name: string, branch: string): Promise<{ columns: Columns | null; version: number }> {
    const read = async (invocation: Invocation) => {
      const { catalog } = invocation.snapshot();
      const properties = Object.entries(catalog.type(name)?.properties ?? {});
      const columns = Object.fromEntries(properties.map(([column, { type: of }]) => [column, of])) as Columns;
      return { columns: properties.length === 0 ? null : columns, version: catalog.ontologyVersion };
    };
    return this.#invoke(path, 'inspect', read, branch);
  }

  async fork(name: string, source: string, shares: 'everything' | 'ontology', tenant: string | null = null): Promise<Outcome> {
    return this.#invoke(tenant, 'fork', (invocation) => invocation.submit({ kind: 'fork-branch', name, source, shares }));
  }

  async drop(name: string, tenant: string | null = null): Promise<Outcome> {
    return this.#invoke(tenant, 'fork', (invocation) => invocation.submit({ kind: 'delete-branch', name }));
  }

  /** As the statement answers; a refusal is thrown. */
  async erase(path: string | null, branch: string, subject: string, certify: boolean): Promise<ErasedRow> {
    const sql = `ERASE SUBJECT '${subject}' REASON 'asked to'${certify ? ' CERTIFY' : ''}`;
    const answer = await this.#invoke(path, 'query', (invocation) => this.#service.planner.query(invocation, { sql }), branch);
    const [row] = rowsOf(answer);
    return {
      id: String(row!['erasure_id']),
      versions: Number(row!['versions']),
      certified: row!['certified'] === true,
      receipt: row!['receipt'] as string | null,
      salt: row!['salt'] as string | null,
    };
  }

  /** Whether any branch shows a row of a subject to the tenant. */
  async hasSubject(tenant: string | null, subject: string, branches: readonly string[]): Promise<boolean> {
    for (const branch of branches) {
      const { rows } = await this.query(tenant, `SELECT _pk FROM ${type} WHERE who = '${subject}'`, branch);
      if (rows.length > 0) return true;
    }
    return false;
  }

  /** Until an instant, or as a hold. */
  keep(path: string | null, branch: string, id: string, key: string, until: bigint | null): Promise<Outcome> {
    const command =
      until === null
        ? ({ kind: 'hold-row', id, type, key } as const)
        : ({ kind: 'schedule-retention', id, type, key, until } as const);
    return this.#invoke(path, 'remove', (invocation) => invocation.submit(command), branch);
  }

  release(path: string | null, branch: string, id: string): Promise<Outcome> {
    return this.#invoke(path, 'remove', (invocation) => invocation.submit({ kind: 'release-retention', id }), branch);
  }

  /** What goes by the clock: erasures go on, and what is over is removed. */
  tend(): Promise<void> {
    const { gate, ids } = this.#service;
    const { erasures: desk } = this.#service.upkeep;
    const { projections } = this.#service.store;
    return new ErasureChores({ gate, desk, retention: projections.retention, clock: this.clock, ids }).round();
  }

  async query(path: string | null, sql: string, branch: string): Promise<{ rows: RealRow[]; answer: Answer }> {
    const resident = this.#service.store.columns!.residentBytes;
    const answer = await this.#invoke(path, 'query', (invocation) => this.#service.planner.query(invocation, { sql }), branch);
    if (this.#service.store.columns!.residentBytes > resident) this.counts.hydrated++;
    if (answer.asOfSystem > this.readInstant) this.readInstant = answer.asOfSystem;
    return { rows: rowsOf(answer) as RealRow[], answer };
  }

  async restart(): Promise<void> {
    await this.#service.close();
    await this.#open();
  }

  /** Everything at one leaf is saved; a write may be under way meanwhile. */
  async checkpoint(): Promise<void> {
    this.counts.checkpoints += Number(await this.#service.store.checkpoints!.take());
  }

  /** Segments get their files, and columns leave memory until the budget holds. */
  async evict(): Promise<void> {
    await this.#service.store.columns!.whenIdle();
    this.#service.store.columns!.trim();
  }

  async compact(): Promise<void> {
    await this.#service.store.columns!.compact();
    this.counts.compactions++;
  }

  /** Ends, loses all that is saved beside the log, and starts from the log alone. */
  async rebuild(): Promise<void> {
    await this.#service.close();
    const { directories, files } = crashImage(this.#disk.state(), 'all');
    const kept = [...files].filter(([path]) => !path.startsWith(`${this.#directory}/projections/`));
    this.#disk = this.#newDisk({ directories, files: new Map(kept) });
    await this.#open();
  }

  /** The id of a backup of all that was acknowledged. */
  async backup(): Promise<string> {
    return (await this.#service.upkeep.backups.create()).backup;
  }

  /** A store is made of a backup in another directory, and goes on in place of this one, of which backups are left alone. */
  async restore(backup: string): Promise<RestoreReport> {
    const directory = `/data-${++this.#restores}`;
    const report = await this.#service.upkeep.backups.restore(backup, directory);
    await this.#service.close();
    const { directories, files } = crashImage(this.#disk.state(), 'all');
    const kept = [...files].filter(([path]) => !path.startsWith(`${this.#directory}/`));
    this.#directory = directory;
    this.#disk = this.#newDisk({ directories, files: new Map(kept) });
    await this.#open();
    return report;
  }

  /** The power goes now; which of the unsynced bytes survive is up to the seed. */
  async crash(seed: number): Promise<void> {
    const state = this.#disk.state();
    this.#disk.powerOff();
    await this.#reopen(crashImage(state, new Seeded(seed)));
  }

  /** The power goes at a disk call of this work, or right after it. What came of it, if anybody was told; null where it was refused. */
  async crashIn<T>(work: () => Promise<T>, steps: number, seed: number): Promise<T | null> {
    this.#stepsLeft = steps;
    const gone = new Promise<null>((resolve) => (this.#powerGone = () => resolve(null)));
    const outcome = await Promise.race([work().catch(() => null), gone]);
    const state = this.#lost ?? this.#disk.state();
    this.#stepsLeft = Infinity;
    this.#disk.powerOff();
    await this.#reopen(crashImage(state, new Seeded(seed)));
    return outcome;
  }

  close(): Promise<unknown> {
    return this.#service.close();
  }

  async #reopen(image: Image): Promise<void> {
    this.#lost = null;
    // The dead process may still be in a call; it must not bring down the living one.
    this.#service.close(0).catch(() => undefined);
    this.#disk = this.#newDisk(image);
    await this.#open();
  }

  async #open(): Promise<void> {
    this.readInstant = 0n;
    const env = {
      SERVICE_DATA_DIR: this.#directory,
      SERVICE_BACKUP_DIR: '/backups',
      SERVICE_ERASURE_SIGNING_KEY: '09'.repeat(32),
      SERVICE_WAL_SYNC: 'always',
      SERVICE_QUERY_QUOTA: '1000000000',
      SERVICE_KEK: '07'.repeat(32),
    };
    const before = this.said.length;
    this.#service = await Service.open({
      settings: loadSettings({ env, workingDirectory: '/nowhere', homeDirectory: '/nowhere' }),
      disk: this.#disk,
      clock: this.clock,
      random: new TestRandom((this.#random += 2)),
      version: 'model',
      say: (line) => void this.said.push(line),
      sealIdleMs: 0,
      derived: {
        machineBytes: 1 << 30,
        // A few rows of a few columns; what is more rests on files, and memory that was given back is overwritten.
        budgetBytes: 1_000,
        segmentRows: 4,
        // Taken by command, and after so many writes.
        checkpointBytes: 24_000,
        memory: new ColumnMemory({ memoryBytes: 1 << 20, poison: true }),
      },
    });
    if (this.said.slice(before).some((line) => line.includes('rebuilt from the log'))) this.counts.rebuilt++;
    else if (this.#service.store.checkpoints!.leaves > 0) this.counts.restored++;
  }

  #newDisk(image?: Image): FaultyDisk {
    const disk: FaultyDisk = new FaultyDisk(
      {
        beforeStep: () => {
          if (this.#stepsLeft-- > 0 || this.#lost !== null) return undefined;
          this.#lost = disk.state();
          disk.powerOff();
          this.#powerGone();
          return { kind: 'error', code: 'EIO' };
        },
      },
      image,
    );
    return disk;
  }

  begin(path: string | null, branch: string): RealTransaction {
    const transaction = this.#service.gate.begin(this.#caller(path, branch));
    const within = <T>(action: Action, run: (invocation: Invocation) => Promise<T>): Promise<T> =>
      this.#invoke(path, action, run, branch, transaction);
    return {
      write: (step) =>
        step.kind === 'put'
          ? within('ingest', async (invocation) => invocation.submit(await putOf(invocation, step, type)))
          : within('delete', (invocation) => invocation.submit({ kind: 'delete-rows', type, keys: step.keys })),
      rows: async (sql) =>
        rowsOf(await within('query', (invocation) => this.#service.planner.query(invocation, { sql }))) as RealRow[],
      now: () => (transaction.basis?.instant ?? this.clock.wallNs) + 1n,
      savepoint: (name) => transaction.savepoint(name),
      rollbackTo: (name) => transaction.rollbackTo(name),
      release: (name) => transaction.release(name),
      commit: () => within('ingest', (invocation) => invocation.commit({ sync: true })),
      end: () => transaction.end(),
    };
  }

  #invoke<T>(
    path: string | null,
    action: Action,
    run: (invocation: Invocation) => Promise<T>,
    branch = 'main',
    transaction?: Transaction,
  ): Promise<T> {
    const caller = this.#caller(path, branch);
    const request = { action, purpose: 'test', correlationId: 'model', ...(transaction && { transaction }) };
    return this.#service.gate.invoke(caller, request, run);
  }

  #caller(path: string | null, branch: string): Caller {
    return {
      principal: 'model',
      credential: 'token',
      tokenId: null,
      tenant: null,
      path,
      roles: [],
      attributes: {},
      purposes: [],
      door: 'model',
      branch,
      clientIp: null,
      sharedFrom: null,
    };
  }
}

function refusedWhole(error: unknown): Outcome {
  if (!(error instanceof ServiceError) || error.kind === 'storage' || error.kind === 'unavailable') throw error;
  return { ...nothing, errors: [{ index: -1, code: error.code, detail: error.message }] };
}

const nothing: Outcome = {
  kind: 'batch',
  accepted: 0,
  rejected: 1,
  errors: [],
  ids: [],
  idsTruncated: false,
  systemFrom: 0n,
  systemFromLast: 0n,
  changed: false,
  durability: 'synced',
};

async function putOf(
  invocation: Invocation,
  { rows: sent, how = {} }: Extract<Step, { kind: 'put' }>,
  of: string,
): Promise<PutRows> {
  const definition = invocation.snapshot().catalog.type(of)!;
  const { patch = false, replace = false, when } = how;
  const options = { definition, batchRows: 1e6, batchBytes: 1e9, tracksSent: patch };
  for await (const { rows, sent: cells } of readIngest(once(ndjson(sent)), options)) {
    const provenance = { source: 'model', method: 'put', confidence: 1, derivedFrom: null };
    return {
      kind: 'put-rows',
      type: of,
      rows,
      atomic: false,
      createType: false,
      provenance,
      ...(patch && { patch: cells! }),
      ...(replace && { replace }),
      ...(when !== undefined && { when }),
    };
  }
  throw new Error('a body with rows is a batch');
}

/** Fails where nothing was refused, or the store itself failed. */
export async function refusalOf(work: Promise<unknown>): Promise<ServiceError> {
  const error = await work.then(
    () => null,
    (failure: unknown) => failure,
  );
  if (error === null) throw new Error('was not refused');
  if (error instanceof ServiceError) return error;
  throw error;
}

function property(of: 'string' | 'integer' | 'number') {
  return { type: of, required: false, masked: false, indexed: false, subject: false, dims: 0 };
}

function propertiesOf(columns: Columns) {
  return Object.fromEntries(Object.entries(columns).map(([name, of]) => [name, property(of)]));
}

function ndjson(rows: readonly Sent[]): Uint8Array {
  const token = (cell: ModelCell): string => {
    if (typeof cell === 'bigint') return String(cell);
    return Object.is(cell, -0) ? '-0.0' : JSON.stringify(cell);
  };
  const lines = rows.map(({ key, validFrom, validTo, cells }) => {
    const all = { _pk: key, valid_from: validFrom, valid_to: validTo, ...cells };
    return `{${Object.entries(all)
      .map(([name, cell]) => `${JSON.stringify(name)}:${token(cell)}`)
      .join(',')}}\n`;
  });
  return Buffer.from(lines.join(''));
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

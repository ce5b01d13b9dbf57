/**
 * A whole store in one process, without doors: log on a memory disk, projections, gate, planner. Time stands still
 * unless a test moves it, so that every instant of a history can be written down.
 */
import { type Clock, type Random, systemClock, systemRandom } from '../src/clock.ts';
import { loadSettings } from '../src/config.ts';
import { assert, ServiceError } from '../src/errors.ts';
import type { Caller } from '../src/governance/caller.ts';
import type { Invocation } from '../src/governance/gate-contract.ts';
import type { Vector } from '../src/log/values/columns.ts';
import type { PropertyDefinition } from '../src/log/entries/entry.ts';
import { MemoryDisk } from '../src/log/disk/memory-disk.ts';
import { nodeDisk } from '../src/log/disk/node-disk.ts';
import { formatInstant, parseInstant } from '../src/log/values/timestamp.ts';
import type { Cell, ColumnType } from '../src/log/values/value.ts';
import { readIngest } from '../src/planner/formats/ingest-reader.ts';
import type { Answer, Executed } from '../src/planner/planner-contract.ts';
import type { Dialect, Literal } from '../src/planner/syntax/statement.ts';
import type { GivenMeaning, Outcome } from '../src/projections/command.ts';
import { Service, type ServiceDependencies } from '../src/service.ts';

/** Stands at an instant; durations pass only when `monotonicMs` is pushed. */
export class TestClock implements Clock {
  wallNs: bigint;
  steadyMs = 0;

  constructor(instant: string) {
    this.wallNs = parseInstant(instant);
  }

  set(instant: string): void {
    this.wallNs = parseInstant(instant);
  }

  now = (): bigint => this.wallNs;
  monotonicMs = (): number => this.steadyMs;
  sleep = async (_ms: number, signal?: AbortSignal): Promise<void> => {
    await new Promise<void>((resolve) => {
      if (signal?.aborted) resolve();
      else signal?.addEventListener('abort', () => resolve(), { once: true });
    });
  };
}

/** Xorshift: the same bytes in every run. */
export class TestRandom implements Random {
  #state: number;

  constructor(seed = 1) {
    this.#state = seed | 1;
  }

  fill<T extends Uint8Array>(target: T): T {
    for (let i = 0; i < target.length; i++) {
      this.#state ^= this.#state << 13;
      this.#state ^= this.#state >>> 17;
      this.#state ^= this.#state << 5;
      target[i] = this.#state & 0xff;
    }
    return target;
  }
}

export const analyst: Caller = {
  principal: 'analyst',
  credential: 'token',
  tokenId: null,
  tenant: null,
  path: null,
  roles: [],
  attributes: {},
  purposes: [],
  door: 'http',
  branch: 'main',
  clientIp: null,
  sharedFrom: null,
};

/** A row to write: JSON values, and bigint where a number could not hold the integer. */
/** A data directory with a log in it, as a first `serve` leaves one. */
export async function beginStore(directory: string): Promise<void> {
  const settings = loadSettings({ env: {}, overrides: { SERVICE_DATA_DIR: directory } });
  const parts = { settings, disk: nodeDisk, clock: systemClock, random: systemRandom, version: 'test' };
  await (await Service.open({ ...parts, say: () => undefined })).close();
}

export type InputRow = Readonly<Record<string, unknown>>;
export type Row = Readonly<Record<string, Cell>>;

export class TestStore {
  /** Of questions from now on. */
  dialect: Dialect = 'spec';
  readonly service: Service;
  readonly clock: TestClock;

  private constructor(service: Service, clock: TestClock) {
    this.service = service;
    this.clock = clock;
  }

  /** Settings by their environment names; purposes `analytics` and `test` are registered unless these say otherwise. */
  static async open(
    instant = '2024-01-01',
    settings: Readonly<Record<string, string>> = {},
    parts: Partial<ServiceDependencies> = {},
  ): Promise<TestStore> {
    const clock = new TestClock(instant);
    const env = { SERVICE_IN_MEMORY: 'true', SERVICE_QUERY_QUOTA: '100000000', ...settings };
    const service = await Service.open({
      settings: loadSettings({ env, workingDirectory: '/nowhere', homeDirectory: '/nowhere' }),
      disk: new MemoryDisk(),
      clock,
      random: new TestRandom(),
      version: 'test',
      say: () => undefined,
      sealIdleMs: 0,
      ...parts,
    });
    return new TestStore(service, clock);
  }

  close(): Promise<boolean> {
    return this.service.close();
  }

  async register(
    name: string,
    properties: Readonly<Record<string, ColumnType | PropertyDefinition>>,
    primaryKey: string | null = null,
    meaning: GivenMeaning = {},
  ): Promise<Outcome> {
    const plain = { required: false, masked: false, indexed: false, subject: false, dims: 0 };
    const defined = Object.fromEntries(
      Object.entries(properties).map(([property, type]) => [property, typeof type === 'string' ? { ...plain, type } : type]),
    );
    return this.invoke(analyst, 'schema', (invocation) =>
      invocation.submit({ kind: 'register-type', name, properties: defined, primaryKey, graphTriggers: [], meaning }),
    );
  }

  /** Writes rows as `/ingest` does, also within what `invoke` stands for; a rejected row fails the test. */
  async put(
    type: string,
    rows: readonly InputRow[],
    caller = analyst,
    invoke = (run: (invocation: Invocation) => Promise<Outcome>) => this.invoke(caller, 'ingest', run),
  ): Promise<Outcome> {
    const body = rows.map((row) => `${exactJson(row)}\n`).join('');
    return invoke(async (invocation) => {
      const definition = invocation.snapshot().catalog.type(type) ?? null;
      let outcome: Outcome | undefined;
      for await (const batch of readIngest(once(Buffer.from(body)), { definition, batchRows: 1e6, batchBytes: 1e9 })) {
        assert(batch.rejections.length === 0, JSON.stringify(batch.rejections));
        outcome = await invocation.submit({
          kind: 'put-rows',
          type,
          rows: batch.rows,
          atomic: true,
          createType: true,
          provenance: { source: 'harness', method: 'put', confidence: 1, derivedFrom: null },
        });
      }
      assert(outcome?.accepted === rows.length, JSON.stringify(outcome?.errors));
      return outcome;
    });
  }

  delete(type: string, keys: readonly string[], caller = analyst): Promise<Outcome> {
    return this.invoke(caller, 'delete', (invocation) => invocation.submit({ kind: 'delete-rows', type, keys }));
  }

  answer(sql: string, caller = analyst, purpose: string | null = null): Promise<Answer> {
    return this.invoke(
      caller,
      'query',
      (invocation) => this.service.planner.query(invocation, { sql, purpose, dialect: this.dialect }),
      purpose,
    );
  }

  /** Runs a statement that may write. */
  execute(sql: string, parameters: readonly Literal[] = [], caller = analyst): Promise<Executed> {
    return this.invoke(caller, 'query', (invocation) => this.service.planner.execute(invocation, { sql, parameters }));
  }

  async rows(sql: string, caller = analyst): Promise<Row[]> {
    return rowsOf(await this.answer(sql, caller));
  }

  /** Cells of the first column. */
  async column(sql: string, caller = analyst): Promise<Cell[]> {
    return (await this.rows(sql, caller)).map((row) => Object.values(row)[0] ?? null);
  }

  /** The error that a statement ends in; fails where it is answered. */
  async refusal(sql: string, caller = analyst, purpose: string | null = null): Promise<ServiceError> {
    try {
      await this.answer(sql, caller, purpose);
    } catch (error) {
      if (error instanceof ServiceError) return error;
      throw error;
    }
    throw new Error(`was answered: ${sql}`);
  }

  invoke<T>(
    caller: Caller,
    action: 'query' | 'search' | 'ingest' | 'delete' | 'remove' | 'schema' | 'audit',
    run: (invocation: Invocation) => Promise<T>,
    purpose: string | null = null,
  ): Promise<T> {
    return this.service.gate.invoke(caller, { action, purpose, correlationId: 'test' }, run);
  }
}

/** Integers and instants as bigint. Column names are unique in an answer. */
export function rowsOf(answer: Pick<Answer, 'columns' | 'batches'>): Row[] {
  return answer.batches.flatMap((batch) =>
    Array.from({ length: batch.count }, (_, i) => {
      const index = batch.selection === null ? batch.first + i : batch.selection[i]!;
      return Object.fromEntries(
        answer.columns.map(({ name, type }, column) => [name, cellAt(batch.columns[column]!, type, index)]),
      );
    }),
  );
}

function cellAt(vector: Vector, type: ColumnType, index: number): Cell {
  if (vector.kind === 'null' || vector.nulls?.[index] === 1) return null;
  switch (vector.kind) {
    case 'i32':
    case 'f64':
      return type === 'number' ? vector.values[index]! : BigInt(vector.values[index]!);
    case 'i64':
      return vector.values[index]!;
    case 'bool':
      return vector.values[index] === 1;
    case 'dict':
      return vector.dictionary.text(vector.values[index]!);
    case 'text':
      return Buffer.from(vector.heap.subarray(vector.offsets[index], vector.offsets[index + 1])).toString('utf8');
    case 'vec':
      return vector.values.slice(index * vector.dims, (index + 1) * vector.dims);
  }
}

/** A cell as text files of expected answers show it. */
export function shownCell(cell: Cell, type: ColumnType): string {
  if (cell === null) return 'NULL';
  if (type === 'timestamp' && typeof cell === 'bigint') return formatInstant(cell);
  if (typeof cell === 'number') return Object.is(cell, -0) ? '-0' : String(cell);
  return cell instanceof Float32Array ? `[${cell.join(', ')}]` : String(cell);
}

/** One object; integers that are bigint are written as bare tokens. */
export function exactJson(value: unknown): string {
  if (typeof value === 'bigint') return value.toString();
  if (Array.isArray(value)) return `[${value.map(exactJson).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  return `{${Object.entries(value)
    .filter(([, each]) => each !== undefined)
    .map(([key, each]) => `${JSON.stringify(key)}:${exactJson(each)}`)
    .join(',')}}`;
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

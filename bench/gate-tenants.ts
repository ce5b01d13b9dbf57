/**
 * A store of many tenants, each with types of its own, for `measures/tenants.ts`. Arguments: data directory, tenants, types of
 * each, rows of each type, and what to do:
 *
 * - `fill`: writes the store through the gate, closes it and prints {captureMs}: the turn that its checkpoint was captured in;
 * - `weigh`: opens it from its checkpoint, brings every column into memory and prints {seconds, bytes};
 * - `ask`: opens it, and answers each line of stdin with the times of the first tenant's questions, an `Asked`.
 *
 * Answers are lines of JSON.
 */
import { createInterface } from 'node:readline';
import type { Action, Invocation } from '../src/governance/gate-contract.ts';
import { VectorBuilder } from '../src/log/values/vector-builder.ts';
import { caller, openDurable, putInto } from './durable-store.ts';
import { scramble, versions } from './workload.ts';

export interface Filled {
  readonly captureMs: number;
}

/** Of a process that only opened a store. */
export interface Weighed {
  readonly seconds: number;
  /** Of the heap, of buffers beside it, and of column memory. */
  readonly bytes: number;
}

/**
 * ms of the process's CPU: an aggregate over one type, one over each of the types, and a read by key. By the clock a question that
 * takes less than a millisecond says more of what else the machine does.
 */
export interface Asked {
  readonly aggregate: number;
  readonly sweep: number;
  readonly read: number;
}

const aggregates = 10;
const reads = 100;
/** Commits under way at a time: they share an fsync. */
const writers = 16;
const batchRows = 1_000;

const [directory, ...rest] = process.argv.slice(2);
const [tenants, types, rows] = rest.map(Number) as [number, number, number];
const began = performance.now();
const service = await openDurable(directory!, { saved: true });
const openedAfter = (performance.now() - began) / 1000;

const tenantName = (tenant: number): string => `tenant${tenant}`;
const typeName = (type: number): string => `Type${type}`;

function invoke<T>(tenant: number, action: Action, run: (invocation: Invocation) => Promise<T>): Promise<T> {
  const who = { ...caller, path: tenantName(tenant) };
  return service.gate.invoke(who, { action, purpose: 'analytics', correlationId: service.ids.next() }, run);
}

switch (rest.at(-1)) {
  case 'fill':
    await fill();
    await service.close();
    console.log(JSON.stringify({ captureMs: service.store.checkpoints!.captureMs } satisfies Filled));
    break;
  case 'weigh':
    await weigh();
    break;
  default:
    for await (const _ of createInterface({ input: process.stdin })) console.log(JSON.stringify(await ask()));
}
process.exit(0);

async function fill(): Promise<void> {
  const plain = { required: false, masked: false, indexed: false, subject: false, dims: 0 };
  const properties = Object.fromEntries(
    Object.entries(versions.properties).map(([name, { type }]) => [name, { ...plain, type: type as 'string' }]),
  );
  const each: [tenant: number, type: number][] = [];
  for (let tenant = 0; tenant < tenants; tenant++) for (let type = 0; type < types; type++) each.push([tenant, type]);
  let next = 0;
  const write = async (): Promise<void> => {
    while (next < each.length) {
      const [tenant, type] = each[next++]!;
      const definition = { name: typeName(type), properties, primaryKey: 'id', graphTriggers: [] };
      await invoke(tenant, 'schema', (invocation) => invocation.submit({ kind: 'register-type', ...definition }));
      for (let first = 0; first < rows; first += batchRows) await put(tenant, type, first, Math.min(batchRows, rows - first));
    }
  };
  await Promise.all(Array.from({ length: writers }, write));
}

async function put(tenant: number, type: number, first: number, length: number): Promise<void> {
  const id = new VectorBuilder('string', length);
  const category = new VectorBuilder('string', length);
  const amount = new VectorBuilder('number', length);
  const quantity = new VectorBuilder('integer', length);
  const day = new VectorBuilder('integer', length);
  for (let i = first; i < first + length; i++) {
    id.appendString(keyOf(i));
    category.appendString(`c${versions.category(i)}`);
    amount.appendNumber(versions.amount(i));
    quantity.appendInteger(versions.quantity(i));
    day.appendInteger(versions.day(i));
  }
  const columns = [
    { name: 'id', type: 'string', vector: id.build() },
    { name: 'category', type: 'string', vector: category.build() },
    { name: 'amount', type: 'number', vector: amount.build() },
    { name: 'quantity', type: 'integer', vector: quantity.build() },
    { name: 'day', type: 'integer', vector: day.build() },
  ] as const;
  await invoke(tenant, 'ingest', (invocation) => invocation.submit(putInto(typeName(type), { length, columns })));
}

/** As long as any other: how many rows there are must not change what one takes. */
function keyOf(row: number): string {
  return `key${String(row).padStart(9, '0')}`;
}

async function weigh(): Promise<void> {
  const { rows: projection } = service.store.projections;
  await service.settle();
  for (let tenant = 0; tenant < tenants; tenant++) {
    for (let type = 0; type < types; type++) {
      const table = rows === 0 ? undefined : projection.table(tenantName(tenant), typeName(type))!;
      for (const segment of table?.segments ?? []) {
        void segment.keys;
        for (const name of segment.columnNames()) segment.column(name);
      }
    }
  }
  // What was given back is let go in turns of its own, and finalizers run between collections.
  for (let i = 0; i < 4; i++) {
    globalThis.gc!();
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  const { heapUsed, external } = process.memoryUsage();
  console.log(
    JSON.stringify({ seconds: openedAfter, bytes: heapUsed + external + projection.space.memory.used } satisfies Weighed),
  );
}

async function ask(): Promise<Asked> {
  const timed = async (count: number, sql: (n: number) => string): Promise<number> => {
    const statements = Array.from({ length: count }, (_, n) => sql(n));
    const began = process.cpuUsage();
    for (const statement of statements) {
      const { rowCount } = await invoke(0, 'query', (invocation) => service.planner.query(invocation, { sql: statement }));
      if (rowCount === 0) throw new Error(`no answer to ${statement}`);
    }
    const { user, system } = process.cpuUsage(began);
    return (user + system) / 1000 / count;
  };
  const group = (type: number): string =>
    `SELECT category, SUM(amount) AS total, COUNT(*) AS n FROM ${typeName(type)} WHERE quantity < 25 GROUP BY category`;
  return {
    aggregate: await timed(aggregates, () => group(types - 1)),
    sweep: (await timed(types, group)) * types,
    read: await timed(reads, (n) => `SELECT * FROM ${typeName(n % types)} WHERE _pk = '${keyOf(scramble(n) % rows)}'`),
  };
}

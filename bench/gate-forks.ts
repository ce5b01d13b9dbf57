/**
 * Durable forks through `gate.submit` in this process, for `measures/branch-fork.ts`, in a store that is filled to one size
 * after the other. Arguments: data directory, sizes in rows. Prints one line of JSON: [[rows, ms of each fork, ms of the
 * first key read on each], …].
 */
import type { Action, Invocation } from '../src/governance/gate-contract.ts';
import { VectorBuilder } from '../src/log/values/vector-builder.ts';
import { caller, openDurable, putInto } from './durable-store.ts';

const forks = 50;
const batchRows = 65_536;
const [directory, ...sizes] = process.argv.slice(2);

const service = await openDurable(directory!);

function invoke<T>(action: Action, run: (invocation: Invocation) => Promise<T>, branch = 'main'): Promise<T> {
  return service.gate.invoke({ ...caller, branch }, { action, purpose: 'analytics', correlationId: service.ids.next() }, run);
}

let filled = 0;
async function fillTo(rows: number): Promise<void> {
  while (filled < rows) {
    const length = Math.min(batchRows, rows - filled);
    const id = new VectorBuilder('string', length);
    const n = new VectorBuilder('integer', length);
    for (let i = 0; i < length; i++) {
      id.appendString(`k${filled + i}`);
      n.appendInteger(i);
    }
    const columns = [
      { name: 'id', type: 'string', vector: id.build() },
      { name: 'n', type: 'integer', vector: n.build() },
    ] as const;
    await invoke('ingest', (invocation) => invocation.submit(putInto('Item', { length, columns })));
    filled += length;
  }
}

const found: [rows: number, forkMs: number[], readMs: number[]][] = [];
await fillTo(1);
await measure(1);
for (const size of sizes.map(Number)) {
  await fillTo(size);
  found.push(await measure(size));
}
await service.close();
console.log(JSON.stringify(found));
process.exit(0);

/** Called once before anything counts: code and files are warm then. */
async function measure(size: number): Promise<[number, number[], number[]]> {
  const forkMs: number[] = [];
  const readMs: number[] = [];
  for (let i = 0; i < forks; i++) {
    const name = `b${size}-${i}`;
    let began = performance.now();
    await invoke('fork', (invocation) => invocation.submit({ kind: 'fork-branch', name, source: 'main', shares: 'everything' }));
    forkMs.push(performance.now() - began);
    began = performance.now();
    const sql = `SELECT n FROM Item WHERE _pk = 'k${size - 1}'`;
    const { rowCount } = await invoke('query', (invocation) => service.planner.query(invocation, { sql }), name);
    if (rowCount !== 1) throw new Error(`a branch of ${size} rows reads ${rowCount}`);
    readMs.push(performance.now() - began);
    await invoke('fork', (invocation) => invocation.submit({ kind: 'delete-branch', name }));
  }
  return [size, forkMs, readMs];
}

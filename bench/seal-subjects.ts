/**
 * Bodies of rows of about 200 bytes sealed by subject in this process and opened again, for `measures/subjects.ts`. Arguments:
 * rows of each run, runs. Prints one line of JSON: {sealed: {rows a subject: rows/s of each run}, opened: the same}, where 0 rows
 * a subject are rows of nobody. Sealing is all that happens between a placed entry and its frame, the root over the rows and
 * the payload's digest included, on one thread; keys of half the subjects are made by it.
 */
import type { EntryDraft, RowsBody } from '../src/log/entry.ts';
import { decodeEntry, decodeLeaf, EntrySealer, noPreviousHash } from '../src/log/entry-codec.ts';
import { openKeyring } from '../src/log/keys.ts';
import { MemoryDisk } from '../src/log/memory-disk.ts';
import { VectorBuilder } from '../src/log/vector-builder.ts';
import type { ColumnType } from '../src/log/value.ts';
import { orderCells, orderColumns } from './workload.ts';
import { systemRandom } from '../src/clock.ts';

const [rows, runs] = process.argv.slice(2).map(Number) as [number, number];
/** Of one body: what a stream of rows is written in. */
const batchRows = 3_072;
const types: readonly ColumnType[] = [
  'string',
  'string',
  'string',
  'string',
  'number',
  'integer',
  'integer',
  'boolean',
  'string',
];

const disk = new MemoryDisk();
const keyring = await openKeyring({ disk, random: systemRandom, directory: '/data', kek: new Uint8Array(32).fill(1) });
const check = { redacted: false, rows: false };
const sealed: Record<number, number[]> = {};
const opened: Record<number, number[]> = {};
for (let run = -1; run < runs; run++) {
  for (const each of [0, 1, 10, 1000]) {
    const drafts: EntryDraft[] = [];
    for (let first = 0; first < rows; first += batchRows)
      drafts.push(draft(first, Math.min(batchRows, rows - first), each, run >> 1));
    const sealer = new EntrySealer(keyring, systemRandom);
    let began = performance.now();
    const entries = drafts.map((each) => sealer.encode(each, { leaf: 0, position: 0, time: 1n }, noPreviousHash));
    const seconds = (performance.now() - began) / 1000;
    began = performance.now();
    for (const { leaf, payload } of entries) decodeEntry(decodeLeaf(leaf), payload, keyring, check);
    const again = (performance.now() - began) / 1000;
    if (run < 0) continue;
    (sealed[each] ??= []).push(rows / seconds);
    (opened[each] ??= []).push(rows / again);
  }
}
console.log(JSON.stringify({ sealed, opened }));

/** Rows of one subject lie as far from each other as they can in the body. */
function draft(first: number, count: number, each: number, generation: number): EntryDraft {
  const builders = types.map((type) => new VectorBuilder(type, count));
  const subjects = new VectorBuilder('string', count);
  const ofBody = Math.max(1, Math.ceil(count / Math.max(1, each)));
  for (let i = first; i < first + count; i++) {
    orderCells(i).forEach((cell, c) => builders[c]!.append(types[c] === 'integer' ? BigInt(cell) : cell));
    subjects.append(each === 0 ? null : `person-${generation}-${each}-${first}-${(i - first) % ofBody}`);
  }
  const columns = orderColumns.map((name, c) => ({ name, type: types[c]!, vector: builders[c]!.build() }));
  const unset = { kind: 'null' } as const;
  const body: RowsBody = {
    kind: 'rows',
    type: 'Purchase',
    ops: new Uint8Array(count),
    keys: {
      length: count,
      columns: [
        { ...columns[0]!, name: '_pk' },
        { name: 'valid_from', type: 'timestamp', vector: unset },
        { name: 'valid_to', type: 'timestamp', vector: unset },
      ],
    },
    closeOffsets: new Uint32Array(count + 1),
    closes: new Float64Array(0),
    cells: { length: count, columns: columns.slice(1) },
    provenance: { source: 'bench', method: 'ingest', confidence: 1, derivedFrom: null },
    subjects: subjects.build(),
  };
  const context = {
    branch: 'main',
    tenant: 'acme',
    path: 'acme/eu',
    principal: 'bench',
    door: 'http',
    purpose: null,
    correlationId: 'c-1',
    policyDigest: '',
  };
  return { context, body };
}

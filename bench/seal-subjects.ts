/**
 * Bodies of rows of about 200 bytes sealed by subject in this process and opened again, for `measures/subjects.ts`. Argument:
 * runs. Prints one line of JSON: rows/s of each run by rows of one subject in a body, 0 for rows of nobody: `sealed` under keys
 * that are there, `made` of subjects that are new, `opened`. Sealing is all that happens between an append and its frame, the
 * root over the rows and the payload's digest included, on one thread.
 */
import { systemRandom } from '../src/clock.ts';
import type { EntryDraft, RowsBody } from '../src/log/entries/entry.ts';
import { decodeEntry, decodeLeaf, EntrySealer, noPreviousHash } from '../src/log/entries/entry-codec.ts';
import { openKeyring } from '../src/log/keys/keys.ts';
import { MemoryDisk } from '../src/log/disk/memory-disk.ts';
import { VectorBuilder } from '../src/log/values/vector-builder.ts';
import type { ColumnType } from '../src/log/values/value.ts';
import { orderCells, orderColumns } from './workload.ts';

const runs = Number(process.argv[2]);
/** Of one body: what a stream of rows is written in. */
const batchRows = 3_072;
const rows = 4 * batchRows;
/** Over the same rows and subjects. */
const passes = 4;
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
const found: Record<'sealed' | 'made' | 'opened', Record<number, number[]>> = { sealed: {}, made: {}, opened: {} };
const sealer = new EntrySealer(keyring, systemRandom);
for (let run = -1; run < runs; run++) {
  for (const each of [0, 1, 10, 1000]) {
    const drafts = Array.from({ length: rows / batchRows }, (_, i) => draft(i * batchRows, batchRows, each, run));
    for (let pass = 0; pass < passes; pass++) {
      const began = performance.now();
      const entries = drafts.map((given) => sealer.encode(given, { leaf: 0, position: 0, time: 1n }, noPreviousHash));
      const sealedAt = performance.now();
      for (const { leaf, payload } of entries) decodeEntry(decodeLeaf(leaf), payload, keyring, check);
      const openedAt = performance.now();
      // What runs first has no code that is compiled yet.
      if (run < 0) continue;
      (found[pass === 0 ? 'made' : 'sealed'][each] ??= []).push((rows * 1000) / (sealedAt - began));
      (found.opened[each] ??= []).push((rows * 1000) / (openedAt - sealedAt));
    }
  }
}
console.log(JSON.stringify(found));

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

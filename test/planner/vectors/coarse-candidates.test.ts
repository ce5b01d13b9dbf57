/** Vectors in bytes never leave out a row that may be among the best, and leave out nearly all others. */
import { expect, test } from 'vitest';
import { ColumnMemory } from '../../../src/log/values/column-memory.ts';
import { MemoryDisk } from '../../../src/log/disk/memory-disk.ts';
import { inlineWorker } from '../../../src/log/threads/workers.ts';
import { Candidates } from '../../../src/planner/vectors/coarse-candidates.ts';
import { Direction } from '../../../src/planner/expressions/cosine.ts';
import {
  CoarseVectors,
  coarseVectorsJob,
  type VectorCells,
} from '../../../src/projections/rows/indexes/vectors/coarse-vectors.ts';
import { rowsOf, TestStore } from '../../harness.ts';
import { Draw } from '../document-world.ts';

const memory = new ColumnMemory({ memoryBytes: 1 << 24 });

function coarseOf(cells: VectorCells): CoarseVectors {
  const steps = coarseVectorsJob.steps(cells);
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  const bytes = memory.allocate(step.value.length)!;
  bytes.set(step.value);
  return new CoarseVectors(cells, bytes);
}

function candidatesOf(coarse: CoarseVectors, direction: Direction, least: number, selection: Int32Array | null): Set<number> {
  const candidates = new Candidates(direction, coarse.width);
  const into = new Int32Array(coarse.rows);
  const count = selection?.length ?? coarse.rows;
  const kept = candidates.find(coarse, { columns: [], selection, first: 0, count }, least, into)!;
  candidates.close();
  return new Set(into.subarray(0, kept).map((place) => (selection === null ? place : selection[place]!)));
}

test.each([1, 3, 16, 17, 128, 1_536])('%s dimensions: no row that reaches the least is left out', (dims) => {
  const draw = new Draw(dims);
  const rows = 403;
  const number = (): number => draw.upTo(2_001) / 1_000 - 1;
  const values = new Float32Array(rows * dims);
  for (let row = 0; row < rows; row++) {
    const scale = draw.of([1, 1, 1, 1e-30, 1e30, 1e-44]);
    // Some with one component that outweighs all others, some with few, some of zeros.
    const kind = draw.upTo(12);
    for (let k = 0; k < dims; k++) {
      const x = kind === 0 ? 0 : kind === 1 ? (k === 0 ? 1 : number() / 1_000) : kind === 2 && k % 7 !== 0 ? 0 : number();
      values[row * dims + k] = x * scale;
    }
  }
  values[5 * dims] = Number.POSITIVE_INFINITY;
  const coarse = coarseOf({ rows, dims, values, absent: null });
  const every = Int32Array.from({ length: rows }, (_, row) => row);
  for (let asked = 0; asked < 12; asked++) {
    const made = Float32Array.from({ length: dims }, (_, k) =>
      asked === 1 && k > 0 ? 1e-9 : number() * (asked % 2 ? 1e-25 : 1e20),
    );
    if (made.every((x) => x === 0)) made[0] = 1;
    const direction = new Direction(asked === 2 ? values.slice(7 * dims, 8 * dims).map((x, k) => x || +(k === 0)) : made);
    const scores = Array.from(every, (row) => direction.cosine(values, row * dims));
    const least = scores.filter((score) => !Number.isNaN(score)).sort((a, b) => b - a)[draw.upTo(20)]!;
    const some = every.filter(() => draw.upTo(3) > 0);
    for (const selection of [null, some]) {
      const found = candidatesOf(coarse, direction, least, selection);
      for (const row of selection ?? every) if (!(scores[row]! < least)) expect(found, `${row} for ${asked}`).toContain(row);
    }
  }
});

test('rows that are not alike are left out', () => {
  const [rows, dims] = [4_000, 96];
  const draw = new Draw(5);
  const values = Float32Array.from({ length: rows * dims }, () => draw.upTo(1_001) / 500 - 1);
  const direction = new Direction(Float32Array.from({ length: dims }, () => draw.upTo(1_001) / 500 - 1));
  const scores = Array.from({ length: rows }, (_, row) => direction.cosine(values, row * dims));
  const least = [...scores].sort((a, b) => b - a)[9]!;
  const found = candidatesOf(coarseOf({ rows, dims, values, absent: null }), direction, least, null);
  expect(found.size).toBeGreaterThanOrEqual(10);
  expect(found.size).toBeLessThan(40);
});

test('a sealed segment has its vectors in bytes once they were asked for, the same answers, and none of what was erased', async () => {
  const dims = 24;
  const draw = new Draw(11);
  const parts = { derived: { machineBytes: 1 << 30, segmentRows: 700 }, startKept: inlineWorker };
  const settings = { SERVICE_PURPOSES: 'test', SERVICE_IN_MEMORY: 'false', SERVICE_DATA_DIR: '/data' };
  const store = await TestStore.open('2024-01-01', settings, { ...parts, disk: new MemoryDisk() });
  const plain = { required: false, masked: false, indexed: false, subject: false, dims: 0 } as const;
  const who = { ...plain, type: 'string', subject: true } as const;
  const embedding = { ...plain, type: 'vector', dims } as const;
  await store.register('Doc', { id: 'string', who, _emb_x: embedding }, 'id');
  const vector = (): number[] => Array.from({ length: dims }, () => draw.upTo(201) / 100 - 1);
  await store.put(
    'Doc',
    Array.from({ length: 3_300 }, (_, i) => ({ id: `d${i}`, who: `s${i % 5}`, _emb_x: i % 50 === 49 ? null : vector() })),
  );
  store.clock.set('2024-01-02');
  await store.delete(
    'Doc',
    Array.from({ length: 90 }, (_, i) => `d${i * 31}`),
  );
  const sought = [vector(), vector(), vector()];
  const answers = async (): Promise<unknown[]> => {
    const told: unknown[] = [];
    for (const sql of [
      ...sought.map((each) => `SELECT * FROM SIMILAR('Doc', _emb_x, ARRAY[${each.join(', ')}]) LIMIT 10`),
      ...sought.map((each) => `SELECT * FROM SIMILAR('Doc', _emb_x, ARRAY[${each.join(', ')}], THRESHOLD => 0.4) LIMIT 10`),
      ...sought.map((each) => `SELECT * FROM SIMILAR('Doc', _emb_x, ARRAY[${each.join(', ')}]) WHERE who > 's1' LIMIT 10`),
      "SELECT * FROM SIMILAR('Doc', _emb_x, ARRAY[" + sought[0]!.join(', ') + "]) AS OF '2024-01-01T12:00:00Z' LIMIT 10",
      "SIMILAR TO Doc WHERE id = 'd2777' LIMIT 10",
    ]) {
      const answer = await store.answer(sql);
      told.push([answer.estimatedTotalHits, ...rowsOf(answer).map((row) => [row['id'], row['_score']])]);
    }
    return told;
  };
  const { indexes } = store.service.store.projections.rows;
  const settled = async (bytes: number): Promise<void> => {
    for (let looks = 0; indexes.bytes < bytes && looks < 5_000; looks++) await new Promise((resolve) => setTimeout(resolve, 1));
    expect(indexes.bytes).toBe(bytes);
  };
  const bytesOf = (rows: number): number => rows * (8 + 32);
  const first = await answers();
  await settled(4 * bytesOf(700));
  expect(await answers()).toEqual(first);
  await store.rows("ERASE SUBJECT 's1' REASON 'asked' CERTIFY");
  expect([indexes.bytes, indexes.stale]).toEqual([0, 0]);
  const after = await answers();
  await settled(4 * bytesOf(700));
  expect(await answers()).toEqual(after);
  expect(after).not.toEqual(first);
  expect(indexes.stale).toBe(0);
  await store.close();
});

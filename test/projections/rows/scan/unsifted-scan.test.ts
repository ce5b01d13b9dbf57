/**
 * A scan whose reader tells visible versions himself: what leaves, sifted by what the block says, is what a common scan
 * gives, at any basis, on any branch; rows of several paths never leave unsifted.
 */
import { beforeAll, expect, test } from 'vitest';
import type { RowBlock, ScanRequest } from '../../../../src/projections/access-paths.ts';
import { cellAt } from '../../../../src/log/values/vector-builder.ts';
import { everything, Store } from '../../store.ts';

const columns = { id: 'string', n: 'integer', s: 'string' } as const;
const names = ['n', 's'];
const store = Store.of('acme');
let early: number;
let late: bigint;

const rows = (from: number, to: number, turn: number) =>
  Array.from({ length: to - from }, (_, i) => ({
    id: `k${from + i}`,
    n: BigInt((from + i) * 10 + turn),
    s: `s${(from + i) % 50}`,
  }));

beforeAll(() => {
  const path = 'acme';
  const put = (from: number, to: number, turn: number, branch = 'main', of = path): void =>
    void store.put('T', columns, rows(from, to, turn), { path: of, branch });
  put(0, 66_000, 0);
  store.run({ kind: 'fork-branch', name: 'dev', source: 'main', shares: 'everything' });
  put(10, 3_000, 1, 'dev');
  early = store.position;
  put(100, 5_000, 2);
  late = store.time;
  put(200, 9_000, 3);
  store.run({ kind: 'delete-rows', type: 'T', keys: ['k7', 'k60000'] }, path);
  store.run({ kind: 'remove-rows', type: 'T', keys: ['k64000', 'k64001'] }, path);
  put(66_000, 140_000, 4);
  // From here on a segment has rows of two paths.
  put(0, 90_000, 5, 'main', 'acme/eu');
});

/** Rows as text, blocks sifted by what they say of themselves. */
function read(
  request: Partial<ScanRequest>,
  basis?: number,
  branch?: string,
): { rows: string[]; unsifted: RowBlock[]; scanned: number } {
  const blocks = store.blocks({ type: 'T', columns: names, time: everything, ...request }, basis, branch);
  const found: string[] = [];
  for (const block of blocks) {
    const { live, closings, closing } = block.sift ?? { live: null, closings: null, closing: 0 };
    for (let k = 0; k < block.count; k++) {
      const row = block.selection ? block.selection[k]! : block.first + k;
      if (live && ((live[row >>> 5]! >>> (row & 31)) & 1) === 0) continue;
      if (closings && closings[row]! < closing) continue;
      found.push(`${cellAt(block.columns[0]!, 'integer', row)} ${cellAt(block.columns[1]!, 'string', row)}`);
    }
  }
  const scanned = blocks.reduce((sum, block) => sum + block.scanned, 0);
  return { rows: found, unsifted: blocks.filter(({ sift }) => sift), scanned };
}

const instants = ['all', 'now', 'late'] as const;

test.each(instants)('on main and on a branch, known %s', (instant) => {
  const system = instant === 'all' ? 'all' : instant === 'now' ? store.time : late;
  for (const branch of ['main', 'dev']) {
    for (const basis of [undefined, early]) {
      for (const unsiftedRows of [65_536, 8_192, 100]) {
        const time = { system, valid: 'all' } as const;
        const sifted = read({ time }, basis, branch);
        const unsifted = read({ time, unsiftedRows }, basis, branch);
        expect(unsifted.rows.length).toBe(sifted.rows.length);
        expect(unsifted.rows).toEqual(sifted.rows);
        expect(sifted.unsifted).toEqual([]);
      }
    }
  }
});

test('a segment of one path leaves whole, unsifted; others do not, nor system columns', () => {
  const time = { system: late, valid: 'all' } as const;
  const { unsifted } = read({ time, unsiftedRows: 65_536 });
  expect(unsifted[0]!.count).toBe(65_536);
  const all = read({ time: everything, unsiftedRows: 65_536 });
  expect(all.unsifted.every(({ path }) => path >= 0)).toBe(true);
  // The segment in which the other path begins is read in the common way.
  const unsiftedRows = all.unsifted.reduce((sum, { count }) => sum + count, 0);
  expect(all.rows.length - unsiftedRows).toBeGreaterThan(50_000);
  expect(read({ time, unsiftedRows: 65_536, columns: ['n', 's', 'system_from'] }).unsifted).toEqual([]);
});

test('as many versions count as looked at', () => {
  for (const system of [store.time, 'all'] as const) {
    const time = { system, valid: 'all' } as const;
    expect(read({ time, unsiftedRows: 65_536 }).scanned).toBe(read({ time }).scanned);
  }
});

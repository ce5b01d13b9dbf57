/** Orders of closings against comparing every closing: the same blocks, whether there is room for orders, for some, or for none. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ColumnMemory } from '../../../../src/log/values/column-memory.ts';
import type { RowBlock, ScanRequest } from '../../../../src/projections/access-paths.ts';
import { Timeline } from '../../../../src/log/values/timeline.ts';
import { ClosingOrders } from '../../../../src/projections/rows/tables/closing-order.ts';
import { ColumnSpace } from '../../../../src/projections/rows/cells/column-extents.ts';
import { OPEN } from '../../../../src/projections/rows/segments/closings.ts';
import { Segment } from '../../../../src/projections/rows/segments/segment.ts';
import { freshProjections, Store } from '../../store.ts';

const timeline = new Timeline();

const ROWS = 128;
const columns = { id: 'string', n: 'integer' } as const;

const span = fc.record({ from: fc.integer({ min: 0, max: 30 }), count: fc.integer({ min: 1, max: 30 }) });
const step = fc.record({
  kind: fc.constantFrom('put' as const, 'put' as const, 'put' as const, 'put' as const, 'end' as const, 'remove' as const),
  span,
  branch: fc.constantFrom('main', 'main', 'dev'),
  path: fc.constantFrom('acme', 'acme', 'acme', 'acme/eu'),
});
const history = fc.array(step, { minLength: 20, maxLength: 60 });

function play(store: Store, steps: typeof history extends fc.Arbitrary<infer T> ? T : never, fork = true): void {
  let n = 0;
  const put = (from: number, count: number, path: string, branch: string): void => {
    const rows = Array.from({ length: count }, (_, i) => ({ id: `k${from + i}`, n: BigInt(n++) }));
    store.put('T', columns, rows, { path, branch });
  };
  // Whole segments of the same few keys, so that most of what rests is superseded.
  for (let round = 0; round < 12; round++) put(0, 40, 'acme', 'main');
  if (fork) store.run({ kind: 'fork-branch', name: 'dev', source: 'main', shares: 'everything' });
  for (const { kind, span: of, branch, path } of steps) {
    const keys = Array.from({ length: Math.min(3, of.count) }, (_, i) => `k${of.from + i}`);
    if (kind === 'put') put(of.from, of.count, path, branch);
    else if (kind === 'end') store.run({ kind: 'delete-rows', type: 'T', keys }, path, branch);
    else if (of.from === 0) store.run({ kind: 'remove-rows', type: 'T', keys }, path, branch);
  }
}

function storeWith(temporalIndexMax: number): Store {
  return Store.of('acme', freshProjections(undefined, { settings: { temporalIndexMax, segmentRows: ROWS } }));
}

/** Everything that a block says, rows and all. */
function told(store: Store, blocks: readonly RowBlock[], names: readonly string[], branch: string): unknown[] {
  // No row: a turn for others.
  return blocks
    .filter(({ scanned }) => scanned > 0)
    .map((block) => {
      const { selection, first, count, scanned, path, sift } = block;
      const rows = store.rowsOf('T', names, block, branch).map((row) => ({ ...row }));
      if (!sift) return { at: selection ? [...selection.subarray(0, count)] : first, count, scanned, path, rows };
      const shown = rows.filter((_, k) => {
        const row = first + k;
        if (sift.live && ((sift.live[row >>> 5]! >>> (row & 31)) & 1) === 0) return false;
        return !sift.closings || sift.closings[row]! >= sift.closing;
      });
      return { scanned, path, rows: shown };
    });
}

describe('orders of closings', () => {
  test('any read at any instant gives the same blocks with orders, with room for some of them, and without', () => {
    fc.assert(
      fc.property(
        history,
        fc.array(
          fc.record({
            system: fc.integer({ min: 0, max: 1000 }),
            basis: fc.integer({ min: 900, max: 1000 }),
            branch: fc.constantFrom('main', 'dev'),
            blockRows: fc.constantFrom(7, 50, 8192),
            all: fc.boolean(),
          }),
          { minLength: 4, maxLength: 8 },
        ),
        history,
        (before, reads, after) => {
          const stores = [storeWith(0), storeWith(4_000_000), storeWith(300)];
          for (const more of [before, after]) {
            for (const store of stores) play(store, more, more === before);
            for (const { system, basis, branch, blockRows, all } of reads) {
              const names = ['id', 'n', 'system_to'];
              const answers = stores.map((store) => {
                const at = Math.floor((store.position * basis) / 1000);
                const instant = store.projections.timeline.timeOf(Math.floor(((store.position - 1) * system) / 1000));
                const request: ScanRequest = {
                  type: 'T',
                  columns: names,
                  time: { system: instant, valid: 'all' },
                  blockRows,
                  ...(all ? {} : { paths: [1] }),
                };
                return told(store, store.blocks(request, at, branch), names, branch);
              });
              expect(answers[1]).toEqual(answers[0]);
              expect(answers[2]).toEqual(answers[0]);
            }
          }
        },
      ),
      { numRuns: 20, endOnFailure: true },
    );
  });

  test('what a reader would sift himself leaves sifted, with as much scanned', () => {
    const [plain, ordered] = [storeWith(0), storeWith(4_000_000)];
    for (const store of [plain!, ordered!]) play(store, []);
    const middle = plain!.position - 60;
    for (const unsiftedRows of [65_536, 50]) {
      let left = 0;
      for (let position = 0; position < middle; position += 13) {
        const read = (store: Store): { rows: unknown[]; scanned: number; sifted: number } => {
          const time = { system: store.projections.timeline.timeOf(position), valid: 'all' } as const;
          const blocks = store.blocks({ type: 'T', columns: ['n'], time, unsiftedRows });
          const rows = told(store, blocks, ['n'], 'main').flatMap((block) => (block as { rows: unknown[] }).rows);
          const scanned = blocks.reduce((sum, block) => sum + block.scanned, 0);
          return { rows, scanned, sifted: blocks.filter(({ sift }) => sift?.closings).length };
        };
        const [expected, got] = [read(plain!), read(ordered!)];
        expect(got.rows).toEqual(expected.rows);
        expect(got.scanned).toBe(expected.scanned);
        left += expected.sifted - got.sifted;
      }
      expect(left).toBeGreaterThan(0);
    }
  });

  const closings = fc.array(fc.record({ row: fc.nat(1999), gap: fc.nat(9) }), { minLength: 1500, maxLength: 3000 });

  test.each([
    ['narrow', 2100, 1, 1],
    ['far apart', 10_000_000, 10, 70_000],
    ['in doubles', 2 ** 31, 2 ** 20, 1],
  ])('the rows that are open at a bound, whatever was closed since the order was made: %s', (_, first, scale, spread) => {
    fc.assert(
      fc.property(closings, fc.array(fc.nat(2000), { minLength: 1, maxLength: 3 }), (actions, removed) => {
        const segment = new Segment(0, 0, new ColumnSpace(new ColumnMemory(), () => undefined));
        segment.extend(0, 2000, 1, 0);
        // All but a few are closed, the latest far behind the others.
        for (let row = 0; row < 1900; row++) segment.close(row, 2000 + ((row * 7919) % 100) * spread);
        segment.seal();
        const orders = new ClosingOrders(10_000);
        let position = first;
        let used = 0;
        const check = (bound: number): void => {
          const expected = [];
          for (let row = 100; row < 1950; row++) if (segment.closingOf(row) >= bound) expected.push(row);
          const found = orders.visible(
            segment,
            segment.closings instanceof Float64Array ? bound : Math.min(bound, OPEN),
            100,
            1950,
            true,
          );
          if (found) used++;
          if (found) expect([...found]).toEqual(expected);
        };
        for (const [n, { row, gap }] of actions.entries()) {
          position += gap * scale;
          if (segment.isOpen(row)) segment.close(row, position);
          else if (n % 500 === 499 && removed.includes(row % 7) && !segment.isRemoved(row)) segment.remove([row], timeline);
          if (n % 250 === 0)
            for (const bound of [2000 + 50 * spread, 2000 + 99 * spread, 2000 + 97 * spread, position - 40 * scale, position])
              check(bound);
        }
        expect(used).toBeGreaterThan(0);
      }),
      { numRuns: 20, endOnFailure: true },
    );
  });

  test('orders are made once, up to so many entries, and anew after a removal', () => {
    const space = new ColumnSpace(new ColumnMemory(), () => undefined);
    const made = (): Segment => {
      const segment = new Segment(0, 0, space);
      segment.extend(0, 1000, 1, 0);
      for (let row = 0; row < 1000; row++) segment.close(row, 1000 + row);
      segment.seal();
      return segment;
    };
    const [one, two, three] = [made(), made(), made()];
    const orders = new ClosingOrders(2000);
    expect(orders.visible(one, 1995, 0, 1000, false)).toBeNull();
    expect([...orders.visible(one, 1995, 0, 1000, true)!]).toEqual([995, 996, 997, 998, 999]);
    expect([...orders.visible(one, 1998, 0, 999, false)!]).toEqual([998]);
    expect(orders.visible(two, 2001, 0, 1000, true)).toHaveLength(0);
    expect(orders.made).toBe(2);
    expect(orders.visible(three, 1995, 0, 1000, true)).toBeNull();
    one.remove([996], timeline);
    expect([...orders.visible(one, 1995, 0, 1000, true)!]).toEqual([995, 997, 998, 999]);
    expect(orders.made).toBe(3);
    // Most were open then: nothing to be gained.
    expect(orders.visible(two, 1200, 0, 1000, true)).toBeNull();
    expect(new ClosingOrders(2000).visible(three, 1200, 0, 1000, true)).toBeNull();
  });
});

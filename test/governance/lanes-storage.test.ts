/** A storage that ignores what it was told still lets nothing out; one that has nothing to show gives others their turn. */
import { expect, test } from 'vitest';
import type { RowBlock, RowReader, ScanRequest } from '../../src/projections/access-paths.ts';
import { everything } from '../projections/store.ts';
import { callerOf, LaneWorld, rowsOf } from './lanes-world.ts';

const columns = { _pk: 'string', n: 'integer' } as const;
const paths = ['acme', 'globex', 'acme/eu', null, 'acme-evil'];

/** Rows of all organisations, in turn or one after the other. */
function filled(mixed: boolean): LaneWorld {
  const world = new LaneWorld({ segmentRows: 16 });
  const put = (path: string | null, keys: readonly string[]): void =>
    void world.store.put(
      'Person',
      columns,
      keys.map((_pk, i) => ({ _pk, n: BigInt(i) })),
      { path },
    );
  if (mixed) for (let i = 0; i < 12; i++) for (const path of paths) put(path, [`${path ?? 'nobody'} ${i}`]);
  else
    for (const path of paths)
      put(
        path,
        Array.from({ length: 16 }, (_, i) => `${path ?? 'nobody'} ${i}`),
      );
  return world;
}

/** Scans every path, whatever it is asked for. */
const heedless = (rows: RowReader): RowReader => ({
  scan: (request: ScanRequest) => {
    const asked: { -readonly [K in keyof ScanRequest]: ScanRequest[K] } = { ...request };
    delete asked.paths;
    return rows.scan(asked);
  },
  estimate: (request) => rows.estimate(request),
  provenanceOf: (type, systemFrom) => rows.provenanceOf(type, systemFrom),
  pathCodes: () => rows.pathCodes(),
});

test.each([true, false])('paths that no lane covers stay where they are (mixed: %s)', (mixed) => {
  for (const [policy, expected] of [
    ['permit(principal, action, resource);', () => true],
    ['permit(principal, action, resource) when { resource.n < 3 };', (n: unknown) => (n as bigint) < 3n],
  ] as const) {
    const world = filled(mixed);
    world.install(policy);
    for (const path of ['acme', 'acme/eu', 'globex', null]) {
      const caller = callerOf(path);
      const request = { type: 'Person', columns: ['_pk', 'n', 'namespace_path'], time: everything } as const;
      const snapshot = world.snapshot(caller, { storage: heedless });
      const found: unknown[] = [];
      const blocks = snapshot.rows.scan(request);
      for (let step = blocks.next(); step.done !== true; step = blocks.next()) {
        found.push(...rowsOf(step.value, request.columns, snapshot.catalog.type('Person')!));
      }
      const own = world.expected(caller, request);
      expect(found).toEqual(own);
      expect(own.length).toBeGreaterThan(0);
      expect(own.every(({ n }) => expected(n))).toBe(true);
    }
  }
});

test('many blocks of which nothing is visible are not one turn, and do not tell how many they were', () => {
  const world = new LaneWorld({ segmentRows: 8 });
  world.store.put(
    'Person',
    columns,
    Array.from({ length: 800 }, (_, i) => ({ _pk: `k${i}`, n: 1n })),
    { path: 'acme' },
  );
  world.install('permit(principal, action, resource) when { resource.n > 1 };');
  const blocks = world.snapshot(callerOf('acme')).rows.scan({ type: 'Person', columns: ['n'], time: everything });
  const seen: RowBlock[] = [];
  for (let step = blocks.next(); step.done !== true; step = blocks.next()) seen.push(step.value);
  expect(seen.length).toBeGreaterThan(3);
  expect(seen.every(({ count, scanned, columns: vectors }) => count === 0 && scanned === 0 && vectors.length === 1)).toBe(true);
});

test('blocks whose reader tells visible rows himself say which rows a condition lets through', () => {
  const world = new LaneWorld({ segmentRows: 64 });
  const instants: bigint[] = [];
  for (let turn = 0; turn < 9; turn++) {
    const rows = Array.from({ length: 25 }, (_, i) => ({
      _pk: `k${turn < 6 ? turn * 25 + i : i * turn}`,
      n: BigInt((i * 7 + turn) % 13),
    }));
    world.store.put('Person', columns, rows, { path: 'acme' });
    instants.push(world.store.time - 1n);
  }
  const masked = '@mask("bucket:10") forbid(principal, action == Action::"readCell", resource == Column::"Person.n")';
  let sifted = 0;
  for (const mask of ['', ' when { resource.n > 9 };', ';']) {
    world.install('permit(principal, action, resource) when { resource.n < 11 };', ...(mask === '' ? [] : [masked + mask]));
    for (const unsiftedRows of [7, 32, 64]) {
      for (const after of [undefined, ...instants]) {
        for (const system of ['all', 2n ** 62n, instants[6]!] as const) {
          const request = {
            columns: ['n'],
            unsiftedRows,
            time: { system, valid: 'all' },
            ...(after === undefined ? {} : { after }),
          } as const;
          const read = world.read(callerOf('acme'), request);
          expect(read.rows).toEqual(world.expected(callerOf('acme'), request));
          sifted += read.sifted;
        }
      }
    }
  }
  expect(sifted).toBeGreaterThan(100);
});

test('further columns do not leave with a block, and none can ask for them, or for the path', () => {
  const world = filled(true);
  world.install('permit(principal, action, resource);');
  const { rows } = world.snapshot(callerOf('acme'));
  const request = { type: 'Person', columns: ['n'], time: everything } as const;
  const step = rows.scan(request).next();
  expect(Object.keys(step.value!)).not.toContain('further');
  expect(step.value!.columns).toHaveLength(1);
  expect(() => rows.scan({ ...request, further: true })).toThrow('the gate’s own');
  expect(() => rows.scan({ ...request, columns: ['#path'] })).toThrow('the gate’s own');
  expect(() => rows.scan({ ...request, paths: [1] })).toThrow('only the gate');
  expect(rows.pathCodes().size).toBe(0);
});

test('stopping early stops the storage’s iterator', () => {
  const world = filled(true);
  world.install('permit(principal, action, resource) when { resource.n == 0 };');
  const blocks = world.snapshot(callerOf('acme')).rows.scan({ type: 'Person', columns: ['n'], time: everything, blockRows: 1 });
  blocks.next();
  blocks.return?.();
  expect(blocks.next().done).toBe(true);
});

/** What a caller sees: their organisation path and below it, segment by segment; without a path, rows without one. */
import { tenantOf } from '../../src/log/values/value.ts';
import { describe, expect, test } from 'vitest';
import fc from 'fast-check';
import { AssertionError } from '../../src/errors.ts';
import { covers, sees } from '../../src/governance/caller.ts';
import { ScopeCache } from '../../src/governance/reading/path-scopes.ts';
import { checkOrganization, parseOrganization, pathInForce } from '../../src/governance/tenancy/organization-path.ts';
import { pathColumn, type ScanRequest } from '../../src/projections/access-paths.ts';
import { caller, keysOf, refusalOf, World } from './world.ts';

const paths = [null, 'acme', 'acme/eu', 'acme/eu/fr', 'acme/us', 'acme-evil', 'acme-evil/eu', 'acm', 'globex', 'Acme'];

/** One row in every path, keyed by the path, several rounds so that blocks mix paths. */
function filled(): World {
  const world = new World();
  for (let round = 0; round < 3; round++) for (const path of paths) world.state.put(path, path ?? 'nobody');
  for (let i = 0; i < 6; i++) world.state.put('acme/eu', 'acme/eu');
  return world;
}

const visible: readonly [string | null, readonly string[]][] = [
  [null, ['nobody']],
  ['acme', ['acme', 'acme/eu', 'acme/eu/fr', 'acme/us']],
  ['acme/eu', ['acme/eu', 'acme/eu/fr']],
  ['acme/eu/fr', ['acme/eu/fr']],
  ['acme/us', ['acme/us']],
  ['acme-evil', ['acme-evil', 'acme-evil/eu']],
  ['acm', ['acm']],
  ['acme/e', []],
  ['nowhere', []],
];

describe.each([false, true])('scans of a storage that ignores the scope: %s', (ignoresPaths) => {
  test.each(visible)('under %s one sees %j', async (path, expected) => {
    const world = filled();
    world.state.ignoresPaths = ignoresPaths;
    const keys = await world.seen(caller({ path }));
    expect([...new Set(keys)].sort()).toEqual([...expected].sort());
    const rows = world.state.rows.filter((row) => expected.includes(row.key));
    expect(keys).toEqual(rows.map((row) => row.key));
  });

  test('whatever paths there are and however they lie in blocks, the rows seen are those covered, in order', async () => {
    const segment = fc.constantFrom('a', 'ab', 'a-b', 'b');
    const path = fc.option(fc.array(segment, { minLength: 1, maxLength: 3 }).map((segments) => segments.join('/')));
    await fc.assert(
      fc.asyncProperty(fc.array(path, { maxLength: 24 }), path, fc.integer({ min: 1, max: 7 }), async (rows, mine, blockRows) => {
        const world = new World();
        world.state.ignoresPaths = ignoresPaths;
        world.state.blockRows = blockRows;
        for (const [i, row] of rows.entries()) world.state.put(row, String(i));
        const segments = mine?.split('/');
        const mayCome = (row: string | null): boolean =>
          segments === undefined ? row === null : row !== null && segments.every((part, i) => row.split('/')[i] === part);
        const expected = rows.flatMap((row, i) => (mayCome(row) ? [String(i)] : []));
        expect(await world.seen(caller({ path: mine }))).toEqual(expected);
      }),
      { numRuns: 200 },
    );
  });
});

describe('the governed snapshot', () => {
  const scan: ScanRequest = { type: 'T', columns: ['number'], time: { system: 'all', valid: 'all' } };
  const snapshotOf = (world: World, path: string | null) =>
    world.invoke(caller({ path }), 'query', async (invocation) => invocation.snapshot());

  test('is branded and tells storage the paths that it may show', async () => {
    const world = filled();
    const snapshot = await snapshotOf(world, 'acme/eu');
    expect(snapshot).toMatchObject({ governed: true, caller: { path: 'acme/eu' }, branch: 'main' });
    keysOf(world.state.rows, snapshot.rows.scan(scan));
    expect(world.state.lastScan?.paths?.map((code) => world.state.codes[code])).toEqual(['acme/eu', 'acme/eu/fr']);
  });

  test('delivers the columns asked for and nothing internal, and no list of organisations', async () => {
    const world = filled();
    const snapshot = await snapshotOf(world, 'acme');
    const block = snapshot.rows.scan(scan).next();
    expect(block.done !== true && block.value.columns.length).toBe(1);
    expect(snapshot.rows.pathCodes().size).toBe(0);
    expect(() => snapshot.rows.scan({ ...scan, columns: [pathColumn] })).toThrow(AssertionError);
    expect(() => snapshot.rows.scan({ ...scan, paths: [0, 1, 2] })).toThrow(AssertionError);
    expect(() => snapshot.rows.estimate({ ...scan, paths: [0] })).toThrow(AssertionError);
  });

  test('estimates and provenance are of visible rows only', async () => {
    const world = filled();
    const snapshot = await snapshotOf(world, 'acme-evil');
    expect(snapshot.rows.estimate(scan).rows).toBe(6);
    const [mine, foreign] = [paths.indexOf('acme-evil'), paths.indexOf('acme')];
    expect(snapshot.rows.provenanceOf('T', BigInt(mine))?.source).toBe('acme-evil');
    expect(snapshot.rows.provenanceOf('T', BigInt(foreign))).toBeUndefined();
  });

  test('a block that lost rows does not tell how many versions were looked at', async () => {
    const world = filled();
    world.state.ignoresPaths = true;
    const snapshot = await snapshotOf(world, 'globex');
    const blocks = snapshot.rows.scan(scan);
    for (let step = blocks.next(); step.done !== true; step = blocks.next()) {
      expect(step.value.scanned).toBe(step.value.count);
    }
  });

  test('rows of an organisation first written after the snapshot are not of it', async () => {
    const world = filled();
    world.state.ignoresPaths = true;
    const snapshot = await snapshotOf(world, 'acme');
    world.state.put('acme/late', 'acme/late');
    world.state.put(null, 'nobody');
    expect(keysOf(world.state.rows, snapshot.rows.scan(scan))).not.toContain('acme/late');
    expect(await world.seen(caller({ path: 'acme' }))).toContain('acme/late');
  });

  test('stopping early stops the storage’s iterator', async () => {
    const world = filled();
    const blocks = (await snapshotOf(world, 'acme')).rows.scan(scan);
    blocks.next();
    blocks.return?.();
    expect(blocks.next().done).toBe(true);
  });

  test('grant keys differ where what may be seen differs, the null path included', async () => {
    const world = filled();
    const keys = await Promise.all(paths.map(async (path) => (await snapshotOf(world, path)).grantKey));
    expect(new Set(keys).size).toBe(paths.length);
    expect((await snapshotOf(world, 'acme')).grantKey).toBe(keys[1]);
  });

  test('many callers’ scopes are remembered within bounds', () => {
    const cache = new ScopeCache(4);
    const codes = { size: paths.length, path: (code: number) => paths[code] ?? null, codeOf: () => -1 };
    for (const path of [...paths, ...paths]) {
      const scope = cache.scopeOf(path, codes);
      expect(scope).toBe(cache.scopeOf(path, codes));
      expect(scope.codes.map((code) => paths[code])).toEqual(paths.filter((row) => sees(path, row ?? null)));
    }
  });
});

describe('the organisation header', () => {
  test.each([['acme'], ['acme/eu/fr'], ['Acme Corp/EU'], ['%2e%2e/x'], ['..'], ['ünïcode'], ['a'.repeat(512)], ['__proto__']])(
    '%j is taken as it is',
    (header) => {
      expect(parseOrganization(header)).toBe(header);
    },
  );

  test.each([
    ['', 'empty'],
    ['/acme', 'leading slash'],
    ['acme/', 'trailing slash'],
    ['acme//eu', 'empty segment'],
    ['acme/ eu', 'padded segment'],
    ['acme, globex', 'sent twice'],
    ['acme,globex', 'sent twice'],
    ['acme\u0000', 'NUL'],
    ['acme\n', 'control'],
    ['acme\u007f', 'DEL'],
    ['a'.repeat(513), 'too long'],
    ['ü'.repeat(257), 'too long in bytes'],
    ['acme\ud800', 'lone surrogate'],
    ['/', 'slash only'],
  ])('%j is refused (%s)', async (header) => {
    expect((await refusalOf(() => parseOrganization(header))).status).toBe(400);
  });

  test('a header sent twice is refused, an absent one is no path', async () => {
    expect(parseOrganization(undefined)).toBeNull();
    expect((await refusalOf(() => parseOrganization(['acme', 'acme']))).status).toBe(400);
  });

  test('a token bound to a tenant stays inside it', async () => {
    const bound = { tenant: 'acme', organization: null };
    expect(pathInForce(bound, null)).toBe('acme');
    expect(pathInForce(bound, 'acme')).toBe('acme');
    expect(pathInForce(bound, 'acme/eu')).toBe('acme/eu');
    expect(pathInForce({ ...bound, organization: 'acme/eu' }, null)).toBe('acme/eu');
    for (const header of ['globex', 'acme-evil', 'acm', 'Acme', 'acme-evil/acme']) {
      expect((await refusalOf(() => pathInForce(bound, header))).code).toBe('REL_XORG');
    }
  });

  test('an unbound token goes where the header points, and without one to rows without a tenant', () => {
    const unbound = { tenant: null, organization: null };
    expect(pathInForce(unbound, 'globex/x')).toBe('globex/x');
    expect(pathInForce(unbound, null)).toBeNull();
    expect(pathInForce({ ...unbound, organization: 'acme' }, null)).toBe('acme');
    expect(pathInForce({ ...unbound, organization: 'acme' }, 'globex')).toBe('globex');
  });

  test('the tenant is the first segment', () => {
    expect([tenantOf(null), tenantOf('acme'), tenantOf('acme/eu/fr')]).toEqual([null, 'acme', 'acme']);
  });

  test('covering goes by whole segments', () => {
    expect(covers('acme', 'acme')).toBe(true);
    expect(covers('acme', 'acme/eu')).toBe(true);
    expect(covers('acme', 'acme-evil')).toBe(false);
    expect(covers('acme', 'acme.eu')).toBe(false);
    expect(covers('acme/eu', 'acme')).toBe(false);
    expect(() => checkOrganization('acme/eu')).not.toThrow();
  });
});

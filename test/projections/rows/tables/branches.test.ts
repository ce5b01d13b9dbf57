/** Branches: what each of them reads after any history, against lists of versions that are copied at a fork; then rule by rule. */
import { tenantOf } from '../../../../src/log/values/value.ts';
import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import type { RowReader, TimeBounds } from '../../../../src/projections/access-paths.ts';
import { code, everything, World } from '../../branch-world.ts';
import { SavedState } from '../../saved-state.ts';
import { FOREVER } from '../../../../src/log/values/timestamp.ts';
import { cellAt } from '../../../../src/log/values/vector-builder.ts';
import { property } from '../../histories.ts';
import { Model, type ModelVersion, systemTo } from '../../model.ts';
import { freshProjections, type PlainRow, START, Store } from '../../store.ts';

const paths = [null, 'acme', 'acme/eu'];
const tenants = [null, 'acme'];
const pathsOf = (tenant: string | null, of: readonly (string | null)[] = paths): (string | null)[] =>
  of.filter((path) => tenantOf(path) === tenant);
const keys = ['a', 'b'];
const names = ['main', 'dev', 'trial', 'try'];
const shown = ['_pk', 'namespace_path', 'value', 'valid_from', 'valid_to', 'system_from', 'system_to'];

function plainOf(version: ModelVersion, basis: number): PlainRow {
  return {
    _pk: version.key,
    namespace_path: version.path,
    value: version.value,
    valid_from: version.validFrom,
    valid_to: version.validTo,
    system_from: version.systemFrom,
    system_to: systemTo(version, basis),
  };
}

const instant = fc.integer({ min: -3, max: 40 }).map((step) => START + BigInt(step) * 500n);
const row = fc.record({
  key: fc.constantFrom(...keys),
  from: fc.option(instant, { freq: 1 }),
  to: fc.option(instant, { freq: 1 }),
});
/** One of the branches that stand by then. */
const someBranch = fc.nat(11);
const onSome = { branch: someBranch, path: fc.constantFrom(null, null, null, ...paths) };
const action = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({ kind: fc.constant('put' as const), ...onSome, rows: fc.array(row, { minLength: 1, maxLength: 4 }) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('end' as const), ...onSome, keys: fc.subarray(keys, { minLength: 1 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('remove' as const),
      ...onSome,
      keys: fc.subarray(keys, { minLength: 1, maxLength: 2 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('fork' as const),
      source: someBranch,
      shares: fc.constantFrom('everything' as const, 'everything' as const, 'everything' as const, 'ontology' as const),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('drop' as const), branch: someBranch }) },
);
/** Long ones: a closing that only some of three generations see takes many steps. */
const history = fc.array(action, { minLength: 6, maxLength: 24, size: 'max' });

function play(actions: typeof history extends fc.Arbitrary<infer T> ? T : never): World {
  const world = new World();
  for (const each of actions) {
    const standing = [...world.standing.keys()];
    const pick = (index: number): string => standing[index % standing.length]!;
    if (each.kind === 'fork') {
      const free = names.find((name) => !standing.includes(name));
      if (free !== undefined) world.fork(free, pick(each.source), each.shares);
    } else if (each.kind === 'drop') {
      if (pick(each.branch) !== 'main') world.drop(pick(each.branch));
    } else if (each.kind === 'put') world.put(pick(each.branch), each.path, each.rows);
    else if (each.kind === 'end') world.end(pick(each.branch), each.path, each.keys);
    else world.remove(pick(each.branch), each.path, each.keys);
  }
  return world;
}

const share = fc.integer({ min: 0, max: 1000 }).map((n) => n / 1000);
const probe = fc.oneof(fc.constant('all' as const), share);

function timeOf(store: Store, part: number | 'all'): bigint | 'all' {
  if (part === 'all') return part;
  return store.projections.timeline.timeOf(Math.min(store.position - 1, Math.floor(part * store.position)));
}

describe('what branches read', () => {
  test('any branch, by scan and by key, on both axes and at any basis, is a list that was copied at its fork', () => {
    fc.assert(
      fc.property(
        history,
        probe,
        probe,
        share,
        fc.subarray(paths),
        fc.subarray([...keys, 'nobody']),
        fc.integer({ min: 1, max: 7 }),
        (actions, system, valid, part, visible, asked, blockRows) => {
          const { store, standing } = play(actions);
          const time: TimeBounds = { system: timeOf(store, system), valid: timeOf(store, valid) };
          const codes = visible.map((path) => store.projections.rows.scopes.codeOf(path)).filter((code) => code >= 0);
          codes.sort((a, b) => a - b);
          for (const [name, { model, fork }] of standing) {
            const basis = Math.max(Math.ceil(part * store.position), fork + 1);
            const plain = (versions: readonly ModelVersion[]): PlainRow[] => versions.map((version) => plainOf(version, basis));
            for (const tenant of tenants) {
              const scanned = store.read('T', shown, { time, paths: codes, blockRows, tenant }, basis, name);
              expect(scanned, name).toEqual(plain(model.read(time, basis, pathsOf(tenant, visible))));
              const found = store.read('T', shown, { time, keys: asked, tenant }, basis, name);
              expect(found, name).toEqual(plain(model.read(time, basis, pathsOf(tenant), asked)));
            }
          }
        },
      ),
      { numRuns: 600 },
    );
  });

  test('paging after a system_from goes on across layers', () => {
    fc.assert(
      fc.property(history, share, (actions, part) => {
        const { store, standing } = play(actions);
        const after = timeOf(store, part) as bigint;
        for (const [name, { model }] of standing) {
          for (const tenant of tenants) {
            const expected = model.versions.filter((version) => version.systemFrom > after && tenantOf(version.path) === tenant);
            expect(store.read('T', shown, { after, tenant }, store.position, name)).toEqual(
              expected.map((version) => plainOf(version, store.position)),
            );
          }
        }
      }),
    );
  });

  test('estimates count what the branch has, of the paths that were asked for', () => {
    fc.assert(
      fc.property(history, (actions) => {
        const { store, standing } = play(actions);
        for (const [name, { model }] of standing) {
          for (const path of paths) {
            const { rows } = store.snapshot(store.position, name, tenantOf(path));
            const code = store.projections.rows.scopes.codeOf(path);
            const request = { type: 'T', columns: [], paths: code < 0 ? [] : [code] };
            const own = model.versions.filter((version) => version.path === path);
            expect(rows.estimate({ ...request, time: everything })).toMatchObject({ rows: own.length });
            const live = rows.estimate({ ...request, time: { system: store.time, valid: 'all' } });
            expect(live).toMatchObject({ access: 'live', rows: own.filter(({ closedAt }) => closedAt === null).length });
          }
        }
      }),
    );
  });

  test('every version of a branch has provenance there, and none of another branch has', () => {
    fc.assert(
      fc.property(history, (actions) => {
        const { store, standing } = play(actions);
        const all = new Set([...standing.values()].flatMap(({ model }) => model.versions.map(({ systemFrom }) => systemFrom)));
        for (const [name, { model }] of standing) {
          const rowsOf = (tenant: string | null): RowReader => store.snapshot(store.position, name, tenant).rows;
          const own = new Map(model.versions.map((version) => [version.systemFrom, tenantOf(version.path)]));
          for (const tenant of tenants) {
            for (const systemFrom of all) {
              expect(rowsOf(tenant).provenanceOf('T', systemFrom) !== undefined).toBe(own.get(systemFrom) === tenant);
            }
          }
          for (const version of model.versions) {
            if (version.deleted || version.closedAt === null) continue;
            const successor = model.versions.find(({ position }) => position === version.closedAt!.position);
            if (!successor || successor.validFrom !== successor.systemFrom) continue;
            const closed = model.versions.filter(({ closedAt }) => closedAt?.position === successor.position);
            if (closed.length !== 1) continue;
            const hex = version.systemFrom.toString(16).padStart(16, '0');
            const rows = rowsOf(tenantOf(version.path));
            expect(rows.provenanceOf('T', successor.systemFrom)!.derivedFrom).toBe(hex);
          }
        }
      }),
    );
  });
});

let world: World;

beforeEach(() => {
  world = new World();
});

const put = (branch: string, ...wanted: readonly string[]): void => world.plainly(branch, ...wanted);
const values = (branch: string): string[] => world.values(branch);
const live = (branch: string): string[] => world.live(branch);
const fork = (
  name: string,
  source = 'main',
  shares: 'everything' | 'ontology' = 'everything',
  path: string | null = null,
): unknown => world.store.run({ kind: 'fork-branch', name, source, shares }, path);

describe('forking', () => {
  test('writes one entry that names the branch, at one position, whatever the store holds', () => {
    put('main', 'a', 'b');
    const entries = world.store.entries.length;
    const { position } = world.store;
    fork('dev', 'main', 'everything', 'acme/eu');
    expect(world.store.entries.slice(entries)).toMatchObject([
      {
        position,
        positions: 1,
        context: { branch: 'dev', tenant: 'acme', path: 'acme/eu' },
        body: { kind: 'branch', change: 'forked', name: 'dev', source: 'main', shares: 'everything', own: true },
      },
    ]);
    const branch = world.store.projections.branches.branch('dev', 'acme');
    expect(branch).toMatchObject({ tenant: 'acme', source: 'main', fork: position, owner: 'acme/eu', shares: 'everything' });
  });

  test.each([
    ['a name that is taken', 'dev', 'main', 'REL_CONFLICT'],
    ['main', 'main', 'main', 'REL_CONFLICT'],
    ['from nothing', 'new', 'nowhere', 'REL_NOT_FOUND'],
    ['without a name', '', 'main', 'REL_INVALID'],
    ['with 129 characters', 'x'.repeat(129), 'main', 'REL_INVALID'],
    ['with a control character', 'a\nb', 'main', 'REL_INVALID'],
    ['with half a character', 'a\ud800', 'main', 'REL_INVALID'],
  ])('%s is refused', (_what, name, source, expected) => {
    fork('dev');
    expect(code(() => fork(name, source))).toBe(expected);
  });

  test.each(['x', 'x'.repeat(128), 'ünï / côde 😀', 'constructor', '__proto__'])('%s is a name', (name) => {
    fork(name);
    put('main', 'a');
    world.standing.set(name, { model: new Model(), source: null, fork: 0 });
    put(name, 'b');
    expect(values(name)).toEqual(['b1']);
  });

  test('of types only shares no rows', () => {
    put('main', 'a');
    fork('types', 'main', 'ontology');
    expect(values('types')).toEqual([]);
    expect(world.store.snapshot(world.store.position, 'types').catalog.type('T')).toBeDefined();
    fork('child', 'types');
    expect(values('child')).toEqual([]);
  });

  test('is not seen by a reader whose basis does not cover it', () => {
    const { position } = world.store;
    fork('dev');
    expect(code(() => world.store.snapshot(position, 'dev'))).toBe('REL_NOT_FOUND');
    expect(world.store.snapshot(position + 1, 'dev').branchId).toBe(position);
  });
});

test('a saved state holds what branches changed, and what columns were', async () => {
  put('main', 'a', 'b');
  world.fork('dev', 'main', 'everything');
  put('dev', 'a');
  world.remove('dev', null, ['b']);
  world.store.run({ kind: 'evolve-type', name: 'T', properties: { value: property('json') } });
  const saved = await SavedState.make();
  await saved.save(world.store.projections.projector);
  const restored = freshProjections();
  await saved.restore(restored.projector);
  expect(restored.digests()).toEqual(world.store.projections.digests());
  const { rows } = restored.snapshot({ position: world.store.position, instant: world.store.time }, 'dev', null);
  const scan = rows.scan({ type: 'T', columns: ['value', 'system_to'], time: everything });
  const blocks = [scan.next().value!, scan.next().value!];
  expect(blocks.map((block) => block.columns[0]!.kind)).toEqual(['i32', 'i32']);
  expect(blocks.map((block) => block.count)).toEqual([1, 1]);
  expect(blocks.map((block) => cellAt(block.columns[1]!, 'timestamp', block.first) === FOREVER)).toEqual([false, true]);
});

describe('deleting a branch', () => {
  test('takes the name away, and a new branch of that name has nothing of the old one', () => {
    put('main', 'a');
    world.fork('dev', 'main', 'everything');
    put('dev', 'a');
    const before = world.store.snapshot(world.store.position, 'dev').branchId;
    world.drop('dev');
    expect(code(() => world.store.snapshot(world.store.position, 'dev'))).toBe('REL_NOT_FOUND');
    expect(code(() => put('dev', 'a'))).toBe('REL_NOT_FOUND');
    world.fork('dev', 'main', 'everything');
    expect(values('dev')).toEqual(['a0']);
    expect(world.store.snapshot(world.store.position, 'dev').branchId).not.toBe(before);
  });

  test('frees its tables', () => {
    const { rows } = world.store.projections;
    const before = rows.bytes;
    world.fork('dev', 'main', 'everything');
    put('dev', ...Array.from({ length: 500 }, (_, i) => `k${i}`));
    expect(rows.bytes).toBeGreaterThan(before);
    world.drop('dev');
    expect(rows.bytes).toBe(before);
  });

  test('leaves its children what they inherited, and goes when the last of them does', () => {
    const { rows } = world.store.projections;
    const before = rows.bytes;
    world.fork('dev', 'main', 'everything');
    put('dev', 'a');
    world.fork('trial', 'dev', 'everything');
    world.drop('dev');
    put('trial', 'b');
    expect(values('trial')).toEqual(['a0', 'b1']);
    world.drop('trial');
    expect(rows.bytes).toBe(before);
  });

  test('a reader that has begun reads on', () => {
    world.fork('dev', 'main', 'everything');
    put('dev', 'a');
    const { rows } = world.store.snapshot(world.store.position, 'dev');
    world.drop('dev');
    const scan = rows.scan({ type: 'T', columns: ['_pk'], time: everything });
    expect(scan.next().value).toMatchObject({ count: 1 });
  });

  test('main and what there is not are refused', () => {
    expect(code(() => world.store.run({ kind: 'delete-branch', name: 'main' }))).toBe('REL_INVALID');
    expect(code(() => world.store.run({ kind: 'delete-branch', name: 'dev' }))).toBe('REL_NOT_FOUND');
  });
});

describe('hard deletes', () => {
  const remove = (branch: string, ...gone: readonly string[]): void => world.remove(branch, null, gone);

  test('on a branch take what it inherited out of it and of its children, never out of its source', () => {
    put('main', 'a', 'b');
    world.fork('dev', 'main', 'everything');
    world.fork('trial', 'dev', 'everything');
    put('dev', 'a');
    remove('dev', 'a');
    expect(values('dev')).toEqual(['b1']);
    expect(values('trial')).toEqual(['b1']);
    expect(values('main')).toEqual(['a0', 'b1']);
  });

  test('on the source destroy what branches inherited; what they wrote themselves stays', () => {
    put('main', 'a', 'b');
    world.fork('dev', 'main', 'everything');
    put('dev', 'a');
    remove('main', 'a');
    expect(values('dev')).toEqual(['b1', 'a2']);
  });

  test('of a key that only the source has, or that is gone already, find nothing', () => {
    put('main', 'b');
    world.fork('dev', 'main', 'everything');
    put('main', 'a');
    const gone = (): unknown => world.store.run({ kind: 'remove-rows', type: 'T', keys: ['a'] }, null, 'dev').accepted;
    expect(gone()).toBe(0);
    put('dev', 'a');
    expect(gone()).toBe(1);
    expect(gone()).toBe(0);
    expect(values('main')).toEqual(['b0', 'a1']);
  });

  test('free the key on the branch', () => {
    put('main', 'a');
    world.fork('dev', 'main', 'everything');
    remove('dev', 'a');
    put('dev', 'a');
    expect(values('dev')).toEqual(['a1']);
    expect(live('main')).toEqual(['a0']);
  });
});

test('what the source closed after the fork is open on the branch, whatever it closed it with', () => {
  const at = (hour: number): bigint => START + BigInt(hour) * 3_600_000_000_000n;
  const row = (from: number, to: number) => ({ key: 'a', from: at(from), to: at(to) });
  world.put('main', null, [row(0, 1), row(1, 2), row(2, 3)]);
  world.fork('dev', 'main', 'everything');
  // The middle one is closed while the youngest is open still, then all of them.
  world.put('main', null, [row(1, 2)]);
  put('main', 'a');
  put('dev', 'a');
  const { model } = world.standing.get('dev')!;
  const own = model.versions.map((version) => plainOf(version, world.store.position));
  expect(world.store.read('T', shown, {}, world.store.position, 'dev')).toEqual(own);
  expect(own.map((version) => version['system_to'] === own[3]!['system_from'])).toEqual([true, true, true, false]);
});

test('tokens are main’s, whichever branch their holder is on', () => {
  fork('dev');
  const token = {
    id: 't',
    secretHash: 'h',
    principal: 'p',
    tenant: null,
    organization: null,
    roles: [],
    attributes: {},
    purposes: [],
    expiresAt: START * 2n,
  };
  world.store.run({ kind: 'mint-token', token }, null, 'dev');
  expect(world.store.entries.at(-1)!.context.branch).toBe('main');
});

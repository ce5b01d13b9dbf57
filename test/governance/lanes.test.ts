/** What is visible under policies and agreements: whose rows, in which state of what was agreed, at any instant that is read. */
import { describe, expect, test } from 'vitest';
import type { Caller } from '../../src/governance/caller.ts';
import type { Action } from '../../src/governance/gate-contract.ts';
import { checkAgreementTerms } from '../../src/governance/tenancy/agreement-terms.ts';
import type { AgreementTerms } from '../../src/log/entries/entry.ts';
import { FOREVER } from '../../src/log/values/timestamp.ts';
import { shownColumn } from '../../src/projections/access-paths.ts';
import { termsOf } from '../projections/histories.ts';
import { everything, START } from '../projections/store.ts';
import { type Asking, callerOf, LaneWorld } from './lanes-world.ts';

const columns = { _pk: 'string', region: 'string', n: 'integer' } as const;
const permitAll = 'permit(principal, action, resource);';

/** One row in each organisation, keyed by its path. */
function organisations(): LaneWorld {
  const world = new LaneWorld({ segmentRows: 3 });
  for (const path of [null, 'acme', 'acme/eu', 'acme/eu/fr', 'acme/us', 'acme-evil', 'acm', 'globex']) {
    world.store.put(
      'Person',
      columns,
      [{ _pk: path ?? 'nobody', region: path?.split('/')[1] ?? 'none', n: BigInt(path?.length ?? 0) }],
      {
        path,
      },
    );
  }
  return world;
}

const keysOf = (world: LaneWorld, caller: Caller, asking: Asking = {}): string[] =>
  world
    .read(caller, { columns: ['_pk'] }, asking)
    .rows.map((row) => String(row['_pk']))
    .sort();

const refusal = (run: () => unknown): string => {
  try {
    run();
  } catch (error) {
    return (error as { code?: string }).code ?? String(error);
  }
  return 'nothing is refused';
};

describe('one’s own organisation under conditions', () => {
  test('a condition takes rows away, and adds none of others', () => {
    const world = organisations();
    world.install('permit(principal, action, resource) when { resource.n > 4 };');
    expect(keysOf(world, callerOf('acme'))).toEqual(['acme/eu', 'acme/eu/fr', 'acme/us']);
    expect(keysOf(world, callerOf('acme/eu'))).toEqual(['acme/eu', 'acme/eu/fr']);
    expect(keysOf(world, callerOf('acme-evil'))).toEqual(['acme-evil']);
    expect(keysOf(world, callerOf('globex'))).toEqual(['globex']);
    expect(keysOf(world, callerOf(null))).toEqual([]);
    expect(keysOf(world, callerOf('acme/eu/fr/idf'))).toEqual([]);
  });

  test('a policy that names a foreign organisation does not show it', () => {
    const world = organisations();
    world.install(
      'permit(principal, action, resource in Org::"globex");',
      'permit(principal, action, resource in Org::"acme/eu");',
    );
    expect(keysOf(world, callerOf('acme'))).toEqual(['acme/eu', 'acme/eu/fr']);
    expect(keysOf(world, callerOf('acme/us'))).toEqual([]);
  });

  test('without a permit reading is refused by name; without policies it is not', () => {
    const world = organisations();
    expect(keysOf(world, callerOf('acme/us'))).toEqual(['acme/us']);
    world.install('permit(principal in Role::"auditor", action, resource);');
    expect(refusal(() => keysOf(world, callerOf('acme')))).toBe('REL_ACL');
    expect(refusal(() => world.snapshot(callerOf('acme')).rows.estimate({ type: 'Person', columns: [], time: everything }))).toBe(
      'REL_ACL',
    );
    expect(keysOf(world, callerOf('acme/us', { roles: ['auditor'] }))).toEqual(['acme/us']);
  });

  test('a policy counts at once, for every instant that is read', () => {
    const world = organisations();
    const before = world.store.time - 1n;
    const grantKey = world.snapshot(callerOf('acme/eu')).grantKey;
    world.install(permitAll, 'forbid(principal, action, resource) when { resource.region == "eu" };');
    const then = { columns: ['_pk'], time: { system: before, valid: 'all' } } as const;
    expect(world.read(callerOf('acme'), then).rows.map((row) => row['_pk'])).toEqual(['acme', 'acme/us']);
    expect(world.snapshot(callerOf('acme/eu')).grantKey).not.toBe(grantKey);
  });

  test('an export, a search goes by its own right, anything else by read', () => {
    const world = organisations();
    world.install(
      'permit(principal, action == Action::"read", resource);',
      'permit(principal, action in [Action::"export", Action::"search"], resource) when { resource.region == "us" };',
    );
    const under = (action: Action): string[] => keysOf(world, callerOf('acme'), { action });
    for (const action of ['export', 'search'] as const) expect(under(action)).toEqual(['acme/us']);
    for (const action of ['query', 'watch', 'ingest', 'delete'] as const) expect(under(action)).toHaveLength(4);
    expect(refusal(() => under('replay'))).toBe('REL_ACL');
  });

  test('a condition on the clock holds as the clock says, and grants of two answers have two keys', () => {
    const world = organisations();
    const noon = START + 10n ** 15n;
    const at = new Date(Number(noon / 1_000_000n)).toISOString();
    world.install(`permit(principal, action, resource) when { context.now < datetime("${at}") || resource.region == "us" };`);
    const keys: string[] = [];
    const seen = [noon - 1_000_000n, noon, noon + 5n, noon + 10n ** 12n, noon - 1_000_000n].map((now) => {
      keys.push(world.snapshot(callerOf('acme'), { now }).grantKey);
      return keysOf(world, callerOf('acme'), { now }).length;
    });
    expect(seen).toEqual([4, 1, 1, 1, 4]);
    expect(keys[0]).not.toBe(keys[1]);
    expect(new Set(keys.slice(1, 4)).size).toBe(1);
    const grantAt = (now: bigint): unknown => world.granted(callerOf('acme'), { now });
    expect(grantAt(noon + 3_000_000n)).toBe(grantAt(noon + 9_000_000n));
    expect(grantAt(noon)).not.toBe(grantAt(noon - 1_000_000n));
    // It was this once, but what was kept of it then is of another decision since.
    expect(keys[4]).not.toBe(keys[1]);
  });

  test('provenance is of visible versions, and does not name a hidden one before', () => {
    const world = new LaneWorld({ segmentRows: 4 });
    const caller = callerOf('acme');
    for (const n of [1n, 9n, 2n, 3n]) world.store.put('Person', columns, [{ _pk: 'a', region: 'eu', n }], { path: 'acme' });
    const instants = world.read(caller, { columns: ['system_from'] }).rows.map((row) => row['system_from'] as bigint);
    const asked = (): (string | null | undefined)[] => {
      const { rows } = world.snapshot(caller);
      return instants.map((instant) => rows.provenanceOf('Person', instant)?.derivedFrom);
    };
    const named = (i: number): string => instants[i]!.toString(16).padStart(16, '0');
    expect(asked()).toEqual([null, named(0), named(1), named(2)]);
    world.install('permit(principal, action, resource) when { resource.n < 5 };');
    expect(asked()).toEqual([null, undefined, null, named(2)]);
    expect(world.snapshot(callerOf('globex')).rows.provenanceOf('Person', instants[0]!)).toBeUndefined();
  });

  test('keys that were removed for good are told where no condition decides, and only that some were elsewhere', () => {
    const world = organisations();
    const before = world.store.time;
    world.store.run({ kind: 'remove-rows', type: 'Person', keys: ['acme/eu'] }, 'acme/eu');
    world.store.run({ kind: 'remove-rows', type: 'Person', keys: ['globex'] }, 'globex');
    const told = (caller: Caller): (readonly string[])[] =>
      world
        .snapshot(caller)
        .removals.removedAfter('Person', before - 1n)
        .map(({ keys }) => keys);
    expect(told(callerOf('acme'))).toEqual([['acme/eu']]);
    world.install(permitAll);
    expect(told(callerOf('acme'))).toEqual([['acme/eu']]);
    world.install(
      permitAll,
      '@mask("redact") forbid(principal, action == Action::"readCell", resource == Column::"Person._pk");',
    );
    expect(told(callerOf('acme'))).toEqual([[]]);
    world.install(
      'permit(principal, action, resource) when { resource.n > 0 };',
      'forbid(principal, action == Action::"erase", resource);',
    );
    expect(told(callerOf('acme'))).toEqual([[]]);
    expect(told(callerOf('acme/us'))).toEqual([]);
  });

  test('figures are of visible rows: how many are hidden shows nowhere', () => {
    const figures = (hidden: number): unknown => {
      const world = new LaneWorld({ segmentRows: 16 });
      world.install('permit(principal, action, resource) when { resource.n < 5 };');
      for (let i = 0; i < 40; i++) {
        world.store.put('Person', columns, [{ _pk: `seen ${i}`, region: 'eu', n: 1n }], { path: 'acme' });
        const more = Array.from({ length: hidden }, (_, k) => ({ _pk: `${i}.${k}`, region: 'eu', n: 9n }));
        if (hidden > 0) world.store.put('Person', columns, more, { path: 'acme' });
      }
      const { rows } = world.snapshot(callerOf('acme'));
      const about = { type: 'Person', columns: ['n'], time: everything };
      const reads = [{}, { unsiftedRows: 64 }, { keys: ['seen 3', '3.0'] }, { blockRows: 5 }].map((more) =>
        world.read(callerOf('acme'), { columns: ['_pk', 'n'], ...more }),
      );
      return {
        scanned: reads.map(({ scanned }) => scanned),
        rows: reads.map((read) => read.rows.length),
        estimates: [
          rows.estimate(about),
          rows.estimate({ ...about, keys: ['seen 3', '3.0'] }),
          rows.estimate({ ...about, keys: ['3.0'] }),
        ],
      };
    };
    expect(figures(7)).toEqual(figures(0));
  });

  test('storage does not search by cells that are masked', () => {
    const world = organisations();
    const zones = [{ column: 'n', op: '>', value: 100n }] as const;
    const asked: unknown[] = [];
    const spied = (): void => {
      const { rows } = world.snapshot(callerOf('acme'));
      const blocks = rows.scan({ type: 'Person', columns: ['n'], time: everything, zones });
      for (let step = blocks.next(); step.done !== true; step = blocks.next())
        if (step.value.count > 0) asked.push(step.value.count);
    };
    spied();
    const pruned = asked.splice(0).length;
    world.install(permitAll, 'forbid(principal, action == Action::"readCell", resource == Column::"Person.n");');
    spied();
    expect(asked.length).toBeGreaterThan(pruned);
  });
});

describe('an agreement', () => {
  const assignee = callerOf('globex', { principal: 'ada' });
  const shared = (terms: Partial<AgreementTerms> = {}): LaneWorld => {
    const world = organisations();
    world.share('g', 'acme/eu', 'globex', terms);
    return world;
  };

  test('shares the assigner’s rows with the assignee’s path and below, and nobody else', () => {
    const world = shared();
    const seen = (path: string): string[] => keysOf(world, callerOf(path));
    expect(seen('globex')).toEqual(['acme/eu', 'acme/eu/fr', 'globex']);
    expect(seen('globex/sales')).toEqual(['acme/eu', 'acme/eu/fr']);
    expect(seen('globexx')).toEqual([]);
    expect(seen('acme/us')).toEqual(['acme/us']);
    expect(seen('acme-evil')).toEqual(['acme-evil']);
    world.share('below', 'acme/us', 'globex/sales');
    expect(seen('globex/sales/east')).toEqual(['acme/eu', 'acme/eu/fr', 'acme/us']);
    for (const path of ['globex', 'globex/hr', 'globex/sales-evil']) expect(seen(path)).not.toContain('acme/us');
  });

  test('is in force while it is active', () => {
    const world = shared();
    const { record } = world.store.projections.tenants.agreement('g')!;
    world.move('g', 'revoked', 'assigner');
    const steps: readonly (readonly [() => void, boolean])[] = [
      [() => void world.store.run({ kind: 'propose-agreement', id: 'h', terms: record }), false],
      [() => world.move('h', 'accepted', 'assignee'), false],
      [() => world.move('h', 'active', 'assigner'), true],
      [() => world.move('h', 'suspended', 'assigner'), false],
      [() => world.move('h', 'active', 'assigner'), true],
      [() => world.move('h', 'revoked', 'assignee'), false],
    ];
    for (const [step, inForce] of steps) {
      step();
      expect(keysOf(world, assignee).includes('acme/eu')).toBe(inForce);
    }
  });

  test('is in force from its first instant to just before its last, and the clock alone ends it', () => {
    const world = shared({ validFrom: START + 1_000n, validTo: START + 10n ** 15n });
    const sees = (now: bigint): boolean => keysOf(world, assignee, { now }).includes('acme/eu');
    expect([START + 999n, START + 1_000n, START + 10n ** 15n - 1n, START + 10n ** 15n].map(sees)).toEqual([
      false,
      true,
      true,
      false,
    ]);
    // Asked backwards too: what is kept of a caller knows when it ends.
    expect([START + 10n ** 15n, START + 10n ** 15n - 1n, START + 1_000n, START + 999n].map(sees)).toEqual([
      false,
      true,
      true,
      false,
    ]);
    const keyAt = (now: bigint): string => world.snapshot(assignee, { now }).grantKey;
    expect(keyAt(START + 1_000n)).toBe(keyAt(START + 2_000n));
    expect(keyAt(START + 999n)).not.toBe(keyAt(START + 1_000n));
  });

  test('covers its types, purposes and permissions', () => {
    const world = shared({ types: ['Other'] });
    expect(keysOf(world, assignee)).toEqual(['globex']);
    const purposed = shared({ purposes: ['fraud'], permission: ['read'] });
    const sees = (asking: Asking): boolean => keysOf(purposed, assignee, asking).includes('acme/eu');
    expect([null, 'fraud', 'fraud:aml', 'fraudulent', 'support'].map((purpose) => sees({ purpose }))).toEqual([
      false,
      true,
      true,
      false,
      false,
    ]);
    expect(sees({ purpose: 'fraud', action: 'export' })).toBe(false);
    expect(sees({ purpose: 'fraud', action: 'watch' })).toBe(true);
    for (const action of ['export', 'search'] as const) {
      const other = shared({ permission: [action] });
      expect(keysOf(other, assignee, { action })).toContain('acme/eu');
      expect(keysOf(other, assignee)).toEqual(['globex']);
    }
  });

  test('shares rows that its condition holds for and no policy forbids; no policy has to permit them', () => {
    const world = shared({ where: 'resource.n > 7' });
    expect(keysOf(world, assignee)).toEqual(['acme/eu/fr', 'globex']);
    const forbidden = shared();
    forbidden.install(
      'permit(principal in Org::"acme", action, resource);',
      'forbid(principal, action, resource in Org::"acme/eu") when { resource.n < 8 };',
    );
    expect(keysOf(forbidden, assignee)).toEqual(['acme/eu/fr']);
    forbidden.install(permitAll, 'forbid(principal == User::"ada", action, resource in Org::"acme");');
    expect(keysOf(forbidden, assignee)).toEqual(['globex']);
  });

  test('whose condition tries to be more than one expression shares nothing', () => {
    for (const where of ['true }; permit(principal, action, resource) when { true', 'true } unless { false', 'nonsense (']) {
      const seen = keysOf(shared({ where }), assignee);
      expect(seen).toEqual(where.includes('unless') ? ['acme/eu', 'acme/eu/fr', 'globex'] : ['globex']);
    }
  });

  test('that is revoked shows nothing at any instant, nor to a snapshot made after it', () => {
    const world = shared({ history: 'full' });
    const then = world.store.time - 1n;
    const asOf = { columns: ['_pk'], time: { system: then, valid: 'all' } } as const;
    const seen = (): number => world.read(assignee, asOf).rows.length;
    expect(seen()).toBe(3);
    world.move('g', 'revoked', 'assigner');
    expect(seen()).toBe(1);
    expect(world.snapshot(assignee).grantKey).not.toContain('"g"');
  });

  test('shows a row’s past as far as it says', () => {
    const versions = (
      history: AgreementTerms['history'],
      system: (world: LaneWorld, started: bigint) => 'all' | bigint,
    ): bigint[] => {
      const world = new LaneWorld({ segmentRows: 2 });
      const put = (n: bigint): void => void world.store.put('Person', columns, [{ _pk: 'a', region: 'eu', n }], { path: 'acme' });
      put(1n);
      put(2n);
      const started = world.store.time;
      world.share('g', 'acme', 'globex', { history });
      put(3n);
      put(4n);
      const time = { system: system(world, started), valid: 'all' } as const;
      return world.read(assignee, { columns: ['n'], time }).rows.map((row) => row['n'] as bigint);
    };
    const all = (): 'all' => 'all';
    expect(versions('full', all)).toEqual([1n, 2n, 3n, 4n]);
    expect(versions('from_start', all)).toEqual([2n, 3n, 4n]);
    expect(versions('current_only', all)).toEqual([4n]);
    const before = (_: LaneWorld, started: bigint): bigint => started - 1n;
    expect(versions('full', before)).toEqual([2n]);
    expect(versions('from_start', before)).toEqual([]);
    expect(versions('current_only', before)).toEqual([]);
    const after = (world: LaneWorld): bigint => world.store.projections.tenants.agreement('g')!.record.activatedAt! + 1n;
    expect(versions('from_start', after)).toEqual([2n]);
    expect(versions('current_only', after)).toEqual([]);
    for (const history of ['full', 'from_start', 'current_only'] as const)
      expect(versions(history, () => FOREVER - 1n)).toEqual([4n]);
  });

  test('shows the columns that it names, and masks on top of those of policies; the stricter holds', () => {
    const world = shared({ columns: ['_pk', 'n', 'region'], masking: { region: 'hash' } });
    const read = (names: readonly string[]): unknown => world.read(assignee, { columns: names, keys: ['acme/eu'] }).rows;
    const shownRegion = shownColumn('region');
    expect(read(['_pk', 'n', 'region'])).toEqual([{ _pk: 'acme/eu', n: 7n, region: null }]);
    expect(read([shownRegion])).toEqual([{ [shownRegion]: expect.stringMatching(/^h:[0-9a-f]{16}$/) as string }]);
    expect([...world.granted(assignee)!.masked]).toEqual([['region', 'hash']]);
    world.install(
      '@mask("redact") forbid(principal, action == Action::"readCell", resource == Column::"Person.region") when { resource.n > 100 };',
    );
    expect(read([shownRegion])).toEqual([{ [shownRegion]: '***' }]);
    world.install(
      '@mask("last4") forbid(principal, action == Action::"readCell", resource == Column::"Person.region") when { resource.n > 100 };',
    );
    expect(read([shownRegion])).toEqual([{ [shownRegion]: expect.stringMatching(/^h:/) as string }]);
    const keyless = shared({ columns: ['n'] });
    expect(keyless.read(assignee, { columns: ['_pk', 'id', 'n', 'region', shownColumn('_pk')] }).rows[0]).toEqual({
      _pk: null,
      id: null,
      n: 7n,
      region: null,
      [shownColumn('_pk')]: null,
    });
    expect(keyless.read(assignee, { columns: ['n'], keys: ['acme/eu', 'globex'] }).rows).toHaveLength(1);
  });

  test('masks cells, and nothing that the store itself says of a row', () => {
    const check = (column: string): void =>
      checkAgreementTerms('acme', termsOf('acme', 'globex', { permission: ['read'], masking: { [column]: 'redact' } }), () =>
        organisations().definition('Person'),
      );
    for (const column of ['system_from', 'system_to', 'valid_from', 'valid_to', 'tenant_id', 'namespace_path']) {
      expect(() => check(column)).toThrow('no cell of a row');
    }
    for (const column of ['_pk', 'id', 'region']) check(column);
  });

  test('of two that cover a row the one that hides less is read through', () => {
    const world = organisations();
    world.share('a', 'acme', 'globex', { masking: { region: 'redact' } });
    world.share('b', 'acme/eu', 'globex', { where: 'resource.n > 7' });
    const rows = world.read(assignee, { columns: ['_pk', 'region'] }).rows;
    expect(Object.fromEntries(rows.map((row) => [row['_pk'], row['region']]))).toEqual({
      acme: null,
      'acme/eu': null,
      'acme/eu/fr': 'eu',
      'acme/us': null,
      globex: 'none',
    });
  });

  test('is asked for by the assigner’s path: then only what is shared there shows', () => {
    const world = shared();
    world.share('b', 'initech', 'globex');
    const visiting = (sharedFrom: string): Caller => ({ ...assignee, sharedFrom });
    expect(keysOf(world, visiting('acme'))).toEqual(['acme/eu', 'acme/eu/fr']);
    expect(keysOf(world, visiting('acme/eu/fr'))).toEqual(['acme/eu/fr']);
    expect(refusal(() => keysOf(world, visiting('acme/us')))).toBe('REL_ACL');
    expect(refusal(() => keysOf(world, visiting('acme-evil')))).toBe('REL_XORG');
    world.move('g', 'suspended', 'assigner');
    expect(refusal(() => keysOf(world, visiting('acme/eu')))).toBe('REL_XORG');
    expect(world.snapshot(visiting('initech')).grantKey).not.toBe(world.snapshot(assignee).grantKey);
  });

  test('tells of removed keys where it shows keys, all rows and their past', () => {
    for (const [terms, keys] of [
      [{}, ['acme/eu']],
      [{ where: 'resource.n > 0' }, []],
      [{ columns: ['n'] }, []],
      [{ history: 'current_only' }, []],
    ] as const) {
      const world = shared(terms);
      const before = world.store.time - 1n;
      world.store.run({ kind: 'remove-rows', type: 'Person', keys: ['acme/eu'] }, 'acme/eu');
      world.store.run({ kind: 'remove-rows', type: 'Person', keys: ['acme/us'] }, 'acme/us');
      expect(
        world
          .snapshot(assignee)
          .removals.removedAfter('Person', before)
          .map((removal) => removal.keys),
      ).toEqual([keys]);
    }
  });

  test('counts what is shared whole, and says of the rest that there may be some', () => {
    const estimate = (terms: Partial<AgreementTerms>): number =>
      shared(terms).snapshot(assignee).rows.estimate({ type: 'Person', columns: [], time: everything }).rows;
    expect(estimate({})).toBe(3);
    expect(estimate({ history: 'current_only' })).toBe(3);
    expect(estimate({ where: 'resource.n > 100' })).toBe(estimate({ where: 'resource.n > 0' }));
    expect(estimate({ history: 'from_start' })).toBeGreaterThan(1_000);
  });
});

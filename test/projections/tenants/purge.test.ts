import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Outcome, PurgeCursor } from '../../../src/projections/command.ts';
import { histories, play, type Step } from '../histories.ts';
import { rowsOf } from '../../../src/projections/rows/projection.ts';
import { everything, Store } from '../store.ts';

type Done = Omit<Outcome, 'durability' | 'replayed'>;

const refused = (code: string): unknown => expect.objectContaining({ code });

function register(store: Store, id: string): void {
  store.run({ kind: 'create-tenant', id, name: '', tier: 't', quota: {}, search: {}, members: [], tenantsMax: 0 });
}

/** As governance drives it; `restarts` forgets the cursor, as a process that died would. */
function purge(store: Store, id: string, keysMax: number, restarts = false): Done[] {
  store.run({ kind: 'delete-tenant', id, manner: 'purge' });
  const done: Done[] = [];
  let cursor: PurgeCursor | null = null;
  for (;;) {
    const outcome = store.run({ kind: 'purge-tenant', id, cursor, keysMax });
    done.push(outcome);
    if (outcome.purge === undefined) return done;
    cursor = restarts ? null : outcome.purge;
  }
}

const tenants = [null, 'acme', 'acme-evil', 'globex'];

function paths(store: Store, branch = 'main'): string[] {
  const found = new Set<string>();
  for (const tenant of tenants) {
    for (const { name } of store.types(tenant, branch).types()) {
      for (const row of store.read(name, ['namespace_path'], { tenant }, undefined, branch))
        found.add(`${name} ${String(row['namespace_path'])}`);
    }
  }
  return [...found].sort();
}

/** Versions that a tenant has on the branch with this fork, whether it can name it or not. */
function countOn({ projections: { catalog, rows }, position }: Store, fork: number, tenant: string, type: string): number {
  return rows.reader(rowsOf(catalog, fork, tenant), position).estimate({ type, columns: [], time: everything }).rows;
}

function filled(): Store {
  const store = new Store();
  store.append({ kind: 'genesis', logId: 'l', origin: 'o', engineVersion: 'e' });
  for (const id of ['acme', 'globex']) register(store, id);
  for (const type of ['A', 'B']) {
    for (const path of [null, 'acme', 'acme/eu', 'acme-evil', 'globex']) {
      store.put(
        type,
        { id: 'string' },
        Array.from({ length: 5 }, (_, i) => ({ id: `k${i}` })),
        { path },
      );
      store.put(type, { id: 'string', n: 'integer' }, [{ id: 'k1', n: 1n }], { path });
    }
  }
  return store;
}

describe('purging a tenant', () => {
  test('removes all rows of its paths, of every type, and no others', () => {
    const store = filled();
    const steps = purge(store, 'acme', 3);
    expect(paths(store)).toEqual(['A acme-evil', 'A globex', 'A null', 'B acme-evil', 'B globex', 'B null']);
    expect(steps.reduce((sum, { accepted }) => sum + accepted, 0)).toBe(2 * 2 * 5 + 1);
    for (const { accepted } of steps) expect(accepted).toBeLessThanOrEqual(3);
    expect(store.projections.tenants.tenant('acme')).toMatchObject({ purged: true, manner: 'purge' });
  });

  test('goes on from its cursor, and comes to the same end without one', () => {
    const [going, again] = [filled(), filled()];
    expect(purge(going, 'acme', 2)).toHaveLength(purge(again, 'acme', 2, true).length);
    expect(again.projections.digests()).toEqual(going.projections.digests());
    expect(going.entries.map(({ body }) => body)).toEqual(again.entries.map(({ body }) => body));
  });

  test('writes removals in the name of the paths, and says at last that it is done', () => {
    const store = filled();
    const before = store.entries.length;
    purge(store, 'acme', 100);
    const written = store.entries
      .slice(before)
      .map(({ body, context }) => [body.kind, context.tenant, context.path, context.branch]);
    expect(written).toEqual([
      ['tenant', null, null, 'main'],
      ['removal', 'acme', 'acme', 'main'],
      ['removal', 'acme', 'acme/eu', 'main'],
      ['removal', 'acme', 'acme', 'main'],
      ['removal', 'acme', 'acme/eu', 'main'],
      ['tenant', null, null, 'main'],
    ]);
    const removal = store.entries[before + 1]!.body;
    if (removal.kind !== 'removal') throw new Error('a removal was expected');
    expect(removal.keys).toEqual(['k0', 'k1', 'k2', 'k3', 'k4']);
    // Every version that was ever written, ended ones included, in order.
    const positions = [...removal.positions];
    expect(positions).toHaveLength(6);
    expect(positions).toEqual([...positions].sort((a, b) => a - b));
    expect(store.entries.at(-1)!.body).toMatchObject({ change: 'purged', manner: null });
  });

  test('reaches every branch: what it inherited and what it wrote', () => {
    const store = filled();
    store.run({ kind: 'fork-branch', name: 'dev', source: 'main', shares: 'everything' });
    store.put('A', { id: 'string' }, [{ id: 'k1' }, { id: 'own' }], { path: 'acme', branch: 'dev' });
    store.put('C', { id: 'string' }, [{ id: 'own' }], { path: 'acme/us', branch: 'dev' });
    store.run({ kind: 'fork-branch', name: 'trial', source: 'dev', shares: 'everything' });
    store.put('C', { id: 'string' }, [{ id: 'own' }, { id: 'more' }], { path: 'acme/us', branch: 'trial' });
    store.put('C', { id: 'string' }, [{ id: 'own' }], { path: 'globex', branch: 'trial' });
    store.run({ kind: 'delete-rows', type: 'C', keys: ['more'] }, 'acme/us', 'trial');
    const before = store.entries.length;
    purge(store, 'acme', 1);
    const removed = store.entries
      .slice(before)
      .flatMap(({ body, context: { branch, path } }) =>
        body.kind === 'removal' && body.type === 'C' ? body.keys.map((key) => [branch, path, key]) : [],
      );
    // What a branch inherited goes with the removal on the branch that it was forked from.
    expect(removed).toEqual([
      ['dev', 'acme/us', 'own'],
      ['trial', 'acme/us', 'own'],
      ['trial', 'acme/us', 'more'],
    ]);
    for (const branch of ['main', 'dev', 'trial']) {
      expect(paths(store, branch).filter((path) => path.includes(' acme') && !path.includes('evil'))).toEqual([]);
    }
    expect(paths(store, 'trial')).toContain('C globex');
    expect(paths(store, 'dev').filter((path) => path.startsWith('C'))).toEqual([]);
  });

  test('ends its own branches, and finds its rows on branches that it could not name', () => {
    const store = filled();
    const fork = (name: string, source: string, path: string | null): unknown =>
      store.run({ kind: 'fork-branch', name, source, shares: 'everything' }, path);
    const put = (key: string, path: string, branch: string): unknown =>
      store.put('C', { id: 'string' }, [{ id: key }], { path, branch });
    fork('base', 'main', null);
    put('base', 'acme', 'base');
    put('base', 'globex', 'base');
    fork('dev', 'main', 'acme');
    fork('dev', 'base', 'initech');
    fork('dev', 'base', null);
    fork('trial', 'dev', 'acme/eu');
    fork('trial', 'base', 'globex');
    put('own', 'acme', 'dev');
    put('own', 'acme/eu', 'trial');
    // Its rows are read on, by a branch of the store's that its own one hides and by one of globex's.
    store.run({ kind: 'delete-branch', name: 'base' });
    purge(store, 'acme', 1);
    const left = store.projections.branches.list();
    expect(left.map(({ name, tenant }) => [name, tenant])).toEqual([
      ['dev', null],
      ['dev', 'initech'],
      ['trial', 'globex'],
    ]);
    for (const { fork: id } of left) {
      expect([countOn(store, id, 'acme', 'C'), countOn(store, id, 'globex', 'C')]).toEqual([0, 1]);
    }
  });

  test('of nothing is over at once', () => {
    const store = new Store();
    register(store, 'acme');
    expect(purge(store, 'acme', 10)).toHaveLength(1);
    expect(store.entries).toHaveLength(3);
  });

  test('is for tenants that were deleted with their rows', () => {
    const store = filled();
    const step = (): unknown => store.run({ kind: 'purge-tenant', id: 'acme', cursor: null, keysMax: 10 });
    expect(step).toThrow(refused('REL_CONFLICT'));
    store.run({ kind: 'delete-tenant', id: 'acme', manner: 'soft' });
    expect(step).toThrow(refused('REL_CONFLICT'));
    expect(paths(store)).toContain('A acme');
  });

  test('leaves nothing of its paths on any branch, after any history, and nobody else’s touched', () =>
    fc.assert(
      fc.property(histories(25), fc.integer({ min: 1, max: 4 }), fc.boolean(), (history: Step[], keysMax, restarts) => {
        const store = new Store();
        store.append({ kind: 'genesis', logId: 'l', origin: 'o', engineVersion: 'e' });
        play(store, history);
        const { branches, tenants: registered } = store.projections;
        // Its own branches end with it.
        const others = branches.list().filter(({ tenant }) => tenant !== 'acme');
        const forks = [0, ...others.map(({ fork }) => fork)];
        const reads = [{ name: 'main', fork: 0 }, ...others].flatMap(({ name, fork }) =>
          tenants.flatMap((tenant) => (tenant !== 'acme' && branches.idOf(name, tenant) === fork ? [{ name, tenant }] : [])),
        );
        const dump = (): string[][] =>
          reads.flatMap(({ name, tenant }) =>
            ['Person', 'Event'].map((type) =>
              store
                .read(type, ['_pk', 'namespace_path', 'system_from', 'name'], { tenant }, undefined, name)
                .map((row) => Object.values(row).join(' ')),
            ),
          );
        const kept = dump();
        const before = registered.tenant('acme');
        if (before?.purged === true || before === undefined) register(store, 'acme');
        // A row that is held stays, and with it its tenant.
        for (const id of store.projections.retention.heldUnder('acme')) store.run({ kind: 'release-retention', id });
        purge(store, 'acme', keysMax, restarts);
        for (const type of ['Person', 'Event'])
          expect(forks.map((fork) => countOn(store, fork, 'acme', type))).toEqual(forks.map(() => 0));
        expect(dump()).toEqual(kept);
        expect(branches.list()).toEqual(others);
        expect(registered.purging()).not.toContain('acme');
      }),
      { numRuns: 150 },
    ));
});

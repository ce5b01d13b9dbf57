/**
 * Scans under random policies and agreements give what looking at every version on its own gives: whatever the blocks, the
 * instants, the keys, with bits of conditions kept and without.
 */
import { expect, test } from 'vitest';
import type { Caller } from '../../src/governance/caller.ts';
import { ServiceError } from '../../src/errors.ts';
import { type ColumnType, compareText } from '../../src/log/values/value.ts';
import type { ScanRequest } from '../../src/projections/access-paths.ts';
import { Seeded } from '../simulation/seeded.ts';
import { paths, PolicyWriter, rowsFor } from './cedar/generator.ts';
import { type Asking, bothWays, callerOf, LaneWorld } from './lanes-world.ts';

const worlds = 40;
const reads = 12;
const columns: Readonly<Record<string, ColumnType>> = {
  region: 'string',
  status: 'string',
  note: 'string',
  'odd name': 'string',
  n: 'integer',
  m: 'integer',
  flag: 'boolean',
  at: 'timestamp',
  until: 'timestamp',
  score: 'number',
};

interface Written {
  readonly world: LaneWorld;
  readonly instants: readonly bigint[];
  readonly bases: readonly number[];
  /** Some rows are gone for good: they were looked at, and are not expected. */
  readonly removed: boolean;
}

/** Versions of few keys in many organisations, some deleted, some for good, some on a branch. */
function written(dice: Seeded): Written {
  // No bytes at all is no bits at all.
  const world = new LaneWorld({ segmentRows: dice.pick([8, 40, 64]), bitBytes: dice.pick([1, 1 << 20, 1 << 20]) });
  const { store } = world;
  const instants: bigint[] = [];
  const bases: number[] = [];
  const removed = dice.chance(0.3);
  const put = (branch: string): void => {
    const path = dice.pick(paths);
    const rows = rowsFor(dice, 1 + dice.below(30)).map((row) => {
      const cells = Object.entries(row).filter(([name, cell]) => cell !== undefined && Object.hasOwn(columns, name));
      const typed = cells.map(([name, cell]) => [name, columns[name] === 'integer' ? BigInt(cell as number) : cell]);
      return { _pk: String(row['_pk']), ...Object.fromEntries(typed) };
    });
    const outcome = store.put('Person', { _pk: 'string', ...columns }, rows, { path, branch });
    expect(outcome.rejected).toBe(0);
    if (dice.chance(0.2)) store.run({ kind: 'delete-rows', type: 'Person', keys: [`r${dice.below(4)}`] }, path, branch);
    if (removed && dice.chance(0.3))
      store.run({ kind: 'remove-rows', type: 'Person', keys: [`r${dice.below(4)}`] }, path, branch);
    instants.push(store.time - 1n);
    bases.push(store.position);
  };
  for (let i = 0; i < 10; i++) put('main');
  store.run({ kind: 'fork-branch', name: 'dev', source: 'main', shares: 'everything' });
  for (let i = 0; i < 8; i++) put(dice.pick(['main', 'main', 'dev']));
  return { world, instants, bases, removed };
}

function govern({ world }: Written, dice: Seeded): void {
  const writer = new PolicyWriter(dice);
  const texts: string[] = [];
  while (texts.length < 6 && dice.chance(0.9)) {
    const text = writer.policy(dice.pick(['permit', 'permit', 'rows', 'cells', 'cells'])).ours;
    texts.push(text);
  }
  if (dice.chance(0.5)) texts.push('permit(principal, action, resource) when { resource has n && resource.n < 5 };');
  if (dice.chance(0.3))
    texts.push(
      '@mask("last4") forbid(principal, action == Action::"readCell", resource == Column::"Person._pk") when { resource has flag && resource.flag };',
    );
  for (const [i, text] of texts.entries()) {
    try {
      world.store.run({ kind: 'put-policy', id: `p${i}`, text });
      // The set is read on the next question; what it refuses is not what is tested here.
      void world.policies.current;
    } catch (error) {
      expect(error).toBeInstanceOf(ServiceError);
      world.store.run({ kind: 'delete-policy', id: `p${i}` });
    }
  }
  const shares = dice.below(4);
  for (let i = 0; i < shares; i++) {
    const assigner = dice.pick(['acme', 'acme/eu', 'globex', 'acme-evil']);
    const assignee = dice.pick(
      ['acme', 'acme/eu/berlin', 'globex', 'acme-evil'].filter((path) => !`${assigner}/`.startsWith(`${path}/`)),
    );
    world.share(`g${i}`, assigner, assignee, {
      where: dice.pick([null, 'resource has n && resource.n > 1', 'resource.status == "open"', writer.bool(2)]),
      columns: dice.pick([null, null, ['n', 'region', 'at'], ['_pk', 'note']]),
      history: dice.pick(['full', 'current_only', 'from_start']),
      masking: dice.pick([{}, { region: 'hash' }, { note: 'last4', at: 'year' }, { _pk: 'redact' }]),
      purposes: dice.pick([[], ['fraud']]),
    });
  }
}

function requestOf(dice: Seeded, instants: readonly bigint[]): Partial<ScanRequest> & { columns: readonly string[] } {
  const names = ['_pk', 'id', 'region', 'note', 'n', 'flag', 'at', 'until', 'score', 'status'].filter(() => dice.chance(0.4));
  const asked = [
    ...(dice.chance(0.5) ? bothWays(...names) : names),
    ...(dice.chance(0.3) ? ['system_from', 'namespace_path', 'system_to'] : []),
  ];
  const system = dice.pick(['all' as const, dice.pick(instants), 2n ** 62n]);
  return {
    columns: asked,
    time: { system, valid: dice.chance(0.2) ? dice.pick(instants) : 'all' },
    ...(dice.chance(0.3) ? { keys: ['r0', 'r2', 'row 1', 'nobody'] } : {}),
    ...(dice.chance(0.2) ? { after: dice.pick(instants) } : {}),
    ...(dice.chance(0.5) ? { blockRows: 1 + dice.below(50) } : {}),
    ...(dice.chance(0.5) ? { unsiftedRows: 1 + dice.below(64) } : {}),
  };
}

test.each(Array.from({ length: worlds }, (_, seed) => [seed]))('world %i', (seed) => {
  const dice = new Seeded(9000 + seed);
  const made = written(dice);
  const { world, instants, bases, removed } = made;
  govern(made, dice);
  for (let i = 0; i < reads; i++) {
    const caller: Caller = callerOf(dice.pick(paths), {
      principal: dice.pick(['ann', 'bob']),
      roles: ['analyst', 'pci'].filter(() => dice.chance(0.5)),
      attributes: { level: dice.below(5), ...(dice.chance(0.5) ? { region: 'EU' } : {}) },
    });
    const request = requestOf(dice, instants);
    const asking: Asking = {
      purpose: dice.pick([null, 'fraud', 'fraud:aml', 'support']),
      branch: dice.pick(['main', 'main', 'dev']),
      ...(dice.chance(0.3) ? { basis: dice.pick(bases.slice(-6)) } : {}),
    };
    const granted = world.granted(caller, asking);
    if (granted === null) {
      expect(world.snapshot(caller, asking).catalog.type('Person')).toBe(undefined);
      continue;
    }
    if (!granted.allowed) {
      expect(() => world.read(caller, request, asking)).toThrow('no policy permits');
      continue;
    }
    const inOrder = (rows: readonly object[]): string[] =>
      rows.map((row) => JSON.stringify(row, (_, cell: unknown) => (typeof cell === 'bigint' ? `${cell}n` : cell)));
    const expected = inOrder(world.expected(caller, request, asking));
    const sorted = (rows: string[]): string[] => (request.keys === undefined ? rows : rows.sort(compareText));
    for (const _ of ['first', 'again']) {
      const { rows, scanned } = world.read(caller, request, asking);
      expect(sorted(inOrder(rows))).toEqual(sorted(expected));
      // Versions that ended are looked at too, but none that may not be seen.
      const versions = world.expected(caller, { ...request, time: { system: 'all', valid: 'all' } }, asking);
      if (!removed) expect(scanned).toBeLessThanOrEqual(versions.length);
    }
  }
});

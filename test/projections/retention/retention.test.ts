import { describe, expect, test } from 'vitest';
import type { ErrorCode } from '../../../src/errors.ts';
import { mainBranch } from '../../../src/log/entries/entry.ts';
import type { Command } from '../../../src/projections/command.ts';
import { registerPatients } from '../histories.ts';
import { freshProjections, Store } from '../store.ts';

const refused = (code: ErrorCode): unknown => expect.objectContaining({ code });
const columns = { id: 'string', who: 'string' } as const;

function made(): Store {
  const store = Store.of('acme', freshProjections());
  store.append({ kind: 'genesis', logId: 'log-1', origin: 'test/log', engineVersion: 'test' });
  store.run(registerPatients);
  store.put(
    'Patient',
    columns,
    [
      { id: 'a', who: 'ann' },
      { id: 'b', who: 'bob' },
    ],
    { path: 'acme' },
  );
  return store;
}

const schedule = (id: string, key: string, until: bigint): Command => ({
  kind: 'schedule-retention',
  id,
  type: 'Patient',
  key,
  until,
});
const hold = (id: string, key: string): Command => ({ kind: 'hold-row', id, type: 'Patient', key });
const remove = (...keys: string[]): Command => ({ kind: 'remove-rows', type: 'Patient', keys });
const keys = (store: Store, branch = mainBranch): unknown[] =>
  store.read('Patient', ['_pk'], {}, store.position, branch).map((row) => row['_pk']);

function erasure(store: Store, who: string): Command {
  const steps = store.projections.rows.versionsOf('acme', who);
  for (;;) {
    const step = steps.next();
    if (step.done !== true) continue;
    const { versions } = step.value;
    return {
      kind: 'intend-erasure',
      id: 'e',
      commitment: '0'.repeat(64),
      reason: 'r',
      keys: [],
      versions,
      mentions: [],
      statement: '',
    };
  }
}

describe('a schedule', () => {
  test('removes the row for good once its time is over, and not before', () => {
    const store = made();
    const until = store.time + 5_000n;
    store.run(schedule('s', 'a', until), 'acme');
    expect(store.projections.retention.due(until - 1n, 10)).toEqual([]);
    expect(() => store.run({ kind: 'expire-retention', id: 's' })).toThrow('is not over');
    // A later version is of the same row.
    store.put('Patient', columns, [{ id: 'a', who: 'cy' }], { path: 'acme' });
    store.time = until;
    expect(store.projections.retention.due(until, 10).map(({ id }) => id)).toEqual(['s']);
    store.run({ kind: 'expire-retention', id: 's' });
    expect(keys(store)).toEqual(['b']);
    expect(store.entries.at(-1)).toMatchObject({
      context: { tenant: 'acme', path: 'acme' },
      body: { kind: 'removal', keys: [] },
    });
    expect(store.projections.retention.find('s')).toBeUndefined();
    expect(store.projections.retention.due(until, 10)).toEqual([]);
    expect(() => store.run({ kind: 'expire-retention', id: 's' })).toThrow(refused('REL_NOT_FOUND'));
  });

  test('that is due comes with the oldest first, so many at a time', () => {
    const store = made();
    const { time } = store;
    const hour = 3_600_000_000_000n;
    for (const [id, until] of [
      ['late', 5n * hour],
      ['second', 2n],
      ['first', 1n],
      ['hours', 2n * hour],
    ] as const) {
      store.run(schedule(id, 'a', time + until), 'acme');
    }
    const ids = (now: bigint, most: number): string[] => store.projections.retention.due(time + now, most).map(({ id }) => id);
    expect(ids(3n * hour, 10)).toEqual(['first', 'second', 'hours']);
    expect(ids(3n * hour, 2)).toEqual(['first', 'second']);
    expect(ids(1n, 2)).toEqual(['first']);
  });

  test('ends with its row, with its branch, and when it is released', () => {
    const store = made();
    store.run({ kind: 'fork-branch', name: 'dev', source: mainBranch, shares: 'everything' });
    store.run(schedule('main a', 'a', 1n), 'acme');
    store.run(schedule('main b', 'b', 1n), 'acme');
    store.run(schedule('dev a', 'a', 1n), 'acme', 'dev');
    store.run(schedule('dev b', 'b', 1n), 'acme', 'dev');
    const inForce = (): string[] => ['main a', 'main b', 'dev a', 'dev b'].filter((id) => store.projections.retention.find(id));
    // On the branch it is hidden, on main it stands.
    store.run(remove('a'), 'acme', 'dev');
    expect(inForce()).toEqual(['main a', 'main b', 'dev b']);
    store.run(remove('b'), 'acme');
    expect(inForce()).toEqual(['main a']);
    store.run(schedule('again', 'a', 1n), 'acme');
    store.run({ kind: 'release-retention', id: 'again' });
    expect(store.projections.retention.find('again')).toBeUndefined();
    expect(() => store.run({ kind: 'release-retention', id: 'again' })).toThrow(refused('REL_NOT_FOUND'));
    store.run(erasure(store, 'ann'), 'acme');
    expect(inForce()).toEqual([]);
    store.put('Patient', columns, [{ id: 'd' }], { path: 'acme', branch: 'dev' });
    store.run(schedule('dev d', 'd', 1n), 'acme', 'dev');
    store.run({ kind: 'delete-branch', name: 'dev' });
    expect(store.projections.retention.find('dev d')).toBeUndefined();
  });

  test('is refused without such a row or type, and under an id that is in force', () => {
    const store = made();
    expect(() => store.run(schedule('s', 'a', 1n), 'globex')).toThrow(refused('REL_NOT_FOUND'));
    expect(() => store.run(schedule('s', 'no', 1n), 'acme')).toThrow(refused('REL_NOT_FOUND'));
    expect(() => store.run({ ...schedule('s', 'a', 1n), type: 'No' } as Command, 'acme')).toThrow(refused('REL_UNKNOWN_TYPE'));
    expect(() => store.run(schedule('s', 'a', -1n), 'acme')).toThrow(refused('REL_INVALID'));
    store.run(schedule('s', 'a', 1n), 'acme');
    expect(() => store.run(hold('s', 'b'), 'acme')).toThrow(refused('REL_CONFLICT'));
  });
});

describe('a hold', () => {
  test('keeps its row from removal, from its schedule and from erasure, whatever version each of them is about', () => {
    const store = made();
    store.run(schedule('s', 'a', 1n), 'acme');
    store.run(hold('h', 'a'), 'acme');
    store.put('Patient', columns, [{ id: 'a', who: 'bob' }], { path: 'acme' });
    const outcome = store.run(remove('a', 'b'), 'acme');
    expect(outcome).toMatchObject({ accepted: 1, rejected: 1, ids: ['b'], errors: [{ index: 0, code: 'REL_CONFLICT' }] });
    expect(outcome.errors[0]!.detail).toContain('h');
    expect(() => store.run({ kind: 'expire-retention', id: 's' })).toThrow('under legal hold: h');
    const { position } = store;
    for (const who of ['ann', 'bob']) {
      const attempt = (): unknown => store.run(erasure(store, who), 'acme');
      expect(attempt).toThrow(refused('REL_CONFLICT'));
      expect(attempt).toThrow('under legal hold: h; nothing was erased');
    }
    expect(store.position).toBe(position);
    store.run({ kind: 'release-retention', id: 'h' });
    store.run(erasure(store, 'bob'), 'acme');
    expect(keys(store)).toEqual(['a']);
    store.run({ kind: 'expire-retention', id: 's' });
    expect(keys(store)).toEqual([]);
  });

  test('on a branch keeps what the branch inherited, on its source too, and the branch itself', () => {
    const store = made();
    store.run({ kind: 'fork-branch', name: 'dev', source: mainBranch, shares: 'everything' });
    store.run(hold('h', 'a'), 'acme', 'dev');
    expect(store.run(remove('a'), 'acme').rejected).toBe(1);
    expect(() => store.run({ kind: 'delete-branch', name: 'dev' })).toThrow('rows of the branch are under legal hold: h');
    store.run({ kind: 'release-retention', id: 'h' });
    store.run({ kind: 'delete-branch', name: 'dev' });
    expect(store.run(remove('a'), 'acme').accepted).toBe(1);
  });

  test('of another path or type keeps nobody', () => {
    const store = made();
    store.put('Patient', columns, [{ id: 'a', who: 'ann' }], { path: 'globex' });
    store.run(hold('h', 'a'), 'globex');
    expect(store.run(remove('a'), 'acme').accepted).toBe(1);
    store.run(erasure(store, 'bob'), 'acme');
  });

  test('keeps its tenant from being deleted, and what is deleted from being purged', () => {
    const store = made();
    const more = { name: 'A', tier: 't', quota: {}, search: {}, members: [], tenantsMax: 0 };
    for (const id of ['acme', 'acm']) store.run({ kind: 'create-tenant', id, ...more });
    store.put('Patient', columns, [{ id: 'c' }], { path: 'acme/eu' });
    store.run(hold('h', 'c'), 'acme/eu');
    for (const manner of ['soft', 'purge'] as const) {
      expect(() => store.run({ kind: 'delete-tenant', id: 'acme', manner })).toThrow(
        'rows of the tenant are under legal hold: h',
      );
    }
    store.run({ kind: 'delete-tenant', id: 'acm', manner: 'purge' });
    store.run({ kind: 'release-retention', id: 'h' });
    store.run({ kind: 'delete-tenant', id: 'acme', manner: 'purge' });
    // The gate lets nobody hold rows of a deleted tenant; should one be held, it stays.
    store.run(hold('late', 'a'), 'acme');
    const purge: Command = { kind: 'purge-tenant', id: 'acme', cursor: null, keysMax: 100 };
    expect(() => store.run(purge)).toThrow('under legal hold: late');
    expect(keys(store)).toEqual(['a', 'b', 'c']);
    store.run({ kind: 'release-retention', id: 'late' });
    store.run(purge);
    expect(keys(store)).toEqual([]);
  });
});

import { expect, test, vi } from 'vitest';
import type { ErrorCode } from '../../../src/errors.ts';
import type { CompleteErasure, IntendErasure } from '../../../src/projections/command.ts';
import { SubjectNames } from '../../../src/projections/subject-names.ts';
import { Store } from '../store.ts';

const refused = (code: ErrorCode): unknown => expect.objectContaining({ code });
const commitment = 'ab'.repeat(32);

const intend = (id: string, more: Partial<IntendErasure> = {}): IntendErasure => ({
  kind: 'intend-erasure',
  id,
  commitment,
  reason: 'asked for',
  keys: ['k1'],
  versions: [],
  mentions: [],
  statement: '',
  ...more,
});
const complete = (id: string, statement = '{}'): CompleteErasure => ({ kind: 'complete-erasure', id, statement });

test('an erasure stands from its intent to its completion, and its first statement stays', () => {
  const store = new Store();
  const { erasures } = store.projections;
  store.append({ kind: 'genesis', logId: 'l', origin: 'o', engineVersion: 'e' });
  store.put('T', { id: 'string' }, [{ id: 'a' }, { id: 'b' }, { id: 'c' }], { path: 'acme' });
  const { position, time } = store;
  const versions = [
    { type: 'Z', paths: ['acme/us', 'acme/eu', 'acme', 'acme'], positions: [3, 2, 3] },
    { type: 'A', paths: [], positions: [] },
    { type: 'T', paths: ['acme'], positions: [4] },
  ];
  store.run(intend('e1', { versions, mentions: [9, 2, 9] }), 'acme');
  expect(store.entries.at(-1)!.body).toMatchObject({
    change: 'intended',
    versions: [
      { type: 'T', paths: ['acme'], positions: [4] },
      { type: 'Z', paths: ['acme', 'acme/eu', 'acme/us'], positions: [2, 3] },
    ],
    mentions: [2, 9],
  });
  expect(erasures.openErasures()).toMatchObject([
    {
      id: 'e1',
      tenant: 'acme',
      intended: { position, time },
      completed: null,
      keys: ['k1'],
      counts: [
        { type: 'T', versions: 1 },
        { type: 'Z', versions: 2 },
      ],
    },
  ]);
  expect(() => store.run(intend('e1'), 'acme')).toThrow(refused('REL_CONFLICT'));
  expect(() => store.run(complete('e2'))).toThrow(refused('REL_NOT_FOUND'));
  // Whoever goes on with it after a restart is nobody's.
  store.run(complete('e1', '{"version":1}'));
  expect(store.entries.at(-1)!.context.tenant).toBe('acme');
  expect(store.run(complete('e1', '{"version":2}')).changed).toBe(false);
  expect(erasures.openErasures()).toEqual([]);
  expect(erasures.find('e1')).toMatchObject({
    statement: '{"version":1}',
    versions: [],
    counts: [{ versions: 1 }, { versions: 2 }],
  });
  store.run(intend('e2'), 'acme');
  expect(erasures.ofCommitment(commitment).map(({ id }) => id)).toEqual(['e1', 'e2']);
  expect(erasures.ofCommitment('00'.repeat(32))).toEqual([]);
});

test('whoever follows a type learns that rows went, wherever they lay, and never which', () => {
  const store = new Store();
  store.append({ kind: 'genesis', logId: 'l', origin: 'o', engineVersion: 'e' });
  store.put('T', { id: 'string' }, [{ id: 'a' }], { path: 'acme' });
  const before = store.position;
  store.run({ kind: 'fork-branch', name: 'dev', source: 'main', shares: 'everything' });
  store.run({ kind: 'fork-branch', name: 'types', source: 'main', shares: 'ontology' });
  const { time } = store;
  store.run(intend('e1', { versions: [{ type: 'T', paths: ['acme', 'acme/eu'], positions: [2] }] }), 'acme');
  for (const branch of ['main', 'dev', 'types']) {
    const told = store.snapshot(store.position, branch).removals.removedAfter('T', time - 1n);
    expect(told).toMatchObject([
      { path: 'acme', keys: [], inherited: false },
      { path: 'acme/eu', keys: [], inherited: false },
    ]);
    expect(store.snapshot(store.position, branch).removals.removedAfter('T', time)).toEqual([]);
  }
  const { removals } = store.projections.exhibits;
  expect(removals.since(before, new Set(['T']), (path) => path === 'acme')).toBe(true);
  expect(removals.since(before, new Set(['T']), (path) => path === 'globex')).toBe(false);
});

test('views and removed keys that name a subject are found and wiped, on every branch', () => {
  const store = new Store();
  store.append({ kind: 'genesis', logId: 'l', origin: 'o', engineVersion: 'e' });
  store.put('T', { id: 'string' }, [{ id: 'ann' }, { id: 'other' }], { path: 'acme' });
  store.run({ kind: 'create-view', name: 'v1', sql: "SELECT id FROM T WHERE id = 'ann'", refreshSecs: 5 }, 'acme');
  store.run({ kind: 'create-view', name: 'v2', sql: 'SELECT id FROM T', refreshSecs: 5 }, 'acme');
  store.run({ kind: 'create-view', name: 'v3', sql: "SELECT id FROM T WHERE id = 'ann'", refreshSecs: 5 }, 'globex');
  store.run({ kind: 'fork-branch', name: 'dev', source: 'main', shares: 'everything' });
  store.run({ kind: 'remove-rows', type: 'T', keys: ['ann'] }, 'acme');
  store.run({ kind: 'remove-rows', type: 'T', keys: ['other'] }, 'acme');
  const { removedKeys, views } = store.projections;
  const names = new SubjectNames(['ann']);
  const owns = (path: string | null): boolean => path === 'acme';
  const mentions = [...removedKeys.mentioning(names, owns), ...views.mentioning(names, owns)];
  expect(mentions).toHaveLength(2);
  store.run(intend('e1', { mentions }), 'acme');
  for (const branch of ['main', 'dev']) {
    const kept = store.snapshot(store.position, branch).views.map(({ name }) => name);
    expect(kept).toEqual(['v2', 'v3']);
  }
  expect(
    store
      .snapshot()
      .removals.removedAfter('T', 0n)
      .map(({ keys }) => keys),
  ).toEqual([[], ['other']]);
  expect(removedKeys.mentioning(names, owns)).toEqual([]);
  // The name is free.
  store.run({ kind: 'create-view', name: 'v1', sql: 'SELECT id FROM T', refreshSecs: 5 }, 'acme');
});

test.each([
  ['ann', "WHERE id = 'ann'", true],
  ['ann', "WHERE id = 'annette'", false],
  ['ann', 'joann', false],
  ['ann', 'joann, ann', true],
  ['7', 'LIMIT 70', false],
  ['7', 'id = 7', true],
  ["O'Neil", "id = 'O''Neil'", true],
  ['a"b', '{"id":"a\\"b"}', true],
  ['@ann', 'x@ann', true],
  ['ann@x', 'joann@x', false],
  ['\u{1f600}n', 'a\u{1f600}n', true],
  ['\u{10400}', '\u{10401}\u{10400}', false],
  ['', 'anything', false],
])('the name %j in %j: %s', (name, text, found) => {
  expect(new SubjectNames([name]).areIn(text)).toBe(found);
});

test('one of many names that begin alike is found as if it were looked for alone', () => {
  const many = [...Array.from({ length: 300 }, (_, i) => `visit-${i}`), 'x', "o'neil"];
  const names = new SubjectNames(many);
  for (const text of [
    'visit-299',
    'visit-2999',
    'a visit-7, and',
    'visit-',
    "id = 'x'",
    'box',
    "who = 'o''neil'",
    'visit-300 visit-1',
  ]) {
    expect(names.areIn(text)).toBe(many.some((name) => new SubjectNames([name]).areIn(text)));
  }
  expect(names.areIn('visit-300 visit-1')).toBe(true);
  expect(names.areIn('visit-300')).toBe(false);
});

test('ten thousand names that begin alike cost a text one look at each length that they have', () => {
  const names = new SubjectNames(Array.from({ length: 10_000 }, (_, i) => `visit-${i}`));
  const text = 'visit-none '.repeat(1_000);
  const looks = [vi.spyOn(Set.prototype, 'has'), vi.spyOn(String.prototype, 'startsWith')];
  try {
    expect(names.areIn(text)).toBe(false);
    const counted = looks.reduce((sum, { mock }) => sum + mock.calls.length, 0);
    // visit-0, visit-10, visit-100 and visit-1000 are of four lengths; the counters look a few times themselves.
    expect(counted).toBeGreaterThanOrEqual(1_000);
    expect(counted).toBeLessThanOrEqual(4_100);
  } finally {
    for (const look of looks) look.mockRestore();
  }
});

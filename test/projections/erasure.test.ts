import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { type CommittedEntry, mainBranch, type RowsBody } from '../../src/log/entries/entry.ts';
import type { RowStorageOptions } from '../../src/projections/rows/tables/row-storage.ts';
import { LettersInARow } from '../../src/projections/rows/cells/text-beginnings.ts';
import { SegmentFile } from '../../src/projections/rows/store/segment-file.ts';
import { drained, play, property, registerPatients, subjectHistories, withoutKeys } from './histories.ts';
import { SavedState } from './saved-state.ts';
import { freshProjections, type PlainRow, Store, texts } from './store.ts';

const columns = { id: 'string', who: 'string', name: 'string', valid_from: 'timestamp', valid_to: 'timestamp' } as const;

function patients(rows?: RowStorageOptions): Store {
  const store = Store.of('acme', freshProjections(undefined, rows));
  store.append({ kind: 'genesis', logId: 'log-1', origin: 'test/log', engineVersion: 'test' });
  store.run(registerPatients);
  return store;
}

const put = (store: Store, rows: readonly PlainRow[], path: string | null = 'acme', branch = mainBranch): void => {
  store.put('Patient', columns, rows, { path, branch });
};

const versionsOf = (store: Store, who: string, tenant: string | null = 'acme', from = 0) =>
  drained(store.projections.rows.versionsOf(tenant, who, from));

/** As its desk would: everything that is found of the subject. */
function erase(store: Store, who: string, tenant: string | null = 'acme'): void {
  const { versions } = versionsOf(store, who, tenant);
  const commitment = '0'.repeat(64);
  const id = `e${store.position}`;
  store.run(
    { kind: 'intend-erasure', id, commitment, reason: 'asked for', keys: ['k'], versions, mentions: [], statement: '' },
    tenant,
  );
}

function replayed(entries: readonly CommittedEntry[]): Store {
  const store = Store.of('acme');
  store.replay(entries);
  return store;
}

const read = (store: Store, branch = mainBranch, time?: bigint): string[] =>
  store
    .read('Patient', ['_pk', 'name'], { time: { system: time ?? 'all', valid: 'all' } }, store.position, branch)
    .map((row) => `${String(row['_pk'])}:${String(row['name'])}`);

describe('after an erasure', () => {
  test('a store goes on as one that was rebuilt with the keys, without them, and as one that was restored', () =>
    fc.assert(
      fc.asyncProperty(subjectHistories(25), subjectHistories(12), fc.nat(100), async (history, later, share) => {
        const live = patients();
        play(live, history);
        const saved = await SavedState.make();
        const rows = saved.resting();
        const before = patientsFrom(live.entries.slice(0, Math.floor((share * live.entries.length) / 100)), rows);
        await saved.save(before.projections.projector, rows.store);
        const again = saved.resting();
        const restored = Store.of('acme', freshProjections(undefined, again));
        await saved.restore(restored.projections.projector);
        restored.replay(withoutKeys(live.entries));
        const others = [replayed(live.entries), replayed(withoutKeys(live.entries)), restored];
        const known = live.entries.length;
        for (const other of others) other.goOn(live);
        play(live, later);
        for (const other of others) {
          play(other, later);
          expect(other.entries.length).toBe(live.entries.length);
          for (let i = known; i < live.entries.length; i++) expect(told(other.entries[i]!)).toBe(told(live.entries[i]!));
          expect(other.projections.digests()).toEqual(live.projections.digests());
          const branches = live.projections.branches.list();
          const onMain = [null, 'acme'].map((tenant) => ({ name: mainBranch, tenant }));
          for (const { name, tenant } of [
            ...onMain,
            ...branches,
            ...branches.map(({ name: of }) => ({ name: of, tenant: 'acme' })),
          ]) {
            const columnsRead = ['_pk', 'name', 'system_to'];
            expect(other.read('Patient', columnsRead, { tenant }, other.position, name)).toEqual(
              live.read('Patient', columnsRead, { tenant }, live.position, name),
            );
            for (const time of ['all', live.time] as const) {
              expect(keyed(other, name, time, tenant)).toEqual(keyed(live, name, time, tenant));
            }
          }
        }
        for (const store of [rows.store, again.store]) await store.close();
      }),
      { numRuns: 25, endOnFailure: true },
    ));

  test('nobody reads the versions of the subject, at any basis, on any branch; those of others in the same rows stay', () => {
    const store = patients();
    put(store, [{ id: 'a', who: 'ann', name: 'a1' }]);
    const first = store.time - 1n;
    put(store, [{ id: 'b', who: 'bob', name: 'b1' }]);
    store.run({ kind: 'fork-branch', name: 'dev', source: mainBranch, shares: 'everything' });
    put(store, [{ id: 'a', who: 'bob', name: 'a2' }]);
    put(store, [{ id: 'a', who: 'ann', name: 'a3' }], 'acme', 'dev');
    put(store, [{ id: 'b', who: 'ann', name: 'b2' }]);
    put(store, [{ id: 'c', who: 'ann', name: 'c1' }], 'globex');
    put(store, [{ id: 'd', who: 'ann', name: 'd1' }], 'acme/eu');
    erase(store, 'ann');
    expect(store.read('Patient', ['name'], { tenant: 'globex' })).toEqual([{ name: 'c1' }]);
    expect(read(store)).toEqual(['b:b1', 'a:a2']);
    expect(read(store, mainBranch, first)).toEqual([]);
    expect(read(store, 'dev')).toEqual(['b:b1']);
    expect(store.read('Patient', ['_pk'], { keys: ['a'] }, store.position, 'dev')).toEqual([]);
    // What ann's version closed stays closed, and the key goes on from there.
    expect(read(store, mainBranch, store.time)).toEqual(['a:a2']);
    put(store, [{ id: 'b', who: 'cy', name: 'b3' }]);
    expect(read(store)).toEqual(['b:b1', 'a:a2', 'b:b3']);
    expect((store.entries.at(-1)!.body as RowsBody).closes).toHaveLength(0);
  });

  test('a version that two erased ones closed one after the other is read as of before', () => {
    const store = patients();
    put(store, [{ id: 'a', who: 'ann', name: 'from 0', valid_from: 0n, valid_to: 10n }]);
    put(store, [{ id: 'a', who: 'ann', name: 'from 10', valid_from: 10n, valid_to: 20n }]);
    store.run({ kind: 'fork-branch', name: 'dev', source: mainBranch, shares: 'everything' });
    const before = store.time - 1n;
    put(store, [{ id: 'a', who: 'bob', name: 'all', valid_from: 0n, valid_to: 20n }]);
    erase(store, 'bob');
    const both = ['a:from 0', 'a:from 10'];
    for (const other of [store, replayed(store.entries), replayed(withoutKeys(store.entries))]) {
      expect(read(other, mainBranch, before)).toEqual(both);
      expect(keyed(other, mainBranch, before)).toEqual(both);
      expect(read(other, mainBranch, other.time)).toEqual([]);
      // On the branch nothing closed them.
      other.run({ kind: 'delete-rows', type: 'Patient', keys: ['a'] }, 'acme', 'dev');
      expect((other.entries.at(-1)!.body as RowsBody).closes).toHaveLength(2);
    }
  });

  test('texts, keys and bounds are in no memory and in no file', async () => {
    const saved = await SavedState.make();
    const rows = saved.resting(0, 4);
    const store = patients(rows);
    const bound = 1_234_567_890_123n;
    for (let i = 0; i < 12; i++) {
      const mine = i % 3 === 0;
      const row = { id: mine ? `annkey${i}` : `key${i}`, who: mine ? 'annwho' : 'bob', name: mine ? 'annname' : 'shared' };
      put(store, [mine ? { ...row, valid_from: bound + BigInt(i) } : row]);
    }
    put(store, [{ id: 'mixed', who: 'annwho', name: 'shared' }]);
    await saved.save(store.projections.projector, rows.store);
    rows.store.trim();
    expect(await saved.plain()).toContain('annkey');
    const boundBytes = Buffer.from(BigInt64Array.of(bound).buffer).toString('latin1').slice(0, 6);
    expect(await saved.plain()).toContain(boundBytes);
    erase(store, 'annwho');
    await saved.save(store.projections.projector, rows.store);
    const left = await saved.plain();
    for (const text of ['annkey', 'annwho', 'annname', boundBytes]) expect(left).not.toContain(text);
    for (const text of ['key1', 'bob', 'shared']) expect(left).toContain(text);
    const table = store.projections.rows.table('acme', 'Patient')!;
    for (const column of ['who', 'name']) {
      const dictionary = table.dictionaryOf(column)!;
      expect(texts(dictionary).filter((text) => text?.startsWith('ann') === true)).toEqual([]);
    }
    expect(texts(table.dictionaryOf('name')!)).toContain('shared');
    expect(saved.said).toEqual([]);
    await rows.store.close();
  });

  test('files are written again without what rests on them coming into memory, but codes', async () => {
    const saved = await SavedState.make();
    const rows = saved.resting(1e6, 4);
    const store = patients(rows);
    for (let i = 0; i < 13; i++) {
      put(store, [{ id: `k${i}`, who: i % 3 === 0 ? 'ann' : 'bob', name: `n${i % 2}`, valid_from: BigInt(i) }]);
    }
    await saved.save(store.projections.projector, rows.store);
    const again = saved.resting(1e6, 4);
    const restored = Store.of('acme', freshProjections(undefined, again));
    await saved.restore(restored.projections.projector);
    restored.goOn(store);
    const codedIn = (each: Store, column: string) => {
      const dictionary = each.projections.rows.table('acme', 'Patient')!.dictionaryOf(column)!;
      return texts(dictionary).filter((text) => text?.replaceAll('\0', '') !== '');
    };
    for (const each of [store, restored]) erase(each, 'ann');
    await again.store.whenIdle();
    // Three sealed segments, of each the two columns that are coded.
    expect(again.store.counts).toMatchObject({ written: 3, hydrated: 6 });
    const columns = ['_pk', 'who', 'name', 'valid_from'];
    const all = { time: { system: 'all', valid: 'all' } } as const;
    expect(restored.read('Patient', columns, all)).toEqual(store.read('Patient', columns, all));
    expect(restored.read('Patient', columns, all)).toHaveLength(8);
    expect(restored.projections.digests()).toEqual(store.projections.digests());
    // What comes back is what the new files say, and a later erasure finds it so.
    for (const each of [store, restored]) erase(each, 'bob');
    await again.store.whenIdle();
    again.store.trim(0);
    expect(restored.projections.digests()).toEqual(store.projections.digests());
    // What no cell holds any more is in no dictionary either, however many held it before the start.
    for (const each of [store, restored]) {
      for (const step of each.projections.rows.wipe()) expect(step).toBeUndefined();
      expect([codedIn(each, 'who'), codedIn(each, 'name')]).toEqual([[], []]);
    }
    for (const each of [rows.store, again.store]) await each.close();
  });

  test('a key falls back to what others have of it, after a start too', async () => {
    const saved = await SavedState.make();
    const rows = saved.resting(0, 2);
    const store = patients(rows);
    for (const who of ['bob', 'ann', 'cy', 'ann']) put(store, [{ id: 'a', who, name: `of ${who}` }]);
    put(store, [{ id: 'b', who: 'ann', name: 'b' }]);
    erase(store, 'ann');
    const left = ['a:of bob', 'a:of cy'];
    expect(keyed(store, mainBranch, 'all')).toEqual(left);
    await saved.save(store.projections.projector, rows.store);
    const again = saved.resting(0, 2);
    const restored = Store.of('acme', freshProjections(undefined, again));
    await saved.restore(restored.projections.projector);
    restored.goOn(store);
    for (const each of [store, restored]) {
      expect(keyed(each, mainBranch, 'all')).toEqual(left);
      put(each, [
        { id: 'a', who: 'cy', name: 'new' },
        { id: 'b', who: 'cy', name: 'new' },
      ]);
      expect(keyed(each, mainBranch, 'all')).toEqual([...left, 'a:new', 'b:new']);
      expect(keyed(each, mainBranch, each.time)).toEqual(['a:new', 'b:new']);
      erase(each, 'cy');
      expect(keyed(each, mainBranch, 'all')).toEqual(['a:of bob']);
      expect(each.projections.rows.table('acme', 'Patient')!.counts.get(1)).toEqual({ versions: 1, live: 0 });
    }
    for (const each of [rows.store, again.store]) await each.close();
  });

  test('a row of the subject is written, erased and written again under the same key', () => {
    const store = patients();
    put(store, [{ id: 'a', who: 'ann', name: 'one' }]);
    erase(store, 'ann');
    expect(read(store)).toEqual([]);
    put(store, [{ id: 'a', who: 'ann', name: 'two' }]);
    expect(read(store)).toEqual(['a:two']);
    expect(store.read('Patient', ['name'], { keys: ['a'] })).toEqual([{ name: 'two' }]);
    expect(read(replayed(withoutKeys(store.entries)))).toEqual(['a:two']);
  });
});

describe('versions of a subject', () => {
  test('and their texts are found on files without being brought into memory, of codes only what concerns somebody', async () => {
    const saved = await SavedState.make();
    const rows = saved.resting(1e6, 4);
    const store = patients(rows);
    for (let i = 0; i < 12; i++) put(store, [{ id: `k${i}`, who: i % 3 === 0 ? 'ann' : 'bob', name: `name ${i % 4}` }]);
    await rows.store.whenIdle();
    await saved.save(store.projections.projector, rows.store);
    const again = saved.resting(1e6, 4);
    const restored = Store.of('acme', freshProjections(undefined, again));
    await saved.restore(restored.projections.projector);
    restored.goOn(store);
    const found = versionsOf(restored, 'ann');
    expect(found).toEqual(versionsOf(store, 'ann'));
    expect(found.versions[0]!.positions).toHaveLength(4);
    const textsOf = (of: Store, concerns: (text: string) => boolean, keysIn: LettersInARow | null = null): string[] => {
      const cellsIn = new LettersInARow('name k0');
      const told: string[] = [];
      const tell = (text: string): void => void told.push(text);
      drained(of.projections.rows.textsOf(found.versions, { key: tell, cell: tell, concerns, keysIn, cellsIn }));
      return told.sort();
    };
    const all = ['ann', 'ann', 'ann', 'ann', 'k0', 'k3', 'k6', 'k9', 'name 0', 'name 1', 'name 2', 'name 3'];
    expect(textsOf(restored, () => true).filter((text) => all.includes(text))).toEqual(all);
    expect(textsOf(restored, () => true)).toEqual(textsOf(store, () => true));
    const glances = vi.spyOn(SegmentFile.prototype, 'glance');
    const some = textsOf(restored, (text) => text === 'name 3');
    expect(some.filter((text) => text.startsWith('name'))).toEqual(['name 0', 'name 1', 'name 2', 'name 3']);
    expect(some).not.toContain('ann');
    const looked = glances.mock.calls.map(([name]) => name);
    expect(new Set(looked).has('name')).toBe(true);
    expect(new Set(looked).has('who')).toBe(false);
    glances.mockClear();
    const told = textsOf(restored, () => false, new LettersInARow('all about key9a, LK0X'));
    // Keys of two letters are nobody’s to look for; the last segment still grows, and no file says how its keys begin.
    expect([told, glances.mock.calls.length]).toEqual([['k9'], 0]);
    glances.mockRestore();
    expect(again.store.counts.hydrated).toBe(0);
    for (const each of [rows.store, again.store]) await each.close();
  });

  test('are found in all types and paths of a tenant, on all branches, by texts and integers alike', () => {
    const store = patients();
    const account = { kind: 'register-type', name: 'Account', primaryKey: null, graphTriggers: [] } as const;
    store.run({ ...account, properties: { owner: property('integer', { subject: true }) } });
    put(store, [
      { id: 'a', who: '7' },
      { id: 'b', who: '8' },
      { id: 'c', who: null },
    ]);
    put(store, [{ id: 'd', who: '7' }], 'acme/eu');
    put(store, [{ id: 'e', who: '7' }], 'globex');
    put(store, [{ id: 'f', who: '7' }], null);
    const first = store.position;
    store.put(
      'Account',
      { id: 'string', owner: 'integer' },
      [
        { id: 'x', owner: 7n },
        { id: 'y', owner: 70n },
      ],
      { path: 'acme' },
    );
    store.run({ kind: 'fork-branch', name: 'dev', source: mainBranch, shares: 'everything' });
    store.run({ kind: 'delete-rows', type: 'Patient', keys: ['a'] }, 'acme', 'dev');
    expect(versionsOf(store, '7')).toEqual({
      versions: [
        { type: 'Account', paths: ['acme'], positions: [first] },
        { type: 'Patient', paths: ['acme', 'acme/eu'], positions: [3, 6, first + 3] },
      ],
      end: store.position,
    });
    expect(versionsOf(store, '7', null).versions).toEqual([{ type: 'Patient', paths: [null], positions: [8] }]);
    expect(versionsOf(store, '07').versions).toEqual([]);
    expect(versionsOf(store, '7', 'acme', first + 1).versions).toEqual([
      { type: 'Patient', paths: ['acme'], positions: [first + 3] },
    ]);
    // A branch that stands for another one keeps what it reads.
    store.run({ kind: 'fork-branch', name: 'trial', source: 'dev', shares: 'everything' });
    store.run({ kind: 'delete-branch', name: 'dev' });
    expect(versionsOf(store, '7').versions[1]!.positions).toContain(first + 3);
    store.run({ kind: 'delete-branch', name: 'trial' });
    expect(versionsOf(store, '7').versions[1]!.positions).not.toContain(first + 3);
    store.run({ kind: 'remove-rows', type: 'Patient', keys: ['a'] }, 'acme');
    expect(versionsOf(store, '7').versions[1]!.positions).toEqual([6]);
  });

  test('are those of a list, whatever the layout, and those that came since', () =>
    fc.assert(
      fc.asyncProperty(subjectHistories(25), fc.boolean(), async (history, rests) => {
        const saved = await SavedState.make();
        const rows = saved.resting();
        const store = patients(rests ? rows : { settings: { segmentRows: 3 } });
        const half = Math.floor(history.length / 2);
        play(store, history.slice(0, half));
        const first = versionsOf(store, 'ann');
        if (rests) await rows.store.whenIdle();
        rows.store.trim();
        play(store, history.slice(half));
        const gone = store.entries
          .slice()
          .some(({ body }) => body.kind === 'removal' || body.kind === 'erasure' || body.kind === 'branch');
        const since = versionsOf(store, 'ann', 'acme', first.end);
        const all = positionsIn(versionsOf(store, 'ann').versions);
        expect(positionsIn(since.versions)).toEqual(all.filter((position) => position >= first.end));
        const written = store.entries.flatMap(({ body, context, position }) =>
          body.kind === 'rows' && body.subjects && context.tenant === 'acme'
            ? texts(body.subjects, body.ops.length).flatMap((who, row) => (who === 'ann' ? [position + row] : []))
            : [],
        );
        if (gone) for (const position of all) expect(written).toContain(position);
        else expect(all).toEqual(written);
        await rows.store.close();
      }),
      { numRuns: 30 },
    ));
});

const positionsIn = (versions: readonly { readonly positions: readonly number[] }[]): readonly number[] =>
  versions.flatMap(({ positions }) => positions);

function keyed(store: Store, branch: string, time: bigint | 'all', tenant = store.tenant): string[] {
  const keys = ['a', 'b', 'c', 'é', 'k\u{1f600}'];
  const at = { system: time, valid: 'all' } as const;
  const rows = store.read('Patient', ['_pk', 'name'], { keys, time: at, tenant }, store.position, branch);
  return rows.map((row) => `${String(row['_pk'])}:${String(row['name'])}`);
}

function told({ leaf, position, time, context, body }: CommittedEntry): string {
  return JSON.stringify({ leaf, position, time, context, body }, (_, value: unknown) =>
    typeof value === 'bigint' ? `${value}n` : ArrayBuffer.isView(value) ? [...(value as Uint8Array)] : value,
  );
}

function patientsFrom(entries: readonly CommittedEntry[], rows: RowStorageOptions): Store {
  const store = Store.of('acme', freshProjections(undefined, rows));
  store.replay(entries);
  return store;
}

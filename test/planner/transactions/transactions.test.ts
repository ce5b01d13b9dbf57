/** What a transaction reads of its own, what nobody else does, and what becomes of it. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type CommittedEntry, rowBodiesOf } from '../../../src/log/entries/entry.ts';
import type { Outcome } from '../../../src/projections/command.ts';
import { type Row, TestStore } from '../../harness.ts';
import { ann, bob, refused, Teller } from './world.ts';

let store: TestStore;
beforeAll(async () => {
  store = await TestStore.open('2024-01-01');
  await store.register('Account', { id: 'string', balance: 'integer', note: 'string' }, 'id');
  await store.register('Entry', { id: 'string', account: 'string', amount: 'integer' }, 'id');
});
afterAll(() => store.close());

let minute = 0;
beforeEach(async () => {
  store.clock.set(`2024-02-01T${String(Math.floor(++minute / 60)).padStart(2, '0')}:${String(minute % 60).padStart(2, '0')}:00Z`);
  for (const type of ['Account', 'Entry']) await store.execute(`DELETE FROM ${type}`, [], ann);
  await store.execute("INSERT INTO Account (id, balance, note) VALUES ('a', 10, 'first'), ('b', 20, 'second')", [], ann);
});

const outside = (sql = 'SELECT id, balance FROM Account AS OF CURRENT ORDER BY id') => store.rows(sql, ann);
/** Versions of a key that are believed now. */
async function believed(id: string): Promise<Row[]> {
  return store.rows(
    `SELECT balance, valid_from, valid_to, system_from FROM Account WHERE id = '${id}' AND valid_to > TIMESTAMP '2024-02-01' AND system_to = 9223372036854775807 ORDER BY valid_from`,
    ann,
  );
}

/** Commits, and lists all entries since the commit began. */
async function committed(
  teller: Teller,
): Promise<{ readonly outcome: Outcome | null; readonly written: readonly CommittedEntry[] }> {
  const { log } = store.service.store;
  const { leaves } = log.status();
  const outcome = await teller.commit();
  const written: CommittedEntry[] = [];
  for await (const entry of log.read(leaves)) written.push(entry);
  return { outcome, written };
}

const balances = 'SELECT id, balance FROM Account ORDER BY id';

describe('reads', () => {
  test('what it inserted, updated and deleted, which nobody else sees before the commit and everybody after it', async () => {
    const teller = new Teller(store);
    await teller.run("INSERT INTO Account (id, balance) VALUES ('c', 30)");
    expect(await teller.rows("SELECT balance FROM Account WHERE id = 'c'")).toEqual([{ balance: 30n }]);
    await teller.run("UPDATE Account SET balance = balance + 1 WHERE id = 'c'");
    await teller.run("UPDATE Account SET balance = balance + 1 WHERE id IN ('a', 'c')");
    await teller.run("DELETE FROM Account WHERE id = 'b'");
    const own = [
      { id: 'a', balance: 11n },
      { id: 'c', balance: 32n },
    ];
    expect(await teller.rows(balances)).toEqual(own);
    expect(await outside()).toEqual([
      { id: 'a', balance: 10n },
      { id: 'b', balance: 20n },
    ]);
    expect((await teller.commit())?.changed).toBe(true);
    expect(await outside()).toEqual(own);
  });

  test('joins, aggregates and windows over its own rows and those of the basis', async () => {
    const teller = new Teller(store);
    await teller.run("INSERT INTO Entry (id, account, amount) VALUES ('1', 'a', 5), ('2', 'a', 6), ('3', 'c', 7)");
    await teller.run("INSERT INTO Account (id, balance) VALUES ('c', 0)");
    expect(
      await teller.rows(
        'SELECT a.id, a.balance + SUM(e.amount) AS total FROM Account a JOIN Entry e ON e.account = a.id GROUP BY a.id, a.balance ORDER BY a.id',
      ),
    ).toEqual([
      { id: 'a', total: 21n },
      { id: 'c', total: 7n },
    ]);
    expect(await teller.rows('SELECT COUNT(*) AS n, SUM(balance) AS s FROM Account')).toEqual([{ n: 3n, s: 30n }]);
    teller.transaction.end();
    expect(await outside('SELECT id FROM Entry AS OF CURRENT')).toEqual([]);
  });

  test('what stood at its first statement, whatever was written since', async () => {
    const teller = new Teller(store);
    expect(await teller.rows(balances)).toHaveLength(2);
    await store.execute("INSERT INTO Account (id, balance) VALUES ('z', 1)", [], bob);
    await store.execute("UPDATE Account SET balance = 99 WHERE id = 'a'", [], bob);
    await teller.run("INSERT INTO Account (id, balance) VALUES ('c', 3)");
    expect(await teller.rows(balances)).toEqual([
      { id: 'a', balance: 10n },
      { id: 'b', balance: 20n },
      { id: 'c', balance: 3n },
    ]);
    await teller.commit();
    expect(await outside()).toHaveLength(4);
  });
});

describe('a commit', () => {
  test('is refused where a row that it wrote was written since, and leaves nothing', async () => {
    const teller = new Teller(store);
    await teller.run("INSERT INTO Account (id, balance) VALUES ('c', 3)");
    await teller.run("UPDATE Account SET balance = balance + 1 WHERE id = 'a'");
    await store.execute("UPDATE Account SET balance = 50 WHERE id = 'a'", [], bob);
    expect(await refused(teller.commit())).toBe('REL_CONFLICT stale');
    expect(await outside()).toEqual([
      { id: 'a', balance: 50n },
      { id: 'b', balance: 20n },
    ]);
    expect(await refused(teller.run(balances))).toBe('REL_NOT_FOUND');
  });

  test('is refused where a key that it inserted was inserted since', async () => {
    const teller = new Teller(store);
    await teller.run("INSERT INTO Account (id, balance) VALUES ('c', 3)");
    await store.execute("INSERT INTO Account (id, balance) VALUES ('c', 4)", [], bob);
    expect(await refused(teller.commit())).toBe('REL_CONFLICT stale');
    expect(await outside("SELECT balance FROM Account AS OF CURRENT WHERE id = 'c'")).toEqual([{ balance: 4n }]);
  });

  test('is one stretch of positions, whose snapshots show all of it or nothing', async () => {
    const teller = new Teller(store);
    await teller.run("UPDATE Account SET balance = balance - 5 WHERE id = 'a'");
    await teller.run("UPDATE Account SET balance = balance + 5 WHERE id = 'b'");
    await teller.run("UPDATE Account SET balance = balance + 5 WHERE id = 'b'");
    await teller.run("UPDATE Account SET balance = balance - 5 WHERE id = 'a'");
    const outcome = await teller.commit();
    expect(await outside()).toEqual([
      { id: 'a', balance: 0n },
      { id: 'b', balance: 30n },
    ]);
    // As if the row had been written once: nothing of what it was in between.
    const [before, now] = await believed('a');
    expect([before!.balance, now!.balance]).toEqual([10n, 0n]);
    expect(before!.valid_to).toBe(now!.valid_from);
    expect(await believed('a')).toHaveLength(2);
    expect(outcome!.systemFromLast - outcome!.systemFrom).toBe(3n);
    expect(outcome!.changed).toBe(true);
  });

  test('of several types and of a delete is one entry with one range of positions, and one access record', async () => {
    const teller = new Teller(store);
    await teller.run("UPDATE Account SET balance = 1 WHERE id = 'a'");
    await teller.run("INSERT INTO Entry (id, account, amount) VALUES ('1', 'a', 5), ('2', 'a', 6)");
    await teller.run("DELETE FROM Account WHERE id = 'b'");
    const { written, outcome } = await committed(teller);
    const rows = written.filter(({ body }) => rowBodiesOf(body).length > 0);
    expect(rows.map(({ body }) => rowBodiesOf(body).map(({ type, provenance }) => [type, provenance.method]))).toEqual([
      [
        ['Account', 'update'],
        ['Entry', 'insert'],
        ['Account', 'delete'],
      ],
    ]);
    const [{ time, position, positions }] = rows as [CommittedEntry];
    expect([time, time + BigInt(positions - 1)]).toEqual([outcome!.systemFrom, outcome!.systemFromLast]);
    const records = written.flatMap(({ body }) => (body.kind === 'access' ? body.records : []));
    expect(records.filter(({ template }) => template === 'COMMIT')).toHaveLength(1);
    expect(records.find(({ template }) => template === 'COMMIT')!.statements).toHaveLength(3);
    const proof = (row: string, of: object) =>
      store.invoke({ ...ann, roles: ['admin'] }, 'audit', (invocation) => invocation.proofs().entry({ row, ...of }));
    const one = await proof('1', { leaf: rows[0]!.leaf });
    const other = await proof('b', { position: position + positions - 1 });
    expect([one.row!.pk, other.row!.pk, other.position, other.leafIndex]).toEqual([
      '1',
      'b',
      position + positions - 1,
      one.leafIndex,
    ]);
  });

  test('that adds a column behind rows is one entry behind the type', async () => {
    const teller = new Teller(store);
    await teller.run("UPDATE Account SET balance = 1 WHERE id = 'a'");
    await teller.put('Loose', [{ id: '1', a: 5 }]);
    await teller.put('Loose', [{ id: '2', a: 0.5, b: 'x' }]);
    const { written, outcome } = await committed(teller);
    const kinds = written.flatMap(({ body }) => (body.kind === 'access' ? [] : body.kind));
    expect(kinds).toEqual(['type', 'type', 'parts']);
    const last = written.find(({ body }) => body.kind === 'parts')!;
    expect(outcome!.systemFromLast).toBe(last.time + BigInt(last.positions - 1));
    expect(last.positions).toBe(4);
    expect(await outside('SELECT id, a, b FROM Loose AS OF CURRENT ORDER BY id')).toEqual([
      { id: '1', a: 5, b: null },
      { id: '2', a: 0.5, b: 'x' },
    ]);
    expect(await outside("SELECT balance FROM Account AS OF CURRENT WHERE id = 'a'")).toEqual([{ balance: 1n }]);
  });

  test('of what wrote nothing answers null', async () => {
    const teller = new Teller(store);
    await teller.rows(balances);
    expect(await teller.commit()).toBeNull();
  });

  test('deletes what it had inserted, and takes a key again that it had deleted', async () => {
    const teller = new Teller(store);
    await teller.run("INSERT INTO Account (id, balance) VALUES ('c', 3)");
    await teller.run("DELETE FROM Account WHERE id IN ('a', 'c')");
    await teller.run("INSERT INTO Account (id, balance) VALUES ('a', 77)");
    expect(await refused(teller.run("INSERT INTO Account (id, balance) VALUES ('b', 1)"))).toBe('REL_CONFLICT');
    await teller.commit();
    expect(await outside()).toEqual([
      { id: 'a', balance: 77n },
      { id: 'b', balance: 20n },
    ]);
  });
});

describe('savepoints', () => {
  test('go back to what was written by then', async () => {
    const teller = new Teller(store);
    teller.transaction.savepoint('zero');
    await teller.run("UPDATE Account SET balance = 1 WHERE id = 'a'");
    teller.transaction.savepoint('one');
    await teller.run("UPDATE Account SET balance = 2 WHERE id = 'a'");
    await teller.run("INSERT INTO Account (id, balance) VALUES ('c', 3)");
    teller.transaction.savepoint('two');
    teller.transaction.rollbackTo('one');
    expect(await teller.rows(balances)).toEqual([
      { id: 'a', balance: 1n },
      { id: 'b', balance: 20n },
    ]);
    expect(teller.transaction.rollbackTo('two')).toBe(false);
    await teller.run("UPDATE Account SET balance = balance + 5 WHERE id = 'a'");
    teller.transaction.release('one');
    expect(await teller.rows("SELECT balance FROM Account WHERE id = 'a'")).toEqual([{ balance: 6n }]);
    await teller.commit();
    expect(await outside("SELECT balance FROM Account AS OF CURRENT WHERE id = 'a'")).toEqual([{ balance: 6n }]);
  });

  test('before the first statement go back to nothing', async () => {
    const teller = new Teller(store);
    teller.transaction.savepoint('zero');
    await teller.run("DELETE FROM Account WHERE id = 'a'");
    teller.transaction.rollbackTo('zero');
    expect(await teller.rows(balances)).toHaveLength(2);
    expect(await teller.commit()).toBeNull();
  });
});

/**
 * What was put under seal is derived again, byte for byte, whatever was written, widened, restarted and rebuilt since; what
 * can't be says why.
 */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { loadSettings } from '../../../src/config.ts';
import type { Caller } from '../../../src/governance/caller.ts';
import type { Action, Invocation } from '../../../src/governance/gate-contract.ts';
import { MemoryDisk } from '../../../src/log/disk/memory-disk.ts';
import { linkExhibit, type Linked, openExhibit } from '../../../src/planner/exhibits/link.ts';
import { readIngest } from '../../../src/planner/formats/ingest-reader.ts';
import type { Command } from '../../../src/projections/command.ts';
import { Service } from '../../../src/service.ts';
import { rowsOf, TestClock, TestRandom } from '../../harness.ts';

const version = '1.0.0';
const yieldTurn = (): Promise<void> => Promise.resolve();

const someone: Caller = {
  principal: 'ada',
  credential: 'token',
  tokenId: 't',
  tenant: null,
  path: 'acme',
  roles: ['analyst'],
  attributes: { level: 3, team: 'red' },
  purposes: [],
  door: 'test',
  branch: 'main',
  clientIp: null,
  sharedFrom: null,
};

/** Without a tenant: what is registered so, every tenant inherits. */
const everybody = { path: null } as const;

/** A store that can be closed and opened again on what it left. */
class Reopened {
  readonly clock = new TestClock('2024-01-01');
  readonly disk = new MemoryDisk();
  service!: Service;
  #random = 1;

  async open(engine = version): Promise<void> {
    this.service = await Service.open({
      settings: loadSettings({
        env: { SERVICE_IN_MEMORY: 'true', SERVICE_QUERY_QUOTA: '1000000' },
        workingDirectory: '/nowhere',
        homeDirectory: '/nowhere',
      }),
      disk: this.disk,
      clock: this.clock,
      random: new TestRandom(this.#random++),
      version: engine,
      say: () => undefined,
      derived: { machineBytes: 2 ** 30 },
      sealIdleMs: 0,
      yieldTurn,
    });
  }

  run<T>(action: Action, use: (invocation: Invocation) => Promise<T>, caller: Partial<Caller> = {}): Promise<T> {
    const request = { action, purpose: null, correlationId: this.service.ids.next() };
    return this.service.gate.invoke({ ...someone, ...caller }, request, use);
  }

  submit(command: Command, caller: Partial<Caller> = {}) {
    const actions: Partial<Record<Command['kind'], Action>> = {
      'put-rows': 'ingest',
      'remove-rows': 'remove',
      'delete-rows': 'delete',
    };
    return this.run(actions[command.kind] ?? 'schema', (invocation) => invocation.submit(command), caller);
  }

  async put(type: string, rows: readonly object[], caller: Partial<Caller> = {}): Promise<void> {
    this.clock.wallNs += 1_000_000n;
    await this.run(
      'ingest',
      async (invocation) => {
        const definition = invocation.snapshot().catalog.type(type)!;
        const body = Buffer.from(rows.map((row) => JSON.stringify(row)).join('\n'));
        for await (const batch of readIngest(once(body), { definition, batchRows: 1e6, batchBytes: 1e9 })) {
          expect(batch.rejections).toEqual([]);
          const provenance = { source: 'test', method: 'put', confidence: 0.5, derivedFrom: null };
          const outcome = await invocation.submit({
            kind: 'put-rows',
            type,
            rows: batch.rows,
            atomic: true,
            createType: false,
            provenance,
          });
          expect(outcome.rejected).toBe(0);
        }
      },
      caller,
    );
  }

  evolve(type: string, columns: Record<string, string>): Promise<unknown> {
    const properties = Object.fromEntries(Object.entries(columns).map(([name, as]) => [name, property(as)]));
    return this.submit({ kind: 'evolve-type', name: type, properties });
  }

  link(exhibit: string, request: { sql: string } | { text: string }, caller: Partial<Caller> = {}): Promise<Linked> {
    const parts = { planner: this.service.planner, engine: this.service.version, yieldTurn };
    const act = 'sql' in request ? 'query' : 'note';
    return this.run(
      'replay',
      (invocation) => linkExhibit(invocation, parts, { exhibit, act, purpose: null, sync: false, ...request }),
      caller,
    );
  }

  async replay(exhibit: string, seq: number, caller: Partial<Caller> = {}): Promise<Record<string, unknown>> {
    const sql = `EXPLAIN_REPLAY('${exhibit}', SEQ => ${seq})`;
    const answer = await this.run('query', (invocation) => this.service.planner.query(invocation, { sql }), caller);
    return rowsOf(answer)[0]!;
  }
}

const property = (type: string) => ({
  type: type as 'string',
  required: false,
  masked: false,
  indexed: false,
  subject: false,
  dims: 0,
});

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

let store: Reopened;
let exhibit: string;

beforeEach(async () => {
  store = new Reopened();
  await store.open();
  exhibit = store.service.ids.next();
  await store.submit(
    {
      kind: 'register-type',
      name: 'Person',
      properties: {
        key: property('string'),
        name: property('string'),
        age: property('integer'),
        score: property('number'),
        member: property('boolean'),
        seen: property('timestamp'),
        extra: property('json'),
      },
      primaryKey: 'key',
      graphTriggers: [],
    },
    everybody,
  );
  await store.submit(
    {
      kind: 'register-type',
      name: 'Purchase',
      properties: { no: property('string'), person: property('string'), cents: property('integer') },
      primaryKey: 'no',
      graphTriggers: [],
    },
    everybody,
  );
  const names = ['Ada', 'Ægir', 'Bob', '😀', 'cléo', 'Dan "d" \\', ''];
  for (const path of ['acme', 'acme/eu', 'globex']) {
    const people = Array.from({ length: 40 }, (_, i) => ({
      key: `p${i}`,
      name: names[i % names.length],
      age: i % 5 === 0 ? null : (i * 7919) % 97,
      score: i / 7,
      member: i % 3 === 0,
      seen: `2023-0${1 + (i % 9)}-01`,
      extra: { i, big: 'x'.repeat(i % 4) },
    }));
    await store.put('Person', people, { path });
    await store.put(
      'Person',
      people.slice(0, 10).map((person) => ({ ...person, age: 1, name: 'renamed' })),
      { path },
    );
    await store.put(
      'Purchase',
      Array.from({ length: 60 }, (_, i) => ({ no: `o${i}`, person: `p${(i * 13) % 45}`, cents: i * 101 - 300 })),
      { path },
    );
  }
  await store.submit({ kind: 'delete-rows', type: 'Person', keys: ['p3', 'p11'] });
  const view =
    'CREATE MATERIALIZED VIEW Totals AS SELECT person, SUM(cents) AS total FROM Purchase GROUP BY person REFRESH INCREMENTAL EVERY 60';
  await store.run('schema', (invocation) => store.service.planner.query(invocation, { sql: view }));
  await store.run('replay', (invocation) => openExhibit(invocation, { engine: version }, { exhibit, title: 'all', sync: false }));
});

afterEach(() => store.service.close());

const then = '2024-01-01T00:00:00.002500000Z';
const statements = [
  'SELECT * FROM Person',
  'SELECT * FROM Person AS OF CURRENT',
  `SELECT * FROM Person AS OF SYSTEM TIME '${then}'`,
  "SELECT * FROM Person AS OF '2024-06-01'",
  'SELECT * FROM Person WITH PROVENANCE',
  "SELECT key, name FROM Person WHERE _pk = 'p3' WITH PROVENANCE",
  'SELECT key FROM Person WHERE age > 50',
  'SELECT key FROM Person WHERE age BETWEEN 10 AND 40 AND NOT member = true',
  'SELECT key FROM Person WHERE age IS NULL',
  'SELECT key, age + 1 AS next FROM Person WHERE age IN (1, 19, 45)',
  "SELECT name FROM Person WHERE name LIKE '%d%'",
  "SELECT name, extra FROM Person WHERE name = '😀'",
  'SELECT extra FROM Person LIMIT 7',
  'SELECT DISTINCT name FROM Person',
  'SELECT DISTINCT member, age FROM Person AS OF CURRENT',
  'SELECT COUNT(*) AS c FROM Person',
  'SELECT COUNT(*) AS c, SUM(age) AS s, AVG(score) AS a, MIN(seen) AS f, MAX(name) AS l FROM Person',
  'SELECT name, COUNT(*) AS c FROM Person GROUP BY name',
  'SELECT member, SUM(score) AS s FROM Person AS OF CURRENT GROUP BY member',
  'SELECT name, AVG(age) AS a FROM Person GROUP BY name HAVING COUNT(*) > 3',
  'SELECT age, COUNT(*) AS c FROM Person GROUP BY age ORDER BY c DESC, age LIMIT 5',
  'SELECT key, score FROM Person ORDER BY score DESC, key LIMIT 9',
  'SELECT key FROM Person ORDER BY name COLLATE UNICODE, key',
  'SELECT key, score / 3 AS third, score * score AS square FROM Person',
  'SELECT key, CASE member WHEN true THEN name ELSE key END AS label FROM Person',
  "SELECT key FROM Person WHERE seen >= '2023-05-01'",
  "SELECT key FROM Person WHERE seen < now() - INTERVAL '200 days'",
  'SELECT key FROM Person WHERE system_from < now() AND valid_to > now()',
  'SELECT key, system_from, system_to, valid_from, valid_to FROM Person',
  'SELECT tenant_id, namespace_path, COUNT(*) AS c FROM Person GROUP BY tenant_id, namespace_path',
  'SELECT id, _pk FROM Person WHERE age = 1',
  'SELECT * FROM Purchase WHERE cents < 0',
  'SELECT person, SUM(cents) AS total FROM Purchase GROUP BY person ORDER BY total DESC LIMIT 10',
  'SELECT SUM(cents) AS total FROM Purchase AS OF CURRENT',
  'SELECT no FROM Purchase LIMIT 20',
  'SELECT p.name, o.cents FROM Person p INNER JOIN Purchase o ON p.key = o.person',
  'SELECT p.key, o.no FROM Person p LEFT JOIN Purchase o ON p.key = o.person AS OF CURRENT',
  'SELECT p.key, o.no FROM Person p RIGHT JOIN Purchase o ON p.key = o.person',
  'SELECT p.key, o.no FROM Person p FULL JOIN Purchase o ON p.key = o.person AND p.age > 20',
  'SELECT p.name, COUNT(*) AS c, SUM(o.cents) AS s FROM Person p INNER JOIN Purchase o ON p.key = o.person GROUP BY p.name ORDER BY p.name',
  'SELECT key FROM Person WHERE key IN (SELECT person FROM Purchase WHERE cents > 4000)',
  'SELECT n FROM (SELECT name AS n, COUNT(*) AS c FROM Person GROUP BY name) AS t WHERE c > 10',
  'SELECT key AS k FROM Person UNION SELECT person AS k FROM Purchase',
  'SELECT key AS k FROM Person UNION ALL SELECT person AS k FROM Purchase',
  'SELECT key AS k FROM Person INTERSECT SELECT person AS k FROM Purchase',
  'SELECT key AS k FROM Person EXCEPT SELECT person AS k FROM Purchase',
  'WITH rich AS (SELECT person, SUM(cents) AS s FROM Purchase GROUP BY person) SELECT * FROM rich WHERE s > 5000',
  'SELECT p.*, o.* FROM Person p INNER JOIN Purchase o ON p.key = o.person AS OF CURRENT ORDER BY o.no, p.namespace_path LIMIT 30',
  "PURPOSE 'test' SELECT COUNT(*) AS c FROM Person",
  "SELECT * FROM Person WHERE key = 'nobody'",
  'SELECT name, COUNT(*) AS c FROM Person GROUP BY name FACETS name, age',
  'SELECT * FROM Totals',
  'SELECT t.person, p.name FROM Totals t INNER JOIN Person p ON p.key = t.person AS OF CURRENT',
];

async function linkAll(): Promise<Map<number, string>> {
  const seals = new Map<number, string>();
  for (const sql of statements) {
    const { link, rowCount } = await store.link(exhibit, { sql });
    expect(rowCount, sql).not.toBeNull();
    seals.set(link.link, link.seal);
  }
  const { link } = await store.link(exhibit, { text: 'that is all' });
  seals.set(link.link, link.seal);
  return seals;
}

async function expectAllDerived(seals: ReadonlyMap<number, string>): Promise<void> {
  for (const [seq, seal] of seals) {
    const sql = statements[seq - 1] ?? 'the note';
    expect({ sql, ...(await store.replay(exhibit, seq)) }).toMatchObject({
      sql,
      seq: BigInt(seq),
      match: true,
      reason: null,
      derived_seal: seal,
    });
  }
}

test('statements of every kind, after writes, wider columns, a restart and a rebuild', async () => {
  const seals = await linkAll();
  expect(seals.size).toBe(statements.length + 1);
  expect(new Set(seals.values()).size).toBe(seals.size);
  await expectAllDerived(seals);

  // Every type of column is widened as far as it goes, columns are added, rows change, come and end.
  await store.evolve('Person', { age: 'number', name: 'json', member: 'json', seen: 'json', score: 'json', added: 'string' });
  await store.evolve('Purchase', { cents: 'json' });
  await expectAllDerived(seals);
  await store.put('Person', [
    { key: 'p1', name: { a: 1 }, age: 1.5, added: 'new' },
    { key: 'p99', name: ['b'], member: 'perhaps' },
  ]);
  await store.put('Person', [{ key: 'p1', added: 'bounded', valid_from: '2023-01-01', valid_to: '2023-06-01' }]);
  await store.put('Purchase', [{ no: 'o1', person: 'p1', cents: 'many' }]);
  await store.put('Person', [{ key: 'p2', age: 3 }], { path: 'acme/new' });
  await store.submit({ kind: 'delete-rows', type: 'Person', keys: ['p5', 'p6'] });
  await expectAllDerived(seals);
  const drop = 'DROP MATERIALIZED VIEW Totals';
  await store.run('schema', (invocation) => store.service.planner.query(invocation, { sql: drop }));
  await expectAllDerived(seals);

  await store.service.close();
  await store.open();
  await expectAllDerived(seals);

  await store.service.close();
  const derived = `${store.service.settings.SERVICE_DATA_DIR}/projections`;
  const saved = await store.disk.list(derived);
  expect(saved).toContain('checkpoint');
  for (const name of saved) await store.disk.unlink(`${derived}/${name}`);
  await store.open();
  await expectAllDerived(seals);
  // What is asked now is another question, and gets another answer.
  const now = await store.link(exhibit, { sql: statements[0]! });
  expect(now.link.resultHash).not.toBe(store.service.store.projections.exhibits.exhibit(exhibit, 'acme')!.links[1]!.resultHash);
});

test('rows that were removed for good since make exactly their own links differ, and the reason says so', async () => {
  const all = await store.link(exhibit, { sql: 'SELECT key FROM Person' });
  const other = await store.link(exhibit, { sql: "SELECT key FROM Person WHERE key = 'p8'" });
  const purchases = await store.link(exhibit, { sql: 'SELECT * FROM Purchase' });
  await store.submit({ kind: 'remove-rows', type: 'Person', keys: ['p7'] }, { path: 'globex' });
  expect(await store.replay(exhibit, all.link.link)).toMatchObject({ match: true });
  await store.submit({ kind: 'remove-rows', type: 'Person', keys: ['p7'] }, { path: 'acme/eu' });
  const erased = await store.replay(exhibit, all.link.link);
  expect(erased).toMatchObject({ match: false, reason: 'erased_rows', stored_seal: all.link.seal });
  expect(erased['derived_seal']).not.toBe(all.link.seal);
  expect(await store.replay(exhibit, other.link.link)).toMatchObject({ match: true, reason: null });
  expect(await store.replay(exhibit, purchases.link.link)).toMatchObject({ match: true, reason: null });
  // Put after the removal, a link knows nothing of what was removed before.
  const later = await store.link(exhibit, { sql: 'SELECT key FROM Person' });
  expect(await store.replay(exhibit, later.link.link)).toMatchObject({ match: true });
  await store.service.close();
  await store.open();
  expect(await store.replay(exhibit, all.link.link)).toMatchObject({ match: false, reason: 'erased_rows' });
});

test('a forged link is tampered with, or of another engine', async () => {
  // Rows that were gone before the link was put explain nothing.
  await store.submit({ kind: 'remove-rows', type: 'Person', keys: ['p9'] });
  await store.link(exhibit, { sql: 'SELECT key FROM Person' });
  const forge = async (resultHash: string): Promise<number> => {
    const { recipe } = await store.run('replay', async (invocation) => {
      const desk = invocation.exhibits();
      const view = desk.exhibit(exhibit);
      return desk.entry(view, view.links[1]!);
    });
    await store.run('replay', (invocation) =>
      invocation.submit({ kind: 'link-exhibit', exhibit, open: false, act: 'query', recipe: recipe!, resultHash }),
    );
    return store.service.store.projections.exhibits.exhibit(exhibit, 'acme')!.links.length - 1;
  };
  const forged = await forge('ab'.repeat(32));
  expect(await store.replay(exhibit, forged)).toMatchObject({ match: false, reason: 'tampered' });
  expect(await store.replay(exhibit, 1)).toMatchObject({ match: true, reason: null });
  await store.service.close();
  await store.open('2.0.0');
  // Another engine that comes to the same bytes is no difference; one that does not is named.
  expect(await store.replay(exhibit, 1)).toMatchObject({ match: true, reason: null });
  expect(await store.replay(exhibit, forged)).toMatchObject({ match: false, reason: 'engine_version_changed' });
});

test('a branch: what it read from its source, and what it wrote; once it is gone, that it can not be read', async () => {
  const dev = { branch: 'dev' };
  await store.run('fork', (invocation) =>
    invocation.submit({ kind: 'fork-branch', name: 'dev', source: 'main', shares: 'everything' }),
  );
  await store.put(
    'Person',
    [
      { key: 'p1', name: 'on the branch' },
      { key: 'q1', name: 'new' },
    ],
    dev,
  );
  const sql = 'SELECT key, name, system_from FROM Person AS OF CURRENT';
  const onDev = await store.link(exhibit, { sql }, dev);
  const onMain = await store.link(exhibit, { sql });
  expect(onDev.rowCount).toBe(onMain.rowCount! + 1);
  await store.evolve('Person', { age: 'json', other: 'string' });
  await store.put('Person', [{ key: 'p1', name: 'main again' }]);
  await store.submit({ kind: 'evolve-type', name: 'Person', properties: { score: property('json') } }, dev);
  await store.put('Person', [{ key: 'p1', name: 'branch again', score: { a: 1 } }], dev);
  for (const { link } of [onDev, onMain]) expect(await store.replay(exhibit, link.link)).toMatchObject({ match: true });
  await store.service.close();
  await store.open();
  for (const { link } of [onDev, onMain]) expect(await store.replay(exhibit, link.link)).toMatchObject({ match: true });
  await store.run('fork', (invocation) => invocation.submit({ kind: 'delete-branch', name: 'dev' }));
  expect(await store.replay(exhibit, onDev.link.link)).toMatchObject({
    match: false,
    reason: 'missing_segment',
    derived_seal: null,
  });
  expect(await store.replay(exhibit, onMain.link.link)).toMatchObject({ match: true });
  // A branch of the same name is another branch.
  await store.run('fork', (invocation) =>
    invocation.submit({ kind: 'fork-branch', name: 'dev', source: 'main', shares: 'everything' }),
  );
  expect(await store.replay(exhibit, onDev.link.link)).toMatchObject({ match: false, reason: 'missing_segment' });
});

test('what is drawn at random is refused, behind a view too', async () => {
  const sql = 'SELECT random() AS r FROM Person';
  await store.run('schema', (invocation) => invocation.submit({ kind: 'create-view', name: 'Drawn', sql, refreshSecs: 60 }));
  for (const each of [sql, 'SELECT * FROM Drawn'])
    await expect(store.link(exhibit, { sql: each })).rejects.toMatchObject({
      code: 'REL_UNPROCESSABLE',
      message: 'RANDOM yields another value each time: its answer cannot be derived again',
    });
});

test('what reads lookup tables is refused behind a view too', async () => {
  const view =
    'CREATE MATERIALIZED VIEW Named AS SELECT LOOKUP people(key) -> name AS n FROM Person REFRESH INCREMENTAL EVERY 60';
  await store.run('schema', (invocation) =>
    invocation.submit({
      kind: 'create-view',
      name: 'Named',
      sql: view.slice(view.indexOf('SELECT'), view.indexOf(' REFRESH')),
      refreshSecs: 60,
    }),
  );
  await expect(store.link(exhibit, { sql: 'SELECT * FROM Named' })).rejects.toMatchObject({ code: 'REL_UNPROCESSABLE' });
});

test('now() is the clock of then', async () => {
  const { link } = await store.link(exhibit, {
    sql: "SELECT COUNT(*) AS c FROM Person WHERE seen > now() - INTERVAL '200 days'",
  });
  store.clock.set('2031-01-01');
  expect(await store.replay(exhibit, link.link)).toMatchObject({ match: true });
});

test('a link whose entry can not be read any more is missing, not tampered with', async () => {
  const { link } = await store.link(exhibit, { sql: 'SELECT key FROM Person' });
  expect(await store.replay(exhibit, link.link)).toMatchObject({ match: true });
  const directory = `${store.service.settings.SERVICE_DATA_DIR}/log`;
  const [file] = (await store.disk.list(directory)).filter((name) => name.endsWith('.log'));
  const whole = (await store.disk.readFile(`${directory}/${file}`))!;
  const rotten = whole.slice();
  for (let at = 4_096; at < rotten.length; at++) rotten[at]! ^= 0x5a;
  await store.disk.replaceFile(`${directory}/${file}`, rotten);
  const answer = await store.replay(exhibit, link.link);
  await store.disk.replaceFile(`${directory}/${file}`, whole);
  expect(answer).toMatchObject({ match: false, reason: 'missing_segment', derived_seal: null, stored_seal: link.seal });
});

test('a replay needs the right to it, which an administrator does not have', async () => {
  const { link } = await store.link(exhibit, { sql: 'SELECT key FROM Person' });
  await expect(store.replay(exhibit, link.link, { credential: 'admin', path: 'acme' })).rejects.toMatchObject({
    code: 'REL_ACL',
  });
  await expect(store.link(exhibit, { text: 'x' }, { credential: 'admin' })).rejects.toMatchObject({ code: 'REL_ACL' });
  // Their own tenant's, for a token that is bound to another one.
  await expect(store.replay(exhibit, link.link, { tenant: 'globex', path: 'globex' })).rejects.toMatchObject({
    code: 'REL_NOT_FOUND',
  });
  // Who may look but not ask is shown the chain, and no recipe.
  await store.run(
    'inspect',
    async (invocation) => {
      const desk = invocation.exhibits();
      const view = desk.exhibit(exhibit);
      expect(view.links.map(({ seal }) => seal)).toContain(link.seal);
      expect(desk.mayReplay(link)).toBe(false);
      await expect(desk.entry(view, link)).rejects.toMatchObject({ code: 'REL_ACL' });
    },
    { credential: 'admin' },
  );
  const recorded = await store.run('audit', (invocation) => invocation.audit().entries({ limit: 1000 }));
  expect(recorded.entries.map(({ code }) => code)).toContain('REL_ACL');
});

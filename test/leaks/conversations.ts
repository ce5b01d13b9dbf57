/** What takes more than one request: pages, exhibits, standing queries, proofs, branches, answers that are renewed with time. */
import { commandOf } from '../../src/doors/relational/parse-command.ts';
import { checkIndexed } from '../../src/doors/relational/create-index.ts';
import { droppedNotice, existingObjectsIn } from '../../src/doors/relational/drop-statement.ts';
import { assert, ServiceError } from '../../src/errors.ts';
import type { Caller } from '../../src/governance/caller.ts';
import type { Invocation, Transaction } from '../../src/governance/gate-contract.ts';
import { allAtOnce } from '../../src/planner/expressions/resumable-steps.ts';
import { EventStream } from '../doors/http/event-stream.ts';
import { exactJson, rowsOf } from '../harness.ts';
import type { Adversary } from './adversaries.ts';
import { renaming } from './changes.ts';
import type { Compared } from './compare.ts';
import { ways } from './doors.ts';
import { type Heard, type Sent, type SentHeaders, settled } from './lab.ts';
import { bodyless, positions } from './routes.ts';
import { type Stage, victimPath } from './stage.ts';

export interface Conversation {
  readonly name: string;
  readonly compared?: Compared;
  /** All replies, in order. */
  readonly hold: (stage: Stage, adversary: Adversary) => Promise<Heard[]>;
}

type Ask = (method: string, path: string, body?: object, headers?: Readonly<Record<string, string>>) => Promise<Heard>;

/** Collects what is heard. */
export const talk =
  (run: (ask: Ask, stage: Stage, adversary: Adversary, heard: Heard[]) => Promise<void>): Conversation['hold'] =>
  async (stage, adversary) => {
    const heard: Heard[] = [];
    const ask: Ask = async (method, path, body, headers = {}) => {
      const sent: Sent = {
        method,
        path,
        headers: { ...adversary.headers(stage), ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      };
      const reply = await stage.lab.ask(sent);
      heard.push(reply);
      return reply;
    };
    await run(ask, stage, adversary, heard);
    return heard;
  };

const text = (heard: Heard, member: string): string | undefined =>
  new RegExp(`"${member}":"?([^",}]*)`).exec(heard.body.toString())?.[1];

/** Between two parts of a conversation the victim goes on writing, in the first world only. */
async function meanwhile(stage: Stage, id: string, { shares }: Partial<Adversary> = {}): Promise<void> {
  await stage.lab.slot(async () => {
    if (stage.side === 'second') return;
    const { canaries } = stage;
    const row = {
      id,
      who: canaries.text('rows of the victim', 'a row written meanwhile'),
      amount: 7_000_000_000_000,
      note: 'open',
    };
    await stage.put('Deal', 'initech', 'initech', [{ ...row, id: 'd1' }]);
    // Whoever is shared some rows of an organisation is woken when it writes any of that type.
    if (shares !== undefined) return;
    await stage.put('Deal', 'acme', victimPath, [row]);
    await stage.remove('Deal', 'acme', victimPath, id, id.endsWith('h'));
  });
}

const keysWritten = ['x1', 'x2', 'x3', 'y1'];

/** Statements that come upon hidden rows by their keys, by what they hold, and through other tables; none leaves a row but under those keys. */
const written: readonly string[] = [
  ...keysWritten.flatMap((id) => [
    `UPDATE Deal SET amount = amount + 1 WHERE id = '${id}' RETURNING id, amount`,
    `DELETE FROM Deal WHERE id = '${id}' RETURNING id, amount, note`,
    `INSERT INTO Deal (id, amount, note) VALUES ('${id}', 1, 'own') RETURNING id, amount, system_from`,
    `INSERT INTO Deal (id, amount) VALUES ('${id}', 2) ON CONFLICT DO NOTHING RETURNING amount`,
    `INSERT INTO Deal (id, amount) VALUES ('${id}', 3) ON CONFLICT (id) DO UPDATE SET amount = Deal.amount + EXCLUDED.amount RETURNING amount, note`,
    `UPDATE Deal SET amount = amount * 4000000 WHERE id = '${id}'`,
    `UPDATE Deal d SET note = p.name FROM Party p WHERE d.id = '${id}' AND p.id = 'p1' RETURNING d.note`,
  ]),
  "UPDATE Deal SET note = 'told' WHERE amount > 1000000 RETURNING id",
  'DELETE FROM Deal WHERE amount > 1000000 RETURNING id, amount',
  'DELETE FROM Deal USING Dossier o WHERE Deal.id = o.id RETURNING o.id',
  'INSERT INTO Deal (id, amount) SELECT id, 1 FROM Dossier RETURNING id',
  "INSERT INTO Deal (id, amount) SELECT 'x2', COUNT(*) FROM Deal WHERE amount > 1000000 ON CONFLICT (id) DO UPDATE SET amount = EXCLUDED.amount RETURNING amount",
  "INSERT INTO Deal (id, note) VALUES ('x2', (SELECT MAX(note) FROM Deal)) ON CONFLICT (id) DO UPDATE SET note = EXCLUDED.note RETURNING note",
  "UPDATE Deal SET note = secret WHERE id = 'x1'",
  "UPDATE Deal SET note = 'x' WHERE secret LIKE 's%' AND id = 'x1'",
  "UPDATE Deal SET secret = 'mine' WHERE id = 'x1' RETURNING id",
  "UPDATE Deal SET note = note WHERE id = 'x1' RETURNING *",
  "DELETE FROM Deal WHERE id IN ('x1', 'x2', 'x3', 'x4') RETURNING id, note, amount",
  "INSERT INTO Hidden (id) VALUES ('x1')",
  'DELETE FROM hidden_view',
  'DELETE FROM SourceTrueIdentity',
];

/** Begun by the first statement that is let in. */
interface Open {
  transaction: Transaction | null;
}

function callerOf({ lab: { service } }: Stage, { authorization, 'x-organization-id': organization }: SentHeaders): Caller {
  const named = typeof organization === 'string' ? { organization } : {};
  const stated = { authorization: String(authorization), door: 'relational', clientIp: '127.0.0.1', ...named };
  return service.authenticator.dataCaller(stated as Parameters<typeof service.authenticator.dataCaller>[0]);
}

/** In the first world alone the victim has a transaction open, with rows that nobody else may see, and ends it in one way or the other. */
async function othersTransaction(stage: Stage, step: 'begin' | 'meet' | 'commit' | 'drop', open: Open): Promise<void> {
  await stage.lab.slot(async () => {
    if (stage.side === 'second') return;
    const { gate, planner, ids } = stage.lab.service;
    const caller = callerOf(stage, stage.headers('acme', victimPath));
    const transaction = (open.transaction ??= gate.begin(caller));
    const invoked = (answer: (invocation: Invocation) => Promise<unknown>, within: Transaction | null = transaction) =>
      gate.invoke(
        caller,
        { action: 'query', purpose: null, correlationId: ids.next(), ...(within && { transaction: within }) },
        answer,
      );
    if (step === 'drop') transaction.end();
    else if (step === 'meet') {
      const sql = "INSERT INTO Deal (id, amount) VALUES ('t1', 1)";
      await invoked((invocation) => planner.execute(invocation, { sql }), null);
      await invoked((invocation) => invocation.commit()).then(
        () => assert(false, 'a row that was written since refuses a commit'),
        () => undefined,
      );
      // The next one of the victim is at the head of its line.
      open.transaction = gate.begin(caller, transaction);
      await invoked((invocation) => planner.execute(invocation, { sql: 'SELECT id FROM Deal' }), open.transaction);
    } else if (step === 'commit') await invoked((invocation) => invocation.commit());
    else {
      const who = stage.canaries.text('rows of the victim', 'a row of a transaction');
      for (const id of ['t1', 'd1', 'n3'])
        await invoked((invocation) =>
          planner.execute(invocation, {
            sql: 'INSERT INTO Deal (id, who, amount) VALUES ($1, $2, 7000000000000) ON CONFLICT (id) DO UPDATE SET who = EXCLUDED.who',
            parameters: [id, who],
          }),
        );
      transaction.savepoint('one');
    }
  });
}

/** Statements of one transaction, each of which reads what those before it left. */
const statementsWithin: readonly string[] = [
  'SELECT id, amount, note FROM Deal ORDER BY id, system_from',
  "INSERT INTO Deal (id, amount, note) VALUES ('t1', 1, 'own') ON CONFLICT (id) DO UPDATE SET amount = EXCLUDED.amount RETURNING id, amount",
  'SELECT COUNT(*) AS n, SUM(amount) AS s FROM Deal WHERE amount < 1000',
  "UPDATE Deal SET amount = amount + 1 WHERE id IN ('t1', 'd1') RETURNING id, amount",
  "DELETE FROM Deal WHERE id = 'd2' RETURNING id",
  "SELECT id FROM Deal WHERE id IN ('x0', 't1', 'n3', 'd1') FOR UPDATE",
  'SELECT d.id, p.name FROM Deal d JOIN Party p ON p.id = d.who ORDER BY d.id, p.name',
  'EXPLAIN SELECT COUNT(*) FROM Deal',
  "INSERT INTO Deal (id, amount) SELECT id, 1 FROM Dossier WHERE id = 'x1' ON CONFLICT DO NOTHING RETURNING id",
  "UPDATE Deal SET note = secret WHERE id = 't1'",
];

/** Asks within an invocation of the relational door, as the adversary. */
async function invoked(
  stage: Stage,
  adversary: Adversary,
  { action, sql, within }: { readonly action: 'query' | 'inspect' | 'ingest'; readonly sql: string; readonly within?: Open },
  answer: (invocation: Invocation) => Promise<unknown>,
): Promise<Heard> {
  const headers = adversary.headers(stage);
  const { 'x-service-purpose': purpose } = headers;
  const { service } = stage.lab;
  await stage.lab.tick();
  const asking = async (): Promise<string> => {
    const caller = callerOf(stage, headers);
    if (within !== undefined) within.transaction ??= service.gate.begin(caller);
    const asked = {
      action,
      purpose: typeof purpose === 'string' ? purpose : null,
      correlationId: service.ids.next(),
      ...(within?.transaction && { transaction: within.transaction }),
    } as const;
    return exactJson(await service.gate.invoke(caller, asked, answer));
  };
  const body = await asking().catch((error: unknown) => {
    if (error instanceof ServiceError) return `${error.code} ${error.message}`;
    throw error;
  });
  return { sent: { method: 'EXECUTE', path: sql }, status: 200, headers: [], body: Buffer.from(body) };
}

/** A statement that may write, as the doors that take some will run it. */
const executed = (stage: Stage, adversary: Adversary, sql: string, within?: Open): Promise<Heard> =>
  invoked(stage, adversary, { action: 'query', sql, ...(within && { within }) }, async (invocation) => {
    const done = await stage.lab.service.planner.execute(invocation, { sql });
    return { columns: done.answer.columns, rows: rowsOf(done.answer), written: done.written };
  });

/** A question in the dialect of the relational door. */
const askedWide = (stage: Stage, adversary: Adversary, sql: string): Promise<Heard> =>
  invoked(stage, adversary, { action: 'query', sql }, async (invocation) => {
    const { answer } = await stage.lab.service.planner.execute(invocation, { sql, dialect: 'wide' });
    return { columns: answer.columns, rows: rowsOf(answer) };
  });

/** Statements of the relational door that make and drop nothing, and say what is there. */
const namedOnly: readonly string[] = [
  'CREATE INDEX ON Hidden (id)',
  'CREATE INDEX ON Deal (secret, who)',
  'CREATE INDEX ON Deal (nothing)',
  'CREATE INDEX ON hidden_view (id)',
  'CREATE INDEX ON SourceTrueIdentity (id)',
  ...['Hidden', 'Deal', 'hidden_view', 'by_note', 'SourceTrueIdentity', 'Nowhere'].flatMap((name) => [
    `DROP TABLE ${name}`,
    `DROP VIEW IF EXISTS ${name}`,
    `DROP TYPE ${name}`,
    `DROP INDEX IF EXISTS "${name}_pkey"`,
  ]),
];

/** As the relational door answers them. */
const inspected = (stage: Stage, adversary: Adversary, sql: string): Promise<Heard> =>
  invoked(stage, adversary, { action: 'inspect', sql }, async (invocation) => {
    const command = allAtOnce(commandOf(sql));
    const snapshot = invocation.snapshot();
    if (command.kind === 'drop') return command.names.map((name) => droppedNotice(command, name, existingObjectsIn(snapshot)));
    assert(command.kind === 'create-index', 'these statements make or drop something');
    checkIndexed(snapshot.catalog.type(command.table), command.table, command.columns);
    return null;
  });

/** What the Postgres catalogue tells of names: listed, looked up, counted, and by their numbers. */
const catalogued: readonly string[] = [
  'SELECT oid, relname, relkind, relnatts, relhasindex, relacl FROM pg_class ORDER BY oid',
  'SELECT attrelid, attname, atttypid, attnotnull FROM pg_attribute ORDER BY attrelid, attnum',
  'SELECT * FROM information_schema.columns ORDER BY table_name, ordinal_position',
  'SELECT * FROM information_schema.table_constraints ORDER BY table_name',
  'SELECT * FROM pg_matviews ORDER BY matviewname',
  'SELECT oid, datname FROM pg_database ORDER BY datname',
  'SELECT count(*), max(oid), min(oid) FROM pg_class',
  "SELECT to_regclass('Hidden'), to_regclass('hidden_view'), to_regclass('Deal'), to_regclass('Mine_pkey')",
  "SELECT 'Hidden'::regclass",
  "SELECT has_table_privilege('Deal', 'SELECT'), pg_get_viewdef('by_note')",
  "SELECT relname FROM pg_class WHERE relname LIKE 'Hid%'",
];

/** The same relations where the planner reads them. */
const cataloguedBeside: readonly string[] = [
  'SELECT c.oid, c.relname, c.relkind FROM pg_class c LEFT JOIN Deal d ON d.id = c.relname ORDER BY c.oid',
  'SELECT count(*) AS n, max(a.attrelid) AS m FROM pg_attribute a',
  'SELECT table_name, column_name, data_type FROM information_schema.columns ORDER BY table_name, ordinal_position',
  'SELECT conname, conrelid, confrelid FROM pg_constraint ORDER BY conname',
  'SELECT matviewname, definition FROM pg_matviews ORDER BY matviewname',
  'SELECT oid, datname FROM pg_database ORDER BY datname',
  "SELECT relname FROM pg_class WHERE relname LIKE 'Hid%'",
  'EXPLAIN SELECT * FROM pg_class c, Deal d WHERE d.id = c.relname',
];

/** Shapes that only the dialect of Postgres has. */
const wideShapes: readonly string[] = [
  'SELECT who, note, GROUPING(who, note) AS g, count(*) AS n, max(amount) AS m FROM Deal GROUP BY GROUPING SETS ((who), (note), ()) ORDER BY 1, 2, 3',
  'SELECT namespace_path, count(*) AS n FROM Deal GROUP BY ROLLUP (namespace_path) ORDER BY 1',
  'SELECT who, tenant_id, min(system_from) AS s FROM Deal GROUP BY CUBE (who, tenant_id) ORDER BY 1, 2',
  'SELECT p.id, l.n, l.m FROM Party p LEFT JOIN LATERAL (SELECT count(*) AS n, max(d.amount) AS m FROM Deal d WHERE d.who = p.id) l ON true ORDER BY 1, 2, 3',
  'SELECT p.id, l.id AS first FROM Party p, LATERAL (SELECT d.id FROM Deal d WHERE d.who = p.id ORDER BY d.amount DESC LIMIT 1) l ORDER BY 1, 2',
  "SELECT p.id, e.key, e.value FROM Party p, jsonb_each_text(jsonb_build_object('n', (SELECT count(*) FROM Deal d WHERE d.who = p.id))) e ORDER BY 1, 2",
  'SELECT DISTINCT ON (who) who, amount FROM Deal ORDER BY who, amount DESC',
  'SELECT count(DISTINCT (who, note)) AS n FROM Deal',
  'SELECT who, jsonb_agg(jsonb_build_array(id, amount) ORDER BY id, amount) AS j FROM Deal GROUP BY who ORDER BY 1',
  "SELECT g, count(d.id) AS n FROM generate_series(timestamp '2024-01-01', timestamp '2024-01-03', interval '1 day') g LEFT JOIN Deal d ON d.at >= g GROUP BY 1 ORDER BY 1",
  "SELECT sum(at - timestamp '2024-01-01') AS s, max(at - timestamp '2024-01-01') AS m FROM Deal",
  "SELECT id FROM Deal WHERE (at, interval '1 day') OVERLAPS (timestamp '2023-01-01', timestamp '2025-01-01') ORDER BY 1",
];

const committed = (stage: Stage, adversary: Adversary, within: Open): Promise<Heard> =>
  invoked(stage, adversary, { action: 'ingest', sql: 'COMMIT', within }, async (invocation) => {
    const outcome = await invocation.commit();
    return outcome && { accepted: outcome.accepted, changed: outcome.changed, from: outcome.systemFrom };
  });

/** By a session of the workbench, which stands for the adversary's own credential. */
async function byWorkbench(ask: Ask, stage: Stage, adversary: Adversary): Promise<void> {
  const own = adversary.headers(stage);
  const origin = { origin: `http://127.0.0.1:${stage.lab.door.port}`, 'content-type': 'application/json' };
  const token = String(own['authorization'] ?? 'none').replace(/^Bearer /, '');
  // The name of the cookie holds the port, which differs between two servers.
  const begun = await stage.lab.ask({
    method: 'POST',
    path: '/workbench/session',
    headers: origin,
    body: JSON.stringify({ token }),
  });
  const [, cookie = ''] = begun.headers.find(([name]) => name.toLowerCase() === 'set-cookie') ?? [];
  const session = { ...origin, cookie: cookie.split(';')[0]!, 'x-annals-session': text(begun, 'secret') ?? 'none' };
  for (const path of ['types', 'branches', 'exhibits/nobody']) await ask('GET', `/workbench/api/${path}`, undefined, session);
  await ask('POST', '/workbench/api/query', { sql: 'SELECT * FROM Deal AS OF CURRENT ORDER BY id' }, session);
  await ask('POST', '/workbench/api/query', { sql: 'SELECT COUNT(*) AS n FROM Deal' }, session);
  await ask('GET', '/workbench/api/admin/tokens', undefined, session);
  await stage.lab.ask({ method: 'DELETE', path: '/workbench/session', headers: { ...own, ...session } });
}

export const conversations: readonly Conversation[] = [
  {
    name: 'grouping sets, lateral queries and other shapes of Postgres',
    hold: async (stage, adversary) => {
      const heard: Heard[] = [];
      for (const sql of wideShapes) {
        const one = await askedWide(stage, adversary, sql);
        assert(
          !/^REL_(PARSE|NOT_IMPLEMENTED|TYPE_MISMATCH|INTERNAL)/.test(one.body.toString()),
          `${sql}: ${one.body.toString()}`,
        );
        heard.push(one);
      }
      return heard;
    },
  },
  { name: 'a session of the workbench', hold: talk(byWorkbench) },
  {
    name: 'a transaction of one’s own, while others write',
    hold: talk(async (ask, stage, adversary, heard) => {
      const own: Open = { transaction: null };
      for (const [i, sql] of statementsWithin.entries()) {
        if (i === 3) await meanwhile(stage, 'n4h', adversary);
        heard.push(await executed(stage, adversary, sql, own));
      }
      await ask('GET', '/tx');
      heard.push(await committed(stage, adversary, own));
      heard.push(await executed(stage, adversary, 'SELECT id, amount, note FROM Deal AS OF CURRENT ORDER BY id'));
      heard.push(await executed(stage, adversary, "DELETE FROM Deal WHERE id IN ('t1', 'n3')"));
    }),
  },
  {
    name: 'transactions of others',
    hold: talk(async (ask, stage, adversary, heard) => {
      for (const end of ['drop', 'commit'] as const) {
        const theirs: Open = { transaction: null };
        const own: Open = { transaction: null };
        await othersTransaction(stage, 'begin', theirs);
        for (const path of ['/tx', '/jobs']) await ask('GET', path);
        for (const sql of statementsWithin.slice(0, 4)) heard.push(await executed(stage, adversary, sql, own));
        await othersTransaction(stage, end, theirs);
        heard.push(await committed(stage, adversary, own));
        for (const sql of statementsWithin.slice(0, 3)) heard.push(await executed(stage, adversary, sql));
        heard.push(await executed(stage, adversary, "DELETE FROM Deal WHERE id = 't1'"));
        await stage.lab.slot(async () => {
          if (stage.side === 'first' && end === 'commit')
            for (const id of ['t1', 'n3'])
              await stage.must('DELETE', `/types/Deal/${id}?hard=true`, stage.headers('acme', victimPath));
        });
      }
    }),
  },
  {
    name: 'a transaction over HTTP',
    hold: talk(async (ask, stage, adversary) => {
      const own = text(await ask('POST', '/tx'), 'id');
      if (own === undefined) return;
      const within = { 'x-service-transaction': own };
      const read = async (): Promise<void> => {
        await ask('POST', '/query', { sql: 'SELECT id, amount, note FROM Deal ORDER BY id, system_from' }, within);
        await ask('POST', '/search', { query: 'open', type: 'Deal' }, within);
      };
      await ask('POST', '/ingest?object_type=Deal', { id: 't2', amount: 1, note: 'open' }, within);
      await read();
      await meanwhile(stage, 'n4h', adversary);
      await read();
      await ask('DELETE', '/types/Deal/t2', undefined, within);
      await ask('POST', `/tx/${own}/commit`);
    }),
  },
  {
    name: 'a transaction after one of others, one that is not there, and one’s own',
    hold: talk(async (ask, stage) => {
      const theirs: Open = { transaction: null };
      await othersTransaction(stage, 'begin', theirs);
      const nobodys = '01890a5d-0000-7000-8000-000000000000';
      const met = theirs.transaction?.id ?? nobodys;
      await othersTransaction(stage, 'meet', theirs);
      const own = text(await ask('POST', '/tx'), 'id') ?? nobodys;
      await ask('POST', `/tx/${own}/rollback`);
      const answers = new Set<string>();
      for (const after of [met, theirs.transaction?.id ?? nobodys, nobodys, own]) {
        const begun = await ask('POST', `/tx?after=${after}`);
        await ask('POST', `/tx/${text(begun, 'id') ?? nobodys}/rollback`);
        answers.add(`${begun.status} ${begun.body.toString().replaceAll(/"[-0-9a-f]{36}"|\d{19}/g, '?')}`);
      }
      assert(answers.size === 1, `whose a transaction is shows: ${[...answers].join(' ')}`);
      await othersTransaction(stage, 'drop', theirs);
      await stage.lab.slot(async () => {
        if (stage.side === 'first') await stage.must('DELETE', '/types/Deal/t1?hard=true', stage.headers('acme', victimPath));
      });
    }),
  },
  {
    name: 'pages of one snapshot',
    hold: talk(async (ask, stage) => {
      let reply = await ask('POST', '/query', { sql: 'SELECT id, amount FROM Deal LIMIT 2' });
      const byInstant = text(reply, 'cursor');
      for (let page = 0; page < 4; page++) {
        const cursor = text(reply, 'next_cursor');
        if (cursor === undefined) break;
        if (page === 1) await meanwhile(stage, 'n1');
        reply = await ask('POST', '/query', { sql: `SELECT id, amount FROM Deal LIMIT 2 AFTER '${cursor}'` });
      }
      if (byInstant !== undefined) await ask('POST', '/query', { sql: `SELECT id FROM Deal LIMIT 9 AFTER '${byInstant}'` });
    }),
  },
  {
    name: 'an exhibit of one’s own',
    compared: positions,
    hold: talk(async (ask, stage) => {
      const opened = await ask('POST', '/exhibits', { title: 'mine' });
      const exhibit = text(opened, 'exhibit_id');
      if (exhibit === undefined || opened.status !== 201) return;
      await ask('POST', `/exhibits/${exhibit}/links`, { sql: 'SELECT * FROM Deal' });
      await ask('POST', `/exhibits/${exhibit}/links`, { sql: 'SELECT who, COUNT(*) AS n FROM Deal AS OF CURRENT GROUP BY who' });
      await meanwhile(stage, 'n2h');
      for (const link of [1, 2]) await ask('POST', '/query', { sql: `EXPLAIN_REPLAY('${exhibit}', SEQ => ${link})` });
      await ask('GET', `/exhibits/${exhibit}`);
    }),
  },
  {
    name: 'replaying what others sealed',
    compared: positions,
    hold: talk(async (ask, stage) => {
      for (const name of [
        'exhibit of acme/eu',
        'exhibit of initech',
        'hidden exhibit',
        'exhibit of an earlier tenant',
        'exhibit of null',
      ]) {
        const exhibit = stage.ids.get(name) ?? '0190163d-8694-739b-aea5-966c26f8ad90';
        // A name that this world does not have is asked for in the other one's words.
        if (stage.ids.has(name) || name === 'hidden exhibit')
          await ask('POST', '/query', { sql: `EXPLAIN_REPLAY('${exhibit}', SEQ => 1)` });
      }
    }),
  },
  {
    name: 'proofs of hidden rows',
    // Of entries in one’s own organisation there are hashes: of them the status is compared, as of /audit/proof.
    compared: bodyless,
    hold: talk(async (ask, stage) => {
      // A nanosecond later where the instant itself was given out before.
      for (const instant of stage.marks.flatMap((mark) => [mark, mark + 1n])) {
        await ask('GET', `/audit/proof?system_from=${instant}&row=x1`);
        await ask('GET', `/audit/proof?system_from=${instant}`);
      }
    }),
  },
  {
    name: 'a branch',
    hold: talk(async (ask) => {
      for (const branch of ['trial', 'none', 'hidden']) {
        for (const sql of [
          'SELECT * FROM Deal',
          "SELECT id FROM Deal WHERE _pk = 'x1'",
          'SELECT COUNT(*) AS n FROM Deal AS OF CURRENT',
          'EXPLAIN SELECT * FROM Deal',
        ]) {
          await ask('POST', '/query', { sql, branch });
          await ask('POST', '/query/stream', { sql }, { 'x-service-branch': branch });
        }
        await ask('GET', ways.at(-1)!.sent('SELECT id, amount FROM Deal', {}, branch).path);
        await ask('GET', '/types', undefined, { 'x-service-branch': branch });
      }
    }),
  },
  {
    name: 'a view, renewed',
    hold: talk(async (ask, stage, { shut, stopped }) => {
      if ((shut ?? stopped) !== undefined) return;
      await meanwhile(stage, 'n3');
      await stage.lab.pass(61_000);
      await ask('POST', '/query', { sql: 'SELECT * FROM by_note' });
      await ask('POST', '/query', { sql: 'EXPLAIN SELECT * FROM by_note' });
      await ask('POST', '/query', { sql: 'SELECT * FROM hidden_view' });
    }),
  },
  {
    name: 'a standing query',
    hold: async (stage, adversary) => {
      const heard: Heard[] = [];
      const query = new URLSearchParams({ sql: 'SELECT id, amount, note, secret FROM Deal', purpose: 'test' }).toString();
      const flat = Object.fromEntries(
        Object.entries(adversary.headers(stage)).flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : [])),
      );
      await stage.lab.tick();
      const path = `/watch/stream?${query}`;
      const stream = await new EventStream(stage.lab.door.port, path, flat).opened();
      await settled(50);
      const { holder, path: own } = adversary;
      if (stream.status === 200 && holder !== undefined && own !== undefined) {
        for (const id of ['n4', 'n4h']) {
          await meanwhile(stage, id, adversary);
          await stage.lab.pass(2_000);
          await stage.put('Deal', holder, own, [{ id: 'w1', amount: id.length, note: 'open' }]);
          await stage.lab.pass(2_000);
        }
        await meanwhile(stage, 'n5', adversary);
        await stage.lab.pass(40_000);
      }
      await settled();
      await new Promise((resolve) => setTimeout(resolve, 5));
      const events = stream.events.map(({ id, event, data }) => `${id} ${event} ${data}`).join('\n');
      if (stream.status === 200) await stream.close();
      await settled();
      heard.push({ sent: { method: 'GET', path }, status: stream.status, headers: [], body: Buffer.from(events + stream.body) });
      return heard;
    },
  },
  {
    name: 'writes by SQL',
    hold: async (stage, adversary) => {
      if (adversary.path === undefined) return [];
      const heard: Heard[] = [];
      for (const sql of written) heard.push(await executed(stage, adversary, sql));
      for (const id of keysWritten) {
        const path = `/types/Deal/${id}?hard=true`;
        heard.push(await stage.lab.ask({ method: 'DELETE', path, headers: adversary.headers(stage) }));
      }
      return heard;
    },
  },
  {
    name: 'the Postgres catalogue',
    hold: async (stage, adversary) => {
      const heard: Heard[] = [];
      for (const sql of [...catalogued, ...cataloguedBeside]) heard.push(await askedWide(stage, adversary, sql));
      return heard;
    },
  },
  {
    name: 'rules, jobs and workflows of one’s own',
    hold: talk(async (ask, stage, { path, shut, stopped }) => {
      if (path === undefined || (shut ?? stopped) !== undefined) return;
      const make = async (to: string, member: string, body: object): Promise<string> =>
        text(await ask('POST', to, { purpose: 'test', ...body }), member) ?? 'none';
      const rules = [
        await make('/rules', 'id', { name: 'hidden', object_type: 'Deal', condition_sql: 'amount > 1000000' }),
        await make('/rules', 'id', { name: 'all', object_type: 'Deal', condition_sql: 'amount > 0', dedupe_by: ['note'] }),
        await make('/rules', 'id', {
          name: 'many',
          condition_sql: 'SELECT note, COUNT(*) AS n FROM Deal GROUP BY note HAVING COUNT(*) > 1',
        }),
      ];
      for (const rule of rules) await ask('POST', `/rules/${rule}/test`, { from: 0, to: Number.MAX_SAFE_INTEGER });
      const works = [
        { rules },
        { sql: 'SELECT * FROM Deal' },
        { sql: 'SELECT * FROM Vault' },
        { function: 'GRAPH_PAGERANK', arguments: ['Party', 'Reports'] },
      ];
      const jobs: string[] = [];
      for (const [nth, run] of works.entries())
        jobs.push(await make('/jobs', 'job_id', { name: nth === 0 ? 'hidden' : `hidden ${nth}`, run, run_now: false }));
      for (const job of jobs) await ask('POST', `/jobs/${job}/run`);
      const alert = { title: '{{item.id}} {{item.note}} {{item.amount}}', severity: 'low', matched_pk: '{{item.id}}' };
      const steps = [
        { query: { sql: 'SELECT id, note, amount FROM Deal' } },
        { for_each: { items: '{{steps.0.rows}}', steps: [{ alert }] } },
        { tool: { name: 'list_jobs', arguments: {} } },
        { tool: { name: 'list_workflows', arguments: {} } },
        { wait: { sql: 'SELECT id FROM Deal WHERE amount > 1000000', every_secs: 86_400 } },
      ];
      const workflow = await make('/workflows', 'id', { name: 'workflow of the victim', steps });
      const run = await make('/workflows/runs', 'run_id', { name: 'workflow of the victim' });
      await stage.lab.tick();
      await stage.lab.slot(({ service }) => service.automation.scheduler.settle());
      const alerts = 'SELECT title, matched_type, matched_pk, "count" FROM Alert';
      for (const sql of [alerts, `${alerts} AS OF CURRENT ORDER BY title, matched_pk`]) await ask('POST', '/query', { sql });
      const seen = ['/rules', '/jobs', '/workflows', `/workflows/runs/${run}`, ...jobs.map((job) => `/jobs/${job}`)];
      for (const each of seen) await ask('GET', each);
      await ask('POST', `/workflows/runs/${run}/cancel`, {});
      const gone = [...jobs.map((job) => `/jobs/${job}`), ...rules.map((rule) => `/rules/${rule}`), `/workflows/${workflow}`];
      for (const each of gone) await ask('DELETE', each);
    }),
  },
  {
    name: 'rows of one’s own under keys that are taken',
    hold: talk(async (ask, _stage, { path }) => {
      if (path === undefined) return;
      for (const id of ['x1', 'x2', 'x3', 'x4', 'x6', 'y1']) {
        await ask('POST', '/ingest?object_type=Deal', { id, amount: 1, note: 'own' });
        await ask('POST', '/query', { sql: `SELECT * FROM Deal WHERE id = '${id}'` });
        await ask('DELETE', `/types/Deal/${id}`);
        await ask('DELETE', `/types/Deal/${id}?hard=true`);
        await ask('DELETE', `/types/Deal/${id}?hard=true`);
      }
    }),
  },
  {
    name: 'names of one’s own that others have too',
    hold: talk(async (ask, stage, { shut, stopped }) => {
      if ((shut ?? stopped) !== undefined) return;
      const look = async (): Promise<void> => {
        for (const sql of ['SELECT * FROM Mine', 'EXPLAIN SELECT * FROM Mine', 'SELECT * FROM mine_view'])
          await ask('POST', '/query', { sql });
        await ask('POST', '/query', { sql: 'SELECT id, LOOKUP mine_names(id) -> name AS name FROM Mine' });
        await ask('POST', '/query', { sql: 'SELECT * FROM Mine', branch: 'mine' });
        for (const path of ['/types', '/types/Mine', '/lookup', '/schema/branches']) await ask('GET', path);
      };
      const mine = { name: 'Mine', properties: { id: 'string', note: 'string' }, primary_key: 'id' };
      const view = 'CREATE MATERIALIZED VIEW mine_view AS SELECT note FROM Mine REFRESH INCREMENTAL EVERY 86400';
      await ask('POST', '/types', mine);
      await ask('POST', '/ingest?object_type=Mine', { id: 'p1', note: 'mine' });
      await ask('POST', '/v1/namespaces/mine/branch', { branch_from: 'main' });
      await ask('POST', '/query', { sql: view });
      await ask('POST', '/lookup/register', { name: 'mine_names', path: 'names.csv', key: 'id', fields: ['name'] });
      await look();
      await stage.lab.slot(async () => {
        if (stage.side === 'first') await renaming(stage);
      });
      await ask('POST', '/types/Mine/schema', { properties: { more: 'integer' } });
      await ask('POST', '/ingest/auto?object_type=Auto', { id: 'x1', note: 'mine' });
      await look();
      await ask('POST', '/query', { sql: 'DROP MATERIALIZED VIEW mine_view' });
      await ask('POST', '/query', { sql: 'DROP LOOKUP mine_names' });
      await ask('DELETE', '/schema/branches/mine');
    }),
  },
  {
    name: 'indexes and drops of names',
    hold: talk(async (_ask, stage, adversary, heard) => {
      for (const sql of namedOnly) heard.push(await inspected(stage, adversary, sql));
    }),
  },
];

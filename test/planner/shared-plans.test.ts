/** One plan serves all who mean the same by a statement's names, and nothing of one caller stays in it. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Caller } from '../../src/governance/caller.ts';
import { Planner } from '../../src/planner/planner.ts';
import type { Command } from '../../src/projections/command.ts';
import { analyst, type InputRow, rowsOf, TestStore } from '../harness.ts';

let store: TestStore;

const callerOf = (tenant: string, more: Partial<Caller> = {}): Caller => ({ ...analyst, tenant, path: tenant, ...more });

const plannerOf = (keepPlans = true): Planner => new Planner({ clock: store.clock, keepPlans });

function submit(who: Caller, action: 'schema' | 'administer', command: Command): Promise<unknown> {
  return store.service.gate.invoke(who, { action, purpose: null, correlationId: 'c' }, (invocation) =>
    invocation.submit(command),
  );
}

/** All of an answer but how long it took, as text. */
async function asked(planner: Planner, who: Caller, sql: string): Promise<string> {
  const answer = await store.invoke(who, 'query', (invocation) => planner.query(invocation, { sql }));
  const { batches: _, processingTimeMs: __, overtaken: ___, ...told } = answer;
  const shown = { ...told, rows: rowsOf(answer) };
  return JSON.stringify(shown, (_key, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value));
}

async function addColumn(who: Caller, name: string, column: string): Promise<void> {
  const plain = { required: false, masked: false, indexed: false, subject: false, dims: 0, type: 'integer' } as const;
  await submit(who, 'schema', { kind: 'evolve-type', name, properties: { [column]: plain } } as Command);
}

beforeAll(async () => {
  store = await TestStore.open('2024-01-01');
  await store.register('Person', { key: 'string', region: 'string', n: 'integer', ssn: 'string' }, 'key');
  await store.register('City', { key: 'string', n: 'integer' }, 'key');
});
afterAll(() => store.close());

describe('two tenants of opposite skew', () => {
  const [many, few] = [callerOf('many-people'), callerOf('many-cities')];
  const joins = [
    'SELECT p.key, c.key FROM Person p JOIN City c ON p.n = c.n WHERE p.n < 5',
    'SELECT COUNT(*) FROM City c JOIN Person p ON p.n = c.n JOIN City d ON d.key = c.key WHERE d.n = 3',
    'SELECT c.n, COUNT(*) FROM City c LEFT JOIN Person p ON c.n = p.n GROUP BY c.n ORDER BY c.n',
    "SELECT key FROM Person WHERE n IN (SELECT c.n FROM City c JOIN Person p ON p.n = c.n WHERE p.key = 'p1')",
  ];
  const statements = joins.flatMap((sql) => [sql, `EXPLAIN ${sql}`]);

  beforeAll(async () => {
    const put = (type: string, letter: string, count: number, who: Caller): Promise<unknown> =>
      store.put(
        type,
        Array.from({ length: count }, (_, i): InputRow => ({ key: `${letter}${i}`, n: i % 10 })),
        who,
      );
    await put('Person', 'p', 600, many);
    await put('City', 'c', 12, many);
    await put('Person', 'p', 12, few);
    await put('City', 'c', 600, few);
  });

  test.each([
    ['one first', [many, few]],
    ['the other first', [few, many]],
  ])('get what they get without a cache, %s', async (_, order) => {
    const [kept, made] = [plannerOf(), plannerOf(false)];
    for (const who of [...order, ...order]) {
      for (const sql of statements) expect(await asked(kept, who, sql)).toBe(await asked(made, who, sql));
    }
    expect(kept.planCounts).toEqual({ found: 3 * statements.length, made: statements.length });
    expect(made.planCounts).toEqual({ found: 0, made: 4 * statements.length });
  });

  test('each holds the side that is small for them', async () => {
    const planner = plannerOf();
    const sides = async (who: Caller): Promise<unknown> =>
      /holding \w+/.exec(await asked(planner, who, `EXPLAIN ${joins[0]!}`))![0];
    expect([await sides(many), await sides(few), await sides(many)]).toEqual(['holding right', 'holding left', 'holding right']);
  });
});

describe('200 tenants over types that they inherit', () => {
  const tenants = Array.from({ length: 200 }, (_, i) =>
    callerOf(`tenant-${i}`, {
      principal: `user-${i}`,
      attributes: { region: i % 3 === 0 ? 'EU' : 'US', floor: i },
      clientIp: `10.0.${i}.1`,
      roles: i % 50 === 7 ? ['unmask'] : [],
    }),
  );
  const templates = [
    "SELECT key, n FROM Person WHERE key = 'a'",
    'SELECT region, COUNT(*) AS c FROM Person GROUP BY region ORDER BY region',
    'SELECT key, ssn FROM Person AS OF CURRENT WHERE n > 0 LIMIT 5',
    'SELECT p.key, c.key FROM Person p JOIN City c ON p.n = c.n',
    'SELECT key FROM City WHERE n IN (SELECT n FROM Person WHERE n > 0)',
    'SELECT * FROM City',
  ];

  beforeAll(async () => {
    const admin: Caller = { ...analyst, principal: 'root', credential: 'admin' };
    const texts = {
      cities: 'permit(principal, action, resource is City);',
      types: 'permit(principal, action == Action::"administer", resource);',
      region: 'permit(principal, action, resource is Person) when { resource.region == principal.region };',
      home: 'permit(principal, action, resource is Person) when { context has client_ip && context.client_ip like "10.0.1*" };',
      cells:
        '@mask("last4") forbid(principal, action == Action::"readCell", resource == Column::"Person.ssn") unless { principal in Role::"unmask" };',
    };
    for (const who of tenants) {
      const rows = ['a', 'b', 'c'].map((key, i) => ({
        key,
        region: i % 2 === 0 ? 'EU' : 'US',
        n: i,
        ssn: `secret-${who.path}-${key}`,
      }));
      await store.put('Person', rows, who);
      await store.put('City', [{ key: who.path!, n: 1 }], who);
    }
    for (const [id, text] of Object.entries(texts)) await submit(admin, 'administer', { kind: 'put-policy', id, text });
  });

  test('find a plan more than 95 times of 100 while one of them adds columns, and get what they get without a cache', async () => {
    const [kept, made] = [plannerOf(), plannerOf(false)];
    for (const [i, who] of tenants.entries()) {
      if (i % 20 === 10) await addColumn(tenants[5]!, 'City', `added_${i}`);
      for (const [k, sql] of templates.entries()) {
        const answer = await asked(kept, who, sql);
        // Plans that are made each time cost most of this: of each tenant half of the templates, in turn.
        if ((i + k) % 2 === 0 || who === tenants[5]) expect(answer).toBe(await asked(made, who, sql));
        if (i % 20 === 5) {
          const explained = `EXPLAIN ${sql}`;
          expect(await asked(kept, who, explained)).toBe(await asked(made, who, explained));
        }
      }
    }
    const { found, made: planned } = kept.planCounts;
    expect(found / (found + planned)).toBeGreaterThan(0.95);
    // Whoever adds columns is answered with them, and nobody else is.
    const columnsOf = async (who: Caller): Promise<unknown> =>
      (JSON.parse(await asked(kept, who, 'SELECT * FROM City')) as { columns: unknown[] }).columns.length;
    expect(await columnsOf(tenants[5]!)).toBe(Number(await columnsOf(tenants[6]!)) + 10);
  });

  test('types that two tenants changed as often, each in its own way, are told apart', async () => {
    const [one, two] = [tenants[30]!, tenants[31]!];
    await addColumn(one, 'City', 'left');
    await addColumn(two, 'City', 'right');
    const [kept, made] = [plannerOf(), plannerOf(false)];
    for (const who of [one, two, one])
      expect(await asked(kept, who, 'SELECT * FROM City')).toBe(await asked(made, who, 'SELECT * FROM City'));
    expect(kept.planCounts).toEqual({ found: 1, made: 2 });
  });

  test('a mask is another plan, a lifted one too; a caller’s path, address and attributes are none', async () => {
    const planner = plannerOf();
    const sql = templates[2]!;
    const shown = async (who: Caller): Promise<string> => asked(planner, who, sql);
    expect(await shown(tenants[0]!)).toContain('****');
    expect(await shown(tenants[7]!)).toContain('secret-tenant-7');
    expect(await shown(tenants[1]!)).not.toContain('secret');
    expect(await shown({ ...tenants[1]!, clientIp: '10.9.9.9', attributes: { region: 'US', floor: 900 } })).not.toContain(
      'secret',
    );
    expect(planner.planCounts.made).toBe(2);
  });

  test('a view is planned by its text and by what its names mean', async () => {
    const view = (who: Caller, sql: string) => submit(who, 'schema', { kind: 'create-view', name: 'Seen', sql, refreshSecs: 60 });
    const [one, two, three] = [tenants[20]!, tenants[21]!, tenants[22]!];
    for (const who of [one, two]) await view(who, "SELECT key, n FROM Person WHERE key = 'a'");
    await view(three, "SELECT key, n FROM Person WHERE key = 'b'");
    const [kept, made] = [plannerOf(), plannerOf(false)];
    const sql = 'SELECT key FROM Seen';
    for (const who of [one, two, three, one]) expect(await asked(kept, who, sql)).toBe(await asked(made, who, sql));
    expect(kept.planCounts).toEqual({ found: 2, made: 2 });
    expect(await asked(kept, three, sql)).toContain('"b"');
  });
});

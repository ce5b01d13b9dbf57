/** What MATCH finds by index is what the rows themselves say: at any instant, on any branch, under any policy, after an erasure and a restart. */
import { expect, test } from 'vitest';
import type { Caller } from '../../../src/governance/caller.ts';
import type { Action } from '../../../src/governance/gate-contract.ts';
import { MemoryDisk } from '../../../src/log/memory-disk.ts';
import { inlineWorker } from '../../../src/log/workers.ts';
import { formatInstant } from '../../../src/log/timestamp.ts';
import type { Command } from '../../../src/projections/command.ts';
import { analyst, rowsOf, TestClock, TestRandom, TestStore } from '../../harness.ts';
import { type Mode, matched } from './brute-force.ts';

const admin: Caller = { ...analyst, principal: 'root', credential: 'admin' };
const acme: Caller = { ...analyst, path: 'acme' };
const below: Caller = { ...analyst, path: 'acme/paris' };
const clerk: Caller = { ...analyst, principal: 'cleo', path: 'acme', roles: ['clerk'] };

const vocabulary =
  'alpha beta gamma delta deltas running runner runs ran knowledge knowlege knowledgeable store stores Store42 iPhone HTTPServer zeta 日本語 本 été'.split(
    ' ',
  );
const modes: readonly Mode[] = ['ANY', 'PHRASE', 'FUZZY', 'STEMMED', 'BOOLEAN', 'SUFFIX', 'INFIX'];

class Draw {
  #state: number;
  constructor(seed: number) {
    this.#state = seed;
  }
  upTo(most: number): number {
    this.#state = (Math.imul(this.#state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((this.#state / 2 ** 32) * most);
  }
  of<T>(all: readonly T[]): T {
    return all[this.upTo(all.length)]!;
  }
  text(most: number): string | null {
    if (this.upTo(9) === 0) return null;
    return Array.from({ length: this.upTo(most) }, () => this.of(vocabulary)).join(this.of([' ', ', ', '-']));
  }
}

class World {
  readonly disk = new MemoryDisk();
  readonly clock = new TestClock('2024-01-01');
  readonly draw: Draw;
  readonly instants: string[] = [];
  store!: TestStore;
  #starts = 0;

  constructor(seed: number) {
    this.draw = new Draw(seed);
  }

  async open(): Promise<void> {
    const settings = { SERVICE_PURPOSES: 'test', SERVICE_IN_MEMORY: 'false', SERVICE_DATA_DIR: '/data' };
    this.store = await TestStore.open('2024-01-01', settings, {
      disk: this.disk,
      clock: this.clock,
      derived: { machineBytes: 1 << 30, segmentRows: 24 },
      random: new TestRandom(++this.#starts * 977),
      startKept: inlineWorker,
    });
  }

  submit(who: Caller, action: Action, command: Command): Promise<unknown> {
    return this.store.service.gate.invoke(who, { action, purpose: 'test', correlationId: 'c' }, (invocation) =>
      invocation.submit(command),
    );
  }

  async put(count: number): Promise<void> {
    const { draw } = this;
    for (const who of [acme, below, { ...analyst, path: 'globex' }]) {
      this.clock.wallNs += 1_000_000_000n;
      const rows = Array.from({ length: count }, () => ({
        id: `k${draw.upTo(60)}`,
        who: `s${draw.upTo(5)}`,
        region: draw.of(['EU', 'US', 'XX']),
        title: draw.text(6),
        body: draw.text(20),
        n: draw.upTo(10),
      }));
      const own = [...new Map(rows.map((row) => [row.id, row])).values()];
      await this.store.put('Doc', own, who);
    }
    this.clock.wallNs += 1_000_000_000n;
    this.instants.push(formatInstant(this.clock.wallNs));
  }

  async ask(sql: string, who: Caller, branch: string): Promise<{ rows: Record<string, unknown>[]; hits: number }> {
    const request = { action: 'query', purpose: 'test', correlationId: 'c' } as const;
    const answer = await this.store.service.gate.invoke({ ...who, branch }, request, (invocation) =>
      this.store.service.planner.query(invocation, { sql, purpose: 'test' }),
    );
    return { rows: rowsOf(answer), hits: answer.estimatedTotalHits };
  }

  /** One statement, by index and by the rows. */
  async check(who: Caller, branch: string): Promise<void> {
    const { draw } = this;
    const time = draw.of([
      '',
      'AS OF CURRENT',
      `AS OF SYSTEM TIME '${draw.of(this.instants)}'`,
      `AS OF '${draw.of(this.instants)}'`,
    ]);
    const mode = draw.of(modes);
    const columns = draw.of([['title'], ['body'], ['title', 'body']]);
    const query = this.#query(mode);
    const all = await this.ask(`SELECT _pk, system_from, title, body, n FROM Doc ${time}`, who, branch);
    const hidden = new Map<string, Set<unknown>>();
    for (const column of ['title', 'body']) {
      const { rows } = await this.ask(`SELECT system_from FROM Doc ${time} WHERE ${column} IS NULL`, who, branch);
      hidden.set(column, new Set(rows.map((row) => row['system_from'])));
    }
    const texts = all.rows.map((row) =>
      columns.map((column) => (hidden.get(column)!.has(row['system_from']) ? null : (row[column] as string))),
    );
    const expected = matched(texts, query, mode);
    const match = `MATCH(${columns.join(', ')}, '${query}'${mode === 'ANY' ? '' : `, ${mode}`})`;
    const times = (test: (found: boolean | null, n: bigint) => boolean): unknown[] =>
      all.rows.filter((row, i) => test(expected[i]!.match, row['n'] as bigint)).map((row) => row['system_from']);
    const asked = async (where: string): Promise<unknown[]> =>
      (await this.ask(`SELECT system_from FROM Doc ${time} WHERE ${where}`, who, branch)).rows.map((row) => row['system_from']);
    const told = `${who.principal} ${branch} ${time} ${match}`;
    expect(await asked(match), told).toEqual(times((found) => found === true));
    expect(await asked(`NOT ${match}`), told).toEqual(times((found) => found === false));
    expect(await asked(`${match} OR n < 3`), told).toEqual(times((found, n) => found === true || n < 3n));
    expect(await asked(`n >= 3 AND ${match}`), told).toEqual(times((found, n) => found === true && n >= 3n));
    const ranked = all.rows
      .map((row, i) => ({
        at: row['system_from'] as bigint,
        pk: String(row['_pk']),
        score: expected[i]!.score,
        match: expected[i]!.match,
      }))
      .filter((row) => row.match === true)
      .sort((a, b) => b.score - a.score || (a.pk < b.pk ? -1 : a.pk > b.pk ? 1 : a.at < b.at ? -1 : 1));
    const limit = 1 + draw.upTo(8);
    const best = await this.ask(
      `SELECT system_from, _score FROM Doc ${time} WHERE ${match} ORDER BY _score DESC LIMIT ${limit}`,
      who,
      branch,
    );
    expect(
      best.rows.map((row) => row['system_from']),
      told,
    ).toEqual(ranked.slice(0, limit).map(({ at }) => at));
    best.rows.forEach((row, i) => expect(row['_score'], told).toBeCloseTo(ranked[i]!.score, 10));
    expect(best.hits, told).toBe(ranked.length);
    if (columns.length === 1) {
      const without = `SELECT system_from FROM (SELECT system_from, ${columns[0]} FROM Doc) AS d ${time} WHERE ${match}`;
      expect(
        (await this.ask(without, who, branch)).rows.map((row) => row['system_from']),
        told,
      ).toEqual(times((found) => found === true));
    }
  }

  #query(mode: Mode): string {
    const { draw } = this;
    const word = (): string => {
      const [plain] = [draw.of(vocabulary.filter((each) => !/[A-Z\d日本]/.test(each)))];
      if (mode === 'FUZZY') return draw.upTo(2) === 0 ? plain : plain.slice(0, -1) + draw.of(['x', '', 'yz']);
      if (mode === 'SUFFIX') return plain.slice(-draw.of([1, 2, 4]));
      if (mode === 'INFIX') return plain.slice(1, 3 + draw.upTo(2));
      if (mode === 'ANY' || mode === 'BOOLEAN')
        return draw.of([plain, plain, `*${plain.slice(-3)}`, `${plain.slice(0, 3)}*`, `*${plain.slice(1, 3)}*`]);
      return plain;
    };
    if (mode !== 'BOOLEAN') return Array.from({ length: 1 + draw.upTo(3) }, word).join(' ');
    return Array.from(
      { length: 1 + draw.upTo(3) },
      (_, i) => `${i === 0 ? draw.of(['', 'NOT ']) : draw.of(['AND ', 'OR ', 'NOT ', '', 'AND NOT '])}${word()}`,
    ).join(' ');
  }
}

test.each([1, 2])('index = rows, world %s', async (seed) => {
  const world = new World(seed * 7_919);
  await world.open();
  const plain = { required: false, masked: false, indexed: false, subject: false, dims: 0 };
  await world.store.register(
    'Doc',
    {
      id: 'string',
      who: { ...plain, type: 'string', subject: true },
      region: 'string',
      title: 'string',
      body: 'string',
      n: 'integer',
    },
    'id',
  );
  const policies = {
    all: 'permit(principal, action, resource);',
    rows: 'forbid(principal in Role::"clerk", action, resource is Doc) when { resource.region == "XX" };',
    title:
      '@mask("redact") forbid(principal in Role::"clerk", action == Action::"readCell", resource == Column::"Doc.title") when { resource.region == "US" };',
  };
  await world.put(20);
  await world.put(30);
  await world.submit(acme, 'fork', { kind: 'fork-branch', name: 'trial', source: 'main', shares: 'everything' });
  await world.put(10);
  await world.store.delete('Doc', ['k1', 'k2'], acme);
  const checks = async (count: number): Promise<void> => {
    for (let i = 0; i < count; i++)
      await world.check(world.draw.of([acme, below, clerk]), world.draw.of(['main', 'main', 'trial']));
  };
  await checks(6);
  for (const [id, text] of Object.entries(policies)) await world.submit(admin, 'administer', { kind: 'put-policy', id, text });
  await checks(10);
  await world.store.put('Doc', [{ id: 'canary', who: 's1', title: 'xylophone', body: 'a xylophone', n: 1 }], acme);
  const indexes = (): number => world.store.service.projections.rows.indexes.holding('xylophone');
  expect((await world.ask("SELECT id FROM Doc WHERE MATCH(title, body, 'xylophone')", acme, 'main')).rows).toHaveLength(1);
  expect(indexes()).toBeGreaterThan(0);
  await world.store.rows("ERASE SUBJECT 's1' REASON 'asked' CERTIFY", acme);
  expect(indexes()).toBe(0);
  await checks(6);
  await world.store.close();
  await world.open();
  await world.store.service.columns!.compact();
  await checks(6);
  await world.put(10);
  await checks(6);
  await world.store.close();
});

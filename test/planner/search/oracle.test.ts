/** What MATCH finds by index is what the rows themselves say: at any instant, on any branch, under any policy, after an erasure and a restart. */
import { expect, test } from 'vitest';
import type { Caller } from '../../../src/governance/caller.ts';
import { acme, DocumentWorld } from '../document-world.ts';
import { type Mode, matched } from './brute-force.ts';

const vocabulary =
  'alpha beta gamma delta deltas running runner runs ran knowledge knowlege knowledgeable store stores Store42 iPhone HTTPServer zeta 日本語 本 été'.split(
    ' ',
  );
const modes: readonly Mode[] = ['ANY', 'ALL', 'LAST', 'FREQUENCY', 'PHRASE', 'FUZZY', 'STEMMED', 'BOOLEAN', 'SUFFIX', 'INFIX'];

class World extends DocumentWorld {
  protected readonly properties = { title: 'string', body: 'string' } as const;

  protected values() {
    return { title: this.#text(6), body: this.#text(20) };
  }

  #text(most: number): string | null {
    const { draw } = this;
    if (draw.upTo(9) === 0) return null;
    return Array.from({ length: draw.upTo(most) }, () => draw.of(vocabulary)).join(draw.of([' ', ', ', '-']));
  }

  /** One statement, by index and by the rows. */
  protected async check(who: Caller, branch: string): Promise<void> {
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
    if (columns.length === 1 && mode !== 'FREQUENCY') {
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

const policies = {
  title:
    '@mask("redact") forbid(principal in Role::"clerk", action == Action::"readCell", resource == Column::"Doc.title") when { resource.region == "US" };',
};

test.each([1, 2])('index = rows, world %s', async (seed) => {
  const world = new World(seed * 7_919);
  await world.live(policies, [6, 10, 6, 6, 6], async (erase) => {
    await world.store.put('Doc', [{ id: 'canary', who: 's1', title: 'xylophone', body: 'a xylophone', n: 1 }], acme);
    const indexes = (): number => world.store.service.store.projections.rows.indexes.holding('xylophone');
    expect((await world.ask("SELECT id FROM Doc WHERE MATCH(title, body, 'xylophone')", acme, 'main')).rows).toHaveLength(1);
    expect(indexes()).toBeGreaterThan(0);
    await erase();
    expect(indexes()).toBe(0);
  });
});

/**
 * SIMILAR gives what working out every cosine gives: at any instant, on any branch, under any policy, after an erasure, a restart
 * and a compaction; and after an erasure what a store gives that never held the subject.
 */
import { expect, test } from 'vitest';
import type { Caller } from '../../../src/governance/caller.ts';
import { acme, DocumentWorld, plainProperty } from '../document-world.ts';

const dims = 5;

interface Seen {
  readonly key: string;
  readonly at: bigint;
  readonly a: readonly number[] | null;
  readonly b: readonly number[] | null;
  readonly n: bigint;
}

function cosine(x: readonly number[], y: readonly number[]): number {
  const dot = (p: readonly number[], q: readonly number[]): number => p.reduce((sum, value, i) => sum + value * q[i]!, 0);
  const square = dot(y, y);
  return square === 0 ? 0 : Math.max(-1, Math.min(1, dot(x, y) / Math.sqrt(dot(x, x) * square)));
}

const ordered = (rows: readonly { readonly row: Seen; readonly score: number }[]): (readonly [bigint, number])[] =>
  [...rows]
    .sort((p, q) => q.score - p.score || (p.row.key < q.row.key ? -1 : p.row.key > q.row.key ? 1 : Number(p.row.at - q.row.at)))
    .map(({ row, score }) => [row.at, score]);

class World extends DocumentWorld {
  protected readonly properties = {
    _emb_a: { ...plainProperty, type: 'vector', dims },
    _emb_b: { ...plainProperty, type: 'vector', dims },
  } as const;

  protected values() {
    return { _emb_a: this.#vector(), _emb_b: this.#vector() };
  }

  async #seen(time: string, where: string, who: Caller, branch: string): Promise<Seen[]> {
    const { rows } = await this.ask(`SELECT _pk, system_from, n, _emb_a, _emb_b FROM Doc ${time} WHERE ${where}`, who, branch);
    const hidden = async (column: string): Promise<Set<unknown>> => {
      const found = await this.ask(`SELECT system_from FROM Doc ${time} WHERE ${where} AND ${column} IS NULL`, who, branch);
      return new Set(found.rows.map((row) => row['system_from']));
    };
    const [a, b] = [await hidden('_emb_a'), await hidden('_emb_b')];
    return rows.map((row) => ({
      key: String(row['_pk']),
      at: row['system_from'] as bigint,
      n: row['n'] as bigint,
      a: a.has(row['system_from']) ? null : [...(row['_emb_a'] as Float32Array)],
      b: b.has(row['system_from']) ? null : [...(row['_emb_b'] as Float32Array)],
    }));
  }

  protected async check(who: Caller, branch: string): Promise<void> {
    const { draw } = this;
    const then = draw.of(this.instants);
    const [time, asTable, where] = draw.of([
      ['', 'AS OF CURRENT', 'n >= 0'],
      [`AS OF SYSTEM TIME '${then}'`, `AS OF SYSTEM TIME '${then}'`, `valid_from <= '${then}' AND valid_to > '${then}'`],
      [`AS OF '${then}'`, `AS OF '${then}'`, 'system_from <= now() AND system_to > now()'],
    ] as const);
    const all = await this.#seen(asTable, where, who, branch);
    const told = `${who.principal} ${who.path} ${branch} ${time}`;
    const limit = 1 + draw.upTo(12);
    const direction = this.#vector() ?? [1, 0, 0, 0, 0];
    if (!direction.some((x) => x !== 0)) direction[0] = 1;
    const least = draw.of([-1, 0, 0.5]);
    const asked = async (sql: string): Promise<{ rows: (readonly [unknown, unknown])[]; hits: number }> => {
      const { rows, hits } = await this.ask(sql, who, branch);
      return { rows: rows.map((row) => [row['system_from'], row['_score']]), hits };
    };
    const vector = draw.of([`ARRAY[${direction.join(', ')}]`, `'[${direction.join(', ')}]'`]);
    // As they are stored.
    const sought = [...Float32Array.from(direction)];
    const near = ordered(
      all.flatMap((row) => (row.a === null || row.n < 3n ? [] : [{ row, score: cosine(sought, row.a) }])),
    ).filter(([, score]) => score >= least);
    const found = await asked(
      `SELECT * FROM SIMILAR('Doc', _emb_a, ${vector}, THRESHOLD => ${least}) ${time} WHERE n >= 3 LIMIT ${limit}`,
    );
    expect(found.rows, told).toEqual(near.slice(0, limit));
    expect(found.hits, told).toBe(near.length);
    const seed = all.length === 0 ? undefined : draw.of(all);
    if (seed === undefined) return;
    const seeds = all.filter(({ key }) => key === seed.key);
    const like = ordered(
      all.flatMap((row) => {
        const scores = seeds.flatMap((each) =>
          (['a', 'b'] as const).flatMap((slot) => {
            const [x, y] = [each[slot], row[slot]];
            return x === null || y === null || x.every((value) => value === 0) ? [] : [cosine(x, y)];
          }),
        );
        return scores.length === 0 || seeds.includes(row) ? [] : [{ row, score: Math.max(...scores) }];
      }),
    );
    if (seeds.every(({ a, b }) => [a, b].every((each) => each === null || each.every((x) => x === 0)))) return;
    const alike = await asked(`SIMILAR TO Doc ${time} WHERE ${draw.of(['id', '_pk'])} = '${seed.key}' LIMIT ${limit}`);
    expect(alike.rows, `${told} like ${seed.key}`).toEqual(like.slice(0, limit));
    expect(alike.hits, told).toBe(like.length);
  }

  /** Small whole numbers, so that many rows are alike; now and then none, zeros, or what 32 bits can't square. */
  #vector(): number[] | null {
    const { draw } = this;
    const kind = draw.upTo(12);
    if (kind === 0) return null;
    if (kind === 1) return Array.from({ length: dims }, () => 0);
    const scale = kind === 2 ? 1e30 : kind === 3 ? 1e-30 : 1;
    const vector = Array.from({ length: dims }, () => (draw.upTo(5) - 2) * scale);
    return vector.every((x) => x === 0) ? [scale, 0, 0, 0, 0] : vector;
  }
}

const policies = {
  some: '@mask("null") forbid(principal in Role::"clerk", action == Action::"readCell", resource == Column::"Doc._emb_a") when { resource.n == 7 };',
  cells:
    '@mask("redact") forbid(principal in Role::"clerk", action == Action::"readCell", resource == Column::"Doc._emb_b") when { resource.region == "US" };',
};

test.each([1, 2])('alike = every cosine, world %s', async (seed) => {
  await new World(seed * 7_919).live(policies, [20, 30, 15, 15, 20]);
});

test('after an erasure, what a store gives that never held the subject', async () => {
  const answers: string[] = [];
  for (const without of [null, 's1']) {
    const world = new World(31);
    await world.open();
    await world.register();
    await world.put(40, without);
    if (without === null) await world.store.rows("ERASE SUBJECT 's1' REASON 'asked' CERTIFY", acme);
    const told: unknown[] = [];
    for (const sql of [
      "SELECT * FROM SIMILAR('Doc', _emb_a, ARRAY[1, 0, 2, 0, 1]) LIMIT 9",
      "SIMILAR TO Doc WHERE id = 'k7' LIMIT 9",
    ]) {
      const { rows, hits } = await world.ask(sql, acme, 'main');
      told.push(hits, ...rows.map((row) => [row['_pk'], row['_score']]));
    }
    answers.push(JSON.stringify(told));
    await world.store.close();
  }
  expect(answers[0]).toBe(answers[1]);
});

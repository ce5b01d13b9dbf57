/**
 * What the search API answers, hits, scores, facets and totals, is what the rows themselves say: at instants of both axes, on
 * branches, under a policy that hides rows and cells, page after page.
 */
import { expect, test } from 'vitest';
import type { Caller } from '../../../src/governance/caller.ts';
import { parseInstant } from '../../../src/log/values/timestamp.ts';
import { typoPresets } from '../../../src/governance/text-search/text-query.ts';
import { search, type SearchAnswer } from '../../../src/planner/search/search.ts';
import type { SearchRequest } from '../../../src/planner/languages/search-request.ts';
import { rowsOf } from '../../harness.ts';
import { DocumentWorld } from '../document-world.ts';
import { matched, type Mode } from './brute-force.ts';

const vocabulary = 'alpha beta gamma delta deltas running runner runs knowledge knowlege stores Store42 zeta EU s1 k7'.split(' ');
const modes = ['ANY', 'ALL', 'LAST', 'FREQUENCY', 'BOOLEAN'] as const satisfies readonly Mode[];
/** Text columns in the order of the type: all of them are searched. */
const columns = ['id', 'who', 'region', 'title', 'body'];

class World extends DocumentWorld {
  protected readonly properties = { title: 'string', body: 'string' } as const;

  protected values() {
    return { title: this.#text(4), body: this.#text(12) };
  }

  #text(most: number): string | null {
    const { draw } = this;
    return draw.upTo(9) === 0 ? null : Array.from({ length: draw.upTo(most) }, () => draw.of(vocabulary)).join(' ');
  }

  protected async check(who: Caller, branch: string): Promise<void> {
    const { draw } = this;
    const [asOf, asOfSystem] = [0, 1].map(() => (draw.upTo(2) === 0 ? null : parseInstant(draw.of(this.instants))));
    const mode = draw.of(modes);
    const word = (): string => draw.of(vocabulary.filter((each) => /^[a-z]+$/.test(each)));
    const text = Array.from({ length: 1 + draw.upTo(3) }, (_, i) => `${i > 0 && mode === 'BOOLEAN' ? 'AND ' : ''}${word()}`).join(
      ' ',
    );
    const typosFrom = draw.of([null, 0, 6]);
    const boost = draw.of([null, 0.25, 3]);
    const least = draw.of([null, 4n]);
    const limit = 1 + draw.upTo(9);
    const request = (cursor: string | null): SearchRequest => ({
      name: 'search',
      queries: [
        {
          type: 'Doc',
          ranking: { by: 'words', text, mode, columns: null, weights: {}, boosts: boost === null ? {} : { body: boost } },
          where: least === null ? null : { all: [{ field: 'n', op: 'gte', value: Number(least) }] },
          attributes: null,
          compute: [],
          facets: ['region', 'n'],
          limit,
          typo: typosFrom === null ? typoPresets.exact : { ...typoPresets.default, minWordSize: typosFrom },
          cursor,
        },
      ],
      fuse: null,
      asOf,
      asOfSystem,
    });
    const told = JSON.stringify([
      who.principal,
      who.path,
      branch,
      String(asOf),
      String(asOfSystem),
      mode,
      text,
      typosFrom,
      boost,
    ]);

    const [system, valid] = [asOfSystem ?? this.clock.wallNs, asOf ?? asOfSystem ?? this.clock.wallNs];
    const at = `system_from <= ${system} AND system_to > ${system} AND valid_from <= ${valid} AND valid_to > ${valid}`;
    const all = (await this.ask(`SELECT _pk, system_from, n, id, who, region, title, body FROM Doc WHERE ${at}`, who, branch))
      .rows;
    const { rows: untitled } = await this.ask(`SELECT system_from FROM Doc WHERE ${at} AND title IS NULL`, who, branch);
    const hidden = new Set(untitled.map((row) => row['system_from']));
    const shown = (row: Record<string, unknown>, column: string): string | null =>
      column === 'title' && hidden.has(row['system_from']) ? null : (row[column] as string | null);
    const expected = matched(
      all.map((row) => columns.map((column) => shown(row, column))),
      text,
      mode,
      { typosFrom, boosts: columns.map((column) => (column === 'body' ? boost : null)) },
    );
    const hits = all
      .map((row, i) => ({ at: row['system_from'] as bigint, pk: String(row['_pk']), row, ...expected[i]! }))
      .filter(({ match, row }) => match === true && (least === null || (row['n'] as bigint) >= least))
      .sort((a, b) => b.score - a.score || (a.pk < b.pk ? -1 : a.pk > b.pk ? 1 : a.at < b.at ? -1 : 1));

    let cursor: string | null = null;
    let seen = 0;
    do {
      const { answers }: SearchAnswer = await this.#search(request(cursor), { ...who, branch });
      const [answer] = answers;
      const page = rowsOf(answer!);
      expect(
        page.map((row) => row['system_from']),
        told,
      ).toEqual(hits.slice(seen, seen + limit).map((hit) => hit.at));
      page.forEach((row, i) => expect(row['_score'], told).toBeCloseTo(hits[seen + i]!.score, 9));
      expect(answer!.estimatedTotalHits, told).toBe(hits.length);
      const { counts, stats } = answer!.facets!;
      expect(Object.fromEntries(counts.get('region')!), told).toEqual(tally(hits.map(({ row }) => row['region'])));
      const numbers = hits.map(({ row }) => row['n'] as bigint);
      expect(stats.get('n')?.sum ?? 0n, told).toBe(numbers.reduce((sum, n) => sum + n, 0n));
      expect(stats.get('n')?.count ?? 0, told).toBe(numbers.length);
      seen += page.length;
      cursor = answer!.nextCursor;
    } while (cursor !== null);
    expect(seen, told).toBe(hits.length);
  }

  #search(request: SearchRequest, caller: Caller): Promise<SearchAnswer> {
    const { gate, planner } = this.store.service;
    const invocation = { action: 'search', purpose: 'test', correlationId: 'c' } as const;
    return gate.invoke(caller, invocation, (each) => search(planner, each, request));
  }
}

function tally(values: readonly unknown[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const value of values) counts[String(value)] = (counts[String(value)] ?? 0) + 1;
  return counts;
}

const policies = {
  title:
    '@mask("redact") forbid(principal in Role::"clerk", action == Action::"readCell", resource == Column::"Doc.title") when { resource.region == "US" };',
};

test('searches answer what the rows say', async () => {
  const world = new World(40_507);
  await world.live(policies, [8, 14, 8, 8, 8]);
});

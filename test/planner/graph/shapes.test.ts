/** Functions over a small graph whose answers are plain to see: arguments, conditions on edges, time, what is not there. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { analyst, rowsOf, TestStore } from '../../harness.ts';

let store: TestStore;

beforeAll(async () => {
  store = await TestStore.open('2024-01-01');
  await store.register('Person', { id: 'string', name: 'string' }, 'id');
  await store.register('Knows', { id: 'string', from_id: 'string', to_id: 'string', weight: 'number', kind: 'string' }, 'id');
  await store.register('Owes', { id: 'string', from_id: 'string', to_id: 'string', amount: 'integer' }, 'id');
  await store.put(
    'Person',
    ['ann', 'bob', 'cid', 'dan', 'eve', 'loner'].map((id) => ({ id })),
  );
  const knows = (from: string, to: string, weight = 1, kind = 'friend') => ({
    id: `${from}-${to}-${kind}`,
    from_id: from,
    to_id: to,
    weight,
    kind,
  });
  await store.put('Knows', [
    knows('ann', 'bob'),
    knows('ann', 'bob', 2, 'boss'),
    knows('bob', 'cid', 5),
    knows('ann', 'cid', 10),
    knows('cid', 'dan'),
    knows('dan', 'dan'),
    knows('dan', 'nobody'),
    knows('ghost', 'ann'),
  ]);
  store.clock.set('2024-02-01');
  await store.put('Owes', [{ id: 'o1', from_id: 'dan', to_id: 'eve', amount: 7 }]);
  await store.delete('Knows', ['ann-cid-friend']);
  store.clock.set('2024-03-01');
});
afterAll(() => store.close());

async function asked(sql: string, ...columns: string[]): Promise<string> {
  const answer = await store.answer(sql);
  return rowsOf(answer)
    .map((row) =>
      columns.map((column) => (typeof row[column] === 'number' ? Number(row[column].toFixed(4)) : String(row[column]))).join(' '),
    )
    .join(', ');
}

describe('PATHS_BETWEEN', () => {
  const hops = ['path', 'hop', 'nodeId', 'from_id', 'to_id', 'link_type'];

  test('tells each path by its edges, parallel ones apart, the shortest first', async () => {
    expect(await asked("SELECT * FROM PATHS_BETWEEN('ann', 'cid')", ...hops)).toBe(
      '1 1 bob ann bob Knows, 1 2 cid bob cid Knows, 2 1 bob ann bob Knows, 2 2 cid bob cid Knows',
    );
  });

  test('before an edge was taken back', async () => {
    expect(await asked("PATHS_BETWEEN('ann', 'cid', 1) AS OF SYSTEM TIME '2024-01-15'", ...hops)).toBe('1 1 cid ann cid Knows');
    expect(await asked("PATHS_BETWEEN('ann', 'cid', 1) AS OF '2024-01-15'", ...hops)).toBe('1 1 cid ann cid Knows');
    expect(await asked("PATHS_BETWEEN('ann', 'cid', 1)", ...hops)).toBe('');
  });

  test('over edges of which a condition holds', async () => {
    expect(await asked("PATHS_BETWEEN('ann', 'cid') WHERE kind = 'friend'", 'path', 'nodeId', 'score')).toBe(
      '1 bob 0.5, 1 cid 0.5',
    );
    expect(await asked("PATHS_BETWEEN('ann', 'cid') WHERE weight < 5", 'path')).toBe('');
    expect(await asked("PATHS_BETWEEN('ann', 'eve') WHERE link_type = 'Knows'", 'path')).toBe('');
    expect(await asked("PATHS_BETWEEN('ann', 'cid') WHERE hop = 2 AND kind IN ('boss', 'friend')", 'path', 'hop')).toBe(
      '1 2, 2 2',
    );
    expect(await asked("PATHS_BETWEEN('cid', 'eve') WHERE amount > 5 OR kind = 'friend'", 'nodeId')).toBe('dan, eve');
  });

  test('LIMIT counts paths', async () => {
    expect(await asked("PATHS_BETWEEN('ann', 'cid') LIMIT 1", 'path', 'hop')).toBe('1 1, 1 2');
    expect(await asked("PATHS_BETWEEN('ann', 'cid') LIMIT 0", 'path', 'hop')).toBe('');
  });

  test('goes either way, or the way that is said', async () => {
    expect(await asked("PATHS_BETWEEN('eve', 'ann') LIMIT 1", 'nodeId')).toBe('dan, cid, bob, ann');
    expect(await asked("PATHS_BETWEEN('eve', 'ann', DIRECTION => 'out')", 'nodeId')).toBe('');
    expect(await asked("PATHS_BETWEEN('eve', 'ann', DIRECTION => 'in') LIMIT 1", 'nodeId')).toBe('dan, cid, bob, ann');
    expect(await asked("PATHS_BETWEEN('cid', 'eve', LINK_TYPES => 'Knows')", 'nodeId')).toBe('');
  });

  test('of what is not there is nothing', async () => {
    for (const [from, to] of [
      ['ann', 'nobody'],
      ['ghost', 'bob'],
      ['ann', 'ann'],
      ['x', 'y'],
      ['loner', 'ann'],
    ]) {
      expect(await asked(`PATHS_BETWEEN('${from}', '${to}')`, 'nodeId')).toBe('');
    }
  });

  test('tells the instants of each edge', async () => {
    const [row] = await store.rows("PATHS_BETWEEN('dan', 'eve')");
    const [edge] = await store.rows(
      "SELECT valid_from, valid_to, system_from, system_to FROM Owes AS OF CURRENT WHERE id = 'o1'",
    );
    expect(row).toMatchObject(edge!);
  });

  test('refuses hops beyond its range', async () => {
    expect((await store.refusal("PATHS_BETWEEN('ann', 'bob', 11)")).message).toContain('from 1 to 10');
    expect((await store.refusal("PATHS_BETWEEN('ann', 'bob', 0)")).code).toBe('REL_INVALID');
    expect((await store.refusal("PATHS_BETWEEN('ann', 'bob', LINK_TYPES => 'Person')")).message).toContain('are no edges');
    expect((await store.refusal("PATHS_BETWEEN('ann', 'bob') WHERE colour = 1")).code).toBe('REL_UNKNOWN_COLUMN');
  });
});

describe('NETWORK_EXPAND', () => {
  test('each node once, the nearest first', async () => {
    expect(await asked("NETWORK_EXPAND('bob')", 'nodeId', 'hop', 'from_id', 'link_type', 'score')).toBe(
      'ann 1 bob Knows 1, cid 1 bob Knows 1, dan 2 cid Knows 0.5',
    );
    expect(
      await asked("SELECT * FROM NETWORK_EXPAND('bob', MAX_HOPS => 3, DIRECTION => 'out') WHERE hop > 1", 'nodeId', 'hop'),
    ).toBe('dan 2, eve 3');
    expect(await asked("NETWORK_EXPAND('nobody')", 'nodeId')).toBe('');
    expect(await asked("NETWORK_EXPAND('bob', 3) LIMIT 2", 'nodeId')).toBe('ann, cid');
  });
});

describe('GRAPH_PAGERANK', () => {
  test('of the rows of a type, those without edges too', async () => {
    const ranks = await store.rows("SELECT * FROM GRAPH_PAGERANK('Person', 'Knows', MAX_ITER => 100)");
    expect(ranks.map((row) => row['nodeId'])).toEqual(['dan', 'cid', 'bob', 'ann', 'eve', 'loner']);
    expect(ranks.reduce((sum, row) => sum + Number(row['score']), 0)).toBeCloseTo(1, 9);
    expect(await asked("GRAPH_PAGERANK(Knows, WEIGHT => weight) WHERE kind = 'friend' LIMIT 2", 'nodeId')).toBe('dan, cid');
  });
});

describe('DEGREE', () => {
  test('of what a column names, whichever way, 0 of what has no edges', async () => {
    const sql = 'SELECT id, DEGREE(id) AS d, DEGREE(id, out) AS o, DEGREE(id, in) AS i FROM Person AS OF CURRENT ORDER BY id';
    expect(await asked(sql, 'id', 'd', 'o', 'i')).toBe('ann 2 2 0, bob 3 1 2, cid 2 1 1, dan 4 2 2, eve 1 0 1, loner 0 0 0');
    expect(await asked("SELECT id, DEGREE(id, 'out') AS d FROM Person AS OF CURRENT ORDER BY id LIMIT 1", 'd')).toBe('2');
    expect(await asked("SELECT id, DEGREE(id, 'in') AS d FROM Person AS OF CURRENT ORDER BY id LIMIT 1", 'd')).toBe('0');
  });

  test('as a condition, as of an instant, grouped', async () => {
    expect(await asked('SELECT id FROM Person WHERE DEGREE(id) > 2 ORDER BY id', 'id')).toBe('bob, dan');
    expect(await asked("SELECT DEGREE(id) AS d FROM Person AS OF SYSTEM TIME '2024-01-15' WHERE id = 'ann'", 'd')).toBe('3');
    expect(
      await asked('SELECT d, COUNT(*) AS n FROM (SELECT DEGREE(id) AS d FROM Person) t GROUP BY d ORDER BY d', 'd', 'n'),
    ).toBe('0 1, 1 1, 2 2, 3 1, 4 1');
    expect((await store.refusal("SELECT DEGREE(id, 'up') AS d FROM Person")).message).toContain('out, in or both');
  });
});

describe('CALL', () => {
  test('yields what the function yields', async () => {
    const rows = await store.rows(
      "CALL traverse.pageRank.stream('Person', 'Knows', {maxIterations: 100}) YIELD nodeId, score AS s LIMIT 2",
    );
    const same = await store.rows("SELECT * FROM GRAPH_PAGERANK('Person', 'Knows', MAX_ITER => 100) LIMIT 2");
    expect(rows).toEqual(same.map((row) => ({ nodeId: row['nodeId'], s: row['score'] })));
    expect(await asked("CALL gds.wcc('Person', 'Knows') YIELD community WHERE nodeId = 'dan'", 'community')).toBe('ann');
    expect(
      await asked("CALL traverse.pathsBetween('ann', 'cid', {maxHops: 2}) AS OF SYSTEM TIME '2024-01-15' LIMIT 1", 'nodeId'),
    ).toBe('cid');
  });

  test('tells about it', async () => {
    expect(await store.rows("CALL gds.degreeCentrality.stats('Person', 'Knows')")).toEqual([
      { nodes: 6n, edges: 5n, rounds: 1n, min: 0, max: 3, mean: 10 / 6 },
    ]);
    const [stats] = await store.rows("CALL traverse.pageRank.stats('Person', 'Knows', {maxIterations: 3}) YIELD rounds, mean");
    expect(stats).toEqual({ rounds: 3n, mean: expect.closeTo(1 / 6, 12) });
    expect(await store.rows("CALL traverse.sssp.stats('Person', {source: 'nobody'}) YIELD min, mean")).toEqual([
      { min: null, mean: null },
    ]);
  });

  test('refuses what it does not know, and writing', async () => {
    expect(await store.refusal("CALL gds.louvain('Person')")).toMatchObject({ code: 'REL_PARSE' });
    expect(await store.refusal("CALL gds.pageRank.write('Person', {writeProperty: 'r'})")).toMatchObject({
      code: 'REL_READ_ONLY',
    });
    expect((await store.refusal("CALL traverse.pageRank('Person', {speed: 3})")).message).toContain('no argument SPEED');
  });
});

test('a type that says which of its columns are ends: its rows are edges, and nodes where they are an end themselves', async () => {
  const plain = { required: false, masked: false, indexed: false, subject: false, dims: 0, type: 'string' } as const;
  await store.invoke(analyst, 'schema', (invocation) =>
    invocation.submit({
      kind: 'register-type',
      name: 'Staff',
      properties: { id: plain, boss: plain },
      primaryKey: 'id',
      graphTriggers: [],
      meaning: { edge: { from: 'id', to: 'boss' } },
    }),
  );
  await store.put('Staff', [
    { id: 's1', boss: 's2' },
    { id: 's2', boss: 's3' },
    { id: 's3', boss: null },
  ]);
  expect(await asked("PATHS_BETWEEN('s1', 's3')", 'nodeId', 'from_id', 'to_id', 'link_type')).toBe(
    's2 s1 s2 Staff, s3 s2 s3 Staff',
  );
  expect(await asked("DEGREE_CENTRALITY('Staff')", 'nodeId', 'score')).toBe('s2 2, s1 1, s3 1');
});

test('instants of many edges are those of each by itself', async () => {
  const spokes = Array.from({ length: 40 }, (_, i) => ({
    id: `s${i}`,
    from_id: 'hub',
    to_id: `end${String(i).padStart(2, '0')}`,
  }));
  await store.register('Spoke', { id: 'string', from_id: 'string', to_id: 'string' }, 'id');
  await store.put('Person', [{ id: 'hub' }, ...spokes.map(({ to_id: id }) => ({ id }))]);
  await store.put('Spoke', spokes);
  store.clock.set('2024-04-01');
  const then = "AS OF SYSTEM TIME '2024-03-15'";
  await store.delete('Spoke', ['s3']);
  const all = await store.rows(`NETWORK_EXPAND('hub', 1, LINK_TYPES => 'Spoke') ${then}`);
  expect(all.length).toBe(40);
  for (const row of all) {
    const [edge] = await store.rows(
      `SELECT valid_from, valid_to, system_from, system_to FROM Spoke ${then} WHERE to_id = '${String(row['nodeId'])}'`,
    );
    expect(row).toMatchObject(edge!);
  }
});

/** SIMILAR in each of its forms, over rows whose likeness is plain to see. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { rowsOf, TestStore } from '../../harness.ts';

let store: TestStore;
const vector = { type: 'vector', dims: 2, required: false, masked: false, indexed: false, subject: false } as const;

beforeAll(async () => {
  store = await TestStore.open('2024-01-01');
  await store.register('Doc', { id: 'string', title: 'string', lang: 'string', embedding: vector }, 'id');
  await store.put('Doc', [
    { id: 'east', title: 'the sun rises in the east', lang: 'en', embedding: [1, 0] },
    { id: 'north', title: 'the north wind', lang: 'en', embedding: [0, 2] },
    { id: 'north-east', title: 'wind from the north and the east', lang: 'de', embedding: [3, 3] },
    { id: 'west', title: 'sunset', lang: 'de', embedding: [-1, 0] },
    { id: 'nowhere', title: 'the wind rises', lang: 'en', embedding: null },
  ]);
  store.clock.set('2024-02-01');
  await store.put('Doc', [{ id: 'north', title: 'the north wind', lang: 'en', embedding: [1, 0.5] }]);
  store.clock.set('2024-03-01');
});
afterAll(() => store.close());

async function asked(sql: string): Promise<string> {
  const answer = await store.answer(sql);
  return rowsOf(answer)
    .map((row) => `${String(row['id'])} ${Number(row['_score']).toFixed(3)}`)
    .join(', ');
}

describe('by a vector', () => {
  const best = 'east 1.000, north 0.894, north-east 0.707';

  test.each([
    ['type, column, vector', "SELECT * FROM SIMILAR('Doc', embedding, ARRAY[1.0, 0]) LIMIT 3"],
    ['a column of a type', 'SELECT * FROM SIMILAR(Doc.embedding, ARRAY[2, 0]) LIMIT 3'],
    ['the only column of that name', 'SELECT * FROM SIMILAR(embedding, ARRAY[2, 0]) LIMIT 3'],
    ['the only column of vectors', "SIMILAR('Doc', VECTOR => '[0.25, 0]') LIMIT 3"],
    ['as a condition of SIMILAR TO', 'SIMILAR TO Doc WHERE SIMILAR(embedding, ARRAY[1, 0]) LIMIT 3'],
    ['above a threshold', "SELECT * FROM SIMILAR('Doc', embedding, ARRAY[1, 0], THRESHOLD => 0.7)"],
    ['above a threshold, with =', 'SIMILAR TO Doc WHERE SIMILAR(embedding, ARRAY[1, 0], threshold=0.7) LIMIT 5'],
  ])('%s', async (_, sql) => {
    expect(await asked(sql)).toBe(best);
  });

  test('what is said of the columns of the type says which rows are ranked', async () => {
    expect(await asked("SELECT * FROM SIMILAR('Doc', embedding, ARRAY[1, 0]) WHERE lang = 'de' LIMIT 1")).toBe(
      'north-east 0.707',
    );
    expect(await asked("SELECT * FROM SIMILAR('Doc', embedding, ARRAY[1, 0]) WHERE lang = 'de' AND _score < 0")).toBe(
      'west -1.000',
    );
  });

  test('as it was believed, and as it was true', async () => {
    const then = 'east 1.000, north-east 0.707, north 0.000';
    expect(await asked("SELECT * FROM SIMILAR('Doc', embedding, ARRAY[1, 0]) AS OF SYSTEM TIME '2024-01-15' LIMIT 3")).toBe(then);
    expect(await asked("SELECT * FROM SIMILAR('Doc', embedding, ARRAY[1, 0]) AS OF CURRENT LIMIT 3")).toBe(best);
  });
});

describe('by a row', () => {
  test('of which it is itself no part', async () => {
    const like = 'north 0.894, north-east 0.707, west -1.000';
    expect(await asked("SIMILAR TO Doc WHERE id = 'east' LIMIT 3")).toBe(like);
    expect(await asked("SIMILAR TO Doc WHERE _pk = 'east' LIMIT 3")).toBe(like);
    expect(await asked("SELECT * FROM SIMILAR('Doc') WHERE id = 'east' LIMIT 3")).toBe(like);
    expect(await asked("SELECT * FROM SIMILAR('Doc', ID => 'east') LIMIT 3")).toBe(like);
    expect(await asked("SIMILAR TO Doc WHERE lang = 'de' AND id = 'east' LIMIT 3")).toBe('north-east 0.707, west -1.000');
  });

  test('without a vector: by words', async () => {
    expect(await asked("SIMILAR TO Doc WHERE id = 'nowhere' LIMIT 9")).toBe('north 0.600, east 0.429, north-east 0.222');
  });

  test('that is not there', async () => {
    expect(await asked("SIMILAR TO Doc WHERE id = 'no' LIMIT 9")).toBe('');
  });
});

describe('as a condition', () => {
  test.each([
    ['its rows', 'SELECT id FROM Doc AS OF CURRENT WHERE SIMILAR(embedding, ARRAY[1, 0], threshold=0.8)', 'east north'],
    [
      'negated',
      'SELECT id FROM Doc AS OF CURRENT WHERE NOT SIMILAR(embedding, ARRAY[1, 0], THRESHOLD => 0.8)',
      'north-east west',
    ],
    [
      'beside others',
      "SELECT id FROM Doc AS OF CURRENT WHERE SIMILAR(embedding, ARRAY[-1, 0], threshold=1) OR lang = 'en'",
      'east west nowhere north',
    ],
    [
      'with its score',
      'SELECT id, _score FROM Doc AS OF CURRENT WHERE SIMILAR(embedding, ARRAY[1, 0], threshold=-1) ORDER BY _score DESC LIMIT 3',
      'east north north-east',
    ],
  ])('%s', async (_, sql, ids) => {
    expect((await store.rows(sql)).map((row) => row['id']).join(' ')).toBe(ids);
  });

  test('is the cosine that the function ranks by', async () => {
    const scores = async (sql: string): Promise<unknown[]> => (await store.rows(sql)).map((row) => row['_score']);
    expect(
      await scores(
        'SELECT _score FROM Doc AS OF CURRENT WHERE SIMILAR(embedding, ARRAY[0.3, -0.7], threshold=-1) ORDER BY _score DESC',
      ),
    ).toEqual(await scores("SELECT * FROM SIMILAR('Doc', embedding, ARRAY[0.3, -0.7])"));
  });

  test.each([
    ['SELECT id FROM Doc WHERE SIMILAR(embedding, ARRAY[1, 0])', 'REL_INVALID'],
    ['SELECT id FROM Doc WHERE SIMILAR(title, ARRAY[1, 0], threshold=0.5)', 'REL_TYPE_MISMATCH'],
    ['SELECT id FROM Doc WHERE SIMILAR(embedding, ARRAY[1, 0, 0], threshold=0.5)', 'REL_INVALID'],
    ["SELECT id FROM Doc WHERE SIMILAR(embedding, ARRAY[1, 'x'], threshold=0.5)", 'REL_TYPE_MISMATCH'],
  ])('%s', async (sql, code) => {
    await expect(store.answer(sql)).rejects.toMatchObject({ code });
  });
});

test('total hits and plan', async () => {
  const answer = await store.answer("SELECT * FROM SIMILAR('Doc', embedding, ARRAY[1, 0]) WHERE lang = 'en' LIMIT 1");
  expect([answer.rowCount, answer.estimatedTotalHits]).toEqual([1, 2]);
  const plan = await store.answer("EXPLAIN SELECT * FROM SIMILAR('Doc', embedding, ARRAY[1, 0]) WHERE lang = 'en' LIMIT 1");
  expect(plan.plan).toMatchInlineSnapshot(`
    "project _pk, id, tenant_id, namespace_path, valid_from, valid_to, system_from, system_to, title, lang, embedding, _score
      limit 1
        function SIMILAR(Doc, embedding, VECTOR => [2 numbers]) first 1; exact, without an index of vectors, as there is a condition: every row that may be seen is compared
          filter (lang = 'en'); kernel
            scan Doc (by live; about 5 rows in 1 segments; columns _pk, system_from, lang, embedding; valid at 2024-03-01T00:00:00Z; known at 2024-03-01T00:00:00Z; zone lang = 'en')"
  `);
});

test.each([
  ["SELECT * FROM SIMILAR('Nope', embedding, ARRAY[1, 0]) LIMIT 1", 'REL_UNKNOWN_TYPE'],
  ["SELECT * FROM SIMILAR('Doc', title, ARRAY[1, 0]) LIMIT 1", 'REL_UNKNOWN_COLUMN'],
  ["SELECT * FROM SIMILAR('Doc', embedding, ARRAY[1, 0, 0]) LIMIT 1", 'REL_INVALID'],
  ["SELECT * FROM SIMILAR('Doc', embedding, ARRAY[0, 0]) LIMIT 1", 'REL_INVALID'],
  ["SELECT * FROM SIMILAR('Doc', embedding, ARRAY['a', 0]) LIMIT 1", 'REL_TYPE_MISMATCH'],
  ["SELECT * FROM SIMILAR('Doc', embedding, '[1,') LIMIT 1", 'REL_INVALID'],
  ["SELECT * FROM SIMILAR('Doc') LIMIT 1", 'REL_INVALID'],
  ["SELECT * FROM SIMILAR('Doc', embedding, ARRAY[1, 0], COLOUR => 'x') LIMIT 1", 'REL_INVALID'],
  ["SELECT * FROM SIMILAR('Doc', embedding, ARRAY[1, 0]) LIMIT 1001", 'REL_VECTOR_BUDGET'],
])('%s', async (sql, code) => {
  await expect(store.answer(sql)).rejects.toMatchObject({ code });
});

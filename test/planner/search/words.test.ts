/** Words that capitals part are found as they are written in small letters, and the other way round; BOOLEAN reads parentheses; of JSON the strings are searched. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { inlineWorker } from '../../../src/log/threads/workers.ts';
import { MemoryDisk } from '../../../src/log/disk/memory-disk.ts';
import { analyst, TestStore } from '../../harness.ts';

const texts = [
  'The YouTube channel',
  'GitHub and PostgreSQL',
  'a youtube video',
  'you push the tube',
  'Über ÄpfelBaum, HTTPServer42',
  'github page; YouTube YouTube',
  'foo bar',
  'foo latte',
  'bar latte',
];
let store: TestStore;

beforeAll(async () => {
  const settings = {
    SERVICE_IN_MEMORY: 'false',
    SERVICE_DATA_DIR: '/data',
    SERVICE_WAL_SYNC: 'off',
    SERVICE_KEK: '07'.repeat(32),
  };
  const derived = { machineBytes: 2 ** 31, checkpointBytes: 2 ** 40, segmentRows: 8 };
  store = await TestStore.open('2024-01-01', settings, { disk: new MemoryDisk(), startKept: inlineWorker, derived });
  await store.register('Text', { id: 'integer', body: 'string' }, 'id');
  await store.put(
    'Text',
    texts.map((body, id) => ({ id, body })),
  );
});
afterAll(async () => {
  await store.close();
});

/** Numbers of the texts, by index and by each text itself. */
async function found(query: string, mode: string): Promise<number[]> {
  const match = `MATCH(body, '${query}'${mode === 'ANY' ? '' : `, ${mode}`})`;
  const indexed = await store.column(`SELECT id FROM Text WHERE ${match} ORDER BY id`);
  const plain = await store.column(`SELECT id FROM (SELECT id, body FROM Text) q WHERE ${match} ORDER BY id`);
  expect(plain).toEqual(indexed);
  return indexed.map(Number);
}

describe('words that capitals part', () => {
  test.each([
    ['youtube', 'ANY', [0, 2, 5]],
    ['YOUTUBE', 'ALL', [0, 2, 5]],
    ['YouTube', 'ANY', [0, 2, 3, 5]],
    ['YouTube', 'ALL', [0, 2, 3, 5]],
    ['YouTube video', 'ALL', [2]],
    ['video YouTube', 'LAST', [0, 2, 3, 5]],
    ['github', 'ANY', [1, 5]],
    ['GitHub page', 'ALL', [5]],
    ['postgresql', 'BOOLEAN', [1]],
    ['GitHub NOT page', 'BOOLEAN', [1]],
    ['äpfelbaum', 'ANY', [4]],
    ['httpserver', 'ANY', [4]],
    ['postgre*', 'ANY', [1]],
    ['utub', 'INFIX', [0, 2, 5]],
    ['sql', 'SUFFIX', [1]],
    ['yutube', 'FUZZY', [0, 2, 5]],
    ['youtubes', 'STEMMED', [0, 2, 5]],
    ['the youtube channel', 'PHRASE', [0]],
    ['youtube channel', 'PHRASE', [0]],
    ['the youtube', 'PHRASE', [0]],
    ['The YouTube channel', 'PHRASE', [0]],
    ['youtube youtube', 'PHRASE', [5]],
    ['page youtube youtube', 'PHRASE', [5]],
    ['you channel', 'PHRASE', []],
    ['github and postgresql', 'PHRASE', [1]],
    ['and postgre sql', 'PHRASE', [1]],
    ['youtube tube', 'PHRASE', []],
  ])('%s, %s', async (query, mode, expected) => {
    expect(await found(query, mode)).toEqual(expected);
  });

  test('are marked as they are written', async () => {
    const [row] = await store.rows(
      "SELECT id FROM Text WHERE MATCH(body, 'youtube channel') COMPUTE shown AS HIGHLIGHT(body) ORDER BY id LIMIT 1",
    );
    expect(row!['shown']).toBe('The <em>YouTube</em> <em>channel</em>');
  });
});

describe('BOOLEAN', () => {
  test.each([
    ['foo AND (bar OR latte)', [6, 7]],
    ['(foo AND bar) OR (bar AND latte)', [6, 8]],
    ['latte NOT (foo OR youtube)', [8]],
    ['(bar)', [6, 8]],
    ['NOT (foo OR bar OR youtube OR github OR tube)', [4]],
    ['foo AND bar OR latte', [6, 7, 8]],
  ])('%s', async (query, expected) => {
    expect(await found(query, 'BOOLEAN')).toEqual(expected);
  });

  test.each(['foo AND (bar', 'foo) AND bar', `${'('.repeat(40)}foo${')'.repeat(40)}`])('refuses %s', async (query) => {
    expect((await store.refusal(`SELECT id FROM Text WHERE MATCH(body, '${query}', BOOLEAN)`)).code).toBe('REL_INVALID');
  });
});

describe('strings of JSON', () => {
  const notes = [
    { id: 0, key: 'a', doc: { title: 'Harbour master', lines: ['grey heron', { said: 'flies south' }] } },
    { id: 1, key: 'b', doc: { heron: 7, south: { harbour: true }, none: null } },
    { id: 2, key: 'c', doc: 'a plain heron' },
    { id: 3, key: 'd', doc: ['Br\u00fccke "heron"\nof\tstone \\', ' \ud83d\udc26 ', ''] },
    { id: 4, key: 'e', doc: null },
    { id: 5, key: 'f', doc: 12 },
  ];
  beforeAll(async () => {
    await store.register('Note', { id: 'integer', key: 'string', doc: 'json' }, 'id');
    await store.put('Note', notes);
    await store.register('Sealed', { id: 'integer', key: 'string', doc: 'json' }, 'id');
    await store.put('Sealed', [
      ...notes,
      ...Array.from({ length: 20 }, (_, k) => ({ id: 100 + k, key: 'x', doc: [`other ${100 + k}`] })),
    ]);
  });

  test.each([
    ['heron', 'ANY', [0, 2, 3]],
    ['south', 'ANY', [0]],
    ['harbour south', 'ALL', [0]],
    ['grey heron', 'PHRASE', [0]],
    ['harbour master', 'PHRASE', [0]],
    ['master grey', 'PHRASE', []],
    ['heron flies', 'PHRASE', []],
    ['heron of stone', 'PHRASE', [3]],
    ['brücke', 'ANY', [3]],
    ['title', 'ANY', []],
    ['lines said none', 'ANY', []],
    ['true', 'ANY', []],
    ['12', 'ANY', []],
    ['n', 'ANY', []],
    ['arbou', 'INFIX', [0]],
    ['herons', 'STEMMED', [0, 2, 3]],
    ['heron NOT south', 'BOOLEAN', [2, 3]],
  ])('%s, %s', async (query, mode, ids) => {
    const match = `MATCH(doc, '${query}'${mode === 'ANY' ? '' : `, ${mode}`})`;
    for (const type of ['Note', 'Sealed']) {
      const rows = [`SELECT id FROM ${type} WHERE ${match}`, `SELECT id FROM (SELECT id, doc FROM ${type}) q WHERE ${match}`];
      for (const sql of rows) expect((await store.column(`${sql} ORDER BY id`)).map(Number), sql).toEqual(ids);
      const others = await store.column(`SELECT id FROM ${type} WHERE NOT ${match} AND id < 100 ORDER BY id`);
      expect(others.map(Number)).toEqual([0, 1, 2, 3, 5].filter((id) => !ids.includes(id)));
    }
  });

  test('the string that a word is in is marked, without its quotes', async () => {
    const shown = (query: string): Promise<unknown[]> =>
      store
        .rows(`SELECT id FROM Note WHERE MATCH(doc, '${query}') COMPUTE shown AS HIGHLIGHT(doc) ORDER BY id`)
        .then((rows) => rows.map((row) => row['shown']));
    expect(await shown('heron')).toEqual([
      'grey <em>heron</em>',
      'a plain <em>heron</em>',
      'Brücke "<em>heron</em>"\nof\tstone \\',
    ]);
    expect(await shown('south')).toEqual(['flies <em>south</em>']);
  });

  test('a column is searched as what it is at the instant and on the branch', async () => {
    await store.register('Widened', { id: 'integer', doc: 'string' }, 'id');
    await store.put('Widened', [{ id: 1, doc: 'a "heron" of stone' }]);
    const ids = (where: string, caller = analyst): Promise<string> =>
      store.column(`SELECT id FROM Widened ${where}`, caller).then((each) => each.map(Number).join(' '));
    expect(await ids("WHERE MATCH(doc, 'heron')")).toBe('1');
    await store.rows('BRANCH before FROM main', analyst);
    store.clock.set('2024-02-01');
    await store.invoke(analyst, 'schema', (invocation) =>
      invocation.submit({
        kind: 'evolve-type',
        name: 'Widened',
        properties: { doc: { type: 'json', required: false, masked: false, indexed: false, subject: false, dims: 0 } },
      }),
    );
    await store.put('Widened', [{ id: 2, doc: { stone: ['heron', 'of stone'] } }]);
    expect(await ids("WHERE MATCH(doc, 'heron') ORDER BY id")).toBe('1 2');
    expect(await ids("WHERE MATCH(doc, 'heron of stone', PHRASE) ORDER BY id")).toBe('1');
    expect(await ids(`AS OF SYSTEM TIME '2024-01-15' WHERE MATCH(doc, 'heron of stone', PHRASE)`)).toBe('1');
    expect(await ids("WHERE MATCH(doc, 'stone') ORDER BY id", { ...analyst, branch: 'before' })).toBe('1');
  });
});
